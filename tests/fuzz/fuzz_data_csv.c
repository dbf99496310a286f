/* Samples from CSV. The first byte says what the network reads, and with which settings. */
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
    static const dataset_settings settings_of[] = {
        {0},
        {.missing = MISSING_MEAN, .normalize = NORMALIZE_STANDARD},
        {.missing = MISSING_DROP, .normalize = NORMALIZE_MINMAX},
        {.missing = MISSING_ZERO, .words = WORDS_ONEHOT},
        {.target = "y", .ignore = "id", .words = WORDS_ONEHOT},
        {.columns = "1 .. 2", .target = "3", .missing = MISSING_DROP},
        {.delimiter = DELIMITER_SPACE, .header = HEADER_FALSE},
        {.classes = "a, b, 3", .header = HEADER_TRUE},
    };
    dataset_settings settings = settings_of[choice >> 5];
    settings.type = DATASET_CSV;
    settings.inputs = fuzz_file(0, data, size);
    settings.validation_split = choice & 16 ? 0.3 : 0;
    settings.shuffle = true;
    remat_context *context = fuzz_begin();
    fuzz_data_read(context, &settings, &needs);
    fuzz_end(context);
}
