/* Floats in 16 bits: fp16 and bf16.
 *
 * Every set of kernels gives the same bits on every machine, with any rounding and denormal settings. The plain set is
 * the reference. Choose a set once and keep it: querying the processor is slow in a virtual machine. Buffers must not
 * overlap, and need no more alignment than their type. Safe across threads. */
#ifndef REMAT_BASE_HALF_H
#define REMAT_BASE_HALF_H

#include <remat/store.h>

typedef struct half_kernels {
    const char *name;
    /* Both return how many finite numbers became infinite. */
    uint64_t (*pack_fp16)(const float *from, uint16_t *to, size_t count);
    uint64_t (*pack_bf16)(const float *from, uint16_t *to, size_t count);
    void (*unpack_fp16)(const uint16_t *from, float *to, size_t count);
    void (*unpack_bf16)(const uint16_t *from, float *to, size_t count);
} half_kernels;

/* The fastest kernels that this machine can run. */
const half_kernels *half_kernels_choose(void);
/* All kernels that it can run, for tests. The plain ones are at 0. NULL past the end. */
const half_kernels *half_kernels_list(size_t position);

/* fp32 to REMAT_FP16 or REMAT_BF16. Returns how many finite numbers were too large. With `saturate` they become the
 * largest finite number. Without it they become infinity; if there are any, the caller must not use `to`, but fail or
 * keep `from` in full. */
uint64_t half_pack(const half_kernels *kernels, remat_precision precision, bool saturate, const float *from,
                   uint16_t *to, size_t count);
/* And back, exactly. */
void half_unpack(const half_kernels *kernels, remat_precision precision, const uint16_t *from, float *to, size_t count);

/* The position of the first number that half_pack counts, for messages; `count` where there is none. */
size_t half_first_overflow(remat_precision precision, const float *from, size_t count);

#endif
