#!/bin/sh
# Builds twice, plain and with sanitizers, warnings as errors, and runs all tests in both.
set -eu
jobs=$1

build_and_test() { # folder, CMake options ...
  folder=$1
  shift
  cmake -S . -B "$folder" -DREMAT_TESTS=ON -DREMAT_STRICT=ON "$@" >"$folder.log" 2>&1 ||
    { cat "$folder.log"; rm -f "$folder.log"; exit 1; }
  rm -f "$folder.log"
  cmake --build "$folder" -j "$jobs" -- --no-print-directory -s
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error
}

cmake -S . -B build >/dev/null && cmake --build build -j "$jobs" -- --no-print-directory -s # what users build
build_and_test build-sanitize -DREMAT_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
build_and_test build-check
