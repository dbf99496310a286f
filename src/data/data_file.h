/* A file that is read at any offset. It is not mapped: if a mapped file shrinks, a signal ends the program, and mapped
 * pages would count as memory of the process, which has a budget. tensor_map.h maps frozen weights, which are counted. */
#ifndef REMAT_DATA_DATA_FILE_H
#define REMAT_DATA_DATA_FILE_H

#include "base/error.h"

#include <time.h>

typedef struct data_file {
    remat_context *context;
    char *path;
    int descriptor;
    uint64_t base;            /* where the contents begin in the file */
    uint64_t bytes;           /* of the contents */
    unsigned char *held;      /* the contents if they are held in memory; else NULL */
    uint64_t held_base;       /* where they begin in what is held */
    uint64_t held_bytes;      /* of what is held */
    uint64_t device, number;  /* which file it is */
    uint64_t opened_bytes;    /* of the whole file when it was opened */
    struct timespec modified; /* and when it was written to last by then */
} data_file;

/* Opens `path`, which must be a regular file. It is held in memory if it has at most `hold` bytes. A struct of zeros,
 * and one whose open failed, may be closed. REMAT_IO, REMAT_NO_MEMORY. */
remat_status data_file_open(remat_context *context, const char *path, uint64_t hold, data_file *file);
void data_file_close(data_file *file);

/* Makes a part of the contents the contents: `bytes` bytes at `at`. */
remat_status data_file_narrow(data_file *file, uint64_t at, uint64_t bytes);
/* Makes `held`, which was allocated with this many bytes, the contents; the file owns it then. */
void data_file_replace(data_file *file, unsigned char *held, uint64_t bytes);

/* Reads exactly `bytes` bytes from `offset` on. REMAT_IO, even if the file has only become shorter. Allocates
 * nothing. */
remat_status data_file_read(const data_file *file, uint64_t offset, void *to, size_t bytes);

/* Whether nobody has written to the file since it was opened, as its length and time say. REMAT_IO. */
remat_status data_file_check_unchanged(const data_file *file);

/* The place of a failure in this file. */
static inline remat_place data_file_place(const data_file *file)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = file->path;
    return place;
}

#endif
