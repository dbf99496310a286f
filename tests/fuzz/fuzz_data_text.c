/* Samples from text in two files. The first byte says how long a sample is and which tokens the network knows, the
 * second where the first file ends. */
#include "fuzz/fuzz_data.h"

void fuzz_data_text(const uint8_t *data, size_t size)
{
    uint8_t choice = fuzz_take(&data, &size);
    size_t first = fuzz_take(&data, &size);
    first = first < size ? first : size;
    data_field field = {.values = 1 + (choice & 7), .dtype = REMAT_INT32, .bound = choice & 8 ? 128 : 256};
    const data_needs needs = {.input_count = 1, .inputs = {field}, .labels = choice & 16 ? (data_field){0} : field};
    char paths[80];
    snprintf(paths, sizeof paths, "%s, %s", fuzz_file(0, data, first), fuzz_file(1, data + first, size - first));
    const dataset_settings settings = {.type = DATASET_TEXT,
                                       .inputs = paths,
                                       .windows = choice & 64 ? WINDOWS_RANDOM : WINDOWS_FIXED,
                                       .validation_split = choice & 32 ? 0.5 : 0,
                                       .shuffle = true};
    remat_context *context = fuzz_begin();
    fuzz_data_read(context, &settings, &needs);
    fuzz_end(context);
}
