/* What the library knows about an element type: one row of a table. No other code knows how many bytes an element
 * takes. A new type is a row here, a line of REMAT_DTYPE_LIST, and the kernels that support it. */
#ifndef REMAT_BASE_DTYPE_TRAITS_H
#define REMAT_BASE_DTYPE_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <remat/dtype.h>

typedef struct dtype_traits {
    char letter;             /* in the signatures of kernels: 'f' is fp32 */
    uint32_t bytes;          /* of one element; of a block of 64 where `blocks` */
    remat_dtype accumulator; /* the type in which sums, statistics and losses over this type are kept */
    const char *safetensors; /* its name in weights files; NULL: it is never in one */
    bool blocks;
} dtype_traits;

/* The row of a type. */
const dtype_traits *dtype_traits_of(remat_dtype dtype);

/* The bytes of `count` elements. The caller has checked that they are below 2^63. */
uint64_t dtype_bytes(remat_dtype dtype, uint64_t count);

/* The same with a check: false if the bytes reach 2^63. */
bool dtype_bytes_checked(remat_dtype dtype, uint64_t count, uint64_t *bytes);

#endif
