"""How good trained weights are."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import numpy

from ._convert import PathLike, c_path, record, written
from ._handles import Handle
from ._library import ffi, lib
from ._train_options import TrainOptions
from .models import Model
from .samples import Arrays


class EvaluationFigures(NamedTuple):
    """The figures of an evaluation. One that does not apply is NaN.

    Attributes:
        rows: predictions with a label: samples, or tokens.
        classes: how many there are; 0 if the loss is not over classes.
        loss: the mean over the samples.
        accuracy: the share of rows whose largest logit is that of the label.
        top5: the share of rows whose label is among the five largest.
        targets: values of a sample, with a binary cross entropy; 0 with another loss.
    """

    samples: int
    rows: int
    classes: int
    loss: float
    accuracy: float
    top5: float
    perplexity: float
    mean_absolute_error: float
    r2: float
    targets: int


class ClassFigures(NamedTuple):
    """One class.

    Attributes:
        name: its name, or its number if it has none.
        rows: how many rows have this label.
        predicted: rows for which this class was predicted.
        correct: rows with this label for which this class was predicted.
        precision: NaN if it was never predicted.
        recall: NaN if no row has this label.
    """

    name: str
    rows: int
    predicted: int
    correct: int
    precision: float
    recall: float


class TargetFigures(NamedTuple):
    """One target of a binary cross entropy. The answer is yes if its probability is above 0.5.

    Attributes:
        name: that of the label's column, or its number if it has none.
        rows: samples.
        positives: samples whose label is yes.
        predicted: samples whose answer is yes.
        correct: samples where both are yes.
        accuracy: the share of right answers.
        precision: NaN if the answer was never yes.
        recall: NaN if the label is never yes.
        f1: NaN if neither is ever yes.
    """

    name: str
    rows: int
    positives: int
    predicted: int
    correct: int
    accuracy: float
    precision: float
    recall: float
    f1: float


class Evaluation:
    """The weights of a file on the validation samples of a model, or on those of `data_path`, or on all of `data`.

    Args:
        model: it must be compiled.
        weights: the file that `Trainer.save` wrote.
        data: (inputs, labels), as for `remat.Trainer`.
        data_path: read all samples from this file instead of the model's.
        labels_path: with `data_path`: the file of the labels.
        kernels, threads, batch_size, seed, device: as for `remat.Trainer`.
    """

    def __init__(
        self,
        model: Model,
        weights: PathLike,
        data: Optional[Arrays] = None,
        *,
        data_path: Optional[PathLike] = None,
        labels_path: Optional[PathLike] = None,
        kernels: Optional[str] = None,
        threads: int = 0,
        batch_size: Optional[int] = None,
        seed: Optional[int] = None,
        device: Optional[str] = None,
    ) -> None:
        chosen = TrainOptions(
            model,
            needs_labels=True,
            data=data,
            data_path=data_path,
            labels_path=labels_path,
            kernels=kernels,
            threads=threads,
            batch_size=batch_size,
            seed=seed,
            device=device,
        )
        if data is not None:
            chosen.judge_all()
        made = ffi.new("remat_evaluation **")
        with chosen.callbacks:
            model._handle.call(lib.remat_evaluate, c_path(weights), chosen.struct, made)
        self._handle = Handle(model._handle.context, made[0], lib.remat_evaluation_destroy, model._handle)
        figures = ffi.new("remat_evaluation_figures *")
        lib.remat_evaluation_get_figures_sized(made[0], figures, ffi.sizeof(figures[0]))
        self._figures = record(EvaluationFigures, figures)

    def __repr__(self) -> str:
        return f"<remat.Evaluation: {self.figures.samples} samples, loss {self.figures.loss:g}>"

    @property
    def figures(self) -> EvaluationFigures:
        """Loss, accuracy and others."""
        return self._figures

    @property
    def classes(self) -> List[ClassFigures]:
        """Precision and recall of each class. Empty without classes."""
        return [self._class(position) for position in range(self._figures.classes)]

    def _class(self, position: int) -> ClassFigures:
        figures = ffi.new("remat_class_figures *")
        self._handle.call(lib.remat_evaluation_get_class_sized, position, figures, ffi.sizeof(figures[0]))
        found = record(ClassFigures, figures)
        return found if found.name else found._replace(name=str(position))

    @property
    def targets(self) -> List[TargetFigures]:
        """Accuracy, precision, recall and F1 of each target of a binary cross entropy. Empty with another loss."""
        return [self._target(position) for position in range(self._figures.targets)]

    def _target(self, position: int) -> TargetFigures:
        figures = ffi.new("remat_target_figures *")
        self._handle.call(lib.remat_evaluation_get_target_sized, position, figures, ffi.sizeof(figures[0]))
        found = record(TargetFigures, figures)
        return found if found.name else found._replace(name=str(position))

    @property
    def confusion(self) -> numpy.ndarray:
        """How many rows with a label (first index) were predicted as a class (second index). At most 1000 classes."""
        count = self._figures.classes if self._figures.classes <= 1000 else 0
        evaluation = self._handle.pointer
        rows = [[lib.remat_evaluation_confusion(evaluation, i, j) for j in range(count)] for i in range(count)]
        return numpy.array(rows, numpy.uint64).reshape(count, count)

    def to_text(self, json: bool = False) -> str:
        """All of it for people, or as one line of JSON."""
        evaluation = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_evaluation_write(evaluation, stream, json))

    def save(self, path: PathLike, json: bool = True) -> None:
        """Writes that text to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_evaluation_save, c_path(path), json)
