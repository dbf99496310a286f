#include "train/folder_save.h"

#include "base/alloc.h"
#include "base/half.h"
#include "base/input.h"
#include "base/number_text.h"
#include "base/output.h"
#include "base/output_file.h"
#include "data/safetensors.h"
#include "model/pretrained.h"
#include "train/weights_match.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* What is being written: a tensor for each parameter that is in `numbers`. */
typedef struct folder_writer {
    const folder_source *from;
    remat_context *context;
    text_pool pool;
    const char *path;
    bool whole; /* the whole model, not its adapters */
    /* The weights of the folder that the model came from; NULL: it has none, or they do not matter. */
    safetensors *origin;
    weights_match match; /* its tensors */
    safetensors_entry *entries;
    uint32_t *numbers; /* the parameter of each entry */
    size_t count, capacity;
    void *data; /* of the entry that is being written */
    uint64_t data_bytes;
    bool only_checks; /* nothing is written */
} folder_writer;

bool folder_is_meant(const char *path)
{
    struct stat info;
    const size_t length = strlen(path);
    return length > 1 && (path[length - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)));
}

static const char *join(folder_writer *w, const char *folder, const char *name)
{
    const size_t length = strlen(folder);
    return text_pool_join(&w->pool,
                          (const char *const[]){folder, length && folder[length - 1] == '/' ? "" : "/", name, NULL});
}

static remat_status make_folder(folder_writer *w)
{
    const remat_place place = {w->path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    struct stat info;
    if (mkdir(w->path, 0777) == 0 || (errno == EEXIST && stat(w->path, &info) == 0 && S_ISDIR(info.st_mode)))
        return REMAT_OK;
    return remat_fail(w->context, REMAT_IO, &place, "the folder cannot be made: %s", strerror(errno));
}

/* ---- values ---- */

/* The layer of a parameter, where it has adapters; else NULL. */
static const network_layer *adapted_layer(const remat_network *network, size_t p)
{
    const network_layer *layer = &network->layers[network->parameters[p].layer];
    const bool is_weight = strcmp(network->parameters[p].about.name, "weight") == 0;
    return is_weight && layer->node.type == &layer_type_lora ? layer : NULL;
}

/* W += (alpha / rank) B A, each sum in double. */
static remat_status add_adapter(const folder_writer *w, const network_layer *layer, float *weight)
{
    const remat_network *network = w->from->network;
    const lora_options *options = layer->node.options;
    const uint32_t last = layer->node.parameter_count - 1;
    const network_parameter *a = &network->parameters[layer->parameters[last - 1]];
    const network_parameter *b = &network->parameters[layer->parameters[last]];
    const uint64_t rank = options->rank, units = b->about.dims[0], in = a->about.dims[1];
    float *factors = remat_alloc(w->context, a->values + b->values, sizeof *factors);
    if (!factors)
        return REMAT_NO_MEMORY;
    float *of_b = factors + a->values;
    remat_status status = w->from->read(w->from->user, layer->parameters[last - 1], factors);
    if (status == REMAT_OK)
        status = w->from->read(w->from->user, layer->parameters[last], of_b);
    for (uint64_t u = 0; u < units && status == REMAT_OK; u++)
        for (uint64_t i = 0; i < in; i++) {
            double sum = 0;
            for (uint64_t r = 0; r < rank; r++)
                sum += (double)of_b[u * rank + r] * (double)factors[r * in + i];
            weight[u * in + i] = (float)((double)weight[u * in + i] + options->alpha / (double)rank * sum);
        }
    remat_release(w->context, factors, a->values + b->values, sizeof *factors);
    return status;
}

static remat_status transpose(const folder_writer *w, const layer_parameter *about, float *values)
{
    const uint64_t rows = about->dims[0], columns = about->dims[1];
    float *turned = remat_alloc(w->context, rows * columns, sizeof *turned);
    if (!turned)
        return REMAT_NO_MEMORY;
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            turned[c * rows + r] = values[r * columns + c];
    memcpy(values, turned, rows * columns * sizeof *turned);
    remat_release(w->context, turned, rows * columns, sizeof *turned);
    return REMAT_OK;
}

/* Whether the file has a matrix the other way round. */
static bool is_turned(const folder_writer *w, uint32_t p)
{
    const layer_parameter *about = &w->from->network->parameters[p].about;
    return w->whole && (w->origin ? w->match.sources[p].transposed : about->transposed);
}

static remat_status read_values(const folder_writer *w, uint32_t p, float *values)
{
    const remat_network *network = w->from->network;
    const network_layer *adapted = w->whole ? adapted_layer(network, p) : NULL;
    REMAT_TRY(w->from->read(w->from->user, p, values));
    if (adapted)
        REMAT_TRY(add_adapter(w, adapted, values));
    return is_turned(w, p) ? transpose(w, &network->parameters[p].about, values) : REMAT_OK;
}

static void close_tensor(void *user)
{
    folder_writer *w = user;
    remat_release(w->context, w->data, w->data_bytes, 1);
    w->data = NULL;
}

/* The values in 16 bits instead. */
static remat_status pack(folder_writer *w, const safetensors_entry *entry, uint64_t values)
{
    const remat_place place = {w->path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, entry->name};
    uint16_t *packed = remat_alloc(w->context, values, sizeof *packed);
    if (!packed)
        return REMAT_NO_MEMORY;
    const uint64_t over = half_pack(half_kernels_choose(), entry->dtype, false, w->data, packed, values);
    close_tensor(w);
    w->data = packed;
    w->data_bytes = values * sizeof *packed;
    if (over)
        return remat_fail(w->context, REMAT_INVALID, &place, "%llu values are too large for %s",
                          (unsigned long long)over, remat_dtype_name(entry->dtype));
    return REMAT_OK;
}

static remat_status open_tensor(void *user, size_t number, const void **data)
{
    folder_writer *w = user;
    const safetensors_entry *entry = &w->entries[number];
    const uint32_t p = w->numbers[number];
    const uint64_t values = w->from->network->parameters[p].values;
    w->data_bytes = values * sizeof(float);
    w->data = remat_alloc(w->context, w->data_bytes, 1);
    remat_status status = w->data ? read_values(w, p, w->data) : REMAT_NO_MEMORY;
    if (status == REMAT_OK && entry->dtype != REMAT_FP32)
        status = pack(w, entry, values);
    if (status != REMAT_OK)
        close_tensor(w);
    *data = w->data;
    return status;
}

/* ---- lists ---- */

static void add_entry(folder_writer *w, uint32_t p, const char *name, uint32_t rank, const uint64_t *dims,
                      remat_dtype dtype)
{
    safetensors_entry *entry = &w->entries[w->count];
    *entry = (safetensors_entry){.name = name, .rank = rank, .dtype = dtype};
    memcpy(entry->dims, dims, rank * sizeof *dims);
    w->numbers[w->count++] = p;
}

static remat_status list_adapters(folder_writer *w)
{
    const remat_network *network = w->from->network;
    for (uint32_t p = 0; p < network->parameter_count; p++) {
        const layer_parameter *about = &network->parameters[p].about;
        if (layer_parameter_is_trained(about) && !about->adapter)
            return remat_fail(
                w->context, REMAT_INVALID, NULL,
                "'%.100s' is trained besides the adapters, and PEFT's layout has no place for it; save a file "
                "such as weights.safetensors, or the whole model",
                network->parameters[p].name);
        if (!about->adapter)
            continue;
        const char *name = text_pool_join(
            &w->pool, (const char *const[]){"base_model.model.", network->parameters[p].name, ".weight", NULL});
        if (!name)
            return REMAT_NO_MEMORY;
        add_entry(w, p, name, about->rank, about->dims, REMAT_FP32);
    }
    if (w->count == 0)
        return remat_fail(w->context, REMAT_INVALID, NULL, "the model has no adapters");
    return REMAT_OK;
}

/* The weights of a model that was trained from scratch have the names of their layers. */
static void list_new_model(folder_writer *w)
{
    for (uint32_t p = 0; p < w->from->network->parameter_count; p++) {
        const network_parameter *parameter = &w->from->network->parameters[p];
        const layer_parameter *about = &parameter->about;
        const uint64_t turned[] = {about->dims[1], about->dims[0]};
        if (!about->adapter)
            add_entry(w, p, parameter->name, about->rank, is_turned(w, p) ? turned : about->dims, REMAT_FP32);
    }
}

/* Names, shapes and types are those of the folder that the model came from. */
static void list_model(folder_writer *w)
{
    for (uint32_t p = 0; p < w->from->network->parameter_count; p++) {
        const safetensors_tensor *tensor = w->match.sources[p].parts[0];
        if (tensor)
            add_entry(w, p, tensor->name, tensor->rank, tensor->dims,
                      strcmp(tensor->dtype, "BF16") == 0  ? REMAT_BF16
                      : strcmp(tensor->dtype, "F16") == 0 ? REMAT_FP16
                                                          : REMAT_FP32);
    }
}

/* ---- other files ---- */

typedef struct copied_file {
    FILE *from;
} copied_file;

static remat_status copy_bytes(const void *user, FILE *stream)
{
    const copied_file *file = user;
    char part[1 << 14];
    for (size_t got; (got = fread(part, 1, sizeof part, file->from)) > 0;)
        if (fwrite(part, 1, got, stream) != got)
            return REMAT_IO;
    return ferror(file->from) ? REMAT_IO : REMAT_OK;
}

/* What belongs to a model besides its weights; all but config.json may be missing. */
static remat_status copy_files(folder_writer *w, const char *origin)
{
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "chat_template.jinja"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *from = join(w, origin, names[i]), *to = join(w, w->path, names[i]);
        struct stat a, b;
        bool exists;
        if (!from || !to)
            return REMAT_NO_MEMORY;
        REMAT_TRY(input_exists(w->context, from, &exists));
        if (!exists || (stat(from, &a) == 0 && stat(to, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino))
            continue;
        copied_file file;
        REMAT_TRY(input_open(w->context, from, &file.from));
        remat_status status = output_save(w->context, to, copy_bytes, &file);
        fclose(file.from);
        REMAT_TRY(status);
    }
    return REMAT_OK;
}

/* The last parts of the names of all adapted layers, each once, as PEFT looks for them. */
static void write_targets(output *out, const remat_network *network)
{
    const char *before = "";
    for (size_t i = 0; i < network->layer_count; i++) {
        const char *name = network->layers[i].node.name, *dot = strrchr(name, '.');
        bool is_new = network->layers[i].node.type == &layer_type_lora;
        for (size_t j = 0; j < i && is_new; j++) {
            const char *other = network->layers[j].node.name, *other_dot = strrchr(other, '.');
            is_new = network->layers[j].node.type != &layer_type_lora ||
                     strcmp(other_dot ? other_dot + 1 : other, dot ? dot + 1 : name) != 0;
        }
        if (!is_new)
            continue;
        output_text(out, before);
        output_quoted(out, dot ? dot + 1 : name);
        before = ", ";
    }
}

static remat_status write_config(const void *user, FILE *stream)
{
    const folder_writer *w = user;
    const remat_network *network = w->from->network;
    const char *folder = w->from->model->folder;
    char alpha[NUMBER_TEXT], dropout[NUMBER_TEXT];
    const lora_options *options = NULL;
    bool turned = false;
    for (size_t i = 0; i < network->layer_count; i++)
        if (network->layers[i].node.type == &layer_type_lora) {
            options = network->layers[i].node.options;
            turned |= options->linear.transposed;
        }
    number_print(options->alpha, alpha);
    number_print(options->dropout, dropout);
    output *out = remat_alloc(w->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, w->context, stream);
    output_text(out, "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n  \"base_model_name_or_path\": ");
    output_quoted(out, folder ? folder : "");
    output_field(out, ",\n  ", "r", options->rank);
    output_text(out, ",\n  \"lora_alpha\": ");
    output_text(out, alpha);
    output_text(out, ",\n  \"lora_dropout\": ");
    output_text(out, dropout);
    output_text(out, ",\n  \"bias\": \"none\",\n  \"inference_mode\": true,\n  \"fan_in_fan_out\": ");
    output_text(out, turned ? "true" : "false");
    output_text(out, ",\n  \"target_modules\": [");
    write_targets(out, network);
    output_text(out, "]\n}\n");
    remat_status status = output_end(out);
    remat_release(w->context, out, 1, sizeof *out);
    return status;
}

/* ---- the whole ---- */

/* Room for all tensors, and for the line that the header has for each. */
static remat_status check_room(folder_writer *w, const char *path)
{
    uint64_t bytes = 4096;
    for (size_t i = 0; i < w->count; i++)
        bytes += dtype_bytes(w->entries[i].dtype, w->from->network->parameters[w->numbers[i]].values) + 160 +
                 strlen(w->entries[i].name);
    return output_save_check(w->context, path, bytes);
}

static remat_status save_tensors(folder_writer *w, const char *name)
{
    const char *path = join(w, w->path, name);
    const safetensors_text format = {"format", "pt"};
    const safetensors_source source = {open_tensor, close_tensor, w};
    if (!path)
        return REMAT_NO_MEMORY;
    if (w->only_checks)
        return check_room(w, path);
    return safetensors_save(w->context, path, w->entries, w->count, &format, 1, &source);
}

static remat_status save_adapters(folder_writer *w)
{
    const char *config = join(w, w->path, "adapter_config.json");
    if (!config)
        return REMAT_NO_MEMORY;
    REMAT_TRY(list_adapters(w));
    REMAT_TRY(make_folder(w));
    REMAT_TRY(save_tensors(w, "adapter_model.safetensors"));
    return w->only_checks ? REMAT_OK : output_save(w->context, config, write_config, w);
}

/* Whether the folder of the model has weights. One that cannot be looked at is no folder without: that would write others. */
static remat_status has_weights(folder_writer *w, const char *folder, bool *has)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    *has = false;
    for (size_t i = 0; i < 2 && !*has; i++) {
        const char *path = join(w, folder, names[i]);
        if (!path)
            return REMAT_NO_MEMORY;
        REMAT_TRY(input_exists(w->context, path, has));
    }
    return REMAT_OK;
}

static remat_status save_model(folder_writer *w)
{
    const char *folder = w->from->model->folder;
    if (!folder)
        return remat_fail(w->context, REMAT_INVALID, NULL,
                          "only a model that came from a folder can be saved as one; save a file such as "
                          "weights.safetensors");
    for (size_t p = 0; p < w->from->network->parameter_count; p++)
        if (dtype_traits_of(w->from->network->parameters[p].about.dtype)->blocks)
            return remat_fail(
                w->context, REMAT_INVALID, NULL,
                "the frozen weights are in int8 or int4; save the adapters, and merge them with `remat convert`");
    w->whole = true;
    bool has;
    REMAT_TRY(has_weights(w, folder, &has));
    if (!has) {
        list_new_model(w);
        REMAT_TRY(make_folder(w));
        REMAT_TRY(save_tensors(w, "model.safetensors"));
        return w->only_checks ? REMAT_OK : copy_files(w, folder);
    }
    REMAT_TRY(safetensors_open(w->context, folder, &w->origin));
    w->match = (weights_match){.context = w->context, .path = folder, .file = w->origin, .network = w->from->network};
    REMAT_TRY(weights_match_find(&w->match));
    list_model(w);
    REMAT_TRY(make_folder(w));
    REMAT_TRY(save_tensors(w, "model.safetensors"));
    return w->only_checks ? REMAT_OK : copy_files(w, folder);
}

static remat_status save(const folder_source *source, const char *path, bool only_checks,
                         remat_status (*what)(folder_writer *w))
{
    remat_context *context = source->network->context;
    folder_writer w = {.from = source,
                       .context = context,
                       .path = path,
                       .capacity = source->network->parameter_count,
                       .only_checks = only_checks};
    text_pool_begin(&w.pool, context);
    w.entries = remat_alloc(context, w.capacity, sizeof *w.entries);
    w.numbers = remat_alloc(context, w.capacity, sizeof *w.numbers);
    remat_status status = w.entries && w.numbers ? what(&w) : REMAT_NO_MEMORY;
    if (w.match.network)
        weights_match_release(&w.match);
    safetensors_close(w.origin);
    remat_release(context, w.entries, w.capacity, sizeof *w.entries);
    remat_release(context, w.numbers, w.capacity, sizeof *w.numbers);
    text_pool_end(&w.pool);
    return status;
}

remat_status folder_save_adapters(const folder_source *source, const char *path)
{
    return save(source, path, false, save_adapters);
}

remat_status folder_save_model(const folder_source *source, const char *path)
{
    return save(source, path, false, save_model);
}

remat_status folder_save_check(const folder_source *source, const char *path, bool adapters)
{
    return save(source, path, true, adapters ? save_adapters : save_model);
}
