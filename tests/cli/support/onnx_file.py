"""Writes ONNX files with a few lines of protobuf of its own: onnx_file.py NAME FILE writes the model NAME."""
import struct
import sys

FLOAT, INT64, FLOAT16 = 1, 7, 10


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


class Subgraph:
    def __init__(self, nodes):
        self.graph = b"".join(block(1, n) for n in nodes) + block(2, "inner")


def attribute(name, value):
    out = block(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return out + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return out + block(4, value) + number(20, 3)
    if isinstance(value, bytes):
        return out + block(5, value) + number(20, 4)
    if isinstance(value, Subgraph):
        return out + block(6, value.graph) + number(20, 5)
    if value and isinstance(value[0], Subgraph):
        return out + b"".join(block(11, one.graph) for one in value) + number(20, 10)
    return out + b"".join(number(8, v) for v in value) + number(20, 7)


def node(kind, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs)
    out += block(3, name) + block(4, kind) + b"".join(block(5, attribute(k, v)) for k, v in attributes.items())
    return out + (block(7, domain) if domain else b"")


def tensor(name, dims, data=None, kind=FLOAT):
    """Whole numbers are written as raw data; other tensors have no data, as if it were in another file."""
    out = b"".join(number(1, d) for d in dims) + number(2, kind) + block(8, name)
    if data is not None:
        out += block(9, b"".join(struct.pack("<q" if kind == INT64 else "<f", v) for v in data))
    return out


def value(name, dims, kind=FLOAT):
    shape = b"".join(block(1, number(1, d) if isinstance(d, int) else block(2, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, shape)))


def model(nodes, weights, inputs, outputs, stated=(), name="model", version=17):
    graph = b"".join(block(1, n) for n in nodes) + block(2, name) + b"".join(block(5, w) for w in weights)
    graph += b"".join(block(11, i) for i in inputs) + b"".join(block(12, o) for o in outputs)
    graph += b"".join(block(13, s) for s in stated)
    return number(1, 8) + block(2, "tests") + block(7, graph) + block(8, block(1, "") + number(2, version))


def mlp():
    """x [batch, 3] -> Gemm to 4 -> Relu -> Gemm to 2."""
    return model([node("Gemm", ["x", "w1", "b1"], ["h"], "fc1", transB=1), node("Relu", ["h"], ["r"], "relu"),
                  node("Gemm", ["r", "w2", "b2"], ["y"], "fc2", transB=1)],
                 [tensor("w1", [4, 3]), tensor("b1", [4]), tensor("w2", [2, 4]), tensor("b2", [2])],
                 [value("x", ["batch", 3])], [value("y", ["batch", 2])], name="mlp")


def residual():
    """A convolution with batch normalization, a sum with its input, a pool, a flattened head."""
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return model([node("Conv", ["x", "w0"], ["c0"], "stem", **conv), node("Conv", ["c0", "w1"], ["c1"], "conv", **conv),
                  node("BatchNormalization", ["c1", "scale", "shift", "mean", "var"], ["n1"], "norm"),
                  node("Add", ["n1", "c0"], ["s"], "sum"), node("Relu", ["s"], ["a"], "act"),
                  node("MaxPool", ["a"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
                  node("GlobalAveragePool", ["p"], ["g"], "mean"), node("Flatten", ["g"], ["f"], "flat"),
                  node("Gemm", ["f", "wh", "bh"], ["y"], "head", transB=1)],
                 [tensor("w0", [8, 3, 3, 3]), tensor("w1", [8, 8, 3, 3]), tensor("scale", [8]), tensor("shift", [8]),
                  tensor("mean", [8]), tensor("var", [8]), tensor("wh", [10, 8]), tensor("bh", [10])],
                 [value("x", ["N", 3, 16, 16])], [value("y", ["N", 10])], name="residual")


def transformer():
    """One block of attention and feed-forward as exporters write it, with shapes that are computed in the graph."""
    nodes = [node("Gather", ["table", "ids"], ["e"], "embed"),
             node("LayerNormalization", ["e", "g1", "b1"], ["n1"], "norm1", axis=-1)]
    for k in "qkv":
        nodes += [node("MatMul", ["n1", "w" + k], [k], "to_" + k),
                  node("Reshape", [k, "heads"], [k + "r"], k + "_reshape"),
                  node("Transpose", [k + "r"], [k + "t"], k + "_transpose", perm=[0, 2, 3, 1] if k == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["qt", "kt"], ["scores"], "scores"), node("Div", ["scores", "root"], ["scaled"], "scale"),
              node("Softmax", ["scaled"], ["weights"], "softmax", axis=-1), node("MatMul", ["weights", "vt"], ["mixed"], "mix"),
              node("Transpose", ["mixed"], ["back"], "back", perm=[0, 2, 1, 3]),
              node("Shape", ["n1"], ["shape"], "shape"), node("Constant", [], ["zero"], "zero", value=tensor("", [], [0], INT64)),
              node("Gather", ["shape", "zero"], ["b"], "first"), node("Unsqueeze", ["b", "axis0"], ["bu"], "as_list"),
              node("Concat", ["bu", "rest"], ["flat"], "flat", axis=0), node("Reshape", ["back", "flat"], ["joined"], "join"),
              node("MatMul", ["joined", "wo"], ["o"], "project"), node("Add", ["o", "e"], ["r1"], "residual1"),
              node("LayerNormalization", ["r1", "g2", "b2"], ["n2"], "norm2", axis=-1),
              node("MatMul", ["n2", "wu"], ["u"], "up"), node("Gelu", ["u"], ["ge"], "gelu"),
              node("MatMul", ["ge", "wd"], ["d"], "down"), node("Add", ["d", "r1"], ["y"], "residual2")]
    weights = [tensor("table", [100, 32]), tensor("heads", [4], [0, -1, 4, 8], INT64), tensor("root", [], [2.8284271]),
               tensor("axis0", [1], [0], INT64), tensor("rest", [2], [-1, 32], INT64), tensor("wu", [32, 128]),
               tensor("wd", [128, 32])]
    weights += [tensor(n, [32]) for n in ("g1", "b1", "g2", "b2")] + [tensor("w" + k, [32, 32]) for k in "qkvo"]
    return model(nodes, weights, [value("ids", ["batch", "sequence"], INT64)], [value("y", ["batch", "sequence", 32])],
                 name="block")


def unet():
    """Two levels with a long link; ConvTranspose and Resize go up."""
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return model([node("Conv", ["x", "w0"], ["d0"], "down0", **conv), node("Relu", ["d0"], ["d0r"], "down0.relu"),
                  node("MaxPool", ["d0r"], ["p0"], "pool0", kernel_shape=[2, 2], strides=[2, 2]),
                  node("Conv", ["p0", "w1"], ["d1"], "down1", **conv), node("Sigmoid", ["d1"], ["d1s"], "down1.sigmoid"),
                  node("ConvTranspose", ["d1s", "wt"], ["u0"], "up0", kernel_shape=[2, 2], strides=[2, 2]),
                  node("Concat", ["d0r", "u0"], ["c0"], "link", axis=1), node("Conv", ["c0", "w2"], ["m"], "merge", **conv),
                  node("Resize", ["m", "", "scales"], ["big"], "resize", mode="nearest"),
                  node("Conv", ["big", "w3"], ["y"], "head", kernel_shape=[1, 1])],
                 [tensor("w0", [8, 1, 3, 3]), tensor("w1", [16, 8, 3, 3]), tensor("wt", [16, 8, 2, 2]),
                  tensor("w2", [8, 16, 3, 3]), tensor("w3", [2, 8, 1, 1]), tensor("scales", [4], [1, 1, 2, 2])],
                 [value("x", [2, 1, 16, 16])], [value("y", [2, 2, 32, 32])], name="unet")


def lstm():
    return model([node("LSTM", ["x", "w", "r", "b"], ["all", "last"], "lstm", hidden_size=5),
                  node("Squeeze", ["last", "axis0"], ["h"], "last_state"), node("MatMul", ["h", "wo"], ["y"], "out")],
                 [tensor("w", [1, 20, 3]), tensor("r", [1, 20, 5]), tensor("b", [1, 40]), tensor("axis0", [1], [0], INT64),
                  tensor("wo", [5, 2])],
                 [value("x", [7, 4, 3])], [value("y", [4, 2])], name="lstm")


def unknown(stated=True):
    """An operator that nobody knows, with and without a stated shape."""
    return model([node("MatMul", ["x", "w"], ["h"], "in"), node("Fancy", ["h"], ["f"], "fancy", "com.example"),
                  node("MatMul", ["f", "w"], ["y"], "out")],
                 [tensor("w", [4, 4])], [value("x", [2, 4])], [value("y", [2, 4])],
                 [value("f", [2, 4])] if stated else [], name="unknown")


def unstated():
    return unknown(False)


def branches():
    """A choice between two graphs, which read a tensor of the outer one. The shape is stated."""
    return model([node("MatMul", ["x", "w"], ["h"], "in"),
                  node("If", ["flag"], ["f"], "choice", then_branch=Subgraph([node("Relu", ["h"], ["a"])]),
                       else_branch=Subgraph([node("Tanh", ["h"], ["b"])])),
                  node("MatMul", ["f", "w"], ["y"], "out")],
                 [tensor("w", [4, 4])], [value("x", [2, 4]), value("flag", [], 9)], [value("y", [2, 4])],
                 [value("f", [2, 4])], name="branches")


def several():
    """An operator with a list of graphs."""
    return model([node("MatMul", ["x", "w"], ["h"], "in"),
                  node("Fancy", ["h"], ["y"], "fancy", "com.example", parts=[Subgraph([node("Relu", ["h"], ["a"])])])],
                 [tensor("w", [4, 4])], [value("x", [2, 4])], [value("y", [2, 4])], name="several")


def hostile():
    """Names with control characters, and an operator that nobody knows."""
    bad = "x\x1b]0;t\x07\x7f\u0085\u202ey\nremat: warning: forged"
    return model([node("MatMul", ["x", bad], [bad + "h"], bad), node(bad, [bad + "h"], [bad + "f"], bad + "2", bad),
                  node("MatMul", [bad + "f", bad], ["y"], "out")],
                 [tensor(bad, [4, 4])], [value("x", [2, 4])], [value("y", [2, 4])], [value(bad + "f", [2, 4])], name=bad)


def training():
    """A step with its own gradients, as training frameworks write it."""
    return model([node("MatMul", ["x", "w1"], ["h"], "in"), node("Relu", ["h"], ["r"], "relu"),
                  node("MatMul", ["r", "w2"], ["y"], "out"),
                  node("SoftmaxCrossEntropyLoss", ["y", "labels"], ["loss", "logs"], "loss"),
                  node("SoftmaxCrossEntropyLossGrad", ["logs", "labels"], ["dy"], "loss_grad", "com.microsoft"),
                  node("Transpose", ["r"], ["rt"], "turn"), node("MatMul", ["rt", "dy"], ["dw2"], "weights2"),
                  node("Transpose", ["w2"], ["w2t"], "turn2"), node("MatMul", ["dy", "w2t"], ["dr"], "back"),
                  node("ReluGrad", ["dr", "r"], ["dh"], "relu_grad", "com.microsoft"),
                  node("Transpose", ["x"], ["xt"], "turn1"), node("MatMul", ["xt", "dh"], ["dw1"], "weights1")],
                 [tensor("w1", [3, 64]), tensor("w2", [64, 5])], [value("x", [16, 3]), value("labels", [16], INT64)],
                 [value("loss", []), value("dw1", [3, 64]), value("dw2", [64, 5])],
                 [value("dy", [16, 5]), value("dh", [16, 64])], name="training")


if __name__ == "__main__":
    with open(sys.argv[2], "wb") as out:
        out.write(globals()[sys.argv[1]]())
