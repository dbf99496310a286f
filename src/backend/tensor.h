/* A reference to a tensor, for layers and kernels: its address and its element type. */
#ifndef REMAT_BACKEND_TENSOR_H
#define REMAT_BACKEND_TENSOR_H

#include <stddef.h>

#include "base/dtype_traits.h"

/* `at` is an address in the memory of a backend. Only kernels may use it, because the memory can be that of a device.
 * An optional tensor that is absent has `at` NULL. */
typedef struct tensor_ref {
    void *at;
    remat_dtype type;
} tensor_ref;

#define TENSOR_NONE ((tensor_ref){NULL, REMAT_FP32})

/* The same tensor from element `first` on. */
static inline tensor_ref tensor_from(tensor_ref tensor, uint64_t first)
{
    if (tensor.at)
        tensor.at = (char *)tensor.at + dtype_bytes(tensor.type, first);
    return tensor;
}

#endif
