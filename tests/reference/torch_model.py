"""A model file in PyTorch. Tensors are [batch, c, h, w] throughout; parameters have the names that `remat` saves them
by. Each layer is written from its definition; nothing here comes from the engine it is compared with."""
import functools
import json
import math
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import made_data


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, start = json.loads(file.read(length)), 8 + length
        header.pop("__metadata__", None)
        tensors = {}
        for name, about in header.items():
            begin, end = about["data_offsets"]
            file.seek(start + begin)
            tensors[name] = np.frombuffer(file.read(end - begin), "<f4").reshape(about["shape"]).copy()
    return tensors


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "swish": F.silu,
    "softmax": lambda x: torch.softmax(x, -1),
}
# Parts that a layer is made of in the engine; they count where random streams are numbered.
PARTS = {"multi_head_attention": 3}


def padding_of(layer, shape, kernel, stride):
    """Zeros above and left of an image, and below and right."""
    text = layer.text("padding", "valid").lower()
    if text == "valid":
        return (0, 0), (0, 0)
    if text != "same":
        pad = layer.pair("padding", "0")
        return pad, pad
    before, after = [], []
    for size, k, s in zip(shape[1:], kernel, stride):
        over = max(0, ((size - 1) // s) * s + k - size)
        before.append(over // 2)
        after.append(over - over // 2)
    return tuple(before), tuple(after)


class TorchModel:
    def __init__(self, model, dtype=torch.float32):
        self.model, self.dtype = model, dtype
        self.parameters, self.statistics = {}, {}
        self.shapes, self.streams = {}, {}
        self.masks = {}
        self.calls = []  # (layer, function of inputs) in order
        self.fields = []  # of the inputs: (values, bound)
        self.own_dropout = True  # false: PyTorch's, for timing
        self.step = 0
        self.training = True
        self.seed = model.get("model", "seed", 0, int)
        stream = 0
        for layer in model.layers:
            self.streams[layer.name] = stream
            shapes = [self.shapes[name] for name in layer.inputs]
            function, shape = getattr(self, "make_" + layer.kind)(layer, *shapes)
            self.shapes[layer.name] = shape
            self.calls.append((layer, function))
            stream += self.parts(layer)
        self.readers = {}
        for i, (layer, _) in enumerate(self.calls):
            for name in layer.inputs:
                self.readers.setdefault(name, []).append(i)

    @staticmethod
    def parts(layer):
        if layer.kind == "embedding" and layer.count("positions"):
            return 2
        if layer.kind == "fully_connected" and layer.text("activation", "none") != "none":
            return 2
        return PARTS.get(layer.kind, 1)

    # ---- parameters ----

    def parameter(self, name, shape, bound=None, fill=None):
        """Uniform within the bound, or all `fill`, until load() puts others in."""
        value = torch.empty(shape, dtype=self.dtype)
        value = value.fill_(fill) if bound is None else value.uniform_(-bound, bound)
        self.parameters[name] = value.requires_grad_()
        return name

    def place(self):
        return next(iter(self.parameters.values())).device

    def load(self, tensors):
        for name, value in {**self.parameters, **self.statistics}.items():
            if tuple(tensors[name].shape) != tuple(value.shape):
                raise SystemExit("%s is %s in the file, not %s" % (name, tensors[name].shape, tuple(value.shape)))
            value.data.copy_(torch.from_numpy(tensors[name]))

    def optimizer(self):
        get, rate = self.model.get, self.model.get("optimizer", "learning_rate", 0.001, float)
        decay = get("optimizer", "weight_decay", 0, float)
        groups = [{"params": [p for p in self.parameters.values() if p.dim() > 1], "weight_decay": decay},
                  {"params": [p for p in self.parameters.values() if p.dim() <= 1], "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        kind = get("optimizer", "type", "sgd").lower()
        if kind == "sgd":
            return torch.optim.SGD(groups, rate, get("optimizer", "momentum", 0, float),
                                   nesterov=get("optimizer", "nesterov", "false") == "true")
        betas = (get("optimizer", "beta1", 0.9, float), get("optimizer", "beta2", 0.999, float))
        made = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
        return made(groups, rate, betas, get("optimizer", "epsilon", 1e-8, float))

    # ---- layers: each gives its function and the shape of its output ----

    def make_input(self, layer):
        dims = [int(part) for part in layer.text("input_shape").split(":")]
        dims = [1] * (3 - len(dims)) + dims
        self.fields.append([dims[0] * dims[1] * dims[2], 0])
        return None, tuple(dims)

    def linear(self, name, width, units, bias, weight=None):
        bound = 1 / math.sqrt(width)
        weight = weight or self.parameter(name + ".weight", (units, width), bound)
        bias = self.parameter(name + ".bias", (units,), bound) if bias else None
        return lambda x: F.linear(x, self.parameters[weight], self.parameters[bias] if bias else None)

    def make_fully_connected(self, layer, shape):
        units = layer.count("unit") or layer.count("multiple") * shape[2]
        shared = layer.text("shared_from")
        product = self.linear(layer.name, shape[2], units, layer.flag("bias", True), shared and shared + ".weight")
        function = product
        activation = layer.text("activation", "none")
        if activation == "relu":
            function = lambda x: product(x).relu_()
        elif activation != "none":
            function = lambda x: ACTIVATIONS[activation](product(x))
        return function, (shape[0], shape[1], units)

    def make_activation(self, layer, shape):
        return ACTIVATIONS[layer.text("activation")], shape

    def make_embedding(self, layer, shape):
        self.fields[-1][1] = layer.count("in_dim")
        width, positions = layer.count("out_dim"), layer.count("positions")
        table = self.parameter(layer.name + ".weight", (layer.count("in_dim"), width), 0.02)
        places = self.parameter(layer.name + ".positions.weight", (positions, width), 0.02) if positions else None
        steps = shape[2]

        def function(tokens):
            rows = F.embedding(tokens.reshape(-1, 1, steps), self.parameters[table])
            return rows + self.parameters[places][:steps] if places else rows

        return function, (1, steps, width)

    def make_multi_head_attention(self, layer, shape):
        _, steps, width = shape
        heads, bias, causal = layer.count("num_heads"), layer.flag("bias", True), layer.flag("causal", False)
        project = self.linear(layer.name + ".qkv", width, 3 * width, bias)
        merge = self.linear(layer.name + ".out", width, width, bias)
        size = width // heads
        if steps not in self.masks:
            self.masks[steps] = torch.full((steps, steps), -math.inf, dtype=self.dtype, device=self.place()).triu(1)
        mask = self.masks[steps]

        def function(x):
            batch = x.shape[0]
            parts = project(x).view(batch, steps, 3, heads, size).permute(2, 0, 3, 1, 4)
            q, k, v = parts.reshape(3, batch * heads, steps, size).unbind(0)
            if causal:
                scores = torch.baddbmm(mask.expand(batch * heads, steps, steps), q, k.transpose(1, 2),
                                       alpha=1 / math.sqrt(size))
            else:
                scores = torch.bmm(q * (1 / math.sqrt(size)), k.transpose(1, 2))
            mixed = torch.bmm(torch.softmax(scores, -1), v)
            return merge(mixed.view(batch, heads, steps, size).transpose(1, 2).reshape(batch, 1, steps, width))

        return function, shape

    def make_layer_normalization(self, layer, shape):
        gain = self.parameter(layer.name + ".gain", (shape[2],), fill=1.0)
        shift = self.parameter(layer.name + ".shift", (shape[2],), fill=0.0)
        epsilon = layer.number("epsilon", 1e-5)
        return lambda x: F.layer_norm(x, (shape[2],), self.parameters[gain], self.parameters[shift], epsilon), shape

    def make_rms_normalization(self, layer, shape):
        gain = self.parameter(layer.name + ".gain", (shape[2],), fill=1.0)
        epsilon = layer.number("epsilon", 1e-6)
        return lambda x: x * torch.rsqrt(x.pow(2).mean(-1, True) + epsilon) * self.parameters[gain], shape

    def make_batch_normalization(self, layer, shape):
        channels = shape[0] if shape[0] > 1 or shape[1] > 1 else shape[2]
        gain = self.parameter(layer.name + ".gain", (channels,), fill=1.0)
        shift = self.parameter(layer.name + ".shift", (channels,), fill=0.0)
        mean, variance = layer.name + ".running_mean", layer.name + ".running_variance"
        self.statistics[mean] = torch.zeros(channels, dtype=self.dtype)
        self.statistics[variance] = torch.ones(channels, dtype=self.dtype)
        momentum, epsilon = layer.number("momentum", 0.1), layer.number("epsilon", 1e-5)

        def function(x):
            flat = x.reshape(x.shape[0], channels, -1)
            y = F.batch_norm(flat if shape[0] * shape[1] == 1 else x, self.statistics[mean], self.statistics[variance],
                             self.parameters[gain], self.parameters[shift], self.training, momentum, epsilon)
            return y.view(x.shape)

        return function, shape

    def make_dropout(self, layer, shape):
        rate, stream = layer.number("rate", 0.5), self.streams[layer.name]

        def function(x):
            if not self.own_dropout:
                return F.dropout(x, rate, self.training)
            mask = made_data.kept(x.numel(), rate, stream, self.step, self.seed)
            return x * torch.from_numpy(mask).view(x.shape).to(x) / (1 - rate)

        return function, shape

    def make_addition(self, layer, *shapes):
        return lambda *xs: sum(xs[1:], xs[0]), shapes[0]

    def make_multiply(self, layer, *shapes):
        def function(*xs):
            product = xs[0]
            for x in xs[1:]:
                product = product * x
            return product

        return function, shapes[0]

    def make_concat(self, layer, *shapes):
        axis = "chw".index(layer.text("axis", "w"))
        shape = list(shapes[0])
        shape[axis] = sum(s[axis] for s in shapes)
        return lambda *xs: torch.cat(xs, axis + 1), tuple(shape)

    def make_flatten(self, layer, shape):
        values = shape[0] * shape[1] * shape[2]
        return lambda x: x.reshape(-1, 1, 1, values), (1, 1, values)

    def make_reshape(self, layer, shape):
        dims = [int(part) for part in layer.text("target_shape").split(":")]
        dims = [1] * (3 - len(dims)) + dims
        return lambda x: x.reshape(-1, *dims), tuple(dims)

    def make_conv2d(self, layer, shape):
        kernel, stride = layer.pair("kernel_size", "1"), layer.pair("stride", "1")
        before, after = padding_of(layer, shape, kernel, stride)
        filters, bound = layer.count("filters"), 1 / math.sqrt(shape[0] * kernel[0] * kernel[1])
        weight = self.parameter(layer.name + ".weight", (filters, shape[0], *kernel), bound)
        bias = self.parameter(layer.name + ".bias", (filters,), bound) if layer.flag("bias", True) else None
        activation = layer.text("activation", "none")

        def function(x):
            pad = before
            if before != after:
                x, pad = F.pad(x, (before[1], after[1], before[0], after[0])), 0
            y = F.conv2d(x, self.parameters[weight], self.parameters[bias] if bias else None, stride, pad)
            return y if activation == "none" else ACTIVATIONS[activation](y)

        out = [(size + b + a - k) // s + 1 for size, b, a, k, s in zip(shape[1:], before, after, kernel, stride)]
        return function, (filters, *out)

    def make_pooling2d(self, layer, shape):
        pooling = layer.text("pooling", "max")
        if pooling.startswith("global"):
            pool = F.adaptive_avg_pool2d if pooling == "global_average" else F.adaptive_max_pool2d
            return lambda x: pool(x, 1), (shape[0], 1, 1)
        size = layer.pair("pool_size", "2")
        stride = tuple(s or k for s, k in zip(layer.pair("stride", "0"), size))
        before, after = padding_of(layer, shape, size, stride)
        if before != after:
            raise SystemExit("%s: uneven padding of a pooling is not known here" % layer.name)
        ceiling = layer.flag("ceil_mode", False)
        pool = F.max_pool2d
        if pooling != "max":  # without count_padding a mean is over what lies inside the image
            pool = functools.partial(F.avg_pool2d, count_include_pad=layer.flag("count_padding", False))
        function = lambda x: pool(x, size, stride, padding=before, ceil_mode=ceiling)
        return function, tuple(function(torch.zeros(1, *shape))[0].shape)

    def make_mse(self, layer, shape):
        self.fields.append([shape[0] * shape[1] * shape[2], 0])
        return lambda x: F.mse_loss(x, self.labels.view(x.shape)), (1, 1, 1)

    def make_cross_entropy(self, layer, shape):
        self.fields.append([shape[0] * shape[1], shape[2]])
        return lambda x: F.cross_entropy(x.reshape(-1, shape[2]), self.labels.reshape(-1), ignore_index=-1), (1, 1, 1)

    # ---- running ----

    def batch(self, arrays):
        """Arrays of made_data as tensors in their shapes."""
        tensors = [torch.from_numpy(array).to(self.place()) for array in arrays]
        return [t.to(self.dtype) if t.is_floating_point() else t for t in tensors]

    def run(self, first, last, values):
        """Layers first..last-1; what nobody reads any more is let go."""
        for i in range(first, last):
            layer, function = self.calls[i]
            if function is None:
                continue
            inputs = [values[name] for name in layer.inputs]
            for name in set(layer.inputs):
                if self.readers[name][-1] == i:
                    del values[name]
            values[layer.name] = function(*inputs)
            del inputs
        return values

    def loss(self, batch, per_copy=False):
        """`per_copy`: each copy of a repeated group is checkpointed on its own."""
        *inputs, self.labels = batch
        values = {}
        for (layer, _), data in zip([call for call in self.calls if call[1] is None], inputs):
            values[layer.name] = data.view(-1, *self.shapes[layer.name])
        at = 0
        while at < len(self.calls):
            end = at + 1
            copy = self.calls[at][0].copy
            while per_copy and copy is not None and end < len(self.calls) and self.calls[end][0].copy == copy:
                end += 1
            if end - at > 1:
                (name, entry), leave = next(iter(values.items())), self.calls[end - 1][0].name
                if len(values) != 1:
                    raise SystemExit("a copy with several inputs is not checkpointed here")
                piece = lambda x, a=at, e=end, n=name, l=leave: self.run(a, e, {n: x})[l]
                values = {leave: checkpoint(piece, entry)}
            else:
                self.run(at, end, values)
            at = end
        return values[self.calls[-1][0].name]
