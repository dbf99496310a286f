/* dropout: in training some of the values become 0 and the others grow to make up for it. Which ones follows from the
 * call's random stream alone: nothing is saved, a forward that runs again and the backward draw the same. */
#include "layers/layer_resolve.h"

#include <string.h>

typedef struct dropout_options {
    double rate;
} dropout_options;

static const property properties[] = {
    {"rate", PROPERTY_NUMBER, offsetof(dropout_options, rate), "0.5", 0, 1, NULL, "the share of values that become 0"},
    {0},
};

static real keep_of(const layer_node *layer)
{
    const dropout_options *options = layer->options;
    return (real)(1 - options->rate);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    if (keep_of(layer) == 1) {
        layer->view = layer->passes_gradient = true;
        return REMAT_OK;
    }
    layer->forward_in_place = layer->derivative_in_place = true;
    layer_set_pointwise_flops(layer, 15, 15);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    uint64_t count = layer_input_values(layer, 0);
    if (call->training && !layer->view)
        call->kernels->dropout(call->run, count, &call->random, keep_of(layer), call->inputs[0], call->output, false);
    else if (call->output != call->inputs[0])
        memcpy(call->output, call->inputs[0], count * sizeof(real));
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    if (call->d_inputs[0] && !layer->view)
        call->kernels->dropout(call->run, layer_input_values(layer, 0), &call->random, keep_of(layer), call->d_output,
                               call->d_inputs[0], call->accumulate_inputs[0]);
}

const layer_type layer_type_dropout = {
    .name = "dropout",
    .summary = "some values become 0, by chance, in training",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(dropout_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
