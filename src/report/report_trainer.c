/* A model, planned for training, as a file of the report: its arena step by step, its layers, and the curve. */
#include "report/report_document.h"

#include "base/alloc.h"
#include "base/options.h"
#include "report/keep_all_outline.h"
#include "train/trainer_object.h"

/* What holds memory: its letter in the document, and its name. */
static const struct {
    char letter[2];
    const char *name;
} kinds[HOLDS_KINDS] = {
    [HOLDS_DATA] = {"x", "data"},           [HOLDS_ACTIVATION] = {"s", "activations"},
    [HOLDS_GRADIENT] = {"y", "gradients"},  [HOLDS_WEIGHT_GRADIENT] = {"g", "gradients of the weights"},
    [HOLDS_WORKSPACE] = {"w", "workspace"},
};

typedef struct model_view {
    report_document *to;
    const remat_trainer *trainer;
    const remat_graph *graph;
    const graph_plan *plan;
    uint8_t *kinds; /* by tensor */
} model_view;

static const program_action *binding_at(const model_view *view, size_t position)
{
    return &view->trainer->program->actions[view->plan->sequence.actions[position]];
}

/* ---- memory ---- */

static char letter_of(const model_view *view, const program_action *binding)
{
    switch (binding->kind) {
    case ACTION_LOAD: return 'i';
    case ACTION_FORWARD: return remat_trainer_forwards(view->trainer, binding->layer) > 1 ? 'f' : 's';
    case ACTION_WEIGHT_GRADIENT: return 'g';
    case ACTION_INPUT_GRADIENT: return 'b';
    case ACTION_APPLY: return 'a';
    case ACTION_RECEIVE:
    case ACTION_SEND:
    case ACTION_TURN: break;
    }
    return 'z';
}

static void write_names(report_document *to)
{
    document_open(to, "ops", '{');
    document_text(to, "i", "load data for");
    document_text(to, "f", "forward");
    document_text(to, "s", "forward");
    document_text(to, "g", "gradients of the weights of");
    document_text(to, "b", "backward");
    document_text(to, "a", "new weights of");
    document_close(to, '}');
    document_open(to, "kinds", '{');
    for (size_t k = 0; k < HOLDS_KINDS; k++)
        document_text(to, kinds[k].letter, kinds[k].name);
    document_close(to, '}');
}

/* Workspaces may begin before the action that they are for. */
static uint32_t layer_of_range(const model_view *view, const live_range *range)
{
    return binding_at(view, range->tensor == GRAPH_NONE ? range->ends - 1 : range->born)->layer;
}

static void write_tensors(const model_view *view)
{
    report_document *to = view->to;
    const graph_liveness *liveness = &view->plan->liveness;
    size_t count = liveness->range_count;
    document_open(to, "tensors", '{');
    document_letters_begin(to, "kind");
    for (size_t i = 0; i < count; i++)
        document_letter(to, kinds[trainer_range_kind(view->kinds, &liveness->ranges[i])].letter[0]);
    document_letters_end(to);
    DOCUMENT_COLUMN(to, "name", count, document_text,
                    liveness->ranges[i].tensor == GRAPH_NONE ? "workspace"
                                                             : view->graph->tensors[liveness->ranges[i].tensor].name);
    DOCUMENT_COLUMN(to, "tensor", count, document_number, liveness->ranges[i].tensor);
    DOCUMENT_COLUMN(to, "layer", count, document_number, layer_of_range(view, &liveness->ranges[i]));
    DOCUMENT_COLUMN(to, "bytes", count, document_number, liveness->ranges[i].bytes);
    DOCUMENT_COLUMN(to, "born", count, document_number, live_range_counts_from(&liveness->ranges[i]));
    DOCUMENT_COLUMN(to, "ends", count, document_number, liveness->ranges[i].ends);
    DOCUMENT_COLUMN(to, "offset", count, document_number, view->plan->offsets[liveness->ranges[i].buffer]);
    document_close(to, '}');
}

/* Borders of the passes: the first loss that runs, and the first gradient. */
static void write_phases(const model_view *view)
{
    const size_t steps = view->plan->sequence.count;
    size_t loss = SIZE_MAX, backward = 0;
    for (; backward < steps; backward++) {
        const program_action *binding = binding_at(view, backward);
        if (binding->kind == ACTION_WEIGHT_GRADIENT || binding->kind == ACTION_INPUT_GRADIENT)
            break;
        const layer_type *type = view->trainer->network->layers[binding->layer].node.type;
        if (binding->kind == ACTION_FORWARD && type->labels != LAYER_NO_LABELS && loss == SIZE_MAX)
            loss = backward;
    }
    report_write_phases(view->to, loss, backward < steps ? backward : SIZE_MAX);
}

static remat_status write_memory(const model_view *view)
{
    report_document *to = view->to;
    size_t steps = view->plan->sequence.count;
    document_open(to, "memory", '{');
    document_number(to, "steps", steps);
    document_number(to, "peak_step", view->plan->liveness.peak_position);
    write_names(to);
    document_letters_begin(to, "op");
    for (size_t i = 0; i < steps; i++)
        document_letter(to, letter_of(view, binding_at(view, i)));
    document_letters_end(to);
    DOCUMENT_COLUMN(to, "layer", steps, document_number, binding_at(view, i)->layer);
    DOCUMENT_COLUMN(to, "cost", steps, document_number, view->graph->actions[view->plan->sequence.actions[i]].cost);
    write_phases(view);
    write_tensors(view);
    remat_status status = outline_of_graph(to, view->graph, &view->plan->sequence, GRAPH_PLACED);
    document_close(to, '}');
    document_open(to, "arena", '{');
    document_number(to, "bytes", view->plan->arena_bytes);
    document_number(to, "lower_bound_bytes", view->plan->peak_bytes);
    document_close(to, '}');
    return status;
}

/* ---- layers ---- */

/* Inputs and views run nothing: they are no layers to keep or to recompute, and the figures do not count them. */
static const char *role_of(const model_view *view, size_t layer)
{
    const layer_node *node = &view->trainer->network->layers[layer].node;
    return node->input_count == 0 ? "input" : node->view ? "view" : "layer";
}

typedef struct layer_sums {
    uint64_t bytes, forward_cost, backward_cost;
} layer_sums;

static void sum_layers(const model_view *view, layer_sums *sums)
{
    for (size_t a = 0; a < view->graph->action_count; a++) {
        const graph_action *action = &view->graph->actions[a];
        const program_action *binding = &view->trainer->program->actions[a];
        layer_sums *sum = &sums[binding->layer];
        if (binding->kind == ACTION_FORWARD) {
            sum->forward_cost += action->cost;
            for (size_t i = 0; i < action->write_count; i++)
                sum->bytes += graph_placed_bytes(view->graph->tensors[graph_writes(view->graph, action)[i]].bytes);
        } else if (binding->kind == ACTION_WEIGHT_GRADIENT || binding->kind == ACTION_INPUT_GRADIENT) {
            sum->backward_cost += action->cost;
        }
    }
}

static remat_status write_layers(const model_view *view)
{
    report_document *to = view->to;
    const remat_network *network = view->trainer->network;
    size_t count = network->layer_count;
    layer_sums *sums = remat_alloc_zeroed(to->context, count, sizeof *sums);
    if (!sums)
        return REMAT_NO_MEMORY;
    sum_layers(view, sums);
    document_open(to, "layers", '{');
    DOCUMENT_COLUMN(to, "name", count, document_text, network->layers[i].node.name);
    DOCUMENT_COLUMN(to, "type", count, document_text, remat_layer_type_name(network->layers[i].node.type->hint));
    DOCUMENT_COLUMN(to, "role", count, document_text, role_of(view, i));
    DOCUMENT_COLUMN(to, "activation_bytes", count, document_number, sums[i].bytes);
    DOCUMENT_COLUMN(to, "forward_cost", count, document_number, sums[i].forward_cost);
    DOCUMENT_COLUMN(to, "backward_cost", count, document_number, sums[i].backward_cost);
    DOCUMENT_COLUMN(to, "decision", count, document_text,
                    remat_trainer_forwards(view->trainer, i) > 1 ? "recompute" : "keep");
    DOCUMENT_COLUMN(to, "forwards", count, document_number, remat_trainer_forwards(view->trainer, i));
    document_close(to, '}');
    remat_release(to->context, sums, count, sizeof *sums);
    return REMAT_OK;
}

/* ---- the curve ---- */

static void write_curve(report_document *to, const remat_trainer *trainer, size_t count)
{
    document_open(to, "curve", '{');
    document_number(to, "plans", count);
    document_open(to, "points", '[');
    for (size_t i = 0; i < count; i++) {
        document_open(to, NULL, '[');
        document_number(to, NULL, trainer->points[i].total_bytes);
        document_number(to, NULL, trainer->points[i].cost);
        document_close(to, ']');
    }
    document_close(to, ']');
    document_number(to, "knee", remat_trainer_knee(trainer));
    document_close(to, '}');
}

/* ---- the whole ---- */

static void write_figures(const model_view *view, const remat_trainer_figures *figures)
{
    report_document *to = view->to;
    document_open(to, "figures", '{');
    if (figures->budget_bytes != REMAT_NO_BUDGET) {
        document_number(to, "budget_bytes", figures->budget_bytes);
        document_number(to, "arena_budget_bytes",
                        figures->budget_bytes - (figures->total_bytes - figures->arena_bytes));
    }
    document_number(to, "min_budget_bytes", figures->min_budget_bytes);
    document_number(to, "min_budget_bound_bytes", figures->min_budget_bound_bytes);
    document_number(to, "total_bytes", figures->total_bytes);
    document_number(to, "keep_all_bytes", figures->total_bytes - figures->arena_bytes + figures->keep_all_arena_bytes);
    document_number(to, "arena_bytes", figures->arena_bytes);
    document_number(to, "peak_bytes", figures->peak_bytes);
    document_number(to, "base_peak_bytes", view->plan->base_peak_bytes);
    document_number(to, "total_cost", figures->cost);
    document_number(to, "base_cost", figures->keep_all_cost);
    document_number(to, "layers", figures->layers);
    document_number(to, "recomputed_layers", figures->recomputed_layers);
    document_number(to, "parameters", figures->parameters);
    document_number(to, "batch", figures->batch_size);
    document_close(to, '}');
}

static remat_status write_model(const model_view *view, remat_trainer *trainer, remat_trainer_figures *figures,
                                bool curve)
{
    report_document *to = view->to;
    document_text(to, "cost_unit", "ns");
    document_bool(to, "cost_measured", view->trainer->options.profile_path != NULL);
    document_text(to, "strategy", figures->strategy);
    document_text(to, "remark", figures->remark);
    size_t points = 0;
    if (curve)
        REMAT_TRY(remat_trainer_find_curve(trainer, &points));
    /* Of a strategy that takes no budget it is what the strategy takes. The curve knows better. */
    if (points > 0 && trainer->points[0].total_bytes < figures->min_budget_bytes)
        figures->min_budget_bytes = trainer->points[0].total_bytes;
    write_figures(view, figures);
    const report_hold holds[] = {{"weights", figures->weight_bytes},
                                 {"gradients of the weights over several micro-batches", figures->gradient_bytes},
                                 {"optimizer", figures->optimizer_bytes},
                                 {"activations and all gradients of a step: the arena", figures->arena_bytes},
                                 {"scratch of the kernels", figures->scratch_bytes}};
    report_write_holds(to, holds, sizeof holds / sizeof holds[0]);
    REMAT_TRY(write_memory(view));
    if (points > 0)
        write_curve(to, trainer, points);
    return write_layers(view);
}

remat_status remat_report_add_trainer(remat_report *report, const char *label, remat_trainer *trainer,
                                      const remat_report_options *options)
{
    remat_context *context = report_context(report);
    remat_report_options wanted;
    remat_report_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_report_options_init"));
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    model_view view = {.trainer = trainer, .graph = trainer->program->graph, .plan = trainer->plan};
    REMAT_TRY(trainer_find_kinds(trainer, &view.kinds));
    view.to = report_begin_file(report, "model", label, figures.model);
    remat_status status = write_model(&view, trainer, &figures, wanted.curve);
    if (status != REMAT_OK && view.to->status == REMAT_OK)
        view.to->status = status;
    status = report_end_file(report);
    remat_release(trainer->context, view.kinds, view.graph->tensor_count, sizeof *view.kinds);
    return status;
}
