#include "faults/work_folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* ---- texts ---- */

file_text file_text_read(const char *path)
{
    file_text text = {0};
    FILE *stream = fopen(path, "r");
    struct stat info;
    if (!stream && errno == ENOENT)
        return text;
    if (!stream || fstat(fileno(stream), &info) != 0)
        give_up(path);
    text.count = (size_t)info.st_size;
    text.bytes = malloc(text.count + 1);
    if (!text.bytes || fread(text.bytes, 1, text.count, stream) != text.count)
        give_up(path);
    text.bytes[text.count] = 0;
    fclose(stream);
    return text;
}

void file_text_write(const char *path, const char *bytes, size_t count)
{
    FILE *stream = fopen(path, "w");
    if (!stream || fwrite(bytes, 1, count, stream) != count || fclose(stream) != 0)
        give_up(path);
}

void file_text_free(file_text *text)
{
    free(text->bytes);
    *text = (file_text){0};
}

bool file_text_same(const file_text *a, const file_text *b)
{
    return !a->bytes == !b->bytes && a->count == b->count && (!a->bytes || memcmp(a->bytes, b->bytes, a->count) == 0);
}

bool file_text_begins(const file_text *whole, const file_text *part)
{
    return whole->bytes && part->bytes && part->count <= whole->count &&
           memcmp(whole->bytes, part->bytes, part->count) == 0;
}

void file_text_strip_numbers(file_text *text)
{
    size_t kept = 0;
    bool in_number = false;
    for (size_t i = 0; i < text->count; i++) {
        char letter = text->bytes[i];
        bool starts = strchr("0123456789", letter) ||
                      (strchr("+-.", letter) && i + 1 < text->count && strchr("0123456789", text->bytes[i + 1]));
        in_number = letter && (starts || (in_number && strchr(".,e+-", letter)));
        if (!in_number && letter != ' ') /* columns are as wide as they need */
            text->bytes[kept++] = letter;
    }
    text->count = kept;
    if (text->bytes)
        text->bytes[kept] = 0;
}

bool file_text_has(const file_text *text, const char *word)
{
    return text->bytes && strstr(text->bytes, word);
}

/* ---- folders ---- */

const char *path_in(const char *folder, const char *name)
{
    enum { BUFFERS = 8 };
    static char buffers[BUFFERS][PATH_MAX];
    static int next;
    char *path = buffers[next++ % BUFFERS];
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        give_up(folder);
    }
    return path;
}

void folder_make(const char *path)
{
    if (mkdir(path, 0777) != 0)
        give_up(path);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

void folder_remove(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        give_up(path);
}

void folder_copy(const char *from, const char *to)
{
    DIR *entries = opendir(from);
    if (!entries)
        give_up(from);
    for (const struct dirent *entry; (entry = readdir(entries));) {
        struct stat info;
        char source[PATH_MAX], copy[PATH_MAX]; /* path_in's do not last */
        snprintf(source, sizeof source, "%s", path_in(from, entry->d_name));
        snprintf(copy, sizeof copy, "%s", path_in(to, entry->d_name));
        if (entry->d_name[0] == '.' || stat(source, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode)) {
            folder_make(copy);
            folder_copy(source, copy);
            continue;
        }
        file_text text = file_text_read(source);
        file_text_write(copy, text.bytes, text.count);
        file_text_free(&text);
    }
    closedir(entries);
}

static folder_visit visit_now;
static void *visit_user;
static size_t visit_skip;

static int visit_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)where;
    if (kind != FTW_D)
        visit_now(visit_user, path + visit_skip);
    return 0;
}

void folder_walk(const char *folder, folder_visit visit, void *user)
{
    visit_now = visit;
    visit_user = user;
    visit_skip = strlen(folder) + 1;
    if (nftw(folder, visit_one, 16, FTW_PHYS) != 0)
        give_up(folder);
}
