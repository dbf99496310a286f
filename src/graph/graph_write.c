#include "base/alloc.h"
#include "base/output.h"
#include "base/output_file.h"
#include "graph/graph_object.h"

static void write_list(output *out, const char *key, const uint32_t *numbers, size_t count)
{
    if (!count)
        return;
    output_text(out, ", \"");
    output_text(out, key);
    output_text(out, "\": [");
    for (size_t i = 0; i < count; i++) {
        output_text(out, i == 0 ? "" : ", ");
        output_number(out, numbers[i]);
    }
    output_text(out, "]");
}

static void write_tensor(output *out, const graph_tensor *tensor)
{
    output_field(out, "{", "bytes", tensor->bytes);
    if (tensor->name)
        output_text_field(out, ", ", "name", tensor->name);
    output_text(out, tensor->given ? ", \"given\": true}" : "}");
}

static void write_action(output *out, const remat_graph *graph, const graph_action *action)
{
    output_field(out, "{", "cost", action->cost);
    if (action->name)
        output_text_field(out, ", ", "name", action->name);
    if (action->once || action->write_count == 0) /* it works for its caller: a loss, for example */
        output_text(out, ", \"once\": true");
    write_list(out, "reads", graph_reads(graph, action), action->read_count);
    write_list(out, "updates", graph_updates(graph, action), action->update_count);
    write_list(out, "writes", graph_writes(graph, action), action->write_count);
    if (action->workspace_bytes)
        output_field(out, ", ", "workspace_bytes", action->workspace_bytes);
    if (action->in_place_from != GRAPH_NONE)
        write_list(out, "in_place", (const uint32_t[]){action->in_place_from, action->in_place_to}, 2);
    output_text(out, "}");
}

static void write_graph(output *out, const remat_graph *graph)
{
    output_text(out, "{\"format\": \"remat-graph\", \"version\": 1");
    if (graph->name)
        output_text_field(out, ", ", "name", graph->name);
    if (graph->cost_unit)
        output_text_field(out, ", ", "cost_unit", graph->cost_unit);
    output_text(out, ",\n \"tensors\": [");
    for (size_t i = 0; i < graph->tensor_count; i++) {
        output_text(out, i == 0 ? "\n  " : ",\n  ");
        write_tensor(out, &graph->tensors[i]);
    }
    output_text(out, "],\n \"actions\": [");
    for (size_t i = 0; i < graph->action_count; i++) {
        output_text(out, i == 0 ? "\n  " : ",\n  ");
        write_action(out, graph, &graph->actions[i]);
    }
    output_text(out, "],\n \"results\": [");
    for (size_t i = 0; i < graph->result_count; i++) {
        output_text(out, i == 0 ? "" : ", ");
        output_number(out, graph->results[i]);
    }
    output_text(out, "]}\n");
}

remat_status remat_graph_write(const remat_graph *graph, FILE *stream)
{
    output *out = remat_alloc(graph->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, graph->context, stream);
    write_graph(out, graph);
    remat_status status = output_end(out);
    remat_release(graph->context, out, 1, sizeof *out);
    return status;
}

static remat_status write_to(const void *graph, FILE *stream)
{
    return remat_graph_write(graph, stream);
}

remat_status remat_graph_save(const remat_graph *graph, const char *path)
{
    return output_save(graph->context, path, write_to, graph);
}
