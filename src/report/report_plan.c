#include "report/report_sections.h"

#include "base/options.h"
#include "plan/chain/plan_object.h"

#include <string.h>

static remat_status take_options(remat_context *context, const remat_report_options *from, remat_report_options *to)
{
    remat_report_options_init(to);
    return remat_options_copy(context, to, sizeof *to, from, "remat_report_options_init");
}

/* The figures have the names that they have in a plan file. */
static void write_figures(report_document *to, const remat_plan *plan)
{
    const remat_plan_figures *figures = &plan->figures;
    const remat_figures *schedule = &figures->schedule;
    document_open(to, "figures", '{');
    document_number(to, "base_peak_bytes", figures->base_peak_bytes);
    document_number(to, "base_cost", figures->base_cost);
    if (figures->has_budget)
        document_number(to, plan->count == REMAT_COUNT_KEPT ? "kept_budget_bytes" : "budget_bytes",
                        figures->budget_bytes);
    if (!plan->of_model)
        document_number(to, "min_budget_bytes", figures->min_budget_bytes);
    if (figures->feasible) {
        document_number(to, "peak_bytes", schedule->peak_bytes);
        document_number(to, "total_cost", schedule->total_cost);
        if (!plan->of_model)
            document_number(to, "lower_bound_cost", figures->lower_bound_cost);
        document_number(to, "kept_bytes", schedule->kept_bytes);
        document_number(to, "recompute_flops", schedule->recompute_flops);
        document_number(to, "recomputed_layers", schedule->recomputed_layers);
        document_number(to, "steps", schedule->steps);
        if (plan->model_layers) {
            document_number(to, "model_layers", plan->model_layers);
            document_number(to, "recomputed_model_layers", plan->recomputed_model_layers);
        }
    }
    document_close(to, '}');
}

static remat_status write_plan(report_document *to, const remat_plan *plan, bool with_decisions,
                               const remat_report_options *options)
{
    const remat_profile *profile = plan->chain;
    document_text(to, "cost_unit", remat_profile_cost_unit(profile));
    document_bool(to, "feasible", plan->figures.feasible);
    if (with_decisions) {
        document_text(to, "strategy", remat_plan_strategy(plan));
        document_text(to, "method", remat_plan_method(plan));
        document_text(to, "remark", remat_plan_remark(plan));
    }
    write_figures(to, plan);
    if (plan->figures.feasible)
        REMAT_TRY(section_memory(to, plan, options));
    if (options->curve && remat_profile_layer_count(profile) > 0)
        REMAT_TRY(section_curve(to, profile, options));
    section_layers(to, profile, with_decisions && plan->figures.feasible ? plan : NULL);
    return REMAT_OK;
}

static remat_status add(remat_report *report, const char *kind, const char *label, const remat_plan *plan,
                        const remat_report_options *options)
{
    report_document *to = report_begin_file(report, kind, label, remat_profile_name(plan->chain));
    remat_status status = write_plan(to, plan, strcmp(kind, "plan") == 0, options);
    if (status != REMAT_OK && to->status == REMAT_OK)
        to->status = status;
    return report_end_file(report);
}

remat_status remat_report_add_plan(remat_report *report, const char *label, const remat_plan *plan,
                                   const remat_report_options *options)
{
    remat_report_options wanted;
    REMAT_TRY(take_options(plan->context, options, &wanted));
    return add(report, "plan", label, plan, &wanted);
}

/* A profile is shown as the plan that keeps everything, which is what its figures mean before anybody decides. */
remat_status remat_report_add_profile(remat_report *report, const char *label, const remat_profile *profile,
                                      const remat_report_options *options)
{
    remat_context *context = report_context(report);
    remat_report_options wanted;
    REMAT_TRY(take_options(context, options, &wanted));
    remat_plan_options keep_all;
    remat_plan_options_init(&keep_all);
    remat_plan *plan;
    REMAT_TRY(remat_plan_create(context, profile, &keep_all, &plan));
    remat_status status = add(report, "profile", label, plan, &wanted);
    remat_plan_destroy(plan);
    return status;
}
