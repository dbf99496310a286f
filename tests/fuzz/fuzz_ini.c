/* The INI reader: what was read, written plainly, reads the same. */
#include "fuzz/fuzz.h"

#include "base/ini_reader.h"

static void write_file(const ini_file *file, FILE *to)
{
    for (size_t s = 0; s < file->section_count; s++) {
        const ini_section *section = &file->sections[s];
        fprintf(to, "[%s]\n", section->name);
        for (size_t e = section->first; e < section->first + section->count; e++)
            fprintf(to, "%s=%s\n", file->entries[e].key, file->entries[e].value);
    }
}

static remat_status rewrite(remat_context *context, const void *data, size_t size, FILE *to)
{
    FILE *stream = fuzz_stream(data, size);
    ini_file *file;
    remat_status status = ini_read(context, stream, "text", &file);
    fclose(stream);
    if (status == REMAT_OK)
        write_file(file, to);
    ini_destroy(file);
    return status;
}

void fuzz_ini(const uint8_t *data, size_t size)
{
    fuzz_round_trip(data, size, SIZE_MAX, rewrite);
}
