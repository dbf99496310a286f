"""Schedules of chains: the steps of a training iteration, and the simulator that finds their peak and cost."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional

from ._library import ffi, lib

#: What a step does, by the number that C has for it.
OPERATIONS = ("forward", "loss", "backward", "drop_x", "drop_state")


class Step(NamedTuple):
    """One step of a schedule.

    Attributes:
        op: "forward", "loss", "backward", "drop_x" or "drop_state".
        layer: "drop_x": 0 is the input of the chain, i the output of layer i - 1.
        save: of a forward: the number of the mode it saves in; 0 is `keep`, None saves nothing.
    """

    op: str
    layer: int = 0
    save: Optional[int] = None


class ScheduleFigures(NamedTuple):
    """The figures of a whole schedule.

    Attributes:
        peak_step: the first that reaches the peak; None if the input alone is the peak.
        kept_bytes: of layers whose backward used the state that their first forward saved.
        recompute_flops: of all forwards except the first of each layer.
        largest_recomputed_bytes: the largest activation among the recomputed layers.
    """

    steps: int
    peak_bytes: int
    peak_step: Optional[int]
    total_cost: int
    kept_bytes: int
    recompute_flops: int
    recomputed_layers: int
    largest_recomputed_bytes: int


class LiveTensor(NamedTuple):
    """A tensor that is live: x is an input or output, s a saved state, y the gradient of an x.

    Attributes:
        kind: "x", "s" or "y".
        layer: x 0 is the input of the chain, x i the output of layer i - 1.
    """

    kind: str
    layer: int
    bytes: int


def schedule_figures(struct) -> ScheduleFigures:
    """The figures in a C struct."""
    values = {field: getattr(struct, field) for field in ScheduleFigures._fields}
    if values["peak_step"] == lib.REMAT_NOWHERE:
        values["peak_step"] = None
    return ScheduleFigures(**values)


def from_c(step) -> Step:
    """A step of C."""
    op = OPERATIONS[step.op]
    save = step.save if op == "forward" and step.save != lib.REMAT_NO_SAVE else None
    return Step(op, step.layer, save)


def to_c(step: Step):
    """A step for C."""
    if step.op not in OPERATIONS:
        raise ValueError(f"a step is one of {', '.join(OPERATIONS)}, not {step.op!r}")
    save = lib.REMAT_NO_SAVE if step.save is None else step.save
    return ffi.new("remat_step *", {"layer": step.layer, "save": save, "op": OPERATIONS.index(step.op)})[0]


def simulate(profile_handle, steps: Iterable[Step]) -> ScheduleFigures:
    """Plays steps on the chain of a profile. CheckError: a step is not legal, or a layer had no backward."""
    context = profile_handle.context
    made = ffi.new("remat_simulator **")
    figures = ffi.new("remat_figures *")
    with context:
        context.call(lib.remat_simulator_create, context.pointer, profile_handle.pointer, made)
        try:
            for step in steps:
                context.call(lib.remat_simulator_step, made[0], to_c(step))
            context.call(lib.remat_simulator_finish_sized, made[0], figures, ffi.sizeof(figures[0]))
        finally:
            lib.remat_simulator_destroy(made[0])
    return schedule_figures(figures)
