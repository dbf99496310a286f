#include <stdlib.h>
#include <string.h>

#include "model_options.h"
#include "run_text.h"

enum { OPTION_STEPS = MODEL_KEYS_END };
enum { FORWARD, RECOMPUTE, GRADIENT, DERIVATIVE, APPLY, PHASES };
static const char *const phases[PHASES] = {"forward", "recompute", "gradient", "derivative", "apply"};

typedef struct layer_times {
    const char *name;
    double seconds[PHASES];
    double flops, bytes; /* of all phases but the optimizer's */
} layer_times;

typedef struct bench_command {
    model_options given;
    uint64_t steps;
    layer_times *layers;
    size_t layer_count;
    double data_seconds; /* over all steps */
} bench_command;

static const struct argp_option options[] = {
    {"budget", 'b', "SIZE", 0, "train within SIZE bytes in all (default: any, whatever budget the model has)", 0},
    {"strategy", MODEL_STRATEGY, "NAME[:ARG]", 0, "what to keep (default: everything, or the best within --budget)", 0},
    {"steps", OPTION_STEPS, "N", 0, "steps to time after the first (default: 10)", 0},
    {MODEL_ROW_MICRO_BATCH, 0},
    {MODEL_ROW_THREADS, 0},
    {MODEL_ROW_KERNELS, 0},
    {"json", MODEL_JSON, NULL, 0, "print as JSON", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    bench_command *command = state->input;
    switch (key) {
    case OPTION_STEPS:
        command->steps = command_number(state, command->given.context, "--steps", UINT64_MAX, argument);
        break;
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Time every layer and phase of a training step, beside what this machine can do: "
           "multiply-adds on registers and bytes through memory, measured in the same run.\v"
           "Example:\n  remat bench gpt.ini --steps 20",
};

static void observe(void *user, const remat_action *action)
{
    bench_command *command = user;
    layer_times *layer = &command->layers[action->position];
    for (int p = 0; p < PHASES; p++)
        if (strcmp(action->what, phases[p]) == 0) {
            layer->seconds[p] += 1e-9 * (double)(action->ended - action->began);
            if (p != APPLY) {
                layer->flops += (double)action->flops;
                layer->bytes += (double)action->bytes;
            }
        }
    layer->name = action->layer;
}

static double layer_seconds(const layer_times *layer, int until)
{
    double sum = 0;
    for (int p = 0; p < until; p++)
        sum += layer->seconds[p];
    return sum;
}

static void print_row(const layer_times *layer, double steps, double total, const remat_machine_limits *limits)
{
    double seconds = layer_seconds(layer, PHASES), computing = layer_seconds(layer, APPLY);
    printf("%-28s", layer->name);
    for (int p = 0; p < PHASES; p++)
        printf(" %9.3f", 1e3 * layer->seconds[p] / steps);
    printf(" %9.3f %5.1f %%", 1e3 * seconds / steps, 100 * seconds / total);
    if (computing > 0)
        printf(" %8.1f %5.1f %% %7.1f %5.1f %%", 1e-9 * layer->flops / computing,
               100 * layer->flops / computing / limits->flops, 1e-9 * layer->bytes / computing,
               100 * layer->bytes / computing / limits->bytes);
    putchar('\n');
}

static void print_table(const bench_command *command, const remat_machine_limits *limits, double step_seconds)
{
    layer_times all = {.name = "all layers"};
    double steps = (double)command->steps;
    printf("%-28s", "ms a step");
    for (int p = 0; p < PHASES; p++)
        printf(" %9s", phases[p]);
    printf(" %9s %7s %8s %7s %7s %7s\n", "sum", "share", "GFLOP/s", "of peak", "GB/s", "of peak");
    for (size_t i = 0; i < command->layer_count; i++) {
        const layer_times *layer = &command->layers[i];
        if (!layer->name)
            continue;
        for (int p = 0; p < PHASES; p++)
            all.seconds[p] += layer->seconds[p];
        all.flops += layer->flops;
        all.bytes += layer->bytes;
    }
    double total = layer_seconds(&all, PHASES);
    for (size_t i = 0; i < command->layer_count; i++)
        if (command->layers[i].name)
            print_row(&command->layers[i], steps, total, limits);
    print_row(&all, steps, total, limits);
    printf("\n%.1f ms a step (median), %.1f of them for the samples, %.2f GFLOP a step: %.1f GFLOP/s, %.1f %% of the "
           "peak\n",
           1e3 * step_seconds, 1e3 * command->data_seconds / steps, 1e-9 * all.flops / steps,
           1e-9 * all.flops / steps / step_seconds, 100 * all.flops / steps / step_seconds / limits->flops);
    printf("limits with %u threads (%s): %.1f GFLOP/s in multiply-adds on registers, %.1f GB/s through memory\n",
           limits->threads, limits->kernels, 1e-9 * limits->flops, 1e-9 * limits->bytes);
}

static void print_json(const bench_command *command, const remat_machine_limits *limits, double step_seconds)
{
    double steps = (double)command->steps;
    printf("{\"format\": \"remat-bench\", \"version\": 1, \"steps\": %llu, \"step_seconds\": %.9g, \"data_seconds\": "
           "%.9g,\n"
           " \"peak_flops\": %.6g, \"peak_bytes\": %.6g, \"threads\": %u, \"kernels\": \"%s\", \"layers\": [",
           (unsigned long long)command->steps, step_seconds, command->data_seconds / steps, limits->flops,
           limits->bytes, limits->threads, limits->kernels);
    bool first = true;
    for (size_t i = 0; i < command->layer_count; i++) {
        const layer_times *layer = &command->layers[i];
        if (!layer->name)
            continue;
        run_text_json_text(stdout, first ? "\n  {" : ",\n  {", "name", layer->name);
        printf(", \"flops\": %.0f, \"bytes\": %.0f", layer->flops / steps, layer->bytes / steps);
        for (int p = 0; p < PHASES; p++)
            printf(", \"%s_seconds\": %.9g", phases[p], layer->seconds[p] / steps);
        putchar('}');
        first = false;
    }
    puts("\n]}");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static remat_status time_steps(bench_command *command, remat_trainer *trainer, double *times)
{
    remat_step_result result;
    remat_status status = remat_trainer_step(trainer, &result); /* touches all memory for the first time */
    if (status == REMAT_OK)
        status = remat_trainer_on_action(trainer, observe, command);
    for (uint64_t i = 0; i < command->steps && status == REMAT_OK; i++) {
        status = remat_trainer_step(trainer, &result);
        times[i] = result.seconds;
        command->data_seconds += result.data_seconds;
    }
    return status;
}

static remat_status bench(void *user, remat_model *model)
{
    bench_command *command = user;
    remat_trainer *trainer = NULL;
    remat_machine_limits limits;
    command->layer_count = remat_model_layer_count(model);
    command->layers = calloc(command->layer_count, sizeof *command->layers);
    double *times = calloc(command->steps, sizeof *times);
    remat_status status = command->layers && times ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = remat_trainer_create(model, &command->given.train, &trainer);
    if (status == REMAT_OK)
        status = time_steps(command, trainer, times);
    if (status == REMAT_OK)
        status = remat_measure_limits(command->given.context, command->given.train.threads, &limits);
    if (status == REMAT_OK) {
        qsort(times, command->steps, sizeof *times, compare);
        (command->given.json ? print_json : print_table)(command, &limits, times[command->steps / 2]);
    }
    remat_trainer_destroy(trainer);
    free(command->layers);
    free(times);
    return status;
}

int command_bench(remat_context *context, int argc, char **argv)
{
    bench_command command = {.steps = 10};
    model_options_init(context, &command.given);
    command_parse(&argp, argc, argv, &command);
    remat_train_options *train = &command.given.train;
    if (train->budget_bytes == REMAT_NO_BUDGET) {
        train->budget_bytes = REMAT_ANY_BUDGET;
        if (!train->strategy)
            train->strategy = "none";
    }
    return model_options_run(&command, bench);
}
