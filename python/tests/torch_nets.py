"""Small nets for the tests of remat.torch, and a step to compare. Importing it fails where PyTorch is not installed."""
import importlib

import torch
from torch import nn

importlib.import_module("remat.torch")


class Block(nn.Module):
    """A transformer's block with dropout."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def transformer():
    return nn.Sequential(*[Block(16) for _ in range(2)]), torch.randn(2, 24, 16)


class Residual(nn.Module):
    """Batch norm, work in place, and SiLU, whose gradient PyTorch would take apart."""

    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.relu, self.silu = nn.ReLU(inplace=True), nn.SiLU(inplace=True)

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        y += x
        return self.silu(y)


def residual():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8), Residual(8)), torch.randn(2, 3, 12, 12)


class ChannelsLast(nn.Module):
    """What a convolution makes, with the channels moved to the end: kernels may lay it out otherwise than fake tensors say."""

    def __init__(self):
        super().__init__()
        self.patch, self.norm1, self.norm2 = nn.Conv2d(3, 8, 4, 4), nn.LayerNorm(8), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x):
        x = self.norm1(self.patch(x).permute(0, 2, 3, 1))
        h = nn.functional.pad(self.norm2(x), (0, 0, 0, 3, 0, 3))
        h = h.view(h.shape[0], 1, 7, 1, 7, 8).permute(0, 1, 3, 2, 4, 5).reshape(h.shape[0], 49, 8)
        h = (h @ h.transpose(-2, -1)).softmax(-1) @ h
        x = x + h.view(-1, 1, 1, 7, 7, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 7, 7, 8)[:, :4, :4, :].contiguous()
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def channels_last():
    return ChannelsLast(), torch.randn(1, 3, 16, 16)


class Branching(nn.Module):
    """Decides by the values of a tensor."""

    def __init__(self, width):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(width, width), nn.BatchNorm1d(width), nn.Dropout(0.2)

    def forward(self, x):
        y = torch.relu(self.drop(self.norm(self.linear(x))))
        if y.sum() > 0:
            y = y * 2
        return y


def branching(count=4):
    return nn.Sequential(*[Branching(16) for _ in range(count)]), torch.randn(32, 16)


class Blocks(nn.Module):
    """Such blocks in a list, with something around them."""

    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Branching(16) for _ in range(4)), nn.Linear(16, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Traced(nn.Module):
    """Computes something else while it is recorded, and with `lasting` at every call."""

    def __init__(self, lasting=False):
        super().__init__()
        self.weight, self.calls, self.lasting = nn.Parameter(torch.ones(3, 1, 1)), 0, lasting

    def forward(self, x):
        self.calls += 1
        return torch.tanh(x * self.weight) * (self.calls if self.lasting else 1 if type(x) is torch.Tensor else 2)


def step(run, owner, state, *args):
    """Loss, gradients and buffers after one step from `state`."""
    owner.load_state_dict(state)
    owner.zero_grad(set_to_none=True)
    torch.manual_seed(5)
    loss = run(*args).square().sum()
    loss.backward()
    return [loss.detach()] + [p.grad for p in owner.parameters()] + [b.clone() for b in owner.buffers()]


def state_of(module):
    return {key: value.clone() for key, value in module.state_dict().items()}


def same_state(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def same(a, b):
    return len(a) == len(b) and all(map(torch.equal, a, b))


class Branches(nn.Module):
    """Two branches that draw random numbers, of which the first is needed late."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(16, 16) for _ in range(3))
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        first = self.drop(torch.tanh(self.a(x)))
        second = self.drop(torch.tanh(self.b(x)))
        for _ in range(3):
            second = self.drop(torch.tanh(self.c(second)))
        return first * second


def branches():
    return Branches(), torch.randn(64, 16)


class Speaker(nn.Module):
    """The end of a language model: a product with the vocabulary and the cross entropy behind it."""

    def __init__(self, low_precision):
        super().__init__()
        self.body, self.head = nn.Linear(16, 16), nn.Linear(16, 301, bias=False)
        self.low_precision = low_precision

    def forward(self, x, targets):
        logits = self.head(torch.tanh(self.body(x)))
        if self.low_precision:  # as autocast does on CUDA
            return nn.functional.nll_loss(torch.log_softmax(logits.bfloat16(), 1).float(), targets)
        return nn.functional.cross_entropy(logits, targets)
