#include "output_path.h"
#include "shown.h"

#include <errno.h>
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

remat_status output_path_check_other(const char *path, const char *other, const char *reason)
{
    struct stat a, b;
    if (!path || !other)
        return REMAT_OK;
    bool exists = stat(path, &a) == 0;
    if (exists && stat(other, &b) == 0)
        return (!S_ISREG(a.st_mode) && !S_ISDIR(a.st_mode)) || a.st_dev != b.st_dev || a.st_ino != b.st_ino
                   ? REMAT_OK
                   : refuse(path, "", reason);
    return exists || strcmp(path, other) != 0 ? REMAT_OK : refuse(path, "", reason);
}

void output_path_say(const char *path)
{
    if (path && strcmp(path, "-") != 0)
        fprintf(stderr, "wrote %s\n", shown(path));
}
