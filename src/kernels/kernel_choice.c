/* Which of the compiled instruction sets this processor has. */
#include "kernels/kernels.h"

#ifdef REMAT_REAL_IS_DOUBLE

const kernel_table *kernels_fast(void)
{
    return kernels_reference();
}

#else

extern const kernel_table fast_table_portable;
#if defined(__x86_64__)
extern const kernel_table fast_table_avx2, fast_table_avx512;
#endif

const kernel_table *kernels_fast(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &fast_table_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &fast_table_avx2;
#endif
    return &fast_table_portable;
}

#endif
