/* Lifetimes from CSV, and back with their offsets. */
#include "arena/lifetimes_csv.h"
#include "support/fixture.h"

#define HEADER "id,lower,upper,size\n"

static remat_status read_bytes(fixture *f, const void *bytes, size_t length, remat_lifetime_table **table)
{
    FILE *stream = stream_of(bytes, length);
    remat_status status = remat_lifetime_table_read(f->context, stream, "text", table);
    fclose(stream);
    if (status != REMAT_OK)
        assert_null(*table);
    return status;
}

static remat_status read_text(fixture *f, const char *text, remat_lifetime_table **table)
{
    return read_bytes(f, text, strlen(text), table);
}

static void refused(fixture *f, const char *text, uint64_t line, const char *field, const char *reason)
{
    remat_lifetime_table *table;
    expect_status(f, read_text(f, text, &table), REMAT_BAD_INPUT);
    expect_message(f, "text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, line);
    assert_string_equal(remat_context_error(f->context)->field, field);
}

/* What is written for `text` with the offsets 0, 100, 200 ... */
static void becomes(fixture *f, const char *text, const char *wanted)
{
    remat_lifetime_table *table;
    capture out;
    expect_ok(f, read_text(f, text, &table));
    for (size_t i = 0; i < remat_lifetime_table_count(table); i++)
        table->rows[i].offset = 100 * i;
    capture_begin(&out);
    expect_ok(f, remat_lifetime_table_write(table, out.stream));
    capture_end(&out);
    assert_string_equal(out.text, wanted);
    free(out.text);
    remat_lifetime_table_destroy(table);
}

static void rows_are_read_by_the_names_of_columns(void **state)
{
    fixture *f = *state;
    remat_lifetime_table *table;
    expect_ok(f, read_text(f, "size,id,upper,lower\n10,first,3,0\n0,\"a, \"\"b\"\"\",9223372036854775807,2\n", &table));
    assert_int_equal(f->warnings, 0);
    assert_int_equal(remat_lifetime_table_count(table), 2);
    remat_lifetime rows[2];
    for (size_t i = 0; i < 2; i++)
        expect_ok(f, remat_lifetime_table_get(table, i, &rows[i]));
    expect_status(f, remat_lifetime_table_get(table, 2, &rows[0]), REMAT_INVALID);
    assert_null(remat_lifetime_table_id(table, 2));
    assert_string_equal(remat_lifetime_table_id(table, 0), "first");
    assert_string_equal(remat_lifetime_table_id(table, 1), "a, \"b\"");
    assert_int_equal(rows[0].lower, 0);
    assert_int_equal(rows[0].upper, 3);
    assert_int_equal(rows[0].size, 10);
    assert_int_equal(rows[1].lower, 2);
    assert_int_equal(rows[1].upper, INT64_MAX);
    assert_int_equal(rows[1].size, 0);
    remat_lifetime_table_destroy(table);
}

static void the_same_rows_come_out(void **state)
{
    fixture *f = *state;
    becomes(f, HEADER, "id,lower,upper,size,offset\n");
    becomes(f, HEADER "a,0,3,10\nb,1,2,7\na,1,2,7\n",
            "id,lower,upper,size,offset\na,0,3,10,0\nb,1,2,7,100\na,1,2,7,200\n");
    becomes(f, "size,lower,id,upper\n10,0,,3", "size,lower,id,upper,offset\n10,0,,3,0\n");
    becomes(f, "\xef\xbb\xbfid,lower,upper,size\r\n\r\nGröße,0,3,10\r\n",
            "id,lower,upper,size,offset\nGröße,0,3,10,0\n");
    becomes(f,
            HEADER
            "\"a,b\",0,3,10\n\"say \"\"hi\"\"\",0,3,10\n\" padded \",0,3,10\n\"plain\",0,3,10\n in\"side ,0,3,10\n",
            "id,lower,upper,size,offset\n\"a,b\",0,3,10,0\n\"say \"\"hi\"\"\",0,3,10,100\n\" padded \",0,3,10,200\n"
            "plain,0,3,10,300\n\"in\"\"side\",0,3,10,400\n");
}

static void unknown_columns_are_passed_on(void **state)
{
    fixture *f = *state;
    becomes(f, "id,\"la,yer\",lower,upper,size,\n0,\"x,y\",1,2,3,z\n",
            "id,\"la,yer\",lower,upper,size,,offset\n0,\"x,y\",1,2,3,z,0\n");
    assert_int_equal(f->warnings, 2);
    expect_text(f->warning, "text:1: the column '' is unknown");
}

static void an_earlier_placement_is_replaced(void **state)
{
    fixture *f = *state;
    becomes(f, "id,offset,lower,upper,size\na,55,0,3,10\nb,never read,1,2,7\n",
            "id,lower,upper,size,offset\na,0,3,10,0\nb,1,2,7,100\n");
    becomes(f, "offset,id,lower,upper,size\n9,a,0,3,10\n", "id,lower,upper,size,offset\na,0,3,10,0\n");
    assert_int_equal(f->warnings, 0);
}

static void figures_come_as_json(void **state)
{
    fixture *f = *state;
    remat_lifetime_table *table;
    remat_arena_options options;
    remat_arena_result result;
    capture out;
    remat_arena_options_init(&options);
    options.capacity = 20;
    options.alignment = 2;
    expect_ok(f, read_text(f, HEADER "\"a\"\"b\",0,3,10\nz,1,2,7\n", &table));
    expect_ok(f, remat_lifetime_table_place(table, &options, &result));
    expect_ok(f, remat_lifetime_table_check(table, 2, result.height));
    expect_status(f, remat_lifetime_table_check(table, 2, result.height - 2), REMAT_CHECK_FAILED);
    capture_begin(&out);
    expect_ok(f, remat_lifetime_table_write_json(table, &options, &result, true, out.stream));
    capture_end(&out);
    assert_string_equal(out.text, "{\"format\": \"remat-arena\", \"version\": 1, \"feasible\": true, \"alignment\": 2, "
                                  "\"capacity_bytes\": 20,\n \"arena_bytes\": 18, \"lower_bound_bytes\": 18, "
                                  "\"optimal\": true,\n \"rows\": [\n"
                                  "  {\"id\": \"a\\\"b\", \"lower\": 0, \"upper\": 3, \"size\": 10, \"offset\": 0},\n"
                                  "  {\"id\": \"z\", \"lower\": 1, \"upper\": 2, \"size\": 7, \"offset\": 10}]}\n");
    free(out.text);
    remat_lifetime_table_destroy(table);
}

static void wrong_files_name_line_and_column(void **state)
{
    fixture *f = *state;
    refused(f, "", 1, "", "the file is empty");
    refused(f, "lower,upper,size\n", 1, "id", "missing");
    refused(f, "id,upper,size\n", 1, "lower", "missing");
    refused(f, "id,lower,size\n", 1, "upper", "missing");
    refused(f, "id,lower,upper\n", 1, "size", "missing");
    refused(f, "id,lower,upper,size,lower\n", 1, "lower", "twice");
    refused(f, "id,lower,upper,size,offset,offset\n", 1, "offset", "twice");
    refused(f, HEADER "a,0,3,10\nb,4,4,10\n", 3, "upper", "4 is not above lower, 4");
    refused(f, HEADER "\n\nb,9,4,0\n", 4, "upper", "4 is not above lower, 9");
    refused(f, HEADER "a,0,3\n", 2, "", "3 cells; the first line names 4 columns");
    refused(f, HEADER "a,0,3,10,5\n", 2, "", "5 cells");
    refused(f, HEADER "a,-1,3,10\n", 2, "lower", "'-1' is not allowed");
    refused(f, HEADER "a,0,x,10\n", 2, "upper", "'x' is not allowed");
    refused(f, HEADER "a,0,3,\n", 2, "size", "whole number");
    refused(f, HEADER "a,0,3,1.5\n", 2, "size", "whole number");
    refused(f, HEADER "a,0,3,9223372036854775808\n", 2, "size", "whole number");
    refused(f, HEADER "a,0,3,9223372036854775807\nb,5,6,1\n", 3, "size", "sum to less than 2^63");
    refused(f, HEADER "\"a,0,3,10\n", 2, "", "does not end on its line");
    refused(f, HEADER "\xff,0,3,10\n", 2, "", "UTF-8");
    remat_lifetime_table *table;
    expect_status(f, read_bytes(f, HEADER "a\0b,0,3,10\n", sizeof HEADER "a\0b,0,3,10\n" - 1, &table), REMAT_BAD_INPUT);
    expect_message(f, "text:2: NUL byte");
}

static void a_full_disk_is_noticed(void **state)
{
    fixture *f = *state;
    remat_lifetime_table *table;
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    setvbuf(full, NULL, _IONBF, 0);
    expect_ok(f, read_text(f, HEADER "a,0,3,10\n", &table));
    expect_status(f, remat_lifetime_table_write(table, full), REMAT_IO);
    fclose(full);
    remat_lifetime_table_destroy(table);
}

/* Enough rows that every array grows more than once. */
static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    capture text, out;
    capture_begin(&text);
    fputs(HEADER, text.stream);
    for (int i = 0; i < 100; i++)
        fprintf(text.stream, "tensor %d,%d,%d,%d\n", i, i, i + 3, 64 * i);
    capture_end(&text);
    uint64_t held = f->memory.bytes;
    bool failed = true;
    capture_begin(&out);
    for (uint64_t n = 1; failed; n++) {
        remat_lifetime_table *table;
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = read_text(f, text.text, &table);
        if (status == REMAT_OK)
            status = remat_lifetime_table_write(table, out.stream);
        failed = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        expect_status(f, status, failed ? REMAT_NO_MEMORY : REMAT_OK);
        remat_lifetime_table_destroy(table);
        assert_int_equal(f->memory.bytes, held);
    }
    capture_end(&out);
    expect_text(out.text, "\ntensor 99,99,102,6336,0\n");
    free(text.text);
    free(out.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(rows_are_read_by_the_names_of_columns),
        FIXTURE_TEST(the_same_rows_come_out),
        FIXTURE_TEST(unknown_columns_are_passed_on),
        FIXTURE_TEST(an_earlier_placement_is_replaced),
        FIXTURE_TEST(figures_come_as_json),
        FIXTURE_TEST(wrong_files_name_line_and_column),
        FIXTURE_TEST(a_full_disk_is_noticed),
        FIXTURE_TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
