#include <string.h>

#include "model_options.h"
#include "model_set.h"
#include "output_path.h"
#include "shown.h"
#include "terminal.h"

enum { OPTION_CLASSES = MODEL_KEYS_END, OPTION_SAMPLES };

typedef struct predict_command {
    model_options given;
    uint64_t samples;
    bool classes;
} predict_command;

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {MODEL_ROW_MAP, 0},
    {MODEL_ROW_DATA, 0},
    {"output", 'o', "FILE", 0,
     "write a CSV table with column names to FILE (-: standard output): for classes the name of the most likely one "
     "and "
     "all probabilities, otherwise the numbers",
     0},
    {"samples", OPTION_SAMPLES, "N", 0, "only the first N samples of the dataset (default: all)", 0},
    {"classes", OPTION_CLASSES, NULL, 0, "print the class of each row instead of the values: its name, or its number",
     0},
    {MODEL_ROW_BATCH, 1},
    {MODEL_ROW_THREADS, 1},
    {MODEL_ROW_KERNELS, 1},
    {MODEL_ROW_DEVICE, 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    predict_command *command = state->input;
    switch (key) {
    case OPTION_CLASSES: command->classes = true; break;
    case OPTION_SAMPLES:
        command->samples = command_number(state, command->given.context, "--samples", UINT64_MAX, argument);
        break;
    case ARGP_KEY_END:
        if (command->classes && command->given.output)
            argp_error(state, "--output writes the classes as well: leave out --classes");
        return model_options_parse(key, argument, state);
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Run a trained model on the samples of its dataset or of another file, in their order, and print one line "
           "of comma-separated values for each row of its output.\v"
           "Examples:\n"
           "  remat predict spirals.ini --weights spirals.safetensors --classes\n"
           "  remat predict fruit.ini -w fruit.safetensors --data new.csv -o kinds.csv",
    .children = model_set_children,
};

static void print_row(const remat_predictor *predictor, const float *values, uint64_t count, bool classes)
{
    if (classes) {
        uint64_t best = 0;
        for (uint64_t i = 1; i < count; i++)
            if (values[i] > values[best])
                best = i;
        const char *name = remat_predictor_class_name(predictor, best);
        if (name)
            puts(terminal_is_output() ? shown(name) : name);
        else
            printf("%llu\n", (unsigned long long)best);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        printf(i ? ",%.9g" : "%.9g", (double)values[i]);
    putchar('\n');
}

static remat_status print_samples(const predict_command *command, remat_predictor *predictor)
{
    uint64_t samples = remat_predictor_samples(predictor);
    if (command->samples && command->samples < samples)
        samples = command->samples;
    remat_prediction prediction;
    for (uint64_t first = 0; first < samples; first += prediction.batch) {
        remat_status status = remat_predictor_run_samples(predictor, first, &prediction);
        if (status != REMAT_OK)
            return status;
        uint64_t shown = prediction.batch < samples - first ? prediction.batch : samples - first;
        uint64_t rows = shown * prediction.shape[0] * prediction.shape[1];
        for (uint64_t r = 0; r < rows; r++)
            print_row(predictor, prediction.values + r * prediction.shape[2], prediction.shape[2], command->classes);
    }
    return samples ? REMAT_OK : remat_context_error(command->given.context)->status;
}

static remat_status predict(void *user, remat_model *model)
{
    const predict_command *command = user;
    remat_predictor *predictor = NULL;
    remat_status status = remat_predictor_create(model, command->given.weights, &command->given.train, &predictor);
    const char *output = command->given.output;
    if (status == REMAT_OK && output)
        status = strcmp(output, "-") == 0 ? remat_predictor_write_table(predictor, command->samples, stdout)
                                          : remat_predictor_save_table(predictor, command->samples, output);
    else if (status == REMAT_OK)
        status = print_samples(command, predictor);
    if (status == REMAT_OK)
        output_path_say(output);
    remat_predictor_destroy(predictor);
    return status;
}

int command_predict(remat_context *context, int argc, char **argv)
{
    predict_command command = {0};
    model_options_init(context, &command.given);
    command.given.needs_weights = true;
    command_parse(&argp, argc, argv, &command);
    return model_options_run(&command, predict);
}
