/* Models, INI: what compiles is described, and small ones are planned. */
#include "fuzz/fuzz.h"

#include "support/jansson_verdict.h"

/* Every layer is there, however long its name is. Only the table of the summary cuts names. */
static void check_names(const remat_model *model, const char *text)
{
    for (size_t i = 0; i < remat_model_layer_count(model); i++) {
        remat_model_layer layer;
        if (remat_model_get_layer(model, i, &layer) != REMAT_OK) /* it has the order as well */
            continue;
        bool plain = remat_text_escape(layer.name, NULL, 0) == strlen(layer.name); /* JSON has escapes of its own */
        FUZZ_CHECK(!plain || strstr(text, layer.name));
    }
}

/* The order may be refused where the sums of all bytes are too large. */
static void describe(remat_context *context, const remat_model *model)
{
    fuzz_output to;
    for (int json = 0; json < 2; json++) {
        fuzz_output_begin(&to);
        FUZZ_CHECK(remat_model_write_summary(model, to.stream, json) == REMAT_OK);
        fuzz_output_end(&to);
        FUZZ_CHECK(!json || jansson_accepts(to.text, to.length));
        if (json)
            check_names(model, to.text);
        free(to.text);
        fuzz_output_begin(&to);
        bool written = fuzz_accepted(context, remat_model_write_order(model, to.stream, json));
        fuzz_output_end(&to);
        FUZZ_CHECK(!written || !json || jansson_accepts(to.text, to.length));
        if (written)
            check_names(model, to.text);
        free(to.text);
    }
}

static void plan(remat_context *context, remat_model *model)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.threads = 1;
    remat_trainer *trainer;
    if (fuzz_accepted(context, remat_trainer_create(model, &options, &trainer))) {
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        FUZZ_CHECK(figures.peak_bytes <= figures.arena_bytes && figures.arena_bytes <= figures.total_bytes);
    }
    remat_trainer_destroy(trainer);
}

void fuzz_model(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    FILE *stream = fuzz_stream(data, size);
    remat_model *model;
    remat_status status = remat_model_read(context, stream, "model.ini", &model);
    fclose(stream);
    FUZZ_CHECK((model != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status) && remat_model_layer_count(model) <= 200) {
        describe(context, model);
        if (remat_model_layer_count(model) <= 12)
            plan(context, model);
    }
    remat_model_destroy(model);
    fuzz_end(context);
}
