#include "graph_arena.h"

#include <stdlib.h>
#include <string.h>

/* A stream over memory would not say that memory ran out. */
typedef struct growing_text {
    char *bytes;
    size_t count, room;
    bool failed;
} growing_text;

static void put_bytes(growing_text *to, const char *bytes, size_t count)
{
    if (to->room - to->count < count) {
        const size_t room = 2 * to->room + count + 4096;
        char *moved = realloc(to->bytes, room);
        to->failed |= !moved;
        if (!moved)
            return;
        to->bytes = moved;
        to->room = room;
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
}

/* A cell of a CSV file: quotes are doubled. A name may have line breaks, but a cell ends on its line. */
static void write_quoted(growing_text *to, const char *text)
{
    put_bytes(to, "\"", 1);
    for (; *text; text++) {
        const bool breaks = *text == '\n' || *text == '\r';
        put_bytes(to, *text == '"' ? "\"\"" : breaks ? " " : text, *text == '"' ? 2 : 1);
    }
    put_bytes(to, "\"", 1);
}

/* A tensor is called by its name or number; a workspace by that of its action. */
static void write_id(growing_text *to, const remat_graph *graph, const remat_graph_plan *plan,
                     const remat_graph_place *place)
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

static void write_rows(growing_text *to, const remat_graph *graph, const remat_graph_plan *plan,
                       const remat_graph_place *rows, size_t count)
{
    static const char header[] = "id,lower,upper,size\n";
    put_bytes(to, header, sizeof header - 1);
    for (size_t i = 0; i < count; i++) {
        const remat_graph_place *row = &rows[i];
        if (!row->bytes)
            continue;
        write_id(to, graph, plan, row);
        char numbers[80];
        const int length = snprintf(numbers, sizeof numbers, ",%llu,%llu,%llu\n", (unsigned long long)row->born,
                                    (unsigned long long)row->ends, (unsigned long long)row->bytes);
        put_bytes(to, numbers, (size_t)length);
    }
}

/* As text, which the reader of lifetimes takes: there is one way into the arena. */
static remat_status make_table(remat_context *context, const remat_graph *graph, const remat_graph_plan *plan,
                               remat_lifetime_table **table)
{
    growing_text text = {0};
    size_t most = 0; /* buffers are numbered from 0, and those of 0 bytes have no place */
    for (size_t i = 0; i < remat_graph_plan_place_count(plan); i++) {
        remat_graph_place place;
        remat_graph_plan_get_place(plan, i, &place);
        most = place.buffer + 1 > most ? place.buffer + 1 : most;
    }
    remat_graph_place *rows = calloc(most + 1, sizeof *rows);
    if (rows) {
        collect_rows(plan, rows);
        write_rows(&text, graph, plan, rows, most);
    }
    const file_bytes made = {"live ranges", text.bytes, text.count};
    FILE *stream = rows && !text.failed ? file_bytes_open(&made) : NULL;
    remat_status status = stream ? remat_lifetime_table_read(context, stream, made.name, table) : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    free(text.bytes);
    free(rows);
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
