/* Weights files: every tensor of a file that opens can be found and read, and what was read can be saved again. */
#include "fuzz/fuzz.h"

#include "data/safetensors_file.h"

static void read_tensors(remat_context *context, const safetensors *file)
{
    for (size_t i = 0; i < file->count; i++) {
        const safetensors_tensor *tensor = &file->tensors[i];
        FUZZ_CHECK(safetensors_find(file, tensor->name) == tensor);
        FUZZ_CHECK(tensor->end <= file->source.bytes);
        if (tensor->values > 1 << 16)
            continue;
        float *values = malloc((size_t)(tensor->values + 1) * sizeof *values);
        FUZZ_CHECK(values);
        fuzz_accepted(context, safetensors_read(file, tensor, values, (size_t)tensor->values));
        free(values);
    }
    for (size_t i = 0; i < file->text_count; i++)
        FUZZ_CHECK(safetensors_metadata(file, file->texts[i].key));
}

/* Names and texts, however strange, can be written and read again. */
static void save_again(remat_context *context, const safetensors *file)
{
    static const float one = 1;
    size_t count = file->count < 16 ? file->count : 16;
    safetensors_entry entries[16];
    for (size_t i = 0; i < count; i++)
        entries[i] = (safetensors_entry){.name = file->tensors[i].name, .data = &one, .dtype = REMAT_FP32};
    const char *path = fuzz_save_path();
    FUZZ_CHECK(safetensors_save(context, path, entries, count, file->texts, file->text_count, NULL) == REMAT_OK);
    safetensors *again;
    FUZZ_CHECK(safetensors_open(context, path, &again) == REMAT_OK);
    FUZZ_CHECK(again->count == count && again->text_count >= file->text_count);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(safetensors_find(again, entries[i].name));
    for (size_t i = 0; i < file->text_count; i++)
        FUZZ_CHECK(strstr(file->texts[i].key, "checksum") || /* new values have new ones */
                   strcmp(safetensors_metadata(again, file->texts[i].key),
                          safetensors_metadata(file, file->texts[i].key)) == 0);
    safetensors_close(again);
    fuzz_save_end();
}

void fuzz_safetensors(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    safetensors *file;
    remat_status status = safetensors_open(context, fuzz_safetensors_file(0, data, size), &file);
    FUZZ_CHECK((file != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status)) {
        read_tensors(context, file);
        save_again(context, file);
    }
    safetensors_close(file);
    fuzz_end(context);
}
