/* The checkpointer's memory: 16-bit storage, overflow, and allocations that fail. */
#include "support/fixture.h"

#include <remat/checkpointer.h>

#include <math.h>

#define LAYERS 7
#define COUNT  300

static remat_status shift(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                          size_t output_count)
{
    (void)user;
    assert_int_equal(input_count, output_count);
    for (size_t i = 0; i < output_count; i++)
        output[i] = input[i] * 0.9f + (float)layer;
    return REMAT_OK;
}

static remat_checkpointer *make(fixture *f, remat_precision precision, remat_overflow overflow)
{
    remat_checkpointer_options options;
    remat_checkpointer_options_init(&options);
    options.keep_every_n = 2;
    options.precision = precision;
    options.overflow = overflow;
    remat_checkpointer *cp = NULL;
    expect_ok(f, remat_checkpointer_create(f->context, &options, &cp));
    return cp;
}

static void sixteen_bits_are_half_the_bytes(void **state)
{
    fixture *f = *state;
    remat_checkpointer_layer layers[LAYERS];
    float input[COUNT], output[COUNT], full[COUNT], got[COUNT];
    for (size_t i = 0; i < LAYERS; i++)
        layers[i] = (remat_checkpointer_layer){i, COUNT};
    for (size_t i = 0; i < COUNT; i++)
        input[i] = (float)i / 7;
    static const double error[] = {0, 0x1p-11, 0x1p-8};
    uint64_t held[3];
    for (remat_precision precision = REMAT_FP32; precision <= REMAT_BF16; precision++) {
        remat_checkpointer *cp = make(f, precision, REMAT_OVERFLOW_ERROR);
        uint64_t before = remat_context_bytes(f->context);
        expect_ok(f, remat_checkpointer_forward(cp, layers, LAYERS, input, COUNT, shift, NULL, output));
        held[precision] = remat_context_bytes(f->context) - before;
        assert_int_equal(remat_checkpointer_count(cp), 4);
        assert_int_equal(remat_checkpointer_kept_bytes(cp), 4 * COUNT * (precision == REMAT_FP32 ? 4 : 2));
        assert_int_equal(remat_checkpointer_kept_bytes(cp) + remat_checkpointer_avoided_bytes(cp), LAYERS * COUNT * 4);
        /* A kept one differs by the rounding only; one computed from it by no more than that carries on. */
        memcpy(full, input, sizeof full);
        for (uint64_t layer = 0; layer < 5; layer++)
            shift(NULL, layer, full, COUNT, full, COUNT);
        expect_ok(f, remat_checkpointer_get(cp, 4, got, COUNT));
        for (size_t i = 0; i < COUNT; i++)
            assert_true(fabs((double)got[i] - (double)full[i]) <= error[precision] * fabs((double)full[i]));
        shift(NULL, 5, got, COUNT, full, COUNT);
        expect_ok(f, remat_checkpointer_recompute(cp, 5, layers, LAYERS, shift, NULL, output));
        assert_memory_equal(output, full, sizeof full);
        remat_checkpointer_destroy(cp);
    }
    assert_int_equal(held[0] - held[1], 4 * COUNT * 2); /* real bytes, as the hook counts them */
    assert_int_equal(held[1], held[2]);
}

static void nan_and_infinity_stay(void **state)
{
    fixture *f = *state;
    float values[5] = {NAN, -NAN, INFINITY, -INFINITY, -0.0f}, got[5];
    for (remat_precision precision = REMAT_FP16; precision <= REMAT_BF16; precision++) {
        remat_checkpointer *cp = make(f, precision, REMAT_OVERFLOW_ERROR);
        expect_ok(f, remat_checkpointer_save(cp, 1, values, 5));
        expect_ok(f, remat_checkpointer_get(cp, 1, got, 5));
        assert_true(isnan(got[0]) && isnan(got[1]));
        assert_memory_equal(got + 2, values + 2, 12);
        remat_store_counters counters;
        remat_checkpointer_get_counters(cp, &counters);
        assert_int_equal(counters.overflows, 0);
        remat_checkpointer_destroy(cp);
    }
}

static void overflow_by_policy(void **state)
{
    fixture *f = *state;
    float fits[4] = {1, 2, 3, 4}, over[4] = {1, 70000, -1e6f, 4}, got[4];
    remat_store_counters counters;

    remat_checkpointer *cp = make(f, REMAT_FP16, REMAT_OVERFLOW_ERROR);
    expect_ok(f, remat_checkpointer_save(cp, 3, fits, 4));
    expect_status(f, remat_checkpointer_save(cp, 3, over, 4), REMAT_CHECK_FAILED);
    expect_message(f, "layer 3: 2 of 4 numbers are too large for fp16, the first at position 1: 70000");
    expect_ok(f, remat_checkpointer_get(cp, 3, got, 4)); /* as it was */
    assert_memory_equal(got, fits, sizeof got);
    remat_checkpointer_get_counters(cp, &counters);
    assert_int_equal(counters.overflows, 2);
    remat_checkpointer_destroy(cp);

    cp = make(f, REMAT_FP16, REMAT_OVERFLOW_SATURATE);
    expect_ok(f, remat_checkpointer_save(cp, 3, over, 4));
    expect_ok(f, remat_checkpointer_get(cp, 3, got, 4));
    assert_true(got[0] == 1 && got[1] == 65504 && got[2] == -65504 && got[3] == 4);
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 8);
    remat_checkpointer_get_counters(cp, &counters);
    assert_int_equal(counters.overflows, 2);
    assert_int_equal(counters.kept_full, 0);
    remat_checkpointer_destroy(cp);

    cp = make(f, REMAT_FP16, REMAT_OVERFLOW_KEEP_FULL);
    expect_ok(f, remat_checkpointer_save(cp, 3, over, 4));
    expect_ok(f, remat_checkpointer_save(cp, 4, fits, 4));
    expect_ok(f, remat_checkpointer_get(cp, 3, got, 4));
    assert_memory_equal(got, over, sizeof got);
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 16 + 8);
    assert_int_equal(remat_checkpointer_avoided_bytes(cp), 8);
    remat_checkpointer_get_counters(cp, &counters);
    assert_int_equal(counters.overflows, 2);
    assert_int_equal(counters.kept_full, 1);
    expect_ok(f, remat_checkpointer_save(cp, 3, fits, 4)); /* half again */
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 8 + 8);
    remat_checkpointer_clear(cp);
    remat_checkpointer_get_counters(cp, &counters);
    assert_int_equal(counters.overflows + counters.kept_full, 0);
    remat_checkpointer_destroy(cp);

    /* bf16 has the range of fp32 but for its very end. */
    cp = make(f, REMAT_BF16, REMAT_OVERFLOW_ERROR);
    expect_ok(f, remat_checkpointer_save(cp, 3, over, 4));
    over[2] = 0x1.fffffep127f;
    expect_status(f, remat_checkpointer_save(cp, 3, over, 4), REMAT_CHECK_FAILED);
    expect_message(f, "bf16");
    remat_checkpointer_destroy(cp);
}

/* Everything there is to do, in an order that uses every allocation. */
static remat_status whole_life(fixture *f, remat_precision precision, remat_checkpointer **cp)
{
    remat_checkpointer_options options;
    remat_checkpointer_options_init(&options);
    options.keep_every_n = 2;
    options.precision = precision;
    options.overflow = REMAT_OVERFLOW_KEEP_FULL;
    remat_checkpointer_layer layers[40];
    float input[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e30f}, output[10];
    for (size_t i = 0; i < 40; i++)
        layers[i] = (remat_checkpointer_layer){i, 10};
    remat_status status = remat_checkpointer_create(f->context, &options, cp);
    if (status == REMAT_OK)
        status = remat_checkpointer_forward(*cp, layers, 40, input, 10, shift, NULL, output);
    if (status == REMAT_OK)
        status = remat_checkpointer_save(*cp, 3, output, 10);
    input[9] = 10;
    if (status == REMAT_OK)
        status = remat_checkpointer_forward(*cp, layers, 40, input, 10, shift, NULL, output);
    if (status == REMAT_OK)
        status = remat_checkpointer_recompute(*cp, 39, layers, 40, shift, NULL, output);
    if (status == REMAT_OK)
        status = remat_checkpointer_save(*cp, 39, output, 10);
    return status;
}

static void no_memory_at_any_call(void **state)
{
    fixture *f = *state;
    for (remat_precision precision = REMAT_FP32; precision <= REMAT_BF16; precision++) {
        uint64_t before = f->memory.blocks, bytes = f->memory.bytes, at = 1;
        for (remat_status status = REMAT_NO_MEMORY; status != REMAT_OK; at++) {
            remat_checkpointer *cp = NULL;
            f->memory.calls = 0;
            f->memory.fail_at = at;
            status = whole_life(f, precision, &cp);
            f->memory.fail_at = 0;
            if (status != REMAT_OK) {
                expect_status(f, status, REMAT_NO_MEMORY);
                expect_message(f, "out of memory");
            }
            remat_checkpointer_destroy(cp);
            assert_int_equal(f->memory.blocks, before);
            assert_int_equal(f->memory.bytes, bytes);
        }
        assert_true(at > 50);
    }
}

/* A save that fails leaves what was kept before. */
static void no_memory_changes_nothing(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make(f, REMAT_FP16, REMAT_OVERFLOW_KEEP_FULL);
    float a[3] = {1, 2, 3}, over[3] = {1e9f, 2, 3}, got[3];
    expect_ok(f, remat_checkpointer_save(cp, 1, a, 3));
    for (uint64_t at = 1; at <= 2; at++) { /* in 16 bits, then in full */
        f->memory.calls = 0;
        f->memory.fail_at = at;
        expect_status(f, remat_checkpointer_save(cp, 1, over, 3), REMAT_NO_MEMORY);
        f->memory.fail_at = 0;
        expect_ok(f, remat_checkpointer_get(cp, 1, got, 3));
        assert_memory_equal(got, a, sizeof a);
        assert_int_equal(remat_checkpointer_kept_bytes(cp), 6);
    }
    expect_status(f, remat_checkpointer_save(cp, 2, a, SIZE_MAX), REMAT_NO_MEMORY);
    assert_int_equal(remat_checkpointer_count(cp), 1);
    remat_checkpointer_destroy(cp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sixteen_bits_are_half_the_bytes),
        FIXTURE_TEST(nan_and_infinity_stay),
        FIXTURE_TEST(overflow_by_policy),
        FIXTURE_TEST(no_memory_at_any_call),
        FIXTURE_TEST(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
