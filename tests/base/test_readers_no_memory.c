/* Readers of JSON, INI and CSV whose memory ends in the middle of a text: at each byte that makes a buffer grow. */
#include "base/ini_reader.h"
#include "base/json_reader.h"
#include "support/memory_failures.h"

#include <remat/arena.h>

/* A buffer doubles when it is full. With one byte more in front each time, every byte of `tail` once is the one for
 * which it must grow. */
enum { MOST_BYTES = 300, PADS = 34 };

static void fill(char text[MOST_BYTES], const char *head, char pad, size_t pads, const char *tail)
{
    char line[PADS + 1];
    memset(line, pad, sizeof line);
    line[pads] = '\0';
    assert_true(snprintf(text, MOST_BYTES, "%s%s%s", head, line, tail) < MOST_BYTES);
}

static remat_status read_json(remat_context *context, void *user)
{
    const char *text = user;
    FILE *stream = stream_of(text, strlen(text));
    json_reader *reader = NULL;
    json_token token = {0};
    remat_status status = json_reader_create(context, stream, "text", &reader);
    FLOW(status, json_next(reader, &token));
    if (status == REMAT_OK && token.kind == JSON_STRING) /* the escapes at its end, in UTF-8 */
        assert_string_equal(token.text + strlen(token.text) - 10, "\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    else if (status == REMAT_OK)
        assert_int_equal(token.kind, JSON_REAL);
    if (reader)
        json_reader_destroy(reader);
    fclose(stream);
    return status;
}

static void json_that_grows_at_any_byte(void **state)
{
    (void)state;
    char text[MOST_BYTES];
    for (size_t pads = 1; pads < PADS; pads++) {
        fill(text, "\"", 'a', pads, "\\u007f\\u00e9\\u20ac\\ud83d\\ude00\"");
        expect_failures_survived("a string", read_json, text, 2, 100);
        fill(text, "-", '7', pads, ".25e+10 ");
        expect_failures_survived("a number", read_json, text, 2, 100);
    }
}

static remat_status read_ini(remat_context *context, void *user)
{
    const char *text = user;
    FILE *stream = stream_of(text, strlen(text));
    ini_file *file = NULL;
    remat_status status = ini_read(context, stream, "text", &file);
    if (status == REMAT_OK) {
        assert_int_equal(file->section_count, 1);
        assert_int_equal(file->entry_count, 1);
        assert_string_equal(file->entries[0].value, "value");
    }
    ini_destroy(file);
    fclose(stream);
    return status;
}

static void ini_that_grows_at_any_byte(void **state)
{
    (void)state;
    char text[MOST_BYTES];
    for (size_t pads = 1; pads < PADS; pads++) {
        fill(text, "[", 's', pads, "]\nkey = value\r\n");
        expect_failures_survived("a section", read_ini, text, 3, 100);
        fill(text, "[s]\n", 'k', pads, " = value\n");
        expect_failures_survived("a key", read_ini, text, 3, 100);
    }
}

static remat_status read_rows(remat_context *context, void *user)
{
    const char *text = user;
    FILE *stream = stream_of(text, strlen(text));
    remat_lifetime_table *table = NULL;
    remat_status status = remat_lifetime_table_read(context, stream, "text", &table);
    if (status == REMAT_OK) {
        assert_int_equal(remat_lifetime_table_count(table), 1);
        capture out;
        capture_begin(&out);
        status = remat_lifetime_table_write(table, out.stream);
        capture_end(&out);
        if (status == REMAT_OK)
            expect_text(out.text, ",\"a\"\"b,\t \",0,1,8,");
        free(out.text);
    }
    remat_lifetime_table_destroy(table);
    fclose(stream);
    return status;
}

static void rows_that_grow_at_any_byte(void **state)
{
    (void)state;
    char text[MOST_BYTES];
    for (size_t pads = 1; pads < PADS; pads++) {
        fill(text, "note,id,lower,upper,size\n", 'n', pads, ",\"a\"\"b,\t \",0,1,8\n");
        expect_failures_survived("a row", read_rows, text, 3, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_that_grows_at_any_byte),
        cmocka_unit_test(ini_that_grows_at_any_byte),
        cmocka_unit_test(rows_that_grow_at_any_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
