#include <stdlib.h>
#include <string.h>

#include "bench_text.h"
#include "model_options.h"
#include "model_set.h"

enum { OPTION_STEPS = MODEL_KEYS_END };
enum { MOST_STEPS = 1000000 };

typedef struct bench_command {
    model_options given;
    bench_result result;
} bench_command;

static const struct argp_option options[] = {
    {"budget", 'b', "SIZE", 0, "train within SIZE bytes in all (default: no limit, even if the model has one)", 0},
    {"strategy", MODEL_STRATEGY, "NAME[:ARG]", 0, "what to keep (default: everything, or the best within --budget)", 0},
    {"steps", OPTION_STEPS, "N", 0, "steps to time after the first (default: 10)", 0},
    {MODEL_ROW_DATA, 0},
    {MODEL_ROW_LABELS, 0},
    {MODEL_ROW_MICRO_BATCH, 0},
    {MODEL_ROW_THREADS, 0},
    {MODEL_ROW_KERNELS, 0},
    {MODEL_ROW_DEVICE, 0},
    {"json", MODEL_JSON, NULL, 0, "print as JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    bench_command *command = state->input;
    switch (key) {
    case OPTION_STEPS:
        command->result.steps = command_number(state, command->given.context, "--steps", MOST_STEPS, argument);
        break;
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Time every layer and phase of a training step, and compare with the limits of this machine: "
           "multiply-adds on registers and bytes through memory, measured in the same run. "
           "The timed steps run layer by layer, so that every time belongs to one layer; training fuses an "
           "activation with the matrix product before it, which is a little faster.\v"
           "Bytes are counted as if every tensor were read from memory and written to it (docs/formats.md): a rate "
           "above 100 % of the peak means that the data was in the cache.\n\n"
           "Example:\n  remat bench gpt.ini --steps 20",
    .children = model_set_children,
};

static void observe(void *user, const remat_action *action)
{
    bench_result *result = user;
    bench_row *row = &result->rows[action->position];
    const bench_tally seen = {1e-9 * (double)(action->ended - action->began), (double)action->flops,
                              (double)action->gemm_flops, (double)action->bytes};
    for (int p = 0; p < BENCH_PHASES; p++)
        if (strcmp(action->phase, bench_phases[p]) == 0)
            bench_tally_add(&row->phases[p], &seen);
    row->name = action->layer;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint64_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* `times` has room for the steps twice: whole, and until the samples were there. */
static remat_status time_steps(remat_trainer *trainer, double *times, bench_result *result)
{
    uint64_t steps = result->steps;
    remat_step_result step;
    remat_status status = remat_trainer_step(trainer, &step); /* touches all memory for the first time */
    if (status == REMAT_OK)
        status = remat_trainer_on_action(trainer, observe, result);
    for (uint64_t i = 0; i < steps && status == REMAT_OK; i++) {
        status = remat_trainer_step(trainer, &step);
        times[i] = step.seconds;
        times[steps + i] = step.data_seconds;
    }
    if (status != REMAT_OK)
        return status;
    result->step_seconds = median(times, steps);
    result->data_seconds = median(times + steps, steps);
    remat_trainer_get_figures(trainer, &result->figures);
    return REMAT_OK;
}

static remat_status bench(void *user, remat_model *model)
{
    bench_command *command = user;
    const remat_train_options *train = &command->given.train;
    bench_result *result = &command->result;
    remat_trainer *trainer = NULL;
    result->row_count = remat_model_layer_count(model) + 1;
    result->rows = calloc(result->row_count, sizeof *result->rows);
    double *times = calloc(result->steps, 2 * sizeof *times);
    remat_status status = result->rows && times ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = remat_trainer_create(model, train, &trainer);
    if (status == REMAT_OK)
        status = time_steps(trainer, times, result);
    if (status == REMAT_OK)
        status = remat_measure_device(command->given.context, train->device, train->threads, &result->limits);
    if (status == REMAT_OK)
        (command->given.json ? bench_print_json : bench_print_table)(result);
    remat_trainer_destroy(trainer);
    free(result->rows);
    free(times);
    return status;
}

int command_bench(remat_context *context, int argc, char **argv)
{
    bench_command command = {.result.steps = 10};
    model_options_init(context, &command.given);
    command_parse(&argp, argc, argv, &command);
    remat_train_options *train = &command.given.train;
    if (train->budget_bytes == REMAT_NO_BUDGET) {
        train->budget_bytes = REMAT_UNLIMITED;
        if (!train->strategy)
            train->strategy = "none";
    }
    return model_options_run(&command, bench);
}
