/* Samples from .npz archives. The first byte says whether an array is named and whether labels are read. */
#include "fuzz/fuzz_data.h"

void fuzz_npz(const uint8_t *data, size_t size)
{
    uint8_t choice = fuzz_take(&data, &size);
    const data_needs needs = {
        .input_count = 1,
        .inputs = {{.values = 4}},
        .labels = {.values = choice & 2 ? 1 : 0, .dtype = REMAT_INT32, .bound = 3, .skips = true},
    };
    char path[80];
    snprintf(path, sizeof path, "%s%s", fuzz_file(0, data, size), choice & 1 ? ":x_test" : "");
    const dataset_settings settings = {.type = DATASET_NPY, .inputs = path, .scale_bytes = true};
    remat_context *context = fuzz_begin();
    fuzz_data_read(context, &settings, &needs);
    fuzz_end(context);
}
