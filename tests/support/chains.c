#include "support/chains.h"

remat_profile *six_layers(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (int i = 0; i < 3; i++) {
        expect_ok(f, remat_profile_add(profile, REMAT_ATTENTION, 1024, 2000000));
        expect_ok(f, remat_profile_add(profile, REMAT_FFN, 512, 1000000));
    }
    return profile;
}

remat_profile *equal_layers(fixture *f, size_t count, uint64_t bytes, uint64_t flops)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < count; i++)
        expect_ok(f, remat_profile_add(profile, REMAT_OTHER, bytes, flops));
    return profile;
}

remat_profile *layers_of_bytes(fixture *f, const uint64_t *bytes, size_t count)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < count; i++)
        expect_ok(f, remat_profile_add(profile, REMAT_OTHER, bytes[i], 10));
    return profile;
}

remat_plan *plan_by(fixture *f, const remat_profile *profile, const char *strategy)
{
    remat_plan *plan;
    expect_ok(f, make_plan(f, profile, strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    assert_true(remat_plan_get_figures(plan)->feasible);
    return plan;
}

const char *recomputed_layers(const remat_profile *profile, const remat_plan *plan, char text[256])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < remat_profile_layer_count(profile); i++) {
        bool recomputed = remat_plan_decision(plan, i) == REMAT_NO_SAVE;
        assert_string_equal(remat_plan_decision_name(plan, i), recomputed ? "recompute" : "keep");
        if (recomputed && used < 250)
            used += (size_t)snprintf(text + used, 256 - used, "%s%zu", used ? " " : "", i);
    }
    return text;
}

const strategy_case strategy_cases[] = {
    {"none", false, REMAT_COUNT_PEAK},           {"full", false, REMAT_COUNT_PEAK},
    {"full:3", false, REMAT_COUNT_PEAK},         {"selective:0", false, REMAT_COUNT_PEAK},
    {"selective:0.4", false, REMAT_COUNT_PEAK},  {"selective:1", false, REMAT_COUNT_PEAK},
    {"attention-only", false, REMAT_COUNT_PEAK}, {"ffn-only", false, REMAT_COUNT_PEAK},
    {"every-nth:1", false, REMAT_COUNT_PEAK},    {"every-nth:3", false, REMAT_COUNT_PEAK},
    {"largest:0", false, REMAT_COUNT_PEAK},      {"largest:2", false, REMAT_COUNT_PEAK},
    {"sqrt", false, REMAT_COUNT_PEAK},           {"none", true, REMAT_COUNT_PEAK},
    {"full:2", true, REMAT_COUNT_PEAK},          {"budget", true, REMAT_COUNT_PEAK},
    {"budget", true, REMAT_COUNT_KEPT},
};
const size_t strategy_case_count = sizeof strategy_cases / sizeof strategy_cases[0];

/* The greedy is given half way from what it needs at least to what keeping everything needs; others just enough. */
static uint64_t budget_in_reach(fixture *f, const remat_profile *profile, const strategy_case *wanted)
{
    remat_plan *probe;
    uint64_t base, least;
    bool greedy = strcmp(wanted->strategy, "budget") == 0;
    make_plan(f, profile, wanted->strategy, greedy ? 0 : REMAT_NO_BUDGET, wanted->count, &probe);
    assert_non_null(probe);
    base = remat_plan_get_figures(probe)->base_peak_bytes;
    least = remat_plan_get_figures(probe)->min_budget_bytes;
    remat_plan_destroy(probe);
    return greedy && least < base ? least + (base - least) / 2 : least;
}

remat_plan *plan_case(fixture *f, const remat_profile *profile, const strategy_case *wanted)
{
    remat_plan *plan;
    uint64_t budget = wanted->has_budget ? budget_in_reach(f, profile, wanted) : REMAT_NO_BUDGET;
    expect_ok(f, make_plan(f, profile, wanted->strategy, budget, wanted->count, &plan));
    return plan;
}
