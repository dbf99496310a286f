/* Reading INI files: sections with keys and values, each with its line, for messages. Lines may have any length and end
 * with LF or CRLF. '#' and ';' begin a comment at the start of a line or after white space. */
#ifndef REMAT_BASE_INI_READER_H
#define REMAT_BASE_INI_READER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text_pool.h"

typedef struct ini_entry {
    const char *key, *value; /* the key in small letters, with '_' for '-'; the value never empty */
    uint64_t line;           /* REMAT_NOWHERE where it came from no file */
} ini_entry;

/* What the first ini_set() changed has this line, what the second one changed the next. No file has so many lines. */
#define INI_SETTING ((uint64_t)1 << 62)

static inline bool ini_is_setting(uint64_t line)
{
    return line >= INI_SETTING && line != REMAT_NOWHERE;
}

typedef struct ini_section {
    const char *name;
    uint64_t line;
    uint64_t changed;    /* the line of the last setting that changed it; 0: none did */
    size_t first, count; /* of ini_file.entries */
} ini_section;

typedef struct ini_file {
    remat_context *context;
    text_pool pool;
    const char *name;
    const char *called; /* in sentences of messages: its name, if the reader of it says nothing else */
    ini_section *sections;
    size_t section_count, section_capacity;
    ini_entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t setting_count; /* calls of ini_set() */
} ini_file;

enum { INI_MOST_KEYS = 1024 }; /* in a section */

/* Reads the whole file; `name` is for messages. REMAT_BAD_INPUT, with file and line: a line is not INI, a key is
 * outside a section, or a section has a key twice. REMAT_IO. On failure *file is NULL. */
remat_status ini_read(remat_context *context, FILE *stream, const char *name, ini_file **file);
void ini_destroy(ini_file *file);

/* Changes a file by "SECTION.KEY=VALUE": replaces the value, or adds the key. The section must be there or be one of
 * `optional`, a list that ends with NULL. REMAT_INVALID names the nearest section. */
remat_status ini_set(ini_file *file, const char *text, const char *const *optional);

/* Converts a key to small letters, and '-' to '_'. */
void ini_fold(char *key);

#endif
