#include "support/cases.h"

#include "base/checked.h"

static void sums_stop_below_the_limit(void **state)
{
    (void)state;
    uint64_t total = 0;
    assert_true(remat_add(&total, 5));
    assert_int_equal(total, 5);
    assert_true(remat_add(&total, REMAT_LIMIT - 6));
    assert_int_equal(total, REMAT_LIMIT - 1);
    assert_false(remat_add(&total, 1));
    assert_false(remat_add(&total, UINT64_MAX)); /* which would wrap around to something small */
    assert_false(remat_add(&total, UINT64_MAX - REMAT_LIMIT + 2));
    assert_int_equal(total, REMAT_LIMIT - 1);
    assert_true(remat_add(&total, 0));
}

static void products_stop_below_the_limit(void **state)
{
    (void)state;
    uint64_t product = 77;
    assert_true(remat_multiply(3, 5, &product));
    assert_int_equal(product, 15);
    assert_true(remat_multiply(0, UINT64_MAX, &product));
    assert_int_equal(product, 0);
    product = 77;
    assert_false(remat_multiply((uint64_t)1 << 32, (uint64_t)1 << 31, &product));
    assert_false(remat_multiply((uint64_t)1 << 32, (uint64_t)1 << 32, &product));
    assert_false(remat_multiply(UINT64_MAX, UINT64_MAX, &product));
    assert_int_equal(product, 77);
    assert_true(remat_multiply((uint64_t)1 << 31, (uint64_t)1 << 31, &product));
    assert_true(remat_multiply(REMAT_LIMIT - 1, 1, &product));
    assert_int_equal(product, REMAT_LIMIT - 1);
}

static void saturated_sums_stay_at_the_top(void **state)
{
    (void)state;
    assert_int_equal(remat_add_saturated(1, 2), 3);
    assert_true(remat_add_saturated(UINT64_MAX, 0) == UINT64_MAX);
    assert_true(remat_add_saturated(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(remat_add_saturated(REMAT_LIMIT, REMAT_LIMIT) == UINT64_MAX);
    assert_true(remat_add_saturated(REMAT_LIMIT, REMAT_LIMIT - 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_stop_below_the_limit),
        cmocka_unit_test(products_stop_below_the_limit),
        cmocka_unit_test(saturated_sums_stay_at_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
