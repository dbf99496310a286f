/* Memory against time on a model: one trainer for each budget, from the smallest to keeping everything, steps taken by turns
 * in one process, medians; `more` is the median of the ratios within each round. Costs are measured first and the plans made with them, so that predicted step times can be
 * compared with measured ones. Losses of all must be the same bits.
 * Usage: bench_budgets [MODEL.ini [ROUNDS]] (default: examples/models/gpt_bench.ini 11) */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

enum { POINTS = 10, MOST_ROUNDS = 64 };

typedef struct point {
    remat_trainer *trainer;
    remat_trainer_figures figures;
    double seconds[MOST_ROUNDS];
    double ratios[MOST_ROUNDS]; /* to keeping everything in the same round: slow moments of the machine fall out */
} point;

/* Times the layers and writes the profile to a file, whose name it returns. */
static const char *measure_costs(remat_context *context, remat_model *model, char *path, size_t room)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_profile *profile;
    remat_train_options_init(&options);
    options.strategy = "none";
    measure_must(context, remat_trainer_create(model, &options, &trainer));
    measure_must(context, remat_trainer_measure(trainer, 9, &profile));
    snprintf(path, room, "/tmp/remat-budgets-%ld.json", (long)getpid());
    measure_must(context, remat_profile_save(profile, path));
    remat_profile_destroy(profile);
    remat_trainer_destroy(trainer);
    return path;
}

/* The activation memory: the arena without the weight gradients that live in it at the peak. */
static double activations(const remat_trainer_figures *figures)
{
    return (double)(figures->arena_bytes - figures->peak_weight_gradient_bytes);
}

static void open_points(remat_context *context, remat_model *model, const char *profile, point *points)
{
    static const double shares[POINTS] = {0, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 1};
    remat_train_options options;
    remat_trainer *questions;
    remat_train_point first;
    size_t count;
    remat_train_options_init(&options);
    options.strategy = "none";
    options.profile_path = profile;
    options.plan_only = true;
    measure_must(context, remat_trainer_create(model, &options, &questions));
    remat_trainer_figures all;
    remat_trainer_get_figures(questions, &all);
    measure_must(context, remat_trainer_find_curve(questions, &count));
    measure_must(context, remat_trainer_get_point(questions, 0, &first));
    uint64_t smallest = first.total_bytes, fixed = all.total_bytes - all.arena_bytes;
    uint64_t gradients = all.peak_weight_gradient_bytes;
    remat_trainer_destroy(questions);
    options.plan_only = false;
    for (int i = 0; i < POINTS; i++) {
        double arena = shares[i] * activations(&all) + (double)gradients;
        uint64_t budget = fixed + (uint64_t)arena;
        options.strategy = i == POINTS - 1 ? "none" : NULL;
        options.budget_bytes = i == POINTS - 1 ? REMAT_NO_BUDGET : budget > smallest ? budget : smallest;
        measure_must(context, remat_trainer_create(model, &options, &points[i].trainer));
        remat_trainer_get_figures(points[i].trainer, &points[i].figures);
    }
}

static void take_steps(remat_context *context, point *points, int rounds)
{
    for (int r = -1; r < rounds; r++) {
        double loss = 0;
        for (int i = 0; i < POINTS; i++) {
            remat_step_result result;
            measure_must(context, remat_trainer_step(points[i].trainer, &result));
            if (i && result.loss != loss) {
                fprintf(stderr, "bench_budgets: losses %.17g and %.17g differ\n", loss, result.loss);
                exit(1);
            }
            loss = result.loss;
            if (r >= 0)
                points[i].seconds[r] = result.seconds;
        }
    }
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "examples/models/gpt_bench.ini";
    int rounds = argc > 2 ? atoi(argv[2]) : 11;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    remat_context *context;
    remat_model *model;
    char path[64];
    static point points[POINTS];
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    measure_must(context, remat_model_load(context, file, &model));
    const char *profile = measure_costs(context, model, path, sizeof path);
    open_points(context, model, profile, points);
    unlink(profile);
    take_steps(context, points, rounds);
    for (int i = 0; i < POINTS; i++)
        for (int r = 0; r < rounds; r++)
            points[i].ratios[r] = points[i].seconds[r] / points[POINTS - 1].seconds[r];
    double keep_all = activations(&points[POINTS - 1].figures);
    printf("%12s %14s %8s %12s %12s %10s %10s %10s\n", "total MB", "activations MB", "share", "step ms", "predicted ms",
           "off", "more", "predicted");
    for (int i = 0; i < POINTS; i++) {
        const remat_trainer_figures *figures = &points[i].figures;
        double measured = measure_median(points[i].seconds, (size_t)rounds), predicted = 1e-9 * (double)figures->cost;
        printf("%12.1f %14.1f %6.1f %% %12.1f %12.1f %+8.1f %% %+8.1f %% %+8.1f %%\n",
               1e-6 * (double)figures->total_bytes, 1e-6 * activations(figures), 100 * activations(figures) / keep_all,
               1e3 * measured, 1e3 * predicted, 100 * (predicted / measured - 1),
               100 * (measure_median(points[i].ratios, (size_t)rounds) - 1),
               100 * ((double)figures->cost / (double)figures->keep_all_cost - 1));
        remat_trainer_destroy(points[i].trainer);
    }
    remat_model_destroy(model);
    remat_context_destroy(context);
    return 0;
}
