"""Modules of torchvision and transformers, each planned at five budgets: are loss and gradients the same bits as without a plan?

    PYTHONPATH=build/python python3 bench/torch/library_modules.py [--device cuda] [--batch N] [NAME ...]

One line a module: the smallest and the largest peak, and how many of the budgets gave the same bits.
"""
import argparse
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

import remat
import remat.torch

VISION = {"resnet50": 64, "densenet121": 64, "efficientnet_b0": 64, "vit_b_16": 64, "swin_t": 64, "deeplabv3_resnet50": 64}
TEXT = ["gpt2", "llama", "bert", "t5", "whisper", "mamba", "qwen2"]


class Loss(torch.nn.Module):
    """A module with the sum of its outputs' squares, so that every output counts."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        out = self.inner(*args, **kwargs)
        if isinstance(out, torch.Tensor):
            return out.float().square().mean()
        if "loss" in out:
            return out["loss"]
        return sum(value.float().square().mean() for value in out.values() if isinstance(value, torch.Tensor))


def vision(name, batch, device):
    import torchvision
    size = VISION[name]
    if name.startswith("deeplab"):
        inner = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, aux_loss=True)
    else:
        inner = getattr(torchvision.models, name)(**({"image_size": size} if name.startswith("vit") else {}))
    return inner, (torch.randn(batch, 3, size, size, device=device),), {}


def text(name, batch, device):
    import transformers as t
    length, vocabulary = 64, 512
    ids = torch.randint(10, vocabulary, (batch, length), device=device)
    known = {"input_ids": ids, "labels": ids}
    common = {"vocab_size": vocabulary, "use_cache": False}
    if name == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(n_layer=4, n_embd=128, n_head=4, n_positions=length, **common)), (), known
    if name == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(num_hidden_layers=4, hidden_size=128, intermediate_size=256,
                                                num_attention_heads=4, **common)), (), known
    if name == "bert":
        return t.BertForMaskedLM(t.BertConfig(num_hidden_layers=4, hidden_size=128, intermediate_size=256,
                                              num_attention_heads=4, **common)), (), known
    if name == "t5":
        return t.T5ForConditionalGeneration(t.T5Config(num_layers=2, d_model=128, d_kv=32, d_ff=256, num_heads=4,
                                                       decoder_start_token_id=0, pad_token_id=0, **common)), (), known
    if name == "whisper":
        config = t.WhisperConfig(encoder_layers=2, decoder_layers=2, d_model=128, encoder_attention_heads=4,
                                 decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, num_mel_bins=80,
                                 max_source_positions=100, dropout=0.1, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                 decoder_start_token_id=1, **common)
        features = torch.randn(batch, 80, 200, device=device)
        # In training it draws a number for each layer and decides by it whether to run the layer: no plan can know that.
        return t.WhisperForConditionalGeneration(config), (), {"input_features": features, "labels": ids}
    if name == "qwen2":
        return t.Qwen2ForCausalLM(t.Qwen2Config(num_hidden_layers=4, hidden_size=128, intermediate_size=256,
                                                num_attention_heads=4, num_key_value_heads=2, **common)), (), known
    config = t.MambaConfig(num_hidden_layers=3, hidden_size=128, state_size=8, **common)
    return t.MambaForCausalLM(config), (), known


def step(module, owner, args, kwargs):
    torch.manual_seed(7)
    owner.zero_grad(set_to_none=True)
    loss = module(*args, **kwargs)
    loss.backward()
    return loss.detach(), [p.grad for p in owner.parameters()], [b.clone() for b in owner.buffers()]


def same(a, b):
    return torch.equal(a[0], b[0]) and all(
        (x is None and y is None) or (x is not None and y is not None and torch.equal(x, y))
        for part in (1, 2) for x, y in zip(a[part], b[part]))


def check(name, batch, device, budgets):
    # Some operations of torchvision's modules have no deterministic kernels on CUDA: they run, and say so.
    torch.use_deterministic_algorithms(True, warn_only=name in VISION)
    torch.manual_seed(0)
    inner, args, kwargs = (vision if name in VISION else text)(name, batch, device)
    inner.train(name != "whisper")
    module = Loss(inner.to(device))
    before = {key: value.clone() for key, value in module.state_dict().items()}
    kept = step(module, module, args, kwargs)
    kept = (kept[0], [None if g is None else g.clone() for g in kept[1]], kept[2])
    module.load_state_dict(before)
    repeat = step(module, module, args, kwargs)
    deterministic = same(kept, repeat)
    began = time.perf_counter()
    planned = remat.torch.auto_checkpoint(module, args, "100TiB", example_kwargs=kwargs, fallback=False)
    plan = planned.plan
    smallest = plan.min_budget_bytes
    largest = max(smallest, plan.base_peak_bytes)  # the smallest budget has a reserve for the allocator
    good, within, worst = 0, 0, 0.0
    for i in range(budgets):
        budget = smallest + (largest - smallest) * i // (budgets - 1)
        planned.set_budget(budget)
        module.load_state_dict(before)
        result = step(planned, module, args, kwargs)
        equal = same(kept, result)
        good += equal
        del result
        module.zero_grad(set_to_none=True)
        module.load_state_dict(before)
        with planned.measure() as memory:
            step(planned, module, args, kwargs)
        within += memory.peak_bytes <= budget + 512
        worst = max(worst, abs(memory.peak_bytes / planned.plan.peak_bytes - 1))
    size = remat.format_size
    print(f"{name:20} {len(plan.graph_json['actions']):5} actions  {size(smallest):>10} .. {size(largest):>10}  "
          f"same bits {good}/{budgets}  within budget {within}/{budgets} (predicted to {100 * worst:.2f} %)"
          f"{'' if deterministic else '  (two unplanned runs differ)'}  capture {plan.capture_seconds:.1f} s, "
          f"all {time.perf_counter() - began:.1f} s", flush=True)
    return good == budgets or not deterministic


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="default: all of torchvision's, and transformers' where it is installed")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--budgets", type=int, default=5)
    given = parser.parse_args()
    torch.backends.cudnn.benchmark = False
    names = given.names
    if not names:
        names = list(VISION)
        try:
            import transformers  # noqa: F401
            names += TEXT
        except ImportError:
            print("transformers is not installed: its modules are left out", file=sys.stderr)
    failed = []
    for name in names:
        try:
            if not check(name, given.batch, given.device, given.budgets):
                failed.append(name)
        except Exception as error:  # one module's failure shall not hide the others' results
            print(f"{name:20} {type(error).__name__}: {str(error)[:600]}", flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
