/* A whole file in memory, so that it can be read twice: standard input cannot be rewound. */
#ifndef REMAT_CLI_FILE_BYTES_H
#define REMAT_CLI_FILE_BYTES_H

#include "command.h"

typedef struct file_bytes {
    const char *name; /* in messages */
    char *bytes;
    size_t count;
} file_bytes;

/* Reads all of it, "-" being standard input; of text up to a NUL byte, which no text has, and up to a little more than the
 * library's readers take: they say what is wrong. Other failures are told on stderr. The caller frees it, after a failure
 * too. */
remat_status file_bytes_read(remat_context *context, const char *path, file_bytes *file);
void file_bytes_free(file_bytes *file);

/* A stream over what was read; the caller closes it. NULL where memory ran out. */
FILE *file_bytes_open(const file_bytes *file);

/* What it is, by remat_file_kind_tell. */
remat_status file_bytes_tell(remat_context *context, const file_bytes *file, remat_file_kind *kind);
/* The same; what is none of these files is taken for `otherwise`, whose reader says what is wrong. REMAT_NO_MEMORY is told on
 * stderr. */
remat_status file_bytes_tell_or(remat_context *context, const file_bytes *file, remat_file_kind otherwise,
                                remat_file_kind *kind);

/* REMAT_BAD_INPUT, told on stderr, for a plan or the log of a run: what they are of is in another file. */
remat_status file_bytes_refuse_result(const file_bytes *file, remat_file_kind kind, bool takes_models);

#endif
