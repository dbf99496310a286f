/* From a graph and a budget to offsets: every plan legal, within its budget, and never dearer with more of it. */
#include "plan/graph/graph_plan.h"

#include <unistd.h>

#include "arena/placement.h"
#include "support/random_graph.h"

static const graph_traits small = {1, 9, false, false}, large = {12, 40, false, false};

/* What the plan states is what a walk of its own finds, and its offsets hold. */
static void expect_sound(fixture *f, const graph_plan *plan, uint64_t budget)
{
    const remat_graph *graph = plan->graph;
    graph_liveness found;
    assert_true(plan->feasible);
    expect_ok(f, graph_walk(graph, &plan->sequence, GRAPH_PLACED, &found));
    assert_int_equal(found.peak_bytes, plan->peak_bytes);
    assert_int_equal(found.cost, plan->cost);
    assert_int_equal(found.buffer_count, plan->liveness.buffer_count);
    remat_lifetime *rows = calloc(found.buffer_count + 1, sizeof *rows);
    for (size_t i = 0; i < found.buffer_count; i++)
        rows[i] =
            (remat_lifetime){found.buffers[i].born, found.buffers[i].ends, found.buffers[i].bytes, plan->offsets[i]};
    expect_ok(f, arena_check(f->context, rows, found.buffer_count, 64, plan->arena_bytes));
    free(rows);
    assert_true(plan->arena_bytes <= budget && plan->peak_bytes <= plan->arena_bytes);
    assert_true(plan->min_budget_bytes <= plan->arena_bytes);
    assert_true(plan->cost >= plan->base_cost);
    uint64_t again = 0;
    for (size_t i = 0; i < graph->action_count; i++)
        again += plan->runs[i] > 1;
    assert_true(plan->cost == plan->base_cost || again > 0);
    graph_liveness_release(f->context, &found);
}

static graph_plan *expect_plan(fixture *f, const remat_graph *graph, const graph_plan_options *options)
{
    graph_plan *plan;
    expect_ok(f, graph_plan_create(graph, options, &plan));
    expect_sound(f, plan, options->budget_bytes);
    return plan;
}

static void expect_refused(fixture *f, const remat_graph *graph, graph_plan_options *options, uint64_t least)
{
    graph_plan *plan;
    options->budget_bytes = least - 1;
    expect_status(f, graph_plan_create(graph, options, &plan), REMAT_INFEASIBLE);
    assert_non_null(plan);
    assert_false(plan->feasible);
    assert_int_equal(plan->min_budget_bytes, least);
    assert_true(plan->peak_action < graph->action_count);
    expect_budget_error(f, least - 1, least);
    assert_string_equal(remat_context_error(f->context)->layer_name, graph->actions[plan->peak_action].name);
    graph_plan_destroy(plan);
}

/* From the smallest budget to everything kept: it fits, and costs fall. */
static void try_budgets(fixture *f, const remat_graph *graph, graph_plan_options *options)
{
    graph_plan *plan = expect_plan(f, graph, options);
    uint64_t least = plan->min_budget_bytes, most = plan->base_arena_bytes, before = UINT64_MAX;
    assert_int_equal(plan->cost, plan->base_cost);
    graph_plan_destroy(plan);
    most = most > least ? most : least;
    for (uint64_t i = 0; i <= 6; i++) {
        options->budget_bytes = least + (most - least) * i / 6;
        plan = expect_plan(f, graph, options);
        assert_int_equal(plan->min_budget_bytes, least);
        assert_true(plan->cost <= before);
        before = plan->cost;
        assert_true(i < 6 || plan->cost == plan->base_cost);
        graph_plan_destroy(plan);
    }
    expect_refused(f, graph, options, least);
    options->budget_bytes = REMAT_NO_BUDGET;
}

static void budgets_are_kept(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(40, 6); i++) {
        graph_plan_options options;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        options.threads = 1;
        remat_graph *graph = random_graph(f, &random, i % 8 == 5 ? &large : &small, NULL);
        try_budgets(f, graph, &options);
        graph_destroy(graph);
    }
}

/* Every point of the curve is what a plan costs, from its arena to that of the next. */
static void curve_agrees_with_plans(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(20, 3); i++) {
        graph_plan_options options;
        graph_plan_curve curve;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        options.threads = 1;
        remat_graph *graph = random_graph(f, &random, i % 4 == 3 ? &large : &small, NULL);
        expect_ok(f, graph_plan_curve_create(graph, &options, &curve));
        assert_true(curve.count > 0);
        assert_int_equal(curve.points[curve.count - 1].cost, curve.base_cost);
        for (size_t k = 0; k < curve.count; k++) {
            const graph_plan_point *point = &curve.points[k];
            assert_true(k == 0 || (point->arena_bytes > curve.points[k - 1].arena_bytes &&
                                   point->cost < curve.points[k - 1].cost));
            assert_true(point->cost == curve.base_cost || point->recomputed_actions > 0);
            if (k % 8 != 0)
                continue;
            options.budget_bytes = k + 1 < curve.count ? point[1].arena_bytes - 1 : point->arena_bytes;
            graph_plan *plan = expect_plan(f, graph, &options);
            assert_true(plan->cost == point->cost);
            graph_plan_destroy(plan);
        }
        graph_plan_curve_release(&curve);
        graph_destroy(graph);
    }
}

static void strategies_apply_to_the_pieces(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"none",           "full", "full:2",    "every-nth:2",
                                             "attention-only", "sqrt", "largest:3", "revolve:3"};
    graph_notes notes;
    remat_graph *graph = transformer_graph(f, 4, 4096, &notes);
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.hints = notes.hints;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        options.strategy = strategies[i];
        options.budget_bytes = REMAT_NO_BUDGET;
        graph_plan *plan = expect_plan(f, graph, &options);
        assert_string_equal(remat_plan_strategy(plan->chain_plan), strategies[i]);
        assert_int_equal(plan->pieces->cut.piece_count, 10);
        uint64_t arena = plan->arena_bytes;
        assert_int_equal(plan->min_budget_bytes, arena);
        assert_true(i > 0 || (plan->cost == plan->base_cost && arena == plan->base_arena_bytes));
        assert_true(i == 0 || plan->cost > plan->base_cost);
        graph_plan_destroy(plan);
        options.budget_bytes = arena;
        graph_plan_destroy(expect_plan(f, graph, &options));
        expect_refused(f, graph, &options, arena);
    }
    options.strategy = "no-such";
    graph_plan *plan;
    expect_status(f, graph_plan_create(graph, &options, &plan), REMAT_INVALID);
    assert_null(plan);
    graph_notes_free(&notes);
    graph_destroy(graph);
}

/* The strategy `budget` is told what is left of it until the arena fits. */
static void budget_strategy_fits_its_arena(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 4, 4096, NULL);
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.strategy = "none";
    graph_plan *plan = expect_plan(f, graph, &options);
    uint64_t base = plan->base_arena_bytes;
    graph_plan_destroy(plan);
    options.strategy = "budget";
    for (uint64_t percent = 80; percent <= 100; percent += 10) {
        options.budget_bytes = base * percent / 100;
        graph_plan_destroy(expect_plan(f, graph, &options));
    }
    options.budget_bytes = 4096;
    expect_status(f, graph_plan_create(graph, &options, &plan), REMAT_INFEASIBLE);
    assert_true(plan->min_budget_bytes > 4096);
    graph_plan_destroy(plan);
    graph_destroy(graph);
}

static void blocks_are_a_plan_and_a_candidate(void **state)
{
    fixture *f = *state;
    graph_notes notes;
    remat_graph *graph = transformer_graph(f, 4, 4096, &notes);
    uint32_t *blocks = malloc(graph->action_count * sizeof *blocks);
    for (size_t i = 0; i < graph->action_count; i++) {
        uint32_t l = notes.layers[i];
        blocks[i] = l < 2 || l + 1 == notes.layer_count ? GRAPH_NONE : (l - 2) / 8;
    }
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.blocks = blocks;
    graph_plan *plan = expect_plan(f, graph, &options);
    assert_null(plan->chain_plan);
    assert_true(plan->arena_bytes < plan->base_arena_bytes && plan->cost > plan->base_cost);
    options.budget_bytes = plan->arena_bytes;
    graph_plan *chosen = expect_plan(f, graph, &options);
    assert_true(chosen->cost <= plan->cost);
    graph_plan_destroy(chosen);
    graph_plan_destroy(plan);
    free(blocks);
    graph_notes_free(&notes);
    graph_destroy(graph);
}

/* A plan that was written is read again and is the same plan, however the graph was cut. */
static void plan_files_come_back(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    char path[] = "/tmp/remat-graph-plan-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (int i = 0; i < LESS_WHEN_SANITIZED(12, 4); i++) {
        graph_plan_options options;
        graph_plan_options_init(&options);
        options.effort = 10; /* enough for a test */
        remat_graph *graph = random_graph(f, &random, i % 3 == 1 ? &large : &small, NULL);
        graph_plan *plan = expect_plan(f, graph, &options);
        options.budget_bytes = (plan->min_budget_bytes + plan->base_arena_bytes) / 2;
        graph_plan_destroy(plan);
        plan = expect_plan(f, graph, &options);
        expect_ok(f, remat_plan_save(plan->chain_plan, path));
        graph_plan_options from_file;
        graph_plan_options_init(&from_file);
        from_file.plan_path = path;
        from_file.budget_bytes = options.budget_bytes;
        from_file.effort = options.effort;
        graph_plan *read = expect_plan(f, graph, &from_file);
        assert_int_equal(read->sequence.count, plan->sequence.count);
        assert_memory_equal(read->sequence.actions, plan->sequence.actions,
                            plan->sequence.count * sizeof *plan->sequence.actions);
        graph_plan_destroy(read);
        graph_plan_destroy(plan);
        graph_destroy(graph);
    }
    unlink(path);
}

static void threads_change_nothing(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 6, 4096, NULL);
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.budget_bytes = 150000;
    options.threads = 1;
    graph_plan *one = expect_plan(f, graph, &options);
    options.threads = 3;
    graph_plan *three = expect_plan(f, graph, &options);
    assert_int_equal(one->sequence.count, three->sequence.count);
    assert_memory_equal(one->sequence.actions, three->sequence.actions, one->sequence.count * sizeof(uint32_t));
    assert_memory_equal(one->offsets, three->offsets, one->liveness.buffer_count * sizeof(uint64_t));
    graph_plan_destroy(one);
    graph_plan_destroy(three);
    graph_destroy(graph);
}

/* 96 blocks of a transformer: 194 pieces of a few actions each, of which four are different. */
static void long_transformer_is_planned(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, LESS_WHEN_SANITIZED(96, 12), 1 << 20, NULL);
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.budget_bytes = LESS_WHEN_SANITIZED((uint64_t)400, 100) << 20;
    double before = cpu_seconds();
    graph_plan *plan = expect_plan(f, graph, &options);
    double seconds = cpu_seconds() - before;
    print_message("%zu pieces, arena %.0f of %.0f MiB, %.1f %% dearer, %.2f s of processor time\n",
                  plan->pieces->cut.piece_count, (double)plan->arena_bytes / (1 << 20),
                  (double)plan->base_arena_bytes / (1 << 20), 100 * ((double)plan->cost / (double)plan->base_cost - 1),
                  seconds);
    graph_plan_destroy(plan);
    graph_destroy(graph);
}

/* With the n-th allocation failing: no memory is the answer, and none is lost. */
static void no_memory_is_survived(void **state)
{
    fixture *f = *state;
    test_random random = {7};
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.effort = 10; /* enough for a test */
    options.threads = 1;
    remat_graph *graph = random_graph(f, &random, &(graph_traits){5, 5, false, false}, NULL);
    uint64_t held = f->memory.bytes;
    graph_plan *plan = NULL;
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t fail = 1; status != REMAT_OK; fail += 1 + fail / LESS_WHEN_SANITIZED(64, 16)) {
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
    expect_sound(f, plan, REMAT_NO_BUDGET);
    graph_plan_destroy(plan);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(budgets_are_kept),
        FIXTURE_TEST(curve_agrees_with_plans),
        FIXTURE_TEST(strategies_apply_to_the_pieces),
        FIXTURE_TEST(budget_strategy_fits_its_arena),
        FIXTURE_TEST(blocks_are_a_plan_and_a_candidate),
        FIXTURE_TEST(plan_files_come_back),
        FIXTURE_TEST(threads_change_nothing),
        FIXTURE_TEST(long_transformer_is_planned),
        FIXTURE_TEST(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
