#include "graph_plan_text.h"
#include "graph_file.h"
#include "plot.h"
#include "shown.h"
#include "waiting.h"

#include <string.h>

enum { ROWS_SHOWN = 40, LONGEST_NAME = 32 };

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* ---- for people ---- */

static uint64_t written_bytes(const remat_graph *graph, const remat_graph_action *action)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < action->write_count; i++) {
        remat_graph_tensor tensor;
        if (remat_graph_get_tensor(graph, action->writes[i], &tensor) == REMAT_OK)
            bytes += tensor.bytes;
    }
    return bytes;
}

/* The actions that may run again: all others run once in any plan. */
static void print_actions(const remat_graph *graph, const remat_graph_plan *plan, bool all)
{
    size_t count = 0, row = 0;
    const size_t actions = remat_graph_action_count(graph);
    remat_graph_action action;
    for (size_t i = 0; i < actions; i++)
        count += remat_graph_get_action(graph, i, &action) == REMAT_OK && !action.once;
    if (count == 0)
        return;
    printf("\n%8s  %-*s %11s %17s %6s  %s\n", "action", LONGEST_NAME, "name", "writes", "cost", "runs", "decision");
    for (size_t i = 0; i < actions; i++) {
        remat_graph_get_action(graph, i, &action);
        if (action.once)
            continue;
        const size_t at = row++;
        if (!all && count > ROWS_SHOWN && at >= ROWS_SHOWN / 2 && at < count - ROWS_SHOWN / 2) {
            if (at == ROWS_SHOWN / 2)
                printf("          %zu more actions; --all-layers shows them\n", count - ROWS_SHOWN);
            continue;
        }
        char size[REMAT_SIZE_TEXT], cost[REMAT_COUNT_TEXT];
        const uint32_t runs = remat_graph_plan_runs(plan, (uint32_t)i);
        printf("%8zu  %-*.*s %11s %17s %6u  %s\n", i, LONGEST_NAME, LONGEST_NAME,
               graph_action_shown(graph, (uint32_t)i), remat_size_print(written_bytes(graph, &action), size),
               remat_count_print(action.cost, cost), runs,
               runs > 1    ? "recompute"
               : runs == 1 ? "keep"
                           : "leave out");
    }
}

static void print_cost(const remat_graph *graph, const remat_graph_plan_figures *figures)
{
    char cost[REMAT_COUNT_TEXT], other[REMAT_COUNT_TEXT];
    const char *unit = remat_graph_cost_unit(graph), *within = figures->has_budget ? " within the budget" : "";
    printf("cost      %s%s%s, %.1f %% %s than keeping everything (%s)\n", remat_count_print(figures->total_cost, cost),
           unit && *unit ? " " : "", unit ? shown(unit) : "",
           figures->total_cost >= figures->base_cost
               ? percent(figures->total_cost - figures->base_cost, figures->base_cost)
               : percent(figures->base_cost - figures->total_cost, figures->base_cost),
           figures->total_cost >= figures->base_cost ? "more" : "less", remat_count_print(figures->base_cost, other));
    if (figures->total_cost == figures->lower_bound_cost)
        printf("          optimal: no legal schedule%s costs less\n", within);
    else if (figures->lower_bound_cost == 0)
        printf("          no bound is known for the cheapest schedule%s: nothing has to run\n", within);
    else
        printf("          at most %.2f %% above the cheapest: no legal schedule%s costs less than %s\n",
               percent(figures->total_cost - figures->lower_bound_cost, figures->lower_bound_cost), within,
               remat_count_print(figures->lower_bound_cost, other));
}

static void print_bytes(const char *what, uint64_t bytes, const char *more)
{
    char exact[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
    printf("%-9s %s bytes (%s)%s\n", what, remat_count_print(bytes, exact), remat_size_print(bytes, size), more);
}

/* The same for a budget that is enough: the short form is no less. */
static void print_enough(const char *what, uint64_t bytes, const char *more)
{
    char exact[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
    printf("%-9s %s bytes (%s)%s\n", what, remat_count_print(bytes, exact), remat_size_print_up(bytes, size), more);
}

static void print_ends(const remat_graph_plan_figures *figures)
{
    print_enough("smallest", figures->min_budget_bytes,
                 figures->min_budget_bytes == figures->min_budget_bound_bytes ? ", proven: no schedule needs less"
                                                                              : ": the smallest budget that was found");
    if (figures->min_budget_bytes != figures->min_budget_bound_bytes)
        print_bytes("bound", figures->min_budget_bound_bytes, ": proven, no schedule needs less");
}

static void print_text(const remat_graph *graph, const remat_graph_plan *plan, const graph_plan_request *request)
{
    remat_graph_plan_figures figures;
    char bytes[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
    remat_graph_plan_get_figures(plan, &figures);
    graph_file_title(stdout, graph);
    /* The strategy is called optimal, but the word is printed only where the plan is proven to be. */
    const bool proven = !figures.feasible || figures.total_cost == figures.lower_bound_cost ||
                        strcmp(remat_graph_plan_strategy(plan), "optimal") != 0;
    printf(proven ? ", strategy %s\n" : ", the cheapest plan that was found\n", shown(remat_graph_plan_strategy(plan)));
    if (!figures.feasible) {
        print_bytes("budget", figures.budget_bytes, "");
        printf("feasible  false\n");
        print_ends(&figures);
        return;
    }
    print_actions(graph, plan, request->all_rows);
    putchar('\n');
    size_t count;
    const uint32_t *schedule = remat_graph_plan_schedule(plan, &count);
    printf("peak      %s bytes (%s)", remat_count_print(figures.peak_bytes, bytes),
           remat_size_print(figures.peak_bytes, size));
    if (count)
        printf(" where %s runs, %.1f %% of keeping everything",
               graph_action_shown(graph, schedule[figures.peak_position]),
               figures.base_peak_bytes ? percent(figures.peak_bytes, figures.base_peak_bytes) : 100.0);
    putchar('\n');
    print_cost(graph, &figures);
    print_bytes("arena", figures.arena_bytes, ", without given tensors, in steps of 64");
    if (figures.has_budget)
        print_bytes("budget", figures.budget_bytes, "");
    if (figures.has_budget)
        print_ends(&figures);
    if (remat_graph_plan_remark(plan)[0])
        printf("note      %s\n", shown(remat_graph_plan_remark(plan)));
    if (request->plot)
        plot_graph_memory(graph, plan);
}

/* ---- planning ---- */

static remat_status show(const remat_graph *graph, const remat_graph_plan *plan, const graph_plan_request *request)
{
    remat_status status = request->output ? remat_graph_plan_save(plan, request->output) : REMAT_OK;
    if (status != REMAT_OK)
        return status;
    if (request->json)
        return remat_graph_plan_write(plan, stdout, !request->no_schedule);
    print_text(graph, plan, request);
    return REMAT_OK;
}

int graph_plan_show(remat_context *context, const remat_graph *graph, const graph_plan_request *request)
{
    remat_graph_plan *plan = NULL;
    remat_status status = request->graph_output ? remat_graph_save(graph, request->graph_output) : REMAT_OK;
    if (status == REMAT_OK) {
        waiting_for("planning");
        status = remat_graph_plan_create(graph, &request->options, &plan);
        waiting_end();
    }
    int code = status == REMAT_OK ? 0 : command_fail(context, status);
    if (plan) {
        status = show(graph, plan, request);
        if (status != REMAT_OK)
            code = command_fail(context, status);
    }
    remat_graph_plan_destroy(plan);
    return code;
}

/* ---- does it fit ---- */

static void print_fit(const remat_graph *graph, const remat_graph_plan_figures *figures, bool limited, bool fits)
{
    char size[REMAT_SIZE_TEXT];
    graph_file_title(stdout, graph);
    if (limited)
        printf(fits ? ": fits into %s\n" : ": no schedule was found that fits into %s\n",
               remat_size_print(figures->budget_bytes, size));
    else
        printf(": without a budget\n");
    putchar('\n');
    print_enough("keep all", figures->base_peak_bytes, ": nothing is recomputed from here on");
    print_ends(figures);
    if (limited && fits) {
        print_bytes("peak", figures->peak_bytes, " within the budget");
        print_cost(graph, figures);
    }
}

static void print_fit_json(const remat_graph_plan_figures *figures, bool limited, bool fits)
{
    printf("{\"format\": \"remat-fit\", \"version\": 1, \"fits\": %s", fits ? "true" : "false");
    if (limited)
        printf(", \"budget_bytes\": %llu", (unsigned long long)figures->budget_bytes);
    printf(",\n  \"min_budget_bytes\": %llu, \"min_budget_bound_bytes\": %llu, \"keep_all_bytes\": %llu, "
           "\"keep_all_cost\": %llu",
           (unsigned long long)figures->min_budget_bytes, (unsigned long long)figures->min_budget_bound_bytes,
           (unsigned long long)figures->base_peak_bytes, (unsigned long long)figures->base_cost);
    if (limited && fits)
        printf(",\n  \"plan\": {\"peak_bytes\": %llu, \"arena_bytes\": %llu, \"total_cost\": %llu, "
               "\"lower_bound_cost\": %llu}",
               (unsigned long long)figures->peak_bytes, (unsigned long long)figures->arena_bytes,
               (unsigned long long)figures->total_cost, (unsigned long long)figures->lower_bound_cost);
    puts("}");
}

int graph_fit_show(remat_context *context, const remat_graph *graph, const remat_graph_plan_options *options, bool json)
{
    const bool limited = options->budget_bytes != REMAT_NO_BUDGET;
    remat_graph_plan_options wanted = *options;
    remat_graph_plan_figures figures;
    remat_graph_plan *plan;
    if (!wanted.strategy)
        wanted.strategy = "optimal"; /* which also finds the smallest budget */
    waiting_for("planning");
    remat_status status = remat_graph_plan_create(graph, &wanted, &plan);
    waiting_end();
    if (status != REMAT_OK)
        command_fail(context, status);
    if (plan) {
        remat_graph_plan_get_figures(plan, &figures);
        if (json)
            print_fit_json(&figures, limited, figures.feasible);
        else
            print_fit(graph, &figures, limited, figures.feasible);
    }
    remat_graph_plan_destroy(plan);
    return (int)status;
}
