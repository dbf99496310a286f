"""A plan for one step of a module: the library's plan of its graph, and code that executes it."""
import json
import time

import remat

from . import op_costs
from .joint_capture import capture
from .joint_graph import JointGraph
from .loss_split import NoMatch, split_losses
from .plan_errors import BudgetError, CaptureError, TorchPlanError
from .schedule_code import Program


def parameter_bytes(module):
    return sum(p.numel() * p.element_size() for p in module.parameters())


def describe(module, args, kwargs=None, loss=None, costs="model", split=None):
    """Records a module's step. Gives its joint graph with costs, the module's name, and the seconds that costs took."""
    recorded = capture(module, args, kwargs, loss)
    began = time.perf_counter()
    try:
        joint = JointGraph(recorded)
    except NotImplementedError as error:
        raise CaptureError(f"the module's computation cannot be planned: {error}") from error
    op_costs.assign(joint, costs)
    if split:
        try:
            split_losses(joint, split)
        except NoMatch as error:
            raise TorchPlanError(f"split: no cross entropy over a matrix product can be split: {error}") from error
    joint.hoist()
    return joint, type(module).__name__, time.perf_counter() - began


def allocator_reserve(budget, on_cuda):
    """The allocator of CUDA memory may give up to 1 MiB more than was asked for, each time. This much of a budget is kept for it."""
    return min(budget * 6 // 100, 8 << 20) if on_cuda else 0


def with_reserve(peak, on_cuda):
    """The smallest budget that leaves room for `peak`."""
    budget = peak
    while on_cuda and budget - allocator_reserve(budget, True) < peak:
        budget += max(1, peak - (budget - allocator_reserve(budget, True)))
    return budget


class StepPlan:
    """What was decided for one step, and what is predicted.

    budget_bytes      the budget; None: everything is kept
    peak_bytes        predicted: what the step allocates beside what was there before it, gradients included
    base_peak_bytes   the same with everything kept
    cost_ns, base_cost_ns       predicted time of the operations, and with everything kept
    recomputed        operations that run again
    saved_bytes       what is kept from the forward to the backward
    capture_seconds, cost_seconds, plan_seconds     how long it took to make the plan
    """

    def __init__(self, module, args, kwargs=None, budget=None, loss=None, costs="model", split=None):
        self.joint, self.name, self.cost_seconds = describe(module, args, kwargs, loss, costs, split)
        self.capture = self.joint.capture
        self.capture_seconds = self.capture.seconds
        self.on_cuda = any(storage.base.device.type == "cuda" for storage in self.joint.storages)
        self.parameter_bytes = parameter_bytes(module)
        self._once = [action.once for action in self.joint.actions]
        self._make_graph()
        self.set_budget(budget)

    def _make_graph(self):
        self._graphs, self._smallest = {}, None
        self._choose_graph(False)

    def _choose_graph(self, random_once):
        """The graph of the step; `random_once`: with what random operations make kept, because the library keeps the order of what
        runs once."""
        for action, once in zip(self.joint.actions, self._once):
            action.once = once or (random_once and action.is_random)
        if random_once not in self._graphs:
            described, boundary = self.joint.to_remat(self.name)
            self._graphs[random_once] = (described, boundary, remat.Graph.from_json(json.dumps(described), name=self.name))
        self.graph_json, self.boundary, self.graph = self._graphs[random_once]

    def set_budget(self, budget):
        """Plans the same step for another budget."""
        began = time.perf_counter()
        self.budget_bytes = limit = None if budget is None else remat.parse_size(budget)
        if limit is not None:
            limit -= allocator_reserve(limit, self.on_cuda)
        try:
            plan = self._plan_in_order(limit)
        except remat.BudgetError as error:
            smallest = self.min_budget_bytes
            raise BudgetError(
                f"a budget of {remat.format_size(self.budget_bytes)} is too small. The smallest is "
                f"{remat.format_size(smallest, round_up=True)} ({smallest} bytes): {error}", self.budget_bytes, smallest,
                str(error)) from error
        return self._use(plan, began)

    def _plan_within(self, limit):
        plan = self.graph.plan()  # takes no search
        return plan if limit is None or limit >= plan.peak_bytes else self.graph.plan(limit)

    def _plan_in_order(self, limit):
        """A plan in which random operations draw in the module's order: any such, else one in which they run once, else the one of the
        smallest peak."""
        self._choose_graph(False)
        plan = self._plan_within(limit)
        if self._draws_in_order(plan.schedule.tolist()):
            return plan
        self._choose_graph(True)
        try:
            return self._plan_within(limit)
        except remat.BudgetError:
            smallest, random_once = self._find_smallest()
            if limit is None or random_once or smallest > limit:
                raise
            self._choose_graph(False)
            return self.graph.plan(smallest)

    def _use(self, plan, began):
        self.plan = plan
        self.peak_bytes, self.base_peak_bytes = plan.peak_bytes, plan.base_peak_bytes
        self.cost_ns, self.base_cost_ns = plan.total_cost, plan.base_cost
        self.program = Program(self.joint, plan.schedule.tolist(), self.boundary)
        self.recomputed = self.program.reruns
        self.saved_bytes = sum(self.joint.storages[key[0]].bytes for key in self.program.saved_keys)
        self.plan_seconds = time.perf_counter() - began
        return self

    def _find_smallest(self):
        """The smallest peak of a plan that draws in order, and whether its random operations run once."""
        if self._smallest is None:
            chosen = self.graph is self._graphs.get(True, (None, None, None))[2]
            self._choose_graph(False)
            smallest, random_once = self.graph.curve()[0].peak_bytes, False
            if not self._draws_in_order(self.graph.plan(smallest).schedule.tolist()):
                self._choose_graph(True)
                smallest, random_once = self.graph.curve()[0].peak_bytes, True
            self._smallest = smallest, random_once
            self._choose_graph(chosen)
        return self._smallest

    @property
    def min_budget_bytes(self):
        """The smallest budget for which a schedule was found."""
        return with_reserve(self._find_smallest()[0], self.on_cuda)

    def _draws_in_order(self, schedule):
        """Random operations must draw in the order in which the module draws."""
        random = {number + (number >= self.boundary) for number, a in enumerate(self.joint.actions) if a.is_random}
        first = list(dict.fromkeys(number for number in schedule if number in random))
        return first == sorted(first)

    def changed(self):
        """What is recomputed: (name, runs, bytes of what it makes), the most bytes first."""
        rows = []
        for number, action in enumerate(self.joint.actions):
            runs = self.plan.runs(number + (number >= self.boundary))
            if runs > 1:
                rows.append((action.name, runs, sum(self.joint.storages[key[0]].bytes for key in action.writes)))
        return sorted(rows, key=lambda row: -row[2])

    def report(self, path):
        """Writes a page about the plan: memory over time, the curve, the operations."""
        self.plan.report(path, label=self.name)

    def __str__(self):
        size = remat.format_size
        budget = "no budget" if self.budget_bytes is None else f"budget {size(self.budget_bytes)}"
        slower = 100.0 * (self.cost_ns / self.base_cost_ns - 1) if self.base_cost_ns else 0.0
        return (f"{budget}: peak {size(self.peak_bytes)} of {size(self.base_peak_bytes)} with everything kept, "
                f"{self.recomputed} operations recomputed, +{slower:.1f} % time")
