/* Loading weights, and the state of a training (trainer_file_format.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/moment_codes.h"
#include "base/weight_blocks.h"
#include "base/number_text.h"
#include "data/safetensors.h"
#include "model/model_names.h"
#include "train/host_view.h"
#include "train/optimizer.h"
#include "train/trainer_file_format.h"
#include "train/trainer_files.h"
#include "train/trainer_object.h"
#include "train/training_settings.h"
#include "train/weights_match.h"

enum { PACKED_AT_ONCE = 1 << 18 }; /* values; a multiple of WEIGHT_BLOCK */

static bool same_shape(const safetensors_tensor *tensor, const layer_parameter *about)
{
    if (tensor->rank != about->rank)
        return false;
    for (uint32_t d = 0; d < about->rank; d++)
        if (tensor->dims[d] != about->dims[d])
            return false;
    return true;
}

static void print_shape(char *text, size_t room, uint32_t rank, const uint64_t *dims)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t d = 0; d < rank && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, d ? " x %" PRIu64 : "%" PRIu64, dims[d]);
}

/* A trainer's weights do not change before everything was found to be good: they may be those of a long training. */
typedef enum load_pass {
    PASS_SHAPES,    /* whether it is there and fits */
    PASS_CHECKSUMS, /* whether its values are as they were written */
    PASS_VALUES,    /* reads them */
} load_pass;

/* A part of a parameter, or all of it. */
static remat_status read_some(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype,
                              shard_part part, host_view *view)
{
    const bool blocks = dtype_traits_of(dtype)->blocks; /* a save has them as they are */
    if (part.values != tensor->values)
        return blocks ? safetensors_read_stored_part(file, tensor, dtype, part.first, view->host, part.values)
                      : safetensors_read_part(file, tensor, part.first, view->floats, part.values);
    return blocks ? safetensors_read_stored(file, tensor, dtype, view->host, part.values)
                  : safetensors_read(file, tensor, view->floats, part.values);
}

static remat_status read_values(backend_queue *queue, const safetensors *file, const safetensors_tensor *tensor,
                                remat_dtype dtype, const weight_place *place)
{
    host_view view;
    const bool blocks = dtype_traits_of(dtype)->blocks;
    if (place->values == 0)
        return REMAT_OK;
    REMAT_TRY(blocks ? host_view_open(queue, place->at, dtype_bytes(dtype, place->values), false, &view)
                     : host_view_open_floats(queue, (tensor_ref){place->at, dtype}, place->values, false, &view));
    remat_status status = read_some(file, tensor, dtype, (shard_part){place->first, place->values}, &view);
    remat_status closed = host_view_close(&view, status == REMAT_OK);
    return status == REMAT_OK ? closed : status;
}

static remat_status load_parameter(backend_queue *queue, const char *path, const safetensors *file, const char *name,
                                   const network_parameter *parameter, load_pass pass, const weight_place *to)
{
    remat_context *context = queue->owner->context;
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, name};
    const safetensors_tensor *tensor = safetensors_find(file, name);
    if (!tensor)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "the model has this tensor and the file does not");
    if (!same_shape(tensor, &parameter->about)) {
        char wanted[100], found[200];
        print_shape(wanted, sizeof wanted, parameter->about.rank, parameter->about.dims);
        print_shape(found, sizeof found, tensor->rank, tensor->dims);
        return remat_fail(context, REMAT_BAD_INPUT, &place, "it is %s in the file and %s in the model", found, wanted);
    }
    switch (pass) {
    case PASS_SHAPES: return REMAT_OK;
    case PASS_CHECKSUMS: return safetensors_check(file, tensor);
    case PASS_VALUES: return read_values(queue, file, tensor, parameter->about.dtype, to);
    }
    return REMAT_INTERNAL;
}

static bool is_part(const weights_match *match, size_t p, const weight_place *to)
{
    return to->values != match->network->parameters[p].values;
}

/* A frozen parameter in fewer bits, or a part of a parameter: some values at a time, so that it is never there in fp32 as a whole.
 * Matrices that are stored the other way round are read at once. */
static remat_status read_parts(const weights_match *match, size_t p, const weight_place *to, char *packed)
{
    const network_parameter *parameter = &match->network->parameters[p];
    const remat_dtype dtype = parameter->about.dtype;
    const bool plain = weights_match_is_plain(match, p);
    const uint64_t room = plain ? remat_min(to->values, PACKED_AT_ONCE) : parameter->values;
    const uint64_t some = plain ? room : to->values;
    float *values = remat_alloc(match->context, room, sizeof *values);
    remat_status status = values ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK && !plain)
        status = weights_match_read(match, p, values);
    for (uint64_t first = 0; first < to->values && status == REMAT_OK; first += some) {
        const size_t count = remat_min(to->values - first, some);
        if (plain)
            status = weights_match_read_part(match, p, to->first + first, values, count);
        if (status == REMAT_OK)
            weight_blocks_pack(dtype, plain ? values : values + to->first, packed + dtype_bytes(dtype, first), count);
    }
    remat_release(match->context, values, room, sizeof *values);
    return status;
}

static remat_status read_weight(backend_queue *queue, const weights_match *match, size_t p, const weight_place *to)
{
    const remat_dtype dtype = match->network->parameters[p].about.dtype;
    const bool in_parts = is_part(match, p, to) || dtype_traits_of(dtype)->blocks;
    host_view view;
    if (is_part(match, p, to) && match->partial && !weights_match_is_plain(match, p))
        return remat_fail(match->context, REMAT_INVALID, NULL,
                          "'%.100s' is only partly in the file, and ranks share it: load it without --shard weights",
                          match->network->parameters[p].name);
    REMAT_TRY(in_parts ? host_view_open(queue, to->at, dtype_bytes(dtype, to->values), match->partial, &view)
                       : host_view_open_floats(queue, (tensor_ref){to->at, dtype}, to->values, match->partial, &view));
    remat_status status = in_parts ? read_parts(match, p, to, view.host) : weights_match_read(match, p, view.floats);
    remat_status closed = host_view_close(&view, status == REMAT_OK);
    return status != REMAT_OK ? status : closed;
}

/* Where weights go. */
typedef struct weights_target {
    backend_queue *queue;
    weight_place_fn *place;
    const void *user;
} weights_target;

/* Reads all parameters. What has no source keeps its values, so these must be there if the match is partial. */
static remat_status read_weights(const weights_target *target, const weights_match *match)
{
    for (uint32_t p = 0; p < match->network->parameter_count; p++) {
        const weight_place to = target->place(target->user, p);
        if (match->sources[p].parts[0] && to.values)
            REMAT_TRY(read_weight(target->queue, match, p, &to));
    }
    return REMAT_OK;
}

/* The weights of adapters, which are in a folder of their own, unless the file had them: it is one that we saved. */
static remat_status read_adapters(const weights_target *target, const weights_match *of_model)
{
    const remat_network *network = of_model->network;
    for (size_t p = 0; p < network->parameter_count; p++)
        if (network->parameters[p].about.adapter && of_model->sources[p].parts[0])
            return REMAT_OK;
    if (!network->adapter)
        return REMAT_OK;
    safetensors *file;
    weights_match match = {
        .context = of_model->context, .path = network->adapter, .network = network, .adapters = true};
    REMAT_TRY(safetensors_open(match.context, match.path, &file));
    match.file = file;
    remat_status status = weights_match_find(&match);
    if (status == REMAT_OK)
        status = read_weights(target, &match);
    weights_match_release(&match);
    safetensors_close(file);
    return status;
}

/* A trainer's adapters may start anew; those of a predictor must come from somewhere. */
static remat_status check_adapters(const weights_match *match)
{
    for (size_t p = 0; p < match->network->parameter_count; p++)
        if (match->network->parameters[p].about.adapter && !match->sources[p].parts[0] && !match->network->adapter)
            return remat_fail(match->context, REMAT_INVALID, NULL,
                              "'%.100s' is an adapter without weights; adapter=DIR says where they are",
                              match->network->parameters[p].name);
    return REMAT_OK;
}

remat_status weights_load(backend_queue *queue, const char *path, const safetensors *file, const remat_network *network,
                          const weight_names *names, weight_place_fn *place, const void *user)
{
    weights_match match = {
        .context = queue->owner->context, .path = path, .file = file, .network = network, .names = names};
    const weights_target target = {queue, place, user};
    remat_status status = weights_match_find(&match);
    if (status == REMAT_OK)
        status = check_adapters(&match);
    if (status == REMAT_OK)
        status = read_weights(&target, &match);
    if (status == REMAT_OK)
        status = read_adapters(&target, &match);
    weights_match_release(&match);
    return status;
}

/* Files of other programs have any version, or none. */
static remat_status check_version(remat_context *context, const char *path, const safetensors *file)
{
    const char *format = safetensors_metadata(file, "format"), *version = safetensors_metadata(file, "version");
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, "version"};
    if (!format || strcmp(format, WEIGHTS_FORMAT) != 0 || (version && strcmp(version, VERSION_OF_0_1) == 0))
        return REMAT_OK;
    if (!version || strcmp(version, VERSION_WITH_CHECKSUMS) != 0)
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "the weights have version '%.40s', and this release reads " VERSION_OF_0_1
                          " and " VERSION_WITH_CHECKSUMS "; a later release wrote the file, or it is damaged",
                          version ? version : "");
    if (!safetensors_has_checksums(file))
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "the file is damaged: weights of version %s have checksums, and this file has none", version);
    return REMAT_OK;
}

remat_status weights_open(remat_context *context, const char *path, safetensors **file)
{
    REMAT_TRY(safetensors_open(context, path, file));
    remat_status status = check_version(context, path, *file);
    if (status != REMAT_OK) {
        safetensors_close(*file);
        *file = NULL;
    }
    return status;
}

remat_status weights_read_encoding(const char *path, const safetensors *file, data_encoding *encoding, bool *found)
{
    const char *text = safetensors_metadata(file, DATASET_KEY), *format = safetensors_metadata(file, "format");
    *found = text && format && strcmp(format, WEIGHTS_FORMAT) == 0;
    return *found ? data_encoding_read(encoding, text, path) : REMAT_OK;
}

/* Opens the data as the weights were trained with it, if it is not open in this way already; otherwise *data is NULL. */
static remat_status open_encoded_data(const remat_trainer *trainer, const char *path, const safetensors *file,
                                      uint64_t seed, data_source **data)
{
    data_encoding encoding;
    char *text = NULL;
    bool found = false;
    *data = NULL;
    data_encoding_begin(&encoding, trainer->context);
    remat_status status = trainer->options.sample ? REMAT_OK : weights_read_encoding(path, file, &encoding, &found);
    if (status == REMAT_OK && found)
        status = trainer_write_encoding(trainer, &text);
    bool same = !found || (text && strcmp(text, safetensors_metadata(file, DATASET_KEY)) == 0);
    if (status == REMAT_OK && (seed != trainer->seed || !same))
        status = trainer_open_data(trainer, seed, found ? &encoding : NULL, data);
    remat_text_release(trainer->context, text);
    data_encoding_end(&encoding);
    return status;
}

static void take_data(remat_trainer *trainer, data_source *data)
{
    if (!data)
        return;
    data_source_close(trainer->data);
    trainer->data = data;
    trainer->staged.ahead = STAGING_NOTHING;
}

/* Weights change only after everything was found to be good. */
static remat_status load_match(remat_trainer *trainer, weights_match *match)
{
    data_source *data = NULL;
    REMAT_TRY(weights_match_find(match));
    REMAT_TRY(weights_match_check(match));
    for (uint32_t p = 0; p < match->network->parameter_count; p++)
        if (match->sources[p].parts[0])
            REMAT_TRY(trainer_compare_mapped(trainer, match->file, match->sources[p].parts[0], p));
    REMAT_TRY(open_encoded_data(trainer, match->path, match->file, trainer->seed, &data));
    const weights_target target = {trainer->queue, trainer_weight_place, trainer};
    remat_status status = read_weights(&target, match);
    if (status == REMAT_OK)
        status = read_adapters(&target, match);
    if (status == REMAT_OK)
        take_data(trainer, data);
    else
        data_source_close(data);
    return status;
}

static remat_status load_file(remat_trainer *trainer, const char *path, const safetensors *file)
{
    weights_match match = {.context = trainer->context,
                           .path = path,
                           .file = file,
                           .network = trainer->network,
                           .names = trainer->names,
                           .partial = trainer->options.partial_weights};
    remat_status status = load_match(trainer, &match);
    weights_match_release(&match);
    return status;
}

remat_status remat_trainer_load(remat_trainer *trainer, const char *path)
{
    safetensors *file;
    REMAT_TRY(trainer_check_started(trainer));
    REMAT_TRY(weights_open(trainer->context, path, &file));
    trainer->ranks_agree = false;
    remat_status status = load_file(trainer, path, file);
    safetensors_close(file);
    return status;
}

/* A text of the state. */
static remat_status read_text(const remat_trainer *trainer, const remat_place *place, const safetensors *file,
                              const char **text)
{
    *text = safetensors_metadata(file, place->field);
    if (*text)
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_BAD_INPUT, place,
                      "the file has no state of a training; --weights starts a new one from its weights");
}

static remat_status read_count(const remat_trainer *trainer, const char *path, const safetensors *file, const char *key,
                               uint64_t most, uint64_t *value)
{
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, key};
    const char *text;
    char *end = NULL;
    REMAT_TRY(read_text(trainer, &place, file, &text));
    errno = 0;
    if (text[0] >= '0' && text[0] <= '9')
        *value = strtoull(text, &end, 10);
    if (end && !*end && !errno && *value <= most)
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_BAD_INPUT, &place, "'%.40s' is not a whole number from 0 to %" PRIu64,
                      text, most);
}

static remat_status read_best(const remat_trainer *trainer, const char *path, const safetensors *file, const char *key,
                              double *best)
{
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, key};
    const char *text;
    char plain[40];
    REMAT_TRY(read_text(trainer, &place, file, &text));
    /* Release 0.1 wrote the decimal point of the program's locale. */
    snprintf(plain, sizeof plain, "%s", text);
    char *comma = strchr(plain, ',');
    if (comma)
        *comma = '.';
    if (strlen(text) < sizeof plain && number_parse_hex(plain, best))
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                      "'%.40s' is not a loss: 'inf', or a hexadecimal number such as 0x1.8p+1", text);
}

/* A training of another schedule has none of it, and the plateau starts anew. */
static remat_status read_plateau(const remat_trainer *trainer, const char *path, const safetensors *file,
                                 rate_plateau *plateau)
{
    *plateau = (rate_plateau){.best = INFINITY};
    if (trainer->optimizer.schedule != RATE_PLATEAU || !safetensors_metadata(file, "plateau_cuts"))
        return REMAT_OK;
    REMAT_TRY(read_best(trainer, path, file, "plateau_best", &plateau->best));
    REMAT_TRY(read_count(trainer, path, file, "plateau_stale", INT64_MAX, &plateau->stale));
    return read_count(trainer, path, file, "plateau_cuts", INT64_MAX, &plateau->cuts);
}

static bool fits_state(const safetensors_tensor *tensor, const optimizer_state *state)
{
    bool fits = tensor->rank == state->rank;
    for (uint32_t d = 0; d < state->rank && fits; d++)
        fits = tensor->dims[d] == state->dims[d];
    return fits;
}

/* Of a tensor that ranks share: the values of this rank. Those of scales are fewer than those of the parameter. */
static remat_status read_state_part(const remat_trainer *trainer, const safetensors *file,
                                    const safetensors_tensor *tensor, uint32_t parameter, unsigned number)
{
    optimizer_state states[OPTIMIZER_STATES];
    const optimizer_state *state = &states[number];
    const uint64_t first = trainer_part(trainer, parameter, REMAT_SHARD_OPTIMIZER).first;
    const uint64_t skipped = number < STATE_FIRST_SCALES ? first : first / MOMENT_BLOCK;
    const tensor_ref to = trainer_state(trainer, parameter, number);
    host_view view;
    trainer_find_own_states(trainer, parameter, trainer_row(trainer), states);
    if (!to.at)
        return REMAT_OK;
    REMAT_TRY(host_view_open(trainer->queue, to.at, state->bytes, false, &view));
    remat_status status =
        state->dtype == REMAT_FP32
            ? safetensors_read_part(file, tensor, skipped, view.host, state->values)
            : safetensors_read_stored_part(file, tensor, state->dtype, skipped, view.host, state->values);
    remat_status closed = host_view_close(&view, status == REMAT_OK);
    return status == REMAT_OK ? closed : status;
}

/* A part of the state. Floats may come from any type of floats, other values must be as they are kept. */
static remat_status read_state_values(const remat_trainer *trainer, const safetensors *file,
                                      const safetensors_tensor *tensor, const optimizer_state *state, tensor_ref to)
{
    host_view view;
    REMAT_TRY(host_view_open(trainer->queue, to.at, state->bytes, false, &view));
    remat_status status = state->dtype == REMAT_FP32
                              ? safetensors_read(file, tensor, view.host, state->values)
                              : safetensors_read_stored(file, tensor, state->dtype, view.host, state->values);
    remat_status closed = host_view_close(&view, status == REMAT_OK);
    return status == REMAT_OK ? closed : status;
}

static remat_status load_state_tensor(const remat_trainer *trainer, const char *path, const safetensors *file,
                                      uint32_t parameter, unsigned number, load_pass pass)
{
    optimizer_state states[OPTIMIZER_STATES];
    const optimizer_state *state = &states[number];
    char name[MODEL_NAME_LONGEST + 80]; /* with the parameter's own name behind the layer's */
    trainer_find_states(trainer, parameter, states);
    if (state->bytes == 0)
        return REMAT_OK;
    snprintf(name, sizeof name, "optimizer/%s/%s", state_names[number], trainer->network->parameters[parameter].name);
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, name};
    const safetensors_tensor *tensor = safetensors_find(file, name);
    if (!tensor)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place, "the model has this tensor and the file does not");
    if (!fits_state(tensor, state)) {
        char wanted[100], found[200];
        print_shape(wanted, sizeof wanted, state->rank, state->dims);
        print_shape(found, sizeof found, tensor->rank, tensor->dims);
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place, "it is %s in the file and %s in the model", found,
                          wanted);
    }
    const char *stored = dtype_traits_of(state->dtype)->safetensors;
    if (state->dtype != REMAT_FP32 && strcmp(tensor->dtype, stored) != 0)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place, "it has values of type %s; they must be %s",
                          tensor->dtype, stored);
    switch (pass) {
    case PASS_SHAPES: return REMAT_OK;
    case PASS_CHECKSUMS: return safetensors_check(file, tensor);
    case PASS_VALUES:
        return trainer_must_collect(trainer, parameter, number)
                   ? read_state_part(trainer, file, tensor, parameter, number)
                   : read_state_values(trainer, file, tensor, state, trainer_state(trainer, parameter, number));
    }
    return REMAT_INTERNAL;
}

static remat_status load_state(const remat_trainer *trainer, const char *path, const safetensors *file, load_pass pass)
{
    for (unsigned i = 0; i < OPTIMIZER_STATES; i++)
        for (uint32_t p = 0; p < trainer->network->parameter_count; p++)
            REMAT_TRY(load_state_tensor(trainer, path, file, p, i, pass));
    return REMAT_OK;
}

static remat_status load_tensors(remat_trainer *trainer, const char *path, const safetensors *file, load_pass pass)
{
    for (size_t p = 0; p < trainer->network->parameter_count; p++) {
        const network_parameter *parameter = &trainer->network->parameters[p];
        const weight_place place = trainer_weight_place(trainer, (uint32_t)p);
        REMAT_TRY(load_parameter(trainer->queue, path, file, parameter->name, parameter, pass, &place));
        if (pass == PASS_CHECKSUMS)
            REMAT_TRY(trainer_compare_mapped(trainer, file, safetensors_find(file, parameter->name), (uint32_t)p));
    }
    return load_state(trainer, path, file, pass);
}

/* Codes read as others would be wrong moments without a word. */
static remat_status check_codes(const remat_trainer *trainer, const char *path, const safetensors *file)
{
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, CODES_KEY};
    const char *codes = safetensors_metadata(file, CODES_KEY);
    if (trainer->optimizer.state != STATE_INT8 || (codes && strcmp(codes, CODES_OF_MOMENTS) == 0))
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                      "the moments in 8 bits are in codes of version %.40s, and this release reads version %s; the "
                      "weights alone can be loaded",
                      codes ? codes : "1, of a build before release 0.2", CODES_OF_MOMENTS);
}

static remat_status read_state(remat_trainer *trainer, const char *path, const safetensors *file)
{
    uint64_t step, micro_step, seed, stale, batch, micro_steps, best_step = 0;
    double best;
    REMAT_TRY(read_count(trainer, path, file, "step", INT64_MAX, &step));
    REMAT_TRY(read_count(trainer, path, file, "micro_step", INT64_MAX, &micro_step));
    REMAT_TRY(read_count(trainer, path, file, "seed", UINT64_MAX, &seed));
    REMAT_TRY(read_count(trainer, path, file, "stale_validations", INT64_MAX, &stale));
    REMAT_TRY(read_count(trainer, path, file, "batch", INT64_MAX, &batch));
    REMAT_TRY(read_best(trainer, path, file, "best_validation", &best));
    if (safetensors_metadata(file, "best_step")) /* release 0.1 did not write it */
        REMAT_TRY(read_count(trainer, path, file, "best_step", INT64_MAX, &best_step));
    rate_plateau plateau;
    REMAT_TRY(read_plateau(trainer, path, file, &plateau));
    remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, "optimizer"};
    const char *optimizer;
    REMAT_TRY(read_text(trainer, &place, file, &optimizer));
    if (strcmp(optimizer, optimizer_names[trainer->optimizer.type]) != 0)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                          "the training was done with %.40s, the model says %s", optimizer,
                          optimizer_names[trainer->optimizer.type]);
    place.field = STATE_KEY;
    const char *state = safetensors_metadata(file, STATE_KEY), *wanted = state_types[trainer->optimizer.state];
    if (strcmp(state ? state : state_types[STATE_FP32], wanted) != 0)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                          "the training was done with state = %.40s, the model says %s",
                          state ? state : state_types[STATE_FP32], wanted);
    REMAT_TRY(check_codes(trainer, path, file));
    place.field = MASTER_KEY;
    if ((safetensors_metadata(file, MASTER_KEY) == NULL) != trainer->settings.master)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                          "the training was done with master = %s, the model says %s",
                          trainer->settings.master ? "false" : "true", trainer->settings.master ? "true" : "false");
    place.field = "batch";
    if (batch != trainer->network->batch)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                          "the training took %" PRIu64 " samples at a time, now it would be %" PRIu64
                          ": the order of the data would be another; --batch %" PRIu64 " goes on",
                          batch, trainer->network->batch, batch);
    place.field = "micro_step";
    if (!remat_multiply(step, trainer->settings.accumulate, &micro_steps) || micro_step != micro_steps)
        return remat_fail(trainer->context, REMAT_BAD_INPUT, &place,
                          "the training took %" PRIu64 " micro-batches in %" PRIu64
                          " steps; the model's accumulate is %" PRIu64,
                          micro_step, step, trainer->settings.accumulate);
    REMAT_TRY(load_tensors(trainer, path, file, PASS_SHAPES));
    REMAT_TRY(load_tensors(trainer, path, file, PASS_CHECKSUMS));
    data_source *data = NULL;
    REMAT_TRY(open_encoded_data(trainer, path, file, seed, &data));
    remat_status status = load_tensors(trainer, path, file, PASS_VALUES);
    if (status != REMAT_OK) {
        data_source_close(data);
        return status;
    }
    take_data(trainer, data);
    trainer->step = step;
    trainer->staged.ahead = STAGING_NOTHING;
    trainer->ranks_agree = false;
    trainer->micro_step = micro_step;
    trainer->seed = seed;
    trainer->stale_validations = stale;
    trainer->best_validation = best;
    trainer->best_step = best_step;
    trainer->plateau = plateau;
    trainer->resumed = true;
    const char *settings = safetensors_metadata(file, "settings");
    if (settings)
        training_settings_compare(trainer, path, settings);
    return REMAT_OK;
}

bool trainer_saved_step(remat_context *context, const char *path, uint64_t *step)
{
    safetensors *file;
    if (access(path, R_OK) != 0 || weights_open(context, path, &file) != REMAT_OK)
        return false;
    const char *text = safetensors_metadata(file, "step");
    *step = text ? strtoull(text, NULL, 10) : 0;
    safetensors_close(file);
    return text != NULL;
}

remat_status remat_trainer_resume(remat_trainer *trainer, const char *path)
{
    safetensors *file;
    REMAT_TRY(trainer_check_started(trainer));
    REMAT_TRY(weights_open(trainer->context, path, &file));
    remat_status status = read_state(trainer, path, file);
    safetensors_close(file);
    return status;
}
