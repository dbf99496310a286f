/* Graphs by public calls and as files: what is written reads as the same graph, and what is wrong is named. */
#include <string.h>

#include "support/random_graph.h"

static char *written(const remat_graph *graph)
{
    capture text;
    capture_begin(&text);
    assert_int_equal(remat_graph_write(graph, text.stream), REMAT_OK);
    capture_end(&text);
    return text.text;
}

static remat_status read_text(fixture *f, const char *text, remat_graph **graph)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_graph_read(f->context, stream, "text", graph);
    fclose(stream);
    return status;
}

static void expect_same_action(const remat_graph *a, const remat_graph *b, size_t i)
{
    remat_graph_action x, y;
    assert_int_equal(remat_graph_get_action(a, i, &x), REMAT_OK);
    assert_int_equal(remat_graph_get_action(b, i, &y), REMAT_OK);
    assert_string_equal(x.name ? x.name : "", y.name ? y.name : "");
    assert_int_equal(x.read_count, y.read_count);
    assert_int_equal(x.update_count, y.update_count);
    assert_int_equal(x.write_count, y.write_count);
    assert_memory_equal(x.reads, y.reads, x.read_count * sizeof *x.reads);
    assert_memory_equal(x.updates, y.updates, x.update_count * sizeof *x.updates);
    assert_memory_equal(x.writes, y.writes, x.write_count * sizeof *x.writes);
    assert_int_equal(x.in_place_from, y.in_place_from);
    assert_int_equal(x.in_place_to, y.in_place_to);
    assert_int_equal(x.once, y.once);
    assert_int_equal(x.workspace_bytes, y.workspace_bytes);
    assert_int_equal(x.cost, y.cost);
}

static void expect_same(const remat_graph *a, const remat_graph *b)
{
    assert_int_equal(remat_graph_tensor_count(a), remat_graph_tensor_count(b));
    assert_int_equal(remat_graph_action_count(a), remat_graph_action_count(b));
    assert_int_equal(remat_graph_result_count(a), remat_graph_result_count(b));
    for (size_t i = 0; i < remat_graph_tensor_count(a); i++) {
        remat_graph_tensor x, y;
        assert_int_equal(remat_graph_get_tensor(a, i, &x), REMAT_OK);
        assert_int_equal(remat_graph_get_tensor(b, i, &y), REMAT_OK);
        assert_string_equal(x.name ? x.name : "", y.name ? y.name : "");
        assert_int_equal(x.bytes, y.bytes);
        assert_int_equal(x.given, y.given);
    }
    for (size_t i = 0; i < remat_graph_action_count(a); i++)
        expect_same_action(a, b, i);
    for (size_t i = 0; i < remat_graph_result_count(a); i++)
        assert_int_equal(remat_graph_result(a, i), remat_graph_result(b, i));
}

static void test_written_and_read(void **state)
{
    fixture *f = *state;
    test_random random = {1};
    const graph_traits traits = {.least_layers = 2, .most_layers = 12};
    for (int i = 0; i < LESS_WHEN_SANITIZED(300, 60); i++) {
        remat_graph *graph = random_graph(f, &random, &traits, NULL), *again;
        char *text = written(graph);
        expect_ok(f, read_text(f, text, &again));
        expect_same(graph, again);
        char *second = written(again);
        assert_string_equal(text, second);
        free(second);
        free(text);
        remat_graph_destroy(again);
        graph_destroy(graph);
    }
    assert_int_equal(f->warnings, 0);
}

/* ---- public calls ---- */

static void add_tensor(fixture *f, remat_graph *graph, const char *name, uint64_t bytes, bool given)
{
    remat_graph_tensor tensor;
    remat_graph_tensor_init(&tensor);
    tensor.name = name;
    tensor.bytes = bytes;
    tensor.given = given;
    expect_ok(f, remat_graph_add_tensor(graph, &tensor));
}

/* y = f(x), dx = g(x, y), with weights that are given: by hand, 100 + 10 + 20 at f, and 7 + 5 more at g. */
static remat_graph *small_graph(fixture *f)
{
    remat_graph *graph;
    expect_ok(f, remat_graph_create(f->context, &graph));
    add_tensor(f, graph, "w", 100, true);
    add_tensor(f, graph, "x", 10, false);
    add_tensor(f, graph, "y", 20, false);
    add_tensor(f, graph, NULL, 7, false);
    static const uint32_t x[] = {1}, y[] = {2}, x_w[] = {0, 1}, all[] = {0, 1, 2}, dx[] = {3};
    remat_graph_action action;
    remat_graph_action_init(&action);
    action.once = true;
    action.name = "load";
    action.writes = x;
    action.write_count = 1;
    expect_ok(f, remat_graph_add_action(graph, &action));
    remat_graph_action_init(&action);
    action.name = "f";
    action.reads = x_w;
    action.read_count = 2;
    action.writes = y;
    action.write_count = 1;
    action.cost = 3;
    expect_ok(f, remat_graph_add_action(graph, &action));
    remat_graph_action_init(&action);
    action.name = "g";
    action.once = true;
    action.reads = all;
    action.read_count = 3;
    action.writes = dx;
    action.write_count = 1;
    action.workspace_bytes = 5;
    action.cost = 6;
    action.in_place_from = 1;
    action.in_place_to = 3;
    expect_ok(f, remat_graph_add_action(graph, &action));
    expect_ok(f, remat_graph_add_result(graph, 3));
    return graph;
}

static void test_calls(void **state)
{
    fixture *f = *state;
    remat_graph *graph = small_graph(f), *again;
    expect_ok(f, remat_graph_set_name(graph, "small"));
    expect_ok(f, remat_graph_set_cost_unit(graph, "ns"));
    char *text = written(graph);
    expect_ok(f, read_text(f, text, &again));
    expect_same(graph, again);
    assert_string_equal(remat_graph_name(again), "small");
    assert_string_equal(remat_graph_cost_unit(again), "ns");
    free(text);
    static const uint32_t plain[] = {0, 1, 2}, twice[] = {0, 1, 1, 2}, unread[] = {0, 2}, missing[] = {0, 1};
    remat_graph_figures figures;
    expect_ok(f, remat_graph_replay(again, plain, 3, &figures));
    assert_int_equal(figures.actions, 3);
    assert_int_equal(figures.peak_bytes, 135); /* dx takes the place of x */
    assert_int_equal(figures.peak_position, 2);
    assert_int_equal(figures.total_cost, 9);
    expect_ok(f, remat_graph_replay(again, twice, 4, &figures));
    assert_int_equal(figures.total_cost, 12);
    expect_status(f, remat_graph_replay(again, unread, 2, &figures), REMAT_CHECK_FAILED);
    expect_message(f, "step 1: action g needs tensor y, which was never written");
    expect_status(f, remat_graph_replay(again, missing, 2, &figures), REMAT_CHECK_FAILED);
    expect_message(f, "action g has not run");
    remat_graph_tensor tensor;
    remat_graph_action action;
    expect_status(f, remat_graph_get_tensor(graph, 4, &tensor), REMAT_INVALID);
    expect_status(f, remat_graph_get_action(graph, 3, &action), REMAT_INVALID);
    assert_int_equal(remat_graph_result(graph, 1), REMAT_NO_TENSOR);
    expect_status(f, remat_graph_add_result(graph, 4), REMAT_INVALID);
    remat_graph_destroy(again);
    remat_graph_destroy(graph);
    remat_graph_destroy(NULL);
}

/* What is refused leaves no trace. */
static void test_refused_actions(void **state)
{
    fixture *f = *state;
    remat_graph *graph = small_graph(f);
    char *before = written(graph);
    static const uint32_t w[] = {0}, x[] = {1}, x_x[] = {1, 1}, no[] = {4};
    const struct {
        const uint32_t *reads, *updates, *writes;
        size_t read_count, update_count, write_count;
        uint32_t from, to;
        const char *message;
    } rows[] = {
        {no, NULL, NULL, 1, 0, 0, REMAT_NO_TENSOR, REMAT_NO_TENSOR, "action bad: there is no tensor 4; there are 4"},
        {NULL, NULL, w, 0, 0, 1, REMAT_NO_TENSOR, REMAT_NO_TENSOR, "it writes tensor w, which is given"},
        {NULL, NULL, x_x, 0, 0, 2, REMAT_NO_TENSOR, REMAT_NO_TENSOR, "it writes tensor x twice"},
        {NULL, x, NULL, 0, 1, 0, REMAT_NO_TENSOR, REMAT_NO_TENSOR, "it updates a tensor, but may run more than once"},
        {x, NULL, x, 1, 0, 1, 1, 2, "in_place does not name"},
        {x, NULL, x, 1, 0, 1, 2, 1, "in_place does not name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        remat_graph_action action;
        remat_graph_action_init(&action);
        action.name = "bad";
        action.reads = rows[i].reads;
        action.read_count = rows[i].read_count;
        action.updates = rows[i].updates;
        action.update_count = rows[i].update_count;
        action.writes = rows[i].writes;
        action.write_count = rows[i].write_count;
        action.in_place_from = rows[i].from;
        action.in_place_to = rows[i].to;
        expect_status(f, remat_graph_add_action(graph, &action), REMAT_INVALID);
        expect_message(f, rows[i].message);
    }
    remat_graph_action fine;
    remat_graph_action_init(&fine);
    fine.struct_size = 0;
    expect_status(f, remat_graph_add_action(graph, &fine), REMAT_INVALID);
    expect_message(f, "remat_graph_action_init");
    char *after = written(graph);
    assert_string_equal(before, after);
    /* The next action may write what a refused one would have written. */
    remat_graph_action_init(&fine);
    fine.writes = x;
    fine.write_count = 1;
    expect_ok(f, remat_graph_add_action(graph, &fine));
    free(after);
    free(before);
    remat_graph_destroy(graph);
}

/* ---- files ---- */

#define HEAD "{\"format\": \"remat-graph\", \"version\": 1"

static void test_any_order(void **state)
{
    fixture *f = *state;
    remat_graph *graph;
    expect_ok(f, read_text(f,
                           "{\"actions\": [{\"cost\": 2, \"writes\": [1], \"reads\": [0], \"extra\": [{}]}],\n"
                           " \"results\": [1], \"version\": 1, \"tensors\": [{\"bytes\": 3, \"given\": true},\n"
                           " {\"name\": \"y\", \"bytes\": 4}], \"format\": \"remat-graph\"}",
                           &graph));
    assert_int_equal(f->warnings, 1);
    expect_text(f->warning, "text:1: the key 'extra' is unknown and ignored");
    remat_graph_figures figures;
    expect_ok(f, remat_graph_replay(graph, (const uint32_t[]){0}, 1, &figures));
    assert_int_equal(figures.peak_bytes, 7);
    assert_int_equal(figures.total_cost, 2);
    remat_graph_destroy(graph);
    expect_ok(f, read_text(f, HEAD ", \"tensors\": [], \"actions\": []}", &graph));
    assert_int_equal(remat_graph_tensor_count(graph), 0);
    remat_graph_destroy(graph);
}

static void test_wrong_files(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "text:1: "},
        {"[]", "text:1: "},
        {"{\"format\": \"remat-plan\", \"version\": 1}", "format: 'remat-plan' was found; it must be 'remat-graph'"},
        {"{\"format\": \"remat-graph\", \"version\": 2}", "version: 2 is unknown"},
        {"{\"version\": 1, \"tensors\": [], \"actions\": []}", "format: missing"},
        {HEAD ", \"tensors\": []}", "actions: missing; a graph needs format, version, tensors and actions"},
        {HEAD ", \"actions\": []}", "tensors: missing"},
        {HEAD ",\n\"tensors\": [{}]}", "text:2: bytes: missing; every tensor needs it"},
        {HEAD ",\n\"tensors\": [{\"bytes\": -1}]}", "text:2: bytes: -1 is not allowed"},
        {HEAD ", \"tensors\": [{\"bytes\": 9223372036854775808}]}", "a whole number from 0 to 2^63 - 1"},
        {HEAD ", \"tensors\": [{\"bytes\": 1, \"bytes\": 1}]}", "bytes: there twice"},
        {HEAD ", \"tensors\": [7]}", "tensors: a tensor must be an object"},
        {HEAD ", \"tensors\": [], \"actions\": [\n{\"reads\": []}]}", "text:2: cost: missing; every action needs it"},
        {HEAD ", \"tensors\": [], \"actions\": [[]]}", "an action must be an object"},
        {HEAD ", \"tensors\": [], \"actions\": [\n{\"name\": \"a\", \"cost\": 1, \"reads\": [0]}]}",
         "text:2: action a: there is no tensor 0; there are 0"},
        {HEAD ", \"tensors\": [], \"actions\": [{\"cost\": 1, \"reads\": [0.5]}]}",
         "the number of a tensor is expected"},
        {HEAD ", \"tensors\": [], \"actions\": [{\"cost\": 1, \"reads\": [4294967295]}]}", "the number of a tensor"},
        {HEAD ", \"tensors\": [{\"bytes\": 1}], \"actions\": [{\"cost\": 1, \"reads\": [0], \"writes\": [0],\n"
              "\"in_place\": [0, 0, 0]}]}",
         "text:2: in_place: two numbers are expected"},
        {HEAD ", \"tensors\": [{\"bytes\": 1, \"given\": true}], \"actions\": [{\"cost\": 1, \"writes\": [0]}]}",
         "action 0: it writes tensor 0, which is given"},
        {HEAD ", \"tensors\": [], \"actions\": [],\n \"results\": [0]}", "text:2: results: there is no tensor 0"},
        {HEAD ", \"tensors\": [], \"actions\": []", "text:1: "},
        {HEAD ", \"tensors\": [], \"actions\": []} more", "text:1: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        remat_graph *graph;
        expect_status(f, read_text(f, rows[i].text, &graph), REMAT_BAD_INPUT);
        expect_message(f, rows[i].message);
        assert_null(graph);
    }
    remat_graph *graph;
    expect_status(f, remat_graph_load(f->context, "no/such/graph.json", &graph), REMAT_IO);
    assert_null(graph);
}

/* Every allocation of reading fails once. */
static void test_no_memory(void **state)
{
    fixture *f = *state;
    remat_graph *graph = small_graph(f), *again;
    char *text = written(graph);
    remat_graph_destroy(graph);
    remat_status status = REMAT_NO_MEMORY;
    for (size_t i = 0; status != REMAT_OK; i++) {
        assert_true(i < 1000);
        f->memory.fail_at = f->memory.calls + 1 + i;
        status = read_text(f, text, &again);
        f->memory.fail_at = 0;
        if (status != REMAT_OK)
            expect_status(f, status, REMAT_NO_MEMORY);
    }
    remat_graph_destroy(again);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_written_and_read), FIXTURE_TEST(test_calls),       FIXTURE_TEST(test_refused_actions),
        FIXTURE_TEST(test_any_order),        FIXTURE_TEST(test_wrong_files), FIXTURE_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
