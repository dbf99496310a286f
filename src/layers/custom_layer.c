/* Layers of the user: a registered definition becomes a layer_type, whose passes record calls of the user's functions. */
#include <remat/custom_layer.h>

#include "base/alloc.h"
#include "base/attach.h"
#include "base/names.h"
#include "base/number_text.h"
#include "base/options.h"
#include "layers/layer_registry.h"
#include "layers/layer_resolve.h"

#include <stdio.h>
#include <string.h>

typedef struct custom_type {
    layer_type type; /* first, so that a layer_type is a custom_type */
    remat_custom_layer about;
    property properties[REMAT_CUSTOM_PROPERTIES + 1];
    char defaults[REMAT_CUSTOM_PROPERTIES][32];
    struct custom_type *next;
} custom_type;

static const char registry_key; /* its address names the registry among what is attached to a context */

static const custom_type *custom_of(const layer_node *layer)
{
    return (const custom_type *)layer->type;
}

/* ---- the layer ---- */

static remat_status set_sizes(remat_context *context, layer_node *layer, const remat_custom_sizes *sizes)
{
    const custom_type *custom = custom_of(layer);
    static const layer_fill fills[] = {LAYER_ZEROS, LAYER_ONES, LAYER_NORMAL, LAYER_UNIFORM};
    const layer_shape output = {sizes->output[0], sizes->output[1], sizes->output[2]};
    if (sizes->parameter_count > REMAT_CUSTOM_PARAMETERS || sizes->saved_count > REMAT_CUSTOM_SAVED ||
        layer_values(output) == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: its function `shape` set an empty output, over %d parameters or over %d saved tensors",
                          layer->type->name, REMAT_CUSTOM_PARAMETERS, REMAT_CUSTOM_SAVED);
    REMAT_TRY(layer_set_output(context, layer, output));
    for (uint32_t p = 0; p < sizes->parameter_count; p++) {
        const remat_custom_parameter *parameter = &sizes->parameters[p];
        if (!parameter->name || parameter->dims[0] == 0 || (unsigned)parameter->start > REMAT_START_UNIFORM)
            return remat_fail(context, REMAT_INVALID, NULL, "%s: parameter %u has no name, no size or no known start",
                              layer->type->name, p);
        REMAT_TRY(layer_add_parameter(context, layer, parameter->name, parameter->dims, fills[parameter->start],
                                      parameter->scale));
    }
    static const char *const saved_names[REMAT_CUSTOM_SAVED] = {"saved0", "saved1"};
    for (uint32_t s = 0; s < sizes->saved_count; s++)
        REMAT_TRY(layer_add_saved(context, layer, saved_names[s], sizes->saved_values[s], layer->dtype));
    layer->workspace[LAYER_FORWARD] = sizes->forward_workspace_bytes;
    layer->workspace[LAYER_INPUT_GRADIENT] = sizes->backward_workspace_bytes;
    layer->flops[LAYER_FORWARD] = sizes->forward_flops;
    layer->flops[LAYER_INPUT_GRADIENT] = sizes->backward_flops;
    uint32_t needs = sizes->saved_count ? LAYER_NEEDS_SAVED : 0;
    for (uint32_t i = 0; i < layer->input_count && custom->about.backward_reads_inputs; i++)
        needs |= LAYER_NEEDS_INPUT(i);
    layer->needs[LAYER_INPUT_GRADIENT] = needs | (custom->about.backward_reads_output ? LAYER_NEEDS_OUTPUT : 0);
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const custom_type *custom = custom_of(layer);
    remat_custom_sizes sizes = {.batch = layer->batch, .input_count = layer->input_count, .properties = layer->options};
    for (uint32_t i = 0; i < layer->input_count; i++)
        memcpy(sizes.inputs[i], (uint64_t[3]){layer->inputs[i].c, layer->inputs[i].h, layer->inputs[i].w},
               sizeof sizes.inputs[i]);
    memcpy(sizes.output, sizes.inputs[0], sizeof sizes.output);
    char message[256] = "";
    remat_status status =
        custom->about.shape ? custom->about.shape(custom->about.user, &sizes, message, sizeof message) : REMAT_OK;
    message[sizeof message - 1] = 0;
    if (status != REMAT_OK)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: %s", layer->type->name,
                          *message ? message : "its inputs do not fit");
    return set_sizes(context, layer, &sizes);
}

/* What both directions get. */
static op_custom make_call(const layer_node *layer, const layer_call *call, void (*function)(const remat_custom_call *))
{
    op_custom made = {.of = call->output.at ? call->output : call->d_output, .function = function};
    remat_custom_call *to = &made.call;
    *to = (remat_custom_call){.user = custom_of(layer)->about.user,
                              .properties = layer->options,
                              .batch = layer->batch,
                              .input_count = layer->input_count,
                              .output_shape = {layer->output.c, layer->output.h, layer->output.w},
                              .dtype = layer->dtype,
                              .training = call->training,
                              .output = call->output.at,
                              .workspace = call->workspace.at,
                              .d_output = call->d_output.at};
    for (uint32_t i = 0; i < layer->input_count; i++) {
        memcpy(to->input_shapes[i], (uint64_t[3]){layer->inputs[i].c, layer->inputs[i].h, layer->inputs[i].w},
               sizeof to->input_shapes[i]);
        to->inputs[i] = call->inputs[i].at;
        to->d_inputs[i] = call->d_inputs[i].at;
    }
    for (uint32_t p = 0; p < layer->parameter_count; p++) {
        to->parameters[p] = call->parameters[p].at;
        to->gradients[p] = call->gradients[p].at;
    }
    for (uint32_t s = 0; s < layer->saved_count; s++)
        to->saved[s] = call->saved[s].at;
    return made;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const op_custom made = make_call(layer, call, custom_of(layer)->about.forward);
    return record_custom(call->calls, &made);
}

static uint64_t parameter_values(const layer_parameter *parameter)
{
    uint64_t values = 1;
    for (uint32_t i = 0; i < parameter->rank; i++)
        values *= parameter->dims[i];
    return values;
}

/* The user's function adds: what is not to be added to starts at 0. An input that is read twice is cleared once. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    bool wanted = false;
    for (uint32_t i = 0; i < layer->input_count; i++) {
        wanted |= call->d_inputs[i].at != NULL;
        if (call->d_inputs[i].at && !call->accumulate_inputs[i])
            REMAT_TRY(record_fill(
                call->calls, &(op_fill){.y = call->d_inputs[i], .count = layer_input_values(layer, i), .value = 0}));
    }
    for (uint32_t p = 0; p < layer->parameter_count; p++) {
        wanted |= call->gradients[p].at != NULL;
        if (call->gradients[p].at && !call->accumulate_gradients[p])
            REMAT_TRY(record_fill(
                call->calls,
                &(op_fill){.y = call->gradients[p], .count = parameter_values(&layer->parameters[p]), .value = 0}));
    }
    if (!wanted)
        return REMAT_OK;
    const op_custom made = make_call(layer, call, custom_of(layer)->about.backward);
    return record_custom(call->calls, &made);
}

/* ---- the registry ---- */

const layer_type *layer_registry_list(const remat_context *context, size_t position)
{
    const custom_type *custom = remat_context_attached(context, &registry_key);
    for (; custom && position > 0; position--)
        custom = custom->next;
    return custom ? &custom->type : NULL;
}

const layer_type *layer_registry_find(const remat_context *context, const char *name)
{
    for (const custom_type *custom = remat_context_attached(context, &registry_key); custom; custom = custom->next)
        if (names_equal(custom->type.name, name))
            return &custom->type;
    return NULL;
}

bool layer_registry_is_single(const layer_type *type)
{
    return type->forward == forward && !((const custom_type *)type)->about.computes_fp64;
}

static void release_type(remat_context *context, custom_type *custom)
{
    remat_text_release(context, custom->type.name);
    remat_text_release(context, custom->type.summary);
    for (uint32_t i = 0; i < custom->about.property_count; i++) {
        remat_text_release(context, custom->properties[i].key);
        remat_text_release(context, custom->properties[i].help);
    }
    remat_release(context, custom, 1, sizeof *custom);
}

static void release_all(remat_context *context, void *first)
{
    for (custom_type *custom = first, *next; custom; custom = next) {
        next = custom->next;
        release_type(context, custom);
    }
}

static bool is_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return length > 0 && length < 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static remat_status check_definition(remat_context *context, const remat_custom_layer *about)
{
    if (!is_name(about->name))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "a custom layer has a name of lower case letters, digits and '_', at most 63 of them");
    if (layer_type_find(about->name) || layer_registry_find(context, about->name))
        return remat_fail(context, REMAT_INVALID, NULL, "there is a layer type '%s' already", about->name);
    if (!about->forward || !about->backward)
        return remat_fail(context, REMAT_INVALID, NULL, "custom layer '%s' needs the functions forward and backward",
                          about->name);
    if (about->min_inputs < 1 || about->max_inputs < about->min_inputs || about->max_inputs > REMAT_CUSTOM_INPUTS)
        return remat_fail(context, REMAT_INVALID, NULL, "custom layer '%s' must read 1 to %d inputs, not %u to %u",
                          about->name, REMAT_CUSTOM_INPUTS, about->min_inputs, about->max_inputs);
    if (about->property_count > REMAT_CUSTOM_PROPERTIES)
        return remat_fail(context, REMAT_INVALID, NULL, "custom layer '%s' has %u properties; %d is the most",
                          about->name, about->property_count, REMAT_CUSTOM_PROPERTIES);
    for (uint32_t i = 0; i < about->property_count; i++)
        if (!is_name(about->properties[i].key))
            return remat_fail(context, REMAT_INVALID, NULL, "property %u of custom layer '%s' has no proper key", i,
                              about->name);
    return REMAT_OK;
}

static remat_status copy_properties(remat_context *context, const remat_custom_layer *about, custom_type *made)
{
    for (uint32_t i = 0; i < about->property_count; i++) {
        const remat_custom_property *from = &about->properties[i];
        text_print(made->defaults[i], sizeof made->defaults[i], "%.17g", from->value);
        made->properties[i] = (property){.key = remat_text_copy(context, from->key),
                                         .kind = PROPERTY_NUMBER,
                                         .offset = i * sizeof(double),
                                         .default_text = made->defaults[i],
                                         .min = from->min,
                                         .max = from->max,
                                         .help = remat_text_copy(context, from->help ? from->help : "")};
        made->about.property_count = i + 1;
        if (!made->properties[i].key || !made->properties[i].help)
            return REMAT_NO_MEMORY;
    }
    return REMAT_OK;
}

static remat_status make_type(remat_context *context, const remat_custom_layer *about, custom_type *made)
{
    made->about = *about;
    made->about.property_count = 0;
    made->type = (layer_type){.name = remat_text_copy(context, about->name),
                              .summary = remat_text_copy(context, about->summary ? about->summary : "registered"),
                              .hint = REMAT_OTHER,
                              .options_bytes = sizeof(double) * about->property_count,
                              .properties = made->properties,
                              .min_inputs = about->min_inputs,
                              .max_inputs = about->max_inputs,
                              .fp32_output = true,
                              .fp32_inputs = true,
                              .resolve = resolve,
                              .forward = forward,
                              .input_gradient = input_gradient};
    if (!made->type.name || !made->type.summary)
        return REMAT_NO_MEMORY;
    return copy_properties(context, about, made);
}

static const remat_custom_layer defaults = {.min_inputs = 1, .max_inputs = 1, .backward_reads_inputs = true};

void remat_custom_layer_init_sized(remat_custom_layer *layer, size_t size)
{
    remat_options_give(layer, size, &defaults, sizeof defaults);
}

remat_status remat_custom_layer_register(remat_context *context, const remat_custom_layer *layer)
{
    remat_custom_layer about = defaults;
    REMAT_TRY(remat_options_copy(context, &about, sizeof about, layer, "remat_custom_layer_init"));
    REMAT_TRY(check_definition(context, &about));
    custom_type *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    remat_status status = make_type(context, &about, made);
    made->next = remat_context_attached(context, &registry_key);
    if (status == REMAT_OK)
        status = remat_context_attach(context, &registry_key, made, release_all);
    if (status != REMAT_OK)
        release_type(context, made);
    return status;
}
