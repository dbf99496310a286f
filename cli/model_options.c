#include "model_options.h"
#include "model_file.h"
#include "output_path.h"

void model_options_init(remat_context *context, model_options *given)
{
    *given = (model_options){.context = context};
    remat_train_options_init(&given->train);
}

static void need(model_options *given, struct argp_state *state)
{
    if (!given->file)
        argp_error(state, "MODEL.ini is missing: a model, or - for standard input");
    if (!given->weights && given->file && model_file_is_folder(given->file))
        given->weights = given->file; /* a model in Hugging Face's layout brings its weights */
    if (given->needs_weights && !given->weights)
        argp_error(state, "--weights FILE is missing: `remat train MODEL.ini --save FILE` writes one");
}

error_t model_options_parse(int key, char *argument, struct argp_state *state)
{
    model_options *given = state->input;
    remat_train_options *train = &given->train;
    switch (key) {
    case 'b': train->budget_bytes = command_size(state, given->context, argument); break;
    case 'j': train->threads = command_threads(state, given->context, argument); break;
    case 'w': given->weights = argument; break;
    case MODEL_BATCH: train->batch_size = command_batch(state, given->context, argument, NULL); break;
    case MODEL_BATCH_OR_AUTO:
        train->batch_size = command_batch(state, given->context, argument, &given->batch_choice);
        break;
    case MODEL_STRATEGY: train->strategy = argument; break;
    case MODEL_PROFILE: train->profile_path = argument; break;
    case MODEL_KERNELS: train->kernels = argument; break;
    case MODEL_DEVICE: train->device = argument; break;
    case MODEL_JSON: given->json = true; break;
    case MODEL_DATA: train->data_path = argument; break;
    case MODEL_LABELS: train->labels_path = argument; break;
    case MODEL_MAP: train->names_path = argument; break;
    case 'o': given->output = argument; break;
    case ARGP_KEY_ARG: command_take(state, "MODEL.ini", argument, &given->file); break;
    case ARGP_KEY_END: need(given, state); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int model_options_run(void *command, model_work work)
{
    const model_options *given = command;
    const char *const inputs[] = {given->file, given->weights, given->train.data_path, given->train.labels_path,
                                  given->train.names_path};
    remat_model *model;
    remat_status status = output_path_check_inputs(given->output, inputs, sizeof inputs / sizeof inputs[0]);
    if (status == REMAT_OK)
        status = model_file_read_model(given->context, given->file, &model);
    if (status != REMAT_OK)
        return (int)status;
    status = output_path_check_data(given->context, model, given->output);
    if (status == REMAT_OK) {
        status = work(command, model);
        if (status != REMAT_OK)
            command_fail(given->context, status);
    }
    remat_model_destroy(model);
    return (int)status;
}
