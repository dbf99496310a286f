"""What a step allocates: counted by the device's allocator, or on the CPU tensor by tensor."""
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import remat


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


class CountedTensors(TorchDispatchMode):
    """Counts the bytes of storages that operations make, while they live."""

    def __init__(self):
        super().__init__()
        self.live, self.peak_bytes = {}, 0

    def _storage(self, tensor):
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()

    def live_bytes(self):
        """What lives now."""
        return sum(size for key, size in self.live.values() if not key.expired())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for tensor in list(_tensors(args)) + list(_tensors(list(kwargs.values()))):
            key = StorageWeakRef(self._storage(tensor))
            if key.cdata not in self.live or self.live[key.cdata][0].expired():
                # It was there before the first operation that was counted.
                self.live[key.cdata] = (key, 0)
        result = func(*args, **kwargs)
        self.live = {cdata: entry for cdata, entry in self.live.items() if not entry[0].expired()}
        for tensor in _tensors(result):
            storage = self._storage(tensor)
            key = StorageWeakRef(storage)
            if key.cdata not in self.live:
                self.live[key.cdata] = (key, storage.nbytes())
        self.peak_bytes = max(self.peak_bytes, sum(size for _, size in self.live.values()))
        return result


class StepMemory:
    """The peak of what was allocated between entering and leaving, beside what was there before."""

    def __init__(self, planned=None, device=None):
        self.planned = planned
        self.peak_bytes = self.live_bytes = None  # bytes at most, and what is left behind
        self._device = device

    def __enter__(self):
        on_cuda = self._device is not None and torch.device(self._device).type == "cuda"
        if self.planned is not None and self._device is None:
            on_cuda = any(p.is_cuda for p in self.planned.module.parameters())
        self._counter = None
        if on_cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
        else:
            self._counter = CountedTensors()
            self._counter.__enter__()
        return self

    def __exit__(self, *failure):
        if self._counter is None:
            torch.cuda.synchronize()
            self.peak_bytes = torch.cuda.max_memory_allocated() - self._before
            self.live_bytes = torch.cuda.memory_allocated() - self._before
        else:
            self._counter.__exit__(*failure)
            self.peak_bytes, self.live_bytes = self._counter.peak_bytes, self._counter.live_bytes()
        self.plan = self.planned.plan if self.planned is not None else None
        return False

    def __str__(self):
        size = remat.format_size
        if self.plan is None:
            return f"measured peak {size(self.peak_bytes)}"
        plan = self.plan
        off = 100.0 * (self.peak_bytes / plan.peak_bytes - 1) if plan.peak_bytes else 0.0
        lines = [f"predicted peak   {size(plan.peak_bytes)}", f"measured peak    {size(self.peak_bytes)} ({off:+.2f} %)"]
        if plan.budget_bytes is not None:
            lines.append(f"budget           {size(plan.budget_bytes)}")
        lines.append(f"everything kept  {size(plan.base_peak_bytes)}")
        changed = plan.changed()
        if changed:
            lines.append(f"recomputed       {plan.recomputed} operations, the largest:")
            lines += [f"    {name}: {runs} runs, {size(count)}" for name, runs, count in changed[:10]]
        return "\n".join(lines)
