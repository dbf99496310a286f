/* The fast kernels. Every fast_*.c is compiled once for each instruction set with FAST_ISA naming it (CMakeLists.txt has
 * the list); FAST(gemm) is then gemm_avx512, gemm_avx2 or gemm_portable. Vectors are those of the compiler
 * (`vector_size`), FAST_LANES floats each, so that one text serves all sets. */
#ifndef REMAT_BACKEND_CPU_FAST_H
#define REMAT_BACKEND_CPU_FAST_H

#include "backend/cpu/kernel.h"

#ifndef FAST_ISA
#define FAST_ISA portable
#endif
#define FAST_JOIN_(name, isa) name##_##isa
#define FAST_JOIN(name, isa)  FAST_JOIN_(name, isa)
#define FAST(name)            FAST_JOIN(name, FAST_ISA)

#if defined(__AVX512F__)
#define FAST_LANES 16
#elif defined(__AVX__)
#define FAST_LANES 8
#else
#define FAST_LANES 4
#endif

typedef float fast_vector __attribute__((vector_size(FAST_LANES * 4)));
typedef int32_t fast_integers __attribute__((vector_size(FAST_LANES * 4)));

/* Scratch for each thread, shared by all kernels that need some: attention (the most), GEMM, convolutions and sums. */
#define FAST_SCRATCH_BYTES ((size_t)129 << 13)
static inline float *fast_scratch(const kernel_run *run, int thread)
{
    return (float *)((char *)run->scratch + (size_t)thread * FAST_SCRATCH_BYTES);
}

static inline size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

static inline size_t larger(size_t x, size_t y)
{
    return x > y ? x : y;
}

static inline size_t divide_up(size_t x, size_t y)
{
    return (x + y - 1) / y;
}

static inline size_t round_up(size_t x, size_t unit)
{
    return divide_up(x, unit) * unit;
}

#define X(name, tensors) void FAST(name)(const kernel_run *run, const void *args);
OPERATION_LIST(X)
#undef X
void FAST(draw)(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers);
double FAST(multiply_adds)(const kernel_run *run, size_t rounds);

#endif
