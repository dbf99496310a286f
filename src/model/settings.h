/* What a model file says besides its layers: a struct for each section, filled from text (base/properties.h). */
#ifndef REMAT_MODEL_SETTINGS_H
#define REMAT_MODEL_SETTINGS_H

#include "layers/layer.h"

enum { PRECISION_FP32, PRECISION_BF16 };
enum { FROZEN_FP32, FROZEN_FP16, FROZEN_BF16, FROZEN_INT8, FROZEN_INT4 };

typedef struct model_settings {
    const char *name;        /* NULL: none */
    uint64_t batch_size;     /* samples a micro-batch; 1 */
    uint64_t epochs;         /* 1 */
    uint64_t seed;           /* 0 */
    uint64_t accumulate;     /* micro-batches a step; 1 */
    double clip_norm;        /* 0: no clipping by global norm */
    const char *budget;      /* a size as text, NULL: none */
    const char *strategy;    /* NULL: none */
    uint32_t precision;      /* PRECISION_FP32: of activations and their gradients */
    bool master;             /* true: weights are in fp32. False: matrices are in bf16, rounded at random */
    uint64_t early_stopping; /* validations without improvement before training stops; 0: never */
    const char *lora;        /* as tuning.h reads it; NULL: none */
    const char *train;       /* patterns of layers that are trained; NULL: all */
    uint32_t frozen;         /* FROZEN_FP32: how large frozen matrices are held */
    const char *adapter;     /* a folder with adapters; NULL: none */
    uint64_t length_classes; /* lengths that have a plan of their own; 1: only the whole */
} model_settings;

enum { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_LION, OPTIMIZER_ADAFACTOR };
enum { STATE_FP32, STATE_BF16, STATE_INT8 };
enum { RATE_CONSTANT, RATE_STEP, RATE_COSINE, RATE_LINEAR, RATE_ONE_CYCLE, RATE_PLATEAU };

typedef struct optimizer_settings {
    uint32_t type; /* OPTIMIZER_SGD */
    double learning_rate;
    double momentum;
    bool nesterov;
    double beta1, beta2, epsilon, weight_decay;
    uint32_t state;          /* STATE_FP32: the element type of the moments */
    double beta2_decay;      /* of adafactor: update n takes a share of n^-beta2_decay of the new squares */
    double least_scale;      /* of adafactor: the least root mean square of weights that the rate is relative to */
    double update_threshold; /* of adafactor: the largest root mean square of an update */
    uint32_t schedule;       /* RATE_CONSTANT */
    uint64_t warmup_steps;   /* over these steps the rate rises linearly from 0, with every schedule */
    uint64_t decay_steps;    /* cosine and linear reach min_rate here; 0: at the end of the training */
    double min_rate;
    uint64_t step_size; /* of RATE_STEP: every step_size steps after the warm-up the rate is multiplied by gamma */
    double gamma;       /* also of RATE_PLATEAU */
    double rise;        /* of RATE_ONE_CYCLE: the share of the steps over which the rate rises */
    double start_divisor, end_divisor; /* of RATE_ONE_CYCLE: what divides the rate at the start, and that at the end */
    uint64_t patience;                 /* of RATE_PLATEAU: validations without improvement before the rate falls */
    double threshold;                  /* of RATE_PLATEAU: the share by which a loss must be better to count */
} optimizer_settings;

enum { DATASET_NONE, DATASET_NPY, DATASET_CSV, DATASET_TEXT, DATASET_RANDOM, DATASET_IMAGES, DATASET_JSONL };
enum { FIT_CROP, FIT_STRETCH, FIT_ERROR };
enum { FLIP_NONE, FLIP_HORIZONTAL, FLIP_VERTICAL, FLIP_BOTH };
enum { SPLIT_AUTO, SPLIT_LAST, SPLIT_SHUFFLED, SPLIT_STRATIFIED };
enum { DELIMITER_AUTO, DELIMITER_COMMA, DELIMITER_SEMICOLON, DELIMITER_TAB, DELIMITER_PIPE, DELIMITER_SPACE };
enum { HEADER_AUTO, HEADER_TRUE, HEADER_FALSE };
enum { MISSING_ERROR, MISSING_MEAN, MISSING_ZERO, MISSING_DROP };
enum { WORDS_ERROR, WORDS_ONEHOT };
enum { WINDOWS_FIXED, WINDOWS_RANDOM };
enum { NORMALIZE_NONE, NORMALIZE_STANDARD, NORMALIZE_MINMAX };

typedef struct dataset_settings {
    uint32_t type;
    const char *inputs; /* npy: files, comma-separated, one an input layer; csv: one file; text: files; paths are
                           relative to the folder of the model file */
    const char *labels; /* npy: one file; csv: number of label columns, the last ones, as text (default 1) */
    const char *validation_inputs, *validation_labels; /* the same for validation; NULL: use the split */
    double validation_split;                           /* share of the samples that is never trained on; 0 */
    uint32_t split;                                    /* which samples those are */
    uint64_t validation_every;                         /* steps; 0: at the end of every epoch */
    bool shuffle;                                      /* true */
    uint64_t samples;                                  /* of DATASET_RANDOM: made from the seed, for benchmarks; 1024 */
    /* Of csv. Columns are names or numbers from 1. */
    const char *columns; /* inputs; NULL: all that are neither targets nor ignored */
    const char *target;  /* labels; NULL: the last ones, as many as `labels` says */
    const char *ignore;  /* columns that nobody reads */
    const char *classes; /* names of the classes in their order; NULL: numbers, or words in alphabetical order */
    uint32_t delimiter, header, missing, normalize, words;
    uint32_t fit;          /* of images: what becomes of one that has another size */
    uint32_t flip;         /* of npy and images: drawn for each training sample, as are the next three */
    uint64_t shift;        /* the most points in each direction */
    double crop;           /* the least share of width and height; 1: none */
    uint64_t cutout;       /* points of a square that becomes 0; 0: none */
    bool scale_bytes;      /* of npy and images: bytes become 0 .. 1; true */
    uint32_t windows;      /* of text: where samples begin */
    const char *tokenizer; /* of jsonl: a tokenizer.json, or its folder; of a model from a folder: that one */
    const char *folder;    /* of the model file: where relative paths start; set by the reader, no property */
    bool is_here;          /* the files are relative to the current folder instead; no property */
} dataset_settings;

#endif
