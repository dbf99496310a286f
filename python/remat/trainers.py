"""Training within a budget.

    trainer = remat.Trainer(model, budget="300MiB", data=(inputs, labels))
    trainer.figures.total_bytes             # all memory for tensors; it is allocated now, and no more later
    result = trainer.run(on_step=lambda step: print(step.step, step.loss))
    trainer.save("weights.safetensors")

Losses, gradients and weights have the same bits whatever is recomputed, and with any number of threads.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, Optional

import numpy

from . import errors
from ._convert import PathLike, Size, borrowed_array, c_path, options, record, written
from ._handles import Handle
from ._library import ffi, lib
from ._train_options import TrainOptions
from .graphs import Graph
from .models import Model
from .parameters import Parameter
from .plans import Plan
from .profiles import Profile
from .samples import Arrays, SampleFunction
from .training_records import (
    Action,
    Measurement,
    RunResult,
    StepResult,
    TrainCurve,
    TrainerFigures,
    TrainPoint,
    ValidationResult,
)

#: A budget without a limit, which overrides that of the model.
UNLIMITED: int = lib.REMAT_UNLIMITED


class Trainer:
    """Plans what is kept of a compiled model, places all tensors in one arena, and trains.

    Args:
        model: it must be compiled.
        budget: for all memory of tensors: weights, optimizer, gradients, scratch, and the arena with activations and
            the batch. None: the budget of the model, if it has one. `remat.UNLIMITED`: no limit.
        data: (inputs, labels): arrays whose first dimension counts samples, as many inputs as the model has input
            layers (a list if several). Float32 is read, and int32 where an embedding reads the input and for classes;
            other types are converted. None: the dataset of the model, or `sample`.
        validation_data: the same for validation.
        sample: a function that writes a sample: `sample(number, inputs, labels)` gets a list of arrays and an array,
            which are in the trainer's memory. The same number must always give the same sample.
        samples: with `sample`: how many training samples there are.
        validation_samples: with `sample`: how many validation samples follow them.
        data_path: read the samples from this file instead of the model's; JSON lines if its name ends in .jsonl.
        labels_path: with `data_path`: the file of the labels.
        strategy: such as "every-nth:2". None: the model's strategy, its blocks, or the best plan.
        plan_path: a plan file to use, made for this model.
        graph_plan_path: a plan of the model's graph to use, from any program.
        profile_path: measured costs, as `measure` gives them.
        kernels: "fast", "amx", "avx512bf16", "avx512", "avx2", "portable" or "reference".
        threads: 0 for all cores.
        batch_size: None for the model's.
        seed: None for the model's.
        steps: of the whole training; None for the model's epochs.
        plan_only: only plan: no data is opened and no memory for tensors is allocated, until `start`.
        device: "cpu", or "cuda" if this build has it.

    Raises BudgetError if the budget is too small: it has the smallest that works, and the layer that needs it.
    An exception from `sample` ends the step or the run that called it.
    """

    def __init__(
        self,
        model: Model,
        budget: Optional[Size] = None,
        data: Optional[Arrays] = None,
        validation_data: Optional[Arrays] = None,
        *,
        sample: Optional[SampleFunction] = None,
        samples: int = 0,
        validation_samples: int = 0,
        data_path: Optional[PathLike] = None,
        labels_path: Optional[PathLike] = None,
        strategy: Optional[str] = None,
        plan_path: Optional[PathLike] = None,
        graph_plan_path: Optional[PathLike] = None,
        profile_path: Optional[PathLike] = None,
        kernels: Optional[str] = None,
        threads: int = 0,
        batch_size: Optional[int] = None,
        seed: Optional[int] = None,
        steps: Optional[int] = None,
        plan_only: bool = False,
        device: Optional[str] = None,
    ) -> None:
        self._model = model
        self._options = TrainOptions(
            model,
            needs_labels=True,
            budget=budget,
            data=data,
            validation_data=validation_data,
            sample=sample,
            samples=samples,
            validation_samples=validation_samples,
            data_path=data_path,
            labels_path=labels_path,
            strategy=strategy,
            plan_path=plan_path,
            graph_plan_path=graph_plan_path,
            profile_path=profile_path,
            kernels=kernels,
            threads=threads,
            batch_size=batch_size,
            seed=seed,
            steps=steps,
            plan_only=plan_only,
            device=device,
        )
        self._hooks: Dict[str, Any] = {}
        made = ffi.new("remat_trainer **")
        with self._options.callbacks:
            model._handle.call(lib.remat_trainer_create, self._options.struct, made)
        self._handle = Handle(model._handle.context, made[0], lib.remat_trainer_destroy, model._handle)

    def __repr__(self) -> str:
        if self._handle.closed:
            return "<remat.Trainer: closed>"
        figures = self.figures
        return f"<remat.Trainer {figures.model!r}: {figures.total_bytes} bytes, strategy {figures.strategy}>"

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Releases all memory now, unless something taken from the trainer, such as its graph, is still in use."""
        self._handle.close()

    def _call(self, function: Callable, *arguments: Any) -> None:
        """Calls C, which may call the sample function and the observers."""
        with self._options.callbacks:
            self._handle.call(function, *arguments)

    def start(self) -> None:
        """Makes a trainer that was created with `plan_only` ready to train. After a failure it is closed."""
        started = self.figures.training_samples > 0
        try:
            self._call(lib.remat_trainer_start)
        except BaseException:
            if not started:
                self.close()
            raise

    # ---- what was planned ----

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def figures(self) -> TrainerFigures:
        """All bytes and costs of the plan."""
        figures = ffi.new("remat_trainer_figures *")
        with self._handle.context:
            lib.remat_trainer_get_figures_sized(self._handle.pointer, figures, ffi.sizeof(figures[0]))
        found = record(TrainerFigures, figures)
        return found._replace(budget_bytes=None) if found.budget_bytes == lib.REMAT_NO_BUDGET else found

    def forwards(self, layer: int) -> int:
        """How often a layer of `model.layers` runs forward in a micro-batch."""
        return lib.remat_trainer_forwards(self._handle.pointer, layer)

    def _part(self, pointer: Any) -> Handle:
        return Handle(self._handle.context, pointer, None, self._handle)

    @property
    def graph(self) -> Graph:
        """The graph of a micro-batch: all tensors that live in the arena, and all actions."""
        return Graph._wrap(self._part(lib.remat_trainer_graph(self._handle.pointer)), fixed=True)

    @property
    def chain(self) -> Optional[Profile]:
        """The chain of pieces that the model was cut into. None if the model's blocks decide what is kept."""
        pointer = lib.remat_trainer_chain(self._handle.pointer)
        return Profile._wrap(self._part(pointer), fixed=True) if pointer else None

    @property
    def plan(self) -> Optional[Plan]:
        """The plan of that chain. None if the model's blocks decide what is kept."""
        pointer, chain = lib.remat_trainer_plan(self._handle.pointer), self.chain
        return Plan(chain, self._part(pointer)) if pointer and chain else None

    def plan_json(self, with_schedule: bool = True) -> str:
        """That plan as JSON, with the bytes of the arena and of all memory."""
        trainer = self._handle.pointer
        return written(
            self._handle.context, lambda stream: lib.remat_trainer_write_plan(trainer, stream, with_schedule)
        )

    def save_plan(self, path: PathLike) -> None:
        """Writes that plan to a file, for `plan_path`."""
        self._handle.call(lib.remat_trainer_save_plan, c_path(path))

    def graph_plan_json(self) -> str:
        """The schedule of the trainer with the place of every tensor, in the format remat-graph-plan."""
        trainer = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_trainer_write_graph_plan(trainer, stream))

    def save_graph_plan(self, path: PathLike) -> None:
        """Writes that schedule to a file, for `graph_plan_path`."""
        self._handle.call(lib.remat_trainer_save_graph_plan, c_path(path))

    def curve(self) -> TrainCurve:
        """The whole curve of step time over memory."""
        count = ffi.new("size_t *")
        points: List[TrainPoint] = []
        with self._handle.context:
            self._call(lib.remat_trainer_find_curve, count)
            for position in range(count[0]):
                point = ffi.new("remat_train_point *")
                self._handle.call(lib.remat_trainer_get_point_sized, position, point, ffi.sizeof(point[0]))
                points.append(record(TrainPoint, point))
            return TrainCurve(points, lib.remat_trainer_knee(self._handle.pointer))

    @classmethod
    def largest_batch(
        cls,
        model: Model,
        budget: Size,
        *,
        strategy: Optional[str] = None,
        threads: int = 0,
        device: Optional[str] = None,
    ) -> int:
        """The largest batch size that fits into a budget. BudgetError: not even one sample fits."""
        chosen = TrainOptions(
            model, True, budget=budget, strategy=strategy, threads=threads, device=device, plan_only=True
        )
        batch = ffi.new("uint64_t *")
        model._handle.call(lib.remat_train_largest_batch, chosen.struct, batch)
        return batch[0]

    def report(self, path: PathLike, label: Optional[str] = None, curve: bool = True) -> None:
        """Writes an HTML page: the arena action by action, the layers and the curve."""
        from .reports import Report

        page = Report()
        page.add(label or self.figures.model or "trainer", self, curve=curve)
        page.save(path)

    # ---- training ----

    def step(self) -> StepResult:
        """Takes one training step. A failure of the data leaves the weights as they were."""
        result = ffi.new("remat_step_result *")
        self._call(lib.remat_trainer_step_sized, result, ffi.sizeof(result[0]))
        return record(StepResult, result)

    @property
    def steps_taken(self) -> int:
        """How many steps were taken, including those before a resume."""
        return lib.remat_trainer_steps_taken(self._handle.pointer)

    def validate(self) -> ValidationResult:
        """Runs the validation samples. InvalidError: there is less than one batch of them."""
        result = ffi.new("remat_validation_result *")
        self._call(lib.remat_trainer_validate_sized, result, ffi.sizeof(result[0]))
        return record(ValidationResult, result)

    def run(
        self,
        on_step: Optional[Callable[[StepResult], Any]] = None,
        on_validation: Optional[Callable[[int, ValidationResult], Any]] = None,
        log_path: Optional[PathLike] = None,
        save_path: Optional[PathLike] = None,
        save_every: int = 0,
        save_weights_only: bool = False,
        best_path: Optional[PathLike] = None,
    ) -> RunResult:
        """Trains to the last step, with validation and early stopping as the model says.

        Args:
            on_step: is called after every step; False ends the run.
            on_validation: is called with the step and the result of each validation.
            log_path: writes a log, JSON lines. A resumed training appends.
            save_path: with `save_every`: where to save.
            save_every: save after so many steps; 0: do not save during the run.
            save_weights_only: save without the state of the training.
            best_path: save here after each validation that is the best so far. If early stopping ends the run, the
                trainer goes back to what was saved here.

        An exception from a callback, or Ctrl-C, ends the run after the step; the trainer can go on from there.
        DivergedError: the loss or a gradient is not finite; `result` of the error is that of the run.
        """
        callbacks = self._options.callbacks
        hooks = options("run_hooks")

        def after_step(_user: Any, result: Any) -> bool:
            return on_step is None or on_step(record(StepResult, result)) is not False

        def after_validation(_user: Any, step: int, result: Any) -> None:
            if on_validation is not None:
                on_validation(step, record(ValidationResult, result))

        # on_step is set in any case: signals are heard there.
        kept: List[Any] = [
            callbacks.make("bool(*)(void *, const remat_step_result *)", after_step, on_error=False),
            callbacks.make("void(*)(void *, uint64_t, const remat_validation_result *)", after_validation),
        ]
        hooks.on_step, hooks.on_validation = kept
        for member, path in (("log_path", log_path), ("save_path", save_path), ("best_path", best_path)):
            if path is not None:
                kept.append(c_path(path))
                setattr(hooks, member, kept[-1])
        hooks.save_every, hooks.save_weights_only = save_every, save_weights_only
        result = ffi.new("remat_run_result *")
        try:
            self._call(lib.remat_trainer_run_sized, hooks, result, ffi.sizeof(result[0]))
        except errors.DivergedError as error:
            error.result = record(RunResult, result)
            raise
        finally:
            callbacks.forget(kept[:2])
        return record(RunResult, result)

    # ---- saving and resuming ----

    def save(self, path: PathLike, with_state: bool = True) -> None:
        """Writes the weights as safetensors, with the state of the optimizer and of the training.

        An existing file is replaced only when everything was written. FileError.
        """
        self._handle.call(lib.remat_trainer_save, c_path(path), with_state)

    def check_save(self, path: PathLike, with_state: bool = True) -> None:
        """FileError if `save` could not write there now. Call it before a long training."""
        self._handle.call(lib.remat_trainer_check_save, c_path(path), with_state)

    def save_folder(self, path: PathLike, merge: bool = False) -> None:
        """Writes a folder in Hugging Face's layout. Adapters are written in PEFT's layout.

        Without adapters, and with `merge`, it is the whole model as it was read, with the adapters added to the weights.
        """
        self._handle.call(lib.remat_trainer_save_folder, c_path(path), merge)

    def check_save_folder(self, path: PathLike, merge: bool = False) -> None:
        """FileError if `save_folder` could not write there now."""
        self._handle.call(lib.remat_trainer_check_save_folder, c_path(path), merge)

    def load(self, path: PathLike) -> None:
        """Reads weights from a file, or from a folder in Hugging Face's layout. A file that is refused with InputFileError leaves the trainer as it was."""
        self._handle.call(lib.remat_trainer_load, c_path(path))

    def resume(self, path: PathLike) -> None:
        """Reads weights and state, and continues where the saved training was, with the same bits."""
        self._handle.call(lib.remat_trainer_resume, c_path(path))

    # ---- parameters ----

    @property
    def parameters(self) -> Dict[str, Parameter]:
        """The parameters by name, such as "fc1.weight": weights that are trained, and running statistics."""
        found = [self._parameter(i) for i in range(lib.remat_trainer_parameter_count(self._handle.pointer))]
        return {parameter.name: parameter for parameter in found}

    def _parameter(self, position: int) -> Parameter:
        about = ffi.new("remat_parameter *")
        self._handle.call(lib.remat_trainer_get_parameter_sized, position, about, ffi.sizeof(about[0]))
        return Parameter(self._handle, position, about)

    # ---- observing ----

    def on_gradient(self, visit: Optional[Callable[[str, numpy.ndarray], Any]]) -> None:
        """Calls `visit` with the gradient of each parameter, directly before the optimizer uses it.

        The array is in the memory of the trainer and valid during the call only: copy what you keep. None: no function.
        """
        if visit is None:
            lib.remat_trainer_on_gradient(self._handle.pointer, ffi.NULL, ffi.NULL)
            self._forget("gradient")
            return
        show: Callable[[str, numpy.ndarray], Any] = visit
        parameters, owner = list(self.parameters.values()), self._handle

        def seen(_user: Any, position: int, values: Any, _count: int) -> None:
            array = borrowed_array(owner, values, parameters[position].shape, "float32")
            kept = weakref.ref(array)
            show(parameters[position].name, array)
            del array
            if kept() is not None:
                raise errors.InvalidError("a gradient is valid during the call only: copy what you keep")

        self._observe("gradient", "remat_gradient_fn", seen, lib.remat_trainer_on_gradient)

    def on_action(self, visit: Optional[Callable[[Action], Any]]) -> None:
        """Calls `visit` with every action of a training step after it has run. None: no function."""
        if visit is None:
            self._handle.call(lib.remat_trainer_on_action, ffi.NULL, ffi.NULL)
            self._forget("action")
            return
        show: Callable[[Action], Any] = visit
        self._observe(
            "action",
            "remat_action_fn",
            lambda _user, action: show(record(Action, action)),
            lambda trainer, function, user: self._handle.context.call(
                lib.remat_trainer_on_action, trainer, function, user
            ),
        )

    def _observe(self, kind: str, c_type: str, function: Callable, set_function: Callable) -> None:
        made = self._options.callbacks.make(c_type, function)
        with self._handle.context:
            set_function(self._handle.pointer, made, ffi.NULL)
        self._forget(kind)
        self._hooks[kind] = made

    def _forget(self, kind: str) -> None:
        made = self._hooks.pop(kind, None)
        if made is not None:
            self._options.callbacks.forget([made])

    def measure(self, repeats: int = 0) -> Profile:
        """Measures the time of every layer and gives a profile with costs in nanoseconds. The weights are as before.

        Args:
            repeats: how many steps; 0: until the medians are stable, at most 3 seconds.
        """
        made = ffi.new("remat_profile **")
        self._call(lib.remat_trainer_measure, repeats, made)
        return Profile._wrap(Handle(self._handle.context, made[0], lib.remat_profile_destroy))

    @property
    def measurement(self) -> Measurement:
        """How stable the last measurement was. All values are 0 before the first."""
        measured = ffi.new("remat_measurement *")
        with self._handle.context:
            lib.remat_trainer_get_measurement_sized(self._handle.pointer, measured, ffi.sizeof(measured[0]))
        return record(Measurement, measured)
