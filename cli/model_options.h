/* What the commands about one MODEL.ini share: the argument, common options, and reading the model. The struct of such
 * a command begins with a model_options, so that one pointer is enough for both. */
#ifndef REMAT_CLI_MODEL_OPTIONS_H
#define REMAT_CLI_MODEL_OPTIONS_H

#include "command.h"

/* Keys of options in a command's table: 'b' is the budget, 'j' the threads, 'w' the weights. A command accepts those
 * that it lists, and its own keys start at MODEL_KEYS_END. */
enum {
    MODEL_BATCH = 256,
    MODEL_BATCH_OR_AUTO, /* the same option where "auto" is an answer */
    MODEL_STRATEGY,
    MODEL_PROFILE,
    MODEL_KERNELS,
    MODEL_DEVICE,
    MODEL_JSON,
    MODEL_DATA,
    MODEL_LABELS,
    MODEL_MAP,
    MODEL_KEYS_END
};

/* Rows of that table that are the same in all commands, without the group. */
#define MODEL_ROW_WEIGHTS                                                                                      \
    "weights", 'w', "FILE", 0,                                                                                 \
        "the trained weights, as `remat train --save` writes them, or PyTorch's (required; for a folder, the " \
        "default is its own weights)"
#define MODEL_ROW_DATA                                                                     \
    "data", MODEL_DATA, "FILE", 0,                                                         \
        "read all samples from FILE: JSON lines if its name ends in .jsonl, otherwise of " \
        "the type that the model's [Dataset] has (default: the model's files)"
#define MODEL_ROW_LABELS "labels", MODEL_LABELS, "FILE", 0, "with --data: the file of the labels, if they have one"
#define MODEL_ROW_MAP                                                                                                 \
    "map", MODEL_MAP, "FILE", 0,                                                                                      \
        "the names in a weights file of another program: lines OUR_NAME = THEIR_NAME. Not needed for PyTorch if its " \
        "modules have the names of the layers"
#define MODEL_ROW_BATCH       "batch", MODEL_BATCH, "N", 0, "samples at a time (default: the model's)"
#define MODEL_ROW_MICRO_BATCH "batch", MODEL_BATCH, "N", 0, "samples in a micro-batch (default: the model's)"
#define MODEL_ROW_BATCH_OR_AUTO                                                                                \
    "batch", MODEL_BATCH_OR_AUTO, "N", 0,                                                                      \
        "samples in a micro-batch (default: the model's); auto: the size with the least predicted time for a " \
        "sample within the budget; largest: the largest that fits"
#define MODEL_ROW_PROFILE "profile", MODEL_PROFILE, "FILE", 0, "plan with measured costs, from `remat profile`"
#define MODEL_ROW_THREADS "threads", 'j', "N", 0, "threads to compute with (default: all cores)"
#define MODEL_ROW_KERNELS                                                                                      \
    "kernels", MODEL_KERNELS, "NAME", 0,                                                                       \
        "amx, avx512bf16, avx512, avx2, portable, reference, or fast (default): the first of these that this " \
        "processor has"

#define MODEL_ROW_DEVICE               \
    "device", MODEL_DEVICE, "NAME", 0, \
        "the device that computes: cpu (default), cuda (a GPU) or cuda:1 (the second GPU)"

typedef struct model_options {
    remat_context *context;
    const char *file, *weights, *output;
    remat_train_options train;
    bool needs_weights;        /* set by commands that do nothing without them */
    batch_choice batch_choice; /* --batch auto or largest */
    bool json;
} model_options;

void model_options_init(remat_context *context, model_options *given);

/* The parser of these options and of the argument. A command with options of its own ends its parser with it. */
error_t model_options_parse(int key, char *argument, struct argp_state *state);

typedef remat_status (*model_work)(void *command, remat_model *model);

/* Reads the model, does the work on it and says on stderr what is wrong: also that the output is one of the files that
 * are read. Returns the exit code. */
int model_options_run(void *command, model_work work);

#endif
