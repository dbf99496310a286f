/* Budgets near the smallest peak, and bins that end at round parts of the largest. */
#include "plan/graph/graph_plan.h"
#include "plan/graph/hold_bins.h"
#include "support/fixture.h"

/* A U-Net of four levels; a quarter of its peak is just above the smallest. A search that only drops what is held, at a price for bytes,
 * ends above twice the cost there. Nearly all must be made twice: one position leaves room for less than a hundredth of the peak. So what
 * is larger than that cannot pass it, and a bound that knows this proves 30 %. */
static void little_memory_costs_little(void **state)
{
    fixture *f = *state;
    remat_graph *graph;
    graph_plan *plan;
    graph_plan_options options;
    expect_ok(f, remat_graph_load(f->context, "tests/plan/unet_graph.json", &graph));
    graph_plan_options_init(&options);
    options.binds = GRAPH_EXACT;
    options.effort = 300;
    options.strategy = "none";
    expect_ok(f, graph_plan_create(graph, &options, &plan));
    options.budget_bytes = plan->exact_peak_bytes / 4;
    graph_plan_destroy(plan);
    options.strategy = NULL;
    expect_ok(f, graph_plan_create(graph, &options, &plan));
    assert_true(plan->min_budget_bytes == plan->least_bound_bytes);
    assert_true(plan->exact_peak_bytes <= options.budget_bytes);
    assert_true(plan->cost < plan->base_cost / 10 * 15);
    assert_true(plan->lower_bound_cost > plan->base_cost / 100 * 130);
    graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

/* A percentage of the top is a bin's limit, whatever the bottom is. */
static void bins_end_at_round_parts(void **state)
{
    static const struct {
        size_t gaps;
        uint64_t bottom, top;
    } cases[] = {{10, 7, 1000}, {5000, 333333, 1000000}, {1000000, 1, 123456789}, {3, 0, 0}, {9, 40, 40}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static hold_bins bins; /* large */
        hold_bins_init(&bins, cases[i].gaps, cases[i].bottom, cases[i].top);
        assert_true(bins.count > 0 && bins.count <= MOST_BINS);
        assert_true(hold_bins_limit(&bins, bins.count - 1) == cases[i].top);
        assert_true(hold_bins_limit(&bins, 0) >= cases[i].bottom || bins.parts == bins.first);
        for (uint64_t percent = 5; percent < 100; percent += 5) {
            const uint64_t limit = (uint64_t)((unsigned __int128)cases[i].top * percent / 100);
            bool found = limit <= cases[i].bottom;
            for (size_t k = 0; k < bins.count; k++)
                found |= hold_bins_limit(&bins, k) == limit;
            assert_true(found);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(little_memory_costs_little), FIXTURE_TEST(bins_end_at_round_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
