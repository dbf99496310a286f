/* Weights of a folder in Hugging Face's layout: model.safetensors, or shards and the index that says which tensor is in which. */
#include "data/safetensors_file.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_fields.h"
#include "base/text_pool.h"

#include <limits.h>
#include <string.h>

enum { MOST_SHARDS = 1000 };

#define ONE_FILE     "model.safetensors"
#define ADAPTER_FILE "adapter_model.safetensors"
#define INDEX_FILE   "model.safetensors.index.json"

/* An index while it is read. */
typedef struct index_reader {
    safetensors *file;
    text_pool pool;
    const char *folder, *path;       /* of the index */
    const char *shards[MOST_SHARDS]; /* names, in the order of the first mention */
    json_reader *reader;
} index_reader;

static remat_status fail_index(const index_reader *index, const char *name, const char *text)
{
    remat_place place = json_field_place(index->reader, REMAT_NOWHERE, name);
    return remat_fail(index->file->context, REMAT_BAD_INPUT, &place, "%s", text);
}

static const char *join(text_pool *pool, const char *folder, const char *name)
{
    const size_t length = strlen(folder);
    return text_pool_join(pool,
                          (const char *const[]){folder, length && folder[length - 1] == '/' ? "" : "/", name, NULL});
}

/* ---- shards ---- */

static remat_status add_shard(safetensors *file, const char *path)
{
    REMAT_TRY(remat_grow(file->context, (void **)&file->shards, &file->shard_capacity, file->shard_count + 1,
                         sizeof *file->shards));
    file->shards[file->shard_count] = NULL;
    REMAT_TRY(safetensors_open(file->context, path, &file->shards[file->shard_count]));
    file->shard_count++;
    return REMAT_OK;
}

/* Its tensors become those of the folder. */
static remat_status take_tensors(safetensors *file, uint32_t shard)
{
    const safetensors *from = file->shards[shard];
    for (size_t i = 0; i < from->count; i++) {
        REMAT_TRY(remat_grow(file->context, (void **)&file->tensors, &file->capacity, file->count + 1,
                             sizeof *file->tensors));
        safetensors_tensor *tensor = &file->tensors[file->count];
        *tensor = from->tensors[i];
        tensor->shard = shard;
        tensor->name = remat_text_copy(file->context, from->tensors[i].name);
        if (!tensor->name)
            return REMAT_NO_MEMORY;
        file->count++;
    }
    return REMAT_OK;
}

/* ---- the index ---- */

/* The number of a shard that may be new. */
static remat_status find_shard(index_reader *index, const char *tensor, const char *name, size_t *number)
{
    const safetensors *file = index->file;
    for (*number = 0; *number < file->shard_count; ++*number)
        if (strcmp(index->shards[*number], name) == 0)
            return REMAT_OK;
    if (strchr(name, '/') || !*name)
        return fail_index(index, tensor, "a shard is a file of this folder, without a '/' in its name");
    if (file->shard_count == MOST_SHARDS)
        return fail_index(index, tensor, "there are too many shards");
    const char *path = join(&index->pool, index->folder, name);
    index->shards[*number] = text_pool_text(&index->pool, name);
    if (!path || !index->shards[*number])
        return REMAT_NO_MEMORY;
    bool exists;
    REMAT_TRY(input_exists(index->file->context, path, &exists));
    if (!exists) {
        char text[400];
        snprintf(text, sizeof text, "the index says that it is in '%.200s', and this file is not there", name);
        return fail_index(index, tensor, text);
    }
    return add_shard(index->file, path);
}

static remat_status read_map(index_reader *index)
{
    REMAT_TRY(json_read_open(index->reader, REMAT_NOWHERE, "weight_map", JSON_OBJECT));
    for (;;) {
        json_token token;
        size_t shard;
        const char *name = "";
        REMAT_TRY(json_next(index->reader, &token));
        if (token.kind == JSON_OBJECT_END)
            return REMAT_OK;
        char tensor[512];
        snprintf(tensor, sizeof tensor, "%.500s", token.text);
        REMAT_TRY(json_read_text(index->reader, REMAT_NOWHERE, tensor, &name));
        char copy[NAME_MAX + 1];
        snprintf(copy, sizeof copy, "%.*s", NAME_MAX, name);
        REMAT_TRY(find_shard(index, tensor, copy, &shard));
        if (safetensors_find(index->file->shards[shard], tensor))
            continue;
        char text[400];
        snprintf(text, sizeof text, "the index says that it is in '%.200s', and this file does not have it", copy);
        return fail_index(index, tensor, text);
    }
}

static remat_status read_index(index_reader *index)
{
    bool found = false;
    REMAT_TRY(json_read_open(index->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(index->reader, &token));
        if (token.kind == JSON_OBJECT_END)
            break;
        if (strcmp(token.text, "weight_map") == 0 && !found) {
            found = true;
            REMAT_TRY(read_map(index));
        } else {
            REMAT_TRY(json_skip(index->reader));
        }
    }
    return found ? REMAT_OK : fail_index(index, "weight_map", "it is missing; it says which tensor is in which file");
}

static remat_status open_index(index_reader *index)
{
    FILE *stream;
    safetensors *file = index->file;
    REMAT_TRY(input_open(file->context, index->path, &stream));
    remat_status status = json_reader_create(file->context, stream, index->path, &index->reader);
    if (status == REMAT_OK)
        status = read_index(index);
    json_reader_destroy(index->reader);
    fclose(stream);
    return status;
}

/* ---- the folder ---- */

/* What is there instead is named. */
static remat_status fail_empty(index_reader *index)
{
    remat_context *context = index->file->context;
    const remat_place place = {index->folder, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    const char *adapter = join(&index->pool, index->folder, "adapter_config.json");
    const char *torch = join(&index->pool, index->folder, "pytorch_model.bin");
    bool is_adapter, has_torch;
    if (!adapter || !torch)
        return REMAT_NO_MEMORY;
    REMAT_TRY(input_exists(context, adapter, &is_adapter));
    REMAT_TRY(input_exists(context, torch, &has_torch));
    return remat_fail(context, REMAT_BAD_INPUT, &place, "the folder has no weights: %s%s",
                      is_adapter ? "there is an adapter_config.json, and no " ADAPTER_FILE
                                 : "neither " ONE_FILE " nor " INDEX_FILE " nor " ADAPTER_FILE,
                      is_adapter  ? ""
                      : has_torch ? "; `--weights` takes its pytorch_model.bin"
                                  : "; a training starts with random ones if --from-scratch is given");
}

static remat_status open_parts(index_reader *index)
{
    safetensors *file = index->file;
    const char *one = join(&index->pool, index->folder, ONE_FILE);
    const char *adapter = join(&index->pool, index->folder, ADAPTER_FILE);
    index->path = join(&index->pool, index->folder, INDEX_FILE);
    if (!one || !adapter || !index->path)
        return REMAT_NO_MEMORY;
    bool has_one, has_index, has_adapter;
    REMAT_TRY(input_exists(file->context, one, &has_one));
    REMAT_TRY(input_exists(file->context, index->path, &has_index));
    REMAT_TRY(input_exists(file->context, adapter, &has_adapter));
    if (has_one)
        return add_shard(file, one);
    if (has_index)
        return open_index(index);
    if (has_adapter)
        return add_shard(file, adapter);
    return fail_empty(index);
}

remat_status safetensors_open_folder(safetensors *file, const char *path)
{
    index_reader *index = remat_alloc_zeroed(file->context, 1, sizeof *index);
    if (!index)
        return REMAT_NO_MEMORY;
    index->file = file;
    index->folder = path;
    text_pool_begin(&index->pool, file->context);
    remat_status status = open_parts(index);
    for (uint32_t i = 0; i < file->shard_count && status == REMAT_OK; i++)
        status = take_tensors(file, i);
    text_pool_end(&index->pool);
    remat_release(file->context, index, 1, sizeof *index);
    return status == REMAT_OK ? safetensors_sort(file) : status;
}
