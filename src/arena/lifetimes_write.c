#include "arena/lifetimes_csv.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/output.h"

#include <string.h>

static void write_csv(output *out, const remat_lifetime_table *table)
{
    output_text(out, table->text);
    output_text(out, ",offset\n");
    for (size_t i = 0; i < table->count; i++) {
        const char *id = remat_lifetime_table_id(table, i);
        output_text(out, id + strlen(id) + 1);
        output_text(out, ",");
        output_number(out, table->rows[i].offset);
        output_text(out, "\n");
    }
}

/* What is said of a placement as a whole. */
typedef struct arena_summary {
    const remat_arena_options *options;
    const remat_arena_result *result;
    bool fits;
} arena_summary;

static void write_truth(output *out, const char *key, bool truth)
{
    output_text(out, ", ");
    output_quoted(out, key);
    output_text(out, truth ? ": true" : ": false");
}

static void write_summary(output *out, const arena_summary *summary)
{
    output_text(out, "{\"format\": \"remat-arena\", \"version\": 1");
    write_truth(out, "feasible", summary->fits);
    output_field(out, ", ", "alignment", summary->options->alignment);
    if (summary->options->capacity)
        output_field(out, ", ", "capacity_bytes", summary->options->capacity);
    output_field(out, ",\n ", "arena_bytes", summary->result->height);
    output_field(out, ", ", "lower_bound_bytes", summary->result->lower_bound);
    write_truth(out, "optimal", summary->result->height == summary->result->lower_bound);
}

static void write_row(output *out, const char *id, const remat_lifetime *row)
{
    output_text_field(out, "{", "id", id);
    output_field(out, ", ", "lower", row->lower);
    output_field(out, ", ", "upper", row->upper);
    output_field(out, ", ", "size", row->size);
    output_field(out, ", ", "offset", row->offset);
    output_text(out, "}");
}

static void write_json(output *out, const remat_lifetime_table *table, const arena_summary *summary)
{
    write_summary(out, summary);
    output_text(out, ",\n \"rows\": [");
    for (size_t i = 0; i < table->count; i++) {
        output_text(out, i ? ",\n  " : "\n  ");
        write_row(out, remat_lifetime_table_id(table, i), &table->rows[i]);
    }
    output_text(out, "]}\n");
}

/* Through one buffer; CSV where there is no summary. */
static remat_status write_table(const remat_lifetime_table *table, const arena_summary *summary, FILE *stream)
{
    output *out = remat_alloc(table->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, table->context, stream);
    if (summary)
        write_json(out, table, summary);
    else
        write_csv(out, table);
    remat_status status = output_end(out);
    remat_release(table->context, out, 1, sizeof *out);
    return status;
}

remat_status remat_lifetime_table_write(const remat_lifetime_table *table, FILE *stream)
{
    return write_table(table, NULL, stream);
}

remat_status remat_lifetime_table_write_json_sized(const remat_lifetime_table *table,
                                                   const remat_arena_options *given_options,
                                                   const remat_arena_result *given_result, size_t result_size,
                                                   bool fits, FILE *stream)
{
    remat_arena_options options;
    remat_arena_result result = {0};
    remat_arena_options_init(&options);
    REMAT_TRY(remat_options_copy(table->context, &options, sizeof options, given_options, "remat_arena_options_init"));
    if (!remat_struct_take(&result, sizeof result, given_result, result_size))
        return remat_fail(table->context, REMAT_INVALID, NULL,
                          "the result of a placement has a member that this library does not know");
    arena_summary summary = {&options, &result, fits};
    return write_table(table, &summary, stream);
}
