#include "support/scratch_files.h"

#include "support/cases.h"

#include <dirent.h>
#include <unistd.h>

static char folder[64];

static void remove_folder(void)
{
    DIR *files = opendir(folder);
    for (struct dirent *file = files ? readdir(files) : NULL; file; file = readdir(files))
        unlink(scratch_path(file->d_name));
    if (files)
        closedir(files);
    rmdir(folder);
}

const char *scratch_folder(void)
{
    if (!folder[0]) {
        strcpy(folder, "/tmp/remat-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        atexit(remove_folder);
    }
    return folder;
}

const char *scratch_path(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder(), name);
    return path;
}

const char *scratch_write(const char *name, const void *bytes, size_t length)
{
    const char *path = scratch_path(name);
    unlink(path); /* file systems write a file that was cut to nothing and filled again to the disk at once */
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *scratch_write_text(const char *name, const char *text)
{
    return scratch_write(name, text, strlen(text));
}

char *scratch_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}
