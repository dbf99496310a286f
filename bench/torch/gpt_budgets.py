"""A GPT of 24 blocks of width 1024 at many budgets: predicted and measured peak, time of a training step.

    PYTHONPATH=build/python python3 bench/torch/gpt_budgets.py [--budgets 20] [--at 9.4GiB ...] [--split N]

bf16 autocast, AdamW. The peak is what forward and backward allocate beside weights and optimizer; gradients count.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import remat
import remat.torch
from plain_gpt import GPT
from torch.utils.checkpoint import checkpoint


class PerBlock(torch.nn.Module):
    """The same model with PyTorch's checkpoint around each block."""

    def __init__(self, gpt):
        super().__init__()
        self.gpt = gpt
        for block in gpt.blocks:
            block.plain = block.forward
            block.forward = lambda x, block=block: checkpoint(block.plain, x, use_reentrant=False)

    def forward(self, *args):
        return self.gpt(*args)

    def undo(self):
        for block in self.gpt.blocks:
            del block.forward, block.plain


def measure(module, optimizer, batch, device, steps):
    """Median time of a step in ms, peak of forward and backward, last loss."""
    cuda = device == "cuda"
    times, peak, loss = [], 0, None
    for number in range(steps + 2):
        optimizer.zero_grad(set_to_none=True)
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        began = time.perf_counter()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = module(*batch)
        loss.backward()
        if cuda and number > 0:
            peak = max(peak, torch.cuda.max_memory_allocated() - before)
        optimizer.step()
        if cuda:
            torch.cuda.synchronize()
        if number > 1:
            times.append(1e3 * (time.perf_counter() - began))
        loss = loss.item()
    optimizer.zero_grad(set_to_none=True)
    return statistics.median(times), peak, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--budgets", type=int, default=20)
    parser.add_argument("--at", nargs="*", default=[], help="budgets besides those evenly spread")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--baselines", action="store_true", help="eager and checkpoint per block as well")
    parser.add_argument("--split", type=int, help="split the loss into so many parts (see docs/pytorch.md)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json")
    given = parser.parse_args()
    device = given.device
    torch.manual_seed(0)
    model = GPT(given.layers, given.width, given.width // 64, given.vocabulary, given.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if device == "cuda" else {}))
    shape = (given.batch, given.length)
    batch = tuple(torch.randint(0, given.vocabulary, shape, device=device) for _ in range(2))
    gib, rows = 2.0 ** 30, []

    def row(kind, module, plan=None):
        took, peak, loss = measure(module, optimizer, batch, device, given.steps)
        rows.append({"kind": kind, "ms": took, "peak": peak, "loss": loss, "predicted": plan and plan.peak_bytes,
                     "budget": plan and plan.budget_bytes, "recomputed": plan and plan.recomputed,
                     "cost": plan and plan.cost_ns / 1e6, "plan_s": plan and plan.plan_seconds})
        text = f"{kind:12} {took:7.1f} ms  peak {peak / gib:6.3f} GiB"
        if plan:
            text += (f"  budget {plan.budget_bytes / gib:6.3f}  predicted {plan.peak_bytes / gib:6.3f}"
                     f" ({100 * (peak / plan.peak_bytes - 1):+.2f} %)  operations {plan.cost_ns / 1e6:6.1f} ms"
                     f"  recomputed {plan.recomputed:4}  planned in {plan.plan_seconds:.1f} s"
                     f"{'' if peak <= plan.budget_bytes else '  OVER'}")
        print(text, flush=True)

    row("warm-up", model)
    row("unplanned", model)
    if given.baselines:
        per_block = PerBlock(model)
        row("per block", per_block)
        per_block.undo()
    began = time.perf_counter()
    options = {"split": given.split} if given.split else {}
    with torch.autocast(device, dtype=torch.bfloat16):
        planned = remat.torch.auto_checkpoint(model, batch, "100TiB", **options)
    plan = planned.plan
    print(f"{len(plan.graph_json['actions'])} actions; capture {plan.capture_seconds:.1f} s, costs {plan.cost_seconds:.1f} s, "
          f"plan {plan.plan_seconds:.1f} s, all {time.perf_counter() - began:.1f} s; everything kept "
          f"{plan.base_peak_bytes / gib:.3f} GiB, {plan.base_cost_ns / 1e6:.1f} ms; smallest {plan.min_budget_bytes / gib:.3f} GiB",
          flush=True)
    low, high = plan.min_budget_bytes, plan.base_peak_bytes
    budgets = [low + (high - low) * i // max(1, given.budgets - 1) for i in range(given.budgets)]
    budgets += [remat.parse_size(text) for text in given.at]
    for budget in sorted(budgets):
        try:
            planned.set_budget(budget)
        except remat.torch.BudgetError as error:
            print(error, flush=True)
            continue
        row("planned", planned, planned.plan)
    if given.json:
        with open(given.json, "w") as out:
            json.dump(rows, out)


if __name__ == "__main__":
    main()
