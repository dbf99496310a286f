#!/bin/sh
# ONNX files become graphs of a training step: plan, fit, sweep and arena take them. The files are written by a few lines of
# Python, without the library of ONNX.
. tests/cli/support/expect.sh
has_python || exit 77
"$REMAT" doctor | grep -q 'ONNX.*read' || { part_skipped "this build reads no ONNX files"; exit 77; }
for model in mlp residual transformer unet lstm unknown unstated branches several training; do
  python3 tests/cli/support/onnx_file.py $model "$work/$model.onnx" || complain "$model was not written"
done

# A perceptron by hand: 4 samples, 3 inputs, 4 hidden, 2 outputs, 4 bytes each. Relu needs its output only, a product needs the
# other factor, and the gradients of the weights stay.
expect 0 plan "$work/mlp.onnx" --batch 4 --graph-out "$work/mlp.json"
python3 - "$work/mlp.json" <<'END' || complain "the graph of the perceptron is another"
import json, sys
graph = json.load(open(sys.argv[1]))
names = [t["name"] for t in graph["tensors"]]
size = {t["name"]: (t["bytes"], t.get("given", False)) for t in graph["tensors"]}
assert size == {"x": (48, True), "w1": (48, True), "b1": (16, True), "w2": (32, True), "b2": (8, True),
                "h": (64, False), "r": (64, False), "y": (32, False), "y.gradient": (32, False),
                "r.gradient": (64, False), "w2.gradient": (32, False), "b2.gradient": (8, False),
                "h.gradient": (64, False), "w1.gradient": (48, False), "b1.gradient": (16, False)}, size
def shown(action):
    called = lambda key: [names[i] for i in action.get(key, [])]
    return [action["name"], called("reads"), called("writes"), action.get("once", False), action["cost"], called("in_place")]
wanted = [
    ["fc1", ["x", "w1", "b1"], ["h"], False, 2 * 4 * 3 * 4, []],
    ["relu", ["h"], ["r"], False, 16, ["h", "r"]],
    ["fc2", ["r", "w2", "b2"], ["y"], False, 2 * 4 * 4 * 2, []],
    ["loss", ["y"], ["y.gradient"], True, 8, []],
    ["fc2.backward", ["y.gradient", "r", "w2"], ["r.gradient", "w2.gradient", "b2.gradient"], True, 128, []],
    ["relu.backward", ["r.gradient", "r"], ["h.gradient"], True, 16, ["r.gradient", "h.gradient"]],
    ["fc1.backward", ["h.gradient", "x"], ["w1.gradient", "b1.gradient"], True, 96, []]]
assert [shown(a) for a in graph["actions"]] == wanted, [shown(a) for a in graph["actions"]]
assert sorted(names[i] for i in graph["results"]) == ["b1.gradient", "b2.gradient", "w1.gradient", "w2.gradient"]
assert graph["name"] == "mlp" and graph["cost_unit"] == "flop"
END

# A sum passes its gradient on without a copy, and what two nodes read gets a sum of gradients. A flattened tensor is the same
# tensor. Statistics of a batch normalization are saved, and its running mean and variance have no gradients.
expect 0 plan "$work/residual.onnx" --batch 2 --graph-out "$work/residual.json"
python3 - "$work/residual.json" <<'END' || complain "the graph of the residual network is another"
import json, sys
graph = json.load(open(sys.argv[1]))
names = [t["name"] for t in graph["tensors"]]
actions = {a["name"]: a for a in graph["actions"]}
reads = lambda name: [names[i] for i in actions[name]["reads"]]
writes = lambda name: [names[i] for i in actions[name]["writes"]]
assert "sum.backward" not in actions and "flat" not in actions and "f" not in names
assert reads("norm.backward") == ["s.gradient", "c1", "scale", "shift", "mean", "var", "norm.saved"], reads("norm.backward")
assert writes("norm.backward") == ["c1.gradient", "scale.gradient", "shift.gradient"]
assert reads("c0.gradient_sum") == ["s.gradient", "c0.gradient"] and writes("c0.gradient_sum") == ["c0.gradient_sum"]
assert reads("stem.backward") == ["c0.gradient_sum", "x"] and writes("stem.backward") == ["w0.gradient"]
assert reads("pool.backward") == ["p.gradient", "a", "p"] and reads("mean.backward") == ["f.gradient"], reads("mean.backward")
assert reads("act.backward") == ["a.gradient", "a"]
assert actions["stem"]["cost"] == 2 * (2 * 8 * 16 * 16) * 3 * 3 * 3
assert actions["conv.backward"]["cost"] == 2 * actions["conv"]["cost"]
assert [t["bytes"] for t in graph["tensors"] if t["name"] == "norm.saved"] == [64]
END

# A file with its own gradients is taken as it is: no loss is added, everything may run again, the outputs are results.
expect 0 plan "$work/training.onnx" --graph-out "$work/training.json" --json
silent err
python3 - "$work/training.json" <<'END' || complain "the graph of the training step is another"
import json, sys
graph = json.load(open(sys.argv[1]))
names = [t["name"] for t in graph["tensors"]]
assert [a["name"] for a in graph["actions"]] == ["in", "relu", "out", "loss", "loss_grad", "turn", "weights2", "turn2", "back",
                                                 "relu_grad", "turn1", "weights1"]
assert not any(a.get("once") for a in graph["actions"]) and not any(n.endswith(".gradient") for n in names)
assert [names[i] for i in graph["results"]] == ["loss", "dw1", "dw2"]
END
expect 0 fit "$work/training.onnx" --json

# Shapes that are computed in the graph need no action; an open batch is 1, and is said; other open dimensions have names.
expect 0 plan "$work/transformer.onnx" --dim sequence=16 --graph-out "$work/block.json"
err "the file leaves the batch size open; 1 is used, and --batch N sets it"
expect 0 plan "$work/transformer.onnx" --batch 4 --dim sequence=16 --graph-out "$work/block.json" --json
silent err
python3 - "$work/block.json" <<'END' || complain "the graph of the transformer block is another"
import json, sys
graph = json.load(open(sys.argv[1]))
names = [a["name"] for a in graph["actions"]]
sizes = {t["name"]: t["bytes"] for t in graph["tensors"]}
assert not {"shape", "first", "as_list", "flat", "join", "q_reshape"} & set(names), names
assert sizes["scores"] == 4 * 4 * 16 * 16 * 4 and sizes["u"] == 4 * 16 * 128 * 4 and sizes["e"] == 4 * 16 * 32 * 4
cost = {a["name"]: a["cost"] for a in graph["actions"]}
assert cost["scores"] == 2 * 4 * 4 * 16 * 16 * 8 and cost["up.backward"] == 2 * 2 * 4 * 16 * 32 * 128
END
expect 2 plan "$work/transformer.onnx" --batch 4
err "dimension 1 of the input 'ids' has no number in the file; --dim sequence=N sets it"

# The graph is the one that the plan is for.
for model in mlp residual unet lstm; do
  expect 0 fit "$work/$model.onnx" --batch 4 --json
  least=$(grep -o '"min_budget_bytes": [0-9]*' "$work/out" | grep -o '[0-9]*$')
  expect 0 plan "$work/$model.onnx" --batch 4 --budget "$least" --graph-out "$work/graph.json" -o "$work/plan.json"
  expect 0 check "$work/plan.json" --profile "$work/graph.json"
  expect 4 plan "$work/$model.onnx" --batch 4 --budget 10
  expect 4 fit "$work/$model.onnx" --batch 4 --budget 10
done
expect 0 sweep "$work/unet.onnx" --csv
out "peak_bytes,arena_bytes"
expect 0 arena "$work/unet.onnx"
out "d0,0,21,16384,"
expect_stdin 0 "$work/unet.onnx" fit -

# Unknown operators: a warning where the file states their shapes, an error that names the node where it does not.
expect 0 plan "$work/unknown.onnx"
err "node 'fancy': the operator Fancy is unknown"
expect 3 plan "$work/unstated.onnx"
err "node 'fancy' (Fancy): the operator is unknown, and the file does not state the shape of 'f'"

# Subgraphs read what no input names, so that such a file is refused, even where the shapes are stated.
for command in plan fit report; do
  expect 3 $command "$work/branches.onnx"
  err "node 'choice' (If): it has a subgraph, and only models without control flow can be planned"
done
expect 3 plan "$work/several.onnx"
err "node 'fancy' (Fancy): it has a subgraph"

# Models that PyTorch exported, where Debian's package of them is installed: all are read, and the shapes that are found are those
# that the files state.
models=/usr/share/libonnx-testdata/data
if [ -d $models/pytorch-converted ] && [ "${REMAT_SANITIZE:-OFF}" != ON ]; then
  for path in "$models"/pytorch-converted/*/model.onnx "$models"/pytorch-operator/*/model.onnx; do
    expect 0 plan "$path" --json --no-schedule
    ! grep -q "states another" "$work/err" || complain "$path: $(grep "states another" "$work/err")"
  done
else
  part_skipped "libonnx-testdata is not installed"
fi

# Damaged files, and options that are for others.
head -c 100 "$work/unet.onnx" >"$work/short.onnx"
expect 3 plan "$work/short.onnx"
err "short.onnx: this is no ONNX file, or it is damaged"
printf '\010' | file one.onnx
expect 3 fit "$work/one.onnx"
printf '\010\010' | file empty.onnx
expect 3 fit "$work/empty.onnx"
err "the file has no graph"
expect 2 plan "$work/unet.onnx" --profile "$work/graph.json"
expect 2 fit "$work/unet.onnx" --batch auto
expect 2 plan "$work/unet.onnx" --dim sequence
expect 2 plan "$work/unet.onnx" --dim =3
expect 2 plan "$work/unet.onnx" --dim sequence=0
expect 2 plan "$work/graph.json" --dim sequence=3
err "--dim is only for ONNX files"
expect 3 check "$work/plan.json" --profile "$work/unet.onnx"
err "ONNX"
finish
