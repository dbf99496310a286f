#!/bin/sh
# Looks at the form of all sources, builds plain and with sanitizers, warnings as errors, and runs all tests in both; those
# that use threads once more with ThreadSanitizer; and compares with a build for ARM. check.sh JOBS
set -eu
jobs=$1
unset MAKEFLAGS MFLAGS MAKELEVEL
# Whatever happens, the last line is the one with which the tests close.
closing="the tests did not run"
trap 'echo "$closing"' EXIT

build_and_test() { # folder, CMake options ...
  closing="$1: the tests did not run"
  scripts/configure.sh "$@" -DREMAT_TESTS=ON -DREMAT_STRICT=ON
  cmake --build "$1" -j "$jobs" -- --no-print-directory -s
  run_tests "$1"
}

run_tests() { # folder, CTest options ...
  folder=$1 code=0
  shift
  # shellcheck disable=SC2086 # a command and its options, or nothing
  ${runner:-} ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error --output-log "$folder/tests.log" \
    "$@" || code=$?
  closing=$(grep "tests passed" "$folder/tests.log") || closing="$folder: no test ran"
  return $code
}

# Data races: the tests that use threads.
check_threads() {
  closing="build-threads: the tests did not run"
  tests="test_parallel test_kernel_activations test_kernel_elementwise test_kernel_embedding test_kernel_losses test_kernel_normalize
    test_kernel_optimizers test_kernel_softmax test_kernel_sums test_gemm test_attention test_batch_norm test_window
    test_layer_bits test_backends test_fenced test_trainer test_resume test_bits test_disk_store test_tape_disk
    test_graph_plan"
  (CC=clang && export CC && unset CFLAGS LDFLAGS && scripts/configure.sh build-threads -DREMAT_TESTS=ON \
    -DREMAT_SANITIZE_THREADS=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1)
  # shellcheck disable=SC2086 # a list of names
  cmake --build build-threads -j "$jobs" --target $tests -- --no-print-directory -s
  runner="env TSAN_OPTIONS=halt_on_error=1"
  # Some kernels scatter addresses more widely than the sanitizer can follow.
  if setarch "$(uname -m)" -R true 2>/dev/null; then runner="$runner setarch $(uname -m) -R"; fi
  # shellcheck disable=SC2086
  run_tests build-threads -R "^($(echo $tests | tr ' ' '|'))\$"
  runner=""
}

scripts/lint.sh
scripts/build.sh "$jobs" # what users build
build_and_test build-sanitize -DREMAT_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
check_threads
scripts/check_arm.sh "$jobs" short || [ $? = 77 ]
build_and_test build-check
parts=$(grep -ho '\[  SKIPPED \] .*' build-check/Testing/Temporary/LastTest.log | sort -u || true)
[ -z "$parts" ] || printf 'Parts of tests that were skipped:\n%s\n' "$parts"
