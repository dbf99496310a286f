/* Files that reports refuse, and files that say little: a failed file leaves the report as it was, and what is not known is
 * left out of the document. */
#include "support/chains.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <jansson.h>
#include <remat/report.h>
#include <remat/sweep.h>

static json_t *document_of(const remat_report *report)
{
    capture out;
    json_error_t error;
    capture_begin(&out);
    assert_int_equal(remat_report_write_json(report, out.stream), REMAT_OK);
    capture_end(&out);
    json_t *document = json_loads(out.text, 0, &error);
    if (!document)
        fail_msg("%s at %d of %s", error.text, error.position, out.text);
    free(out.text);
    return document;
}

static remat_status add_plan_text(remat_report *report, const char *text)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_report_add_plan_file(report, "plan.json", stream);
    fclose(stream);
    return status;
}

#define PLAN "{\"format\": \"remat-plan\", \"version\": 1"

static void damaged_plan_files_change_nothing(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "a value should stand"},
        {"[1]", "an object"},
        {"{\"version\": 1}", "format: missing"},
        {"{\"format\": \"remat-profile\"}", "must be 'remat-plan'"},
        {"{\"format\": 5}", "format"},
        {PLAN ", \"version\": 1}", "version"},
        {PLAN ", \"peak_bytes\": \"many\"}", "peak_bytes"},
        {PLAN ", \"peak_bytes\": 1, \"peak_bytes\": 1}", "peak_bytes"},
        {PLAN ", \"strategy\": 7}", "strategy"},
        {PLAN ", \"strategy\": \"a\", \"strategy\": \"b\"}", "strategy"},
        {PLAN ", \"feasible\": 7}", "feasible"},
        {PLAN ", \"layers\": 7}", "layers"},
        {PLAN ", \"layers\": [7]}", "a layer must be an object"},
        {PLAN ", \"layers\": [{\"name\": 7}]}", "name"},
        {PLAN ", \"layers\": [{\"decision\": 7}]}", "decision"},
        {PLAN ", \"layers\": [{\"index\": \"x\"}]}", "index"},
        {PLAN ", \"layers\": [{\"forwards\": -1}]}", "forwards"},
        {PLAN ", \"layers\": [{\"forwards\": 1,}]}", "key"},
        {PLAN ", \"layers\": [{\"other\": }]}", "value"},
        {PLAN ", \"layers\": [}", "'}'"},
        {PLAN ", \"schedule\": [", "ends"},
        {PLAN "} {}", "end"},
        {PLAN, "ends"},
    };
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        remat_status status = add_plan_text(report, wrong[i].text);
        if (status != REMAT_BAD_INPUT)
            fail_msg("status %d for %s", status, wrong[i].text);
        expect_message(f, wrong[i].message);
        expect_message(f, "plan.json");
        assert_int_equal(remat_report_count(report), 0);
    }
    /* Unknown keys are warnings, here as in layers; missing figures are left out. */
    f->warnings = 0;
    expect_ok(f, add_plan_text(report, PLAN ", \"new\": 1, \"layers\": [{\"newer\": 1}, {\"name\": \"b\"}]}"));
    assert_int_equal(f->warnings, 2);
    assert_int_equal(remat_report_count(report), 1);
    json_t *document = document_of(report);
    json_t *file = json_array_get(json_object_get(document, "files"), 0);
    assert_null(json_object_get(json_object_get(file, "figures"), "peak_bytes"));
    json_t *names = json_object_get(json_object_get(file, "layers"), "name");
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "");
    assert_string_equal(json_string_value(json_array_get(names, 1)), "b");
    json_decref(document);
    remat_report_destroy(report);
}

static void logs_that_say_little(void **state)
{
    fixture *f = *state;
    static const char *const logs[] = {
        "{\"format\": \"remat-run\", \"version\": 1}\n",
        "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"m\", \"strategy\": \"full\", \"remark\": \"r\", "
        "\"budget_bytes\": 5, \"peak_bytes\": 4}\n{\"step\": 1, \"loss\": 2.5}\n",
    };
    remat_report *report;
    expect_ok(f, remat_report_create(f->context, &report));
    for (size_t i = 0; i < 2; i++)
        expect_ok(f, remat_report_add_run(report, "run", scratch_write_text("run.jsonl", logs[i])));
    expect_status(f, remat_report_add_run(report, "run", scratch_path("no such log")), REMAT_IO);
    assert_int_equal(remat_report_count(report), 2);
    json_t *document = document_of(report), *files = json_object_get(document, "files");
    json_t *bare = json_array_get(files, 0), *more = json_array_get(files, 1);
    assert_null(json_object_get(bare, "strategy"));
    assert_null(json_object_get(json_object_get(bare, "figures"), "budget_bytes"));
    assert_false(json_is_true(json_object_get(bare, "ended")));
    assert_string_equal(json_string_value(json_object_get(more, "strategy")), "full");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(more, "figures"), "budget_bytes")), 5);
    json_t *series = json_object_get(json_object_get(more, "loss"), "series");
    assert_int_equal(json_array_size(series), 1);
    json_decref(document);
    remat_report_destroy(report);
}

static void kinds_of_files(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text;
        remat_file_kind kind;
    } kinds[] = {
        {"", REMAT_FILE_PROFILE},
        {" \t\n", REMAT_FILE_PROFILE},
        {"# a model\n[Model]\n", REMAT_FILE_MODEL},
        {"; a model\n", REMAT_FILE_MODEL},
        {"\xef\xbb\xbf[Model]", REMAT_FILE_MODEL},
        {"\xef\xbb\xbf{\"format\": \"remat-plan\"}", REMAT_FILE_PLAN},
        {"{\"a\": [{}], \"format\": \"remat-run\"}", REMAT_FILE_RUN},
        {"{\"a\": 1}", REMAT_FILE_OTHER},
        {"{\"format\": \"x\"}", REMAT_FILE_OTHER},
        {"id,\"lower\",upper,size\n", REMAT_FILE_LIFETIMES},
        {"index,type\n", REMAT_FILE_PROFILE},
    };
    remat_file_kind kind;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        FILE *stream = stream_of(kinds[i].text, strlen(kinds[i].text));
        expect_ok(f, remat_file_kind_tell(f->context, stream, "text", &kind));
        if (kind != kinds[i].kind)
            fail_msg("'%s' is taken for kind %d", kinds[i].text, kind);
        fclose(stream);
    }
    static const char *const wrong[] = {"{", "{\"a\": }", "{\"format\": 1}", "{\"a\" 1}"};
    for (size_t i = 0; i < 4; i++) {
        FILE *stream = stream_of(wrong[i], strlen(wrong[i]));
        expect_status(f, remat_file_kind_tell(f->context, stream, "text", &kind), REMAT_BAD_INPUT);
        fclose(stream);
    }
}

/* ---- memory ---- */

static remat_status report_all(remat_context *context, void *user)
{
    remat_report *report = NULL;
    remat_file_kind kind;
    FILE *text = stream_of(PLAN "}", strlen(PLAN "}")), *out = fopen("/dev/null", "w");
    remat_status status = remat_file_kind_tell(context, text, "text", &kind);
    FLOW(status, remat_report_create(context, &report));
    FLOW(status, add_plan_text(report, PLAN ", \"strategy\": \"s\", \"remark\": \"r\", \"layers\": "
                                            "[{\"name\": \"a\", \"decision\": \"keep\", \"forwards\": 2}]}"));
    FLOW(status, remat_report_add_run(report, "run", user));
    FLOW(status, remat_report_write(report, out));
    remat_report_destroy(report);
    fclose(text);
    fclose(out);
    return status;
}

static void reports_survive_every_failure(void **state)
{
    (void)state;
    const char *log = scratch_write_text("log.jsonl", "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"m\"}\n"
                                                      "{\"step\": 1, \"loss\": 2.5}\n");
    expect_failures_survived("report", report_all, (void *)(uintptr_t)log, 10, 500);
}

/* A curve of many plans is shown with fewer points: both ends, the knee, and no others than the sweep has. */
static void long_curves_are_thinned(void **state)
{
    fixture *f = *state;
    enum { LAYERS = 13, MOST = 2001 };
    capture text;
    capture_begin(&text);
    fputs("{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [", text.stream);
    for (unsigned i = 0, cost = 1; i < LAYERS; i++, cost *= 3) /* every choice of layers has another size */
        fprintf(text.stream, "%s{\"index\": %u, \"type\": \"ffn\", \"activation_bytes\": %u, \"recompute_flops\": %u}",
                i ? ", " : "", i, 16u << i, cost);
    fputs("]}", text.stream);
    capture_end(&text);
    remat_profile *profile;
    remat_sweep *sweep;
    remat_report *report;
    expect_ok(f, read_profile_text(f, text.text, &profile));
    expect_ok(f, remat_sweep_create(f->context, profile, NULL, &sweep));
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_profile(report, "profile.json", profile, NULL));
    json_t *document = document_of(report);
    const json_t *curve = json_object_get(json_array_get(json_object_get(document, "files"), 0), "curve");
    const json_t *points = json_object_get(curve, "points");
    const size_t count = remat_sweep_count(sweep), shown = json_array_size(points),
                 knee = (size_t)json_integer_value(json_object_get(curve, "knee"));
    assert_true(count > MOST);
    assert_int_equal(json_integer_value(json_object_get(curve, "plans")), count);
    assert_in_range(shown, 1000, MOST);
    for (size_t i = 0, at = 0; i < shown; i++, at++) {
        remat_sweep_point point = {0};
        const json_t *pair = json_array_get(points, i);
        const uint64_t peak = (uint64_t)json_integer_value(json_array_get(pair, 0));
        for (; at < count; at++) {
            expect_ok(f, remat_sweep_get_point(sweep, at, &point));
            if (point.peak_bytes == peak)
                break;
        }
        assert_in_range(at, 0, count - 1);
        assert_int_equal(json_integer_value(json_array_get(pair, 1)), point.total_cost);
        assert_true(i > 0 || at == 0);
        assert_true(i + 1 < shown || at == count - 1);
        assert_true(i != knee || at == remat_sweep_knee(sweep));
    }
    assert_in_range(knee, 1, shown - 2); /* so that thinning moved it */
    json_decref(document);
    remat_report_destroy(report);
    remat_sweep_destroy(sweep);
    remat_profile_destroy(profile);
    free(text.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(damaged_plan_files_change_nothing),
        FIXTURE_TEST(logs_that_say_little),
        FIXTURE_TEST(kinds_of_files),
        FIXTURE_TEST(long_curves_are_thinned),
        cmocka_unit_test(reports_survive_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
