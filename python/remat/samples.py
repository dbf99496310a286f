"""Samples of a training: arrays, or a function that writes one sample at a time."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy

from ._library import ffi, lib
from .errors import InvalidError
from .models import Model, SampleField

#: One array for each input layer (or the array itself if there is one), and the labels. The first dimension counts
#: samples.
Arrays = Tuple[Union[numpy.ndarray, Sequence[numpy.ndarray]], Optional[numpy.ndarray]]
#: Writes sample `number` to the arrays it is given: inputs, labels (None for a predictor).
SampleFunction = Callable[[int, List[numpy.ndarray], Optional[numpy.ndarray]], Any]

_NUMPY = {"fp32": "float32", "int32": "int32"}


def as_field(values: Any, field: SampleField, what: str) -> numpy.ndarray:
    """An array of samples with the type and the number of values that the model reads.

    It is copied only if it must be.
    """
    array = numpy.asarray(values)
    wanted = numpy.dtype(_NUMPY[field.dtype])
    if array.dtype != wanted:
        whole = array.dtype.kind in "iub"
        if wanted.kind == "i" and not whole:
            raise InvalidError(f"{what} are {array.dtype}, and the layer '{field.layer}' reads whole numbers")
        if array.dtype.kind not in "iubf":
            raise InvalidError(f"{what} are {array.dtype}, and the layer '{field.layer}' reads numbers")
        converted = array.astype(wanted)
        if whole and wanted.kind == "i" and not numpy.array_equal(converted, array):
            raise InvalidError(f"{what} have numbers that do not fit into 32 bits")
        array = converted
    count = array.size // len(array) if array.ndim and len(array) else 0
    if count != field.count:
        raise InvalidError(
            f"{what} have {count} values a sample, and the layer '{field.layer}' reads {field.count}"
            + (f", of the shape {':'.join(map(str, field.shape))}" if any(field.shape) else "")
        )
    return numpy.ascontiguousarray(array).reshape(len(array), -1)


def _list(inputs: Any) -> List[Any]:
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


def as_inputs(inputs: Any, model: Model) -> List[numpy.ndarray]:
    """The arrays of all input layers, checked, with the same number of samples."""
    given, fields = _list(inputs), model.inputs
    if not fields:
        raise InvalidError("the model has no inputs: it is not compiled")
    if len(given) != len(fields):
        names = ", ".join(field.layer for field in fields)
        raise InvalidError(f"the model has {len(fields)} inputs ({names}), and {len(given)} arrays were given")
    arrays = [as_field(array, field, f"the values for '{field.layer}'") for array, field in zip(given, fields)]
    if len({len(array) for array in arrays}) > 1:
        raise InvalidError("the arrays of the inputs have different numbers of samples")
    return arrays


def from_arrays(arrays: Arrays, model: Model, needs_labels: bool) -> Tuple[int, Callable]:
    """How many samples there are, and a function for C that copies one from the arrays to where C wants it."""
    if not isinstance(arrays, tuple) or len(arrays) != 2:
        raise TypeError("data is a pair: (inputs, labels)")
    sources = as_inputs(arrays[0], model)
    samples = len(sources[0])
    if arrays[1] is not None:
        labels = as_field(arrays[1], model.labels, "the labels")
        if len(labels) != samples:
            raise InvalidError(f"there are {samples} samples of inputs and {len(labels)} of labels")
    elif needs_labels:
        raise InvalidError("a training needs labels, and none were given")
    else:
        labels = None
    rows = [(array, array.ctypes.data, array[0].nbytes) for array in sources]
    label_row = (labels, labels.ctypes.data, labels[0].nbytes) if labels is not None else None

    def fill(_user: Any, number: int, inputs: Any, to: Any) -> int:
        for i, (_array, address, size) in enumerate(rows):
            ffi.memmove(inputs[i], ffi.cast("char *", address + number * size), size)
        if to and label_row is not None:
            _array, address, size = label_row
            ffi.memmove(to, ffi.cast("char *", address + number * size), size)
        return lib.REMAT_OK

    return samples, fill


def from_function(function: SampleFunction, model: Model) -> Callable:
    """A function for C that lets `function` write one sample through arrays that lie where C wants it."""
    fields = model.inputs
    labels = model.labels if _has_labels(model) else None

    def view(pointer: Any, field: SampleField, shape: Tuple[int, ...]) -> numpy.ndarray:
        dtype = numpy.dtype(_NUMPY[field.dtype])
        return numpy.frombuffer(ffi.buffer(pointer, field.count * dtype.itemsize), dtype).reshape(shape)

    def fill(_user: Any, number: int, inputs: Any, to: Any) -> int:
        arrays = [view(inputs[i], field, field.shape) for i, field in enumerate(fields)]
        function(number, arrays, view(to, labels, (labels.count,)) if to and labels is not None else None)
        return lib.REMAT_OK

    return fill


def _has_labels(model: Model) -> bool:
    try:
        model.labels
    except InvalidError:
        return False
    return True
