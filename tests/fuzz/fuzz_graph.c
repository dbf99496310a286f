/* Graphs: what was read, written again, reads the same, and the order of the graph is replayed. */
#include "fuzz/fuzz.h"

static remat_status read_graph(remat_context *context, const void *data, size_t size, remat_graph **graph)
{
    FILE *stream = fuzz_stream(data, size);
    remat_status status = remat_graph_read(context, stream, "text", graph);
    fclose(stream);
    FUZZ_CHECK((*graph != NULL) == (status == REMAT_OK));
    return status;
}

static char *write_graph(const remat_graph *graph, size_t *length)
{
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_graph_write(graph, to.stream) == REMAT_OK);
    fuzz_output_end(&to);
    *length = to.length;
    return to.text;
}

static void replay(remat_context *context, const remat_graph *graph)
{
    size_t count = remat_graph_action_count(graph);
    uint32_t *order = malloc((count + 1) * sizeof *order);
    FUZZ_CHECK(order);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    remat_graph_figures figures;
    if (fuzz_accepted(context, remat_graph_replay(graph, order, count, &figures)))
        FUZZ_CHECK(figures.actions == count && figures.peak_bytes <= INT64_MAX);
    free(order);
}

void fuzz_graph(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_graph *graph, *again;
    if (fuzz_accepted(context, read_graph(context, data, size, &graph))) {
        size_t length;
        char *text = write_graph(graph, &length);
        FUZZ_CHECK(read_graph(context, text, length, &again) == REMAT_OK);
        char *same = write_graph(again, &length);
        FUZZ_CHECK(strcmp(text, same) == 0);
        free(text);
        free(same);
        remat_graph_destroy(again);
        replay(context, graph);
    }
    remat_graph_destroy(graph);
    fuzz_end(context);
}
