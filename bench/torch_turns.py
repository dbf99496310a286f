#!/usr/bin/env python3
"""Training steps in bf16 by turns, on the CPU: Remat, PyTorch eager, and PyTorch compiled, each with the same model, batch and optimizer.

    bench/torch_turns.py build/remat examples/models/gpt_bench.ini --threads 2 16

Remat keeps everything. PyTorch runs with autocast to bf16 and its own defaults of OpenMP. Making the samples does not count on either
side. Both PyTorch nets stay in this process, and each round runs some steps of each program. A row: medians of the rounds, and Remat's
time as a share of PyTorch's better one.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_step import Step


def remat_step(given, threads):
    command = [given.remat, "train", given.model, "--strategy", "none", "--threads", str(threads), "--steps", str(given.steps),
               "--set", "model.precision=bf16", "--json", "-q"]
    if given.batch:
        command += ["--set", f"model.batch_size={given.batch}", "--set", f"dataset.samples={2 * given.batch}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    return result["step_seconds"] - result["data_seconds"]  # PyTorch's batches are made before the clock runs


def torch_step(step, steps):
    seconds = []
    for number in range(steps + 1):
        began = time.perf_counter()
        step.run(number)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("remat", help="the program, such as build/remat")
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, help="samples a batch (default: the model's)")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="of each program in each round (default: 8)")
    parser.add_argument("--no-compile", action="store_true", help="eager PyTorch only")
    given = parser.parse_args()
    torch.set_num_interop_threads(1)
    print(f"{given.model}, batch {given.batch or 'of the model'}, PyTorch {torch.__version__}, ms a step")
    for threads in given.threads:
        torch.set_num_threads(threads)
        if not given.no_compile:
            torch._dynamo.reset()
        sides = {"eager": Step(given.model, given.batch, bf16=True)}
        if not given.no_compile:
            sides["compiled"] = Step(given.model, given.batch, bf16=True, compiled=True)
        for step in sides.values():
            step.run(0)
        times = {name: [] for name in ["remat", *sides]}
        for _ in range(given.rounds):
            times["remat"].append(remat_step(given, threads))
            for name, step in sides.items():
                times[name].append(torch_step(step, given.steps))
        median = {name: statistics.median(values) for name, values in times.items()}
        best = min(value for name, value in median.items() if name != "remat")
        print(f"{threads:2} threads  " + "  ".join(f"{name} {1e3 * value:7.1f}" for name, value in median.items())
              + f"  remat/best {median['remat'] / best:.2f}  rounds "
              + "; ".join(f"{name} " + " ".join(f"{1e3 * value:.0f}" for value in values) for name, values in times.items()),
              flush=True)


if __name__ == "__main__":
    main()
