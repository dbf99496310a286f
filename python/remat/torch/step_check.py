"""Compares one step of the original module with one of the planned module, to the bit."""
import torch
import torch.utils._pytree as pytree

from .joint_capture import random_states, restore_random_states
from .plan_errors import VerifyError


def _step(run, module, args, kwargs):
    """Outputs, gradients and buffers of a step, each with a name."""
    out = run(*args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_flatten(out)[0] if isinstance(leaf, torch.Tensor)]
    inputs = [leaf for leaf in pytree.tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    parameters = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    wanted = [leaf for leaf in outputs if leaf.requires_grad]
    sources = [p for _, p in parameters] + inputs
    gradients = torch.autograd.grad(wanted, sources, [torch.ones_like(leaf) for leaf in wanted], allow_unused=True)
    names = [f"the gradient of {name}" for name, _ in parameters]
    names += [f"the gradient of input {i}" for i in range(len(inputs))]
    found = [(f"output {i}", leaf.detach()) for i, leaf in enumerate(outputs)] + list(zip(names, gradients))
    return found + [(f"the buffer {name}", buffer.clone()) for name, buffer in module.named_buffers()]


def _bits(tensor):
    """The bytes of each value, a row a value."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).reshape(-1, tensor.element_size())


def _difference(kept, planned):
    """None where two tensors have the same bits."""
    if kept is None or planned is None:  # a plan writes zeros where PyTorch has no gradient at all
        other = planned if kept is None else kept
        return None if other is None or not other.any() else "only one of the two is there"
    other = (_bits(kept) != _bits(planned)).any(1)
    if not other.any():
        return None
    largest = (kept.double() - planned.double()).abs().reshape(-1)[other].max()
    return f"{int(other.sum())} of {other.numel()} values differ, by up to {float(largest):.3g}"


def verify_step(planned, module, args, kwargs):
    """Runs a step of both, compares all numbers, and leaves buffers and random states as they were."""
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    states = random_states()

    def step(run):
        for buffer, value in buffers:
            buffer.data.copy_(value)
        restore_random_states(states)
        with torch.enable_grad():
            return _step(run, module, args, kwargs)

    try:
        kept = step(module)
        # A second step of the module alone says whether it repeats itself at all.
        repeats = all(_difference(a, b) is None for (_, a), (_, b) in zip(kept, step(module)))
        found = step(planned)
    finally:
        for buffer, value in buffers:
            buffer.data.copy_(value)
        restore_random_states(states)
    if not repeats:
        raise VerifyError("two steps of the original module differ, so that a plan cannot be compared with it. "
                          "Call torch.use_deterministic_algorithms(True) first")
    for (name, a), (_, b) in zip(kept, found):
        difference = _difference(a, b)
        if difference:
            raise VerifyError(f"{name} is not that of the original module: {difference}. The module computes something else while it "
                              "is recorded (modules may ask whether they are traced)", name)
