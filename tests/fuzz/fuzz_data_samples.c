#include "fuzz/fuzz_data.h"

#include <math.h>

static void check_values(const data_field *field, const void *values)
{
    for (uint64_t i = 0; i < field->values; i++) {
        if (field->dtype == REMAT_INT32) {
            int32_t id = ((const int32_t *)values)[i];
            FUZZ_CHECK(field->bound == 0 || (id < 0 ? field->skips : (uint64_t)id < field->bound));
        } else {
            FUZZ_CHECK(isfinite(((const float *)values)[i]));
        }
    }
}

void fuzz_data_read(remat_context *context, const dataset_settings *settings, const data_needs *needs)
{
    const data_options options = {.settings = settings, .needs = *needs, .seed = 7};
    data_source *source;
    remat_status status = data_source_open(context, &options, &source);
    FUZZ_CHECK((source != NULL) == (status == REMAT_OK));
    if (!fuzz_accepted(context, status))
        return;
    void *inputs[LAYER_MAX_INPUTS], *labels = malloc((size_t)needs->labels.values * 4 + 1);
    for (size_t i = 0; i < needs->input_count; i++)
        FUZZ_CHECK((inputs[i] = malloc((size_t)needs->inputs[i].values * 4 + 1)));
    for (int part = DATA_TRAINING; part <= DATA_VALIDATION; part++)
        for (uint64_t n = data_source_samples(source, (data_part)part), at = 0; at < n && at < 100; at++) {
            if (!fuzz_accepted(context, data_source_fill(source, (data_part)part, 1, at, 1, inputs, labels)))
                continue;
            for (size_t i = 0; i < needs->input_count; i++)
                check_values(&needs->inputs[i], inputs[i]);
            check_values(&needs->labels, labels);
        }
    for (size_t i = 0; i < needs->input_count; i++)
        free(inputs[i]);
    free(labels);
    data_source_close(source);
}
