/* lstm and gru: a state that every step of a sequence changes. The formulas, the order of the gates and the parameters are
 * those of PyTorch.
 *
 *     forward     gates of all steps = x weight_ih' + bias_ih            one GEMM
 *                 step by step: + hidden weight_hh' + bias_hh, the cell   a GEMM and a cell for each step
 *     backward    step by step, from the last: the cell's gradients, and those of the state before
 *                 all steps together: the gradients of weights and inputs
 *
 * Saved are the gates of all steps after their activation, and of lstm the cells, of gru the state's share in the candidate.
 * The states themselves are the output. */
#include "layers/recurrent.h"

#include "base/checked.h"
#include "layers/layer_resolve.h"

#include <math.h>

typedef struct recurrent_options {
    uint64_t unit;
    bool return_sequences, bias;
} recurrent_options;

enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };
enum { GATES, STATES };

extern const layer_type layer_type_lstm;

/* ---- sizes ---- */

typedef struct recurrent_sizes {
    bool is_lstm;
    uint64_t batch, steps, in, size; /* size: of a state */
    uint64_t gates;                  /* of a step, in values: 4 or 3 times the size */
} recurrent_sizes;

static recurrent_sizes sizes_of(const layer_node *layer)
{
    const recurrent_options *options = layer->options;
    bool is_lstm = layer->type == &layer_type_lstm;
    return (recurrent_sizes){.is_lstm = is_lstm,
                             .batch = layer->batch,
                             .steps = layer->inputs[0].h,
                             .in = layer->inputs[0].w,
                             .size = options->unit,
                             .gates = (is_lstm ? 4 : 3) * options->unit};
}

/* The workspace of the backward pass, in values: the gradients of the gates; of gru also those of the state's product;
 * of the state, and of the cell. */
typedef struct recurrent_room {
    tensor_ref gates, products, hidden, cells;
} recurrent_room;

static uint64_t room_values(const recurrent_sizes *s)
{
    return s->batch * s->steps * s->gates * (s->is_lstm ? 1 : 2) + s->batch * s->size * (s->is_lstm ? 2 : 1);
}

static recurrent_room divide(const recurrent_sizes *s, remat_dtype dtype, tensor_ref workspace)
{
    recurrent_room room = {.gates = {workspace.at, dtype}};
    uint64_t all = s->batch * s->steps * s->gates;
    room.products = s->is_lstm ? room.gates : tensor_from(room.gates, all);
    room.hidden = tensor_from(room.products, all);
    room.cells = tensor_from(room.hidden, s->batch * s->size);
    return room;
}

/* Those who want the last state only read the last row of a sequence of states. */
static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    recurrent_options options = *(const recurrent_options *)layer->options;
    if (options.return_sequences)
        return REMAT_OK;
    options.return_sequences = true;
    REMAT_TRY(parts->add(parts, layer->type, NULL, (int[]){-1}, 1, &options));
    return parts->add(parts, &layer_type_last_step, "last", (int[]){0}, 1, &options);
}

static remat_status add_parameters(remat_context *context, layer_node *layer, const recurrent_sizes *s, bool bias)
{
    double bound = 1 / sqrt((double)s->size);
    const uint64_t inputs[4] = {s->gates, s->in}, states[4] = {s->gates, s->size}, biases[4] = {s->gates};
    REMAT_TRY(layer_add_parameter(context, layer, "weight_ih", inputs, LAYER_UNIFORM, bound));
    REMAT_TRY(layer_add_parameter(context, layer, "weight_hh", states, LAYER_UNIFORM, bound));
    if (!bias)
        return REMAT_OK;
    REMAT_TRY(layer_add_parameter(context, layer, "bias_ih", biases, LAYER_UNIFORM, bound));
    return layer_add_parameter(context, layer, "bias_hh", biases, LAYER_UNIFORM, bound);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const recurrent_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    const char *name = layer->type->name;
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: the input must be a sequence 1:steps:width, but is %s",
                          name, layer_shape_write(in).text);
    if (options->unit > UINT32_MAX)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: unit is too large", name);
    recurrent_sizes s = sizes_of(layer);
    /* The largest tensor is the workspace; everything else is smaller. */
    REMAT_TRY(layer_check_size(context, layer, (layer_shape){1, in.h, 2 * s.gates + 2 * s.size}, layer->batch));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){1, in.h, s.size}));
    REMAT_TRY(add_parameters(context, layer, &s, options->bias));
    uint64_t rows = s.batch * s.steps;
    REMAT_TRY(layer_add_saved(context, layer, "gates", rows * s.gates, layer->dtype));
    REMAT_TRY(layer_add_saved(context, layer, s.is_lstm ? "cells" : "candidates", rows * s.size, layer->dtype));
    if (!s.is_lstm)
        REMAT_TRY(layer_set_workspace(context, layer, s.batch * s.gates, &layer->workspace[LAYER_FORWARD]));
    REMAT_TRY(layer_set_workspace(context, layer, room_values(&s), &layer->workspace[LAYER_INPUT_GRADIENT]));
    uint32_t for_weights = layer->frozen ? 0 : LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_OUTPUT;
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_SAVED | for_weights | (s.is_lstm ? 0 : LAYER_NEEDS_OUTPUT);
    layer->flops[LAYER_FORWARD] = layer_flops(2 * rows, s.gates, s.in + s.size);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(layer->flops[LAYER_FORWARD], layer->frozen ? 1 : 2, 1);
    return REMAT_OK;
}

/* ---- forward ---- */

static remat_status add_bias(const layer_call *call, const recurrent_sizes *s, uint64_t rows, tensor_ref x)
{
    if (!call->parameters[BIAS_HH].at)
        return REMAT_OK;
    return record_add_to_rows(
        call->calls,
        &(op_add_to_rows){.x = x, .addend = call->parameters[BIAS_HH], .y = x, .rows = rows, .columns = s->gates});
}

/* to (+)= the states of the step before, times weight_hh'. Rows of `to` are `row` values apart. */
static remat_status multiply_states(const layer_call *call, const recurrent_sizes *s, uint64_t step, tensor_ref to,
                                    uint64_t row, bool accumulate)
{
    return record_gemm(call->calls, &(op_gemm){.a = tensor_from(call->output, (step - 1) * s->size),
                                               .b = call->parameters[WEIGHT_HH],
                                               .c = to,
                                               .m = s->batch,
                                               .n = s->gates,
                                               .k = s->size,
                                               .lda = s->steps * s->size,
                                               .ldb = s->size,
                                               .ldc = row,
                                               .transpose_b = true,
                                               .accumulate = accumulate});
}

static remat_status lstm_step(const layer_call *call, const recurrent_sizes *s, uint64_t step)
{
    const tensor_ref gates = tensor_from(call->saved[GATES], step * s->gates);
    if (step > 0)
        REMAT_TRY(multiply_states(call, s, step, gates, s->steps * s->gates, true));
    return record_lstm_cell(
        call->calls,
        &(op_lstm_cell){.gates = gates,
                        .before = step > 0 ? tensor_from(call->saved[STATES], (step - 1) * s->size) : TENSOR_NONE,
                        .cells = tensor_from(call->saved[STATES], step * s->size),
                        .hidden = tensor_from(call->output, step * s->size),
                        .batch = s->batch,
                        .size = s->size,
                        .gates_row = s->steps * s->gates,
                        .state_row = s->steps * s->size});
}

/* The product of a state has its own place: the candidate's part is multiplied by the reset gate before it is added. */
static remat_status gru_step(const layer_node *layer, const layer_call *call, const recurrent_sizes *s, uint64_t step)
{
    const tensor_ref product = {call->workspace.at, layer->dtype};
    if (step > 0)
        REMAT_TRY(multiply_states(call, s, step, product, s->gates, false));
    else
        REMAT_TRY(record_fill(call->calls, &(op_fill){.y = product, .count = s->batch * s->gates}));
    REMAT_TRY(add_bias(call, s, s->batch, product));
    return record_gru_cell(
        call->calls, &(op_gru_cell){.gates = tensor_from(call->saved[GATES], step * s->gates),
                                    .product = product,
                                    .before = step > 0 ? tensor_from(call->output, (step - 1) * s->size) : TENSOR_NONE,
                                    .candidate = tensor_from(call->saved[STATES], step * s->size),
                                    .hidden = tensor_from(call->output, step * s->size),
                                    .batch = s->batch,
                                    .size = s->size,
                                    .gates_row = s->steps * s->gates,
                                    .state_row = s->steps * s->size});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const recurrent_sizes s = sizes_of(layer);
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = call->inputs[0],
                                                  .b = call->parameters[WEIGHT_IH],
                                                  .c = call->saved[GATES],
                                                  .bias = call->parameters[BIAS_IH],
                                                  .m = s.batch * s.steps,
                                                  .n = s.gates,
                                                  .k = s.in,
                                                  .lda = s.in,
                                                  .ldb = s.in,
                                                  .ldc = s.gates,
                                                  .transpose_b = true}));
    if (s.is_lstm)
        REMAT_TRY(add_bias(call, &s, s.batch * s.steps, call->saved[GATES]));
    for (uint64_t step = 0; step < s.steps; step++)
        REMAT_TRY(s.is_lstm ? lstm_step(call, &s, step) : gru_step(layer, call, &s, step));
    return REMAT_OK;
}

/* ---- backward ---- */

static remat_status lstm_step_back(const layer_call *call, const recurrent_sizes *s, const recurrent_room *room,
                                   uint64_t step)
{
    bool is_last = step + 1 == s->steps;
    return record_lstm_cell_backward(
        call->calls, &(op_lstm_cell_backward){
                         .gates = tensor_from(call->saved[GATES], step * s->gates),
                         .before = step > 0 ? tensor_from(call->saved[STATES], (step - 1) * s->size) : TENSOR_NONE,
                         .cells = tensor_from(call->saved[STATES], step * s->size),
                         .dout = tensor_from(call->d_output, step * s->size),
                         .dhidden = is_last ? TENSOR_NONE : room->hidden,
                         .dcells = room->cells,
                         .dgates = tensor_from(room->gates, step * s->gates),
                         .batch = s->batch,
                         .size = s->size,
                         .gates_row = s->steps * s->gates,
                         .state_row = s->steps * s->size,
                         .is_last = is_last});
}

static remat_status gru_step_back(const layer_call *call, const recurrent_sizes *s, const recurrent_room *room,
                                  uint64_t step)
{
    return record_gru_cell_backward(
        call->calls,
        &(op_gru_cell_backward){.gates = tensor_from(call->saved[GATES], step * s->gates),
                                .candidate = tensor_from(call->saved[STATES], step * s->size),
                                .before = step > 0 ? tensor_from(call->output, (step - 1) * s->size) : TENSOR_NONE,
                                .dout = tensor_from(call->d_output, step * s->size),
                                .dhidden = room->hidden,
                                .dgates = tensor_from(room->gates, step * s->gates),
                                .dproduct = tensor_from(room->products, step * s->gates),
                                .batch = s->batch,
                                .size = s->size,
                                .gates_row = s->steps * s->gates,
                                .state_row = s->steps * s->size,
                                .is_last = step + 1 == s->steps});
}

/* The gradient of the state before, from that of its product. Of gru the cell has put its own share there already. */
static remat_status state_gradient(const layer_call *call, const recurrent_sizes *s, const recurrent_room *room,
                                   uint64_t step)
{
    return record_gemm(call->calls, &(op_gemm){.a = tensor_from(room->products, step * s->gates),
                                               .b = call->parameters[WEIGHT_HH],
                                               .c = room->hidden,
                                               .m = s->batch,
                                               .n = s->size,
                                               .k = s->gates,
                                               .lda = s->steps * s->gates,
                                               .ldb = s->size,
                                               .ldc = s->size,
                                               .accumulate = !s->is_lstm});
}

/* The gradient of weight_hh: a sum over all steps but the first, which begins with a state of 0. */
static remat_status state_weight_gradient(const layer_call *call, const recurrent_sizes *s, const recurrent_room *room)
{
    bool adds = call->accumulate_gradients[WEIGHT_HH];
    if (s->steps == 1 && !adds)
        return record_fill(call->calls,
                           &(op_fill){.y = call->gradients[WEIGHT_HH], .count = s->gates * s->size, .value = 0});
    for (uint64_t step = 1; step < s->steps; step++)
        REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = tensor_from(room->products, step * s->gates),
                                                      .b = tensor_from(call->output, (step - 1) * s->size),
                                                      .c = call->gradients[WEIGHT_HH],
                                                      .m = s->gates,
                                                      .n = s->size,
                                                      .k = s->batch,
                                                      .lda = s->steps * s->gates,
                                                      .ldb = s->steps * s->size,
                                                      .ldc = s->size,
                                                      .transpose_a = true,
                                                      .accumulate = adds || step > 1}));
    return REMAT_OK;
}

static remat_status bias_gradient(const layer_call *call, const recurrent_sizes *s, tensor_ref from, int bias)
{
    if (!call->gradients[bias].at)
        return REMAT_OK;
    return record_column_sums(call->calls, &(op_column_sums){.x = from,
                                                             .sums = call->gradients[bias],
                                                             .rows = s->batch * s->steps,
                                                             .columns = s->gates,
                                                             .accumulate = call->accumulate_gradients[bias]});
}

static remat_status weight_gradients(const layer_call *call, const recurrent_sizes *s, const recurrent_room *room)
{
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = room->gates,
                                                  .b = call->inputs[0],
                                                  .c = call->gradients[WEIGHT_IH],
                                                  .m = s->gates,
                                                  .n = s->in,
                                                  .k = s->batch * s->steps,
                                                  .lda = s->gates,
                                                  .ldb = s->in,
                                                  .ldc = s->in,
                                                  .transpose_a = true,
                                                  .accumulate = call->accumulate_gradients[WEIGHT_IH]}));
    REMAT_TRY(state_weight_gradient(call, s, room));
    REMAT_TRY(bias_gradient(call, s, room->gates, BIAS_IH));
    return bias_gradient(call, s, room->products, BIAS_HH);
}

/* One pass for all gradients: that of the gates, which all others come from, is never kept. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const recurrent_sizes s = sizes_of(layer);
    const recurrent_room room = divide(&s, layer->dtype, call->workspace);
    if (!call->gradients[WEIGHT_IH].at && !call->d_inputs[0].at)
        return REMAT_OK;
    for (uint64_t step = s.steps; step-- > 0;) {
        REMAT_TRY(s.is_lstm ? lstm_step_back(call, &s, &room, step) : gru_step_back(call, &s, &room, step));
        if (step > 0)
            REMAT_TRY(state_gradient(call, &s, &room, step));
    }
    if (call->gradients[WEIGHT_IH].at)
        REMAT_TRY(weight_gradients(call, &s, &room));
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    return record_gemm(call->calls, &(op_gemm){.a = room.gates,
                                               .b = call->parameters[WEIGHT_IH],
                                               .c = call->d_inputs[0],
                                               .m = s.batch * s.steps,
                                               .n = s.in,
                                               .k = s.gates,
                                               .lda = s.gates,
                                               .ldb = s.in,
                                               .ldc = s.in,
                                               .accumulate = call->accumulate_inputs[0]});
}

static const property properties[] = {
    {"unit", PROPERTY_COUNT, offsetof(recurrent_options, unit), NULL, 1, 0, NULL, "how many values a state has"},
    {"return_sequences", PROPERTY_FLAG, offsetof(recurrent_options, return_sequences), "false", 0, 0, NULL,
     "whether the states of all steps come out, or the last one only"},
    {"bias", PROPERTY_FLAG, offsetof(recurrent_options, bias), "true", 0, 0, NULL, "whether biases are added"},
    {0},
};

const layer_type layer_type_lstm = {
    .name = "lstm",
    .summary = "a long short-term memory over the steps of a sequence",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(recurrent_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .expand = expand,
    .fp32_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

const layer_type layer_type_gru = {
    .name = "gru",
    .summary = "a gated recurrent unit over the steps of a sequence",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(recurrent_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .expand = expand,
    .fp32_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
