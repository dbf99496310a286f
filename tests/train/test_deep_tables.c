/* Memory besides the tensors grows with the depth of a model: by how much for a layer, while a plan is made and after. */
#include <stdlib.h>

#include "support/fixture.h"

#include <remat/train.h>

enum {
    LAYERS = 1000,
    LEFT_FOR_A_LAYER = 3400,    /* bytes: model, program, plan and recorded operations */
    PLANNING_FOR_A_LAYER = 9800 /* bytes at most while the plan is made, the tables of the model and program included */
};

static remat_model *deep_model(fixture *f, const char *optimizer)
{
    capture text;
    remat_model *model;
    capture_begin(&text);
    fprintf(
        text.stream,
        "[Model]\nbatch_size = 2\n[Optimizer : %s]\n[Dataset : random]\nsamples = 4\n[in : input]\ninput_shape = 8\n"
        "[Repeat layers]\ncount = %d\n[fc{i} : fully_connected]\nunit = 8\n"
        "[act{i} : activation]\nactivation = relu\n[End]\n[loss : mse]\n",
        optimizer, LAYERS / 2);
    capture_end(&text);
    FILE *stream = stream_of(text.text, text.length);
    expect_ok(f, remat_model_read(f->context, stream, "deep", &model));
    fclose(stream);
    free(text.text);
    return model;
}

static void check(fixture *f, const char *optimizer, uint64_t budget)
{
    uint64_t before = remat_context_bytes(f->context);
    remat_model *model = deep_model(f, optimizer);
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.steps = 2;
    options.budget_bytes = budget;
    options.plan_only = true;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    assert_in_range(remat_context_peak_bytes(f->context) - before, 1, LAYERS * PLANNING_FOR_A_LAYER);
    expect_ok(f, remat_trainer_start(trainer));
    remat_trainer_get_figures(trainer, &figures);
    assert_in_range(remat_context_bytes(f->context) - before - figures.total_bytes, 1, LAYERS * LEFT_FOR_A_LAYER);
    expect_ok(f, remat_trainer_run(trainer, NULL, NULL));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_everything_kept(void **state)
{
    check(*state, "sgd", REMAT_NO_BUDGET);
}

static void test_budget(void **state)
{
    check(*state, "adam", 1850000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_everything_kept), FIXTURE_TEST(test_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
