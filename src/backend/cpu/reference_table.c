#include "backend/cpu/reference.h"

const kernel_table *kernels_reference(void)
{
    static const kernel_table table = {.name = "reference",
                                       .scratch_bytes = 0,
#define X(name) .name = reference_##name,
                                       KERNEL_LIST(X)
#undef X
    };
    return &table;
}
