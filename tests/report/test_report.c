/* The document inside a report's page: what it says of every step is what the simulator finds. */
#include "support/chains.h"
#include "support/random_profile.h"

#include <jansson.h>
#include <remat/arena.h>
#include <remat/report.h>

#include "report/memory_walk.h"

/* ---- helpers ---- */

static json_t *document_of(const remat_report *report)
{
    capture out;
    json_error_t error;
    capture_begin(&out);
    assert_int_equal(remat_report_write_json(report, out.stream), REMAT_OK);
    capture_end(&out);
    json_t *document = json_loads(out.text, JSON_DECODE_ANY, &error);
    if (!document)
        fail_msg("%s at %d of %s", error.text, error.position, out.text);
    free(out.text);
    return document;
}

static uint64_t number_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static uint64_t item_of(const json_t *object, const char *key, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(json_object_get(object, key), i));
}

static json_t *first_file(json_t *document)
{
    return json_array_get(json_object_get(document, "files"), 0);
}

/* The bytes alive while each step runs, from the simulator's figure before and after it. */
typedef struct step_bytes {
    const remat_profile *profile;
    remat_simulator *simulator;
    uint16_t modes[64]; /* of the states that are alive */
    uint64_t *bytes;
    size_t count;
} step_bytes;

static remat_status note_bytes(void *user, remat_step step)
{
    step_bytes *all = user;
    uint64_t before = remat_simulator_live_bytes(all->simulator), workspace = 0, added = 0;
    const remat_layer *layer = remat_profile_layer(all->profile, step.layer);
    assert_int_equal(remat_simulator_step(all->simulator, step), REMAT_OK);
    uint64_t after = remat_simulator_live_bytes(all->simulator);
    if (step.op == REMAT_FORWARD) {
        workspace = layer->modes[step.save == REMAT_NO_SAVE ? REMAT_KEEP : step.save].forward_workspace_bytes;
        if (step.save != REMAT_NO_SAVE) /* a forward for its output alone leaves a state that is alive as it is */
            all->modes[step.layer] = step.save;
    } else if (step.op == REMAT_LOSS) {
        workspace = remat_profile_loss_workspace_bytes(all->profile);
    } else if (step.op == REMAT_BACKWARD) {
        workspace = layer->modes[all->modes[step.layer]].backward_workspace_bytes;
        added = step.layer == 0 ? remat_profile_input_gradient_bytes(all->profile)
                                : remat_profile_layer(all->profile, step.layer - 1)->output_bytes;
        after = before + added; /* what it consumes goes only when it is done */
    }
    all->bytes[all->count++] = after + workspace;
    return REMAT_OK;
}

static void bytes_of_steps(fixture *f, const remat_profile *profile, const remat_plan *plan, step_bytes *all)
{
    *all = (step_bytes){.profile = profile};
    all->bytes = calloc(remat_plan_get_figures(plan)->schedule.steps + 1, sizeof *all->bytes);
    expect_ok(f, remat_simulator_create(f->context, profile, &all->simulator));
    expect_ok(f, remat_plan_walk(plan, note_bytes, all));
    remat_simulator_destroy(all->simulator);
}

/* ---- what the page draws ---- */

static void expect_steps(const json_t *file, const step_bytes *all)
{
    const json_t *memory = json_object_get(file, "memory"), *tensors = json_object_get(memory, "tensors");
    size_t count = json_array_size(json_object_get(tensors, "bytes"));
    assert_int_equal(number_in(memory, "steps"), all->count);
    assert_int_equal(strlen(json_string_value(json_object_get(memory, "op"))), all->count);
    assert_int_equal(json_array_size(json_object_get(memory, "cost")), all->count);
    assert_int_equal(strlen(json_string_value(json_object_get(tensors, "kind"))), count);
    uint64_t peak = 0, cost = 0;
    for (size_t t = 0; t < all->count; t++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            if (item_of(tensors, "born", i) <= t && t < item_of(tensors, "ends", i))
                sum += item_of(tensors, "bytes", i);
        if (sum != all->bytes[t])
            fail_msg("step %zu: %llu bytes are drawn, %llu are alive", t, (unsigned long long)sum,
                     (unsigned long long)all->bytes[t]);
        peak = sum > peak ? sum : peak;
        cost += item_of(memory, "cost", t);
    }
    const json_t *figures = json_object_get(file, "figures");
    if (all->count > 0)
        assert_int_equal(cost, number_in(figures, "total_cost"));
    if (peak > 0)
        assert_int_equal(peak, number_in(figures, "peak_bytes"));
}

/* What keeping everything would hold, over the same steps: its largest value is the figure, and it goes to the right. */
static void expect_outline(const json_t *file)
{
    const json_t *memory = json_object_get(file, "memory"), *outline = json_object_get(memory, "keep_all");
    const json_t *figures = json_object_get(file, "figures");
    if (!outline) {
        assert_int_equal(number_in(figures, "total_cost"), number_in(figures, "base_cost"));
        return;
    }
    size_t count = json_array_size(json_object_get(outline, "step"));
    uint64_t most = 0, before = 0;
    assert_int_equal(json_array_size(json_object_get(outline, "bytes")), count);
    for (size_t i = 0; i < count; i++) {
        uint64_t step = item_of(outline, "step", i), bytes = item_of(outline, "bytes", i);
        assert_true(before <= step && step < number_in(memory, "steps"));
        before = step;
        most = bytes > most ? bytes : most;
    }
    assert_int_equal(most, number_in(figures, "base_peak_bytes"));
}

/* Forward, the loss, backward: the letters of the steps say the same. */
static void expect_phases(const json_t *file)
{
    const json_t *memory = json_object_get(file, "memory"), *phases = json_object_get(memory, "phases");
    const char *op = json_string_value(json_object_get(memory, "op"));
    if (!strchr(op, 'b'))
        return;
    assert_int_equal(json_array_size(phases), 3);
    for (size_t i = 1; i < 3; i++) {
        const json_t *phase = json_array_get(phases, i);
        size_t step = (size_t)json_integer_value(json_array_get(phase, 1));
        assert_string_equal(json_string_value(json_array_get(phase, 0)), i == 1 ? "loss" : "backward");
        assert_int_equal(step, (size_t)(strchr(op, 'l') - op) + i - 1);
    }
}

/* No two tensors share a byte, as the library's own check says. */
static void expect_arena(fixture *f, const json_t *file)
{
    const json_t *arena = json_object_get(file, "arena");
    const json_t *tensors = json_object_get(json_object_get(file, "memory"), "tensors");
    size_t count = json_array_size(json_object_get(tensors, "bytes"));
    if (!arena) {
        assert_int_equal(count, 0);
        return;
    }
    remat_lifetime *rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = (remat_lifetime){item_of(tensors, "born", i), item_of(tensors, "ends", i),
                                   item_of(tensors, "bytes", i), item_of(tensors, "offset", i)};
    expect_ok(f, remat_arena_check(f->context, rows, count, 1, number_in(arena, "bytes")));
    free(rows);
}

static void test_steps_of_random_plans(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    for (int round = 0; round < LESS_WHEN_SANITIZED(60, 20); round++) {
        remat_profile *profile = random_profile(f->context, &random, &(random_traits){0, 12, true, true});
        const char *strategies[] = {"none", "full", "sqrt", "every-nth:2", "full:3", "revolve:3", "optimal"};
        const char *strategy = strategies[test_random_below(&random, 7)];
        remat_plan *plan;
        uint64_t budget = strcmp(strategy, "optimal") == 0 ? (uint64_t)1 << 62 : REMAT_NO_BUDGET;
        expect_ok(f, make_plan(f, profile, strategy, budget, REMAT_COUNT_PEAK, &plan));
        remat_report *report;
        remat_report_options options;
        remat_report_options_init(&options);
        options.curve = round % 4 == 0;
        expect_ok(f, remat_report_create(f->context, &report));
        expect_ok(f, remat_report_add_plan(report, "a plan", plan, &options));
        json_t *document = document_of(report);
        step_bytes all;
        bytes_of_steps(f, profile, plan, &all);
        expect_steps(first_file(document), &all);
        expect_arena(f, first_file(document));
        expect_outline(first_file(document));
        expect_phases(first_file(document));
        free(all.bytes);
        json_decref(document);
        remat_report_destroy(report);
        remat_plan_destroy(plan);
        remat_profile_destroy(profile);
    }
}

/* A long schedule is drawn in columns: each has the fullest of its steps. */
static void test_columns(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 60, 64, 10);
    remat_plan *plan = plan_by(f, profile, "revolve:1");
    step_bytes all;
    bytes_of_steps(f, profile, plan, &all);
    memory_walk walk;
    expect_ok(f, memory_walk_plan(plan, 0, 100, &walk));
    assert_int_equal(walk.step_count, all.count);
    assert_int_equal(walk.tensor_count, 0);
    assert_true(walk.column_count > 0 && walk.column_count <= 100 && walk.column_count < walk.step_count);
    for (size_t c = 0, t = 0; c < walk.column_count; c++) {
        uint64_t most = 0, sum = 0;
        for (; t < all.count && t * walk.column_count / all.count == c; t++)
            most = all.bytes[t] > most ? all.bytes[t] : most;
        for (int kind = 0; kind < KIND_COUNT; kind++)
            sum += walk.columns[c].bytes[kind];
        assert_int_equal(sum, most);
        assert_int_equal(all.bytes[walk.columns[c].step], most);
    }
    memory_walk_clear(&walk);
    free(all.bytes);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

/* ---- long schedules ---- */

static json_t *page_of(fixture *f, const remat_plan *plan)
{
    remat_report *report;
    remat_report_options options;
    remat_report_options_init(&options);
    options.curve = false;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_plan(report, "plan.json", plan, &options));
    json_t *document = document_of(report);
    remat_report_destroy(report);
    return document;
}

/* So many tensors are not placed; so many steps are columns, whose fullest is the peak of the plan. */
static void test_long_schedules(void **state)
{
    fixture *f = *state;
    static const size_t lengths[] = {250, 650};
    for (int i = 0; i < 2; i++) {
        remat_profile *profile = equal_layers(f, lengths[i], 64, 10);
        remat_plan *plan = plan_by(f, profile, "revolve:1");
        const remat_figures *figures = &remat_plan_get_figures(plan)->schedule;
        json_t *document = page_of(f, plan);
        const json_t *memory = json_object_get(first_file(document), "memory");
        const json_t *columns = json_object_get(memory, "columns");
        uint64_t peak = 0;
        assert_int_equal(number_in(memory, "steps"), figures->steps);
        assert_null(json_object_get(first_file(document), "arena"));
        assert_true((columns != NULL) == (i == 1));
        assert_true((json_object_get(memory, "tensors") != NULL) == (i == 0));
        for (size_t c = 0; i == 1 && c < json_array_size(json_object_get(columns, "step")); c++) {
            const uint64_t sum = item_of(columns, "x", c) + item_of(columns, "s", c) + item_of(columns, "y", c) +
                                 item_of(columns, "w", c);
            peak = sum > peak ? sum : peak;
        }
        assert_int_equal(peak, i == 1 ? figures->peak_bytes : 0);
        json_decref(document);
        remat_plan_destroy(plan);
        remat_profile_destroy(profile);
    }
}

/* ---- files ---- */

static void test_profile_and_plan(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "every-nth:2");
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_profile(report, "profile.json", profile, NULL));
    expect_ok(f, remat_report_add_plan(report, "plan.json", plan, NULL));
    assert_int_equal(remat_report_count(report), 2);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    json_t *document = document_of(report);
    json_t *files = json_object_get(document, "files");
    assert_int_equal(json_array_size(files), 2);
    const json_t *first = json_array_get(files, 0), *second = json_array_get(files, 1);
    assert_string_equal(json_string_value(json_object_get(first, "kind")), "profile");
    assert_null(json_object_get(json_object_get(first, "layers"), "decision"));
    assert_string_equal(json_string_value(json_object_get(second, "strategy")), "every-nth:2");
    const json_t *decisions = json_object_get(json_object_get(second, "layers"), "decision");
    assert_string_equal(json_string_value(json_array_get(decisions, 0)), "recompute");
    const json_t *curve = json_object_get(first, "curve");
    assert_true(number_in(curve, "knee") < json_array_size(json_object_get(curve, "points")));
    json_decref(document);
    remat_report_destroy(report);
}

static void test_plan_file_alone(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "every-nth:2");
    char *text = written_plan(plan);
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_report_add_plan_file(report, "plan.json", stream));
    fclose(stream);
    json_t *document = document_of(report);
    const json_t *file = first_file(document), *figures = json_object_get(file, "figures");
    assert_int_equal(number_in(figures, "peak_bytes"), remat_plan_get_figures(plan)->schedule.peak_bytes);
    assert_int_equal(json_array_size(json_object_get(json_object_get(file, "layers"), "forwards")), 6);
    assert_null(json_object_get(file, "memory"));
    assert_string_equal(json_string_value(json_object_get(file, "strategy")), "every-nth:2");
    json_decref(document);
    /* A file that is cut off is refused, and leaves nothing behind. */
    stream = stream_of(text, strlen(text) / 2);
    expect_status(f, remat_report_add_plan_file(report, "half.json", stream), REMAT_BAD_INPUT);
    fclose(stream);
    assert_int_equal(remat_report_count(report), 1);
    document = document_of(report);
    assert_int_equal(json_array_size(json_object_get(document, "files")), 1);
    json_decref(document);
    free(text);
    remat_report_destroy(report);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void test_infeasible_plan(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan;
    expect_status(f, make_plan(f, profile, "optimal", 10, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_plan(report, "plan.json", plan, NULL));
    json_t *document = document_of(report);
    assert_true(json_is_false(json_object_get(first_file(document), "feasible")));
    assert_null(json_object_get(first_file(document), "memory"));
    json_decref(document);
    remat_report_destroy(report);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void test_kept_budget(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan;
    expect_ok(f, make_plan(f, profile, "budget", 2000, REMAT_COUNT_KEPT, &plan));
    json_t *document = page_of(f, plan);
    const json_t *figures = json_object_get(first_file(document), "figures");
    assert_int_equal(number_in(figures, "kept_budget_bytes"), 2000);
    assert_null(json_object_get(figures, "budget_bytes"));
    json_decref(document);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void test_garbage_as_options(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "full");
    remat_report *report;
    const remat_report_options garbage = {.struct_size = 1};
    expect_ok(f, remat_report_create(f->context, &report));
    expect_status(f, remat_report_add_plan(report, "plan", plan, &garbage), REMAT_INVALID);
    expect_message(f, "call remat_report_options_init before filling it in");
    expect_status(f, remat_report_add_profile(report, "profile", profile, &garbage), REMAT_INVALID);
    assert_int_equal(remat_report_count(report), 0);
    remat_report_destroy(report);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

/* Names are data: none of them can end the script element that holds the document. */
static void test_hostile_names(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    expect_ok(f, remat_profile_set_name(profile, "</script><script>alert(1)</script><!--"));
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_profile(report, "\"</SCRIPT>\\", profile, NULL));
    capture page;
    capture_begin(&page);
    expect_ok(f, remat_report_write(report, page.stream));
    capture_end(&page);
    assert_null(strstr(page.text, "alert(1)</"));
    assert_null(strstr(page.text, "</SCRIPT>"));
    assert_non_null(strstr(page.text, "<!doctype html>"));
    assert_non_null(strstr(page.text, "Permission is hereby granted")); /* the chart library's licence */
    free(page.text);
    json_t *document = document_of(report);
    assert_string_equal(json_string_value(json_object_get(first_file(document), "label")), "\"</SCRIPT>\\");
    json_decref(document);
    remat_report_destroy(report);
    remat_profile_destroy(profile);
}

static void test_no_memory(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "every-nth:2");
    char *text = written_plan(plan);
    uint64_t n = 1;
    for (;; n++) {
        uint64_t held = f->memory.bytes;
        f->memory.fail_at = f->memory.calls + n;
        remat_report *report = NULL;
        remat_status status = remat_report_create(f->context, &report);
        if (status == REMAT_OK)
            status = remat_report_add_plan(report, "plan", plan, NULL);
        if (status == REMAT_OK)
            status = remat_report_add_profile(report, "profile", profile, NULL);
        if (status == REMAT_OK) {
            FILE *stream = stream_of(text, strlen(text));
            status = remat_report_add_plan_file(report, "file", stream);
            fclose(stream);
        }
        bool reached = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        remat_report_destroy(report);
        assert_int_equal(f->memory.bytes, held);
        assert_int_equal(status, reached ? REMAT_NO_MEMORY : REMAT_OK);
        if (!reached)
            break;
    }
    assert_true(n > 20);
    free(text);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void test_file_kinds(void **state)
{
    fixture *f = *state;
    const struct {
        const char *text;
        remat_file_kind kind;
    } cases[] = {
        {"{\"format\": \"remat-profile\"", REMAT_FILE_PROFILE},
        {"  \n{\"version\": 1, \"layers\": [{\"format\": \"remat-plan\"}], \"format\": \"remat-profile\"",
         REMAT_FILE_PROFILE},
        {"{\"format\": \"remat-plan\"}", REMAT_FILE_PLAN},
        {"{\"format\": \"remat-run\"}", REMAT_FILE_RUN},
        {"{\"format\": \"else\"}", REMAT_FILE_OTHER},
        {"{\"format\": \"remat-grahp\", \"tensors\": [], \"actions\": []}", REMAT_FILE_GRAPH},
        {"{\"tensors\": [], \"actions\": []}", REMAT_FILE_GRAPH},
        {"{\"tensors\": []}", REMAT_FILE_OTHER},
        {"{}", REMAT_FILE_OTHER},
        {"# a model\n[Model]\n", REMAT_FILE_MODEL},
        {"[Model]\n", REMAT_FILE_MODEL},
        {"\xef\xbb\xbfindex,type,activation_bytes\n", REMAT_FILE_PROFILE},
        {"id,lower,upper,size\n", REMAT_FILE_LIFETIMES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        remat_file_kind kind;
        FILE *stream = stream_of(cases[i].text, strlen(cases[i].text));
        expect_ok(f, remat_file_kind_tell(f->context, stream, "text", &kind));
        fclose(stream);
        if (kind != cases[i].kind)
            fail_msg("kind %d of: %s", (int)kind, cases[i].text);
    }
    remat_file_kind kind;
    FILE *stream = stream_of("{\"format\" 1", 11);
    expect_status(f, remat_file_kind_tell(f->context, stream, "text", &kind), REMAT_BAD_INPUT);
    fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_steps_of_random_plans),
        FIXTURE_TEST(test_columns),
        FIXTURE_TEST(test_long_schedules),
        FIXTURE_TEST(test_profile_and_plan),
        FIXTURE_TEST(test_plan_file_alone),
        FIXTURE_TEST(test_infeasible_plan),
        FIXTURE_TEST(test_kept_budget),
        FIXTURE_TEST(test_garbage_as_options),
        FIXTURE_TEST(test_hostile_names),
        FIXTURE_TEST(test_no_memory),
        FIXTURE_TEST(test_file_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
