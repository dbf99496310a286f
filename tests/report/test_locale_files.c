/* A program may set any locale: what the library writes is the same, and it reads the same. */
#include "support/comma_locale.h"
#include "support/fixture.h"
#include "support/scratch_files.h"

#include <remat/report.h>

enum { RESULTS = 3 };

static const char model_text[] = "[Model]\nname = small\nbatch_size = 4\nclip_norm = 0.75\n"
                                 "[Optimizer]\ntype = adam\nlearning_rate = 0.0125\n"
                                 "[Dataset]\ntype = csv\ninputs = data.csv\nvalidation_split = 0.25\n"
                                 "[in]\ntype = input\ninput_shape = 1:1:2\n"
                                 "[fc]\ntype = fully_connected\nunit = 3\nactivation = tanh\n"
                                 "[out]\ntype = fully_connected\nunit = 1\n"
                                 "[loss]\ntype = mse\n";

static void write_inputs(void)
{
    char rows[2000] = "";
    size_t used = 0;
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(rows + used, sizeof rows - used, "0.%d,%d.5,1.%d25\n", i, i % 3, i % 7);
    scratch_write("data.csv", rows, used);
    scratch_write_text("model.ini", model_text);
}

/* The weights and the state after seven steps, the report of the log named, and the properties of all layers. */
static void make_files(fixture *f, const char *log, bool write_log, char *texts[RESULTS], size_t lengths[RESULTS])
{
    const char *state = scratch_path("state.safetensors");
    remat_model *model;
    remat_trainer *trainer, *resumed;
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.steps = 7; /* an epoch and its validation */

    options.kernels = "portable";
    expect_ok(f, remat_model_load(f->context, scratch_path("model.ini"), &model));
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.log_path = write_log ? log : NULL;
    remat_run_result result;
    expect_ok(f, remat_trainer_run(trainer, &hooks, &result));
    assert_int_equal(result.steps, 7);
    expect_ok(f, remat_trainer_save(trainer, state, true));
    texts[0] = scratch_read(state, &lengths[0]);
    expect_ok(f, remat_trainer_create(model, &options, &resumed));
    expect_ok(f, remat_trainer_resume(resumed, state));
    expect_ok(f, remat_trainer_save(resumed, state, true));
    size_t length;
    char *again = scratch_read(state, &length);
    assert_true(length == lengths[0] && memcmp(again, texts[0], length) == 0);
    free(again);
    remat_trainer_destroy(resumed);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);

    remat_report *report;
    capture out;
    expect_ok(f, remat_report_create(f->context, &report));
    expect_ok(f, remat_report_add_run(report, "run.jsonl", log));
    capture_begin(&out);
    expect_ok(f, remat_report_write_json(report, out.stream));
    capture_end(&out);
    texts[1] = out.text;
    lengths[1] = out.length;
    remat_report_destroy(report);
    capture_begin(&out);
    expect_ok(f, remat_layer_types_write(f->context, NULL, out.stream, true));
    capture_end(&out);
    texts[2] = out.text;
    lengths[2] = out.length;
}

static void files_are_the_same_in_all_locales(void **state)
{
    fixture *f = *state;
    static const char *const points[] = {".", ",", "\xd9\xab"};
    enum { LOCALES = sizeof points / sizeof points[0] };
    char *texts[LOCALES][RESULTS];
    size_t lengths[LOCALES][RESULTS];
    char log[512];
    snprintf(log, sizeof log, "%s", scratch_path("run.jsonl"));
    write_inputs();
    for (size_t i = LOCALES; i-- > 0;) { /* the log is written where the point is none */
        comma_locale_set(points[i]);
        make_files(f, log, i == LOCALES - 1, texts[i], lengths[i]);
    }
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(texts[0][1], "\"loss\""));
    for (size_t i = 1; i < LOCALES; i++)
        for (size_t r = 0; r < RESULTS; r++)
            if (lengths[i][r] != lengths[0][r] || memcmp(texts[i][r], texts[0][r], lengths[0][r]) != 0)
                fail_msg("file %zu differs where the decimal point is '%s'", r, points[i]);
    for (size_t i = 0; i < LOCALES; i++)
        for (size_t r = 0; r < RESULTS; r++)
            free(texts[i][r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(files_are_the_same_in_all_locales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
