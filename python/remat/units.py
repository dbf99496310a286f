"""Sizes as people read and write them."""

from __future__ import annotations

from ._convert import Size, c_bytes, py_text
from ._handles import Context
from ._library import ffi, lib


def parse_size(size: Size) -> int:
    """The bytes of a size such as "512", "64KiB" or "1.5GB". An int is returned as it is.

    KB, MB, GB ... are powers of 1000; KiB, MiB, GiB ... powers of 1024. A bare "8G" is refused with `InvalidError`,
    because it could mean either.
    """
    return c_bytes(Context(), size)


def format_size(count: int, round_up: bool = False) -> str:
    """A number of bytes for people: "512 B", "64 KiB", "1.50 GiB".

    With `round_up`, `parse_size` of the text gives `count` or more: use it for a smallest budget.
    """
    text = ffi.new("char[]", lib.REMAT_SIZE_TEXT)
    return py_text((lib.remat_size_print_up if round_up else lib.remat_size_print)(count, text))
