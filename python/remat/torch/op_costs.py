"""What an operation costs, in nanoseconds: measured on the device, or modelled from its arithmetic and its bytes."""
import time

import torch

from .joint_graph import Read, node_value, reads_of

# Rates that the model assumes, in operations and bytes a nanosecond, and the cost of starting an operation in ns.
# Only their ratios matter to a plan.
RATES = {"cuda": (350_000.0, 3_000.0, 4_000), "cpu": (100.0, 12.0, 2_000)}
RUNS = 3


def elements(fake):
    return int(fake.numel())


def _output_fakes(action):
    value = node_value(action.node)
    values = value if isinstance(value, (list, tuple)) else [value]
    return [v for v in values if isinstance(v, torch.Tensor)]


def flops(action):
    """Multiplications and additions of matrix products and convolutions. 0 for what only moves bytes."""
    name = action.target._schema.name.split("::")[-1]
    args = action.args
    try:
        if name in ("mm", "bmm"):
            return 2 * elements(args[0].fake) * args[1].fake.shape[-1]
        if name in ("addmm", "baddbmm"):
            return 2 * elements(args[1].fake) * args[2].fake.shape[-1]
        if name == "convolution":
            weight, out = args[1].fake, _output_fakes(action)[0]
            # each weight meets each position of the output, or of the input if it is transposed
            positions = elements(args[0].fake if args[6] else out) // (weight.shape[0])
            return 2 * positions * elements(weight)
        if name == "convolution_backward":
            grad, inputs, weight = args[0].fake, args[1].fake, args[2].fake
            positions = elements(inputs if args[7] else grad) // weight.shape[0]
            return 2 * positions * elements(weight) * sum(args[10][:2])
        if "scaled_dot_product" in name or "efficient_attention" in name or "flash_attention" in name:
            query, key = [read.fake for read in reads_of(args)][:2] if "backward" not in name else \
                [read.fake for read in reads_of(args)][1:3]
            once = 4 * elements(query) * key.shape[-2]
            return once * 5 // 2 if "backward" in name else once
    except (AttributeError, IndexError, TypeError):
        pass
    return 0


def moved_bytes(action):
    size = sum(elements(read.fake) * read.fake.element_size() for read in reads_of((action.args, action.kwargs)))
    return size + sum(elements(fake) * fake.element_size() for fake in _output_fakes(action))


def _device(action):
    fakes = _output_fakes(action) + [read.fake for read in reads_of((action.args, action.kwargs))]
    kinds = {fake.device.type for fake in fakes}
    return "cuda" if "cuda" in kinds else "cpu"


def model(action):
    rate, bandwidth, start = RATES[_device(action)]
    return int(start + max(flops(action) / rate, moved_bytes(action) / bandwidth))


def signature(action):
    """Operations with the same signature cost the same."""
    def part(value):
        if isinstance(value, Read):
            fake = value.fake
            return ("tensor", tuple(fake.shape), tuple(fake.stride()), fake.dtype, str(fake.device))
        if isinstance(value, (list, tuple)):
            return tuple(part(v) for v in value)
        return repr(value)
    return (str(action.target), part(action.args), tuple((k, part(v)) for k, v in sorted(action.kwargs.items())))


def _sample(fake):
    """A tensor like `fake` with values that every operation accepts."""
    size = sum((s - 1) * st for s, st in zip(fake.shape, fake.stride())) + 1 if fake.numel() else 0
    base = torch.empty(size, dtype=fake.dtype, device=fake.device)
    if fake.dtype.is_floating_point:
        base.uniform_(0.1, 0.9)
    else:
        base.zero_()
    return base.as_strided(tuple(fake.shape), tuple(fake.stride()))


def _materialize(value):
    if isinstance(value, Read):
        return _sample(value.fake)
    if isinstance(value, (list, tuple)):
        return type(value)(_materialize(part) for part in value)
    return value


def _without_dropout(action):
    """The arguments with a probability of dropout of 0: attention would follow made-up pointers to the state of the generator."""
    names = [argument.name for argument in action.target._schema.arguments]
    args = list(action.args)
    if "dropout_p" in names and names.index("dropout_p") < len(args):
        args[names.index("dropout_p")] = 0.0
    return tuple(args)


def _measure_cuda(action):
    """Time and workspace of one operation, run by itself."""
    args = _materialize(_without_dropout(action))
    kwargs = {key: _materialize(value) for key, value in action.kwargs.items()}
    run = action.target
    out = run(*args, **kwargs)
    torch.cuda.synchronize()
    del out
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = run(*args, **kwargs)
    peak, after = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    del out
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(200_000)  # the queue fills up meanwhile, so that the gaps between launches do not count
    begin.record()
    for _ in range(RUNS):
        run(*args, **kwargs)
    end.record()
    torch.cuda.synchronize()
    return int(begin.elapsed_time(end) * 1e6 / RUNS), max(0, peak - max(before, after))


def _measure_cpu(action):
    args = _materialize(action.args)
    kwargs = {key: _materialize(value) for key, value in action.kwargs.items()}
    action.target(*args, **kwargs)
    best = None
    for _ in range(RUNS):
        began = time.perf_counter_ns()
        action.target(*args, **kwargs)
        took = time.perf_counter_ns() - began
        best = took if best is None else min(best, took)
    return best, 0


_measured = {}


def assign(joint, how):
    """Sets the cost and workspace of every action. `how` is "measure" or "model"."""
    if how not in ("measure", "model"):
        raise ValueError(f'costs must be "measure" or "model", not {how!r}')
    if how == "model":
        for action in joint.actions:
            action.cost = model(action)
        return
    state = torch.get_rng_state()
    states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    with torch.no_grad():
        for action in joint.actions:
            key = signature(action)
            if key not in _measured:
                try:
                    _measured[key] = _measure_cuda(action) if _device(action) == "cuda" else _measure_cpu(action)
                except (RuntimeError, IndexError, TypeError, ValueError):
                    # It refuses made-up values. Its cost is modelled.
                    _measured[key] = (model(action), 0)
            action.cost, action.workspace_bytes = _measured[key]
    torch.set_rng_state(state)
    if states is not None:
        torch.cuda.set_rng_state_all(states)
