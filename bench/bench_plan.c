/* The optimal planner: time, memory, bounds, and the published program on 500 slots beside it. */
#include "measure.h"
#include "persistent_slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct job {
    const char *kind;
    size_t layers;
    unsigned percent; /* of the peak with everything kept */
    bool persistent;  /* run the program on 500 slots, too */
} job;

static void print_head(void)
{
    printf("%-13s %7s %7s %8s %8s %9s %9s %8s %8s %12s\n", "chain", "layers", "budget", "time", "memory", "cost",
           "above", "above", "budget", "500 slots:");
    printf("%-13s %7s %7s %8s %8s %9s %9s %8s %8s %12s\n", "", "", "", "s", "MB", "x base", "class %", "all %",
           "used %", "time, cost, used");
}

static remat_status play(void *simulator, remat_step step)
{
    return remat_simulator_step(simulator, step);
}

/* The published program at the same budget, its schedule replayed in exact bytes. */
static void run_persistent(remat_context *context, const remat_profile *profile, uint64_t budget, uint64_t base)
{
    remat_simulator *simulator;
    remat_figures figures;
    measure_must(context, remat_simulator_create(context, profile, &simulator));
    double start = measure_now();
    remat_status status = persistent_slots_walk(profile, budget, 500, play, simulator);
    double took = measure_now() - start;
    if (status == REMAT_INFEASIBLE) {
        printf("  %.2f s, no plan", took);
    } else {
        measure_must(context, status);
        measure_must(context, remat_simulator_finish(simulator, &figures));
        printf("  %.2f s, %.4f, %.1f %%", took, (double)figures.total_cost / (double)base,
               100.0 * (double)figures.peak_bytes / (double)budget);
    }
    remat_simulator_destroy(simulator);
}

static void run(const job *work)
{
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(1);
    remat_profile *profile = measure_chain(context, work->kind, work->layers, 1);
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    options.strategy = "optimal";
    options.method = "intervals";
    options.budget_bytes = measure_keep_all(context, profile) / 100 * work->percent;
    double start = measure_now();
    measure_must(context, remat_plan_create(context, profile, &options, &plan));
    double took = measure_now() - start;
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    double cost = (double)figures->schedule.total_cost;
    printf("%-13s %7zu %5u %% %8.2f %8.0f %9.4f %9.3f %8.3f %8.2f", work->kind, work->layers, work->percent, took,
           (double)measure_peak_resident() / 1e6, cost / (double)figures->base_cost,
           100.0 * (cost / (double)figures->method_bound_cost - 1),
           100.0 * (cost / (double)figures->lower_bound_cost - 1),
           100.0 * (double)figures->schedule.peak_bytes / (double)options.budget_bytes);
    if (work->persistent)
        run_persistent(context, profile, options.budget_bytes, figures->base_cost);
    printf("\n");
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    remat_context_destroy(context);
}

/* Each job in a process of its own, so that its memory is its own. */
static void run_apart(const job *work)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run(work);
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        exit(1);
}

static void run_slots(void)
{
    static const uint64_t slots[] = {10, 30, 100};
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(1);
    remat_profile *profile = measure_chain(context, "homogeneous", 1000000, 1);
    printf("\n%-20s %14s %14s %9s %22s\n", "10^6 equal layers", "forwards", "closed form", "time", "online, forwards");
    for (size_t i = 0; i < 3; i++) {
        uint64_t forwards[2];
        double took = 0;
        for (int online = 0; online < 2; online++) {
            char strategy[32];
            remat_plan_options options;
            remat_plan *plan;
            remat_plan_options_init(&options);
            snprintf(strategy, sizeof strategy, "%s:%u", online ? "online" : "revolve", (unsigned)slots[i]);
            options.strategy = strategy;
            double start = measure_now();
            measure_must(context, remat_plan_create(context, profile, &options, &plan));
            took = online ? took : measure_now() - start;
            forwards[online] = remat_plan_get_figures(plan)->schedule.recompute_flops; /* one flop a forward */
            remat_plan_destroy(plan);
        }
        printf("%13u slots  %14llu %14llu %7.2f s %15llu %+.1f %%\n", (unsigned)slots[i],
               (unsigned long long)forwards[0], (unsigned long long)remat_revolve_forwards(1000000, slots[i]), took,
               (unsigned long long)forwards[1],
               100.0 * ((double)(forwards[1] + 1000000) / (double)(forwards[0] + 1000000) - 1));
    }
    remat_profile_destroy(profile);
    remat_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const job jobs[] = {
        {"random", 50, 30, true},       {"proportional", 50, 30, true},   {"whole", 50, 30, true},
        {"random", 340, 30, true},      {"proportional", 340, 30, true},  {"whole", 340, 30, true},
        {"transformer", 340, 30, true}, {"random", 1000, 30, false},      {"proportional", 1000, 30, false},
        {"whole", 1000, 30, false},     {"transformer", 1000, 30, false}, {"random", 1000, 5, false},
        {"random", 1000, 80, false},    {"periodic", 10000, 30, false},   {"homogeneous", 10000, 30, false},
    };
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    print_head();
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        if (!quick || jobs[i].layers <= 50)
            run_apart(&jobs[i]);
    if (!quick)
        run_slots();
    return 0;
}
