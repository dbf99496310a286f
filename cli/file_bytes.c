#include "file_bytes.h"

#include <stdlib.h>

remat_status file_bytes_read(remat_context *context, const char *path, file_bytes *file)
{
    FILE *stream;
    *file = (file_bytes){0};
    remat_status status = command_open(path, &stream, &file->name);
    if (status != REMAT_OK)
        return status;
    FILE *copy = open_memstream(&file->bytes, &file->count);
    char part[1 << 14];
    size_t got;
    while (copy && (got = fread(part, 1, sizeof part, stream)) > 0)
        fwrite(part, 1, got, copy);
    bool read = !ferror(stream), copied = copy && !ferror(copy);
    if (copy)
        copied &= fclose(copy) == 0 && file->bytes; /* which is NULL where the last part found no memory */
    command_close(context, stream, REMAT_OK);
    if (read && copied)
        return REMAT_OK;
    file_bytes_free(file);
    fprintf(stderr, "remat: %s: %s\n", file->name, read ? "there is not enough memory to read it" : "cannot be read");
    return read ? REMAT_NO_MEMORY : REMAT_IO;
}

void file_bytes_free(file_bytes *file)
{
    free(file->bytes);
    file->bytes = NULL;
    file->count = 0;
}

FILE *file_bytes_open(const file_bytes *file)
{
    /* Not every system opens a stream over no bytes at all. */
    return file->count ? fmemopen(file->bytes, file->count, "r") : fopen("/dev/null", "r");
}

remat_status file_bytes_tell(remat_context *context, const file_bytes *file, remat_file_kind *kind)
{
    FILE *stream = file_bytes_open(file);
    if (!stream)
        return REMAT_NO_MEMORY;
    remat_status status = remat_file_kind_tell(context, stream, file->name, kind);
    fclose(stream);
    return status;
}
