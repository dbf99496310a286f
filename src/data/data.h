/* Sources of samples. A source knows how many samples there are for training and for validation and in which order an
 * epoch takes them. It writes batches to the caller's buffers. After it is open it allocates nothing.
 *
 *   npy      one file an input and one for the labels; the first dimension counts samples
 *   images   a folder with a folder of PNG and JPEG files for each class
 *   csv      one file; a row is a sample, and columns are inputs, labels or ignored
 *   text     bytes as tokens: sample j is the window of T bytes at j*T, and the label of each byte is the next byte
 *   jsonl    lines of JSON, each a sample for fine-tuning, which a tokenizer turns into rows of tokens
 *   random   made from the seed, for benchmarks
 *   generator   a function of the caller
 *
 * data_split.h says which samples are for validation. The order of an epoch is a permutation keyed by (seed, epoch);
 * validation takes its samples in order. Only whole
 * batches are used: the samples at the end of an epoch that do not fill a batch are skipped in that epoch. */
#ifndef REMAT_DATA_DATA_H
#define REMAT_DATA_DATA_H

#include "data/data_encoding.h"
#include "model/settings.h"

/* What the network reads, for one sample. */
typedef struct data_field {
    uint64_t values;   /* 0: not read (labels that nobody needs) */
    remat_dtype dtype; /* REMAT_FP32, or REMAT_INT32 for tokens and classes */
    uint64_t bound;    /* whole numbers must be 0 .. bound-1; 0: no limit */
    bool skips;        /* negative numbers are allowed too: labels that are ignored */
    uint64_t shape[3]; /* channels, height and width; zeros where they are not known */
} data_field;

typedef struct data_needs {
    size_t input_count; /* at most LAYER_MAX_INPUTS */
    data_field inputs[LAYER_MAX_INPUTS];
    data_field labels;
} data_needs;

/* A function of the caller that writes one sample: inputs[i] and labels point to room for it. The same number must
 * give the same sample. A failure ends the training with its status. */
typedef remat_status (*data_generator_fn)(void *user, uint64_t sample, void *const *inputs, void *labels);
typedef struct data_generator {
    data_generator_fn fill;
    void *user;
    uint64_t samples; /* in all; the last ones, a share of the settings' validation_split, are for validation */
} data_generator;

typedef struct data_options {
    const dataset_settings *settings;
    const data_generator *generator; /* not NULL: instead of the settings' files; copied */
    data_needs needs;
    uint64_t batch; /* there must be one whole batch for training, and for validation if there is any; 0: no check */
    uint64_t seed;
    int threads; /* that may generate samples in parallel, if samples are generated; 0: one */
    /* What came with weights: classes, columns and statistics as in training. NULL: found in the files. Copied. */
    const data_encoding *encoding;
} data_options;

/* Another file in the place of the settings' files, all of whose samples are read. A name that ends in .jsonl is a file of JSON lines;
 * any other has the type of the settings. The texts are not copied. REMAT_INVALID: the settings have no type for it. */
remat_status data_replace_files(remat_context *context, const char *data_path, const char *labels_path,
                                dataset_settings *settings);

typedef enum data_part { DATA_TRAINING, DATA_VALIDATION } data_part;

typedef struct data_source data_source;

/* Opens all files and checks shapes, numbers of samples and every id. The texts of the settings are not kept.
 * REMAT_IO, REMAT_BAD_INPUT for files; REMAT_INVALID for settings; REMAT_NO_MEMORY. */
remat_status data_source_open(remat_context *context, const data_options *options, data_source **source);
void data_source_close(data_source *source); /* NULL is fine */

/* Samples of a part; 0 of validation where there is none. */
uint64_t data_source_samples(const data_source *source, data_part part);

/* How the files become numbers; to be saved with the weights. It belongs to the source. */
const data_encoding *data_source_encoding(const data_source *source);

/* The number, from 1, of a sample's row in its file, where samples are rows; otherwise the number of the sample from 1. */
uint64_t data_source_row(const data_source *source, data_part part, uint64_t sample);

/* The path of a sample's file, where every sample has its own; otherwise NULL. */
const char *data_source_file(const data_source *source, data_part part, uint64_t sample);

/* Reads the samples at `position` .. position+batch-1 of the order of an epoch. inputs[i] and labels get `batch`
 * samples one after the other; labels may be NULL. REMAT_IO, and REMAT_BAD_INPUT for ids that changed since the source
 * was opened. */
remat_status data_source_fill(data_source *source, data_part part, uint64_t epoch, uint64_t position, uint64_t batch,
                              void *const *inputs, void *labels);

/* The same for samples by their numbers, 0 .. samples of the part - 1. */
remat_status data_source_fill_list(data_source *source, data_part part, const uint64_t *samples, uint64_t count,
                                   void *const *inputs, void *labels);

#endif
