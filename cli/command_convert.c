#include "model_file.h"
#include "model_options.h"
#include "model_set.h"
#include "output_path.h"
#include "shown.h"

#include <string.h>

enum { OPTION_TO = MODEL_KEYS_END };

typedef struct convert_command {
    model_options given;
    remat_convert_options wanted;
} convert_command;

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {"output", 'o', "FILE", 0,
     "the file to write (required): for torch.load if it ends in .pt, .pth or .bin, otherwise safetensors. DIR/: write "
     "a model that came from a folder as a folder, with the adapters of --adapter added to the weights",
     0},
    {"to", OPTION_TO, "NAMES", 0, "pytorch (default): PyTorch's names; remat: the names of `remat train`", 0},
    {"map", MODEL_MAP, "FILE", 0,
     "PyTorch's names if its modules do not have the names of the layers: lines OUR_NAME = THEIR_NAME", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    convert_command *command = state->input;
    if (key == OPTION_TO) {
        command->wanted.to_torch = strcmp(argument, "pytorch") == 0;
        if (!command->wanted.to_torch && strcmp(argument, "remat") != 0)
            argp_error(state, "--to takes pytorch or remat, not '%s'", shown(argument));
        return 0;
    }
    error_t error = model_options_parse(key, argument, state);
    if (key == ARGP_KEY_END && !command->given.output)
        argp_error(state, "--output FILE is missing");
    return error;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Convert weights between Remat and PyTorch. Every tensor of the model is written, under PyTorch's names or "
           "Remat's. The state of a training is left out.\v"
           "Examples:\n"
           "  remat convert gpt.ini --weights gpt.safetensors --output gpt.pt\n"
           "  remat convert gpt.ini -w theirs.pt --to remat -o gpt.safetensors\n"
           "  remat convert Qwen2.5-0.5B --adapter adapter --output merged/",
    .children = model_set_children,
};

/* With a slash at its end, or there already. */
static bool names_folder(const char *output)
{
    return output[0] && (output[strlen(output) - 1] == '/' || model_file_is_folder(output));
}

static remat_status convert(void *user, remat_model *model)
{
    convert_command *command = user;
    command->wanted.names_path = command->given.train.names_path;
    remat_status status = remat_weights_convert(model, command->given.weights, command->given.output, &command->wanted);
    if (status == REMAT_OK)
        output_path_say(command->given.output);
    if (status == REMAT_OK && model_file_is_folder(command->given.file) && !names_folder(command->given.output))
        fprintf(stderr, "it is a file with weights; --output %s/ writes a folder with the whole model\n",
                shown(command->given.output));
    return status;
}

int command_convert(remat_context *context, int argc, char **argv)
{
    convert_command command = {0};
    model_options_init(context, &command.given);
    remat_convert_options_init(&command.wanted);
    command.given.needs_weights = true;
    command.wanted.to_torch = true;
    command_parse(&argp, argc, argv, &command);
    const char *output = command.given.output;
    remat_status status = names_folder(output) ? REMAT_OK : output_path_check(output, true);
    return status == REMAT_OK ? model_options_run(&command, convert) : (int)status;
}
