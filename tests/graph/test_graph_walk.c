/* The walk of a graph's schedule against a slow one that is written from the definition alone. */
#include "graph/graph_walk.h"
#include "support/random_graph.h"
#include "support/slow_graph.h"

static uint64_t below(test_random *random, uint64_t bound)
{
    return test_random_below(random, bound);
}

/* ---- graphs without any order or sense ---- */

enum { MOST_TENSORS = 7, MOST_ACTIONS = 8, MOST_POSITIONS = 24 };

static size_t draw_list(test_random *random, size_t tensors, uint64_t percent, uint32_t *list)
{
    size_t count = 0;
    for (uint32_t t = 0; t < tensors; t++)
        if (below(random, 100) < percent)
            list[count++] = t;
    return count;
}

static void drop_given(const remat_graph *graph, uint32_t *list, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (!graph->tensors[list[i]].given)
            list[kept++] = list[i];
    *count = kept;
}

static void draw_action(fixture *f, test_random *random, remat_graph *graph)
{
    uint32_t reads[MOST_TENSORS], updates[MOST_TENSORS], writes[MOST_TENSORS];
    graph_action action = {.once = below(random, 2), .cost = below(random, 50), .in_place_from = GRAPH_NONE};
    action.in_place_to = GRAPH_NONE;
    action.workspace_bytes = below(random, 3) ? 0 : below(random, 300);
    graph_links links = {.reads = reads, .updates = updates, .writes = writes};
    links.read_count = draw_list(random, graph->tensor_count, 25, reads);
    links.update_count = action.once ? draw_list(random, graph->tensor_count, 15, updates) : 0;
    links.write_count = draw_list(random, graph->tensor_count, 30, writes);
    drop_given(graph, writes, &links.write_count);
    if (links.read_count && links.write_count && below(random, 2)) {
        action.in_place_from = reads[below(random, links.read_count)];
        action.in_place_to = writes[below(random, links.write_count)];
    }
    expect_ok(f, graph_add_action(graph, &action, &links));
}

static remat_graph *draw_graph(fixture *f, test_random *random)
{
    remat_graph *graph;
    expect_ok(f, graph_create(f->context, &graph));
    size_t tensors = 1 + below(random, MOST_TENSORS), actions = 1 + below(random, MOST_ACTIONS);
    for (size_t t = 0; t < tensors; t++) {
        graph_tensor tensor = {.bytes = below(random, 4) ? below(random, 400) : 64 * below(random, 3)};
        tensor.given = below(random, 5) == 0;
        expect_ok(f, graph_add_tensor(graph, &tensor));
    }
    for (size_t a = 0; a < actions; a++)
        draw_action(f, random, graph);
    for (uint32_t t = 0; t < tensors; t++)
        if (below(random, 5) == 0)
            expect_ok(f, graph_add_result(graph, t));
    return graph;
}

/* Mostly actions that can run, in an order that can be; sometimes anything. */
static void draw_schedule(fixture *f, test_random *random, const remat_graph *graph, graph_sequence *sequence)
{
    bool there[MOST_TENSORS];
    size_t next = 0, positions = below(random, MOST_POSITIONS);
    for (size_t t = 0; t < graph->tensor_count; t++)
        there[t] = graph->tensors[t].given;
    for (size_t p = 0; p < positions || (next < graph->action_count && p < 3 * positions); p++) {
        uint32_t number = (uint32_t)below(random, graph->action_count + (below(random, 400) == 0));
        while (next < graph->action_count && !graph->actions[next].once)
            next++;
        if (below(random, 3) == 0 && next < graph->action_count)
            number = (uint32_t)next;
        bool fits = number == graph->action_count || !graph->actions[number].once || number == next;
        for (size_t i = 0; fits && number < graph->action_count && i < graph_need_count(&graph->actions[number]); i++)
            fits = there[graph_reads(graph, &graph->actions[number])[i]];
        if (!fits && below(random, 60))
            continue;
        expect_ok(f, graph_sequence_add(f->context, sequence, number));
        if (number == graph->action_count)
            continue;
        for (size_t i = 0; i < graph->actions[number].write_count; i++)
            there[graph_writes(graph, &graph->actions[number])[i]] = true;
        next += number == next;
    }
}

/* ---- the comparison ---- */

/* Every range lies inside its buffer, which is as large as it; ranges that share one do not overlap but where one takes
 * the other's place. */
static void expect_buffers(const remat_graph *graph, const graph_sequence *sequence, const graph_liveness *found)
{
    for (size_t i = 0; i < found->range_count; i++) {
        const live_range *range = &found->ranges[i];
        const graph_buffer *buffer = &found->buffers[range->buffer];
        assert_true(range->born < range->ends && range->ends <= sequence->count);
        assert_true(buffer->born <= range->born && buffer->ends >= range->ends);
        assert_int_equal(buffer->bytes, range->bytes);
        for (size_t k = 0; k < i; k++) {
            const live_range *other = &found->ranges[k];
            if (other->buffer != range->buffer || other->ends <= range->born)
                continue;
            const graph_action *action = &graph->actions[sequence->actions[range->born]];
            assert_int_equal(other->ends, range->born + 1);
            assert_int_equal(range->in_place_of, k);
            assert_int_equal(action->in_place_from, other->tensor);
            assert_int_equal(action->in_place_to, range->tensor);
        }
    }
}

/* What the ranges count adds up to the bytes at every position. */
static void expect_sums(const graph_liveness *found, uint64_t given)
{
    for (size_t p = 0; p < found->position_count; p++) {
        uint64_t sum = given;
        for (size_t i = 0; i < found->range_count; i++)
            if (live_range_counts_from(&found->ranges[i]) <= p && p < found->ranges[i].ends)
                sum += found->ranges[i].bytes;
        assert_int_equal(sum, found->live_bytes[p]);
    }
}

/* Returns whether the schedule is legal. */
static bool expect_same(fixture *f, const remat_graph *graph, const graph_sequence *sequence, graph_counting counting)
{
    bool placed = counting == GRAPH_PLACED;
    graph_liveness found;
    slow_walk slow = graph_slow_walk(graph, sequence->actions, sequence->count, placed ? 64 : 1, !placed);
    remat_status status = graph_walk(graph, sequence, counting, &found);
    uint64_t given = 0;
    for (size_t t = 0; t < graph->tensor_count && !placed; t++)
        given += graph->tensors[t].given ? graph->tensors[t].bytes : 0;
    if (!slow.legal) {
        expect_status(f, status, REMAT_CHECK_FAILED);
        assert_null(found.ranges);
        return false;
    }
    expect_ok(f, status);
    if (found.peak_bytes != slow.peak)
        graph_print(graph);
    assert_int_equal(found.peak_bytes, slow.peak);
    assert_int_equal(found.cost, slow.cost);
    assert_true(sequence->count == 0 || found.live_bytes[found.peak_position] == slow.peak);
    expect_buffers(graph, sequence, &found);
    expect_sums(&found, given);
    graph_liveness_release(f->context, &found);
    return true;
}

static void any_schedule_gets_the_same_verdict(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    size_t legal = 0, all = LESS_WHEN_SANITIZED(30000, 1500);
    for (size_t i = 0; i < all; i++) {
        remat_graph *graph = draw_graph(f, &random);
        graph_sequence sequence = {0};
        draw_schedule(f, &random, graph, &sequence);
        bool exact = expect_same(f, graph, &sequence, GRAPH_EXACT);
        assert_int_equal(expect_same(f, graph, &sequence, GRAPH_PLACED), exact);
        legal += exact;
        graph_sequence_release(f->context, &sequence);
        graph_destroy(graph);
    }
    print_message("%zu of %zu schedules are legal\n", legal, all);
    assert_true(legal > all / 10 && legal < all - all / 10);
}

/* ---- training steps ---- */

/* The plain order with forward actions, drawn at random, run again before backward ones: everything was made once, so
 * that any of them may. */
static void draw_step(fixture *f, test_random *random, const remat_graph *graph, graph_sequence *sequence)
{
    uint64_t often = below(random, 4), forward = 0;
    for (uint32_t i = 0; i < graph->action_count; i++)
        forward = graph->actions[i].once ? forward : i + 1;
    for (uint32_t i = 0; i < graph->action_count; i++) {
        for (uint64_t k = 0; i >= forward && k < often; k++) {
            uint32_t again = (uint32_t)below(random, forward);
            if (!graph->actions[again].once)
                expect_ok(f, graph_sequence_add(f->context, sequence, again));
        }
        expect_ok(f, graph_sequence_add(f->context, sequence, i));
    }
}

/* One walker, rewound again and again to a point inside the schedule, says what a new one says. */
static void expect_rewinds(fixture *f, test_random *random, const remat_graph *graph, const graph_sequence *sequence)
{
    graph_walker walker;
    graph_liveness found;
    size_t begin = below(random, sequence->count + 1);
    expect_ok(f, graph_walk(graph, sequence, GRAPH_PLACED, &found));
    expect_ok(f, graph_walker_create(graph, GRAPH_PLACED, &walker));
    expect_ok(f, graph_walker_run(&walker, sequence->actions, begin));
    expect_ok(f, graph_walker_mark(&walker));
    for (int i = 0; i < 3; i++) {
        expect_ok(f, graph_walker_run(&walker, sequence->actions + begin, sequence->count - begin));
        expect_ok(f, graph_walker_finish(&walker));
        assert_int_equal(walker.found.peak_bytes, found.peak_bytes);
        assert_int_equal(walker.found.peak_position, found.peak_position);
        assert_int_equal(walker.found.cost, found.cost);
        graph_walker_rewind(&walker);
    }
    graph_walker_release(&walker);
    graph_liveness_release(f->context, &found);
}

static void training_steps_are_walked(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(1000, 100); i++) {
        remat_graph *graph = random_graph(f, &random, &(graph_traits){1, 9, false, false}, NULL);
        graph_sequence sequence = {0};
        if (i % 4 == 0)
            expect_ok(f, graph_sequence_plain(graph, &sequence));
        else
            draw_step(f, &random, graph, &sequence);
        assert_true(expect_same(f, graph, &sequence, GRAPH_EXACT));
        assert_true(expect_same(f, graph, &sequence, GRAPH_PLACED));
        expect_rewinds(f, &random, graph, &sequence);
        graph_sequence_release(f->context, &sequence);
        graph_destroy(graph);
    }
}

/* ---- what is wrong ---- */

static void expect_refused(fixture *f, const remat_graph *graph, const uint32_t *actions, size_t count,
                           const char *part)
{
    graph_sequence sequence = {0};
    graph_liveness found;
    for (size_t i = 0; i < count; i++)
        expect_ok(f, graph_sequence_add(f->context, &sequence, actions[i]));
    expect_status(f, graph_walk(graph, &sequence, GRAPH_EXACT, &found), REMAT_CHECK_FAILED);
    expect_message(f, part);
    assert_null(found.ranges);
    graph_sequence_release(f->context, &sequence);
}

/* 0 loads, 1 and 2 go forward, 3 to 9 come back. */
static void wrong_schedules_are_refused(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 0, 4096, NULL);
    assert_int_equal(graph->action_count, 10);
    const uint32_t no_input[] = {1, 0}, twice[] = {0, 0}, missing[] = {0, 1, 2, 3, 4, 5}, order[] = {0, 1, 2, 3, 5},
                   again[] = {0, 1, 2, 3, 4, 4}, unknown[] = {0, 99}, all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    expect_refused(f, graph, no_input, 2, "tokens");
    expect_refused(f, graph, twice, 2, "runs a second time");
    expect_refused(f, graph, missing, 6, "has not run");
    expect_refused(f, graph, order, 5, "is out of order");
    expect_refused(f, graph, again, 6, "runs a second time");
    expect_refused(f, graph, unknown, 2, "no action 99");
    expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "nothing", .bytes = 1}));
    expect_ok(f, graph_add_result(graph, (uint32_t)graph->tensor_count - 1));
    expect_refused(f, graph, all, 10, "the result nothing was never written");
    graph_destroy(graph);
}

static void wrong_graphs_are_refused(void **state)
{
    fixture *f = *state;
    remat_graph *graph;
    const uint32_t given = 0, x = 1, twice[] = {1, 1}, unknown = 9;
    const graph_action plain = {.name = "a", .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
    graph_action in_place = plain, large = plain;
    in_place.in_place_from = in_place.in_place_to = x;
    large.cost = (uint64_t)1 << 63;
    expect_ok(f, graph_create(f->context, &graph));
    expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "w", .bytes = 8, .given = true}));
    expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.name = "x", .bytes = 8}));
    expect_status(f, graph_add_tensor(graph, &(graph_tensor){.bytes = UINT64_MAX}), REMAT_INVALID);
    expect_status(f, graph_add_result(graph, unknown), REMAT_INVALID);
    const struct {
        const graph_action *action;
        graph_links links;
        const char *part;
    } rows[] = {
        {&plain, {.reads = &unknown, .read_count = 1}, "there is no tensor 9; there are 2"},
        {&plain, {.writes = &given, .write_count = 1}, "given"},
        {&plain, {.writes = twice, .write_count = 2}, "twice"},
        {&plain, {.updates = &x, .update_count = 1}, "updates"},
        {&in_place, {.writes = &x, .write_count = 1}, "in_place"},
        {&large, {.writes = &x, .write_count = 1}, "2^63"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_status(f, graph_add_action(graph, rows[i].action, &rows[i].links), REMAT_INVALID);
        expect_message(f, rows[i].part);
    }
    assert_int_equal(graph->action_count, 0);
    graph_destroy(graph);
}

/* Sums that would pass 2^63 are refused before anything wraps. */
static void large_sums_are_refused(void **state)
{
    fixture *f = *state;
    const uint64_t half = (uint64_t)1 << 62;
    for (int i = 0; i < 2; i++) {
        remat_graph *graph;
        graph_liveness found;
        graph_sequence sequence = {0};
        graph_action action = {.cost = i ? half : 1, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
        const uint32_t x = 0;
        expect_ok(f, graph_create(f->context, &graph));
        expect_ok(f, graph_add_tensor(graph, &(graph_tensor){.bytes = i ? 8 : half}));
        expect_ok(f, graph_add_action(graph, &action, &(graph_links){.writes = &x, .write_count = 1}));
        expect_ok(f, graph_add_action(graph, &action, &(graph_links){.writes = &x, .write_count = 1}));
        expect_ok(f, graph_sequence_plain(graph, &sequence));
        expect_status(f, graph_walk(graph, &sequence, GRAPH_EXACT, &found), REMAT_INVALID);
        graph_sequence_release(f->context, &sequence);
        graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(any_schedule_gets_the_same_verdict),
        FIXTURE_TEST(training_steps_are_walked),
        FIXTURE_TEST(wrong_schedules_are_refused),
        FIXTURE_TEST(wrong_graphs_are_refused),
        FIXTURE_TEST(large_sums_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
