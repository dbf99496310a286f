"""Plans and curves of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from ._convert import PathLike, borrowed_array, c_path, py_text, record, written
from ._handles import Handle
from ._library import ffi, lib
from ._sequences import LazySequence

if TYPE_CHECKING:
    from .graphs import Graph


class GraphPlanFigures(NamedTuple):
    """The figures of a plan of a graph.

    Attributes:
        budget_bytes: if has_budget.
        actions: of the schedule; this and the next four are 0 if not feasible.
        peak_bytes: the most that is live at once; given tensors count.
        peak_position: the first position that reaches it.
        total_cost: of the schedule.
        arena_bytes: what the places need; given tensors have none.
        base_cost: with everything kept.
        base_peak_bytes: with everything kept.
        lower_bound_cost: proven: no legal schedule within the budget is cheaper.
        min_budget_bytes: the smallest budget for which a schedule was found.
        min_budget_bound_bytes: proven: no legal schedule has a smaller peak.
    """

    feasible: bool
    has_budget: bool
    budget_bytes: int
    actions: int
    peak_bytes: int
    peak_position: int
    total_cost: int
    arena_bytes: int
    base_cost: int
    base_peak_bytes: int
    lower_bound_cost: int
    min_budget_bytes: int
    min_budget_bound_bytes: int


class GraphPlace(NamedTuple):
    """Where an instance of a tensor, or the workspace of an action, is in the arena.

    Attributes:
        tensor: None: a workspace.
        born: the position of the schedule where it begins to live.
        ends: the position after its last.
        bytes: rounded up to 64.
        buffer: a write in place, and what it replaced, have the same number.
    """

    tensor: Optional[int]
    born: int
    ends: int
    offset: int
    bytes: int
    buffer: int


class GraphStep(NamedTuple):
    """One position of a schedule.

    Attributes:
        run: 0 for the first run of the action, more for each time that it is recomputed.
        dies: tensors whose live instance ends with this position.
    """

    action: int
    run: int
    dies: Tuple[int, ...]


class GraphPoint(NamedTuple):
    """A point of a graph's curve: the plan for the budget `peak_bytes`.

    Attributes:
        recomputed: runs of actions besides the first of each.
    """

    peak_bytes: int
    total_cost: int
    arena_bytes: int
    recomputed: int


class GraphPlan:
    """A schedule of a graph: which action runs when, some more than once, and where every tensor is in one arena.

    `Graph.plan` and `Graph.load_plan` make plans.
    """

    def __init__(self, graph: Graph, handle: Handle) -> None:
        self._graph = graph
        self._handle = handle
        figures = ffi.new("remat_graph_plan_figures *")
        lib.remat_graph_plan_get_figures_sized(handle.pointer, figures, ffi.sizeof(figures[0]))
        self._figures = record(GraphPlanFigures, figures)

    def __repr__(self) -> str:
        if not self.feasible:
            return f"<remat.GraphPlan: not feasible within {self.budget_bytes} bytes>"
        return f"<remat.GraphPlan {self.strategy}: peak {self.peak_bytes} bytes, cost {self.total_cost}>"

    # ---- figures ----

    @property
    def graph(self) -> Graph:
        """The graph that the plan is for."""
        return self._graph

    @property
    def figures(self) -> GraphPlanFigures:
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
        """The most bytes that are live at once, given tensors included."""
        return self._figures.peak_bytes

    @property
    def peak_position(self) -> int:
        """The first position of the schedule that reaches the peak."""
        return self._figures.peak_position

    @property
    def total_cost(self) -> int:
        """The cost of the whole schedule."""
        return self._figures.total_cost

    @property
    def arena_bytes(self) -> int:
        """The size of the arena that the places need. Given tensors are not in it."""
        return self._figures.arena_bytes

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
        """Proven: no legal schedule within the budget is cheaper."""
        return self._figures.lower_bound_cost

    @property
    def min_budget_bytes(self) -> int:
        """The smallest budget for which a schedule was found."""
        return self._figures.min_budget_bytes

    @property
    def min_budget_bound_bytes(self) -> int:
        """Proven: no legal schedule has a smaller peak."""
        return self._figures.min_budget_bound_bytes

    @property
    def strategy(self) -> str:
        """The strategy that made the plan; "file" for a plan that was read."""
        return py_text(lib.remat_graph_plan_strategy(self._handle.pointer))

    @property
    def remark(self) -> str:
        """Why the plan saves no memory, or why the budget is too small; "" if neither is the case."""
        return py_text(lib.remat_graph_plan_remark(self._handle.pointer))

    # ---- the schedule ----

    @property
    def schedule(self) -> numpy.ndarray:
        """The numbers of the actions in the order in which they run: uint32, read-only, in the memory of the plan."""
        count = ffi.new("size_t *")
        pointer = lib.remat_graph_plan_schedule(self._handle.pointer, count)
        return borrowed_array(self._handle, pointer, (count[0],), "uint32")

    @property
    def live_bytes(self) -> numpy.ndarray:
        """The bytes that are live at each position of the schedule: uint64, read-only, in the memory of the plan."""
        count = ffi.new("size_t *")
        pointer = lib.remat_graph_plan_live_bytes(self._handle.pointer, count)
        return borrowed_array(self._handle, pointer, (count[0],), "uint64")

    def runs(self, action: int) -> int:
        """How often an action runs."""
        return lib.remat_graph_plan_runs(self._handle.pointer, action)

    @property
    def places(self) -> LazySequence[GraphPlace]:
        """The places of all instances in the arena, in the order in which they are born.

        Instances of 0 bytes and given tensors have none.
        """
        return LazySequence(lib.remat_graph_plan_place_count(self._handle.pointer), self._place)

    def _place(self, position: int) -> GraphPlace:
        place = ffi.new("remat_graph_place *")
        self._handle.call(lib.remat_graph_plan_get_place_sized, position, place, ffi.sizeof(place[0]))
        found = record(GraphPlace, place)
        return found._replace(tensor=None) if found.tensor == lib.REMAT_NO_TENSOR else found

    def walk(self) -> Iterator[GraphStep]:
        """The schedule step by step: what runs, whether it is recomputed, and which tensors die afterwards.

        Tensors of 0 bytes have no place and do not appear in `dies`; neither do given tensors and the last
        instances of results.
        """
        schedule = self.schedule.tolist()
        dies: List[List[int]] = [[] for _ in schedule]
        results = set(self._graph.results)
        for place in self.places:
            stays = place.ends == len(schedule) and place.tensor in results
            if place.tensor is not None and not stays:
                dies[place.ends - 1].append(place.tensor)
        runs: dict = {}
        for position, action in enumerate(schedule):
            run = runs.get(action, 0)
            runs[action] = run + 1
            yield GraphStep(action, run, tuple(dies[position]))

    # ---- files ----

    def to_json(self, with_schedule: bool = True) -> str:
        """The plan in the format remat-graph-plan. Without the schedule: its figures only."""
        plan = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_graph_plan_write(plan, stream, with_schedule))

    def save(self, path: PathLike) -> None:
        """Writes the plan to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_graph_plan_save, c_path(path))

    def report(self, path: PathLike, label: Optional[str] = None, curve: bool = True) -> None:
        """Writes an HTML page about the plan: memory over time, the arena, the actions, and the curve."""
        from .reports import Report

        page = Report()
        page.add(label or self._graph.name or "plan", self, curve=curve)
        page.save(path)


class GraphCurve(LazySequence[GraphPoint]):
    """The curve of cost over memory of a graph: a list of points.

    The first has the smallest peak, the last the lowest cost.
    """

    def __init__(self, graph: Graph, handle: Handle) -> None:
        super().__init__(lib.remat_graph_sweep_count(handle.pointer), self._point)
        self._graph = graph
        self._handle = handle

    def _point(self, position: int) -> GraphPoint:
        point = ffi.new("remat_graph_point *")
        self._handle.call(lib.remat_graph_sweep_get_point_sized, position, point, ffi.sizeof(point[0]))
        return record(GraphPoint, point)

    @property
    def graph(self) -> Graph:
        """The graph that the curve is of."""
        return self._graph

    @property
    def knee(self) -> int:
        """The position of the point where the curve bends most."""
        return lib.remat_graph_sweep_knee(self._handle.pointer)

    @property
    def base_cost(self) -> int:
        """The cost with everything kept."""
        return lib.remat_graph_sweep_base_cost(self._handle.pointer)

    @property
    def base_peak_bytes(self) -> int:
        """The peak with everything kept."""
        return lib.remat_graph_sweep_base_peak_bytes(self._handle.pointer)
