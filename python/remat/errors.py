"""Exceptions. Each carries the status and the details that the library gives with a failure.

Every exception of the library is an `Error`. Most are also one of Python's own exceptions, so that `except OSError` and
`except ValueError` work as usual.
"""

from __future__ import annotations

import enum
from typing import Any, Dict, Optional, Type

from ._library import ffi, lib


class Status(enum.IntEnum):
    """What a call of the library returns. The numbers are also the exit codes of the program `remat`."""

    OK = lib.REMAT_OK
    INTERNAL = lib.REMAT_INTERNAL
    INVALID = lib.REMAT_INVALID
    BAD_INPUT = lib.REMAT_BAD_INPUT
    INFEASIBLE = lib.REMAT_INFEASIBLE
    NO_MEMORY = lib.REMAT_NO_MEMORY
    IO = lib.REMAT_IO
    CHECK_FAILED = lib.REMAT_CHECK_FAILED
    DIVERGED = lib.REMAT_DIVERGED


class RematWarning(UserWarning):
    """Something that is odd but not wrong, such as an unknown key in a file."""


class Error(Exception):
    """A call of the library failed. `str()` gives the library's own sentence.

    Members that do not apply are None.

    Attributes:
        file: the file, as the caller named it.
        line: of the file, from 1.
        layer: the position of a layer, from 0.
        step: of a schedule, from 0.
        field: of a record in a file, or of the options.
    """

    status: Status = Status.INTERNAL
    file: Optional[str] = None
    line: Optional[int] = None
    layer: Optional[int] = None
    step: Optional[int] = None
    field: Optional[str] = None

    @property
    def message(self) -> str:
        """What went wrong, as one sentence."""
        return str(self.args[0]) if self.args else ""


class InternalError(Error, RuntimeError):
    """A defect of the library."""

    status = Status.INTERNAL


class InvalidError(Error, ValueError):
    """An argument is wrong, or a call does not fit the object."""

    status = Status.INVALID


class InputFileError(Error, ValueError):
    """A file is not what it should be. `file`, `line` and `field` say where."""

    status = Status.BAD_INPUT


class BudgetError(Error):
    """The budget is too small.

    Attributes:
        budget_bytes: the budget that is too small.
        smallest_bytes: the smallest budget that is known to work.
        lower_bound_bytes: proven: no smaller budget can work.
        layer_name: the layer that needs it.
        plan: a plan without a schedule, whose figures say more.
    """

    status = Status.INFEASIBLE
    budget_bytes: Optional[int] = None
    smallest_bytes: Optional[int] = None
    lower_bound_bytes: Optional[int] = None
    layer_name: Optional[str] = None
    plan: Any = None


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""

    status = Status.NO_MEMORY


class FileError(Error, OSError):
    """A file cannot be read or written."""

    status = Status.IO


class CheckError(Error, ValueError):
    """A schedule is not legal, or a figure in a file is wrong. `step` says where."""

    status = Status.CHECK_FAILED


class DivergedError(Error, ArithmeticError):
    """The loss or a gradient of a training is not finite.

    Attributes:
        result: what a run did until then.
    """

    status = Status.DIVERGED
    result: Any = None


_CLASSES: Dict[int, Type[Error]] = {
    int(kind.status): kind
    for kind in (
        InternalError,
        InvalidError,
        InputFileError,
        BudgetError,
        OutOfMemoryError,
        FileError,
        CheckError,
        DivergedError,
    )
}


def _text(pointer) -> Optional[str]:
    return ffi.string(pointer).decode(errors="replace") or None if pointer else None


def _number(value: int) -> Optional[int]:
    return None if value == lib.REMAT_NOWHERE else value


def from_context(status: int, context) -> Error:
    """The exception for a call that returned `status`, with the details that are on the C context."""
    kind = _CLASSES.get(status, InternalError)
    details = lib.remat_context_error(context)
    if details.status != status:
        # The call failed without a word, as the smallest ones do: the text of the status has to do.
        return kind(ffi.string(lib.remat_status_text(status)).decode())
    error = kind(_text(details.message) or ffi.string(lib.remat_status_text(status)).decode())
    error.file = _text(details.file)
    error.line = _number(details.line)
    error.layer = _number(details.layer)
    error.step = _number(details.step)
    error.field = _text(details.field)
    if isinstance(error, BudgetError):
        error.budget_bytes = _number(details.budget_bytes)
        error.smallest_bytes = _number(details.needed_bytes)
        error.layer_name = _text(details.layer_name)
    return error
