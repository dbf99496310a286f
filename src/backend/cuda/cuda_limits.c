/* The limits of a GPU, as it reaches them: a large product in bf16 and a copy. */
#include "backend/cuda/cuda_limits.h"

#include "backend/cuda/cuda_lanes.h"

enum { LIMIT_SIZE = 8192, LIMIT_ROUNDS = 5 };

/* The best of some rounds: a large product in bf16, and a copy. */
static cudaError_t time_rounds(const cuda_run *run, const op_gemm *product, char *memory, uint64_t bytes,
                               double best[2])
{
    cudaEvent_t events[3] = {NULL};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 3 && error == cudaSuccess; i++)
        error = cudaEventCreate(&events[i]);
    for (int round = 0; round < LIMIT_ROUNDS && error == cudaSuccess; round++) {
        float times[2] = {0};
        cudaEventRecord(events[0], run->stream);
        error = cuda_gemm(run, product);
        cudaEventRecord(events[1], run->stream);
        cudaMemcpyAsync(memory, memory + bytes, bytes, cudaMemcpyDeviceToDevice, run->stream);
        cudaEventRecord(events[2], run->stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(run->stream);
        for (int i = 0; i < 2 && error == cudaSuccess; i++) {
            error = cudaEventElapsedTime(&times[i], events[i], events[i + 1]);
            best[i] = round == 0 || (double)times[i] < best[i] ? (double)times[i] : best[i];
        }
    }
    for (int i = 0; i < 3; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    return error;
}

/* Numbers that are not all alike: a product of zeros takes less power, and so less time. */
static cudaError_t fill_numbers(const cuda_run *run, char *memory, size_t count)
{
    op_dropout drop = {.x = {memory, REMAT_BF16}, .y = {memory, REMAT_BF16}, .step = {run->scratch, REMAT_UINT8}};
    drop.count = count;
    drop.keep = 0.5;
    cudaError_t error = cudaMemsetAsync(run->scratch, 0, sizeof(step_block), run->stream);
    if (error == cudaSuccess)
        error = cuda_fill(run, &(op_fill){.y = drop.y, .count = count, .value = 0.7});
    return error == cudaSuccess ? cuda_dropout(run, &drop) : error;
}

remat_status cuda_measure_limits(backend *owner, backend_limits *limits)
{
    const uint64_t each = (uint64_t)LIMIT_SIZE * LIMIT_SIZE * 2;
    backend_memory memory = {0};
    backend_queue *queue = NULL;
    double best[2] = {1, 1};
    remat_status status = backend_queue_create(owner, &queue);
    if (status == REMAT_OK)
        status = backend_allocate(owner, MEMORY_DEVICE, 4 * each, false, &memory);
    if (status == REMAT_OK) {
        const tensor_ref parts[3] = {
            {memory.at, REMAT_BF16}, {memory.at + each, REMAT_BF16}, {memory.at + 2 * each, REMAT_BF16}};
        const op_gemm product = {.a = parts[0],
                                 .b = parts[1],
                                 .c = parts[2],
                                 .m = LIMIT_SIZE,
                                 .n = LIMIT_SIZE,
                                 .k = LIMIT_SIZE,
                                 .lda = LIMIT_SIZE,
                                 .ldb = LIMIT_SIZE,
                                 .ldc = LIMIT_SIZE};
        cudaError_t error = fill_numbers(cuda_queue_run(queue), memory.at, 2 * (size_t)LIMIT_SIZE * LIMIT_SIZE);
        if (error == cudaSuccess)
            error = time_rounds(cuda_queue_run(queue), &product, memory.at, 2 * each, best);
        if (error != cudaSuccess)
            status = cuda_fail(owner, error, "measuring its limits");
    }
    backend_release(owner, &memory);
    backend_queue_destroy(queue);
    *limits =
        (backend_limits){2e3 * LIMIT_SIZE * LIMIT_SIZE * LIMIT_SIZE / best[0], 1e3 * 4 * (double)each / best[1], 1};
    return status;
}
