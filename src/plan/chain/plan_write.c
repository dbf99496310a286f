#include "plan/chain/plan_object.h"

#include "base/alloc.h"
#include "base/output_file.h"
#include "graph/schedule_writer.h"

static void write_figures(output *out, const remat_plan *plan, const plan_placement *placement)
{
    const remat_plan_figures *figures = &plan->figures;
    const uint64_t least = placement ? placement->chain_min_budget_bytes : figures->min_budget_bytes;
    const uint64_t bound = placement ? placement->chain_lower_bound_cost : figures->lower_bound_cost;
    output_text_field(out, "{", "format", "remat-plan");
    output_text(out, ", \"version\": 1");
    output_text_field(out, ", ", "strategy", plan->strategy);
    if (plan->draft.method)
        output_text_field(out, ", ", "method", plan->draft.method);
    output_text(out, figures->feasible ? ", \"feasible\": true" : ", \"feasible\": false");
    /* A budget on what is kept is no limit of the peak, and has a key of its own. So has the budget of a model. */
    if (figures->has_budget && !placement)
        output_field(out, ",\n ", plan->count == REMAT_COUNT_KEPT ? "kept_budget_bytes" : "budget_bytes",
                     figures->budget_bytes);
    output_field(out, ",\n ", "min_budget_bytes", least);
    output_field(out, ", ", "base_peak_bytes", figures->base_peak_bytes);
    output_field(out, ",\n ", "base_cost", figures->base_cost);
    output_field(out, ", ", "lower_bound_cost", bound);
    if (plan->draft.method && figures->feasible)
        output_field(out, ", ", "method_bound_cost", figures->method_bound_cost);
    if (plan->remark[0])
        output_text_field(out, ",\n ", "remark", plan->remark);
    if (!figures->feasible)
        return;
    output_field(out, ",\n ", "peak_bytes", figures->schedule.peak_bytes);
    output_field(out, ", ", "kept_bytes", figures->schedule.kept_bytes);
    output_field(out, ", ", "estimated_bytes", figures->estimated_bytes);
    output_field(out, ",\n ", "total_cost", figures->schedule.total_cost);
    output_field(out, ", ", "recompute_flops", figures->schedule.recompute_flops);
    output_field(out, ", ", "steps", figures->schedule.steps);
}

static void write_layers(output *out, const remat_plan *plan)
{
    output_text(out, ",\n \"layers\": [");
    for (size_t i = 0; i < plan->chain->layer_count; i++) {
        output_field(out, i == 0 ? "\n  {" : ",\n  {", "index", plan->chain->layers[i].index);
        output_text_field(out, ", ", "name", plan->chain->layers[i].name);
        output_text_field(out, ", ", "decision", remat_plan_decision_name(plan, i));
        output_field(out, ", ", "forwards", plan->layers[i].forwards);
        output_text(out, "}");
    }
    output_text(out, "]");
}

static remat_status write_plan(output *out, const remat_plan *plan, const plan_placement *placement, bool with_schedule)
{
    write_figures(out, plan, placement);
    if (placement) {
        output_field(out, ",\n ", "arena_bytes", placement->arena_bytes);
        output_field(out, ", ", "total_bytes", placement->total_bytes);
        output_field(out, ", ", "min_total_budget_bytes", placement->min_total_budget_bytes);
        output_field(out, ", ", "keep_all_total_bytes", placement->keep_all_total_bytes);
        output_field(out, ",\n ", "model_layers", placement->model_layers);
        output_field(out, ", ", "recomputed_model_layers", placement->recomputed_model_layers);
    }
    if (placement && placement->total_budget_bytes != REMAT_NO_BUDGET)
        output_field(out, ", ", "total_budget_bytes", placement->total_budget_bytes);
    remat_status status = REMAT_OK;
    if (plan->figures.feasible && with_schedule) {
        schedule_writer writer = {out, plan->chain, 0};
        write_layers(out, plan);
        output_text(out, ",\n \"schedule\": [");
        status = remat_plan_walk(plan, schedule_write_step, &writer);
        output_text(out, "]");
    }
    output_text(out, "}\n");
    remat_status ended = output_end(out);
    return status != REMAT_OK ? status : ended;
}

remat_status plan_write_placed(const remat_plan *plan, const plan_placement *placement, FILE *stream,
                               bool with_schedule)
{
    output *out = remat_alloc(plan->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, plan->context, stream);
    remat_status status = write_plan(out, plan, placement, with_schedule);
    remat_release(plan->context, out, 1, sizeof *out);
    return status;
}

remat_status remat_plan_write(const remat_plan *plan, FILE *stream, bool with_schedule)
{
    return plan_write_placed(plan, NULL, stream, with_schedule);
}

static remat_status write_whole(const void *plan, FILE *stream)
{
    return remat_plan_write(plan, stream, true);
}

remat_status remat_plan_save(const remat_plan *plan, const char *path)
{
    return output_save(plan->context, path, write_whole, plan);
}
