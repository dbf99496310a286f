/* Files for a test, in a folder of their own that goes when the program ends. */
#ifndef TESTS_SCRATCH_FILES_H
#define TESTS_SCRATCH_FILES_H

#include <stddef.h>

/* The folder. */
const char *scratch_folder(void);

/* The path of a file in it; good until the eighth call from now. */
const char *scratch_path(const char *name);

/* Writes the file and returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t length);
const char *scratch_write_text(const char *name, const char *text);

/* All bytes of a file, terminated; the caller frees. */
char *scratch_read(const char *path, size_t *length);

#endif
