#include "data/folder_names.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static remat_status add_name(remat_context *context, const char *folder, const char *name, name_list *names)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = folder;
    if (!remat_utf8_valid(name) || strchr(name, ','))
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "the name '%.60s' in it is not UTF-8 or has a comma; rename it", name);
    return name_list_add(context, names, name);
}

static remat_status read_names(remat_context *context, DIR *stream, const char *folder, folder_kind kind,
                               name_list *names)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = folder;
    for (errno = 0;; errno = 0) {
        const struct dirent *entry = readdir(stream);
        if (!entry && errno)
            return remat_fail(context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
        if (!entry)
            return REMAT_OK;
        struct stat info;
        if (entry->d_name[0] == '.' || fstatat(dirfd(stream), entry->d_name, &info, 0) != 0)
            continue;
        if (kind == FOLDER_FILES ? S_ISREG(info.st_mode) : S_ISDIR(info.st_mode))
            REMAT_TRY(add_name(context, folder, entry->d_name, names));
    }
}

static bool before(const void *user, uint32_t a, uint32_t b)
{
    const name_list *names = user;
    return strcmp(names->names[a], names->names[b]) < 0;
}

static remat_status sort_names(remat_context *context, name_list *names)
{
    uint32_t *order;
    size_t count = names->count;
    char **sorted = remat_alloc(context, count, sizeof *sorted);
    if (!sorted)
        return REMAT_NO_MEMORY;
    remat_status status = remat_order(context, count, before, names, &order);
    if (status == REMAT_OK) {
        for (size_t i = 0; i < count; i++)
            sorted[i] = names->names[order[i]];
        memcpy(names->names, sorted, count * sizeof *sorted);
        remat_release(context, order, count, sizeof *order);
    }
    remat_release(context, sorted, count, sizeof *sorted);
    return status;
}

remat_status folder_names_find(remat_context *context, const char *folder, folder_kind kind, name_list *names)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = folder;
    DIR *stream = opendir(folder);
    if (!stream)
        return remat_fail(context, REMAT_IO, &place, "cannot be opened as a folder: %s", strerror(errno));
    remat_status status = read_names(context, stream, folder, kind, names);
    closedir(stream);
    return status == REMAT_OK && names->count ? sort_names(context, names) : status;
}
