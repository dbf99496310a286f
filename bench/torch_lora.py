#!/usr/bin/env python3
"""Times a LoRA step of PyTorch and one of remat by turns, on the CPU, with a folder that bench/random_folder.py filled: rank 8 on all
linear layers, batch 1, nothing recomputed. It needs PyTorch alone, 1.13 or later; bench/torch/lora_step.py compares with the library
transformers.

    REMAT=build/remat /usr/bin/python3 bench/torch_lora.py FOLDER [--threads 2] [--length 256] [--precision fp32 bf16] [--rounds 3]

The model is tests/reference/torch_pretrained.py. PyTorch has the frozen weights and all activations in the precision that is said, and
the adapters in fp32; remat has --frozen and model.precision. A processor that Debian's OpenBLAS does not know is said to it
(bench/torch_blas.py). One line for each precision: the medians of all steps but the first of each round. It needs an idle machine."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "tests", "reference"))


def choose_core():
    """Starts this program again with the core type that OpenBLAS should use; it must be said before PyTorch is loaded."""
    said = subprocess.run([sys.executable, os.path.join(HERE, "torch_blas.py")], stdout=subprocess.PIPE, text=True).stdout.split("\n")
    if len(said) > 1 and said[1].startswith("OPENBLAS_CORETYPE=") and "OPENBLAS_CORETYPE" not in os.environ:
        name, value = said[1].split("=")
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, **{name: value}))
    return said[0]


BLAS = choose_core()
import torch
import torch.nn.functional as F

import torch_pretrained

RANK, ALPHA, STEPS = 8, 16.0, 3
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def read_weights(folder, dtype):
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        weights = {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            first, end = about["data_offsets"]
            file.seek(8 + length + first)
            values = torch.frombuffer(bytearray(file.read(end - first)), dtype=torch.bfloat16)
            weights[name] = values.view(about["shape"]).to(dtype)
    return weights


class Torch:
    def __init__(self, folder, length, precision):
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)
        self.dtype = TYPES[precision]
        self.weights = read_weights(folder, self.dtype)
        torch.manual_seed(0)
        self.adapter = {}
        for name, weight in self.weights.items():
            layer = name[: -len(".weight")]
            if name.endswith(".weight") and layer.split(".")[-1] in LINEAR:
                self.adapter[layer + ".lora_A"] = torch.randn(RANK, weight.shape[1]) / weight.shape[1] ** 0.5
                self.adapter[layer + ".lora_B"] = torch.zeros(weight.shape[0], RANK)
        for tensor in self.adapter.values():
            tensor.requires_grad_(True)
        self.optimizer = torch.optim.AdamW(list(self.adapter.values()), lr=1e-4)
        self.tokens = torch.randint(0, self.config["vocab_size"], (1, length + 1))

    def steps(self, count):
        """Seconds of all steps but the first."""
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            adapter = {name: tensor.to(self.dtype) for name, tensor in self.adapter.items()}
            logits = torch_pretrained.forward(self.config, self.weights, adapter, self.tokens[:, :-1])
            F.cross_entropy(logits[0].float(), self.tokens[0, 1:]).backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            seconds.append(time.perf_counter() - began)
        return seconds[1:]


def remat_steps(folder, options, precision):
    """Seconds of all steps but the first."""
    with tempfile.TemporaryDirectory() as work:
        log = os.path.join(work, "log.jsonl")
        settings = ["--frozen", "bf16", "--set", "model.precision=bf16"] if precision == "bf16" else []
        subprocess.run([os.environ.get("REMAT", "build/remat"), "train", folder, "--length", str(options.length), "--lora",
                        f"rank={RANK}", "--set", "dataset.type=random", "--steps", str(STEPS), "--threads", str(options.threads),
                        "--log", log, "-q", *settings], check=True, stdout=subprocess.DEVNULL)
        with open(log) as file:
            return [json.loads(line)["seconds"] for line in file if '"seconds"' in line][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--precision", nargs="*", default=["fp32", "bf16"], choices=list(TYPES))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch_pretrained.RANK, torch_pretrained.ALPHA = RANK, ALPHA
    print("torch", torch.__version__ + ",", BLAS, flush=True)
    for precision in options.precision:
        judge = Torch(options.folder, options.length, precision)
        times = {"PyTorch": [], "remat": []}
        for _ in range(options.rounds):
            times["PyTorch"] += judge.steps(STEPS)
            times["remat"] += remat_steps(options.folder, options, precision)
        a, b = statistics.median(times["PyTorch"]), statistics.median(times["remat"])
        print(f"{precision}, {options.threads} threads: PyTorch {a:.3f} s ({min(times['PyTorch']):.3f} to {max(times['PyTorch']):.3f}), "
              f"remat {b:.3f} s ({min(times['remat']):.3f} to {max(times['remat']):.3f}) a step, {b / a:.2f} times", flush=True)
        del judge


main()
