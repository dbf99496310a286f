#include "backend/cpu/fast.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

extern const kernel_table FAST(fast_table);
const kernel_table FAST(fast_table) = {.name = TEXT(FAST_ISA),
                                       .scratch_bytes = FAST_SCRATCH_BYTES,
#define X(name) .name = FAST(name),
                                       KERNEL_LIST(X)
#undef X
};
