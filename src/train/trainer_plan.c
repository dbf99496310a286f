/* Makes the plan from the trainer's options, and its figures. */
#include <string.h>

#include <remat/units.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/input.h"
#include "base/options.h"
#include "plan/graph/graph_plan_file.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

/* The evaluation keeps nothing: every forward once. */
static remat_status place_evaluation(remat_trainer *trainer)
{
    graph_sequence sequence = {0};
    REMAT_TRY(graph_sequence_plain(trainer->evaluation->graph, &sequence));
    REMAT_TRY(graph_place(trainer->evaluation->graph, &sequence, &trainer->evaluation_plan));
    return placed_graph_fit(&trainer->evaluation_plan);
}

/* One arena serves training and evaluation. */
static uint64_t shared_arena(const remat_trainer *trainer, uint64_t training)
{
    uint64_t evaluation = trainer->evaluation_plan.arena_bytes;
    return training > evaluation ? training : evaluation;
}

/* What takes so much: the smallest plan that was found; where something besides the budget decides, that. */
static const char *what_takes_it(const remat_trainer *trainer)
{
    const remat_train_options *options = &trainer->options;
    if (options->plan_path || options->graph_plan_path)
        return "with this plan file the model";
    if (options->strategy && strcmp(options->strategy, "optimal") != 0)
        return "with this strategy the model";
    return "the smallest plan that was found";
}

static remat_status too_small(const remat_trainer *trainer, uint64_t fixed, uint64_t arena, const char *layer)
{
    char budget[REMAT_SIZE_TEXT], needed[REMAT_SIZE_TEXT], exact[REMAT_COUNT_TEXT], lasting[REMAT_COUNT_TEXT],
        bound[REMAT_COUNT_TEXT];
    const uint64_t proven = fixed + shared_arena(trainer, trainer->plan->least_bound_bytes);
    remat_size_print(trainer->options.budget_bytes, budget);
    remat_fail(trainer->context, REMAT_INFEASIBLE, NULL,
               "the budget of %s is too small: %s takes %s bytes (%s), %s of them for weights, optimizer and scratch; "
               "no plan takes less%s%s%s%s",
               budget, what_takes_it(trainer), remat_count_print(fixed + arena, exact),
               remat_size_print_up(fixed + arena, needed), remat_count_print(fixed, lasting),
               proven == fixed + arena ? "" : " than ", proven == fixed + arena ? "" : remat_count_print(proven, bound),
               layer ? "; the peak is made by layer " : "", layer ? layer : "");
    return remat_fail_budget(trainer->context, trainer->options.budget_bytes, fixed + arena, layer);
}

/* The layer whose action makes the peak, or NULL. */
static const char *layer_of(const remat_trainer *trainer, const remat_program *program, uint32_t action)
{
    return action == GRAPH_NONE ? NULL : trainer->network->layers[program->actions[action].layer].node.name;
}

static const char *peak_layer(const remat_trainer *trainer)
{
    return layer_of(trainer, trainer->program, trainer->plan->peak_action);
}

static const char *evaluation_peak_layer(const remat_trainer *trainer)
{
    return layer_of(trainer, trainer->evaluation, placed_graph_peak_action(&trainer->evaluation_plan));
}

/* All data is copied in before a step begins. A schedule that uses memory before it has "loaded" the data would overwrite it:
 * planners put loads first, and this makes sure of it. */
static remat_status check_loads(const remat_program *program, const graph_plan *plan)
{
    const graph_sequence *sequence = &plan->sequence;
    bool has_run = false;
    for (size_t i = 0; i < sequence->count; i++) {
        bool is_load = program->actions[sequence->actions[i]].kind == ACTION_LOAD;
        if (is_load && has_run)
            return remat_fail(program->context, REMAT_INTERNAL, NULL, "the schedule loads data after other actions");
        has_run |= !is_load;
    }
    return REMAT_OK;
}

/* A schedule that somebody else made. */
static remat_status use_graph_plan(remat_trainer *trainer)
{
    const remat_train_options *options = &trainer->options;
    graph_plan_text text;
    FILE *stream;
    REMAT_TRY(input_open(trainer->context, options->graph_plan_path, &stream));
    remat_status status = graph_plan_given(trainer->program->graph, GRAPH_PLACED, stream, options->graph_plan_path,
                                           &text, &trainer->plan);
    fclose(stream);
    REMAT_TRY(status);
    graph_plan_text_release(&text);
    REMAT_TRY(check_loads(trainer->program, trainer->plan));
    const uint64_t arena = shared_arena(trainer, trainer->plan->arena_bytes);
    if (options->budget_bytes == REMAT_NO_BUDGET || trainer_fixed_bytes(trainer) + arena <= options->budget_bytes)
        return REMAT_OK;
    trainer_drop_mapped(trainer);
    const uint64_t fixed = trainer_fixed_bytes(trainer);
    return fixed + arena <= options->budget_bytes ? REMAT_OK : too_small(trainer, fixed, arena, peak_layer(trainer));
}

/* A graph of fewer actions is planned at once. */
enum { DEEP = 400 };

remat_status trainer_plan_program(const remat_trainer *trainer, const remat_program *program, const uint32_t *blocks,
                                  graph_plan **plan)
{
    const remat_train_options *options = &trainer->options;
    uint64_t fixed = trainer_fixed_bytes(trainer);
    graph_plan_options wanted;
    graph_plan_options_init(&wanted);
    wanted.strategy = options->strategy;
    wanted.plan_path = options->plan_path;
    wanted.blocks = blocks;
    wanted.hints = program->hints;
    wanted.threads = options->threads;
    wanted.describes_least = options->plan_only;
    wanted.floor_bytes = trainer->evaluation_plan.arena_bytes;
    wanted.flight = trainer_flight(trainer);
    if (trainer->pipeline) /* fit plans many stages */
        wanted.effort = 10;
    else if (options->plan_only && options->plan_quickly && program->graph->action_count > DEEP)
        wanted.effort = 20;
    wanted.chain_only = trainer->plans_chain_only;
    if (options->budget_bytes != REMAT_NO_BUDGET)
        wanted.budget_bytes = options->budget_bytes > fixed ? options->budget_bytes - fixed : 0;
    REMAT_TRY(graph_plan_create(program->graph, &wanted, plan));
    return check_loads(program, *plan);
}

/* Mapped weights stay in memory if any plan fits the budget beside them. */
static remat_status plan_training(remat_trainer *trainer, const uint32_t *blocks)
{
    const uint64_t budget = trainer->options.budget_bytes;
    if (budget != REMAT_NO_BUDGET && trainer_fixed_bytes(trainer) + trainer->evaluation_plan.arena_bytes > budget)
        trainer_drop_mapped(trainer);
    remat_status status = trainer_plan_program(trainer, trainer->program, blocks, &trainer->plan);
    if (status == REMAT_INFEASIBLE && budget != REMAT_NO_BUDGET && trainer_drop_mapped(trainer)) {
        graph_plan_destroy(trainer->plan);
        trainer->plan = NULL;
        status = trainer_plan_program(trainer, trainer->program, blocks, &trainer->plan);
    }
    if (status != REMAT_INFEASIBLE || budget == REMAT_NO_BUDGET)
        return status;
    const uint64_t fixed = trainer_fixed_bytes(trainer);
    return too_small(trainer, fixed, shared_arena(trainer, trainer->plan->min_budget_bytes), peak_layer(trainer));
}

/* Up to what the arena has in any case, or up to the budget. */
static remat_status overlap_gathers(remat_trainer *trainer)
{
    const uint64_t budget = trainer->options.budget_bytes, fixed = trainer_fixed_bytes(trainer);
    const bool has_budget = budget != REMAT_NO_BUDGET && budget != REMAT_UNLIMITED;
    const uint64_t limit = has_budget ? budget - fixed : trainer_arena_bytes(trainer);
    graph_plan *plan = trainer->plan;
    placed_graph placed = {.context = trainer->context,
                           .sequence = plan->sequence,
                           .liveness = plan->liveness,
                           .offsets = plan->offsets,
                           .arena_bytes = plan->arena_bytes};
    const remat_status status = trainer_overlap_gathers(trainer, trainer->program, &placed, limit);
    plan->sequence = placed.sequence;
    plan->liveness = placed.liveness;
    plan->offsets = placed.offsets;
    plan->arena_bytes = placed.arena_bytes;
    plan->peak_bytes = placed.liveness.peak_bytes;
    REMAT_TRY(status);
    return trainer_overlap_gathers(trainer, trainer->evaluation, &trainer->evaluation_plan,
                                   trainer_arena_bytes(trainer));
}

remat_status trainer_plan(remat_trainer *trainer)
{
    REMAT_TRY(place_evaluation(trainer));
    uint32_t *blocks = NULL;
    if (trainer->network->block_count)
        REMAT_TRY(program_find_blocks(trainer->program, &blocks));
    remat_status status = trainer->options.graph_plan_path ? use_graph_plan(trainer) : plan_training(trainer, blocks);
    remat_release(trainer->context, blocks, trainer->program->graph->action_count, sizeof *blocks);
    REMAT_TRY(status);
    uint64_t fixed = trainer_fixed_bytes(trainer), arena = trainer_arena_bytes(trainer);
    if (trainer->options.budget_bytes != REMAT_NO_BUDGET && fixed + arena > trainer->options.budget_bytes)
        return too_small(trainer, fixed, arena,
                         evaluation_peak_layer(trainer)); /* it needs more than a training step */
    if (trainer->program->fetches)
        REMAT_TRY(overlap_gathers(trainer));
    return trainer_find_peak(trainer);
}

uint64_t trainer_arena_bytes(const remat_trainer *trainer)
{
    return shared_arena(trainer, length_classes_arena(trainer, trainer->plan->arena_bytes));
}

/* ---- figures ---- */

static const char *strategy_in_use(const remat_trainer *trainer)
{
    const remat_train_options *options = &trainer->options;
    if (options->plan_path)
        return "plan file";
    if (options->graph_plan_path)
        return "graph plan file";
    if (options->strategy)
        return options->strategy;
    if (!trainer->plan->chain_plan)
        return "blocks"; /* also where they are the best within the budget */
    return options->budget_bytes != REMAT_NO_BUDGET ? "optimal" : "none";
}

static void count_forwards(const remat_trainer *trainer, remat_trainer_figures *figures)
{
    for (size_t n = 0; n < trainer->network->layer_count; n++) {
        const layer_node *node = &trainer->network->layers[n].node;
        if (node->input_count == 0 || node->view || (trainer->pipeline && trainer->program->forwards[n] == GRAPH_NONE))
            continue; /* nothing runs, or another stage runs it */
        figures->layers++;
        figures->forwards += remat_trainer_forwards(trainer, n);
        figures->recomputed_layers += remat_trainer_forwards(trainer, n) > 1;
    }
}

/* With accumulation the optimizer runs once a step, outside of the plan: weights, gradients and moments move through memory. */
static uint64_t step_cost(const remat_trainer *trainer, uint64_t micro_batch)
{
    if (!trainer_adds(trainer))
        return micro_batch;
    uint64_t moved = trainer->gradient_bytes + 2 * trainer->weight_bytes + 2 * trainer->state_bytes;
    return remat_add_saturated(micro_batch * trainer->settings.accumulate,
                               program_modelled_cost(&trainer->program->speed, 0, moved));
}

void remat_trainer_get_figures_sized(const remat_trainer *trainer, remat_trainer_figures *figures, size_t figures_size)
{
    const graph_plan *plan = trainer->plan;
    const uint64_t fixed = trainer_fixed_bytes(trainer), least = trainer_least_fixed_bytes(trainer);
    remat_trainer_figures found = {
        .weight_bytes = trainer->weight_bytes + trainer_mapped_bytes(trainer),
        .optimizer_bytes = trainer->state_bytes,
        .gradient_bytes = trainer_adds(trainer) ? trainer->gradient_bytes : 0,
        .scratch_bytes = trainer_scratch_bytes(trainer),
        .arena_bytes = trainer_arena_bytes(trainer),
        .total_bytes = fixed + trainer_arena_bytes(trainer),
        .peak_bytes = plan->peak_bytes,
        .keep_all_arena_bytes = shared_arena(trainer, plan->base_arena_bytes),
        .min_budget_bytes = least + shared_arena(trainer, plan->min_budget_bytes),
        .peak_activation_bytes = trainer->peak[HOLDS_ACTIVATION],
        .peak_gradient_bytes = trainer->peak[HOLDS_GRADIENT],
        .peak_weight_gradient_bytes = trainer->peak[HOLDS_WEIGHT_GRADIENT],
        .peak_workspace_bytes = trainer->peak[HOLDS_WORKSPACE],
        .peak_data_bytes = trainer->peak[HOLDS_DATA],
        .budget_bytes = trainer->options.budget_bytes,
        .cost = step_cost(trainer, plan->cost),
        .keep_all_cost = step_cost(trainer, plan->base_cost),
        .batch_size = trainer->network->batch,
        .accumulate = trainer->settings.accumulate,
        .clip_norm = trainer->settings.clip_norm,
        .early_stopping = trainer->settings.early_stopping,
        .steps_per_epoch = trainer->steps_per_epoch,
        .total_steps = trainer->total_steps,
        .training_samples = trainer->data ? data_source_samples(trainer->data, DATA_TRAINING) : 0,
        .validation_samples = trainer->data ? data_source_samples(trainer->data, DATA_VALIDATION) : 0,
        .threads = trainer->device->threads,
        .model = trainer->settings.name ? trainer->settings.name : "",
        .strategy = strategy_in_use(trainer),
        .peak_layer = peak_layer(trainer),
        .kernels = trainer->device->kernels,
        .remark = plan->remark,
        .table_bytes = trainer->planned_bytes + trainer->recorded_bytes,
        .data_bytes = trainer->data_bytes,
        .min_budget_bound_bytes = least + shared_arena(trainer, plan->least_bound_bytes),
        .min_budget_cost = plan->least_cost ? step_cost(trainer, plan->least_cost) : 0,
        .min_budget_layer = layer_of(trainer, trainer->program, plan->least_peak_action),
        .mapped_bytes = trainer_mapped_bytes(trainer),
        .mapped_file_bytes = trainer_file_bytes(trainer),
    };
    for (size_t p = 0; p < trainer->network->parameter_count; p++)
        if (layer_parameter_is_trained(&trainer->network->parameters[p].about))
            found.parameters += trainer->network->parameters[p].values;
        else if (trainer->network->parameters[p].about.frozen)
            found.frozen_parameters += trainer->network->parameters[p].values;
    count_forwards(trainer, &found);
    remat_struct_give(figures, figures_size, &found, sizeof found);
}
