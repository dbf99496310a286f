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


def measure(path, steps, batch_size, per_copy, bf16, compiled):
    model = read_model(path)
    torch.manual_seed(0)
    net = TorchModel(model)
    net.own_dropout = False
    size = batch_size or model.get("model", "batch_size", 1, int)
    data = Data(model, net.fields, net.seed)
    # Made before the clock runs: the steps see two batches by turns.
    batches = [net.batch(data.batch(0, i * size % max(1, data.samples - size + 1), size)) for i in range(2)]
    optimizer = net.optimizer()
    loss_of = torch.compile(net.loss) if compiled else net.loss
    seconds, cpu_seconds, value = [], [], 0.0
    for step in range(steps + 1):
        began, cpu_began = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = loss_of(batches[step % 2], per_copy)
        loss.backward()
        optimizer.step()
        value = loss.item()
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - cpu_began)
        del loss
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
