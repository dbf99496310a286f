/* The CSV reader: what was read, written with quotes, reads the same. */
#include "fuzz/fuzz.h"

#include "base/csv_reader.h"

static void write_row(const csv_reader *reader, FILE *to)
{
    for (size_t i = 0; i < reader->cell_count; i++) {
        fputs(i ? ",\"" : "\"", to);
        for (const char *at = reader->cells[i]; *at; at++)
            fputs(*at == '"' ? "\"\"" : (char[]){*at, '\0'}, to);
        fputc('"', to);
    }
    fputc('\n', to);
}

static void read_numbers(csv_reader *reader)
{
    for (size_t i = 0; i < reader->cell_count; i++) {
        uint64_t number;
        if (csv_parse_number(reader, reader->cells[i], &number) == REMAT_OK)
            FUZZ_CHECK(number == strtoull(reader->cells[i], NULL, 10) && number <= INT64_MAX);
    }
}

static remat_status rewrite(remat_context *context, const void *data, size_t size, FILE *to)
{
    FILE *stream = fuzz_stream(data, size);
    csv_reader *reader = csv_reader_create(context, stream, "text");
    FUZZ_CHECK(reader);
    remat_status status = csv_read_header(reader, "empty");
    for (bool more = status == REMAT_OK; more;) {
        write_row(reader, to);
        read_numbers(reader);
        status = csv_next_line(reader, &more);
        if (status == REMAT_OK && more)
            status = csv_split_row(reader);
        more = more && status == REMAT_OK;
    }
    csv_reader_destroy(reader);
    fclose(stream);
    return status;
}

void fuzz_csv(const uint8_t *data, size_t size)
{
    fuzz_round_trip(data, size, CSV_LONGEST_LINE / 4, rewrite); /* quotes make lines longer */
}
