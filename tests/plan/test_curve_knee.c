/* The knee of a curve, against whole numbers: with each point's distance below the line as an exact product. */
#include "support/cases.h"

#include "plan/chain/curve_knee.h"

static remat_sweep_point point_at(const void *points, size_t position)
{
    return ((const remat_sweep_point *)points)[position];
}

static void drawn_curves(void **state)
{
    (void)state;
    static const remat_sweep_point bent[] = {{10, 100}, {11, 60}, {12, 20}, {20, 19}, {30, 0}};
    static const remat_sweep_point straight[] = {{0, 8}, {1, 6}, {2, 4}, {3, 2}, {4, 0}};
    static const remat_sweep_point bulging[] = {{0, 8}, {3, 7}, {4, 0}};
    static const remat_sweep_point twins[] = {{0, 16}, {4, 8}, {8, 4}, {16, 0}};
    assert_int_equal(curve_knee(point_at, bent, 5), 2);
    assert_int_equal(curve_knee(point_at, straight, 5), 0);
    assert_int_equal(curve_knee(point_at, bulging, 3), 0);
    assert_int_equal(curve_knee(point_at, twins, 4), 1); /* of two that are as deep, the one with less memory */
    for (size_t count = 0; count < 3; count++)
        assert_int_equal(curve_knee(point_at, bent, count), 0);
}

static __int128 depth(const remat_sweep_point *points, size_t count, size_t i)
{
    __int128 width = points[count - 1].peak_bytes - points[0].peak_bytes;
    __int128 height = points[0].total_cost - points[count - 1].total_cost;
    return (__int128)(points[0].total_cost - points[i].total_cost) * width -
           (__int128)(points[i].peak_bytes - points[0].peak_bytes) * height;
}

static void no_point_is_deeper(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    for (int turn = 0; turn < 2000; turn++) {
        enum { MOST = 40 };
        remat_sweep_point points[MOST] = {{test_random_below(&random, 1000), (uint64_t)1 << 40}};
        size_t count = 1 + test_random_below(&random, MOST);
        for (size_t i = 1; i < count; i++)
            points[i] = (remat_sweep_point){points[i - 1].peak_bytes + 1 + test_random_below(&random, 1000),
                                            points[i - 1].total_cost - 1 - test_random_below(&random, 1000)};
        size_t knee = curve_knee(point_at, points, count);
        assert_true(knee < count);
        for (size_t i = 0; i < count; i++)
            assert_true(depth(points, count, i) <= depth(points, count, knee));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_curves),
        cmocka_unit_test(no_point_is_deeper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
