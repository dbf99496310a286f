#!/bin/sh
# Builds plain and with sanitizers, warnings as errors, and runs all tests in both; those that use threads once more with
# ThreadSanitizer.
set -eu
jobs=$1
# As the program sets it for itself: tests share the cores.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}" KMP_BLOCKTIME="${KMP_BLOCKTIME:-0}"

build_and_test() { # folder, CMake options ...
  folder=$1
  shift
  cmake -S . -B "$folder" -DREMAT_TESTS=ON -DREMAT_STRICT=ON "$@" >"$folder.log" 2>&1 ||
    { cat "$folder.log"; rm -f "$folder.log"; exit 1; }
  rm -f "$folder.log"
  cmake --build "$folder" -j "$jobs" -- --no-print-directory -s
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error
}

# Data races: the tests that use threads, with clang and an OpenMP library that tells the sanitizer who waits for whom.
check_threads() {
  folder=build-threads
  tests="test_kernel_activations test_kernel_elementwise test_kernel_embedding test_kernel_losses test_kernel_normalize
    test_kernel_optimizers test_kernel_softmax test_kernel_sums test_product test_attention test_batch_norm test_window
    test_layer_bits test_trainer test_resume test_bits test_disk_store test_tape_disk test_graph_plan"
  CC=clang cmake -S . -B "$folder" -DREMAT_TESTS=ON -DREMAT_SANITIZE_THREADS=ON -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS_DEBUG=-O1 >"$folder.log" 2>&1 || { cat "$folder.log"; rm -f "$folder.log"; exit 1; }
  rm -f "$folder.log"
  # shellcheck disable=SC2086 # a list of names
  cmake --build "$folder" -j "$jobs" --target $tests -- --no-print-directory -s
  archer=$(find /usr/lib/llvm-*/lib -name libarcher.so 2>/dev/null | sort | tail -1)
  [ -n "$archer" ] || { echo "check: libarcher.so of LLVM's OpenMP is missing (package libomp-dev)" >&2; exit 1; }
  # Some kernels scatter addresses more widely than the sanitizer can follow.
  fixed=""
  if setarch "$(uname -m)" -R true 2>/dev/null; then fixed="setarch $(uname -m) -R"; fi
  # shellcheck disable=SC2086
  OMP_TOOL_LIBRARIES=$archer TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1" $fixed ctest --test-dir "$folder" \
    -j "$jobs" --output-on-failure --no-tests=error -R "^($(echo $tests | tr ' ' '|'))\$"
}

cmake -S . -B build >/dev/null && cmake --build build -j "$jobs" -- --no-print-directory -s # what users build
build_and_test build-sanitize -DREMAT_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
check_threads
build_and_test build-check
