#!/bin/sh
# Training in bf16 against fp32: the losses of STEPS steps (300) of the GPT of the benchmarks on the demo's text. Fails where the
# mean of a tenth of the steps is more than 0.5 % off that of fp32, or the mean of all. Takes ten minutes.
# usage: scripts/compare_precision.sh [PROGRAM [OPTION ...]]        (default: build/remat; options are of `remat train`, for bf16 only)
set -eu
remat=${1:-build/remat}
[ $# -eq 0 ] || shift
[ -x "$remat" ] || { echo "compare_precision: there is no program '$remat'; build it, or name it: $0 PROGRAM" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=${STEPS:-300}
data=$(pwd)/examples/data
sed "s|^Type = random|Type = text|; s|^samples = .*|inputs = $data/clock.txt|" examples/models/gpt_bench.ini >"$work/gpt.ini"
losses() {
  "$remat" train "$work/gpt.ini" --set model.clip_norm=1 --set optimizer.warmup_steps=50 --set optimizer.schedule=cosine \
    --strategy none --steps "$steps" --log "$work/log" -q "$@"
  sed -n 's/.*"step": \([0-9]*\),.*"loss": \([0-9.e+-]*\),.*/\1 \2/p' "$work/log"
}
losses >"$work/fp32"
losses --set model.precision=bf16 "$@" >"$work/bf16"
[ -z "${KEEP:-}" ] || paste "$work/fp32" "$work/bf16" >"$KEEP"
paste "$work/fp32" "$work/bf16" | awk -v steps="$steps" '
  function off(a, b) { return a > b ? a / b - 1 : b / a - 1 }
  {
    part = int(($1 - 1) * 10 / steps)
    fp32[part] += $2; bf16[part] += $4; count[part]++; all_fp32 += $2; all_bf16 += $4
    if (off($2, $4) > worst) { worst = off($2, $4); at = $1 }
  }
  END {
    for (part = 0; part < 10; part++) {
      if (!count[part]) continue
      printf "steps to %3d: fp32 %.5f, bf16 %.5f: %+.3f %%\n", (part + 1) * steps / 10, fp32[part] / count[part],
        bf16[part] / count[part], 100 * (bf16[part] / fp32[part] - 1)
      if (off(fp32[part], bf16[part]) > 0.005) failed = 1
    }
    printf "all steps: %+.3f %%; the worst step, %d: %.3f %%\n", 100 * (all_bf16 / all_fp32 - 1), at, 100 * worst
    exit failed || off(all_fp32, all_bf16) > 0.005
  }'
