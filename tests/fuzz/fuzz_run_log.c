/* The log of a run: a report shows it, and a resumed training appends to it. */
#include "fuzz/fuzz.h"

#include "support/jansson_verdict.h"
#include "train/run_log.h"

static bool show(remat_context *context, const char *path)
{
    remat_report *report;
    FUZZ_CHECK(remat_report_create(context, &report) == REMAT_OK);
    bool read = fuzz_accepted(context, remat_report_add_run(report, "run.jsonl", path));
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_report_write_json(report, to.stream) == REMAT_OK);
    fuzz_output_end(&to);
    FUZZ_CHECK(jansson_accepts(to.text, to.length));
    FUZZ_CHECK(!strchr(to.text, '<'));
    free(to.text);
    remat_report_destroy(report);
    return read;
}

static void append(remat_context *context, const char *path)
{
    run_log_header header;
    run_log_header_init(&header);
    header.first_step = 2;
    run_log *log;
    FUZZ_CHECK(run_log_create(context, path, true, &header, &log) == REMAT_OK);
    run_log_step(log, &(remat_step_result){.step = 3, .loss = 0.5});
    run_log_close(log, &(remat_run_result){.steps = 1});
}

void fuzz_run_log(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    const char *path = fuzz_file(0, data, size);
    bool read = show(context, path);
    append(context, path);
    if (read || size == 0)
        FUZZ_CHECK(show(context, path));
    fuzz_end(context);
}
