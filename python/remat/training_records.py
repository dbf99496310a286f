"""What trainers say about plans, steps, runs and measurements."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence


class TrainerFigures(NamedTuple):
    """What was planned. All bytes are exact: `total_bytes` is what the trainer allocates for tensors.

    Attributes:
        weight_bytes: parameters and running statistics.
        optimizer_bytes: moments.
        gradient_bytes: of weights, if several micro-batches are summed; otherwise in the arena.
        scratch_bytes: of the kernels, for all threads.
        arena_bytes: activations, all gradients, workspaces, data.
        total_bytes: the sum of the five above.
        peak_bytes: the most that is live in the arena at once.
        keep_all_arena_bytes: the arena if everything were kept.
        min_budget_bytes: the smallest budget that was found for this model and strategy.
        peak_activation_bytes: what is live at the peak: activations.
        peak_gradient_bytes: gradients of activations.
        peak_weight_gradient_bytes: gradients of weights.
        peak_workspace_bytes: workspaces.
        peak_data_bytes: samples. The sum of these five is `peak_bytes`.
        budget_bytes: None if there is none.
        cost: of a step, in nanoseconds: estimated, or from the profile.
        parameters: how many values are trained.
        training_samples: 0 with plan_only, which opens no data.
        validation_samples: the same.
        clip_norm: 0: none.
        forwards: how many layers run forward in one micro-batch, recomputing included.
        model: its name; "" if it has none.
        strategy: the one in use, or "blocks", "plan file" or "graph plan file".
        peak_layer: the layer whose step makes the peak.
        remark: why the budget or the strategy saves no memory; "" otherwise.
        table_bytes: outside the budget: tables of the program, the plan and the recorded operations.
        data_bytes: outside the budget: what the dataset holds in memory.
        min_budget_bound_bytes: proven: no plan of this model takes less.
        early_stopping: validations without improvement before training stops; 0: never.
        min_budget_cost: with plan_only, if the best plan was searched for: of a step within `min_budget_bytes`; otherwise 0.
        min_budget_layer: the layer that makes the peak of that plan; "" if it is not known.
        mapped_bytes: what `weight_bytes` counts of frozen weights that are mapped from the model's folder.
        mapped_file_bytes: all of them; if that is more, they are dropped after each use.
    """

    weight_bytes: int
    optimizer_bytes: int
    gradient_bytes: int
    scratch_bytes: int
    arena_bytes: int
    total_bytes: int
    peak_bytes: int
    keep_all_arena_bytes: int
    min_budget_bytes: int
    peak_activation_bytes: int
    peak_gradient_bytes: int
    peak_weight_gradient_bytes: int
    peak_workspace_bytes: int
    peak_data_bytes: int
    budget_bytes: Optional[int]
    cost: int
    keep_all_cost: int
    parameters: int
    batch_size: int
    accumulate: int
    steps_per_epoch: int
    total_steps: int
    training_samples: int
    validation_samples: int
    clip_norm: float
    layers: int
    recomputed_layers: int
    forwards: int
    threads: int
    model: str
    strategy: str
    peak_layer: str
    kernels: str
    remark: str
    table_bytes: int
    data_bytes: int
    min_budget_bound_bytes: int
    early_stopping: int
    min_budget_cost: int
    min_budget_layer: str
    mapped_bytes: int
    mapped_file_bytes: int


class StepResult(NamedTuple):
    """One training step: all its micro-batches, and the update of the weights.

    Attributes:
        step: from 1.
        epoch: from 0.
        loss: the mean over the samples of the step, before the update.
        gradient_norm: over all gradients of weights; NaN without clip_norm.
        data_seconds: of these, the time until the samples were in memory.
        diverged: the loss or a gradient is not finite. The step changed no weight from there on.
    """

    step: int
    epoch: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    data_seconds: float
    diverged: bool


class ValidationResult(NamedTuple):
    """The model on the validation samples.

    Attributes:
        loss: the mean over the samples.
        accuracy: the share of rows whose largest logit is that of the label; NaN without classes.
    """

    loss: float
    accuracy: float
    samples: int


class RunResult(NamedTuple):
    """A whole run.

    Attributes:
        steps: of this run.
        stopped: on_step returned False.
        stopped_early: by the model's early_stopping.
        median_step_seconds: without the first step.
        median_data_seconds: the same for data_seconds.
        best_validation_loss: NaN if there was no validation.
        peak_resident_bytes: of the whole process, as the system counts them.
        allocated_bytes: for tensors, counted when they were allocated; equals total_bytes of the figures.
        forwards: how many layers ran forward in the last micro-batch; equals `forwards` of the figures.
        best_step: after which `best_validation_loss` was found; 0: none, or not known.
        restored_best: the trainer has the weights of `best_step`: it stopped early, with `best_path`.
    """

    steps: int
    stopped: bool
    stopped_early: bool
    last_loss: float
    median_step_seconds: float
    median_data_seconds: float
    best_validation_loss: float
    peak_resident_bytes: int
    allocated_bytes: int
    forwards: int
    best_step: int
    restored_best: bool


class TrainPoint(NamedTuple):
    """A point of a model's curve of step time over memory.

    Attributes:
        total_bytes: all memory for tensors.
        arena_bytes: the arena's share of that.
        cost: of a step, in nanoseconds.
        recomputed: forward runs beyond the first of each layer, in one micro-batch.
    """

    total_bytes: int
    arena_bytes: int
    cost: int
    recomputed: int


class TrainCurve(NamedTuple):
    """A model's curve. Point 0 needs the least memory; the last point keeps everything.

    Attributes:
        knee: the point where the curve bends most.
    """

    points: Sequence[TrainPoint]
    knee: int


class Action(NamedTuple):
    """One action of a training step, as it ran.

    Attributes:
        phase: "load" (data), "forward", "recompute", "weight_gradient", "input_gradient" or "apply".
        position: of the layer in the model; the number of layers for "(all gradients)".
        began: nanoseconds of a monotonic clock.
        live_bytes: in the arena while it ran.
        bytes: read and written.
        gemm_flops: those of `flops` that are in matrix products.
    """

    layer: str
    phase: str
    position: int
    began: int
    ended: int
    live_bytes: int
    flops: int
    bytes: int
    gemm_flops: int


class Measurement(NamedTuple):
    """How stable a measurement was.

    Attributes:
        steps: how many were measured.
        step_seconds: the median of a step.
        spread: by how much the medians of both halves differ, as a share of step_seconds.
    """

    steps: int
    step_seconds: float
    spread: float
