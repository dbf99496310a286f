/* Models with recurrent layers and cross-attention: the same bits under every plan, with any number of threads and after
 * resuming; and the memory that was predicted. */
#include "support/parameter_copies.h"
#include "support/scratch_files.h"

#include <string.h>

enum { STEPS = 6, WIDTH = 3, BATCH = 8 };

/* The sum of a sequence. */
static remat_status sample(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user;
    test_random random = {number};
    float *x = inputs[0], sum = 0;
    for (int i = 0; i < STEPS * WIDTH; i++) {
        x[i] = (float)test_random_below(&random, 2001) / 1000 - 1;
        sum += x[i] / 4;
    }
    *(float *)labels = sum;
    return REMAT_OK;
}

static remat_model *make_model(fixture *f)
{
    static const char *const layers[][7] = {
        {"input", "name=in", "input_shape=6:3", NULL},
        {"lstm", "name=encode", "unit=16", "return_sequences=true", NULL},
        {"gru", "name=deeper", "unit=12", "return_sequences=true", NULL},
        {"fully_connected", "name=wide", "unit=8", "input_layers=in", NULL},
        {"multi_head_attention", "name=look", "input_layers=wide,deeper", "num_heads=2", NULL},
        {"addition", "name=sum", "input_layers=wide,look", NULL},
        {"gru", "name=last", "unit=10", NULL},
        {"fully_connected", "name=out", "unit=1", NULL},
        {"huber", "name=loss", NULL},
    };
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        expect_ok(f, remat_model_add_layer(model, layers[i][0], layers[i] + 1));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=8")));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *strategy, uint64_t budget,
                                   unsigned threads)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = sample;
    options.samples = 128;
    options.steps = 60;
    options.strategy = strategy;
    options.budget_bytes = budget;
    options.threads = threads;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static double train(fixture *f, remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_run_result result;
    remat_trainer_get_figures(trainer, &figures);
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_int_equal(result.allocated_bytes, figures.total_bytes);
    return result.last_loss;
}

static void test_plans_have_the_same_bits(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_trainer *plain = open_trainer(f, model, "none", REMAT_NO_BUDGET, 1);
    remat_trainer_figures all;
    remat_trainer_get_figures(plain, &all);
    remat_step_result first;
    expect_ok(f, remat_trainer_step(plain, &first));
    double loss = train(f, plain);
    assert_true(loss < first.loss / 2); /* it learns */
    remat_trainer_destroy(plain);
    static const char *const strategies[] = {"full", "every-nth:2", NULL};
    for (int s = 0; s < 3; s++) {
        uint64_t budget = REMAT_NO_BUDGET;
        if (!strategies[s]) { /* the least that is possible */
            remat_trainer *asked = open_trainer(f, model, NULL, all.total_bytes, 1);
            remat_trainer_figures figures;
            remat_trainer_get_figures(asked, &figures);
            budget = figures.min_budget_bytes;
            assert_true(budget < all.total_bytes);
            remat_trainer_destroy(asked);
        }
        remat_trainer *trainer = open_trainer(f, model, strategies[s], budget, 1);
        assert_true(train(f, trainer) == loss);
        remat_trainer_destroy(trainer);
    }
    remat_model_destroy(model);
}

static void test_threads_and_resuming(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("sequence.safetensors");
    remat_model *model = make_model(f);
    remat_trainer *whole = open_trainer(f, model, "none", REMAT_NO_BUDGET, 1);
    remat_trainer *start = open_trainer(f, model, "full", REMAT_NO_BUDGET, 2);
    for (int i = 0; i < 5; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(start, &result));
    }
    expect_ok(f, remat_trainer_save(start, path, true));
    remat_trainer_destroy(start);
    remat_trainer *rest = open_trainer(f, model, "none", REMAT_NO_BUDGET, 8);
    expect_ok(f, remat_trainer_resume(rest, path));
    assert_true(train(f, whole) == train(f, rest));
    for (size_t p = 0; p < remat_trainer_parameter_count(whole); p++) {
        remat_parameter about;
        float *a = parameter_copy(f, whole, p, &about), *b = parameter_copy(f, rest, p, &about);
        assert_memory_equal(a, b, about.count * sizeof *a);
        free(a);
        free(b);
    }
    remat_trainer_destroy(whole);
    remat_trainer_destroy(rest);
    remat_model_destroy(model);
}

/* The parts that composites are made of, and their shapes. */
static void test_parts(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    static const struct {
        const char *name, *type;
        uint64_t h, w, parameters;
    } parts[] = {
        {"encode", "lstm", 6, 16, 64 * (3 + 16) + 2 * 64},
        {"deeper", "gru", 6, 12, 36 * (16 + 12) + 2 * 36},
        {"look.q", "fully_connected", 6, 8, 8 * 8 + 8},
        {"look.kv", "fully_connected", 6, 16, 16 * 12 + 16},
        {"look.core", "attention_core", 6, 8, 0},
        {"last", "gru", 6, 10, 30 * (8 + 10) + 2 * 30},
        {"last.last", "last_step", 1, 10, 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool found = false;
        for (size_t n = 0; n < remat_model_layer_count(model); n++) {
            remat_model_layer layer;
            expect_ok(f, remat_model_get_layer(model, n, &layer));
            if (strcmp(layer.name, parts[i].name) != 0)
                continue;
            found = true;
            assert_string_equal(layer.type, parts[i].type);
            assert_int_equal(layer.output_shape[1], parts[i].h);
            assert_int_equal(layer.output_shape[2], parts[i].w);
            assert_int_equal(layer.parameters, parts[i].parameters);
            if (strcmp(layer.name, "encode") == 0) { /* gates and cells; gradients of gates, of a state and of a cell */
                assert_int_equal(layer.saved_bytes, BATCH * STEPS * (64 + 16) * 4);
                assert_int_equal(layer.workspace_bytes, (BATCH * STEPS * 64 + 2 * BATCH * 16) * 4);
            }
        }
        assert_true(found);
    }
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_plans_have_the_same_bits),
        FIXTURE_TEST(test_threads_and_resuming),
        FIXTURE_TEST(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
