/* The functions on vectors against libm in double, over all exponents. Built once for each instruction set, with the
 * flags that the library has for it: whether a product and a sum round together decides the last bits. */
#include <float.h>

#include "backend/cpu/fast_math.h"
#include "support/fixture.h"
#include "support/kernel_compare.h"

typedef struct span {
    float low, high;
    double ulps; /* how far a result may be */
} span;

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double exact_normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static double exact_gelu(double x)
{
    return x * exact_normal(x);
}

static double exact_gelu_derivative(double x)
{
    return exact_normal(x) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

/* Walks through all bit patterns of floats with an odd step, so that every exponent and both signs are met. */
#define expect_within(function, exact, span)                                                                      \
    do {                                                                                                          \
        uint32_t step = LESS_WHEN_SANITIZED(1009u, 100003u);                                                      \
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {                                               \
            uint32_t word = (uint32_t)bits;                                                                       \
            float x;                                                                                              \
            memcpy(&x, &word, sizeof x);                                                                          \
            if (!(x >= (span).low && x <= (span).high))                                                           \
                continue;                                                                                         \
            fast_vector y = function(fast_repeat(x));                                                             \
            if (ulps_from(y[0], exact((double)x)) > (span).ulps)                                                  \
                fail_msg("%s(%.9g) is %.9g, exact is %.9g: more than %g ulp", #function, (double)x, (double)y[0], \
                         exact((double)x), (span).ulps);                                                          \
        }                                                                                                         \
    } while (0)

/* The vectors are as long as the set's name says: the flags have come through. */
static void this_is_the_set_that_was_asked_for(void **state)
{
    (void)state;
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
    const char *isa = TEXT(FAST_ISA);
    assert_true(FAST_LANES >= (strcmp(isa, "avx512") == 0 ? 16 : strcmp(isa, "avx2") == 0 ? 8 : 4));
}

static void exp_is_within_1_ulp(void **state)
{
    (void)state;
    expect_within(fast_exp, exp, ((span){-INFINITY, INFINITY, 1.0}));
    /* Thickly where most arguments are, and where results are denormal or about to overflow. */
    for (int i = 0; i < 200000; i++) {
        float spots[] = {-20.0f + 0.0002f * (float)i, -104.0f + 0.0001f * (float)i, 88.0f + 0.00001f * (float)i};
        for (size_t k = 0; k < 3; k++)
            assert_true(ulps_from(fast_exp(fast_repeat(spots[k]))[1], exp((double)spots[k])) <= 1.0);
    }
}

static void tanh_is_within_2_ulp(void **state)
{
    (void)state;
    expect_within(fast_tanh, tanh, ((span){-INFINITY, INFINITY, 1.5}));
    for (int i = 0; i < 200000; i++) {
        float x = -10.0f + 0.0001f * (float)i;
        assert_true(ulps_from(fast_tanh(fast_repeat(x))[2], tanh((double)x)) <= 1.5);
    }
}

static void sigmoid_is_within_3_ulp(void **state)
{
    (void)state;
    expect_within(fast_sigmoid, exact_sigmoid, ((span){-87.0f, INFINITY, 3.0}));
}

/* Steps down the lower tail of the normal distribution, to its denormals, which begin at -12.95, and zeros. */
enum { TAIL_STEPS = LESS_WHEN_SANITIZED(500000, 15000) };
static float tail_step(int i)
{
    return -15.0f * (float)i / (float)TAIL_STEPS;
}

static void gelu_is_within_2_and_a_half_ulp(void **state)
{
    (void)state;
    expect_within(fast_gelu, exact_gelu, ((span){-FLT_MAX, INFINITY, 2.5}));
    for (int i = 0; i < TAIL_STEPS; i++) {
        float x = tail_step(i);
        assert_true(ulps_from(fast_gelu(fast_repeat(x))[2], exact_gelu((double)x)) <= 2.5);
    }
}

/* Near its zero only the difference can be small; below, where values are small, it is so beside them. */
static void gelu_derivative_is_close(void **state)
{
    (void)state;
    for (int i = 0; i < TAIL_STEPS; i++) {
        float x = tail_step(i);
        double below = exact_gelu_derivative((double)x), above = exact_gelu_derivative(-(double)x);
        expect_near(fast_gelu_derivative(fast_repeat(x))[3], below, x > -1 ? 1.5e-7 : 1e-6 * -below + 0x1p-149);
        expect_near(fast_gelu_derivative(fast_repeat(-x))[0], above, 1.5e-7);
    }
}

static void special_values_are_right(void **state)
{
    (void)state;
    fast_vector x = {0};
    x[0] = NAN;
    x[1] = INFINITY;
    x[2] = -INFINITY;
    x[3] = -0.0f;
    fast_vector e = fast_exp(x), t = fast_tanh(x), s = fast_sigmoid(x);
    assert_true(isnan(e[0]) && isnan(t[0]) && isnan(s[0]));
    assert_true(isinf(e[1]) && e[2] == 0.0f && e[3] == 1.0f);
    assert_true(t[1] == 1.0f && t[2] == -1.0f && t[3] == 0.0f && signbit(t[3]));
    fast_vector g = fast_gelu(x), d = fast_gelu_derivative(x);
    assert_true(isinf(g[1]) && g[2] == 0.0f && g[3] == 0.0f && signbit(g[3]));
    assert_true(isnan(d[0]) && d[1] == 1.0f && d[2] == 0.0f && d[3] == 0.5f);
    assert_true(s[1] == 1.0f && s[2] == 0.0f && s[3] == 0.5f);
    for (int kind = ACTIVATION_NONE; kind <= ACTIVATION_SWISH; kind++)
        if (kind != ACTIVATION_RELU && kind != ACTIVATION_LEAKY_RELU)
            assert_true(isnan(fast_activate((activation_kind)kind, x)[0]));
}

static void huge_inputs_have_finite_derivatives(void **state)
{
    (void)state;
    const activation_kind of_input[] = {ACTIVATION_GELU_TANH, ACTIVATION_GELU_ERF, ACTIVATION_SWISH};
    for (size_t k = 0; k < 3; k++)
        for (float x = 30; x < 1e38f; x *= 3) {
            expect_near(fast_activate_derivative(of_input[k], fast_repeat(x))[0], 1, 1e-6);
            expect_near(fast_activate_derivative(of_input[k], fast_repeat(-x))[0], 0, 1e-6);
            expect_near(fast_activate(of_input[k], fast_repeat(-x))[0], 0, 1e-6);
            assert_true(fast_activate(of_input[k], fast_repeat(x))[0] == x);
        }
}

static void lanes_are_summed_and_compared(void **state)
{
    (void)state;
    fast_vector x = {0};
    for (int i = 0; i < FAST_LANES; i++)
        x[i] = (float)(i * i - 3);
    expect_near(fast_sum_lanes(x), (FAST_LANES - 1) * FAST_LANES * (2 * FAST_LANES - 1) / 6 - 3 * FAST_LANES, 0);
    expect_near(fast_max_lanes(x), (FAST_LANES - 1) * (FAST_LANES - 1) - 3, 0);
    for (size_t count = 1; count < FAST_LANES; count++) {
        float memory[FAST_LANES] = {0};
        fast_store_part(memory, fast_repeat(5), count);
        fast_vector first = fast_load_part(memory, count);
        for (size_t i = 0; i < FAST_LANES; i++) {
            assert_true(memory[i] == (i < count ? 5.0f : 0.0f) && first[i] == memory[i]);
            assert_true(fast_first(x, count)[i] == (i < count ? x[i] : 0.0f));
        }
    }
}

static void cuts_cover_everything_once(void **state)
{
    (void)state;
    for (size_t total = 0; total < 700; total++)
        for (size_t parts = 1; parts < 40; parts++) {
            assert_int_equal(fast_cut(total, parts, 0), 0);
            assert_int_equal(fast_cut(total, parts, parts), total);
            for (size_t part = 0; part < parts; part++) {
                size_t length = fast_cut(total, parts, part + 1) - fast_cut(total, parts, part);
                assert_true(length == total / parts || length == total / parts + 1);
            }
        }
}

static bool processor_can_run_this(void)
{
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

/* Apart from main, which may not use the set before it has asked for it. */
static __attribute__((noinline)) int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_is_the_set_that_was_asked_for),
        cmocka_unit_test(exp_is_within_1_ulp),
        cmocka_unit_test(tanh_is_within_2_ulp),
        cmocka_unit_test(sigmoid_is_within_3_ulp),
        cmocka_unit_test(gelu_is_within_2_and_a_half_ulp),
        cmocka_unit_test(gelu_derivative_is_close),
        cmocka_unit_test(special_values_are_right),
        cmocka_unit_test(huge_inputs_have_finite_derivatives),
        cmocka_unit_test(lanes_are_summed_and_compared),
        cmocka_unit_test(cuts_cover_everything_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    enum { SKIPPED = 77 };
    return processor_can_run_this() ? run_all() : SKIPPED;
}
