#include <remat/remat.h>

int main(void)
{
    remat_context *ctx;
    remat_profile *profile;
    remat_plan *plan;
    remat_plan_options options;
    remat_context_create(NULL, &ctx);
    remat_profile_create(ctx, &profile);
    for (int i = 0; i < 24; i++) /* a type hint, the bytes it saves, the flops of its forward */
        remat_profile_add(profile, i % 2 ? REMAT_FFN : REMAT_ATTENTION, i % 2 ? 5 << 20 : 2 << 20, 1000000);
    remat_plan_options_init(&options);
    options.budget_bytes = 40 << 20;
    remat_status status = remat_plan_create(ctx, profile, &options, &plan);
    if (status != REMAT_OK)
        fprintf(stderr, "%s\n", remat_context_message(ctx));
    for (size_t i = 0; status == REMAT_OK && i < 24; i++)
        printf("layer %zu: %s\n", i, remat_plan_decision_name(plan, i));
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    remat_context_destroy(ctx);
    return (int)status;
}
