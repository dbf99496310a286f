/* The walk of a graph's schedule against a slow one that looks at every tensor at every position. */
#include "graph/graph_walk.h"
#include "support/graph_brute_force.h"
#include "support/random_graph.h"

static const graph_traits traits = {1, 9, false};

/* The plain order with forward actions, drawn at random, run again before backward ones: everything was made once, so
 * that any of them may. */
static void draw_sequence(fixture *f, test_random *random, const remat_graph *graph, graph_sequence *sequence)
{
    uint64_t often = test_random_below(random, 4);
    for (uint32_t i = 0; i < graph->action_count; i++) {
        for (uint64_t k = 0; i >= graph->backward_begin && k < often; k++) {
            uint32_t again = (uint32_t)test_random_below(random, graph->backward_begin);
            if (graph->actions[again].kind != GRAPH_LOAD)
                expect_ok(f, graph_sequence_add(f->context, sequence, again));
        }
        expect_ok(f, graph_sequence_add(f->context, sequence, i));
    }
}

/* Every life lies inside its buffer, which is as large as it; lives that share one do not overlap but where one takes
 * the other's place. */
static void expect_buffers(const remat_graph *graph, const graph_sequence *sequence, const graph_lives *lives)
{
    for (size_t i = 0; i < lives->life_count; i++) {
        const graph_life *life = &lives->lives[i];
        const graph_buffer *buffer = &lives->buffers[life->buffer];
        assert_true(life->born < life->ends && life->ends <= sequence->count);
        assert_true(buffer->born <= life->born && buffer->ends >= life->ends);
        assert_true(life->tensor == GRAPH_NONE || buffer->bytes == graph->tensors[life->tensor].bytes);
        for (size_t k = 0; k < i; k++) {
            const graph_life *other = &lives->lives[k];
            if (other->buffer != life->buffer || other->ends <= life->born)
                continue;
            const graph_action *action = &graph->actions[sequence->actions[life->born]];
            assert_int_equal(other->ends, life->born + 1);
            assert_int_equal(action->in_place_from, other->tensor);
            assert_int_equal(action->in_place_to, life->tensor);
        }
    }
}

static void walk_is_what_the_slow_one_finds(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(1000, 100); i++) {
        remat_graph *graph = random_graph(f, &random, &traits);
        graph_sequence sequence = {0};
        graph_lives lives;
        if (i % 4 == 0)
            expect_ok(f, graph_sequence_plain(graph, &sequence));
        else
            draw_sequence(f, &random, graph, &sequence);
        expect_ok(f, graph_walk(graph, &sequence, &lives));
        slow_walk slow = graph_slow_walk(graph, sequence.actions, sequence.count);
        assert_int_equal(lives.peak_bytes, slow.peak);
        assert_int_equal(lives.cost, slow.cost);
        expect_buffers(graph, &sequence, &lives);
        graph_lives_release(f->context, &lives);
        graph_sequence_release(f->context, &sequence);
        graph_destroy(graph);
    }
}

static void expect_refused(fixture *f, const remat_graph *graph, const uint32_t *actions, size_t count,
                           const char *part)
{
    graph_sequence sequence = {0};
    graph_lives lives;
    for (size_t i = 0; i < count; i++)
        expect_ok(f, graph_sequence_add(f->context, &sequence, actions[i]));
    expect_status(f, graph_walk(graph, &sequence, &lives), REMAT_CHECK_FAILED);
    expect_message(f, part);
    assert_null(lives.lives);
    graph_sequence_release(f->context, &sequence);
}

/* 0 loads, 1 and 2 go forward, 3 to 5 come back. */
static void wrong_schedules_are_refused(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 0, 4096);
    assert_int_equal(graph->action_count, 10);
    const uint32_t no_input[] = {1, 0}, twice[] = {0, 0}, missing[] = {0, 1, 2, 3, 4, 5}, order[] = {0, 1, 2, 3, 5},
                   again[] = {0, 1, 2, 3, 4, 4}, unknown[] = {0, 99};
    expect_refused(f, graph, no_input, 2, "tokens");
    expect_refused(f, graph, twice, 2, "runs a second time");
    expect_refused(f, graph, missing, 6, "is missing");
    expect_refused(f, graph, order, 5, "is out of order");
    expect_refused(f, graph, again, 6, "is out of order");
    expect_refused(f, graph, unknown, 2, "names action 99 of 10");
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(walk_is_what_the_slow_one_finds),
        FIXTURE_TEST(wrong_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
