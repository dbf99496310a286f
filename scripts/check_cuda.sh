#!/bin/sh
# The kernels, layers and example models on a GPU, compared with the processor: check_cuda.sh [JOBS]. SANITIZE=memcheck (racecheck,
# initcheck) runs the tests of the kernels, and two steps of the example models, under that tool of compute-sanitizer.
set -eu
jobs=${1:-2}
build="build-check"
kernels="test_attention test_batch_norm test_gemm test_gemm_blocks test_group_norm test_joined test_kernel_activations test_kernel_dropout
test_kernel_elementwise test_kernel_embedding test_kernel_losses test_kernel_moments test_kernel_normalize test_kernel_optimizers
test_kernel_rotate test_kernel_softmax test_kernel_sums test_kernel_weights test_window"

# shellcheck disable=SC2086 # a list
env -u MAKEFLAGS cmake --build $build -j "$jobs" --target remat_cli test_cuda_training test_comm_device test_device_ranks $kernels -- --no-print-directory -s

finding=$($build/remat doctor | sed -n 's/^gpu  *//p')
case $finding in
  *", compute capability"*) echo "$finding" ;;
  *) echo "skipped: $finding"; exit 0 ;;
esac

run=
[ -z "${SANITIZE:-}" ] || run="compute-sanitizer --tool $SANITIZE --error-exitcode 99"
failed=0
for test in $kernels; do
  # shellcheck disable=SC2086 # a command and its arguments
  REMAT_TEST_DEVICE=cuda $run $build/tests/"$test" >"$build/$test.cuda.log" 2>&1 ||
    { echo "$test failed: see $build/$test.cuda.log"; failed=1; }
done
for model in ${run:+mlp spirals fruit gpt convnet resnet transformer}; do
  for precision in fp32 bf16; do
    # shellcheck disable=SC2086
    $run $build/remat train examples/models/"$model".ini --device cuda --steps 2 --strategy full --set model.precision=$precision \
      >"$build/$model.cuda.log" 2>&1 || { echo "$model in $precision failed: see $build/$model.cuda.log"; failed=1; }
  done
done
$build/tests/test_cuda_training || failed=1

# check_ranks COUNT DEVICE: transfers, and trainings that must have the bits of one process.
check_ranks() {
  for test in test_comm_device test_device_ranks; do
    log=$build/$test.$1.$2.log
    REMAT_TEST_DEVICE=$2 ranks "$1" "$build/tests/$test" >"$log" 2>&1 ||
      { echo "$test with $1 ranks on $2 failed: see $log"; failed=1; }
  done
}

# One rank, and two that share the first GPU, which NCCL refuses. With several GPUs two ranks have one each, and use NCCL if it is there.
. tests/cli/support/mpirun.sh
if has_mpirun; then
  check_ranks 1 cuda:0
  check_ranks 2 cuda:0
  if [ "$(nvidia-smi -L 2>/dev/null | wc -l)" -ge 2 ]; then check_ranks 2 cuda; else echo "[  SKIPPED ] NCCL: it needs two GPUs"; fi
fi
[ $failed = 0 ] && echo "all tests on the GPU passed"
exit $failed
