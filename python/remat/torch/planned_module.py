"""A module whose forward and backward follow a plan."""
import contextlib
import warnings

import torch
import torch.utils._pytree as pytree

import remat

from .joint_capture import flatten_inputs
from .plan_errors import CaptureError, TorchPlanError
from .step_check import verify_step
from .step_memory import StepMemory
from .step_plan import StepPlan


@contextlib.contextmanager
def _plain():
    """The recorded operations already have autograd and autocast resolved."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if torch.is_autocast_enabled():
            stack.enter_context(torch.autocast("cuda", enabled=False))
        if torch.is_autocast_cpu_enabled():
            stack.enter_context(torch.autocast("cpu", enabled=False))
        yield


class _Planned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, program, differentiable, *given):
        with _plain():
            outputs, saved = program.forward(given)
        ctx.program, ctx.saved, ctx.count = program, saved, len(given)
        ctx.save_for_backward(*[given[i] for i in program.backward_given])
        ctx.mark_non_differentiable(*[out for i, out in enumerate(outputs) if i not in differentiable])
        ctx.differentiable = differentiable
        return tuple(outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *tangents):
        if ctx.saved is None:
            raise TorchPlanError("the backward of this step has run already. Its tensors are gone, as the plan says: call the "
                                 "module again for another backward")
        program, saved = ctx.program, ctx.saved
        ctx.saved = None
        given = [None] * ctx.count
        for place, tensor in zip(program.backward_given, ctx.saved_tensors):
            given[place] = tensor
        tangents = [tangents[i] for i in ctx.differentiable]
        with _plain():
            gradients = program.backward(given, saved, tangents)
        result = [None] * ctx.count
        for place, gradient in zip(program.joint.capture.grad_inputs, gradients):
            result[place] = gradient
        del gradients
        return (None, None, *result)


def _autocast_state():
    state = [torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled()]
    if state[0]:
        state.append(torch.get_autocast_gpu_dtype())
    if state[1]:
        state.append(torch.get_autocast_cpu_dtype())
    return tuple(state)


def _shape(tensor):
    return (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad)


class PlannedModule(torch.nn.Module):
    """Computes what `module` computes, within a budget. `module`, `plan` and `report` are its own; other attributes and the
    state dict are those of the module.

    There is a plan for each shape of the inputs; it is made at the first call with that shape and kept. Without gradients
    the module runs as it is.
    """

    def __init__(self, module, budget, costs, split):
        super().__init__()
        self.module = module
        self._budget, self._costs, self._split = budget, costs, split
        self._plans = {}
        self._last = None
        self._memory = None
        self._parts = None

    # ---- plans ----

    def _key(self, tensors, template, spec):
        if self._parts is None:
            self._parts = list(self.module.modules())
        parts = self._parts
        return (tuple(_shape(t) for t in tensors), repr(template), str(spec), _autocast_state(),
                tuple(part.training for part in parts),
                tuple((p.dtype, p.device, p.requires_grad, p.shape) for p in self.module.parameters()))

    def _plan_for(self, args, kwargs):
        tensors, template, _, spec = flatten_inputs(args, kwargs)
        key = self._key(tensors, template, spec)
        plan = self._plans.get(key)
        if plan is None:
            costs = self._costs
            if costs == "auto":
                on_cuda = any(t.is_cuda for t in tensors) or any(p.is_cuda for p in self.module.parameters())
                costs = "measure" if on_cuda else "model"
            plan = StepPlan(self.module, args, kwargs, self._budget, costs=costs, split=self._split)
            self._plans[key] = plan
        return plan, tensors

    def set_budget(self, budget):
        """Plans again for another budget, for every shape that was seen."""
        self._budget = remat.parse_size(budget)
        for plan in self._plans.values():
            plan.set_budget(self._budget)
        return self

    @property
    def plan(self):
        """The plan of the last call, or of the example."""
        return self._last

    @property
    def plans(self):
        """All plans that were made, one for each shape of the inputs."""
        return list(self._plans.values())

    def report(self, path):
        """Writes a page about the plan."""
        self._last.report(path)

    # ---- running ----

    def forward(self, *args, **kwargs):
        if not torch.is_grad_enabled():
            return self.module(*args, **kwargs)
        plan, tensors = self._plan_for(args, kwargs)
        self._last = plan
        capture = plan.capture
        given = [slot.get() for slot in capture.slots] + tensors
        outputs = iter(_Planned.apply(plan.program, capture.grad_outputs, *given))
        leaves = [next(outputs) if is_tensor else leaf
                  for is_tensor, leaf in zip(capture.output_is_tensor, capture.output_leaves)]
        return pytree.tree_unflatten(leaves, capture.output_spec)

    def measure(self):
        """A context manager around one step, forward and backward. Afterwards, its `.peak_bytes` is the most that was allocated,
        and printing it compares that with the prediction."""
        return StepMemory(self)

    # ---- looks like the module ----

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def state_dict(self, *args, **kwargs):
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self.module.load_state_dict(*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        return self.module.named_parameters(*args, **kwargs)

    def extra_repr(self):
        return str(self._last) if self._last is not None else ""


def _prepare_device(module):
    """Matrix libraries allocate a workspace at the first call in each thread. It must exist before a budget counts."""
    device = next((p.device for p in module.parameters() if p.is_cuda), None)
    if device is None:
        return
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.ones(64, 64, device=device, dtype=dtype, requires_grad=True)
        torch.nn.functional.linear(a, a, a[0]).sum().backward()
    torch.cuda.synchronize(device)


def auto_checkpoint(module, example_inputs, budget, *, example_kwargs=None, costs="auto", split=None, fallback=True,
                    verify=False):
    """Returns a module that computes the same numbers as `module`, with forward and backward within `budget`.

    module          any nn.Module
    example_inputs  a tensor or a tuple of arguments, like those of later calls
    budget          bytes, or a text such as "8GB" or "7.5GiB", for all that a step allocates: activations, gradients and
                    workspaces. Parameters, inputs and the optimizer's state are there before and do not count.
    example_kwargs  keyword arguments
    costs           "measure" runs each kind of operation on the device; "model" estimates; "auto" measures on CUDA
    split           into how many parts the product with the vocabulary and the cross entropy after it are split. Only the logits of
                    one part exist at a time. Sums are then rounded differently: the bits are no longer the same.
    fallback        whether a module whose computation cannot be recorded is planned as a chain of its sub-modules
    verify          runs one step with and without the plan on the example, and raises VerifyError unless all numbers have the same
                    bits. It needs the memory of a step without a plan.

    `.plan` has the predicted peak and time. `.report("page.html")` writes a page.
    """
    args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    budget = remat.parse_size(budget)
    if not any(p.requires_grad for p in module.parameters()) and \
            not any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
        raise TorchPlanError("the module has no parameter that requires a gradient, so that there is no backward to plan")
    planned = PlannedModule(module, budget, costs, split)
    _prepare_device(module)
    try:
        with torch.enable_grad():
            planned._last, _ = planned._plan_for(tuple(args), example_kwargs or {})
    except CaptureError as error:
        if not fallback:
            raise
        from .chain_fallback import plan_chain
        planned = plan_chain(module, tuple(args), example_kwargs or {}, budget, error)
        warnings.warn(f"{error}. Its chain of {planned.plan.layer_count} sub-modules is planned instead", stacklevel=2)
    if verify:
        verify_step(planned, module, tuple(args), example_kwargs or {})
    return planned
