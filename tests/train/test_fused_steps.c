/* Training with activations fused into the products before them has the bits of training without: an observed trainer runs
 * every action by itself. Plans that recompute are fused as well. The instruction sets of this processor take turns. */
#include "support/fixture.h"
#include "support/kernel_compare.h"
#include "support/parameter_copies.h"
#include "support/random_model.h"
#include "support/small_models.h"

#include "train/executor_object.h"
#include "train/trainer_object.h"

static void look_away(void *user, const remat_action *action)
{
    (void)action;
    ++*(uint64_t *)user;
}

static void expect_same_weights(fixture *f, const remat_trainer *a, const remat_trainer *b, const char *name)
{
    for (size_t i = 0; i < remat_trainer_parameter_count(a); i++) {
        remat_parameter about;
        float *left = parameter_copy(f, a, i, &about), *right = parameter_copy(f, b, i, &about);
        if (memcmp(left, right, about.count * sizeof *left) != 0)
            fail_msg("%s: fused or not makes a difference to %s", name, about.name);
        free(left);
        free(right);
    }
}

/* Adds up over all comparisons: activations fused into a product, those of them that are recomputations, and how many
 * comparisons there were. */
typedef struct tally {
    uint64_t fused, recomputed, compared;
} tally;

/* Eight ways to train a model make that at least two for every set, and other ones for the next model. */
static const char *whose_turn(const tally *counts)
{
    const kernel_table *const *tables = kernel_tables();
    size_t count = 0;
    while (tables[count])
        count++;
    return tables[counts->compared % count]->name;
}

/* Whether the only call of a position is in a product: it has no kernel, or it makes no output but only bits. */
static bool is_in_product(const recorded_run *run, const recorded_run *plain, size_t position)
{
    if (run->starts[position] == run->starts[position + 1])
        return false;
    recorded_call *call = recording_call(&run->calls, run->starts[position]);
    recorded_call *alone = recording_call(&plain->calls, plain->starts[position]);
    if (call->op == OP_rectify)
        return !((const op_rectify *)recorded_args(call))->y.at && ((const op_rectify *)recorded_args(alone))->y.at;
    return !call->kernel;
}

/* A fused activation is a recomputation where its action ran before. `observed` is the same run, with nothing fused. */
static void count_fused(const remat_executor *executor, const remat_executor *observed, tally *counts)
{
    const recorded_run *run = &executor->fused;
    const graph_sequence *sequence = executor->options.sequence;
    uint64_t fused = 0;
    for (size_t p = 0; p < executor->count; p++) {
        bool is_fused = is_in_product(run, &observed->plain, p);
        bool ran = false;
        for (size_t before = 0; before < p && is_fused; before++)
            ran |= sequence->actions[before] == sequence->actions[p];
        fused += is_fused;
        counts->recomputed += is_fused && ran;
    }
    assert_int_equal(fused, executor_fused(executor));
    counts->fused += fused;
}

/* Nothing happens where the model cannot be trained like this. */
static void compare(fixture *f, remat_model *model, remat_train_options *options, unsigned steps, const char *name,
                    tally *counts)
{
    remat_trainer *fused, *plain;
    options->kernels = whose_turn(counts);
    remat_status status = remat_trainer_create(model, options, &fused);
    if (status == REMAT_INFEASIBLE)
        return;
    expect_ok(f, status);
    expect_ok(f, remat_trainer_create(model, options, &plain));
    counts->compared++;
    uint64_t actions = 0;
    expect_ok(f, remat_trainer_on_action(plain, look_away, &actions));
    for (unsigned i = 0; i < steps; i++) {
        remat_step_result a, b;
        expect_ok(f, remat_trainer_step(fused, &a));
        expect_ok(f, remat_trainer_step(plain, &b));
        if (memcmp(&a.loss, &b.loss, sizeof a.loss) != 0)
            fail_msg("%s (%s): the loss of step %u is %.17g fused, %.17g otherwise", name, options->kernels, i + 1,
                     a.loss, b.loss);
        assert_int_equal(executor_forwards(fused->executor), executor_forwards(plain->executor));
    }
    assert_true(actions > 0);
    expect_same_weights(f, fused, plain, name);
    count_fused(fused->executor, plain->executor, counts);
    remat_trainer_destroy(fused);
    remat_trainer_destroy(plain);
}

/* With everything kept, by some strategies, and within half of what that saves. */
static void compare_ways(fixture *f, remat_model *model, unsigned steps, const char *name, tally *counts)
{
    static const char *const strategies[] = {"none", NULL, "sqrt", "full", "every-nth:2"};
    remat_train_options options;
    for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
        remat_train_options_init(&options);
        options.strategy = strategies[s]; /* NULL: its blocks */
        options.threads = s == 3 ? 2 : 1;
        compare(f, model, &options, steps, name, counts);
    }
    remat_train_options_init(&options);
    options.threads = 1;
    remat_trainer *all;
    expect_ok(f, remat_trainer_create(model, &options, &all));
    remat_trainer_figures figures;
    remat_trainer_get_figures(all, &figures);
    remat_trainer_destroy(all);
    for (uint64_t part = 3; part <= 9; part += 3) {
        options.budget_bytes = figures.total_bytes - figures.arena_bytes / part;
        compare(f, model, &options, steps, name, counts);
    }
}

/* ---- one model in many ways ---- */

/* Four products with activations; in two blocks, where wanted. */
static remat_model *tower(fixture *f, const char *activation, const char *const *settings, bool blocks)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:2:30")));
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "name=fc%d", i);
        expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES(name, "unit=40", activation)));
    }
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=5")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, settings));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=96", "validation_split=0.25")));
    if (blocks) {
        expect_ok(f, remat_model_add_block(model, REMAT_PROPERTIES("fc0", "fc1")));
        expect_ok(f, remat_model_add_block(model, REMAT_PROPERTIES("fc2", "fc3")));
    }
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* In place (relu, tanh) and not (the others), weights changed at once, at the end and after several batches. */
static void towers(void **state)
{
    fixture *f = *state;
    static const char *const kinds[] = {"activation=relu", "activation=tanh", "activation=gelu", "activation=swish"};
    const char *const *const settings[] = {
        REMAT_PROPERTIES("batch_size=24"),
        REMAT_PROPERTIES("batch_size=24", "clip_norm=0.5"),
        REMAT_PROPERTIES("batch_size=12", "accumulate=2"),
    };
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 6; i++) {
            remat_model *model = tower(f, kinds[k], settings[i % 3], i >= 3);
            tally counts = {.compared = (uint64_t)i};
            compare_ways(f, model, LESS_WHEN_SANITIZED(4, 2), kinds[k], &counts);
            assert_true(counts.recomputed > 0);
            assert_true(counts.fused > 2 * counts.recomputed);
            remat_model_destroy(model);
        }
}

/* With everything kept, all of them: forward and backward, and in the evaluation. */
static void everything_is_fused(void **state)
{
    fixture *f = *state;
    static const char *const kinds[] = {"activation=relu", "activation=gelu"};
    for (int k = 0; k < 2; k++) {
        remat_model *model = tower(f, kinds[k], REMAT_PROPERTIES("batch_size=24"), false);
        remat_trainer *trainer;
        expect_ok(f, remat_trainer_create(model, NULL, &trainer));
        assert_int_equal(executor_fused(trainer->executor), 8);
        assert_int_equal(executor_fused(trainer->evaluator), 4);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

/* ---- many models ---- */

static void examples(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        tally counts = {.compared = i};
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        compare_ways(f, model, 2, small_model_name(i), &counts);
        if (strstr(small_model_name(i), "mlp") || strstr(small_model_name(i), "gpt"))
            assert_true(counts.fused > 0 && counts.recomputed > 0);
        remat_model_destroy(model);
    }
}

static void random_models(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    tally counts = {0};
    for (int i = 0; i < LESS_WHEN_SANITIZED(25, 5); i++) {
        random_model_options about = {.seed = test_random_next(&random), .clip = -1};
        about.layers = 3 + (unsigned)test_random_below(&random, 20);
        about.block = (unsigned)test_random_below(&random, 5);
        char name[64];
        snprintf(name, sizeof name, "random model of seed %llu", (unsigned long long)about.seed);
        remat_model *model;
        expect_ok(f, random_model_make(f->context, &about, &model, NULL));
        compare_ways(f, model, 2, name, &counts);
        remat_model_destroy(model);
    }
    assert_true(counts.fused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(towers),
        FIXTURE_TEST(everything_is_fused),
        FIXTURE_TEST(examples),
        FIXTURE_TEST(random_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
