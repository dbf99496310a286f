/* Plans for shorter batches: the losses of full padding, the same bits under every plan and after a resume, one arena within the
 * budget. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <remat/train.h>

#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/scratch_files.h"
#include "train/trainer_object.h"

enum { LENGTH = 12, STEPS = 8, VOCABULARY = 48 };

static const char *const families[] = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};
enum { FAMILIES = sizeof families / sizeof families[0] };

#define FOLDER "tests/reference/pretrained/"

/* Labels of a sample, from the first on. */
static uint64_t labels_of(uint64_t number)
{
    return 1 + (number * number * 7 + number * 3) % LENGTH;
}

static remat_status make_sample(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user;
    int32_t *tokens = inputs[0], *next = labels;
    for (uint64_t i = 0; i < LENGTH; i++) {
        tokens[i] = (int32_t)((number * 11 + i * i * 3 + i * 5) % VOCABULARY);
        next[i] = i < labels_of(number) ? (int32_t)((number + i * 7) % VOCABULARY) : -1;
    }
    return REMAT_OK;
}

typedef struct training {
    const char *family, *batch, *accumulate, *classes, *lora;
    const char *strategy;
    uint64_t budget;
    const char *device;
} training;

static remat_model *load(fixture *f, const training *t, char folder[256])
{
    remat_model *model;
    snprintf(folder, 256, FOLDER "%s", t->family);
    const char *const settings[] = {"model.length=12",
                                    "optimizer.learning_rate=0.002",
                                    "dataset.type=random",
                                    "dataset.shuffle=false",
                                    t->batch,
                                    t->accumulate,
                                    t->classes,
                                    t->lora,
                                    NULL};
    expect_ok(f, remat_model_load_with(f->context, folder, settings, &model));
    return model;
}

static remat_train_options options_of(const training *t)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = make_sample;
    options.samples = 4 * STEPS;
    options.steps = STEPS;
    options.strategy = t->strategy;
    options.budget_bytes = t->budget;
    options.threads = 1;
    options.device = t->device;
    return options;
}

static void step(fixture *f, remat_trainer *trainer, int first, int end, double losses[STEPS])
{
    for (int i = first; i < end; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        losses[i] = result.loss;
    }
}

static void train(fixture *f, const training *t, double losses[STEPS], remat_trainer_figures *figures)
{
    char folder[256];
    remat_model *model = load(f, t, folder);
    const remat_train_options options = options_of(t);
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_load(trainer, folder));
    remat_trainer_get_figures(trainer, figures);
    assert_int_equal(trainer_allocated_bytes(trainer), figures->total_bytes); /* as it was predicted */
    step(f, trainer, 0, STEPS, losses);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void expect_close(const double *losses, const double *wanted, const char *family)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(losses[i] - wanted[i]) <= 1e-5))
            fail_msg("%s: the loss of step %d is %.8g, not %.8g", family, i + 1, losses[i], wanted[i]);
}

static void compare(fixture *f, training t)
{
    double padded[STEPS], losses[STEPS], again[STEPS];
    remat_trainer_figures all, least;
    t.strategy = "none";
    t.budget = REMAT_UNLIMITED;
    t.classes = "model.length_classes=1";
    train(f, &t, padded, &all);
    t.classes = "model.length_classes=4";
    train(f, &t, losses, &all);
    expect_close(losses, padded, t.family);
    t.strategy = "full";
    train(f, &t, again, &least);
    assert_true(least.total_bytes < all.total_bytes);
    assert_memory_equal(again, losses, sizeof losses);
}

/* Searches take a second, so there is one family and one class more. */
static void every_plan_has_the_same_bits(void **state)
{
    fixture *f = *state;
    training t = {
        "qwen2", "model.batch_size=2", "model.accumulate=1", "model.length_classes=2", NULL, "full", REMAT_UNLIMITED,
        NULL};
    double losses[STEPS], again[STEPS];
    remat_trainer_figures least;
    train(f, &t, losses, &least);
    t.strategy = "optimal";
    t.budget = least.total_bytes - 64;
    train(f, &t, again, &least);
    assert_true(least.total_bytes <= t.budget);
    assert_memory_equal(again, losses, sizeof losses);
}

/* Rows are copied to memory that the host cannot touch. */
static void other_devices_have_the_same_bits(void **state)
{
    fixture *f = *state;
    training t = {
        "llama", "model.batch_size=2", "model.accumulate=1", "model.length_classes=4", NULL, "none", REMAT_UNLIMITED,
        NULL};
    double losses[STEPS], again[STEPS];
    remat_trainer_figures figures;
    train(f, &t, losses, &figures);
    t.device = fenced_device();
    train(f, &t, again, &figures);
    assert_memory_equal(again, losses, sizeof losses);
}

static void losses_are_those_of_padding(void **state)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        compare(*state, (training){families[i], "model.batch_size=2", "model.accumulate=1", NULL, NULL, NULL, 0, NULL});
        compare(*state, (training){families[i], "model.batch_size=1", "model.accumulate=3", NULL, "model.lora=rank=2",
                                   NULL, 0, NULL});
    }
}

static void a_resumed_training_has_the_same_bits(void **state)
{
    fixture *f = *state;
    char folder[256];
    const training t = {
        "llama", "model.batch_size=2", "model.accumulate=1", "model.length_classes=3", NULL, "none", REMAT_UNLIMITED,
        NULL};
    double losses[STEPS], resumed[STEPS];
    remat_trainer_figures figures;
    remat_trainer *trainer;
    const char *path = scratch_path("resumed.safetensors");
    train(f, &t, losses, &figures);
    memcpy(resumed, losses, sizeof losses);
    remat_model *model = load(f, &t, folder);
    const remat_train_options options = options_of(&t);
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_load(trainer, folder));
    step(f, trainer, 0, 3, resumed);
    expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_resume(trainer, path));
    step(f, trainer, 3, STEPS, resumed);
    assert_memory_equal(resumed, losses, sizeof losses);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* Every batch runs in the shortest class that has its labels. */
static void batches_run_in_their_class(void **state)
{
    fixture *f = *state;
    char folder[256];
    const training t = {
        "qwen3", "model.batch_size=1", "model.accumulate=1", "model.length_classes=4", NULL, "none", REMAT_UNLIMITED,
        NULL};
    remat_model *model = load(f, &t, folder);
    const remat_train_options options = options_of(&t);
    remat_trainer *trainer;
    double losses[STEPS];
    bool met[5] = {false};
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    assert_int_equal(trainer->class_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(trainer->classes[i].length, 3 * (i + 1));
        assert_true(trainer->classes[i].plan->arena_bytes < trainer->plan->arena_bytes);
    }
    for (int i = 0; i < STEPS; i++) {
        step(f, trainer, i, i + 1, losses);
        const length_class *used = length_classes_choose(trainer); /* the batch is still there */
        const uint64_t wanted = (labels_of((uint64_t)i) + 2) / 3;
        assert_int_equal(used ? used->length : LENGTH, 3 * wanted);
        met[wanted] = true;
    }
    assert_true(met[1] && met[4]);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void expect_refused_with(fixture *f, remat_model *model, remat_train_options options, const char *message)
{
    remat_trainer *trainer;
    options.plan_only = true;
    expect_status(f, remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    expect_message(f, message);
    remat_model_destroy(model);
}

static void expect_refused(fixture *f, remat_model *model, const char *message)
{
    remat_train_options options;
    remat_train_options_init(&options);
    expect_refused_with(f, model, options, message);
}

static void what_has_no_classes_is_refused(void **state)
{
    fixture *f = *state;
    char folder[256];
    remat_model *model;
    const char *const settings[] = {"model.length_classes=2", NULL};
    expect_ok(f, remat_model_load_with(f->context, "examples/models/gpt_bench.ini", settings, &model));
    expect_refused(f, model, "they are for models of a folder");
    training t = {"llama", "model.batch_size=1", "model.accumulate=1", "model.length_classes=13", NULL, NULL, 0, NULL};
    expect_refused(f, load(f, &t, folder), "more of them than tokens");
    t.classes = "model.length_classes=2";
    t.budget = REMAT_UNLIMITED;
    remat_train_options stages = options_of(&t), chain = options_of(&t), graph = options_of(&t);
    t.accumulate = "model.accumulate=2";
    stages.pipeline = stages.plan_ranks = 2;
    expect_refused_with(f, load(f, &t, folder), stages, "ranks run one plan together");
    t.accumulate = "model.accumulate=1";
    chain.plan_path = graph.graph_plan_path = "plan.json";
    expect_refused_with(f, load(f, &t, folder), chain, "a plan file is for one length");
    expect_refused_with(f, load(f, &t, folder), graph, "a plan file is for one length");
    mkdir(scratch_path("dynamic"), 0777);
    scratch_write_text(
        "dynamic/config.json",
        "{\"model_type\": \"llama\", \"vocab_size\": 48, \"hidden_size\": 16, \"intermediate_size\": 24, "
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"max_position_embeddings\": 8, "
        "\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}}");
    const char *const longer[] = {"model.length=12", "dataset.type=random", t.classes, NULL};
    expect_ok(f, remat_model_load_with(f->context, scratch_path("dynamic"), longer, &model));
    expect_refused(f, model, "the angles depend on the length of a row");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(losses_are_those_of_padding),      FIXTURE_TEST(every_plan_has_the_same_bits),
        FIXTURE_TEST(other_devices_have_the_same_bits), FIXTURE_TEST(a_resumed_training_has_the_same_bits),
        FIXTURE_TEST(batches_run_in_their_class),       FIXTURE_TEST(what_has_no_classes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
