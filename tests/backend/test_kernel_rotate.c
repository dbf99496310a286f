/* Rotary embeddings: the fast kernels against the reference, the reference against the formula, and the frequencies against
 * those of other programs. */
#include <math.h>

#include "support/fixture.h"
#include "support/kernel_compare.h"

static void judge(test_random *random, size_t batch, size_t steps, size_t heads, size_t size, rotary_angles angles)
{
    const size_t count = batch * steps * heads * size;
    float *x = values_random(random, count, -2, 2), *y = values_random(random, count, -1, 1);
    int32_t *positions = malloc(batch * steps * sizeof *positions);
    for (size_t i = 0; i < batch * steps; i++)
        positions[i] = (int32_t)test_random_below(random, 50);
    for (int way = 0; way < 16;
         way++) { /* forward and backward, replaced and added, apart and in place, given positions */
        op_rotate args = {.x = fp32(way & 4 ? y : x), .y = fp32(y), .rows = batch * steps, .steps = steps};
        args.heads = heads, args.size = size, args.angles = angles, args.scale = 1.1;
        args.backward = way & 1, args.accumulate = way & 2;
        args.positions = way & 8 ? (tensor_ref){positions, REMAT_INT32} : TENSOR_NONE;
        expect_agreement(&((kernel_trial){
            .op = OP_rotate, .args = &args, .outputs = {{y, count}}, .absolute = 1e-6, .relative = 1e-6}));
    }
    free(positions);
    free(x);
    free(y);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    judge(&random, 1, 1, 1, 2, (rotary_angles){ROTARY_PLAIN, 10000, 1, 1, 4, 1});
    judge(&random, 2, 9, 3, 6, (rotary_angles){ROTARY_PLAIN, 10000, 1, 1, 4, 1});
    judge(&random, 3, 40, 2, 64, (rotary_angles){ROTARY_LINEAR, 500000, 8, 1, 4, 1});
    judge(&random, 1, 33, 5, 34, (rotary_angles){ROTARY_YARN, 10000, 4, 1, 32, 64});
    judge(&random, 1, 3, 1, 1100,
          (rotary_angles){ROTARY_LLAMA3, 500000, 8, 1, 4, 64}); /* more pairs than fit at once */
}

/* A turn keeps lengths, depends on the distance of positions alone, and is undone by the backward. */
static void turns_are_turns(void **state)
{
    (void)state;
    enum { STEPS = 50, SIZE = 8 };
    float x[STEPS * SIZE], y[STEPS * SIZE];
    kernel_run run = {1, NULL};
    for (size_t i = 0; i < STEPS * SIZE; i++)
        x[i] = y[i] = (float)(i % SIZE) - 2.5f;
    op_rotate args = {.x = fp32(x), .y = fp32(y), .rows = STEPS, .steps = STEPS, .heads = 1, .size = SIZE, .scale = 1};
    args.angles = (rotary_angles){ROTARY_PLAIN, 10000, 1, 1, 4, 1};
    perform(kernels_reference(), &run, OP_rotate, &args);
    expect_same_bits(y, x, SIZE); /* position 0 */
    expect_near(y[SIZE], cos(1) * (double)x[0] - sin(1) * (double)x[4], 1e-6);
    expect_near(y[SIZE + 5], cos(0.1) * (double)x[5] + sin(0.1) * (double)x[1], 1e-6);
    for (size_t row = 0; row + 7 < STEPS; row++) {
        double product = 0, first = 0;
        for (size_t i = 0; i < SIZE; i++) {
            product += (double)y[row * SIZE + i] * (double)y[(row + 7) * SIZE + i];
            first += (double)y[i] * (double)y[7 * SIZE + i];
        }
        expect_near(product, first, 1e-4);
    }
    args.x = args.y, args.backward = true;
    perform(kernels_reference(), &run, OP_rotate, &args);
    for (size_t i = 0; i < STEPS * SIZE; i++)
        expect_near(y[i], (double)x[i], 1e-5);
}

/* Worked out by hand from the published formulas, for heads of 16. */
static void frequencies_are_the_published_ones(void **state)
{
    (void)state;
    const rotary_angles plain = {ROTARY_PLAIN, 10000, 1, 0, 0, 0}, linear = {ROTARY_LINEAR, 10000, 4, 0, 0, 0};
    for (size_t i = 0; i < 8; i++) {
        expect_near(rotary_frequency(&plain, 16, i), pow(10000, -(double)i / 8), 1e-7);
        expect_near(rotary_frequency(&linear, 16, i), pow(10000, -(double)i / 8) / 4, 1e-7);
    }
    /* Waves of at most 64 / 4 = 16 positions stay, those of 64 and more are 8 times as long, and between them it is smooth. */
    const rotary_angles llama = {ROTARY_LLAMA3, 10000, 8, 1, 4, 64};
    expect_near(rotary_frequency(&llama, 16, 0), 1, 1e-7); /* a wave of 6.3 */
    const double second = pow(10000, -0.125), turns = 64 * second / (2 * M_PI), smooth = (turns - 1) / 3;
    expect_near(rotary_frequency(&llama, 16, 1), (1 - smooth) * second / 8 + smooth * second, 1e-7);
    expect_near(rotary_frequency(&llama, 16, 5), pow(10000, -0.625) / 8, 1e-8);
    /* Pairs up to floor(16 ln(64 / (32 * 2 pi)) / (2 ln 10000)), which is below 0, stay; those from
     * ceil(16 ln(64 / (2 pi)) / (2 ln 10000)) = 3 on are 4 times as long. */
    const rotary_angles yarn = {ROTARY_YARN, 10000, 4, 1, 32, 64};
    expect_near(rotary_frequency(&yarn, 16, 0), 1, 1e-7);
    expect_near(rotary_frequency(&yarn, 16, 1), second * (2.0 / 3 + 1.0 / 12), 1e-7);
    expect_near(rotary_frequency(&yarn, 16, 3), pow(10000, -0.375) / 4, 1e-8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(turns_are_turns),
        cmocka_unit_test(frequencies_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
