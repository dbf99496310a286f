/* The table of the reference kernels, and what it has beside them. */
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/reference.h"

static void draw(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t from = 0; from < count; from += 4) {
        uint32_t block[4];
        remat_random_block(stream, (first + from) / 4, block);
        for (size_t i = from; i < count && i < from + 4; i++)
            numbers[i] = block[i - from];
    }
}

static double multiply_adds(const kernel_run *run, size_t rounds)
{
    double sink = 0, flops = 0;
#pragma omp parallel num_threads(run->threads) reduction(+ : sink, flops)
    {
        float a = 0, b = 1;
        for (size_t r = 0; r < rounds; r++) {
            a = a * 0.999f + 0.001f;
            b = b * 0.999f + 0.001f;
        }
        sink += (double)(a + b);
        flops += 4.0 * (double)rounds;
    }
    return flops + (sink != sink ? 1 : 0); /* the sum is used, so that the compiler cannot leave the work out */
}

static const kernel_row rows[] = {
#define FP32(name, types) {OP_##name, types, reference_##name##_fp32},
#define FP64(name, types) {OP_##name, types, reference_##name##_fp64},
#define STEP(name, types) {OP_##name, types, kernel_##name},
    KERNEL_ROWS(FP32, "f") KERNEL_ROWS(FP64, "d") KERNEL_STEP_ROWS(STEP)
#undef FP32
#undef FP64
#undef STEP
};

const kernel_table *kernels_reference(void)
{
    static const kernel_table table = {
        .name = "reference",
        .scratch_bytes = 0,
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .draw = draw,
        .multiply_adds = multiply_adds,
    };
    return &table;
}
