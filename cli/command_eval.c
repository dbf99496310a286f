#include "model_options.h"
#include "model_set.h"
#include "output_path.h"

static const struct argp_option options[] = {
    {MODEL_ROW_WEIGHTS, 0},
    {MODEL_ROW_MAP, 0},
    {MODEL_ROW_DATA, 0},
    {MODEL_ROW_LABELS, 0},
    {"output", 'o', "FILE", 0, "write to FILE instead of standard output", 0},
    {MODEL_ROW_BATCH, 1},
    {MODEL_ROW_THREADS, 1},
    {MODEL_ROW_KERNELS, 1},
    {MODEL_ROW_DEVICE, 1},
    {"json", MODEL_JSON, NULL, 0, "print as JSON", 1},
    {0},
};

static const struct argp argp = {
    .options = options,
    .parser = model_options_parse,
    .args_doc = "MODEL.ini",
    .doc =
        "Evaluate trained weights on the model's validation data, or on all samples of another file. Prints the loss; "
        "for classes the accuracy, the precision and recall of each class, and the confusion matrix; for a binary "
        "cross entropy the accuracy, precision, recall and F1 of each target; for numbers the mean absolute error and "
        "R2.\v"
        "Examples:\n"
        "  remat eval gpt.ini --weights gpt.safetensors\n"
        "  remat eval Qwen2.5-0.5B --length 256 --adapter adapter --data held-out.jsonl",
    .children = model_set_children,
};

static remat_status evaluate(void *command, remat_model *model)
{
    const model_options *given = command;
    remat_evaluation *evaluation = NULL;
    remat_status status = remat_evaluate(model, given->weights, &given->train, &evaluation);
    if (status == REMAT_OK && given->output)
        status = remat_evaluation_save(evaluation, given->output, given->json);
    else if (status == REMAT_OK)
        status = remat_evaluation_write(evaluation, stdout, given->json);
    if (status == REMAT_OK)
        output_path_say(given->output);
    remat_evaluation_destroy(evaluation);
    return status;
}

int command_eval(remat_context *context, int argc, char **argv)
{
    model_options given;
    model_options_init(context, &given);
    given.needs_weights = true;
    command_parse(&argp, argc, argv, &given);
    return model_options_run(&given, evaluate);
}
