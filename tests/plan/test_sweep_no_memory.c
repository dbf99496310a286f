/* Curves, optimal plans and slots with each allocation failing in turn. */
#include "support/memory_failures.h"

#include <remat/revolve.h>
#include <remat/sweep.h>

typedef struct wish {
    const char *method;
    uint32_t layers;
    uint64_t budget;
} wish;

static remat_status build(remat_context *context, uint32_t layers, remat_profile **profile)
{
    remat_status status = remat_profile_create(context, profile);
    FLOW(status, remat_profile_set_input_bytes(*profile, 30));
    for (uint32_t i = 0; status == REMAT_OK && i < layers; i++) {
        remat_mode_options mode;
        remat_layer_options layer;
        remat_mode_options_init(&mode);
        remat_layer_options_init(&layer);
        mode.name = "lossy";
        mode.activation_bytes = 10;
        mode.holds_output = false;
        mode.lossless = i % 2;
        layer.activation_bytes = 50 + i;
        layer.output_bytes = 20;
        layer.recompute_flops = 3 + i % 5;
        layer.modes = &mode;
        layer.mode_count = i % 4 == 1;
        status = remat_profile_add_layer(*profile, &layer);
    }
    return status;
}

static remat_status plan_and_sweep(remat_context *context, void *user)
{
    const wish *wanted = user;
    remat_profile *profile = NULL;
    remat_plan *plan = NULL, *point = NULL;
    remat_sweep *sweep = NULL;
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.method = wanted->method;
    options.threads = 1;
    options.strategy = "optimal";
    options.budget_bytes = wanted->budget;
    remat_status status = build(context, wanted->layers, &profile);
    if (status == REMAT_OK) {
        status = remat_plan_create(context, profile, &options, &plan);
        if (wanted->budget == 1 && status == REMAT_INFEASIBLE) /* as it should be */
            status = REMAT_OK;
    }
    options.budget_bytes = REMAT_NO_BUDGET;
    FLOW(status, remat_sweep_create(context, profile, &options, &sweep));
    FLOW(status, remat_sweep_plan(sweep, 0, &point));
    remat_plan_destroy(point);
    remat_sweep_destroy(sweep);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    return status;
}

static void curves_and_plans_survive_every_failure(void **state)
{
    (void)state;
    static const wish wishes[] = {{"exhaustive", 5, REMAT_NO_BUDGET}, {"exhaustive", 5, 250}, {"exhaustive", 5, 1},
                                  {"intervals", 9, REMAT_NO_BUDGET},  {"intervals", 9, 300},  {"intervals", 9, 1}};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
        expect_failures_survived(wishes[i].method, plan_and_sweep, (void *)(uintptr_t)&wishes[i], 20, 400);
}

static remat_status ignore(void *user, remat_step step)
{
    (void)user, (void)step;
    return REMAT_OK;
}

static remat_status slots(remat_context *context, void *user)
{
    remat_online *online = NULL;
    (void)user;
    remat_status status = remat_revolve_walk(context, 50, 20, ignore, NULL);
    FLOW(status, remat_online_create(context, 20, &online));
    for (int i = 0; i < 50; i++)
        FLOW(status, remat_online_advance(online, ignore, NULL));
    FLOW(status, remat_online_reverse(online, ignore, NULL));
    remat_online_destroy(online);
    return status;
}

static void slots_survive_every_failure(void **state)
{
    (void)state;
    expect_failures_survived("slots", slots, NULL, 3, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves_and_plans_survive_every_failure),
        cmocka_unit_test(slots_survive_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
