/* Files that appear whole or not at all. */
#include "support/fixture.h"

#include "base/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int folder_setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/remat-test-XXXXXX");
    return mkdtemp(folder) ? fixture_setup(state) : -1;
}

static int folder_teardown(void **state)
{
    char path[128];
    static const char *const names[] = {"file", "link", "pipe"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    if (rmdir(folder) != 0) { /* a temporary file was left behind */
        print_error("%s is not empty\n", folder);
        return -1;
    }
    return fixture_teardown(state);
}
#define FOLDER_TEST(function) cmocka_unit_test_setup_teardown(function, folder_setup, folder_teardown)

static const char *file_path(void)
{
    static _Thread_local char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    return path;
}

static void expect_file(const char *text)
{
    char found[64] = "";
    FILE *stream = fopen(file_path(), "r");
    assert_non_null(stream);
    size_t length = fread(found, 1, sizeof found - 1, stream);
    fclose(stream);
    found[length] = '\0';
    assert_string_equal(found, text);
}

static remat_status write_text(const void *text, FILE *stream)
{
    return fputs(text, stream) < 0 ? REMAT_IO : REMAT_OK;
}

static remat_status write_half_and_fail(const void *context, FILE *stream)
{
    fputs("half", stream);
    return remat_fail((remat_context *)(uintptr_t)context, REMAT_NO_MEMORY, NULL, "half way");
}

static void a_file_is_made_and_replaced_whole(void **state)
{
    fixture *f = *state;
    expect_ok(f, output_save(f->context, file_path(), write_text, "first"));
    expect_file("first");
    expect_ok(f, output_save(f->context, file_path(), write_text, "second"));
    expect_file("second");
}

static void a_failure_leaves_the_old_file_and_nothing_else(void **state)
{
    fixture *f = *state;
    expect_ok(f, output_save(f->context, file_path(), write_text, "old"));
    expect_status(f, output_save(f->context, file_path(), write_half_and_fail, f->context), REMAT_NO_MEMORY);
    expect_message(f, "half way");
    expect_file("old");
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, output_save(f->context, file_path(), write_text, "new"), REMAT_NO_MEMORY);
    expect_file("old");
}

static void a_failure_makes_no_file(void **state)
{
    fixture *f = *state;
    expect_status(f, output_save(f->context, file_path(), write_half_and_fail, f->context), REMAT_NO_MEMORY);
    assert_int_equal(access(file_path(), F_OK), -1);
}

static void a_path_that_cannot_be_written_is_named(void **state)
{
    fixture *f = *state;
    expect_status(f, output_save(f->context, "/nowhere/at/all", write_text, "x"), REMAT_IO);
    expect_message(f, "/nowhere/at/all");
    expect_status(f, output_save(f->context, folder, write_text, "x"), REMAT_IO);
    expect_message(f, folder);
}

static void devices_are_written_to_and_stay(void **state)
{
    fixture *f = *state;
    struct stat info;
    expect_ok(f, output_save(f->context, "/dev/null", write_text, "x"));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    expect_status(f, output_save(f->context, "/dev/full", write_text, "x"), REMAT_IO);
}

/* ---- leftovers ---- */

static size_t file_count(void)
{
    size_t count = 0;
    DIR *entries = opendir(folder);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2;
}

static int leave_temporary(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
}

static void what_a_dead_writer_left_is_removed(void **state)
{
    fixture *f = *state;
    close(leave_temporary(".remat-0123456789abcdef.tmp"));
    close(leave_temporary(".remat-fedcba9876543210.tmp"));
    expect_ok(f, output_save(f->context, file_path(), write_text, "new"));
    assert_int_equal(file_count(), 1);
}

static void what_a_living_writer_writes_stays(void **state)
{
    fixture *f = *state;
    char path[128];
    int file = leave_temporary(".remat-0123456789abcdef.tmp"), other = leave_temporary(".remat-0123456789abcdef.txt");
    assert_int_equal(flock(file, LOCK_EX), 0);
    expect_ok(f, output_save(f->context, file_path(), write_text, "new"));
    assert_int_equal(file_count(), 3);
    close(file);
    close(other);
    snprintf(path, sizeof path, "%s/.remat-0123456789abcdef.txt", folder);
    unlink(path);
    expect_ok(f, output_save(f->context, file_path(), write_text, "newer"));
    assert_int_equal(file_count(), 1);
}

static void *save_often(void *text)
{
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return "no context";
    const char *wrong = NULL;
    for (int i = 0; i < 50 && !wrong; i++)
        if (output_save(context, file_path(), write_text, text) != REMAT_OK)
            wrong = "a save failed";
    if (wrong)
        print_error("%s\n", remat_context_message(context));
    remat_context_destroy(context);
    return (void *)(uintptr_t)wrong;
}

static void threads_save_one_path(void **state)
{
    fixture *f = *state;
    static char texts[4][8] = {"one", "two", "three", "four"};
    pthread_t threads[4];
    expect_ok(f, output_save(f->context, file_path(), write_text, texts[0]));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, save_often, texts[i]), 0);
    void *wrong[4];
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &wrong[i]);
    for (int i = 0; i < 4; i++)
        assert_null(wrong[i]);
    assert_int_equal(file_count(), 1);
}

/* ---- as cp would ---- */

static void permissions_stay(void **state)
{
    fixture *f = *state;
    struct stat info;
    expect_ok(f, output_save(f->context, file_path(), write_text, "old"));
    assert_int_equal(chmod(file_path(), 0640), 0);
    expect_ok(f, output_save(f->context, file_path(), write_text, "new"));
    assert_int_equal(stat(file_path(), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
}

static void new_files_follow_the_umask(void **state)
{
    fixture *f = *state;
    struct stat info;
    mode_t before = umask(027);
    expect_ok(f, output_save(f->context, file_path(), write_text, "new"));
    umask(before);
    assert_int_equal(stat(file_path(), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
}

static void links_are_followed(void **state)
{
    fixture *f = *state;
    char link[128];
    struct stat info;
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("file", link), 0);
    expect_status(f, output_save(f->context, link, write_text, "x"), REMAT_IO);
    expect_message(f, "leads nowhere");
    expect_ok(f, output_save(f->context, file_path(), write_text, "old"));
    expect_ok(f, output_save(f->context, link, write_text, "new"));
    expect_file("new");
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

static void a_file_that_must_not_be_written_stays(void **state)
{
    fixture *f = *state;
    if (geteuid() == 0)
        skip(); /* root may write everything */
    expect_ok(f, output_save(f->context, file_path(), write_text, "old"));
    assert_int_equal(chmod(file_path(), 0444), 0);
    expect_status(f, output_save(f->context, file_path(), write_text, "new"), REMAT_IO);
    expect_file("old");
}

static void the_longest_name_works(void **state)
{
    fixture *f = *state;
    char path[400];
    int length = snprintf(path, sizeof path, "%s/", folder);
    memset(path + length, 'n', 256);
    path[length + 255] = 0;
    expect_ok(f, output_save_check(f->context, path, 1));
    expect_ok(f, output_save(f->context, path, write_text, "x"));
    unlink(path);
    path[length + 255] = 'n';
    path[length + 256] = 0;
    expect_status(f, output_save_check(f->context, path, 1), REMAT_IO);
    expect_message(f, "too long");
    expect_status(f, output_save(f->context, path, write_text, "x"), REMAT_IO);
}

static void a_pipe_without_a_reader_is_refused(void **state)
{
    fixture *f = *state;
    char pipe_path[128];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    expect_status(f, output_save(f->context, pipe_path, write_text, "x"), REMAT_IO);
    expect_message(f, "nobody reads");
    int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    char found[8] = "";
    expect_ok(f, output_save(f->context, pipe_path, write_text, "x"));
    assert_int_equal(read(reader, found, sizeof found), 1);
    close(reader);
}

static void what_could_not_be_saved_is_known_before(void **state)
{
    fixture *f = *state;
    expect_ok(f, output_save_check(f->context, file_path(), 1000));
    assert_int_equal(file_count(), 0);
    expect_status(f, output_save_check(f->context, file_path(), (uint64_t)1 << 60), REMAT_IO);
    expect_message(f, "its disk has");
    expect_status(f, output_save_check(f->context, folder, 1), REMAT_IO);
    expect_status(f, output_save_check(f->context, "/nowhere/at/all", 1), REMAT_IO);
    expect_message(f, "/nowhere/at");
    expect_status(f, output_save_check(f->context, "/proc/remat", 1), REMAT_IO);
    expect_status(f, output_save_check(f->context, "", 1), REMAT_IO);
    expect_ok(f, output_save_check(f->context, "/dev/null", 1));
    assert_int_equal(file_count(), 0);
}

static void a_limit_of_files_is_known_before(void **state)
{
    fixture *f = *state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_ok(f, output_save_check(f->context, file_path(), 1000));
    expect_status(f, output_save_check(f->context, file_path(), 1001), REMAT_IO);
    expect_message(f, "a file may have 1000");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(file_count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_file_is_made_and_replaced_whole),
        FOLDER_TEST(a_failure_leaves_the_old_file_and_nothing_else),
        FOLDER_TEST(a_failure_makes_no_file),
        FOLDER_TEST(a_path_that_cannot_be_written_is_named),
        FOLDER_TEST(devices_are_written_to_and_stay),
        FOLDER_TEST(what_a_dead_writer_left_is_removed),
        FOLDER_TEST(what_a_living_writer_writes_stays),
        FOLDER_TEST(threads_save_one_path),
        FOLDER_TEST(permissions_stay),
        FOLDER_TEST(new_files_follow_the_umask),
        FOLDER_TEST(links_are_followed),
        FOLDER_TEST(a_file_that_must_not_be_written_stays),
        FOLDER_TEST(the_longest_name_works),
        FOLDER_TEST(a_pipe_without_a_reader_is_refused),
        FOLDER_TEST(what_could_not_be_saved_is_known_before),
        FOLDER_TEST(a_limit_of_files_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
