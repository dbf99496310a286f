/* The whole flow with the n-th allocation failing, for n = 1, 2, ... until nothing fails: each call says that there is
 * no memory, nothing is lost, and the same call works as soon as there is some. */
#include "support/chains.h"

static const char csv[] = "index,name,type,activation_bytes,recompute_flops\n4,a,ffn,100,10\n2,,attention,50,20\n";

/* Six layers with modes, names and indexes of their own; `status` is the first failure. */
static remat_status build(remat_context *context, remat_profile **profile)
{
    remat_status status = remat_profile_create(context, profile);
    if (status == REMAT_OK)
        status = remat_profile_set_name(*profile, "chain");
    if (status == REMAT_OK)
        status = remat_profile_set_input_bytes(*profile, 7);
    for (size_t i = 0; status == REMAT_OK && i < 20; i++) { /* enough for every table to grow */
        remat_mode_options modes[2];
        remat_layer_options layer;
        remat_mode_options_init(&modes[0]);
        remat_mode_options_init(&modes[1]);
        remat_layer_options_init(&layer);
        modes[0].name = "half";
        modes[1].name = "slim";
        layer.type = i % 2 ? REMAT_FFN : REMAT_ATTENTION;
        layer.index = 1000 - i;
        layer.activation_bytes = 100 + i;
        layer.output_bytes = 10;
        layer.recompute_flops = 5;
        layer.modes = modes;
        layer.mode_count = i % 3;
        status = remat_profile_add_layer(*profile, &layer);
    }
    return status;
}

static remat_status read_text(remat_context *context, const char *text, remat_profile **profile)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_profile_read(context, stream, "text", profile);
    fclose(stream);
    return status;
}

static void ignore(void *user, remat_live_tensor tensor)
{
    (void)user;
    (void)tensor;
}

/* Writes the plan, reads it back and checks it. */
static remat_status through_a_file(remat_context *context, const remat_profile *profile, const remat_plan *plan)
{
    capture out;
    remat_figures figures;
    remat_plan *read = NULL;
    capture_begin(&out);
    remat_status status = remat_plan_write(plan, out.stream, true);
    capture_end(&out);
    if (status == REMAT_OK) {
        FILE *stream = stream_of(out.text, out.length);
        status = remat_plan_read(context, stream, "text", profile, &read);
        rewind(stream);
        if (status == REMAT_OK)
            status = remat_plan_check(context, stream, "text", profile, &figures);
        fclose(stream);
    }
    if (read)
        remat_plan_destroy(read);
    free(out.text);
    return status;
}

static remat_status plan_and_check(remat_context *context, const remat_profile *profile, const strategy_case *wanted)
{
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    options.strategy = wanted->strategy;
    options.budget_counts = wanted->count;
    options.budget_bytes = wanted->has_budget ? 100000 : REMAT_NO_BUDGET;
    remat_status status = remat_plan_create(context, profile, &options, &plan);
    if (status != REMAT_OK)
        assert_null(plan);
    if (status == REMAT_OK)
        status = remat_plan_peak_live(plan, ignore, NULL);
    if (status == REMAT_OK)
        status = through_a_file(context, profile, plan);
    remat_plan_destroy(plan);
    return status;
}

/* Everything from the context on. */
static remat_status whole_flow(failing_allocator *memory, const strategy_case *wanted)
{
    remat_allocator hook = failing_allocator_hook(memory);
    remat_context *context;
    remat_profile *built = NULL, *read = NULL, *from_csv = NULL;
    remat_status status = remat_context_create(&hook, &context);
    if (status != REMAT_OK)
        return status;
    status = build(context, &built);
    if (status == REMAT_OK)
        status = read_text(context, csv, &from_csv);
    if (status == REMAT_OK) {
        capture out;
        capture_begin(&out);
        status = remat_profile_write(built, out.stream);
        capture_end(&out);
        if (status == REMAT_OK)
            status = read_text(context, out.text, &read);
        free(out.text);
    }
    if (status == REMAT_OK)
        status = plan_and_check(context, read, wanted);
    if (status != REMAT_OK)
        expect_text(remat_context_message(context), "out of memory");
    remat_profile_destroy(built);
    remat_profile_destroy(read);
    remat_profile_destroy(from_csv);
    assert_int_equal(remat_context_bytes(context), 0);
    remat_context_destroy(context);
    return status;
}

static void expect_every_failure_survived(const strategy_case *wanted)
{
    uint64_t n = 1;
    for (; n < 10000; n++) {
        failing_allocator memory = {.fail_at = n};
        remat_status status = whole_flow(&memory, wanted);
        if (memory.bytes || memory.blocks)
            fail_msg("%s: allocation %llu failed and %llu bytes were lost", wanted->strategy, (unsigned long long)n,
                     (unsigned long long)memory.bytes);
        if (memory.calls < n) { /* it was never reached */
            assert_int_equal(status, REMAT_OK);
            break;
        }
        if (status != REMAT_NO_MEMORY)
            fail_msg("%s: allocation %llu failed with status %d", wanted->strategy, (unsigned long long)n, status);
    }
    assert_true(n > 50 && n < 10000);
}

static void every_strategy_survives_every_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < strategy_case_count; i++)
        expect_every_failure_survived(&strategy_cases[i]);
}

static void so_do_the_strategies_with_slots(void **state)
{
    (void)state;
    static const strategy_case slots[] = {{"revolve:3", false, REMAT_COUNT_PEAK},
                                          {"online:3", false, REMAT_COUNT_PEAK}};
    for (size_t i = 0; i < 2; i++)
        expect_every_failure_survived(&slots[i]);
}

/* A call that failed changed nothing: made again, all calls together build the same profile. */
static void a_profile_can_be_built_through_failures(void **state)
{
    fixture *f = *state;
    remat_profile *good, *tried = NULL;
    expect_ok(f, build(f->context, &good));
    char *wanted = written_profile(good);
    expect_ok(f, remat_profile_create(f->context, &tried));
    expect_ok(f, remat_profile_set_name(tried, "chain"));
    expect_ok(f, remat_profile_set_input_bytes(tried, 7));
    for (size_t i = 0; i < remat_profile_layer_count(good); i++) {
        const remat_layer *from = remat_profile_layer(good, i);
        remat_mode_options modes[2];
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.type = from->type;
        layer.index = from->index;
        layer.activation_bytes = from->modes[0].activation_bytes;
        layer.output_bytes = from->output_bytes;
        layer.recompute_flops = from->recompute_flops;
        layer.modes = modes;
        layer.mode_count = from->mode_count - 1;
        for (size_t k = 0; k < layer.mode_count; k++) {
            remat_mode_options_init(&modes[k]);
            modes[k].name = from->modes[k + 1].name;
        }
        remat_status status = REMAT_NO_MEMORY;
        for (uint64_t n = 1; status == REMAT_NO_MEMORY; n++) {
            f->memory.fail_at = f->memory.calls + n;
            status = remat_profile_add_layer(tried, &layer);
            assert_int_equal(remat_profile_layer_count(tried), status == REMAT_OK ? i + 1 : i);
        }
        expect_ok(f, status);
    }
    f->memory.fail_at = 0;
    char *found = written_profile(tried);
    assert_string_equal(found, wanted);
    free(found);
    free(wanted);
    remat_profile_destroy(tried);
    remat_profile_destroy(good);
}

/* A plan outlives a failed walk, and can be written afterwards. */
static void a_plan_can_be_used_again_after_a_failure(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "full:2");
    char *wanted = written_plan(plan);
    for (uint64_t n = 1; n < 5; n++) {
        capture out;
        capture_begin(&out);
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = remat_plan_write(plan, out.stream, true);
        f->memory.fail_at = 0;
        capture_end(&out);
        if (status == REMAT_OK)
            assert_string_equal(out.text, wanted);
        else
            expect_status(f, status, REMAT_NO_MEMORY);
        free(out.text);
    }
    free(wanted);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_survives_every_failure),
        cmocka_unit_test(so_do_the_strategies_with_slots),
        FIXTURE_TEST(a_profile_can_be_built_through_failures),
        FIXTURE_TEST(a_plan_can_be_used_again_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
