/* The planner of graphs with each allocation failing in turn: it says that there is no memory, loses nothing, and makes
 * the same plan as soon as there is some. */
#include "plan/graph/graph_plan.h"

#include "support/random_graph.h"

typedef struct wish {
    const char *name, *strategy;
    bool with_budget, with_blocks, curve;
} wish;

/* Two thirds of the way from the smallest arena to everything kept. The greedy strategy gets all. */
static uint64_t budget_of(fixture *f, const remat_graph *graph, const graph_plan_options *options, bool all)
{
    graph_plan *plan;
    expect_ok(f, graph_plan_create(graph, options, &plan));
    uint64_t least = plan->min_budget_bytes, most = plan->base_arena_bytes;
    graph_plan_destroy(plan);
    return all ? 2 * most : most > least ? least + (most - least) * 2 / 3 : least;
}

static remat_status plan_once(fixture *f, const remat_graph *graph, const graph_plan_options *options, bool curve,
                              uint64_t *cost)
{
    if (curve) {
        graph_plan_curve found;
        remat_status status = graph_plan_curve_create(graph, options, &found);
        if (status != REMAT_OK)
            return status;
        assert_true(found.count > 0);
        *cost = found.points[0].cost;
        graph_plan_curve_release(&found);
        return status;
    }
    graph_plan *plan = (graph_plan *)f;
    remat_status status = graph_plan_create(graph, options, &plan);
    if (status != REMAT_OK)
        assert_null(plan);
    else
        *cost = plan->cost;
    graph_plan_destroy(plan);
    return status;
}

static void fail_each(fixture *f, const remat_graph *graph, const graph_plan_options *options, const wish *wanted)
{
    uint64_t held = f->memory.bytes, right = 0, n = 1;
    expect_ok(f, plan_once(f, graph, options, wanted->curve, &right));
    for (bool reached = true; reached && n < 100000; n += n < 400 ? 1 : 1 + n / 64) {
        uint64_t cost = right;
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = plan_once(f, graph, options, wanted->curve, &cost);
        reached = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        if (status != (reached ? REMAT_NO_MEMORY : REMAT_OK))
            fail_msg("%s: allocation %llu failed with status %d", wanted->name, (unsigned long long)n, status);
        if (f->memory.bytes != held)
            fail_msg("%s: allocation %llu failed and bytes were lost", wanted->name, (unsigned long long)n);
        assert_int_equal(cost, right);
    }
    assert_true(n > 20 && n < 100000);
    uint64_t cost = 0;
    expect_ok(f, plan_once(f, graph, options, wanted->curve, &cost));
    assert_int_equal(cost, right);
}

static void graphs_survive_every_failure(void **state)
{
    fixture *f = *state;
    static const wish wishes[] = {
        {"cheapest in a budget", NULL, true, false, false},   {"every second", "every-nth:2", false, false, false},
        {"greedy in a budget", "budget", true, false, false}, {"blocks", NULL, false, true, false},
        {"blocks in a budget", NULL, true, true, false},      {"curve", NULL, false, true, true},
    };
    enum { WISHES = sizeof wishes / sizeof wishes[0] };
    for (size_t k = 0; k < 3 * WISHES; k++) {
        size_t i = k % WISHES;
        test_random random = {40 + k};
        graph_traits traits = {6, 12, k / WISHES == 1, k % 2 == 0};
        graph_notes notes;
        remat_graph *graph = random_graph(f, &random, &traits, &notes);
        graph_plan_options options;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        options.hints = notes.hints;
        options.threads = 1;
        uint32_t *blocks = malloc(graph->action_count * sizeof *blocks);
        for (size_t a = 0; a < graph->action_count; a++)
            blocks[a] = notes.layers[a] < 2 || notes.layers[a] + 1 == notes.layer_count ? GRAPH_NONE
                                                                                        : (notes.layers[a] - 2) / 3;
        options.budget_bytes =
            wishes[i].with_budget ? budget_of(f, graph, &options, wishes[i].strategy) : REMAT_NO_BUDGET;
        options.strategy = wishes[i].strategy;
        options.blocks = wishes[i].with_blocks ? blocks : NULL;
        fail_each(f, graph, &options, &wishes[i]);
        free(blocks);
        graph_notes_free(&notes);
        graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(graphs_survive_every_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
