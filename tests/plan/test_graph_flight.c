/* Several runs of one schedule under way: what each keeps, and plans within a budget for all of them. */
#include "plan/graph/graph_plan.h"
#include "support/fixture.h"

enum { LAYERS = 8, BYTES = 6400 };

/* load, forward of each layer, turn, backward of each. A backward reads the input of its layer and the gradient behind it. */
static remat_graph *make_graph(fixture *f, uint32_t *turn)
{
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    uint32_t outputs[LAYERS + 1], gradients[LAYERS + 1];
    for (uint32_t i = 0; i <= LAYERS; i++) {
        outputs[i] = (uint32_t)graph->tensor_count;
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = BYTES}));
        gradients[i] = (uint32_t)graph->tensor_count;
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = BYTES}));
    }
    const graph_action once = {.once = true, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE, .cost = 2};
    graph_action forward = once;
    forward.once = false;
    forward.cost = 1;
    expect_ok(f, graph_add_action(graph, &once, &(graph_links){.writes = &outputs[0], .write_count = 1}));
    for (uint32_t i = 0; i < LAYERS; i++)
        expect_ok(
            f, graph_add_action(
                   graph, &forward,
                   &(graph_links){.reads = &outputs[i], .read_count = 1, .writes = &outputs[i + 1], .write_count = 1}));
    *turn = (uint32_t)graph->action_count;
    expect_ok(f, graph_add_action(
                     graph, &once,
                     &(graph_links){
                         .reads = &outputs[LAYERS], .read_count = 1, .writes = &gradients[LAYERS], .write_count = 1}));
    for (uint32_t i = LAYERS; i-- > 0;) {
        const uint32_t reads[] = {outputs[i], gradients[i + 1]};
        expect_ok(f, graph_add_action(
                         graph, &once,
                         &(graph_links){.reads = reads, .read_count = 2, .writes = &gradients[i], .write_count = 1}));
    }
    return graph;
}

/* Bytes of run i at a buffer's place. */
static uint64_t place_of(const graph_plan *plan, size_t buffer, uint64_t run)
{
    const uint64_t offset = plan->offsets[buffer];
    return offset + (offset < plan->kept_bytes ? run * plan->kept_bytes : 0);
}

/* What one run keeps over the turn shares no byte with what another run has at any time. */
static void expect_apart(const graph_plan *plan, uint64_t runs, size_t turn)
{
    const graph_liveness *liveness = &plan->liveness;
    for (uint64_t run = 0; run < runs; run++)
        for (size_t a = 0; a < liveness->buffer_count; a++) {
            const graph_buffer *kept = &liveness->buffers[a];
            assert_true(place_of(plan, a, run) + kept->bytes <= plan->arena_bytes);
            if (!(kept->born < turn && kept->ends > turn + 1))
                continue;
            for (uint64_t other = 0; other < runs; other++)
                for (size_t b = 0; b < liveness->buffer_count && other != run; b++) {
                    const uint64_t at = place_of(plan, b, other);
                    assert_true(at + liveness->buffers[b].bytes <= place_of(plan, a, run) ||
                                place_of(plan, a, run) + kept->bytes <= at);
                }
        }
}

static size_t find_turn(const graph_plan *plan, uint32_t turn)
{
    size_t position = 0;
    while (plan->sequence.actions[position] != turn)
        position++;
    return position;
}

static void test_keep_all(void **state)
{
    fixture *f = *state;
    uint32_t turn;
    remat_graph *graph = make_graph(f, &turn);
    for (uint64_t runs = 1; runs <= 4; runs++) {
        graph_plan_options options;
        graph_plan *plan;
        graph_plan_options_init(&options);
        options.flight = (graph_flight){runs, turn};
        options.strategy = "none";
        expect_ok(f, graph_plan_create(graph, &options, &plan));
        /* All inputs of layers are kept; the last output and the gradients are not. */
        assert_int_equal(plan->kept_bytes, runs == 1 ? 0 : LAYERS * BYTES);
        assert_int_equal(plan->arena_bytes, (runs * LAYERS + 2) * BYTES);
        assert_int_equal(plan->base_arena_bytes, plan->arena_bytes);
        expect_apart(plan, runs, find_turn(plan, turn));
        graph_plan_destroy(plan);
    }
    graph_destroy(graph);
}

/* More runs need more, and less budget costs more: every plan fits, and keeps its runs apart. */
static void test_budgets(void **state)
{
    fixture *f = *state;
    uint32_t turn;
    remat_graph *graph = make_graph(f, &turn);
    for (uint64_t runs = 2; runs <= 4; runs++) {
        uint64_t last_cost = 0;
        graph_plan_options options;
        graph_plan *plan;
        graph_plan_options_init(&options);
        options.flight = (graph_flight){runs, turn};
        for (uint64_t budget = (runs * LAYERS + 2) * BYTES;; budget -= 2 * BYTES) {
            options.budget_bytes = budget;
            const remat_status status = graph_plan_create(graph, &options, &plan);
            if (status == REMAT_INFEASIBLE) {
                assert_true(plan->min_budget_bytes > budget);
                graph_plan_destroy(plan);
                break;
            }
            expect_ok(f, status);
            assert_true(plan->arena_bytes <= budget && plan->cost >= last_cost);
            last_cost = plan->cost;
            expect_apart(plan, runs, find_turn(plan, turn));
            graph_plan_destroy(plan);
        }
        assert_true(last_cost > 3 * LAYERS + 4); /* something was recomputed */
    }
    graph_destroy(graph);
}

/* The last backward makes the peak of one run, whatever is kept until then. All runs together take less if they keep less. */
static void test_late_peak(void **state)
{
    enum { WORKSPACE = 40 * BYTES };
    fixture *f = *state;
    uint32_t turn;
    remat_graph *graph = make_graph(f, &turn);
    graph->actions[graph->action_count - 1].workspace_bytes = WORKSPACE;
    for (uint64_t runs = 2; runs <= 4; runs++)
        for (uint64_t kept = 1; kept <= 2; kept++) {
            graph_plan_options options;
            graph_plan *plan;
            graph_plan_options_init(&options);
            options.flight = (graph_flight){runs, turn};
            options.chain_only = kept == 2; /* the chain keeps the input of a piece, too */
            options.budget_bytes = (runs * kept + 2) * BYTES + WORKSPACE;
            expect_ok(f, graph_plan_create(graph, &options, &plan));
            assert_int_equal(plan->arena_bytes, options.budget_bytes);
            assert_int_equal(plan->kept_bytes, kept * BYTES);
            assert_int_equal(plan->min_budget_bytes, options.budget_bytes);
            expect_apart(plan, runs, find_turn(plan, turn));
            graph_plan_destroy(plan);
        }
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_keep_all),
        FIXTURE_TEST(test_budgets),
        FIXTURE_TEST(test_late_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
