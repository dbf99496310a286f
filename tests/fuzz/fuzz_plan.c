/* Plan files: the check and the reader must agree, and a plan that was read, written again, reads the same. The plan is
 * for a profile of six layers, or for the one that stands before it with a line "%%" between. */
#include "fuzz/fuzz.h"

static remat_profile *take_profile(remat_context *context, const uint8_t **data, size_t *size)
{
    static const char between[] = "\n%%\n";
    const uint8_t *found = *size ? memmem(*data, *size, between, strlen(between)) : NULL;
    if (!found)
        return fuzz_profile_of_six(context);
    FILE *stream = fuzz_stream(*data, (size_t)(found - *data));
    remat_profile *profile;
    fuzz_accepted(context, remat_profile_read(context, stream, "profile", &profile));
    fclose(stream);
    *size -= (size_t)(found - *data) + strlen(between);
    *data = found + strlen(between);
    return profile;
}

static char *write_plan(const remat_plan *plan, size_t *length)
{
    fuzz_output to;
    fuzz_output_begin(&to);
    FUZZ_CHECK(remat_plan_write(plan, to.stream, true) == REMAT_OK);
    fuzz_output_end(&to);
    *length = to.length;
    return to.text;
}

static remat_status read_plan(remat_context *context, const void *data, size_t size, const remat_profile *profile,
                              remat_plan **plan)
{
    FILE *stream = fuzz_stream(data, size);
    remat_status status = remat_plan_read(context, stream, "plan", profile, plan);
    fclose(stream);
    FUZZ_CHECK((*plan != NULL) == (status == REMAT_OK));
    return status;
}

static char *rewrite(remat_context *context, const char *text, const remat_profile *profile)
{
    size_t length;
    remat_plan *plan;
    FUZZ_CHECK(read_plan(context, text, strlen(text), profile, &plan) == REMAT_OK);
    char *written = write_plan(plan, &length);
    remat_plan_destroy(plan);
    return written;
}

/* A plan of a model loses the bytes of the model when it is written as a plan of the chain, and gets the chain's least
 * budget when that is read. From there on nothing changes. */
static void check_roundtrip(remat_context *context, const remat_plan *plan, const remat_profile *profile)
{
    size_t length;
    char *text = write_plan(plan, &length), *second = rewrite(context, text, profile);
    char *third = rewrite(context, second, profile);
    FUZZ_CHECK(strcmp(second, third) == 0);
    FUZZ_CHECK(strcmp(text, second) == 0 || !strstr(text, "\"min_budget_bytes\""));
    free(third);
    free(second);
    free(text);
}

/* What a report makes of it. */
static void walk_plan(const remat_plan *plan)
{
    remat_memory_column columns[8];
    size_t used;
    FUZZ_CHECK(remat_plan_memory(plan, columns, 8, &used) == REMAT_OK);
    remat_plan_statistics statistics;
    remat_plan_get_statistics(plan, &statistics);
}

void fuzz_plan(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    remat_profile *profile = take_profile(context, &data, &size);
    if (profile && remat_profile_layer_count(profile) <= 64) {
        FILE *stream = fuzz_stream(data, size);
        remat_figures figures;
        remat_status checked = remat_plan_check(context, stream, "plan", profile, &figures);
        fclose(stream);
        remat_plan *plan;
        remat_status status = read_plan(context, data, size, profile, &plan);
        FUZZ_CHECK(status == checked);
        if (fuzz_accepted(context, status)) {
            FUZZ_CHECK(remat_plan_get_figures(plan)->schedule.peak_bytes == figures.peak_bytes);
            check_roundtrip(context, plan, profile);
            walk_plan(plan);
        }
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
    fuzz_end(context);
}
