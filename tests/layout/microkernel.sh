#!/bin/sh
# The sums of the GEMM microkernel live in registers: in what compilers make of it, hardly a vector is on the stack. With clang
# they once did not, and the GEMM took three times as long.
. tests/cli/support/expect.sh
case $(uname -m) in x86_64) ;; *) echo "the test knows x86-64 only: skipped"; exit 77 ;; esac
looked=0
# look COMPILER SET TILE OPTION...: compiles one tile function.
look() {
  compiler=$1 set=$2 tile=$3
  shift 3
  printf '%s\n' '#include "backend/cpu/fast_gemm_kernel.h"' "extern tile_function *const keep;" "tile_function *const keep = $tile;" >"$work/tile.c"
  "$compiler" -S -O3 -std=gnu11 -D_GNU_SOURCE -DFAST_ISA="$set" "$@" -ffp-contract=off -fPIC -Iinclude -Isrc "$work/tile.c" -o "$work/tile.s" ||
    { complain "$compiler does not compile the microkernel"; return; }
  sed -n "/^$tile:/,/\.cfi_endproc/p" "$work/tile.s" >"$work/function"
  grep -q vfmadd "$work/function" || complain "$compiler, $set: $tile has no multiply-adds"
  spilled=$(grep -cE 'mm[0-9]+.*\(%r[sb]p|\(%r[sb]p.*mm[0-9]+' "$work/function" || true)
  [ "$spilled" -le 4 ] || complain "$compiler, $set: $tile has $spilled vectors on the stack"
  looked=$((looked + 1))
}
for compiler in gcc clang; do
  command -v $compiler >/dev/null 2>&1 || { part_skipped "$compiler is not installed"; continue; }
  look "$compiler" avx2 tile_by_step_4x3 -mavx2 -mfma
  look "$compiler" avx512 tile_by_step_8x3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512
done
[ "$looked" -gt 0 ] || exit 77
finish
