/* Random graphs as chains of pieces: whatever plan the chain gets, the graph can run it, within the chain's peak. */
#include "base/alloc.h"
#include "plan/graph/graph_curve.h"
#include "support/random_graph.h"

static const graph_traits small = {1, 12, false, false}, repeated = {8, 24, true, false};

typedef struct tally {
    size_t graphs, pieces, kinds, plans, exact; /* exact: the walk's peak is the chain's */
} tally;

static graph_liveness expect_walk(fixture *f, const remat_graph *graph, const graph_sequence *sequence)
{
    graph_liveness found;
    expect_ok(f, graph_walk(graph, sequence, GRAPH_PLACED, &found));
    return found;
}

/* Within the chain's peak, no dearer than the chain, and no cheaper than running everything once. */
static void expect_plan_runs(fixture *f, const remat_graph *graph, const graph_pieces *pieces, const remat_plan *plan,
                             tally *t)
{
    graph_sequence sequence = {0};
    expect_ok(f, graph_pieces_expand(pieces, plan, &sequence));
    graph_liveness found = expect_walk(f, graph, &sequence);
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    uint64_t promised = figures->schedule.peak_bytes + pieces->constant_bytes;
    if (found.peak_bytes > promised) {
        graph_print(graph);
        print_message("%zu pieces: peak %llu at %u of %zu, promised %llu, constant %llu, strategy %s\n",
                      pieces->cut.piece_count, (unsigned long long)found.peak_bytes, found.peak_position,
                      sequence.count, (unsigned long long)promised, (unsigned long long)pieces->constant_bytes,
                      remat_plan_strategy(plan));
        for (size_t i = 0; i < sequence.count; i++)
            print_message("%u ", sequence.actions[i]);
    }
    assert_true(found.peak_bytes <= promised);
    assert_true(found.cost <= figures->schedule.total_cost);
    assert_true(found.cost >= figures->base_cost);
    t->plans++;
    t->exact += found.peak_bytes == promised;
    graph_liveness_release(f->context, &found);
    graph_sequence_release(f->context, &sequence);
}

static void try_strategies(fixture *f, const remat_graph *graph, const graph_pieces *pieces, tally *t)
{
    static const char *const strategies[] = {"none",           "full",     "full:2", "selective:0.5", "every-nth:2",
                                             "attention-only", "ffn-only", "sqrt",   "largest:2",     "revolve:2"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        remat_plan *plan;
        expect_ok(f, make_plan(f, pieces->profile, strategies[i], REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
        expect_plan_runs(f, graph, pieces, plan, t);
        remat_plan_destroy(plan);
    }
}

static void try_budgets(fixture *f, const remat_graph *graph, const graph_pieces *pieces, tally *t)
{
    remat_plan *plan;
    remat_status status = make_plan(f, pieces->profile, "optimal", 0, REMAT_COUNT_PEAK, &plan);
    assert_true(status == REMAT_OK || status == REMAT_INFEASIBLE);
    uint64_t least = remat_plan_get_figures(plan)->min_budget_bytes,
             most = remat_plan_get_figures(plan)->base_peak_bytes;
    remat_plan_destroy(plan);
    for (uint64_t i = 0; i <= 4; i++) {
        uint64_t budget = most > least ? least + (most - least) * i / 4 : least;
        expect_ok(f, make_plan(f, pieces->profile, "optimal", budget, REMAT_COUNT_PEAK, &plan));
        expect_plan_runs(f, graph, pieces, plan, t);
        remat_plan_destroy(plan);
    }
}

/* The graph planner's own schedules, as plans of the chain. */
static void try_curve(fixture *f, const graph_outline *outline, const graph_pieces *pieces, tally *t)
{
    const remat_graph *graph = outline->graph;
    graph_curve curve;
    expect_ok(f, graph_curve_begin(outline, GRAPH_PLACED, &curve));
    expect_ok(f, graph_curve_add(&curve, pieces, 1));
    assert_true(curve.count > 0);
    for (size_t i = 0; i < curve.count; i += 1 + curve.count / 5) {
        const graph_point *point = &curve.points[i];
        remat_plan *plan;
        graph_sequence sequence;
        remat_step *steps;
        expect_ok(f, graph_point_actions(&curve, point, &sequence));
        expect_ok(f, graph_point_steps(&curve, point, &steps));
        expect_ok(f, graph_pieces_plan(pieces, "optimal", steps, point->steps.step_count, &plan));
        remat_release(f->context, steps, point->steps.step_count, sizeof *steps);
        expect_plan_runs(f, graph, pieces, plan, t);
        remat_plan_destroy(plan);
        graph_liveness found = expect_walk(f, graph, &sequence);
        assert_int_equal(found.peak_bytes, point->peak_bytes);
        assert_int_equal(found.cost, point->cost);
        assert_true(i == 0 || (point->cost > curve.points[0].cost && point->peak_bytes < curve.points[0].peak_bytes));
        graph_liveness_release(f->context, &found);
        graph_sequence_release(f->context, &sequence);
    }
    graph_curve_release(&curve);
}

static void try_graph(fixture *f, const remat_graph *graph, const graph_pieces_options *options, bool budgets, tally *t)
{
    graph_outline outline;
    graph_pieces *pieces;
    expect_ok(f, graph_outline_create(graph, &outline));
    expect_ok(f, graph_pieces_create(&outline, options, &pieces));
    t->graphs++;
    t->pieces += pieces->cut.piece_count;
    t->kinds += pieces->kind_count;
    try_strategies(f, graph, pieces, t);
    if (budgets) /* which takes longer */
        try_budgets(f, graph, pieces, t);
    try_curve(f, &outline, pieces, t);
    graph_pieces_destroy(pieces);
    graph_outline_release(&outline);
}

static void walk_stays_within_the_chain(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    tally t = {0};
    for (int i = 0; i < LESS_WHEN_SANITIZED(1000, 60); i++) {
        remat_graph *graph = random_graph(f, &random, i % 4 == 3 ? &repeated : &small, NULL);
        try_graph(f, graph, &(graph_pieces_options){0}, i % 10 == 0, &t);
        graph_destroy(graph);
    }
    print_message("%zu graphs, %zu pieces of %zu kinds, %zu plans, %zu of them with exactly the chain's peak\n",
                  t.graphs, t.pieces, t.kinds, t.plans, t.exact);
    assert_true(t.kinds < t.pieces);
}

static void transformer_is_cut_and_solved_once(void **state)
{
    fixture *f = *state;
    graph_notes notes;
    graph_outline outline;
    remat_graph *graph = transformer_graph(f, 6, 4096, &notes);
    graph_pieces *pieces;
    double before = cpu_seconds();
    expect_ok(f, graph_outline_create(graph, &outline));
    expect_ok(f, graph_pieces_create(&outline, &(graph_pieces_options){.hints = notes.hints}, &pieces));
    print_message("6 blocks: %zu pieces, %zu kinds, %.3f s, constant %llu\n", pieces->cut.piece_count,
                  pieces->kind_count, cpu_seconds() - before, (unsigned long long)pieces->constant_bytes);
    assert_int_equal(pieces->cut.piece_count, 14);
    assert_int_equal(pieces->kind_count, 4);
    assert_int_equal(pieces->constant_bytes, 0);
    assert_int_equal(remat_profile_layer(pieces->profile, 1)->type, REMAT_ATTENTION);
    assert_string_equal(remat_profile_layer(pieces->profile, 1)->name, "norm..project");
    assert_int_equal(remat_profile_layer(pieces->profile, 2)->type, REMAT_FFN);
    tally t = {0};
    try_strategies(f, graph, pieces, &t);
    try_budgets(f, graph, pieces, &t);
    graph_pieces_destroy(pieces);
    graph_outline_release(&outline);
    graph_notes_free(&notes);
    graph_destroy(graph);
}

/* Nothing at all, a graph that only goes forward, and one in which everything runs once. */
static void graphs_without_a_backward(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        remat_graph *graph;
        tally t = {0};
        expect_ok(f, graph_create(f->context, &graph));
        uint32_t x = 0, y = 1;
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "x", .bytes = 100}));
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "y", .bytes = 100}));
        graph_action action = {.once = true, .cost = 1, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
        if (i) {
            expect_ok(f, graph_add_action(graph, &action, &(graph_links){.writes = &x, .write_count = 1}));
            action.once = i == 2;
            expect_ok(f,
                      graph_add_action(graph, &action,
                                       &(graph_links){.reads = &x, .read_count = 1, .writes = &y, .write_count = 1}));
        }
        try_graph(f, graph, &(graph_pieces_options){0}, true, &t);
        graph_destroy(graph);
    }
}

/* Where recomputing could change what a tensor holds, the tensor is named: written twice forward, updated forward (by an
 * action that is not the last forward one), written forward and backward. */
static void what_cannot_run_again_is_refused(void **state)
{
    fixture *f = *state;
    const uint32_t x = 0;
    for (int i = 0; i < 3; i++) {
        remat_graph *graph;
        graph_outline outline;
        graph_action action = {.in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
        graph_links writes = {.writes = &x, .write_count = 1}, updates = {.updates = &x, .update_count = 1};
        expect_ok(f, graph_create(f->context, &graph));
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "x", .bytes = 100}));
        expect_ok(f, graph_add_action(graph, &action, &writes));
        action.once = i > 0;
        expect_ok(f, graph_add_action(graph, &action, i == 1 ? &updates : &writes));
        action.once = false;
        if (i == 1)
            expect_ok(f, graph_add_action(graph, &action, &(graph_links){.reads = &x, .read_count = 1}));
        expect_status(f, graph_outline_create(graph, &outline), REMAT_BAD_INPUT);
        expect_message(f, "tensor x");
        graph_destroy(graph);
    }
}

/* The planner adds bytes, and costs, several times: what they sum up to is limited. */
static void sums_are_limited(void **state)
{
    fixture *f = *state;
    const uint64_t half = (uint64_t)1 << 60, large = (uint64_t)1 << 62;
    const struct {
        uint64_t bytes, workspace, cost;
        remat_status status;
    } cases[] = {
        {64, 64, half - 1, REMAT_OK},  {64, 64, half, REMAT_INVALID}, {64, 64, large, REMAT_INVALID},
        {64, half, 1, REMAT_INVALID},  {64, large, 1, REMAT_INVALID}, {half, 64, 1, REMAT_INVALID},
        {large, 64, 1, REMAT_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        remat_graph *graph;
        graph_outline outline;
        const graph_action action = {.in_place_from = GRAPH_NONE,
                                     .in_place_to = GRAPH_NONE,
                                     .workspace_bytes = cases[i].workspace,
                                     .cost = cases[i].cost};
        expect_ok(f, graph_create(f->context, &graph));
        for (uint32_t t = 0; t < 2; t++) {
            expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = cases[i].bytes}));
            expect_ok(f, graph_add_action(graph, &action, &(graph_links){.writes = &t, .write_count = 1}));
        }
        expect_status(f, graph_outline_create(graph, &outline), cases[i].status);
        if (cases[i].status == REMAT_OK)
            graph_outline_release(&outline);
        graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(walk_stays_within_the_chain),
        FIXTURE_TEST(transformer_is_cut_and_solved_once),
        FIXTURE_TEST(graphs_without_a_backward),
        FIXTURE_TEST(what_cannot_run_again_is_refused),
        FIXTURE_TEST(sums_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
