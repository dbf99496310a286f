/* Remat: in what form an activation is kept.
 *
 * In memory as it is, in memory in 16 bits (half the bytes), or on disk. Only floats can be kept in 16 bits; a state
 * that is anything else is bytes, and comes back as it was. This header has the words that the checkpointer
 * (remat/checkpointer.h) and the tape (remat/tape.h) share. */
#ifndef REMAT_STORE_H
#define REMAT_STORE_H

#include <stdbool.h>

#include <remat/context.h>
#include <remat/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an activation consists of. */
typedef enum remat_element {
    REMAT_BYTES, /* anything; kept as it is */
    REMAT_FLOATS /* 32-bit floats; may be kept in 16 bits */
} remat_element;

/* The precision in which floats are kept. Going down rounds to nearest, ties to even; coming back is exact. NaN stays
 * NaN (a signalling one becomes quiet), infinity stays infinity, numbers too small for a normal one become denormal
 * ones. The bits are the same on every machine. */
typedef remat_dtype remat_precision; /* REMAT_FP32: as they are; REMAT_FP16; REMAT_BF16 */
const char *remat_precision_name(remat_precision precision);

/* What happens when a finite number is too large for 16 bits. It is counted in any case. */
typedef enum remat_overflow {
    REMAT_OVERFLOW_ERROR,    /* REMAT_CHECK_FAILED, naming the first such number */
    REMAT_OVERFLOW_SATURATE, /* the largest finite number of the same sign stands for it */
    REMAT_OVERFLOW_KEEP_FULL /* the whole activation is kept in fp32 */
} remat_overflow;

/* What the stores did. Where there was nothing to do, all zero, and kept_up. */
typedef struct remat_store_counters {
    uint64_t overflows;                   /* finite numbers that were too large for 16 bits */
    uint64_t kept_full;                   /* activations kept in fp32 for that reason */
    uint64_t blocks_written, blocks_read; /* activations that went to disk and came back */
    uint64_t bytes_written, bytes_read;
    uint64_t io_ns;      /* time that the background thread spent writing and reading */
    uint64_t wait_ns;    /* time that the caller stood still for it */
    uint64_t elapsed_ns; /* from the first use of the disk to the last */
    bool kept_up;        /* the waits made the rest of that time at most a tenth longer */
} remat_store_counters;

#ifdef __cplusplus
}
#endif
#endif
