/* The interface of all kinds of data: a set returns one sample at a time, by its number. data.c makes parts, orders and
 * batches from sets. Each kind is one file with one function that opens it. */
#ifndef REMAT_DATA_DATA_SET_H
#define REMAT_DATA_DATA_SET_H

#include "base/error.h"
#include "data/data.h"
#include "data/data_encoding.h"

enum { DATA_HELD_BYTES = 1 << 20 }; /* files up to this size are held in memory */

/* A sample's place in the training. Whatever is drawn for it depends on this and on the seed alone, so that a resumed
 * training draws the same. */
typedef struct data_draw {
    uint64_t seed, epoch, position; /* the position in the order of the epoch */
    uint64_t training;              /* samples of the training part */
} data_draw;

typedef struct data_set data_set;
typedef struct data_split data_split;
struct data_set {
    remat_context *context;
    const data_needs *needs; /* of the source */
    uint64_t samples;
    remat_status (*read)(data_set *set, uint64_t sample, void *const *inputs, void *labels);
    void (*close)(data_set *set);
    bool shared;        /* several threads may read at once, and reading never fails */
    bool in_file_order; /* the last samples are for validation unless the settings say otherwise */
    /* These may be NULL. Reads a sample for training, with what is drawn for it: the place of a window of text, say. */
    remat_status (*read_drawn)(data_set *set, uint64_t sample, const data_draw *draw, void *const *inputs,
                               void *labels);
    /* The class of a sample, where it has one label. */
    remat_status (*read_class)(data_set *set, uint64_t sample, int32_t *id);
    /* Finds the statistics of the training samples, and reads the values anew with them. */
    remat_status (*fit)(data_set *set, const data_split *split);
    /* The number from 1 of a sample's row in its file; NULL: it is the sample's number + 1. */
    uint64_t (*row)(const data_set *set, uint64_t sample);
    /* The file of a sample, where each has its own. */
    const char *(*file)(const data_set *set, uint64_t sample);
};

/* What a set is opened from. */
typedef struct data_request {
    remat_context *context;
    const data_needs *needs;
    const dataset_settings *settings;
    const char *folder, *inputs, *labels;
    uint64_t seed, samples;
    const data_generator *generator;
    data_encoding *encoding; /* of the source: the set reads with it, or fills it in */
    bool encoding_is_given;  /* it came with weights, or from the training files */
} data_request;

/* One function opens each kind. The set keeps the settings' texts only until data_source_open returns. */
remat_status data_npy_open(const data_request *request, data_set **set);
remat_status data_images_open(const data_request *request, data_set **set);
remat_status data_csv_open(const data_request *request, data_set **set);
remat_status data_text_open(const data_request *request, data_set **set);
remat_status data_jsonl_open(const data_request *request, data_set **set);
remat_status data_random_open(const data_request *request, data_set **set);
remat_status data_generator_open(const data_request *request, data_set **set);

/* Bytes of a value. */
static inline size_t data_value_bytes(const data_field *field)
{
    return (size_t)dtype_bytes(field->dtype, 1);
}

/* Whether it holds whole numbers: tokens or classes. */
static inline bool data_field_is_integer(const data_field *field)
{
    return field->dtype == REMAT_INT32;
}

static inline bool data_id_is_good(const data_field *field, int64_t id)
{
    return id >= 0 ? field->bound == 0 || (uint64_t)id < field->bound : field->skips || field->bound == 0;
}

/* The first id that is not allowed; `count` where all are. */
size_t data_first_bad_id(const data_field *field, const int32_t *ids, size_t count);

/* REMAT_BAD_INPUT for an id that is not allowed: "... holds the number 300; it must be from 0 to 255". `what` says
 * what holds it. */
remat_status data_fail_id(remat_context *context, const remat_place *place, const data_field *field, const char *what,
                          int64_t id);

/* Paths in a list separated by commas; blanks around each are dropped. Relative paths start in `folder` (NULL: the
 * current folder). */
size_t data_path_count(const char *list);
/* The path at `position`; NULL if there is no memory. Release it with remat_text_release. */
char *data_path_at(remat_context *context, const char *folder, const char *list, size_t position);

/* All paths of a list (data_paths.c). One with * ? or [ stands for the regular files that match it, in alphabetical order.
 * The caller ends the list. REMAT_IO where no file matches, REMAT_NO_MEMORY. */
remat_status data_paths_find(remat_context *context, const char *folder, const char *list, name_list *paths);

#endif
