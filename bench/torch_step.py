#!/usr/bin/env python3
"""PyTorch's time for a training step of a model file, and the peak resident memory of its process, as one line of JSON.
The same layers, batch and optimizer as `remat train` runs; eager or compiled, single precision or bf16 autocast, on the CPU.

    bench/torch_step.py examples/models/gpt_bench.ini --steps 8 --checkpoint
"""
import argparse
import json
import os
import resource
import statistics
import sys
import time

# Threads that spin between operations take the cores from those that compute; it must be said before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "reference"))
import torch

from ini_model import read_model
from made_data import Data
from torch_model import TorchModel


class Step:
    """A model file as a PyTorch net with its optimizer, and two batches that the steps see by turns."""

    def __init__(self, path, batch_size=None, per_copy=False, bf16=False, compiled=False):
        model = read_model(path)
        torch.manual_seed(0)
        self.net = TorchModel(model)
        self.net.own_dropout = False
        size = batch_size or model.get("model", "batch_size", 1, int)
        data = Data(model, self.net.fields, self.net.seed)
        # Made before the clock runs.
        self.batches = [self.net.batch(data.batch(0, i * size % max(1, data.samples - size + 1), size)) for i in range(2)]
        self.optimizer = self.net.optimizer()
        self.loss_of = torch.compile(self.net.loss) if compiled else self.net.loss
        self.per_copy, self.bf16 = per_copy, bf16

    def run(self, number):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            loss = self.loss_of(self.batches[number % 2], self.per_copy)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def measure(path, steps, batch_size, per_copy, bf16, compiled):
    step = Step(path, batch_size, per_copy, bf16, compiled)
    seconds, cpu_seconds, value = [], [], 0.0
    for number in range(steps + 1):
        began, cpu_began = time.perf_counter(), time.process_time()
        value = step.run(number)
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - cpu_began)
    return {
        "torch": torch.__version__,
        "steps": steps,
        "last_loss": value,
        "step_seconds": statistics.median(seconds[1:]),  # the first step warms up
        "cpu_seconds": statistics.median(cpu_seconds[1:]),
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--steps", type=int, default=5, help="timed steps behind one that warms up (default: 5)")
    parser.add_argument("--batch", type=int, help="samples a batch (default: the model's)")
    parser.add_argument("--checkpoint", action="store_true",
                        help="torch.utils.checkpoint around each copy of the repeated group of layers")
    parser.add_argument("--bf16", action="store_true", help="with autocast to bf16")
    parser.add_argument("--compile", action="store_true", help="with torch.compile (PyTorch 2)")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_num_interop_threads(1)
    print(json.dumps(measure(given.model, given.steps, given.batch, given.checkpoint, given.bf16, given.compile)))


if __name__ == "__main__":
    main()
