#!/bin/sh
# Times training steps of remat and of PyTorch, by turns in one run, and prints a Markdown table:
#   scripts/compare_torch.sh [PROGRAM]        (default: build/remat)
# ROUNDS=3 turns each, THREADS=2, ONLY="GPT" for the rows whose names begin with it, QUICK=1 to see whether it works.
# A time is the median over the rounds of the median step of a process, without the making of samples, which PyTorch's
# script does before its clock runs; memory is the most a process had resident. PyTorch's BLAS is looked at first
# (bench/torch_blas.py): where it does not suit the processor, no ratio is printed.
set -eu
cd "$(dirname "$0")/.."
remat=${1:-build/remat}
rounds=${ROUNDS:-3} threads=${THREADS:-2} python=${PYTHON:-/usr/bin/python3}
[ -z "${QUICK:-}" ] || rounds=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$remat" ] || { echo "compare_torch: there is no program '$remat'; build it, or name it: $0 PROGRAM" >&2; exit 2; }

# check_blas: says what PyTorch multiplies with. An OpenBLAS that takes the processor for another is told which it is.
crippled=
check_blas() {
  "$python" bench/torch_blas.py >"$work/blas" 2>"$work/said" || true
  if grep -q '^OPENBLAS_CORETYPE=' "$work/blas"; then
    echo "PyTorch's BLAS: $(head -n 1 "$work/blas"); with $(sed -n 2p "$work/blas"):"
    OPENBLAS_CORETYPE=$(sed -n 's/^OPENBLAS_CORETYPE=//p' "$work/blas")
    export OPENBLAS_CORETYPE
  fi
  "$python" bench/torch_blas.py >"$work/blas" 2>"$work/said" || crippled=1
  [ -s "$work/blas" ] || head -n 1 "$work/said" >"$work/blas"
  echo "PyTorch's BLAS: $(head -n 1 "$work/blas")."
  [ -z "$crippled" ] || echo "With this BLAS PyTorch is many times slower than it can be: no ratios are shown."
}

torch=$("$python" -c 'import numpy, torch; print(torch.__version__)' 2>/dev/null) || torch=
if [ -n "$torch" ]; then
  echo "$rounds rounds, $threads threads; PyTorch $torch with OMP_WAIT_POLICY=passive."
  check_blas
else
  echo "$rounds rounds, $threads threads. PyTorch is not installed (apt install python3-torch), so only remat is timed."
fi
sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo
cat <<'END'

| model | remat ms/step | PyTorch ms/step | ratio | remat MB | PyTorch MB |
|---|---:|---:|---:|---:|---:|
END

# number KEY FILE: every value of the key in JSON texts.
number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$2"; }
computing() { sed -n 's/.*"step_seconds": \([^,]*\), "data_seconds": \([^,]*\),.*/\1 \2/p' "$1" | awk '{ print $1 - $2 }'; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

# complain WHO FILE: a run failed; its messages go out and the row says so.
complain() {
  echo "compare_torch: $1 failed:" >&2
  cat "$2" >&2
}

# row NAME MODEL STEPS BATCH REMAT_OPTIONS TORCH: TORCH is plain, checkpoint, or above: the figures of the row before.
row() {
  name=$1 model=$2 steps=$3 batch=$4 options=$5 against=$6
  case $name in "${ONLY:-}"*) ;; *) return 0 ;; esac
  [ -z "${QUICK:-}" ] || steps=3
  # Enough samples for the batch: a step's time does not depend on how many there are.
  sed 's/^samples = .*/samples = 8192/' "examples/models/$model.ini" >"$work/$model.ini"
  : >"$work/ours"
  [ "$against" = above ] || : >"$work/theirs"
  case $against in checkpoint) torch_options=--checkpoint ;; *) torch_options= ;; esac
  for round in $(seq "$rounds"); do
    echo "$name: round $round of $rounds" >&2
    # The first step of ours is not counted, nor is the one that PyTorch warms up with.
    # shellcheck disable=SC2086 # options are words
    "$remat" train "$work/$model.ini" --batch "$batch" --threads "$threads" --steps $((steps + 1)) $options \
      --quiet --json >>"$work/ours" 2>"$work/said" || complain remat "$work/said"
    if [ -z "$torch" ] || [ "$against" = above ]; then continue; fi
    # shellcheck disable=SC2086
    OMP_WAIT_POLICY=passive "$python" bench/torch_step.py "$work/$model.ini" --batch "$batch" --threads "$threads" \
      --steps "$steps" $torch_options >>"$work/theirs" 2>"$work/said" || complain PyTorch "$work/said"
  done
  [ -f "$work/theirs" ] || : >"$work/theirs"
  awk -v name="$name" -v crippled="$crippled" -v a="$(computing "$work/ours" | median)" \
    -v b="$(number step_seconds "$work/theirs" | median)" \
    -v x="$(number peak_resident_bytes "$work/ours" | sort -g | tail -1)" \
    -v y="$(number peak_resident_bytes "$work/theirs" | sort -g | tail -1)" '
    function show(value, factor, digits) { return value == "" ? "-" : sprintf("%.*f", digits, value * factor) }
    BEGIN {
      ratio = a == "" || b == "" || crippled ? "" : a / b
      print "| " name " | " show(a, 1000, 1) " | " show(b, 1000, 1) " | " show(ratio, 1, 2) " | " show(x, 1e-6, 0) \
        " | " show(y, 1e-6, 0) " |"
    }'
}

row "GPT 6 x 384, all kept" gpt_bench 6 4 "--strategy none" plain
row "GPT 6 x 384, all recomputed; checkpoint per block" gpt_bench 6 4 "--strategy full" checkpoint
row "GPT 6 x 384, within 250 MB; checkpoint per block" gpt_bench 6 4 "--budget 250MB" above
row "GPT 12 x 768, all kept" gpt768 4 2 "--strategy none" plain
row "GPT 12 x 768, all recomputed; checkpoint per block" gpt768 4 2 "--strategy full" checkpoint
row "MLP, batch 128" mlp_bench 40 128 "--strategy none" plain
row "MLP, batch 2048" mlp_bench 8 2048 "--strategy none" plain
row "Convolutional net" convnet 200 32 "--strategy none" plain
row "Residual net" resnet 60 32 "--strategy none" plain
