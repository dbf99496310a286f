/* Losses, gradients, weights, moments and running statistics are the same bits whatever is recomputed, within any budget,
 * and with any number of threads. Every model is trained with everything kept, and then in many other ways. */
#include "support/fixture.h"
#include "support/parameter_copies.h"
#include "support/random_model.h"
#include "support/small_models.h"

enum { MOST_STEPS = 200 };

/* What a training came to. Hashes go over bits, so that even the sign of a zero counts. */
typedef struct record {
    double losses[MOST_STEPS];
    uint64_t gradients, weights, moments, statistics;
    remat_trainer_figures figures;
    unsigned recomputing; /* how many of those compared with it recomputed something */
} record;

static uint64_t hash_floats(uint64_t hash, const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Gradients of one step may come in any order of parameters; the order of the steps counts. */
typedef struct gradient_hash {
    uint64_t step, total;
} gradient_hash;

static void visit_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    gradient_hash *hash = user;
    hash->step += hash_floats(parameter + 1, gradient, count);
}

static void record_state(fixture *f, const remat_trainer *trainer, record *to)
{
    for (size_t i = 0; i < remat_trainer_parameter_count(trainer); i++) {
        remat_parameter parameter;
        float *values = parameter_copy(f, trainer, i, &parameter);
        uint64_t *into = parameter.trained ? &to->weights : &to->statistics;
        *into = hash_floats(*into + 1, values, parameter.count);
        free(values);
        for (size_t m = 0; m < parameter.moment_count; m++) {
            float *moment = moment_copy(f, trainer, i, m);
            to->moments = hash_floats(to->moments + 1, moment, parameter.count);
            free(moment);
        }
    }
}

static remat_status train(fixture *f, remat_model *model, const remat_train_options *options, unsigned steps,
                          record *to)
{
    remat_trainer *trainer;
    remat_status status = remat_trainer_create(model, options, &trainer);
    if (status != REMAT_OK)
        return status;
    *to = (record){0};
    gradient_hash hash = {0, 0};
    remat_trainer_get_figures(trainer, &to->figures);
    remat_trainer_on_gradient(trainer, visit_gradient, &hash);
    for (unsigned i = 0; i < steps; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        to->losses[i] = result.loss;
        hash = (gradient_hash){0, hash.total * 31 + hash.step};
    }
    to->gradients = hash.total;
    record_state(f, trainer, to);
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

static void expect_same(const record *got, const record *wanted, unsigned steps, const char *model, const char *how)
{
    for (unsigned i = 0; i < steps; i++)
        if (memcmp(&got->losses[i], &wanted->losses[i], sizeof got->losses[i]) != 0)
            fail_msg("%s, %s: the loss of step %u is %.17g, not %.17g", model, how, i + 1, got->losses[i],
                     wanted->losses[i]);
    if (got->gradients != wanted->gradients)
        fail_msg("%s, %s: the gradients differ", model, how);
    if (got->weights != wanted->weights)
        fail_msg("%s, %s: the weights differ", model, how);
    if (got->moments != wanted->moments)
        fail_msg("%s, %s: the moments differ", model, how);
    if (got->statistics != wanted->statistics)
        fail_msg("%s, %s: the running statistics differ", model, how);
}

/* Trains in one more way and compares. Returns false where the model cannot be trained that way. */
static bool compare(fixture *f, remat_model *model, const remat_train_options *options, unsigned steps, record *wanted,
                    const char *name)
{
    char how[160];
    snprintf(how, sizeof how, "strategy %s, budget %lld, %u threads, %s kernels",
             options->strategy ? options->strategy : "(default)",
             options->budget_bytes == REMAT_NO_BUDGET ? -1LL : (long long)options->budget_bytes, options->threads,
             options->kernels ? options->kernels : "fast");
    record got;
    remat_status status = train(f, model, options, steps, &got);
    if (status == REMAT_INFEASIBLE)
        return false;
    if (status != REMAT_OK)
        fail_msg("%s, %s: %s", name, how, remat_context_message(f->context));
    if (options->budget_bytes != REMAT_NO_BUDGET && got.figures.total_bytes > options->budget_bytes)
        fail_msg("%s, %s: it takes %llu bytes", name, how, (unsigned long long)got.figures.total_bytes);
    expect_same(&got, wanted, steps, name, how);
    wanted->recomputing += got.figures.recomputed_layers > 0;
    return true;
}

/* Some arguments for a strategy, by what it wants. */
static size_t strategy_texts(const remat_strategy_info *info, char texts[3][64])
{
    if (!info->argument[0]) {
        snprintf(texts[0], 64, "%s", info->name);
        return 1;
    }
    static const char *const counts[] = {"1", "2", "3"}, *const shares[] = {"0.3", "0.6", "1"};
    for (size_t i = 0; i < 3; i++)
        snprintf(texts[i], 64, "%s:%s", info->name, strstr(info->argument, "RATIO") ? shares[i] : counts[i]);
    return 3;
}

static void compare_strategies(fixture *f, remat_model *model, unsigned steps, record *wanted, const char *name)
{
    for (size_t s = 0; remat_strategy_list(s); s++) {
        const remat_strategy_info *info = remat_strategy_list(s);
        char texts[3][64];
        size_t count = strategy_texts(info, texts);
        for (size_t i = 0; i < count; i++) {
            remat_train_options options;
            remat_train_options_init(&options);
            options.strategy = texts[i];
            options.threads = (s + i) % 4 ? 1 : 2;
            if (info->needs_budget)
                options.budget_bytes = wanted->figures.total_bytes - wanted->figures.arena_bytes / (4 + 3 * i);
            compare(f, model, &options, steps, wanted, name);
        }
    }
}

static void compare_budgets(fixture *f, remat_model *model, unsigned steps, record *wanted, unsigned budgets,
                            const char *name)
{
    uint64_t most = wanted->figures.total_bytes;
    remat_train_options options;
    remat_train_options_init(&options);
    /* The smallest budget is found by asking for none of it. */
    options.threads = 1;
    options.budget_bytes = 1;
    remat_trainer *none;
    expect_status(f, remat_trainer_create(model, &options, &none), REMAT_INFEASIBLE);
    assert_null(none);
    uint64_t least = remat_context_error(f->context)->needed_bytes;
    assert_true(least <= most);
    options.budget_bytes = least - 1;
    expect_status(f, remat_trainer_create(model, &options, &none), REMAT_INFEASIBLE);
    expect_budget_error(f, least - 1, least);
    assert_true(remat_context_error(f->context)->layer_name[0] != '\0');
    for (unsigned b = 0; b <= budgets; b++) {
        options.budget_bytes = least + (most - least) * b / budgets;
        options.threads = 1;
        if (!compare(f, model, &options, steps, wanted, name))
            fail_msg("%s: a budget of %llu is not enough, though %llu should be: %s", name,
                     (unsigned long long)options.budget_bytes, (unsigned long long)least,
                     remat_context_message(f->context));
    }
}

/* All ways to train one model; returns how many of them recomputed something. Scratch memory is there for each thread, so
 * budgets are compared with one thread. */
static unsigned compare_all(fixture *f, remat_model *model, unsigned steps, unsigned budgets, const char *name)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.strategy = "none";
    options.threads = 1;
    record wanted;
    remat_status status = train(f, model, &options, steps, &wanted);
    if (status != REMAT_OK)
        fail_msg("%s: %s", name, remat_context_message(f->context));
    for (options.threads = 2; options.threads <= 3; options.threads++)
        compare(f, model, &options, steps, &wanted, name);
    options.threads = 1;
    options.strategy = NULL; /* its blocks */
    compare(f, model, &options, steps, &wanted, name);
    compare_strategies(f, model, steps, &wanted, name);
    compare_budgets(f, model, steps, &wanted, budgets, name);
    return wanted.recomputing;
}

/* How many steps the wide comparisons take: some, or as many as REMAT_STEPS says (`make check-long`: all 200). */
static unsigned wide_steps(unsigned usual)
{
    const char *text = getenv("REMAT_STEPS");
    long steps = text ? strtol(text, NULL, 10) : usual;
    return steps >= 1 && steps <= MOST_STEPS ? (unsigned)steps : usual;
}

/* ---- the examples ---- */

static void test_examples(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        unsigned recomputing = compare_all(f, model, wide_steps(LESS_WHEN_SANITIZED(5, 2)), LESS_WHEN_SANITIZED(4, 2),
                                           small_model_name(i));
        assert_true(recomputing >= 4);
        remat_model_destroy(model);
    }
}

/* Long enough that a rare difference would grow. */
static void test_long(void **state)
{
    fixture *f = *state;
    const char *const names[] = {"gpt_bench.ini", "resnet.ini", "mlp.ini"};
    unsigned steps = LESS_WHEN_SANITIZED(MOST_STEPS, 20);
    for (size_t i = 0; i < 3; i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, names[i], &model));
        remat_train_options options;
        remat_train_options_init(&options);
        options.strategy = "none";
        options.threads = 1;
        record wanted;
        expect_ok(f, train(f, model, &options, steps, &wanted));
        options.threads = 2;
        options.strategy = "full";
        compare(f, model, &options, steps, &wanted, names[i]);
        options.strategy = NULL;
        options.budget_bytes = wanted.figures.total_bytes - wanted.figures.arena_bytes / 4;
        options.threads = 1;
        compare(f, model, &options, steps, &wanted, names[i]);
        remat_model_destroy(model);
    }
}

static void test_reference_kernels(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        remat_train_options options;
        remat_train_options_init(&options);
        options.kernels = "reference";
        options.strategy = "none";
        options.threads = 1;
        record wanted;
        expect_ok(f, train(f, model, &options, 3, &wanted));
        assert_string_equal(wanted.figures.kernels, "reference");
        options.strategy = "full";
        options.threads = 2;
        compare(f, model, &options, 3, &wanted, small_model_name(i));
        options.strategy = "every-nth:2";
        options.threads = 3;
        compare(f, model, &options, 3, &wanted, small_model_name(i));
        remat_model_destroy(model);
    }
}

/* ---- random models ---- */

static remat_model *make(fixture *f, const random_model_options *options, size_t *layers)
{
    remat_model *model;
    remat_status status = random_model_make(f->context, options, &model, layers);
    if (status != REMAT_OK)
        fail_msg("the random model of seed %llu: %s", (unsigned long long)options->seed,
                 remat_context_message(f->context));
    return model;
}

static void test_random_models(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    unsigned recomputing = 0;
    for (unsigned i = 0; i < LESS_WHEN_SANITIZED(10, 3); i++) {
        random_model_options about = {.seed = test_random_next(&random), .clip = -1};
        about.layers = 3 + (unsigned)test_random_below(&random, 22);
        about.block = (unsigned)test_random_below(&random, 5);
        char name[64];
        snprintf(name, sizeof name, "random model of %u layers, seed %llu", about.layers,
                 (unsigned long long)about.seed);
        remat_model *model = make(f, &about, NULL);
        recomputing += compare_all(f, model, wide_steps(5), 3, name);
        remat_model_destroy(model);
    }
    assert_true(recomputing >= 10);
}

/* One model with blocks of every size. */
static void test_block_sizes(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed() + 1};
    for (unsigned i = 0; i < LESS_WHEN_SANITIZED(5, 2); i++) {
        random_model_options about = {.seed = test_random_next(&random), .layers = 14, .clip = -1};
        size_t layers;
        remat_model *model = make(f, &about, &layers);
        remat_train_options options;
        remat_train_options_init(&options);
        options.threads = 1;
        record wanted;
        expect_ok(f, train(f, model, &options, wide_steps(5), &wanted));
        assert_string_equal(wanted.figures.strategy, "none");
        remat_model_destroy(model);
        for (about.block = 1; about.block <= layers; about.block++) {
            char name[96];
            snprintf(name, sizeof name, "random model, seed %llu, blocks of %u", (unsigned long long)about.seed,
                     about.block);
            model = make(f, &about, NULL);
            options.threads = about.block % 4 ? 1 : 2;
            assert_true(compare(f, model, &options, wide_steps(5), &wanted, name));
            remat_model_destroy(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_examples),      FIXTURE_TEST(test_long),        FIXTURE_TEST(test_reference_kernels),
        FIXTURE_TEST(test_random_models), FIXTURE_TEST(test_block_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
