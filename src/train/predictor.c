/* A model that only runs forward: its own weights, its own arena, no gradients. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "data/data_needs.h"
#include "data/data_set.h"
#include "train/predictor_object.h"
#include "train/trainer_files.h"

static remat_status allocate(remat_predictor *predictor)
{
    backend *device = predictor->device;
    REMAT_TRY(backend_queue_create(device, &predictor->queue));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, predictor->plan.arena_bytes, false, &predictor->arena));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, sizeof(step_block), true, &predictor->block));
    return staging_create(predictor->network, device, (staging_options){.buffers = 1}, &predictor->staged);
}

static remat_status load_weights(remat_predictor *predictor, const char *path)
{
    weight_names *names = NULL;
    if (predictor->options.names_path)
        REMAT_TRY(weight_names_load(predictor->context, predictor->options.names_path, &names));
    remat_status status = held_weights_load(predictor->queue, predictor->model, predictor->network, names, path, false,
                                            &predictor->weights);
    weight_names_destroy(names);
    return status == REMAT_OK
               ? weights_read_encoding(path, predictor->weights.file, &predictor->encoding, &predictor->has_encoding)
               : status;
}

/* Texts of the options belong to the caller. */
static remat_status keep_text(remat_context *context, const char **text, char **kept)
{
    if (!*text)
        return REMAT_OK;
    *text = *kept = remat_text_copy(context, *text);
    return *kept ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status create(remat_predictor *predictor, const char *weights_path, const remat_train_options *options,
                           network_purpose purpose)
{
    remat_context *context = predictor->context;
    remat_train_options_init(&predictor->options);
    REMAT_TRY(remat_options_copy(context, &predictor->options, sizeof predictor->options, options,
                                 "remat_train_options_init"));
    REMAT_TRY(keep_text(context, &predictor->options.data_path, &predictor->data_path));
    REMAT_TRY(keep_text(context, &predictor->options.labels_path, &predictor->labels_path));
    uint64_t batch = predictor->options.batch_size;
    if (batch == 0)
        batch = model_get_settings(predictor->model)->batch_size;
    const backend_options device = {.device = predictor->options.device,
                                    .kernels = predictor->options.kernels,
                                    .threads = predictor->options.threads};
    REMAT_TRY(backend_open(context, &device, &predictor->device));
    const network_options wanted = {
        .batch = batch, .purpose = purpose, .dtype = REMAT_FP32, .device = predictor->device};
    REMAT_TRY(network_get(predictor->model, &wanted, &predictor->network));
    REMAT_TRY(program_build(predictor->network, PROGRAM_FORWARD_ONLY, &predictor->program));
    graph_sequence sequence = {0};
    REMAT_TRY(graph_sequence_plain(predictor->program->graph, &sequence));
    REMAT_TRY(graph_place(predictor->program->graph, &sequence, &predictor->plan));
    REMAT_TRY(allocate(predictor));
    REMAT_TRY(load_weights(predictor, weights_path));
    const executor_options run = {
        .program = predictor->program,
        .sequence = &predictor->plan.sequence,
        .liveness = &predictor->plan.liveness,
        .memory = {.arena = predictor->arena.at,
                   .arena_bytes = predictor->arena.bytes,
                   .offsets = predictor->plan.offsets,
                   .step = predictor->block.at},
        .weights = {.find = held_weights_find, .user = &predictor->weights},
        .device = predictor->device,
        .loss_share = 1,
    };
    REMAT_TRY(executor_create(context, &run, &predictor->executor));
    staging_aim(&predictor->staged, predictor->executor);
    return REMAT_OK;
}

remat_status predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                              network_purpose purpose, remat_predictor **predictor)
{
    *predictor = NULL;
    remat_context *context = model_context(model);
    remat_predictor *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->model = model;
    data_encoding_begin(&made->encoding, context);
    remat_status status = create(made, weights_path, options, purpose);
    if (status != REMAT_OK) {
        remat_predictor_destroy(made);
        return status;
    }
    *predictor = made;
    return REMAT_OK;
}

remat_status remat_predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                                    remat_predictor **predictor)
{
    return predictor_create(model, weights_path, options, NETWORK_INFERENCE, predictor);
}

void remat_predictor_destroy(remat_predictor *predictor)
{
    if (!predictor)
        return;
    remat_context *context = predictor->context;
    if (predictor->result.host)
        host_view_close(&predictor->result, false);
    if (predictor->queue)
        backend_wait(predictor->queue);
    executor_destroy(predictor->executor);
    backend_queue_destroy(predictor->queue);
    data_source_close(predictor->data);
    data_encoding_end(&predictor->encoding);
    remat_text_release(context, predictor->data_path);
    remat_text_release(context, predictor->labels_path);
    placed_graph_release(&predictor->plan);
    program_destroy(predictor->program);
    held_weights_release(&predictor->weights);
    if (predictor->device) {
        backend_release(predictor->device, &predictor->arena);
        backend_release(predictor->device, &predictor->block);
    }
    staging_release(&predictor->staged, predictor->device);
    network_destroy(predictor->network);
    backend_close(predictor->device);
    remat_release(context, predictor, 1, sizeof *predictor);
}

/* ---- running ---- */

remat_status predictor_run(remat_predictor *predictor, remat_prediction *prediction)
{
    uint32_t layer = 0;
    const tensor_ref values = executor_result(predictor->executor, 0, &layer);
    const layer_node *node = &predictor->network->layers[layer].node;
    uint64_t bytes = dtype_bytes(values.type, layer_values(node->output) * node->batch);
    if (predictor->result.host)
        REMAT_TRY(host_view_close(&predictor->result, false));
    REMAT_TRY(held_weights_check(&predictor->weights));
    REMAT_TRY(staging_send(&predictor->staged, predictor->executor, predictor->queue));
    REMAT_TRY(executor_run(predictor->executor, predictor->queue));
    REMAT_TRY(host_view_open(predictor->queue, values.at, bytes, true, &predictor->result));
    *prediction = (remat_prediction){.layer = node->name,
                                     .batch = node->batch,
                                     .shape = {node->output.c, node->output.h, node->output.w},
                                     .values = predictor->result.host};
    return REMAT_OK;
}

/* Numbers of tokens come from outside: one that is too large would be read from behind the table. */
static remat_status check_tokens(const remat_predictor *predictor, const void *const *inputs)
{
    data_needs needs = network_data_needs(predictor->network);
    for (size_t i = 0; i < needs.input_count; i++) {
        const data_field *field = &needs.inputs[i];
        size_t count = (size_t)(field->values * predictor->network->batch);
        size_t bad = data_field_is_integer(field) ? data_first_bad_id(field, inputs[i], count) : count;
        char what[64];
        snprintf(what, sizeof what, "value %zu of input %zu", bad, i);
        if (bad < count)
            return data_fail_id(predictor->context, NULL, field, what, ((const int32_t *)inputs[i])[bad]);
    }
    return REMAT_OK;
}

remat_status remat_predictor_run_sized(remat_predictor *predictor, const void *const *inputs,
                                       remat_prediction *prediction, size_t prediction_size)
{
    size_t next = 0;
    REMAT_TRY(check_tokens(predictor, inputs));
    for (uint32_t n = 0; n < predictor->network->layer_count; n++) {
        const layer_node *node = &predictor->network->layers[n].node;
        if (node->input_count != 0)
            continue;
        memcpy(predictor->staged.inputs[next], inputs[next],
               dtype_bytes(node->dtype, layer_values(node->output) * node->batch));
        next++;
    }
    remat_prediction made;
    REMAT_TRY(predictor_run(predictor, &made));
    remat_struct_give(prediction, prediction_size, &made, sizeof made);
    return REMAT_OK;
}

remat_status predictor_open_data(remat_predictor *predictor, data_part part)
{
    if (predictor->data)
        return REMAT_OK;
    const remat_train_options *options = &predictor->options;
    const data_generator generator = {options->sample, options->sample_user,
                                      options->samples + options->validation_samples};
    const model_settings *settings = model_get_settings(predictor->model);
    dataset_settings dataset = *model_get_dataset(predictor->model);
    if (part == DATA_TRAINING) {
        dataset.validation_split = 0;
        dataset.validation_inputs = dataset.validation_labels = NULL;
    } else if (options->sample) {
        dataset.validation_split =
            generator.samples ? (double)options->validation_samples / (double)generator.samples : 0;
    }
    if (options->data_path)
        REMAT_TRY(data_replace_files(predictor->context, options->data_path, options->labels_path, &dataset));
    /* A batch of 0: the last one need not be whole. */
    const data_options open = {.settings = &dataset,
                               .generator = options->sample ? &generator : NULL,
                               .needs = network_data_needs(predictor->network),
                               .seed = options->seed == REMAT_DEFAULT ? settings->seed : options->seed,
                               .encoding = predictor->has_encoding ? &predictor->encoding : NULL};
    return data_source_open(predictor->context, &open, &predictor->data);
}

uint64_t remat_predictor_samples(remat_predictor *predictor)
{
    return predictor_open_data(predictor, DATA_TRAINING) == REMAT_OK
               ? data_source_samples(predictor->data, DATA_TRAINING)
               : 0;
}

remat_status remat_predictor_run_samples_sized(remat_predictor *predictor, uint64_t first, remat_prediction *prediction,
                                               size_t prediction_size)
{
    REMAT_TRY(predictor_open_data(predictor, DATA_TRAINING));
    uint64_t samples = data_source_samples(predictor->data, DATA_TRAINING), batch = predictor->network->batch;
    if (first >= samples)
        return remat_fail(predictor->context, REMAT_INVALID, NULL, "sample %llu is past the end: there are %llu",
                          (unsigned long long)first, (unsigned long long)samples);
    for (uint64_t i = 0; i < batch; i++) {
        void *inputs[LAYER_MAX_INPUTS];
        size_t next = 0;
        for (uint32_t n = 0; n < predictor->network->layer_count; n++) {
            const layer_node *node = &predictor->network->layers[n].node;
            if (node->input_count == 0) {
                inputs[next] =
                    (char *)predictor->staged.inputs[next] + i * dtype_bytes(node->dtype, layer_values(node->output));
                next++;
            }
        }
        uint64_t sample = i < samples - first ? first + i : samples - 1; /* the network runs whole batches only */
        REMAT_TRY(data_source_fill_list(predictor->data, DATA_TRAINING, &sample, 1, inputs, NULL));
    }
    remat_prediction made;
    REMAT_TRY(predictor_run(predictor, &made));
    if (made.batch > samples - first)
        made.batch = samples - first;
    remat_struct_give(prediction, prediction_size, &made, sizeof made);
    return REMAT_OK;
}

/* ---- names ---- */

uint64_t remat_predictor_row(remat_predictor *predictor, uint64_t sample)
{
    uint64_t samples = remat_predictor_samples(predictor);
    return sample < samples ? data_source_row(predictor->data, DATA_TRAINING, sample) : 0;
}

const char *remat_predictor_file(remat_predictor *predictor, uint64_t sample)
{
    uint64_t samples = remat_predictor_samples(predictor);
    return sample < samples ? data_source_file(predictor->data, DATA_TRAINING, sample) : NULL;
}

uint64_t remat_predictor_class_count(const remat_predictor *predictor)
{
    const remat_network *network = model_get_network(predictor->model);
    const data_needs needs = network_data_needs(network);
    return network->has_labels && network->labels_dtype == REMAT_INT32 ? needs.labels.bound : 0;
}

const char *remat_predictor_class_name(const remat_predictor *predictor, uint64_t position)
{
    const name_list *classes = &predictor->encoding.classes;
    return position < classes->count ? classes->names[position] : NULL;
}

const char *remat_predictor_target_name(const remat_predictor *predictor, uint64_t position)
{
    const name_list *targets = &predictor->encoding.targets;
    return position < targets->count ? targets->names[position] : NULL;
}

void remat_probabilities(const float *logits, uint64_t count, double *probabilities)
{
    double most = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < count; i++)
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (uint64_t i = 0; i < count; i++)
        sum += probabilities[i] = exp((double)logits[i] - most);
    for (uint64_t i = 0; i < count; i++)
        probabilities[i] /= sum;
}
