#include "graph_check.h"
#include "graph_file.h"

static void print_json(const remat_graph_figures *figures)
{
    printf("{\"legal\": true, \"actions\": %llu, \"peak_bytes\": %llu, \"peak_position\": %llu, \"total_cost\": %llu",
           (unsigned long long)figures->actions, (unsigned long long)figures->peak_bytes,
           (unsigned long long)figures->peak_position, (unsigned long long)figures->total_cost);
    if (figures->arena_bytes)
        printf(", \"arena_bytes\": %llu", (unsigned long long)figures->arena_bytes);
    puts("}");
}

static void print_text(const remat_graph_figures *figures)
{
    char actions[REMAT_COUNT_TEXT], peak[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT],
        arena[REMAT_COUNT_TEXT];
    printf("legal: %s actions, peak %s bytes (%s), cost %s", remat_count_print(figures->actions, actions),
           remat_count_print(figures->peak_bytes, peak), remat_size_print(figures->peak_bytes, size),
           remat_count_print(figures->total_cost, cost));
    if (figures->arena_bytes)
        printf(", arena %s bytes", remat_count_print(figures->arena_bytes, arena));
    putchar('\n');
}

remat_status graph_check(remat_context *context, const file_bytes *file, const char *plan_path, bool json)
{
    remat_graph *graph;
    remat_graph_figures figures;
    FILE *stream;
    const char *name;
    remat_status status = graph_file_read(context, file, &graph);
    if (status == REMAT_OK)
        status = command_open(context, plan_path, &stream, &name);
    if (status == REMAT_OK)
        status = command_close(context, stream, remat_graph_plan_check(graph, stream, name, &figures));
    if (status == REMAT_OK)
        (json ? print_json : print_text)(&figures);
    remat_graph_destroy(graph);
    return status;
}
