/* One layer on a test bench: every tensor in memory of its own, backward calls see only what resolve() said they read.
 * All in a header, because it is compiled for float and for double. */
#ifndef TESTS_LAYER_RIG_H
#define TESTS_LAYER_RIG_H

#include "layers/layer_cases.h"
#include "support/cases.h"

#include <math.h>

typedef struct layer_rig {
    remat_context *context;
    layer_node node;
    layer_call call; /* everything a forward gets; backward calls are made from it */
    kernel_run run;
    real *d_output; /* random; NULL for losses */
    double loss;
    char names[6][32]; /* the keys of the properties */
} layer_rig;

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

/* Bytes that are not a number to anybody who reads them too early; exactly as many as asked for. */
static inline void *rig_alloc(uint64_t bytes)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, bytes ? bytes : 1), 0);
    memset(memory, 0xff, bytes);
    return memory;
}

static inline real *rig_copy(const real *from, uint64_t count)
{
    real *copy = rig_alloc(count * sizeof(real));
    memcpy(copy, from, count * sizeof(real));
    return copy;
}

/* A shuffle of evenly spaced values between -2 and 2: no two alike and none at 0, where some functions have a bend. */
static inline real *rig_spread(test_random *random, uint64_t count)
{
    real *values = rig_alloc(count * sizeof(real));
    for (uint64_t i = 0; i < count; i++)
        values[i] = (real)(((double)i + 0.3) / (double)count * 4 - 2);
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = test_random_below(random, i);
        real kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
    return values;
}

static inline int32_t *rig_numbers(test_random *random, uint64_t count, int32_t below)
{
    int32_t *numbers = rig_alloc(count * sizeof *numbers);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = (int32_t)test_random_below(random, (uint64_t)below);
    return numbers;
}

/* The layer with its properties set and resolved, without any tensors. */
static inline remat_status rig_resolve(layer_rig *rig, remat_context *context, const layer_case *from)
{
    const layer_type *type = layer_type_find(from->type);
    assert_non_null(type);
    *rig = (layer_rig){.context = context, .node = {.type = type, .name = "tested", .batch = from->batch}};
    void *options = calloc(1, type->options_bytes + 1);
    rig->node.options = options;
    for (; rig->node.input_count < 4 && from->inputs[rig->node.input_count].c; rig->node.input_count++)
        rig->node.inputs[rig->node.input_count] = from->inputs[rig->node.input_count];
    remat_status status = properties_init(context, type->properties, options);
    for (int i = 0; i < 6 && from->properties[i] && status == REMAT_OK; i++) {
        const char *text = strchr(from->properties[i], '=');
        snprintf(rig->names[i], sizeof rig->names[i], "%.*s", (int)(text - from->properties[i]), from->properties[i]);
        status = property_set(context, type->name, type->properties, options, rig->names[i], text + 1);
    }
    return status == REMAT_OK ? type->resolve(context, &rig->node) : status;
}

static inline uint64_t rig_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline void rig_open(layer_rig *rig, remat_context *context, const layer_case *from, const kernel_table *kernels,
                            test_random *random)
{
    remat_status status = rig_resolve(rig, context, from);
    if (status != REMAT_OK)
        fail_msg("%s: %s", from->type, remat_context_message(context));
    const layer_node *node = &rig->node;
    layer_call *call = &rig->call;
    call->kernels = kernels;
    rig->run = (kernel_run){1, rig_alloc(kernels->scratch_bytes)};
    call->run = &rig->run;
    for (uint32_t i = 0; i < node->input_count; i++)
        call->inputs[i] = node->integer_inputs & 1u << i
                              ? (void *)rig_numbers(random, rig_input_values(rig, i), from->numbers)
                              : (void *)rig_spread(random, rig_input_values(rig, i));
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        call->parameters[p] = rig_spread(random, rig_parameter_values(rig, p));
        for (uint64_t i = 0; i < rig_parameter_values(rig, p) && node->parameters[p].statistic; i++)
            call->parameters[p][i] = call->parameters[p][i] * call->parameters[p][i] + (real)0.1; /* a variance */
        if (!node->parameters[p].statistic)
            call->gradients[p] = rig_alloc(rig_parameter_values(rig, p) * sizeof(real));
    }
    for (uint32_t s = 0; s < node->saved_count; s++)
        call->saved[s] = rig_alloc(node->saved[s].bytes);
    if (!node->loss) {
        call->output = rig_alloc(rig_output_values(rig) * sizeof(real));
        rig->d_output = rig_spread(random, rig_output_values(rig));
    }
    call->workspace =
        rig_alloc(rig_most(node->forward_workspace, rig_most(node->gradient_workspace,
                                                             node->derivative_workspace + node->accumulate_workspace)));
    call->random = remat_random_stream(test_random_next(random), 3, 5);
    call->loss = &rig->loss;
    call->loss_share = 0.25;
    call->training = true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!(node->integer_inputs & 1u << i) && !(node->loss && i > 0))
            call->d_inputs[i] = rig_alloc(rig_input_values(rig, i) * sizeof(real));
}

static inline void rig_set_threads(layer_rig *rig, int threads)
{
    free(rig->run.scratch);
    rig->run = (kernel_run){threads, rig_alloc((uint64_t)threads * rig->call.kernels->scratch_bytes)};
}

static inline void rig_close(layer_rig *rig)
{
    for (uint32_t i = 0; i < LAYER_MAX_INPUTS; i++) {
        free((void *)rig->call.inputs[i]);
        free(rig->call.d_inputs[i]);
    }
    for (uint32_t p = 0; p < LAYER_MAX_PARAMETERS; p++) {
        free(rig->call.parameters[p]);
        free(rig->call.gradients[p]);
    }
    for (uint32_t s = 0; s < LAYER_MAX_SAVED; s++)
        free(rig->call.saved[s]);
    free(rig->call.output);
    free(rig->call.workspace);
    free(rig->d_output);
    free(rig->run.scratch);
    free((void *)rig->node.options);
}

/* One forward; a view's output is a copy of its input. */
static inline void rig_forward(layer_rig *rig, const layer_call *call)
{
    if (rig->node.view)
        memcpy(call->output, call->inputs[0], rig_output_values(rig) * sizeof(real));
    else
        rig->node.type->forward(&rig->node, call);
}

/* The call with only those tensors that `needs` names. */
static inline layer_call rig_backward_call(const layer_rig *rig, const layer_call *call, uint32_t needs)
{
    layer_call backward = *call;
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        if (!(needs & LAYER_NEEDS_INPUT(i)))
            backward.inputs[i] = NULL;
    if (!(needs & LAYER_NEEDS_OUTPUT))
        backward.output = NULL;
    for (uint32_t s = 0; s < rig->node.saved_count && !(needs & LAYER_NEEDS_SAVED); s++)
        backward.saved[s] = NULL;
    if (!backward.d_output)
        backward.d_output = rig->d_output;
    return backward;
}

/* Gradient and derivative, as the model would call them. A layer that passes its gradient on leaves it to the model. */
static inline void rig_backward(layer_rig *rig, const layer_call *call)
{
    const layer_node *node = &rig->node;
    if (node->type->gradient) {
        layer_call gradient = rig_backward_call(rig, call, node->gradient_needs);
        memset(gradient.d_inputs, 0, sizeof gradient.d_inputs);
        node->type->gradient(node, &gradient);
    }
    for (uint32_t i = 0; i < node->input_count && node->passes_gradient; i++)
        for (uint64_t k = 0; k < rig_input_values(rig, i); k++)
            call->d_inputs[i][k] = rig->d_output[k] + (call->accumulate_inputs[i] ? call->d_inputs[i][k] : 0);
    if (!node->passes_gradient && node->type->derivative) {
        layer_call derivative = rig_backward_call(rig, call, node->derivative_needs);
        if (node->type->gradient)
            memset(derivative.gradients, 0, sizeof derivative.gradients);
        node->type->derivative(node, &derivative);
    }
}

#endif
