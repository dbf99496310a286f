#!/bin/sh
# Whether ranks train with the bits of one process: compare_ranks.sh PROGRAM [MODEL...]
# Every example model, or the named ones, with 2, 3, 4 and 8 ranks, every stage of --shard, and pipelines of 2 and 4 stages in one,
# two and four rows, which may share the state of the optimizer: the saved training and all losses are those of one process. Then the training goes on with other numbers of ranks,
# stages and shards, and ends with the same file. A step has 24 micro-batches. Large models have short sequences, so that this takes
# minutes; gpt24 has its 24 layers, but narrow ones. CASES="8:weights 4:p2" for these only: RANKS:SHARD or RANKS:pSTAGES[:SHARD].
# `make check` compares two small models.
set -eu
remat=$1
shift
models=examples/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
shards="none optimizer gradients weights"

# set_up MODEL: its file, the options that make it small, and its steps.
set_up() {
  file=$models/$1.ini small="--set model.batch_size=1" steps=3
  case $1 in
  resnet | convnet) small="--set model.batch_size=2" ;; # statistics of a batch
  gpt) small="$small --set tokens.input_shape=1:1:24" ;;
  gpt_bench) small="$small --set tokens.input_shape=1:1:8" steps=2 ;;
  transformer) small="$small --set input.input_shape=1:8:512" steps=2 ;;
  gpt768) small="$small --set tokens.input_shape=1:1:4" steps=2 ;;
  mlp_bench) steps=2 ;;
  gpt24)
    file=$work/gpt24.ini
    sed 's/1024/64/g; s/50257/256/; s/^input_shape = 64/input_shape = 8/' $models/gpt24.ini >"$file"
    printf '[Dataset : random]\nsamples = 96\n' >>"$file"
    ;;
  esac
}
# cases: all of RANKS:SHARD and RANKS:pSTAGES[:SHARD].
cases() {
  for n in 2 3 4 8; do
    for shard in $shards; do echo "$n:$shard"; done
  done
  echo 2:p2 4:p2 8:p2 4:p4 8:p4 4:p2:optimizer 8:p2:optimizer 8:p4:optimizer
}
# options CASE: what it adds to the command.
options() {
  case ${1#*:} in
  p*:*) rest=${1#*:p}; echo "--pipeline ${rest%:*} --shard ${rest#*:}" ;;
  p*) echo "--pipeline ${1#*:p}" ;;
  *) echo "--shard ${1#*:}" ;;
  esac
}
losses() { grep -o '"\(loss\|validation_loss\)": [^,}]*' "$work/$1.log" >"$work/$1.losses"; }
# train NAME CASE STEPS [OPTION...]: saves $work/NAME.safetensors, and its losses.
train() {
  name=$1 case=$2 count=$3
  shift 3
  if [ "$case" = 1 ]; then set -- "$remat" train "$file" "$@"; else
    # shellcheck disable=SC2046 # several words
    set -- timeout -k 5 900 mpirun --oversubscribe -np "${case%%:*}" "$remat" train "$file" $(options "$case") "$@"
  fi
  # shellcheck disable=SC2086 # several words
  "$@" $small --set model.accumulate=24 --steps "$count" --save "$work/$name.safetensors" --log "$work/$name.log" -q -j 1 \
    >"$work/out" 2>"$work/err" </dev/null
}
failed=0 compared=0
complain() {
  echo "DIFFERS $model $1: $2" >&2
  sed 's/^/  | /' "$work/err" >&2
  failed=$((failed + 1))
}
compare() { # NAME TEXT
  compared=$((compared + 1))
  losses "$1"
  cmp -s "$work/one.safetensors" "$work/$1.safetensors" || { complain "$2" "other weights or moments"; return; }
  cmp -s "$work/one.losses" "$work/$1.losses" || { complain "$2" "other losses"; return; }
  echo "same    $model $2"
}

# A small model may have too few layers for so many stages: that is said.
compare_case() {
  if train some "$1" $steps; then compare some "$1"; return; fi
  if grep -q "cannot be cut into" "$work/err"; then echo "no cut  $model $1"; else complain "$1" "fails"; fi
}

# go_on CASE...: one step with each, then with the next, from the same file.
go_on() {
  rm -f "$work/half.safetensors" "$work/half.log"
  done=0 resume=""
  for case; do
    done=$((done + 1))
    [ "$done" -le "$steps" ] || break
    # shellcheck disable=SC2086 # two words or none
    train half "$case" $done $resume || { complain "going on: $*, at $case" "fails"; return; }
    resume="--resume $work/half.safetensors"
  done
  cmp -s "$work/one.safetensors" "$work/half.safetensors" || { complain "going on: $*" "other weights or moments"; return; }
  compared=$((compared + 1))
  echo "same    $model going on: $*"
}

[ $# -gt 0 ] || set -- fruit spirals mlp convnet resnet gpt gpt24 mlp_bench transformer gpt_bench gpt768
for model; do
  set_up "$model"
  train one 1 $steps || { complain "one process" "fails"; continue; }
  losses one
  for case in ${CASES:-$(cases)}; do compare_case "$case"; done
  [ -z "${CASES:-}" ] || continue
  go_on 3:weights 4:p2 8:gradients
  go_on 8:p2:optimizer 2:weights 3:none
  go_on 8:weights 1 2:p2
done
echo "$compared trainings compared, $failed differ"
[ "$failed" = 0 ]
