#include "support/cases.h"

#include "data/permutation.h"

static void expect_permutation(uint64_t count, uint64_t seed, uint64_t epoch)
{
    permutation order = permutation_make(count, seed, epoch);
    unsigned char *seen = calloc(count, 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = permutation_at(&order, i);
        assert_true(at < count);
        assert_int_equal(seen[at], 0);
        seen[at] = 1;
    }
    free(seen);
}

static void every_number_stands_once(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    for (uint64_t count = 1; count <= 300; count++)
        expect_permutation(count, test_random_next(&random), test_random_next(&random));
    static const uint64_t sizes[] = {1023, 1024, 1025, 4095, 4096, 4097, 10007, 65536, 65537, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        expect_permutation(sizes[i], test_random_next(&random), i);
}

static void the_key_decides(void **state)
{
    (void)state;
    permutation a = permutation_make(1000, 7, 3), again = permutation_make(1000, 7, 3);
    permutation other_seed = permutation_make(1000, 8, 3), other_epoch = permutation_make(1000, 7, 4),
                far_epoch = permutation_make(1000, 7, 3 + ((uint64_t)1 << 32));
    int same_seed = 0, same_epoch = 0, same_far = 0, fixed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t at = permutation_at(&a, i);
        assert_int_equal(at, permutation_at(&again, i));
        same_seed += at == permutation_at(&other_seed, i);
        same_epoch += at == permutation_at(&other_epoch, i);
        same_far += at == permutation_at(&far_epoch, i);
        fixed += at == i;
    }
    /* One place in a thousand agrees by chance; ten would be one in ten million. */
    assert_true(same_seed < 10 && same_epoch < 10 && same_far < 10 && fixed < 10);
}

/* All orders of five come up about equally often. */
static void orders_are_uniform(void **state)
{
    (void)state;
    enum { KEYS = 24000, ORDERS = 120 };
    uint32_t counts[5 * 5 * 5 * 5 * 5] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        permutation order = permutation_make(5, 42, key);
        size_t code = 0;
        for (uint64_t i = 0; i < 5; i++)
            code = code * 5 + permutation_at(&order, i);
        counts[code]++;
    }
    size_t found = 0;
    double chi = 0, expected = (double)KEYS / ORDERS;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        found += counts[i] > 0;
        chi += counts[i] ? (counts[i] - expected) * (counts[i] - expected) / expected : 0;
    }
    assert_int_equal(found, ORDERS);
    assert_true(chi < 119 + 6 * 15.5); /* six deviations above the mean of chi square */
}

static void huge_counts_stay_in_range(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {((uint64_t)1 << 33) + 1, ((uint64_t)1 << 61) + 12345, (uint64_t)1 << 62};
    for (size_t i = 0; i < 3; i++) {
        permutation order = permutation_make(sizes[i], 1, i);
        for (uint64_t k = 0; k < 1000; k++) {
            assert_true(permutation_at(&order, k) < sizes[i]);
            assert_true(permutation_at(&order, sizes[i] - 1 - k) < sizes[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_stands_once),
        cmocka_unit_test(the_key_decides),
        cmocka_unit_test(orders_are_uniform),
        cmocka_unit_test(huge_counts_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
