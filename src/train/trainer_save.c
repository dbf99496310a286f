/* Saving weights, and the state of a training (trainer_file_format.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/weight_blocks.h"
#include "data/safetensors.h"
#include "train/folder_save.h"
#include "train/host_view.h"
#include "train/optimizer.h"
#include "train/trainer_file_format.h"
#include "train/trainer_files.h"
#include "train/trainer_object.h"
#include "train/training_settings.h"

/* What is written: a parameter, or a part of the optimizer's state of one. */
typedef struct saved_tensor {
    void *at;
    uint64_t bytes;
    uint32_t parameter;
    unsigned number; /* STATE_..., or OPTIMIZER_STATES for the parameter itself */
} saved_tensor;

typedef struct entry_list {
    const remat_trainer *trainer;
    safetensors_entry *entries;
    saved_tensor *tensors; /* beside them */
    size_t count, capacity;
    char *names;
    size_t names_bytes, names_used;
    host_view view;  /* of the entry that is being written */
    uint32_t viewed; /* its parameter */
    void *collected; /* the same, where ranks share it */
    uint64_t collected_bytes;
} entry_list;

static void add_entry(entry_list *list, const char *name, saved_tensor tensor, remat_dtype dtype, uint32_t rank,
                      const uint64_t *dims)
{
    safetensors_entry *entry = &list->entries[list->count];
    *entry = (safetensors_entry){.name = name, .dtype = dtype, .rank = rank};
    for (uint32_t d = 0; d < rank; d++)
        entry->dims[d] = dims[d];
    list->tensors[list->count++] = tensor;
}

static void add_parameter(entry_list *list, uint32_t number)
{
    const network_parameter *parameter = &list->trainer->network->parameters[number];
    const saved_tensor tensor = {trainer_parameter(list->trainer, number).at, parameter->bytes, number,
                                 OPTIMIZER_STATES};
    add_entry(list, parameter->name, tensor, parameter->about.dtype, parameter->about.rank, parameter->about.dims);
}

/* A part of the state; nothing where the optimizer has no such part of it. */
static void add_state(entry_list *list, unsigned number, uint32_t parameter)
{
    optimizer_state states[OPTIMIZER_STATES];
    const optimizer_state *state = &states[number];
    trainer_find_states(list->trainer, parameter, states);
    if (state->bytes == 0)
        return;
    char *name = list->names + list->names_used;
    int length = snprintf(name, list->names_bytes - list->names_used, "optimizer/%s/%s", state_names[number],
                          list->trainer->network->parameters[parameter].name);
    list->names_used += (size_t)length + 1;
    const saved_tensor tensor = {trainer_state(list->trainer, parameter, number).at, state->bytes, parameter, number};
    add_entry(list, name, tensor, state->dtype, state->rank, state->dims);
}

static void close_entry(void *user)
{
    entry_list *list = user;
    if (list->collected)
        remat_release(list->trainer->context, list->collected, list->collected_bytes, 1);
    else
        host_view_close(&list->view, false);
    trainer_leave_weight(list->trainer, list->viewed);
    list->collected = NULL;
}

static remat_status open_entry(void *user, size_t number, const void **data)
{
    entry_list *list = user;
    const saved_tensor *tensor = &list->tensors[number];
    remat_context *context = list->trainer->context;
    if (trainer_must_collect(list->trainer, tensor->parameter, tensor->number)) {
        list->collected_bytes = tensor->bytes;
        list->collected = remat_alloc(context, tensor->bytes, 1);
        if (!list->collected)
            return REMAT_NO_MEMORY;
        *data = list->collected;
        remat_status status = trainer_collect(list->trainer, tensor->parameter, tensor->number, list->collected);
        if (status != REMAT_OK)
            close_entry(list);
        return status;
    }
    REMAT_TRY(host_view_open(list->trainer->queue, tensor->at, tensor->bytes, true, &list->view));
    *data = list->view.host;
    list->viewed = tensor->parameter;
    return REMAT_OK;
}

static remat_status save(const remat_trainer *trainer, const char *path, bool with_state, const char *dataset,
                         entry_list *list)
{
    const remat_network *network = trainer->network;
    for (uint32_t p = 0; p < network->parameter_count; p++)
        add_parameter(list, p);
    for (unsigned i = 0; with_state && i < OPTIMIZER_STATES; i++)
        for (uint32_t p = 0; p < network->parameter_count; p++)
            add_state(list, i, p);
    char step[24], micro_step[24], seed[24], batch[24], best[40], stale[24];
    snprintf(step, sizeof step, "%" PRIu64, trainer->step);
    snprintf(micro_step, sizeof micro_step, "%" PRIu64, trainer->micro_step);
    snprintf(seed, sizeof seed, "%" PRIu64, trainer->seed);
    snprintf(batch, sizeof batch, "%" PRIu64, trainer->network->batch);
    text_print(best, sizeof best, "%a", trainer->best_validation);
    snprintf(stale, sizeof stale, "%" PRIu64, trainer->stale_validations);
    char best_step[24], settings[TRAINING_SETTINGS_TEXT];
    snprintf(best_step, sizeof best_step, "%" PRIu64, trainer->best_step);
    training_settings_write(trainer, settings);
    char plateau_best[40], plateau_stale[24], plateau_cuts[24];
    text_print(plateau_best, sizeof plateau_best, "%a", trainer->plateau.best);
    snprintf(plateau_stale, sizeof plateau_stale, "%" PRIu64, trainer->plateau.stale);
    snprintf(plateau_cuts, sizeof plateau_cuts, "%" PRIu64, trainer->plateau.cuts);
    const safetensors_text metadata[] = {{"format", WEIGHTS_FORMAT},
                                         {"version", VERSION_WITH_CHECKSUMS},
                                         {DATASET_KEY, dataset},
                                         {"optimizer", optimizer_names[trainer->optimizer.type]},
                                         {STATE_KEY, trainer->optimizer.state == STATE_FP32
                                                         ? NULL /* as before there were others */
                                                         : state_types[trainer->optimizer.state]},
                                         {CODES_KEY, trainer->optimizer.state == STATE_INT8 ? CODES_OF_MOMENTS : NULL},
                                         {MASTER_KEY, trainer->settings.master ? NULL : "false"},
                                         {"step", step},
                                         {"micro_step", micro_step},
                                         {"seed", seed},
                                         {"batch", batch},
                                         {"best_validation", best},
                                         {"stale_validations", stale},
                                         {"best_step", best_step},
                                         {"settings", settings},
                                         {"plateau_best", plateau_best},
                                         {"plateau_stale", plateau_stale},
                                         {"plateau_cuts", plateau_cuts}};
    const size_t all = sizeof metadata / sizeof metadata[0];
    const size_t some = trainer->optimizer.schedule == RATE_PLATEAU ? all : all - 3;
    safetensors_text texts[sizeof metadata / sizeof metadata[0]];
    size_t count = 0;
    for (size_t i = 0; i < (with_state ? some : 3); i++) /* the first three are of weights alone */
        if (metadata[i].value)
            texts[count++] = metadata[i];
    const safetensors_source source = {open_entry, close_entry, list};
    return safetensors_save(trainer->context, path, list->entries, list->count, texts, count, &source);
}

remat_status trainer_write_encoding(const remat_trainer *trainer, char **text)
{
    const data_encoding *encoding = trainer->data ? data_source_encoding(trainer->data) : NULL;
    *text = NULL;
    return encoding && !data_encoding_is_empty(encoding) ? data_encoding_write(encoding, text) : REMAT_OK;
}

/* Blocks have no name in weights files. */
static remat_status check_types(const remat_trainer *trainer)
{
    for (size_t p = 0; p < trainer->network->parameter_count; p++)
        if (dtype_traits_of(trainer->network->parameters[p].about.dtype)->blocks)
            return remat_fail(
                trainer->context, REMAT_INVALID, NULL,
                "frozen weights in int8 or int4 cannot be saved to a file; save the adapters to a folder, DIR/");
    return REMAT_OK;
}

static remat_status write_file(const remat_trainer *trainer, const char *path, bool with_state)
{
    REMAT_TRY(check_types(trainer));
    const remat_network *network = trainer->network;
    entry_list list = {.trainer = trainer, .capacity = network->parameter_count * (1 + OPTIMIZER_STATES)};
    for (size_t p = 0; p < network->parameter_count; p++)
        list.names_bytes += OPTIMIZER_STATES * (strlen(network->parameters[p].name) + sizeof "optimizer/0.scales/");
    list.entries = remat_alloc(trainer->context, list.capacity, sizeof *list.entries);
    list.tensors = remat_alloc(trainer->context, list.capacity, sizeof *list.tensors);
    list.names = remat_alloc(trainer->context, list.names_bytes, 1);
    bool room = list.entries && list.tensors && list.names;
    char *dataset = NULL;
    remat_status status = room ? trainer_write_encoding(trainer, &dataset) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = save(trainer, path, with_state, dataset, &list);
    remat_text_release(trainer->context, dataset);
    remat_release(trainer->context, list.entries, list.capacity, sizeof *list.entries);
    remat_release(trainer->context, list.tensors, list.capacity, sizeof *list.tensors);
    remat_release(trainer->context, list.names, list.names_bytes, 1);
    return status;
}

/* The first rank writes. All have the same, or give it what they have. */
static remat_status finish_writing(const remat_trainer *trainer, remat_status written)
{
    remat_status ended = trainer_serve_end(trainer);
    return trainer_share_status(trainer, written != REMAT_OK ? written : ended);
}

static remat_status help_writing(const remat_trainer *trainer)
{
    return trainer_share_status(trainer, trainer_serve(trainer));
}

remat_status remat_trainer_save(const remat_trainer *trainer, const char *path, bool with_state)
{
    REMAT_TRY(trainer_check_started(trainer));
    return trainer_rank(trainer) == 0 ? finish_writing(trainer, write_file(trainer, path, with_state))
                                      : help_writing(trainer);
}

static remat_status copy_parameter(const void *user, size_t parameter, float *to)
{
    const remat_trainer *trainer = user;
    const network_parameter *about = &trainer->network->parameters[parameter];
    const uint64_t values = about->values;
    host_view view;
    if (trainer_must_collect(trainer, (uint32_t)parameter, OPTIMIZER_STATES)) {
        void *whole = remat_alloc(trainer->context, about->bytes, 1);
        remat_status status =
            whole ? trainer_collect(trainer, (uint32_t)parameter, OPTIMIZER_STATES, whole) : REMAT_NO_MEMORY;
        if (status == REMAT_OK)
            weight_blocks_unpack(about->about.dtype, whole, to, values);
        remat_release(trainer->context, whole, about->bytes, 1);
        return status;
    }
    REMAT_TRY(
        host_view_open_floats(trainer->queue, trainer_parameter(trainer, (uint32_t)parameter), values, true, &view));
    memcpy(to, view.floats, values * sizeof *to);
    remat_status status = host_view_close(&view, false);
    trainer_leave_weight(trainer, (uint32_t)parameter);
    return status;
}

static bool is_adapted(const remat_trainer *trainer)
{
    for (size_t p = 0; p < trainer->network->parameter_count; p++)
        if (trainer->network->parameters[p].about.adapter)
            return true;
    return false;
}

remat_status remat_trainer_save_folder(const remat_trainer *trainer, const char *path, bool merge)
{
    REMAT_TRY(trainer_check_started(trainer));
    const folder_source source = {trainer->model, trainer->network, copy_parameter, trainer};
    if (trainer_rank(trainer) != 0)
        return help_writing(trainer);
    return finish_writing(trainer, is_adapted(trainer) && !merge ? folder_save_adapters(&source, path)
                                                                 : folder_save_model(&source, path));
}

remat_status remat_trainer_check_save_folder(const remat_trainer *trainer, const char *path, bool merge)
{
    const folder_source source = {trainer->model, trainer->network, copy_parameter, trainer};
    return trainer_rank(trainer) == 0 ? folder_save_check(&source, path, is_adapted(trainer) && !merge) : REMAT_OK;
}

remat_status remat_trainer_check_save(const remat_trainer *trainer, const char *path, bool with_state)
{
    const remat_network *network = trainer->network;
    REMAT_TRY(check_types(trainer));
    if (trainer_rank(trainer) != 0)
        return REMAT_OK;
    REMAT_TRY(remat_model_check_output(trainer->model, path));
    uint64_t copies = 1 + (with_state ? OPTIMIZER_STATES : 0);
    uint64_t values = network->parameter_bytes;
    for (uint32_t p = 0; with_state && p < network->parameter_count; p++)
        for (unsigned i = 0; i < OPTIMIZER_STATES; i++)
            values += trainer_whole_bytes(trainer, p, i);
    uint64_t header = 1024; /* and, for each tensor, its name, its shape and where it is */
    for (size_t p = 0; p < network->parameter_count; p++)
        header += 160 + strlen(network->parameters[p].name);
    char *dataset;
    REMAT_TRY(trainer_write_encoding(trainer, &dataset));
    header += dataset ? 2 * strlen(dataset) : 0; /* quotes are escaped */
    remat_text_release(trainer->context, dataset);
    return output_save_check(trainer->context, path, values + copies * header);
}
