/* config.json of a folder: what is accepted becomes a model file, and small ones are models. The same bytes as
 * adapter_config.json, and as the index of shards. */
#include "fuzz/fuzz.h"

#include <sys/stat.h>
#include <unistd.h>

#include "data/safetensors.h"
#include "model/pretrained.h"
#include "model/tuning.h"

static void build(remat_context *context, const pretrained_config *config)
{
    static char text[1 << 16];
    const pretrained_use use = {"fuzzed", 3, config->layers % 2, config->layers % 3 ? 0 : 7};
    const size_t length = pretrained_write_ini(config, &use, text, sizeof text);
    FUZZ_CHECK(length < sizeof text);
    if (config->layers > 4 || config->width > 64 || config->vocabulary > 1000 || config->inner > 1000 ||
        config->heads * (config->head_size + 1) > 1000 || config->positions > 100000)
        return;
    remat_model *model;
    FILE *stream = fuzz_stream((const uint8_t *)text, length);
    remat_status status = remat_model_read(context, stream, "model", &model);
    if (fuzz_accepted(context, status))
        FUZZ_CHECK(remat_model_layer_count(model) > 5);
    remat_model_destroy(model);
    fclose(stream);
}

static void read_adapter(remat_context *context, text_pool *pool, const uint8_t *data, size_t size)
{
    model_tuning tuning = {0};
    FILE *stream = fuzz_stream(data, size);
    if (fuzz_accepted(context, tuning_read_adapter_config(pool, stream, "adapter_config.json", &tuning)))
        FUZZ_CHECK(tuning.rank > 0 && tuning.targets.items);
    tuning_find(&tuning.targets, "model.layers.0.self_attn.q_proj");
    fclose(stream);
}

/* There are no shards, so it is never accepted. */
static void read_index(remat_context *context, const uint8_t *data, size_t size)
{
    char folder[4096], path[5000];
    safetensors *file;
    snprintf(folder, sizeof folder, "%s.folder", fuzz_save_path());
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    mkdir(folder, 0700);
    FILE *stream = fopen(path, "wb");
    FUZZ_CHECK(stream && fwrite(data, 1, size, stream) == size && fclose(stream) == 0);
    if (fuzz_accepted(context, safetensors_open(context, folder, &file)))
        FUZZ_CHECK(safetensors_count(file) == 0);
    safetensors_close(file);
    unlink(path);
    rmdir(folder);
}

void fuzz_pretrained(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    text_pool pool;
    pretrained_config config;
    FILE *stream = fuzz_stream(data, size);
    text_pool_begin(&pool, context);
    if (fuzz_accepted(context, pretrained_config_read(&pool, stream, "config.json", &config)))
        build(context, &config);
    read_adapter(context, &pool, data, size);
    read_index(context, data, size);
    text_pool_end(&pool);
    fclose(stream);
    fuzz_end(context);
}
