#include "layers/window_shape.h"

#include "base/names.h"
#include "base/properties.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>

typedef struct extent {
    uint64_t in, kernel, stride, pad, out;
} extent;

static remat_status resolve_extent(remat_context *context, const layer_node *layer, const char *direction, bool same,
                                   extent *along)
{
    if (same) {
        along->out = (along->in - 1) / along->stride + 1;
        uint64_t reach = (along->out - 1) * along->stride + along->kernel;
        along->pad = reach > along->in ? (reach - along->in) / 2 : 0;
        return REMAT_OK;
    }
    uint64_t room = along->in + 2 * along->pad;
    if (along->kernel > room)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: a window of %s %" PRIu64 " does not fit into the input %s with padding %" PRIu64
                          "; at most %" PRIu64 " would",
                          layer->type->name, direction, along->kernel, layer_shape_write(layer->inputs[0]).text,
                          along->pad, room);
    along->out = (room - along->kernel) / along->stride + 1;
    return REMAT_OK;
}

remat_status window_resolve(remat_context *context, const layer_node *layer, const uint64_t kernel[2],
                            const uint64_t stride[2], const char *padding, uint64_t out_channels,
                            operation_window *window)
{
    layer_shape in = layer->inputs[0];
    uint64_t pad[2] = {0, 0};
    bool same = names_equal(padding, "same");
    if (!same && !names_equal(padding, "valid") &&
        (!property_read_pair(padding, pad) || pad[0] > WINDOW_LARGEST || pad[1] > WINDOW_LARGEST)) {
        remat_place place = REMAT_PLACE_NOWHERE;
        place.field = "padding";
        return remat_fail(context, REMAT_INVALID, &place,
                          "'%.60s' is not same, valid, or one or two whole numbers up to %d, such as 1 or 1,2", padding,
                          WINDOW_LARGEST);
    }
    extent high = {.in = in.h, .kernel = kernel[0], .stride = stride[0], .pad = pad[0]};
    extent wide = {.in = in.w, .kernel = kernel[1], .stride = stride[1], .pad = pad[1]};
    REMAT_TRY(resolve_extent(context, layer, "height", same, &high));
    REMAT_TRY(resolve_extent(context, layer, "width", same, &wide));
    *window = (operation_window){
        .batch = layer->batch,
        .in_channels = in.c,
        .in_h = in.h,
        .in_w = in.w,
        .out_channels = out_channels,
        .out_h = high.out,
        .out_w = wide.out,
        .kernel_h = kernel[0],
        .kernel_w = kernel[1],
        .stride_h = stride[0],
        .stride_w = stride[1],
        .pad_h = high.pad,
        .pad_w = wide.pad,
    };
    return REMAT_OK;
}
