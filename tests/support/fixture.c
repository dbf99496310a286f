#include "support/fixture.h"

#include <time.h>

static void remember_warning(void *user, const char *message)
{
    fixture *f = user;
    f->warnings++;
    snprintf(f->warning, sizeof f->warning, "%s", message);
}

int fixture_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    remat_allocator hook = failing_allocator_hook(&f->memory);
    if (remat_context_create(&hook, &f->context) != REMAT_OK)
        return -1;
    remat_context_on_warning(f->context, remember_warning, f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture *f = *state;
    bool counted_back = remat_context_bytes(f->context) == 0;
    remat_context_destroy(f->context);
    bool clean = counted_back && f->memory.bytes == 0 && f->memory.blocks == 0;
    if (!clean)
        print_error("memory was not given back: %llu bytes in %llu blocks\n", (unsigned long long)f->memory.bytes,
                    (unsigned long long)f->memory.blocks);
    free(f);
    return clean ? 0 : -1;
}

void expect_status_at(const remat_context *context, remat_status got, remat_status wanted, const char *file, int line)
{
    if (got == wanted)
        return;
    print_error("status %d (%s), not %d (%s): %s\n", got, remat_status_text(got), wanted, remat_status_text(wanted),
                remat_context_message(context));
    _fail(file, line);
}

void expect_text_at(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part))
        return;
    print_error("'%s' is not in: %s\n", part, text);
    _fail(file, line);
}

void expect_budget_error_at(const remat_context *context, uint64_t budget, uint64_t needed, const char *file, int line)
{
    const remat_error *error = remat_context_error(context);
    if (error->status == REMAT_INFEASIBLE && error->budget_bytes == budget && error->needed_bytes == needed)
        return;
    print_error("status %d, a budget of %llu and a need of %llu bytes, not %d, %llu and %llu\n", error->status,
                (unsigned long long)error->budget_bytes, (unsigned long long)error->needed_bytes, REMAT_INFEASIBLE,
                (unsigned long long)budget, (unsigned long long)needed);
    _fail(file, line);
}

FILE *stream_of(const void *bytes, size_t length)
{
    FILE *stream = length ? fmemopen((void *)(uintptr_t)bytes, length, "r") : fopen("/dev/null", "r");
    assert_non_null(stream);
    return stream;
}

void capture_begin(capture *to)
{
    *to = (capture){0};
    to->stream = open_memstream(&to->text, &to->length);
    assert_non_null(to->stream);
}

void capture_end(capture *to)
{
    assert_int_equal(fclose(to->stream), 0);
    to->stream = NULL;
}

char *written_profile(const remat_profile *profile)
{
    capture out;
    capture_begin(&out);
    assert_int_equal(remat_profile_write(profile, out.stream), REMAT_OK);
    capture_end(&out);
    return out.text;
}

char *written_plan(const remat_plan *plan)
{
    capture out;
    capture_begin(&out);
    assert_int_equal(remat_plan_write(plan, out.stream, true), REMAT_OK);
    capture_end(&out);
    return out.text;
}

remat_status read_profile_bytes(fixture *f, const void *bytes, size_t length, remat_profile **profile)
{
    FILE *stream = stream_of(bytes, length);
    remat_status status = remat_profile_read(f->context, stream, "text", profile);
    fclose(stream);
    if (status != REMAT_OK)
        assert_null(*profile);
    return status;
}

remat_status read_profile_text(fixture *f, const char *text, remat_profile **profile)
{
    return read_profile_bytes(f, text, strlen(text), profile);
}

remat_status check_plan_text(fixture *f, const char *text, const remat_profile *profile, remat_figures *figures)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_plan_check(f->context, stream, "text", profile, figures);
    fclose(stream);
    return status;
}

remat_status read_plan_text(fixture *f, const char *text, const remat_profile *profile, remat_plan **plan)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_plan_read(f->context, stream, "text", profile, plan);
    fclose(stream);
    if (status != REMAT_OK)
        assert_null(*plan);
    return status;
}

remat_status make_plan(fixture *f, const remat_profile *profile, const char *strategy, uint64_t budget,
                       remat_budget_counts count, remat_plan **plan)
{
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.strategy = strategy;
    options.budget_bytes = budget;
    options.budget_counts = count;
    return remat_plan_create(f->context, profile, &options, plan);
}

double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
