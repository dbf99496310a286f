/* Remat: training.
 *
 * A trainer takes a compiled model, plans which activations to keep, places everything in one arena, and trains. All that
 * it will ever allocate is known and allocated when remat_trainer_create returns; a step allocates nothing.
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
 * Losses, gradients and weights are the same bits whatever is recomputed and with any number of threads.
 *
 * Threads: a trainer belongs to one thread at a time; it starts its own inside a call. They are OpenMP's, which spin for
 * long where they wait: on a machine that others use as well, start the program with GOMP_SPINCOUNT=1000, or with
 * KMP_BLOCKTIME=0 where it was built with clang. */
#ifndef REMAT_TRAIN_H
#define REMAT_TRAIN_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/model.h>
#include <remat/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_trainer remat_trainer;

/* Data from the caller's own code: fills one sample. `inputs` has one pointer for each input layer; embeddings read
 * int32_t, everything else float; `labels` is float for mse and int32_t for cross_entropy. The same number always means
 * the same sample. Anything but REMAT_OK ends the training and is handed back. */
typedef remat_status (*remat_sample_fn)(void *user, uint64_t sample, void *const *inputs, void *labels);

/* A budget that nothing reaches: lifts the one that a model has of its own. */
#define REMAT_ANY_BUDGET ((uint64_t)INT64_MAX)

typedef struct remat_train_options {
    size_t struct_size;
    uint64_t budget_bytes;    /* for everything allocated: weights, optimizer, gradients, scratch, and the arena with
                                    activations, workspaces and the batch. Samples that a dataset holds in memory (CSV,
                                    files up to 1 MiB) are not part of it. REMAT_NO_BUDGET: the model's, or none;
                                    REMAT_ANY_BUDGET: no limit, even where the model has one */
    const char *strategy;     /* "none", "every-nth:2", ...; NULL: the model's, its blocks, or the budget's optimum */
    const char *plan_path;    /* a plan file for the model's chain of pieces, instead of planning; NULL */
    const char *profile_path; /* measured costs, from `remat profile`; NULL: modelled ones */
    const char *kernels;      /* NULL or "fast": the best instruction set of this processor; one of them by name,
                                    "avx512", "avx2" or "portable"; "reference": plain loops. What this processor has
                                    not got is REMAT_INVALID, and the message lists what it has */
    unsigned threads;         /* 0: all cores */
    uint64_t batch_size;      /* 0: the model's */
    uint64_t seed;            /* REMAT_DEFAULT: the model's */
    uint64_t steps;           /* in all, for schedules of the rate and the end of the run; REMAT_DEFAULT: the model's
                                    epochs */
    remat_sample_fn sample;   /* NULL: the model's [Dataset] */
    void *sample_user;
    uint64_t samples, validation_samples; /* with `sample`: training samples are 0 .. samples-1, validation follows */
    bool plan_only; /* for questions before training: no data is opened, no memory for tensors allocated;
                                    only figures, chain, plan, curve and destroy may be called */
    const char *device; /* what computes: NULL or "cpu". "fenced" is for tests: the processor behind a queue of its own, on
                                    memory that the host cannot touch */
} remat_train_options;
void remat_train_options_init(remat_train_options *options);

/* Makes a trainer with its first weights. The model must outlive it. REMAT_INFEASIBLE: the budget is too small; the
 * message says what would do, and which layer makes it. The caller destroys it. */
remat_status remat_trainer_create(remat_model *model, const remat_train_options *options, remat_trainer **trainer);
void remat_trainer_destroy(remat_trainer *trainer);

/* What was planned. Bytes are exact: what the trainer allocates for tensors is total_bytes. */
typedef struct remat_trainer_figures {
    uint64_t weight_bytes;    /* parameters and running statistics */
    uint64_t optimizer_bytes; /* moments */
    uint64_t gradient_bytes;  /* gradients that live over several micro-batches; else they are in the arena */
    uint64_t scratch_bytes;   /* of the kernels, for all threads */
    uint64_t arena_bytes;     /* activations, their gradients, weight gradients, workspaces, data */
    uint64_t total_bytes;     /* the sum */
    uint64_t peak_bytes;      /* the most that lives in the arena at once */
    uint64_t keep_all_arena_bytes;
    uint64_t min_budget_bytes; /* the smallest total that this model can be trained in */
    /* What lives in the arena while the peak lasts; the sum is peak_bytes. */
    uint64_t peak_activation_bytes, peak_gradient_bytes; /* gradients of activations */
    uint64_t peak_weight_gradient_bytes, peak_workspace_bytes, peak_data_bytes;
    uint64_t budget_bytes;        /* REMAT_NO_BUDGET where none */
    uint64_t cost, keep_all_cost; /* of a step, in nanoseconds by the model or the profile */
    uint64_t parameters;          /* trained values */
    uint64_t batch_size, accumulate, steps_per_epoch, total_steps;
    uint64_t training_samples, validation_samples; /* of the data; 0 with plan_only, which opens none */
    double clip_norm;                              /* 0: none */
    uint64_t layers, recomputed_layers, forwards;  /* forwards: of all layers together, in one micro-batch */
    unsigned threads;
    const char *model;      /* its name; "" where it has none */
    const char *strategy;   /* what decided */
    const char *peak_layer; /* whose step makes the peak; NULL where nothing runs */
    const char *kernels;
    const char *remark; /* where the setting did nothing: why; "" otherwise */
} remat_trainer_figures;
void remat_trainer_get_figures(const remat_trainer *trainer, remat_trainer_figures *figures);

/* The chain of pieces that the model was cut into, and the plan on it; NULL where blocks decide. Both belong to the
 * trainer. */
const remat_profile *remat_trainer_chain(const remat_trainer *trainer);
const remat_plan *remat_trainer_plan(const remat_trainer *trainer);

/* Writes that plan as remat_plan_write does, with the bytes of the arena and of all memory besides: what
 * options.plan_path takes. REMAT_INVALID where blocks decide. */
remat_status remat_trainer_write_plan(const remat_trainer *trainer, FILE *stream, bool with_schedule);
remat_status remat_trainer_save_plan(const remat_trainer *trainer, const char *path);

/* How often a layer runs forward in a step: layers as in remat_model_get_layer. */
uint32_t remat_trainer_forwards(const remat_trainer *trainer, size_t layer);

/* The whole curve of predicted step time over memory, from the smallest to keeping everything. The points belong to the
 * trainer until the next call. */
typedef struct remat_train_point {
    uint64_t total_bytes, arena_bytes; /* total: with weights, optimizer and all */
    uint64_t cost;                     /* of a step, nanoseconds */
    uint64_t recomputed;               /* forward runs beyond the first of each layer */
} remat_train_point;
remat_status remat_trainer_curve(remat_trainer *trainer, const remat_train_point **points, size_t *count);

/* The position of that curve where it bends most, as remat_sweep_knee finds it; 0 before the curve was asked for. */
size_t remat_trainer_knee(const remat_trainer *trainer);

/* The largest batch size whose training fits `options->budget_bytes`, by the same planner, and without plan_only is no
 * larger than the data. REMAT_INFEASIBLE where not even one sample does. */
remat_status remat_train_largest_batch(remat_model *model, const remat_train_options *options, uint64_t *batch);

/* One step: all micro-batches of it, and the optimizer. */
typedef struct remat_step_result {
    uint64_t step;  /* from 1 */
    uint64_t epoch; /* from 0 */
    double loss;    /* mean over the samples of the step, before the update */
    double rate;
    double gradient_norm; /* with clipping; else NaN */
    double seconds;
    double data_seconds; /* of these: until the samples were there */
} remat_step_result;
remat_status remat_trainer_step(remat_trainer *trainer, remat_step_result *result);
uint64_t remat_trainer_steps_taken(const remat_trainer *trainer); /* those before a resume as well */

/* The mean loss over the validation samples, and the share of rows whose largest logit is the label's (NaN without
 * classes). REMAT_INVALID where there is no validation data. */
typedef struct remat_validation_result {
    double loss, accuracy;
    uint64_t samples;
} remat_validation_result;
remat_status remat_trainer_validate(remat_trainer *trainer, remat_validation_result *result);

/* Trains to the end: steps, validations, early stopping. `on_step` returning false ends the run after that step, as Ctrl-C
 * does in the command. */
typedef struct remat_run_hooks {
    size_t struct_size;
    bool (*on_step)(void *user, const remat_step_result *result);
    void (*on_validation)(void *user, uint64_t step, const remat_validation_result *result);
    void *user;
    const char *log_path;  /* JSON lines (docs/formats.md), appended where the training was resumed; NULL: none */
    const char *save_path; /* where the weights, and the state unless save_weights_only, are written ... */
    uint64_t save_every;   /* ... after every so many steps, with what the validation found; 0: not during the run */
    bool save_weights_only;
} remat_run_hooks;
void remat_run_hooks_init(remat_run_hooks *hooks);

typedef struct remat_run_result {
    uint64_t steps;     /* taken in this run */
    bool stopped;       /* by on_step */
    bool stopped_early; /* by validation */
    double last_loss;
    double mean_step_seconds;     /* median over the steps but the first */
    double mean_data_seconds;     /* the same of data_seconds */
    double best_validation_loss;  /* NaN where none */
    uint64_t peak_resident_bytes; /* of the process, as the system counts it */
    uint64_t allocated_bytes;     /* for tensors, counted at the allocation: equals total_bytes */
    uint64_t forwards;            /* layers that ran forward in the last micro-batch, counted: equals that figure */
} remat_run_result;
remat_status remat_trainer_run(remat_trainer *trainer, const remat_run_hooks *hooks, remat_run_result *result);

/* Parameters and statistics, by position; values may be read and written between steps. */
typedef struct remat_parameter {
    const char *name; /* "fc1.weight" */
    uint32_t rank;
    uint64_t dims[4];
    uint64_t count;
    float *values;
    float *moments[2]; /* of the optimizer; NULL where it has none */
    bool trained;      /* false: running statistics */
} remat_parameter;
size_t remat_trainer_parameter_count(const remat_trainer *trainer);
remat_status remat_trainer_get_parameter(const remat_trainer *trainer, size_t position, remat_parameter *parameter);

/* Called with the gradient of a parameter directly before the optimizer uses it. */
typedef void (*remat_gradient_fn)(void *user, size_t parameter, const float *gradient, uint64_t count);
void remat_trainer_on_gradient(remat_trainer *trainer, remat_gradient_fn visit, void *user);

/* Called after every action of a training step: for traces and timings. NULL takes it away. What is done to all gradients
 * at once belongs to no layer and is called "(all gradients)": clearing them ("gradient", with accumulate) and finding
 * their norm ("apply", with clip_norm). */
typedef struct remat_action {
    const char *layer;     /* its name */
    const char *what;      /* "load" (of data), "forward", "recompute", "gradient", "derivative", "apply" */
    size_t position;       /* of the model's layers; their number for what is done to all gradients at once */
    uint64_t began, ended; /* nanoseconds of a clock that only rises */
    uint64_t live_bytes;   /* in the arena while it ran */
    uint64_t flops, bytes; /* of arithmetic, and of tensors and parameters read and written: docs/formats.md, "Bench" */
    uint64_t product_flops; /* those of the flops that are in matrix products */
} remat_action;
typedef void (*remat_action_fn)(void *user, const remat_action *action);
remat_status remat_trainer_on_action(remat_trainer *trainer, remat_action_fn visit, void *user);

/* Weights as safetensors; with the state of optimizer and training where wanted, so that resuming goes on with the same
 * bits. The old file stays unless all went well. */
remat_status remat_trainer_save(const remat_trainer *trainer, const char *path, bool with_state);
/* Weights only: every parameter must be there with its shape. */
remat_status remat_trainer_load(remat_trainer *trainer, const char *path);
/* Weights, optimizer, and where the training stood. REMAT_BAD_INPUT where the file has no state or another optimizer's. */
remat_status remat_trainer_resume(remat_trainer *trainer, const char *path);

/* Times every layer, forward and backward (medians over `repeats` steps), and makes a profile whose layers have the
 * model's names and costs in nanoseconds. The caller destroys the profile. */
remat_status remat_trainer_measure(remat_trainer *trainer, unsigned repeats, remat_profile **profile);

/* The limits of this machine, measured in a fraction of a second: floating point operations a second in multiply-adds on
 * registers, and bytes a second through memory. threads 0: all cores. */
typedef struct remat_machine_limits {
    double flops, bytes;
    unsigned threads;    /* that ran: where the system allows fewer than were asked for, those */
    const char *kernels; /* the instruction set that the fast kernels use here; limits are always theirs */
} remat_machine_limits;
remat_status remat_measure_limits(remat_context *context, unsigned threads, remat_machine_limits *limits);

/* Running a trained model. Weights come from a file. Of the options kernels, threads, batch_size, seed and the samples
 * count; budget, strategy, plan and steps do nothing here. */
typedef struct remat_predictor remat_predictor;
remat_status remat_predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                                    remat_predictor **predictor);
void remat_predictor_destroy(remat_predictor *predictor);

/* Runs one batch. `inputs` as for remat_sample_fn, a whole batch each. The outputs belong to the predictor until the next
 * call. */
typedef struct remat_prediction {
    const char *layer;
    uint64_t batch, shape[3];
    const float *values;
} remat_prediction;
remat_status remat_predictor_run(remat_predictor *predictor, const void *const *inputs, remat_prediction *prediction);

/* Predicts sample after sample of the model's [Dataset] (or of `options.sample`), training samples first: fills `inputs`
 * by itself. How many there are: 0 where the data cannot be opened, with the reason on the context. Files of their own for
 * validation are not predicted. */
uint64_t remat_predictor_samples(remat_predictor *predictor);
/* The samples from `first` on: a batch of them, or what is left where that is less (`prediction->batch` says). */
remat_status remat_predictor_run_samples(remat_predictor *predictor, uint64_t first, remat_prediction *prediction);

/* For models of bytes (an embedding of at least 256 entries, a sequence of T): continues a text by `count` bytes, each
 * drawn from the softmax of the logits divided by `temperature` (0: the likeliest). `emit` gets each byte. */
typedef struct remat_generate_options {
    size_t struct_size;
    const char *prompt; /* at least one byte; "\n" where NULL */
    uint64_t count;
    double temperature;
    uint64_t seed;
} remat_generate_options;
void remat_generate_options_init(remat_generate_options *options);
remat_status remat_predictor_generate(remat_predictor *predictor, const remat_generate_options *options,
                                      void (*emit)(void *user, unsigned char byte), void *user);

#ifdef __cplusplus
}
#endif
#endif
