#include "base/alloc.h"
#include "base/output.h"
#include "plan/graph/graph_plan_file.h"

static void write_schedule(output *out, const graph_sequence *sequence)
{
    output_text(out, ",\n \"schedule\": [");
    for (size_t i = 0; i < sequence->count; i++) {
        output_text(out, i == 0 ? "" : i % 20 == 0 ? ",\n  " : ", ");
        output_number(out, sequence->actions[i]);
    }
    output_text(out, "]");
}

static void write_places(output *out, const placed_graph *placed)
{
    const char *before = "\n  ";
    output_text(out, ",\n \"places\": [");
    for (size_t i = 0; i < placed->liveness.range_count; i++) {
        const live_range *range = &placed->liveness.ranges[i];
        if (!range->bytes)
            continue;
        output_text(out, before);
        output_text(out, "[");
        if (range->tensor == GRAPH_NONE)
            output_text(out, "-1");
        else
            output_number(out, range->tensor);
        const uint64_t rest[] = {range->born, range->ends, placed->offsets[range->buffer]};
        for (int k = 0; k < 3; k++) {
            output_text(out, ", ");
            output_number(out, rest[k]);
        }
        output_text(out, "]");
        before = i % 6 == 5 ? ",\n  " : ", ";
    }
    output_text(out, "]");
}

remat_status graph_plan_file_write(const remat_graph *graph, const placed_graph *placed,
                                   const uint64_t numbers[PLAN_NUMBERS], FILE *stream)
{
    remat_graph_figures found;
    REMAT_TRY(remat_graph_replay(graph, placed->sequence.actions, placed->sequence.count, &found));
    output *out = remat_alloc(graph->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, graph->context, stream);
    output_text(out, "{\"format\": \"remat-graph-plan\", \"version\": 1, \"feasible\": true");
    for (unsigned i = 0; i < PLAN_NUMBERS; i++) {
        uint64_t number = i == PLAN_PEAK         ? found.peak_bytes
                          : i == PLAN_TOTAL_COST ? found.total_cost
                          : i == PLAN_ARENA      ? placed->arena_bytes
                                                 : numbers[i];
        if (number != UINT64_MAX)
            output_field(out, ",\n ", graph_plan_number_names[i], number);
    }
    write_schedule(out, &placed->sequence);
    write_places(out, placed);
    output_text(out, "}\n");
    remat_status status = output_end(out);
    remat_release(graph->context, out, 1, sizeof *out);
    return status;
}
