/* The plan of a graph. The graph stands before it, with a line "%%" between. */
#include "fuzz/fuzz.h"

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
            FUZZ_CHECK(figures.actions >= 1 || remat_graph_action_count(graph) == 0);
        fclose(stream);
    }
    remat_graph_destroy(graph);
    fuzz_end(context);
}
