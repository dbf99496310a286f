/* The plan of a graph as a file of a report: what it shows is what the plan says. */
#include <remat/report.h>

#include <jansson.h>
#include <string.h>

#include "support/memory_failures.h"
#include "support/random_graph.h"

static json_t *document_of(fixture *f, const remat_graph_plan *plan, bool curve)
{
    remat_report *report;
    remat_report_options options;
    capture text;
    remat_report_options_init(&options);
    options.curve = curve;
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
        FIXTURE_TEST(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
