/* Lifetimes, CSV: they are placed and checked, and what was read, written again, reads the same. */
#include "fuzz/fuzz.h"

static remat_status read_table(remat_context *context, const void *data, size_t size, remat_lifetime_table **table)
{
    FILE *stream = fuzz_stream(data, size);
    remat_status status = remat_lifetime_table_read(context, stream, "text", table);
    fclose(stream);
    FUZZ_CHECK((*table != NULL) == (status == REMAT_OK));
    return status;
}

static char *write_table(const remat_lifetime_table *table, size_t *length)
{
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_lifetime_table_write(table, to.stream) == REMAT_OK);
    fuzz_output_end(&to);
    *length = to.length;
    return to.text;
}

static void check_roundtrip(remat_context *context, const remat_lifetime_table *table)
{
    size_t count = remat_lifetime_table_count(table), length;
    char *text = write_table(table, &length);
    remat_lifetime_table *again;
    FUZZ_CHECK(read_table(context, text, length, &again) == REMAT_OK);
    FUZZ_CHECK(remat_lifetime_table_count(again) == count);
    for (size_t i = 0; i < count; i++) {
        remat_lifetime one, other;
        FUZZ_CHECK(remat_lifetime_table_get(table, i, &one) == REMAT_OK);
        FUZZ_CHECK(remat_lifetime_table_get(again, i, &other) == REMAT_OK);
        FUZZ_CHECK(one.lower == other.lower && one.upper == other.upper && one.size == other.size);
        FUZZ_CHECK(strcmp(remat_lifetime_table_id(table, i), remat_lifetime_table_id(again, i)) == 0);
    }
    remat_lifetime_table_destroy(again);
    free(text);
}

static void place(remat_context *context, remat_lifetime_table *table)
{
    remat_arena_options options;
    remat_arena_options_init(&options);
    options.effort = 200;
    options.alignment = 8;
    remat_arena_result result;
    if (fuzz_accepted(context, remat_lifetime_table_place(table, &options, &result))) {
        FUZZ_CHECK(result.lower_bound <= result.height);
        FUZZ_CHECK(remat_lifetime_table_check(table, options.alignment, result.height) == REMAT_OK);
        fuzz_output to;
        fuzz_output_begin(&to);
        FUZZ_CHECK(remat_lifetime_table_write_json(table, &options, &result, true, to.stream) == REMAT_OK);
        fuzz_output_end(&to);
        free(to.text);
    }
}

void fuzz_lifetimes(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_lifetime_table *table;
    if (fuzz_accepted(context, read_table(context, data, size, &table))) {
        if (remat_lifetime_table_count(table) <= 100)
            place(context, table);
        check_roundtrip(context, table);
    }
    remat_lifetime_table_destroy(table);
    fuzz_end(context);
}
