#include "output_path.h"
#include "shown.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static remat_status refuse(const char *path, const char *where, const char *reason)
{
    fprintf(stderr, "remat: %s: cannot be written%s%s: %s\n", shown(path), *where ? ": its folder " : "", shown(where),
            reason);
    return REMAT_IO;
}

static remat_status check_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!folder)
        return refuse(path, "", strerror(errno));
    struct stat info;
    remat_status status = REMAT_OK;
    if (stat(folder, &info) != 0)
        status = refuse(path, folder, strerror(errno));
    else if (!S_ISDIR(info.st_mode))
        status = refuse(path, folder, strerror(ENOTDIR));
    else if (access(folder, W_OK | X_OK) != 0)
        status = refuse(path, folder, strerror(errno));
    free(folder);
    return status;
}

remat_status output_path_check(const char *path, bool replaced)
{
    struct stat info;
    if (!path)
        return REMAT_OK;
    size_t length = strlen(path);
    if (length == 0 || path[length - 1] == '/')
        return refuse(path, "", "this is not a file name");
    if (stat(path, &info) != 0)
        return check_folder(path);
    if (S_ISDIR(info.st_mode))
        return refuse(path, "", strerror(EISDIR));
    /* Devices and pipes are never replaced. */
    if (replaced && S_ISREG(info.st_mode))
        return check_folder(path);
    return access(path, W_OK) == 0 ? REMAT_OK : refuse(path, "", strerror(errno));
}

remat_status output_path_make(const char *path)
{
    struct stat info;
    if (!path || mkdir(path, 0777) == 0)
        return REMAT_OK;
    if (errno != EEXIST)
        return refuse(path, "", strerror(errno));
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return refuse(path, "", strerror(ENOTDIR));
    return access(path, W_OK | X_OK) == 0 ? REMAT_OK : refuse(path, "", strerror(errno));
}

/* Behind the last slash. */
static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool stat_folder(const char *path, struct stat *info)
{
    char folder[PATH_MAX];
    int length = (int)(last_name(path) - path);
    return snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".") < (int)sizeof folder &&
           stat(folder, info) == 0;
}

/* Of paths that name no file yet: the same name in the same folder, however the folder is written. */
static bool is_same_new(const char *path, const char *other)
{
    struct stat a, b;
    return strcmp(last_name(path), last_name(other)) == 0 && stat_folder(path, &a) && stat_folder(other, &b) &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

remat_status output_path_check_other(const char *path, const char *other, const char *reason)
{
    struct stat a, b;
    if (!path || !other || strcmp(path, "-") == 0 || strcmp(other, "-") == 0)
        return REMAT_OK;
    bool exists = stat(path, &a) == 0, other_exists = stat(other, &b) == 0;
    bool same = exists && other_exists
                    ? (S_ISREG(a.st_mode) || S_ISDIR(a.st_mode)) && a.st_dev == b.st_dev && a.st_ino == b.st_ino
                    : !exists && !other_exists && is_same_new(path, other);
    return same ? refuse(path, "", reason) : REMAT_OK;
}

remat_status output_path_check_inputs(const char *path, const char *const *inputs, size_t count)
{
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < count && status == REMAT_OK; i++)
        status = output_path_check_other(path, inputs[i], "it is also read");
    return status;
}

remat_status output_path_check_data(remat_context *context, const remat_model *model, const char *path)
{
    remat_status status = path ? remat_model_check_output(model, path) : REMAT_OK;
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

void output_path_say(const char *path)
{
    if (path && strcmp(path, "-") != 0)
        fprintf(stderr, "wrote %s\n", shown(path));
}
