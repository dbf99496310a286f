#include "model_options.h"
#include "model_set.h"
#include "output_path.h"

enum { OPTION_REPEATS = MODEL_KEYS_END };

typedef struct profile_command {
    model_options given;
    unsigned repeats;
} profile_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write the profile there instead of to standard output", 0},
    {"repeats", OPTION_REPEATS, "N", 0,
     "measure N steps and take medians (default: at least 5 steps, until the medians are stable or 3 seconds have "
     "passed)",
     0},
    {MODEL_ROW_DATA, 0},
    {MODEL_ROW_LABELS, 0},
    {MODEL_ROW_MICRO_BATCH, 0},
    {MODEL_ROW_THREADS, 0},
    {MODEL_ROW_KERNELS, 0},
    {MODEL_ROW_DEVICE, 0},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    profile_command *command = state->input;
    switch (key) {
    case OPTION_REPEATS:
        command->repeats = (unsigned)command_number(state, command->given.context, "--repeats", 10000, argument);
        break;
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Time every layer of a model, forward and backward, and write a profile with its bytes and its costs in "
           "nanoseconds. `remat train`, `plan`, `fit` and `sweep` plan with it (--profile).\v"
           "Example:\n"
           "  remat profile gpt.ini -o gpt-profile.json",
    .children = model_set_children,
};

/* How far the times can be trusted. */
static void print_spread(const remat_trainer *trainer)
{
    const double much = 0.1;
    remat_measurement measured;
    remat_trainer_get_measurement(trainer, &measured);
    fprintf(stderr, "%llu steps of %.2f ms (median); the halves of the measurement differ by %.1f %%%s\n",
            (unsigned long long)measured.steps, 1e3 * measured.step_seconds, 100 * measured.spread,
            measured.spread > much ? ": not stable, measure again when the machine is idle" : "");
}

static remat_status measure(void *user, remat_model *model)
{
    const profile_command *command = user;
    remat_trainer *trainer = NULL;
    remat_profile *profile = NULL;
    remat_status status = remat_trainer_create(model, &command->given.train, &trainer);
    if (status == REMAT_OK)
        status = remat_trainer_measure(trainer, command->repeats, &profile);
    if (status == REMAT_OK)
        print_spread(trainer);
    if (status == REMAT_OK)
        status = command->given.output ? remat_profile_save(profile, command->given.output)
                                       : remat_profile_write(profile, stdout);
    if (status == REMAT_OK)
        output_path_say(command->given.output);
    remat_profile_destroy(profile);
    remat_trainer_destroy(trainer);
    return status;
}

int command_profile(remat_context *context, int argc, char **argv)
{
    profile_command command = {0}; /* 0 repeats: until the times are stable */
    model_options_init(context, &command.given);
    command.given.train.strategy = "none"; /* every layer runs once, whatever the model's own budget */
    command.given.train.budget_bytes = REMAT_UNLIMITED;
    command_parse(&argp, argc, argv, &command);
    return model_options_run(&command, measure);
}
