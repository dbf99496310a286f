# shellcheck shell=sh
# shellcheck disable=SC2154 # work comes from expect.sh
# Two small models for tests of training. Sourced after expect.sh.

# A classifier of two spirals, with dropout and shuffling, so that going on after a pause is not trivial.
spiral_model() {
  cp examples/data/spirals.csv "$work/spirals.csv"
  file spirals.ini <<'END'
[Model]
batch_size = 20
epochs = 5

[Optimizer : adam]
learning_rate = 0.01

[Dataset : csv]
inputs = spirals.csv
labels = 1
validation_split = 0.2

[in : input]
input_shape = 2
[fc1 : fully_connected]
unit = 24
activation = tanh
[drop : dropout]
rate = 0.1
[norm : batch_normalization]
[fc2 : fully_connected]
unit = 24
activation = tanh
[out : fully_connected]
unit = 2
[loss : cross_entropy]
[Block b]
layers = fc1 .. fc2
END
}

# A model of bytes that only has to learn "abcabc".
byte_model() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do printf 'abcabcabcabcabcabcabcabcabcabc'; done >"$work/abc.txt"
  file bytes.ini <<'END'
[Model]
batch_size = 4
[Optimizer : adam]
learning_rate = 0.02
[Dataset : text]
inputs = abc.txt
[tokens : input]
input_shape = 8
[embedding : embedding]
in_dim = 256
out_dim = 16
positions = 8
[attention : multi_head_attention]
num_heads = 2
causal = true
[sum : addition]
input_layers = embedding, attention
[head : fully_connected]
unit = 256
[loss : cross_entropy]
END
}

# The example table with words and gaps, whose kinds of fruit stand one after the other.
fruit_table() {
  cp examples/data/fruit.csv examples/data/fruit_new.csv "$work"
  sed 's|\.\./data/||' examples/models/fruit.ini >"$work/fruit.ini"
}

# json_object FILE: all of it is one value of JSON.
json_object() {
  if has_python; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" || complain "$1 is no JSON"
  fi
}

# json_lines FILE: every line is an object of JSON.
json_lines() {
  ! grep -qv '^{.*}$' "$1" || complain "$1 has a line that is no object: $(grep -v '^{.*}$' "$1" | head -n 1)"
  if has_python; then
    python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$1" || complain "$1 is no JSON"
  fi
}
