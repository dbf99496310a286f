/* Texts of the program that depend on what it finds: names with anything in them, figures of any training, terminals of any
 * width, and `remat doctor` on machines with limits. */
#include "command.h"
#include "machine.h"
#include "progress.h"
#include "run_text.h"
#include "shown.h"
#include "terminal.h"

#include <math.h>
#include <unistd.h>

#include "support/fixture.h"
#include "support/scratch_files.h"

/* ---- what is written ---- */

typedef struct redirected {
    FILE *stream;
    int before;
} redirected;

static redirected redirect(FILE *stream)
{
    fflush(stream);
    redirected made = {stream, dup(fileno(stream))};
    FILE *file = fopen(scratch_path("said"), "w");
    assert_non_null(file);
    dup2(fileno(file), fileno(stream));
    fclose(file);
    return made;
}

/* All that was written since; the caller frees. */
static char *give_back(redirected made)
{
    size_t length;
    fflush(made.stream);
    dup2(made.before, fileno(made.stream));
    close(made.before);
    return scratch_read(scratch_path("said"), &length);
}

/* ---- names ---- */

static void names_without_control_characters(void **state)
{
    (void)state;
    const char *plain = "gr\xc3\xbc\xc3\x9f";
    assert_ptr_equal(shown(plain), plain);
    const char *escaped = shown("a\x1b[2Jb");
    assert_string_equal(escaped, "a\\x1b[2Jb");
    assert_string_equal(shown("\n"), "\\n");
    assert_string_equal(escaped, "a\\x1b[2Jb"); /* it is still there */
}

/* Pieces of a long line: no character is cut, whatever stands before. */
static void lines_of_any_length(void **state)
{
    (void)state;
    for (int before = 0; before < 4; before++) {
        char text[2000];
        capture out;
        size_t used = (size_t)before;
        memset(text, 'x', used);
        for (int i = 0; i < 300; i++, used += 3)
            memcpy(text + used, "\xe2\x82\xac", 3);
        memcpy(text + used, "\n\tend\n", 7);
        capture_begin(&out);
        shown_lines(out.stream, text);
        shown_lines(out.stream, "");
        shown_lines(out.stream, "\x1b");
        capture_end(&out);
        assert_memory_equal(out.text, text, strlen(text));
        assert_string_equal(out.text + strlen(text), "\\x1b");
        free(out.text);
    }
}

static void json_of_any_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", "\"\""},
        {"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
        {"\x01\n\x7f", "\"\\u0001\\u000a\\u007f\""},
        {"\xc2\x9b", "\"\\u009b\""},                          /* a control character of two bytes */
        {"\xe2\x80\xae", "\"\\u202e\""},                      /* turns the direction of writing */
        {"\xc3\xbc\xe2\x82\xac", "\"\xc3\xbc\xe2\x82\xac\""}, /* letters */
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},         /* of four bytes */
        {"\xff.", "\"\\ufffd.\""},                            /* no UTF-8 */
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},                   /* the text ends inside a letter */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        capture out;
        capture_begin(&out);
        run_text_json_quoted(out.stream, cases[i].text);
        capture_end(&out);
        assert_string_equal(out.text, cases[i].wanted);
        free(out.text);
    }
}

/* ---- figures of a training ---- */

static char *written(void (*write)(FILE *to, const remat_trainer_figures *figures),
                     const remat_trainer_figures *figures)
{
    capture out;
    capture_begin(&out);
    write(out.stream, figures);
    capture_end(&out);
    return out.text;
}

static void tables_of_memory(void **state)
{
    (void)state;
    remat_trainer_figures figures = {.model = "", .parameters = 12345, .batch_size = 8, .accumulate = 1};
    char *text = written(run_text_title, &figures);
    assert_string_equal(text, "model, 12,345 parameters, batch 8");
    free(text);
    figures.model = "net";
    figures.accumulate = 4;
    text = written(run_text_title, &figures);
    assert_string_equal(text, "net, 12,345 parameters, batch 8 x 4");
    free(text);
    figures.frozen_parameters = 1000000;
    text = written(run_text_title, &figures);
    assert_string_equal(text, "net, 1,012,345 parameters (12,345 trained), batch 8 x 4");
    free(text);
    figures.frozen_parameters = 0;
    figures.arena_bytes = figures.peak_bytes = 5000;
    figures.peak_weight_gradient_bytes = 700;
    text = written(run_text_memory, &figures);
    assert_null(strstr(text, "not filled"));
    assert_null(strstr(text, "micro-batches"));
    free(text);
    figures.gradient_bytes = 300;
    figures.arena_bytes = 6234;
    text = written(run_text_memory, &figures);
    expect_text(text, "1,234"); /* not filled */
    expect_text(text, "1,000"); /* of weight gradients, over all micro-batches */
    expect_text(text, "over all micro-batches");
    free(text);
}

/* A run without steps has no times, and forwards of none. */
static void what_came_true(void **state)
{
    (void)state;
    const remat_trainer_figures figures = {.model = "net", .strategy = "none", .remark = "", .cost = 2000000};
    remat_run_result result = {.steps = 3, .median_step_seconds = 0.003, .allocated_bytes = 100};
    for (int i = 0; i < 2; i++) {
        capture out;
        capture_begin(&out);
        run_text_truth(out.stream, &figures, &result, true);
        capture_end(&out);
        expect_text(out.text, "2.00 ms");
        assert_int_equal(strstr(out.text, "3.00 ms") != NULL, i == 0);
        assert_int_equal(strstr(out.text, "+50.0 %") != NULL, i == 0);
        assert_int_equal(strstr(out.text, "forwards") != NULL, i == 0);
        free(out.text);
        result = (remat_run_result){.allocated_bytes = 100};
    }
}

/* ---- terminals ---- */

static void widths(void **state)
{
    (void)state;
    static const struct {
        const char *columns;
        int wanted, width;
    } cases[] = {{"70", 70, 70},          {"10", 10, 50}, {"500", 500, 200},
                 {"99999999999", 80, 80}, {"-3", 80, 80}, {"x", 80, 80}};
    redirected out = redirect(stdout); /* no terminal */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("COLUMNS", cases[i].columns, 1);
        int columns = terminal_columns(STDOUT_FILENO), width = terminal_width();
        if (columns != cases[i].wanted || width != cases[i].width) {
            free(give_back(out));
            fail_msg("COLUMNS=%s: %d and %d", cases[i].columns, columns, width);
        }
    }
    bool colours = terminal_has_colours();
    free(give_back(out));
    assert_false(colours);
    unsetenv("COLUMNS");
}

/* Half a sample a second: many hours are left. */
static void a_bar_with_hours_left(void **state)
{
    (void)state;
    setenv("COLUMNS", "120", 1);
    progress_display progress = {.bar = true, .total = 100000, .samples = 1, .bytes = 4096};
    redirected err = redirect(stderr);
    progress_step(&progress, &(remat_step_result){.step = 1, .loss = 0.5, .seconds = 2});
    progress_step(&progress, &(remat_step_result){.step = 100000, .loss = 0.25, .seconds = 2});
    progress_validation(&progress, 100000, &(remat_validation_result){.loss = 0.75, .accuracy = NAN});
    progress_end(&progress);
    char *said = give_back(err);
    expect_text(said, "step 1/100000  loss 0.5000  0.5 samples/s  4 KiB  55:33:18 left");
    expect_text(said, "00:00 left");
    expect_text(said, "\r[");
    expect_text(said, "validation loss 0.750000\n");
    assert_null(strstr(said, "accuracy"));
    free(said);
    unsetenv("COLUMNS");
}

/* The first step of a run, every third, and the last. */
static void lines_where_there_is_no_terminal(void **state)
{
    (void)state;
    progress_display progress = {.total = 8, .samples = 10, .every = 3, .first = 1}, quiet = {.quiet = true};
    redirected err = redirect(stderr);
    for (uint64_t step = 2; step <= 8; step++)
        progress_step(&progress, &(remat_step_result){.step = step, .loss = 1, .seconds = 0.5});
    progress_step(&quiet, &(remat_step_result){.step = 1});
    progress_validation(&quiet, 1, &(remat_validation_result){0});
    progress_end(&quiet);
    char *said = give_back(err);
    int lines = 0;
    for (const char *at = said; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 4);
    for (int i = 0; i < 4; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "step %d/8", (int[]){2, 3, 6, 8}[i]);
        expect_text(said, wanted);
    }
    expect_text(said, "20.0 samples/s");
    free(said);
}

/* ---- a machine with limits ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *doctor(fixture *f, const char *option)
{
    char name[] = "doctor", *argv[] = {name, (char *)(uintptr_t)option, NULL};
    redirected out = redirect(stdout);
    int code = command_doctor(f->context, option ? 2 : 1, argv);
    char *said = give_back(out);
    assert_int_equal(code, 0);
    return said;
}

static void advice_of_the_doctor(void **state)
{
    fixture *f = *state;
    char root[] = "/tmp/remat-doctor-XXXXXX", proc[64], group[64], command[256];
    assert_non_null(mkdtemp(root));
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(group, sizeof group, "%s/sys/fs/cgroup", root);
    snprintf(command, sizeof command, "mkdir -p %s/self %s", proc, group);
    assert_int_equal(system(command), 0);
    machine_root = root;
    char *without = doctor(f, NULL);
    write_file(proc, "meminfo", "MemTotal: 8192 kB\nMemAvailable: 4096 kB\nSwapTotal: 100 kB\nSwapFree: 10 kB\n");
    write_file(group, "memory.max", "1048576\n");
    write_file(group, "cpu.max", "50000 100000\n");
    char *with = doctor(f, NULL), *json = doctor(f, "--json");
    machine_root = "";
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
    static const char *const advice[] = {"some of it is in use",
                                         "a budget must be below this, not only below the memory", "0.50 cores",
                                         "use fewer threads"};
    for (size_t i = 0; i < sizeof advice / sizeof advice[0]; i++) {
        assert_null(strstr(without, advice[i]));
        expect_text(with, advice[i]);
        expect_text(json, advice[i]);
    }
    expect_text(with, "1,048,576 bytes");
    expect_text(json, "\"advice\": \"");
    assert_null(strstr(without, "processor"));
    free(without);
    free(with);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_without_control_characters),
        cmocka_unit_test(lines_of_any_length),
        cmocka_unit_test(json_of_any_text),
        cmocka_unit_test(tables_of_memory),
        cmocka_unit_test(what_came_true),
        cmocka_unit_test(widths),
        cmocka_unit_test(a_bar_with_hours_left),
        cmocka_unit_test(lines_where_there_is_no_terminal),
        FIXTURE_TEST(advice_of_the_doctor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
