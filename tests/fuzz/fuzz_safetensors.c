/* Weights files: every tensor of a file that opens can be found and read, and what was read can be saved again. */
#include "fuzz/fuzz.h"

#include "data/safetensors_checksum.h"
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

/* Names and texts, however strange, can be written and read again. The checksums are written anew. */
static void save_again(remat_context *context, const safetensors *file)
{
    static const float one = 1;
    enum { MOST = 16 };
    safetensors_entry entries[MOST];
    safetensors_text texts[MOST];
    size_t count = 0, text_count = 0;
    for (size_t i = 0; i < file->count && count < MOST; i++)
        entries[count++] = (safetensors_entry){.name = file->tensors[i].name, .data = &one, .dtype = REMAT_FP32};
    for (size_t i = 0; i < file->text_count && text_count < MOST; i++)
        texts[text_count++] = file->texts[i];
    const char *path = fuzz_save_path();
    FUZZ_CHECK(safetensors_save(context, path, entries, count, texts, text_count, NULL) == REMAT_OK);
    safetensors *again;
    FUZZ_CHECK(safetensors_open(context, path, &again) == REMAT_OK);
    FUZZ_CHECK(again->count == count && safetensors_has_checksums(again));
    for (size_t i = 0; i < count; i++) {
        const safetensors_tensor *tensor = safetensors_find(again, entries[i].name);
        FUZZ_CHECK(tensor && safetensors_check(again, tensor) == REMAT_OK);
    }
    for (size_t i = 0; i < text_count; i++)
        if (strcmp(texts[i].key, CHECKSUM_KEY) != 0 && strcmp(texts[i].key, CHECKSUM_TENSORS_KEY) != 0)
            FUZZ_CHECK(strcmp(safetensors_metadata(again, texts[i].key), texts[i].value) == 0);
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
