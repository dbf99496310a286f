"""The options that trainers, predictors and evaluations share."""

from __future__ import annotations

from typing import Any, Dict, List

from . import samples
from ._callbacks import Callbacks
from ._convert import c_bytes, c_path, c_text, options
from ._library import ffi, lib
from .models import Model

_TEXTS = ("strategy", "kernels", "device")
_PATHS = ("plan_path", "profile_path", "graph_plan_path", "data_path", "labels_path")
_NUMBERS = ("threads", "batch_size", "seed", "steps")


class TrainOptions:
    """A struct of options for C, and all that must live as long as C uses it."""

    def __init__(self, model: Model, needs_labels: bool, **given: Any) -> None:
        self.struct = options("train_options")
        self.callbacks = Callbacks()
        self._kept: List[Any] = []
        for key, value in given.items():
            if value is not None:
                self._set(model, key, value, given, needs_labels)

    def _set(self, model: Model, key: str, value: Any, given: Dict[str, Any], needs_labels: bool) -> None:
        if key in _TEXTS or key in _PATHS:
            self._kept.append((c_text if key in _TEXTS else c_path)(value))
            setattr(self.struct, key, self._kept[-1])
        elif key in _NUMBERS:
            setattr(self.struct, key, value)
        elif key == "budget":
            self.struct.budget_bytes = c_bytes(model._handle.context, value)
        elif key == "plan_only":
            self.struct.plan_only = value
        elif key == "data":
            self._set_arrays(model, value, given.get("validation_data"), needs_labels)
        elif key == "sample":
            if given.get("data") is not None:
                raise TypeError("data comes from arrays or from a sample function, not from both")
            self._set_function(samples.from_function(value, model))
            self.struct.samples = given.get("samples") or 0
            self.struct.validation_samples = given.get("validation_samples") or 0
        elif key == "validation_data" and given.get("data") is None:
            raise TypeError("validation_data goes with data")

    def _set_arrays(self, model: Model, data: Any, validation: Any, needs_labels: bool) -> None:
        count, fill = samples.from_arrays(data, model, needs_labels)
        self.struct.samples = count
        if validation is None:
            self._set_function(fill)
            return
        self.struct.validation_samples, fill_validation = samples.from_arrays(validation, model, needs_labels)

        # The numbers of validation samples follow those for training.
        def fill_both(user: Any, number: int, inputs: Any, labels: Any) -> int:
            return fill(user, number, inputs, labels) if number < count else fill_validation(
                user, number - count, inputs, labels
            )

        self._set_function(fill_both)

    def judge_all(self) -> None:
        """Makes all samples of the arrays those for validation, which an evaluation judges.

        There must be some for training too: the same ones, which nobody reads.
        """
        count, fill = self.struct.samples, self._fill
        self.struct.validation_samples = count
        self._set_function(lambda user, number, inputs, labels: fill(user, number % count, inputs, labels))

    def _set_function(self, fill: Any) -> None:
        self._fill = fill
        self.struct.sample = self.callbacks.make("remat_sample_fn", fill, on_error=lib.REMAT_INVALID)
        self.struct.sample_user = ffi.NULL
