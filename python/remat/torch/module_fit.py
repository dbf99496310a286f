"""Does a module fit? Answered before anything runs on the device."""
import json

import torch

import remat

from .step_plan import describe, parameter_bytes, with_reserve

# Bytes of state for each parameter byte, by optimizer.
OPTIMIZERS = {"none": 0, "sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}


class Fit:
    """What a step needs.

    base_peak_bytes   the peak of what a step allocates with everything kept, gradients included
    min_budget_bytes  the smallest budget for which a schedule was found
    curve             points of peak and cost, the smallest peak first
    parameter_bytes, gradient_bytes, optimizer_bytes, buffer_bytes, input_bytes
                      what is there besides (gradients are also part of the peak)
    """

    def __init__(self, module, args, kwargs, loss, optimizer):
        joint, self.name, _ = describe(module, args, kwargs, loss, costs="model")
        self.graph = remat.Graph.from_json(json.dumps(joint.to_remat(self.name)[0]), name=self.name)
        self.curve = self.graph.curve()
        self.capture_seconds = joint.capture.seconds
        cuda = any(storage.base.device.type == "cuda" for storage in joint.storages)
        self.base_peak_bytes = self.curve.base_peak_bytes
        self.base_cost = self.curve.base_cost
        self.min_budget_bytes = with_reserve(self.curve[0].peak_bytes, cuda)
        self.parameter_bytes = parameter_bytes(module)
        self.gradient_bytes = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
        self.optimizer_bytes = OPTIMIZERS[optimizer] * self.gradient_bytes
        self.buffer_bytes = sum(b.numel() * b.element_size() for b in module.buffers())
        self.input_bytes = sum(s.bytes for s in joint.given[len(joint.capture.slots):])
        self.optimizer = optimizer

    def points(self, count=12):
        """Points of the curve, evenly spread: (peak in bytes, time against everything kept)."""
        places = sorted({i * (len(self.curve) - 1) // max(1, count - 1) for i in range(count)})
        return [(self.curve[i].peak_bytes, self.curve[i].total_cost / max(1, self.base_cost)) for i in places]

    def to_json(self):
        """All figures as a dict that json.dumps takes."""
        return {"name": self.name, "base_peak_bytes": self.base_peak_bytes, "min_budget_bytes": self.min_budget_bytes,
                "parameter_bytes": self.parameter_bytes, "gradient_bytes": self.gradient_bytes,
                "optimizer_bytes": self.optimizer_bytes, "buffer_bytes": self.buffer_bytes, "input_bytes": self.input_bytes,
                "curve": [{"peak_bytes": point.peak_bytes, "cost": point.total_cost} for point in self.curve]}

    def report(self, path, budget=None):
        """Writes a page: the curve, and the plan for `budget`, or with everything kept."""
        self.graph.plan(None if budget is None else remat.parse_size(budget)).report(path, label=self.name)

    def __str__(self):
        size = remat.format_size
        lines = [f"{self.name}: what a step allocates",
                 f"  everything kept        {size(self.base_peak_bytes):>10}",
                 f"  smallest budget        {size(self.min_budget_bytes, round_up=True):>10}",
                 "what is there besides",
                 f"  parameters             {size(self.parameter_bytes):>10}",
                 f"  gradients (in a step)  {size(self.gradient_bytes):>10}",
                 f"  optimizer ({self.optimizer})".ljust(25) + f"{size(self.optimizer_bytes):>10}",
                 f"  buffers and inputs     {size(self.buffer_bytes + self.input_bytes):>10}",
                 "budget and time"]
        lines += [f"  {size(peak, round_up=True):>10}  {100 * (cost - 1):+6.1f} %" for peak, cost in self.points()]
        return "\n".join(lines)


def fit(module, example_inputs, loss=None, *, example_kwargs=None, optimizer="adamw"):
    """What a training step of a module needs, before anything runs.

    module          any nn.Module, on any device
    example_inputs  a tensor or a tuple of arguments
    loss            a function of what the module returns; None: the outputs are handed out as they are
    example_kwargs  keyword arguments
    optimizer       "none", "sgd", "momentum", "adam" or "adamw", for the bytes of its state

    `print(fit(...))` shows a table; `.to_json()` and `.report("page.html")` give the same for programs and people.
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, not {optimizer!r}")
    args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    with torch.enable_grad():
        return Fit(module, tuple(args), example_kwargs, loss, optimizer)
