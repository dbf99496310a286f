#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const uint64_t megabyte = 1000000;

double measure_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

uint64_t measure_peak_resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

void measure_must(remat_context *context, remat_status status)
{
    if (status == REMAT_OK)
        return;
    fprintf(stderr, "benchmark: %s\n", remat_context_message(context));
    exit(1);
}

/* Numbers drawn one after the other from one stream. */
typedef struct dice {
    remat_random stream;
    uint64_t position;
} dice;

static uint64_t roll(dice *from, uint64_t low, uint64_t high)
{
    return low + remat_random_below(&from->stream, from->position++, high - low + 1);
}

static void fill_random(remat_layer_options *layer, const char *kind, dice *from)
{
    uint64_t activation = roll(from, 1, 200), cost = roll(from, 1000, 1000000);
    uint64_t output = roll(from, 1, activation);
    layer->activation_bytes = activation * megabyte;
    layer->output_bytes = output * megabyte;
    layer->forward_cost = cost;
    layer->backward_cost = cost * roll(from, 15, 25) / 10;
    layer->forward_workspace_bytes = roll(from, 0, 20) * megabyte;
    layer->backward_workspace_bytes = roll(from, 0, 20) * megabyte;
    if (strcmp(kind, "proportional") == 0) {
        layer->forward_cost = activation * 5000;
        layer->backward_cost = activation * 10000;
    }
    if (strcmp(kind, "whole") == 0)
        layer->output_bytes = layer->activation_bytes;
}

/* Norm, projections, attention, residual, norm, two GEMMs with an activation between: what each saves and costs. */
static void fill_transformer(remat_layer_options *layer, size_t position, uint64_t scale)
{
    static const struct {
        uint64_t activation, output, cost, workspace;
    } block[12] = {{20, 10, 12, 0},  {30, 30, 300, 0}, {50, 10, 170, 20}, {10, 10, 100, 0},
                   {10, 10, 8, 0},   {20, 10, 12, 0},  {40, 40, 400, 0},  {40, 40, 30, 0},
                   {10, 10, 400, 0}, {10, 10, 8, 0},   {10, 10, 8, 0},    {10, 10, 5, 0}};
    size_t kind = position % 12;
    layer->activation_bytes = block[kind].activation * scale * megabyte / 4;
    layer->output_bytes = block[kind].output * scale * megabyte / 4;
    layer->forward_cost = block[kind].cost * 1000;
    layer->forward_workspace_bytes = block[kind].workspace * megabyte;
    layer->backward_workspace_bytes = 2 * block[kind].workspace * megabyte;
}

static void fill(remat_layer_options *layer, const char *kind, size_t i, size_t n, dice *from)
{
    bool edge = i < 5 || i + 7 > n;
    if (strcmp(kind, "transformer") == 0) {
        fill_transformer(layer, i, 3 + i / 12 % 7 + roll(from, 0, 1));
    } else if (strcmp(kind, "periodic") == 0) {
        fill_transformer(layer, edge ? i * 7 + 3 : i - 5, edge ? 2 + i % 5 : 4);
    } else if (strcmp(kind, "homogeneous") == 0) {
        layer->activation_bytes = 100 * megabyte;
        layer->output_bytes = 40 * megabyte;
        layer->forward_cost = 1000;
    } else {
        fill_random(layer, kind, from);
    }
}

remat_profile *measure_chain(remat_context *context, const char *kind, size_t layers, uint64_t seed)
{
    dice from = {remat_random_stream(seed, 0, 0), 0};
    remat_profile *profile;
    measure_must(context, remat_profile_create(context, &profile));
    measure_must(context, remat_profile_set_input_bytes(profile, 20 * megabyte));
    for (size_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.recompute_flops = 1;
        fill(&layer, kind, i, layers, &from);
        measure_must(context, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

uint64_t measure_keep_all(remat_context *context, const remat_profile *profile)
{
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    measure_must(context, remat_plan_create(context, profile, &options, &plan));
    uint64_t peak = remat_plan_get_figures(plan)->schedule.peak_bytes;
    remat_plan_destroy(plan);
    return peak;
}
