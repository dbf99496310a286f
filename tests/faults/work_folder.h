/* Files of the fault tests: a folder of inputs, and a folder that every run finds as new. */
#ifndef REMAT_TESTS_WORK_FOLDER_H
#define REMAT_TESTS_WORK_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Errors of the test itself end it: they print why and exit with 99. */

typedef struct file_text {
    char *bytes; /* NULL: there is no such file; otherwise with a 0 behind the last */
    size_t count;
} file_text;

file_text file_text_read(const char *path);
void file_text_write(const char *path, const char *bytes, size_t count);
void file_text_free(file_text *text);
bool file_text_same(const file_text *a, const file_text *b);
/* `part` is how `whole` begins. */
bool file_text_begins(const file_text *whole, const file_text *part);
/* Takes out what differs from run to run: all numbers. */
void file_text_strip_numbers(file_text *text);
bool file_text_has(const file_text *text, const char *word);

/* FOLDER/NAME, in one of a few buffers that are used in turn. */
const char *path_in(const char *folder, const char *name);

void folder_make(const char *path);
void folder_remove(const char *path);
/* Files and folders of `from` into the empty `to`; one level. */
void folder_copy(const char *from, const char *to);

/* Calls `visit` with the path of every file below, relative to `folder`. */
typedef void (*folder_visit)(void *user, const char *relative);
void folder_walk(const char *folder, folder_visit visit, void *user);

#endif
