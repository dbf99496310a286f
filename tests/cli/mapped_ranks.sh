#!/bin/sh
# Frozen weights that ranks map from the same folder: the bits of one process with copies, and the memory that was planned.
. tests/cli/support/expect.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
train="--length 16 --set dataset.type=random --set dataset.samples=16 --set model.accumulate=4 --set optimizer.learning_rate=0.01 -j 1"
tune="$train --lora rank=4 --steps 3 --json -q"
mkdir "$work/new"
file new/config.json <<'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 2,
 "num_attention_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true, "torch_dtype": "float32"}
END
# shellcheck disable=SC2086 # several arguments
expect 0 train "$work/new" $train --from-scratch --steps 1 --save "$work/model/" -q

# shellcheck disable=SC2086
expect 0 train "$work/model" $tune --save "$work/one/"
! grep -q mapped_bytes "$work/out" || complain "copies are said to be mapped"
number() { grep -o "\"$1\": [0-9]*" "$work/out" | head -n 1 | sed 's/.*: //'; }
all=$(number total_bytes)
# judge N OPTION...: that many ranks map weights, and their adapters are those of one process.
judge() {
  count=$1
  shift
  # shellcheck disable=SC2086
  expect_ranks 0 "$count" train "$work/model" $tune --frozen keep --save "$work/some/" "$@"
  cmp "$work/one/adapter_model.safetensors" "$work/some/adapter_model.safetensors" || complain "$count ranks, $*: other bits"
  [ "$(number total_bytes)" = "$(number allocated_bytes)" ] ||
    complain "$count ranks, $*: $(number total_bytes) bytes planned, $(number allocated_bytes) measured"
}
for n in 1 2; do
  judge $n
  [ "$(number total_bytes)" = "$all" ] || complain "$n ranks take $(number total_bytes) bytes each, not $all"
  [ "$(number mapped_bytes)" -gt 1000000 ] || complain "$n ranks map nothing"
  # Less than all of them: they are dropped.
  judge $n --budget 1.9MiB
  [ "$(number mapped_bytes)" -lt "$(number mapped_file_bytes)" ] || complain "$n ranks drop nothing"
  [ "$(number total_bytes)" -le 1992294 ] || complain "$n ranks take $(number total_bytes) bytes of 1.9 MiB"
done
judge 2 --shard optimizer
[ "$(number mapped_bytes)" -gt 1000000 ] || complain "ranks that share the optimizer map nothing"
judge 2 --shard weights
[ -z "$(number mapped_bytes)" ] || complain "ranks that share weights map them"
finish
