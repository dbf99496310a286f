/* Generators: the logits of a cache against those of whole sequences, whichever way the tokens come; draws; and figures. */
#include <math.h>
#include <string.h>

#include <remat/generator.h>
#include <remat/train.h>

#include "support/fixture.h"
#include "train/generator_object.h"

enum { LENGTH = 12, VOCABULARY = 48 };
#define FOLDER "tests/reference/pretrained/"

static const char *const families[] = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};

static const int32_t tokens[LENGTH] = {3, 41, 7, 7, 0, 22, 47, 13, 5, 30, 1, 19};

/* The logits of all positions, without a cache. */
static void run_whole(fixture *f, const char *folder, const char *setting, float logits[LENGTH * VOCABULARY])
{
    const char *const settings[] = {"model.length=12", "model.batch_size=1", setting, NULL};
    remat_model *model;
    remat_predictor *predictor;
    remat_prediction prediction;
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    expect_ok(f, remat_model_load_with(f->context, folder, settings, &model));
    expect_ok(f, remat_predictor_create(model, folder, &options, &predictor));
    expect_ok(f, remat_predictor_run(predictor, (const void *const[]){tokens}, &prediction));
    memcpy(logits, prediction.values, LENGTH * VOCABULARY * sizeof *logits);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

static remat_generator *open_generator(fixture *f, const char *folder, const char *setting, uint64_t chunk,
                                       uint64_t cache)
{
    const char *const settings[] = {setting, NULL};
    remat_generator_options options;
    remat_generator *generator;
    remat_generator_options_init(&options);
    options.settings = settings;
    options.chunk = chunk;
    options.cache = cache;
    options.threads = 1;
    expect_ok(f, remat_generator_create(f->context, folder, &options, &generator));
    return generator;
}

/* Feeds the tokens in pieces, twice; the second time over what the first left in the cache. */
static void judge(fixture *f, remat_generator *generator, const float *wanted, size_t piece)
{
    for (int round = 0; round < 2; round++) {
        remat_generator_clear(generator);
        for (size_t at = 0, some; at < LENGTH; at += some) {
            const float *logits;
            some = piece < LENGTH - at ? piece : LENGTH - at;
            expect_ok(f, remat_generator_feed(generator, tokens + at, some, &logits));
            for (size_t i = 0; i < VOCABULARY; i++)
                if (!(fabs((double)logits[i] - (double)wanted[(at + some - 1) * VOCABULARY + i]) <= 2e-6))
                    fail_msg("logit %zu behind token %zu is %.9g, not %.9g", i, at + some, (double)logits[i],
                             (double)wanted[(at + some - 1) * VOCABULARY + i]);
        }
    }
}

static void a_cache_changes_no_logits(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        char folder[256], adapter[256];
        float logits[LENGTH * VOCABULARY];
        snprintf(folder, sizeof folder, FOLDER "%s", families[i]);
        snprintf(adapter, sizeof adapter, "model.adapter=" FOLDER "%s/adapter", families[i]);
        for (int adapted = 0; adapted < 2; adapted++) {
            run_whole(f, folder, adapted ? adapter : NULL, logits);
            remat_generator *wide = open_generator(f, folder, adapted ? adapter : NULL, 5, 16);
            remat_generator *full = open_generator(f, folder, adapted ? adapter : NULL, 32, LENGTH);
            judge(f, wide, logits, 1);
            judge(f, wide, logits, 4);
            judge(f, wide, logits, LENGTH);
            judge(f, full, logits, 7);
            remat_generator_destroy(wide);
            remat_generator_destroy(full);
        }
    }
}

static void the_cache_is_counted_and_has_an_end(void **state)
{
    fixture *f = *state;
    remat_generator *generator = open_generator(f, FOLDER "llama", NULL, 4, 14);
    remat_generator_figures figures;
    const float *logits;
    remat_generator_get_figures(generator, &figures);
    assert_int_equal(figures.cache, 14);
    assert_int_equal(figures.vocabulary, VOCABULARY);
    assert_true(figures.cache_bytes >= 2 * 14 * sizeof(float) && figures.cache_bytes % 64 == 0);
    assert_true(figures.total_bytes >= figures.weight_bytes + figures.cache_bytes + figures.arena_bytes);
    expect_ok(f, remat_generator_feed(generator, tokens, LENGTH, &logits));
    expect_status(f, remat_generator_feed(generator, tokens, 3, &logits), REMAT_INVALID);
    assert_non_null(strstr(remat_context_message(f->context), "the cache has room for 14, and 12 are taken"));
    expect_ok(f, remat_generator_feed(generator, tokens, 2, &logits));
    expect_status(f, remat_generator_feed(generator, tokens, 1, &logits), REMAT_INVALID);
    remat_generator_clear(generator);
    expect_status(f, remat_generator_feed(generator, (const int32_t[]){VOCABULARY}, 1, &logits), REMAT_INVALID);
    remat_generator_destroy(generator);
    remat_generator *none;
    expect_status(f, remat_generator_create(f->context, "tests/reference", NULL, &none), REMAT_IO);
    assert_null(none);
}

/* ---- draws ---- */

static void draws_follow_the_options(void **state)
{
    (void)state;
    likely_token room[6];
    remat_generator generator = {.likely = room, .vocabulary = 6};
    const float logits[6] = {0, 3, 1, 3, -INFINITY, 2};
    remat_text_options options;
    size_t counts[6] = {0};
    remat_text_options_init(&options);
    options.temperature = 0;
    assert_int_equal(generator_draw(&generator, logits, &options, 0), 1); /* the first of equals */
    options.temperature = 1;
    options.top_k = 0;
    enum { DRAWS = 20000 };
    for (uint64_t i = 0; i < DRAWS; i++)
        counts[generator_draw(&generator, logits, &options, i)]++;
    const double sum = 1 + 2 * exp(3) + exp(1) + exp(2);
    for (size_t i = 0; i < 6; i++)
        assert_true(fabs((double)counts[i] / DRAWS - exp((double)logits[i]) / sum) < 0.015);
    options.top_k = 3;
    for (uint64_t i = 0; i < 500; i++) {
        const int32_t token = generator_draw(&generator, logits, &options, i);
        assert_true(token == 1 || token == 3 || token == 5);
    }
    options.top_k = 0;
    options.top_p = 2 * exp(3) / sum - 0.01; /* the first two */
    for (uint64_t i = 0; i < 500; i++) {
        const int32_t token = generator_draw(&generator, logits, &options, i);
        assert_true(token == 1 || token == 3);
    }
    options.top_p = 1e-9;
    assert_int_equal(generator_draw(&generator, logits, &options, 7), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_cache_changes_no_logits),
        FIXTURE_TEST(the_cache_is_counted_and_has_an_end),
        cmocka_unit_test(draws_follow_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
