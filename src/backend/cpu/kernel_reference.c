/* The table of the reference kernels, and what it has beside them. */
#include "backend/cpu/kernel_halves.h"
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/reference.h"

typedef struct draw_loop {
    const remat_random *stream;
    uint64_t first;
    size_t count;
    uint32_t *numbers;
} draw_loop;

/* A pass of the loop is a block of four numbers. */
static void draw_blocks(const void *args, parallel_range range)
{
    const draw_loop *loop = args;
    for (size_t number = range.begin; number < range.end; number++) {
        uint32_t block[4];
        size_t from = 4 * number;
        remat_random_block(loop->stream, loop->first / 4 + number, block);
        for (size_t i = from; i < loop->count && i < from + 4; i++)
            loop->numbers[i] = block[i - from];
    }
}

static void draw(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers)
{
    const draw_loop loop = {stream, first, count, numbers};
    parallel_static(run->threads, (count + 3) / 4, draw_blocks, &loop);
}

static void multiply_and_add(const void *args, parallel_range range)
{
    const size_t *rounds = args;
    for (size_t i = range.begin; i < range.end; i++) {
        float a = 0, b = 1;
        for (size_t r = 0; r < *rounds; r++) {
            a = a * 0.999f + 0.001f;
            b = b * 0.999f + 0.001f;
        }
        kernel_keep_value((double)(a + b));
    }
}

static double multiply_adds(const kernel_run *run, size_t rounds)
{
    int threads = parallel_start(run->threads);
    parallel_static(threads, (size_t)threads, multiply_and_add, &rounds);
    return 4.0 * (double)rounds * threads;
}

#define X(name)                                                           \
    static void halves_##name(const kernel_run *run, const void *args)    \
    {                                                                     \
        kernel_run_halves(run, OP_##name, args, reference_##name##_fp32); \
    }
KERNEL_HALVES(X)
#undef X

static const kernel_row rows[] = {
#define HALVES(name, types) {OP_##name, types, halves_##name},
#define FP32(name, types)   {OP_##name, types, reference_##name##_fp32},
#define FP64(name, types)   {OP_##name, types, reference_##name##_fp64},
#define STEP(name, types)   {OP_##name, types, kernel_##name},
    KERNEL_ROWS(FP32, "f") KERNEL_ROWS(FP64, "d") FP64(gemm, "dddddd") KERNEL_CONVERT_ROWS(FP32) KERNEL_GEMM_ROWS(FP32)
        KERNEL_GATHER_ROWS(FP32) KERNEL_HALVES_ROWS(HALVES) KERNEL_MOMENT_ROWS(FP32) KERNEL_STEP_ROWS(STEP)
            KERNEL_PLAIN_ROWS
#undef FP32
#undef FP64
#undef STEP
#undef HALVES
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
