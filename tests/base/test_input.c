/* Opening files for reading, and texts that do not end. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fixture.h"
#include "support/scratch_files.h"

#include "base/input.h"

static void only_what_can_be_read_is_opened(void **state)
{
    fixture *f = *state;
    FILE *stream;
    expect_ok(f, remat_input_open(f->context, scratch_write_text("text", "abc"), &stream));
    assert_int_equal(getc(stream), 'a');
    fclose(stream);
    expect_status(f, remat_input_open(f->context, "/nowhere/file", &stream), REMAT_IO);
    assert_null(stream);
    expect_status(f, remat_input_open(f->context, scratch_folder(), &stream), REMAT_IO);
    expect_message(f, "folder");
    expect_status(f, input_open_regular(f->context, "/dev/zero", &stream), REMAT_IO);
    expect_message(f, "regular");
}

static void *write_late(void *path)
{
    FILE *to = fopen(path, "w"); /* which waits for the reader */
    if (to) {
        fputs("late", to);
        fclose(to);
    }
    return NULL;
}

static void a_pipe_needs_a_writer(void **state)
{
    fixture *f = *state;
    FILE *stream;
    char path[512], text[8] = "";
    pthread_t writer;
    snprintf(path, sizeof path, "%s", scratch_path("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_status(f, remat_input_open(f->context, path, &stream), REMAT_IO);
    expect_message(f, "nobody writes to this pipe");
    assert_int_equal(pthread_create(&writer, NULL, write_late, path), 0);
    expect_ok(f, remat_input_open(f->context, path, &stream));
    assert_int_equal(fread(text, 1, sizeof text, stream), 4);
    assert_string_equal(text, "late");
    fclose(stream);
    pthread_join(writer, NULL);
}

/* One that is open and has not written yet is waited for when the pipe is read, not when it is opened. */
static void a_writer_may_take_its_time(void **state)
{
    fixture *f = *state;
    FILE *stream;
    char path[512], text[8] = "";
    snprintf(path, sizeof path, "%s", scratch_path("silent"));
    assert_int_equal(mkfifo(path, 0600), 0);
    int writer = open(path, O_RDWR | O_NONBLOCK);
    assert_true(writer >= 0);
    expect_ok(f, remat_input_open(f->context, path, &stream));
    assert_int_equal(write(writer, "slow", 4), 4);
    close(writer);
    assert_int_equal(fread(text, 1, sizeof text, stream), 4);
    assert_string_equal(text, "slow");
    fclose(stream);
}

/* A stream of one byte again and again. */
static ssize_t give(void *cookie, char *to, size_t room)
{
    memset(to, *(const char *)cookie, room);
    return (ssize_t)room;
}

static FILE *endless(char *byte)
{
    const cookie_io_functions_t functions = {.read = give};
    FILE *stream = fopencookie(byte, "r", functions);
    assert_non_null(stream);
    return stream;
}

static void endless_texts_are_refused(void **state)
{
    fixture *f = *state;
    char blank = '\n', zero = 0, letter = 'a';
    struct {
        char *byte;
        const char *message;
    } cases[] = {{&blank, "longer than 256 MiB"}, {&zero, "NUL"}, {&letter, "longer than"}};
    for (size_t i = LESS_WHEN_SANITIZED(0u, 1u); i < sizeof cases / sizeof cases[0];
         i++) { /* 256 MiB take long there */
        remat_profile *profile = NULL;
        FILE *stream = endless(cases[i].byte);
        expect_status(f, remat_profile_read(f->context, stream, "text", &profile), REMAT_BAD_INPUT);
        expect_message(f, cases[i].message);
        assert_null(profile);
        fclose(stream);
    }
}

static void what_is_there_is_told_from_what_cannot_be_seen(void **state)
{
    fixture *f = *state;
    char loop[256], longest[400] = "/";
    bool exists;
    expect_ok(f, input_exists(f->context, "/dev/null", &exists));
    assert_true(exists);
    expect_ok(f, input_exists(f->context, "/nowhere/at/all", &exists));
    assert_false(exists);
    expect_ok(f, input_exists(f->context, "/dev/null/below", &exists));
    assert_false(exists);
    snprintf(loop, sizeof loop, "%s", scratch_path("loop"));
    assert_int_equal(symlink(loop, loop), 0);
    expect_status(f, input_exists(f->context, loop, &exists), REMAT_IO);
    expect_message(f, "loop: cannot be opened");
    memset(longest + 1, 'a', 300);
    expect_status(f, input_exists(f->context, longest, &exists), REMAT_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(only_what_can_be_read_is_opened),
        FIXTURE_TEST(a_pipe_needs_a_writer),
        FIXTURE_TEST(a_writer_may_take_its_time),
        FIXTURE_TEST(endless_texts_are_refused),
        FIXTURE_TEST(what_is_there_is_told_from_what_cannot_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
