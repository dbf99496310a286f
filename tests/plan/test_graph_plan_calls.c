/* Plans of graphs by public calls alone: figures, schedules, places, files and the curve. */
#include <string.h>

#include "support/memory_failures.h"
#include "support/random_graph.h"
#include "support/scratch_files.h"
#include "support/slow_graph.h"

static const graph_traits small = {1, 8, false, false};

static remat_graph_plan *planned(fixture *f, const remat_graph *graph, uint64_t budget, remat_status wanted)
{
    remat_graph_plan_options options;
    remat_graph_plan *plan;
    remat_graph_plan_options_init(&options);
    options.budget_bytes = budget;
    options.threads = 1;
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), wanted);
    assert_non_null(plan);
    return plan;
}

static remat_graph_plan_figures figures_of(const remat_graph_plan *plan)
{
    remat_graph_plan_figures figures;
    remat_graph_plan_get_figures(plan, &figures);
    return figures;
}

static char *written(const remat_graph_plan *plan, bool with_schedule)
{
    capture text;
    capture_begin(&text);
    assert_int_equal(remat_graph_plan_write(plan, text.stream, with_schedule), REMAT_OK);
    capture_end(&text);
    return text.text;
}

static remat_status read_text(const remat_graph *graph, const char *text, remat_graph_plan **plan)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_graph_plan_read(graph, stream, "text", plan);
    fclose(stream);
    return status;
}

/* ---- what a plan says is what the definition says ---- */

static void expect_places(const remat_graph *graph, const remat_graph_plan *plan)
{
    const remat_graph_plan_figures figures = figures_of(plan);
    uint64_t arena = 0;
    for (size_t i = 0; i < remat_graph_plan_place_count(plan); i++) {
        remat_graph_place place;
        assert_int_equal(remat_graph_plan_get_place(plan, i, &place), REMAT_OK);
        assert_true(place.born < place.ends && place.ends <= figures.actions);
        assert_true(place.offset % 64 == 0 && place.bytes % 64 == 0 && place.bytes > 0);
        assert_true(place.tensor == REMAT_NO_TENSOR || place.tensor < remat_graph_tensor_count(graph));
        if (place.offset + place.bytes > arena)
            arena = place.offset + place.bytes;
    }
    assert_int_equal(arena, figures.arena_bytes);
}

static void expect_sound(const remat_graph *graph, const remat_graph_plan *plan)
{
    const remat_graph_plan_figures figures = figures_of(plan);
    size_t count, positions;
    const uint32_t *schedule = remat_graph_plan_schedule(plan, &count);
    const uint64_t *live = remat_graph_plan_live_bytes(plan, &positions);
    slow_walk walk = graph_slow_walk(graph, schedule, count, 1, true);
    assert_true(figures.feasible && walk.legal);
    assert_int_equal(figures.actions, count);
    assert_int_equal(positions, count);
    assert_int_equal(figures.peak_bytes, walk.peak);
    assert_int_equal(live[figures.peak_position], walk.peak);
    assert_int_equal(figures.total_cost, walk.cost);
    assert_true(!figures.has_budget || walk.peak <= figures.budget_bytes);
    assert_true(figures.min_budget_bytes <= walk.peak);
    assert_true(figures.min_budget_bound_bytes <= figures.min_budget_bytes);
    assert_true(figures.lower_bound_cost <= walk.cost);
    uint64_t runs = 0;
    for (uint32_t i = 0; i < remat_graph_action_count(graph); i++)
        runs += remat_graph_plan_runs(plan, i);
    assert_int_equal(runs, count);
    expect_places(graph, plan);
}

/* What is written passes the check, and reads as the same plan. */
static void expect_same_when_read(fixture *f, const remat_graph *graph, const remat_graph_plan *plan)
{
    char *text = written(plan, true);
    remat_graph_figures checked;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_graph_plan_check(graph, stream, "text", &checked));
    fclose(stream);
    remat_graph_plan *again;
    expect_ok(f, read_text(graph, text, &again));
    remat_graph_plan_figures a = figures_of(plan), b = figures_of(again);
    assert_memory_equal(&a, &b, sizeof a);
    char *second = written(again, true);
    const char *rest = strstr(text, "\"feasible\""), *rest_again = strstr(second, "\"feasible\"");
    const char *schedule = strstr(rest, "\"schedule\""), *schedule_again = strstr(rest_again, "\"schedule\"");
    assert_string_equal(schedule, schedule_again);
    assert_string_equal(remat_graph_plan_strategy(again), "file");
    free(second);
    free(text);
    remat_graph_plan_destroy(again);
}

static void plans_are_sound(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int i = 0; i < LESS_WHEN_SANITIZED(8, 2); i++) {
        remat_graph *graph = random_graph(f, &random, &small, NULL);
        remat_graph_plan *plan = planned(f, graph, REMAT_NO_BUDGET, REMAT_OK);
        remat_graph_plan_figures all = figures_of(plan);
        assert_string_equal(remat_graph_plan_strategy(plan), "none");
        assert_int_equal(all.total_cost, all.base_cost);
        assert_int_equal(all.peak_bytes, all.base_peak_bytes);
        assert_int_equal(all.min_budget_bytes, all.peak_bytes);
        expect_sound(graph, plan);
        remat_graph_plan_destroy(plan);
        plan = planned(f, graph, all.peak_bytes, REMAT_OK);
        assert_string_equal(remat_graph_plan_strategy(plan), "optimal");
        uint64_t least = figures_of(plan).min_budget_bytes;
        expect_sound(graph, plan);
        remat_graph_plan_destroy(plan);
        plan = planned(f, graph, least, REMAT_OK);
        expect_sound(graph, plan);
        expect_same_when_read(f, graph, plan);
        remat_graph_plan_destroy(plan);
        graph_destroy(graph);
    }
}

static void too_small_budgets_say_what_would_do(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 3, 4096, NULL);
    remat_graph_plan *plan = planned(f, graph, 1, REMAT_INFEASIBLE);
    const remat_graph_plan_figures figures = figures_of(plan);
    size_t count;
    assert_false(figures.feasible);
    assert_true(figures.has_budget && figures.budget_bytes == 1);
    assert_true(figures.min_budget_bytes > 1 && figures.min_budget_bound_bytes > 1);
    assert_true(figures.min_budget_bound_bytes <= figures.min_budget_bytes);
    expect_budget_error(f, 1, figures.min_budget_bytes);
    remat_graph_plan_schedule(plan, &count);
    assert_int_equal(count, 0);
    remat_graph_plan_live_bytes(plan, &count);
    assert_int_equal(count, 0);
    assert_int_equal(remat_graph_plan_place_count(plan), 0);
    assert_int_equal(remat_graph_plan_runs(plan, 0), 0);
    char *text = written(plan, true);
    expect_text(text, "\"feasible\": false");
    expect_text(text, "\"min_budget_bytes\": ");
    assert_null(strstr(text, "schedule"));
    remat_graph_plan *again;
    expect_status(f, read_text(graph, text, &again), REMAT_BAD_INPUT);
    assert_null(again);
    expect_message(f, "infeasible");
    free(text);
    remat_graph_plan_destroy(plan);
    graph_destroy(graph);
}

static void strategies_are_taken(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 4, 4096, NULL);
    remat_graph_plan_options options;
    remat_graph_plan *plan;
    remat_graph_plan_options_init(&options);
    options.strategy = "sqrt";
    expect_ok(f, remat_graph_plan_create(graph, &options, &plan));
    expect_sound(graph, plan);
    const remat_graph_plan_figures figures = figures_of(plan);
    assert_true(figures.total_cost > figures.base_cost && figures.peak_bytes < figures.base_peak_bytes);
    assert_int_equal(figures.min_budget_bytes, figures.peak_bytes);
    remat_graph_plan_destroy(plan);
    options.budget_bytes = figures.peak_bytes - 1;
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), REMAT_INFEASIBLE);
    assert_int_equal(figures_of(plan).min_budget_bytes, figures.peak_bytes);
    remat_graph_plan_destroy(plan);
    options.strategy = "none";
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), REMAT_INFEASIBLE);
    assert_int_equal(figures_of(plan).min_budget_bytes, figures.base_peak_bytes);
    remat_graph_plan_destroy(plan);
    options.strategy = "sometimes";
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), REMAT_INVALID);
    assert_null(plan);
    options.struct_size = 0;
    expect_status(f, remat_graph_plan_create(graph, &options, &plan), REMAT_INVALID);
    graph_destroy(graph);
}

/* ---- files ---- */

static void files_are_checked(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text;
        remat_status status;
        const char *says;
    } cases[] = {
        {"{\"format\": \"remat-graph-plan\", \"version\": 1, \"schedule\": []}", REMAT_CHECK_FAILED, "has not run"},
        {"{\"format\": \"remat-graph-plan\", \"version\": 1, \"schedule\": [1000000]}", REMAT_CHECK_FAILED,
         "there is no action"},
        {"{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": []}", REMAT_BAD_INPUT, "remat-graph-plan"},
        {"{", REMAT_BAD_INPUT, "text"},
    };
    remat_graph *graph = transformer_graph(f, 2, 4096, NULL);
    remat_graph_plan *plan;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(f, read_text(graph, cases[i].text, &plan), cases[i].status);
        assert_null(plan);
        expect_message(f, cases[i].says);
    }
    expect_status(f, remat_graph_plan_load(graph, scratch_path("none.json"), &plan), REMAT_IO);
    plan = planned(f, graph, REMAT_NO_BUDGET, REMAT_OK);
    const char *path = scratch_path("plan.json");
    expect_ok(f, remat_graph_plan_save(plan, path));
    remat_graph_plan *again;
    expect_ok(f, remat_graph_plan_load(graph, path, &again));
    assert_int_equal(figures_of(again).peak_bytes, figures_of(plan).peak_bytes);
    char *figures = written(plan, false);
    assert_null(strstr(figures, "schedule"));
    free(figures);
    remat_graph_place place;
    expect_status(f, remat_graph_plan_get_place(plan, remat_graph_plan_place_count(plan), &place), REMAT_INVALID);
    remat_graph_plan_destroy(again);
    remat_graph_plan_destroy(plan);
    graph_destroy(graph);
}

/* A file with its own places keeps them; without places, or with places that no executor can use, they are found. */
static void places_of_files_are_used(void **state)
{
    fixture *f = *state;
    static const char *const begin = "{\"format\": \"remat-graph-plan\", \"version\": 1, \"schedule\": [0, 1]";
    static const struct {
        const char *places;
        uint64_t first, second, arena;
    } cases[] = {
        {"", 0, 0, 64},
        {", \"places\": [[0, 0, 2, 128], [1, 1, 2, 128]]", 128, 128, 192},
        {", \"places\": [[0, 0, 2, 128], [1, 1, 2, 0]]", 0, 0, 64}, /* in place of another, but elsewhere */
        {", \"places\": [[0, 0, 2, 3], [1, 1, 2, 3]]", 0, 0, 64},   /* not a multiple of 64 */
    };
    remat_graph *graph;
    remat_graph_tensor tensor;
    remat_graph_action action;
    expect_ok(f, remat_graph_create(f->context, &graph));
    remat_graph_tensor_init(&tensor);
    tensor.bytes = 64;
    expect_ok(f, remat_graph_add_tensor(graph, &tensor));
    expect_ok(f, remat_graph_add_tensor(graph, &tensor));
    const uint32_t numbers[] = {0, 1};
    remat_graph_action_init(&action);
    action.writes = numbers;
    action.write_count = 1;
    action.once = true;
    expect_ok(f, remat_graph_add_action(graph, &action));
    action.reads = numbers;
    action.read_count = 1;
    action.writes = numbers + 1;
    action.in_place_from = 0;
    action.in_place_to = 1;
    expect_ok(f, remat_graph_add_action(graph, &action));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        remat_graph_plan *plan;
        remat_graph_place first, second;
        snprintf(text, sizeof text, "%s%s}", begin, cases[i].places);
        expect_ok(f, read_text(graph, text, &plan));
        assert_int_equal(figures_of(plan).arena_bytes, cases[i].arena);
        expect_ok(f, remat_graph_plan_get_place(plan, 0, &first));
        expect_ok(f, remat_graph_plan_get_place(plan, 1, &second));
        assert_int_equal(first.offset, cases[i].first);
        assert_int_equal(second.offset, cases[i].second);
        remat_graph_plan_destroy(plan);
    }
    remat_graph_destroy(graph);
}

/* ---- the curve ---- */

static void curve_is_made_of_plans(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 4, 4096, NULL);
    remat_graph_sweep *sweep;
    expect_ok(f, remat_graph_sweep_create(graph, NULL, &sweep));
    size_t count = remat_graph_sweep_count(sweep);
    remat_graph_point before = {0}, point;
    assert_true(count > 2 && remat_graph_sweep_knee(sweep) < count);
    for (size_t i = 0; i < count; i++, before = point) {
        expect_ok(f, remat_graph_sweep_get_point(sweep, i, &point));
        assert_true(i == 0 || (point.peak_bytes > before.peak_bytes && point.total_cost < before.total_cost));
        if (i % 32 != 0)
            continue;
        remat_graph_plan *plan = planned(f, graph, point.peak_bytes, REMAT_OK);
        assert_true(figures_of(plan).total_cost == point.total_cost);
        remat_graph_plan_destroy(plan);
    }
    assert_true(before.total_cost <= remat_graph_sweep_base_cost(sweep)); /* what nothing needs is left out */
    assert_true(before.peak_bytes <= remat_graph_sweep_base_peak_bytes(sweep));
    expect_status(f, remat_graph_sweep_get_point(sweep, count, &point), REMAT_INVALID);
    remat_graph_sweep_destroy(sweep);
    remat_graph_sweep_destroy(NULL);
    remat_graph_plan_destroy(NULL);
    graph_destroy(graph);
}

/* ---- memory ---- */

static remat_status read_and_plan(remat_context *context, void *user)
{
    const char *const *texts = user;
    remat_graph *graph = NULL;
    remat_graph_plan *plan = NULL, *given = NULL;
    FILE *stream = stream_of(texts[0], strlen(texts[0]));
    remat_status status = remat_graph_read(context, stream, "graph", &graph);
    fclose(stream);
    FLOW(status, remat_graph_plan_create(graph, NULL, &plan));
    FLOW(status, read_text(graph, texts[1], &given));
    remat_graph_plan_destroy(given);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
    return status;
}

typedef struct reading {
    const remat_graph *graph;
    const char *text;
} reading;

static remat_status read_again(void *user)
{
    const reading *of = user;
    remat_graph_plan *plan;
    remat_status status = read_text(of->graph, of->text, &plan);
    remat_graph_plan_destroy(plan);
    return status;
}

static void no_memory_is_survived(void **state)
{
    fixture *f = *state;
    remat_graph *graph = transformer_graph(f, 1, 4096, NULL);
    remat_graph_plan *plan = planned(f, graph, REMAT_NO_BUDGET, REMAT_OK);
    capture text;
    capture_begin(&text);
    expect_ok(f, remat_graph_write(graph, text.stream));
    capture_end(&text);
    char *texts[] = {text.text, written(plan, true)};
    expect_failures_survived("graph plans", read_and_plan, texts, 50, LESS_WHEN_SANITIZED(100, 40));
    expect_call_failures_survived(f, "a graph's plan", read_again, &(reading){graph, texts[1]}, 10);
    free(texts[0]);
    free(texts[1]);
    remat_graph_plan_destroy(plan);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(plans_are_sound),          FIXTURE_TEST(too_small_budgets_say_what_would_do),
        FIXTURE_TEST(strategies_are_taken),     FIXTURE_TEST(files_are_checked),
        FIXTURE_TEST(places_of_files_are_used), FIXTURE_TEST(curve_is_made_of_plans),
        FIXTURE_TEST(no_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
