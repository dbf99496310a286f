/* More budget is never dearer: random graphs, planned anew at random budgets, with peaks and with arenas as what is limited.
 * REMAT_SWEEPS=1000 makes as many sweeps; make check-long does. */
#include <stdlib.h>

#include "plan/graph/graph_plan.h"
#include "support/random_graph.h"

enum { BUDGETS = 8 };

typedef struct planned {
    uint64_t budget, cost;
} planned;

static int by_budget(const void *a, const void *b)
{
    const planned *x = a, *y = b;
    return x->budget < y->budget ? -1 : x->budget > y->budget;
}

static graph_plan *plan_within(fixture *f, const remat_graph *graph, graph_counting binds, uint64_t budget)
{
    graph_plan_options options;
    graph_plan *plan;
    graph_plan_options_init(&options);
    options.effort = 5; /* enough for a test */
    options.binds = binds;
    options.budget_bytes = budget;
    remat_status status = graph_plan_create(graph, &options, &plan);
    if (status != REMAT_INFEASIBLE)
        expect_ok(f, status);
    return plan;
}

/* Legal, and within the budget. */
static uint64_t cost_within(fixture *f, const remat_graph *graph, graph_counting binds, uint64_t budget)
{
    graph_plan *plan = plan_within(f, graph, binds, budget);
    graph_liveness found;
    assert_true(plan->feasible);
    expect_ok(f, graph_walk(graph, &plan->sequence, GRAPH_EXACT, &found));
    assert_true(found.cost == plan->cost);
    assert_true((binds == GRAPH_EXACT ? found.peak_bytes : plan->arena_bytes) <= budget);
    const uint64_t cost = plan->cost;
    graph_liveness_release(f->context, &found);
    graph_plan_destroy(plan);
    return cost;
}

static void sweep(fixture *f, const remat_graph *graph, graph_counting binds, test_random *random)
{
    graph_plan *plan = plan_within(f, graph, binds, REMAT_NO_BUDGET);
    const uint64_t least = plan->min_budget_bytes;
    const uint64_t most = binds == GRAPH_EXACT ? plan->exact_peak_bytes : plan->arena_bytes;
    planned all[BUDGETS];
    graph_plan_destroy(plan);
    for (size_t i = 0; i < BUDGETS; i++) {
        const uint64_t above = i ? test_random_below(random, most - least + 2) : 0;
        all[i] = (planned){least + above, cost_within(f, graph, binds, least + above)};
    }
    qsort(all, BUDGETS, sizeof *all, by_budget);
    for (size_t i = 1; i < BUDGETS; i++)
        if (all[i].cost > all[i - 1].cost)
            fail_msg("%llu bytes cost %llu, and %llu bytes %llu", (unsigned long long)all[i - 1].budget,
                     (unsigned long long)all[i - 1].cost, (unsigned long long)all[i].budget,
                     (unsigned long long)all[i].cost);
    plan = plan_within(f, graph, binds, least - 1);
    assert_false(plan->feasible);
    graph_plan_destroy(plan);
}

static void more_is_never_dearer(void **state)
{
    const char *wanted = getenv("REMAT_SWEEPS");
    const int sweeps = wanted ? atoi(wanted) : LESS_WHEN_SANITIZED(24, 4);
    test_random random = {test_seed()};
    for (int i = 0; i < sweeps; i++) {
        const graph_traits traits = {1, i % 3 ? 12 : 40, i % 5 == 4, i % 2};
        remat_graph *graph = random_graph(*state, &random, &traits, NULL);
        sweep(*state, graph, i % 4 ? GRAPH_EXACT : GRAPH_PLACED, &random);
        graph_destroy(graph);
    }
    print_message("%d sweeps of %d budgets\n", sweeps, BUDGETS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(more_is_never_dearer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
