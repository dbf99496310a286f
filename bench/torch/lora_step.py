"""Times a LoRA step of transformers and one of remat by turns, on the CPU: the shape of Qwen2.5-0.5B with random weights, rank 8 on all
linear layers, 256 tokens, batch 1, nothing recomputed.

    REMAT=build/remat python3 bench/torch/lora_step.py WORK [--threads 2] [--precision fp32] [--rounds 2]

WORK gets a folder of 1 GB with the weights, which is used again if it is there. One line for each number of threads and precision:
the medians of both. PyTorch has the weights in the precision that is said, and the adapters in fp32; remat has all activations and
products in it too, and the frozen weights with --frozen."""
import argparse
import json
import os
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F
import transformers

RANK, LENGTH = 8, 256
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def make_folder(folder):
    config = transformers.Qwen2Config(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
                                      num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768,
                                      tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)


class Lora(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.a = torch.nn.Parameter(torch.randn(RANK, inner.in_features) / inner.in_features ** 0.5)
        self.b = torch.nn.Parameter(torch.zeros(inner.out_features, RANK))

    def forward(self, x):
        a, b = self.a.to(x.dtype), self.b.to(x.dtype)
        return self.inner(x) + 2.0 * F.linear(F.linear(x, a), b)


class Torch:
    def __init__(self, folder, precision):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=TYPES[precision], attn_implementation="sdpa")
        self.model.requires_grad_(False)
        for module in list(self.model.modules()):
            for name, child in list(module.named_children()):
                if name in LINEAR:
                    setattr(module, name, Lora(child))
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-4, fused=True)
        self.tokens = torch.randint(0, 151936, (1, LENGTH + 1))

    def steps(self, count):
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            logits = self.model(input_ids=self.tokens[:, :-1], use_cache=False).logits
            F.cross_entropy(logits[0].float(), self.tokens[0, 1:]).backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            seconds.append(time.perf_counter() - began)
        return seconds


def remat_steps(folder, work, precision, threads, count):
    log = os.path.join(work, "log.jsonl")
    settings = ["--frozen", "bf16", "--set", "model.precision=bf16"] if precision == "bf16" else []
    subprocess.run([os.environ.get("REMAT", "build/remat"), "train", folder, "--length", str(LENGTH), "--lora", f"rank={RANK}", "--set",
                    "dataset.type=random", "--steps", str(count), "--threads", str(threads), "--log", log, "-q", *settings],
                   check=True, stdout=subprocess.DEVNULL)
    with open(log) as file:
        return [json.loads(line)["seconds"] for line in file if '"seconds"' in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--threads", type=int, nargs="*", default=[2])
    parser.add_argument("--precision", nargs="*", default=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="steps in a round, the first of which is not counted (default: 3)")
    options = parser.parse_args()
    folder = os.path.join(options.work, "qwen")
    if not os.path.exists(os.path.join(folder, "model.safetensors")):
        make_folder(folder)
    print("torch", torch.__version__, "transformers", transformers.__version__, flush=True)
    for precision in options.precision:
        judge = Torch(folder, precision)
        for threads in options.threads:
            torch.set_num_threads(threads)
            theirs, ours = [], []
            for _ in range(options.rounds):
                theirs += judge.steps(options.steps)[1:]
                print(f"  {precision}, {threads} threads, PyTorch so far:", [round(s, 3) for s in theirs], flush=True)
                ours += remat_steps(folder, options.work, precision, threads, options.steps)[1:]
                print(f"  {precision}, {threads} threads, remat so far:", [round(s, 3) for s in ours], flush=True)
            a, b = statistics.median(theirs), statistics.median(ours)
            print(f"{precision}, {threads} threads: PyTorch {a:.3f} s, remat {b:.3f} s a step, {b / a:.2f} times", flush=True)
        del judge


main()
