/* Paths that are no names of files, folders that cannot be written, devices, and what other writers left behind. */
#include "base/output_file.h"
#include "support/fixture.h"
#include "support/scratch_files.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static remat_status write_text(const void *user, FILE *stream)
{
    return fputs(user, stream) < 0 ? REMAT_IO : REMAT_OK;
}

static remat_status write_much(const void *user, FILE *stream)
{
    for (int i = 0; i < 100000; i++)
        fputs(user, stream); /* the stream remembers what failed */
    return REMAT_OK;
}

static void expect_refused(fixture *f, const char *path)
{
    expect_status(f, output_save(f->context, path, write_text, "text"), REMAT_IO);
    expect_status(f, output_save_check(f->context, path, 4), REMAT_IO);
}

static void names_that_are_none(void **state)
{
    fixture *f = *state;
    char long_path[PATH_MAX + 100], long_name[400];
    memset(long_path, 'p', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    snprintf(long_name, sizeof long_name, "%s/%0300d", scratch_folder(), 7);
    expect_refused(f, "");
    expect_refused(f, long_path);
    expect_refused(f, long_name);
    expect_refused(f, scratch_folder());
    char with_slash[4096];
    snprintf(with_slash, sizeof with_slash, "%s/new/", scratch_folder());
    expect_refused(f, with_slash);
    scratch_write_text("file", "old");
    snprintf(with_slash, sizeof with_slash, "%s/file/inside", scratch_folder());
    expect_refused(f, with_slash);
    snprintf(with_slash, sizeof with_slash, "%s/none/inside", scratch_folder());
    expect_refused(f, with_slash);
    expect_refused(f, "/proc/no such file");
}

/* A name without a folder is in the folder where the program runs. */
static void names_without_a_folder(void **state)
{
    fixture *f = *state;
    char before[4096];
    size_t length;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_folder()), 0);
    remat_status checked = output_save_check(f->context, "bare", 4);
    remat_status saved = output_save(f->context, "bare", write_text, "text");
    assert_int_equal(chdir(before), 0);
    expect_ok(f, checked);
    expect_ok(f, saved);
    char *text = scratch_read(scratch_path("bare"), &length);
    assert_string_equal(text, "text");
    free(text);
    /* In the topmost folder: whoever may not write there is told so, and nothing stays. */
    remat_status top = output_save_check(f->context, "/remat-test-that-is-not-there", 4);
    assert_true(top == REMAT_OK || top == REMAT_IO);
    assert_int_equal(access("/remat-test-that-is-not-there", F_OK), -1);
}

static void devices_are_written_directly(void **state)
{
    fixture *f = *state;
    expect_ok(f, output_save(f->context, "/dev/null", write_text, "text"));
    expect_ok(f, output_save_check(f->context, "/dev/null", UINT64_MAX));
    if (access("/dev/full", W_OK) == 0) {
        expect_status(f, output_save(f->context, "/dev/full", write_text, "text"), REMAT_IO);
        expect_message(f, "/dev/full: writing failed");
        expect_status(f, output_save(f->context, "/dev/full", write_much, "text"), REMAT_IO);
    }
}

/* Only names of ours are removed: other files of the same length or with the same ending stay. */
static void files_of_others_stay(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {".remat-0123456789abcdef.tm_", ".other-0123456789abcdef.tmp", "a.tmp",
                                        ".remat-0123456789abcdef.tmp.more"};
    for (size_t i = 0; i < 4; i++)
        scratch_write_text(names[i], "mine");
    expect_ok(f, output_save(f->context, scratch_path("saved"), write_text, "text"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(access(scratch_path(names[i]), F_OK), 0);
}

static void a_disk_without_room(void **state)
{
    fixture *f = *state;
    expect_status(f, output_save_check(f->context, scratch_path("huge"), UINT64_MAX / 2), REMAT_IO);
    expect_message(f, "and its disk has");
    assert_int_equal(access(scratch_path("huge"), F_OK), -1);
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, output_save_check(f->context, scratch_path("huge"), 1), REMAT_NO_MEMORY);
    f->memory.fail_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(names_that_are_none),          FIXTURE_TEST(names_without_a_folder),
        FIXTURE_TEST(devices_are_written_directly), FIXTURE_TEST(files_of_others_stay),
        FIXTURE_TEST(a_disk_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
