#!/bin/sh
# Weights from PyTorch and for it: its files, its names, other names, new heads, and back. torch_state.pt was written by
# torch.save of PyTorch 1.13; the numbers that are expected are those that PyTorch computed with it.
. tests/cli/support/expect.sh
cp tests/data/files/torch_state.pt "$work/state.pt"
printf '1,2\n-1,0.5\n' >"$work/x.csv"
printf '1,2,0\n-1,0.5,1\n' >"$work/xy.csv"
file net.ini <<'END'
[Dataset : csv]
inputs = xy.csv
[in : input]
input_shape = 2
[fc1 : fully_connected]
unit = 3
[bn : batch_normalization]
[out : fully_connected]
unit = 2
[loss : cross_entropy]
END
model=$work/net.ini

# near FILE NUMBER...: the numbers of FILE, which commas separate, are these, to 1e-3.
near() {
  found=$(tr ',\n' '  ' <"$1")
  shift
  echo "$found $*" | awk '{ n = NF / 2; bad = n != int(n); for (i = 1; i <= n; i++) if (($i - $(n + i))^2 > 1e-6) bad = 1; exit bad }' ||
    complain "predicted $found, not $*"
}
theirs="-0.6719 -0.2813 -0.3398 -0.4297"
expect 0 predict "$model" -w "$work/state.pt"
# shellcheck disable=SC2086
near "$work/out" $theirs

# Converted to our names and back: the same values, for torch.load and as safetensors.
expect 0 convert "$model" -w "$work/state.pt" --to remat --output "$work/ours.safetensors"
for name in fc1.weight bn.gain bn.shift bn.running_variance; do
  grep -aq "\"$name\"" "$work/ours.safetensors" || complain "there is no $name"
done
expect 0 predict "$model" -w "$work/ours.safetensors"
# shellcheck disable=SC2086
near "$work/out" $theirs
for ending in pt safetensors; do
  expect 0 convert "$model" -w "$work/ours.safetensors" --output "$work/back.$ending"
  grep -aq "bn.running_var" "$work/back.$ending" || complain "back.$ending has not PyTorch's names"
  ! grep -aq "bn.gain\|running_variance" "$work/back.$ending" || complain "back.$ending has our names"
  expect 0 convert "$model" -w "$work/back.$ending" --to remat --output "$work/again.safetensors"
  cmp "$work/ours.safetensors" "$work/again.safetensors" || complain "back.$ending has other values"
done
expect 2 convert "$model" -w "$work/state.pt"
err "--output FILE is missing"
expect 2 convert "$model" -w "$work/state.pt" --output "$work/o.pt" --to onnx
if [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import torch' 2>"$work/none"; then
  (cd "$work" && /usr/bin/python3 -c '
import torch
a, b = torch.load("state.pt"), torch.load("back.pt")
assert set(a) - set(b) == {"bn.num_batches_tracked"} and all(torch.equal(a[k], b[k]) for k in b)') ||
    complain "torch.load reads other values"
else
  part_skipped "PyTorch is not installed"
fi

# Modules with other names: the error names the nearest, and --map says which is which.
sed 's/fc1/hidden/; s/\[out/[head/' "$model" >"$work/other.ini"
expect 3 predict "$work/other.ini" -w "$work/state.pt"
err "hidden.weight: the model has this tensor and the file does not"
err "--map FILE"
sed 's/fc1/fc_1/' "$model" >"$work/near.ini"
expect 3 predict "$work/near.ini" -w "$work/state.pt"
err "did you mean 'fc1.weight'?"
printf '# ours = theirs\nhidden = fc1\nhead.weight = out.weight\nhead.bias = out.bias\n' >"$work/map"
expect 0 predict "$work/other.ini" -w "$work/state.pt" --map "$work/map"
# shellcheck disable=SC2086
near "$work/out" $theirs
expect 0 convert "$work/other.ini" -w "$work/state.pt" --map "$work/map" --to remat --output "$work/o.safetensors"
expect 0 convert "$work/other.ini" -w "$work/o.safetensors" --map "$work/map" --output "$work/o.pt"
expect 0 predict "$model" -w "$work/o.pt"
# shellcheck disable=SC2086
near "$work/out" $theirs
# A prefix for all; numbers; matrices that are stored the other way round.
printf '* = net.*\nout = net.head.7 transposed\n' >"$work/prefix"
expect 0 convert "$model" -w "$work/state.pt" --map "$work/prefix" --output "$work/p.safetensors"
grep -aq '"net.head.7.weight":{"dtype":"F32","shape":\[3,2\]' "$work/p.safetensors" || complain "the head is not transposed"
expect 3 predict "$model" -w "$work/p.safetensors"
err "did you mean 'net.fc1.weight'?"
expect 0 predict "$model" -w "$work/p.safetensors" --map "$work/prefix"
# shellcheck disable=SC2086
near "$work/out" $theirs
for wrong in "fc1 classifier" "fc1 = a b" "= a" "a* = b" "* = b"; do
  printf '\n%s\n' "$wrong" >"$work/wrong"
  expect 3 predict "$model" -w "$work/state.pt" --map "$work/wrong"
  err "$work/wrong:2:"
done
expect 2 train "$model" --map "$work/map"
err "--weights FILE, which is missing"

# A new head: what does not fit is refused, or listed and started anew. The rest is taken.
sed 's/unit = 2/unit = 4/' "$model" >"$work/head.ini"
expect 3 train "$work/head.ini" --weights "$work/state.pt" --steps 0 -q
err "out.weight: it is 2 x 3 in the file and 4 x 3 in the model"
expect 0 train "$work/head.ini" --weights "$work/state.pt" --steps 0 -q --partial --save "$work/new.st" --weights-only
err "out.weight: it is 2 x 3 in the file and 4 x 3 in the model; it keeps its initial values"
err "6 of 8 tensors were taken; the file has 3 that the model does not use"
expect 0 train "$work/head.ini" --steps 0 -q --save "$work/first.st" --weights-only
cmp -s "$work/new.st" "$work/first.st" && complain "nothing was taken"
file none.ini <<'END'
[Dataset : csv]
inputs = xy.csv
[in : input]
input_shape = 2
[a : fully_connected]
unit = 2
[loss : cross_entropy]
END
expect 3 train "$work/none.ini" --weights "$work/state.pt" --steps 0 -q --partial
err "none of the model's tensors is in the file"

# A longer and a shorter context: the positions that both have.
positions() { # LENGTH
  cat <<END
[Model]
batch_size = 1
[Dataset : random]
samples = 4
[in : input]
input_shape = $1
[embed : embedding]
in_dim = 8
out_dim = 4
positions = $1
[out : fully_connected]
unit = 8
[loss : cross_entropy]
END
}
positions 4 >"$work/p4.ini"
positions 6 >"$work/p6.ini"
expect 0 train "$work/p4.ini" --steps 1 -q --save "$work/p4.st" --weights-only
expect 3 train "$work/p6.ini" --weights "$work/p4.st" --steps 0 -q
expect 0 train "$work/p6.ini" --weights "$work/p4.st" --steps 0 -q --partial --save "$work/p6.st" --weights-only
err "4 positions are in the file and 6 in the model: the others keep their initial values"
expect 0 train "$work/p4.ini" --weights "$work/p6.st" --steps 0 -q --partial --save "$work/p44.st" --weights-only
err "6 positions are in the file and 4 in the model: the first ones are taken"
cmp "$work/p4.st" "$work/p44.st" || complain "positions are lost on the way to a longer context and back"

# A full disk.
if [ -w /dev/full ]; then
  ln -s /dev/full "$work/full.pt"
  expect 6 convert "$model" -w "$work/state.pt" --output "$work/full.pt"
  err "full.pt: writing failed"
fi

# Files that are not what they seem.
head -c 1500 "$work/state.pt" >"$work/cut.pt"
expect 3 predict "$model" -w "$work/cut.pt"
err "cut.pt"
cp tests/data/files/stored.npz "$work/stored.npz"
expect 3 predict "$model" -w "$work/stored.npz"
err "it has no data.pkl"
printf '\200\002\212\012and so on, for more than a few bytes' >"$work/old.pt"
expect 3 predict "$model" -w "$work/old.pt"
err "before PyTorch 1.6"
finish
