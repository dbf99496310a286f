/* What recomputation and a second thread come to on the GPT: trainers that differ in one thing each, steps by turns in one
 * process, medians; `to all kept` is the median of the ratios within each round. Losses of all must be the same bits.
 * Usage: bench_recompute [ROUNDS] (default: 11) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { MOST_ROUNDS = 64, MOST_TYPES = 16 };

typedef struct variant {
    const char *name, *strategy;
    uint64_t budget_bytes;
    unsigned threads;
    remat_trainer *trainer;
    double seconds[MOST_ROUNDS], ratios[MOST_ROUNDS];
} variant;

/* 304 MB is where activation functions and normalisations alone are recomputed, nearly all of them; the table says what ran. */
static variant variants[] = {
    {.name = "all kept", .strategy = "none", .budget_bytes = REMAT_UNLIMITED, .threads = 2},
    {.name = "within 304 MB", .budget_bytes = 304000000, .threads = 2},
    {.name = "all recomputed", .strategy = "full", .budget_bytes = REMAT_UNLIMITED, .threads = 2},
    {.name = "all kept, 1 thread", .strategy = "none", .budget_bytes = REMAT_UNLIMITED, .threads = 1},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void open_variant(remat_context *context, remat_model *model, variant *v)
{
    remat_train_options options;
    remat_step_result result;
    remat_train_options_init(&options);
    options.strategy = v->strategy;
    options.budget_bytes = v->budget_bytes;
    options.threads = v->threads;
    measure_must(context, remat_trainer_create(model, &options, &v->trainer));
    measure_must(context, remat_trainer_step(v->trainer, &result)); /* touches all memory for the first time */
}

static void take_steps(remat_context *context, size_t rounds)
{
    for (size_t round = 0; round < rounds; round++) {
        double loss = 0;
        for (variant *v = variants; v < variants + VARIANTS; v++) {
            remat_step_result result;
            measure_must(context, remat_trainer_step(v->trainer, &result));
            v->seconds[round] = result.seconds;
            v->ratios[round] = result.seconds / variants[0].seconds[round];
            if (v == variants)
                loss = result.loss;
            else if (memcmp(&loss, &result.loss, sizeof loss) != 0) {
                fprintf(stderr, "%s: another loss than with everything kept\n", v->name);
                exit(1);
            }
        }
    }
}

/* How many layers of each type run forward more than once. */
static void print_recomputed(remat_context *context, const remat_model *model, const remat_trainer *trainer)
{
    const char *types[MOST_TYPES];
    unsigned counts[MOST_TYPES] = {0};
    size_t found = 0;
    for (size_t n = 0; n < remat_model_layer_count(model); n++) {
        remat_model_layer layer;
        if (remat_trainer_forwards(trainer, n) < 2)
            continue;
        measure_must(context, remat_model_get_layer(model, n, &layer));
        size_t t = 0;
        while (t < found && strcmp(types[t], layer.type) != 0)
            t++;
        if (t == found && found == MOST_TYPES)
            continue;
        types[t] = layer.type;
        found += t == found;
        counts[t]++;
    }
    for (size_t t = 0; t < found; t++)
        printf("%s%u %s", t ? ", " : "    recomputed: ", counts[t], types[t]);
    if (found)
        putchar('\n');
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 11;
    remat_context *context;
    remat_model *model;
    if (rounds < 1 || rounds > MOST_ROUNDS || remat_context_create(NULL, &context) != REMAT_OK) {
        fprintf(stderr, "bench_recompute: 1 to %d rounds\n", MOST_ROUNDS);
        return 2;
    }
    measure_must(context, remat_model_load(context, "examples/models/gpt_bench.ini", &model));
    for (variant *v = variants; v < variants + VARIANTS; v++)
        open_variant(context, model, v);
    take_steps(context, rounds);
    printf("%-24s %10s %12s %12s\n", "GPT 6x384", "MB", "ms a step", "to all kept");
    for (variant *v = variants; v < variants + VARIANTS; v++) {
        remat_trainer_figures figures;
        remat_trainer_get_figures(v->trainer, &figures);
        printf("%-24s %10.1f %12.1f %12.3f\n", v->name, 1e-6 * (double)figures.total_bytes,
               1e3 * measure_median(v->seconds, rounds), measure_median(v->ratios, rounds));
        print_recomputed(context, model, v->trainer);
        remat_trainer_destroy(v->trainer);
    }
    remat_model_destroy(model);
    remat_context_destroy(context);
    return 0;
}
