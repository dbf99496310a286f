"""Records what PyTorch computes with small models of the families of docs/pretrained.md: logits, the losses of 20 steps of full
fine-tuning and of 20 steps of LoRA. The models are written here from their public definitions, without the `transformers`
package and without any code of this project.

    /usr/bin/python3 tests/reference/torch_pretrained.py tests/reference/pretrained

writes a folder for each family with config.json, random weights, an adapter in PEFT's layout and reference.txt, which
tests/train/test_pretrained.c compares with."""

import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F

LENGTH, BATCH, STEPS = 12, 2, 20
RANK, ALPHA, TARGETS = 4, 6.0, {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"], "mistral": ["q_proj", "up_proj"],
                                "qwen2": ["k_proj", "o_proj", "down_proj"], "qwen3": ["q_proj", "v_proj", "gate_proj"]}
DTYPES = {"gpt2": "F32", "llama": "BF16", "mistral": "F16", "qwen2": "F32", "qwen3": "BF16"}
SHARDED = {"qwen2"}

LLAMA = {"vocab_size": 48, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu"}
CONFIGS = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 48, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 20,
             "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "resid_pdrop": 0.1},
    "llama": dict(LLAMA, model_type="llama", rope_theta=500.0, tie_word_embeddings=False,
                  rope_scaling={"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 16}),
    "mistral": dict(LLAMA, model_type="mistral", sliding_window=5, head_dim=8, tie_word_embeddings=False,
                    rope_theta=10000.0),
    "qwen2": dict(LLAMA, model_type="qwen2", tie_word_embeddings=True, rope_theta=1000.0, use_sliding_window=False,
                  sliding_window=4, max_window_layers=2,
                  rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}),
    "qwen3": dict(LLAMA, model_type="qwen3", tie_word_embeddings=True, rope_theta=1000.0, head_dim=6,
                  attention_bias=False, hidden_act="gelu", rope_scaling={"rope_type": "linear", "factor": 2.0}),
}


# ---- weights ----

def shapes(config):
    """The tensors of a family, as its files name them."""
    family, all_shapes = config["model_type"], {}
    if family == "gpt2":
        d, inner = config["n_embd"], 4 * config["n_embd"]
        all_shapes["transformer.wte.weight"] = (config["vocab_size"], d)
        all_shapes["transformer.wpe.weight"] = (config["n_positions"], d)
        for i in range(config["n_layer"]):
            h = f"transformer.h.{i}."
            for norm in ("ln_1", "ln_2"):
                all_shapes[h + norm + ".weight"] = all_shapes[h + norm + ".bias"] = (d,)
            for name, inputs, outputs in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, inner),
                                          ("mlp.c_proj", inner, d)):
                all_shapes[h + name + ".weight"] = (inputs, outputs)
                all_shapes[h + name + ".bias"] = (outputs,)
        all_shapes["transformer.ln_f.weight"] = all_shapes["transformer.ln_f.bias"] = (d,)
        return all_shapes
    d, inner, heads, kv = (config[k] for k in ("hidden_size", "intermediate_size", "num_attention_heads",
                                               "num_key_value_heads"))
    size = config.get("head_dim", d // heads)
    all_shapes["model.embed_tokens.weight"] = (config["vocab_size"], d)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        all_shapes[layer + "input_layernorm.weight"] = all_shapes[layer + "post_attention_layernorm.weight"] = (d,)
        for name, inputs, outputs in (("self_attn.q_proj", d, heads * size), ("self_attn.k_proj", d, kv * size),
                                      ("self_attn.v_proj", d, kv * size), ("self_attn.o_proj", heads * size, d),
                                      ("mlp.gate_proj", d, inner), ("mlp.up_proj", d, inner),
                                      ("mlp.down_proj", inner, d)):
            all_shapes[layer + name + ".weight"] = (outputs, inputs)
            if family == "qwen2" and name[-6:] in ("q_proj", "k_proj", "v_proj"):
                all_shapes[layer + name + ".bias"] = (outputs,)
        if family == "qwen3":
            all_shapes[layer + "self_attn.q_norm.weight"] = all_shapes[layer + "self_attn.k_norm.weight"] = (size,)
    all_shapes["model.norm.weight"] = (d,)
    if not config["tie_word_embeddings"]:
        all_shapes["lm_head.weight"] = (config["vocab_size"], d)
    return all_shapes


def is_norm(name):
    return "norm" in name or ".ln_" in name


def make_weights(config, dtype):
    generator = torch.Generator().manual_seed(len(config["model_type"]) + 17)
    weights = {}
    for name, shape in shapes(config).items():
        w = torch.randn(shape, generator=generator) * (0.15 if len(shape) > 1 else 0.1)
        if is_norm(name) and name.endswith("weight"):
            w = w + 1
        weights[name] = w.to({"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}[dtype]).float()
    return weights


def make_adapter(config, weights):
    generator = torch.Generator().manual_seed(99)
    adapter = {}
    for name, w in weights.items():
        layer = name[:-len(".weight")]
        if not name.endswith(".weight") or layer.split(".")[-1] not in TARGETS[config["model_type"]]:
            continue
        outputs, inputs = w.shape if config["model_type"] != "gpt2" else w.shape[::-1]
        adapter[layer + ".lora_A"] = torch.randn((RANK, inputs), generator=generator) * 0.3
        adapter[layer + ".lora_B"] = torch.randn((outputs, RANK), generator=generator) * 0.2
    return adapter


# ---- the models ----

def linear(w, adapter, name, x, conv1d=False):
    weight = w[name + ".weight"].t() if conv1d else w[name + ".weight"]
    y = F.linear(x, weight, w.get(name + ".bias"))
    if adapter and name + ".lora_A" in adapter:
        y = y + (ALPHA / RANK) * F.linear(F.linear(x, adapter[name + ".lora_A"]), adapter[name + ".lora_B"])
    return y


def attend(q, k, v, window=None):
    """q: batch, heads, steps, size; k and v may have fewer heads."""
    group, steps = q.shape[1] // k.shape[1], q.shape[2]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    i, j = torch.arange(steps)[:, None], torch.arange(steps)[None, :]
    seen = j <= i if window is None else (j <= i) & (i - j < window)
    out = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
    return out.transpose(1, 2).flatten(2)


def split_heads(x, size):
    return x.unflatten(-1, (-1, size)).transpose(1, 2)


def gpt2(config, w, adapter, tokens):
    d, heads = config["n_embd"], config["n_head"]
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]

    def norm(name, value):
        return F.layer_norm(value, (d,), w[name + ".weight"], w[name + ".bias"], config["layer_norm_epsilon"])

    for i in range(config["n_layer"]):
        h = f"transformer.h.{i}."
        q, k, v = linear(w, adapter, h + "attn.c_attn", norm(h + "ln_1", x), True).split(d, -1)
        attended = attend(*(split_heads(t, d // heads) for t in (q, k, v)))
        x = x + linear(w, adapter, h + "attn.c_proj", attended, True)
        inner = linear(w, adapter, h + "mlp.c_fc", norm(h + "ln_2", x), True)
        inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner ** 3)))
        x = x + linear(w, adapter, h + "mlp.c_proj", inner, True)
    return F.linear(norm("transformer.ln_f", x), w["transformer.wte.weight"])


def frequencies(config, size):
    base, scaling = config["rope_theta"], config.get("rope_scaling") or {}
    inv = 1.0 / (base ** (torch.arange(0, size, 2).float() / size))
    kind, factor, scale = scaling.get("rope_type", scaling.get("type")), scaling.get("factor", 1.0), 1.0
    if kind == "linear":
        inv = inv / factor
    elif kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        length = scaling["original_max_position_embeddings"]
        wavelength = 2 * math.pi / inv
        smooth = (length / wavelength - low) / (high - low)
        smoothed = (1 - smooth) * inv / factor + smooth * inv
        inv = torch.where(wavelength > length / low, inv / factor, torch.where(wavelength < length / high, inv, smoothed))
    elif kind == "yarn":
        length = scaling["original_max_position_embeddings"]

        def dimension(turns):
            return size * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

        first, last = max(math.floor(dimension(32)), 0), min(math.ceil(dimension(1)), size - 1)
        ramp = ((torch.arange(size // 2).float() - first) / (last - first if last != first else 0.001)).clamp(0, 1)
        inv = inv / factor * ramp + inv * (1 - ramp)
        scale = 0.1 * math.log(factor) + 1
    return inv, scale


def llama(config, w, adapter, tokens):
    d, heads, kv = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    size, eps = config.get("head_dim", d // heads), config["rms_norm_eps"]
    inv, scale = frequencies(config, size)
    angles = torch.arange(tokens.shape[1]).float()[:, None] * inv[None, :]
    cos, sin = (torch.cat((f(angles), f(angles)), -1) * scale for f in (torch.cos, torch.sin))
    activation = F.silu if config["hidden_act"] == "silu" else F.gelu
    window = config.get("sliding_window") if config["model_type"] == "mistral" else None

    def norm(name, value):
        return value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + eps) * w[name + ".weight"]

    def rotate(x):
        a, b = x.chunk(2, -1)
        return x * cos.to(x.dtype) + torch.cat((-b, a), -1) * sin.to(x.dtype)

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        h = norm(layer + "input_layernorm", x)
        q, k, v = (split_heads(linear(w, adapter, layer + f"self_attn.{n}_proj", h), size) for n in "qkv")
        if config["model_type"] == "qwen3":
            q, k = norm(layer + "self_attn.q_norm", q), norm(layer + "self_attn.k_norm", k)
        x = x + linear(w, adapter, layer + "self_attn.o_proj", attend(rotate(q), rotate(k), v, window))
        h = norm(layer + "post_attention_layernorm", x)
        gate, up = linear(w, adapter, layer + "mlp.gate_proj", h), linear(w, adapter, layer + "mlp.up_proj", h)
        x = x + linear(w, adapter, layer + "mlp.down_proj", activation(gate) * up)
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    return F.linear(norm("model.norm", x), w[head])


def forward(config, weights, adapter, tokens):
    return (gpt2 if config["model_type"] == "gpt2" else llama)(config, weights, adapter, tokens)


# ---- training ----

def sample(step, vocabulary):
    """The tokens of a step and those that follow them, as test_pretrained.c makes them."""
    at = torch.arange(LENGTH + 1)[None, :] + torch.arange(BATCH)[:, None] * 31 + step * 7
    tokens = (at * at * 3 + at * 5 + 1) % vocabulary
    return tokens[:, :-1], tokens[:, 1:]


def train(config, weights, adapter):
    weights = {n: w.clone() for n, w in weights.items()}
    adapter = {n: a.clone() for n, a in adapter.items()} if adapter else None
    trained = adapter if adapter else weights
    for tensor in trained.values():
        tensor.requires_grad_(True)
    matrices = [t for t in trained.values() if t.dim() > 1]
    vectors = [t for t in trained.values() if t.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=2e-3)
    losses = []
    for step in range(STEPS):
        tokens, labels = sample(step, config["vocab_size"])
        logits = forward(config, weights, adapter, tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- files ----

def save(path, tensors, dtype):
    def data(t):
        t = t.detach().contiguous()
        if dtype == "BF16":
            return (t.bfloat16().view(torch.int16)).numpy().tobytes()
        return (t.half() if dtype == "F16" else t).numpy().tobytes()

    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        values = data(tensor)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(values)]}
        body += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def record(folder, config):
    family, dtype = config["model_type"], DTYPES[config["model_type"]]
    os.makedirs(os.path.join(folder, "adapter"), exist_ok=True)
    weights = make_weights(config, dtype)
    adapter = make_adapter(config, weights)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(dict(config, torch_dtype={"F32": "float32", "BF16": "bfloat16", "F16": "float16"}[dtype]), file, indent=2)
        file.write("\n")
    if family in SHARDED:
        names = list(weights)
        halves = names[: len(names) // 2], names[len(names) // 2:]
        index = {"metadata": {}, "weight_map": {}}
        for i, part in enumerate(halves):
            shard = f"model-{i + 1:05}-of-00002.safetensors"
            save(os.path.join(folder, shard), {n: weights[n] for n in part}, dtype)
            index["weight_map"].update({n: shard for n in part})
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
            json.dump(index, file, indent=1)
            file.write("\n")
    else:
        save(os.path.join(folder, "model.safetensors"), weights, dtype)
    save(os.path.join(folder, "adapter", "adapter_model.safetensors"),
         {"base_model.model." + n + ".weight": a for n, a in adapter.items()}, "F32")
    with open(os.path.join(folder, "adapter", "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0,
                   "bias": "none", "fan_in_fan_out": family == "gpt2", "target_modules": TARGETS[family]}, file, indent=2)
        file.write("\n")
    tokens, _ = sample(0, config["vocab_size"])
    with torch.no_grad():
        logits, adapted = (forward(config, weights, a, tokens[:1]).flatten() for a in (None, adapter))
    lines = {"logits": logits, "adapted": adapted, "full": train(config, weights, None), "lora": train(config, weights, adapter)}
    with open(os.path.join(folder, "reference.txt"), "w") as file:
        for name, values in lines.items():
            file.write(name + " " + " ".join(f"{float(v):.9g}" for v in values) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for family_name, family_config in CONFIGS.items():
        record(os.path.join(sys.argv[1], family_name), family_config)
