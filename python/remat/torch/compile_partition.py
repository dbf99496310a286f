"""The planner as a partitioner of torch.compile: it decides what the forward saves, and inductor compiles both parts.

Inductor fuses operations, so that many tensors of the plan never exist. The predicted peak is therefore an upper estimate, not the
figure to the byte that `auto_checkpoint` gives.
"""
import json
import operator
import warnings

import torch

import remat

from . import op_costs
from .joint_graph import JointGraph
from .plan_errors import BudgetError, TorchPlanError

try:
    from torch._inductor.custom_graph_pass import CustomPartitionerFn as _Base
except ImportError:
    _Base = None


class _Joint:
    """The joint graph of AOTAutograd, as JointGraph wants it."""

    def __init__(self, module, forward_outputs):
        self.graph, self.owner, self.slots = module.graph, module, []
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        tangents = [node for node in placeholders if "tangents" in str(node.target)]
        if placeholders[len(placeholders) - len(tangents):] != tangents or \
                not all(isinstance(node.meta.get("val"), torch.Tensor) for node in placeholders):
            raise NotImplementedError("inputs besides tensors")
        self.input_count = len(placeholders) - len(tangents)
        self.input_names = [str(node.target) for node in placeholders[:self.input_count]]
        self.output_is_tensor = [True] * forward_outputs


# Operations that inductor computes inside the kernel that reads them, besides those with the tag "pointwise".
FUSED = {"_to_copy", "convert_element_type", "where", "full", "full_like", "arange", "iota", "scalar_tensor", "clone", "gather",
         "index", "embedding", "expand", "add", "sub", "mul", "div", "exp", "log", "neg", "ne", "eq", "ge", "le", "lt", "gt"}
REDUCTIONS = {"sum", "mean", "amax", "amin", "var_mean", "var", "any", "all", "prod", "argmax", "max", "min"}
# Inductor stores a value rather than to read more than this many tensors for it again.
FUSED_READS = 4


def _kind(action):
    return action.target._schema.name.split("::")[-1]


def _is_fused(action):
    tag = getattr(torch.Tag, "pointwise", None)
    return not action.is_random and not action.changes and (_kind(action) in FUSED or tag in action.target.tags)


def fuse(joint):
    """Leaves out tensors that inductor never stores: results of pointwise operations that only such operations and reductions
    read. What reads them reads their sources instead."""
    readers = {}
    for action in joint.actions:
        for key in action.reads:
            readers.setdefault(key, []).append(action)
    ends = {read.key for read in joint.outputs + joint.gradients if read}
    sources, left = {}, []
    for action in joint.actions:
        found = []
        for key in action.reads:
            found += [source for source in sources.get(key, (key,)) if source not in found]
        given = [key for key in found if joint.storages[key[0]].given]
        inner = _is_fused(action) and len(found) - len(given) <= FUSED_READS and all(
            key not in ends and all(_is_fused(reader) or _kind(reader) in REDUCTIONS for reader in readers.get(key, ()))
            for key in action.writes)
        if inner:
            sources.update((key, tuple(found)) for key in action.writes)
            continue
        action.reads = found
        left.append(action)
    joint.actions = left
    joint.forward_count = sum(action.is_forward for action in left)
    joint.makers = {key: action for action in left for key in action.writes}
    for action in left:
        if not op_costs.flops(action):
            size = sum(joint.storages[key[0]].bytes for key in action.reads + action.writes)
            action.cost = int(op_costs.RATES["cuda"][2] + size / op_costs.RATES["cuda"][1])


def choose_saved(module, forward_outputs, budget):
    """The nodes of a joint graph to save for the backward, and the library's plan."""
    joint = JointGraph(_Joint(module, forward_outputs))
    op_costs.assign(joint, "model")
    for action in joint.actions:
        action.once = action.once or action.is_random
    fuse(joint)
    joint.hoist()
    graph, boundary = joint.to_remat("compiled")
    plan = remat.Graph.from_json(json.dumps(graph)).plan(budget)
    steps = plan.schedule.tolist()
    split = steps.index(boundary)
    actions = [None if a == boundary else joint.actions[a - (a > boundary)] for a in steps]
    made = {key for action in actions[:split] for key in action.writes}
    fresh, needed = set(), set()
    for action in actions[split + 1:]:
        needed.update(key for key in action.reads if key in made and key not in fresh)
        fresh.update(action.writes)
    needed.update(read.key for read in joint.gradients if read and read.key in made and read.key not in fresh)
    makers = {}
    for action in joint.actions:
        for number, storage in enumerate(action.outputs):
            if storage is not None:
                makers[(storage.number, 0)] = action.node if action.output_is_single else next(
                    (user for user in action.node.users if user.target is operator.getitem and user.args[1] == number), None)
    nodes = [makers[key] for key in sorted(needed) if makers.get(key) is not None]
    return nodes, plan


if _Base is not None:
    class Partitioner(_Base):
        """For `torch._inductor.config.custom_partitioner_fn`. `plans` has a plan for each graph that was compiled."""

        def __init__(self, budget):
            self.budget_bytes = remat.parse_size(budget)
            self.plans = []

        # Inductor copies its settings, and gives them to other processes. Plans stay with the partitioner that made them.
        def __deepcopy__(self, memo):
            return self

        def __getstate__(self):
            return {"budget_bytes": self.budget_bytes, "plans": []}

        def __call__(self, gm, joint_inputs, **kwargs):
            from torch._functorch import partitioners
            count = kwargs["num_fwd_outputs"]
            try:
                saved, plan = choose_saved(gm, count, self.budget_bytes)
            except remat.BudgetError as error:
                raise BudgetError(f"the budget is too small for the compiled module: {error}", self.budget_bytes,
                                  error.smallest_bytes) from error
            except NotImplementedError as error:
                warnings.warn(f"PyTorch's own partitioner is used: {error}", stacklevel=2)
                return partitioners.min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)
            self.plans.append(plan)
            primals = [node for node in gm.graph.nodes
                       if node.op == "placeholder" and "tangents" not in str(node.target)]
            forward, backward = partitioners._extract_fwd_bwd_modules(
                gm, primals + saved, [], num_fwd_outputs=count)
            return forward, partitioners.reordering_to_mimic_autograd_engine(backward)

        def uuid(self):
            return f"remat {remat.__version__} {self.budget_bytes}"


class CompiledModule(torch.nn.Module):
    """A module that torch.compile compiles with the planner as its partitioner."""

    def __init__(self, module, budget, options):
        super().__init__()
        self.module = module
        self.partitioner = Partitioner(budget)
        options.setdefault("dynamic", False)
        self._compiled = [torch.compile(module, **options)]

    def forward(self, *args, **kwargs):
        from torch._inductor import config
        with config.patch(custom_partitioner_fn=self.partitioner):
            return self._compiled[0](*args, **kwargs)


def compile_module(module, budget, **options):
    """`torch.compile(module, **options)` within a budget for what forward and backward allocate. PyTorch 2.6 or later."""
    if _Base is None:
        raise TorchPlanError(f"PyTorch {torch.__version__} has no partitioners of users in torch.compile; "
                             "auto_checkpoint works without compiling")
    return CompiledModule(module, budget, options)
