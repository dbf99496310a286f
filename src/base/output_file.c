#include "base/output_file.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- where the file is ---- */

/* The new file is called .remat-HEX.tmp, whatever the name of the old one: a name of 255 letters leaves no room. */
#define TEMPORARY_PREFIX ".remat-"
#define TEMPORARY_SUFFIX ".tmp"
enum { TEMPORARY_NAME = sizeof TEMPORARY_PREFIX + 16 + sizeof TEMPORARY_SUFFIX };

typedef struct target {
    remat_context *context;
    const char *path;    /* as the caller wrote it */
    char file[PATH_MAX]; /* behind all links */
    char folder[PATH_MAX];
    struct stat old;
    bool exists;
} target;

static remat_status fail(const target *to, const char *what, int error)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = to->path;
    return remat_fail(to->context, REMAT_IO, &place, "%s: %s", what, strerror(error));
}

static remat_status find_file(target *to)
{
    struct stat link;
    if (realpath(to->path, to->file))
        return REMAT_OK;
    if (errno != ENOENT)
        return fail(to, "cannot be written", errno);
    if (lstat(to->path, &link) == 0)
        return fail(to, "is a link that leads nowhere", ENOENT);
    size_t length = strlen(to->path);
    if (length == 0 || length >= PATH_MAX || to->path[length - 1] == '/')
        return fail(to, "is not the name of a file", length >= PATH_MAX ? ENAMETOOLONG : EISDIR);
    memcpy(to->file, to->path, length + 1);
    return REMAT_OK;
}

static remat_status find(target *to)
{
    REMAT_TRY(find_file(to));
    const char *slash = strrchr(to->file, '/');
    size_t length = !slash ? 1 : slash == to->file ? 1 : (size_t)(slash - to->file);
    memcpy(to->folder, slash ? to->file : ".", length);
    to->folder[length] = 0;
    to->exists = stat(to->file, &to->old) == 0;
    if (!to->exists && errno != ENOENT)
        return fail(to, "cannot be written", errno);
    if (to->exists && S_ISDIR(to->old.st_mode))
        return fail(to, "cannot be written", EISDIR);
    if (to->exists && access(to->file, W_OK) != 0)
        return fail(to, "cannot be written", errno);
    return REMAT_OK;
}

/* ---- temporary files ---- */

static bool is_temporary(const char *name)
{
    size_t length = strlen(name), prefix = sizeof TEMPORARY_PREFIX - 1, suffix = sizeof TEMPORARY_SUFFIX - 1;
    return length == prefix + 16 + suffix && memcmp(name, TEMPORARY_PREFIX, prefix) == 0 &&
           strcmp(name + length - suffix, TEMPORARY_SUFFIX) == 0;
}

/* A writer holds a lock on its file. A file that can be locked has no writer any more. */
static void remove_if_dead(int folder, const char *name)
{
    int file = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(file);
}

static void remove_dead(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (is_temporary(entry->d_name))
            remove_if_dead(folder, entry->d_name);
    closedir(entries);
}

/* An open, locked, new file; -1 with errno. Somebody who removes dead files may take it for one between its creation and
 * its lock: then it has no name any more, and another one is made. */
static int create_temporary(int folder, char name[TEMPORARY_NAME])
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        snprintf(name, TEMPORARY_NAME, TEMPORARY_PREFIX "%016llx" TEMPORARY_SUFFIX, (unsigned long long)number);
        int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno == EEXIST)
            continue;
        if (file < 0)
            return -1;
        struct stat info;
        flock(file, LOCK_EX); /* where locks do not work, nobody can lock a dead file either */
        bool known = fstat(file, &info) == 0;
        if (known && info.st_nlink > 0)
            return file;
        int error = errno;
        if (!known)
            unlinkat(folder, name, 0);
        close(file);
        errno = error;
        if (!known)
            return -1;
    }
    errno = EEXIST;
    return -1;
}

/* ---- saving ---- */

static remat_status write_and_sync(const target *to, FILE *stream, output_fn write, const void *user)
{
    REMAT_TRY(write(user, stream));
    if (fflush(stream) != 0 || fsync(fileno(stream)) != 0)
        return fail(to, "writing failed", errno);
    return REMAT_OK;
}

/* The owner can stay only where we may give files away. Without the same owner the file must not run as another user. */
static remat_status take_permissions(const target *to, int file)
{
    if (!to->exists)
        return REMAT_OK;
    bool same_owner = fchown(file, to->old.st_uid, to->old.st_gid) == 0;
    mode_t mode = to->old.st_mode & (same_owner ? 07777 : 0777);
    return fchmod(file, mode) == 0 ? REMAT_OK : fail(to, "cannot take the permissions of the old file", errno);
}

/* The new name is safe too. Some file systems cannot, and a folder may be writable without being readable. */
static void sync_folder(int folder)
{
    int readable = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable < 0)
        return;
    fsync(readable);
    close(readable);
}

static remat_status save_in(const target *to, int folder, output_fn write, const void *user)
{
    char name[TEMPORARY_NAME];
    int file = create_temporary(folder, name);
    if (file < 0)
        return fail(to, "cannot be created", errno);
    FILE *stream = fdopen(file, "w");
    remat_status status = stream ? REMAT_OK : fail(to, "cannot be created", errno);
    if (status == REMAT_OK)
        status = write_and_sync(to, stream, write, user);
    if (status == REMAT_OK)
        status = take_permissions(to, file);
    /* Renamed before it is closed: the lock keeps it from those who remove dead files. */
    if (status == REMAT_OK && renameat(folder, name, AT_FDCWD, to->file) != 0)
        status = fail(to, "cannot be replaced", errno);
    if (status == REMAT_OK)
        sync_folder(folder);
    else
        unlinkat(folder, name, 0);
    if (stream)
        fclose(stream);
    else
        close(file);
    return status;
}

int output_open(const char *path, int flags)
{
    int file = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file >= 0)
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
    return file;
}

static remat_status save_directly(const target *to, output_fn write, const void *user)
{
    int file = output_open(to->file, O_WRONLY);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream) {
        remat_status status = fail(to, errno == ENXIO ? "is a pipe that nobody reads" : "cannot be opened", errno);
        if (file >= 0)
            close(file);
        return status;
    }
    remat_status status = write(user, stream);
    if (fclose(stream) != 0 && status == REMAT_OK)
        status = fail(to, "writing failed", errno);
    return status;
}

static remat_status open_folder(const target *to, int *folder)
{
    *folder = open(to->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder >= 0)
        return REMAT_OK;
    int error = errno;
    char what[100];
    snprintf(what, sizeof what, "cannot be written: its folder %.60s", to->folder);
    return fail(to, what, error);
}

static remat_status save(target *to, output_fn write, const void *user)
{
    REMAT_TRY(find(to));
    if (to->exists && !S_ISREG(to->old.st_mode))
        return save_directly(to, write, user);
    int folder;
    REMAT_TRY(open_folder(to, &folder));
    remove_dead(folder);
    remat_status status = save_in(to, folder, write, user);
    close(folder);
    return status;
}

static target *new_target(remat_context *context, const char *path)
{
    target *to = remat_alloc_zeroed(context, 1, sizeof *to);
    if (to) {
        to->context = context;
        to->path = path;
    }
    return to;
}

remat_status output_save(remat_context *context, const char *path, output_fn write, const void *user)
{
    target *to = new_target(context, path);
    if (!to)
        return REMAT_NO_MEMORY;
    remat_status status = save(to, write, user);
    remat_release(context, to, 1, sizeof *to);
    return status;
}

/* ---- checking ---- */

static remat_status check_room(const target *to, uint64_t bytes)
{
    struct statvfs disk;
    struct rlimit limit;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = to->path;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        return remat_fail(to->context, REMAT_IO, &place, "needs %llu bytes, and a file may have %llu (ulimit -f)",
                          (unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
    if (statvfs(to->folder, &disk) != 0 || disk.f_blocks == 0)
        return REMAT_OK; /* it does not say */
    if (bytes / disk.f_frsize < disk.f_bavail)
        return REMAT_OK;
    return remat_fail(to->context, REMAT_IO, &place, "needs %llu bytes, and its disk has %llu left",
                      (unsigned long long)bytes, (unsigned long long)(disk.f_bavail * disk.f_frsize));
}

static remat_status check(target *to, uint64_t bytes)
{
    REMAT_TRY(find(to));
    if (to->exists && !S_ISREG(to->old.st_mode))
        return REMAT_OK;
    const char *slash = strrchr(to->file, '/');
    long longest = pathconf(to->folder, _PC_NAME_MAX);
    if (longest > 0 && strlen(slash ? slash + 1 : to->file) > (size_t)longest)
        return fail(to, "cannot be written", ENAMETOOLONG);
    int folder;
    REMAT_TRY(open_folder(to, &folder));
    char name[TEMPORARY_NAME];
    int file = create_temporary(folder, name);
    remat_status status = file < 0 ? fail(to, "cannot be written: a file in its folder", errno) : check_room(to, bytes);
    if (file >= 0) {
        unlinkat(folder, name, 0);
        close(file);
    }
    close(folder);
    return status;
}

remat_status output_save_check(remat_context *context, const char *path, uint64_t bytes)
{
    target *to = new_target(context, path);
    if (!to)
        return REMAT_NO_MEMORY;
    remat_status status = check(to, bytes);
    remat_release(context, to, 1, sizeof *to);
    return status;
}
