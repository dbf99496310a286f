/* Properties as calls give them: every line of the input is one. A line "+TYPE" begins a layer of that type; the lines
 * before the first are for the model, and "optimizer" or "dataset" in place of a type mean these. */
#include "fuzz/fuzz.h"

enum { MOST_PROPERTIES = 16 };

static void set(remat_context *context, remat_model *model, const char *owner, const char *const *properties)
{
    remat_status status;
    if (!owner)
        status = remat_model_set(model, properties);
    else if (strncmp(owner, "optimizer ", 10) == 0)
        status = remat_model_set_optimizer(model, owner + 10, properties);
    else if (strncmp(owner, "dataset ", 8) == 0)
        status = remat_model_set_dataset(model, owner + 8, properties);
    else if (strcmp(owner, "block") == 0)
        status = remat_model_add_block(model, properties);
    else
        status = remat_model_add_layer(model, owner, properties);
    fuzz_accepted(context, status);
}

static void read_lines(remat_context *context, remat_model *model, char *text)
{
    const char *properties[MOST_PROPERTIES + 1] = {NULL}, *owner = NULL;
    size_t count = 0;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '+') {
            set(context, model, owner, properties);
            owner = line + 1;
            count = 0;
        } else if (count < MOST_PROPERTIES) {
            properties[count++] = line;
        }
        properties[count] = NULL;
    }
    set(context, model, owner, properties);
}

void fuzz_properties(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_model *model;
    FUZZ_CHECK(remat_model_create(context, &model) == REMAT_OK);
    char *text = fuzz_text(data, size);
    read_lines(context, model, text);
    memset(text, 'x', size); /* the model has copied what it keeps */
    free(text);
    if (fuzz_accepted(context, remat_model_compile(model)))
        FUZZ_CHECK(remat_model_layer_count(model) > 0);
    remat_model_destroy(model);
    fuzz_end(context);
}
