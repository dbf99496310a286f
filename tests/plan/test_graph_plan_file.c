/* The file of a graph's plan: what we write passes our check, and the check agrees with a slow one that is written from the
 * definition. */
#include <string.h>

#include "plan/graph/graph_plan_file.h"
#include "support/random_graph.h"
#include "support/slow_graph.h"

static uint64_t below(test_random *random, uint64_t bound)
{
    return test_random_below(random, bound);
}

static char *written(const remat_graph *graph, const placed_graph *placed)
{
    graph_plan_content content;
    graph_plan_content_init(placed, &content);
    capture text;
    capture_begin(&text);
    assert_int_equal(graph_plan_file_write(graph, &content, text.stream), REMAT_OK);
    capture_end(&text);
    return text.text;
}

static remat_status check_text(const remat_graph *graph, const char *text, remat_graph_figures *figures)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_graph_plan_check(graph, stream, "text", figures);
    fclose(stream);
    return status;
}

/* A legal schedule: the order of the graph, with some actions that may run again run again at once. */
static void draw_schedule(fixture *f, test_random *random, const remat_graph *graph, graph_sequence *sequence)
{
    for (uint32_t i = 0; i < graph->action_count; i++) {
        expect_ok(f, graph_sequence_add(f->context, sequence, i));
        if (!graph->actions[i].once && below(random, 4) == 0 && graph->actions[i].in_place_from == GRAPH_NONE)
            expect_ok(f, graph_sequence_add(f->context, sequence, i));
    }
}

/* ---- the slow judge of places ---- */

static bool share_bytes(const instance_place *a, const instance_place *b, uint64_t bytes_a, uint64_t bytes_b)
{
    return a->offset < b->offset + bytes_b && b->offset < a->offset + bytes_a;
}

/* Looks at every pair at every position. `places` has one a range, in order of the ranges. */
static bool slow_places(const graph_liveness *found, const instance_place *places, const uint32_t *range_of,
                        size_t count)
{
    for (uint32_t position = 0; position < found->position_count; position++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < i; j++) {
                const instance_place *a = &places[i], *b = &places[j];
                if (a->born > position || a->ends <= position || b->born > position || b->ends <= position)
                    continue;
                if (!share_bytes(a, b, found->ranges[range_of[i]].bytes, found->ranges[range_of[j]].bytes))
                    continue;
                /* the later of the two may be in place of the earlier, at this position only and within it */
                const live_range *later = &found->ranges[range_of[i]];
                bool in_place = later->in_place_of == range_of[j] && position == later->born &&
                                a->offset >= b->offset &&
                                a->offset + later->bytes <= b->offset + found->ranges[range_of[j]].bytes;
                if (!in_place)
                    return false;
            }
    return true;
}

static void test_places_against_slow(void **state)
{
    fixture *f = *state;
    test_random random = {7};
    const graph_traits traits = {.least_layers = 1, .most_layers = 4};
    size_t fine = 0, wrong = 0;
    for (int i = 0; i < LESS_WHEN_SANITIZED(800, 100); i++) {
        remat_graph *graph = random_graph(f, &random, &traits, NULL);
        graph_sequence sequence = {0};
        placed_graph placed;
        draw_schedule(f, &random, graph, &sequence);
        expect_ok(f, graph_place(graph, &sequence, &placed));
        const graph_liveness *found = &placed.liveness;
        instance_place *places = calloc(found->range_count, sizeof *places);
        uint32_t *range_of = calloc(found->range_count, sizeof *range_of);
        size_t count = 0;
        for (uint32_t r = 0; r < found->range_count; r++)
            if (found->ranges[r].bytes) {
                const live_range *range = &found->ranges[r];
                range_of[count] = r;
                places[count++] =
                    (instance_place){range->tensor, range->born, range->ends, placed.offsets[range->buffer]};
            }
        for (int turn = 0; turn < 4 && count; turn++) {
            graph_plan_text text = {.context = f->context, .schedule = placed.sequence, .has_places = true};
            text.places = places;
            text.place_count = count;
            uint64_t arena;
            remat_status status = graph_places_check(graph, &text, &arena);
            bool slow = slow_places(found, places, range_of, count);
            expect_status(f, status, slow ? REMAT_OK : REMAT_CHECK_FAILED);
            slow ? fine++ : wrong++;
            places[below(&random, count)].offset = 64 * below(&random, placed.arena_bytes / 64 + 2);
        }
        free(range_of);
        free(places);
        placed_graph_release(&placed);
        graph_destroy(graph);
    }
    assert_true(fine > 100 && wrong > 100);
}

/* ---- whole files ---- */

static void test_written_and_checked(void **state)
{
    fixture *f = *state;
    test_random random = {9};
    const graph_traits traits = {.least_layers = 2, .most_layers = 12};
    for (int i = 0; i < LESS_WHEN_SANITIZED(300, 60); i++) {
        remat_graph *graph = random_graph(f, &random, &traits, NULL);
        graph_sequence sequence = {0};
        placed_graph placed;
        draw_schedule(f, &random, graph, &sequence);
        expect_ok(f, graph_place(graph, &sequence, &placed));
        char *text = written(graph, &placed);
        remat_graph_figures figures;
        expect_ok(f, check_text(graph, text, &figures));
        slow_walk slow = graph_slow_walk(graph, placed.sequence.actions, placed.sequence.count, 1, true);
        assert_true(slow.legal);
        assert_int_equal(figures.peak_bytes, slow.peak);
        assert_int_equal(figures.total_cost, slow.cost);
        assert_int_equal(figures.arena_bytes, placed.arena_bytes);
        free(text);
        placed_graph_release(&placed);
        graph_destroy(graph);
    }
    assert_int_equal(f->warnings, 0);
}

/* x (10 bytes) is loaded, y = f(x) (20), z = g(x, y) (10) in place of x. */
static remat_graph *by_hand(fixture *f)
{
    static const char text[] =
        "{\"format\": \"remat-graph\", \"version\": 1, \"tensors\": [{\"bytes\": 10}, {\"bytes\": 20},"
        " {\"bytes\": 10}], \"actions\": [{\"once\": true, \"cost\": 1, \"writes\": [0]},"
        " {\"cost\": 2, \"reads\": [0], \"writes\": [1]}, {\"once\": true, \"cost\": 4,"
        " \"reads\": [0, 1], \"writes\": [2], \"in_place\": [0, 2]}], \"results\": [2]}";
    remat_graph *graph;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_graph_read(f->context, stream, "text", &graph));
    fclose(stream);
    return graph;
}

static void test_wrong_plans(void **state)
{
    fixture *f = *state;
    remat_graph *graph = by_hand(f);
    static const struct {
        const char *rest, *message; /* NULL: it is fine */
        remat_status status;
    } rows[] = {
        {"\"schedule\": [0, 1, 2]", NULL, REMAT_OK},
        {"\"schedule\": [0, 1, 1, 2], \"total_cost\": 9, \"base_cost\": 7, \"base_peak_bytes\": 30", NULL, REMAT_OK},
        {"\"schedule\": [0, 1, 2], \"strategy\": \"mine\", \"peak_bytes\": 30, \"budget_bytes\": 30", NULL, REMAT_OK},
        {"\"schedule\": [0, 1, 2], \"arena_bytes\": 128,"
         " \"places\": [[0, 0, 3, 0], [1, 1, 3, 64], [2, 2, 3, 0]]",
         NULL, REMAT_OK},
        {"\"schedule\": [0, 2, 1]", "step 1: action 2 needs tensor 1, which was never written", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2, 2]", "runs a second time, but may run only once", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1]", "the schedule ends here, but action 2 has not run", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2, 3]", "there is no action 3", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"feasible\": false", "false is stated", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"peak_bytes\": 31", "text: peak_bytes: 31 is stated, but the schedule comes to 30",
         REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"budget_bytes\": 29", "but the peak of the schedule is 30", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"total_cost\": 8", "but the schedule comes to 7", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 1, 2], \"base_cost\": 9", "but keeping everything comes to 7", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"lower_bound_cost\": 8", "but the schedule costs only 7", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"min_budget_bytes\": 31", "but the schedule has a peak of 30", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"arena_bytes\": 64, \"places\": [[0, 0, 3, 0], [1, 1, 3, 64], [2, 2, 3, 0]]",
         "arena_bytes: 64 is stated, but the places need 128", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 3, 0], [1, 1, 3, 64]]",
         "places: number 2, 2 at position 2: it has no place", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 2, 0], [1, 1, 3, 64], [2, 2, 3, 0]]",
         "it does not live to the position that is stated", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 1, 3, 0], [1, 1, 3, 64], [2, 2, 3, 0]]",
         "nothing of that kind is written there", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 3, 0], [0, 0, 3, 0]]", "it has two places", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 3, 9223372036854775807], [1, 1, 3, 64], [2, 2, 3, 0]]",
         "it ends past 2^63", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 3, 0], [1, 1, 3, 32], [2, 2, 3, 0]]",
         "share bytes while both are", REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[0, 0, 3, 0], [1, 1, 3, 64], [2, 2, 3, 64]]",
         "tensors 2 and 1 share bytes", REMAT_CHECK_FAILED},
        {"\"feasible\": false, \"min_budget_bytes\": 3", "the plan is infeasible, there is nothing to replay",
         REMAT_BAD_INPUT},
        {"\"peak_bytes\": 3", "schedule: missing", REMAT_BAD_INPUT},
        {"\"schedule\": [-1]", "the number of an action is expected", REMAT_BAD_INPUT},
        {"\"schedule\": [{}]", "the number of an action is expected", REMAT_BAD_INPUT},
        {"\"schedule\": [], \"places\": [3]", "a place must be a list", REMAT_BAD_INPUT},
        {"\"schedule\": [], \"places\": [[-2, 0, 0, 0]]", "four whole numbers are expected", REMAT_BAD_INPUT},
        {"\"schedule\": [], \"places\": [[0, 0, 0]]", "four whole numbers are expected", REMAT_BAD_INPUT},
        {"\"schedule\": [], \"places\": [[0, 0, 0, 0, 0]]", "four whole numbers are expected", REMAT_BAD_INPUT},
        {"\"schedule\": [], \"schedule\": []", "there twice", REMAT_BAD_INPUT},
        {"\"schedule\": [0, 1, 2], \"peak_bytes\": 30, \"peak_bytes\": 30", "there twice", REMAT_BAD_INPUT},
        {"\"schedule\": 3", "schedule: 3 is not allowed; it must be an array", REMAT_BAD_INPUT},
        {"\"schedule\": [4294967295]", "the number of an action is expected", REMAT_BAD_INPUT},
        {"\"schedule\": [0, 1, 2], \"places\": {}", "places: an object is not allowed; it must be an array",
         REMAT_BAD_INPUT},
        {"\"schedule\": [0, 1, 2], \"places\": [[4294967295, 0, 3, 0]]", "four whole numbers are expected",
         REMAT_BAD_INPUT},
        {"\"schedule\": [0, 1, 2], \"places\": [[\"-1\", 0, 3, 0]]", "four whole numbers are expected",
         REMAT_BAD_INPUT},
        {"\"schedule\": [0, 1, 2], \"places\": [[3, 0, 3, 0]]", "a tensor that does not exist at position 0",
         REMAT_CHECK_FAILED},
        {"\"schedule\": [0, 1, 2], \"places\": [[1, 7, 8, 0]]", "nothing of that kind is written there",
         REMAT_CHECK_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"format\": \"remat-graph-plan\", \"version\": 1, %s}", rows[i].rest);
        remat_graph_figures figures;
        expect_status(f, check_text(graph, text, &figures), rows[i].status);
        if (rows[i].message)
            expect_message(f, rows[i].message);
        else
            assert_int_equal(figures.peak_bytes, 30);
    }
    remat_graph_figures figures;
    expect_status(f, check_text(graph, "{\"version\": 1, \"schedule\": []}", &figures), REMAT_BAD_INPUT);
    expect_status(f, check_text(graph, "{\"format\": \"remat-graph-plan\", \"schedule\": []}", &figures),
                  REMAT_BAD_INPUT);
    remat_graph_destroy(graph);
}

/* A file that ends too soon is refused wherever it ends, and says where. */
static void test_cut_files(void **state)
{
    fixture *f = *state;
    remat_graph *graph = by_hand(f);
    static const char text[] =
        "{\"format\": \"remat-graph-plan\", \"version\": 1, \"base_cost\": 7, \"schedule\": [0, 1, 2],"
        " \"places\": [[0, 0, 3, 0], [1, 1, 3, 64], [2, 2, 3, 0]], \"strategy\": \"mine\"}";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        FILE *stream = stream_of(text, length);
        remat_graph_figures figures;
        expect_status(f, remat_graph_plan_check(graph, stream, "cut", &figures), REMAT_BAD_INPUT);
        expect_message(f, "cut:1: ");
        fclose(stream);
    }
    remat_graph_figures figures;
    expect_ok(f, check_text(graph, text, &figures));
    assert_int_equal(figures.arena_bytes, 128);
    expect_status(f, check_text(graph, "[]", &figures), REMAT_BAD_INPUT);
    remat_graph_destroy(graph);
}

/* Tensors without bytes have no place: not in the file that is written, and not in the one that is read. */
static void test_empty_tensors(void **state)
{
    fixture *f = *state;
    static const char text[] =
        "{\"format\": \"remat-graph\", \"version\": 1, \"tensors\": [{\"bytes\": 64}, {\"bytes\": 0}, {\"bytes\": 64}],"
        " \"actions\": [{\"once\": true, \"cost\": 1, \"writes\": [0]}, {\"cost\": 2, \"reads\": [0], \"writes\": [1]},"
        " {\"cost\": 2, \"reads\": [0, 1], \"writes\": [2]}], \"results\": [2]}";
    remat_graph *graph;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_graph_read(f->context, stream, "text", &graph));
    fclose(stream);
    remat_graph_plan *plan, *again;
    expect_ok(f, remat_graph_plan_create(graph, NULL, &plan));
    assert_int_equal(remat_graph_plan_place_count(plan), 2);
    capture made;
    capture_begin(&made);
    expect_ok(f, remat_graph_plan_write(plan, made.stream, true));
    capture_end(&made);
    remat_graph_figures figures;
    expect_ok(f, check_text(graph, made.text, &figures));
    assert_int_equal(figures.arena_bytes, 128);
    stream = stream_of(made.text, strlen(made.text));
    expect_ok(f, remat_graph_plan_read(graph, stream, "made", &again));
    fclose(stream);
    assert_int_equal(remat_graph_plan_place_count(again), 2);
    free(made.text);
    remat_graph_plan_destroy(again);
    remat_graph_plan_destroy(plan);
    remat_graph_destroy(graph);
}

/* Every allocation of a check fails once. */
static void test_no_memory(void **state)
{
    fixture *f = *state;
    remat_graph *graph = by_hand(f);
    static const char text[] =
        "{\"format\": \"remat-graph-plan\", \"version\": 1, \"base_cost\": 7, \"schedule\": [0, 1, 2],"
        " \"places\": [[0, 0, 3, 0], [1, 1, 3, 64], [2, 2, 3, 0]]}";
    remat_status status = REMAT_NO_MEMORY;
    remat_graph_figures figures;
    for (size_t i = 0; status != REMAT_OK; i++) {
        assert_true(i < 1000);
        f->memory.fail_at = f->memory.calls + 1 + i;
        status = check_text(graph, text, &figures);
        f->memory.fail_at = 0;
        if (status != REMAT_OK)
            expect_status(f, status, REMAT_NO_MEMORY);
    }
    remat_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_places_against_slow), FIXTURE_TEST(test_written_and_checked), FIXTURE_TEST(test_wrong_plans),
        FIXTURE_TEST(test_cut_files),           FIXTURE_TEST(test_empty_tensors),       FIXTURE_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
