#include "support/fixture.h"
#include "support/scratch_files.h"

#include "train/run_log.h"

#include <jansson.h>
#include <math.h>

static run_log_header example(void)
{
    run_log_header header;
    run_log_header_init(&header);
    header.model = "gpt \"small\"";
    header.strategy = "optimal";
    header.kernels = "avx2";
    uint64_t next = 100;
#define X(name) header.name = next++;
    RUN_LOG_COUNTS(X)
#undef X
    header.first_step = 0;
    header.seed = UINT64_MAX - 1;
    header.predicted_step_seconds = 0.1;
    return header;
}

static const remat_step_result steps[] = {
    {1, 0, 2.5, 1e-3, NAN, 0.25, 0, false},
    {2, 0, 1.0 / 3, 1e-3 / 7, 0.75, 0.125, 0, false},
    {3, 1, INFINITY, 5e-324, 1e300, 0.0, 0, false},
    {4, 1, NAN, 0.1 + 0.2, 12345678901234, 1e-9, 0, false},
};
static const remat_validation_result validation = {0.7, 0.9, 64};
static const remat_run_result end = {4, true, false, 0.125, 0.2, 0, NAN, 1 << 20, 1 << 19, 12, 0, false};

static void write_run(fixture *f, const char *path, bool append, const run_log_header *header, size_t first,
                      size_t last, bool finish)
{
    run_log *log;
    expect_ok(f, run_log_create(f->context, path, append, header, &log));
    uint64_t calls = f->memory.calls;
    for (size_t i = first; i < last; i++)
        run_log_step(log, &steps[i]);
    run_log_validation(log, steps[last - 1].step, &validation);
    assert_int_equal(f->memory.calls, calls);
    run_log_close(log, finish ? &end : NULL);
}

static bool same(double a, double b)
{
    return isfinite(b) ? a == b : isnan(a);
}

static void expect_steps(const run_record *record, size_t count)
{
    assert_int_equal(record->step_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(record->steps[i].step, steps[i].step);
        assert_int_equal(record->steps[i].epoch, steps[i].epoch);
        assert_true(same(record->steps[i].loss, steps[i].loss));
        assert_true(same(record->steps[i].learning_rate, steps[i].learning_rate));
        assert_true(same(record->steps[i].gradient_norm, steps[i].gradient_norm));
        assert_true(same(record->steps[i].seconds, steps[i].seconds));
    }
}

static void what_is_logged_is_read(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("a.jsonl");
    run_log_header header = example();
    write_run(f, path, false, &header, 0, 4, true);
    run_record *record;
    expect_ok(f, run_log_read(f->context, path, &record));
    expect_steps(record, 4);
    assert_string_equal(record->header.model, header.model);
    assert_string_equal(record->header.strategy, header.strategy);
    assert_null(record->header.remark);
#define X(name) assert_int_equal(record->header.name, header.name);
    RUN_LOG_COUNTS(X)
#undef X
    assert_true(record->header.predicted_step_seconds == 0.1);
    assert_true(isnan(record->header.keep_all_step_seconds));
    assert_int_equal(record->validation_count, 1);
    assert_int_equal(record->validations[0].step, 4);
    assert_memory_equal(&record->validations[0].result, &validation, sizeof validation);
    assert_true(record->ended && record->end.stopped && !record->end.stopped_early);
    assert_int_equal(record->end.steps, 4);
    assert_int_equal(record->end.peak_resident_bytes, 1 << 20);
    assert_int_equal(record->end.allocated_bytes, 1 << 19);
    assert_true(record->end.last_loss == 0.125 && isnan(record->end.best_validation_loss));
    run_record_destroy(record);
    run_record_destroy(NULL);
    assert_int_equal(f->warnings, 0);
}

static void every_line_is_json(void **state)
{
    fixture *f = *state;
    run_log_header header = example();
    header.budget_bytes = REMAT_NOWHERE;
    write_run(f, scratch_path("a.jsonl"), false, &header, 0, 4, true);
    size_t length, lines = 0;
    char *text = scratch_read(scratch_path("a.jsonl"), &length);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        /* Jansson has no numbers of 2^63 and more. */
        json_t *tree = json_loads(line, JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(tree);
        if (lines == 0)
            assert_null(json_object_get(tree, "budget_bytes"));
        if (lines == 2)
            assert_true(json_real_value(json_object_get(tree, "loss")) == 1.0 / 3);
        if (lines == 3)
            assert_true(json_is_null(json_object_get(tree, "loss")));
        json_decref(tree);
    }
    assert_int_equal(lines, 7);
    free(text);
}

static void a_resumed_run_replaces_what_came_after(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("a.jsonl");
    run_log_header header = example();
    write_run(f, path, false, &header, 0, 3, false);
    FILE *file = fopen(path, "a");
    fputs("{\"step\": 4, \"lo", file); /* where it was killed */
    fclose(file);
    run_record *record;
    expect_ok(f, run_log_read(f->context, path, &record));
    expect_steps(record, 3);
    assert_false(record->ended);
    run_record_destroy(record);
    header.first_step = 1; /* the last saved weights were those of step 1 */
    header.threads = 7;
    write_run(f, path, true, &header, 1, 4, true);
    expect_ok(f, run_log_read(f->context, path, &record));
    expect_steps(record, 4);
    assert_int_equal(record->validation_count, 1);
    assert_int_equal(record->validations[0].step, 4);
    assert_int_equal(record->header.first_step, 0);
    assert_int_equal(record->header.threads, 7);
    assert_true(record->ended);
    run_record_destroy(record);
    /* A long half line, and one that is all there is. */
    file = fopen(path, "a");
    for (int i = 0; i < 10000; i++)
        fputc('x', file);
    fclose(file);
    header.first_step = 4;
    run_log *log;
    expect_ok(f, run_log_create(f->context, path, true, &header, &log));
    run_log_close(log, NULL);
    expect_ok(f, run_log_read(f->context, path, &record));
    expect_steps(record, 4);
    run_record_destroy(record);
    scratch_write_text("b.jsonl", "half");
    expect_ok(f, run_log_create(f->context, scratch_path("b.jsonl"), true, &header, &log));
    run_log_close(log, NULL);
    expect_ok(f, run_log_read(f->context, scratch_path("b.jsonl"), &record));
    run_record_destroy(record);
    expect_ok(f, run_log_create(f->context, scratch_path("new.jsonl"), true, &header, &log));
    run_log_close(log, NULL);
}

static void bad_logs_name_their_line(void **state)
{
    fixture *f = *state;
#define HEAD "{\"format\": \"remat-run\", \"version\": 1}\n"
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "no whole line"},
        {"{\"step\": 1}", "no whole line"},
        {"{\"step\": 1}\n", "a.jsonl:1: not a run log"},
        {"{\"format\": \"remat-plan\", \"version\": 1}\n", "must be 'remat-run'"},
        {"{\"format\": \"remat-run\", \"version\": 2}\n", "version: 2 is unknown"},
        {HEAD "{\"step\": 1, \"loss\": \"x\"}\n", "a.jsonl:2: loss: it must be a number or null"},
        {HEAD "{\"step\": -1, \"loss\": 1}\n", "a.jsonl:2: step: it must be a whole number"},
        {HEAD "{\"step\": 99999999999999999999, \"loss\": 1}\n", "step: it must be a whole number"},
        {HEAD "\n{\"loss\": 1}\n", "a.jsonl:3: neither"},
        {HEAD "{\"step\": 1} {\"step\": 2}\n", "a.jsonl:2: "},
        {HEAD "[1]\n", "a.jsonl:2: "},
        {HEAD "{\"step\": 1, \"lo\n", "a.jsonl:2: "},
    };
    run_record *record;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_status(f, run_log_read(f->context, scratch_write_text("a.jsonl", bad[i].text), &record),
                      REMAT_BAD_INPUT);
        assert_null(record);
        expect_message(f, bad[i].message);
    }
    expect_ok(f,
              run_log_read(f->context, scratch_write_text("a.jsonl", HEAD "{\"step\": 1, \"new\": [1]}\n"), &record));
    assert_int_equal(f->warnings, 1);
    run_record_destroy(record);
    expect_status(f, run_log_read(f->context, scratch_path("none.jsonl"), &record), REMAT_IO);
    run_log_header header = example();
    run_log *log;
    expect_status(f, run_log_create(f->context, "/nowhere/log", false, &header, &log), REMAT_IO);
    assert_null(log);
    f->warnings = 0;
    expect_ok(f, run_log_create(f->context, "/dev/full", false, &header, &log));
    assert_int_equal(f->warnings, 1); /* and the training goes on */
    run_log_step(log, &(remat_step_result){.step = 1});
    run_log_close(log, NULL);
    assert_int_equal(f->warnings, 1);
}

static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("a.jsonl");
    run_log_header header = example();
    write_run(f, path, false, &header, 0, 4, true);
    run_record *record;
    uint64_t calls = f->memory.calls;
    expect_ok(f, run_log_read(f->context, path, &record));
    calls = f->memory.calls - calls;
    run_record_destroy(record);
    for (uint64_t i = 1; i <= calls; i++) {
        f->memory.fail_at = f->memory.calls + i;
        expect_status(f, run_log_read(f->context, path, &record), REMAT_NO_MEMORY);
    }
    for (uint64_t i = 1; i <= 2; i++) {
        run_log *log;
        f->memory.fail_at = f->memory.calls + i;
        expect_status(f, run_log_create(f->context, path, false, &header, &log), REMAT_NO_MEMORY);
    }
    f->memory.fail_at = 0;
}

static void random_damage_never_crashes(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    run_log_header header = example();
    write_run(f, scratch_path("a.jsonl"), false, &header, 0, 4, true);
    size_t length;
    char *good = scratch_read(scratch_path("a.jsonl"), &length), *copy = malloc(length);
    for (int turn = 0; turn < LESS_WHEN_SANITIZED(2000, 500); turn++) {
        memcpy(copy, good, length);
        copy[test_random_below(&random, length)] = (char)test_random_next(&random);
        run_record *record;
        remat_status status = run_log_read(f->context, scratch_write("d.jsonl", copy, length), &record);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT);
        run_record_destroy(record);
    }
    free(good);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_logged_is_read),
        FIXTURE_TEST(every_line_is_json),
        FIXTURE_TEST(a_resumed_run_replaces_what_came_after),
        FIXTURE_TEST(bad_logs_name_their_line),
        FIXTURE_TEST(failed_allocations_are_survived),
        FIXTURE_TEST(random_damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
