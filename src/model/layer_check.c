/* Checks the gradients of one layer against central differences, with the reference kernels. */
#include <remat/custom_layer.h>

#include "base/alloc.h"
#include "base/options.h"
#include "layers/layer_registry.h"
#include "model/model_object.h"

#include <math.h>
#include <remat/random.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 256, MOST_TENSORS = 64 }; /* values of a tensor that are compared, and tensors of a layer */

typedef struct bench {
    remat_context *context;
    backend *device;
    backend_queue *queue;
    recording calls;
    layer_node node;
    layer_room room;
    layer_call call;
    step_block block;
    remat_random stream;
    void *owned[MOST_TENSORS]; /* memory of tensors, to be released */
    uint64_t owned_bytes[MOST_TENSORS];
    size_t owned_count;
    uint64_t drawn;
    text_pool texts;
} bench;

/* ---- values ---- */

static double get(tensor_ref tensor, uint64_t i)
{
    return tensor.type == REMAT_FP64 ? ((const double *)tensor.at)[i] : (double)((const float *)tensor.at)[i];
}

static void set(tensor_ref tensor, uint64_t i, double value)
{
    if (tensor.type == REMAT_FP64)
        ((double *)tensor.at)[i] = value;
    else
        ((float *)tensor.at)[i] = (float)value;
}

static remat_status make_tensor(bench *b, remat_dtype dtype, uint64_t count, tensor_ref *made)
{
    uint64_t bytes = dtype_bytes(dtype, count);
    if (b->owned_count == MOST_TENSORS)
        return remat_fail(b->context, REMAT_INTERNAL, NULL, "too many tensors");
    void *memory = remat_alloc_aligned(b->context, bytes ? bytes : 1, 64);
    if (!memory)
        return REMAT_NO_MEMORY;
    memset(memory, 0, bytes);
    b->owned[b->owned_count] = memory;
    b->owned_bytes[b->owned_count++] = bytes ? bytes : 1;
    *made = (tensor_ref){memory, dtype};
    return REMAT_OK;
}

/* Values between -1.5 and 1.5; positive ones where the layer takes roots of them. */
static remat_status make_random(bench *b, uint64_t count, bool positive, tensor_ref *made)
{
    REMAT_TRY(make_tensor(b, b->node.dtype, count, made));
    for (uint64_t i = 0; i < count; i++) {
        double value = 3 * (double)remat_random_uniform(&b->stream, b->drawn++) - 1.5;
        set(*made, i, positive ? value * value + 0.1 : value);
    }
    return REMAT_OK;
}

static uint64_t parameter_values(const layer_parameter *parameter)
{
    uint64_t values = 1;
    for (uint32_t i = 0; i < parameter->rank; i++)
        values *= parameter->dims[i];
    return values;
}

static uint64_t input_values(const bench *b, uint32_t i)
{
    return b->node.batch * layer_values(b->node.inputs[i]);
}

/* ---- the layer ---- */

static remat_status set_properties(bench *b, const char *const *properties)
{
    const layer_type *type = b->node.type;
    void *options = text_pool_take(&b->texts, 1, type->options_bytes);
    if (!options)
        return REMAT_NO_MEMORY;
    b->node.options = options;
    REMAT_TRY(properties_init(b->context, type->properties, options));
    for (; properties && *properties; properties++) {
        const char *equals = strchr(*properties, '=');
        if (!equals)
            return remat_fail(b->context, REMAT_INVALID, NULL, "'%.60s' is not key=value", *properties);
        const char *key = text_pool_part(&b->texts, *properties, (size_t)(equals - *properties));
        const char *text = text_pool_text(&b->texts, equals + 1);
        if (!key || !text)
            return REMAT_NO_MEMORY;
        REMAT_TRY(property_set(b->context, type->name, type->properties, options, key, text));
    }
    return REMAT_OK;
}

static remat_status resolve(bench *b, const uint64_t (*inputs)[3], uint32_t input_count)
{
    layer_node *node = &b->node;
    const layer_type *type = node->type;
    bool tokens = false;
    node->input_count = input_count;
    for (uint32_t i = 0; i < input_count && type->reads_tokens; i++)
        tokens |= type->reads_tokens(node, i);
    if (!type->resolve || type->labels != LAYER_NO_LABELS || tokens || type->max_inputs == 0)
        return remat_fail(b->context, REMAT_INVALID, NULL, "the gradients of a layer of type %s cannot be checked",
                          type->name);
    if (input_count < type->min_inputs || input_count > type->max_inputs || input_count > LAYER_MAX_INPUTS)
        return remat_fail(b->context, REMAT_INVALID, NULL, "%s reads %u to %u layers, not %u", type->name,
                          type->min_inputs, type->max_inputs, input_count);
    if (node->batch == 0)
        return remat_fail(b->context, REMAT_INVALID, NULL, "a batch has at least one sample");
    for (uint32_t i = 0; i < input_count; i++) {
        node->inputs[i] = (layer_shape){inputs[i][0], inputs[i][1], inputs[i][2]};
        node->input_dtypes[i] = node->dtype;
        if (layer_values(node->inputs[i]) == 0)
            return remat_fail(b->context, REMAT_INVALID, NULL, "input %u is empty", i);
    }
    return type->resolve(b->context, node);
}

static remat_status make_tensors(bench *b)
{
    layer_node *node = &b->node;
    layer_call *call = &b->call;
    for (uint32_t i = 0; i < node->input_count; i++) {
        REMAT_TRY(make_random(b, input_values(b, i), false, &call->inputs[i]));
        REMAT_TRY(make_tensor(b, node->dtype, input_values(b, i), &call->d_inputs[i]));
    }
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        uint64_t count = parameter_values(&node->parameters[p]);
        REMAT_TRY(make_random(b, count, node->parameters[p].statistic, &call->parameters[p]));
        if (layer_parameter_is_trained(&node->parameters[p]))
            REMAT_TRY(make_tensor(b, node->dtype, count, &call->gradients[p]));
    }
    for (uint32_t s = 0; s < node->saved_count; s++)
        REMAT_TRY(make_tensor(b, node->saved[s].dtype, node->saved[s].count, &call->saved[s]));
    uint64_t outputs = node->batch * layer_values(node->output), workspace = node->accumulate_workspace;
    REMAT_TRY(make_tensor(b, node->dtype, outputs, &call->output));
    REMAT_TRY(make_random(b, outputs, false, &call->d_output));
    for (int pass = 0; pass < LAYER_PASSES; pass++)
        workspace = node->workspace[pass] > workspace ? node->workspace[pass] : workspace;
    REMAT_TRY(make_tensor(b, REMAT_UINT8, workspace, &call->workspace));
    call->calls = &b->calls;
    call->step = (tensor_ref){&b->block, REMAT_UINT8};
    call->training = call->is_recompute = true; /* statistics stay as they are */
    call->loss_share = 1;
    return REMAT_OK;
}

static remat_status run(bench *b, layer_function pass)
{
    b->calls.used = 0;
    REMAT_TRY(pass(&b->node, &b->call));
    REMAT_TRY(backend_run(b->queue, &b->calls, 0, b->calls.used));
    return backend_wait(b->queue);
}

/* What the gradients are those of: the sum of all outputs times d_output. */
static remat_status objective(bench *b, double *sum)
{
    REMAT_TRY(run(b, b->node.type->forward));
    *sum = 0;
    for (uint64_t i = 0; i < b->node.batch * layer_values(b->node.output); i++)
        *sum += get(b->call.output, i) * get(b->call.d_output, i);
    return REMAT_OK;
}

/* ---- comparing ---- */

static remat_status difference(bench *b, tensor_ref of, uint64_t i, double *result)
{
    double kept = get(of, i), step = of.type == REMAT_FP64 ? 1e-5 : 1e-2, above, below;
    set(of, i, kept + step);
    double high = get(of, i);
    REMAT_TRY(objective(b, &above));
    set(of, i, kept - step);
    double low = get(of, i);
    REMAT_TRY(objective(b, &below));
    set(of, i, kept);
    *result = (above - below) / (high - low);
    return REMAT_OK;
}

/* Compares some values of a tensor, evenly spread. */
static remat_status compare(bench *b, const char *name, tensor_ref of, tensor_ref gradient, uint64_t count,
                            remat_gradient_check *check)
{
    uint64_t some = count < MOST_VALUES ? count : MOST_VALUES;
    double largest = 1e-4;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(get(gradient, i)));
    for (uint64_t k = 0; k < some; k++) {
        uint64_t i = (uint64_t)((unsigned __int128)k * count / some);
        double expected, got = get(gradient, i);
        REMAT_TRY(difference(b, of, i, &expected));
        double error = fabs(got - expected) / fmax(largest, fabs(expected));
        check->values++;
        if (!(error <= check->largest_error)) { /* NaN too */
            check->largest_error = error;
            check->position = i;
            check->gradient = got;
            check->difference = expected;
            snprintf(check->tensor, sizeof check->tensor, "%s", name);
        }
    }
    return REMAT_OK;
}

static remat_status compare_all(bench *b, remat_gradient_check *check)
{
    double ignored;
    REMAT_TRY(objective(b, &ignored));
    if (b->node.type->weight_gradient)
        REMAT_TRY(run(b, b->node.type->weight_gradient));
    if (b->node.type->input_gradient)
        REMAT_TRY(run(b, b->node.type->input_gradient));
    for (uint32_t i = 0; i < b->node.input_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "input %u", i);
        if (b->node.passes_gradient)
            memcpy(b->call.d_inputs[i].at, b->call.d_output.at, dtype_bytes(b->node.dtype, input_values(b, i)));
        REMAT_TRY(compare(b, name, b->call.inputs[i], b->call.d_inputs[i], input_values(b, i), check));
    }
    for (uint32_t p = 0; p < b->node.parameter_count; p++)
        if (b->call.gradients[p].at)
            REMAT_TRY(compare(b, b->node.parameters[p].name, b->call.parameters[p], b->call.gradients[p],
                              parameter_values(&b->node.parameters[p]), check));
    if (check->largest_error <= check->allowed_error)
        return REMAT_OK;
    return remat_fail(b->context, REMAT_CHECK_FAILED, NULL,
                      "%s: the gradient of %s, value %llu, is %.9g, but differences say %.9g", b->node.type->name,
                      check->tensor, (unsigned long long)check->position, check->gradient, check->difference);
}

static remat_status check_layer(bench *b, const char *const *properties, const uint64_t (*inputs)[3],
                                uint32_t input_count, remat_gradient_check *check)
{
    REMAT_TRY(backend_open(b->context, &(backend_options){.kernels = "reference", .threads = 1}, &b->device));
    REMAT_TRY(backend_queue_create(b->device, &b->queue));
    recording_begin(&b->calls, b->device);
    b->node.device = b->device;
    REMAT_TRY(set_properties(b, properties));
    REMAT_TRY(resolve(b, inputs, input_count));
    if (b->node.view)
        return REMAT_OK; /* nothing runs */
    REMAT_TRY(make_tensors(b));
    return compare_all(b, check);
}

remat_status remat_custom_layer_check_sized(remat_context *context, const char *type, const char *const *properties,
                                            uint64_t batch, const uint64_t (*inputs)[3], uint32_t input_count,
                                            remat_gradient_check *check, size_t check_size)
{
    remat_gradient_check found = {0};
    bench *b = remat_alloc_zeroed(context, 1, sizeof *b);
    if (!b)
        return REMAT_NO_MEMORY;
    b->context = context;
    b->stream = remat_random_stream(1, 0, 0);
    layer_node_use(&b->node, &b->room);
    text_pool_begin(&b->texts, context);
    remat_status status = model_find_type(context, type, &b->node.type);
    if (status == REMAT_OK) {
        bool single = layer_registry_is_single(b->node.type);
        b->node.name = type;
        b->node.batch = batch;
        b->node.dtype = single ? REMAT_FP32 : REMAT_FP64;
        found.allowed_error = single ? 2e-2 : 1e-6;
        status = check_layer(b, properties, inputs, input_count, &found);
    }
    for (size_t i = 0; i < b->owned_count; i++)
        remat_release(context, b->owned[i], b->owned_bytes[i], 1);
    recording_end(&b->calls);
    backend_queue_destroy(b->queue);
    backend_close(b->device);
    text_pool_end(&b->texts);
    remat_release(context, b, 1, sizeof *b);
    if (check)
        remat_struct_give(check, check_size, &found, sizeof found);
    return status;
}
