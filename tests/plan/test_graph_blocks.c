/* Blocks of layers on random graphs: always legal, and a block runs again no more than its backward needs. */
#include "plan/graph/graph_outline.h"
#include "support/random_graph.h"

/* Returns the cost. `blocks` has an entry for each layer. */
static uint64_t expect_legal(fixture *f, const remat_graph *graph, const uint32_t *layers, const uint32_t *blocks)
{
    graph_outline outline;
    graph_sequence sequence = {0};
    graph_liveness found;
    uint32_t *by_action = malloc(graph->action_count * sizeof *by_action);
    for (size_t i = 0; i < graph->action_count; i++)
        by_action[i] = blocks[layers[i]];
    expect_ok(f, graph_outline_create(graph, &outline));
    expect_ok(f, graph_blocks_sequence(&outline, by_action, &sequence));
    expect_ok(f, graph_walk(graph, &sequence, GRAPH_EXACT, &found));
    uint64_t cost = found.cost;
    uint32_t *runs = calloc(graph->action_count, sizeof *runs);
    for (size_t i = 0; i < sequence.count; i++)
        runs[sequence.actions[i]]++;
    for (size_t i = 0; i < graph->action_count; i++) {
        uint32_t block = by_action[i];
        assert_true(runs[i] == 1 || (runs[i] == 2 && !graph->actions[i].once && block != GRAPH_NONE));
    }
    free(runs);
    free(by_action);
    graph_outline_release(&outline);
    graph_liveness_release(f->context, &found);
    graph_sequence_release(f->context, &sequence);
    return cost;
}

/* Runs of `size` layers from `first` on; 0: none. */
static uint32_t *cut_blocks(size_t layers, size_t first, size_t size)
{
    uint32_t *blocks = malloc(layers * sizeof *blocks);
    for (size_t l = 0; l < layers; l++)
        blocks[l] = size == 0 || l < first ? GRAPH_NONE : (uint32_t)((l - first) / size);
    return blocks;
}

static void every_size_is_legal(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(800, 60); i++) {
        graph_notes notes;
        remat_graph *graph = random_graph(f, &random, &(graph_traits){1, 14, false, false}, &notes);
        uint64_t plain = 0;
        for (size_t size = 0; size <= notes.layer_count; size++) {
            for (size_t first = 0; first < 3; first++) {
                uint32_t *blocks = cut_blocks(notes.layer_count, first, size);
                uint64_t cost = expect_legal(f, graph, notes.layers, blocks);
                plain = size == 0 ? cost : plain;
                assert_true(cost >= plain && cost <= 2 * plain);
                free(blocks);
            }
        }
        uint32_t *some = cut_blocks(notes.layer_count, 0, 2); /* blocks between layers that are in none */
        for (size_t l = 0; l < notes.layer_count; l++)
            some[l] = test_random_below(&random, 3) ? some[l] : GRAPH_NONE;
        expect_legal(f, graph, notes.layers, some);
        free(some);
        graph_notes_free(&notes);
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
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = names[t], .bytes = 640}));
    static const struct {
        bool once;
        uint32_t reads[2], write;
        size_t read_count;
    } rows[] = {
        {true, {0}, 0, 0}, {false, {0}, 1, 1},   {false, {1}, 2, 1},
        {true, {2}, 3, 1}, {true, {3, 2}, 4, 2}, {true, {4, 0}, 5, 2},
    };
    static const uint32_t layers[] = {0, 1, 2, 3, 2, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graph_action action = {.once = rows[i].once, .cost = 1};
        action.in_place_from = action.in_place_to = GRAPH_NONE;
        graph_links links = {.reads = rows[i].reads, .read_count = rows[i].read_count};
        links.writes = &rows[i].write;
        links.write_count = 1;
        expect_ok(f, graph_add_action(graph, &action, &links));
    }
    uint32_t together[] = {GRAPH_NONE, 0, 0, GRAPH_NONE}, all[] = {GRAPH_NONE, 0, 0, 0};
    assert_int_equal(expect_legal(f, graph, layers, together), 6); /* the last layer reads the relu: it is kept */
    assert_int_equal(expect_legal(f, graph, layers, all), 8);      /* nobody outside does: both run again */
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
