/* Remat: how a kept activation is stored.
 *
 * A kept activation is in memory unchanged, in memory in 16 bits (half the bytes), or on disk. This header has the
 * types that the checkpointer (remat/checkpointer.h) and the tape (remat/tape.h) share. */
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
    REMAT_BYTES, /* anything; it is never changed */
    REMAT_FLOATS /* 32-bit floats; they may be stored in 16 bits */
} remat_element;

/* The element type in which floats are stored: REMAT_FP32 (unchanged), REMAT_FP16 or REMAT_BF16. Converting to 16 bits
 * rounds to nearest, ties to even; converting back is exact. NaN stays NaN (signalling NaNs become quiet), infinity
 * stays infinity, and small numbers become subnormal. The bits are the same on every machine. */
typedef remat_dtype remat_precision;
const char *remat_precision_name(remat_precision precision);

/* What happens when a finite number is too large for 16 bits. Such numbers are counted in any case. */
typedef enum remat_overflow {
    REMAT_OVERFLOW_ERROR,    /* the call fails with REMAT_CHECK_FAILED and names the first such number */
    REMAT_OVERFLOW_SATURATE, /* the number becomes the largest finite number of the same sign */
    REMAT_OVERFLOW_KEEP_FULL /* the whole activation is stored in fp32 */
} remat_overflow;

/* What the stores did. */
typedef struct remat_store_counters {
    uint64_t overflows;                   /* finite numbers that were too large for 16 bits */
    uint64_t kept_full;                   /* activations stored in fp32 for that reason */
    uint64_t blocks_written, blocks_read; /* activations written to disk and read back */
    uint64_t bytes_written, bytes_read;
    uint64_t io_ns;      /* the time that the background thread spent writing and reading */
    uint64_t wait_ns;    /* the time that the caller waited for the background thread */
    uint64_t elapsed_ns; /* from the first use of the disk to the last */
    bool kept_up;        /* for the disk: it was fast enough; waiting made the run at most a tenth longer */
} remat_store_counters;

#ifdef __cplusplus
}
#endif
#endif
