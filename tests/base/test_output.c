#include "support/fixture.h"

#include "base/output.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

static output out; /* with its buffer too large for the stack of a test */

static void every_byte_is_escaped_so_that_jansson_reads_it_back(void **state)
{
    fixture *f = *state;
    char text[200] = "é€🎉 \"quoted\" \\ / ";
    size_t length = strlen(text);
    for (int byte = 1; byte < 0x80; byte++)
        text[length++] = (char)byte;
    text[length] = '\0';
    capture to;
    capture_begin(&to);
    output_begin(&out, f->context, to.stream);
    output_quoted(&out, text);
    expect_ok(f, output_end(&out));
    capture_end(&to);
    json_t *tree = json_loads(to.text, JSON_DECODE_ANY, NULL);
    assert_string_equal(json_string_value(tree), text);
    for (size_t i = 0; i < to.length; i++)
        assert_true((unsigned char)to.text[i] >= 0x20 && to.text[i] != 0x7f);
    json_decref(tree);
    free(to.text);
}

static void fields_and_numbers_are_written_as_they_are(void **state)
{
    fixture *f = *state;
    capture to;
    capture_begin(&to);
    output_begin(&out, f->context, to.stream);
    output_field(&out, "{", "a", 0);
    output_field(&out, ", ", "b", UINT64_MAX);
    output_text_field(&out, ",\n ", "c", "d\"");
    output_text(&out, "}");
    expect_ok(f, output_end(&out));
    capture_end(&to);
    assert_string_equal(to.text, "{\"a\": 0, \"b\": 18446744073709551615,\n \"c\": \"d\\\"\"}");
    free(to.text);
}

static void more_than_a_buffer_arrives_whole(void **state)
{
    fixture *f = *state;
    capture to;
    capture_begin(&to);
    output_begin(&out, f->context, to.stream);
    for (uint64_t i = 0; i < 50000; i++)
        output_field(&out, " ", "n", i);
    expect_ok(f, output_end(&out));
    capture_end(&to);
    char *at = to.text;
    for (uint64_t i = 0; i < 50000; i++) {
        char wanted[32];
        int length = snprintf(wanted, sizeof wanted, " \"n\": %llu", (unsigned long long)i);
        assert_memory_equal(at, wanted, (size_t)length);
        at += length;
    }
    assert_int_equal(at - to.text, to.length);
    free(to.text);
}

static void a_full_disk_is_an_output_error(void **state)
{
    fixture *f = *state;
    for (int large = 0; large < 2; large++) { /* noticed at the end, and on the way */
        FILE *full = fopen("/dev/full", "w");
        output_begin(&out, f->context, full);
        for (int i = 0; i < (large ? 100000 : 1); i++)
            output_text(&out, "more ");
        expect_status(f, output_end(&out), REMAT_IO);
        expect_message(f, "No space left");
        fclose(full);
    }
}

/* ---- whole files ---- */

static char folder[64];

static int folder_setup(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/remat-test-XXXXXX");
    return mkdtemp(folder) ? fixture_setup(state) : -1;
}

static int folder_teardown(void **state)
{
    char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    if (rmdir(folder) != 0) { /* a temporary file was left behind */
        print_error("%s is not empty\n", folder);
        return -1;
    }
    return fixture_teardown(state);
}
#define FOLDER_TEST(function) cmocka_unit_test_setup_teardown(function, folder_setup, folder_teardown)

static const char *file_path(void)
{
    static char path[128];
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_byte_is_escaped_so_that_jansson_reads_it_back),
        FIXTURE_TEST(fields_and_numbers_are_written_as_they_are),
        FIXTURE_TEST(more_than_a_buffer_arrives_whole),
        FIXTURE_TEST(a_full_disk_is_an_output_error),
        FOLDER_TEST(a_file_is_made_and_replaced_whole),
        FOLDER_TEST(a_failure_leaves_the_old_file_and_nothing_else),
        FOLDER_TEST(a_failure_makes_no_file),
        FOLDER_TEST(a_path_that_cannot_be_written_is_named),
        FOLDER_TEST(devices_are_written_to_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
