#include "support/fixture.h"

#include "base/dtype_traits.h"
#include "base/half.h"

#include <math.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* A 16-bit format, described by its fields; values and neighbours follow from the definition, in doubles. */
typedef struct format {
    remat_precision precision;
    unsigned fraction_bits;
    int bias;
    uint16_t infinity;
} format;
static const format formats[] = {{REMAT_FP16, 10, 15, 0x7c00}, {REMAT_BF16, 7, 127, 0x7f80}};
#define FOR_EACH_FORMAT(f) for (const format *f = formats; f < formats + 2; f++)
#define FOR_EACH_KERNELS(k)                                      \
    for (size_t k##_at = 0; half_kernels_list(k##_at); k##_at++) \
        for (const half_kernels *k = half_kernels_list(k##_at); k; k = NULL)

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool is_nan(const format *f, uint16_t half)
{
    return (half & 0x7fff) > f->infinity;
}

/* The value of a pattern that is not NaN. */
static double value_of(const format *f, uint16_t half)
{
    int exponent = (half & 0x7fff) >> f->fraction_bits;
    double fraction = ldexp(half & ((1 << f->fraction_bits) - 1), -(int)f->fraction_bits);
    double magnitude = exponent ? ldexp(1 + fraction, exponent - f->bias) : ldexp(fraction, 1 - f->bias);
    if ((half & 0x7fff) == f->infinity)
        magnitude = INFINITY;
    return half & 0x8000 ? -magnitude : magnitude;
}

static uint16_t pack_one(const half_kernels *kernels, const format *f, float value, bool saturate, uint64_t *overflows)
{
    /* Repeated, so that vector code and not only the rest at the end sees it. */
    float from[67];
    uint16_t to[67];
    for (size_t i = 0; i < 67; i++)
        from[i] = value;
    uint64_t counted = half_pack(kernels, f->precision, saturate, from, to, 67);
    assert_true(counted % 67 == 0);
    for (size_t i = 1; i < 67; i++)
        assert_int_equal(to[i], to[0]);
    *overflows = counted / 67;
    return to[0];
}

static void every_pattern_comes_back(void **state)
{
    (void)state;
    uint16_t *patterns = malloc(2 << 16), *again = malloc(2 << 16);
    float *values = malloc(4 << 16);
    for (size_t i = 0; i < 1 << 16; i++)
        patterns[i] = (uint16_t)i;
    FOR_EACH_FORMAT(f) FOR_EACH_KERNELS(k)
    {
        half_unpack(k, f->precision, patterns, values, 1 << 16);
        assert_int_equal(half_pack(k, f->precision, false, values, again, 1 << 16), 0);
        for (size_t i = 0; i < 1 << 16; i++) {
            uint16_t quiet = (uint16_t)(1 << (f->fraction_bits - 1));
            uint16_t wanted = is_nan(f, patterns[i]) ? patterns[i] | quiet : patterns[i];
            assert_int_equal(again[i], wanted);
            assert_int_equal(isnan(values[i]) != 0, is_nan(f, patterns[i]));
            if (!is_nan(f, patterns[i]))
                assert_true((double)values[i] == value_of(f, patterns[i]) &&
                            !signbit(values[i]) == !(patterns[i] & 0x8000));
        }
    }
    free(patterns);
    free(again);
    free(values);
}

/* Rounding is decided by what happens around each representable number and around the middle of each two neighbours. */
static void rounds_to_nearest_even(void **state)
{
    (void)state;
    FOR_EACH_FORMAT(f) FOR_EACH_KERNELS(k)
    {
        for (uint32_t half = 0; half < f->infinity; half++) {
            double low = value_of(f, (uint16_t)half), high = value_of(f, (uint16_t)(half + 1));
            if (half + 1u == f->infinity)
                high = 2 * low - value_of(f, (uint16_t)(half - 1)); /* what would come next */
            float middle = (float)(low + (high - low) / 2);
            assert_true((double)middle == low + (high - low) / 2);
            uint16_t even = (uint16_t)(half + half % 2);
            uint64_t overflows;
            for (int negative = 0; negative < 2; negative++) {
                float sign = negative ? -1 : 1;
                uint16_t bit = negative ? 0x8000 : 0;
                assert_int_equal(pack_one(k, f, sign * middle, false, &overflows), bit | even);
                assert_int_equal(overflows, even == f->infinity);
                float below = from_bits(to_bits(middle) - 1), above = from_bits(to_bits(middle) + 1);
                assert_int_equal(pack_one(k, f, sign * below, false, &overflows), bit | half);
                assert_int_equal(overflows, 0);
                assert_int_equal(pack_one(k, f, sign * above, false, &overflows), bit | (half + 1));
                assert_int_equal(overflows, half + 1u == f->infinity);
            }
        }
    }
}

static void special_numbers(void **state)
{
    (void)state;
    uint64_t overflows;
    FOR_EACH_FORMAT(f) FOR_EACH_KERNELS(k) for (int saturate = 0; saturate < 2; saturate++)
    {
        uint16_t largest = (uint16_t)(f->infinity - 1);
        assert_int_equal(pack_one(k, f, INFINITY, saturate, &overflows), f->infinity);
        assert_int_equal(overflows, 0);
        assert_int_equal(pack_one(k, f, -INFINITY, saturate, &overflows), f->infinity | 0x8000);
        assert_int_equal(overflows, 0);
        assert_int_equal(pack_one(k, f, from_bits(0x7f7fffff), saturate, &overflows), saturate ? largest : f->infinity);
        assert_int_equal(overflows, 1);
        assert_int_equal(pack_one(k, f, from_bits(0xff7fffff), saturate, &overflows),
                         0x8000 | (saturate ? largest : f->infinity));
        assert_int_equal(overflows, 1);
        /* Every single bit of a NaN, signalling ones too: none becomes infinity or a number. */
        for (unsigned bit = 0; bit < 23; bit++)
            for (unsigned sign = 0; sign < 2; sign++) {
                uint16_t packed = pack_one(k, f, from_bits(sign << 31 | 0x7f800000 | 1u << bit), saturate, &overflows);
                assert_true(is_nan(f, packed));
                assert_int_equal(packed >> 15, sign);
                assert_int_equal(overflows, 0);
            }
        assert_int_equal(pack_one(k, f, from_bits(0x80000000), saturate, &overflows), 0x8000);
        assert_int_equal(pack_one(k, f, from_bits(1), saturate, &overflows), 0); /* the least denormal */
    }
}

static void compare_kernels(const format *f, const half_kernels *k, const float *from, size_t count)
{
    const half_kernels *plain = half_kernels_list(0);
    uint16_t *a = malloc(2 * count + 2), *b = malloc(2 * count + 2);
    float *c = malloc(4 * count + 4), *d = malloc(4 * count + 4);
    a[count] = b[count] = 0xabcd; /* must stay */
    c[count] = d[count] = 7;
    assert_int_equal(half_pack(k, f->precision, false, from, a, count),
                     half_pack(plain, f->precision, false, from, b, count));
    assert_memory_equal(a, b, 2 * count + 2);
    half_unpack(k, f->precision, a, c, count);
    half_unpack(plain, f->precision, a, d, count);
    assert_memory_equal(c, d, 4 * count + 4);
    free(a);
    free(b);
    free(c);
    free(d);
}

static void all_kernels_give_the_same_bits(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    test_random random = {seed};
    enum { MOST = 1 << 16 };
    float *from = malloc(4 * MOST);
    uint32_t step = (uint32_t)test_random_next(&random) | 1, bits = step;
    size_t rounds = LESS_WHEN_SANITIZED(300, 60);
    for (size_t round = 0; round < rounds; round++) {
        /* Patterns from all over, of which an odd step visits each only once; and lengths that leave something over. */
        size_t start = round % 5, count = round % 2 ? round : MOST - start - round % 70;
        for (size_t i = 0; i < MOST; i++)
            from[i] = from_bits(bits += step);
        FOR_EACH_FORMAT(f) FOR_EACH_KERNELS(k) compare_kernels(f, k, from + start, count);
    }
    free(from);
}

static void overflow_is_found_and_counted(void **state)
{
    (void)state;
    float values[100];
    uint16_t packed[100];
    for (size_t i = 0; i < 100; i++)
        values[i] = (float)i;
    values[3] = INFINITY;
    FOR_EACH_FORMAT(f)
    {
        assert_int_equal(half_first_overflow(f->precision, values, 100), 100);
        values[41] = f->precision == REMAT_FP16 ? -65520.0f : -0x1.ffp127f;
        values[99] = 0x1.fffffep127f;
        assert_int_equal(half_first_overflow(f->precision, values, 100), 41);
        FOR_EACH_KERNELS(k)
        {
            assert_int_equal(half_pack(k, f->precision, true, values, packed, 100), 2);
            assert_int_equal(packed[41], 0x8000 | (f->infinity - 1));
            assert_int_equal(packed[99], f->infinity - 1);
            assert_int_equal(packed[3], f->infinity);
        }
        values[41] = values[99] = 1;
    }
}

/* What a program sets in its floating-point control must not change what is stored. */
static void thread_settings_do_not_matter(void **state)
{
    (void)state;
#ifdef __x86_64__
    float from[512], there[512], back[512];
    uint16_t wanted[512], packed[512];
    for (uint32_t i = 0; i < 512; i++)
        from[i] = from_bits(0x33000001u + i * 0x10007u); /* fp16's denormals and above */
    for (uint32_t i = 0; i < 64; i++)
        from[i] = from_bits(0x1234u + i * 0x12345u); /* fp32's denormals */
    unsigned before = _mm_getcsr();
    FOR_EACH_FORMAT(f) FOR_EACH_KERNELS(k)
    {
        half_pack(k, f->precision, false, from, wanted, 512);
        half_unpack(k, f->precision, wanted, there, 512);
        _mm_setcsr(before | 0x8040 | 0x4000); /* flush to zero, denormals are zero, round up */
        half_pack(k, f->precision, false, from, packed, 512);
        half_unpack(k, f->precision, packed, back, 512);
        _mm_setcsr(before);
        assert_memory_equal(packed, wanted, sizeof wanted);
        assert_memory_equal(back, there, sizeof there);
    }
#endif
}

static void names_and_sizes(void **state)
{
    (void)state;
    assert_string_equal(remat_precision_name(REMAT_FP32), "fp32");
    assert_string_equal(remat_precision_name(REMAT_FP16), "fp16");
    assert_string_equal(remat_precision_name(REMAT_BF16), "bf16");
    assert_int_equal(dtype_bytes(REMAT_FP32, 3), 12);
    assert_int_equal(dtype_bytes(REMAT_BF16, 3), 6);
    assert_string_equal(half_kernels_list(0)->name, "plain");
    assert_non_null(half_kernels_choose());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_comes_back),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(special_numbers),
        cmocka_unit_test(all_kernels_give_the_same_bits),
        cmocka_unit_test(overflow_is_found_and_counted),
        cmocka_unit_test(thread_settings_do_not_matter),
        cmocka_unit_test(names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
