/* The kernels of the CPU: functions that compute the operations of backend/operation.h, in tables. There are two kinds of
 * table. `reference` has plain loops that can be checked by reading, for fp32 and fp64. The fast tables have fp32 only, one
 * table for each instruction set, and kernels_fast() is the best that this processor can run.
 *
 * A new kernel is a function, its line in kernel_rows.h, and for a new operation a plain reference as well. */
#ifndef REMAT_BACKEND_CPU_KERNEL_H
#define REMAT_BACKEND_CPU_KERNEL_H

#include <stdatomic.h>

#include <remat/random.h>

#include "backend/operation.h"
#include "base/parallel.h"

/* What a kernel computes with. `scratch` is aligned to 64 bytes and has threads * scratch_bytes of the table. */
typedef struct kernel_run {
    int threads;
    void *scratch;
} kernel_run;

/* What the threads of a loop share that looks for numbers that are not finite: the operation's struct, and the answer. */
typedef struct finite_loop {
    const void *args;
    atomic_bool *finite;
} finite_loop;

/* `args` is the struct of the operation. */
typedef void (*kernel_function)(const kernel_run *run, const void *args);

/* `types` has one letter for each tensor of the struct: dtype_traits.letter. */
typedef struct kernel_row {
    operation op;
    const char *types;
    kernel_function run;
} kernel_row;

/* The compiler cannot leave out the work that made the value. */
static inline void kernel_keep_value(double value)
{
    __asm__ volatile("" : : "g"(value) : "memory");
}

typedef struct kernel_table {
    const char *name;     /* "reference", "amx", "avx512bf16", "avx512", "avx2", "portable" */
    size_t scratch_bytes; /* for each thread, a multiple of 64 */
    const kernel_row *rows;
    size_t row_count;
    bool multiplies_halves; /* GEMMs multiply in bf16, as pairs.h says, and round a C in bf16 once, however long k is */

    /* The 32-bit numbers first .. first + count - 1 of the stream, as remat_random_block counts them, into host memory;
     * first is a multiple of 64. */
    void (*draw)(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers);

    /* Runs multiply-adds on registers and nothing else, on all threads, to measure the processor's limit. Returns the
     * number of floating-point operations. */
    double (*multiply_adds)(const kernel_run *run, size_t rounds);
} kernel_table;

/* The kernel for an operation on tensors of these types: a letter for each tensor, and '-' for an optional tensor that is
 * not there, which fits any letter. NULL where there is none. */
const kernel_row *kernel_find(const kernel_table *table, operation op, const char *types);

/* Bytes of workspace that an operation needs; 0 for operations that have none. The same for all tables. Reads the sizes
 * and types in `args`, not the addresses. */
uint64_t kernel_workspace(operation op, const void *args);

const kernel_table *kernels_reference(void);
const kernel_table *kernels_fast(void);

/* The fast tables that this processor can run, best first, ended by NULL. */
const kernel_table *const *kernels_available(void);

#endif
