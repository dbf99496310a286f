/* A processor with fewer instruction sets than any that tests run on: the two functions that look at the processor are
 * replaced by these, which the linker takes before those of the library. */
#include <remat/remat.h>

#include "backend/cpu/kernel.h"
#include "support/fixture.h"

extern const kernel_table fast_table_portable;

const kernel_table *const *kernels_available(void)
{
    static const kernel_table *const only[] = {&fast_table_portable, NULL};
    return only;
}

const kernel_table *kernels_fast(void)
{
    return &fast_table_portable;
}

static void it_has_what_it_has(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    expect_ok(f, remat_model_load(f->context, "examples/models/mlp.ini", &model));
    static const char *const missing[] = {"avx512", "avx2"}, *const present[] = {"fast", "portable"};
    for (int i = 0; i < 2; i++) {
        remat_train_options_init(&options);
        options.kernels = missing[i];
        expect_status(f, remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
        assert_null(trainer);
        expect_message(f, missing[i]);
        expect_message(f, "for this processor; there are fast, portable and reference");
        options.kernels = present[i];
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        assert_string_equal(figures.kernels, "portable");
        remat_trainer_destroy(trainer);
    }
    assert_string_equal(remat_kernels_name(), "portable");
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(it_has_what_it_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
