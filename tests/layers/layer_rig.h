/* One layer on a test bench: every tensor in memory of its own, backward calls see only what resolve() said they read. All
 * in a header, because the tests of gradients compute in double: they define RIG_REAL and RIG_DTYPE before. */
#ifndef TESTS_LAYER_RIG_H
#define TESTS_LAYER_RIG_H

#include "layers/layer_cases.h"
#include "support/cases.h"

#include <math.h>

#ifndef RIG_REAL
#define RIG_REAL  float
#define RIG_DTYPE REMAT_FP32
#endif
typedef RIG_REAL real;

static bool rig_freezes; /* layers that are resolved from now on are not trained */

typedef struct layer_rig {
    remat_context *context;
    backend *device;
    backend_queue *queue;
    recording calls;
    layer_node node;
    layer_room room;
    layer_call call;     /* everything a forward gets; backward calls are made from it */
    tensor_ref d_output; /* random; none for losses */
    step_block block;
    char names[6][32]; /* the keys of the properties */
} layer_rig;

/* The values of a tensor. */
static inline real *rig_values(tensor_ref tensor)
{
    return tensor.at;
}

static inline uint64_t rig_input_values(const layer_rig *rig, uint32_t i)
{
    return rig->node.batch * layer_values(rig->node.inputs[i]);
}

static inline uint64_t rig_output_values(const layer_rig *rig)
{
    return rig->node.batch * layer_values(rig->node.output);
}

static inline uint64_t rig_parameter_values(const layer_rig *rig, uint32_t p)
{
    uint64_t values = 1;
    for (uint32_t d = 0; d < rig->node.parameters[p].rank; d++)
        values *= rig->node.parameters[p].dims[d];
    return values;
}

static inline uint64_t rig_saved_bytes(const layer_rig *rig, uint32_t s)
{
    return dtype_bytes(rig->node.saved[s].dtype, rig->node.saved[s].count);
}

/* Bytes that are not a number to anybody who reads them too early; exactly as many as asked for. */
static inline void *rig_alloc(uint64_t bytes)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, bytes ? bytes : 1), 0);
    memset(memory, 0xff, bytes);
    return memory;
}

static inline tensor_ref rig_tensor(uint64_t count)
{
    return (tensor_ref){rig_alloc(count * sizeof(real)), RIG_DTYPE};
}

static inline tensor_ref rig_copy(tensor_ref from, uint64_t count)
{
    tensor_ref copy = rig_tensor(count);
    memcpy(copy.at, from.at, count * sizeof(real));
    return copy;
}

/* A shuffle of evenly spaced values between -2 and 2: no two alike and none at 0, where some functions have a bend. */
static inline tensor_ref rig_spread(test_random *random, uint64_t count)
{
    tensor_ref spread = rig_tensor(count);
    real *values = rig_values(spread);
    for (uint64_t i = 0; i < count; i++)
        values[i] = (real)(((double)i + 0.3) / (double)count * 4 - 2);
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = test_random_below(random, i);
        real kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
    return spread;
}

static inline tensor_ref rig_numbers(test_random *random, uint64_t count, int32_t below)
{
    int32_t *numbers = rig_alloc(count * sizeof *numbers);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = (int32_t)test_random_below(random, (uint64_t)below);
    return (tensor_ref){numbers, REMAT_INT32};
}

/* Inputs as the model would type them: tokens, classes, or numbers. */
static inline remat_dtype rig_input_dtype(const layer_node *node, uint32_t i)
{
    const layer_type *type = node->type;
    bool classes = type->labels == LAYER_LABELS_CLASSES && i == 1;
    return (type->reads_tokens && type->reads_tokens(node, i)) || classes ? REMAT_INT32 : RIG_DTYPE;
}

/* The layer with its properties set and resolved, without any tensors. */
static inline remat_status rig_resolve(layer_rig *rig, remat_context *context, const layer_case *from,
                                       const backend_options *options)
{
    const layer_type *type = layer_type_find(from->type);
    assert_non_null(type);
    *rig = (layer_rig){.context = context};
    rig->node =
        (layer_node){.type = type, .name = "tested", .dtype = RIG_DTYPE, .batch = from->batch, .frozen = rig_freezes};
    layer_node_use(&rig->node, &rig->room);
    assert_int_equal(backend_open(context, options, &rig->device), REMAT_OK);
    rig->node.device = rig->device;
    void *properties = calloc(1, type->options_bytes + 1);
    rig->node.options = properties;
    for (; rig->node.input_count < 4 && from->inputs[rig->node.input_count].c; rig->node.input_count++)
        rig->node.inputs[rig->node.input_count] = from->inputs[rig->node.input_count];
    remat_status status = properties_init(context, type->properties, properties);
    for (int i = 0; i < 6 && from->properties[i] && status == REMAT_OK; i++) {
        if (strcmp(from->properties[i], OUTPUT_UNREAD) == 0) {
            rig->node.output_unread = true;
            continue;
        }
        const char *text = strchr(from->properties[i], '=');
        snprintf(rig->names[i], sizeof rig->names[i], "%.*s", (int)(text - from->properties[i]), from->properties[i]);
        status = property_set(context, type->name, type->properties, properties, rig->names[i], text + 1);
    }
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        rig->node.input_dtypes[i] = rig_input_dtype(&rig->node, i);
    return status == REMAT_OK ? type->resolve(context, &rig->node) : status;
}

/* Ends what rig_resolve() began. */
static inline void rig_forget(layer_rig *rig)
{
    free((void *)rig->node.options);
    backend_close(rig->device);
}

static inline uint64_t rig_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline tensor_ref rig_workspace(const layer_node *node)
{
    uint64_t backward = node->workspace[LAYER_INPUT_GRADIENT] + node->accumulate_workspace;
    uint64_t bytes =
        rig_most(node->workspace[LAYER_FORWARD], rig_most(node->workspace[LAYER_WEIGHT_GRADIENT], backward));
    return (tensor_ref){rig_alloc(bytes), REMAT_UINT8};
}

static inline void rig_open(layer_rig *rig, remat_context *context, const layer_case *from,
                            const backend_options *options, test_random *random)
{
    remat_status status = rig_resolve(rig, context, from, options);
    if (status != REMAT_OK)
        fail_msg("%s: %s", from->type, remat_context_message(context));
    const layer_node *node = &rig->node;
    layer_call *call = &rig->call;
    assert_int_equal(backend_queue_create(rig->device, &rig->queue), REMAT_OK);
    recording_begin(&rig->calls, rig->device);
    call->calls = &rig->calls;
    for (uint32_t i = 0; i < node->input_count; i++)
        call->inputs[i] = node->input_dtypes[i] == REMAT_INT32
                              ? rig_numbers(random, rig_input_values(rig, i), from->numbers)
                              : rig_spread(random, rig_input_values(rig, i));
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        call->parameters[p] = rig_spread(random, rig_parameter_values(rig, p));
        real *values = rig_values(call->parameters[p]);
        for (uint64_t i = 0; i < rig_parameter_values(rig, p) && node->parameters[p].statistic; i++)
            values[i] = values[i] * values[i] + (real)0.1; /* a variance */
        if (layer_parameter_is_trained(&node->parameters[p]) && !node->frozen)
            call->gradients[p] = rig_tensor(rig_parameter_values(rig, p));
    }
    for (uint32_t s = 0; s < node->saved_count; s++)
        call->saved[s] = (tensor_ref){rig_alloc(rig_saved_bytes(rig, s)), node->saved[s].dtype};
    if (!node->loss) {
        call->output = rig_tensor(rig_output_values(rig));
        rig->d_output = rig_spread(random, rig_output_values(rig));
    }
    call->workspace = rig_workspace(node);
    rig->block = (step_block){.seed = test_random_next(random), .step = 5, .scale = 1};
    call->step = (tensor_ref){&rig->block, REMAT_UINT8};
    call->number = 3;
    call->loss_share = 0.25;
    call->training = true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->input_dtypes[i] != REMAT_INT32 && !(node->loss && i > 0))
            call->d_inputs[i] = rig_tensor(rig_input_values(rig, i));
}

static inline void rig_close(layer_rig *rig)
{
    for (uint32_t i = 0; i < LAYER_MAX_INPUTS; i++) {
        free(rig->call.inputs[i].at);
        free(rig->call.d_inputs[i].at);
    }
    for (uint32_t p = 0; p < LAYER_MAX_PARAMETERS; p++) {
        free(rig->call.parameters[p].at);
        free(rig->call.gradients[p].at);
    }
    for (uint32_t s = 0; s < LAYER_MAX_SAVED; s++)
        free(rig->call.saved[s].at);
    free(rig->call.output.at);
    free(rig->call.workspace.at);
    free(rig->d_output.at);
    recording_end(&rig->calls);
    backend_queue_destroy(rig->queue);
    rig_forget(rig);
}

/* Runs what a pass of the layer records. */
static inline void rig_run(layer_rig *rig, layer_function pass, const layer_call *call)
{
    layer_call recorded = *call;
    recorded.calls = &rig->calls;
    rig->calls.used = 0;
    if (pass(&rig->node, &recorded) != REMAT_OK)
        fail_msg("%s: %s", rig->node.type->name, remat_context_message(rig->context));
    assert_int_equal(backend_run(rig->queue, &rig->calls, 0, rig->calls.used), REMAT_OK);
    assert_int_equal(backend_wait(rig->queue), REMAT_OK);
}

/* One forward; a view's output is a copy of its input. */
static inline void rig_forward(layer_rig *rig, const layer_call *call)
{
    if (rig->node.view)
        memcpy(call->output.at, call->inputs[0].at, rig_output_values(rig) * sizeof(real));
    else
        rig_run(rig, rig->node.type->forward, call);
}

/* The call with only those tensors that `needs` names. */
static inline layer_call rig_backward_call(const layer_rig *rig, const layer_call *call, uint32_t needs)
{
    layer_call backward = *call;
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        if (!(needs & LAYER_NEEDS_INPUT(i)))
            backward.inputs[i] = TENSOR_NONE;
    if (!(needs & LAYER_NEEDS_OUTPUT))
        backward.output = TENSOR_NONE;
    for (uint32_t s = 0; s < rig->node.saved_count && !(needs & LAYER_NEEDS_SAVED); s++)
        backward.saved[s] = TENSOR_NONE;
    if (!backward.d_output.at)
        backward.d_output = rig->d_output;
    return backward;
}

/* The gradients of weights and inputs, as the model would ask for them. A layer that passes its gradient on leaves it to the
 * model. */
static inline void rig_backward(layer_rig *rig, const layer_call *call)
{
    const layer_node *node = &rig->node;
    if (node->type->weight_gradient) {
        layer_call weights = rig_backward_call(rig, call, node->needs[LAYER_WEIGHT_GRADIENT]);
        memset(weights.d_inputs, 0, sizeof weights.d_inputs);
        rig_run(rig, node->type->weight_gradient, &weights);
    }
    for (uint32_t i = 0; i < node->input_count && node->passes_gradient; i++) {
        real *d_input = rig_values(call->d_inputs[i]);
        for (uint64_t k = 0; k < rig_input_values(rig, i); k++)
            d_input[k] = rig_values(rig->d_output)[k] + (call->accumulate_inputs[i] ? d_input[k] : 0);
    }
    if (!node->passes_gradient && node->type->input_gradient) {
        layer_call inputs = rig_backward_call(rig, call, node->needs[LAYER_INPUT_GRADIENT]);
        if (node->type->weight_gradient)
            memset(inputs.gradients, 0, sizeof inputs.gradients);
        rig_run(rig, node->type->input_gradient, &inputs);
    }
}

#endif
