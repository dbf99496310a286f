/* Remat: training.
 *
 * A trainer takes a compiled model, plans which activations to keep, places all tensors in one arena, and trains.
 * remat_trainer_create allocates all memory for tensors; a training step allocates none.
 *
 *     remat_train_options options;
 *     remat_train_options_init(&options);
 *     options.budget_bytes = 300 << 20;
 *     remat_trainer *trainer;
 *     remat_trainer_create(model, &options, &trainer);
 *     remat_run_result result;
 *     remat_trainer_run(trainer, NULL, &result);
 *     remat_trainer_save(trainer, "weights.safetensors", true);
 *
 * Losses, gradients and weights have the same bits whatever is recomputed, and with any number of threads.
 *
 * Threads: a trainer may be used by one thread at a time; several trainers may be used by several threads. A trainer
 * computes with threads of the library, which sleep while there is nothing to do and block all signals. They are kept
 * until the process ends. After a fork, both the parent and the child may continue training. */
#ifndef REMAT_TRAIN_H
#define REMAT_TRAIN_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/dtype.h>
#include <remat/graph.h>
#include <remat/model.h>
#include <remat/plan.h>
#include <remat/ranks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_trainer remat_trainer;

/* ---- making a trainer ---- */

/* Your own data: writes sample number `sample`. `inputs` has one pointer for each input layer: int32_t if an embedding
 * reads it, else float. `labels` is float for mse and int32_t for cross_entropy; NULL for a predictor, which needs no
 * labels. The same number must always give the same sample. Any status but REMAT_OK ends the training, which returns
 * it. */
typedef remat_status (*remat_sample_fn)(void *user, uint64_t sample, void *const *inputs, void *labels);

/* No limit. This overrides the budget in the model. */
#define REMAT_UNLIMITED  ((uint64_t)INT64_MAX)
#define REMAT_ANY_BUDGET REMAT_UNLIMITED /* its name in release 0.1 */

/* What several ranks share, so that each holds and updates only its part: the stages of ZeRO. Each stage includes those
 * before it. */
typedef enum remat_shard {
    REMAT_SHARD_NONE,      /* every rank has everything */
    REMAT_SHARD_OPTIMIZER, /* the state of the optimizer */
    REMAT_SHARD_GRADIENTS, /* the sums of gradients over micro-batches */
    REMAT_SHARD_WEIGHTS,   /* the weights, frozen ones too: those of a layer are gathered for each of its passes */
} remat_shard;

typedef struct remat_train_options {
    size_t struct_size;
    /* The budget for all memory that is allocated for tensors: weights, optimizer, gradients, scratch, and the arena
     * with activations, workspaces and the batch. It does not cover samples that a dataset holds in memory (CSV, and
     * files up to 1 MiB). REMAT_NO_BUDGET (the default): the budget of the model, if it has one. REMAT_UNLIMITED: no
     * limit. */
    uint64_t budget_bytes;
    const char *strategy;  /* such as "every-nth:2". NULL: the model's strategy, its blocks, or the best plan */
    const char *plan_path; /* a plan file to use, made for this model. NULL: make a plan */
    /* A file of measured costs, as `remat profile` writes it. Costs of another batch size are scaled, with a warning.
     * NULL: estimates. */
    const char *profile_path;
    /* NULL or "fast": the best instruction set of this processor. Others: "amx", "avx512bf16", "avx512", "avx2",
     * "portable", and "reference" (plain loops). REMAT_INVALID for a set that this processor does not have; the message
     * lists those that it has. */
    const char *kernels;
    unsigned threads;       /* 0: remat_default_threads() */
    uint64_t batch_size;    /* 0: the model's */
    uint64_t seed;          /* REMAT_DEFAULT: the model's */
    uint64_t steps;         /* of the whole training; learning rates depend on it. REMAT_DEFAULT: the model's epochs */
    remat_sample_fn sample; /* your own data. NULL: the dataset of the model */
    void *sample_user;      /* passed to `sample` */
    uint64_t samples;       /* with `sample`: how many training samples there are. Their numbers begin at 0 */
    uint64_t validation_samples; /* with `sample`: how many validation samples follow them */
    /* Only plan: no data is opened and no memory for tensors is allocated. The trainer has figures, chain, plan and
     * curve; calls that need weights or data return REMAT_INVALID until remat_trainer_start. */
    bool plan_only;
    /* The device that computes: NULL or "cpu"; "cuda", or "cuda:1" for the second GPU, if the library was built with CUDA. With "cuda" the
     * ranks of a machine take its GPUs by turns. */
    const char *device;
    /* A plan of the model's graph to use (docs/formats.md, "Graph plan"), from any program. It is checked as by
     * remat_graph_plan_check. NULL: make a plan. Not together with plan_path or strategy. */
    const char *graph_plan_path;
    /* Read all samples from this file instead of the model's; the path is relative to the current folder. If its name
     * ends in .jsonl, it has a JSON object on every line (remat/tokenizer.h); otherwise it is read as [Dataset] of the
     * model says. NULL: the model's files. */
    const char *data_path;
    const char *labels_path; /* with data_path: the file of the labels, if [Dataset] has one. NULL: none */
    /* Names in weights files of other programs, for remat_trainer_load and predictors (docs/pytorch-weights.md). PyTorch's names
     * need no such file. NULL: none. */
    const char *names_path;
    /* remat_trainer_load takes what fits: parameters that are missing in the file or have another shape keep their
     * initial values. If position embeddings have another length, the positions that both have are taken. Warnings say
     * which parameters these are. */
    bool partial_weights;
    /* The ranks that train together (remat/ranks.h). They share the micro-batches of each step: `accumulate` of the
     * model must be a multiple of the number of ranks. The bits do not depend on that number. The budget is for each
     * rank. All ranks must have the same model, options and data; the first step or run of a trainer compares them. The
     * communicator must outlive the trainer. NULL: this process alone. */
    remat_communicator *communicator;
    /* With several ranks: each adds its own gradients, and MPI adds these sums in an order of its own. The bits then
     * depend on the number of ranks. */
    bool reduce_fast;
    /* With several ranks: what they share. The bits are the same. All ranks then take part in saving, and in calls that read or
     * write parameters or moments. REMAT_INVALID for optimizers that need whole matrices (adafactor), and from
     * REMAT_SHARD_GRADIENTS on for reduce_fast and remat_trainer_on_gradient. */
    remat_shard shard;
    /* With plan_only and without a communicator: plan as one of this many ranks. 0: this process alone. */
    uint64_t plan_ranks;
    uint64_t accumulate; /* micro-batches of a step. 0: the model's */
    /* For costs that are not measured: floating-point operations and bytes of memory per second of the device. Only
     * their ratio matters to a plan. 0: those of a modest processor. */
    double device_flops, device_bytes_per_second;
    /* The layers are cut into this many stages, each on a rank of its own, and micro-batches pass through them
     * (docs/ranks.md). The number of ranks must be a multiple of it; rank r has stage r mod pipeline. The budget is for
     * each rank. The bits are the same. All ranks then take part in saving, and in calls that read or write parameters
     * or moments. 0 and 1: none. REMAT_INVALID with a shard beyond REMAT_SHARD_OPTIMIZER, reduce_fast, a plan file,
     * more stages than layers, and for remat_trainer_on_gradient and remat_trainer_measure. */
    uint64_t pipeline;
    uint64_t plan_stage; /* with plan_only, without a communicator: plan this stage, counted from 0 */
    /* With plan_only: plan a deep model in a fraction of the time. Its smallest budget may come out a little larger. */
    bool plan_quickly;
} remat_train_options;
void remat_train_options_init_sized(remat_train_options *options, size_t size);
static inline void remat_train_options_init(remat_train_options *options)
{
    remat_train_options_init_sized(options, sizeof *options);
}

/* Makes a trainer with initial weights. The model must outlive it; the texts of the options need not. `options` NULL:
 * the defaults. On failure *trainer is NULL:
 *   REMAT_INFEASIBLE  the budget is too small. remat_error on the context has the bytes that would be enough, and the
 *                     layer that needs them;
 *   REMAT_INVALID     an option or the model; REMAT_BAD_INPUT, REMAT_IO: a file; REMAT_NO_MEMORY. */
remat_status remat_trainer_create(remat_model *model, const remat_train_options *options, remat_trainer **trainer);
void remat_trainer_destroy(remat_trainer *trainer);

/* Makes a trainer that was created with plan_only ready to train, with the plan that it has: opens the data, allocates
 * the memory for tensors, and sets the initial weights. After a failure the trainer can only be destroyed.
 * REMAT_INVALID: it was not created with plan_only. Other errors are those of remat_trainer_create. */
remat_status remat_trainer_start(remat_trainer *trainer);

/* ---- training to the end ---- */

/* One training step: all its micro-batches, and the update of the weights. */
typedef struct remat_step_result {
    uint64_t step;  /* from 1 */
    uint64_t epoch; /* from 0 */
    double loss;    /* the mean over the samples of the step, before the update */
    double learning_rate;
    double gradient_norm; /* over all gradients of weights; NaN without clip_norm */
    double seconds;
    double data_seconds; /* of these, until the samples were in memory; on a GPU they are prepared in the step before */
    bool diverged;       /* the loss or a gradient is not finite. The step changed no weight from there on */
} remat_step_result;

typedef struct remat_validation_result {
    double loss;     /* the mean over the validation samples */
    double accuracy; /* the share of rows whose largest logit is that of the label; NaN without classes */
    uint64_t samples;
} remat_validation_result;

/* Callbacks, log and saving during a run. */
typedef struct remat_run_hooks {
    size_t struct_size;
    bool (*on_step)(void *user, const remat_step_result *result); /* false: the run ends after this step */
    void (*on_validation)(void *user, uint64_t step, const remat_validation_result *result);
    void *user;             /* passed to both */
    const char *log_path;   /* writes a log, JSON lines (docs/formats.md). A resumed training appends. NULL: none */
    const char *save_path;  /* with save_every: where to save */
    uint64_t save_every;    /* save after every save_every steps; 0: do not save during the run. A save that fails is a
                             * warning */
    bool save_weights_only; /* save without the state of the training */
    /* Saves here after each validation that is the best so far, those before a resume included. If early_stopping ends
     * the run, the trainer goes back to what was saved here. A save that fails is a warning. NULL: the best weights are
     * not kept. */
    const char *best_path;
} remat_run_hooks;
void remat_run_hooks_init_sized(remat_run_hooks *hooks, size_t size);
static inline void remat_run_hooks_init(remat_run_hooks *hooks)
{
    remat_run_hooks_init_sized(hooks, sizeof *hooks);
}

typedef struct remat_run_result {
    uint64_t steps;     /* of this run */
    bool stopped;       /* on_step returned false */
    bool stopped_early; /* by the model's early_stopping */
    double last_loss;
    double median_step_seconds;   /* without the first step */
    double median_data_seconds;   /* the same for data_seconds */
    double best_validation_loss;  /* NaN if there was no validation */
    uint64_t peak_resident_bytes; /* of the whole process, as the system counts them */
    uint64_t allocated_bytes;     /* for tensors, counted when they were allocated; equals total_bytes of the figures */
    uint64_t forwards;  /* how many layers ran forward in the last micro-batch; equals `forwards` of the figures */
    uint64_t best_step; /* after which best_validation_loss was found; 0: none, or not known */
    bool restored_best; /* the trainer has the weights of best_step: it stopped early, with best_path */
} remat_run_result;

/* Trains to the last step, with validation and early stopping as the model says. `hooks` NULL: none. `result` may be
 * NULL. REMAT_DIVERGED: the loss or a gradient is not finite; the message names the step and the layer, and the weights
 * are the last finite ones. A log that cannot be written gives a warning. REMAT_IO, REMAT_NO_MEMORY, or what the sample
 * function returned. */
remat_status remat_trainer_run_sized(remat_trainer *trainer, const remat_run_hooks *hooks, remat_run_result *result,
                                     size_t result_size);
static inline remat_status remat_trainer_run(remat_trainer *trainer, const remat_run_hooks *hooks,
                                             remat_run_result *result)
{
    return remat_trainer_run_sized(trainer, hooks, result, sizeof *result);
}

/* ---- saving and resuming ---- */

/* Writes the weights as safetensors, with checksums. `with_state` adds the state of the optimizer and of the training,
 * so that a resumed training continues with the same bits. An existing file is replaced only when everything was
 * written. With several ranks, the first one writes, and all return its status. REMAT_IO. */
remat_status remat_trainer_save(const remat_trainer *trainer, const char *path, bool with_state);

/* Writes a folder in Hugging Face's layout (docs/pretrained.md). If the model has adapters, these are written in PEFT's
 * layout. Otherwise, and with `merge`, the whole model is written as it was read: the same names, shapes and element
 * types, with the adapters added to the weights, and copies of config.json and the files of the tokenizer. The folder
 * is made if it does not exist. REMAT_INVALID: a whole model that did not come from a folder, or adapters together with
 * other trained layers. REMAT_IO. */
remat_status remat_trainer_save_folder(const remat_trainer *trainer, const char *path, bool merge);

/* Whether remat_trainer_save could write to `path` now: the folder is writable, the disk has room, and the model's data
 * is not read from it. REMAT_IO says why not. Call it before a long training. */
remat_status remat_trainer_check_save(const remat_trainer *trainer, const char *path, bool with_state);
/* The same for remat_trainer_save_folder. The folder is made if it does not exist. REMAT_INVALID, REMAT_IO. */
remat_status remat_trainer_check_save_folder(const remat_trainer *trainer, const char *path, bool merge);

/* Reads weights, under Remat's names or PyTorch's: safetensors, or a state dict that torch.save wrote. The file must
 * have every parameter, in its shape, and must not be damaged; see names_path and partial_weights of the options. If it
 * is refused with REMAT_BAD_INPUT, the trainer is unchanged. REMAT_IO. */
remat_status remat_trainer_load(remat_trainer *trainer, const char *path);

/* Reads weights and state, and continues where the saved training was. REMAT_BAD_INPUT: the file has no state, or the
 * state of another optimizer, or is damaged; then the trainer is unchanged. REMAT_IO. */
remat_status remat_trainer_resume(remat_trainer *trainer, const char *path);

/* Reads the weights of a file and writes them to another, under PyTorch's names or Remat's. The input may be
 * safetensors or a state dict, with either names; it must have every parameter of the model, in its shape. The output
 * is a state dict for torch.load if its name ends in .pt, .pth or .bin, otherwise safetensors. If the output is a
 * folder, or its name ends with '/', a model that came from a folder is written as one, with its adapters added to the
 * weights. `options` NULL: the defaults. REMAT_BAD_INPUT, REMAT_IO, REMAT_NO_MEMORY; REMAT_INVALID: more than 4 GiB for
 * torch.load. */
typedef struct remat_convert_options {
    size_t struct_size;
    bool to_torch;          /* write PyTorch's names (docs/pytorch-weights.md); otherwise Remat's */
    const char *names_path; /* as in remat_train_options. NULL: PyTorch's modules have the names of the layers */
} remat_convert_options;
void remat_convert_options_init_sized(remat_convert_options *options, size_t size);
static inline void remat_convert_options_init(remat_convert_options *options)
{
    remat_convert_options_init_sized(options, sizeof *options);
}
remat_status remat_weights_convert(const remat_model *model, const char *from, const char *to,
                                   const remat_convert_options *options);

/* ---- running a trained model ---- */

typedef struct remat_predictor remat_predictor;

/* Makes a predictor with the weights of a file. Of the options it uses kernels, threads, batch_size, seed and those
 * about samples. The model must outlive it. REMAT_INVALID, REMAT_BAD_INPUT, REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                                    remat_predictor **predictor);
void remat_predictor_destroy(remat_predictor *predictor);

/* The output of a model. Name and values belong to the predictor; the values are valid until its next run. */
typedef struct remat_prediction {
    const char *layer; /* whose output it is */
    uint64_t batch;    /* how many samples */
    uint64_t shape[3]; /* channels, height and width of one sample */
    const float *values;
} remat_prediction;

/* Runs one batch. `inputs` is as in remat_sample_fn, with a whole batch in each. REMAT_INVALID: a token is out of
 * range. */
remat_status remat_predictor_run_sized(remat_predictor *predictor, const void *const *inputs,
                                       remat_prediction *prediction, size_t prediction_size);
static inline remat_status remat_predictor_run(remat_predictor *predictor, const void *const *inputs,
                                               remat_prediction *prediction)
{
    return remat_predictor_run_sized(predictor, inputs, prediction, sizeof *prediction);
}

/* How many samples the dataset of the model (or the sample function of the options) has: all of them, training samples
 * first, but not files that are for validation only. 0 if the data cannot be opened; the context has the reason. */
uint64_t remat_predictor_samples(remat_predictor *predictor);

/* Runs the samples from `first` on: one batch, or fewer if fewer are left (`prediction->batch` says how many).
 * REMAT_INVALID past the end; REMAT_BAD_INPUT, REMAT_IO. */
remat_status remat_predictor_run_samples_sized(remat_predictor *predictor, uint64_t first, remat_prediction *prediction,
                                               size_t prediction_size);
static inline remat_status remat_predictor_run_samples(remat_predictor *predictor, uint64_t first,
                                                       remat_prediction *prediction)
{
    return remat_predictor_run_samples_sized(predictor, first, prediction, sizeof *prediction);
}

/* If samples are rows of a file, such as CSV: the number of a sample's row, from 1, counting rows that were left out
 * for missing values. Otherwise sample + 1. 0 past the end. */
uint64_t remat_predictor_row(remat_predictor *predictor, uint64_t sample);

/* If every sample has a file of its own, as images have: the path of a sample's file, which belongs to the predictor.
 * Otherwise, and past the end, NULL. */
const char *remat_predictor_file(remat_predictor *predictor, uint64_t sample);

/* How many classes the model distinguishes; 0 if its loss is not over classes. */
uint64_t remat_predictor_class_count(const remat_predictor *predictor);

/* The name of a class as the training data had it, saved with the weights. NULL: its name is its number. It belongs to the
 * predictor. */
const char *remat_predictor_class_name(const remat_predictor *predictor, uint64_t position);

/* The name of a label's column in the training data; NULL if it had none. It belongs to the predictor. */
const char *remat_predictor_target_name(const remat_predictor *predictor, uint64_t position);

/* The softmax of a row of logits: the probabilities of the classes. Both have `count` values. */
void remat_probabilities(const float *logits, uint64_t count, double *probabilities);

/* Writes a CSV table of the predictions for the first `samples` samples (0: all), with column names: the row of the
 * sample (remat_predictor_row) or its file (remat_predictor_file); if the model has classes, the name of the predicted
 * class and the probability of each class; otherwise the numbers. If a sample has several rows of output, the next
 * column is the position of the row in the sample. `save` replaces a file only when everything was written. REMAT_IO,
 * REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
remat_status remat_predictor_write_table(remat_predictor *predictor, uint64_t samples, FILE *stream);
remat_status remat_predictor_save_table(remat_predictor *predictor, uint64_t samples, const char *path);

/* Continues a text with a model of bytes: one whose input is a sequence read by an embedding of at least 256 entries.
 * Each byte is drawn from the softmax of the logits divided by `temperature` and passed to `emit`. `options` NULL: the
 * defaults. REMAT_INVALID: the model is not a model of bytes. REMAT_NO_MEMORY. */
typedef struct remat_generate_options {
    size_t struct_size;
    const char *prompt; /* NULL or "": a newline */
    uint64_t count;     /* bytes to generate. Default 200 */
    double temperature; /* 0: always the most likely byte. Default 0.8 */
    uint64_t seed;      /* default 0 */
} remat_generate_options;
void remat_generate_options_init_sized(remat_generate_options *options, size_t size);
static inline void remat_generate_options_init(remat_generate_options *options)
{
    remat_generate_options_init_sized(options, sizeof *options);
}
remat_status remat_predictor_generate(remat_predictor *predictor, const remat_generate_options *options,
                                      void (*emit)(void *user, unsigned char byte), void *user);

/* ---- what was planned ---- */

/* All bytes are exact: total_bytes is what the trainer allocates for tensors. Texts belong to the trainer. */
typedef struct remat_trainer_figures {
    uint64_t weight_bytes;    /* parameters and running statistics */
    uint64_t optimizer_bytes; /* moments */
    uint64_t gradient_bytes;  /* gradients of weights, if several micro-batches are summed; otherwise in the arena */
    uint64_t scratch_bytes;   /* of the kernels, for all threads */
    uint64_t arena_bytes;     /* activations, all gradients, workspaces, data */
    uint64_t total_bytes;     /* the sum of the five above */
    uint64_t peak_bytes;      /* the most that is live in the arena at once */
    uint64_t keep_all_arena_bytes; /* the arena if everything were kept */
    uint64_t min_budget_bytes;     /* the smallest budget that was found for this model and strategy */
    /* What is live in the arena at its peak. The sum is peak_bytes. */
    uint64_t peak_activation_bytes;
    uint64_t peak_gradient_bytes;        /* gradients of activations */
    uint64_t peak_weight_gradient_bytes; /* gradients of weights */
    uint64_t peak_workspace_bytes, peak_data_bytes;
    uint64_t budget_bytes;        /* REMAT_NO_BUDGET if there is none */
    uint64_t cost, keep_all_cost; /* of a step, in nanoseconds: estimated, or from the profile */
    uint64_t parameters;          /* how many values are trained */
    uint64_t batch_size, accumulate, steps_per_epoch, total_steps;
    uint64_t training_samples, validation_samples; /* 0 with plan_only, which opens no data */
    double clip_norm;                              /* 0: none */
    uint64_t layers, recomputed_layers;
    uint64_t forwards; /* how many layers run forward in one micro-batch, recomputing included */
    unsigned threads;
    const char *model;      /* its name; "" if it has none */
    const char *strategy;   /* the strategy in use, or "blocks", "plan file" or "graph plan file" */
    const char *peak_layer; /* the layer whose step makes the peak; NULL if nothing runs */
    const char *kernels;
    const char *remark; /* why the budget or the strategy saves no memory; "" otherwise */
    /* Outside the budget, besides the model itself: tables of the program, the plan and the recorded operations; and
     * what the dataset holds in memory (0 with plan_only). */
    uint64_t table_bytes, data_bytes;
    uint64_t min_budget_bound_bytes; /* proven: no plan of this model takes less */
    uint64_t early_stopping;         /* validations without improvement before training stops; 0: never */
    /* With plan_only, if the best plan was searched for: the cost of a step within min_budget_bytes, and the layer that
     * makes its peak. Otherwise 0 and NULL. */
    uint64_t min_budget_cost;
    const char *min_budget_layer;
    /* Frozen weights that are mapped from the model's folder: the part that weight_bytes counts, and all of them. If
     * the part is less, they are dropped after each use. */
    uint64_t mapped_bytes, mapped_file_bytes;
    uint64_t frozen_parameters; /* how many values are not trained, but loaded and used */
} remat_trainer_figures;
void remat_trainer_get_figures_sized(const remat_trainer *trainer, remat_trainer_figures *figures, size_t figures_size);
static inline void remat_trainer_get_figures(const remat_trainer *trainer, remat_trainer_figures *figures)
{
    remat_trainer_get_figures_sized(trainer, figures, sizeof *figures);
}

/* A stage of a pipeline. */
typedef struct remat_stage_figures {
    const char *first_layer, *last_layer; /* names; they belong to the trainer */
    /* Of its rank, as in remat_trainer_figures. */
    uint64_t weight_bytes, optimizer_bytes, gradient_bytes, total_bytes, min_budget_bytes;
    uint64_t keep_all_bytes; /* in all, with nothing recomputed */
    uint64_t kept_bytes;     /* of these: what each micro-batch keeps for its backward pass; 0 with one in flight */
    uint64_t in_flight;      /* micro-batches of which it keeps activations at the same time */
    uint64_t cost;           /* of a micro-batch, in nanoseconds */
} remat_stage_figures;

/* The figures of any stage, counted from 0. If the trainer only plans, this call plans the stage. REMAT_INVALID: there
 * is no such stage, or no pipeline. REMAT_NO_MEMORY. */
remat_status remat_trainer_get_stage_sized(const remat_trainer *trainer, uint64_t stage, remat_stage_figures *figures,
                                           size_t figures_size);
static inline remat_status remat_trainer_get_stage(const remat_trainer *trainer, uint64_t stage,
                                                   remat_stage_figures *figures)
{
    return remat_trainer_get_stage_sized(trainer, stage, figures, sizeof *figures);
}

/* How often a layer runs forward in a micro-batch. Layers are those of remat_model_get_layer. */
uint32_t remat_trainer_forwards(const remat_trainer *trainer, size_t layer);

/* The chain of pieces that the model was cut into, and the plan for it. Both belong to the trainer. NULL if the model's
 * blocks decide what is kept. */
const remat_profile *remat_trainer_chain(const remat_trainer *trainer);
const remat_plan *remat_trainer_plan(const remat_trainer *trainer);

/* Writes that plan as remat_plan_write does, with the bytes of the arena and of all memory added. The option plan_path
 * takes such a file. REMAT_INVALID: the model's blocks decide. REMAT_IO. */
remat_status remat_trainer_write_plan(const remat_trainer *trainer, FILE *stream, bool with_schedule);
remat_status remat_trainer_save_plan(const remat_trainer *trainer, const char *path);

/* The graph of a micro-batch: all tensors that live in the arena, and all actions. It belongs to the trainer. The other
 * two calls write the schedule of the trainer, with the place of every tensor (docs/formats.md, "Graph plan").
 * remat_graph_plan_check checks such a file. REMAT_IO. */
const remat_graph *remat_trainer_graph(const remat_trainer *trainer);
remat_status remat_trainer_write_graph_plan(const remat_trainer *trainer, FILE *stream);
remat_status remat_trainer_save_graph_plan(const remat_trainer *trainer, const char *path);

/* Finds the whole curve of step time over memory. *count receives the number of points. REMAT_NO_MEMORY. */
remat_status remat_trainer_find_curve(remat_trainer *trainer, size_t *count);

/* A point of the curve that was found last. Point 0 needs the least memory; the last point keeps everything.
 * REMAT_INVALID past the end. */
typedef struct remat_train_point {
    uint64_t total_bytes; /* all memory for tensors */
    uint64_t arena_bytes; /* the arena's share of that */
    uint64_t cost;        /* of a step, in nanoseconds */
    uint64_t recomputed;  /* forward runs beyond the first of each layer, in one micro-batch */
} remat_train_point;
remat_status remat_trainer_get_point_sized(const remat_trainer *trainer, size_t position, remat_train_point *point,
                                           size_t point_size);
static inline remat_status remat_trainer_get_point(const remat_trainer *trainer, size_t position,
                                                   remat_train_point *point)
{
    return remat_trainer_get_point_sized(trainer, position, point, sizeof *point);
}

/* The point where this curve bends most, as remat_sweep_knee defines it. 0 if no curve was found yet. */
size_t remat_trainer_knee(const remat_trainer *trainer);

/* Finds the largest batch size that fits into `options->budget_bytes`. Without plan_only, the batch is at most the
 * number of samples. REMAT_INFEASIBLE: not even one sample fits; remat_error on the context has the bytes that it
 * needs. REMAT_INVALID: there is no budget. */
remat_status remat_train_largest_batch(remat_model *model, const remat_train_options *options, uint64_t *batch);

/* Chooses the batch size that trains fastest within `options->budget_bytes`, by the predicted time for a sample: a larger
 * batch may fit only because more is recomputed. The plans of some twenty batch sizes are compared. Otherwise as
 * remat_train_largest_batch. */
typedef struct remat_batch_choice {
    uint64_t fastest;                                /* the batch size to take */
    uint64_t largest;                                /* the largest that fits */
    double fastest_sample_cost, largest_sample_cost; /* nanoseconds for a sample with each of them, as predicted */
} remat_batch_choice;
remat_status remat_train_choose_batch_sized(remat_model *model, const remat_train_options *options,
                                            remat_batch_choice *choice, size_t choice_size);
static inline remat_status remat_train_choose_batch(remat_model *model, const remat_train_options *options,
                                                    remat_batch_choice *choice)
{
    return remat_train_choose_batch_sized(model, options, choice, sizeof *choice);
}

/* ---- training step by step ---- */

/* Takes one training step. REMAT_BAD_INPUT or REMAT_IO from the data, or what the sample function returned. Weights
 * and running statistics are unchanged after such a failure. */
remat_status remat_trainer_step_sized(remat_trainer *trainer, remat_step_result *result, size_t result_size);
static inline remat_status remat_trainer_step(remat_trainer *trainer, remat_step_result *result)
{
    return remat_trainer_step_sized(trainer, result, sizeof *result);
}

/* How many steps were taken, including those before a resume. */
uint64_t remat_trainer_steps_taken(const remat_trainer *trainer);

/* Runs the validation samples. REMAT_INVALID: there is less than one batch of them. Other errors are those of
 * remat_trainer_step. */
remat_status remat_trainer_validate_sized(remat_trainer *trainer, remat_validation_result *result, size_t result_size);
static inline remat_status remat_trainer_validate(remat_trainer *trainer, remat_validation_result *result)
{
    return remat_trainer_validate_sized(trainer, result, sizeof *result);
}

/* ---- parameters ---- */

/* A parameter: weights that are trained, or running statistics. The name belongs to the trainer. */
typedef struct remat_parameter {
    const char *name;      /* such as "fc1.weight" */
    uint32_t rank;         /* how many of `dims` are used */
    uint64_t dims[4];      /* its shape */
    uint64_t count;        /* how many values it has */
    remat_dtype dtype;     /* the element type in which they are stored */
    bool trained;          /* false: running statistics */
    uint32_t moment_count; /* how many values the optimizer keeps for each of its values: 0, 1 or 2 */
} remat_parameter;

/* How many parameters there are, and the parameter at a position from 0. REMAT_INVALID past the end. */
size_t remat_trainer_parameter_count(const remat_trainer *trainer);
remat_status remat_trainer_get_parameter_sized(const remat_trainer *trainer, size_t position,
                                               remat_parameter *parameter, size_t parameter_size);
static inline remat_status remat_trainer_get_parameter(const remat_trainer *trainer, size_t position,
                                                       remat_parameter *parameter)
{
    return remat_trainer_get_parameter_sized(trainer, position, parameter, sizeof *parameter);
}

/* Copies the values of a parameter, or of one of its moments, to or from `values`, converting between float and the
 * stored type. A moment in 8 or 16 bits is rounded to nearest when it is written. Call them between steps.
 * REMAT_INVALID: there is no such parameter or moment, `count` is not the count of the parameter, or the trainer only
 * plans. */
remat_status remat_trainer_read_parameter(const remat_trainer *trainer, size_t position, float *values, uint64_t count);
remat_status remat_trainer_write_parameter(remat_trainer *trainer, size_t position, const float *values,
                                           uint64_t count);
remat_status remat_trainer_read_moment(const remat_trainer *trainer, size_t position, size_t moment, float *values,
                                       uint64_t count);
remat_status remat_trainer_write_moment(remat_trainer *trainer, size_t position, size_t moment, const float *values,
                                        uint64_t count);

/* Sets the function that receives the gradient of each parameter, directly before the optimizer uses it. The values are
 * valid during the call only. NULL: none. */
typedef void (*remat_gradient_fn)(void *user, size_t parameter, const float *gradient, uint64_t count);
void remat_trainer_on_gradient(remat_trainer *trainer, remat_gradient_fn visit, void *user);

/* ---- measuring ---- */

/* One action of a training step. Actions on all gradients of the weights at once have the layer name "(all gradients)":
 * setting them to 0 (phase "weight_gradient", with accumulate) and computing their norm (phase "apply", with
 * clip_norm). */
typedef struct remat_action {
    const char *layer;     /* its name */
    const char *phase;     /* "load" (data), "forward", "recompute", "weight_gradient", "input_gradient" or "apply" */
    size_t position;       /* of the layer in the model; the number of layers for "(all gradients)" */
    uint64_t began, ended; /* nanoseconds of a monotonic clock */
    uint64_t live_bytes;   /* in the arena while it ran */
    uint64_t flops;        /* floating point operations */
    uint64_t bytes;        /* read and written: docs/formats.md, "Bench" */
    uint64_t gemm_flops;   /* those of `flops` that are in matrix products */
} remat_action;

/* Sets the function that is called after every action of a training step. NULL: none. REMAT_NO_MEMORY. */
typedef void (*remat_action_fn)(void *user, const remat_action *action);
remat_status remat_trainer_on_action(remat_trainer *trainer, remat_action_fn visit, void *user);

/* Measures the time of every layer, forward and backward, as medians over `repeats` steps, and makes a profile with the
 * names of the layers and costs in nanoseconds. `repeats` 0: at least 5 steps and 0.3 seconds, until the medians of the
 * first and the second half of the steps differ by at most 2 %, or 3 seconds have passed. The weights are as before. The
 * caller destroys the profile. REMAT_NO_MEMORY, or an error of the data. */
remat_status remat_trainer_measure(remat_trainer *trainer, unsigned repeats, remat_profile **profile);

/* How stable the last measurement of this trainer was. All is 0 before the first. */
typedef struct remat_measurement {
    uint64_t steps;      /* how many were measured */
    double step_seconds; /* the median of a step: all layers, forward and backward */
    double spread; /* by how much the medians of the first and the second half differ, as a share of step_seconds */
} remat_measurement;
void remat_trainer_get_measurement_sized(const remat_trainer *trainer, remat_measurement *measured,
                                         size_t measured_size);
static inline void remat_trainer_get_measurement(const remat_trainer *trainer, remat_measurement *measured)
{
    remat_trainer_get_measurement_sized(trainer, measured, sizeof *measured);
}

/* Describes a device: its name, memory and libraries, such as "NVIDIA H200, compute capability 9.0, ...". The text is
 * cut to `room` bytes. REMAT_INVALID: there is no such device; the message says why. */
remat_status remat_device_describe(remat_context *context, const char *device, char *text, size_t room);

/* The free memory of a GPU in bytes, without the driver's context; 0 for "cpu", which has no memory of its own.
 * REMAT_INVALID: there is no such device. */
remat_status remat_device_memory(remat_context *context, const char *device, uint64_t *bytes);

/* Measures what this machine can do, in a fraction of a second. `threads` 0: all cores. REMAT_NO_MEMORY. */
typedef struct remat_machine_limits {
    double flops_per_second; /* of multiply-adds on registers, or in a large product of a GPU */
    double bytes_per_second; /* through memory */
    unsigned threads;        /* how many ran: the system may allow fewer than were asked for */
    const char *kernels;     /* the instruction set that was measured: always that of the fast kernels */
} remat_machine_limits;
remat_status remat_measure_limits_sized(remat_context *context, unsigned threads, remat_machine_limits *limits,
                                        size_t limits_size);
/* The same for a device, as in remat_train_options. On a GPU, the operations are those of a large product in bf16.
 * REMAT_INVALID: there is no such device. */
remat_status remat_measure_device_sized(remat_context *context, const char *device, unsigned threads,
                                        remat_machine_limits *limits, size_t limits_size);
static inline remat_status remat_measure_device(remat_context *context, const char *device, unsigned threads,
                                                remat_machine_limits *limits)
{
    return remat_measure_device_sized(context, device, threads, limits, sizeof *limits);
}
static inline remat_status remat_measure_limits(remat_context *context, unsigned threads, remat_machine_limits *limits)
{
    return remat_measure_limits_sized(context, threads, limits, sizeof *limits);
}

#ifdef __cplusplus
}
#endif
#endif
