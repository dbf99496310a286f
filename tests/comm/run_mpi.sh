#!/bin/sh
# Runs a test program as several ranks on this machine: run_mpi.sh RANKS PROGRAM [ARGUMENT...]
set -eu
. tests/cli/support/environment.sh
. tests/cli/support/mpirun.sh
has_mpirun || exit 77
ranks "$@"
