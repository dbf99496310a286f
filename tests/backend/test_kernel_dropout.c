#include <math.h>

#include "support/kernel_compare.h"

/* To the bit, in every instruction set. */
static void fast_has_the_bits_of_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    static const double KEEPS[] = {0, 0.1, 0.5, 0.9, 1};
    for (const size_t *size = KERNEL_SIZES; *size; size++)
        for (size_t k = 0; k < sizeof KEEPS / sizeof KEEPS[0]; k++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                float *x = values_random(&random, *size, -2, 2), *y = values_random(&random, *size, -2, 2);
                step_block block = {.seed = test_random_next(&random), .step = 77};
                op_dropout args = {fp32(x), fp32(y), raw(&block), *size, (uint32_t)k, KEEPS[k], accumulate};
                expect_agreement(&((kernel_trial){.op = OP_dropout, .args = &args, .outputs = {{y, *size}}}));
                args.y = fp32(x);
                expect_agreement(&((kernel_trial){.op = OP_dropout, .args = &args, .outputs = {{x, *size}}}));
                free(x);
                free(y);
            }
}

/* What the numbers of the stream say, and as often as the chance says. */
static void values_are_kept_by_the_stream(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    remat_random stream = remat_random_stream(5, 6, 7);
    step_block step = {.seed = 5, .step = 7};
    op_dropout args = {fp32(x), fp32(y), raw(&step), COUNT, 6, 0.8, false};
    kernel_run run = {2, NULL};
    perform(kernels_fast(), &run, OP_dropout, &args);
    size_t kept = 0;
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t block[4];
        remat_random_block(&stream, i / 4, block);
        bool keeps = (double)(block[i % 4] >> 8) * 0x1p-24 < (double)0.8f;
        assert_true(y[i] == (keeps ? 1 / 0.8f : 0.0f));
        kept += keeps;
    }
    assert_true(fabs((double)kept / COUNT - 0.8) < 0.01);
    /* Nothing leaks from what is dropped, not even NaN. */
    for (int i = 0; i < COUNT; i++)
        x[i] = NAN;
    args.keep = 0;
    perform(kernels_fast(), &run, OP_dropout, &args);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == 0.0f);
    free(x);
    free(y);
}

static void numbers_are_those_of_the_stream(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint32_t numbers[2][COUNT + 1];
    remat_random stream = remat_random_stream(8, 9, 10);
    kernel_run run = {2, NULL};
    for (uint64_t first = 0; first < ((uint64_t)1 << 34); first = first * 5 + 64) {
        size_t count = COUNT - first % 7;
        const kernel_table *const tables[] = {kernels_reference(), kernels_fast()};
        for (int t = 0; t < 2; t++) {
            numbers[t][count] = 77; /* not to be touched */
            tables[t]->draw(&run, &stream, first, count, numbers[t]);
            assert_int_equal(numbers[t][count], 77);
        }
        assert_memory_equal(numbers[0], numbers[1], count * sizeof(uint32_t));
        for (size_t i = 0; i < count; i++) {
            uint32_t block[4];
            remat_random_block(&stream, (first + i) / 4, block);
            assert_int_equal(numbers[0][i], block[(first + i) % 4]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_has_the_bits_of_the_reference),
        cmocka_unit_test(values_are_kept_by_the_stream),
        cmocka_unit_test(numbers_are_those_of_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
