/* A model, planned for training, as a file of the report: its arena step by step, its layers, and the curve. */
#include "report/report_document.h"

#include "base/alloc.h"
#include "base/options.h"
#include "train/trainer_object.h"

#include <string.h>

/* Letters of the document: what holds memory, and what a step does. */
enum {
    HOLDS_DATA = 'x',
    HOLDS_ACTIVATION = 's',
    HOLDS_GRADIENT = 'y',
    HOLDS_WEIGHT_GRADIENT = 'g',
    HOLDS_WORKSPACE = 'w'
};

typedef struct model_view {
    report_document *to;
    const remat_trainer *trainer;
    const remat_graph *graph;
    const graph_plan *plan;
    char *kinds;    /* by tensor */
    uint64_t *ends; /* by life: until its bytes pass to the next in place */
} model_view;

/* ---- who is who ---- */

/* Whatever no forward action writes is a gradient. */
static void find_kinds(const model_view *view)
{
    const remat_program *program = view->trainer->program;
    memset(view->kinds, HOLDS_GRADIENT, view->graph->tensor_count);
    for (size_t a = 0; a < view->graph->backward_begin; a++) {
        const graph_action *action = &view->graph->actions[a];
        for (size_t i = 0; i < action->write_count; i++)
            view->kinds[graph_writes(view->graph, action)[i]] =
                action->kind == GRAPH_LOAD ? HOLDS_DATA : HOLDS_ACTIVATION;
    }
    for (size_t p = 0; p < program->network->parameter_count; p++)
        if (program->gradients[p] != GRAPH_NONE)
            view->kinds[program->gradients[p]] = HOLDS_WEIGHT_GRADIENT;
}

/* Where a tensor takes over another's bytes in place, both are alive in that step; the bytes are counted as the new one's. */
static remat_status find_ends(const model_view *view)
{
    const graph_lives *lives = &view->plan->lives;
    remat_context *context = view->to->context;
    size_t *latest = remat_alloc(context, lives->buffer_count, sizeof *latest);
    if (!latest)
        return REMAT_NO_MEMORY;
    for (size_t b = 0; b < lives->buffer_count; b++)
        latest[b] = SIZE_MAX;
    for (size_t i = 0; i < lives->life_count; i++) {
        size_t *before = &latest[lives->lives[i].buffer];
        view->ends[i] = lives->lives[i].ends;
        if (*before != SIZE_MAX && view->ends[*before] > lives->lives[i].born)
            view->ends[*before] = lives->lives[i].born;
        *before = i;
    }
    remat_release(context, latest, lives->buffer_count, sizeof *latest);
    return REMAT_OK;
}

static const graph_action *action_at(const model_view *view, size_t position)
{
    return &view->graph->actions[view->plan->sequence.actions[position]];
}

/* ---- memory ---- */

static char letter_of(const model_view *view, const graph_action *action)
{
    switch (action->kind) {
    case GRAPH_LOAD: return 'i';
    case GRAPH_FORWARD: return view->plan->forwards[action->layer] > 1 ? 'f' : 's';
    case GRAPH_GRADIENT: return 'g';
    case GRAPH_DERIVATIVE: return 'b';
    case GRAPH_APPLY: return 'a';
    case GRAPH_FINISH: break;
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
    document_text(to, "z", "finish");
    document_close(to, '}');
    document_open(to, "kinds", '{');
    document_text(to, "x", "data");
    document_text(to, "s", "activations");
    document_text(to, "y", "gradients");
    document_text(to, "g", "gradients of the weights");
    document_text(to, "w", "workspace");
    document_close(to, '}');
}

static void write_tensors(const model_view *view)
{
    report_document *to = view->to;
    const graph_lives *lives = &view->plan->lives;
    document_open(to, "tensors", '{');
    document_letters_begin(to, "kind");
    for (size_t i = 0; i < lives->life_count; i++)
        document_letter(to,
                        lives->lives[i].tensor == GRAPH_NONE ? HOLDS_WORKSPACE : view->kinds[lives->lives[i].tensor]);
    document_letters_end(to);
    document_open(to, "name", '[');
    for (size_t i = 0; i < lives->life_count; i++)
        document_text(to, NULL,
                      lives->lives[i].tensor == GRAPH_NONE ? "workspace"
                                                           : view->graph->tensors[lives->lives[i].tensor].name);
    document_close(to, ']');
#define COLUMN(key, value)                         \
    document_open(to, key, '[');                   \
    for (size_t i = 0; i < lives->life_count; i++) \
        document_number(to, NULL, value);          \
    document_close(to, ']')
    COLUMN("layer", action_at(view, lives->lives[i].born)->layer);
    COLUMN("bytes", lives->buffers[lives->lives[i].buffer].bytes);
    COLUMN("born", lives->lives[i].born);
    COLUMN("ends", view->ends[i]);
    COLUMN("offset", view->plan->offsets[lives->lives[i].buffer]);
#undef COLUMN
    document_close(to, '}');
}

static void write_memory(const model_view *view)
{
    report_document *to = view->to;
    size_t steps = view->plan->sequence.count;
    document_open(to, "memory", '{');
    document_number(to, "steps", steps);
    document_number(to, "peak_step", view->plan->lives.peak_position);
    write_names(to);
    document_letters_begin(to, "op");
    for (size_t i = 0; i < steps; i++)
        document_letter(to, letter_of(view, action_at(view, i)));
    document_letters_end(to);
    document_open(to, "layer", '[');
    for (size_t i = 0; i < steps; i++)
        document_number(to, NULL, action_at(view, i)->layer);
    document_close(to, ']');
    document_open(to, "cost", '[');
    for (size_t i = 0; i < steps; i++)
        document_number(to, NULL, action_at(view, i)->cost);
    document_close(to, ']');
    write_tensors(view);
    document_close(to, '}');
    document_open(to, "arena", '{');
    document_number(to, "bytes", view->plan->arena_bytes);
    document_number(to, "lower_bound_bytes", view->plan->peak_bytes);
    document_close(to, '}');
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
        layer_sums *sum = &sums[action->layer];
        if (action->kind == GRAPH_FORWARD) {
            sum->forward_cost += action->cost;
            for (size_t i = 0; i < action->write_count; i++)
                sum->bytes += view->graph->tensors[graph_writes(view->graph, action)[i]].bytes;
        } else if (action->kind == GRAPH_GRADIENT || action->kind == GRAPH_DERIVATIVE) {
            sum->backward_cost += action->cost;
        }
    }
}

static remat_status write_layers(const model_view *view)
{
    report_document *to = view->to;
    size_t count = view->graph->layer_count;
    layer_sums *sums = remat_alloc_zeroed(to->context, count, sizeof *sums);
    if (!sums)
        return REMAT_NO_MEMORY;
    sum_layers(view, sums);
    document_open(to, "layers", '{');
#define COLUMN(key, write, value)      \
    document_open(to, key, '[');       \
    for (size_t i = 0; i < count; i++) \
        write(to, NULL, value);        \
    document_close(to, ']')
    COLUMN("name", document_text, view->graph->layers[i].name);
    COLUMN("type", document_text, remat_layer_type_name(view->graph->layers[i].type));
    COLUMN("role", document_text, role_of(view, i));
    COLUMN("activation_bytes", document_number, sums[i].bytes);
    COLUMN("forward_cost", document_number, sums[i].forward_cost);
    COLUMN("backward_cost", document_number, sums[i].backward_cost);
    COLUMN("decision", document_text, view->plan->forwards[i] > 1 ? "recompute" : "keep");
    COLUMN("forwards", document_number, view->plan->forwards[i]);
#undef COLUMN
    document_close(to, '}');
    remat_release(to->context, sums, count, sizeof *sums);
    return REMAT_OK;
}

/* ---- the curve ---- */

/* The point farthest below the line between the two ends. */
static size_t find_knee(const remat_train_point *points, size_t count)
{
    size_t knee = 0;
    double farthest = 0;
    double width = (double)points[count - 1].total_bytes - (double)points[0].total_bytes;
    double fall = (double)points[0].cost - (double)points[count - 1].cost;
    for (size_t i = 0; i < count; i++) {
        double along = (double)points[i].total_bytes - (double)points[0].total_bytes;
        double below = fall * (width - along) - ((double)points[i].cost - (double)points[count - 1].cost) * width;
        if (below > farthest) {
            farthest = below;
            knee = i;
        }
    }
    return knee;
}

static remat_status write_curve(report_document *to, remat_trainer *trainer)
{
    const remat_train_point *points;
    size_t count;
    REMAT_TRY(remat_trainer_curve(trainer, &points, &count));
    if (count == 0)
        return REMAT_OK;
    document_open(to, "curve", '{');
    document_number(to, "plans", count);
    document_open(to, "points", '[');
    for (size_t i = 0; i < count; i++) {
        document_open(to, NULL, '[');
        document_number(to, NULL, points[i].total_bytes);
        document_number(to, NULL, points[i].cost);
        document_close(to, ']');
    }
    document_close(to, ']');
    document_number(to, "knee", find_knee(points, count));
    document_close(to, '}');
    return REMAT_OK;
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

static remat_status write_model(const model_view *view, remat_trainer *trainer, const remat_trainer_figures *figures,
                                bool curve)
{
    report_document *to = view->to;
    document_text(to, "cost_unit", "ns");
    document_bool(to, "cost_measured", view->trainer->options.profile_path != NULL);
    document_text(to, "strategy", figures->strategy);
    document_text(to, "remark", figures->remark);
    write_figures(view, figures);
    const report_hold holds[] = {{"weights", figures->weight_bytes},
                                 {"gradients of the weights over several micro-batches", figures->gradient_bytes},
                                 {"optimizer", figures->optimizer_bytes},
                                 {"activations and all gradients of a step: the arena", figures->arena_bytes},
                                 {"scratch of the kernels", figures->scratch_bytes}};
    report_write_holds(to, holds, sizeof holds / sizeof holds[0]);
    find_kinds(view);
    REMAT_TRY(find_ends(view));
    write_memory(view);
    if (curve)
        REMAT_TRY(write_curve(to, trainer));
    return write_layers(view);
}

remat_status remat_report_add_trainer(remat_report *report, const char *label, remat_trainer *trainer,
                                      const remat_report_options *options)
{
    remat_context *context = report_context(report);
    remat_report_options wanted;
    remat_report_options_init(&wanted);
    if (options)
        REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_report_options_init"));
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    model_view view = {.trainer = trainer, .graph = trainer->program->graph, .plan = trainer->plan};
    size_t tensors = view.graph->tensor_count, lives = view.plan->lives.life_count;
    view.kinds = remat_alloc(context, tensors, 1);
    view.ends = remat_alloc(context, lives, sizeof *view.ends);
    remat_status status = REMAT_NO_MEMORY;
    if (view.kinds && view.ends) {
        view.to = report_begin_file(report, "model", label, figures.model);
        status = write_model(&view, trainer, &figures, wanted.curve);
        if (status != REMAT_OK && view.to->status == REMAT_OK)
            view.to->status = status;
        status = report_end_file(report);
    }
    remat_release(context, view.kinds, tensors, 1);
    remat_release(context, view.ends, lives, sizeof *view.ends);
    return status;
}
