/* Weights files between this library and PyTorch. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "data/torch_write.h"
#include "train/trainer_files.h"
#include "train/folder_save.h"
#include "train/weights_match.h"

#include <remat/train.h>

#include <string.h>

void remat_convert_options_init_sized(remat_convert_options *options, size_t size)
{
    const remat_convert_options defaults = {0};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* Values of one of our parameters in a tensor of theirs. */
typedef struct piece {
    size_t parameter;
    uint64_t first, values;
} piece;

/* A tensor that is written: one parameter or two, one after the other. */
typedef struct converted {
    piece pieces[2];
    size_t count;
    bool transposed;
    char *name;
} converted;

typedef struct conversion {
    remat_context *context;
    const remat_network *network;
    weights_match match;       /* of the file that is read */
    const weight_names *names; /* for the file that is written; NULL: none */
    safetensors_entry *entries;
    converted *tensors; /* beside them */
    size_t count, capacity;
    float *values; /* of the tensor that is being written */
    uint64_t value_count;
    const remat_model *model;
    weights_match adapters; /* of a folder of adapters, if the model has one */
    safetensors *adapter_file;
} conversion;

/* ---- what is written ---- */

static remat_status add_piece(conversion *c, const char *name, size_t p, uint64_t first_row, uint64_t rows,
                              bool transposed)
{
    const network_parameter *parameter = &c->network->parameters[p];
    const layer_parameter *about = &parameter->about;
    const uint64_t row = about->dims[0] ? parameter->values / about->dims[0] : 0;
    const piece made = {p, first_row * row, rows * row};
    for (size_t i = c->count; i-- > 0 && i + 4 >= c->count;) /* the parts of an attention are close together */
        if (strcmp(c->tensors[i].name, name) == 0 && c->tensors[i].count == 1) {
            c->tensors[i].pieces[c->tensors[i].count++] = made;
            c->entries[i].dims[0] += rows;
            return REMAT_OK;
        }
    converted *tensor = &c->tensors[c->count];
    *tensor = (converted){.pieces = {made}, .count = 1, .name = remat_text_copy(c->context, name)};
    if (!tensor->name)
        return REMAT_NO_MEMORY;
    tensor->transposed = transposed && about->rank == 2;
    safetensors_entry *entry = &c->entries[c->count++];
    *entry = (safetensors_entry){.name = tensor->name, .rank = about->rank, .dtype = REMAT_FP32};
    for (uint32_t d = 0; d < about->rank; d++)
        entry->dims[d] = about->dims[tensor->transposed ? 1 - d : d];
    if (!tensor->transposed && about->rank)
        entry->dims[0] = rows;
    return REMAT_OK;
}

/* Whether the matrices of a cross-attention are one for PyTorch: both of its inputs have the same width. */
static bool is_packed(const remat_network *network, size_t p)
{
    const network_parameter *parameter = &network->parameters[p];
    char layer[WEIGHT_NAME_TEXT], other[WEIGHT_NAME_TEXT];
    uint64_t width = 0;
    torch_names_layer(network, p, layer);
    for (size_t i = 0; i < network->parameter_count; i++) {
        const layer_parameter *about = &network->parameters[i].about;
        if (network->layers[network->parameters[i].layer].described != network->layers[parameter->layer].described ||
            !torch_names_is_cross(network, i) || about->rank != 2)
            continue;
        torch_names_layer(network, i, other);
        if (strcmp(layer, other) == 0 && width && width != about->dims[1])
            return false;
        width = about->dims[1];
    }
    return true;
}

static remat_status add_as_torch(conversion *c, size_t p)
{
    const network_parameter *parameter = &c->network->parameters[p];
    const uint64_t rows = parameter->about.rank ? parameter->about.dims[0] : 1;
    char layer[WEIGHT_NAME_TEXT], theirs[WEIGHT_NAME_TEXT];
    bool transposed = parameter->about.transposed;
    if (weight_names_find(c->names, parameter->name, theirs, &transposed))
        return add_piece(c, theirs, p, 0, rows, transposed);
    torch_names_layer(c->network, p, layer);
    if (!weight_names_find(c->names, layer, theirs, &transposed) && !weight_names_find_any(c->names, layer, theirs))
        snprintf(theirs, sizeof theirs, "%s", layer);
    torch_part parts[2];
    const bool packed = torch_names_is_cross(c->network, p) && is_packed(c->network, p);
    const size_t count = torch_names_write(c->network, p, theirs, packed, parts);
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(add_piece(c, parts[i].name, p, i * rows / count, rows / count, transposed));
    return REMAT_OK;
}

static remat_status list_tensors(conversion *c, bool to_torch)
{
    for (size_t p = 0; p < c->network->parameter_count; p++) {
        const layer_parameter *about = &c->network->parameters[p].about;
        if (to_torch)
            REMAT_TRY(add_as_torch(c, p));
        else
            REMAT_TRY(add_piece(c, c->network->parameters[p].name, p, 0, about->rank ? about->dims[0] : 1, false));
    }
    return REMAT_OK;
}

/* ---- values ---- */

static remat_status read_piece(const conversion *c, const piece *wanted, float *to)
{
    const uint64_t values = c->network->parameters[wanted->parameter].values;
    if (wanted->first == 0 && wanted->values == values)
        return weights_match_read(&c->match, wanted->parameter, to);
    float *whole = remat_alloc(c->context, values, sizeof *whole);
    if (!whole)
        return REMAT_NO_MEMORY;
    remat_status status = weights_match_read(&c->match, wanted->parameter, whole);
    if (status == REMAT_OK)
        memcpy(to, whole + wanted->first, wanted->values * sizeof *to);
    remat_release(c->context, whole, values, sizeof *whole);
    return status;
}

static void close_tensor(void *user)
{
    conversion *c = user;
    remat_release(c->context, c->values, c->value_count, sizeof *c->values);
    c->values = NULL;
}

static remat_status transpose(conversion *c, const safetensors_entry *entry)
{
    float *turned = remat_alloc(c->context, c->value_count, sizeof *turned);
    if (!turned)
        return REMAT_NO_MEMORY;
    const uint64_t rows = entry->dims[0], columns = entry->dims[1];
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t k = 0; k < columns; k++)
            turned[r * columns + k] = c->values[k * rows + r];
    remat_release(c->context, c->values, c->value_count, sizeof *c->values);
    c->values = turned;
    return REMAT_OK;
}

static remat_status open_tensor(void *user, size_t number, const void **data)
{
    conversion *c = user;
    const converted *tensor = &c->tensors[number];
    c->value_count = tensor->pieces[0].values + tensor->pieces[1].values;
    c->values = remat_alloc(c->context, c->value_count, sizeof *c->values);
    remat_status status = c->values ? REMAT_OK : REMAT_NO_MEMORY;
    float *to = c->values;
    for (size_t i = 0; i < tensor->count && status == REMAT_OK; i++) {
        status = read_piece(c, &tensor->pieces[i], to);
        to += tensor->pieces[i].values;
    }
    if (status == REMAT_OK && tensor->transposed)
        status = transpose(c, &c->entries[number]);
    if (status != REMAT_OK)
        close_tensor(c);
    *data = c->values;
    return status;
}

/* ---- the whole ---- */

static bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

static remat_status write_file(conversion *c, const safetensors *file, const char *path, bool to_torch)
{
    const safetensors_source source = {open_tensor, close_tensor, c};
    const safetensors_text texts[] = {{"format", to_torch ? "pt" : "remat-weights"},
                                      {"version", "2"},
                                      {"dataset", safetensors_metadata(file, "dataset")}};
    if (has_ending(path, ".pt") || has_ending(path, ".pth") || has_ending(path, ".bin"))
        return torch_write(c->context, path, c->entries, c->count, &source);
    return safetensors_save(c->context, path, c->entries, c->count, texts,
                            to_torch         ? 1
                            : texts[2].value ? 3
                                             : 2,
                            &source);
}

/* For a folder. Adapters that are not in the file are in a folder of their own. */
static remat_status read_parameter(const void *user, size_t parameter, float *to)
{
    const conversion *c = user;
    const bool apart = !c->match.sources[parameter].parts[0];
    return weights_match_read(apart ? &c->adapters : &c->match, parameter, to);
}

static remat_status open_adapters(conversion *c)
{
    const char *folder = c->network->adapter;
    if (!folder)
        return REMAT_OK;
    REMAT_TRY(safetensors_open(c->context, folder, &c->adapter_file));
    c->adapters = (weights_match){
        .context = c->context, .path = folder, .file = c->adapter_file, .network = c->network, .adapters = true};
    return weights_match_find(&c->adapters);
}

static remat_status convert(conversion *c, const safetensors *file, const char *from, const char *to, bool to_torch)
{
    c->match = (weights_match){
        .context = c->context, .path = from, .file = file, .network = c->network, .names = to_torch ? NULL : c->names};
    c->capacity = 2 * c->network->parameter_count;
    c->entries = remat_alloc(c->context, c->capacity, sizeof *c->entries);
    c->tensors = remat_alloc(c->context, c->capacity, sizeof *c->tensors);
    if (c->capacity && (!c->entries || !c->tensors))
        return REMAT_NO_MEMORY;
    REMAT_TRY(weights_match_find(&c->match));
    REMAT_TRY(weights_match_check(&c->match));
    REMAT_TRY(open_adapters(c));
    if (folder_is_meant(to)) {
        const folder_source source = {c->model, c->network, read_parameter, c};
        return folder_save_model(&source, to);
    }
    REMAT_TRY(list_tensors(c, to_torch));
    return write_file(c, file, to, to_torch);
}

remat_status remat_weights_convert(const remat_model *model, const char *from, const char *to,
                                   const remat_convert_options *options)
{
    remat_context *context = model_context(model);
    remat_convert_options wanted;
    remat_convert_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_convert_options_init"));
    weight_names *names = NULL;
    safetensors *file = NULL;
    conversion c = {.context = context, .model = model, .network = model_get_network(model)};
    remat_status status = wanted.names_path ? weight_names_load(context, wanted.names_path, &names) : REMAT_OK;
    c.names = names;
    if (status == REMAT_OK)
        status = weights_open(context, from, &file);
    if (status == REMAT_OK)
        status = convert(&c, file, from, to, wanted.to_torch);
    for (size_t i = 0; i < c.count; i++)
        remat_text_release(context, c.tensors[i].name);
    remat_release(context, c.entries, c.capacity, sizeof *c.entries);
    remat_release(context, c.tensors, c.capacity, sizeof *c.tensors);
    if (c.match.network)
        weights_match_release(&c.match);
    if (c.adapters.network)
        weights_match_release(&c.adapters);
    safetensors_close(c.adapter_file);
    safetensors_close(file);
    weight_names_destroy(names);
    return status;
}
