#include "support/fixture.h"

#include <remat/checkpointer.h>

#include <math.h>

/* Layers whose outputs all differ in length: layer k puts out as many floats as its entry in the list says. */
typedef struct work {
    size_t calls;
    uint64_t fail_layer;
    remat_status fail_status; /* REMAT_OK: none fails */
    uint64_t seen[64];
} work;

static remat_status multiply_add(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                                 size_t output_count)
{
    work *w = user;
    if (w) {
        w->seen[w->calls++ % 64] = layer;
        if (w->fail_status != REMAT_OK && w->fail_layer == layer)
            return w->fail_status;
    }
    for (size_t i = 0; i < output_count; i++)
        output[i] = input[i % input_count] * 1.1f + (float)layer * 0.01f;
    return REMAT_OK;
}

static remat_checkpointer *make(fixture *f, uint64_t keep_every_n, uint64_t max_kept, remat_precision precision,
                                remat_overflow overflow)
{
    remat_checkpointer_options options;
    remat_checkpointer_options_init(&options);
    options.keep_every_n = keep_every_n;
    options.max_kept = max_kept;
    options.precision = precision;
    options.overflow = overflow;
    remat_checkpointer *cp;
    expect_ok(f, remat_checkpointer_create(f->context, &options, &cp));
    return cp;
}

static remat_checkpointer *make_plain(fixture *f, uint64_t keep_every_n, uint64_t max_kept)
{
    return make(f, keep_every_n, max_kept, REMAT_FP32, REMAT_OVERFLOW_ERROR);
}

static void number_layers(remat_checkpointer_layer *layers, size_t n, size_t count)
{
    for (size_t i = 0; i < n; i++)
        layers[i] = (remat_checkpointer_layer){i, count};
}

/* ---- what the source document's own tests expect ---- */

static void source_save_and_get(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 2, 10);
    float activation[4] = {1, 2, 3, 4}, got[4];
    size_t count = 0;
    expect_ok(f, remat_checkpointer_save(cp, 2, activation, 4));
    assert_true(remat_checkpointer_has(cp, 2, &count));
    assert_int_equal(count, 4);
    expect_ok(f, remat_checkpointer_get(cp, 2, got, 4));
    assert_memory_equal(got, activation, sizeof got);
    expect_status(f, remat_checkpointer_get(cp, 5, got, 4), REMAT_INVALID);
    expect_message(f, "layer 5: is not kept");
    remat_checkpointer_destroy(cp);
}

static void source_memory_accounting(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 3, 10);
    float input[3] = {1, 2, 3}, output[3];
    remat_checkpointer_layer layers[6];
    number_layers(layers, 6, 3);
    expect_ok(f, remat_checkpointer_forward(cp, layers, 6, input, 3, multiply_add, NULL, output));
    assert_int_equal(remat_checkpointer_count(cp), 2); /* 0 and 3 */
    assert_true(remat_checkpointer_has(cp, 0, NULL) && remat_checkpointer_has(cp, 3, NULL));
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 2 * 12);
    assert_int_equal(remat_checkpointer_avoided_bytes(cp), 4 * 12);
    assert_int_equal(remat_checkpointer_missed(cp), 0);
    remat_checkpointer_destroy(cp);
}

static void source_clear(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 2, 10);
    float a[2] = {1, 2}, b[2] = {3, 4}, got[2];
    expect_ok(f, remat_checkpointer_save(cp, 0, a, 2));
    expect_ok(f, remat_checkpointer_save(cp, 2, b, 2));
    assert_int_equal(remat_checkpointer_count(cp), 2);
    remat_checkpointer_clear(cp);
    assert_int_equal(remat_checkpointer_count(cp), 0);
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 0);
    assert_int_equal(remat_checkpointer_avoided_bytes(cp), 0);
    expect_status(f, remat_checkpointer_get(cp, 0, got, 2), REMAT_INVALID);
    remat_checkpointer_destroy(cp);
}

static void source_forward(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 2, 20);
    float input[5] = {1, 2, 3, 4, 5}, output[5], direct[5], next[5];
    remat_checkpointer_layer layers[8];
    number_layers(layers, 8, 5);
    expect_ok(f, remat_checkpointer_forward(cp, layers, 8, input, 5, multiply_add, NULL, output));
    memcpy(direct, input, sizeof direct);
    for (uint64_t layer = 0; layer < 8; layer++) {
        multiply_add(NULL, layer, direct, 5, next, 5);
        memcpy(direct, next, sizeof direct);
    }
    assert_memory_equal(output, direct, sizeof output); /* the document asks for 1e-4 */
    assert_true(remat_checkpointer_count(cp) > 0);
    remat_checkpointer_destroy(cp);
}

static void source_defaults_and_rule(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp;
    expect_ok(f, remat_checkpointer_create(f->context, NULL, &cp));
    const remat_checkpointer_options *options = remat_checkpointer_get_options(cp);
    assert_int_equal(options->keep_every_n, 4);
    assert_int_equal(options->max_kept, 64);
    assert_int_equal(options->precision, REMAT_FP32);
    for (uint64_t layer = 0; layer < 20; layer++)
        assert_int_equal(remat_checkpointer_keeps(cp, layer), layer % 4 == 0);
    remat_checkpointer_destroy(cp);
    cp = make_plain(f, 0, 10);
    assert_false(remat_checkpointer_keeps(cp, 0) || remat_checkpointer_keeps(cp, 4));
    remat_checkpointer_destroy(cp);
}

/* ---- what is better on purpose ---- */

/* Numbers that are neither consecutive nor in order, and lengths that differ. */
static const remat_checkpointer_layer odd_layers[] = {{70, 5},         {4, 1},  {13, 9}, {8, 0},
                                                      {UINT64_MAX, 7}, {12, 3}, {1, 4}};
#define ODD_COUNT (sizeof odd_layers / sizeof *odd_layers)

/* Every activation, without any checkpointer. */
static void run_directly(const float *input, size_t input_count, float activations[ODD_COUNT][16])
{
    for (size_t i = 0; i < ODD_COUNT; i++) {
        multiply_add(NULL, odd_layers[i].number, i ? activations[i - 1] : input,
                     i && odd_layers[i - 1].count ? odd_layers[i - 1].count
                     : i                          ? 1
                                                  : input_count,
                     activations[i], odd_layers[i].count);
    }
}

/* As multiply_add, but does not mind an empty input. */
static remat_status odd_forward(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                                size_t output_count)
{
    static const float zero = 0;
    return multiply_add(user, layer, input_count ? input : &zero, input_count ? input_count : 1, output, output_count);
}

static void any_layer_is_recomputed_to_the_bit(void **state)
{
    fixture *f = *state;
    float input[2] = {0.3f, -7}, activations[ODD_COUNT][16] = {{0}}, output[16], got[16];
    run_directly(input, 2, activations);
    for (uint64_t every = 0; every < 6; every++)
        for (uint64_t most = 0; most < 4; most++) {
            remat_checkpointer *cp = make_plain(f, every, most);
            work w = {0};
            expect_ok(f, remat_checkpointer_forward(cp, odd_layers, ODD_COUNT, input, 2, odd_forward, &w, output));
            assert_int_equal(w.calls, ODD_COUNT);
            assert_memory_equal(output, activations[ODD_COUNT - 1], 4 * odd_layers[ODD_COUNT - 1].count);
            uint64_t kept = remat_checkpointer_count(cp), bytes = remat_checkpointer_kept_bytes(cp), all = 0;
            size_t since = 0; /* layers since the last kept one: so many have to run */
            for (size_t i = 0; i < ODD_COUNT; i++) {
                since = remat_checkpointer_has(cp, odd_layers[i].number, NULL) ? 0 : since + 1;
                all += 4 * odd_layers[i].count;
                w.calls = 0;
                expect_ok(f, remat_checkpointer_recompute(cp, odd_layers[i].number, odd_layers, ODD_COUNT, odd_forward,
                                                          &w, got));
                assert_memory_equal(got, activations[i], 4 * odd_layers[i].count);
                assert_int_equal(w.calls, since);
            }
            assert_int_equal(remat_checkpointer_count(cp), kept);
            assert_int_equal(remat_checkpointer_kept_bytes(cp), bytes);
            assert_int_equal(bytes + remat_checkpointer_avoided_bytes(cp), all);
            assert_int_equal(remat_checkpointer_input_bytes(cp), 8);
            remat_checkpointer_destroy(cp);
        }
}

static void recompute_has_an_end(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 3, 10);
    float input[2] = {1, 2}, output[2];
    remat_checkpointer_layer layers[6];
    number_layers(layers, 6, 2);
    /* Before any forward there is nothing to start from. */
    expect_status(f, remat_checkpointer_recompute(cp, 1, layers, 6, multiply_add, NULL, output), REMAT_INVALID);
    expect_message(f, "layer 1");
    expect_ok(f, remat_checkpointer_forward(cp, layers, 6, input, 2, multiply_add, NULL, output));
    work w = {0};
    expect_status(f, remat_checkpointer_recompute(cp, 6, layers, 6, multiply_add, &w, output), REMAT_INVALID);
    expect_message(f, "layer 6: is not in the list of 6 layers");
    assert_int_equal(w.calls, 0);
    /* A kept layer comes as it is. */
    expect_ok(f, remat_checkpointer_recompute(cp, 3, layers, 6, multiply_add, &w, output));
    assert_int_equal(w.calls, 0);
    expect_ok(f, remat_checkpointer_recompute(cp, 5, layers, 6, multiply_add, &w, output));
    assert_int_equal(w.calls, 2);
    assert_int_equal(w.seen[0], 4);
    assert_int_equal(w.seen[1], 5);
    /* A list that is not the forward's is noticed where the lengths show it. */
    layers[3].count = 1;
    expect_status(f, remat_checkpointer_recompute(cp, 4, layers, 6, multiply_add, &w, output), REMAT_INVALID);
    expect_message(f, "layer 3: was kept with 2 floats, not with 1");
    expect_status(f, remat_checkpointer_recompute(cp, 3, layers, 6, multiply_add, &w, output), REMAT_INVALID);
    remat_checkpointer_destroy(cp);
}

static void from_activations_saved_by_hand(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 0, 10);
    remat_checkpointer_layer layers[6];
    number_layers(layers, 6, 2);
    float activation[2] = {5, 6}, wanted[2], got[2];
    expect_ok(f, remat_checkpointer_save(cp, 2, activation, 2));
    multiply_add(NULL, 3, activation, 2, wanted, 2);
    expect_ok(f, remat_checkpointer_recompute(cp, 3, layers, 6, multiply_add, NULL, got));
    assert_memory_equal(got, wanted, sizeof got);
    expect_status(f, remat_checkpointer_recompute(cp, 1, layers, 6, multiply_add, NULL, got), REMAT_INVALID);
    remat_checkpointer_destroy(cp);
}

static void saving_again_replaces(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 1, 2);
    float a[3] = {1, 2, 3}, b[5] = {4, 5, 6, 7, 8}, got[5];
    expect_ok(f, remat_checkpointer_save(cp, 9, a, 3));
    expect_ok(f, remat_checkpointer_save(cp, 4, a, 3));
    expect_ok(f, remat_checkpointer_save(cp, 9, b, 5)); /* full, but not new */
    assert_int_equal(remat_checkpointer_count(cp), 2);
    assert_int_equal(remat_checkpointer_kept_bytes(cp), 4 * (3 + 5));
    expect_ok(f, remat_checkpointer_get(cp, 9, got, 5));
    assert_memory_equal(got, b, sizeof b);
    expect_status(f, remat_checkpointer_get(cp, 9, got, 3), REMAT_INVALID);
    expect_message(f, "layer 9: was kept with 5 floats, not with 3");
    expect_ok(f, remat_checkpointer_get(cp, 4, got, 3));
    assert_memory_equal(got, a, sizeof a);
    remat_checkpointer_destroy(cp);
}

static void full_is_a_clear_error(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 1, 2);
    float a[1] = {1}, output[1];
    expect_ok(f, remat_checkpointer_save(cp, 1, a, 1));
    expect_ok(f, remat_checkpointer_save(cp, 2, a, 1));
    expect_status(f, remat_checkpointer_save(cp, 3, a, 1), REMAT_INFEASIBLE);
    expect_message(f, "layer 3: cannot be kept: 2 activations are, and max_kept is 2");
    assert_int_equal(remat_context_error(f->context)->layer, 3);
    assert_int_equal(remat_checkpointer_count(cp), 2);
    /* The forward goes on, and says how many it could not keep. */
    remat_checkpointer_layer layers[6];
    number_layers(layers, 6, 1);
    expect_ok(f, remat_checkpointer_forward(cp, layers, 6, a, 1, multiply_add, NULL, output));
    assert_int_equal(remat_checkpointer_count(cp), 2);
    assert_int_equal(remat_checkpointer_missed(cp), 4);
    assert_int_equal(remat_checkpointer_avoided_bytes(cp), 4 * 4);
    remat_checkpointer_destroy(cp);
}

static void a_second_forward_starts_clean(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 2, 2);
    float input[1] = {1}, other[1] = {2}, output[1], got[1], wanted[1];
    remat_checkpointer_layer layers[6];
    number_layers(layers, 6, 1);
    for (int round = 0; round < 3; round++) {
        expect_ok(f, remat_checkpointer_save(cp, 77, input, 1));
        const float *from = round % 2 ? other : input;
        expect_ok(f, remat_checkpointer_forward(cp, layers, 6, from, 1, multiply_add, NULL, output));
        assert_int_equal(remat_checkpointer_count(cp), 2);
        assert_int_equal(remat_checkpointer_kept_bytes(cp), 8);
        assert_int_equal(remat_checkpointer_avoided_bytes(cp), 16);
        assert_int_equal(remat_checkpointer_missed(cp), 1);
        assert_false(remat_checkpointer_has(cp, 77, NULL));
        multiply_add(NULL, 0, from, 1, wanted, 1);
        expect_ok(f, remat_checkpointer_get(cp, 0, got, 1));
        assert_memory_equal(got, wanted, sizeof got);
        remat_checkpointer_clear(cp);
        assert_int_equal(remat_checkpointer_missed(cp), 0);
        assert_int_equal(remat_checkpointer_input_bytes(cp), 0);
    }
    remat_checkpointer_destroy(cp);
}

static void callback_failures_come_back_unchanged(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 1, 10);
    float input[2] = {1, 2}, output[2];
    remat_checkpointer_layer layers[4];
    number_layers(layers, 4, 2);
    static const int numbers[] = {REMAT_INTERNAL, REMAT_IO, REMAT_INFEASIBLE, 1234};
    for (size_t i = 0; i < 4; i++) {
        work w = {.fail_layer = 2, .fail_status = (remat_status)numbers[i]};
        assert_int_equal(remat_checkpointer_forward(cp, layers, 4, input, 2, multiply_add, &w, output), numbers[i]);
        assert_int_equal(w.calls, 3);
        expect_message(f, "layer 2: the forward callback returned");
        assert_int_equal(remat_context_error(f->context)->layer, 2);
        assert_int_equal(remat_checkpointer_count(cp), 0); /* a failed forward leaves nothing */
        expect_ok(f, remat_checkpointer_forward(cp, layers, 2, input, 2, multiply_add, NULL, output));
        assert_int_equal(remat_checkpointer_recompute(cp, 3, layers, 4, multiply_add, &w, output), numbers[i]);
        assert_int_equal(remat_checkpointer_count(cp), 2);
    }
    remat_checkpointer_destroy(cp);
}

static void lists_that_are_odd_or_wrong(void **state)
{
    fixture *f = *state;
    remat_checkpointer *cp = make_plain(f, 1, 10);
    float input[3] = {1, 2, 3}, output[3] = {0};
    remat_checkpointer_layer layers[4];
    number_layers(layers, 4, 2);
    layers[3].number = 1;
    expect_status(f, remat_checkpointer_forward(cp, layers, 4, input, 3, multiply_add, NULL, output), REMAT_INVALID);
    expect_message(f, "layer 1: stands twice in the list");
    /* No layers: the input is the output. */
    expect_ok(f, remat_checkpointer_forward(cp, NULL, 0, input, 3, multiply_add, NULL, output));
    assert_memory_equal(output, input, sizeof input);
    /* Nothing at all. */
    expect_ok(f, remat_checkpointer_forward(cp, NULL, 0, NULL, 0, multiply_add, NULL, NULL));
    expect_ok(f, remat_checkpointer_save(cp, 5, NULL, 0));
    expect_ok(f, remat_checkpointer_get(cp, 5, NULL, 0));
    assert_int_equal(remat_checkpointer_count(cp), 1);
    remat_checkpointer_destroy(cp);
    remat_checkpointer_destroy(NULL);
}

static void options_are_checked(void **state)
{
    fixture *f = *state;
    remat_checkpointer_options options;
    remat_checkpointer *cp;
    remat_checkpointer_options_init(&options);
    options.struct_size = 0;
    expect_status(f, remat_checkpointer_create(f->context, &options, &cp), REMAT_INVALID);
    assert_null(cp);
    remat_checkpointer_options_init(&options);
    options.precision = (remat_precision)9;
    expect_status(f, remat_checkpointer_create(f->context, &options, &cp), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "precision");
    remat_checkpointer_options_init(&options);
    options.overflow = (remat_overflow)-1;
    expect_status(f, remat_checkpointer_create(f->context, &options, &cp), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "overflow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(source_save_and_get),
        FIXTURE_TEST(source_memory_accounting),
        FIXTURE_TEST(source_clear),
        FIXTURE_TEST(source_forward),
        FIXTURE_TEST(source_defaults_and_rule),
        FIXTURE_TEST(any_layer_is_recomputed_to_the_bit),
        FIXTURE_TEST(recompute_has_an_end),
        FIXTURE_TEST(from_activations_saved_by_hand),
        FIXTURE_TEST(saving_again_replaces),
        FIXTURE_TEST(full_is_a_clear_error),
        FIXTURE_TEST(a_second_forward_starts_clean),
        FIXTURE_TEST(callback_failures_come_back_unchanged),
        FIXTURE_TEST(lists_that_are_odd_or_wrong),
        FIXTURE_TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
