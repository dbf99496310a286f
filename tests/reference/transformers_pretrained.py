"""Records what the library `transformers` computes with small random models of the families of docs/pretrained.md: logits, the losses
of 20 steps of full fine-tuning and of 20 steps of LoRA, in fp32. The folders are written by the library, so their config.json
has its present form. Needs transformers 5; where `peft` is installed, it must read the adapters and give the same logits.

    python3 tests/reference/transformers_pretrained.py tests/reference/transformers

writes a folder for each family, with config.json, weights in bf16, an adapter in PEFT's layout and reference.txt, which
tests/train/test_pretrained.c compares with."""

import json
import os
import sys

import torch
import torch.nn.functional as F
import transformers

from torch_pretrained import ALPHA, RANK, STEPS, sample, save

VOCABULARY, WIDTH, INNER = 96, 32, 48
COMMON = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
LLAMA = dict(COMMON, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)


def rope(kind, theta, **more):
    return {"rope_type": kind, "rope_theta": theta, **more}


CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(n_embd=WIDTH, n_layer=2, n_head=4, n_positions=16, **COMMON),
    "llama": lambda: transformers.LlamaConfig(
        tie_word_embeddings=False,
        rope_parameters=rope("llama3", 500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=16), **LLAMA),
    "llama_linear": lambda: transformers.LlamaConfig(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rope_parameters=rope("linear", 1000.0, factor=2.0), **LLAMA),
    "mistral": lambda: transformers.MistralConfig(
        tie_word_embeddings=False, sliding_window=5, head_dim=16, rope_parameters=rope("default", 10000.0), **LLAMA),
    "qwen2": lambda: transformers.Qwen2Config(
        tie_word_embeddings=True,
        rope_parameters=rope("yarn", 1000.0, factor=4.0, original_max_position_embeddings=16), **LLAMA),
    "qwen3": lambda: transformers.Qwen3Config(
        tie_word_embeddings=True, head_dim=12, rope_parameters=rope("default", 1000.0), **LLAMA),
}
TARGETS = {"gpt2": ["c_attn", "c_proj", "c_fc"], "llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
           "llama_linear": ["o_proj", "up_proj"], "mistral": ["q_proj", "v_proj"], "qwen2": ["k_proj", "down_proj"],
           "qwen3": ["q_proj", "v_proj", "gate_proj"]}


def make_folder(name, folder):
    """Weights are multiples of 1/64, so that bf16 has them and git compresses them."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name]())
    generator = torch.Generator().manual_seed(len(name) + 5)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            scale = 0.15 if parameter.dim() > 1 else 0.1
            values = torch.round(torch.randn(parameter.shape, generator=generator) * scale * 64) / 64
            is_norm = "norm" in parameter_name or ".ln_" in parameter_name
            parameter.copy_(values + 1 if is_norm and parameter_name.endswith("weight") else values)
    model.to(torch.bfloat16).save_pretrained(folder)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))


def load(folder):
    """Without dropout, which config.json has and Remat does not apply."""
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def adapt(model, targets):
    """Adds adapters to the modules that are named, and freezes the rest. Returns the adapters by the names of PEFT."""
    generator = torch.Generator().manual_seed(99)
    adapter = {}
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for name, module in model.named_modules():
        if name.split(".")[-1] not in targets:
            continue
        is_conv = isinstance(module, transformers.pytorch_utils.Conv1D)
        outputs, inputs = module.weight.shape[::-1] if is_conv else module.weight.shape
        a = (torch.randn((RANK, inputs), generator=generator) * 0.3).requires_grad_(True)
        b = (torch.randn((outputs, RANK), generator=generator) * 0.2).requires_grad_(True)
        adapter[name + ".lora_A"], adapter[name + ".lora_B"] = a, b
        module.register_forward_hook(lambda _, inputs, out, a=a, b=b: out + ALPHA / RANK * F.linear(F.linear(inputs[0], a), b))
    return adapter


def save_adapter(folder, name, adapter):
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "adapter_model.safetensors"),
         {"base_model.model." + key + ".weight": value for key, value in adapter.items()}, "F32")
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0,
                   "bias": "none", "fan_in_fan_out": name == "gpt2", "target_modules": TARGETS[name]}, file, indent=2)
        file.write("\n")


def logits_of(model):
    tokens, _ = sample(0, VOCABULARY)
    with torch.no_grad():
        return model(input_ids=tokens[:1]).logits.flatten()


def train(model, trained):
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.01},
              {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=2e-3)
    losses = []
    for step in range(STEPS):
        tokens, labels = sample(step, VOCABULARY)
        loss = F.cross_entropy(model(input_ids=tokens).logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare_with_peft(folder, wanted):
    try:
        import peft
    except ImportError:
        print("peft is not installed")
        return
    model = peft.PeftModel.from_pretrained(load(folder), os.path.join(folder, "adapter")).eval()
    difference = (logits_of(model) - wanted).abs().max().item()
    print("peft", peft.__version__, "differs by", difference)
    assert difference < 1e-5


def record(name, folder):
    make_folder(name, folder)
    lines = {"logits": logits_of(load(folder))}
    model = load(folder)
    lines["full"] = train(model, list(model.parameters()))
    model = load(folder)
    adapter = adapt(model, TARGETS[name])
    save_adapter(os.path.join(folder, "adapter"), name, adapter)
    lines["adapted"] = logits_of(model)
    lines["lora"] = train(model, list(adapter.values()))
    compare_with_peft(folder, lines["adapted"])
    with open(os.path.join(folder, "reference.txt"), "w") as file:
        for line, values in lines.items():
            file.write(line + " " + " ".join(f"{float(v):.8g}" for v in values) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("torch", torch.__version__, "transformers", transformers.__version__)
    for family in CONFIGS:
        record(family, os.path.join(sys.argv[1], family))
        print(family)
