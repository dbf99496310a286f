#include "data/data_split.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "data/data_augment.h"
#include "data/permutation.h"

#include <math.h>
#include <string.h>

struct data_source {
    remat_context *context;
    data_needs needs;
    bool shuffle;
    uint64_t seed;
    data_set *sets[2];  /* of training, and of validation where it has its own files */
    data_split split;   /* of the first */
    uint64_t counts[2]; /* samples of training and of validation */
    data_encoding encoding;
    data_augment augment;
    permutation order; /* of the epoch asked for last */
    uint64_t epoch;
    int threads;
};

/* ---- opening ---- */

static remat_status open_set(const data_options *options, data_request *request, data_set **set)
{
    if (options->generator)
        return data_generator_open(request, set);
    switch (options->settings->type) {
    case DATASET_NPY: return data_npy_open(request, set);
    case DATASET_CSV: return data_csv_open(request, set);
    case DATASET_IMAGES: return data_images_open(request, set);
    case DATASET_TEXT: return data_text_open(request, set);
    case DATASET_JSONL: return data_jsonl_open(request, set);
    case DATASET_RANDOM: return data_random_open(request, set);
    default: break;
    }
    return remat_fail(
        request->context, REMAT_INVALID, NULL,
        "the model has no data; give a [Dataset] with type npy, images, csv, text, jsonl or random, or a generator");
}

static remat_status check_settings(remat_context *context, const data_options *options)
{
    const dataset_settings *settings = options->settings;
    remat_place place = REMAT_PLACE_NOWHERE;
    if (options->needs.input_count > LAYER_MAX_INPUTS)
        return remat_fail(context, REMAT_INVALID, NULL, "a network has at most %d inputs", LAYER_MAX_INPUTS);
    place.field = "validation_split";
    if (!(settings->validation_split >= 0 && settings->validation_split < 1))
        return remat_fail(context, REMAT_INVALID, &place, "%g is not allowed; it must be from 0 to below 1",
                          settings->validation_split);
    if (options->generator)
        return REMAT_OK;
    if (settings->validation_inputs && settings->validation_split > 0)
        return remat_fail(context, REMAT_INVALID, &place, "validation has its own files already; give one of the two");
    place.field = "validation_inputs";
    bool has_files = settings->type != DATASET_NONE && settings->type != DATASET_RANDOM;
    if (settings->validation_inputs && !has_files)
        return remat_fail(context, REMAT_INVALID, &place,
                          "only npy, images, csv, text and jsonl have files; use validation_split");
    return REMAT_OK;
}

/* The seed of the split is saved with the weights, so that no training sample is validated on later. */
static remat_status make_split(data_source *source, const data_options *options)
{
    const dataset_settings *settings = options->settings;
    data_encoding *encoding = &source->encoding;
    bool own_files = settings->validation_inputs && !options->generator;
    uint64_t seed = encoding->has_split_seed ? encoding->split_seed : options->seed;
    REMAT_TRY(data_split_make(source->sets[DATA_TRAINING], own_files ? 0 : settings->validation_split,
                              options->generator ? SPLIT_LAST : settings->split, seed, &source->split));
    if (source->split.order) {
        encoding->has_split_seed = true;
        encoding->split_seed = seed;
    }
    return REMAT_OK;
}

static remat_status open_sets(data_source *source, const data_options *options)
{
    const dataset_settings *settings = options->settings;
    data_request request = {
        .context = source->context,
        .needs = &source->needs,
        .settings = settings,
        .folder = settings->is_here ? NULL : settings->folder,
        .inputs = settings->inputs,
        .labels = settings->labels,
        .seed = options->seed,
        .samples = settings->samples,
        .generator = options->generator,
        .encoding = &source->encoding,
        .encoding_is_given = options->encoding != NULL,
    };
    REMAT_TRY(open_set(options, &request, &source->sets[DATA_TRAINING]));
    data_set *training = source->sets[DATA_TRAINING], *validation = training;
    REMAT_TRY(make_split(source, options));
    if (training->fit)
        REMAT_TRY(training->fit(training, &source->split));
    source->counts[DATA_TRAINING] = source->split.training;
    source->counts[DATA_VALIDATION] = source->split.samples - source->split.training;
    if (settings->validation_inputs && !options->generator) {
        request.inputs = settings->validation_inputs;
        /* In a CSV file this is a number of columns, which both files have. */
        request.labels = settings->validation_labels || settings->type != DATASET_CSV ? settings->validation_labels
                                                                                      : settings->labels;
        request.encoding_is_given = true;
        REMAT_TRY(open_set(options, &request, &source->sets[DATA_VALIDATION]));
        validation = source->sets[DATA_VALIDATION];
        source->counts[DATA_VALIDATION] = validation->samples;
    }
    if (source->counts[DATA_VALIDATION] == 0)
        return REMAT_OK;
    return data_split_warn(training, validation, &source->split, &source->encoding.classes);
}

static remat_status check_counts(const data_source *source, const data_options *options)
{
    const dataset_settings *settings = options->settings;
    unsigned long long batch = options->batch, samples = source->counts[DATA_TRAINING],
                       last = source->counts[DATA_VALIDATION];
    if (samples < batch)
        return remat_fail(source->context, REMAT_INVALID, NULL,
                          "%llu samples to train on are fewer than the batch_size of %llu; lower batch_size to %llu or "
                          "give more data",
                          samples, batch, samples ? samples : 1);
    bool own_files = settings->validation_inputs && !options->generator;
    bool validates = own_files || settings->validation_split > 0;
    if (validates && last < batch)
        return remat_fail(source->context, REMAT_INVALID, NULL,
                          "%llu samples for validation are fewer than the batch_size of %llu; %s, or lower batch_size",
                          last, batch, own_files ? "give more" : "raise validation_split");
    return REMAT_OK;
}

remat_status data_source_open(remat_context *context, const data_options *options, data_source **source)
{
    *source = NULL;
    REMAT_TRY(check_settings(context, options));
    data_source *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->needs = options->needs;
    made->shuffle = options->settings->shuffle;
    made->seed = options->seed;
    made->threads = options->threads;
    data_encoding_begin(&made->encoding, context);
    data_augment_begin(&made->augment, options->generator ? NULL : options->settings, &made->needs);
    remat_status status = options->encoding ? data_encoding_copy(options->encoding, &made->encoding) : REMAT_OK;
    if (status == REMAT_OK)
        status = open_sets(made, options);
    if (status == REMAT_OK)
        status = check_counts(made, options);
    if (status == REMAT_OK)
        status = data_augment_allocate(&made->augment, context);
    if (status != REMAT_OK) {
        data_source_close(made);
        return status;
    }
    made->order = permutation_make(made->counts[DATA_TRAINING], made->seed, 0);
    *source = made;
    return REMAT_OK;
}

void data_source_close(data_source *source)
{
    if (!source)
        return;
    for (int part = 0; part < 2; part++)
        if (source->sets[part])
            source->sets[part]->close(source->sets[part]);
    data_split_end(&source->split, source->context);
    data_encoding_end(&source->encoding);
    data_augment_end(&source->augment, source->context);
    remat_release(source->context, source, 1, sizeof *source);
}

uint64_t data_source_samples(const data_source *source, data_part part)
{
    return source->counts[part];
}

const data_encoding *data_source_encoding(const data_source *source)
{
    return &source->encoding;
}

/* ---- batches ---- */

/* The set of a sample of a part, whose number becomes that in the set. */
static data_set *find_sample(const data_source *source, data_part part, uint64_t *sample)
{
    if (part == DATA_VALIDATION && source->sets[DATA_VALIDATION])
        return source->sets[DATA_VALIDATION];
    *sample = data_split_sample(&source->split, part, *sample);
    return source->sets[DATA_TRAINING];
}

uint64_t data_source_row(const data_source *source, data_part part, uint64_t sample)
{
    const data_set *set = find_sample(source, part, &sample);
    return set->row ? set->row(set, sample) : sample + 1;
}

const char *data_source_file(const data_source *source, data_part part, uint64_t sample)
{
    const data_set *set = find_sample(source, part, &sample);
    return set->file ? set->file(set, sample) : NULL;
}

/* Sample `sample` of a part goes to place `slot` of the batch. `draw` is NULL where nothing is drawn. */
static remat_status fill_slot(data_source *source, data_part part, uint64_t sample, uint64_t slot,
                              const data_draw *draw, void *const *inputs, void *labels)
{
    const data_needs *needs = &source->needs;
    if (sample >= source->counts[part])
        return remat_fail(source->context, REMAT_INVALID, NULL, "sample %llu of %llu", (unsigned long long)sample,
                          (unsigned long long)source->counts[part]);
    void *to[LAYER_MAX_INPUTS], *labels_to = NULL;
    for (size_t i = 0; i < needs->input_count; i++)
        to[i] = (char *)inputs[i] + slot * needs->inputs[i].values * data_value_bytes(&needs->inputs[i]);
    if (labels)
        labels_to = (char *)labels + slot * needs->labels.values * data_value_bytes(&needs->labels);
    data_set *set = find_sample(source, part, &sample);
    if (draw && set->read_drawn)
        return set->read_drawn(set, sample, draw, to, labels_to);
    REMAT_TRY(set->read(set, sample, to, labels_to));
    if (draw && source->augment.is_on)
        data_augment_sample(&source->augment, needs, draw, to);
    return REMAT_OK;
}

typedef struct fill_loop {
    data_source *source;
    data_part part;
    bool shuffled;
    uint64_t epoch, position;
    void *const *inputs;
    void *labels;
} fill_loop;

static uint64_t sample_at(const fill_loop *loop, uint64_t i)
{
    uint64_t place = loop->position + i;
    return loop->shuffled ? permutation_at(&loop->source->order, place) : place;
}

static remat_status fill_one(const fill_loop *loop, uint64_t i)
{
    data_source *source = loop->source;
    const data_draw draw = {source->seed, loop->epoch, loop->position + i, source->counts[DATA_TRAINING]};
    return fill_slot(source, loop->part, sample_at(loop, i), i, loop->part == DATA_TRAINING ? &draw : NULL,
                     loop->inputs, loop->labels);
}

/* Cannot fail: the range was checked, and the set can be read by several threads at once. */
static void fill_slots(const void *args, parallel_range range)
{
    const fill_loop *loop = args;
    for (size_t i = range.begin; i < range.end; i++)
        fill_one(loop, i);
}

remat_status data_source_fill(data_source *source, data_part part, uint64_t epoch, uint64_t position, uint64_t batch,
                              void *const *inputs, void *labels)
{
    uint64_t count = source->counts[part];
    if (batch > count || position > count - batch)
        return remat_fail(source->context, REMAT_INVALID, NULL, "samples %llu to %llu of an epoch of %llu",
                          (unsigned long long)position, (unsigned long long)(position + batch),
                          (unsigned long long)count);
    bool shuffled = source->shuffle && part == DATA_TRAINING;
    if (shuffled && epoch != source->epoch) {
        source->order = permutation_make(count, source->seed, epoch);
        source->epoch = epoch;
    }
    const fill_loop loop = {source, part, shuffled, epoch, position, inputs, labels};
    if (source->sets[DATA_TRAINING]->shared && source->threads > 1) {
        parallel_static(source->threads, batch, fill_slots, &loop);
        return REMAT_OK;
    }
    for (uint64_t i = 0; i < batch; i++)
        REMAT_TRY(fill_one(&loop, i));
    return REMAT_OK;
}

remat_status data_source_fill_list(data_source *source, data_part part, const uint64_t *samples, uint64_t count,
                                   void *const *inputs, void *labels)
{
    for (uint64_t i = 0; i < count; i++)
        REMAT_TRY(fill_slot(source, part, samples[i], i, NULL, inputs, labels));
    return REMAT_OK;
}
