"""Records what a module computes, forward and backward, as one list of operations.

The module runs once on fake tensors, which have shapes but no data. Nothing runs on the device. The record is what PyTorch's
dispatcher would execute: autograd, autocast and composite functions are already resolved.
"""
import contextlib
import inspect
import os
import time
import traceback

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from .plan_errors import CaptureError


class Slot:
    """A tensor that a module owns: a parameter, a buffer or a plain attribute. It is looked up at every step."""

    __slots__ = ("table", "key", "name", "kind")

    def __init__(self, table, key, name, kind):
        self.table, self.key, self.name, self.kind = table, key, name, kind

    def get(self):
        return self.table[self.key]


def module_slots(module):
    """Every tensor of a module once, with all the places where it is registered."""
    order, places = [], {}
    for prefix, part in module.named_modules():
        tables = [(part._parameters, "parameter"), (part._buffers, "buffer"), (part.__dict__, "constant")]
        for table, kind in tables:
            for key, value in table.items():
                if not isinstance(value, torch.Tensor):
                    continue
                slot = Slot(table, key, f"{prefix}.{key}" if prefix else key, kind)
                if id(value) not in places:
                    places[id(value)] = []
                    order.append(slot)
                places[id(value)].append(slot)
    return order, [places[id(slot.get())] for slot in order]


@contextlib.contextmanager
def swapped(places, values):
    """Puts values in the place of a module's tensors for a while."""
    saved = [(slot, slot.get()) for group in places for slot in group]
    try:
        for group, value in zip(places, values):
            for slot in group:
                slot.table[slot.key] = value
        yield
    finally:
        for slot, value in saved:
            slot.table[slot.key] = value


def flatten_inputs(args, kwargs):
    """Splits arguments into tensors and the rest. The rest is part of what a plan is for."""
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    template = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
    return tensors, template, is_tensor, spec


def unflatten_inputs(tensors, template, is_tensor, spec):
    rest = iter(tensors)
    leaves = [next(rest) if tensor else leaf for tensor, leaf in zip(is_tensor, template)]
    return pytree.tree_unflatten(leaves, spec)


class Capture:
    """What was recorded.

    graph           the recorded operations (torch.fx.Graph)
    constants       tensors that the operations read and that belong to no module, by name
    slots           the module's tensors, in the order of the first placeholders
    input_count     tensors among the arguments; their placeholders come next, those of tangents are last
    output_spec     how outputs are put together again; output_leaves has the parts that are no tensors
    grad_outputs    numbers of the outputs that gradients come in for
    grad_inputs     numbers of the placeholders that gradients go out for
    seconds         how long it took
    """


class CaptureMode(FakeTensorMode):
    """Fake tensors with the layouts that kernels make. Backward formulas ask for strides and choose equal products by them,
    whose last bits may differ."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        # The kernels write contiguous rows, whatever layout the input has. PyTorch 1.13's fake keeps the input's.
        if func is torch.ops.aten.native_layer_norm.default and not result[0].is_contiguous():
            rows = super().__torch_dispatch__(torch.ops.aten.clone.default, types, (result[0],),
                                              {"memory_format": torch.contiguous_format})
            return (rows, *result[1:])
        return result


def fake_mode():
    known = inspect.signature(FakeTensorMode.__init__).parameters
    options = {"throw_on_data_dependent_ops": True, "allow_non_fake_inputs": True}
    return CaptureMode(**{key: value for key, value in options.items() if key in known})


def _user_frame(error, module):
    """The innermost frame that belongs neither to PyTorch nor to this package."""
    own = os.path.dirname(os.path.abspath(__file__))
    library = os.path.dirname(os.path.abspath(torch.__file__))
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = os.path.abspath(frame.filename)
        if not path.startswith(own) and not path.startswith(library + os.sep) and "functorch" not in path:
            return f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
    return None


def _output_tensors(value):
    leaves, spec = pytree.tree_flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, (torch.Tensor, int, float, bool, str, type(None))):
            raise CaptureError(
                f"the module returns a {type(leaf).__name__}, whose tensors cannot be found. Return tensors, tuples, lists or"
                " dicts, or register the type with torch.utils._pytree.")
    return leaves, spec


def capture(module, args, kwargs=None, loss=None):
    """Records `module(*args, **kwargs)` and its backward. `loss`, if given, is applied to what the module returns."""
    began = time.perf_counter()
    args, kwargs = tuple(args), dict(kwargs or {})
    result = Capture()
    slots, places = module_slots(module)
    tensors, template, is_tensor, spec = flatten_inputs(args, kwargs)
    own = [slot.get() for slot in slots]
    mode = fake_mode()
    found, path = {}, [None]

    def run(values):
        with swapped(places, values[:len(own)]):
            arguments, keywords = unflatten_inputs(values[len(own):], template, is_tensor, spec)
            value = module(*arguments, **keywords)
            return loss(value) if loss is not None else value

    def detach(value, real):
        value = value.detach()
        return value.requires_grad_() if real.requires_grad else value

    def joint(values, tangents):
        with torch.enable_grad():
            values = [detach(v, r) for v, r in zip(values, own + tensors)]
            path[0] = ""
            leaves, out_spec = _output_tensors(run(values))
            outs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            grad_outs = [i for i, out in enumerate(outs) if out.requires_grad]
            grad_ins = [i for i, v in enumerate(values) if v.requires_grad]
            found.update(leaves=leaves, out_spec=out_spec, grad_outputs=grad_outs, grad_inputs=grad_ins)
            if tangents is None:
                return [(out.shape, out.dtype, out.device) for out in outs]
            path[0] = None
            grads = torch.autograd.grad([outs[i] for i in grad_outs], [values[i] for i in grad_ins], tangents,
                                        allow_unused=True) if grad_outs and grad_ins else []
            return [out.detach() for out in outs] + list(grads)

    state = random_states()
    try:
        with mode, _no_autocast_cache(), _kernels_kept(), _paths_noted(module, path):
            # An empty list of tangents first: which outputs there are is known only after a run.
            fakes = [mode.from_tensor(value) for value in own + tensors]
            shapes = joint(fakes, None)
            tangents = [torch.empty(shapes[i][0], dtype=shapes[i][1], device=shapes[i][2]) for i in found["grad_outputs"]]
            traced = make_fx(joint)(fakes, tangents)
    except CaptureError:
        raise
    except Exception as error:  # PyTorch has no common base class for what tracing may raise
        where = _user_frame(error, module)
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        kind = type(error).__name__
        if "DataDependent" in kind or "DynamicOutputShape" in kind or "GuardOnDataDependent" in kind:
            what = "a decision depends on the values of a tensor"
        raise CaptureError(f"the module's computation cannot be recorded: {what}" + (f" ({where})" if where else ""),
                           where) from error
    finally:
        restore_random_states(state)
    result.graph = traced.graph
    result.owner = traced
    result.slots = slots
    result.input_count = len(tensors)
    result.tangent_count = len(tangents)
    result.grad_outputs, result.grad_inputs = found["grad_outputs"], found["grad_inputs"]
    result.output_spec = found["out_spec"]
    result.output_leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in found["leaves"]]
    result.output_is_tensor = [isinstance(leaf, torch.Tensor) for leaf in found["leaves"]]
    result.input_names = [slot.name for slot in slots] + [f"input{i}" for i in range(len(tensors))]
    result.seconds = time.perf_counter() - began
    return result


def random_states():
    states = {None: torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore_random_states(states):
    torch.set_rng_state(states[None])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])


@contextlib.contextmanager
def _no_autocast_cache():
    """A cast that autocast remembers would be missing in the record of its second use."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


@contextlib.contextmanager
def _kernels_kept():
    """Tracing takes operations apart that have a formula, even where the device has a kernel of its own, as for the gradient of
    SiLU. The kernel rounds differently from the formula, so the kernel must be recorded."""
    original = torch._ops.OpOverload.decompose
    backends = ("CPU", "CUDA")
    known = {}

    def decompose(self, *args, **kwargs):
        if self not in known:
            name = self._schema.name + ("." + self._schema.overload_name if self._schema.overload_name else "")
            known[self] = any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in backends)
        return NotImplemented if known[self] else original(self, *args, **kwargs)

    torch._ops.OpOverload.decompose = decompose
    try:
        yield
    finally:
        torch._ops.OpOverload.decompose = original


@contextlib.contextmanager
def _paths_noted(module, path):
    """Every recorded operation gets the name of the sub-module that runs it. `path` has it; None in the backward."""
    handles, stack = [], []
    original = torch.fx.Graph.create_node

    def create_node(self, *args, **kwargs):
        node = original(self, *args, **kwargs)
        node.meta["remat_path"] = path[0]
        return node

    def enter(name):
        def hook(part, inputs):
            stack.append(path[0])
            path[0] = name
        return hook

    def leave(part, inputs, output):
        path[0] = stack.pop()

    torch.fx.Graph.create_node = create_node
    try:
        for name, part in module.named_modules():
            if not isinstance(part, torch.jit.ScriptModule):
                handles += [part.register_forward_pre_hook(enter(name)), part.register_forward_hook(leave)]
        yield
    finally:
        torch.fx.Graph.create_node = original
        for handle in handles:
            handle.remove()
