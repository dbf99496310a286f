/* Budgets that bind the exact peak, and the bounds that a plan of a graph states. */
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_plan.h"

#include "support/random_graph.h"
#include "support/slow_graph.h"

static const graph_traits small = {1, 9, false, false};

static void expect_within(fixture *f, const remat_graph *graph, graph_plan_options *options, uint64_t *cost)
{
    graph_plan *plan;
    expect_ok(f, graph_plan_create(graph, options, &plan));
    slow_walk walk = graph_slow_walk(graph, plan->sequence.actions, plan->sequence.count, 1, true);
    assert_true(walk.legal);
    assert_int_equal(walk.peak, plan->exact_peak_bytes);
    assert_int_equal(walk.cost, plan->cost);
    assert_true(walk.peak <= options->budget_bytes);
    assert_true(plan->min_budget_bytes <= walk.peak);
    assert_true(plan->least_bound_bytes <= plan->min_budget_bytes);
    assert_true(plan->lower_bound_cost <= plan->cost);
    assert_true(plan->cost <= *cost);
    *cost = plan->cost;
    graph_plan_destroy(plan);
}

static void exact_peaks_bind(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(6, 1); i++) {
        graph_plan_options options;
        graph_plan *plan;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        options.threads = 1;
        options.binds = GRAPH_EXACT;
        remat_graph *graph = random_graph(f, &random, &small, NULL);
        expect_ok(f, graph_plan_create(graph, &options, &plan));
        uint64_t least = plan->min_budget_bytes, most = plan->exact_base_peak_bytes, cost = UINT64_MAX;
        assert_true(plan->cost <= plan->base_cost); /* what nobody needs does not run */
        graph_plan_destroy(plan);
        for (uint64_t k = 0; k <= 4; k++) {
            options.budget_bytes = least + (most > least ? (most - least) * k / 4 : 0);
            expect_within(f, graph, &options, &cost);
        }
        if (least > 0) {
            options.budget_bytes = least - 1;
            expect_status(f, graph_plan_create(graph, &options, &plan), REMAT_INFEASIBLE);
            assert_int_equal(plan->min_budget_bytes, least);
            graph_plan_destroy(plan);
        }
        graph_destroy(graph);
    }
}

static void exact_curve_falls(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(4, 1); i++) {
        graph_plan_options options;
        graph_plan_curve curve;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        options.threads = 1;
        options.binds = GRAPH_EXACT;
        remat_graph *graph = random_graph(f, &random, &small, NULL);
        expect_ok(f, graph_plan_curve_create(graph, &options, &curve));
        assert_true(curve.count > 0 && curve.base_exact_peak_bytes > 0);
        for (size_t k = 0; k < curve.count; k++) {
            assert_true(k == 0 || (curve.points[k].exact_peak_bytes > curve.points[k - 1].exact_peak_bytes &&
                                   curve.points[k].cost < curve.points[k - 1].cost));
            /* Up to the next point, no plan costs less. */
            options.budget_bytes =
                k + 1 < curve.count ? curve.points[k + 1].exact_peak_bytes - 1 : curve.points[k].exact_peak_bytes;
            uint64_t cost = UINT64_MAX;
            if (k % 8 == 0) {
                expect_within(f, graph, &options, &cost);
                assert_int_equal(cost, curve.points[k].cost);
            }
        }
        graph_plan_curve_release(&curve);
        graph_destroy(graph);
    }
}

static void expect_bounds(fixture *f, const remat_graph *graph, graph_counting counting, uint64_t cost, uint64_t bytes)
{
    hold_graph g;
    uint64_t found;
    expect_ok(f, hold_graph_create(graph, counting, &g));
    expect_ok(f, graph_bound_cost(&g, UINT64_MAX, &found));
    assert_int_equal(found, cost);
    expect_ok(f, graph_bound_peak(&g, &found));
    assert_int_equal(found, bytes);
    hold_graph_release(&g);
}

/* x is given; a makes h, b makes y from h, c makes z from h that nobody needs, g runs once and reads y; y is a result. */
static void bounds_count_what_must_run(void **state)
{
    fixture *f = *state;
    enum { X, H, Y, Z, G, TENSORS };
    static const uint64_t bytes[TENSORS] = {100, 10, 20, 4000, 8};
    static const struct {
        uint32_t reads, writes;
        uint64_t workspace, cost;
    } rows[] = {{X, H, 0, 1}, {H, Y, 5, 2}, {H, Z, 0, 1000}, {Y, G, 1, 4}};
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    for (uint32_t i = 0; i < TENSORS; i++)
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = bytes[i], .given = i == X}));
    for (uint32_t i = 0; i < 4; i++) {
        const graph_action action = {.in_place_from = GRAPH_NONE,
                                     .in_place_to = GRAPH_NONE,
                                     .once = i == 3,
                                     .workspace_bytes = rows[i].workspace,
                                     .cost = rows[i].cost};
        const graph_links links = {&rows[i].reads, NULL, &rows[i].writes, 1, 0, 1};
        expect_ok(f, graph_add_action(graph, &action, &links));
    }
    expect_ok(f, graph_add_result(graph, Y));
    expect_bounds(f, graph, GRAPH_EXACT, 1 + 2 + 4, 100 + 10 + 20 + 5);
    expect_bounds(f, graph, GRAPH_PLACED, 1 + 2 + 4, 3 * 64);
    graph_destroy(graph);
}

/* x is given. a and b both make y, with other workspaces; the result z is made from y. Which of the two runs is open, so
 * neither counts. */
static void bounds_leave_out_what_has_a_choice(void **state)
{
    fixture *f = *state;
    enum { X, Y, Z, TENSORS };
    static const uint64_t bytes[TENSORS] = {100, 10, 20};
    static const struct {
        uint32_t reads, writes;
        uint64_t workspace, cost;
    } rows[] = {{X, Y, 0, 50}, {X, Y, 7000, 1}, {Y, Z, 5, 2}};
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    for (uint32_t i = 0; i < TENSORS; i++)
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = bytes[i], .given = i == X}));
    for (uint32_t i = 0; i < 3; i++) {
        const graph_action action = {.in_place_from = GRAPH_NONE,
                                     .in_place_to = GRAPH_NONE,
                                     .workspace_bytes = rows[i].workspace,
                                     .cost = rows[i].cost};
        const graph_links links = {&rows[i].reads, NULL, &rows[i].writes, 1, 0, 1};
        expect_ok(f, graph_add_action(graph, &action, &links));
    }
    expect_ok(f, graph_add_result(graph, Z));
    expect_bounds(f, graph, GRAPH_EXACT, 2, 100 + 10 + 20 + 5);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(exact_peaks_bind),
        FIXTURE_TEST(exact_curve_falls),
        FIXTURE_TEST(bounds_count_what_must_run),
        FIXTURE_TEST(bounds_leave_out_what_has_a_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
