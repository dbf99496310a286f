/* How large the blocks of a GEMM are: a table for each instruction set, by shape. */
#ifndef REMAT_BACKEND_CPU_FAST_GEMM_TABLE_H
#define REMAT_BACKEND_CPU_FAST_GEMM_TABLE_H

#include "backend/cpu/fast.h"

typedef struct gemm_blocks {
    size_t rows, columns; /* at most so many; whole tiles (of FAST_LANES rows, as they are packed) */
    bool pack_a;          /* an A that is stored row by row is packed */
} gemm_blocks;

/* The packed blocks of A and B must fit the scratch of a thread. */
static inline bool gemm_blocks_fit(const gemm_blocks *of)
{
    return (of->rows + of->columns) * OPERATION_K_BLOCK * sizeof(float) <= FAST_SCRATCH_BYTES;
}

/* The blocks that the table has for a GEMM. */
typedef gemm_blocks gemm_blocks_function(const op_gemm *p);
/* The GEMM in any blocks. The bits do not depend on them. */
typedef void gemm_in_blocks_function(const kernel_run *run, const op_gemm *p, const gemm_blocks *blocks);

/* Both functions for each instruction set: gemm_blocks_for_avx2, gemm_in_blocks_avx2 and so on. */
#if defined(__x86_64__)
#define GEMM_ISAS(X) X(portable) X(avx2) X(avx512)
#else
#define GEMM_ISAS(X) X(portable)
#endif
#define X(isa)                                  \
    gemm_blocks_function gemm_blocks_for_##isa; \
    gemm_in_blocks_function gemm_in_blocks_##isa;
GEMM_ISAS(X)
#undef X

/* The same by name, for tests and benchmarks: GEMM_ISAS(GEMM_ISA_ROW) fills an array of these. */
typedef struct gemm_isa {
    const char *name;
    gemm_blocks_function *blocks_for;
    gemm_in_blocks_function *in_blocks;
} gemm_isa;
#define GEMM_ISA_ROW(isa) {#isa, gemm_blocks_for_##isa, gemm_in_blocks_##isa},

#endif
