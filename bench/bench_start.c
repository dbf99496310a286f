/* From a model file to a trainer that can take its first step: read, plan, allocate, make the first weights. Every start is a
 * new process, as it is for a user; rows by turns. Usage: bench_start [ROUNDS] (default: 15) */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { MOST_ROUNDS = 100 };

typedef struct row {
    const char *name, *path;
    uint64_t budget_bytes;
    double plan[MOST_ROUNDS], whole[MOST_ROUNDS];
} row;

static void start(const row *it, bool plan_only)
{
    remat_context *context;
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(1);
    remat_train_options_init(&options);
    options.budget_bytes = it->budget_bytes;
    options.plan_only = plan_only;
    measure_must(context, remat_model_load(context, it->path, &model));
    measure_must(context, remat_trainer_create(model, &options, &trainer));
}

/* In a process of its own, which says how long it took and ends, giving back everything at once. */
static double time_start(const row *it, bool plan_only)
{
    int ends[2], status;
    double seconds = 0;
    if (pipe(ends) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        double began = measure_now();
        start(it, plan_only);
        seconds = measure_now() - began;
        _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &seconds, sizeof seconds) != sizeof seconds || waitpid(child, &status, 0) != child)
        exit(1);
    close(ends[0]);
    return seconds;
}

static row rows[] = {
    {"GPT 6x384, all kept", "examples/models/gpt_bench.ini", REMAT_NO_BUDGET, {0}, {0}},
    {"GPT 6x384, 250 MB", "examples/models/gpt_bench.ini", 250000000, {0}, {0}},
    {"GPT 12x768, all kept", "examples/models/gpt768.ini", REMAT_NO_BUDGET, {0}, {0}},
    {"MLP, B=128", "examples/models/mlp_bench.ini", REMAT_NO_BUDGET, {0}, {0}},
    {"convnet", "examples/models/convnet.ini", REMAT_NO_BUDGET, {0}, {0}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 15;
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "bench_start: 1 to %d rounds\n", MOST_ROUNDS);
        return 2;
    }
    for (size_t round = 0; round < rounds; round++)
        for (row *it = rows; it < rows + ROWS; it++) {
            it->plan[round] = time_start(it, true);
            it->whole[round] = time_start(it, false);
        }
    printf("%-24s %10s %10s %10s %10s\n", "ms, median of starts", "plan", "ready", "least", "most");
    for (row *it = rows; it < rows + ROWS; it++) {
        double plan = measure_median(it->plan, rounds), whole = measure_median(it->whole, rounds);
        printf("%-24s %10.1f %10.1f %10.1f %10.1f\n", it->name, 1e3 * plan, 1e3 * whole, 1e3 * it->whole[0],
               1e3 * it->whole[rounds - 1]);
    }
    return 0;
}
