/* A file that is read at any place. Not mapped: a file that shrinks under a map ends the program with a signal, and
 * mapped pages would count as memory of the process, whose size is promised. */
#ifndef REMAT_DATA_DATA_FILE_H
#define REMAT_DATA_DATA_FILE_H

#include "base/error.h"

typedef struct data_file {
    remat_context *context;
    char *path;
    int descriptor;
    uint64_t bytes;
    unsigned char *held; /* the whole file, where it is small enough; else NULL */
} data_file;

/* Opens `path`, which must be a regular file; it is held in memory where it has at most `hold` bytes. A file that was
 * zeroed or failed to open may be closed. REMAT_IO, REMAT_NO_MEMORY. */
remat_status data_file_open(remat_context *context, const char *path, uint64_t hold, data_file *file);
void data_file_close(data_file *file);

/* Exactly `bytes` bytes from `offset` on. REMAT_IO, also where the file has become shorter. Allocates nothing. */
remat_status data_file_read(const data_file *file, uint64_t offset, void *to, size_t bytes);

/* The place of a failure in this file. */
static inline remat_place data_file_place(const data_file *file)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = file->path;
    return place;
}

#endif
