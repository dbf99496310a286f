/* The plan of a graph as a file of a report: what it shows is what the plan says. */
#include <remat/report.h>

#include <jansson.h>
#include <string.h>

#include "support/memory_failures.h"
#include "support/random_graph.h"

static json_t *document_with(fixture *f, const remat_graph_plan *plan, bool curve, bool arena)
{
    remat_report *report;
    remat_report_options options;
    capture text;
    remat_report_options_init(&options);
    options.curve = curve;
    options.arena = arena;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_graph_plan(report, "plan.json", plan, &options));
    assert_int_equal(remat_report_count(report), 1);
    capture_begin(&text);
    expect_ok(f, remat_report_write_json(report, text.stream));
    capture_end(&text);
    remat_report_destroy(report);
    json_t *document = json_loads(text.text, 0, NULL);
    assert_non_null(document);
    free(text.text);
    json_t *file = json_incref(json_array_get(json_object_get(document, "files"), 0));
    json_decref(document);
    return file;
}

static json_t *document_of(fixture *f, const remat_graph_plan *plan, bool curve)
{
    return document_with(f, plan, curve, true);
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_non_null(value);
    return json_integer_value(value);
}

static json_int_t item(const json_t *columns, const char *key, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(columns, key), i));
}

/* The largest sum of live bytes is the peak, given tensors included. */
static void expect_live_bytes(const json_t *file, const remat_graph_plan_figures *figures)
{
    const json_t *memory = json_object_get(file, "memory"), *tensors = json_object_get(memory, "tensors");
    const size_t steps = (size_t)number(memory, "steps"), count = json_array_size(json_object_get(tensors, "bytes"));
    json_int_t peak = 0;
    assert_int_equal(steps, figures->actions);
    assert_int_equal(strlen(json_string_value(json_object_get(tensors, "kind"))), count);
    assert_int_equal(json_array_size(json_object_get(tensors, "offset")), count - 1);
    for (size_t step = 0; step < steps; step++) {
        json_int_t live = 0;
        for (size_t i = 0; i < count; i++)
            if (item(tensors, "born", i) <= (json_int_t)step && (json_int_t)step < item(tensors, "ends", i))
                live += item(tensors, "bytes", i);
        peak = live > peak ? live : peak;
    }
    assert_int_equal(peak, figures->peak_bytes);
    assert_int_equal(number(json_object_get(file, "arena"), "bytes"), figures->arena_bytes);
    assert_int_equal(number(json_object_get(file, "arena"), "given_bytes"), item(tensors, "bytes", count - 1));
}

static void memory_is_that_of_the_plan(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    const graph_traits traits = {2, 8, false, false};
    for (int i = 0; i < LESS_WHEN_SANITIZED(6, 2); i++) {
        remat_graph *graph = random_graph(f, &random, &traits, NULL);
        remat_graph_plan_options options;
        remat_graph_plan_figures figures;
        remat_graph_plan *plan;
        remat_graph_plan_options_init(&options);
        options.strategy = i % 2 ? "sqrt" : NULL;
        expect_ok(f, remat_graph_plan_create(graph, &options, &plan));
        remat_graph_plan_get_figures(plan, &figures);
        json_t *file = document_of(f, plan, i % 3 == 0);
        assert_string_equal(json_string_value(json_object_get(file, "kind")), "graph");
        assert_int_equal(number(json_object_get(file, "figures"), "total_cost"), figures.total_cost);
        expect_live_bytes(file, &figures);
        const json_t *drawn = json_object_get(file, "graph");
        assert_int_equal(number(drawn, "actions"), remat_graph_action_count(graph));
        assert_int_equal(json_array_size(json_object_get(drawn, "nodes")), number(drawn, "may_run_again"));
        assert_true((json_object_get(file, "curve") != NULL) == (i % 3 == 0));
        json_decref(file);
        remat_graph_plan_destroy(plan);
        graph_destroy(graph);
    }
}

static void plans_without_a_schedule_have_figures(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 2, 4096, NULL);
    remat_graph_plan_options options;
    remat_graph_plan *plan;
    remat_graph_plan_options_init(&options);
    options.budget_bytes = 1;
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), REMAT_INFEASIBLE);
    json_t *file = document_of(f, plan, false);
    assert_true(json_is_false(json_object_get(file, "feasible")));
    assert_null(json_object_get(file, "memory"));
    assert_non_null(json_object_get(file, "graph"));
    assert_int_equal(number(json_object_get(file, "figures"), "budget_bytes"), 1);
    json_decref(file);
    remat_graph_plan_destroy(plan);
    graph_destroy(graph);
}

/* ---- graphs of one kind ---- */

static void add_tensor(fixture *f, remat_graph *graph, uint64_t bytes, bool given)
{
    remat_graph_tensor tensor;
    remat_graph_tensor_init(&tensor);
    tensor.bytes = bytes;
    tensor.given = given;
    expect_ok(f, remat_graph_add_tensor(graph, &tensor));
}

/* Reads a tensor, or two, and writes the tensor of its own number. */
static void add_action(fixture *f, remat_graph *graph, uint32_t first, uint32_t second, uint32_t write, bool once)
{
    const uint32_t reads[] = {first, second};
    remat_graph_action action;
    remat_graph_action_init(&action);
    action.reads = reads;
    action.read_count = first == second ? 1 : 2;
    action.writes = &write;
    action.write_count = 1;
    action.workspace_bytes = write % 5;
    action.once = once;
    action.cost = 1;
    expect_ok(f, remat_graph_add_action(graph, &action));
}

/* A given tensor of 100 bytes, which `count` actions pass on. */
static remat_graph *chain_graph(fixture *f, uint32_t count, bool once)
{
    remat_graph *graph;
    expect_ok(f, remat_graph_create(f->context, &graph));
    add_tensor(f, graph, 100, true);
    for (uint32_t i = 1; i <= count; i++) {
        add_tensor(f, graph, 10 + i * 7 % 31, false);
        add_action(f, graph, i - 1, i - 1, i, once);
    }
    return graph;
}

static remat_graph_plan *plan_of(fixture *f, const remat_graph *graph)
{
    remat_graph_plan *plan;
    expect_ok(f, remat_graph_plan_create(graph, NULL, &plan));
    return plan;
}

static const char *text_of(const json_t *object, const char *key, size_t i)
{
    const json_t *value = json_object_get(object, key);
    return json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
}

/* Nothing may run again: all is drawn, there is no backward pass, and a graph without names has none here. */
static void graphs_without_choices(void **state)
{
    fixture *f = *state;
    remat_graph *graph = chain_graph(f, 5, true);
    remat_graph_plan *plan = plan_of(f, graph);
    json_t *file = document_with(f, plan, true, false);
    const json_t *drawn = json_object_get(file, "graph"), *memory = json_object_get(file, "memory");
    assert_string_equal(text_of(file, "name", 0), "");
    assert_string_equal(text_of(file, "cost_unit", 0), "");
    assert_int_equal(number(drawn, "may_run_again"), 0);
    assert_int_equal(json_array_size(json_object_get(drawn, "nodes")), 5);
    assert_int_equal(json_array_size(json_object_get(drawn, "links")), 4); /* the given tensor comes from nowhere */
    assert_null(json_object_get(memory, "phases"));
    assert_string_equal(text_of(memory, "op", 0), "bbbbb");
    assert_null(json_object_get(file, "arena"));
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(text_of(json_object_get(file, "layers"), "decision", i), "once");
    json_decref(file);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

/* What no action needs that runs once, no schedule needs to run. */
static void actions_that_are_left_out(void **state)
{
    fixture *f = *state;
    remat_graph *graph = chain_graph(f, 2, false);
    add_tensor(f, graph, 8, false);
    add_action(f, graph, 1, 1, 3, true);
    const char *text = "{\"format\": \"remat-graph-plan\", \"version\": 1, \"schedule\": [0, 2]}";
    FILE *stream = stream_of(text, strlen(text));
    remat_graph_plan *plan;
    expect_ok(f, remat_graph_plan_read(graph, stream, "plan", &plan));
    fclose(stream);
    json_t *file = document_of(f, plan, false);
    static const char *const decisions[] = {"keep", "left out", "once"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(text_of(json_object_get(file, "layers"), "decision", i), decisions[i]);
    json_decref(file);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

static void a_graph_of_nothing(void **state)
{
    fixture *f = *state;
    remat_graph *graph = chain_graph(f, 0, true);
    remat_graph_plan *plan = plan_of(f, graph);
    json_t *file = document_of(f, plan, false);
    assert_null(json_object_get(file, "memory"));
    assert_null(json_object_get(json_object_get(file, "graph"), "nodes"));
    assert_int_equal(number(json_object_get(file, "figures"), "steps"), 0);
    json_decref(file);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

/* A long schedule is drawn in columns. Each has the fullest of its positions, and the kinds sum to what is live there. */
static void long_schedules_are_columns(void **state)
{
    fixture *f = *state;
    enum { LAYERS = 10100, POSITIONS = 2 * LAYERS };
    remat_graph *graph = chain_graph(f, LAYERS, false);
    uint64_t *live = calloc(POSITIONS, sizeof *live), kept = 100, gradient = 0;
    assert_non_null(live);
    for (uint32_t i = 1; i <= LAYERS; i++) {
        kept += graph->tensors[i].bytes;
        live[i - 1] = kept + i % 5;
    }
    for (uint32_t i = LAYERS; i >= 1; i--) { /* the gradient of tensor i, of that tensor and the gradient before */
        const uint32_t made = 2 * LAYERS - i + 1;
        add_tensor(f, graph, 3 + i % 4, false);
        add_action(f, graph, i, i == LAYERS ? i : made - 1, made, true);
        live[made - 1] = kept + gradient + 3 + i % 4 + made % 5;
        gradient = 3 + i % 4;
        kept -= graph->tensors[i].bytes;
    }
    remat_graph_plan *plan = plan_of(f, graph);
    remat_graph_plan_figures figures;
    remat_graph_plan_get_figures(plan, &figures);
    json_t *file = document_of(f, plan, false);
    const json_t *memory = json_object_get(file, "memory"), *columns = json_object_get(memory, "columns");
    const size_t count = json_array_size(json_object_get(columns, "step"));
    assert_int_equal(number(memory, "steps"), POSITIONS);
    assert_null(json_object_get(memory, "tensors"));
    assert_null(json_object_get(file, "arena"));
    assert_null(json_object_get(json_object_get(file, "graph"), "nodes")); /* too many to be drawn */
    assert_true(count > 0 && count < POSITIONS);
    uint64_t peak = 0;
    for (size_t c = 0; c < count; c++) {
        const size_t first = c * POSITIONS / count, end = (c + 1) * POSITIONS / count;
        const size_t step = (size_t)item(columns, "step", c);
        const uint64_t sum =
            (uint64_t)(item(columns, "x", c) + item(columns, "s", c) + item(columns, "y", c) + item(columns, "w", c));
        assert_true(first <= step && step < end);
        for (size_t i = first; i < end; i++)
            assert_true(live[i] <= live[step]);
        assert_int_equal(sum, live[step]);
        assert_int_equal(item(columns, "x", c), 100);
        peak = sum > peak ? sum : peak;
    }
    assert_int_equal(peak, figures.peak_bytes);
    free(live);
    json_decref(file);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

static void options_that_were_not_initialised(void **state)
{
    fixture *f = *state;
    remat_graph *graph = chain_graph(f, 2, true);
    remat_graph_plan *plan = plan_of(f, graph);
    remat_report *report;
    const remat_report_options garbage = {.struct_size = 1};
    expect_ok(f, remat_report_create(f->context, &report));
    expect_status(f, remat_report_add_graph_plan(report, "plan", plan, &garbage), REMAT_INVALID);
    expect_message(f, "call remat_report_options_init before filling it in");
    assert_int_equal(remat_report_count(report), 0);
    remat_report_destroy(report);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

static remat_status make_page(remat_context *context, void *user)
{
    FILE *stream = stream_of(user, strlen(user));
    remat_graph *graph = NULL;
    remat_graph_plan *plan = NULL;
    remat_report *report = NULL;
    remat_status status = remat_graph_read(context, stream, "graph", &graph);
    fclose(stream);
    FLOW(status, remat_graph_plan_create(graph, NULL, &plan));
    FLOW(status, remat_report_create(context, &report));
    remat_report_options options;
    remat_report_options_init(&options);
    options.curve = false; /* the planner's own tests fail each of its allocations */
    FLOW(status, remat_report_add_graph_plan(report, "graph", plan, &options));
    remat_report_destroy(report);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
    return status;
}

static void no_memory_is_survived(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 1, 4096, NULL);
    capture text;
    capture_begin(&text);
    expect_ok(f, remat_graph_write(graph, text.stream));
    capture_end(&text);
    expect_failures_survived("report of a graph", make_page, text.text, 50, LESS_WHEN_SANITIZED(200, 50));
    free(text.text);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(memory_is_that_of_the_plan),
        FIXTURE_TEST(plans_without_a_schedule_have_figures),
        FIXTURE_TEST(graphs_without_choices),
        FIXTURE_TEST(actions_that_are_left_out),
        FIXTURE_TEST(a_graph_of_nothing),
        FIXTURE_TEST(long_schedules_are_columns),
        FIXTURE_TEST(options_that_were_not_initialised),
        FIXTURE_TEST(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
