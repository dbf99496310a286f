"""Plans a chain of modules: for `checkpoint_sequential`, and for modules whose computation cannot be recorded.

Each module of the chain runs as a whole. It is measured once: what it keeps for its backward, what it returns, how long it takes.
The library plans the chain, and the schedule says when each module runs, whether it keeps what its backward needs, and what is
dropped.
"""
import contextlib
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import remat

from .joint_capture import random_states, restore_random_states
from .plan_errors import BudgetError, CaptureError, TorchPlanError
from .step_memory import StepMemory


def _device(module, value):
    parameter = next(module.parameters(), None)
    return value.device if parameter is None else parameter.device


def _sync(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _size(tensor):
    return tensor.numel() * tensor.element_size()


@contextlib.contextmanager
def _buffers_unchanged(module):
    """Running statistics count a batch once, however often a module runs: meanwhile it has copies of its buffers."""
    saved = [(part._buffers, key, value) for part in module.modules() for key, value in part._buffers.items()
             if value is not None]
    try:
        for table, key, value in saved:
            table[key] = value.clone()
        yield
    finally:
        for table, key, value in saved:
            table[key] = value


def _measure(module, value, needs_gradient):
    """What the chain's model asks of a module, and its output."""
    device = _device(module, value)
    entry = value.detach().requires_grad_(needs_gradient)
    targets = [p for p in module.parameters() if p.requires_grad] + ([entry] if needs_gradient else [])
    with torch.enable_grad():
        module(entry)
        _sync(device)
        began = time.perf_counter_ns()
        module(entry)
        _sync(device)
        forward_cost = time.perf_counter_ns() - began
        with StepMemory(device=device) as forward:
            out = module(entry)
    if not isinstance(out, torch.Tensor):
        raise TorchPlanError(f"{type(module).__name__} returns a {type(out).__name__}. The modules of a chain take one tensor and "
                             "return one")
    result = {"activation_bytes": max(forward.live_bytes, _size(out)), "output_bytes": _size(out),
              "forward_cost": forward_cost, "forward_workspace_bytes": max(0, forward.peak_bytes - forward.live_bytes),
              "backward_cost": 2 * forward_cost, "backward_workspace_bytes": 0}
    if targets and out.requires_grad:
        gradient = torch.ones_like(out)
        _sync(device)
        with StepMemory(device=device) as backward:
            began = time.perf_counter_ns()
            torch.autograd.grad(out, targets, gradient, allow_unused=True)
            _sync(device)
            result["backward_cost"] = time.perf_counter_ns() - began
        own = sum(_size(target) for target in targets)
        result["backward_workspace_bytes"] = max(0, backward.peak_bytes - own)
    return result, out.detach()


class ChainPlan:
    """A plan for a chain of modules. Its figures are those of a step, the gradients of the parameters included."""

    def __init__(self, modules, value, budget, names=None):
        states = random_states()
        self.layer_count = len(modules)
        self.budget_bytes = remat.parse_size(budget)
        self.gradient_bytes = sum(_size(p) for p in {p for m in modules for p in m.parameters()} if p.requires_grad)
        profile = remat.Profile("chain", cost_unit="ns", input_bytes=0,
                                input_gradient_bytes=_size(value) if value.requires_grad else 0)
        needs_gradient = value.requires_grad
        for number, module in enumerate(modules):
            with _buffers_unchanged(module):
                figures, value = _measure(module, value, needs_gradient)
            needs_gradient = needs_gradient or any(p.requires_grad for p in module.parameters())
            name = names[number] if names else f"{number}.{type(module).__name__}"
            profile.add_layer("other", recompute_flops=figures["forward_cost"], name=name, **figures)
        restore_random_states(states)
        left = self.budget_bytes - self.gradient_bytes
        try:
            self.plan = profile.plan(max(0, left))
        except remat.BudgetError as error:
            smallest = error.smallest_bytes + self.gradient_bytes
            raise BudgetError(f"a budget of {remat.format_size(self.budget_bytes)} is too small. The smallest is "
                              f"{remat.format_size(smallest, round_up=True)} ({smallest} bytes), gradients included: {error}",
                              self.budget_bytes, smallest, error.layer_name) from error
        self.steps = self.plan.schedule
        self.peak_bytes = self.plan.peak_bytes + self.gradient_bytes
        self.base_peak_bytes = self.plan.base_peak_bytes + self.gradient_bytes
        self.min_budget_bytes = self.plan.min_budget_bytes + self.gradient_bytes
        self.cost_ns, self.base_cost_ns = self.plan.total_cost, self.plan.base_cost
        self.recomputed = sum(self.plan.forwards) - self.layer_count

    def changed(self):
        """Modules that run more than once: (name, runs, bytes that its backward needs)."""
        return [(layer.name, runs, layer.modes[0].activation_bytes)
                for layer, runs in zip(self.plan.profile.layers, self.plan.forwards) if runs > 1]

    def report(self, path):
        """Writes a page about the plan."""
        self.plan.report(path, label="chain")

    def __str__(self):
        size = remat.format_size
        return (f"budget {size(self.budget_bytes)}: peak {size(self.peak_bytes)} of {size(self.base_peak_bytes)} with everything "
                f"kept, {self.recomputed} modules recomputed")


@contextlib.contextmanager
def _as_before(states, autocast):
    """The random numbers and the autocast of the first run."""
    now = random_states()
    restore_random_states(states)
    try:
        with contextlib.ExitStack() as stack:
            for kind, (enabled, dtype) in autocast.items():
                stack.enter_context(torch.autocast(kind, enabled=enabled, dtype=dtype))
            yield
    finally:
        restore_random_states(now)


def _autocast_now():
    found = {"cpu": (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype())}
    if torch.cuda.is_available():
        found["cuda"] = (torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype())
    return found


class _Run:
    """One walk through a schedule."""

    def __init__(self, modules, steps, value):
        self.modules, self.steps, self.next = modules, steps, 0
        self.x, self.s, self.states, self.gradients = {0: value}, {}, {}, {}
        self.autocast = _autocast_now()

    def forward(self):
        while self.steps[self.next].op != "loss":
            self._step(self.steps[self.next])
            self.next += 1
        self.next += 1
        return self._value(len(self.modules))

    def backward(self, gradient):
        self.y = gradient
        for step in self.steps[self.next:]:
            self._step(step)
        return self.y

    def _value(self, number):
        return self.x[number] if number in self.x else self.s[number - 1][1].detach()

    def _step(self, step):
        if step.op == "forward":
            self._run(step.layer, step.save is not None)
        elif step.op == "backward":
            self._back(step.layer)
        elif step.op == "drop_x":
            self.x.pop(step.layer, None)
        elif step.op == "drop_state":
            self.s.pop(step.layer, None)

    def _run(self, number, saves):
        module, value = self.modules[number], self._value(number)
        with contextlib.ExitStack() as stack:
            if number in self.states:
                stack.enter_context(_as_before(self.states[number], self.autocast))
                stack.enter_context(_buffers_unchanged(module))
            else:
                self.states[number] = random_states()
            if saves:
                stack.enter_context(torch.enable_grad())
                entry = value.detach().requires_grad_(value.is_floating_point())
                self.s[number] = (entry, module(entry))
            else:
                stack.enter_context(torch.no_grad())
                self.x[number + 1] = module(value.detach())

    def _back(self, number):
        entry, out = self.s.pop(number)
        parameters = [p for p in self.modules[number].parameters() if p.requires_grad]
        targets = parameters + ([entry] if entry.requires_grad else [])
        found = [None] * len(targets)
        if targets and out.requires_grad:
            found = torch.autograd.grad(out, targets, self.y, allow_unused=True)
        for parameter, gradient in zip(parameters, found):
            if gradient is not None:
                before = self.gradients.get(parameter)
                self.gradients[parameter] = gradient if before is None else before + gradient
        self.y = found[-1] if entry.requires_grad else None


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, modules, steps, value, *parameters):
        ctx.run, ctx.parameters = _Run(modules, steps, value), parameters
        return ctx.run.forward().detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        if ctx.run is None:
            raise TorchPlanError("the backward of this step has run already. Call the module again for another backward")
        run, ctx.run = ctx.run, None
        with torch.enable_grad():
            entry = run.backward(gradient)
        return (None, None, entry if ctx.needs_input_grad[2] else None, *[run.gradients.get(p) for p in ctx.parameters])


def _run_chain(modules, steps, value):
    parameters = list(dict.fromkeys(p for module in modules for p in module.parameters() if p.requires_grad))
    return _Chain.apply(modules, steps, value, *parameters)


_plans = {}


def checkpoint_sequential(modules, x, budget):
    """Runs modules one after the other, as `nn.Sequential` does, forward and backward within a budget.

    modules  an nn.Sequential or a list of modules that take one tensor and return one
    x        the input
    budget   bytes or a text such as "8GB", for activations and the gradients of the parameters

    The modules are measured at the first call; the plan is kept for further calls with the same shape.
    """
    modules = list(modules)
    if not torch.is_grad_enabled():
        for module in modules:
            x = module(x)
        return x
    key = (tuple(id(m) for m in modules), tuple(x.shape), x.dtype, x.device, x.requires_grad, remat.parse_size(budget),
           tuple(part.training for m in modules for part in m.modules()), str(_autocast_now()))
    known = _plans.get(key)
    if known is None:
        known = _plans[key] = (ChainPlan(modules, x, budget), modules)  # holding the modules keeps their ids from being reused
    return _run_chain(modules, known[0].steps, x)


class PlannedChain(nn.Module):
    """A module whose sub-modules run by the plan of their chain."""

    def __init__(self, module, budget, parts, names, value):
        super().__init__()
        self.module = module
        self._budget, self._names = budget, names
        self._plans = {}
        self._last = ChainPlan(parts, value, budget, names)
        self._is_whole = isinstance(module, nn.Sequential) and len(parts) == len(module)
        if self._is_whole:
            self._plans[self._key(value)] = self._last
        else:
            for part, decision in zip(parts, self._last.plan.decisions):
                if decision == "recompute":
                    _recompute(part)

    @staticmethod
    def _key(value):
        return (tuple(value.shape), value.dtype, value.device, value.requires_grad)

    @property
    def plan(self):
        """The plan of the last call, or of the example."""
        return self._last

    def report(self, path):
        """Writes a page about the plan."""
        self._last.report(path)

    def measure(self):
        """A context manager around one step that compares its peak with the prediction."""
        return StepMemory(self)

    def forward(self, *args, **kwargs):
        if not self._is_whole or not torch.is_grad_enabled():
            return self.module(*args, **kwargs)
        value, parts = args[0], list(self.module)
        key = self._key(value)
        if key not in self._plans:
            self._plans[key] = ChainPlan(parts, value, self._budget, self._names)
        self._last = self._plans[key]
        return _run_chain(parts, self._last.steps, value)

    def state_dict(self, *args, **kwargs):
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self.module.load_state_dict(*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        return self.module.named_parameters(*args, **kwargs)


def _recompute(part):
    """Lets a module keep nothing for its backward."""
    plain = part.forward

    def forward(*args, **kwargs):
        if not torch.is_grad_enabled():
            return plain(*args, **kwargs)
        runs = [0]

        def run(*inputs):
            runs[0] += 1
            if runs[0] == 1:
                return plain(*inputs, **kwargs)
            with _buffers_unchanged(part):
                return plain(*inputs, **kwargs)

        return checkpoint(run, *args, use_reentrant=False)

    part.forward = forward


def _longest_list(module):
    """The name and the members of the longest nn.ModuleList or nn.Sequential of blocks inside a module."""
    best = ("", [])
    for name, part in module.named_modules():
        if isinstance(part, (nn.ModuleList, nn.Sequential)) and len(part) > len(best[1]):
            best = (name, list(part))
    return best


def plan_chain(module, args, kwargs, budget, reason):
    """Plans the chain of a module's sub-modules, because its computation cannot be recorded for `reason`."""
    if isinstance(module, nn.Sequential):
        if len(args) != 1 or kwargs:
            raise reason
        names = [f"{name} ({type(part).__name__})" for name, part in module.named_children()]
        return PlannedChain(module, budget, list(module), names, args[0])
    name, parts = _longest_list(module)
    if len(parts) < 2:
        raise CaptureError(f"{reason}. It has no nn.Sequential or nn.ModuleList of blocks either that could be planned as a chain",
                           reason.where)
    seen = []
    handle = parts[0].register_forward_pre_hook(lambda part, inputs: seen.append(inputs))
    states = random_states()
    try:
        with torch.no_grad(), _buffers_unchanged(module):
            module(*args, **kwargs)
    finally:
        handle.remove()
        restore_random_states(states)
    if not seen or len(seen[0]) != 1 or not isinstance(seen[0][0], torch.Tensor):
        raise CaptureError(f"{reason}. The blocks in {name} take more than one tensor, so that they cannot be planned as a chain",
                           reason.where)
    return PlannedChain(module, budget, parts, [f"{name}.{i}" for i in range(len(parts))],
                        seen[0][0].detach().requires_grad_(True))
