/* Models and runs in a report: what the page draws of a model's arena is the arena that training uses. */
#include "support/fixture.h"

#include <jansson.h>
#include <remat/remat.h>
#include <string.h>
#include <unistd.h>

static json_t *first_file_of(const remat_report *report, json_t **document)
{
    capture out;
    capture_begin(&out);
    assert_int_equal(remat_report_write_json(report, out.stream), REMAT_OK);
    capture_end(&out);
    *document = json_loads(out.text, 0, NULL);
    assert_non_null(*document);
    free(out.text);
    return json_array_get(json_object_get(*document, "files"), 0);
}

static uint64_t number(const json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static uint64_t item(const json_t *object, const char *key, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(json_object_get(object, key), i));
}

static remat_trainer *plan_model(fixture *f, const char *path, const char *strategy, uint64_t budget,
                                 remat_model **model)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.strategy = strategy;
    options.budget_bytes = budget;
    options.threads = 2;
    expect_ok(f, remat_model_load(f->context, path, model));
    expect_ok(f, remat_trainer_create(*model, &options, &trainer));
    return trainer;
}

/* Every byte of the arena belongs to at most one tensor at a time, and their largest sum is the peak that was planned. */
static void expect_arena(fixture *f, const json_t *file, const remat_trainer_figures *figures)
{
    const json_t *memory = json_object_get(file, "memory"), *tensors = json_object_get(memory, "tensors");
    size_t count = json_array_size(json_object_get(tensors, "bytes")), steps = number(memory, "steps");
    uint64_t *alive = calloc(steps, sizeof *alive), peak = 0;
    remat_lifetime *rows = calloc(count, sizeof *rows);
    size_t placed = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t born = item(tensors, "born", i), ends = item(tensors, "ends", i), bytes = item(tensors, "bytes", i);
        assert_true(born <= ends && ends <= steps);
        for (uint64_t t = born; t < ends; t++)
            alive[t] += bytes;
        if (born < ends)
            rows[placed++] = (remat_lifetime){born, ends, bytes, item(tensors, "offset", i)};
    }
    for (size_t t = 0; t < steps; t++)
        peak = alive[t] > peak ? alive[t] : peak;
    assert_int_equal(peak, figures->peak_bytes);
    assert_int_equal(alive[number(memory, "peak_step")], peak);
    expect_ok(f, remat_arena_check(f->context, rows, placed, 64, number(json_object_get(file, "arena"), "bytes")));
    free(rows);
    free(alive);
}

static void expect_layers(const json_t *file, const remat_trainer *trainer)
{
    const json_t *layers = json_object_get(file, "layers");
    size_t count = json_array_size(json_object_get(layers, "name"));
    uint64_t again = 0, running = 0;
    for (size_t i = 0; i < count; i++) {
        const char *role = json_string_value(json_array_get(json_object_get(layers, "role"), i));
        running += strcmp(role, "layer") == 0;
        uint64_t forwards = item(layers, "forwards", i);
        assert_int_equal(forwards, remat_trainer_forwards(trainer, i));
        const char *decision = json_string_value(json_array_get(json_object_get(layers, "decision"), i));
        assert_string_equal(decision, forwards > 1 ? "recompute" : "keep");
        again += forwards > 1;
    }
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    assert_int_equal(again, figures.recomputed_layers);
    assert_int_equal(running, figures.layers);
    assert_true(running < count); /* the input is no layer that runs */
}

static void test_models(void **state)
{
    fixture *f = *state;
    const struct {
        const char *path, *strategy;
    } cases[] = {{"examples/models/mlp.ini", "none"},
                 {"examples/models/gpt.ini", NULL},
                 {"examples/models/gpt.ini", "none"},
                 {"examples/models/gpt.ini", "full"},
                 {"examples/models/resnet.ini", "sqrt"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        remat_model *model;
        remat_trainer *trainer = plan_model(f, cases[i].path, cases[i].strategy, REMAT_NO_BUDGET, &model);
        remat_trainer_figures figures;
        remat_trainer_get_figures(trainer, &figures);
        remat_report *report;
        remat_report_options options;
        remat_report_options_init(&options);
        options.curve = i == 0;
        expect_ok(f, remat_report_create(f->context, &report));
        expect_ok(f, remat_report_add_trainer(report, "model.ini", trainer, &options));
        json_t *document, *file = first_file_of(report, &document);
        expect_arena(f, file, &figures);
        expect_layers(file, trainer);
        assert_true(json_is_false(json_object_get(file, "cost_measured"))); /* no profile was given */
        assert_int_equal(number(json_object_get(file, "figures"), "arena_bytes"), figures.arena_bytes);
        assert_int_equal(number(json_object_get(file, "figures"), "total_bytes"), figures.total_bytes);
        assert_int_equal(json_object_get(file, "curve") != NULL, i == 0);
        uint64_t sum = 0;
        const json_t *rows = json_object_get(json_object_get(file, "holds"), "rows");
        for (size_t row = 0; row < json_array_size(rows); row++)
            sum += number(json_array_get(rows, row), "bytes");
        assert_int_equal(sum, figures.total_bytes);
        json_decref(document);
        remat_report_destroy(report);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

static const char log_text[] =
    "{\"format\": \"remat-run\", \"version\": 1, \"model\": \"m\", \"strategy\": \"full\", \"total_bytes\": 300, "
    "\"weight_bytes\": 100, \"arena_bytes\": 200, \"keep_all_arena_bytes\": 500}\n"
    "{\"step\": 1, \"epoch\": 0, \"loss\": 2.5}\n{\"step\": 2, \"epoch\": 0, \"loss\": 1.5}\n"
    "{\"step\": 2, \"validation_loss\": 1.75, \"samples\": 8}\n"
    "{\"end\": true, \"steps\": 2, \"mean_step_seconds\": 0.5, \"peak_resident_bytes\": 900, \"allocated_bytes\": "
    "300}\n";

static void test_no_memory(void **state)
{
    fixture *f = *state;
    char path[] = "/tmp/remat-report-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, log_text, sizeof log_text - 1), sizeof log_text - 1);
    close(descriptor);
    remat_model *model;
    remat_trainer *trainer = plan_model(f, "examples/models/mlp.ini", "full", REMAT_NO_BUDGET, &model);
    remat_report_options options;
    remat_report_options_init(&options);
    options.curve = false;
    uint64_t n = 1;
    for (;; n++) {
        uint64_t held = f->memory.bytes;
        f->memory.fail_at = f->memory.calls + n;
        remat_report *report = NULL;
        remat_status status = remat_report_create(f->context, &report);
        if (status == REMAT_OK)
            status = remat_report_add_trainer(report, "model", trainer, &options);
        if (status == REMAT_OK)
            status = remat_report_add_run(report, "run", path);
        bool reached = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        remat_report_destroy(report);
        assert_int_equal(f->memory.bytes, held);
        assert_int_equal(status, reached ? REMAT_NO_MEMORY : REMAT_OK);
        if (!reached)
            break;
    }
    assert_true(n > 10);
    unlink(path);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_models), FIXTURE_TEST(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
