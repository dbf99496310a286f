#include "support/random_profile.h"
#include "test_tape_toy.h"

#include <unistd.h>

enum { STRATEGIES = 13 };

/* A strategy for a chain of n layers; some take an argument that depends on it. */
static const char *strategy_of(int which, uint32_t n, test_random *random, char text[32])
{
    unsigned count = 1 + (unsigned)test_random_below(random, n + 1);
    switch (which) {
    case 0: return NULL; /* the default: everything kept */
    case 1: return "none";
    case 2: return "full";
    case 3: snprintf(text, 32, "full:%u", count); return text;
    case 4: snprintf(text, 32, "selective:%.2f", (double)test_random_below(random, 101) / 100); return text;
    case 5: return "attention-only";
    case 6: return "ffn-only";
    case 7: snprintf(text, 32, "every-nth:%u", count); return text;
    case 8: snprintf(text, 32, "largest:%u", count); return text;
    case 9: return "sqrt";
    case 10: snprintf(text, 32, "revolve:%u", count); return text;
    case 11: return "optimal";
    default: snprintf(text, 32, "online:%u", count); return text;
    }
}

static void random_store(test_random *random, remat_tape_options *options)
{
    options->store = test_random_below(random, 3) == 0 ? REMAT_TAPE_DISK : REMAT_TAPE_MEMORY;
    options->directory = toy_directory();
    options->element = REMAT_BYTES;
    options->write_steps = (uint32_t)test_random_below(random, 4);
    options->read_steps = (uint32_t)test_random_below(random, 4);
    options->store_planned = options->store == REMAT_TAPE_DISK && test_random_below(random, 4) == 0;
    options->verify = (remat_tape_verify)test_random_below(random, 3);
    options->seed = test_random_next(random);
}

/* ---- one case ---- */

typedef struct test_case {
    fixture *f;
    test_random *random;
    remat_profile *profile;
    toy t;
    remat_tape_options options;
    remat_tape *tape;
    uint64_t arena, peak;
} test_case;

/* What the plan states is what is live; the arena is not smaller, and is all that running allocates. */
static void run_case(test_case *c)
{
    fixture *f = c->f;
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c->tape, &statistics);
    uint64_t arena = remat_tape_arena_bytes(c->tape), peak = statistics.peak_bytes;
    uint64_t bytes = f->memory.bytes, calls = f->memory.calls;
    c->arena = arena;
    c->peak = peak;
    assert_int_equal(statistics.arena_bytes, arena);
    assert_true(arena >= peak && arena % 64 == 0 && arena <= c->options.budget_bytes);
    if (!toy_agrees(f->context, c->tape, &c->t, c->options.seed, test_random_next(c->random)))
        fail_msg("the gradient differs, or %llu things were wrong in callbacks", (unsigned long long)c->t.wrong);
    assert_int_equal(f->memory.bytes - bytes, arena);
    assert_int_equal(f->memory.calls - calls, arena > 0);
    remat_tape_get_statistics(c->tape, &statistics);
    assert_int_equal(statistics.runs, 2);
    assert_int_equal(statistics.forwards, c->t.layers);
    assert_int_equal(statistics.backwards, c->t.layers);
    assert_int_equal(remat_tape_step(c->tape), 2);
    uint64_t forwards = 0;
    for (uint32_t i = 0; i < c->t.layers; i++)
        forwards += remat_tape_forwards(c->tape, i);
    assert_int_equal(statistics.forwards + statistics.recomputes, forwards);
}

/* Without a store the peak is that of the plan for rounded sizes, to the byte. */
static void expect_planned_peak(test_case *c)
{
    remat_profile *chain;
    remat_plan *plan;
    remat_tape_statistics statistics;
    expect_ok(c->f, remat_tape_profile(c->f->context, c->profile, &c->options, &chain));
    expect_ok(c->f, make_plan(c->f, chain, c->options.strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    remat_tape_get_statistics(c->tape, &statistics);
    assert_int_equal(statistics.peak_bytes, remat_plan_get_figures(plan)->schedule.peak_bytes);
    assert_int_equal(statistics.kept_bytes, remat_plan_get_figures(plan)->schedule.kept_bytes);
    remat_plan_destroy(plan);
    remat_profile_destroy(chain);
}

static test_case one_case(fixture *f, test_random *random, const toy_traits *traits, int strategy)
{
    char text[32];
    test_case c = {.f = f, .random = random, .profile = toy_profile(f->context, random, traits)};
    uint32_t n = (uint32_t)remat_profile_layer_count(c.profile);
    toy_begin(&c.t, c.profile, n, false);
    remat_tape_callbacks callbacks = toy_callbacks(&c.t);
    remat_tape_options_init(&c.options);
    random_store(random, &c.options);
    c.options.strategy = strategy_of(strategy, n, random, text);
    expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
    if (c.options.store == REMAT_TAPE_MEMORY)
        expect_planned_peak(&c);
    run_case(&c);
    remat_tape_destroy(c.tape);
    toy_end(&c.t);
    remat_profile_destroy(c.profile);
    return c;
}

static void every_strategy_gives_the_same_gradient(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    int cases = LESS_WHEN_SANITIZED(6000, 1200);
    uint64_t arena = 0, peak = 0;
    for (int i = 0; i < cases; i++) {
        toy_traits traits = {.least_layers = 0,
                             .most_layers = i % 7 == 0 ? 60 : 12,
                             .most_bytes = i % 3 == 0 ? 5000 : 300,
                             .modes = i % 4 == 0,
                             .equal_layers = i % 5 == 0};
        test_case c = one_case(f, &random, &traits, i % STRATEGIES);
        arena += c.arena;
        peak += c.peak;
    }
    print_message("arenas take %.3f %% more than peaks\n", 100.0 * ((double)arena / (double)peak - 1.0));
    assert_true((double)arena < 1.001 * (double)peak);
}

/* ---- plans that are given ---- */

static void write_steps(const remat_profile *profile, const step_list *steps, FILE *to)
{
    fprintf(to, "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": [");
    for (size_t i = 0; i < steps->count; i++) {
        remat_step step = steps->steps[i];
        fprintf(to, "%s{", i ? ",\n" : "");
        switch ((remat_op)step.op) {
        case REMAT_FORWARD:
            fprintf(to, "\"op\": \"forward\", \"layer\": %u", step.layer);
            if (step.save != REMAT_NO_SAVE)
                fprintf(to, ", \"save\": \"%s\"", remat_profile_layer(profile, step.layer)->modes[step.save].name);
            break;
        case REMAT_LOSS: fprintf(to, "\"op\": \"loss\""); break;
        case REMAT_BACKWARD: fprintf(to, "\"op\": \"backward\", \"layer\": %u", step.layer); break;
        case REMAT_DROP_X: fprintf(to, "\"op\": \"drop\", \"what\": \"x\", \"layer\": %u", step.layer); break;
        case REMAT_DROP_STATE: fprintf(to, "\"op\": \"drop\", \"what\": \"s\", \"layer\": %u", step.layer); break;
        }
        fputc('}', to);
    }
    fprintf(to, "]}\n");
}

/* Schedules that wander: any mode, also the store's own; drops of what is needed again; outputs made twice. */
static void wandering_schedules_give_the_same_gradient(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    char path[] = "/tmp/remat_tape_plan_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    int cases = LESS_WHEN_SANITIZED(3000, 600);
    for (int i = 0; i < cases; i++) {
        toy_traits traits = {0, 9, 400, true, false, false};
        test_case c = {.f = f, .random = &random, .profile = toy_profile(f->context, &random, &traits)};
        remat_profile *chain;
        remat_plan *plan = NULL;
        step_list steps = {0};
        toy_begin(&c.t, c.profile, (uint32_t)remat_profile_layer_count(c.profile), false);
        remat_tape_callbacks callbacks = toy_callbacks(&c.t);
        remat_tape_options_init(&c.options);
        random_store(&random, &c.options);
        expect_ok(f, remat_tape_profile(f->context, c.profile, &c.options, &chain));
        const remat_profile *meant_for = c.options.store_planned ? chain : c.profile;
        random_schedule(meant_for, &random, &steps);
        FILE *to = fopen(path, "w");
        assert_non_null(to);
        write_steps(meant_for, &steps, to);
        assert_int_equal(fclose(to), 0);
        c.options.plan_path = path;
        if (i % 2) { /* as an object instead of a file */
            expect_ok(f, remat_plan_load(f->context, path, meant_for, &plan));
            c.options.plan = plan;
            c.options.plan_path = NULL;
        }
        expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
        run_case(&c);
        remat_tape_destroy(c.tape);
        remat_plan_destroy(plan);
        remat_profile_destroy(chain);
        step_list_clear(&steps);
        toy_end(&c.t);
        remat_profile_destroy(c.profile);
    }
    unlink(path);
}

/* ---- budgets ---- */

static void budgets_bind_the_arena(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    int cases = LESS_WHEN_SANITIZED(400, 80), feasible = 0;
    for (int i = 0; i < cases; i++) {
        toy_traits traits = {1, 24, 1000, false, false, false};
        test_case c = {.f = f, .random = &random, .profile = toy_profile(f->context, &random, &traits)};
        toy_begin(&c.t, c.profile, (uint32_t)remat_profile_layer_count(c.profile), false);
        remat_tape_callbacks callbacks = toy_callbacks(&c.t);
        remat_tape_options_init(&c.options);
        random_store(&random, &c.options);
        uint64_t all, least = 12345;
        expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
        all = remat_tape_arena_bytes(c.tape);
        remat_tape_destroy(c.tape);
        c.options.strategy = i % 4 == 0 ? "sqrt" : i % 4 == 1 ? "budget" : i % 4 == 2 ? "optimal" : NULL;
        c.options.budget_bytes = test_random_below(&random, all + 200);
        c.options.least_bytes = &least;
        remat_status status = remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape);
        if (status == REMAT_OK) {
            feasible++;
            run_case(&c);
            remat_tape_destroy(c.tape);
        } else {
            expect_status(f, status, REMAT_INFEASIBLE);
            expect_budget_error(f, c.options.budget_bytes, least);
            assert_null(c.tape);
            assert_true(least > c.options.budget_bytes);
            c.options.budget_bytes = least; /* what it says would do, does */
            expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
            run_case(&c);
            remat_tape_destroy(c.tape);
        }
        toy_end(&c.t);
        remat_profile_destroy(c.profile);
    }
    assert_true(feasible > cases / 20);
}

/* ---- long chains ---- */

static void long_chains_of_equal_layers_need_no_offsets(void **state)
{
    fixture *f = *state;
    uint32_t n = LESS_WHEN_SANITIZED(100000, 10000);
    test_random random = {1};
    test_case c = {.f = f, .random = &random, .profile = toy_equal_profile(f->context, n, 64)};
    toy_begin(&c.t, c.profile, n, false);
    remat_tape_callbacks callbacks = toy_callbacks(&c.t);
    remat_tape_options_init(&c.options);
    c.options.strategy = "revolve:50";
    double began = toy_seconds();
    expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
    double made = toy_seconds();
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_int_equal(statistics.arena_bytes, statistics.peak_bytes);
    assert_true(statistics.arena_bytes <= 64 * 54);
    assert_true(statistics.bookkeeping_bytes < 20u * n + 40000); /* a plan's figures; nothing that grows with steps */
    run_case(&c);
    print_message("%u layers: planned in %.3f s, ran twice in %.3f s, %llu bytes of arena, %llu of bookkeeping\n", n,
                  made - began, toy_seconds() - made, (unsigned long long)statistics.arena_bytes,
                  (unsigned long long)statistics.bookkeeping_bytes);
    remat_tape_destroy(c.tape);
    toy_end(&c.t);
    remat_profile_destroy(c.profile);
}

/* Schedules that are made while they run take no memory either, however many slots they have. */
static void many_slots_take_no_memory_while_running(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"revolve:1", "revolve:700", "revolve:1999", "revolve:100000",
                                             "online:3",  "online:700",  "online:5000"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        uint32_t n = i == 0 ? 100 : 2000;
        test_random random = {i};
        test_case c = {.f = f, .random = &random, .profile = toy_equal_profile(f->context, n, 64)};
        toy_begin(&c.t, c.profile, n, false);
        remat_tape_callbacks callbacks = toy_callbacks(&c.t);
        remat_tape_options_init(&c.options);
        c.options.strategy = strategies[i];
        expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &c.options, &c.tape));
        run_case(&c);
        remat_tape_destroy(c.tape);
        toy_end(&c.t);
        remat_profile_destroy(c.profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_strategy_gives_the_same_gradient),
        FIXTURE_TEST(wandering_schedules_give_the_same_gradient),
        FIXTURE_TEST(budgets_bind_the_arena),
        FIXTURE_TEST(long_chains_of_equal_layers_need_no_offsets),
        FIXTURE_TEST(many_slots_take_no_memory_while_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
