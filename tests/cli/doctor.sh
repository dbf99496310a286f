#!/bin/sh
# remat doctor: what it finds agrees with what the system says.
. tests/cli/support/expect.sh

expect 0 doctor
silent err
out "version        $("$REMAT" --version | sed 's/remat //')"
out "$(nproc) usable of"
for name in kernels features "Open MPI" memory "group limit" "address space" threads libraries; do out "$name"; done
! grep -qE 'libg?omp' "$work/out" || complain "it needs an OpenMP library"
expect 0 doctor --json
out '"format": "remat-doctor"'
expect 2 doctor file.json
err "too much"

# A limit that is set is found, with what it means. Sanitizers need more address space than this leaves.
if [ "$REMAT_SANITIZE" != ON ]; then
  # shellcheck disable=SC3045 # dash and bash have -v
  (ulimit -v 4000000 && "$REMAT" doctor >"$work/out" 2>"$work/err") || complain "it fails under a limit"
  out "4,096,000,000 bytes"
  out "RLIMIT_AS"
fi
finish
