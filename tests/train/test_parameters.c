/* Weights, statistics and moments are read and written by copies. */
#include "support/parameter_copies.h"
#include "support/parameter_of_0_1.h"
#include "train/trainer_toy.h"

static remat_model *model_with_statistics(fixture *f, const char *optimizer)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=6")));
    expect_ok(f, remat_model_add_layer(model, "batch_normalization", REMAT_PROPERTIES("name=norm")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=8", "epochs=1")));
    expect_ok(f, remat_model_set_optimizer(model, optimizer, REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static void parameters_are_described(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    static const char *const optimizers[] = {"sgd", "adam"};
    for (uint32_t o = 0; o < 2; o++) {
        remat_model *model = model_with_statistics(f, optimizers[o]);
        remat_trainer *trainer = toy_trainer(f, model, &data, 10);
        size_t count = remat_trainer_parameter_count(trainer), statistics = 0;
        uint64_t trained = 0;
        for (size_t i = 0; i < count; i++) {
            remat_parameter about;
            expect_ok(f, remat_trainer_get_parameter(trainer, i, &about));
            uint64_t values = 1;
            for (uint32_t d = 0; d < about.rank; d++)
                values *= about.dims[d];
            assert_int_equal(values, about.count);
            assert_int_equal(about.dtype, REMAT_FP32);
            assert_int_equal(about.moment_count, about.trained ? 2 * o : 0);
            trained += about.trained ? about.count : 0;
            statistics += !about.trained;
        }
        assert_int_equal(statistics, 2);
        assert_int_equal(trained, remat_model_parameter_count(model));
        remat_parameter first;
        expect_ok(f, remat_trainer_get_parameter(trainer, 0, &first));
        assert_string_equal(first.name, "fc.weight");
        expect_status(f, remat_trainer_get_parameter(trainer, count, &first), REMAT_INVALID);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

/* Another trainer with everything copied over goes on with the same losses, up to its own number of steps. */
static void what_is_written_is_what_trains(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = model_with_statistics(f, "adam");
    remat_trainer *trained = toy_trainer(f, model, &data, 10), *fresh = toy_trainer(f, model, &data, 10);
    remat_step_result result;
    expect_ok(f, remat_trainer_step(trained, &result));
    expect_ok(f, remat_trainer_step(fresh, &result)); /* both count one step */
    for (size_t i = 0; i < remat_trainer_parameter_count(trained); i++) {
        remat_parameter about;
        float *values = parameter_copy(f, trained, i, &about);
        for (uint64_t k = 0; k < about.count; k++) { /* numbers that training would not have made */
            values[k] = about.trained ? values[k] * 1.5f : 1 + (float)k;
        }
        expect_ok(f, remat_trainer_write_parameter(trained, i, values, about.count));
        expect_ok(f, remat_trainer_write_parameter(fresh, i, values, about.count));
        float *back = parameter_copy(f, fresh, i, &about);
        assert_memory_equal(back, values, about.count * sizeof *values);
        for (size_t m = 0; m < about.moment_count; m++) {
            for (uint64_t k = 0; k < about.count; k++)
                values[k] = 0.001f * (float)(k + m + 1);
            expect_ok(f, remat_trainer_write_moment(trained, i, m, values, about.count));
            expect_ok(f, remat_trainer_write_moment(fresh, i, m, values, about.count));
            float *moment = moment_copy(f, fresh, i, m);
            assert_memory_equal(moment, values, about.count * sizeof *values);
            free(moment);
        }
        free(back);
        free(values);
    }
    for (int i = 0; i < 4; i++) {
        remat_step_result other;
        expect_ok(f, remat_trainer_step(trained, &result));
        expect_ok(f, remat_trainer_step(fresh, &other));
        assert_true(result.loss == other.loss);
    }
    remat_trainer_destroy(trained);
    remat_trainer_destroy(fresh);
    remat_model_destroy(model);
}

static void wrong_copies_are_refused(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = model_with_statistics(f, "adam");
    remat_trainer *trainer = toy_trainer(f, model, &data, 10);
    size_t count = remat_trainer_parameter_count(trainer);
    float values[64] = {0};
    remat_parameter about;
    expect_ok(f, remat_trainer_get_parameter(trainer, 0, &about));
    expect_status(f, remat_trainer_read_parameter(trainer, count, values, 1), REMAT_INVALID);
    expect_status(f, remat_trainer_write_parameter(trainer, count, values, 1), REMAT_INVALID);
    expect_status(f, remat_trainer_read_parameter(trainer, 0, values, about.count - 1), REMAT_INVALID);
    expect_status(f, remat_trainer_write_parameter(trainer, 0, values, about.count + 1), REMAT_INVALID);
    expect_status(f, remat_trainer_read_moment(trainer, 0, 2, values, about.count), REMAT_INVALID);
    expect_status(f, remat_trainer_write_moment(trainer, 0, 0, values, about.count + 1), REMAT_INVALID);
    for (size_t i = 0; i < count; i++) {
        expect_ok(f, remat_trainer_get_parameter(trainer, i, &about));
        if (!about.trained)
            expect_status(f, remat_trainer_read_moment(trainer, i, 0, values, about.count), REMAT_INVALID);
    }
    remat_trainer_destroy(trainer);
    remat_train_options options;
    remat_train_options_init(&options);
    options.plan_only = true;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_get_parameter(trainer, 0, &about));
    expect_status(f, remat_trainer_read_parameter(trainer, 0, values, about.count), REMAT_INVALID);
    expect_status(f, remat_trainer_read_moment(trainer, 0, 0, values, about.count), REMAT_INVALID);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* Programs of release 0.1 read and write through pointers, where there are floats to point to. */
static void programs_of_0_1_get_pointers(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    for (int halves = 0; halves < 2; halves++) {
        remat_model *model;
        parameter_of_0_1 old;
        remat_parameter about;
        float values[12];
        expect_ok(f, remat_model_create(f->context, &model));
        expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
        expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=6")));
        expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
        expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
        expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=8", "epochs=1")));
        if (halves)
            expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("precision=bf16", "master=false")));
        expect_ok(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("momentum=0.9")));
        expect_ok(f, remat_model_compile(model));
        remat_trainer *trainer = toy_trainer(f, model, &data, 10);
        expect_ok(f, get_parameter_of_0_1(trainer, 0, &old));
        expect_ok(f, remat_trainer_get_parameter(trainer, 0, &about));
        assert_string_equal(old.name, about.name);
        assert_int_equal(old.count, 12);
        assert_null(old.moments[1]);
        if (halves) {
            assert_null(old.values);
        } else {
            expect_ok(f, remat_trainer_read_parameter(trainer, 0, values, 12));
            assert_memory_equal(old.values, values, sizeof values);
            assert_non_null(old.moments[0]);
        }
        expect_status(f, get_parameter_of_0_1(trainer, 99, &old), REMAT_INVALID);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(parameters_are_described),
        FIXTURE_TEST(what_is_written_is_what_trains),
        FIXTURE_TEST(wrong_copies_are_refused),
        FIXTURE_TEST(programs_of_0_1_get_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
