/* Small random graphs against an exhaustive search over all schedules. */
#include "graph/graph_values.h"
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

/* ---- odd graphs ---- */

static uint32_t odd_tensor(fixture *f, remat_graph *graph, uint64_t bytes, bool given)
{
    expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = bytes, .given = given}));
    return (uint32_t)graph->tensor_count - 1;
}

static void odd_action(fixture *f, remat_graph *graph, test_random *random, bool once, const graph_links *links)
{
    const graph_action action = {.in_place_from = GRAPH_NONE,
                                 .in_place_to = GRAPH_NONE,
                                 .once = once,
                                 .cost = test_random_below(random, 7),
                                 .workspace_bytes = test_random_below(random, 2) * test_random_below(random, 9)};
    expect_ok(f, graph_add_action(graph, &action, links));
}

/* A few actions with one or two outputs each, and then `once` actions that read some of them, and update a weight or an output. Some
 * outputs have a second writer, some are results, some are needed by nobody, and in some graphs nothing has to run. */
static remat_graph *odd_graph(fixture *f, test_random *random)
{
    enum { MOST_OUTPUTS = 6 };
    remat_graph *graph;
    uint32_t outputs[MOST_OUTPUTS], count = 0;
    expect_ok(f, graph_create(f->context, &graph));
    const uint32_t weight = odd_tensor(f, graph, test_random_below(random, 4), true);
    const bool is_idle = test_random_below(random, 16) == 0;
    for (uint64_t i = 2 + test_random_below(random, 2); i > 0; i--) {
        const uint32_t reads[] = {weight, count ? outputs[count - 1] : weight};
        const uint32_t made = 1 + (uint32_t)test_random_below(random, 2), first = count;
        for (uint32_t k = 0; k < made; k++)
            outputs[count++] = odd_tensor(f, graph, test_random_below(random, 8), false);
        const size_t skipped = test_random_below(random, 2);
        odd_action(f, graph, random, !is_idle && test_random_below(random, 3) == 0,
                   &(graph_links){reads + skipped, NULL, outputs + first, first ? 2 - skipped : 1 - skipped, 0, made});
    }
    for (uint64_t i = 2 + test_random_below(random, 3); i > 0; i--) {
        const uint32_t read = outputs[test_random_below(random, count)], made = odd_tensor(f, graph, 2, false);
        const uint32_t updated = test_random_below(random, 2) ? weight : outputs[test_random_below(random, count)];
        odd_action(f, graph, random, !is_idle && test_random_below(random, 8) > 0,
                   &(graph_links){&read, NULL, &made, 1, 0, 1});
        if (!is_idle && test_random_below(random, 3) == 0)
            odd_action(f, graph, random, true, &(graph_links){&read, &updated, NULL, 1, 1, 0});
    }
    if (test_random_below(random, 2))
        odd_action(f, graph, random, false,
                   &(graph_links){NULL, NULL, &outputs[test_random_below(random, count)], 0, 0, 1});
    if (!is_idle && test_random_below(random, 3) == 0)
        expect_ok(f, graph_add_result(graph, outputs[test_random_below(random, count)]));
    return graph;
}

static void compare_odd(fixture *f, const remat_graph *graph, size_t *recomputing)
{
    const uint64_t lowest = slow_lowest_peak(graph);
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 1;
    options.binds = GRAPH_EXACT;
    for (uint64_t budget = lowest; budget < lowest + 24; budget += 3) {
        graph_plan *plan;
        options.budget_bytes = budget;
        const remat_status status = graph_plan_create(graph, &options, &plan);
        assert_true(plan->least_bound_bytes <= lowest);
        if (status == REMAT_OK) {
            assert_true(plan->exact_peak_bytes <= budget && plan->cost >= slow_cheapest(graph, budget));
            assert_true(plan->lower_bound_cost <= slow_cheapest(graph, budget));
            expect_ok(f, graph_values_check(graph, &plan->sequence, REMAT_CHECK_FAILED));
            *recomputing += plan->sequence.count > graph->action_count;
        } else {
            expect_status(f, status, REMAT_INFEASIBLE);
            assert_true(plan->min_budget_bytes > budget);
        }
        graph_plan_destroy(plan);
    }
}

/* Where the order of a graph says what a value is, plans may be dearer than the cheapest legal schedule. What they claim is true. */
static void claims_hold_on_odd_graphs(void **state)
{
    test_random random = {test_seed()};
    size_t recomputing = 0;
    for (int i = 0; i < LESS_WHEN_SANITIZED(1000, 100); i++) {
        remat_graph *graph = odd_graph(*state, &random);
        compare_odd(*state, graph, &recomputing);
        graph_destroy(graph);
    }
    assert_true(recomputing > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(as_good_as_trying_everything),
                                       FIXTURE_TEST(claims_hold_on_odd_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
