"""The GPT of gpt_budgets.py under torch.compile: as it is, with PyTorch's own budgets, and with the planner as the partitioner.

    PYTHONPATH=build/python python3 bench/torch/gpt_compiled.py [--own 0.6 ...] [--at 10.5GiB 8GiB ...]
"""
import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import remat
import remat.torch
from gpt_budgets import measure
from plain_gpt import GPT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--own", nargs="*", type=float, default=[], help="activation_memory_budget")
    parser.add_argument("--at", nargs="*", default=[])
    parser.add_argument("--steps", type=int, default=8)
    given = parser.parse_args()
    torch.manual_seed(0)
    model = GPT(given.layers).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batch = tuple(torch.randint(0, 50304, (given.batch, 1024), device="cuda") for _ in range(2))

    def row(kind, module, more=""):
        took, peak, loss = measure(module, optimizer, batch, "cuda", given.steps)
        print(f"{kind:24} {took:7.1f} ms  peak {peak / 2.0 ** 30:6.3f} GiB  loss {loss:.4f}{more}", flush=True)

    for fraction in given.own:
        torch._dynamo.reset()
        with torch._functorch.config.patch(activation_memory_budget=fraction):
            row(f"its own budget {fraction}", torch.compile(model, dynamic=False))
    for text in given.at:
        torch._dynamo.reset()
        module = remat.torch.compile_module(model, text)
        try:
            measure(module, optimizer, batch, "cuda", 1)
        except Exception as error:  # the next budget may still work
            print(f"{text}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
            continue
        plan = module.partitioner.plans[-1]
        row(f"planned for {text}", module, f"  predicted {plan.peak_bytes / 2.0 ** 30:.3f} GiB, smallest "
            f"{plan.min_budget_bytes / 2.0 ** 30:.3f} GiB")


if __name__ == "__main__":
    main()
