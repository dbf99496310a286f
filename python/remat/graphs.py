"""Graphs: tensors, and actions that read and write them.

    graph = remat.Graph("example", cost_unit="ns")
    x = graph.add_tensor(4096, name="x")
    y = graph.add_tensor(8192, name="y")
    graph.add_action(10, writes=[x], name="load")
    graph.add_action(250, reads=[x], writes=[y], name="matmul")
    graph.add_result(y)
    plan = graph.plan("1MiB")

Tensors and actions are named by their numbers, from 0 in the order in which they were added. The order of the actions,
each once, is the schedule that keeps everything. docs/memory-model.md defines what is live when.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional, Tuple

from . import graph_plans
from ._convert import PathLike, Size, c_bytes, c_path, c_text, numbers, options, py_text, reading, record, written
from ._handles import Context, Handle
from ._library import ffi, lib
from ._sequences import LazySequence
from .errors import BudgetError, InvalidError


class GraphTensor(NamedTuple):
    """A tensor of a graph.

    Attributes:
        name: "" if it has only its number.
        given: it is live during the whole schedule and never written, as weights are.
    """

    name: str
    bytes: int
    given: bool


class GraphAction(NamedTuple):
    """An action of a graph. Tensors are numbers.

    Attributes:
        name: "" if it has only its number.
        updates: tensors that it changes.
        workspace_bytes: memory that it needs only while it runs.
        once: it runs exactly once, after all such actions before it.
        in_place: (read, write): the write may take the bytes of the read.
    """

    name: str
    cost: int
    reads: Tuple[int, ...]
    writes: Tuple[int, ...]
    updates: Tuple[int, ...]
    workspace_bytes: int
    once: bool
    in_place: Optional[Tuple[int, int]]


class GraphFigures(NamedTuple):
    """The figures of a schedule.

    Attributes:
        actions: how many it has.
        peak_bytes: the most that is live at once; given tensors count.
        peak_position: the first position that reaches it.
        arena_bytes: what the places in a file need; 0 if it has none.
    """

    actions: int
    peak_bytes: int
    peak_position: int
    total_cost: int
    arena_bytes: int


class Graph:
    """Tensors and actions, to be planned within a budget.

    Args:
        name: of the graph, for files and reports.
        cost_unit: what costs are counted in, such as "ns".

    A graph that has plans or a curve can no longer be changed.
    """

    def __init__(self, name: str = "", cost_unit: str = "") -> None:
        context = Context()
        made = ffi.new("remat_graph **")
        context.call(lib.remat_graph_create, context.pointer, made)
        self._adopt(Handle(context, made[0], lib.remat_graph_destroy))
        if name:
            self._handle.call(lib.remat_graph_set_name, c_text(name))
        if cost_unit:
            self._handle.call(lib.remat_graph_set_cost_unit, c_text(cost_unit))

    def _adopt(self, handle: Handle, fixed: bool = False) -> None:
        self._handle = handle
        self._fixed = fixed

    @classmethod
    def _wrap(cls, handle: Handle, fixed: bool = False) -> Graph:
        graph = cls.__new__(cls)
        graph._adopt(handle, fixed)
        return graph

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<remat.Graph{name}: {len(self.tensors)} tensors, {len(self.actions)} actions>"

    # ---- building ----

    def _add(self, function, argument, count) -> int:
        if self._fixed:
            raise InvalidError("a graph that was planned, or that belongs to a trainer, cannot be changed")
        with self._handle.context:
            self._handle.call(function, argument)
            return count(self._handle.pointer) - 1

    def add_tensor(self, bytes: Size, name: Optional[str] = None, given: bool = False) -> int:
        """Adds a tensor and returns its number.

        Args:
            bytes: its size.
            name: for messages, files and reports.
            given: it is live during the whole schedule and is never written: weights, for example.
        """
        tensor = options("graph_tensor")
        text = c_text(name)
        tensor.name, tensor.bytes, tensor.given = text, c_bytes(self._handle.context, bytes), given
        return self._add(lib.remat_graph_add_tensor, tensor, lib.remat_graph_tensor_count)

    def add_action(
        self,
        cost: int,
        reads: Iterable[int] = (),
        writes: Iterable[int] = (),
        updates: Iterable[int] = (),
        name: Optional[str] = None,
        workspace_bytes: Size = 0,
        once: bool = False,
        in_place: Optional[Tuple[int, int]] = None,
    ) -> int:
        """Adds an action and returns its number.

        Args:
            cost: of one run, in any unit.
            reads: tensors that it reads.
            writes: tensors that it makes.
            updates: tensors that it changes. Only with `once`.
            name: for messages, files and reports.
            workspace_bytes: memory that it needs only while it runs.
            once: it runs exactly once, after all such actions before it: it must not be repeated.
            in_place: (read, write): the write may take the bytes of the read.

        Raises InvalidError for a tensor that does not exist, a write of a given tensor, a second write of the same
        tensor, an update without `once`, or `in_place` that does not name a read and a write.
        """
        action = options("graph_action")
        text = c_text(name)
        lists = [ffi.new("uint32_t[]", numbers(values)) for values in (reads, writes, updates)]
        action.name, action.cost, action.once = text, cost, once
        action.reads, action.writes, action.updates = lists
        action.read_count, action.write_count, action.update_count = map(len, lists)
        action.workspace_bytes = c_bytes(self._handle.context, workspace_bytes)
        if in_place is not None:
            action.in_place_from, action.in_place_to = numbers(in_place)
        return self._add(lib.remat_graph_add_action, action, lib.remat_graph_action_count)

    def add_result(self, tensor: int) -> None:
        """Lets the last instance of a tensor live to the end of the schedule."""
        self._add(lib.remat_graph_add_result, tensor, lib.remat_graph_result_count)

    # ---- looking at it ----

    @property
    def name(self) -> str:
        """The name; "" if it has none."""
        return py_text(lib.remat_graph_name(self._handle.pointer))

    @property
    def cost_unit(self) -> str:
        """What costs are counted in; "" if it was not set."""
        return py_text(lib.remat_graph_cost_unit(self._handle.pointer))

    @property
    def tensors(self) -> LazySequence[GraphTensor]:
        """The tensors by number."""
        return LazySequence(lib.remat_graph_tensor_count(self._handle.pointer), self._tensor)

    @property
    def actions(self) -> LazySequence[GraphAction]:
        """The actions by number."""
        return LazySequence(lib.remat_graph_action_count(self._handle.pointer), self._action)

    @property
    def results(self) -> Tuple[int, ...]:
        """The tensors that live to the end."""
        graph = self._handle.pointer
        return tuple(lib.remat_graph_result(graph, i) for i in range(lib.remat_graph_result_count(graph)))

    def _tensor(self, number: int) -> GraphTensor:
        tensor = ffi.new("remat_graph_tensor *")
        with self._handle.context:  # names and lists stay until the next call that adds something
            self._handle.call(lib.remat_graph_get_tensor_sized, number, tensor, ffi.sizeof(tensor[0]))
            return record(GraphTensor, tensor)

    def _action(self, number: int) -> GraphAction:
        action = ffi.new("remat_graph_action *")
        with self._handle.context:
            self._handle.call(lib.remat_graph_get_action_sized, number, action, ffi.sizeof(action[0]))
            in_place = (action.in_place_from, action.in_place_to)
            return GraphAction(
                name=py_text(action.name),
                cost=action.cost,
                reads=_tuple(action.reads, action.read_count),
                writes=_tuple(action.writes, action.write_count),
                updates=_tuple(action.updates, action.update_count),
                workspace_bytes=action.workspace_bytes,
                once=action.once,
                in_place=None if in_place[0] == lib.REMAT_NO_TENSOR else in_place,
            )

    # ---- plans ----

    def replay(self, schedule: Iterable[int]) -> GraphFigures:
        """The peak and the cost of a schedule, given as numbers of actions. CheckError: it is not legal."""
        actions = ffi.new("uint32_t[]", numbers(schedule))
        figures = ffi.new("remat_graph_figures *")
        self._handle.call(lib.remat_graph_replay_sized, actions, len(actions), figures, ffi.sizeof(figures[0]))
        return record(GraphFigures, figures)

    def plan(
        self, budget: Optional[Size] = None, strategy: Optional[str] = None, threads: int = 0
    ) -> graph_plans.GraphPlan:
        """A schedule whose peak stays within the budget, and the place of every tensor.

        Args:
            budget: for the peak, given tensors included: bytes, or a text such as "8GB". None: no limit.
            strategy: None for the best plan with a budget, and for keeping everything without one. See
                `remat.strategies()`; those other than "none" and "optimal" decide for the pieces of the graph.
            threads: 0 for all cores. The plan does not depend on it.

        Raises BudgetError if no schedule was found: it has the smallest budget that works and the proven lower bound.
        CheckError: the order of the graph is no legal schedule.
        """
        chosen = options("graph_plan_options")
        text = c_text(strategy)
        chosen.strategy, chosen.threads = text, threads
        if budget is not None:
            chosen.budget_bytes = c_bytes(self._handle.context, budget)
        made = ffi.new("remat_graph_plan **")
        try:
            self._handle.call(lib.remat_graph_plan_create, chosen, made)
        except BudgetError as error:
            if made[0]:
                plan = self._adopt_plan(made[0])
                error.plan = plan
                error.budget_bytes = plan.budget_bytes
                error.smallest_bytes = plan.min_budget_bytes
                error.lower_bound_bytes = plan.min_budget_bound_bytes
            raise
        return self._adopt_plan(made[0])

    def _adopt_plan(self, pointer) -> graph_plans.GraphPlan:
        self._fixed = True
        return graph_plans.GraphPlan(
            self, Handle(self._handle.context, pointer, lib.remat_graph_plan_destroy, self._handle)
        )

    def curve(self, threads: int = 0) -> graph_plans.GraphCurve:
        """The whole curve of cost over memory. Each point is the plan of a budget."""
        chosen = options("graph_plan_options")
        chosen.threads = threads
        made = ffi.new("remat_graph_sweep **")
        self._handle.call(lib.remat_graph_sweep_create, chosen, made)
        self._fixed = True
        return graph_plans.GraphCurve(
            self, Handle(self._handle.context, made[0], lib.remat_graph_sweep_destroy, self._handle)
        )

    # ---- files ----

    @classmethod
    def load(cls, path: PathLike) -> Graph:
        """Reads a file of the format remat-graph. FileError, InputFileError."""
        context = Context()
        made = ffi.new("remat_graph **")
        context.call(lib.remat_graph_load, context.pointer, c_path(path), made)
        return cls._wrap(Handle(context, made[0], lib.remat_graph_destroy))

    @classmethod
    def from_json(cls, text: str, name: str = "text") -> Graph:
        """Reads a graph from the text of such a file. `name` stands for it in messages."""
        context = Context()
        made = ffi.new("remat_graph **")
        label = c_text(name)
        reading(context, text, lambda stream: lib.remat_graph_read(context.pointer, stream, label, made))
        return cls._wrap(Handle(context, made[0], lib.remat_graph_destroy))

    def to_json(self) -> str:
        """The graph in the format remat-graph."""
        return written(self._handle.context, lambda stream: lib.remat_graph_write(self._handle.pointer, stream))

    def save(self, path: PathLike) -> None:
        """Writes the graph to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_graph_save, c_path(path))

    def load_plan(self, path: PathLike) -> graph_plans.GraphPlan:
        """Reads a plan of this graph from a file of the format remat-graph-plan, written by any program, and checks it.

        CheckError: the schedule is illegal, or a figure in the file is wrong. FileError, InputFileError.
        """
        made = ffi.new("remat_graph_plan **")
        self._handle.call(lib.remat_graph_plan_load, c_path(path), made)
        return self._adopt_plan(made[0])

    def plan_from_json(self, text: str, name: str = "text") -> graph_plans.GraphPlan:
        """The same from the text of such a file."""
        made = ffi.new("remat_graph_plan **")
        graph, label = self._handle.pointer, c_text(name)
        reading(self._handle.context, text, lambda stream: lib.remat_graph_plan_read(graph, stream, label, made))
        return self._adopt_plan(made[0])

    def check_plan(self, text: str, name: str = "text") -> GraphFigures:
        """Checks the text of a plan file and gives the figures of its schedule. The errors are those of `load_plan`."""
        figures = ffi.new("remat_graph_figures *")
        graph, label, size = self._handle.pointer, c_text(name), ffi.sizeof(figures[0])
        reading(
            self._handle.context,
            text,
            lambda stream: lib.remat_graph_plan_check_sized(graph, stream, label, figures, size),
        )
        return record(GraphFigures, figures)


def _tuple(pointer, count: int) -> Tuple[int, ...]:
    return tuple(ffi.unpack(pointer, count)) if count else ()
