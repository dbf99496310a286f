/* addition: the sum of its inputs. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_require_equal_shapes(context, layer));
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    layer->passes_gradient = true;
    /* Of more than two inputs another could be the same tensor as input 0, and would be read after it is overwritten. */
    layer->forward_in_place = layer->input_count == 2;
    layer_set_pointwise_flops(layer, layer->input_count - 1, 0);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    uint64_t count = layer_input_values(layer, 0);
    REMAT_TRY(record_add(call->calls,
                         &(op_add){.a = call->inputs[0], .b = call->inputs[1], .y = call->output, .count = count}));
    for (uint32_t i = 2; i < layer->input_count; i++)
        REMAT_TRY(
            record_accumulate(call->calls, &(op_accumulate){.x = call->inputs[i], .y = call->output, .count = count}));
    return REMAT_OK;
}

const layer_type layer_type_addition = {
    .name = "addition",
    .summary = "the sum of its inputs",
    .hint = REMAT_OTHER,
    .min_inputs = 2,
    .max_inputs = LAYER_MAX_INPUTS,
    .resolve = resolve,
    .forward = forward,
};
