"""How long it takes to plan a Llama of 32 blocks, from a config of transformers. The module is on the device; nothing runs.

    PYTHONPATH=build/python python3 bench/torch/llama_planning.py
"""
import time

import torch
import transformers

from remat.torch import StepPlan


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.LlamaConfig(num_hidden_layers=32, hidden_size=1024, intermediate_size=2816, num_attention_heads=16,
                                      use_cache=False)
    model = transformers.LlamaForCausalLM(config).to(device=device, dtype=torch.bfloat16)
    ids = torch.zeros(8, 1024, dtype=torch.long, device=device)
    gib = 2.0 ** 30
    began = time.perf_counter()
    plan = StepPlan(model, (), {"input_ids": ids, "labels": ids}, "100TiB")
    print(f"{len(plan.graph_json['actions'])} actions; capture {plan.capture_seconds:.1f} s, costs {plan.cost_seconds:.1f} s, all "
          f"{time.perf_counter() - began:.1f} s; everything kept {plan.base_peak_bytes / gib:.2f} GiB", flush=True)
    for share in (0.8, 0.5):
        plan.set_budget(int(plan.base_peak_bytes * share))
        print(f"budget {plan.budget_bytes / gib:.2f} GiB: planned in {plan.plan_seconds:.1f} s, peak {plan.peak_bytes / gib:.2f} GiB, "
              f"{100 * (plan.cost_ns / plan.base_cost_ns - 1):+.1f} % time", flush=True)


if __name__ == "__main__":
    main()
