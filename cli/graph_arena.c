#include "graph_arena.h"

#include <stdlib.h>

/* A cell of a CSV file: quotes are doubled. */
static void write_quoted(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

/* A tensor is called by its name or number; a workspace by that of its action. */
static void write_id(FILE *to, const remat_graph *graph, const remat_graph_plan *plan, const remat_graph_place *place)
{
    char number[32];
    remat_graph_tensor tensor;
    remat_graph_action action;
    const char *name = NULL;
    size_t count;
    if (place->tensor != REMAT_NO_TENSOR) {
        if (remat_graph_get_tensor(graph, place->tensor, &tensor) == REMAT_OK)
            name = tensor.name;
        snprintf(number, sizeof number, "tensor %u", place->tensor);
    } else {
        const uint32_t runs = remat_graph_plan_schedule(plan, &count)[place->born];
        if (remat_graph_get_action(graph, runs, &action) == REMAT_OK)
            name = action.name;
        snprintf(number, sizeof number, "workspace of %u", runs);
    }
    write_quoted(to, name && *name ? name : number);
}

/* By buffer: the place of the first that it holds, with the end of the last. Those that hold nothing have 0 bytes. */
static void collect_rows(const remat_graph_plan *plan, remat_graph_place *rows)
{
    for (size_t i = 0; i < remat_graph_plan_place_count(plan); i++) {
        remat_graph_place place;
        remat_graph_plan_get_place(plan, i, &place);
        remat_graph_place *row = &rows[place.buffer];
        if (!row->bytes)
            *row = place;
        else if (place.ends > row->ends)
            row->ends = place.ends;
    }
}

static void write_rows(FILE *to, const remat_graph *graph, const remat_graph_plan *plan, const remat_graph_place *rows,
                       size_t count)
{
    fputs("id,lower,upper,size\n", to);
    for (size_t i = 0; i < count; i++) {
        const remat_graph_place *row = &rows[i];
        if (!row->bytes)
            continue;
        write_id(to, graph, plan, row);
        fprintf(to, ",%llu,%llu,%llu\n", (unsigned long long)row->born, (unsigned long long)row->ends,
                (unsigned long long)row->bytes);
    }
}

/* As text, which the reader of lifetimes takes: there is one way into the arena. */
static remat_status make_table(remat_context *context, const remat_graph *graph, const remat_graph_plan *plan,
                               remat_lifetime_table **table)
{
    char *text = NULL;
    size_t length = 0;
    size_t most = 0; /* buffers are numbered from 0, and those of 0 bytes have no place */
    for (size_t i = 0; i < remat_graph_plan_place_count(plan); i++) {
        remat_graph_place place;
        remat_graph_plan_get_place(plan, i, &place);
        most = place.buffer + 1 > most ? place.buffer + 1 : most;
    }
    remat_graph_place *rows = calloc(most + 1, sizeof *rows);
    FILE *to = rows ? open_memstream(&text, &length) : NULL;
    if (to) {
        collect_rows(plan, rows);
        write_rows(to, graph, plan, rows, most);
    }
    free(rows);
    if (!to || fclose(to) != 0) {
        free(text);
        return REMAT_NO_MEMORY;
    }
    FILE *stream = fmemopen(text, length, "r");
    remat_status status = stream ? remat_lifetime_table_read(context, stream, "live ranges", table) : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    free(text);
    return status;
}

remat_status graph_arena_read(remat_context *context, const file_bytes *plan, const remat_graph *graph,
                              remat_lifetime_table **table)
{
    remat_graph_plan *read = NULL;
    remat_status status;
    *table = NULL;
    if (plan) {
        FILE *stream = file_bytes_open(plan);
        status = stream ? remat_graph_plan_read(graph, stream, plan->name, &read) : REMAT_NO_MEMORY;
        if (stream)
            fclose(stream);
    } else {
        status = remat_graph_plan_create(graph, NULL, &read);
    }
    if (status == REMAT_OK)
        status = make_table(context, graph, read, table);
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_graph_plan_destroy(read);
    return status;
}
