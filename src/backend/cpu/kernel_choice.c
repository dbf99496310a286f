/* Which of the compiled instruction sets this processor has. */
#include "backend/cpu/kernel.h"

extern const kernel_table fast_table_portable;
#if defined(__x86_64__)
extern const kernel_table fast_table_avx2, fast_table_avx512;
#endif

/* A processor that has one of these sets has those after it too. */
static const kernel_table *const best_first[] = {
#if defined(__x86_64__)
    &fast_table_avx512, &fast_table_avx2,
#endif
    &fast_table_portable, NULL};

const kernel_table *const *kernels_available(void)
{
    const kernel_table *const *best = best_first;
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    best += avx512 ? 0 : avx2 ? 1 : 2;
#endif
    return best;
}

const kernel_table *kernels_fast(void)
{
    return *kernels_available();
}
