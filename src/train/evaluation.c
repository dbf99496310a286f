/* Metrics of trained weights: runs the samples, and compares what comes out with the labels. */
#include "train/evaluation_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "data/data_needs.h"
#include "layers/cross_entropy.h"
#include "train/predictor_object.h"

#include <math.h>
#include <string.h>

/* ---- classes ---- */

static void add_row(remat_evaluation *evaluation, const float *logits, int32_t label)
{
    uint64_t classes = evaluation->classes, best = 0, larger = 0;
    double most = (double)logits[0], sum = 0;
    if (label < 0 || (uint64_t)label >= classes)
        return;
    for (uint64_t c = 1; c < classes; c++)
        if (logits[c] > logits[best])
            best = c;
    most = (double)logits[best];
    for (uint64_t c = 0; c < classes; c++) {
        sum += exp((double)logits[c] - most);
        larger += logits[c] > logits[label] || (logits[c] == logits[label] && c < (uint64_t)label);
    }
    evaluation->rows++;
    evaluation->surprise += log(sum) - ((double)logits[label] - most);
    evaluation->correct += best == (uint64_t)label;
    evaluation->among_five += larger < 5;
    evaluation->counts[label].rows++;
    evaluation->counts[best].predicted++;
    evaluation->counts[label].correct += best == (uint64_t)label;
    if (evaluation->confusion)
        evaluation->confusion[(uint64_t)label * classes + best]++;
}

static remat_status begin_classes(remat_evaluation *evaluation, uint64_t classes)
{
    evaluation->classes = classes;
    evaluation->counts = remat_alloc_zeroed(evaluation->context, classes, sizeof *evaluation->counts);
    if (!evaluation->counts)
        return REMAT_NO_MEMORY;
    if (classes > EVALUATION_MOST_CONFUSED)
        return REMAT_OK;
    evaluation->confusion = remat_alloc_zeroed(evaluation->context, classes * classes, sizeof *evaluation->confusion);
    return evaluation->confusion ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- numbers ---- */

/* `number` counts samples from 1. */
static void add_values(remat_evaluation *evaluation, uint64_t number, const float *values, const float *labels)
{
    for (uint64_t i = 0; i < evaluation->value_count; i++) {
        value_sums *sums = &evaluation->values[i];
        double error = (double)values[i] - (double)labels[i], before = (double)labels[i] - sums->mean;
        evaluation->absolute += fabs(error);
        sums->errors += error * error;
        sums->mean += before / (double)number;
        sums->squares += before * ((double)labels[i] - sums->mean);
    }
}

static remat_status begin_values(remat_evaluation *evaluation, uint64_t count)
{
    evaluation->value_count = count;
    evaluation->values = remat_alloc_zeroed(evaluation->context, count, sizeof *evaluation->values);
    return evaluation->values ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- yes or no ---- */

static void add_targets(remat_evaluation *evaluation, const float *logits, const float *labels)
{
    for (uint64_t i = 0; i < evaluation->target_count; i++) {
        target_counts *counts = &evaluation->targets[i];
        const bool predicted = logits[i] > 0, positive = labels[i] >= 0.5f;
        counts->predicted += predicted;
        counts->positives += positive;
        counts->correct += predicted && positive;
        counts->right += predicted == positive;
    }
}

static remat_status begin_targets(remat_evaluation *evaluation, uint64_t count)
{
    evaluation->target_count = count;
    evaluation->targets = remat_alloc_zeroed(evaluation->context, count, sizeof *evaluation->targets);
    return evaluation->targets ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- batches ---- */

/* Where the samples come from: all of a file, or those for validation. */
static data_part part_of(const remat_predictor *predictor)
{
    return predictor->options.data_path ? DATA_TRAINING : DATA_VALIDATION;
}

/* Whether the loss is a mean over the labels that are not negative. */
static bool counts_labels(const remat_predictor *predictor)
{
    const remat_network *network = predictor->network;
    return cross_entropy_counts_labels(&network->layers[network->layer_count - 1].node);
}

static uint32_t filled_labels(const remat_predictor *predictor, const char *labels)
{
    const remat_network *network = predictor->network;
    return counts_labels(predictor)
               ? labels_count((const int32_t *)(const void *)labels, network->batch * layer_values(network->labels))
               : 0;
}

/* Runs the samples from `first` on. `labels` has room for those of a batch: the network may write over its own. */
static remat_status run_batch(remat_predictor *predictor, uint64_t first, char *labels, remat_prediction *prediction)
{
    const data_needs needs = network_data_needs(predictor->network);
    const uint64_t batch = predictor->network->batch,
                   label_bytes = dtype_bytes(needs.labels.dtype, needs.labels.values);
    staging_aim(&predictor->staged, predictor->executor);
    for (uint64_t i = 0; i < batch; i++) {
        const uint64_t sample = first + i;
        void *to[LAYER_MAX_INPUTS];
        for (size_t n = 0; n < needs.input_count; n++)
            to[n] =
                (char *)predictor->staged.inputs[n] + i * dtype_bytes(needs.inputs[n].dtype, needs.inputs[n].values);
        REMAT_TRY(data_source_fill_list(predictor->data, part_of(predictor), &sample, 1, to, labels + i * label_bytes));
    }
    memcpy(predictor->staged.labels, labels, batch * label_bytes);
    predictor->host_block = (step_block){.scale = 1, .labels = filled_labels(predictor, labels)};
    REMAT_TRY(backend_copy_in(predictor->queue, predictor->block.at, &predictor->host_block, sizeof(step_block)));
    REMAT_TRY(predictor_run(predictor, prediction));
    REMAT_TRY(backend_copy_out(predictor->queue, &predictor->host_block, predictor->block.at, sizeof(step_block)));
    return backend_wait(predictor->queue);
}

static void add_batch(remat_evaluation *evaluation, const remat_prediction *prediction, const char *labels)
{
    uint64_t values = prediction->shape[0] * prediction->shape[1] * prediction->shape[2];
    if (evaluation->classes) {
        const uint64_t rows = prediction->batch * (values / evaluation->classes);
        for (uint64_t r = 0; r < rows; r++)
            add_row(evaluation, prediction->values + r * evaluation->classes,
                    ((const int32_t *)(const void *)labels)[r]);
        return;
    }
    const float *numbers = (const float *)(const void *)labels;
    for (uint64_t i = 0; i < prediction->batch && evaluation->targets; i++)
        add_targets(evaluation, prediction->values + i * values, numbers + i * values);
    for (uint64_t i = 0; i < prediction->batch && evaluation->values; i++)
        add_values(evaluation, evaluation->samples + i + 1, prediction->values + i * values, numbers + i * values);
}

/* What was predicted and the labels must have the same form. */
static remat_status begin(remat_evaluation *evaluation, const remat_predictor *predictor)
{
    const data_needs needs = network_data_needs(predictor->network);
    uint32_t layer = 0;
    executor_result(predictor->executor, 0, &layer);
    const layer_shape output = predictor->network->layers[layer].node.output;
    REMAT_TRY(data_encoding_copy(data_source_encoding(predictor->data), &evaluation->encoding));
    if (predictor->network->labels_dtype == REMAT_INT32 && needs.labels.bound == output.w)
        return begin_classes(evaluation, output.w);
    if (needs.labels.values != layer_values(output))
        return REMAT_OK; /* only the loss */
    return network_has_yes_or_no(predictor->network) ? begin_targets(evaluation, needs.labels.values)
                                                     : begin_values(evaluation, needs.labels.values);
}

/* Runs whole batches of the samples from `first` on. */
static remat_status run_batches(remat_evaluation *evaluation, remat_predictor *predictor, uint64_t batches)
{
    const data_needs needs = network_data_needs(predictor->network);
    const uint64_t batch = predictor->network->batch;
    const uint64_t bytes = batch * dtype_bytes(needs.labels.dtype, needs.labels.values);
    char *labels = remat_alloc(predictor->context, bytes, 1);
    remat_status status = labels ? REMAT_OK : REMAT_NO_MEMORY;
    for (uint64_t b = 0; b < batches && status == REMAT_OK; b++) {
        remat_prediction prediction;
        status = run_batch(predictor, evaluation->samples, labels, &prediction);
        if (status != REMAT_OK)
            break;
        const uint64_t counted = counts_labels(predictor) ? filled_labels(predictor, labels) : batch;
        evaluation->loss += predictor->host_block.loss * (double)counted;
        evaluation->losses += counted;
        if (evaluation->classes || evaluation->values || evaluation->targets)
            add_batch(evaluation, &prediction, labels);
        evaluation->samples += batch;
    }
    remat_release(predictor->context, labels, bytes, 1);
    return status;
}

/* ---- the whole ---- */

static remat_status count_samples(remat_predictor *predictor, uint64_t *samples)
{
    REMAT_TRY(predictor_open_data(predictor, part_of(predictor)));
    *samples = data_source_samples(predictor->data, part_of(predictor));
    if (*samples)
        return REMAT_OK;
    return remat_fail(predictor->context, REMAT_INVALID, NULL,
                      "there is no validation data; set validation_split or validation_inputs in [Dataset], or name a "
                      "file to evaluate");
}

/* The samples that fill no batch run in a batch of their own size. */
static remat_status run_rest(remat_evaluation *evaluation, remat_predictor *predictor, remat_model *model,
                             const char *weights_path, uint64_t rest)
{
    remat_train_options options = predictor->options;
    remat_predictor *small;
    options.batch_size = rest;
    REMAT_TRY(predictor_create(model, weights_path, &options, NETWORK_EVALUATION, &small));
    small->data = predictor->data;
    predictor->data = NULL;
    remat_status status = run_batches(evaluation, small, 1);
    remat_predictor_destroy(small);
    return status;
}

static remat_status evaluate(remat_evaluation *evaluation, remat_model *model, const char *weights_path,
                             const remat_train_options *options)
{
    remat_predictor *predictor;
    uint64_t samples = 0;
    REMAT_TRY(predictor_create(model, weights_path, options, NETWORK_EVALUATION, &predictor));
    remat_status status = count_samples(predictor, &samples);
    if (status == REMAT_OK)
        status = begin(evaluation, predictor);
    uint64_t batch = predictor->network->batch;
    if (status == REMAT_OK)
        status = run_batches(evaluation, predictor, samples / batch);
    if (status == REMAT_OK && samples % batch)
        status = run_rest(evaluation, predictor, model, weights_path, samples % batch);
    remat_predictor_destroy(predictor);
    return status;
}

remat_status remat_evaluate(remat_model *model, const char *weights_path, const remat_train_options *options,
                            remat_evaluation **evaluation)
{
    remat_context *context = model_context(model);
    *evaluation = NULL;
    remat_evaluation *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    data_encoding_begin(&made->encoding, context);
    remat_status status = evaluate(made, model, weights_path, options);
    if (status == REMAT_OK)
        *evaluation = made;
    else
        remat_evaluation_destroy(made);
    return status;
}

void remat_evaluation_destroy(remat_evaluation *evaluation)
{
    if (!evaluation)
        return;
    remat_context *context = evaluation->context;
    uint64_t classes = evaluation->classes;
    remat_release(context, evaluation->counts, classes, sizeof *evaluation->counts);
    remat_release(context, evaluation->confusion, classes * classes, sizeof *evaluation->confusion);
    remat_release(context, evaluation->values, evaluation->value_count, sizeof *evaluation->values);
    remat_release(context, evaluation->targets, evaluation->target_count, sizeof *evaluation->targets);
    data_encoding_end(&evaluation->encoding);
    remat_release(context, evaluation, 1, sizeof *evaluation);
}

/* ---- asking ---- */

static double mean_r2(const remat_evaluation *evaluation)
{
    double sum = 0;
    uint64_t varying = 0;
    for (uint64_t i = 0; i < evaluation->value_count; i++)
        if (evaluation->values[i].squares > 0) {
            sum += 1 - evaluation->values[i].errors / evaluation->values[i].squares;
            varying++;
        }
    return varying ? sum / (double)varying : NAN;
}

/* Of all targets together. */
static double right_share(const remat_evaluation *evaluation)
{
    uint64_t right = 0;
    for (uint64_t i = 0; i < evaluation->target_count; i++)
        right += evaluation->targets[i].right;
    return (double)right / ((double)evaluation->samples * (double)evaluation->target_count);
}

void remat_evaluation_get_figures_sized(const remat_evaluation *evaluation, remat_evaluation_figures *figures,
                                        size_t figures_size)
{
    const remat_evaluation *e = evaluation;
    double rows = e->rows ? (double)e->rows : NAN, samples = (double)e->samples;
    const remat_evaluation_figures found = {
        .samples = e->samples,
        .rows = e->classes ? e->rows : e->samples,
        .classes = e->classes,
        .loss = e->losses ? e->loss / (double)e->losses : NAN,
        .accuracy = e->classes   ? (double)e->correct / rows
                    : e->targets ? right_share(e)
                                 : NAN,
        .top5 = e->classes > 5 ? (double)e->among_five / rows : NAN,
        .perplexity = e->classes ? exp(e->surprise / rows) : NAN,
        .mean_absolute_error = e->values ? e->absolute / (samples * (double)e->value_count) : NAN,
        .r2 = mean_r2(e),
        .targets = e->target_count,
    };
    remat_struct_give(figures, figures_size, &found, sizeof found);
}

remat_status remat_evaluation_get_class_sized(const remat_evaluation *evaluation, uint64_t position,
                                              remat_class_figures *figures, size_t figures_size)
{
    if (position >= evaluation->classes)
        return remat_fail(evaluation->context, REMAT_INVALID, NULL, "class %llu of %llu", (unsigned long long)position,
                          (unsigned long long)evaluation->classes);
    const class_counts *counts = &evaluation->counts[position];
    const name_list *names = &evaluation->encoding.classes;
    const remat_class_figures found = {
        .name = position < names->count ? names->names[position] : NULL,
        .rows = counts->rows,
        .predicted = counts->predicted,
        .correct = counts->correct,
        .precision = counts->predicted ? (double)counts->correct / (double)counts->predicted : NAN,
        .recall = counts->rows ? (double)counts->correct / (double)counts->rows : NAN,
    };
    remat_struct_give(figures, figures_size, &found, sizeof found);
    return REMAT_OK;
}

uint64_t remat_evaluation_confusion(const remat_evaluation *evaluation, uint64_t label, uint64_t predicted)
{
    uint64_t classes = evaluation->classes;
    bool there = evaluation->confusion && label < classes && predicted < classes;
    return there ? evaluation->confusion[label * classes + predicted] : 0;
}

remat_status remat_evaluation_get_target_sized(const remat_evaluation *evaluation, uint64_t position,
                                               remat_target_figures *figures, size_t figures_size)
{
    if (position >= evaluation->target_count)
        return remat_fail(evaluation->context, REMAT_INVALID, NULL, "target %llu of %llu", (unsigned long long)position,
                          (unsigned long long)evaluation->target_count);
    const target_counts *counts = &evaluation->targets[position];
    const name_list *names = &evaluation->encoding.targets;
    const double correct = (double)counts->correct;
    const uint64_t both = counts->predicted + counts->positives;
    const remat_target_figures found = {
        .name = position < names->count ? names->names[position] : NULL,
        .rows = evaluation->samples,
        .positives = counts->positives,
        .predicted = counts->predicted,
        .correct = counts->correct,
        .accuracy = (double)counts->right / (double)evaluation->samples,
        .precision = counts->predicted ? correct / (double)counts->predicted : NAN,
        .recall = counts->positives ? correct / (double)counts->positives : NAN,
        .f1 = both ? 2 * correct / (double)both : NAN,
    };
    remat_struct_give(figures, figures_size, &found, sizeof found);
    return REMAT_OK;
}
