#include "support/fixture.h"

#include "base/output.h"

#include <jansson.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_byte_is_escaped_so_that_jansson_reads_it_back),
        FIXTURE_TEST(fields_and_numbers_are_written_as_they_are),
        FIXTURE_TEST(more_than_a_buffer_arrives_whole),
        FIXTURE_TEST(a_full_disk_is_an_output_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
