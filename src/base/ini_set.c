/* Changes to a file that was read, as they are given on a command line: SECTION.KEY=VALUE. */
#include "base/ini_reader.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* The length of a section's name without its type: "fc1" in [fc1 : conv2d]. */
static size_t name_length(const char *name)
{
    size_t length = strcspn(name, ":");
    while (length && (name[length - 1] == ' ' || name[length - 1] == '\t'))
        length--;
    return length;
}

static bool is_named(const ini_section *section, const char *name)
{
    size_t length = name_length(section->name);
    for (size_t i = 0; i < length; i++)
        if (name_letter(section->name[i]) != name_letter(name[i]))
            return false;
    return !name[length];
}

static remat_status fail_section(ini_file *file, const char *name)
{
    const char *nearest = NULL;
    size_t least = name_distance_limit(name) + 1;
    for (size_t i = 0; i < file->section_count; i++) {
        const char *own = text_pool_part(&file->pool, file->sections[i].name, name_length(file->sections[i].name));
        size_t distance = own ? name_distance(own, name, least) : least;
        nearest = distance < least ? own : nearest;
        least = distance < least ? distance : least;
    }
    return remat_fail(file->context, REMAT_INVALID, NULL, "%.200s has no section '%.60s'%s%.60s%s", file->called, name,
                      nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Finds a section, or adds one of `optional`, a list that ends with NULL. */
static remat_status find_section(ini_file *file, const char *name, const char *const *optional, ini_section **section)
{
    for (size_t i = 0; i < file->section_count; i++)
        if (is_named(*section = &file->sections[i], name))
            return REMAT_OK;
    while (*optional && !names_equal(*optional, name))
        optional++;
    if (!*optional)
        return fail_section(file, name);
    REMAT_TRY(remat_grow(file->context, (void **)&file->sections, &file->section_capacity, file->section_count + 1,
                         sizeof *file->sections));
    *section = &file->sections[file->section_count++];
    **section = (ini_section){*optional, REMAT_NOWHERE, 0, file->entry_count, 0};
    return REMAT_OK;
}

static remat_status insert(ini_file *file, ini_section *section, const ini_entry *entry)
{
    for (size_t i = 0; i < section->count; i++)
        if (strcmp(file->entries[section->first + i].key, entry->key) == 0) {
            file->entries[section->first + i] = *entry;
            return REMAT_OK;
        }
    if (section->count == INI_MOST_KEYS)
        return remat_fail(file->context, REMAT_INVALID, NULL, "[%.60s] has more than %d keys", section->name,
                          INI_MOST_KEYS);
    REMAT_TRY(remat_grow(file->context, (void **)&file->entries, &file->entry_capacity, file->entry_count + 1,
                         sizeof *file->entries));
    size_t at = section->first + section->count++;
    memmove(&file->entries[at + 1], &file->entries[at], (file->entry_count - at) * sizeof *file->entries);
    file->entries[at] = *entry;
    file->entry_count++;
    for (ini_section *later = section + 1; later < file->sections + file->section_count; later++)
        later->first++;
    return REMAT_OK;
}

static remat_status set(ini_file *file, const char *section_name, char *key, const char *value,
                        const char *const *optional)
{
    ini_section *section = NULL;
    ini_fold(key);
    REMAT_TRY(find_section(file, section_name, optional, &section));
    const ini_entry entry = {key, text_pool_text(&file->pool, value), INI_SETTING + file->setting_count};
    if (!entry.value)
        return REMAT_NO_MEMORY;
    section->changed = entry.line;
    if (strcmp(key, "type") != 0 || !strchr(section->name, ':'))
        return insert(file, section, &entry);
    char *name = text_pool_part(&file->pool, section->name, name_length(section->name));
    section->name = name ? text_pool_join(&file->pool, (const char *const[]){name, ":", value, NULL}) : NULL;
    return section->name ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status ini_set(ini_file *file, const char *text, const char *const *optional)
{
    const char *equals = strchr(text, '='), *dot = NULL;
    for (const char *at = text; equals && at < equals; at++)
        dot = *at == '.' ? at : dot; /* the last one: names of layers may have dots */
    if (!dot || dot == text || dot + 1 == equals || !equals[1] || !remat_utf8_valid(text))
        return remat_fail(file->context, REMAT_INVALID, NULL,
                          "this is no setting; write SECTION.KEY=VALUE, such as model.batch_size=8");
    char *section = text_pool_part(&file->pool, text, (size_t)(dot - text));
    char *key = text_pool_part(&file->pool, dot + 1, (size_t)(equals - dot - 1));
    if (!section || !key)
        return REMAT_NO_MEMORY;
    REMAT_TRY(set(file, section, key, equals + 1, optional));
    file->setting_count++;
    return REMAT_OK;
}
