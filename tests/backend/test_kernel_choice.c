/* The tables of this processor, and how a trainer gets them by name. */
#include <remat/remat.h>

#include "support/fixture.h"
#include "support/kernel_compare.h"

static size_t tables_of_tests(void)
{
    size_t count = 0;
    while (kernel_tables()[count])
        count++;
    return count;
}

/* The tests count up from the portable set, the library down from the best. */
static void all_are_available_and_the_best_comes_first(void **state)
{
    (void)state;
    const kernel_table *const *here = kernels_available();
    size_t count = tables_of_tests();
    assert_ptr_equal(here[0], kernels_fast());
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(here[i], kernel_tables()[count - 1 - i]);
    assert_null(here[count]);
}

static remat_status train_with(fixture *f, const char *kernels, const char *wanted)
{
    remat_model *model;
    remat_trainer *trainer;
    remat_step_result result;
    remat_train_options options;
    remat_train_options_init(&options);
    options.kernels = kernels;
    options.threads = 1;
    expect_ok(f, remat_model_load(f->context, "examples/models/mlp.ini", &model));
    remat_status status = remat_trainer_create(model, &options, &trainer);
    if (status == REMAT_OK) {
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        assert_string_equal(figures.kernels, wanted);
        expect_ok(f, remat_trainer_step(trainer, &result));
        remat_trainer_destroy(trainer);
    }
    remat_model_destroy(model);
    return status;
}

static void every_one_can_be_chosen(void **state)
{
    fixture *f = *state;
    expect_ok(f, train_with(f, NULL, kernels_fast()->name));
    expect_ok(f, train_with(f, "fast", kernels_fast()->name));
    expect_ok(f, train_with(f, "reference", "reference"));
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        expect_ok(f, train_with(f, (*table)->name, (*table)->name));
}

static void others_are_refused(void **state)
{
    fixture *f = *state;
    expect_status(f, train_with(f, "quick", ""), REMAT_INVALID);
    expect_message(f, "there are no kernels 'quick'");
    expect_message(f, "portable and reference");
    expect_status(f, train_with(f, "", ""), REMAT_INVALID);
    expect_status(f, train_with(f, "avx", ""), REMAT_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(all_are_available_and_the_best_comes_first),
        FIXTURE_TEST(every_one_can_be_chosen),
        FIXTURE_TEST(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
