/* A plan file, the file of a graph's plan or a measured profile for a model: the first byte says which. */
#include "fuzz/fuzz_tiny.h"

void fuzz_model_plan(const uint8_t *data, size_t size)
{
    static remat_context *context;
    static remat_model *model;
    if (!context) {
        context = fuzz_begin();
        model = fuzz_tiny_model(context);
    }
    uint64_t held = remat_context_bytes(context);
    uint8_t choice = fuzz_take(&data, &size);
    remat_train_options options = fuzz_tiny_options();
    options.plan_only = true;
    const char *path = fuzz_file(0, data, size);
    if (choice & 1)
        options.profile_path = path;
    else if (choice & 4)
        options.graph_plan_path = path;
    else
        options.plan_path = path;
    options.budget_bytes = choice & 2 ? 1000 : REMAT_NO_BUDGET;
    remat_trainer *trainer;
    remat_status status = remat_trainer_create(model, &options, &trainer);
    FUZZ_CHECK((trainer != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status)) {
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        FUZZ_CHECK(figures.peak_bytes <= figures.arena_bytes);
        FUZZ_CHECK(figures.budget_bytes == REMAT_NO_BUDGET || figures.total_bytes <= figures.budget_bytes);
    }
    remat_trainer_destroy(trainer);
    FUZZ_CHECK(remat_context_bytes(context) == held);
}
