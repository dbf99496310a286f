/* A plan file in a report, without its profile: the report's document must be JSON that can stand in a page. */
#include "fuzz/fuzz.h"

#include "support/jansson_verdict.h"

void fuzz_report_plan(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_report *report;
    FUZZ_CHECK(remat_report_create(context, &report) == REMAT_OK);
    FILE *stream = fuzz_stream(data, size);
    bool read = fuzz_accepted(context, remat_report_add_plan_file(report, "plan.json", stream));
    fclose(stream);
    FUZZ_CHECK(remat_report_count(report) == read);
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_report_write_json(report, to.stream) == REMAT_OK);
    fuzz_output_end(&to);
    FUZZ_CHECK(jansson_accepts(to.text, to.length));
    FUZZ_CHECK(!strchr(to.text, '<'));
    free(to.text);
    remat_report_destroy(report);
    fuzz_end(context);
}
