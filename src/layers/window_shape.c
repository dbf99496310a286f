#include "layers/window_shape.h"

#include "base/names.h"
#include "base/properties.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>

/* One axis: zeros before and behind the `in` places, and the places under a window. */
typedef struct extent {
    const char *direction;
    uint64_t in, span, stride, before, behind, out;
} extent;

/* ---- padding ---- */

typedef enum padding_kind { PADDING_SAME, PADDING_COUNTS } padding_kind;

static remat_status fail_padding(remat_context *context, const char *text, bool line)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "padding";
    return remat_fail(context, REMAT_INVALID, &place,
                      line
                          ? "'%.60s' is not same, valid, causal, or one or two whole numbers up to %d, such as 1 or 2,0"
                          : "'%.60s' is not same, valid, or one, two or four whole numbers up to %d, such as 1 or 1,2",
                      text, WINDOW_LARGEST);
}

/* Reads the padding into both axes. One count is for all sides; of a line it is one for both ends, and a pair is one for
 * each end. */
static remat_status read_padding(remat_context *context, const window_options *options, extent *high, extent *wide,
                                 padding_kind *kind)
{
    const char *text = options->padding ? options->padding : "valid";
    *kind = names_equal(text, "same") ? PADDING_SAME : PADDING_COUNTS;
    if (*kind == PADDING_SAME || names_equal(text, "valid"))
        return REMAT_OK;
    if (options->line && names_equal(text, "causal")) {
        wide->before = wide->span - 1;
        return REMAT_OK;
    }
    uint64_t counts[4];
    size_t count = property_read_counts(text, 4, counts);
    bool fits = count == 1 || count == 2 || (count == 4 && !options->line);
    for (size_t i = 0; i < count; i++)
        fits = fits && counts[i] <= WINDOW_LARGEST;
    if (!fits)
        return fail_padding(context, text, options->line);
    uint64_t last = counts[count - 1];
    if (count == 4) {
        high->before = counts[0];
        high->behind = counts[1];
        wide->before = counts[2];
        wide->behind = counts[3];
    } else if (options->line) {
        wide->before = counts[0];
        wide->behind = last;
    } else {
        high->before = high->behind = counts[0];
        wide->before = wide->behind = last;
    }
    return REMAT_OK;
}

/* ---- outputs ---- */

static remat_status resolve_extent(remat_context *context, const layer_node *layer, padding_kind kind, bool ceiling,
                                   extent *along)
{
    if (kind == PADDING_SAME) {
        along->out = (along->in - 1) / along->stride + 1;
        uint64_t reach = (along->out - 1) * along->stride + along->span;
        uint64_t zeros = reach > along->in ? reach - along->in : 0;
        along->before = zeros / 2;
        along->behind = zeros - zeros / 2;
        return REMAT_OK;
    }
    uint64_t room = along->in + along->before + along->behind;
    if (along->span > room)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: a window of %s %" PRIu64 " does not fit into the input %s with padding %" PRIu64
                          "; at most %" PRIu64 " would",
                          layer->type->name, along->direction, along->span, layer_shape_write(layer->inputs[0]).text,
                          along->before, room);
    along->out = (room - along->span) / along->stride + 1;
    /* As in PyTorch, a window of `ceiling` begins inside the image or in the padding before it. */
    if (ceiling && (room - along->span) % along->stride && along->out * along->stride < along->in + along->before)
        along->out++;
    return REMAT_OK;
}

/* From the places of the input to those of the output of a transposed convolution: `in` is the former, and `out` becomes the
 * latter. */
static remat_status resolve_transposed_extent(remat_context *context, const layer_node *layer, padding_kind kind,
                                              uint64_t extra, extent *along)
{
    uint64_t reach = (along->in - 1) * along->stride + along->span, wanted = along->in * along->stride;
    if (kind == PADDING_SAME) {
        along->before = reach > wanted ? (reach - wanted) / 2 : 0;
        along->out = wanted;
        return REMAT_OK;
    }
    if (along->before + along->behind >= reach + extra)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: padding %" PRIu64 " and %" PRIu64 " leaves nothing of the output's %s of %" PRIu64,
                          layer->type->name, along->before, along->behind, along->direction, reach + extra);
    along->out = reach + extra - along->before - along->behind;
    return REMAT_OK;
}

static uint64_t span_of(const window_options *options, int axis)
{
    return (options->kernel[axis] - 1) * options->dilation[axis] + 1;
}

static remat_status begin(remat_context *context, const layer_node *layer, const window_options *options, extent *high,
                          extent *wide, padding_kind *kind)
{
    layer_shape in = layer->inputs[0];
    *high = (extent){"height", in.h, span_of(options, 0), options->stride[0], 0, 0, 0};
    *wide = (extent){"width", in.w, span_of(options, 1), options->stride[1], 0, 0, 0};
    return read_padding(context, options, high, wide, kind);
}

static operation_window make_window(const layer_node *layer, const window_options *options, const extent *high,
                                    const extent *wide)
{
    return (operation_window){
        .batch = layer->batch,
        .kernel_h = options->kernel[0],
        .kernel_w = options->kernel[1],
        .stride_h = options->stride[0],
        .stride_w = options->stride[1],
        .pad_h = high->before,
        .pad_w = wide->before,
        .groups = options->groups,
        .dilation_h = options->dilation[0],
        .dilation_w = options->dilation[1],
    };
}

static remat_status resolve_extents(remat_context *context, const layer_node *layer, const window_options *options,
                                    extent *high, extent *wide)
{
    padding_kind kind;
    REMAT_TRY(begin(context, layer, options, high, wide, &kind));
    REMAT_TRY(resolve_extent(context, layer, kind, options->ceiling, high));
    return resolve_extent(context, layer, kind, options->ceiling, wide);
}

remat_status window_resolve(remat_context *context, const layer_node *layer, const window_options *options,
                            uint64_t out_channels, operation_window *window)
{
    layer_shape in = layer->inputs[0];
    extent high, wide;
    REMAT_TRY(resolve_extents(context, layer, options, &high, &wide));
    *window = make_window(layer, options, &high, &wide);
    window->in_channels = in.c;
    window->in_h = in.h;
    window->in_w = in.w;
    window->out_channels = out_channels;
    window->out_h = high.out;
    window->out_w = wide.out;
    return REMAT_OK;
}

remat_status window_padded_size(remat_context *context, const layer_node *layer, const window_options *options,
                                size_t size[2])
{
    extent high, wide;
    REMAT_TRY(resolve_extents(context, layer, options, &high, &wide));
    size[0] = high.before + high.in + high.behind;
    size[1] = wide.before + wide.in + wide.behind;
    return REMAT_OK;
}

remat_status window_resolve_transposed(remat_context *context, const layer_node *layer, const window_options *options,
                                       uint64_t channels, const uint64_t extra[2], operation_window *window)
{
    layer_shape in = layer->inputs[0];
    extent high, wide;
    padding_kind kind;
    if (layer_flops(in.h, options->stride[0], 1) > UINT32_MAX || layer_flops(in.w, options->stride[1], 1) > UINT32_MAX)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: an output of %s times the stride is too large",
                          layer->type->name, layer_shape_write(in).text);
    REMAT_TRY(begin(context, layer, options, &high, &wide, &kind));
    REMAT_TRY(resolve_transposed_extent(context, layer, kind, extra[0], &high));
    REMAT_TRY(resolve_transposed_extent(context, layer, kind, extra[1], &wide));
    *window = make_window(layer, options, &high, &wide);
    window->in_channels = channels;
    window->in_h = high.out;
    window->in_w = wide.out;
    window->out_channels = in.c;
    window->out_h = in.h;
    window->out_w = in.w;
    return REMAT_OK;
}
