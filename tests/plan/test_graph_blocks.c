/* Blocks of layers on random graphs: always legal, and a block runs again no more than its backward needs. */
#include "plan/graph/graph_blocks.h"
#include "support/graph_brute_force.h"
#include "support/random_graph.h"

static slow_walk expect_legal(fixture *f, const remat_graph *graph, const uint32_t *blocks)
{
    graph_sequence sequence = {0};
    graph_lives lives;
    expect_ok(f, graph_blocks_sequence(graph, blocks, &sequence));
    expect_ok(f, graph_walk(graph, &sequence, &lives));
    slow_walk walk = {lives.peak_bytes, lives.cost};
    uint32_t *runs = calloc(graph->action_count, sizeof *runs);
    for (size_t i = 0; i < sequence.count; i++)
        runs[sequence.actions[i]]++;
    for (size_t i = 0; i < graph->action_count; i++) {
        uint32_t block = blocks[graph->actions[i].layer];
        assert_true(runs[i] == 1 || (runs[i] == 2 && i < graph->backward_begin && block != GRAPH_NONE));
    }
    free(runs);
    graph_lives_release(f->context, &lives);
    graph_sequence_release(f->context, &sequence);
    return walk;
}

/* Runs of `size` layers from `first` on; 0: none. */
static uint32_t *cut_blocks(const remat_graph *graph, size_t first, size_t size)
{
    uint32_t *blocks = malloc(graph->layer_count * sizeof *blocks);
    for (size_t l = 0; l < graph->layer_count; l++)
        blocks[l] = size == 0 || l < first ? GRAPH_NONE : (uint32_t)((l - first) / size);
    return blocks;
}

static void every_size_is_legal(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(800, 60); i++) {
        remat_graph *graph = random_graph(f, &random, &(graph_traits){1, 14, false});
        uint64_t plain = 0;
        for (size_t size = 0; size <= graph->layer_count; size++) {
            for (size_t first = 0; first < 3; first++) {
                uint32_t *blocks = cut_blocks(graph, first, size);
                slow_walk walk = expect_legal(f, graph, blocks);
                plain = size == 0 ? walk.cost : plain;
                assert_true(walk.cost >= plain && walk.cost <= 2 * plain);
                free(blocks);
            }
        }
        uint32_t *some = cut_blocks(graph, 0, 2); /* blocks between layers that are in none */
        for (size_t l = 0; l < graph->layer_count; l++)
            some[l] = test_random_below(&random, 3) ? some[l] : GRAPH_NONE;
        expect_legal(f, graph, some);
        free(some);
        graph_destroy(graph);
    }
}

/* fc and relu in one block: the relu's output is the next layer's input and is kept anyway. */
static void block_that_keeps_all_runs_nothing_again(void **state)
{
    fixture *f = *state;
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    static const char *const names[] = {"x", "fc", "relu", "dy", "dfc", "dw"};
    for (size_t t = 0; t < 6; t++)
        expect_ok(f, graph_add_tensor(graph, names[t], 640));
    for (size_t l = 0; l < 4; l++)
        expect_ok(f, graph_add_layer(graph, &(graph_layer){"layer", REMAT_FFN, 1}));
    static const struct {
        graph_kind kind;
        uint32_t layer, reads[2], write;
        size_t read_count;
    } rows[] = {
        {GRAPH_LOAD, 0, {0}, 0, 0},       {GRAPH_FORWARD, 1, {0}, 1, 1},       {GRAPH_FORWARD, 2, {1}, 2, 1},
        {GRAPH_DERIVATIVE, 3, {2}, 3, 1}, {GRAPH_DERIVATIVE, 2, {3, 2}, 4, 2}, {GRAPH_GRADIENT, 1, {4, 0}, 5, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graph_action action = {.kind = rows[i].kind, .layer = rows[i].layer, .cost = 1};
        action.in_place_from = action.in_place_to = GRAPH_NONE;
        graph_links links = {.reads = rows[i].reads, .read_count = rows[i].read_count};
        links.writes = &rows[i].write;
        links.write_count = 1;
        expect_ok(f, graph_add_action(graph, &action, &links));
    }
    uint32_t together[] = {GRAPH_NONE, 0, 0, GRAPH_NONE}, all[] = {GRAPH_NONE, 0, 0, 0};
    assert_int_equal(expect_legal(f, graph, together).cost, 6); /* the last layer reads the relu: it is kept */
    assert_int_equal(expect_legal(f, graph, all).cost, 8);      /* nobody outside does: both run again */
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_size_is_legal),
        FIXTURE_TEST(block_that_keeps_all_runs_nothing_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
