#!/bin/sh
# Models of layers, losses and schedules from INI files: the same bits whatever is recomputed, with any number of threads, and
# after resuming.
. tests/cli/support/expect.sh

# compare NAME: the model trained with everything kept, with much recomputed and other threads, and in two halves.
compare() {
  model=$work/$1.ini
  expect 0 train "$model" -q --strategy none -j 1 --save "$work/whole.st"
  for strategy in full full:2 every-nth:2; do
    expect 0 train "$model" -q --strategy "$strategy" -j 2 --save "$work/other.st"
    cmp "$work/whole.st" "$work/other.st" || complain "$1: other bits with $strategy"
  done
  expect 0 train "$model" -q --steps 5 --strategy full --save "$work/half.st"
  expect 0 train "$model" -q --resume "$work/half.st" --strategy none --save "$work/half.st"
  cmp "$work/whole.st" "$work/half.st" || complain "$1: other bits after resuming"
}

file images.ini <<'END'
[Model]
batch_size = 4
epochs = 2
[Optimizer : adam]
schedule = one_cycle
decay_steps = 12
[Dataset : random]
samples = 24
[in : input]
input_shape = 4:10:10
[wide : conv2d]
filters = 8
kernel_size = 3
padding = 1
groups = 4
[norm : group_normalization]
groups = 2
[far : conv2d]
filters = 8
kernel_size = 3
padding = 0,1,2,1
stride = 2
dilation = 2
trainable = false
[fixed : batch_normalization]
trainable = false
[deep : conv2d]
filters = 8
kernel_size = 3
groups = 8
padding = same
[each : instance_normalization]
[up : conv2d_transpose]
filters = 2
kernel_size = 2
stride = 2
[loss : binary_cross_entropy]
positive_weight = 2
END
compare images

file sequences.ini <<'END'
[Model]
batch_size = 4
epochs = 3
[Optimizer : sgd]
learning_rate = 0.05
schedule = plateau
patience = 0
threshold = 0.5
[Dataset : random]
samples = 24
validation_split = 0.3
[in : input]
input_shape = 7:6
[lstm : lstm]
unit = 10
return_sequences = true
[gru : gru]
unit = 6
return_sequences = true
[look : multi_head_attention]
input_layers = in, lstm
num_heads = 2
[sum : addition]
input_layers = gru, look
[line : reshape]
target_shape = 7:1:6
[conv : conv1d]
filters = 5
kernel_size = 3
padding = causal
dilation = 2
[last : flatten]
[out : fully_connected]
unit = 3
[loss : cross_entropy]
label_smoothing = 0.1
class_weights = 1, 2, 0.5
END
compare sequences

# What is frozen is said, and counted.
expect 0 summary "$work/images.ini"

out "of them frozen"

# A plateau without validations would never fall.
sed '/validation_split/d' "$work/sequences.ini" >"$work/blind.ini"
expect 2 train "$work/blind.ini"
err "the schedule plateau needs validations"
sed 's/class_weights = 1, 2, 0.5/class_weights = 1, 2/' "$work/sequences.ini" >"$work/few.ini"
expect 3 train "$work/few.ini"
err "there are 2 class_weights, but 3 classes"
finish
