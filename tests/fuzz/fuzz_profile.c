/* Profiles, JSON and CSV: what was read, written again, reads the same; small ones are planned. */
#include "fuzz/fuzz.h"

static remat_status read_profile(remat_context *context, const void *data, size_t size, remat_profile **profile)
{
    FILE *stream = fuzz_stream(data, size);
    remat_status status = remat_profile_read(context, stream, "text", profile);
    fclose(stream);
    FUZZ_CHECK((*profile != NULL) == (status == REMAT_OK));
    return status;
}

static char *write_profile(const remat_profile *profile, size_t *length)
{
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_profile_write(profile, to.stream) == REMAT_OK);
    fuzz_output_end(&to);
    *length = to.length;
    return to.text;
}

static void check_roundtrip(remat_context *context, const remat_profile *profile)
{
    size_t length;
    char *text = write_profile(profile, &length);
    remat_profile *again;
    if (fuzz_accepted(context, read_profile(context, text, length, &again))) {
        char *same = write_profile(again, &length);
        FUZZ_CHECK(strcmp(text, same) == 0);
        free(same);
        remat_profile_destroy(again);
    } else { /* only because the two do not fit at the same time */
        FUZZ_CHECK(remat_context_error(context)->status == REMAT_NO_MEMORY);
    }
    free(text);
}

/* A plan's own file must pass the check against the profile. */
static void check_plan(remat_context *context, const remat_profile *profile, const char *strategy, uint64_t budget)
{
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.strategy = strategy;
    options.budget_bytes = budget;
    options.threads = 1;
    remat_plan *plan;
    if (fuzz_accepted(context, remat_plan_create(context, profile, &options, &plan))) {
        fuzz_output to;
        remat_figures figures;
        fuzz_output_begin(&to);
        FUZZ_CHECK(remat_plan_write(plan, to.stream, true) == REMAT_OK);
        fuzz_output_end(&to);
        FILE *stream = fuzz_stream(to.text, to.length);
        FUZZ_CHECK(remat_plan_check(context, stream, "plan", profile, &figures) == REMAT_OK);
        FUZZ_CHECK(figures.peak_bytes == remat_plan_get_figures(plan)->schedule.peak_bytes);
        fclose(stream);
        free(to.text);
    }
    remat_plan_destroy(plan);
}

void fuzz_profile(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_profile *profile;
    if (fuzz_accepted(context, read_profile(context, data, size, &profile))) {
        check_roundtrip(context, profile);
        size_t layers = remat_profile_layer_count(profile);
        if (layers <= 16) {
            check_plan(context, profile, "none", REMAT_NO_BUDGET);
            check_plan(context, profile, "sqrt", REMAT_NO_BUDGET);
            check_plan(context, profile, "every-nth:2", REMAT_NO_BUDGET);
        }
        if (layers <= 5)
            check_plan(context, profile, "optimal", 4096);
    }
    remat_profile_destroy(profile);
    fuzz_end(context);
}
