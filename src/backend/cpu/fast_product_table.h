/* How large the blocks of a product are: a table for each instruction set, by shape. */
#ifndef REMAT_BACKEND_CPU_FAST_PRODUCT_TABLE_H
#define REMAT_BACKEND_CPU_FAST_PRODUCT_TABLE_H

#include "backend/cpu/fast.h"

typedef struct product_blocks {
    size_t rows, columns; /* at most so many; whole tiles (of FAST_LANES rows, as they are packed) */
    bool pack_a;          /* an A that is stored row by row is packed */
} product_blocks;

/* The packed blocks of A and B must fit the scratch of a thread. */
static inline bool product_blocks_fit(const product_blocks *of)
{
    return (of->rows + of->columns) * OPERATION_K_BLOCK * sizeof(float) <= FAST_SCRATCH_BYTES;
}

/* The blocks that the table has for a product. */
typedef product_blocks product_blocks_function(const op_product *p);
/* The product in any blocks. The bits do not depend on them. */
typedef void product_in_blocks_function(const kernel_run *run, const op_product *p, const product_blocks *blocks);

/* Both functions for each instruction set: product_blocks_for_avx2, product_in_blocks_avx2 and so on. */
#if defined(__x86_64__)
#define PRODUCT_ISAS(X) X(portable) X(avx2) X(avx512)
#else
#define PRODUCT_ISAS(X) X(portable)
#endif
#define X(isa)                                        \
    product_blocks_function product_blocks_for_##isa; \
    product_in_blocks_function product_in_blocks_##isa;
PRODUCT_ISAS(X)
#undef X

/* The same by name, for tests and benchmarks: PRODUCT_ISAS(PRODUCT_ISA_ROW) fills an array of these. */
typedef struct product_isa {
    const char *name;
    product_blocks_function *blocks_for;
    product_in_blocks_function *in_blocks;
} product_isa;
#define PRODUCT_ISA_ROW(isa) {#isa, product_blocks_for_##isa, product_in_blocks_##isa},

#endif
