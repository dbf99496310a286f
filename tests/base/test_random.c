#include "support/cases.h"

#include <math.h>

#include <remat/random.h>

/* The known answers of Random123's kat_vectors for philox4x32-10. */
static void matches_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        remat_philox4x32(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].expected, sizeof out);
    }
}

static void streams_differ_and_repeat(void **state)
{
    (void)state;
    remat_random a = remat_random_stream(1, 2, 3), again = remat_random_stream(1, 2, 3);
    remat_random others[] = {remat_random_stream(2, 2, 3), remat_random_stream(1, 3, 3), remat_random_stream(1, 2, 4),
                             remat_random_stream(1, 3, 2)};
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(remat_random_bits(&a, i), remat_random_bits(&again, i));
        for (size_t k = 0; k < 4; k++)
            assert_int_not_equal(remat_random_bits(&a, i), remat_random_bits(&others[k], i));
    }
}

static void numbers_are_in_range_and_balanced(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    remat_random stream = remat_random_stream(7, 0, 0);
    double uniform = 0, normal = 0, square = 0;
    uint64_t counts[10] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        float u = remat_random_uniform(&stream, i);
        assert_true(u >= 0.0f && u < 1.0f);
        uint64_t below = remat_random_below(&stream, i, 10);
        assert_true(below < 10);
        counts[below]++;
        double z = remat_random_normal(&stream, i);
        assert_true(isfinite(z));
        uniform += (double)u;
        normal += z;
        square += z * z;
    }
    assert_true(fabs(uniform / DRAWS - 0.5) < 0.005);
    assert_true(fabs(normal / DRAWS) < 0.015);
    assert_true(fabs(square / DRAWS - 1.0) < 0.02);
    for (int i = 0; i < 10; i++)
        assert_true(counts[i] > DRAWS / 10 * 95 / 100 && counts[i] < DRAWS / 10 * 105 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_published_vectors),
        cmocka_unit_test(streams_differ_and_repeat),
        cmocka_unit_test(numbers_are_in_range_and_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
