#include "base/dtype_traits.h"

#include "base/checked.h"

#include <stddef.h>

enum { BLOCK = 64 }; /* WEIGHT_BLOCK */

static const dtype_traits rows[] = {
    [REMAT_FP32] = {'f', 4, REMAT_FP32, "F32", false},
    [REMAT_FP16] = {'h', 2, REMAT_FP32, "F16", false},
    [REMAT_BF16] = {'b', 2, REMAT_FP32, "BF16", false},
    [REMAT_FP64] = {'d', 8, REMAT_FP64, "F64", false}, /* gradient checks compute in it; nothing is trained in it */
    [REMAT_INT32] = {'i', 4, REMAT_INT32, "I32", false},
    [REMAT_INT8] = {'c', 1, REMAT_INT32, "I8", false},
    [REMAT_UINT8] = {'u', 1, REMAT_INT32, "U8", false}, /* also memory of no type: workspaces, the step block */
    [REMAT_INT8_BLOCKS] = {'q', 68, REMAT_FP32, NULL, true},
    [REMAT_INT4_BLOCKS] = {'n', 36, REMAT_FP32, NULL, true},
};

const dtype_traits *dtype_traits_of(remat_dtype dtype)
{
    return &rows[dtype];
}

uint64_t dtype_bytes(remat_dtype dtype, uint64_t count)
{
    return (rows[dtype].blocks ? (count + BLOCK - 1) / BLOCK : count) * rows[dtype].bytes;
}

bool dtype_bytes_checked(remat_dtype dtype, uint64_t count, uint64_t *bytes)
{
    if (rows[dtype].blocks)
        count = count / BLOCK + (count % BLOCK > 0);
    return remat_multiply(count, rows[dtype].bytes, bytes);
}

const char *remat_dtype_name(remat_dtype dtype)
{
    switch (dtype) {
#define X(name, value, text) \
    case name: return text;
        REMAT_DTYPE_LIST(X)
#undef X
    }
    return "unknown";
}
