/* Lists of paths with patterns. */
#include "data/data_set.h"

#include "base/alloc.h"
#include "base/sort.h"

#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

static bool is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The path as a pattern: what is special in the folder's own name is not meant. */
static char *make_pattern(remat_context *context, const char *path, size_t folder_length)
{
    size_t room = strlen(path) + folder_length + 1, used = 0;
    char *pattern = remat_alloc_zeroed(context, room, 1);
    for (size_t i = 0; pattern && path[i]; i++) {
        if (i < folder_length && strchr("*?[\\", path[i]))
            pattern[used++] = '\\';
        pattern[used++] = path[i];
    }
    return pattern;
}

static bool before(const void *user, uint32_t a, uint32_t b)
{
    char *const *paths = user;
    return strcmp(paths[a], paths[b]) < 0;
}

/* Adds the regular files of what was found, sorted by their bytes: glob sorts by the locale. */
static remat_status add_found(remat_context *context, const glob_t *found, name_list *paths)
{
    uint32_t *order;
    REMAT_TRY(remat_order(context, found->gl_pathc, before, found->gl_pathv, &order));
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < found->gl_pathc && status == REMAT_OK; i++)
        if (is_regular(found->gl_pathv[order[i]]))
            status = name_list_add(context, paths, found->gl_pathv[order[i]]);
    remat_release(context, order, found->gl_pathc, sizeof *order);
    return status;
}

static remat_status add_matches(remat_context *context, const char *path, size_t folder_length, name_list *paths)
{
    size_t count = paths->count, room = strlen(path) + folder_length + 1;
    char *pattern = make_pattern(context, path, folder_length);
    if (!pattern)
        return REMAT_NO_MEMORY;
    glob_t found = {0};
    errno = 0;
    int failure = glob(pattern, GLOB_NOSORT, NULL, &found);
    remat_status status = REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    if (failure == GLOB_NOSPACE)
        status = remat_fail(context, REMAT_NO_MEMORY, &place, "no memory for the names of files");
    else if (failure == 0)
        status = add_found(context, &found, paths);
    globfree(&found);
    remat_release(context, pattern, room, 1);
    if (status == REMAT_OK && paths->count == count)
        return remat_fail(context, REMAT_IO, &place, "no file matches");
    return status;
}

remat_status data_paths_find(remat_context *context, const char *folder, const char *list, name_list *paths)
{
    for (size_t i = 0; i < data_path_count(list); i++) {
        char *path = data_path_at(context, folder, list, i);
        if (!path)
            return REMAT_NO_MEMORY;
        bool relative = folder && *folder && strncmp(path, folder, strlen(folder)) == 0;
        size_t folder_length = relative ? strlen(folder) : 0;
        bool is_pattern = path[folder_length + strcspn(path + folder_length, "*?[")] && !is_regular(path);
        remat_status status =
            is_pattern ? add_matches(context, path, folder_length, paths) : name_list_add(context, paths, path);
        remat_text_release(context, path);
        REMAT_TRY(status);
    }
    return REMAT_OK;
}
