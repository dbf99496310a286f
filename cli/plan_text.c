#include "plan_text.h"
#include "terminal.h"
#include "shown.h"

#include <string.h>

enum { LAYERS_SHOWN = 40, TENSORS_SHOWN = 6 };

/* ---- colour, only on a terminal ---- */

static const char *paint(const char *code)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = terminal_has_colours();
    return wanted ? code : "";
}

#define BOLD   paint("\033[1m")
#define FAINT  paint("\033[2m")
#define YELLOW paint("\033[33m")
#define PLAIN  paint("\033[0m")

/* ---- the table of layers ---- */

static void print_layer(const remat_profile *profile, const remat_plan *plan, size_t i, int name_width)
{
    const remat_layer *layer = remat_profile_layer(profile, i);
    const remat_mode *keep = remat_layer_mode(layer, REMAT_KEEP);
    char activation[REMAT_SIZE_TEXT], output[REMAT_SIZE_TEXT];
    char forward[REMAT_COUNT_TEXT], backward[REMAT_COUNT_TEXT];
    bool kept = remat_plan_decision(plan, i) != REMAT_NO_SAVE;
    printf("%7zu  %-*.*s  %-9s %11s %11s %15s %15s %8u  %s%s%s\n", i, name_width, name_width, shown(layer->name),
           remat_layer_type_name(layer->type), remat_size_print(keep->activation_bytes, activation),
           remat_size_print(layer->output_bytes, output), remat_count_print(keep->forward_cost, forward),
           remat_count_print(keep->backward_cost, backward), remat_plan_forwards(plan, i), kept ? "" : YELLOW,
           shown(remat_plan_decision_name(plan, i)), kept ? "" : PLAIN);
}

static void print_layers(const remat_profile *profile, const remat_plan *plan, bool all)
{
    size_t n = remat_profile_layer_count(profile), longest = 4;
    bool shorten = !all && n > LAYERS_SHOWN;
    for (size_t i = 0; i < n; i++) {
        if (shorten && i >= LAYERS_SHOWN / 2 && i < n - LAYERS_SHOWN / 2)
            continue;
        size_t length = strlen(shown(remat_profile_layer(profile, i)->name));
        longest = length > longest ? length : longest;
    }
    int width = longest > 32 ? 32 : (int)longest;
    printf("\n%s%7s  %-*s  %-9s %11s %11s %15s %15s %8s  %s%s\n", BOLD, "layer", width, "name", "type", "activation",
           "output", "forward cost", "backward cost", "forwards", "decision", PLAIN);
    for (size_t i = 0; i < n; i++) {
        if (shorten && i == LAYERS_SHOWN / 2) {
            size_t hidden = n - LAYERS_SHOWN;
            printf("%s      …  %zu more layers; --all-layers shows them%s\n", FAINT, hidden, PLAIN);
            i += hidden;
        }
        print_layer(profile, plan, i, width);
    }
    putchar('\n');
}

/* ---- the peak ---- */

/* The largest tensors at the peak, in order of size. */
typedef struct largest {
    remat_live_tensor tensors[TENSORS_SHOWN];
    size_t shown, others;
    uint64_t other_bytes;
} largest;

static void note_tensor(void *user, remat_live_tensor tensor)
{
    largest *list = user;
    size_t at = list->shown;
    if (list->shown == TENSORS_SHOWN) {
        at--;
        bool fits = list->tensors[at].bytes < tensor.bytes;
        list->others++;
        list->other_bytes += fits ? list->tensors[at].bytes : tensor.bytes;
        if (!fits)
            return;
    } else {
        list->shown++;
    }
    for (; at > 0 && list->tensors[at - 1].bytes < tensor.bytes; at--)
        list->tensors[at] = list->tensors[at - 1];
    list->tensors[at] = tensor;
}

static void print_tensor(const remat_profile *profile, remat_live_tensor tensor)
{
    char size[REMAT_SIZE_TEXT];
    uint32_t of = tensor.kind == 's' ? tensor.layer : tensor.layer - 1;
    const char *what = tensor.kind == 's' ? "saved state of" : tensor.kind == 'x' ? "output of" : "gradient from";
    remat_size_print(tensor.bytes, size);
    if (tensor.kind != 's' && tensor.layer == 0)
        printf("          %11s  %c%u  %s\n", size, tensor.kind, tensor.layer,
               tensor.kind == 'x' ? "the input" : "gradient of the input");
    else
        printf("          %11s  %c%u  %s layer %u (%s)\n", size, tensor.kind, tensor.layer, what, of,
               shown(remat_profile_layer(profile, of)->name));
}

typedef struct step_finder {
    uint64_t wanted, at;
    remat_step step;
} step_finder;

static remat_status find_step(void *user, remat_step step)
{
    step_finder *finder = user;
    finder->step = step;
    return finder->at++ == finder->wanted ? REMAT_CHECK_FAILED : REMAT_OK; /* anything but OK ends the walk */
}

static remat_status print_peak(const remat_profile *profile, const remat_plan *plan)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    const remat_figures *schedule = &figures->schedule;
    char size[REMAT_SIZE_TEXT], bytes[REMAT_COUNT_TEXT], text[REMAT_STEP_TEXT];
    printf("%speak%s      %s bytes (%s)", BOLD, PLAIN, remat_count_print(schedule->peak_bytes, bytes),
           remat_size_print(schedule->peak_bytes, size));
    if (schedule->peak_step == REMAT_NOWHERE) {
        printf(": the input alone\n");
        return REMAT_OK;
    }
    step_finder finder = {.wanted = schedule->peak_step};
    remat_plan_walk(plan, find_step, &finder);
    printf(" at step %s of ", remat_count_print(schedule->peak_step, bytes));
    printf("%s, %s, made of\n", remat_count_print(schedule->steps, bytes),
           shown(remat_step_print(profile, finder.step, text)));
    largest list = {.shown = 0};
    remat_status status = remat_plan_peak_live(plan, note_tensor, &list);
    if (status != REMAT_OK)
        return status;
    uint64_t live = list.other_bytes;
    for (size_t i = 0; i < list.shown; i++) {
        print_tensor(profile, list.tensors[i]);
        live += list.tensors[i].bytes;
    }
    if (list.others)
        printf("          %11s  in %zu smaller tensors\n", remat_size_print(list.other_bytes, size), list.others);
    printf("          %11s  output and workspace of the step itself\n",
           remat_size_print(schedule->peak_bytes - live, size));
    return REMAT_OK;
}

/* ---- cost and savings ---- */

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_cost(const remat_profile *profile, const remat_plan_figures *figures)
{
    uint64_t cost = figures->schedule.total_cost, base = figures->base_cost;
    char text[REMAT_COUNT_TEXT];
    const char *unit = remat_profile_cost_unit(profile);
    printf("%scost%s      %s%s%s", BOLD, PLAIN, remat_count_print(cost, text), *unit ? " " : "", shown(unit));
    if (cost >= base)
        printf(", %.1f %% more than keeping everything (%s)\n", percent(cost - base, base),
               remat_count_print(base, text));
    else
        printf(", %.1f %% less than keeping everything (%s)\n", percent(base - cost, base),
               remat_count_print(base, text));
    if (cost == figures->lower_bound_cost)
        printf("          optimal: no legal schedule%s costs less\n", figures->has_budget ? " within the budget" : "");
    else
        printf("          at most %.2f %% above the cheapest: no legal schedule%s costs less than %s\n",
               percent(cost - figures->lower_bound_cost, figures->lower_bound_cost),
               figures->has_budget ? " within the budget" : "", remat_count_print(figures->lower_bound_cost, text));
    if (figures->method_bound_cost && cost > figures->method_bound_cost)
        printf("          at most %.2f %% above the cheapest that the method could have found\n",
               percent(cost - figures->method_bound_cost, figures->method_bound_cost));
    else if (figures->method_bound_cost && cost > figures->lower_bound_cost)
        printf("          the cheapest of all schedules that the method considers\n");
}

static void print_savings(const remat_plan *plan)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    remat_plan_statistics statistics;
    remat_plan_get_statistics(plan, &statistics);
    char size[REMAT_SIZE_TEXT], base[REMAT_SIZE_TEXT], kept[REMAT_SIZE_TEXT];
    printf("%ssaved%s     %s of %s (%.1f %%); ", BOLD, PLAIN, remat_size_print(statistics.peak_reduction_bytes, size),
           remat_size_print(figures->base_peak_bytes, base), statistics.peak_reduction_percent);
    printf("%llu of %llu layers recomputed (%.1f %%), %s kept\n", (unsigned long long)statistics.recomputed_layers,
           (unsigned long long)statistics.layers, statistics.recomputed_percent,
           remat_size_print(figures->schedule.kept_bytes, kept));
    if (remat_plan_remark(plan)[0])
        printf("%snote%s      %s\n", BOLD, PLAIN, shown(remat_plan_remark(plan)));
}

static void print_budget(const remat_plan_figures *figures)
{
    char size[REMAT_SIZE_TEXT], bytes[REMAT_COUNT_TEXT];
    if (!figures->has_budget)
        return;
    printf("%sbudget%s    %s bytes (%s)", BOLD, PLAIN, remat_count_print(figures->budget_bytes, bytes),
           remat_size_print(figures->budget_bytes, size));
    printf(", the least this strategy can meet is %s (%s)\n", remat_count_print(figures->min_budget_bytes, bytes),
           remat_size_print(figures->min_budget_bytes, size));
}

remat_status plan_text_print(const remat_profile *profile, const remat_plan *plan, bool all_layers)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    const char *name = remat_profile_name(profile);
    /* The strategy is called optimal, but the word is printed only where the plan is proven to be. */
    const char *method = remat_plan_method(plan);
    bool says_optimal = !*method || !figures->feasible || figures->schedule.total_cost == figures->lower_bound_cost;
    printf("%s%s%s, %zu layers, %s %s\n", BOLD, *name ? shown(name) : "profile", PLAIN,
           remat_profile_layer_count(profile), says_optimal ? "strategy" : "cheapest found by the method",
           shown(says_optimal ? remat_plan_strategy(plan) : method));
    if (!figures->feasible) {
        print_budget(figures);
        printf("%sfeasible%s  false\n", BOLD, PLAIN);
        return REMAT_OK;
    }
    print_layers(profile, plan, all_layers);
    print_budget(figures);
    remat_status status = print_peak(profile, plan);
    print_cost(profile, figures);
    print_savings(plan);
    return status;
}
