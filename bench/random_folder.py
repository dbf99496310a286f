"""Writes random weights in bf16 beside a config.json, for measuring large shapes without downloading them:

    /usr/bin/python3 bench/random_folder.py FOLDER

The tensors are those of the family (tests/reference/torch_pretrained.py). Values repeat after 16 million, which no measurement of
memory or time sees."""
import json
import os
import struct
import sys

import numpy

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "reference"))
from torch_pretrained import is_norm, shapes


def bf16(values):
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "config.json")) as file:
        tensors = shapes(json.load(file))
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    some = bf16(numpy.random.default_rng(0).standard_normal(1 << 24) * 0.02)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors.items():
            count = int(numpy.prod(shape))
            if is_norm(name):
                file.write(bf16(numpy.ones(count)).tobytes())
                continue
            for first in range(0, count, len(some)):
                file.write(some[: min(len(some), count - first)].tobytes())


main()
