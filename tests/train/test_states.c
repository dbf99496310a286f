/* Optimizer states in fp32, bf16 and 8 bits, and those of lion and adafactor, in whole trainings. */
#include "support/parameter_copies.h"
#include "support/scratch_files.h"
#include "train/trainer_toy.h"

/* Each optimizer with each state it can have. */
static const struct kind {
    const char *optimizer;
    const char *properties[4];
    uint64_t bytes; /* of the toy's parameters: 2 x 16, 16, 16 x 16, 16, 16 x 1, 1; each tensor is rounded up to 64 */
} kinds[] = {
    {"sgd", {"learning_rate=0.05", "momentum=0.9", "state=bf16", NULL}, 64 + 64 + 512 + 64 + 64 + 64},
    {"sgd", {"learning_rate=0.05", "momentum=0.9", "state=int8", NULL}, 6 * 64 + 64 + 64 + 256 + 64 + 64 + 64},
    {"adam", {"learning_rate=0.01", "state=fp32", NULL}, 2 * (128 + 64 + 1024 + 64 + 64 + 64)},
    {"adam", {"learning_rate=0.01", "state=bf16", NULL}, 2 * (64 + 64 + 512 + 64 + 64 + 64)},
    {"adamw", {"learning_rate=0.01", "weight_decay=0.01", "state=int8", NULL}, 2 * (6 * 64 + 5 * 64 + 256)},
    {"lion", {"learning_rate=0.003", "state=fp32", NULL}, 128 + 64 + 1024 + 64 + 64 + 64},
    {"lion", {"learning_rate=0.003", "state=int8", NULL}, 6 * 64 + 5 * 64 + 256},
    {"adafactor", {"learning_rate=0.05", NULL}, 2 * 64 + 64 + 2 * 64 + 64 + 2 * 64 + 64},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static remat_model *model_of(fixture *f, const struct kind *kind)
{
    return toy_model(f, kind->optimizer, kind->properties, REMAT_PROPERTIES("batch_size=16"));
}

static void expect_same(fixture *f, const remat_trainer *a, const remat_trainer *b)
{
    for (size_t i = 0; i < remat_trainer_parameter_count(a); i++) {
        remat_parameter one, two;
        float *left = parameter_copy(f, a, i, &one), *right = parameter_copy(f, b, i, &two);
        assert_memory_equal(left, right, one.count * sizeof *left);
        for (size_t m = 0; m < one.moment_count; m++) {
            float *before = moment_copy(f, a, i, m), *after = moment_copy(f, b, i, m);
            assert_memory_equal(before, after, one.count * sizeof *before);
            free(before);
            free(after);
        }
        free(left);
        free(right);
    }
}

static void bytes_are_counted_and_the_toy_is_learned(void **state)
{
    fixture *f = *state;
    for (size_t k = 0; k < KINDS; k++) {
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        remat_model *model = model_of(f, &kinds[k]);
        remat_trainer *trainer = toy_trainer(f, model, &data, 150);
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        assert_int_equal(figures.optimizer_bytes, kinds[k].bytes);
        double first = one_step(f, trainer).loss, last = 0;
        for (int i = 1; i < 150; i++)
            last = one_step(f, trainer).loss;
        if (!(last < 0.1 * first))
            fail_msg("%s, %s: the loss goes from %g to %g", kinds[k].optimizer, kinds[k].properties[1], first, last);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

static void trainings_go_on_with_the_same_bits(void **state)
{
    fixture *f = *state;
    for (size_t k = 0; k < KINDS; k++) {
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        const char *path = scratch_path("state.safetensors");
        remat_model *model = model_of(f, &kinds[k]);
        remat_trainer *whole = toy_trainer(f, model, &data, 20), *half = toy_trainer(f, model, &data, 20);
        for (int i = 0; i < 20; i++)
            one_step(f, whole);
        for (int i = 0; i < 9; i++)
            one_step(f, half);
        expect_ok(f, remat_trainer_check_save(half, path, true));
        expect_ok(f, remat_trainer_save(half, path, true));
        remat_trainer_destroy(half);
        half = toy_trainer(f, model, &data, 20);
        expect_ok(f, remat_trainer_resume(half, path));
        for (int i = 9; i < 20; i++)
            one_step(f, half);
        expect_same(f, whole, half);
        remat_trainer_destroy(half);
        remat_trainer_destroy(whole);
        remat_model_destroy(model);
    }
}

static void a_state_of_another_type_is_refused(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    const char *path = scratch_path("other.safetensors");
    remat_model *adam = model_of(f, &kinds[2]), *small = model_of(f, &kinds[3]);
    remat_trainer *one = toy_trainer(f, adam, &data, 20), *other = toy_trainer(f, small, &data, 20);
    expect_ok(f, remat_trainer_save(one, path, true));
    expect_status(f, remat_trainer_resume(other, path), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "state = fp32, the model says bf16"));
    expect_ok(f, remat_trainer_save(other, path, true));
    expect_status(f, remat_trainer_resume(one, path), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "state = bf16, the model says fp32"));
    expect_ok(f, remat_trainer_load(one, path)); /* the weights alone fit */
    remat_trainer_destroy(one);
    remat_trainer_destroy(other);
    remat_model_destroy(adam);
    remat_model_destroy(small);
}

/* What is read from a moment can be written back, and is then the same. */
static void moments_are_read_and_written(void **state)
{
    fixture *f = *state;
    for (size_t k = 0; k < KINDS; k++) {
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        remat_model *model = model_of(f, &kinds[k]);
        remat_trainer *from = toy_trainer(f, model, &data, 20), *to = toy_trainer(f, model, &data, 20);
        for (int i = 0; i < 5; i++)
            one_step(f, from);
        for (size_t i = 0; i < remat_trainer_parameter_count(from); i++) {
            remat_parameter about;
            float *values = parameter_copy(f, from, i, &about);
            expect_ok(f, remat_trainer_write_parameter(to, i, values, about.count));
            free(values);
            for (size_t m = 0; m < about.moment_count; m++) {
                float *moment = moment_copy(f, from, i, m);
                expect_ok(f, remat_trainer_write_moment(to, i, m, moment, about.count));
                free(moment);
            }
        }
        expect_same(f, from, to);
        remat_trainer_destroy(from);
        remat_trainer_destroy(to);
        remat_model_destroy(model);
    }
}

/* A setting that would do nothing is refused. */
static void settings_are_checked(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_status(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("state=int8")), REMAT_INVALID);
    expect_status(f, remat_model_set_optimizer(model, "adafactor", REMAT_PROPERTIES("state=int8")), REMAT_INVALID);
    expect_status(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("state=int4")), REMAT_INVALID);
    expect_status(f, remat_model_set_optimizer(model, "lion", REMAT_PROPERTIES("epsilon=1")), REMAT_INVALID);
    expect_status(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("least_scale=1")), REMAT_INVALID);
    expect_ok(f, remat_model_set_optimizer(model, "lion", REMAT_PROPERTIES("beta2=0.98", "state=bf16")));
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(bytes_are_counted_and_the_toy_is_learned),
        FIXTURE_TEST(trainings_go_on_with_the_same_bits),
        FIXTURE_TEST(a_state_of_another_type_is_refused),
        FIXTURE_TEST(moments_are_read_and_written),
        FIXTURE_TEST(settings_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
