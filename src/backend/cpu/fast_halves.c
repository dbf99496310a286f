#include "backend/cpu/fast.h"
#include "backend/cpu/kernel_halves.h"

#define X(name)                                                       \
    void FAST(halves_##name)(const kernel_run *, const void *);       \
    void FAST(halves_##name)(const kernel_run *run, const void *args) \
    {                                                                 \
        kernel_run_halves(run, OP_##name, args, FAST(name));          \
    }
KERNEL_HALVES(X)
#undef X
