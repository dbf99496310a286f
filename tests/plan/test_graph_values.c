/* Plans compute what the order of the graph computes, also where weights are tensors of the graph that are updated. */
#include "graph/graph_values.h"
#include "plan/graph/graph_plan.h"
#include "support/fixture.h"

enum { MOST = 8 };
typedef enum step_place { NO_STEPS, STEPS_BEHIND_USES, STEPS_ANYWHERE } step_place;

/* Layers in a row, some of which share a weight, forward and backward. With steps anywhere some also write a counter, which is updated
 * before their backward pass and is a result. Tensors: data, weights, outputs, counters, gradients. */
typedef struct net {
    remat_graph *graph;
    uint32_t layers, weights[MOST], outputs[MOST + 1];
    uint32_t counters[MOST]; /* GRAPH_NONE: the layer has none */
} net;

static uint32_t add_tensor(fixture *f, net *n, uint64_t bytes, bool given)
{
    expect_ok(f, graph_add_tensor(n->graph, &(graph_tensor){.bytes = bytes, .given = given}));
    return (uint32_t)n->graph->tensor_count - 1;
}

static void add_action(fixture *f, net *n, bool once, uint64_t cost, const graph_links *links)
{
    const graph_action action = {.in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE, .once = once, .cost = cost};
    expect_ok(f, graph_add_action(n->graph, &action, links));
}

static bool is_used_before(const net *n, uint32_t layer)
{
    for (uint32_t i = 0; i < layer; i++)
        if (n->weights[i] == n->weights[layer])
            return true;
    return false;
}

static net random_net(fixture *f, test_random *random, step_place steps)
{
    net n = {.layers = 3 + (uint32_t)test_random_below(random, MOST - 2)};
    expect_ok(f, graph_create(f->context, &n.graph));
    n.outputs[0] = add_tensor(f, &n, 64, false);
    add_action(f, &n, true, 1, &(graph_links){NULL, NULL, n.outputs, 0, 0, 1});
    for (uint32_t i = 0; i < n.layers; i++)
        n.weights[i] = i && test_random_below(random, 4) == 0 ? n.weights[test_random_below(random, i)]
                                                              : add_tensor(f, &n, 640, true);
    for (uint32_t i = 0; i < n.layers; i++) {
        const uint32_t reads[] = {n.outputs[i], n.weights[i]};
        n.outputs[i + 1] = add_tensor(f, &n, 64 * (1 + test_random_below(random, 20)), false);
        const bool counts = steps == STEPS_ANYWHERE && test_random_below(random, 3) == 0;
        n.counters[i] = counts ? add_tensor(f, &n, 64, false) : GRAPH_NONE;
        const uint32_t writes[] = {n.outputs[i + 1], n.counters[i]};
        add_action(f, &n, false, 1 + test_random_below(random, 30),
                   &(graph_links){reads, NULL, writes, 2, 0, counts ? 2 : 1});
    }
    uint32_t gradient = n.outputs[n.layers];
    for (uint32_t i = n.layers; i-- > 0;) {
        if (n.counters[i] != GRAPH_NONE) {
            add_action(f, &n, true, 1, &(graph_links){&gradient, &n.counters[i], NULL, 1, 1, 0});
            expect_ok(f, graph_add_result(n.graph, n.counters[i]));
        }
        const uint32_t reads[] = {gradient, n.outputs[i], n.weights[i]}, made = add_tensor(f, &n, 64, false);
        add_action(f, &n, true, 40, &(graph_links){reads, NULL, &made, 3, 0, 1});
        gradient = made;
        const uint32_t anywhere = n.weights[test_random_below(random, n.layers)];
        const uint32_t stepped = steps == STEPS_ANYWHERE ? anywhere : n.weights[i];
        if (steps != NO_STEPS && (steps == STEPS_ANYWHERE || !is_used_before(&n, i)))
            add_action(f, &n, true, 0, &(graph_links){&gradient, &stepped, NULL, 1, 1, 0});
    }
    expect_ok(f, graph_add_result(n.graph, gradient));
    return n;
}

/* ---- an independent replay ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ a >> 29;
}

/* A number for what all actions with `once` read, and for the results. */
static uint64_t value_of(const remat_graph *graph, const graph_sequence *sequence)
{
    uint64_t values[5 * MOST + 2], all = 0;
    for (uint32_t t = 0; t < graph->tensor_count; t++)
        values[t] = t;
    for (size_t i = 0; i < sequence->count; i++) {
        const uint32_t number = sequence->actions[i];
        const graph_action *action = &graph->actions[number];
        uint64_t inputs = number;
        for (size_t k = 0; k < graph_need_count(action); k++)
            inputs = mix(inputs, values[graph_reads(graph, action)[k]]);
        for (size_t k = 0; k < action->update_count; k++)
            values[graph_updates(graph, action)[k]] = mix(inputs, 2 * k);
        for (size_t k = 0; k < action->write_count; k++)
            values[graph_writes(graph, action)[k]] = mix(inputs, 2 * k + 1);
        all = action->once ? mix(all, inputs) : all;
    }
    for (size_t i = 0; i < graph->result_count; i++)
        all = mix(all, values[graph->results[i]]);
    return all;
}

static uint64_t plain_value(fixture *f, const remat_graph *graph, uint64_t *peak)
{
    graph_sequence plain = {0};
    expect_ok(f, graph_sequence_plain(graph, &plain));
    expect_ok(f, graph_walk_peak(graph, &plain, GRAPH_EXACT, peak));
    const uint64_t value = value_of(graph, &plain);
    graph_sequence_release(f->context, &plain);
    return value;
}

/* ---- plans ---- */

static graph_plan *plan_within(fixture *f, const remat_graph *graph, uint64_t budget)
{
    graph_plan_options options;
    graph_plan *plan;
    graph_plan_options_init(&options);
    options.effort = 1;
    options.binds = GRAPH_EXACT;
    options.budget_bytes = budget;
    const remat_status status = graph_plan_create(graph, &options, &plan);
    if (status != REMAT_INFEASIBLE)
        expect_ok(f, status);
    return plan;
}

static void values_stay(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    size_t recomputing = 0;
    for (int i = 0; i < 40; i++) {
        net n = random_net(f, &random, STEPS_ANYWHERE);
        uint64_t peak;
        const uint64_t value = plain_value(f, n.graph, &peak);
        for (uint64_t budget = peak; budget > peak / 3; budget -= peak / 9) {
            graph_plan *plan = plan_within(f, n.graph, budget);
            if (plan->feasible)
                assert_true(value_of(n.graph, &plan->sequence) == value);
            recomputing += plan->feasible && plan->cost > plan->base_cost;
            graph_plan_destroy(plan);
        }
        graph_destroy(n.graph);
    }
    assert_true(recomputing > 20);
}

/* A weight that is updated when nobody needs the old one any more is no burden. */
static void late_steps_cost_nothing(void **state)
{
    fixture *f = *state;
    const uint64_t seed = test_seed();
    for (uint64_t i = 0; i < 20; i++) {
        test_random one = {seed + i}, other = {seed + i};
        net with = random_net(f, &one, STEPS_BEHIND_USES), without = random_net(f, &other, NO_STEPS);
        uint64_t peak, same;
        plain_value(f, with.graph, &peak);
        plain_value(f, without.graph, &same);
        assert_true(peak == same);
        for (uint64_t budget = peak; budget > peak / 3; budget -= peak / 9) {
            graph_plan *a = plan_within(f, with.graph, budget), *b = plan_within(f, without.graph, budget);
            assert_true(a->feasible == b->feasible && a->cost == b->cost);
            assert_true(a->lower_bound_cost == b->lower_bound_cost && a->min_budget_bytes == b->min_budget_bytes);
            graph_plan_destroy(a);
            graph_plan_destroy(b);
        }
        graph_destroy(with.graph);
        graph_destroy(without.graph);
    }
}

/* ---- what is refused ---- */

/* data, three layers with one weight, a loss; the first backward action updates the weight. */
static net shared_weight(fixture *f)
{
    net n = {.layers = 3};
    expect_ok(f, graph_create(f->context, &n.graph));
    n.outputs[0] = add_tensor(f, &n, 64, false);
    n.weights[0] = add_tensor(f, &n, 64, true);
    add_action(f, &n, true, 1, &(graph_links){NULL, NULL, n.outputs, 0, 0, 1});
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t reads[] = {n.outputs[i], n.weights[0]};
        n.outputs[i + 1] = add_tensor(f, &n, 1000, false);
        add_action(f, &n, false, 5, &(graph_links){reads, NULL, &n.outputs[i + 1], 2, 0, 1});
    }
    uint32_t gradient = add_tensor(f, &n, 64, false);
    add_action(f, &n, true, 1, &(graph_links){&n.outputs[3], NULL, &gradient, 1, 0, 1});
    for (uint32_t i = 3; i-- > 0;) {
        const uint32_t reads[] = {gradient, n.outputs[i], n.outputs[i + 1]}, made = add_tensor(f, &n, 64, false);
        add_action(f, &n, true, 5, &(graph_links){reads, n.weights, &made, 3, i == 2, 1});
        gradient = made;
    }
    expect_ok(f, graph_add_result(n.graph, gradient));
    return n;
}

static void stale_reads_are_named(void **state)
{
    fixture *f = *state;
    net n = shared_weight(f);
    uint32_t stale[] = {0, 1, 2, 3, 4, 5, 1, 6, 7}, fine[] = {0, 1, 2, 3, 4, 1, 5, 6, 7};
    remat_graph_figures figures;
    expect_ok(f, graph_values_check(n.graph, &(graph_sequence){fine, 9, 9}, REMAT_BAD_INPUT));
    expect_status(f, graph_values_check(n.graph, &(graph_sequence){stale, 9, 9}, REMAT_BAD_INPUT), REMAT_BAD_INPUT);
    expect_message(f, "step 6: action 1 reads tensor 1 as it is after action 5");
    /* Such a schedule is legal. Whoever checks it is warned. */
    static const char plan[] =
        "{\"format\": \"remat-graph-plan\", \"version\": 1, \"schedule\": [0, 1, 2, 3, 4, 5, 1, 6, 7]}";
    FILE *stream = stream_of(plan, sizeof plan - 1);
    expect_ok(f, remat_graph_plan_check(n.graph, stream, "plan.json", &figures));
    fclose(stream);
    assert_int_equal(f->warnings, 1);
    expect_text(f->warning, "plan.json: step 6: action 1 reads tensor 1");
    graph_destroy(n.graph);
}

/* An action that runs again for one of its tensors also writes the other, which was updated since. */
static void results_stay(void **state)
{
    fixture *f = *state;
    net n = {0};
    expect_ok(f, graph_create(f->context, &n.graph));
    const uint32_t counter = add_tensor(f, &n, 92, false), h = add_tensor(f, &n, 8, false),
                   y = add_tensor(f, &n, 0, false);
    const uint32_t both[] = {counter, h};
    const graph_action large = {
        .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE, .once = true, .cost = 8, .workspace_bytes = 400};
    add_action(f, &n, false, 7, &(graph_links){NULL, NULL, both, 0, 0, 2});
    add_action(f, &n, false, 3, &(graph_links){&h, NULL, &y, 1, 0, 1});
    add_action(f, &n, true, 2, &(graph_links){&h, &counter, NULL, 1, 1, 0});
    expect_ok(f, graph_add_action(n.graph, &large, &(graph_links){0}));
    add_action(f, &n, true, 4, &(graph_links){&h, NULL, NULL, 1, 0, 0});
    expect_ok(f, graph_add_result(n.graph, counter));
    uint32_t stale[] = {0, 1, 2, 3, 0, 4}, fine[] = {0, 1, 0, 2, 3, 4};
    expect_ok(f, graph_values_check(n.graph, &(graph_sequence){fine, 6, 6}, REMAT_BAD_INPUT));
    expect_status(f, graph_values_check(n.graph, &(graph_sequence){stale, 6, 6}, REMAT_BAD_INPUT), REMAT_BAD_INPUT);
    expect_message(f, "the end: result 0 is as it is after action 0; in the order of the graph it has another value");
    graph_plan *plan = plan_within(f, n.graph, 499); /* everything kept takes 500 */
    assert_false(plan->feasible);
    assert_int_equal(plan->min_budget_bytes, 500);
    graph_plan_destroy(plan);
    graph_destroy(n.graph);
}

static void strategies_refuse(void **state)
{
    fixture *f = *state;
    net n = shared_weight(f);
    graph_plan_options options;
    graph_plan *plan;
    graph_plan_options_init(&options);
    options.binds = GRAPH_EXACT;
    options.strategy = "sqrt";
    expect_status(f, graph_plan_create(n.graph, &options, &plan), REMAT_BAD_INPUT);
    expect_message(f, "in the order of the graph it reads another value");
    assert_null(plan);
    graph_destroy(n.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(values_stay), FIXTURE_TEST(late_steps_cost_nothing),
                                       FIXTURE_TEST(stale_reads_are_named), FIXTURE_TEST(results_stay),
                                       FIXTURE_TEST(strategies_refuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
