#include "base/half_plain.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

/* The conversion instructions take their rounding from the operand and always heed fp16's denormals, so that the
 * thread's floating-point settings do not matter. What is left over at the end goes through the plain code. */
#define NEAREST_EVEN (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

#define AVX2   __attribute__((target("avx2,f16c,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,popcnt")))

/* ---- AVX2 with F16C ---- */

AVX2 static uint64_t avx2_pack_fp16(const float *from, uint16_t *to, size_t count)
{
    const __m256i magnitudes = _mm256_set1_epi32(0x7fffffff), infinite = _mm256_set1_epi32((int)FP32_INFINITY),
                  below = _mm256_set1_epi32((int)FP16_OVERFLOW - 1);
    uint64_t overflows = 0;
    size_t at = 0;
    for (; count - at >= 8; at += 8) {
        __m256 values = _mm256_loadu_ps(from + at);
        __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(values), magnitudes);
        __m256i over = _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, below), _mm256_cmpgt_epi32(infinite, magnitude));
        overflows += (uint64_t)__builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(over)));
        _mm_storeu_si128((__m128i *)(void *)(to + at), _mm256_cvtps_ph(values, NEAREST_EVEN));
    }
    return overflows + fp16_pack_each(from + at, to + at, count - at);
}

AVX2 static void avx2_unpack_fp16(const uint16_t *from, float *to, size_t count)
{
    size_t at = 0;
    for (; count - at >= 8; at += 8)
        _mm256_storeu_ps(to + at, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + at))));
    fp16_unpack_each(from + at, to + at, count - at);
}

AVX2 static uint64_t avx2_pack_bf16(const float *from, uint16_t *to, size_t count)
{
    return bf16_pack_runs(from, to, count);
}

AVX2 static void avx2_unpack_bf16(const uint16_t *from, float *to, size_t count)
{
    bf16_unpack_runs(from, to, count);
}

/* ---- AVX-512 ---- */

AVX512 static uint64_t avx512_pack_fp16(const float *from, uint16_t *to, size_t count)
{
    const __m512i magnitudes = _mm512_set1_epi32(0x7fffffff), infinite = _mm512_set1_epi32((int)FP32_INFINITY),
                  limit = _mm512_set1_epi32((int)FP16_OVERFLOW);
    uint64_t overflows = 0;
    size_t at = 0;
    for (; count - at >= 16; at += 16) {
        __m512 values = _mm512_loadu_ps(from + at);
        __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(values), magnitudes);
        __mmask16 over = _mm512_mask_cmplt_epi32_mask(_mm512_cmpge_epi32_mask(magnitude, limit), magnitude, infinite);
        overflows += (uint64_t)__builtin_popcount((unsigned)over);
        _mm256_storeu_si256((__m256i *)(void *)(to + at), _mm512_cvtps_ph(values, NEAREST_EVEN));
    }
    return overflows + fp16_pack_each(from + at, to + at, count - at);
}

AVX512 static void avx512_unpack_fp16(const uint16_t *from, float *to, size_t count)
{
    size_t at = 0;
    for (; count - at >= 16; at += 16)
        _mm512_storeu_ps(to + at, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + at))));
    fp16_unpack_each(from + at, to + at, count - at);
}

AVX512 static uint64_t avx512_pack_bf16(const float *from, uint16_t *to, size_t count)
{
    return bf16_pack_runs(from, to, count);
}

AVX512 static void avx512_unpack_bf16(const uint16_t *from, float *to, size_t count)
{
    bf16_unpack_runs(from, to, count);
}

static const half_kernels avx2 = {"avx2", avx2_pack_fp16, avx2_pack_bf16, avx2_unpack_fp16, avx2_unpack_bf16};
static const half_kernels avx512 = {"avx512", avx512_pack_fp16, avx512_pack_bf16, avx512_unpack_fp16,
                                    avx512_unpack_bf16};

/* Older clangs do not know "f16c" in __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const half_kernels *half_kernels_x86(size_t position)
{
    const half_kernels *found[2];
    size_t count = 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        found[count++] = &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && has_f16c())
        found[count++] = &avx2;
    return position < count ? found[position] : NULL;
}

#else

const half_kernels *half_kernels_x86(size_t position)
{
    (void)position;
    return NULL;
}

#endif
