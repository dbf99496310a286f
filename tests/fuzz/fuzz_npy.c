/* Samples from .npy files. The first byte says what the network reads and whether the labels are in the same file. */
#include "fuzz/fuzz_data.h"

void fuzz_npy(const uint8_t *data, size_t size)
{
    uint8_t choice = fuzz_take(&data, &size);
    const data_field field = {
        .values = 1 + (choice & 3), .dtype = choice & 4 ? REMAT_INT32 : REMAT_FP32, .bound = 10, .skips = choice & 8};
    const data_needs needs = {.input_count = 1, .inputs = {field}, .labels = choice & 16 ? field : (data_field){0}};
    const char *path = fuzz_file(0, data, size);
    const dataset_settings settings = {.type = DATASET_NPY, .inputs = path, .labels = choice & 16 ? path : NULL};
    remat_context *context = fuzz_begin();
    fuzz_data_read(context, &settings, &needs);
    fuzz_end(context);
}
