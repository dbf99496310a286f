#include "model/pretrained.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/input.h"
#include "base/names.h"
#include "model/model_object.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SETTINGS = 1024, DEFAULT_LENGTH = 1024 };

bool pretrained_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* What is being read. */
typedef struct folder_reader {
    remat_context *context;
    text_pool pool;
    const char *folder;
    const char *file; /* DIR/config.json */
    const char *name; /* DIR alone, without the folders before it; "": none that a model file could have */
    pretrained_config config;
    uint64_t length, cache;
    bool pack, caches;
    bool keeps;                              /* frozen weights in the type of the file */
    size_t count;                            /* of the settings */
    const char *settings[MOST_SETTINGS + 1]; /* without those that are meant for this reader */
} folder_reader;

static remat_status take_name(folder_reader *reader, const char *path)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    char *name = text_pool_part(&reader->pool, path + begin, end - begin);
    reader->file =
        text_pool_join(&reader->pool, (const char *const[]){path, path[end] ? "" : "/", "config.json", NULL});
    if (!name || !reader->file)
        return REMAT_NO_MEMORY;
    reader->name = name;
    for (const char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_.", name_letter(*at)))
            reader->name = "";
    return REMAT_OK;
}

/* Settings that are for this reader. Everything else is for that of model files. */
static remat_status take_setting(folder_reader *reader, const char *setting, bool *taken)
{
#define AT(field) offsetof(folder_reader, field)
    static const property own[] = {
        {"length", PROPERTY_COUNT, AT(length), NULL, 1, 1e9, NULL, "how many tokens a sample has"},
        {"cache", PROPERTY_COUNT, AT(cache), NULL, 0, 1e9, NULL,
         "how many keys and values are kept for generating text"},
        {"pack", PROPERTY_FLAG, AT(pack), NULL, 0, 0, NULL, "whether several samples share a row"},
        {0}};
#undef AT
    static const char section[] = "model.";
    const char *key = setting + sizeof section - 1;
    *taken = false;
    if (strncmp(setting, section, sizeof section - 1) != 0)
        return REMAT_OK;
    for (const property *p = own; p->key && !*taken; p++) {
        const size_t length = strlen(p->key);
        *taken = strncmp(key, p->key, length) == 0 && key[length] == '=';
        if (*taken)
            REMAT_TRY(property_set(reader->context, "a folder", own, reader, p->key, key + length + 1));
        reader->caches |= *taken && p->offset == offsetof(folder_reader, cache);
    }
    if (strcmp(setting, "model.frozen=keep") == 0)
        *taken = reader->keeps = true;
    return REMAT_OK;
}

static remat_status take_settings(folder_reader *reader, const char *const *settings)
{
    size_t count = 0;
    for (; settings && *settings; settings++) {
        bool taken;
        REMAT_TRY(take_setting(reader, *settings, &taken));
        if (taken)
            continue;
        if (count == MOST_SETTINGS)
            return remat_fail(reader->context, REMAT_INVALID, NULL, "more than %d settings", MOST_SETTINGS);
        reader->settings[count++] = *settings;
    }
    reader->count = count;
    return REMAT_OK;
}

/* Learned positions end. Angles go on, but the model has not seen what is behind the length that its config.json says, stretched or not. */
static remat_status check_length(const folder_reader *reader)
{
    const pretrained_config *config = &reader->config;
    const uint64_t longest = reader->length > reader->cache ? reader->length : reader->cache;
    const bool learned = config->family == FAMILY_GPT2;
    const bool stretched = !learned && strcmp(config->rope.scaling, "none") != 0 && config->rope.factor > 1;
    const double most = (double)config->positions * (stretched ? config->rope.factor : 1);
    const remat_place place = {reader->file, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE,
                               learned ? "n_positions" : "max_position_embeddings"};
    if ((double)longest <= most)
        return REMAT_OK;
    if (learned)
        return remat_fail(reader->context, REMAT_INVALID, &place, "%llu tokens are asked for, and it is %llu",
                          (unsigned long long)longest, (unsigned long long)config->positions);
    remat_warn(reader->context, &place,
               "%llu tokens are asked for, and it is %llu: the model has not seen positions behind that",
               (unsigned long long)longest, (unsigned long long)config->positions);
    return REMAT_OK;
}

static remat_status read_config(folder_reader *reader)
{
    FILE *stream;
    bool exists;
    REMAT_TRY(input_exists(reader->context, reader->file, &exists));
    if (!exists) {
        remat_place place = REMAT_PLACE_NOWHERE;
        place.file = reader->file;
        return remat_fail(reader->context, REMAT_IO, &place,
                          "not in the folder; give a model file, or a folder in Hugging Face's layout");
    }
    REMAT_TRY(input_open(reader->context, reader->file, &stream));
    remat_status status = pretrained_config_read(&reader->pool, stream, reader->file, &reader->config);
    fclose(stream);
    const uint64_t most = reader->config.positions;
    if (status != REMAT_OK)
        return status;
    const bool is_fp16 = strcmp(reader->config.dtype, "float16") == 0;
    if (reader->keeps && reader->count < MOST_SETTINGS && (is_fp16 || strcmp(reader->config.dtype, "bfloat16") == 0))
        reader->settings[reader->count++] = is_fp16 ? "model.frozen=fp16" : "model.frozen=bf16";
    if (reader->length == 0)
        reader->length = most < DEFAULT_LENGTH ? most : DEFAULT_LENGTH;
    if (reader->caches && reader->cache == 0)
        reader->cache = most < DEFAULT_LENGTH ? most : DEFAULT_LENGTH;
    return check_length(reader);
}

static remat_status read_text(folder_reader *reader, char *text, size_t length, remat_model **model)
{
    FILE *stream = fmemopen(text, length, "r");
    if (!stream)
        return remat_fail(reader->context, REMAT_NO_MEMORY, NULL, "no memory for reading: %s", strerror(errno));
    remat_status status =
        model_read_text(reader->context, stream, reader->file, reader->folder, reader->settings, model);
    fclose(stream);
    if (status != REMAT_OK)
        return status;
    (*model)->dataset.folder = ""; /* the folder is the model's; paths of data start where the program runs */
    (*model)->maps_frozen = reader->keeps;
    if (!(*model)->dataset.tokenizer)
        (*model)->dataset.tokenizer = (*model)->folder;
    return REMAT_OK;
}

static remat_status write_and_read(folder_reader *reader, remat_model **model)
{
    const pretrained_use use = {reader->name, reader->length, reader->pack || reader->cache, reader->cache};
    const size_t room = pretrained_write_ini(&reader->config, &use, NULL, 0) + 1;
    char *text = remat_alloc(reader->context, room, 1);
    if (!text)
        return REMAT_NO_MEMORY;
    pretrained_write_ini(&reader->config, &use, text, room);
    remat_status status = read_text(reader, text, room - 1, model);
    remat_release(reader->context, text, room, 1);
    return status;
}

static remat_status load_folder(remat_context *context, const char *path, const char *const *settings,
                                remat_model **model)
{
    folder_reader *reader = remat_alloc_zeroed(context, 1, sizeof *reader);
    if (!reader)
        return REMAT_NO_MEMORY;
    reader->context = context;
    reader->folder = path;
    text_pool_begin(&reader->pool, context);
    remat_status status = take_name(reader, path);
    if (status == REMAT_OK)
        status = take_settings(reader, settings);
    if (status == REMAT_OK)
        status = read_config(reader);
    if (status == REMAT_OK)
        status = write_and_read(reader, model);
    text_pool_end(&reader->pool);
    remat_release(context, reader, 1, sizeof *reader);
    return status;
}

remat_status remat_model_load_with(remat_context *context, const char *path, const char *const *settings,
                                   remat_model **model)
{
    FILE *stream;
    *model = NULL;
    if (pretrained_is_folder(path))
        return load_folder(context, path, settings, model);
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = remat_model_read_with(context, stream, path, settings, model);
    fclose(stream);
    return status;
}

remat_status remat_model_load(remat_context *context, const char *path, remat_model **model)
{
    return remat_model_load_with(context, path, NULL, model);
}
