#include <string.h>

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

void graph_plan_content_init(const placed_graph *placed, graph_plan_content *content)
{
    *content = (graph_plan_content){.placed = placed};
    for (int i = 0; i < PLAN_NUMBERS; i++)
        content->numbers[i] = UINT64_MAX;
}

static remat_status find_numbers(const remat_graph *graph, const graph_plan_content *content,
                                 uint64_t numbers[PLAN_NUMBERS])
{
    remat_graph_figures found;
    memcpy(numbers, content->numbers, PLAN_NUMBERS * sizeof *numbers);
    if (!content->placed)
        return REMAT_OK;
    const graph_sequence *sequence = &content->placed->sequence;
    REMAT_TRY(remat_graph_replay(graph, sequence->actions, sequence->count, &found));
    numbers[PLAN_PEAK] = found.peak_bytes;
    numbers[PLAN_TOTAL_COST] = found.total_cost;
    numbers[PLAN_ARENA] = content->placed->arena_bytes;
    return REMAT_OK;
}

static void write_plan(output *out, const graph_plan_content *content, const uint64_t numbers[PLAN_NUMBERS])
{
    output_text(out, "{\"format\": \"remat-graph-plan\", \"version\": 1");
    if (content->strategy && *content->strategy)
        output_text_field(out, ", ", "strategy", content->strategy);
    output_text(out, content->placed ? ", \"feasible\": true" : ", \"feasible\": false");
    for (unsigned i = 0; i < PLAN_NUMBERS; i++)
        if (numbers[i] != UINT64_MAX)
            output_field(out, ",\n ", graph_plan_number_names[i], numbers[i]);
    if (content->remark && *content->remark)
        output_text_field(out, ",\n ", "remark", content->remark);
    if (content->placed && !content->only_figures) {
        write_schedule(out, &content->placed->sequence);
        write_places(out, content->placed);
    }
    output_text(out, "}\n");
}

remat_status graph_plan_file_write(const remat_graph *graph, const graph_plan_content *content, FILE *stream)
{
    uint64_t numbers[PLAN_NUMBERS];
    REMAT_TRY(find_numbers(graph, content, numbers));
    output *out = remat_alloc(graph->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, graph->context, stream);
    write_plan(out, content, numbers);
    remat_status status = output_end(out);
    remat_release(graph->context, out, 1, sizeof *out);
    return status;
}
