/* concat: joins its inputs along one dimension. In memory these are rows, and each row has a piece of every input. */
#include "base/checked.h"
#include "layers/layer_resolve.h"

static const char *const axes[] = {"c", "h", "w", NULL};
enum { AXIS_C, AXIS_H, AXIS_W };

typedef struct concat_options {
    uint32_t axis;
} concat_options;

static const property properties[] = {
    {"axis", PROPERTY_CHOICE, offsetof(concat_options, axis), "w", 0, 0, axes, "the dimension that grows"},
    {0},
};

static uint64_t *dimension_of(layer_shape *shape, uint32_t axis)
{
    return axis == AXIS_C ? &shape->c : axis == AXIS_H ? &shape->h : &shape->w;
}

/* The values of a shape from the axis on. */
static uint64_t piece_of(layer_shape shape, uint32_t axis)
{
    return axis == AXIS_C ? layer_values(shape) : axis == AXIS_H ? shape.h * shape.w : shape.w;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const concat_options *options = layer->options;
    layer_shape sum = layer->inputs[0];
    for (uint32_t i = 1; i < layer->input_count; i++) {
        layer_shape alike = layer->inputs[i];
        *dimension_of(&alike, options->axis) = *dimension_of(&layer->inputs[0], options->axis);
        if (!layer_shapes_equal(alike, layer->inputs[0]))
            return remat_fail(context, REMAT_INVALID, NULL,
                              "concat: inputs may differ along axis %s only, but input 1 is %s and input %u is %s",
                              axes[options->axis], layer_shape_write(layer->inputs[0]).text, i + 1,
                              layer_shape_write(layer->inputs[i]).text);
        if (!remat_add(dimension_of(&sum, options->axis), *dimension_of(&layer->inputs[i], options->axis)))
            return remat_fail(context, REMAT_INVALID, NULL, "concat: the output is too large");
    }
    REMAT_TRY(layer_set_output(context, layer, sum));
    layer_set_pointwise_flops(layer, 1, 1);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const concat_options *options = layer->options;
    uint64_t row = piece_of(layer->output, options->axis), at = 0;
    for (uint32_t i = 0; i < layer->input_count; i++) {
        uint64_t piece = piece_of(layer->inputs[i], options->axis);
        REMAT_TRY(record_copy_rows(call->calls, &(op_copy_rows){.x = call->inputs[i],
                                                                .y = tensor_from(call->output, at),
                                                                .rows = layer_input_values(layer, i) / piece,
                                                                .columns = piece,
                                                                .x_row = piece,
                                                                .y_row = row}));
        at += piece;
    }
    return REMAT_OK;
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const concat_options *options = layer->options;
    uint64_t row = piece_of(layer->output, options->axis), at = 0;
    for (uint32_t i = 0; i < layer->input_count; i++) {
        uint64_t piece = piece_of(layer->inputs[i], options->axis);
        if (call->d_inputs[i].at)
            REMAT_TRY(record_copy_rows(call->calls, &(op_copy_rows){.x = tensor_from(call->d_output, at),
                                                                    .y = call->d_inputs[i],
                                                                    .rows = layer_input_values(layer, i) / piece,
                                                                    .columns = piece,
                                                                    .x_row = row,
                                                                    .y_row = piece,
                                                                    .accumulate = call->accumulate_inputs[i]}));
        at += piece;
    }
    return REMAT_OK;
}

const layer_type layer_type_concat = {
    .name = "concat",
    .summary = "its inputs side by side along one dimension",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(concat_options),
    .properties = properties,
    .min_inputs = 2,
    .max_inputs = LAYER_MAX_INPUTS,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
