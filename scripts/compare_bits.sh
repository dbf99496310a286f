#!/bin/sh
# Whether two builds of remat train to the same weights, to the bit: compare_bits.sh OLD NEW MODEL.ini ...
# Every model for STEPS steps (20) with all KERNELS that the machine has, under every strategy, with the smallest budget of
# NEW and with one in the middle. OLD runs without recomputation: bits do not depend on the plan. Models must have data.
set -eu
old=$1 new=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

weights() { # remat, model, name, options ...: a hash of the values, without the header, which holds the version
  program=$1 model=$2 file=$work/$3.safetensors
  shift 3
  "$program" train "$model" --steps "${STEPS:-20}" --weights-only --quiet --save "$file" "$@" >/dev/null 2>"$work/message" ||
    { sed "s|^|$model $*: |" "$work/message" >&2; echo failed; return; }
  length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
  tail -c +$((length + 9)) "$file" | sha256sum | cut -d' ' -f1
}

failed=0
compare() { # model, kernels, options of NEW ...
  model=$1 kernels=$2
  shift 2
  got=$(weights "$new" "$model" new --kernels "$kernels" "$@")
  if [ "$got" = "$wanted" ]; then
    echo "same    $kernels $model $*"
  else
    echo "DIFFERS $kernels $model $*"
    failed=1
  fi
}

for model; do
  totals=$("$new" sweep "$model" --json | grep -o '"total_bytes": [0-9]*' | grep -o '[0-9]*$' | sort -n)
  least=$(echo "$totals" | head -1)
  most=$(echo "$totals" | tail -1)
  for kernels in ${KERNELS:-avx512 avx2 portable}; do
    wanted=$(weights "$old" "$model" old --kernels "$kernels" --strategy none)
    for strategy in none full selective:0.5 attention-only ffn-only every-nth:3 largest:2 sqrt revolve:3 optimal; do
      compare "$model" "$kernels" --strategy "$strategy"
    done
    compare "$model" "$kernels" --budget "$least"
    compare "$model" "$kernels" --budget "$(((least + most) / 2))"
  done
done
exit $failed
