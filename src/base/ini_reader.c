#include "base/ini_reader.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/input.h"
#include "base/utf8.h"
#include "base/names.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

typedef struct line_reader {
    ini_file *file;
    FILE *stream;
    uint64_t number, bytes; /* lines and bytes read */
    char *text;
    size_t length, capacity;
} line_reader;

void ini_fold(char *key)
{
    for (; *key; key++)
        *key = name_letter(*key);
}

#define ini_fail(reader, ...)                                                                              \
    remat_fail((reader)->file->context, REMAT_BAD_INPUT,                                                   \
               &(remat_place){(reader)->file->name, (reader)->number, REMAT_NOWHERE, REMAT_NOWHERE, NULL}, \
               __VA_ARGS__)

/* ---- lines ---- */

static remat_status put_byte(line_reader *reader, char byte)
{
    void *text = reader->text;
    if (reader->length == INPUT_MOST_BYTES)
        return input_check_length(reader->file->context, reader->file->name, reader->length + 1);
    REMAT_TRY(remat_grow(reader->file->context, &text, &reader->capacity, reader->length + 1, 1));
    reader->text = text;
    reader->text[reader->length++] = byte;
    return REMAT_OK;
}

/* A byte order mark is no part of the first line. */
static void drop_mark(line_reader *reader)
{
    if (reader->number == 1 && strncmp(reader->text, "\xef\xbb\xbf", 3) == 0)
        memmove(reader->text, reader->text + 3, reader->length + 1 - 3);
}

static remat_status read_line(line_reader *reader, bool *more)
{
    reader->length = 0;
    reader->number++;
    int byte = getc(reader->stream);
    *more = byte != EOF;
    for (; byte != EOF && byte != '\n'; byte = getc(reader->stream)) {
        if (byte == 0)
            return ini_fail(reader, "NUL byte; a model file is text");
        REMAT_TRY(put_byte(reader, (char)byte));
    }
    reader->bytes += reader->length + 1;
    REMAT_TRY(input_check_length(reader->file->context, reader->file->name, reader->bytes));
    if (ferror(reader->stream))
        return remat_fail(reader->file->context, REMAT_IO, NULL, "%s: reading failed: %s", reader->file->name,
                          strerror(errno));
    if (reader->length && reader->text[reader->length - 1] == '\r')
        reader->length--;
    REMAT_TRY(put_byte(reader, '\0'));
    reader->length--;
    drop_mark(reader);
    return remat_utf8_valid(reader->text) ? REMAT_OK : ini_fail(reader, "the line is not UTF-8");
}

/* ---- what a line says ---- */

/* A carriage return before the end of a line counts too: some files have two of them. */
static bool blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    while (blank(*text))
        text++;
    size_t length = strlen(text);
    while (length && blank(text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* A comment begins at the start or behind white space. */
static void cut_comment(char *text)
{
    for (char *at = text; *at; at++)
        if ((*at == '#' || *at == ';') && (at == text || blank(at[-1]))) {
            *at = '\0';
            return;
        }
}

static remat_status add_section(line_reader *reader, char *text)
{
    ini_file *file = reader->file;
    char *close = strchr(text, ']');
    if (!close)
        return ini_fail(reader, "a section is written [NAME]; the ']' is missing");
    if (*trim(close + 1))
        return ini_fail(reader, "'%.40s' behind the section; a key stands on its own line", trim(close + 1));
    *close = '\0';
    const char *name = trim(text + 1);
    if (!*name)
        return ini_fail(reader, "a section needs a name: [NAME]");
    void *sections = file->sections;
    REMAT_TRY(
        remat_grow(file->context, &sections, &file->section_capacity, file->section_count + 1, sizeof *file->sections));
    file->sections = sections;
    name = text_pool_text(&file->pool, name);
    if (!name)
        return REMAT_NO_MEMORY;
    file->sections[file->section_count++] = (ini_section){name, reader->number, 0, file->entry_count, 0};
    return REMAT_OK;
}

static remat_status check_key(line_reader *reader, const ini_section *section, const char *key)
{
    for (const char *at = key; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '_' || *at == '.'))
            return ini_fail(reader, "'%.40s' is no key; a key has letters, digits, '_' and '-'", key);
    for (size_t i = 0; i < section->count; i++) {
        const ini_entry *entry = &reader->file->entries[section->first + i];
        if (strcmp(entry->key, key) == 0)
            return ini_fail(reader, "'%s' is said twice in [%s]; the first time in line %llu", key, section->name,
                            (unsigned long long)entry->line);
    }
    if (section->count == INI_MOST_KEYS)
        return ini_fail(reader, "[%s] has more than %d keys", section->name, INI_MOST_KEYS);
    return REMAT_OK;
}

static remat_status add_entry(line_reader *reader, char *text)
{
    ini_file *file = reader->file;
    char *equals = strchr(text, '=');
    if (!equals)
        return ini_fail(reader, "'%.40s' is neither [SECTION] nor key = value", text);
    if (!file->section_count)
        return ini_fail(reader, "a key stands before the first section");
    *equals = '\0';
    char *key = trim(text);
    if (!*key)
        return ini_fail(reader, "the key before '=' is missing");
    ini_fold(key);
    ini_section *section = &file->sections[file->section_count - 1];
    REMAT_TRY(check_key(reader, section, key));
    const char *value = trim(equals + 1);
    if (!*value)
        return ini_fail(reader, "'%s' has no value", key);
    void *entries = file->entries;
    REMAT_TRY(remat_grow(file->context, &entries, &file->entry_capacity, file->entry_count + 1, sizeof *file->entries));
    file->entries = entries;
    ini_entry entry = {text_pool_text(&file->pool, key), text_pool_text(&file->pool, value), reader->number};
    if (!entry.key || !entry.value)
        return REMAT_NO_MEMORY;
    file->entries[file->entry_count++] = entry;
    section->count++;
    return REMAT_OK;
}

static remat_status read_lines(line_reader *reader)
{
    for (;;) {
        bool more;
        REMAT_TRY(read_line(reader, &more));
        if (!more)
            return REMAT_OK;
        cut_comment(reader->text);
        char *text = trim(reader->text);
        if (*text == '[')
            REMAT_TRY(add_section(reader, text));
        else if (*text)
            REMAT_TRY(add_entry(reader, text));
    }
}

remat_status ini_read(remat_context *context, FILE *stream, const char *name, ini_file **file)
{
    *file = NULL;
    ini_file *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->name = made->called = name;
    text_pool_begin(&made->pool, context);
    line_reader reader = {.file = made, .stream = stream};
    remat_status status = read_lines(&reader);
    remat_release(context, reader.text, reader.capacity, 1);
    if (status == REMAT_OK)
        *file = made;
    else
        ini_destroy(made);
    return status;
}

void ini_destroy(ini_file *file)
{
    if (!file)
        return;
    remat_release(file->context, file->sections, file->section_capacity, sizeof *file->sections);
    remat_release(file->context, file->entries, file->entry_capacity, sizeof *file->entries);
    text_pool_end(&file->pool);
    remat_release(file->context, file, 1, sizeof *file);
}
