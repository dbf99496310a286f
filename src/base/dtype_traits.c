#include "base/dtype_traits.h"

#include "base/checked.h"

static const dtype_traits rows[] = {
    [REMAT_FP32] = {'f', 4, REMAT_FP32, "F32"},
    [REMAT_FP16] = {'h', 2, REMAT_FP32, "F16"},
    [REMAT_BF16] = {'b', 2, REMAT_FP32, "BF16"},
    [REMAT_FP64] = {'d', 8, REMAT_FP64, "F64"}, /* gradient checks compute in it; nothing is trained in it */
    [REMAT_INT32] = {'i', 4, REMAT_INT32, "I32"},
    [REMAT_INT8] = {'c', 1, REMAT_INT32, "I8"},
    [REMAT_UINT8] = {'u', 1, REMAT_INT32, "U8"}, /* also memory of no type: workspaces, the step block */
};

const dtype_traits *dtype_traits_of(remat_dtype dtype)
{
    return &rows[dtype];
}

uint64_t dtype_bytes(remat_dtype dtype, uint64_t count)
{
    return count * rows[dtype].bytes;
}

bool dtype_bytes_checked(remat_dtype dtype, uint64_t count, uint64_t *bytes)
{
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
