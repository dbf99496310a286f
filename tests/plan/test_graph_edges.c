/* Corners of the graph planner: graphs of nothing, huge costs, little memory, long curves. */
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_search.h"

#include "support/random_graph.h"

/* More states than the exact search takes, and no chain: every layer reads two others. */
static remat_graph *crossed_graph(fixture *f, uint32_t layers, uint64_t cost)
{
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = 100, .given = true}));
    for (uint32_t i = 1; i <= 2 * layers; i++)
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = 64 + i * 37 % 101}));
    for (uint32_t i = 1; i <= 2 * layers; i++) {
        const bool backward = i > layers;
        const uint32_t mirrored = 2 * layers - i, reads[] = {i - 1, backward ? mirrored : i / 3}, *all = reads;
        const graph_action action = {
            .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE, .once = backward, .cost = cost + i};
        const graph_links links = {all, NULL, &i, reads[0] == reads[1] ? 1 : 2, 0, 1};
        expect_ok(f, graph_add_action(graph, &action, &links));
    }
    expect_ok(f, graph_add_result(graph, 2 * layers));
    return graph;
}

static graph_plan_options exact_options(void)
{
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 1;
    options.threads = 1;
    options.binds = GRAPH_EXACT;
    return options;
}

static void nothing_to_run_is_planned(void **state)
{
    fixture *f = *state;
    for (int with_tensor = 0; with_tensor < 2; with_tensor++) {
        graph_plan_options options = exact_options();
        remat_graph *graph;
        graph_plan *plan;
        expect_ok(f, graph_create(f->context, &graph));
        if (with_tensor)
            expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = 10, .given = true}));
        expect_ok(f, graph_plan_create(graph, &options, &plan));
        assert_true(plan->feasible);
        assert_int_equal(plan->sequence.count, 0);
        assert_int_equal(plan->cost, 0);
        assert_int_equal(plan->exact_peak_bytes, 0);
        assert_int_equal(plan->lower_bound_cost, 0);
        graph_plan_destroy(plan);
        graph_destroy(graph);
    }
}

/* Thinned to three, the curve still has both its ends. */
static void long_curves_are_thinned(void **state)
{
    fixture *f = *state;
    graph_plan_options options = exact_options();
    remat_graph *graph = crossed_graph(f, 24, 10);
    hold_graph g;
    graph_search search;
    expect_ok(f, hold_graph_create(graph, GRAPH_EXACT, &g));
    expect_ok(f, graph_search_begin(&g, &options, true, &search));
    graph_curve *curve = &search.curve;
    size_t whole = 0, chained = 0;
    for (size_t i = 0; i < curve->count; i++)
        curve->points[i].pieces ? chained++ : whole++;
    assert_true(whole > 3);
    const uint64_t most = curve->points[0].peak_bytes, least = curve->points[curve->count - 1].peak_bytes;
    graph_curve_thin(curve, whole);
    assert_int_equal(curve->count, whole + chained);
    graph_curve_thin(curve, 3);
    assert_int_equal(curve->count, 3 + chained);
    assert_int_equal(curve->points[0].peak_bytes, most);
    assert_int_equal(curve->points[curve->count - 1].peak_bytes, least);
    graph_search_release(&search);
    hold_graph_release(&g);
    graph_destroy(graph);
}

/* Costs near 2^58: sums stay below 2^63, and prices have no room. The bound is the plain one then. */
static void huge_costs_are_bounded(void **state)
{
    fixture *f = *state;
    const uint64_t costs[] = {1, (uint64_t)1 << 56};
    for (int i = 0; i < 2; i++) {
        graph_plan_options options = exact_options();
        remat_graph *graph = crossed_graph(f, 24, costs[i]);
        graph_plan *plan;
        expect_ok(f, graph_plan_create(graph, &options, &plan));
        options.budget_bytes = plan->min_budget_bytes;
        const uint64_t base = plan->base_cost;
        assert_int_equal(plan->lower_bound_cost, base);
        graph_plan_destroy(plan);
        expect_ok(f, graph_plan_create(graph, &options, &plan));
        assert_true(plan->exact_peak_bytes <= options.budget_bytes && plan->cost >= base);
        assert_true(plan->lower_bound_cost >= base && plan->lower_bound_cost <= plan->cost);
        graph_plan_destroy(plan);
        graph_destroy(graph);
    }
}

/* Every allocation of a search fails in turn; those of the first runs all, of the later ones some. */
static void no_memory_is_survived(void **state)
{
    fixture *f = *state;
    graph_plan_options options = exact_options();
    remat_graph *graph = crossed_graph(f, 24, 10);
    const uint64_t held = f->memory.bytes;
    graph_plan *plan = NULL;
    remat_status status = REMAT_NO_MEMORY;
    options.budget_bytes = 4000;
    for (uint64_t fail = 1; status != REMAT_OK; fail += 1 + fail / LESS_WHEN_SANITIZED(24, 6)) {
        f->memory.calls = 0;
        f->memory.fail_at = fail;
        status = graph_plan_create(graph, &options, &plan);
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
        if (status == REMAT_OK)
            break;
        assert_null(plan);
        assert_int_equal(f->memory.bytes, held);
    }
    f->memory.fail_at = 0;
    graph_plan_destroy(plan);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(nothing_to_run_is_planned),
        FIXTURE_TEST(long_curves_are_thinned),
        FIXTURE_TEST(huge_costs_are_bounded),
        FIXTURE_TEST(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
