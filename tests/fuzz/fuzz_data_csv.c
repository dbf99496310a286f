/* Samples from CSV. The first byte says what the network reads. */
#include "fuzz/fuzz_data.h"

void fuzz_data_csv(const uint8_t *data, size_t size)
{
    uint8_t choice = fuzz_take(&data, &size);
    data_needs needs = {.input_count = 1 + (choice >> 2 & 1)};
    for (size_t i = 0; i < needs.input_count; i++)
        needs.inputs[i] = (data_field){.values = 1 + i, .dtype = choice & 1 ? REMAT_INT32 : REMAT_FP32, .bound = 10};
    if (!(choice & 8))
        needs.labels =
            (data_field){.values = 1, .dtype = choice & 2 ? REMAT_FP32 : REMAT_INT32, .bound = 3, .skips = true};
    const dataset_settings settings = {.type = DATASET_CSV,
                                       .inputs = fuzz_file(0, data, size),
                                       .validation_split = choice & 16 ? 0.3 : 0,
                                       .shuffle = true};
    remat_context *context = fuzz_begin();
    fuzz_data_read(context, &settings, &needs);
    fuzz_end(context);
}
