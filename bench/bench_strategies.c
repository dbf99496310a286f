/* Time and memory of planning with each simple strategy, for 10^3 to 10^6 layers. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layers of all types with sizes and costs that differ. */
static remat_profile *make_profile(remat_context *context, uint64_t layers)
{
    remat_random stream = remat_random_stream(1, 0, 0);
    remat_profile *profile;
    measure_must(context, remat_profile_create(context, &profile));
    for (uint64_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.type = (remat_layer_type)(i % 5);
        layer.activation_bytes = 1024 + remat_random_below(&stream, 3 * i, 1 << 20);
        layer.output_bytes = remat_random_below(&stream, 3 * i + 1, layer.activation_bytes + 1);
        layer.recompute_flops = 1 + remat_random_below(&stream, 3 * i + 2, 1 << 30);
        measure_must(context, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

static void measure(const char *strategy, uint64_t layers)
{
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(1);
    remat_profile *profile = make_profile(context, layers);
    uint64_t profile_bytes = remat_context_bytes(context);
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.strategy = strategy;
    if (strcmp(strategy, "budget") == 0)
        options.budget_bytes = measure_keep_all(context, profile) / 2; /* the greedy has to work for it */
    double best = 1e9;
    for (int round = 0; round < (layers > 100000 ? 1 : 3); round++) {
        remat_plan *plan;
        double start = measure_now();
        measure_must(context, remat_plan_create(context, profile, &options, &plan));
        double took = measure_now() - start;
        best = took < best ? took : best;
        remat_plan_destroy(plan);
    }
    uint64_t plan_bytes = remat_context_peak_bytes(context) - profile_bytes;
    printf("%-16s %9llu  %9.2f ms  %7.1f bytes a layer\n", strategy, (unsigned long long)layers, 1e3 * best,
           (double)plan_bytes / (double)layers);
    remat_profile_destroy(profile);
    remat_context_destroy(context);
}

int main(void)
{
    static const char *const strategies[] = {"none",           "full",     "full:8",      "selective:0.5",
                                             "attention-only", "ffn-only", "every-nth:3", "largest:500",
                                             "budget",         "sqrt"};
    printf("%-16s %9s  %12s  %s\n", "strategy", "layers", "time", "memory of the plan");
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        for (uint64_t layers = 1000; layers <= 1000000; layers *= 10)
            measure(strategies[i], layers);
    return 0;
}
