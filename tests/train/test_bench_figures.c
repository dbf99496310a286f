/* What on_action says of flops, bytes and times: against numbers found by hand. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/kernel.h"
#include "support/fixture.h"
#include "train/trainer_object.h"

enum { MOST_ACTIONS = 1024 };

typedef struct record {
    remat_action actions[MOST_ACTIONS];
    char names[MOST_ACTIONS][32]; /* of layers, which go with the trainer */
    size_t count;
} record;

static void note(void *user, const remat_action *action)
{
    record *to = user;
    if (to->count == MOST_ACTIONS)
        return;
    char *name = to->names[to->count];
    snprintf(name, sizeof to->names[0], "%s", action->layer);
    to->actions[to->count] = *action;
    to->actions[to->count++].layer = name;
}

/* The actions of a layer and phase in one step: how many, and their sums. */
typedef struct total {
    unsigned count;
    uint64_t flops, gemm_flops, bytes, nanoseconds;
} total;

/* NULL stands for every layer, or every phase. */
static total total_of(const record *seen, const char *layer, const char *what)
{
    total sum = {0};
    for (size_t i = 0; i < seen->count; i++) {
        const remat_action *action = &seen->actions[i];
        if ((layer && strcmp(action->layer, layer) != 0) || (what && strcmp(action->phase, what) != 0))
            continue;
        sum.count++;
        sum.flops += action->flops;
        sum.gemm_flops += action->gemm_flops;
        sum.bytes += action->bytes;
        sum.nanoseconds += action->ended - action->began;
    }
    return sum;
}

static void expect_work(const record *seen, const char *layer, const char *what, uint64_t flops, uint64_t products,
                        uint64_t bytes)
{
    total sum = total_of(seen, layer, what);
    if (sum.count == 0 || sum.flops != flops || sum.gemm_flops != products || sum.bytes != bytes)
        fail_msg("%s %s: %u actions, %llu flops, %llu of them in products, %llu bytes; wanted %llu, %llu, %llu", layer,
                 what, sum.count, (unsigned long long)sum.flops, (unsigned long long)sum.gemm_flops,
                 (unsigned long long)sum.bytes, (unsigned long long)flops, (unsigned long long)products,
                 (unsigned long long)bytes);
}

/* One watched step. Actions follow each other and take no longer than the step. */
static void watch_step(fixture *f, remat_model *model, const char *strategy, record *seen)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = strategy;
    remat_trainer *trainer;
    remat_step_result result;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    seen->count = 0;
    expect_ok(f, remat_trainer_on_action(trainer, note, seen));
    expect_ok(f, remat_trainer_step(trainer, &result));
    assert_in_range(seen->count, 1, MOST_ACTIONS - 1);
    for (size_t i = 0; i < seen->count; i++) {
        assert_true(seen->actions[i].began <= seen->actions[i].ended);
        assert_true(i == 0 || seen->actions[i - 1].ended <= seen->actions[i].began);
        assert_true(seen->actions[i].gemm_flops <= seen->actions[i].flops);
    }
    assert_true(1e-9 * (double)total_of(seen, NULL, NULL).nanoseconds + result.data_seconds <= result.seconds);
    remat_trainer_destroy(trainer);
}

/* ---- a small transformer ---- */

/* 32 samples of 16 tokens, so 512 rows: two pieces of the head. */
enum { BATCH = 32, STEPS = 16, WIDTH = 16, HEADS = 2, ROWS = BATCH * STEPS, F = sizeof(float) };

static remat_model *transformer(fixture *f, const char *tokens, const char *const *head, const char *const *settings,
                                const char *positions)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=tokens", "input_shape=1:1:16")));
    expect_ok(f, remat_model_add_layer(model, "embedding",
                                       REMAT_PROPERTIES("name=embedding", tokens, "out_dim=16", positions)));
    expect_ok(f, remat_model_add_layer(model, "multi_head_attention",
                                       REMAT_PROPERTIES("name=attention", "num_heads=2", "causal=true")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", head));
    expect_ok(f, remat_model_add_layer(model, "cross_entropy", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, settings));
    expect_ok(f, remat_model_set_optimizer(model, "adamw", REMAT_PROPERTIES("learning_rate=0.001")));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=256")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* Of a fully connected layer of ROWS rows. `added`: its gradients are added to sums that live longer, which reads both and
 * writes the sum. */
static void expect_gemm(const record *seen, const char *layer, uint64_t in, uint64_t units, uint64_t times, bool added)
{
    const uint64_t flops = times * 2 * ROWS * in * units, x = ROWS * in * F, y = ROWS * units * F;
    const uint64_t weight = units * in * F, bias = units * F;
    expect_work(seen, layer, "forward", flops, flops, times * (x + weight + bias + y));
    expect_work(seen, layer, "weight_gradient", flops + (added ? times * (weight + bias) / F : 0), flops,
                times * (x + y + (added ? 4 : 1) * (weight + bias)));
    expect_work(seen, layer, "input_gradient", flops, flops, times * (y + weight + x));
    /* The gradient is read; the weights and two moments are read and written. */
    expect_work(seen, layer, "apply", 17 * (weight + bias) / F, 0, 7 * (weight + bias));
}

static void expect_attention(const record *seen, uint64_t times, bool added)
{
    const uint64_t pairs = BATCH * STEPS * STEPS * WIDTH, row = ROWS * WIDTH * F, sums = BATCH * HEADS * STEPS * F;
    const op_attention_backward backward = {
        .q = {NULL, REMAT_FP32}, .batch = BATCH, .heads = HEADS, .steps = STEPS, .size = WIDTH / HEADS};
    const uint64_t workspace = (kernel_workspace(OP_attention_backward, &backward) + 63) / 64 * 64;
    expect_gemm(seen, "attention.qkv", WIDTH, 3 * WIDTH, times, added);
    expect_gemm(seen, "attention.out", WIDTH, WIDTH, times, added);
    /* Half of two products forward, half of five backward. q, k and v are three rows side by side. */
    expect_work(seen, "attention.core", "forward", times * 2 * pairs, times * 2 * pairs, times * (4 * row + sums));
    expect_work(seen, "attention.core", "input_gradient", times * 5 * pairs, times * 5 * pairs,
                times * (8 * row + sums + workspace));
}

/* The head uses the table of the embedding, which is larger than the batch has tokens. */
static void tied_transformer(void **state)
{
    fixture *f = *state;
    remat_model *model =
        transformer(f, "in_dim=1024", REMAT_PROPERTIES("name=head", "unit=1024", "bias=false", "shared_from=embedding"),
                    REMAT_PROPERTIES("batch_size=32"), "positions=0");
    record seen;
    watch_step(f, model, "none", &seen);
    const uint64_t ids = ROWS * 4, row = ROWS * WIDTH * F, table = 1024 * WIDTH * F, logits = ROWS * 1024 * F;
    expect_work(&seen, "embedding", "forward", 0, 0, ids + row + row);
    expect_work(&seen, "embedding", "weight_gradient", ROWS * WIDTH, 0, ids + row + 2 * row); /* added to the head's */
    expect_work(&seen, "embedding", "apply", 17 * 1024 * WIDTH, 0, 7 * table);
    expect_attention(&seen, 1, false);
    const uint64_t products = 3 * UINT64_C(2) * ROWS * 1024 * WIDTH;
    expect_work(&seen, "head", "forward", 0, 0, 0);
    /* Of each of two pieces: x twice, labels; the table for logits and for dx; its gradient, written and then added to;
     * five passes over the logits; dx. */
    expect_work(&seen, "head", "input_gradient", products + 18 * ROWS * 1024, products,
                2 * row + ids + 2 * table + 2 * table + 3 * table + 5 * logits + row);
    assert_int_equal(total_of(&seen, "head", "apply").count, 0);
    assert_int_equal(total_of(&seen, "(all gradients)", NULL).count, 0);
    remat_model_destroy(model);
}

/* A table of its own, smaller than the batch has tokens: its gradient is cleared. Positions that are not used take no part
 * but in that. */
static void untied_transformer(void **state)
{
    fixture *f = *state;
    remat_model *model = transformer(f, "in_dim=64", REMAT_PROPERTIES("name=head", "unit=64"),
                                     REMAT_PROPERTIES("batch_size=32"), "positions=32");
    record seen;
    watch_step(f, model, "none", &seen);
    const uint64_t ids = ROWS * 4, row = ROWS * WIDTH * F, table = 64 * WIDTH * F, logits = ROWS * 64 * F;
    const uint64_t used = STEPS * WIDTH * F, places = 32 * WIDTH * F, bias = 64 * F;
    expect_work(&seen, "embedding", "forward", 0, 0, ids + table + row);
    expect_work(&seen, "embedding", "weight_gradient", ROWS * WIDTH, 0, ids + row + 2 * table + table);
    expect_work(&seen, "embedding.positions", "forward", ROWS * WIDTH, 0, row + used + row);
    expect_work(&seen, "embedding.positions", "weight_gradient", ROWS * WIDTH, 0, row + places);
    expect_attention(&seen, 1, false);
    const uint64_t products = 3 * UINT64_C(2) * ROWS * 64 * WIDTH;
    expect_work(&seen, "head", "input_gradient", products + 18 * ROWS * 64, products,
                2 * row + ids + 4 * table + 2 * bias + 3 * (table + bias) + 5 * logits + row);
    expect_work(&seen, "head", "apply", 17 * (64 * WIDTH + 64), 0, 7 * (table + bias));
    remat_model_destroy(model);
}

/* ---- micro-batches and clipping ---- */

static void accumulated(void **state)
{
    fixture *f = *state;
    remat_model *model = transformer(f, "in_dim=64", REMAT_PROPERTIES("name=head", "unit=64"),
                                     REMAT_PROPERTIES("batch_size=32", "accumulate=4"), "positions=32");
    record seen;
    watch_step(f, model, "none", &seen);
    const uint64_t ids = ROWS * 4, row = ROWS * WIDTH * F, table = 64 * WIDTH * F, logits = ROWS * 64 * F;
    const uint64_t places = 32 * WIDTH * F, bias = 64 * F;
    expect_attention(&seen, 4, true);
    expect_work(&seen, "embedding", "weight_gradient", 4 * (ROWS + 64) * WIDTH, 0,
                4 * (ids + row + 2 * table + table + 3 * table));
    expect_work(&seen, "embedding.positions", "weight_gradient", 4 * (ROWS + 32) * WIDTH, 0,
                4 * (row + places + 3 * places));
    expect_work(&seen, "embedding.positions", "apply", 17 * 32 * WIDTH, 0, 7 * places);
    const uint64_t products = 3 * UINT64_C(2) * ROWS * 64 * WIDTH;
    expect_work(&seen, "head", "input_gradient", 4 * (products + 18 * ROWS * 64), 4 * products,
                4 * (2 * row + ids + 4 * table + 2 * bias + 3 * (table + bias) + 5 * logits + row));
    expect_work(&seen, "head", "weight_gradient", 4 * (64 * WIDTH + 64), 0, 4 * 3 * (table + bias));
    /* Once a step, for each parameter. */
    total applied = total_of(&seen, NULL, "apply");
    assert_int_equal(applied.count, 8);
    assert_true(applied.nanoseconds > 0);
    assert_int_equal(total_of(&seen, "attention.qkv", "apply").count, 2);
    /* Clearing is no layer's; it comes first. */
    const remat_action *first = &seen.actions[0];
    assert_string_equal(first->layer, "(all gradients)");
    assert_string_equal(first->phase, "weight_gradient");
    assert_int_equal(first->position, remat_model_layer_count(model));
    assert_int_equal(first->flops, 0);
    /* The weights' area: every parameter here is a multiple of 64 bytes. */
    const uint64_t attention = (WIDTH + 1) * 3 * WIDTH * F + (WIDTH + 1) * WIDTH * F;
    assert_int_equal(first->bytes, table + places + attention + table + bias);
    remat_model_destroy(model);
}

/* The norm is booked apart, before the first apply, in both ways of applying at the end. */
static void clipped(void **state)
{
    fixture *f = *state;
    const char *const *const settings[] = {REMAT_PROPERTIES("batch_size=32", "clip_norm=1"),
                                           REMAT_PROPERTIES("batch_size=32", "clip_norm=1", "accumulate=2")};
    for (int i = 0; i < 2; i++) {
        remat_model *model =
            transformer(f, "in_dim=64", REMAT_PROPERTIES("name=head", "unit=64"), settings[i], "positions=32");
        record seen;
        watch_step(f, model, "none", &seen);
        const uint64_t attention = (WIDTH + 1) * 3 * WIDTH + (WIDTH + 1) * WIDTH;
        const uint64_t values = 64 * WIDTH + 32 * WIDTH + attention + 64 * WIDTH + 64;
        expect_work(&seen, "(all gradients)", "apply", 2 * values, 0, values * F);
        total all = total_of(&seen, NULL, "apply");
        assert_int_equal(all.flops, 2 * values + 17 * values);
        assert_int_equal(all.bytes, values * F + 7 * values * F);
        size_t at = 0;
        while (strcmp(seen.actions[at].phase, "apply") != 0)
            at++;
        assert_string_equal(seen.actions[at].layer, "(all gradients)");
        assert_int_equal(total_of(&seen, "(all gradients)", "apply").count, 1);
        assert_int_equal(total_of(&seen, "(all gradients)", "weight_gradient").count, i);
        /* All gradients live in the arena then, or have memory of their own. */
        assert_true(i ? seen.actions[at].live_bytes == 0 : seen.actions[at].live_bytes >= values * F);
        remat_model_destroy(model);
    }
}

/* Running statistics are not applied; a convolution multiplies; sgd has fewer moments. */
static void convolution(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *momentum, *nesterov;
        uint64_t flops, passes;
    } rules[] = {{"momentum=0", "nesterov=false", 5, 3},
                 {"momentum=0.9", "nesterov=false", 7, 5},
                 {"momentum=0.9", "nesterov=true", 9, 5}};
    for (int i = 0; i < 3; i++) {
        remat_model *model;
        expect_ok(f, remat_model_create(f->context, &model));
        expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=2:8:8")));
        expect_ok(f, remat_model_add_layer(
                         model, "conv2d",
                         REMAT_PROPERTIES("name=conv", "filters=16", "kernel_size=3", "padding=same", "bias=false")));
        expect_ok(f, remat_model_add_layer(model, "batch_normalization", REMAT_PROPERTIES("name=norm")));
        expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
        expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4")));
        expect_ok(f, remat_model_set_optimizer(
                         model, "sgd", REMAT_PROPERTIES("learning_rate=0.1", rules[i].momentum, rules[i].nesterov)));
        expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=64")));
        expect_ok(f, remat_model_compile(model));
        record seen;
        watch_step(f, model, "none", &seen);
        total forward = total_of(&seen, "conv", "forward"), norm = total_of(&seen, "norm", "forward");
        assert_int_equal(forward.flops, 2 * 4 * 16 * 8 * 8 * (2 * 3 * 3));
        assert_int_equal(forward.gemm_flops, forward.flops);
        assert_true(norm.flops > 0 && norm.gemm_flops == 0);
        expect_work(&seen, "norm", "apply", rules[i].flops * 32, 0, rules[i].passes * 32 * F);
        expect_work(&seen, "conv", "apply", rules[i].flops * 16 * 18, 0, rules[i].passes * 16 * 18 * F);
        remat_model_destroy(model);
    }
}

/* Recomputing adds recomputed work and changes no other. */
static void recomputed(void **state)
{
    fixture *f = *state;
    remat_model *model = transformer(f, "in_dim=64", REMAT_PROPERTIES("name=head", "unit=64"),
                                     REMAT_PROPERTIES("batch_size=32"), "positions=32");
    record plain, again;
    watch_step(f, model, "none", &plain);
    watch_step(f, model, "full", &again);
    static const char *const phases[] = {"forward", "weight_gradient", "input_gradient", "apply"};
    for (int p = 0; p < 4; p++) {
        total a = total_of(&plain, NULL, phases[p]), b = total_of(&again, NULL, phases[p]);
        assert_int_equal(a.flops, b.flops);
        assert_int_equal(a.gemm_flops, b.gemm_flops);
        assert_int_equal(a.bytes, b.bytes);
    }
    assert_int_equal(total_of(&plain, NULL, "recompute").count, 0);
    total core = total_of(&again, "attention.core", "recompute");
    assert_int_equal(core.flops, core.count * total_of(&again, "attention.core", "forward").flops);
    assert_true(total_of(&again, NULL, "recompute").gemm_flops > 0);
    remat_model_destroy(model);
}

/* ---- the machine's limits ---- */

typedef struct measured {
    fixture *f;
    double flops[2];
    remat_status status;
    remat_machine_limits limits;
} measured;

static void measure_inside(const void *args, parallel_range range)
{
    measured *to = *(measured *const *)args;
    const kernel_run four = {4, NULL};
    if (range.thread > 0)
        return;
    to->flops[0] = kernels_fast()->multiply_adds(&four, 1000);
    to->flops[1] = kernels_reference()->multiply_adds(&four, 1000);
    to->status = remat_measure_limits(to->f->context, 3, &to->limits);
}

/* Inside of a loop, where no other thread may start, one thread runs whatever was asked for: one thread's work is
 * counted. */
static void limits_count_threads_that_run(void **state)
{
    fixture *f = *state;
    measured of = {.f = f}, *to = &of;
    parallel_static(2, 2, measure_inside, &to);
    const kernel_table *tables[] = {kernels_fast(), kernels_reference()};
    for (int t = 0; t < 2; t++) {
        const kernel_run one = {1, NULL}, four = {4, NULL};
        double alone = tables[t]->multiply_adds(&one, 1000), all = tables[t]->multiply_adds(&four, 1000);
        double inside = of.flops[t];
        assert_true(alone > 0);
        assert_true(inside == alone);
        assert_true(all >= alone && all <= 4 * alone);
    }
    expect_ok(f, of.status);
    assert_int_equal(of.limits.threads, 1);
    assert_true(of.limits.flops_per_second > 0 && of.limits.bytes_per_second > 0);
    assert_string_equal(of.limits.kernels, kernels_fast()->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(tied_transformer),
        FIXTURE_TEST(untied_transformer),
        FIXTURE_TEST(accumulated),
        FIXTURE_TEST(clipped),
        FIXTURE_TEST(convolution),
        FIXTURE_TEST(recomputed),
        FIXTURE_TEST(limits_count_threads_that_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
