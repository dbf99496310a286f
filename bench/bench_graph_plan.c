/* Graphs that are hard to plan: the cost of ten budgets beside plain annealing, which gets its seconds for every budget, and
 * beside a greedy planner; then random graphs at half of the peak that keeps everything, beside the greedy planner; then
 * MONeT's networks at the share of memory of its published table.
 *   bench_graph_plan [--quick] [--seconds S] [--at PERCENT] [NAME...]
 * S: seconds of annealing a budget, 20 if not said. PERCENT: only this one of the ten budgets (5, 15 ... 95). NAME: a graph of
 * hard_graphs.h or of held_out_graphs.h; `held-out` for all of those; `random` and `monet` for the last two parts; monet-NAME for the
 * first part with one of its; `large` for the time and the memory that plans of large random graphs take.
 * Costs are in percent above everything kept. A budget that a planner cannot meet has a dash. No schedule costs less than the
 * bound, so that where the plan does not cost more, there is no annealing ("best"). */
#include "hard_graphs.h"
#include "held_out_graphs.h"
#include "measure.h"
#include "monet_graphs.h"
#include "plain_annealing.h"
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_plan.h"

#include <stdlib.h>
#include <string.h>

static graph_plan_curve plan_all(remat_context *context, const remat_graph *graph, double *took)
{
    graph_plan_options options;
    graph_plan_curve curve;
    graph_plan_options_init(&options);
    options.binds = GRAPH_EXACT;
    double start = measure_now();
    measure_must(context, graph_plan_curve_create(graph, &options, &curve));
    *took = measure_now() - start;
    return curve;
}

/* UINT64_MAX where nothing fits. Arenas and costs are those of plans: more bytes, less cost. */
static uint64_t cost_within(const graph_plan_curve *curve, uint64_t budget)
{
    uint64_t best = UINT64_MAX;
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].exact_peak_bytes <= budget && curve->points[i].cost < best)
            best = curve->points[i].cost;
    return best;
}

static void print_cost(uint64_t cost, uint64_t base)
{
    if (cost == UINT64_MAX)
        printf(" %10s", "-");
    else
        printf(" %9.3f%%", 100 * ((double)cost / (double)base - 1));
}

/* Bytes of what is live at the peak that keeps everything and could be made again. */
static uint64_t activation_bytes(const remat_graph *graph)
{
    graph_sequence plain = {0};
    graph_liveness live;
    uint64_t bytes = 0;
    measure_must(graph->context, graph_sequence_plain(graph, &plain));
    measure_must(graph->context, graph_walk(graph, &plain, GRAPH_EXACT, &live));
    for (size_t i = 0; i < live.range_count; i++) {
        const live_range *range = &live.ranges[i];
        if (live_range_counts_from(range) <= live.peak_position && live.peak_position < range->ends &&
            range->tensor != GRAPH_NONE && !graph->tensors[range->tensor].given &&
            !graph->actions[plain.actions[range->born]].once)
            bytes += range->bytes;
    }
    graph_liveness_release(graph->context, &live);
    graph_sequence_release(graph->context, &plain);
    return bytes;
}

/* A part of the activations, and all that is beside them at the peak, such as gradients and data. */
static void print_activations(const char *part, uint64_t budget, const graph_plan_curve *curve, const hold_graph *holds)
{
    const uint64_t base = curve->base_cost, top = curve->base_exact_peak_bytes;
    uint64_t bound;
    measure_must(holds->graph->context, graph_bound_cost(holds, budget, &bound));
    printf("  %s of the activations, and all else: %.1f %% of the peak; plan", part,
           100 * (double)budget / (double)top);
    print_cost(cost_within(curve, budget), base);
    printf(", bound");
    print_cost(bound, base);
    printf("\n");
}

/* What annealing gets. */
typedef struct trial {
    double seconds; /* for each budget */
    uint64_t at;    /* percent: only this budget; 0: all of them */
} trial;

/* Ten budgets from everything kept down; returns at how many the plan is behind. */
static int compare(remat_context *context, const char *name, const trial *how)
{
    remat_graph *graph = hard_graph(context, name);
    const bool is_monet = strncmp(name, "monet-", 6) == 0;
    if (!graph)
        graph = held_out_graph(context, name);
    for (size_t i = 0; is_monet && monet_list(i); i++)
        if (strcmp(name + 6, monet_list(i)->name) == 0)
            graph = monet_graph(context, monet_list(i), true);
    if (!graph) {
        fprintf(stderr, "there is no graph '%s'\n", name);
        exit(2);
    }
    double took;
    graph_plan_curve curve = plan_all(context, graph, &took);
    uint64_t top = curve.base_exact_peak_bytes, base = curve.base_cost;
    int behind = 0;
    hold_graph holds;
    uint64_t least;
    measure_must(context, hold_graph_create(graph, GRAPH_EXACT, &holds));
    measure_must(context, graph_bound_peak(&holds, &least));
    printf("%s: %zu actions, peak %llu, smallest found %llu (%.1f %%), none below %llu (%.1f %%), planned in %.2f s\n",
           name, remat_graph_action_count(graph), (unsigned long long)top,
           (unsigned long long)curve.points[0].exact_peak_bytes,
           100 * (double)curve.points[0].exact_peak_bytes / (double)top, (unsigned long long)least,
           100 * (double)least / (double)top, took);
    printf("    budget       plan  annealing     greedy      bound\n");
    for (uint64_t i = 10; i-- > 0;) {
        uint64_t budget = top / 20 * (2 * i + 1), plan = cost_within(&curve, budget);
        uint64_t greedy, annealed = UINT64_MAX, bound;
        if (how->at && how->at != 5 * (2 * i + 1))
            continue;
        greedy = plain_greedy(graph, budget);
        measure_must(context, graph_bound_cost(&holds, budget, &bound));
        printf("  %6.0f %% ", 5.0 * (double)(2 * i + 1));
        print_cost(plan, base);
        if (budget < least)
            print_cost(annealed, base); /* nothing fits, proven */
        else if (plan > bound)
            print_cost(annealed = plain_annealing(graph, budget, how->seconds, 1), base);
        else
            printf(" %10s", "best");
        print_cost(greedy, base);
        print_cost(bound, base);
        printf("%s\n", plan > annealed || plan > greedy ? "  behind" : "");
        fflush(stdout);
        behind += plan > annealed || plan > greedy;
        if (plan == UINT64_MAX && annealed == UINT64_MAX)
            break;
    }
    const uint64_t activations = activation_bytes(graph);
    print_activations("half", top - activations / 2, &curve, &holds);
    print_activations("a quarter", top - activations / 4 * 3, &curve, &holds);
    hold_graph_release(&holds);
    graph_plan_curve_release(&curve);
    remat_graph_destroy(graph);
    return behind;
}

/* All that the search was not tuned with. */
static int compare_held_out(remat_context *context, const trial *how)
{
    int behind = 0;
    for (size_t i = 0; held_out_graph_name(i); i++)
        behind += compare(context, held_out_graph_name(i), how);
    return behind;
}

static remat_status plain_peak(const remat_graph *graph, uint64_t *bytes)
{
    graph_sequence plain = {0};
    remat_status status = graph_sequence_plain(graph, &plain);
    if (status == REMAT_OK)
        status = graph_walk_peak(graph, &plain, GRAPH_EXACT, bytes);
    graph_sequence_release(graph->context, &plain);
    return status;
}

/* Not feasible where nothing fits. */
static graph_plan *plan_at_half(remat_context *context, const remat_graph *graph, uint64_t *budget)
{
    graph_plan_options options;
    graph_plan *made;
    graph_plan_options_init(&options);
    options.binds = GRAPH_EXACT;
    measure_must(context, plain_peak(graph, budget));
    options.budget_bytes = *budget /= 2;
    const remat_status status = graph_plan_create(graph, &options, &made);
    if (status != REMAT_INFEASIBLE)
        measure_must(context, status);
    return made;
}

/* Half of the peak: recomputation of the plan and of the greedy planner, over all graphs that it can plan. */
static int compare_random(remat_context *context, int graphs)
{
    static const size_t sizes[] = {50, 100, 200, 500, 1000, 2000};
    double ratios = 0;
    int behind = 0, compared = 0;
    printf("random graphs at half of the peak\n   actions       plan     greedy\n");
    for (int i = 0; i < graphs; i++) {
        remat_graph *graph = hard_graph_random(context, sizes[i % 6], (uint64_t)i + 1);
        uint64_t budget;
        graph_plan *made = plan_at_half(context, graph, &budget);
        const uint64_t base = made->base_cost, greedy = plain_greedy(graph, budget);
        const uint64_t plan = made->feasible ? made->cost : UINT64_MAX;
        printf("  %8zu ", remat_graph_action_count(graph));
        print_cost(plan, base);
        print_cost(greedy, base);
        printf("%s\n", plan > greedy ? "  behind" : "");
        fflush(stdout);
        behind += plan > greedy;
        if (greedy != UINT64_MAX && greedy > base) {
            ratios += ((double)plan - (double)base) / ((double)greedy - (double)base);
            compared++;
        }
        graph_plan_destroy(made);
        remat_graph_destroy(graph);
    }
    if (compared)
        printf("recomputation: %.1f %% of the greedy planner's on average, over %d graphs\n", 100 * ratios / compared,
               compared);
    return behind;
}

/* What it takes to plan large graphs at half of their peak. The memory is the most since the program began. */
static int plan_large(remat_context *context)
{
    static const size_t sizes[] = {2500, 20000};
    printf("   actions  planned in     memory      plan      bound\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        remat_graph *graph = hard_graph_random(context, sizes[i], 1);
        uint64_t budget;
        const double start = measure_now();
        graph_plan *made = plan_at_half(context, graph, &budget);
        printf("  %8zu %9.1f s %6.0f MiB", remat_graph_action_count(graph), measure_now() - start,
               (double)measure_peak_resident() / (1 << 20));
        print_cost(made->cost, made->base_cost);
        print_cost(made->lower_bound_cost, made->base_cost);
        printf("\n");
        fflush(stdout);
        graph_plan_destroy(made);
        remat_graph_destroy(graph);
    }
    return 0;
}

/* The published sizes are in GiB, and those of a GPU: with the workspaces of convolutions, which are not counted here. So there are two
 * figures: within as many bytes, and within the same share of the memory that PyTorch takes in this model of the network. */
static int compare_monet(remat_context *context)
{
    const double gib = 1 << 30;
    int behind = 0;
    printf("MONeT's networks; sizes in GiB; bound: what no schedule within the published size does without\n");
    printf("             PyTorch  published  allowed  smallest      bound       plan  published  same share   planned "
           "in\n");
    for (size_t i = 0; monet_list(i); i++) {
        const monet_case *now = monet_list(i);
        uint64_t top, bound;
        double took;
        hold_graph holds;
        remat_graph *usual = monet_graph(context, now, false), *graph = monet_graph(context, now, true);
        measure_must(context, plain_peak(usual, &top));
        remat_graph_destroy(usual);
        graph_plan_curve curve = plan_all(context, graph, &took);
        const uint64_t budget = (uint64_t)(now->less * gib), base = curve.base_cost;
        const uint64_t cost = cost_within(&curve, budget);
        const bool is_behind = (double)cost > (double)base * (1 + now->overhead / 100);
        measure_must(context, hold_graph_create(graph, GRAPH_EXACT, &holds));
        measure_must(context, graph_bound_cost(&holds, budget, &bound));
        hold_graph_release(&holds);
        printf("  %-10s %7.2f %10.2f %8.2f %9.2f", now->name, (double)top / gib, now->full, now->less,
               (double)curve.points[0].exact_peak_bytes / gib);
        print_cost(bound, base);
        print_cost(cost, base);
        printf(" %9.2f%%", now->overhead);
        print_cost(cost_within(&curve, (uint64_t)(now->less / now->full * (double)top)), base);
        printf(" %10.2f s%s\n", took, is_behind ? "  behind" : "");
        fflush(stdout);
        behind += is_behind;
        graph_plan_curve_release(&curve);
        remat_graph_destroy(graph);
    }
    return behind;
}

int main(int argc, char **argv)
{
    remat_context *context;
    trial how = {.seconds = 20};
    bool quick = false, named = false;
    int behind = 0;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            how.seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--at") == 0 && i + 1 < argc)
            how.at = (uint64_t)atoi(argv[++i]);
        else {
            behind += strcmp(argv[i], "monet") == 0      ? compare_monet(context)
                      : strcmp(argv[i], "random") == 0   ? compare_random(context, 60)
                      : strcmp(argv[i], "large") == 0    ? plan_large(context)
                      : strcmp(argv[i], "held-out") == 0 ? compare_held_out(context, &how)
                                                         : compare(context, argv[i], &how);
            named = true;
        }
    }
    how.seconds = quick ? 0.1 : how.seconds;
    for (size_t i = 0; !named && hard_graph_name(i) && (!quick || i == 0); i++)
        behind += compare(context, hard_graph_name(i), &how);
    if (!named)
        behind += compare_random(context, quick ? 3 : 60);
    if (!named && !quick)
        behind += compare_monet(context);
    printf("behind in %d cases\n", behind);
    remat_context_destroy(context);
    return 0;
}
