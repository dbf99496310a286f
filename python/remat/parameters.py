"""Parameters of a trainer: weights that are trained, and running statistics."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy

from ._convert import array_pointer, py_text
from ._handles import Handle
from ._library import lib
from .errors import InvalidError
from .models import DTYPES


class Parameter:
    """A parameter. `read` and `write` copy its values between the trainer and an array.

    Values are float32 here, whatever the stored type is.

    Attributes:
        name: such as "fc1.weight".
        shape: its dimensions.
        count: how many values it has.
        dtype: the element type in which they are stored.
        trained: False for running statistics.
        moment_count: how many moments the optimizer keeps for it.
    """

    def __init__(self, trainer: Handle, position: int, about: Any) -> None:
        self._trainer = trainer
        self._position = position
        self.name: str = py_text(about.name)
        self.shape: Tuple[int, ...] = tuple(about.dims[i] for i in range(about.rank))
        self.count: int = about.count
        self.dtype: str = DTYPES[about.dtype]
        self.trained: bool = about.trained
        self.moment_count: int = about.moment_count

    def __repr__(self) -> str:
        return f"<remat.Parameter {self.name!r}: {self.dtype} {self.shape}>"

    def read(self, out: Optional[numpy.ndarray] = None) -> numpy.ndarray:
        """The values as float32, in `out` or in a new array."""
        return self._read(out, lib.remat_trainer_read_parameter)

    def write(self, values: Any) -> None:
        """Sets the values."""
        self._write(values, lib.remat_trainer_write_parameter)

    def read_moment(self, moment: int, out: Optional[numpy.ndarray] = None) -> numpy.ndarray:
        """A moment of the optimizer, from 0, as float32."""
        return self._read(out, lib.remat_trainer_read_moment, moment)

    def write_moment(self, moment: int, values: Any) -> None:
        """Sets a moment of the optimizer."""
        self._write(values, lib.remat_trainer_write_moment, moment)

    def _read(self, out: Optional[numpy.ndarray], function: Callable, *which: int) -> numpy.ndarray:
        if out is None:
            out = numpy.empty(self.shape, numpy.float32)
        elif out.dtype != numpy.float32 or out.shape != self.shape or not out.flags.carray:
            raise InvalidError(f"values of {self.name!r} go into a contiguous, writable float32 array {self.shape}")
        self._trainer.call(function, self._position, *which, array_pointer(out, "float *"), self.count)
        return out

    def _write(self, values: Any, function: Callable, *which: int) -> None:
        array = numpy.ascontiguousarray(values, numpy.float32)
        if array.shape != self.shape:
            raise InvalidError(f"{self.name!r} has the shape {self.shape}, not {array.shape}")
        self._trainer.call(function, self._position, *which, array_pointer(array, "const float *"), self.count)
