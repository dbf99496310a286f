#!/bin/sh
# Builds for 64-bit ARM, runs that with qemu, and compares with this computer's build: the same plans for all examples at
# several budgets and, with portable kernels, the same weights after training, to the bit.
#   check_arm.sh JOBS short|long [PROGRAM]      (the program of this computer; default: build/remat)
# Ends with 77 where the cross compiler or qemu is missing.
set -eu
jobs=$1 length=$2 here=${3:-build/remat}
folder=build-arm
unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS LDFLAGS
for program in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v $program >/dev/null 2>&1 ||
    { echo "aarch64: skipped, $program is not installed (make check-arm installs it)"; exit 77; }
done
scripts/configure.sh $folder -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.toolchain.cmake
cmake --build $folder -j "$jobs" --target remat_cli -- --no-print-directory -s >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plans=0 trainings=0

there() { qemu-aarch64 -L /usr/aarch64-linux-gnu $folder/remat "$@"; }
# same WHAT: $work/here and $work/there do not differ.
same() {
  cmp "$work/here" "$work/there" >&2 || { echo "aarch64: $1 differs from this computer's" >&2; exit 1; }
}
same_plan() { # arguments of remat
  "$here" "$@" >"$work/here"
  there "$@" >"$work/there"
  same "remat $*"
  plans=$((plans + 1))
}
number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/fit" | head -1; }
same_weights() { # model, then options of remat train
  "$here" train "$@" --kernels portable --quiet --save "$work/here"
  there train "$@" --kernels portable --quiet --save "$work/there"
  same "the trained weights of $*"
  trainings=$((trainings + 1))
}

for budget in 4608 6144 9KiB; do same_plan plan examples/transformer.json --budget $budget --json; done
for strategy in none full sqrt revolve:3 largest:2; do same_plan plan examples/transformer.json --strategy $strategy --json; done
same_plan sweep examples/transformer.json --csv
for model in examples/models/*.ini; do
  "$here" fit "$model" --json >"$work/fit"
  least=$(number min_budget_bytes) most=$(number keep_all_bytes)
  same_plan plan "$model" --budget "$least" --json
  same_plan plan "$model" --budget $(((least + most) / 2)) --json
  [ "$length" != long ] || same_plan plan "$model" --budget $((least + (most - least) / 5)) --json
  [ "$length" != long ] || same_plan sweep "$model" --csv
done

steps=2
[ "$length" != long ] || steps=8
same_weights examples/models/spirals.ini --steps 20
same_weights examples/models/convnet.ini --steps $steps --batch 4
same_weights examples/models/gpt.ini --steps 1 --batch 2 --strategy full
if [ "$length" = long ]; then
  same_weights examples/models/mlp.ini --steps $steps
  same_weights examples/models/resnet.ini --steps 3
  same_weights examples/models/gpt.ini --steps 3 --batch 4
  same_weights examples/models/mlp_bench.ini --steps 2 --batch 16
  same_weights examples/models/gpt_bench.ini --steps 1 --batch 1
  same_weights examples/models/transformer.ini --steps 1 --batch 1
fi
echo "aarch64: $plans plans and the weights of $trainings trainings are those of this computer"
