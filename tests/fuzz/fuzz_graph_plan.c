/* The plan of a graph. The graph stands before it, with a line "%%" between. */
#include "fuzz/fuzz.h"

/* The actions that every schedule has. */
static size_t count_once(const remat_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < remat_graph_action_count(graph); i++) {
        remat_graph_action action;
        FUZZ_CHECK(remat_graph_get_action(graph, i, &action) == REMAT_OK);
        count += action.once;
    }
    return count;
}

void fuzz_graph_plan(const uint8_t *data, size_t size)
{
    static const char between[] = "\n%%\n";
    const uint8_t *found = size ? memmem(data, size, between, strlen(between)) : NULL;
    size_t length = found ? (size_t)(found - data) : size, used = found ? length + strlen(between) : size;
    remat_context *context = fuzz_begin();
    FILE *stream = fuzz_stream(data, length);
    remat_graph *graph;
    bool read = fuzz_accepted(context, remat_graph_read(context, stream, "graph", &graph));
    fclose(stream);
    if (read) {
        stream = fuzz_stream(data + used, size - used);
        remat_graph_figures figures;
        if (fuzz_accepted(context, remat_graph_plan_check(graph, stream, "plan", &figures)))
            FUZZ_CHECK(figures.actions >= count_once(graph));
        fclose(stream);
    }
    remat_graph_destroy(graph);
    fuzz_end(context);
}
