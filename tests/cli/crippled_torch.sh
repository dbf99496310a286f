#!/bin/sh
# Comparisons with PyTorch look at its BLAS, and print no ratio where it is crippled.
. tests/cli/support/expect.sh
has_python || exit 77

# judge CODE TEXT ARGUMENT...: what bench/torch_blas.py makes of some libraries.
judge() {
  wanted=$1 text=$2 code=0
  shift 2
  python3 bench/torch_blas.py "$@" >"$work/out" 2>"$work/err" || code=$?
  [ $code = "$wanted" ] || complain "torch_blas.py $*: exit code $code; $(cat "$work/err")"
  out "$text"
}
judge 3 "the reference BLAS (libblas.so.3.11.0)" --libraries /usr/lib/blas/libblas.so.3.11.0 --flags avx2
judge 3 "no BLAS" --libraries --flags avx2
judge 3 "takes this processor for a Prescott" --libraries /lib/openblas-pthread/libopenblas.so.0 --core Prescott --flags avx2 avx512f
out "OPENBLAS_CORETYPE=SKYLAKEX"
judge 3 "though it has avx2" --libraries /lib/libopenblas.so.0 --core Nehalem --flags sse4_2 avx2
out "OPENBLAS_CORETYPE=HASWELL"
judge 0 "OpenBLAS for SkylakeX" --libraries /lib/libopenblas.so.0 --core SkylakeX --flags avx2 avx512f
judge 0 "OpenBLAS for Haswell" --libraries /lib/libopenblas.so.0 --core Haswell --flags avx2
judge 0 "OpenBLAS for Prescott" --libraries /lib/libopenblas.so.0 --core Prescott --flags sse3
judge 0 "MKL" --libraries /lib/libmkl_rt.so --flags avx2

# The table, with a Python that plays PyTorch: its BLAS is the reference one, or an OpenBLAS that must be told the processor.
file python <<'END'
#!/bin/sh
case "$1 ${2:-}" in
  "-c "*) echo 1.13 ;;
  *torch_blas.py*)
    case "$PLAYED ${OPENBLAS_CORETYPE:-}" in
      "reference "*) echo "the reference BLAS"; exit 3 ;;
      "told ") printf 'OpenBLAS, which takes this processor for a Prescott\nOPENBLAS_CORETYPE=HASWELL\n'; exit 3 ;;
      *) echo "OpenBLAS for ${OPENBLAS_CORETYPE:-Haswell}" ;;
    esac ;;
  *torch_step.py*) echo '{"step_seconds": 0.5, "peak_resident_bytes": 1000000}' ;;
esac
END
chmod +x "$work/python"
unset OPENBLAS_CORETYPE
for played in reference told fine; do
  QUICK=1 THREADS=1 ONLY="MLP, batch 128" PLAYED=$played PYTHON="$work/python" sh scripts/compare_torch.sh "$REMAT" \
    >"$work/$played" 2>"$work/err" || complain "the comparison fails: $(cat "$work/err")"
done
ratio() { sed -n 's/^| MLP, batch 128 | [0-9.]* | 500.0 | \([^ ]*\) |.*/\1/p' "$work/$1"; }
[ "$(ratio reference)" = - ] || complain "a ratio against a crippled PyTorch: $(cat "$work/reference")"
grep -q "PyTorch's BLAS: the reference BLAS" "$work/reference" || complain "what was found is not said"
grep -q "no ratios are shown" "$work/reference" || complain "why there is no ratio is not said"
for played in told fine; do
  case $(ratio $played) in [0-9]*.[0-9]*) ;; *) complain "no ratio with $played: $(cat "$work/$played")" ;; esac
done
grep -q "OpenBLAS for HASWELL" "$work/told" || complain "OpenBLAS is not told the processor: $(cat "$work/told")"
finish
