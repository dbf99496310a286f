/* Small random graphs against an exhaustive search over all schedules. */
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_plan.h"
#include "support/random_graph.h"
#include "support/slow_schedules.h"

enum { MOST_MADE = 8 };

typedef struct comparison {
    size_t graphs, cases, optimal, least_exact, tight, above;
    double worst;
} comparison;

static size_t made_count(const remat_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->action_count; i++)
        count += graph->actions[i].once ? 0 : graph->actions[i].write_count;
    return count;
}

static uint64_t plan_cost(fixture *f, const remat_graph *graph, uint64_t budget, uint64_t *least)
{
    graph_plan_options options;
    graph_plan *plan;
    graph_liveness found;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.binds = GRAPH_EXACT;
    options.budget_bytes = budget;
    remat_status status = graph_plan_create(graph, &options, &plan);
    uint64_t cost = UINT64_MAX;
    if (status == REMAT_OK) {
        expect_ok(f, graph_walk(graph, &plan->sequence, GRAPH_EXACT, &found)); /* legal, */
        assert_true(found.peak_bytes <= budget);                               /* and within the budget */
        assert_true(found.cost == plan->cost);
        assert_true(plan->lower_bound_cost <= found.cost && plan->least_bound_bytes <= plan->min_budget_bytes);
        cost = found.cost;
        graph_liveness_release(f->context, &found);
    } else
        expect_status(f, status, REMAT_INFEASIBLE);
    *least = plan->min_budget_bytes;
    graph_plan_destroy(plan);
    return cost;
}

/* The bounds that need no search hold, too. */
static void expect_bounds(fixture *f, const remat_graph *graph, uint64_t budget, uint64_t best, uint64_t lowest,
                          comparison *c)
{
    hold_graph g;
    uint64_t least, bound;
    expect_ok(f, hold_graph_create(graph, GRAPH_EXACT, &g));
    expect_ok(f, graph_bound_cost(&g, UINT64_MAX, &least));
    expect_ok(f, graph_bound_cost(&g, budget, &bound));
    assert_true(bound <= best);
    c->tight += bound == best;
    c->above += bound > least;
    expect_ok(f, graph_bound_peak(&g, &bound));
    assert_true(bound <= lowest);
    enum { BUDGETS = 9 };
    uint64_t budgets[BUDGETS], together[BUDGETS]; /* of which several share what is solved */
    for (uint64_t i = 0; i < BUDGETS; i++)
        budgets[i] = lowest + budget * i / 4;
    expect_ok(f, graph_bound_costs(&g, budgets, BUDGETS, together));
    for (size_t i = 0; i < BUDGETS; i++) {
        expect_ok(f, graph_bound_costs(&g, &budgets[i], 1, &bound));
        assert_true(together[i] == bound);
        expect_ok(f, graph_bound_cost(&g, budgets[i], &bound));
        assert_true(together[i] <= bound);
    }
    hold_graph_release(&g);
}

static void compare(fixture *f, const remat_graph *graph, test_random *random, comparison *c)
{
    graph_sequence plain = {0};
    graph_liveness base;
    uint64_t least = slow_lowest_peak(graph), found;
    expect_ok(f, graph_sequence_plain(graph, &plain));
    expect_ok(f, graph_walk(graph, &plain, GRAPH_EXACT, &base));
    uint64_t most = base.peak_bytes > least ? base.peak_bytes : least;
    graph_liveness_release(f->context, &base);
    graph_sequence_release(f->context, &plain);
    c->graphs++;
    for (int i = 0; i < 4; i++) {
        uint64_t budget = i == 0 ? least : i == 1 ? most : least + test_random_below(random, most - least + 1);
        uint64_t best = slow_cheapest(graph, budget), got = plan_cost(f, graph, budget, &found);
        double ratio = got == best ? 1 : got == UINT64_MAX ? 1e9 : (double)got / ((double)best + 1e-9);
        assert_true(got >= best);
        expect_bounds(f, graph, budget, best, least, c);
        c->cases++;
        c->optimal += got == best;
        c->worst = ratio > c->worst ? ratio : c->worst;
    }
    assert_true(found >= least);
    c->least_exact += found == least;
}

static void as_good_as_trying_everything(void **state)
{
    test_random random = {test_seed()};
    comparison c = {0};
    for (int i = 0; i < LESS_WHEN_SANITIZED(40, 4);) {
        remat_graph *graph = random_graph(*state, &random, &(graph_traits){1, 6, false, i % 2}, NULL);
        if (made_count(graph) <= MOST_MADE && graph->tensor_count <= 60) {
            compare(*state, graph, &random, &c);
            i++;
        }
        graph_destroy(graph);
    }
    print_message(
        "%zu graphs, %zu budgets: optimal %zu, worst %.4f; smallest budget exact %zu; bound tight %zu, useful %zu\n",
        c.graphs, c.cases, c.optimal, c.worst, c.least_exact, c.tight, c.above);
    assert_true((double)c.optimal >= 0.98 * (double)c.cases);
    assert_true(c.worst <= 1.03);
    assert_true((double)c.least_exact >= 0.99 * (double)c.graphs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(as_good_as_trying_everything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
