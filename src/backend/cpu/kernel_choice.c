/* Which of the compiled instruction sets this processor has. */
#include "backend/cpu/kernel.h"

extern const kernel_table fast_table_portable;
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const kernel_table fast_table_avx2, fast_table_avx512;
#if defined(REMAT_HAS_PAIRS) /* the compiler knows them */
extern const kernel_table fast_table_avx512bf16, fast_table_amx;
#endif
#endif

/* A processor that has one of these sets has those after it too. */
static const kernel_table *const best_first[] = {
#if defined(REMAT_HAS_PAIRS)
    &fast_table_amx,      &fast_table_avx512bf16,
#endif
#if defined(__x86_64__)
    &fast_table_avx512,   &fast_table_avx2,
#endif
    &fast_table_portable, NULL};

#if defined(REMAT_HAS_PAIRS)

enum { PAIRS_SETS = 2 };
enum { HAS_AVX512_BF16 = 1 << 5, HAS_AMX_BF16 = 1 << 22, HAS_AMX_TILE = 1 << 24 };
enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

static bool has_avx512_bf16(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & HAS_AVX512_BF16);
}

/* Linux gives tiles to a process that asks for them. */
static bool has_amx(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & HAS_AMX_BF16) && (d & HAS_AMX_TILE) &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* How many sets of pairs the processor lacks; it has AVX-512. Intel's dot products are slower than multiply-adds in fp32, and those of a
 * processor without tiles count as lacking. */
static size_t missing_pairs(void)
{
    return !has_avx512_bf16() ? 2 : has_amx() ? 0 : __builtin_cpu_is("intel") ? 2 : 1;
}

#elif defined(__x86_64__)

enum { PAIRS_SETS = 0 };
static size_t missing_pairs(void)
{
    return 0;
}

#endif

#if defined(__x86_64__)

/* Its place in the list. */
static size_t find_best(void)
{
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? missing_pairs() : avx2 ? PAIRS_SETS + 1 : PAIRS_SETS + 2;
}

#endif

const kernel_table *const *kernels_available(void)
{
    size_t best = 0;
#if defined(__x86_64__)
    static atomic_size_t found; /* and 1; 0: nobody has looked yet */
    best = atomic_load_explicit(&found, memory_order_relaxed);
    if (best == 0) {
        best = find_best() + 1;
        atomic_store_explicit(&found, best, memory_order_relaxed);
    }
    best--;
#endif
    return best_first + best;
}

const kernel_table *kernels_fast(void)
{
    return *kernels_available();
}
