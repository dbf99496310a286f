/* A model from an INI file: sections to settings, layers and blocks; repeated groups copy by copy. */
#include "model/model_copy.h"
#include "model/model_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"

#include <string.h>

typedef struct file_reader {
    remat_model *model;
    const ini_file *file;
    uint64_t settings[3]; /* the lines of [Model], [Optimizer] and [Dataset], 0 where they have not been */
    text_pool pool;       /* the texts of one section of one copy */
    bool copying;         /* a group is being repeated: */
    model_copy copy;
    /* Blocks wait until all layers are there. */
    struct waiting_block {
        const char *name;
        const ini_entry *layers;
        uint64_t line;
    } * blocks;
    size_t block_count, block_capacity;
} file_reader;

#define line_fail(reader, line, ...) \
    model_blame((reader)->model, NULL, line, remat_fail((reader)->model->context, REMAT_INVALID, NULL, __VA_ARGS__))

/* The rest of a section's name behind a word such as "Repeat", or NULL where it begins otherwise. */
static const char *behind_word(const char *name, const char *word)
{
    for (; *word; word++, name++)
        if (name_letter(*name) != *word)
            return NULL;
    if (*name && *name != ' ' && *name != '\t')
        return NULL;
    return name + strspn(name, " \t");
}

/* ---- one section ---- */

/* The line that is blamed for what is wrong with the whole section. */
static uint64_t place_of(const ini_section *section)
{
    return section->changed ? section->changed : section->line;
}

/* A text with the placeholders of the copy filled in; outside of groups it is the text itself. */
static remat_status fill_in(file_reader *reader, const char *text, uint64_t line, const char **filled)
{
    *filled = text;
    if (!reader->copying)
        return REMAT_OK;
    return model_blame(reader->model, NULL, line, model_copy_fill(&reader->copy, &reader->pool, text, filled));
}

/* Takes "[NAME : TYPE]" apart, in place. *type stays NULL where the head has none. */
static remat_status split_head(file_reader *reader, ini_section *section, const ini_entry **type)
{
    const char *colon = strchr(section->name, ':');
    *type = NULL;
    if (!colon)
        return REMAT_OK;
    size_t name = (size_t)(colon - section->name);
    while (name && (section->name[name - 1] == ' ' || section->name[name - 1] == '\t'))
        name--;
    ini_entry *made = text_pool_take(&reader->pool, 1, sizeof *made);
    char *copy = text_pool_part(&reader->pool, section->name, name);
    if (!made || !copy)
        return REMAT_NO_MEMORY;
    *made = (ini_entry){"type", colon + 1 + strspn(colon + 1, " \t"), place_of(section)};
    if (!*made->value)
        return line_fail(reader, section->line, "[%.80s] has no type behind the ':'", section->name);
    section->name = copy;
    *type = made;
    return REMAT_OK;
}

/* The entries of a section without `type`, filled in. *type is what the head said; where it said nothing, what the
 * entries say, and NULL where they do not. */
static remat_status take_entries(file_reader *reader, const ini_section *section, ini_entry **entries, size_t *count,
                                 const ini_entry **type)
{
    *count = 0;
    *entries = text_pool_take(&reader->pool, section->count, sizeof **entries);
    if (!*entries)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < section->count; i++) {
        const ini_entry *entry = &reader->file->entries[section->first + i];
        if (strcmp(entry->key, "type") == 0) {
            if (*type)
                return line_fail(reader, entry->line, "type: the section's head says it already: '%s'", (*type)->value);
            *type = entry;
            continue;
        }
        ini_entry *taken = &(*entries)[(*count)++];
        *taken = *entry;
        REMAT_TRY(fill_in(reader, entry->value, entry->line, &taken->value));
    }
    return REMAT_OK;
}

/* A section whose type is no layer may be one of the settings with a typing error. NULL: it is not. */
static const char *meant_section(remat_context *context, const char *name, const char *type)
{
    static const char *const names[] = {"Model", "Optimizer", "Dataset"};
    const layer_type *found;
    return type && model_find_type(context, type, &found) == REMAT_OK ? NULL : nearest_name(name, names, 3);
}

static remat_status add_layer(file_reader *reader, const ini_section *section, const ini_entry *type)
{
    const char *name;
    ini_entry *entries;
    size_t count;
    REMAT_TRY(fill_in(reader, section->name, section->line, &name));
    REMAT_TRY(take_entries(reader, section, &entries, &count, &type));
    const char *meant = meant_section(reader->model->context, section->name, type ? type->value : NULL);
    if (meant)
        return line_fail(reader, section->line, "there is no section [%.80s]; did you mean [%s]?", section->name,
                         meant);
    if (!type)
        return line_fail(reader, section->line,
                         "[%.80s] has no Type; a section other than [Model], [Optimizer], "
                         "[Dataset], [Block NAME], [Repeat NAME] and [End] is a layer",
                         section->name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].key, "name") == 0)
            return line_fail(reader, entries[i].line, "name: the section's name is the name of the layer");
    const char *text;
    REMAT_TRY(fill_in(reader, type->value, type->line, &text));
    return model_add_layer(reader->model, text, name, entries, count, place_of(section));
}

static remat_status keep_block(file_reader *reader, const ini_section *section, const char *name, const ini_entry *type)
{
    ini_entry *entries;
    size_t count;
    REMAT_TRY(take_entries(reader, section, &entries, &count, &type));
    if (type || count != 1 || strcmp(entries[0].key, "layers") != 0)
        return line_fail(reader, section->line, "[%.80s] has one key: layers = a, b, c or layers = a .. c",
                         section->name);
    REMAT_TRY(fill_in(reader, name, section->line, &name));
    void *blocks = reader->blocks;
    REMAT_TRY(remat_grow(reader->model->context, &blocks, &reader->block_capacity, reader->block_count + 1,
                         sizeof *reader->blocks));
    reader->blocks = blocks;
    struct waiting_block block = {text_pool_text(&reader->model->pool, name), NULL, section->line};
    ini_entry *layers = text_pool_take(&reader->model->pool, 1, sizeof *layers);
    if (!block.name || !layers)
        return REMAT_NO_MEMORY;
    *layers = (ini_entry){"layers", text_pool_text(&reader->model->pool, entries[0].value), entries[0].line};
    if (!layers->value)
        return REMAT_NO_MEMORY;
    block.layers = layers;
    reader->blocks[reader->block_count++] = block;
    return REMAT_OK;
}

/* Settings point to their texts, so those move to the model's pool. */
static remat_status keep_values(file_reader *reader, ini_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(entries[i].value = text_pool_text(&reader->model->pool, entries[i].value)))
            return REMAT_NO_MEMORY;
    return REMAT_OK;
}

static remat_status set_settings(file_reader *reader, const ini_section *section, size_t which, const ini_entry *type)
{
    if (reader->settings[which])
        return line_fail(reader, section->line, "[%s] stands here a second time; the first is in line %llu",
                         section->name, (unsigned long long)reader->settings[which]);
    reader->settings[which] = section->line;
    ini_entry *entries;
    size_t count;
    REMAT_TRY(take_entries(reader, section, &entries, &count, &type));
    REMAT_TRY(keep_values(reader, entries, count));
    if (which == 0 && type)
        return line_fail(reader, type->line, "type: [Model] has none; there is one kind of model");
    if (which == 0)
        return model_set(reader->model, entries, count);
    if (!type)
        return line_fail(reader, place_of(section), "[%s] needs a Type", section->name);
    return which == 1 ? model_set_optimizer(reader->model, type->value, entries, count, type->line)
                      : model_set_dataset(reader->model, type->value, entries, count, type->line);
}

static remat_status apply(file_reader *reader, ini_section section)
{
    static const char *const settings[] = {"model", "optimizer", "dataset"};
    const ini_entry *type;
    REMAT_TRY(split_head(reader, &section, &type));
    for (size_t i = 0; i < 3; i++)
        if (names_equal(section.name, settings[i])) {
            if (reader->copying)
                return line_fail(reader, section.line, "[%s] cannot be repeated", section.name);
            return set_settings(reader, &section, i, type);
        }
    const char *block = behind_word(section.name, "block");
    if (block && *block)
        return keep_block(reader, &section, block, type);
    return add_layer(reader, &section, type);
}

/* Applies a section with texts that are forgotten afterwards. */
static remat_status apply_once(file_reader *reader, const ini_section *section)
{
    text_pool_begin(&reader->pool, reader->model->context);
    remat_status status = apply(reader, *section);
    text_pool_end(&reader->pool);
    return status;
}

/* ---- groups ---- */

static bool is_repeat(const ini_section *section)
{
    return behind_word(section->name, "repeat") != NULL;
}

static bool is_end(const ini_section *section)
{
    return names_equal(section->name, "end");
}

static remat_status read_copies(file_reader *reader, const ini_section *group, uint64_t *copies)
{
    const ini_entry *count = group->count ? &reader->file->entries[group->first] : NULL;
    if (group->count != 1 || strcmp(count->key, "count") != 0)
        return line_fail(reader, group->line, "[%.80s] has one key, count = N; what is repeated follows up to [End]",
                         group->name);
    static const property properties[] = {
        {"count", PROPERTY_COUNT, 0, NULL, 1, MODEL_MOST_COPIES, NULL, "how many copies"}, {0}};
    return model_blame(reader->model, NULL, count->line,
                       property_set(reader->model->context, "[Repeat]", properties, copies, "count", count->value));
}

/* The sections from `at`, a [Repeat], to its [End]; *at moves to the [End]. */
static remat_status repeat(file_reader *reader, size_t *at)
{
    const ini_file *file = reader->file;
    const ini_section *group = &file->sections[*at];
    uint64_t copies = 0;
    size_t end = *at + 1;
    for (; end < file->section_count && !is_end(&file->sections[end]); end++)
        if (is_repeat(&file->sections[end]))
            return line_fail(reader, file->sections[end].line,
                             "a group inside a group; [%.80s] of line %llu has no [End] before it", group->name,
                             (unsigned long long)group->line);
    if (end == file->section_count)
        return line_fail(reader, group->line, "[%.80s] has no [End]", group->name);
    if (end == *at + 1)
        return line_fail(reader, group->line, "[%.80s] repeats nothing; layers stand between it and [End]",
                         group->name);
    REMAT_TRY(read_copies(reader, group, &copies));
    if (file->sections[end].count)
        return line_fail(reader, file->sections[end].line, "[End] has no keys");
    reader->copying = true;
    for (reader->copy.number = 0; reader->copy.number < copies; reader->copy.number++) {
        const remat_model *model = reader->model;
        reader->copy.before = model->layer_count ? model->layers[model->layer_count - 1].name : NULL;
        for (size_t i = *at + 1; i < end; i++)
            REMAT_TRY(apply_once(reader, &file->sections[i]));
    }
    reader->copying = false;
    *at = end;
    return REMAT_OK;
}

/* ---- the file ---- */

static remat_status add_waiting_block(file_reader *reader, const struct waiting_block *block)
{
    remat_model *model = reader->model;
    const char *text = block->layers->value, *dots = strstr(text, "..");
    const char *const *items;
    size_t count;
    if (!dots) {
        REMAT_TRY(model_split_list(&model->pool, text, &items, &count));
        return model_add_block(model, block->name, items, count, block->layers->line);
    }
    const char *first = text_pool_part(&model->pool, text, (size_t)(dots - text));
    if (!first)
        return REMAT_NO_MEMORY;
    const char *const *last;
    REMAT_TRY(model_split_list(&model->pool, first, &items, &count));
    if (count == 1)
        REMAT_TRY(model_split_list(&model->pool, dots + 2, &last, &count));
    if (count != 1)
        return line_fail(reader, block->layers->line, "layers: a range is written a .. c");
    return model_add_range(model, block->name, items[0], last[0], block->layers->line);
}

static remat_status apply_all(file_reader *reader)
{
    const ini_file *file = reader->file;
    for (size_t i = 0; i < file->section_count; i++) {
        if (is_end(&file->sections[i]))
            return line_fail(reader, file->sections[i].line, "[End] without a [Repeat NAME] before it");
        REMAT_TRY(is_repeat(&file->sections[i]) ? repeat(reader, &i) : apply_once(reader, &file->sections[i]));
    }
    for (size_t i = 0; i < reader->block_count; i++)
        REMAT_TRY(add_waiting_block(reader, &reader->blocks[i]));
    return remat_model_compile(reader->model);
}

/* Where relative paths of the data set start; "" is where the program runs. */
static remat_status set_folder(remat_model *model, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == path ? 1 : (size_t)((slash ? slash : path) - path);
    model->dataset.folder = text_pool_part(&model->pool, path, length);
    return model->dataset.folder ? REMAT_OK : REMAT_NO_MEMORY;
}

/* Keeps the settings for messages, as they are written on the command line. */
static remat_status keep_settings(remat_model *model, const char *const *settings)
{
    size_t count = 0;
    while (settings && settings[count])
        count++;
    if (!count)
        return REMAT_OK;
    model->set = text_pool_take(&model->pool, count, sizeof *model->set);
    for (size_t i = 0; model->set && i < count; i++)
        if (!(model->set[i] = text_pool_join(&model->pool, (const char *const[]){"--set ", settings[i], NULL})))
            return REMAT_NO_MEMORY;
    return model->set ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status read_into(remat_model *model, const ini_file *file, const char *folder, const char *const *settings)
{
    file_reader reader = {.model = model, .file = file};
    REMAT_TRY(keep_settings(model, settings));
    model->file = text_pool_text(&model->pool, file->name);
    model->folder = folder ? text_pool_text(&model->pool, folder) : NULL;
    if (!model->file || (folder && !model->folder))
        return REMAT_NO_MEMORY;
    REMAT_TRY(set_folder(model, file->name));
    remat_status status = apply_all(&reader);
    remat_release(model->context, reader.blocks, reader.block_capacity, sizeof *reader.blocks);
    return status;
}

static remat_status change(ini_file *file, const char *const *settings)
{
    static const char *const optional[] = {"model", "optimizer", "dataset", NULL};
    for (; settings && *settings; settings++) {
        remat_status status = ini_set(file, *settings, optional);
        if (status == REMAT_INVALID)
            return remat_fail(file->context, status, NULL, "--set %.100s: %s", *settings,
                              remat_context_message(file->context));
        REMAT_TRY(status);
    }
    return REMAT_OK;
}

remat_status model_read_text(remat_context *context, FILE *stream, const char *name, const char *folder,
                             const char *const *settings, remat_model **model)
{
    ini_file *file;
    *model = NULL;
    REMAT_TRY(ini_read(context, stream, name, &file));
    if (folder)
        file->called = "the model of config.json";
    remat_model *made = NULL;
    remat_status status = change(file, settings);
    if (status == REMAT_OK)
        status = remat_model_create(context, &made);
    if (status == REMAT_OK)
        status = read_into(made, file, folder, settings);
    ini_destroy(file);
    if (status == REMAT_OK)
        *model = made;
    else
        remat_model_destroy(made);
    return status;
}

remat_status remat_model_read_with(remat_context *context, FILE *stream, const char *name, const char *const *settings,
                                   remat_model **model)
{
    return model_read_text(context, stream, name, NULL, settings, model);
}

remat_status remat_model_read(remat_context *context, FILE *stream, const char *name, remat_model **model)
{
    return remat_model_read_with(context, stream, name, NULL, model);
}
