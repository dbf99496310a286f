/* Functions on vectors for the fast kernels: loads and stores, selection, sums in a fixed order, exp and its relatives,
 * activations. The bits of a result do not depend on its lane: the end of a row goes through the same functions, in a
 * vector filled up with zeros.
 *
 * Fused multiply-adds are written out (fast_fma): the library is compiled with -ffp-contract=off, so that every compiler
 * gives the same bits. Coefficients are minimax fits with room for the error of sets without fused multiply-adds. */
#ifndef REMAT_BACKEND_CPU_FAST_MATH_H
#define REMAT_BACKEND_CPU_FAST_MATH_H

#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "backend/cpu/fast.h"

#define FAST_INLINE static inline __attribute__((always_inline))
/* For functions whose loops need all registers: code around them would take some. */
#define FAST_NOINLINE static __attribute__((noinline, unused))

/* The lanes of two vectors in another order, by constant numbers. */
#ifdef __clang__
#define FAST_SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define FAST_SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (fast_integers){__VA_ARGS__})
#endif

/* Fewer values than this are not worth a second thread. */
#define FAST_VALUES_FOR_THREADS 16384
static inline int fast_threads(const kernel_run *run, size_t values)
{
    return values < FAST_VALUES_FOR_THREADS ? 1 : run->threads;
}

/* Values are handed to threads in blocks of this many, a multiple of every vector's length. */
#define FAST_BLOCK 4096
static inline size_t fast_blocks(size_t count)
{
    return divide_up(count, FAST_BLOCK);
}
static inline size_t fast_block_length(size_t count, size_t from)
{
    return smaller(count - from, FAST_BLOCK);
}

/* Sums are cut into at most this many parts; part p of n goes from fast_cut(total, n, p) to that of p + 1. */
#define FAST_MOST_PARTS 256
static inline size_t fast_parts(size_t total, size_t least)
{
    return smaller(divide_up(total, least), FAST_MOST_PARTS);
}
static inline size_t fast_cut(size_t total, size_t parts, size_t part)
{
    return total / parts * part + total % parts * part / parts;
}

/* Memory. Nothing needs to be aligned. The `part` versions access `count` values only, 0 < count < FAST_LANES. */

FAST_INLINE fast_vector fast_load(const float *from)
{
    fast_vector x;
    memcpy(&x, from, sizeof x);
    return x;
}

FAST_INLINE void fast_store(float *to, fast_vector x)
{
    memcpy(to, &x, sizeof x);
}

FAST_INLINE fast_vector fast_repeat(float value)
{
    return value - (fast_vector){0};
}

/* The mask of the first `count` lanes. */
FAST_INLINE fast_integers fast_lanes_below(size_t count)
{
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    fast_integers lanes;
    memcpy(&lanes, numbers, sizeof lanes);
    return lanes < (int32_t)count;
}

/* x, with 0 in the lanes from `count` on. */
FAST_INLINE fast_vector fast_first(fast_vector x, size_t count)
{
    return (fast_vector)((fast_integers)x & fast_lanes_below(count));
}

#if defined(__AVX512F__)

FAST_INLINE fast_vector fast_load_part(const float *from, size_t count)
{
    return (fast_vector)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}

FAST_INLINE void fast_store_part(float *to, fast_vector x, size_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)x);
}

#elif defined(__AVX2__)

FAST_INLINE fast_vector fast_load_part(const float *from, size_t count)
{
    return (fast_vector)_mm256_maskload_ps(from, (__m256i)fast_lanes_below(count));
}

FAST_INLINE void fast_store_part(float *to, fast_vector x, size_t count)
{
    _mm256_maskstore_ps(to, (__m256i)fast_lanes_below(count), (__m256)x);
}

#else

FAST_INLINE fast_vector fast_load_part(const float *from, size_t count)
{
    fast_vector x = {0};
    for (size_t i = 0; i < count; i++)
        x[i] = from[i];
    return x;
}

FAST_INLINE void fast_store_part(float *to, fast_vector x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = x[i];
}

#endif

/* STEP(LOAD, STORE, i, FIRST) over 0 <= i < count: whole vectors first, then what is left as a part. A step is a macro
 * that reads LOAD(pointer + i), writes STORE(pointer + i, vector), and may use FIRST(vector), which is 0 in the lanes
 * beyond the count: those must not join a sum. */
#define FAST_ALL_(x)            (x)
#define FAST_LOAD_PART_(from)   fast_load_part(from, fast_left)
#define FAST_STORE_PART_(to, x) fast_store_part(to, x, fast_left)
#define FAST_FIRST_(x)          fast_first(x, fast_left)
#define FAST_EACH(count, STEP)                                             \
    do {                                                                   \
        size_t fast_at = 0, fast_count = (count);                          \
        for (; fast_at + FAST_LANES <= fast_count; fast_at += FAST_LANES)  \
            STEP(fast_load, fast_store, fast_at, FAST_ALL_);               \
        size_t fast_left = fast_count - fast_at;                           \
        if (fast_left)                                                     \
            STEP(FAST_LOAD_PART_, FAST_STORE_PART_, fast_at, FAST_FIRST_); \
    } while (0)

/* Selection. `mask` is the result of a comparison of vectors: all bits of a lane or none. */

FAST_INLINE fast_vector fast_select(fast_integers mask, fast_vector yes, fast_vector no)
{
    return (fast_vector)((mask & (fast_integers)yes) | (~mask & (fast_integers)no));
}

/* a > b ? a : b and a < b ? a : b: where either is NaN, b. */
FAST_INLINE fast_vector fast_max(fast_vector a, fast_vector b)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (fast_vector)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return fast_select(a > b, a, b);
#endif
}

FAST_INLINE fast_vector fast_min(fast_vector a, fast_vector b)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (fast_vector)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return fast_select(a < b, a, b);
#endif
}

FAST_INLINE fast_vector fast_sqrt(fast_vector x)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (fast_vector)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < FAST_LANES; i++)
        x[i] = sqrtf(x[i]);
    return x;
#endif
}

FAST_INLINE fast_vector fast_magnitude(fast_vector x)
{
    return (fast_vector)((fast_integers)x & 0x7fffffff);
}

/* The magnitude of the first with the sign of the second. */
FAST_INLINE fast_vector fast_with_sign(fast_vector magnitude, fast_vector sign)
{
    return (fast_vector)(((fast_integers)magnitude & 0x7fffffff) | ((fast_integers)sign & INT32_MIN));
}

/* Across the lanes, by halves: (0 + 2) + (1 + 3) of four, always in this order. */

FAST_INLINE float fast_sum_lanes(fast_vector x)
{
#if defined(__AVX512F__)
    __m256 half = _mm512_castps512_ps256((__m512)x) + _mm512_extractf32x8_ps((__m512)x, 1);
#elif defined(__AVX2__)
    __m256 half = (__m256)x;
#endif
#if defined(__AVX2__)
    __m128 four = _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#else
    fast_vector four = x;
#endif
    return (four[0] + four[2]) + (four[1] + four[3]);
}

FAST_INLINE float fast_max_lanes(fast_vector x)
{
    for (int half = FAST_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
    return x[0];
}

/* Multiply-adds, rounded once where the instruction set has fused ones, else twice. */

/* a * b + c */
FAST_INLINE fast_vector fast_fma(fast_vector a, fast_vector b, fast_vector c)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (fast_vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* a * b - c */
FAST_INLINE fast_vector fast_fms(fast_vector a, fast_vector b, fast_vector c)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_fmsub_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (fast_vector)_mm256_fmsub_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b - c;
#endif
}

/* c - a * b */
FAST_INLINE fast_vector fast_fnma(fast_vector a, fast_vector b, fast_vector c)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (fast_vector)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return c - a * b;
#endif
}

FAST_INLINE float fast_fma_float(float a, float b, float c)
{
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

FAST_INLINE double fast_fma_double(double a, double b, double c)
{
#if defined(__FMA__)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* One step of Horner's rule: p * x + coefficient. */
FAST_INLINE fast_vector fast_horner(fast_vector p, fast_vector x, float coefficient)
{
    return fast_fma(p, x, fast_repeat(coefficient));
}

/* A value that is yet to be scaled, x * 2^n for whole n of -252 .. 252: what x is multiplied by before the scaling meets
 * no denormals. */
typedef struct fast_scaled {
    fast_vector x, n;
} fast_scaled;

/* Two powers of 2 whose product is 2^n, which itself may be out of range. */
typedef struct fast_powers {
    fast_vector first, second;
} fast_powers;

FAST_INLINE fast_powers fast_powers_of_2(fast_vector n)
{
    /* Added to 1.5 * 2^23, n stands in the lowest bits. */
    fast_integers whole = (fast_integers)(n + 0x1.8p23f) - 0x4b400000;
    fast_integers half = whole >> 1;
    return (fast_powers){(fast_vector)((half + 127) << 23), (fast_vector)((whole - half + 127) << 23)};
}

/* x * 2^n; results that are denormal or too large come out right. */
FAST_INLINE fast_vector fast_scale(fast_scaled value)
{
#if defined(__AVX512F__)
    return (fast_vector)_mm512_scalef_ps((__m512)value.x, (__m512)value.n);
#else
    fast_powers power = fast_powers_of_2(value.n);
    return value.x * power.first * power.second;
#endif
}

/* c + x * 2^n, and c - x * 2^n. */
FAST_INLINE fast_vector fast_add_scaled(fast_vector c, fast_scaled value)
{
#if defined(__AVX512F__)
    return c + fast_scale(value);
#else
    fast_powers power = fast_powers_of_2(value.n);
    return fast_fma(value.x * power.first, power.second, c);
#endif
}

FAST_INLINE fast_vector fast_subtract_scaled(fast_vector c, fast_scaled value)
{
#if defined(__AVX512F__)
    return c - fast_scale(value);
#else
    fast_powers power = fast_powers_of_2(value.n);
    return fast_fnma(value.x * power.first, power.second, c);
#endif
}

/* (e^r - 1 - r) / r^2 for |r| < 0.4. */
FAST_INLINE fast_vector fast_exp_curve(fast_vector r)
{
    fast_vector p = fast_horner(fast_repeat(1.939808879e-4f), r, 1.389997664e-3f);
    p = fast_horner(p, r, 8.333261181e-3f);
    p = fast_horner(p, r, 4.166666862e-2f);
    p = fast_horner(p, r, 1.666666666e-1f);
    return fast_horner(p, r, 0.5f);
}

/* The whole n with 2^n nearest to e^x, for |x| < 2^20: beside 1.5 * 2^23 there are no bits for a fraction. */
FAST_INLINE fast_vector fast_nearest_power(fast_vector x)
{
    return fast_horner(x, fast_repeat(1.44269504f), 0x1.8p23f) - 0x1.8p23f;
}

#define FAST_LN2      0x1.63p-1f        /* its first bits: times a small whole number, exact */
#define FAST_LN2_REST (-2.12194440e-4f) /* and what they lack */

/* e^x = 2^n e^r, |r| <= ln(2) / 2. */
FAST_INLINE fast_scaled fast_exp_scaled(fast_vector x)
{
    x = fast_min(fast_repeat(89.0f), fast_max(fast_repeat(-104.0f), x)); /* beyond: infinity and 0; NaN passes */
    fast_vector n = fast_nearest_power(x);
    fast_vector r = fast_fnma(n, fast_repeat(FAST_LN2), x);
    r = fast_fnma(n, fast_repeat(FAST_LN2_REST), r);
    return (fast_scaled){fast_fma(fast_exp_curve(r), r * r, r) + 1.0f, n};
}

/* e^x, within 1 ulp everywhere, with the right infinity, denormals, zero and NaN. */
FAST_INLINE fast_vector fast_exp(fast_vector x)
{
    return fast_scale(fast_exp_scaled(x));
}

/* 1 + e^x. */
FAST_INLINE fast_vector fast_1_plus_exp(fast_vector x)
{
    return fast_add_scaled(fast_repeat(1.0f), fast_exp_scaled(x));
}

/* Within 2 ulp. Near 0 an odd polynomial; elsewhere 1 - 2 / (e^2x + 1), which has no cancellation there. */
FAST_INLINE fast_vector fast_tanh(fast_vector x)
{
    fast_vector a = fast_magnitude(x), s = x * x;
    fast_vector p = fast_horner(fast_repeat(-5.717043373e-3f), s, 2.065058610e-2f);
    p = fast_horner(p, s, -5.374349787e-2f);
    p = fast_horner(p, s, 1.333149129e-1f);
    p = fast_horner(p, s, -3.333328393e-1f);
    fast_vector near = fast_fma(p * s, x, x);
    fast_vector far = 1.0f - 2.0f / fast_1_plus_exp(a + a);
    return fast_with_sign(fast_select(a < 0.625f, near, far), x);
}

FAST_INLINE fast_vector fast_sigmoid(fast_vector x)
{
    return 1.0f / fast_1_plus_exp(-x);
}

/* x with the first 12 bits of its significand: products of two such are exact. */
FAST_INLINE fast_vector fast_first_bits(fast_vector x)
{
    return (fast_vector)((fast_integers)x & ~0xfff);
}

/* The distance from 0, cut at 15: beyond, the tails of the normal distribution are 0. */
FAST_INLINE fast_vector fast_depth(fast_vector x)
{
    return fast_min(fast_repeat(15.0f), fast_magnitude(x));
}

#define FAST_DENSITY 0.39894228f /* of the normal distribution at 0: 1 / sqrt(2 pi) */

typedef enum fast_tail_kind {
    FAST_TAIL,       /* N(-a), the normal distribution's chance of a value below -a */
    FAST_TAIL_SLOPE, /* N(-a) - a N'(a), the derivative of x N(x) at -a */
} fast_tail_kind;

/* The lower tail at -a for a = fast_depth(x): N(-a) = e^(-a^2 / 2) R(a), where R falls gently, in the end like 1 / a.
 * R = w (1 + z) with w = 7/16 / (a + 13/16) and a polynomial z of a / (a + 59/16), |z| < 0.09; one division makes
 * both. Little may be lost, for a^2 / 2 goes up to 100 and each rounding of R is one of the result:
 *
 * - a = t + u, where t has 12 bits: t^2 is exact, and so is its remainder s by ln(2). What else
 *   is in the exponent is small.
 * - w need not be exact, if what it lacks is known: that goes into the exponent too.
 * - e^s, the small exponent and 1 + z come together as 1 + (s + small), so that nothing is rounded at full size but
 *   the last sum. */
FAST_INLINE fast_scaled fast_normal_tail(fast_tail_kind kind, fast_vector a)
{
    const float start = 0.8125f, level = 0.4375f;
    fast_vector d = a + start, e = a + 3.6875f, both = level / (d * e), w = both * e;

    fast_vector p = fast_horner(both * d, a, -0.125f);
    fast_vector z = fast_horner(fast_repeat(3.684099843e+2f), p, -1.401816462e+2f);
    z = fast_horner(z, p, -1.460820609e+2f);
    z = fast_horner(z, p, 7.638476633e+1f);
    z = fast_horner(z, p, 5.200177388e+1f);
    z = fast_horner(z, p, -6.573608483e+1f);
    z = fast_horner(z, p, 2.951616299e+1f);
    z = fast_horner(z, p, -6.157921895f);
    z = fast_horner(z, p, -9.495130533e-2f);
    z = fast_horner(z, p, 8.785467774e-2f);

    fast_vector d_first = fast_first_bits(d), t = d_first - start, u = a - t; /* d_first + u is a + start, exactly */
    fast_vector w_first = fast_first_bits(w);
    fast_vector lack = fast_fnma(w_first, d_first, fast_repeat(level)); /* level - w * d, without losing bits */
    lack = fast_fnma(w - w_first, d_first, lack);
    lack = fast_fnma(w, u, lack);

    fast_vector square = t * (t * -0.5f), n = fast_nearest_power(square),
                s = fast_fnma(n, fast_repeat(FAST_LN2), square);
    fast_vector small = fast_fma(lack, fast_repeat(1.0f / level), n * -FAST_LN2_REST);
    small = fast_fnma(u, fast_fma(u, fast_repeat(0.5f), t), small);
    fast_vector r = s + small;
    small = fast_fma(fast_exp_curve(r), r * r, small); /* e^r is now 1 + (s + small) */
    fast_vector grown = s + small;
    if (kind == FAST_TAIL_SLOPE) {
        fast_vector slope = fast_fma(w, z, fast_fnma(a, fast_repeat(FAST_DENSITY), w));
        return (fast_scaled){fast_fma(slope, grown, slope), n};
    }
    grown = s + (fast_fma(z, grown, z) + small);
    return (fast_scaled){fast_fma(w, grown, w), n};
}

/* x N(x), within 2.5 ulp everywhere: below 0 it is -|x| times the tail, above 0 that is what x lacks. */
FAST_INLINE fast_vector fast_gelu(fast_vector x)
{
    fast_vector a = fast_depth(x);
    fast_scaled tail = fast_normal_tail(FAST_TAIL, a);
    tail.x = tail.x * a;
    return fast_subtract_scaled(fast_max((fast_vector){0}, x), tail);
}

/* Its derivative N(x) + x N'(x), which has a zero near -0.75: within 1.5e-7. */
FAST_INLINE fast_vector fast_gelu_derivative(fast_vector x)
{
    fast_vector tail = fast_scale(fast_normal_tail(FAST_TAIL_SLOPE, fast_depth(x)));
    return fast_select(x < 0.0f, tail, 1.0f - tail);
}

/* Activations. Call them with a constant `kind`, so that the switch is gone from the loop; FAST_ACTIVATIONS makes the
 * constants. */

#define FAST_GELU_SLOPE 0.79788456f /* sqrt(2 / pi) */
#define FAST_GELU_CUBE  0.044715f
#define FAST_LEAKY      0.01f

FAST_INLINE fast_vector fast_activate(activation_kind kind, fast_vector x)
{
    switch (kind) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_RELU: return fast_max((fast_vector){0}, x);
    case ACTIVATION_LEAKY_RELU: return fast_select(x > 0.0f, x, x * FAST_LEAKY);
    case ACTIVATION_GELU_TANH: /* (1 + tanh(u)) / 2 is the sigmoid of 2u */
        return x / fast_1_plus_exp(x * fast_horner(x * x, fast_repeat(-2.0f * FAST_GELU_SLOPE * FAST_GELU_CUBE),
                                                   -2.0f * FAST_GELU_SLOPE));
    case ACTIVATION_GELU_ERF: return fast_gelu(x);
    case ACTIVATION_SIGMOID: return fast_sigmoid(x);
    case ACTIVATION_TANH: return fast_tanh(x);
    case ACTIVATION_SWISH: return x / fast_1_plus_exp(-x);
    }
    return x;
}

/* The derivative, from the output where activation_reads_output(kind), else from the input. */
FAST_INLINE fast_vector fast_activate_derivative(activation_kind kind, fast_vector v)
{
    const fast_vector one = fast_repeat(1.0f);
    switch (kind) {
    case ACTIVATION_NONE: return one;
    case ACTIVATION_RELU: return fast_select(v > 0.0f, one, (fast_vector){0});
    case ACTIVATION_LEAKY_RELU: return fast_select(v > 0.0f, one, fast_repeat(FAST_LEAKY));
    case ACTIVATION_GELU_TANH: { /* flat beyond 10, where the squares of large values would overflow */
        fast_vector x = fast_min(fast_repeat(10.0f), fast_max(fast_repeat(-10.0f), v)), s = x * x;
        fast_vector half = fast_sigmoid(
            x * fast_horner(s, fast_repeat(2.0f * FAST_GELU_SLOPE * FAST_GELU_CUBE), 2.0f * FAST_GELU_SLOPE));
        fast_vector slope =
            fast_horner(s, fast_repeat(6.0f * FAST_GELU_SLOPE * FAST_GELU_CUBE), 2.0f * FAST_GELU_SLOPE);
        return fast_fma(x * slope, half * (1.0f - half), half);
    }
    case ACTIVATION_GELU_ERF: return fast_gelu_derivative(v);
    case ACTIVATION_SIGMOID: return v * (1.0f - v);
    case ACTIVATION_TANH: return fast_fnma(v, v, one);
    case ACTIVATION_SWISH: {
        fast_vector s = fast_sigmoid(v);
        return fast_fma(v, s * (1.0f - s), s);
    }
    }
    return one;
}

/* DO(kind) for every kind. */
#define FAST_ACTIVATIONS(DO)  \
    DO(ACTIVATION_NONE)       \
    DO(ACTIVATION_RELU)       \
    DO(ACTIVATION_LEAKY_RELU) \
    DO(ACTIVATION_GELU_TANH) DO(ACTIVATION_GELU_ERF) DO(ACTIVATION_SIGMOID) DO(ACTIVATION_TANH) DO(ACTIVATION_SWISH)

/* Whether all values times the factor are finite: times 0 they are 0 then, and NaN else. */
FAST_INLINE bool fast_all_finite(size_t count, const float *x, float factor)
{
    fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST) sum += LOAD(x + i) * factor * 0.0f
    FAST_EACH(count, STEP);
#undef STEP
    return fast_sum_lanes(sum) == 0.0f;
}

#endif
