/* Saving and going on: the second half of a training is the same bits as if it had never stopped. */
#include <math.h>

#include "support/fixture.h"
#include "support/parameter_copies.h"
#include "support/random_model.h"
#include "support/scratch_files.h"
#include "support/small_models.h"

/* ---- comparing two trainers ---- */

static void expect_same_values(const char *name, const char *what, const float *a, const float *b, uint64_t count)
{
    if (memcmp(a, b, count * sizeof *a) != 0)
        fail_msg("%s of %s differ", what, name);
}

static void expect_same_state(fixture *f, const remat_trainer *a, const remat_trainer *b)
{
    assert_int_equal(remat_trainer_steps_taken(a), remat_trainer_steps_taken(b));
    for (size_t i = 0; i < remat_trainer_parameter_count(a); i++) {
        remat_parameter one, two;
        float *left = parameter_copy(f, a, i, &one), *right = parameter_copy(f, b, i, &two);
        expect_same_values(one.name, "the values", left, right, one.count);
        assert_int_equal(one.moment_count, two.moment_count);
        for (size_t m = 0; m < one.moment_count; m++) {
            float *before = moment_copy(f, a, i, m), *after = moment_copy(f, b, i, m);
            expect_same_values(one.name, "the moments", before, after, one.count);
            free(before);
            free(after);
        }
        free(left);
        free(right);
    }
}

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *strategy, uint64_t seed)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.strategy = strategy;
    options.threads = 1;
    options.steps = 30; /* schedules of the rate need the same end */
    options.seed = seed;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static void take_steps(fixture *f, remat_trainer *trainer, unsigned steps, double *losses)
{
    for (unsigned i = 0; i < steps; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        if (losses)
            losses[result.step - 1] = result.loss;
    }
}

/* ---- going on ---- */

/* `resume_seed` REMAT_DEFAULT: the caller does not repeat the seed. */
static void expect_resumes(fixture *f, remat_model *model, unsigned first, unsigned second, uint64_t seed,
                           uint64_t resume_seed)
{
    const char *path = scratch_path("state.safetensors");
    double losses[64] = {0}, again[64] = {0};
    remat_trainer *whole = open_trainer(f, model, "none", seed);
    take_steps(f, whole, first + second, losses);
    remat_trainer *start = open_trainer(f, model, "full", seed);
    take_steps(f, start, first, again);
    expect_ok(f, remat_trainer_save(start, path, true));
    remat_trainer_destroy(start);
    remat_trainer *rest = open_trainer(f, model, NULL, resume_seed);
    expect_ok(f, remat_trainer_resume(rest, path));
    assert_int_equal(remat_trainer_steps_taken(rest), first);
    take_steps(f, rest, second, again);
    bool diverged =
        false; /* a random model may: what is no number has no bits to compare, and neither have its weights */
    for (unsigned i = 0; i < first + second; i++) {
        diverged |= isnan(losses[i]);
        if (losses[i] != again[i] && !(isnan(losses[i]) && isnan(again[i])))
            fail_msg("the loss of step %u is %.17g after resuming, not %.17g", i + 1, again[i], losses[i]);
    }
    if (!diverged)
        expect_same_state(f, whole, rest);
    remat_trainer_destroy(whole);
    remat_trainer_destroy(rest);
}

static void test_examples_resume(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        expect_resumes(f, model, 7, 11, REMAT_DEFAULT, REMAT_DEFAULT);
        remat_model_destroy(model);
    }
}

static void test_random_models_resume(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(15, 4); i++) {
        random_model_options about = {
            .seed = test_random_next(&random), .layers = 10, .frozen = 10, .clip = -1, .block = 3};
        remat_model *model;
        expect_ok(f, random_model_make(f->context, &about, &model, NULL));
        /* Somewhere inside an epoch, and past its end. */
        expect_resumes(f, model, 1 + (unsigned)test_random_below(&random, 12), 6, REMAT_DEFAULT, REMAT_DEFAULT);
        remat_model_destroy(model);
    }
}

/* The seed is part of the state: order and dropout go on with it, whatever the trainer was made with. */
static void test_seed_is_resumed(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "resnet.ini", &model));
    expect_resumes(f, model, 4, 5, 77, 77);
    expect_resumes(f, model, 4, 5, 77, REMAT_DEFAULT);
    remat_model_destroy(model);
}

/* ---- weights only ---- */

static void test_weights_only(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("weights.safetensors");
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "resnet.ini", &model));
    remat_trainer *trained = open_trainer(f, model, NULL, REMAT_DEFAULT);
    take_steps(f, trained, 5, NULL);
    expect_ok(f, remat_trainer_save(trained, path, false));
    remat_trainer *other = open_trainer(f, model, NULL, REMAT_DEFAULT);
    expect_status(f, remat_trainer_resume(other, path), REMAT_BAD_INPUT);
    expect_message(f, "weights.safetensors");
    expect_message(f, "no state");
    assert_int_equal(remat_trainer_steps_taken(other), 0);
    expect_ok(f, remat_trainer_load(other, path));
    assert_int_equal(remat_trainer_steps_taken(other), 0);
    remat_validation_result a, b;
    expect_ok(f, remat_trainer_validate(trained, &a));
    expect_ok(f, remat_trainer_validate(other, &b));
    assert_true(a.loss == b.loss);
    /* A file with state has weights as well. */
    expect_ok(f, remat_trainer_save(trained, path, true));
    expect_ok(f, remat_trainer_load(other, path));
    /* Another batch size would go on at another place of the data. */
    remat_train_options options;
    remat_train_options_init(&options);
    options.batch_size = remat_model_batch(model) + 1;
    remat_trainer *wider;
    expect_ok(f, remat_trainer_create(model, &options, &wider));
    expect_status(f, remat_trainer_resume(wider, path), REMAT_BAD_INPUT);
    expect_message(f, "samples at a time");
    remat_trainer_destroy(wider);
    remat_trainer_destroy(trained);
    remat_trainer_destroy(other);
    remat_model_destroy(model);
}

/* ---- files that do not fit ---- */

static remat_model *dense_model(fixture *f, const char *unit, const char *name, const char *optimizer,
                                const char *accumulate)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=6")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=first", "unit=5")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES(name, unit)));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=2", accumulate)));
    expect_ok(f, remat_model_set_optimizer(model, optimizer, REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=20")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* Refused with this message, and the trainer is what it was before. */
static void refused(fixture *f, remat_model *model, const char *path, bool resume, const char *message)
{
    remat_trainer *before = open_trainer(f, model, NULL, REMAT_DEFAULT);
    remat_trainer *trainer = open_trainer(f, model, NULL, REMAT_DEFAULT);
    take_steps(f, before, 2, NULL);
    take_steps(f, trainer, 2, NULL);
    expect_status(f, resume ? remat_trainer_resume(trainer, path) : remat_trainer_load(trainer, path), REMAT_BAD_INPUT);
    expect_message(f, message);
    expect_same_state(f, before, trainer);
    remat_trainer_destroy(before);
    remat_trainer_destroy(trainer);
}

static void refused_by(fixture *f, const char *path, const char *unit, const char *name, const char *optimizer,
                       const char *accumulate, const char *message)
{
    remat_model *model = dense_model(f, unit, name, optimizer, accumulate);
    refused(f, model, path, true, message);
    remat_model_destroy(model);
}

static void test_other_models(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("dense.safetensors");
    remat_model *model = dense_model(f, "unit=4", "name=second", "adam", "accumulate=1");
    remat_trainer *trainer = open_trainer(f, model, NULL, 9);
    take_steps(f, trainer, 3, NULL);
    expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    refused_by(f, path, "unit=3", "name=second", "adam", "accumulate=1",
               "it is 4 x 5 in the file and 3 x 5 in the model");
    refused_by(f, path, "unit=4", "name=third", "adam", "accumulate=1", "third");
    refused_by(f, path, "unit=4", "name=second", "sgd", "accumulate=1", "adam");
    refused_by(f, path, "unit=4", "name=second", "adamw", "accumulate=1", "adamw");
    refused_by(f, path, "unit=4", "name=second", "adam", "accumulate=2", "accumulate");
}

static void test_damaged_files(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("good.safetensors");
    remat_model *model = dense_model(f, "unit=4", "name=second", "adam", "accumulate=1");
    remat_trainer *trainer = open_trainer(f, model, NULL, 9);
    take_steps(f, trainer, 3, NULL);
    expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    size_t length;
    char *bytes = scratch_read(path, &length);
    const size_t cuts[] = {0, 4, 8, 50, length / 2, length - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const char *cut = scratch_write("cut.safetensors", bytes, cuts[i]);
        refused(f, model, cut, true, "cut.safetensors");
        refused(f, model, cut, false, "cut.safetensors");
    }
    free(bytes);
    trainer = open_trainer(f, model, NULL, 9);
    expect_status(f, remat_trainer_resume(trainer, "there/is/no.safetensors"), REMAT_IO);
    expect_message(f, "there/is/no.safetensors");
    expect_status(f, remat_trainer_save(trainer, "there/is/no/folder.safetensors", true), REMAT_IO);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* The file again with other metadata, in JSON without its braces. */
static const char *with_metadata(const char *bytes, size_t length, const char *metadata)
{
    const char *from = strstr(bytes + 8, "\"__metadata__\":{"), *to = strchr(from, '}');
    uint64_t header, stated;
    memcpy(&header, bytes, 8);
    char *made = malloc(length + strlen(metadata) + 32);
    size_t used = 8;
    used += (size_t)sprintf(made + used, "{\"__metadata__\":{%s", metadata);
    memcpy(made + used, to, (size_t)(bytes + 8 + header - to));
    used += (size_t)(bytes + 8 + header - to);
    while (used % 8)
        made[used++] = ' ';
    stated = used - 8;
    memcpy(made, &stated, 8);
    memcpy(made + used, bytes + 8 + header, length - 8 - header);
    const char *path = scratch_write("other.safetensors", made, used + length - 8 - header);
    free(made);
    return path;
}

/* A state after three steps of a small model. */
static char *saved_state(fixture *f, remat_model *model, size_t *length)
{
    const char *path = scratch_path("saved.safetensors");
    remat_trainer *trainer = open_trainer(f, model, NULL, 9);
    take_steps(f, trainer, 3, NULL);
    expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    return scratch_read(path, length);
}

/* One wrong bit anywhere: the file is refused, and the trainer is what it was before. */
static void test_damaged_bits(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    size_t length;
    remat_model *model = dense_model(f, "unit=4", "name=second", "adam", "accumulate=1");
    char *bytes = saved_state(f, model, &length);
    size_t blank = (size_t)(strstr(bytes + 8, "]}}") + 3 - bytes);
    remat_trainer *before = open_trainer(f, model, NULL, REMAT_DEFAULT);
    remat_trainer *trainer = open_trainer(f, model, NULL, REMAT_DEFAULT);
    take_steps(f, before, 2, NULL);
    take_steps(f, trainer, 2, NULL);
    for (int turn = 0; turn < LESS_WHEN_SANITIZED(2000, 500); turn++) {
        size_t at = test_random_below(&random, length);
        char bit = (char)(1 << test_random_below(&random, 8));
        if (at >= blank && at < blank + 8)
            continue; /* what fills up the header may be any blank */
        bytes[at] ^= bit;
        expect_status(f, remat_trainer_resume(trainer, scratch_write("bad.safetensors", bytes, length)),
                      REMAT_BAD_INPUT);
        expect_message(f, "bad.safetensors");
        bytes[at] ^= bit;
    }
    expect_same_state(f, before, trainer);
    free(bytes);
    remat_trainer_destroy(before);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_versions(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *metadata, *message;
    } files[] = {
        {"\"format\":\"remat-weights\",\"version\":\"1\"", NULL},
        {"\"format\":\"pt\",\"version\":\"7\"", NULL},
        {"\"version\":\"7\"", NULL},
        {"", NULL},
        {"\"format\":\"remat-weights\",\"version\":\"2\"", "version: the file is damaged: weights of version 2 have"},
        {"\"format\":\"remat-weights\",\"version\":\"3\"", "version: the weights have version '3', and this release"},
        {"\"format\":\"remat-weights\",\"version\":\"01\"", "version: the weights have version '01', and this"},
        {"\"format\":\"remat-weights\"", "version: the weights have version '', and this release reads 1 and 2"},
    };
    size_t length;
    remat_model *model = dense_model(f, "unit=4", "name=second", "adam", "accumulate=1");
    char *bytes = saved_state(f, model, &length);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = with_metadata(bytes, length, files[i].metadata);
        remat_train_options options;
        remat_train_options_init(&options);
        remat_predictor *predictor = NULL;
        remat_trainer *trainer = open_trainer(f, model, NULL, REMAT_DEFAULT);
        remat_status wanted = files[i].message ? REMAT_BAD_INPUT : REMAT_OK;
        expect_status(f, remat_trainer_load(trainer, path), wanted);
        if (files[i].message)
            expect_message(f, files[i].message);
        expect_status(f, remat_predictor_create(model, path, &options, &predictor), wanted);
        if (files[i].message)
            expect_message(f, files[i].message);
        remat_predictor_destroy(predictor);
        remat_trainer_destroy(trainer);
    }
    free(bytes);
    remat_model_destroy(model);
}

static void test_damaged_numbers(void **state)
{
    fixture *f = *state;
    static const char *const keys[] = {"step", "micro_step", "seed", "batch", "stale_validations", "best_validation"};
    static const char *const good[] = {"3", "3", "9", "2", "0", "0x1.8p+1"};
    static const char *const bad[] = {"",
                                      " ",
                                      "abc",
                                      "-1",
                                      "+3",
                                      "3.5",
                                      " 3",
                                      "3 ",
                                      "3x",
                                      "nan",
                                      "-inf",
                                      "0x",
                                      "1e1",
                                      "18446744073709551616",
                                      "99999999999999999999999999999999999999999999"};
    enum { KEYS = sizeof keys / sizeof keys[0], BAD = sizeof bad / sizeof bad[0] };
    remat_model *model = dense_model(f, "unit=4", "name=second", "adam", "accumulate=1");
    size_t length;
    char *bytes = saved_state(f, model, &length);
    /* As release 0.1 wrote it; the last turn has nothing wrong, and numbers as a locale with commas has them. */
    for (size_t turn = 0; turn <= KEYS * BAD; turn++) {
        char metadata[600] = "\"format\":\"remat-weights\",\"version\":\"1\",\"optimizer\":\"adam\"", wanted[40];
        for (size_t k = 0; k < KEYS; k++)
            snprintf(metadata + strlen(metadata), sizeof metadata - strlen(metadata), ",\"%s\":\"%s\"", keys[k],
                     turn / BAD == k                ? bad[turn % BAD]
                     : turn == KEYS * BAD && k == 5 ? "0x1,8p+1"
                                                    : good[k]);
        const char *other = with_metadata(bytes, length, metadata);
        remat_trainer *trainer = open_trainer(f, model, NULL, 9);
        expect_status(f, remat_trainer_resume(trainer, other), turn < KEYS * BAD ? REMAT_BAD_INPUT : REMAT_OK);
        assert_int_equal(remat_trainer_steps_taken(trainer), turn < KEYS * BAD ? 0 : 3);
        if (turn < KEYS * BAD) {
            snprintf(wanted, sizeof wanted, "other.safetensors: %s: ", keys[turn / BAD]);
            expect_message(f, wanted);
            assert_string_equal(remat_context_error(f->context)->field, keys[turn / BAD]);
        }
        remat_trainer_destroy(trainer);
    }
    free(bytes);
    remat_model_destroy(model);
}

/* What is saved can be read again: no step is taken that a file could not state. */
static void test_last_step(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *accumulate, *step, *micro_step;
        uint64_t taken; /* steps that are left */
    } cases[] = {
        {"accumulate=1", "9223372036854775807", "9223372036854775807", 0},
        {"accumulate=1", "9223372036854775806", "9223372036854775806", 1},
        {"accumulate=2", "4611686018427387903", "9223372036854775806", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        remat_model *model = dense_model(f, "unit=4", "name=second", "adam", cases[i].accumulate);
        size_t length;
        char *bytes = saved_state(f, model, &length), metadata[400];
        snprintf(metadata, sizeof metadata,
                 "\"format\":\"remat-weights\",\"version\":\"1\",\"optimizer\":\"adam\",\"seed\":\"9\","
                 "\"batch\":\"2\",\"best_validation\":\"0x1p+1\",\"stale_validations\":\"0\",\"step\":\"%s\","
                 "\"micro_step\":\"%s\"",
                 cases[i].step, cases[i].micro_step);
        remat_trainer *trainer = open_trainer(f, model, NULL, 9);
        expect_ok(f, remat_trainer_resume(trainer, with_metadata(bytes, length, metadata)));
        for (uint64_t taken = 0; taken < cases[i].taken; taken++) {
            take_steps(f, trainer, 1, NULL);
            expect_ok(f, remat_trainer_save(trainer, scratch_path("later.safetensors"), true));
            expect_ok(f, remat_trainer_resume(trainer, scratch_path("later.safetensors")));
        }
        const uint64_t steps = remat_trainer_steps_taken(trainer);
        remat_step_result result;
        expect_status(f, remat_trainer_step(trainer, &result), REMAT_INVALID);
        expect_message(f, "steps: no file could state more");
        assert_true(remat_trainer_steps_taken(trainer) == steps);
        remat_trainer_destroy(trainer);
        free(bytes);
        remat_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_examples_resume), FIXTURE_TEST(test_random_models_resume),
        FIXTURE_TEST(test_seed_is_resumed), FIXTURE_TEST(test_weights_only),
        FIXTURE_TEST(test_other_models),    FIXTURE_TEST(test_damaged_files),
        FIXTURE_TEST(test_damaged_bits),    FIXTURE_TEST(test_versions),
        FIXTURE_TEST(test_damaged_numbers), FIXTURE_TEST(test_last_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
