"""Reads a safetensors file by the format's description alone and prints it: a line of metadata a key, then a line a
tensor with its name, shape and values."""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()

for key, text in sorted(header.pop("__metadata__", {}).items()):
    print("metadata", json.dumps([key, text]))
reached = 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, end = tensor["data_offsets"]
    assert tensor["dtype"] == "F32" and begin == reached and (8 + length + begin) % 4 == 0
    values = struct.unpack("<%df" % ((end - begin) // 4), data[begin:end])
    print("tensor", json.dumps([name, tensor["shape"], values]))
    reached = end
assert reached == len(data)
