"""Plans of chains: which layers are kept, which are recomputed, and the schedule that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional, Tuple

from ._callbacks import Callbacks, status_of
from ._convert import PathLike, c_path, py_text, record, written
from ._handles import Handle
from ._library import ffi, lib
from .schedules import LiveTensor, ScheduleFigures, Step, from_c, schedule_figures

if TYPE_CHECKING:
    from .profiles import Profile


class PlanFigures(NamedTuple):
    """The figures of a plan.

    Attributes:
        budget_bytes: if has_budget.
        min_budget_bytes: the smallest budget that this strategy can meet for this profile.
        base_cost: with everything kept.
        base_peak_bytes: with everything kept.
        lower_bound_cost: no legal schedule within the budget is cheaper.
        method_bound_cost: no schedule that the method considers is cheaper; 0 except for `optimal`.
        estimated_bytes: the bytes kept plus the largest recomputed activation.
        schedule: all 0 if not feasible.
    """

    feasible: bool
    has_budget: bool
    budget_bytes: int
    min_budget_bytes: int
    base_cost: int
    base_peak_bytes: int
    lower_bound_cost: int
    method_bound_cost: int
    estimated_bytes: int
    schedule: ScheduleFigures


class PlanStatistics(NamedTuple):
    """Statistics of a plan, by layers and by bytes.

    Attributes:
        peak_reduction_bytes: compared with keeping everything; 0 if the peak did not fall.
    """

    estimated_bytes: int
    mean_activation_bytes: float
    layers: int
    recomputed_layers: int
    recomputed_ratio: float
    recomputed_percent: float
    peak_reduction_bytes: int
    peak_reduction_percent: float


class MemoryColumn(NamedTuple):
    """The memory of the step that needs the most in a part of the schedule.

    Attributes:
        inputs: bytes of inputs and outputs of layers.
        states: bytes of saved states.
        gradients: bytes of gradients of inputs and outputs.
    """

    step: int
    inputs: int
    states: int
    gradients: int
    workspace: int


class Strategy(NamedTuple):
    """A strategy that plans can be made with.

    Attributes:
        argument: "" if it takes none.
    """

    name: str
    argument: str
    summary: str
    needs_budget: bool


class Plan:
    """What is kept and what is recomputed in a chain, with the schedule, its exact peak and cost.

    `Profile.plan`, `Profile.load_plan` and `Curve.plan` make plans.
    """

    def __init__(self, profile: Profile, handle: Handle) -> None:
        self._profile = profile
        self._handle = handle
        struct = lib.remat_plan_get_figures(handle.pointer)
        values = {field: getattr(struct, field) for field in PlanFigures._fields}
        values["schedule"] = schedule_figures(struct.schedule)
        self._figures = PlanFigures(**values)

    def __repr__(self) -> str:
        if not self.feasible:
            return f"<remat.Plan: not feasible within {self.budget_bytes} bytes>"
        return f"<remat.Plan {self.strategy}: peak {self.peak_bytes} bytes, cost {self.total_cost}>"

    # ---- figures ----

    @property
    def profile(self) -> Profile:
        """The profile that the plan is for."""
        return self._profile

    @property
    def figures(self) -> PlanFigures:
        """All figures of the plan at once."""
        return self._figures

    @property
    def feasible(self) -> bool:
        """Whether the plan has a schedule. Only the plan inside a BudgetError has none."""
        return self._figures.feasible

    @property
    def budget_bytes(self) -> Optional[int]:
        """The budget that the plan was made for; None without one."""
        return self._figures.budget_bytes if self._figures.has_budget else None

    @property
    def peak_bytes(self) -> int:
        """The most bytes that are live at once."""
        return self._figures.schedule.peak_bytes

    @property
    def total_cost(self) -> int:
        """The cost of the whole schedule."""
        return self._figures.schedule.total_cost

    @property
    def base_cost(self) -> int:
        """The cost with everything kept."""
        return self._figures.base_cost

    @property
    def base_peak_bytes(self) -> int:
        """The peak with everything kept."""
        return self._figures.base_peak_bytes

    @property
    def lower_bound_cost(self) -> int:
        """No legal schedule within the budget is cheaper."""
        return self._figures.lower_bound_cost

    @property
    def min_budget_bytes(self) -> int:
        """The smallest budget that this strategy can meet for this profile."""
        return self._figures.min_budget_bytes

    @property
    def strategy(self) -> str:
        """The strategy, such as "every-nth:2"."""
        return py_text(lib.remat_plan_strategy(self._handle.pointer))

    @property
    def method(self) -> str:
        """The method of `optimal` that found the plan; "" for other strategies."""
        return py_text(lib.remat_plan_method(self._handle.pointer))

    @property
    def remark(self) -> str:
        """Why the plan saves no memory, or why the budget is too small; "" if neither is the case."""
        return py_text(lib.remat_plan_remark(self._handle.pointer))

    @property
    def statistics(self) -> PlanStatistics:
        """Statistics by layers and by bytes."""
        statistics = ffi.new("remat_plan_statistics *")
        with self._handle.context:
            lib.remat_plan_get_statistics_sized(self._handle.pointer, statistics, ffi.sizeof(statistics[0]))
        return record(PlanStatistics, statistics)

    # ---- the schedule ----

    @property
    def decisions(self) -> Tuple[str, ...]:
        """What the plan decides for each layer: "keep", "recompute", or the name of a mode."""
        plan = self._handle.pointer
        return tuple(py_text(lib.remat_plan_decision_name(plan, i)) for i in range(len(self._profile.layers)))

    @property
    def forwards(self) -> Tuple[int, ...]:
        """How often each layer runs forward."""
        plan = self._handle.pointer
        return tuple(lib.remat_plan_forwards(plan, i) for i in range(len(self._profile.layers)))

    def walk(self, visit: Callable[[Step], None]) -> None:
        """Calls `visit` for each step of the schedule. An exception from it ends the walk.

        Schedules may be very long, and this takes no memory for them. BudgetError: the plan has no schedule.
        """
        callbacks = Callbacks()
        function = callbacks.make(
            "remat_step_fn", status_of(lambda _user, step: visit(from_c(step))), on_error=lib.REMAT_INTERNAL
        )
        with callbacks:
            self._handle.call(lib.remat_plan_walk, function, ffi.NULL)

    @property
    def schedule(self) -> List[Step]:
        """All steps of the schedule. A plan without a schedule has none."""
        steps: List[Step] = []
        if self.feasible:
            self.walk(steps.append)
        return steps

    @property
    def peak_live(self) -> List[LiveTensor]:
        """The tensors that are live when the peak step begins. Its own output and workspace are not among them."""
        live: List[LiveTensor] = []
        callbacks = Callbacks()
        function = callbacks.make(
            "remat_live_fn",
            lambda _user, tensor: live.append(LiveTensor(tensor.kind.decode(), tensor.layer, tensor.bytes)),
        )
        with callbacks:
            self._handle.call(lib.remat_plan_peak_live, function, ffi.NULL)
        return live

    def memory(self, columns: int = 100) -> List[MemoryColumn]:
        """The memory over time, in at most `columns` parts of the schedule."""
        array = ffi.new("remat_memory_column[]", columns)
        used = ffi.new("size_t *")
        self._handle.call(
            lib.remat_plan_memory_sized, array, ffi.sizeof("remat_memory_column"), columns, used
        )
        return [record(MemoryColumn, array[i]) for i in range(used[0])]

    # ---- files ----

    def to_json(self, with_schedule: bool = True) -> str:
        """The plan as JSON. Without the schedule: its figures only."""
        plan = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_plan_write(plan, stream, with_schedule))

    def save(self, path: PathLike) -> None:
        """Writes the plan to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_plan_save, c_path(path))

    def report(self, path: PathLike, label: Optional[str] = None, curve: bool = True) -> None:
        """Writes an HTML page about the plan: memory over time, the arena, the layers, and the curve."""
        from .reports import Report

        page = Report()
        page.add(label or self._profile.name or "plan", self, curve=curve)
        page.save(path)


def strategies() -> List[Strategy]:
    """The strategies that plans can be made with."""
    found: List[Strategy] = []
    while True:
        info = lib.remat_strategy_list(len(found))
        if not info:
            return found
        found.append(record(Strategy, info))
