/* The decisions on what is held: whatever is decided, and taken back, the schedule is legal, and its figures are those of a walk. */
#include "plan/graph/hold_state.h"

#include "support/random_graph.h"

static const graph_traits small = {1, 9, false, false}, large = {12, 60, false, false};

/* Where the state may count more than a walk: a cascade makes a tensor that is held already, because its maker has another
 * output; then the walk ends the first instance with its last read. Or an action does not run at its own position, up to which
 * what it reads is held. */
static bool may_count_more(const hold_state *state)
{
    const hold_graph *g = state->g;
    for (uint32_t position = 0; position < g->position_count; position++) {
        if (!state->cascades[position].runs && g->actions[position].read_count)
            return true;
        for (uint32_t i = 0; i < state->cascades[position].count; i++) {
            const hold_action *action = &g->actions[state->cascades[position].actions[i]];
            for (uint32_t w = 0; w < action->write_count; w++)
                if (state->held_from[hold_gap_before(g, action->writes[w], position)] < position)
                    return true;
        }
    }
    return false;
}

static void expect_figures(fixture *f, hold_state *state, graph_counting counting)
{
    graph_sequence sequence = {0};
    graph_liveness found;
    uint64_t over;
    uint32_t position;
    expect_ok(f, hold_state_sequence(state, &sequence));
    expect_ok(f, graph_walk(state->g->graph, &sequence, counting, &found));
    assert_true((uint64_t)state->cost == found.cost);
    uint64_t peak = hold_state_peak(state, 0, 0, &over, &position);
    assert_true(peak == found.peak_bytes || (peak > found.peak_bytes && may_count_more(state)));
    graph_liveness_release(f->context, &found);
    graph_sequence_release(f->context, &sequence);
}

static uint32_t any_decision(const hold_graph *g, test_random *random, uint32_t gap)
{
    const hold_gap *range = &g->gaps[gap];
    uint32_t end = range->end == HOLD_TAIL ? g->position_count : range->end;
    switch (test_random_below(random, 4)) {
    case 0: return range->begin;
    case 1: return range->begin + 1;
    case 2: return range->end;
    default: return range->begin + (uint32_t)test_random_below(random, end - range->begin) + 1;
    }
}

static void decide_some(const hold_graph *g, test_random *random, hold_state *s)
{
    for (uint64_t i = test_random_below(random, 3) + 1; i > 0; i--) {
        uint32_t gap = (uint32_t)test_random_below(random, g->gap_count);
        hold_state_note(s, gap, any_decision(g, random, gap));
    }
}

/* Some changes within changes, which stay or not. `depth` of them at most. */
static void try_changes(fixture *f, const hold_graph *g, test_random *random, hold_state *s, int depth)
{
    hold_mark mark;
    hold_state_mark(s, &mark);
    decide_some(g, random, s);
    if (test_random_below(random, 4))
        expect_ok(f, hold_state_settle(s)); /* else it is taken back as it is */
    else
        depth = 0;
    if (test_random_below(random, 2))
        hold_state_count(s);
    for (uint64_t i = test_random_below(random, 3); depth > 0 && i > 0; i--)
        try_changes(f, g, random, s, depth - 1);
    if (depth > 0 && test_random_below(random, 2))
        hold_state_accept(s);
    else
        hold_state_revert(s, &mark);
}

/* The way there does not matter. */
static void expect_fresh(fixture *f, const hold_graph *g, hold_state *s)
{
    hold_state fresh;
    expect_ok(f, hold_state_create(g, &fresh));
    for (uint32_t gap = 0; gap < g->gap_count; gap++)
        hold_state_note(&fresh, gap, s->from[gap]);
    expect_ok(f, hold_state_settle(&fresh));
    hold_state_count(&fresh);
    hold_state_count(s);
    assert_true(fresh.cost == s->cost && fresh.run_count == s->run_count);
    for (uint32_t i = 0; i < g->position_count; i++) {
        assert_int_equal(fresh.held_bytes[i], s->held_bytes[i]);
        assert_int_equal(fresh.extra_bytes[i], s->extra_bytes[i]);
    }
    hold_state_release(&fresh);
}

static void figures_are_those_of_a_walk(void **state)
{
    fixture *f = *state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        test_random random = {seed};
        remat_graph *graph = random_graph(f, &random, seed % 3 ? &small : &large, NULL);
        graph_counting counting = seed % 2 ? GRAPH_EXACT : GRAPH_PLACED;
        hold_graph g;
        hold_state s;
        expect_ok(f, hold_graph_create(graph, counting, &g));
        expect_ok(f, hold_state_create(&g, &s));
        expect_figures(f, &s, counting);
        for (int change = 0; g.gap_count && change < 60; change++) {
            if (change % 3 == 0)
                try_changes(f, &g, &random, &s, 3);
            else
                decide_some(&g, &random, &s);
            expect_ok(f, hold_state_settle(&s));
            expect_figures(f, &s, counting);
            if (change % 20 == 0)
                expect_fresh(f, &g, &s);
        }
        expect_fresh(f, &g, &s);
        hold_state_release(&s);
        hold_graph_release(&g);
        graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(figures_are_those_of_a_walk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
