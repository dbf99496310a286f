/* Graphs that models do not have: pieces that differ in one number, blocks that beat the pieces, gradients that are made twice,
 * tensors that are given, sums that reach the limit. */
#include "plan/graph/graph_piece.h"
#include "plan/graph/graph_plan.h"
#include "support/random_graph.h"
#include "support/scratch_files.h"

/* ---- pieces that repeat ---- */

/* Two forward actions, a turn, and a backward one that works in place. */
static graph_piece piece_of_four(fixture *f)
{
    static const uint32_t tensors[] = {0, 1, 2, 3};
    graph_piece piece = {.inner_count = 2, .forward_count = 2, .backward_count = 1, .output = 1};
    expect_ok(f, graph_create(f->context, &piece.graph));
    piece.tensors = calloc(4, sizeof *piece.tensors);
    for (uint32_t t = 0; t < 4; t++) {
        expect_ok(f, graph_add_tensor(piece.graph, &(graph_tensor){.bytes = 64 * (t + 1)}));
        piece.tensors[t] = (piece_tensor){.number = t, .maker = t < 2 ? t : GRAPH_NONE, .wanted = t < 2};
    }
    graph_action action = {.cost = 3, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
    expect_ok(f, graph_add_action(piece.graph, &action, &(graph_links){.writes = tensors, .write_count = 1}));
    expect_ok(f, graph_add_action(piece.graph, &action, &(graph_links){tensors, NULL, tensors + 1, 1, 0, 1}));
    action.once = true;
    expect_ok(f, graph_add_action(piece.graph, &action, &(graph_links){tensors + 1, NULL, tensors + 2, 1, 0, 1}));
    action.in_place_from = 2;
    action.in_place_to = 3;
    expect_ok(f, graph_add_action(piece.graph, &action, &(graph_links){tensors + 1, tensors, tensors + 3, 2, 1, 1}));
    expect_ok(f, graph_add_result(piece.graph, 3));
    return piece;
}

static void free_piece(graph_piece *piece)
{
    free(piece->tensors);
    graph_destroy(piece->graph);
}

/* Only the numbers in the whole graph may differ. */
static void pieces_that_differ(void **state)
{
    fixture *f = *state;
    graph_piece a = piece_of_four(f), b = piece_of_four(f);
    b.tensors[2].number = 77;
    assert_true(graph_piece_same(&a, &b));
    graph_action *first = &b.graph->actions[0], *last = &b.graph->actions[3];
#define EXPECT_DIFFERENT(member)                \
    do {                                        \
        (member)++;                             \
        assert_false(graph_piece_same(&a, &b)); \
        (member)--;                             \
        assert_true(graph_piece_same(&a, &b));  \
    } while (0)
    EXPECT_DIFFERENT(b.forward_count);
    EXPECT_DIFFERENT(b.output);
    EXPECT_DIFFERENT(b.inner_count);
    EXPECT_DIFFERENT(b.tensors[1].maker);
    EXPECT_DIFFERENT(b.tensors[1].write);
    EXPECT_DIFFERENT(b.graph->tensors[3].bytes);
    EXPECT_DIFFERENT(first->first_link);
    EXPECT_DIFFERENT(first->cost);
    EXPECT_DIFFERENT(last->read_count);
    EXPECT_DIFFERENT(last->update_count);
    EXPECT_DIFFERENT(last->write_count);
    EXPECT_DIFFERENT(last->in_place_from);
    EXPECT_DIFFERENT(last->in_place_to);
    EXPECT_DIFFERENT(last->workspace_bytes);
    EXPECT_DIFFERENT(b.graph->links[2]);
    EXPECT_DIFFERENT(b.graph->results[0]);
#undef EXPECT_DIFFERENT
    b.tensors[0].wanted = false;
    assert_false(graph_piece_same(&a, &b));
    b.tensors[0].wanted = true;
    first->once = true;
    assert_false(graph_piece_same(&a, &b));
    first->once = false;
    expect_ok(f, graph_add_result(b.graph, 2));
    assert_false(graph_piece_same(&a, &b));
    free_piece(&a);
    free_piece(&b);
}

/* ---- blocks ---- */

static graph_plan *expect_plan(fixture *f, const remat_graph *graph, const graph_plan_options *options)
{
    graph_plan *plan;
    graph_liveness found;
    expect_ok(f, graph_plan_create(graph, options, &plan));
    expect_ok(f, graph_walk(graph, &plan->sequence, GRAPH_PLACED, &found));
    assert_true(plan->feasible && plan->arena_bytes <= options->budget_bytes);
    assert_int_equal(found.peak_bytes, plan->peak_bytes);
    assert_int_equal(found.cost, plan->cost);
    graph_liveness_release(f->context, &found);
    return plan;
}

/* Within the arena that the blocks take, a plan costs no more than they do. */
static void blocks_are_never_lost(void **state)
{
    fixture *f = *state;
    test_random random = {1};
    for (int i = 0; i < LESS_WHEN_SANITIZED(3, 1); i++) {
        graph_notes notes;
        graph_plan_options options;
        graph_plan_options_init(&options);
        options.threads = 1;
        remat_graph *graph = random_graph(f, &random, &(graph_traits){80, 160, false, false}, &notes);
        uint32_t *blocks = malloc(graph->action_count * sizeof *blocks),
                 size = 1 + (uint32_t)test_random_below(&random, 6);
        for (size_t a = 0; a < graph->action_count; a++)
            blocks[a] = notes.layers[a] % 7 == 3 ? GRAPH_NONE : notes.layers[a] / size;
        options.blocks = blocks;
        graph_plan *plan = expect_plan(f, graph, &options);
        assert_null(plan->chain_plan);
        options.budget_bytes = plan->arena_bytes;
        graph_plan *best = expect_plan(f, graph, &options);
        assert_true(best->cost <= plan->cost);
        graph_plan_destroy(best);
        graph_plan_destroy(plan);
        free(blocks);
        graph_notes_free(&notes);
        graph_destroy(graph);
    }
}

/* ---- chains by hand ---- */

/* x0 is data. Action k of n makes x(k+1) of xk. The loss makes the gradient gn, and the backward gk of g(k+1) and xk, with
 * the weights w, which are given, and room s where two of the layers write. */
typedef struct hand_chain {
    remat_graph *graph;
    uint32_t n, w, s;
} hand_chain;

static uint32_t x_of(uint32_t k)
{
    return 2 + k;
}

static uint32_t g_of(const hand_chain *chain, uint32_t k)
{
    return 2 + chain->n + 1 + k;
}

static void add_action(fixture *f, remat_graph *graph, bool once, const uint32_t *reads, size_t read_count,
                       const uint32_t *writes, size_t write_count)
{
    const graph_action action = {.once = once, .cost = 5, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
    expect_ok(f, graph_add_action(graph, &action, &(graph_links){reads, NULL, writes, read_count, 0, write_count}));
}

static hand_chain make_chain(fixture *f, uint32_t n)
{
    hand_chain chain = {.n = n, .w = 0, .s = 1};
    expect_ok(f, graph_create(f->context, &chain.graph));
    expect_ok(f, graph_add_tensor(chain.graph, &(graph_tensor){.bytes = 6400, .given = true}));
    expect_ok(f, graph_add_tensor(chain.graph, &(graph_tensor){.bytes = 320}));
    for (uint32_t t = 0; t < 2 * (n + 1); t++)
        expect_ok(f, graph_add_tensor(chain.graph, &(graph_tensor){.bytes = 640}));
    uint32_t x0 = x_of(0), loss = g_of(&chain, n);
    add_action(f, chain.graph, true, NULL, 0, &x0, 1);
    for (uint32_t k = 0; k < n; k++)
        add_action(f, chain.graph, false, (uint32_t[]){x_of(k), chain.w}, 2, (uint32_t[]){x_of(k + 1)}, 1);
    add_action(f, chain.graph, true, (uint32_t[]){x_of(n)}, 1, &loss, 1);
    for (uint32_t k = n; k-- > 0;) {
        bool writes_s = k == n - 1 || k == 1;
        const uint32_t reads[] = {x_of(k), g_of(&chain, k + 1), chain.w}, writes[] = {g_of(&chain, k), chain.s};
        add_action(f, chain.graph, true, reads, 3, writes, writes_s ? 2 : 1);
        if (writes_s)
            add_action(f, chain.graph, true, &chain.s, 1, NULL, 0);
    }
    return chain;
}

/* What is made by two pieces counts all through; what is given counts nowhere. */
static void gradients_made_twice(void **state)
{
    fixture *f = *state;
    hand_chain chain = make_chain(f, 6);
    graph_outline outline;
    graph_cut cut;
    graph_gradients gradients;
    expect_ok(f, graph_outline_create(chain.graph, &outline));
    expect_ok(f, graph_cut_find(&outline, false, &cut));
    assert_true(cut.piece_count > 3);
    expect_ok(f, graph_gradients_find(&outline, &cut, &gradients));
    assert_true(gradients.spans[chain.s].constant);
    assert_int_equal(gradients.constant_bytes, 320);
    assert_true(gradients.spans[chain.w].from == GRAPH_NONE && !gradients.spans[chain.w].constant);
    assert_false(gradients.spans[g_of(&chain, 3)].constant);
    graph_gradients_release(f->context, &gradients);
    graph_cut_release(f->context, &cut);
    graph_outline_release(&outline);
    graph_plan_options options;
    graph_plan_options_init(&options);
    graph_plan *plan = expect_plan(f, chain.graph, &options);
    for (uint64_t least = plan->min_budget_bytes, most = plan->base_arena_bytes, i = 0; i <= 4; i++) {
        options.budget_bytes = least + (most - least) * i / 4;
        graph_plan_destroy(expect_plan(f, chain.graph, &options));
    }
    assert_true(plan->min_budget_bytes < plan->base_arena_bytes);
    graph_plan_destroy(plan);
    graph_destroy(chain.graph);
}

/* A chain of more than 400 pieces, for which the strategy tries fewer budgets. Without a budget it cannot plan. */
static void budget_strategy_on_long_chains(void **state)
{
    fixture *f = *state;
    hand_chain chain = make_chain(f, 410);
    graph_plan_options options;
    graph_plan *plan;
    graph_plan_options_init(&options);
    options.strategy = "budget";
    options.threads = 1;
    expect_status(f, graph_plan_create(chain.graph, &options, &plan), REMAT_INVALID);
    assert_null(plan);
    options.budget_bytes = 0;
    expect_status(f, graph_plan_create(chain.graph, &options, &plan), REMAT_INFEASIBLE);
    uint64_t least = plan->min_budget_bytes;
    assert_true(least > 0 && least < plan->base_arena_bytes);
    graph_plan_destroy(plan);
    options.budget_bytes = least;
    plan = expect_plan(f, chain.graph, &options);
    assert_int_equal(plan->min_budget_bytes, least);
    assert_true(plan->cost > plan->base_cost);
    graph_plan_destroy(plan);
    graph_destroy(chain.graph);
}

/* A plan file that says that nothing fits holds no schedule to run. */
static void files_of_plans_that_do_not_fit(void **state)
{
    fixture *f = *state;
    hand_chain chain = make_chain(f, 3);
    graph_plan_options options;
    graph_plan *plan;
    graph_plan_options_init(&options);
    options.plan_path =
        scratch_write_text("plan.json", "{\"format\": \"remat-plan\", \"version\": 1, \"feasible\": false}");
    expect_status(f, graph_plan_create(chain.graph, &options, &plan), REMAT_BAD_INPUT);
    expect_message(f, "the plan is infeasible");
    assert_null(plan);
    graph_destroy(chain.graph);
}

/* ---- what an outline takes ---- */

/* An action before the backward pass may update what is given, or made once: neither is recomputed. */
static void updates_of_what_stays(void **state)
{
    fixture *f = *state;
    static const uint32_t tensors[] = {0, 1, 2};
    remat_graph *graph;
    graph_outline outline;
    graph_action once = {.once = true, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE}, free_to_run = once;
    free_to_run.once = false;
    expect_ok(f, graph_create(f->context, &graph));
    for (int t = 0; t < 3; t++)
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = 64, .given = t == 0}));
    expect_ok(f, graph_add_action(graph, &once, &(graph_links){.writes = tensors + 1, .write_count = 1}));
    expect_ok(f, graph_add_action(graph, &once, &(graph_links){.updates = tensors, .update_count = 2}));
    expect_ok(f, graph_add_action(graph, &free_to_run, &(graph_links){tensors, NULL, tensors + 2, 2, 0, 1}));
    expect_ok(f, graph_outline_create(graph, &outline));
    assert_int_equal(outline.forward_count, 3);
    graph_outline_release(&outline);
    graph_destroy(graph);
}

/* Bytes of tensors, of workspaces, and costs: each alone must stay below 2^61, also where the sum has no room in 64 bits. */
static void sums_have_a_limit(void **state)
{
    fixture *f = *state;
    enum { TENSORS, WORKSPACES, COSTS, KINDS };
    static const struct {
        uint64_t each;
        int count;
        remat_status wanted;
    } cases[] = {{(uint64_t)1 << 59, 3, REMAT_OK},
                 {(uint64_t)1 << 59, 4, REMAT_INVALID},
                 {(uint64_t)1 << 62, 1, REMAT_INVALID},
                 {(uint64_t)1 << 62, 3, REMAT_INVALID}};
    for (int kind = TENSORS; kind < KINDS; kind++)
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            remat_graph *graph;
            graph_outline outline;
            expect_ok(f, graph_create(f->context, &graph));
            for (int i = 0; i < cases[c].count; i++) {
                const graph_action action = {.workspace_bytes = kind == WORKSPACES ? cases[c].each : 0,
                                             .cost = kind == COSTS ? cases[c].each : 0,
                                             .in_place_from = GRAPH_NONE,
                                             .in_place_to = GRAPH_NONE};
                uint32_t tensor = (uint32_t)i;
                expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = kind == TENSORS ? cases[c].each : 0}));
                expect_ok(f, graph_add_action(graph, &action, &(graph_links){.writes = &tensor, .write_count = 1}));
            }
            expect_status(f, graph_outline_create(graph, &outline), cases[c].wanted);
            if (cases[c].wanted == REMAT_OK)
                graph_outline_release(&outline);
            else
                expect_message(f, "2^61");
            graph_destroy(graph);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pieces_that_differ),
        FIXTURE_TEST(blocks_are_never_lost),
        FIXTURE_TEST(gradients_made_twice),
        FIXTURE_TEST(budget_strategy_on_long_chains),
        FIXTURE_TEST(files_of_plans_that_do_not_fit),
        FIXTURE_TEST(updates_of_what_stays),
        FIXTURE_TEST(sums_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
