"""Arenas: placing tensors in one piece of memory. Tensors that are not live at the same time may share bytes.

    placement = remat.place([(0, 4, 1000), (4, 6, 800)])    # lower, upper (exclusive), size
    placement.offsets, placement.height
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from ._convert import (
    PathLike,
    Size,
    array_pointer,
    c_bytes,
    c_path,
    c_text,
    options,
    py_text,
    reading,
    reading_file,
    record,
    written,
)
from ._handles import Context, Handle
from ._library import ffi, lib
from ._sequences import LazySequence
from .errors import BudgetError

#: The element type of an array of live ranges: what the C library reads and writes in place.
LIFETIME = numpy.dtype([("lower", "u8"), ("upper", "u8"), ("size", "u8"), ("offset", "u8")])

Lifetimes = Union[numpy.ndarray, Sequence[Tuple[int, int, int]]]


class Placement(NamedTuple):
    """Where the tensors are.

    Attributes:
        lifetimes: of the type LIFETIME, offsets included.
        height: the bytes that the placement needs.
        lower_bound: no placement needs less; if it equals height, the placement is optimal.
    """

    lifetimes: numpy.ndarray
    height: int
    lower_bound: int

    @property
    def offsets(self) -> numpy.ndarray:
        """The offset of each tensor: a view of `lifetimes`."""
        return self.lifetimes["offset"]


def lifetimes(tensors: Lifetimes) -> numpy.ndarray:
    """An array of the type LIFETIME. One that is such an array already is used as it is, without a copy."""
    if isinstance(tensors, numpy.ndarray) and tensors.dtype == LIFETIME and tensors.flags.c_contiguous:
        return tensors
    rows = numpy.asarray(tensors, dtype=None if len(tensors) else "u8").reshape(-1, 3)
    if rows.dtype.kind not in "iu" or (rows.dtype.kind == "i" and (rows < 0).any()):
        raise ValueError("a live range has three whole numbers that are not negative: lower, upper and size")
    array = numpy.zeros(len(rows), LIFETIME)
    array["lower"], array["upper"], array["size"] = rows[:, 0], rows[:, 1], rows[:, 2]
    return array


def _options(context: Context, alignment: Size, capacity: Optional[Size], effort: Optional[int]):
    chosen = options("arena_options")
    chosen.alignment = c_bytes(context, alignment)
    if capacity is not None:
        chosen.capacity = c_bytes(context, capacity)
    if effort is not None:
        chosen.effort = effort
    return chosen


def place(
    tensors: Lifetimes, alignment: Size = 1, capacity: Optional[Size] = None, effort: Optional[int] = None
) -> Placement:
    """Finds an offset for each tensor, so that all need as few bytes as possible.

    The same input gives the same offsets.

    Args:
        tensors: rows of (lower, upper, size): live during [lower, upper). An array of the type LIFETIME is placed
            without a copy: its offsets are set.
        alignment: offsets are multiples of it, and sizes are rounded up to it.
        capacity: stop at the first placement that fits into it. None: as small as possible.
        effort: how many nodes the search may visit; 0 for heuristics only. The default takes seconds at most.

    Raises BudgetError if no placement within the capacity was found; its `plan` is the best placement.
    """
    context = Context()
    array = lifetimes(tensors)
    if not array.flags.writeable:
        array = array.copy()
    chosen = _options(context, alignment, capacity, effort)
    result = ffi.new("remat_arena_result *")

    def placement() -> Placement:
        return Placement(array, result.height, result.lower_bound)

    try:
        context.call(
            lib.remat_arena_place_sized,
            context.pointer,
            array_pointer(array, "remat_lifetime *"),
            LIFETIME.itemsize,
            len(array),
            chosen,
            result,
            ffi.sizeof(result[0]),
        )
    except BudgetError as error:
        error.plan = placement()
        raise
    return placement()


def check_placement(tensors: numpy.ndarray, height: Size, alignment: Size = 1) -> None:
    """Checks a placement, whoever made it: an array of the type LIFETIME.

    CheckError: tensors that are live at the same time share bytes, an offset is not aligned, or one ends above
    `height`.
    """
    if not isinstance(tensors, numpy.ndarray) or tensors.dtype != LIFETIME:
        raise TypeError("a placement is an array of the type remat.arenas.LIFETIME")
    context = Context()
    array = numpy.ascontiguousarray(tensors)
    context.call(
        lib.remat_arena_check_sized,
        context.pointer,
        array_pointer(array, "const remat_lifetime *"),
        LIFETIME.itemsize,
        len(array),
        c_bytes(context, alignment),
        c_bytes(context, height),
    )


class Lifetime(NamedTuple):
    """A row of a table of live ranges."""

    lower: int
    upper: int
    size: int
    offset: int


class LifetimeTable:
    """The tensors of a CSV file with the columns id, lower, upper and size. Other columns are kept."""

    def __init__(self, text: str, name: str = "text") -> None:
        self._read(lambda context, read: reading(context, text, read), c_text(name))

    @classmethod
    def load(cls, path: PathLike) -> LifetimeTable:
        """Reads a file. FileError, InputFileError."""
        table = cls.__new__(cls)
        table._read(lambda context, read: reading_file(context, path, read), c_path(path))
        return table

    def _read(self, source: Callable, label: Any) -> None:
        context = Context()
        made = ffi.new("remat_lifetime_table **")
        source(context, lambda stream: lib.remat_lifetime_table_read(context.pointer, stream, label, made))
        self._handle = Handle(context, made[0], lib.remat_lifetime_table_destroy)

    def __len__(self) -> int:
        return lib.remat_lifetime_table_count(self._handle.pointer)

    def __repr__(self) -> str:
        return f"<remat.LifetimeTable: {len(self)} rows>"

    @property
    def ids(self) -> Tuple[str, ...]:
        """The ids of the rows."""
        table = self._handle.pointer
        return tuple(py_text(lib.remat_lifetime_table_id(table, i)) for i in range(len(self)))

    @property
    def rows(self) -> LazySequence[Lifetime]:
        """The rows, with the offsets of the last placement."""
        return LazySequence(len(self), self._row)

    def _row(self, position: int) -> Lifetime:
        row = ffi.new("remat_lifetime *")
        self._handle.call(lib.remat_lifetime_table_get_sized, position, row, ffi.sizeof(row[0]))
        return record(Lifetime, row)

    def place(
        self, alignment: Size = 1, capacity: Optional[Size] = None, effort: Optional[int] = None
    ) -> Tuple[int, int]:
        """Places the tensors as `remat.place` does. Returns the bytes that the placement needs, and the lower bound."""
        chosen = _options(self._handle.context, alignment, capacity, effort)
        result = ffi.new("remat_arena_result *")
        self._handle.call(lib.remat_lifetime_table_place_sized, chosen, result, ffi.sizeof(result[0]))
        return result.height, result.lower_bound

    def check(self, height: Size, alignment: Size = 1) -> None:
        """Checks the offsets as `remat.check_placement` does."""
        context = self._handle.context
        self._handle.call(lib.remat_lifetime_table_check, c_bytes(context, alignment), c_bytes(context, height))

    def to_csv(self) -> str:
        """The rows as they were read, with a last column `offset`."""
        table = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_lifetime_table_write(table, stream))
