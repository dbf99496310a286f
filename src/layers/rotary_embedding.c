/* rotary_embedding: turns every head of a row by the row's position in the sequence, as op_rotate says. It has no parameters
 * and saves nothing: the gradient is turned back. A second input may hold the positions, as whole numbers. */
#include "layers/rotary_embedding.h"

#include "layers/layer_resolve.h"

#include <inttypes.h>
#include <math.h>

enum { SCALING_NONE, SCALING_LINEAR, SCALING_DYNAMIC, SCALING_LLAMA3, SCALING_YARN };

typedef struct rotary_options {
    uint64_t num_heads, original_length;
    double theta, factor, low, high, attention_factor;
    uint32_t scaling;
} rotary_options;

static const char *const scalings[] = {"none", "linear", "dynamic", "llama3", "yarn", NULL};

static const property properties[] = {
    {"num_heads", PROPERTY_COUNT, offsetof(rotary_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"theta", PROPERTY_NUMBER, offsetof(rotary_options, theta), "10000", 1.000001, 0, NULL,
     "the slowest pair of a head turns by about 1 / theta from one step to the next, the fastest by 1"},
    {"scaling", PROPERTY_CHOICE, offsetof(rotary_options, scaling), "none", 0, 0, scalings,
     "how angles are stretched for longer sequences"},
    {"factor", PROPERTY_NUMBER, offsetof(rotary_options, factor), "1", 1e-6, 0, NULL,
     "of a scaling: how many times as long the sequences may be"},
    {"original_length", PROPERTY_COUNT, offsetof(rotary_options, original_length), "0", 0, 0, NULL,
     "of dynamic, llama3 and yarn: the longest sequence before the scaling"},
    {"low_frequency", PROPERTY_NUMBER, offsetof(rotary_options, low), "1", 0, 0, NULL,
     "of llama3 and yarn: pairs that turn less often within original_length are stretched by the whole factor"},
    {"high_frequency", PROPERTY_NUMBER, offsetof(rotary_options, high), "4", 0, 0, NULL,
     "of llama3 and yarn: pairs that turn more often stay as they are; usually 32 for yarn"},
    {"attention_factor", PROPERTY_NUMBER, offsetof(rotary_options, attention_factor), "0", 0, 0, NULL,
     "of yarn: multiplies the output; 0: 0.1 ln(factor) + 1"},
    {0},
};

static rotary_angles angles_of(const layer_node *layer)
{
    const rotary_options *options = layer->options;
    const double size = (double)(layer->inputs[0].w / options->num_heads), steps = (double)layer->inputs[0].h;
    const double length = (double)options->original_length;
    rotary_angles angles = {.theta = options->theta, .factor = options->factor, .length = length};
    angles.low = options->low;
    angles.high = options->high;
    switch (options->scaling) {
    case SCALING_LINEAR: angles.scaling = ROTARY_LINEAR; break;
    case SCALING_LLAMA3: angles.scaling = ROTARY_LLAMA3; break;
    case SCALING_YARN: angles.scaling = ROTARY_YARN; break;
    case SCALING_DYNAMIC:
        if (steps > length && size > 2)
            angles.theta *= pow(options->factor * steps / length - (options->factor - 1), size / (size - 2));
        break;
    default: break;
    }
    return angles;
}

static double scale_of(const layer_node *layer)
{
    const rotary_options *options = layer->options;
    if (options->scaling != SCALING_YARN)
        return 1;
    if (options->attention_factor > 0)
        return options->attention_factor;
    return options->factor > 1 ? 0.1 * log(options->factor) + 1 : 1;
}

static bool reads_tokens(const layer_node *layer, uint32_t input)
{
    (void)layer;
    return input == 1;
}

static remat_status check_positions(remat_context *context, const layer_node *layer)
{
    const layer_shape wanted = {1, 1, layer->inputs[0].h};
    if (layer->input_count < 2 || layer_shapes_equal(layer->inputs[1], wanted))
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, NULL, "rotary_embedding: the positions must be %s, but are %s",
                      layer_shape_write(wanted).text, layer_shape_write(layer->inputs[1]).text);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const rotary_options *options = layer->options;
    const layer_shape in = layer->inputs[0];
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "rotary_embedding: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    if (in.w % options->num_heads != 0 || in.w / options->num_heads % 2 != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "rotary_embedding: width %" PRIu64 " does not give num_heads %" PRIu64
                          " an even number of values each",
                          in.w, options->num_heads);
    if (options->scaling >= SCALING_DYNAMIC && options->original_length == 0)
        return remat_fail(context, REMAT_INVALID, NULL, "rotary_embedding: scaling=%s needs original_length",
                          scalings[options->scaling]);
    if (options->scaling >= SCALING_LLAMA3 && !(options->low < options->high && options->low > 0))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "rotary_embedding: low_frequency %g must be above 0 and below high_frequency %g",
                          options->low, options->high);
    REMAT_TRY(check_positions(context, layer));
    REMAT_TRY(layer_set_output(context, layer, in));
    if (layer->input_count > 1)
        layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(1);
    layer->forward_in_place = layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 3, 3);
    return REMAT_OK;
}

static remat_status turn(const layer_node *layer, const layer_call *call, tensor_ref x, tensor_ref y, bool backward,
                         bool accumulate)
{
    const rotary_options *options = layer->options;
    return record_rotate(call->calls, &(op_rotate){.x = x,
                                                   .y = y,
                                                   .positions = layer->input_count > 1 ? call->inputs[1] : TENSOR_NONE,
                                                   .rows = layer_input_rows(layer, 0),
                                                   .steps = layer->inputs[0].h,
                                                   .heads = options->num_heads,
                                                   .size = layer->inputs[0].w / options->num_heads,
                                                   .angles = angles_of(layer),
                                                   .scale = scale_of(layer),
                                                   .backward = backward,
                                                   .accumulate = accumulate});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return turn(layer, call, call->inputs[0], call->output, false, false);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    return turn(layer, call, call->d_output, call->d_inputs[0], true, call->accumulate_inputs[0]);
}

const layer_type layer_type_rotary_embedding = {
    .name = "rotary_embedding",
    .summary = "turns queries or keys by their position",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(rotary_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 2,
    .reads_tokens = reads_tokens,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

bool rotary_depends_on_length(const layer_node *layer)
{
    const rotary_options *options = layer->options;
    return layer->type == &layer_type_rotary_embedding && options->scaling == SCALING_DYNAMIC &&
           layer->inputs[0].h > options->original_length;
}
