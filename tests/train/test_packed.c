/* Samples that share a row, against the same samples each in a row of its own: the same loss and the same gradients. And a loss that is
 * divided by the labels of a step, however they are spread over rows and micro-batches. */
#include <math.h>
#include <string.h>

#include <remat/train.h>

#include "support/fixture.h"

enum { LENGTH = 12, SAMPLES = 3, VOCABULARY = 48, MOST_PARAMETERS = 64 };
#define FOLDER "tests/reference/pretrained/"

static const char *const families[] = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};
static const uint64_t lengths[SAMPLES] = {5, 4, 2}; /* one token is left at the end of the row */
static const uint64_t prompts[SAMPLES] = {2, 0, 1}; /* labels that are not learned */

/* Writes a sample from token `at` of a row on. */
static void put_sample(uint64_t sample, int32_t *tokens, int32_t *positions, int32_t *labels)
{
    for (uint64_t i = 0; i < lengths[sample]; i++) {
        tokens[i] = (int32_t)((sample * 17 + i * i * 5 + i * 3 + 1) % VOCABULARY);
        labels[i] = i < prompts[sample] ? -1 : (int32_t)((sample * 11 + i * 7 + 2) % VOCABULARY);
        if (positions)
            positions[i] = (int32_t)i;
    }
}

static void clear_row(int32_t *tokens, int32_t *positions, int32_t *labels)
{
    for (uint64_t i = 0; i < LENGTH; i++) {
        tokens[i] = 0;
        labels[i] = -1;
        if (positions)
            positions[i] = 0;
    }
}

static remat_status fill_packed(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user, (void)number;
    int32_t *tokens = inputs[0], *positions = inputs[1], *next = labels;
    clear_row(tokens, positions, next);
    for (uint64_t s = 0, at = 0; s < SAMPLES; at += lengths[s++])
        put_sample(s, tokens + at, positions + at, next + at);
    return REMAT_OK;
}

static remat_status fill_apart(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user;
    clear_row(inputs[0], NULL, labels);
    put_sample(number % SAMPLES, inputs[0], NULL, labels);
    return REMAT_OK;
}

typedef struct gradients {
    float *values[MOST_PARAMETERS];
    uint64_t counts[MOST_PARAMETERS];
    double loss;
} gradients;

static void keep_gradient(void *user, size_t parameter, const float *values, uint64_t count)
{
    gradients *to = user;
    assert_true(parameter < MOST_PARAMETERS);
    to->values[parameter] = malloc(count * sizeof *values);
    to->counts[parameter] = count;
    memcpy(to->values[parameter], values, count * sizeof *values);
}

static void release(gradients *of)
{
    for (size_t p = 0; p < MOST_PARAMETERS; p++)
        free(of->values[p]);
}

/* The loss and the gradients of one step. */
static gradients take_step(fixture *f, const char *family, const char *const *settings, remat_sample_fn fill,
                           const char *strategy)
{
    char folder[256];
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    remat_step_result result;
    gradients found = {0};
    snprintf(folder, sizeof folder, FOLDER "%s", family);
    expect_ok(f, remat_model_load_with(f->context, folder, settings, &model));
    remat_train_options_init(&options);
    options.sample = fill;
    options.samples = SAMPLES;
    options.steps = 1;
    options.strategy = strategy;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_load(trainer, folder));
    remat_trainer_on_gradient(trainer, keep_gradient, &found);
    expect_ok(f, remat_trainer_step(trainer, &result));
    found.loss = result.loss;
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return found;
}

static void expect_alike(const gradients *a, const gradients *b, double allowed)
{
    if (!(fabs(a->loss - b->loss) <= allowed))
        fail_msg("the losses are %.9g and %.9g", a->loss, b->loss);
    for (size_t p = 0; p < MOST_PARAMETERS; p++) {
        assert_int_equal(a->counts[p], b->counts[p]);
        for (uint64_t i = 0; i < a->counts[p]; i++)
            if (!(fabs((double)a->values[p][i] - (double)b->values[p][i]) <= allowed))
                fail_msg("gradient %zu, value %llu: %.9g and %.9g", p, (unsigned long long)i, (double)a->values[p][i],
                         (double)b->values[p][i]);
    }
}

static void samples_in_a_row_do_not_see_each_other(void **state)
{
    fixture *f = *state;
    static const char *const packed[] = {"model.length=12",       "model.batch_size=1",  "model.pack=true",
                                         "dataset.shuffle=false", "dataset.type=random", NULL};
    static const char *const apart[] = {"model.length=12", "model.batch_size=3", "dataset.shuffle=false",
                                        "dataset.type=random", NULL};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        gradients together = take_step(f, families[i], packed, fill_packed, "none");
        gradients alone = take_step(f, families[i], apart, fill_apart, "none");
        gradients recomputed = take_step(f, families[i], packed, fill_packed, "full");
        expect_alike(&together, &alone, 2e-6);
        expect_alike(&together, &recomputed, 0);
        assert_true(alone.loss > 1);
        release(&together);
        release(&alone);
        release(&recomputed);
    }
}

/* The samples have 3, 4 and 1 labels to learn: means of the three micro-batches would weigh them alike. */
static void micro_batches_share_the_number_of_labels(void **state)
{
    fixture *f = *state;
    static const char *const whole[] = {"model.length=12",       "model.batch_size=3",  "model.lora=rank=2",
                                        "dataset.shuffle=false", "dataset.type=random", NULL};
    static const char *const parts[] = {"model.length=12",
                                        "model.batch_size=1",
                                        "model.accumulate=3",
                                        "model.lora=rank=2",
                                        "dataset.shuffle=false",
                                        "dataset.type=random",
                                        NULL};
    gradients all = take_step(f, "llama", whole, fill_apart, "none");
    gradients summed = take_step(f, "llama", parts, fill_apart, "none");
    expect_alike(&all, &summed, 2e-6);
    release(&all);
    release(&summed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(samples_in_a_row_do_not_see_each_other),
        FIXTURE_TEST(micro_batches_share_the_number_of_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
