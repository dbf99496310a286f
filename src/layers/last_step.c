/* last_step: the last row of a sequence. It is also a part of lstm and gru that give their last state only. */
#include "layers/layer_resolve.h"
#include "layers/recurrent.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    layer_shape in = layer->inputs[0];
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "last_step: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    layer_set_pointwise_flops(layer, 1, 1);
    return layer_set_output(context, layer, (layer_shape){1, 1, in.w});
}

static remat_status copy(const layer_node *layer, const layer_call *call, tensor_ref x, tensor_ref y, uint64_t x_row,
                         uint64_t y_row, bool accumulate)
{
    return record_copy_rows(call->calls, &(op_copy_rows){.x = x,
                                                         .y = y,
                                                         .rows = layer->batch,
                                                         .columns = layer->inputs[0].w,
                                                         .x_row = x_row,
                                                         .y_row = y_row,
                                                         .accumulate = accumulate});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    layer_shape in = layer->inputs[0];
    return copy(layer, call, tensor_from(call->inputs[0], (in.h - 1) * in.w), call->output, in.h * in.w, in.w, false);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    layer_shape in = layer->inputs[0];
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    if (!call->accumulate_inputs[0])
        REMAT_TRY(record_fill(call->calls, &(op_fill){.y = call->d_inputs[0], .count = layer_input_values(layer, 0)}));
    return copy(layer, call, call->d_output, tensor_from(call->d_inputs[0], (in.h - 1) * in.w), in.w, in.h * in.w,
                call->accumulate_inputs[0]);
}

const layer_type layer_type_last_step = {
    .name = "last_step",
    .summary = "the last row of a sequence",
    .hint = REMAT_OTHER,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
