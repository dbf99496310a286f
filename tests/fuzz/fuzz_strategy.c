/* The text of a strategy: the plan it makes passes the check. The first byte chooses the budget; a method may stand
 * behind a space. */
#include "fuzz/fuzz.h"

static void check(remat_context *context, const remat_profile *profile, const remat_plan *plan)
{
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_plan_write(plan, to.stream, true) == REMAT_OK);
    fuzz_output_end(&to);
    FILE *stream = fuzz_stream(to.text, to.length);
    remat_figures figures;
    FUZZ_CHECK(remat_plan_check(context, stream, "plan", profile, &figures) == REMAT_OK);
    fclose(stream);
    free(to.text);
}

void fuzz_strategy(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    uint8_t choice = fuzz_take(&data, &size);
    char *text = fuzz_text(data, size), *space = strchr(text, ' ');
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.strategy = text;
    options.budget_bytes = choice & 1 ? REMAT_NO_BUDGET : (uint64_t)(choice & 0x7f) * 16;
    options.budget_counts = choice & 0x80 ? REMAT_COUNT_KEPT : REMAT_COUNT_PEAK;
    options.threads = 1;
    if (space) {
        *space = '\0';
        options.method = space + 1;
    }
    remat_profile *profile = fuzz_profile_of_six(context);
    remat_plan *plan;
    remat_status status = remat_plan_create(context, profile, &options, &plan);
    FUZZ_CHECK((plan != NULL) == (status == REMAT_OK || status == REMAT_INFEASIBLE));
    if (fuzz_accepted(context, status))
        check(context, profile, plan);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    free(text);
    fuzz_end(context);
}
