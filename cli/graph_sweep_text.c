#include "graph_sweep_text.h"
#include "graph_file.h"
#include "plot.h"
#include "shown.h"
#include "waiting.h"

#include <stdlib.h>

typedef struct curve {
    const remat_graph_sweep *sweep;
    size_t count, knee;
    uint64_t base_cost, base_peak;
} curve;

static double overhead(const curve *shown_curve, const remat_graph_point *point)
{
    const double base = (double)shown_curve->base_cost;
    return shown_curve->base_cost ? 100.0 * ((double)point->total_cost - base) / base : 0.0;
}

static remat_graph_point point_at(const curve *of, size_t position)
{
    remat_graph_point point = {0};
    remat_graph_sweep_get_point(of->sweep, position, &point);
    return point;
}

static void print_table(const remat_graph *graph, const curve *of, bool all)
{
    const char *unit = remat_graph_cost_unit(graph);
    size_t rows = 0;
    graph_file_title(stdout, graph);
    printf(", %zu plan%s\n\n", of->count, of->count == 1 ? "" : "s");
    printf("%20s %11s %11s %9s  %20s %9s %11s\n", "peak bytes", "", "arena", "of all",
           unit && *unit ? shown(unit) : "cost", "more", "recomputed");
    for (size_t i = 0; i < of->count; i++) {
        if (!all && !sweep_row_is_shown(i, of->count, of->knee))
            continue;
        const remat_graph_point point = point_at(of, i);
        char bytes[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], arena[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT];
        printf("%20s %11s %11s %8.1f%%  %20s %8.2f%% %11llu%s\n", remat_count_print(point.peak_bytes, bytes),
               remat_size_print(point.peak_bytes, size), remat_size_print(point.arena_bytes, arena),
               of->base_peak ? 100.0 * (double)point.peak_bytes / (double)of->base_peak : 100.0,
               remat_count_print(point.total_cost, cost), overhead(of, &point), (unsigned long long)point.recomputed,
               i == of->knee ? "  knee" : "");
        rows++;
    }
    if (rows < of->count)
        sweep_rest_print(of->count - rows);
}

static void print_json(const curve *of)
{
    printf("{\"format\": \"remat-sweep\", \"version\": 1, \"base_cost\": %llu, \"base_peak_bytes\": %llu, "
           "\"knee\": %zu,\n \"points\": [",
           (unsigned long long)of->base_cost, (unsigned long long)of->base_peak, of->knee);
    for (size_t i = 0; i < of->count; i++) {
        const remat_graph_point point = point_at(of, i);
        printf("%s\n  {\"peak_bytes\": %llu, \"arena_bytes\": %llu, \"total_cost\": %llu, \"recomputed\": %llu}",
               i ? "," : "", (unsigned long long)point.peak_bytes, (unsigned long long)point.arena_bytes,
               (unsigned long long)point.total_cost, (unsigned long long)point.recomputed);
    }
    printf("]}\n");
}

static void print_csv(const curve *of)
{
    printf("peak_bytes,arena_bytes,total_cost,overhead_percent,recomputed,knee\n");
    for (size_t i = 0; i < of->count; i++) {
        const remat_graph_point point = point_at(of, i);
        printf("%llu,%llu,%llu,%.4f,%llu,%d\n", (unsigned long long)point.peak_bytes,
               (unsigned long long)point.arena_bytes, (unsigned long long)point.total_cost, overhead(of, &point),
               (unsigned long long)point.recomputed, i == of->knee);
    }
}

static remat_status draw(const curve *of)
{
    remat_sweep_point *points = malloc((of->count + 1) * sizeof *points);
    if (!points)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < of->count; i++) {
        const remat_graph_point point = point_at(of, i);
        points[i] = (remat_sweep_point){point.peak_bytes, point.total_cost};
    }
    plot_curve(points, of->count, of->knee, of->base_cost);
    free(points);
    return REMAT_OK;
}

int graph_sweep_show(remat_context *context, const remat_graph *graph, unsigned threads, sweep_format format,
                     sweep_extent extent)
{
    remat_graph_plan_options options;
    remat_graph_sweep *sweep;
    remat_graph_plan_options_init(&options);
    options.threads = threads;
    waiting_for("planning the whole curve");
    remat_status status = remat_graph_sweep_create(graph, &options, &sweep);
    waiting_end();
    if (status != REMAT_OK)
        return command_fail(context, status);
    const curve of = {sweep, remat_graph_sweep_count(sweep), remat_graph_sweep_knee(sweep),
                      remat_graph_sweep_base_cost(sweep), remat_graph_sweep_base_peak_bytes(sweep)};
    if (format == SWEEP_JSON)
        print_json(&of);
    else if (format == SWEEP_CSV)
        print_csv(&of);
    else
        print_table(graph, &of, extent.all);
    if (extent.plot)
        status = draw(&of);
    remat_graph_sweep_destroy(sweep);
    return (int)status;
}
