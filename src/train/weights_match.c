#include "train/weights_match.h"

#include "base/alloc.h"
#include "base/nearest.h"
#include "train/config_keys.h"
#include "train/trainer_file_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

static void print_shape(char *text, size_t room, uint32_t rank, const uint64_t *dims)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t d = 0; d < rank && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, d ? " x %" PRIu64 : "%" PRIu64, dims[d]);
    if (rank == 0)
        snprintf(text, room, "a single value");
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && text[length - end_length - 1] == '.' && strcmp(text + length - end_length, end) == 0;
}

static bool is_ours(const remat_network *network, const char *name)
{
    for (size_t p = 0; p < network->parameter_count; p++)
        if (strcmp(network->parameters[p].name, name) == 0)
            return true;
    return false;
}

/* The name in the file that is most like one of two: the same with a prefix, or else with a few other letters. It is none that
 * another parameter has. */
static const char *nearest(const weights_match *match, const char *ours, const char *theirs)
{
    const char *found = NULL;
    size_t least = name_distance_limit(ours) + 1;
    for (size_t i = 0; i < safetensors_count(match->file); i++) {
        const char *name = safetensors_at(match->file, i)->name;
        if (is_ours(match->network, name))
            continue;
        if (ends_with(name, ours) || ends_with(name, theirs))
            return name;
        const size_t to_ours = name_distance(name, ours, least), to_theirs = name_distance(name, theirs, least);
        const size_t distance = to_ours < to_theirs ? to_ours : to_theirs;
        if (distance < least) {
            least = distance;
            found = name;
        }
    }
    return found;
}

/* ---- one parameter ---- */

typedef struct reason {
    char text[400];
} reason;

/* Our own files hold every matrix as the model does. */
static bool is_foreign(const weights_match *match)
{
    const char *format = safetensors_metadata(match->file, "format");
    return !format || strcmp(format, WEIGHTS_FORMAT) != 0;
}

/* Folders that hold a model without its head name the tensors without "model." or "transformer." in front. */
static size_t find_without_prefix(const weights_match *match, size_t p, const char *layer, torch_part parts[2],
                                  bool *transposed)
{
    static const char *const prefixes[] = {"model.", "transformer."};
    for (size_t i = 0; i < 2 && safetensors_is_folder(match->file); i++)
        if (strncmp(layer, prefixes[i], strlen(prefixes[i])) == 0) {
            torch_names_write(match->network, p, layer + strlen(prefixes[i]), true, parts);
            *transposed |= match->network->parameters[p].about.transposed;
            return safetensors_find(match->file, parts[0].name) ? 1 : 0;
        }
    return 0;
}

/* What a parameter may be called in the file. Returns the number of its parts; 0: it is not there. */
static size_t find_parts(const weights_match *match, size_t p, torch_part parts[2], bool *transposed)
{
    const network_parameter *parameter = &match->network->parameters[p];
    char layer[WEIGHT_NAME_TEXT], theirs[WEIGHT_NAME_TEXT];
    *transposed = false;
    parts[0] = (torch_part){.rows = 0};
    if (parameter->about.adapter) { /* as PEFT names it */
        snprintf(parts[0].name, sizeof parts[0].name, "base_model.model.%.900s.weight", parameter->name);
        if (safetensors_find(match->file, parts[0].name))
            return 1;
    }
    if (weight_names_find(match->names, parameter->name, parts[0].name, transposed))
        return safetensors_find(match->file, parts[0].name) ? 1 : 0;
    torch_names_layer(match->network, p, layer);
    bool named = weight_names_find(match->names, layer, theirs, transposed);
    if (!named)
        named = weight_names_find_any(match->names, layer, theirs);
    if (!named)
        snprintf(theirs, sizeof theirs, "%s", layer);
    /* Our own name behind it, with the part of the layer. */
    snprintf(parts[0].name, sizeof parts[0].name, "%.1000s%s", theirs, parameter->name + strlen(layer));
    if (safetensors_find(match->file, parts[0].name)) {
        *transposed |= parameter->about.transposed && is_foreign(match);
        return 1;
    }
    for (int packed = 1; packed >= 0; packed--) {
        const size_t count = torch_names_write(match->network, p, theirs, packed, parts);
        size_t found = 0;
        while (found < count && safetensors_find(match->file, parts[found].name))
            found++;
        if (count && found == count) {
            *transposed |= parameter->about.transposed && is_foreign(match);
            return count;
        }
    }
    return find_without_prefix(match, p, theirs, parts, transposed);
}

static bool is_positions(const remat_network *network, const network_parameter *parameter)
{
    return strcmp(network->layers[parameter->layer].node.type->name, "position_embedding") == 0;
}

/* Whether two shapes are the same in all dimensions but the first. PyTorch's own positions have a dimension of 1 before. */
static bool same_rows(const safetensors_tensor *tensor, const layer_parameter *about)
{
    if (tensor->rank != about->rank)
        return false;
    for (uint32_t d = 1; d < about->rank; d++)
        if (tensor->dims[d] != about->dims[d])
            return false;
    return true;
}

/* Fills the source from the parts that were found. False: the shapes do not fit. */
static bool take_parts(const weights_match *match, size_t p, const torch_part *parts, size_t count,
                       weight_source *source)
{
    const network_parameter *parameter = &match->network->parameters[p];
    const layer_parameter *about = &parameter->about;
    const uint64_t row = about->rank && about->dims[0] ? parameter->values / about->dims[0] : parameter->values;
    uint64_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        const safetensors_tensor *tensor = safetensors_find(match->file, parts[i].name);
        source->parts[i] = tensor;
        if (source->transposed && about->rank == 2 && tensor->rank == 2 && count == 1) {
            source->values[0] = tensor->values;
            return tensor->dims[0] == about->dims[1] && tensor->dims[1] == about->dims[0];
        }
        if (!same_rows(tensor, about))
            return false;
        const uint64_t there = about->rank ? tensor->dims[0] : 1;
        const uint64_t taken = parts[i].rows ? parts[i].rows : there;
        if (parts[i].first_row > there || taken > there - parts[i].first_row)
            return false;
        source->first[i] = parts[i].first_row * row;
        source->values[i] = taken * row;
        rows += taken;
    }
    source->transposed = false; /* vectors are the same either way */
    if (rows == (about->rank ? about->dims[0] : 1))
        return true;
    if (!match->partial || !is_positions(match->network, parameter))
        return false;
    source->values[0] = (rows < about->dims[0] ? rows : about->dims[0]) * row;
    return true;
}

static void explain_missing(const weights_match *match, size_t p, reason *why)
{
    const char *name = match->network->parameters[p].name;
    torch_part parts[2];
    char layer[WEIGHT_NAME_TEXT];
    torch_names_layer(match->network, p, layer);
    torch_names_write(match->network, p, layer, true, parts);
    if (safetensors_is_folder(match->file)) {
        snprintf(why->text, sizeof why->text, "the model of config.json has this tensor, and the weights do not; %s",
                 config_cause_of(name));
        return;
    }
    const char *like = nearest(match, name, parts[0].name);
    snprintf(why->text, sizeof why->text, "the model has this tensor and the file does not%s%.200s%s",
             like ? "; did you mean '" : "", like ? like : "", like ? "'?" : "");
}

static void explain_shape(const weights_match *match, size_t p, const safetensors_tensor *tensor, reason *why)
{
    const network_parameter *parameter = &match->network->parameters[p];
    char wanted[100], found[150];
    print_shape(wanted, sizeof wanted, parameter->about.rank, parameter->about.dims);
    print_shape(found, sizeof found, tensor->rank, tensor->dims);
    snprintf(why->text, sizeof why->text, "it is %s in the file and %s in the model", found, wanted);
    if (!safetensors_is_folder(match->file) || tensor->rank != parameter->about.rank)
        return;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const bool turned = tensor->rank == 2 && match->sources[p].transposed;
        const uint64_t there = tensor->dims[turned ? 1 - d : d], ours = parameter->about.dims[d];
        const char *key = there == ours ? NULL : config_key_of(parameter->name, d);
        const size_t used = strlen(why->text);
        if (key)
            snprintf(why->text + used, sizeof why->text - used,
                     "; by %s of config.json it has %" PRIu64 ", not %" PRIu64, key, ours, there);
    }
}

/* ---- all of them ---- */

static remat_status refuse(const weights_match *match, const char *path, const char *name, const reason *why,
                           bool missing)
{
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, name};
    return remat_fail(match->context, REMAT_BAD_INPUT, &place, "%s%s%s", why->text,
                      !missing                                  ? ""
                      : why->text[strlen(why->text) - 1] == '?' ? " "
                                                                : "; ",
                      missing ? "--map FILE says which name is which, `remat train --partial` starts it anew" : "");
}

static void warn(const weights_match *match, const char *name, const char *text)
{
    const remat_place place = {match->path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, name};
    remat_warn(match->context, &place, "%s", text);
}

/* Of position embeddings of another length. */
static void warn_of_positions(const weights_match *match, size_t p)
{
    const network_parameter *parameter = &match->network->parameters[p];
    const uint64_t there = match->sources[p].parts[0]->dims[0], wanted = parameter->about.dims[0];
    char text[200];
    snprintf(text, sizeof text, "%" PRIu64 " positions are in the file and %" PRIu64 " in the model: %s", there, wanted,
             there < wanted ? "the others keep their initial values" : "the first ones are taken");
    warn(match, parameter->name, text);
}

/* The name in messages: in a folder that of the file, since people look for it there. */
static const char *name_for_people(const weights_match *match, size_t p, size_t count, torch_part parts[2])
{
    const network_parameter *parameter = &match->network->parameters[p];
    char layer[WEIGHT_NAME_TEXT];
    if (!safetensors_is_folder(match->file) || parameter->about.adapter)
        return parameter->name;
    torch_names_layer(match->network, p, layer);
    if (count == 0 && torch_names_write(match->network, p, layer, true, parts) == 0)
        return parameter->name;
    return parts[0].name;
}

static remat_status find_one(weights_match *match, size_t p, size_t *found)
{
    const network_parameter *parameter = &match->network->parameters[p];
    weight_source *source = &match->sources[p];
    torch_part parts[2];
    reason why;
    if (parameter->about.transient)
        return REMAT_OK;
    const size_t count = find_parts(match, p, parts, &source->transposed);
    if (count && take_parts(match, p, parts, count, source)) {
        ++*found;
        if (!source->transposed && source->values[0] + source->values[1] != parameter->values)
            warn_of_positions(match, p);
        else if (!source->transposed && source->values[0] < source->parts[0]->values && count == 1 && !parts[0].rows)
            warn_of_positions(match, p);
        return REMAT_OK;
    }
    if (count == 0 && parameter->about.adapter != match->adapters)
        return REMAT_OK; /* adapters start anew; files of adapters have nothing else */
    if (count)
        explain_shape(match, p, source->parts[0], &why);
    else
        explain_missing(match, p, &why);
    const char *path = source->parts[0] ? safetensors_path(match->file, source->parts[0]) : match->path;
    *source = (weight_source){0};
    if (!match->partial)
        return refuse(match, path, name_for_people(match, p, count, parts), &why,
                      count == 0 && !safetensors_is_folder(match->file));
    strncat(why.text, "; it keeps its initial values", sizeof why.text - strlen(why.text) - 1);
    warn(match, parameter->name, why.text);
    return REMAT_OK;
}

/* Weights of a folder that the model does not have: its config.json is that of another model. */
static remat_status check_left_over(const weights_match *match)
{
    const size_t count = safetensors_count(match->file);
    bool *taken = remat_alloc_zeroed(match->context, count, sizeof *taken);
    if (!taken && count)
        return REMAT_NO_MEMORY;
    const safetensors_tensor *first = count ? safetensors_at(match->file, 0) : NULL;
    for (size_t p = 0; p < match->network->parameter_count; p++)
        for (int i = 0; i < 2; i++)
            if (match->sources[p].parts[i])
                taken[match->sources[p].parts[i] - first] = true;
    const safetensors_tensor *left = NULL;
    for (size_t i = 0; i < count && !left; i++)
        if (!taken[i] && !config_may_ignore(first[i].name))
            left = &first[i];
    remat_release(match->context, taken, count, sizeof *taken);
    if (!left)
        return REMAT_OK;
    const remat_place place = {safetensors_path(match->file, left), REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE,
                               left->name};
    if (match->adapters)
        return remat_fail(match->context, REMAT_BAD_INPUT, &place, "the model has no adapter of this name");
    return remat_fail(match->context, REMAT_BAD_INPUT, &place,
                      "the weights have this tensor, and the model of config.json does not; %s",
                      config_cause_of(left->name));
}

/* Names that nobody asked for, for people who wonder what became of them. */
static void warn_of_unused(const weights_match *match, size_t found)
{
    char list[400] = "";
    size_t used = 0, unused = 0;
    for (size_t i = 0; i < safetensors_count(match->file); i++) {
        const safetensors_tensor *tensor = safetensors_at(match->file, i);
        bool taken = strncmp(tensor->name, "optimizer/", 10) == 0;
        for (size_t p = 0; p < match->network->parameter_count && !taken; p++)
            taken = match->sources[p].parts[0] == tensor || match->sources[p].parts[1] == tensor;
        if (taken)
            continue;
        if (unused++ < 5)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", used ? ", " : "", tensor->name);
    }
    char text[600];
    snprintf(text, sizeof text, "%zu of %zu tensors were taken; the file has %zu that the model does not use%s%s%s",
             found, match->network->parameter_count, unused, unused ? ": " : "", list, unused > 5 ? ", ..." : "");
    warn(match, NULL, text);
}

remat_status weights_match_find(weights_match *match)
{
    const size_t count = match->network->parameter_count;
    size_t found = 0;
    match->sources = remat_alloc_zeroed(match->context, count, sizeof *match->sources);
    if (!match->sources && count)
        return REMAT_NO_MEMORY;
    for (size_t p = 0; p < count; p++)
        REMAT_TRY(find_one(match, p, &found));
    if (found == 0 && count && match->partial) {
        const remat_place place = {match->path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
        return remat_fail(match->context, REMAT_BAD_INPUT, &place,
                          "none of the model's tensors is in the file; --map FILE says which name is which");
    }
    if (match->partial)
        warn_of_unused(match, found);
    return safetensors_is_folder(match->file) && !match->partial ? check_left_over(match) : REMAT_OK;
}

void weights_match_release(weights_match *match)
{
    remat_release(match->context, match->sources, match->network->parameter_count, sizeof *match->sources);
    match->sources = NULL;
}

remat_status weights_match_check(const weights_match *match)
{
    for (size_t p = 0; p < match->network->parameter_count; p++)
        for (int i = 0; i < 2; i++)
            if (match->sources[p].parts[i])
                REMAT_TRY(safetensors_check(match->file, match->sources[p].parts[i]));
    return REMAT_OK;
}

/* ---- values ---- */

static void transpose(const float *from, uint64_t rows, uint64_t columns, float *to)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            to[r * columns + c] = from[c * rows + r];
}

/* Reads a whole tensor and takes what is wanted of it. */
static remat_status read_part(const weights_match *match, size_t p, int i, float *to)
{
    const weight_source *source = &match->sources[p];
    const safetensors_tensor *tensor = source->parts[i];
    const layer_parameter *about = &match->network->parameters[p].about;
    if (!source->transposed && source->first[i] == 0 && source->values[i] == tensor->values)
        return safetensors_read(match->file, tensor, to, tensor->values);
    float *whole = remat_alloc(match->context, tensor->values, sizeof *whole);
    if (!whole)
        return REMAT_NO_MEMORY;
    remat_status status = safetensors_read(match->file, tensor, whole, tensor->values);
    if (status == REMAT_OK && source->transposed)
        transpose(whole, about->dims[0], about->dims[1], to);
    else if (status == REMAT_OK)
        memcpy(to, whole + source->first[i], source->values[i] * sizeof *to);
    remat_release(match->context, whole, tensor->values, sizeof *whole);
    return status;
}

remat_status weights_match_read(const weights_match *match, size_t parameter, float *to)
{
    for (int i = 0; i < 2; i++) {
        if (!match->sources[parameter].parts[i])
            continue;
        REMAT_TRY(read_part(match, parameter, i, to));
        to += match->sources[parameter].values[i];
    }
    return REMAT_OK;
}

bool weights_match_is_plain(const weights_match *match, size_t parameter)
{
    const weight_source *source = &match->sources[parameter];
    return source->parts[0] && !source->parts[1] && !source->transposed && source->first[0] == 0 &&
           source->values[0] == source->parts[0]->values &&
           source->values[0] == match->network->parameters[parameter].values;
}

remat_status weights_match_read_part(const weights_match *match, size_t parameter, uint64_t first, float *to,
                                     size_t count)
{
    return safetensors_read_part(match->file, match->sources[parameter].parts[0], first, to, count);
}
