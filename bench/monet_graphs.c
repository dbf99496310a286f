#include "monet_graphs.h"

#include <string.h>

#include "measure.h"

/* Costs are the larger of the time for operations and for bytes. A P100, which the published times are from, reaches about half of its
 * peak in convolutions. */
enum { FLOPS_PER_NS = 5000, BYTES_PER_NS = 500 };

/* A feature map: the layer that makes it, and its shape. */
typedef struct map {
    uint32_t layer;
    uint64_t pixels, channels;
} map;

typedef struct conv {
    uint64_t channels, kernel; /* of the output; width * height of the kernel */
    uint64_t stride, groups;
} conv;

static uint64_t map_bytes(uint64_t batch, const map *m)
{
    return batch * m->pixels * m->channels * 4;
}

static map convolve(net *n, uint64_t batch, map x, conv c)
{
    const uint64_t groups = c.groups ? c.groups : 1, stride = c.stride ? c.stride : 1;
    map y = {.pixels = x.pixels / (stride * stride), .channels = c.channels};
    const uint64_t weights = x.channels / groups * c.channels * c.kernel * 4;
    const uint64_t products = 2 * batch * y.pixels * (weights / 4) / FLOPS_PER_NS;
    const uint64_t moved = (map_bytes(batch, &x) + map_bytes(batch, &y)) / BYTES_PER_NS;
    y.layer =
        net_one(n, x.layer, map_bytes(batch, &y), products > moved ? products : moved, NEEDS_FOR_WEIGHTS, weights);
    net_give(n, 2 * weights);
    return y;
}

/* One that reads and writes whole maps: `channels` of the output, `shrink` in both directions. */
static map pass(net *n, uint64_t batch, map x, uint64_t shrink, int needs)
{
    map y = {.pixels = x.pixels / (shrink * shrink), .channels = x.channels};
    y.layer = net_one(n, x.layer, map_bytes(batch, &y), (map_bytes(batch, &x) + map_bytes(batch, &y)) / BYTES_PER_NS,
                      needs, 0);
    return y;
}

/* PyTorch keeps 8 bytes for the place of a maximum, MONeT one. */
static map pool(net *n, uint64_t batch, map x, uint64_t shrink)
{
    return pass(n, batch, x, shrink, n->with_masks ? NEEDS_SMALL_PLACES : NEEDS_PLACES);
}

/* PyTorch keeps the output, MONeT a bit a number. */
static map relu(net *n, uint64_t batch, map x)
{
    return pass(n, batch, x, 1, IN_PLACE | (n->with_masks ? NEEDS_MASK : NEEDS_OUTPUT));
}

/* The norm reads its input twice: for the mean and the variance, which are kept where it runs again, and to scale it. Backward reads
 * the gradient, too. */
static map norm(net *n, uint64_t batch, map x)
{
    const uint64_t bytes = map_bytes(batch, &x);
    net_add_statistics(n, x.layer, x.channels * 8, bytes / BYTES_PER_NS);
    x.layer = net_one(n, x.layer, bytes, 2 * bytes / BYTES_PER_NS, NEEDS_INPUTS | IN_PLACE, 0);
    net_cost_backward(n, 5 * bytes / BYTES_PER_NS);
    return x;
}

static map convolve_norm(net *n, uint64_t batch, map x, conv c)
{
    return norm(n, batch, convolve(n, batch, x, c));
}

static map convolve_norm_relu(net *n, uint64_t batch, map x, conv c)
{
    return relu(n, batch, convolve_norm(n, batch, x, c));
}

static map add_maps(net *n, uint64_t batch, map a, map b)
{
    a.layer = net_two(n, a.layer, b.layer, map_bytes(batch, &a), 3 * map_bytes(batch, &a) / BYTES_PER_NS, IN_PLACE);
    return a;
}

static map join(net *n, uint64_t batch, const map *maps, size_t count)
{
    uint32_t inputs[4];
    map y = {.pixels = maps[0].pixels};
    for (size_t i = 0; i < count; i++) {
        inputs[i] = maps[i].layer;
        y.channels += maps[i].channels;
    }
    y.layer = net_layer_add(n, inputs, count, map_bytes(batch, &y), 2 * map_bytes(batch, &y) / BYTES_PER_NS, 0, 0);
    return y;
}

/* The mean over all pixels and a linear layer with 1,000 outputs. */
static void classify(net *n, uint64_t batch, map x)
{
    map mean = {.pixels = 1, .channels = x.channels};
    mean.layer = net_one(n, x.layer, map_bytes(batch, &mean), map_bytes(batch, &x) / BYTES_PER_NS, 0, 0);
    convolve(n, batch, mean, (conv){1000, 1, 0, 0});
}

static map image(net *n, uint64_t batch, uint64_t pixels)
{
    map x = {.pixels = pixels, .channels = 3};
    x.layer = net_data(n, map_bytes(batch, &x));
    return x;
}

/* ---- the networks ---- */

static void resnet50(net *n, uint64_t b)
{
    static const uint64_t blocks[] = {3, 4, 6, 3};
    map x = convolve_norm_relu(n, b, image(n, b, 224 * 224), (conv){64, 49, 2, 0});
    x = pool(n, b, x, 2);
    for (size_t stage = 0; stage < 4; stage++)
        for (uint64_t i = 0; i < blocks[stage]; i++) {
            const uint64_t width = (uint64_t)64 << stage, stride = stage && i == 0 ? 2 : 1;
            map y = convolve_norm_relu(n, b, x, (conv){width, 1, 1, 0});
            y = convolve_norm_relu(n, b, y, (conv){width, 9, stride, 0});
            y = convolve_norm(n, b, y, (conv){4 * width, 1, 1, 0});
            if (i == 0)
                x = convolve_norm(n, b, x, (conv){4 * width, 1, stride, 0});
            x = relu(n, b, add_maps(n, b, x, y));
        }
    classify(n, b, x);
}

static map inception(net *n, uint64_t b, map x, const uint64_t *c)
{
    map parts[4];
    parts[0] = convolve_norm_relu(n, b, x, (conv){c[0], 1, 1, 0});
    parts[1] = convolve_norm_relu(n, b, convolve_norm_relu(n, b, x, (conv){c[1], 1, 1, 0}), (conv){c[2], 9, 1, 0});
    parts[2] = convolve_norm_relu(n, b, convolve_norm_relu(n, b, x, (conv){c[3], 1, 1, 0}), (conv){c[4], 9, 1, 0});
    parts[3] = convolve_norm_relu(n, b, pool(n, b, x, 1), (conv){c[5], 1, 1, 0});
    return join(n, b, parts, 4);
}

static void googlenet(net *n, uint64_t b)
{
    static const uint64_t modules[9][6] = {
        {64, 96, 128, 16, 32, 32},     {128, 128, 192, 32, 96, 64},   {192, 96, 208, 16, 48, 64},
        {160, 112, 224, 24, 64, 64},   {128, 128, 256, 24, 64, 64},   {112, 144, 288, 32, 64, 64},
        {256, 160, 320, 32, 128, 128}, {256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128}};
    map x = convolve_norm_relu(n, b, image(n, b, 224 * 224), (conv){64, 49, 2, 0});
    x = pool(n, b, x, 2);
    x = convolve_norm_relu(n, b, x, (conv){64, 1, 1, 0});
    x = convolve_norm_relu(n, b, x, (conv){192, 9, 1, 0});
    x = pool(n, b, x, 2);
    for (size_t i = 0; i < 9; i++) {
        x = inception(n, b, x, modules[i]);
        if (i == 1 || i == 6)
            x = pool(n, b, x, 2);
    }
    classify(n, b, x);
}

/* Convolution, norm and ReLU twice. */
static map twice(net *n, uint64_t b, map x, uint64_t channels)
{
    x = convolve_norm_relu(n, b, x, (conv){channels, 9, 1, 0});
    return convolve_norm_relu(n, b, x, (conv){channels, 9, 1, 0});
}

static void unet(net *n, uint64_t b)
{
    enum { LEVELS = 4 };
    map links[LEVELS], x = image(n, b, 416 * 608);
    for (size_t i = 0; i < LEVELS; i++) {
        links[i] = twice(n, b, x, (uint64_t)64 << i);
        x = pool(n, b, links[i], 2);
    }
    x = twice(n, b, x, 512);
    for (size_t i = LEVELS; i-- > 0;) {
        map both[2] = {links[i], {.pixels = links[i].pixels, .channels = x.channels}};
        const uint64_t moved = map_bytes(b, &x) + map_bytes(b, &both[1]);
        both[1].layer = net_one(n, x.layer, map_bytes(b, &both[1]), moved / BYTES_PER_NS, 0, 0);
        x = twice(n, b, join(n, b, both, 2), (uint64_t)64 << (i ? i - 1 : 0));
    }
    convolve(n, b, x, (conv){1, 1, 1, 0});
}

static void mobilenet(net *n, uint64_t b)
{
    static const struct {
        uint64_t expand, channels, count, stride;
    } rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    map x = convolve_norm_relu(n, b, image(n, b, 224 * 224), (conv){32, 9, 2, 0});
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (uint64_t i = 0; i < rows[k].count; i++) {
            const uint64_t wide = x.channels * rows[k].expand, stride = i ? 1 : rows[k].stride;
            map y = rows[k].expand > 1 ? convolve_norm_relu(n, b, x, (conv){wide, 1, 1, 0}) : x;
            y = convolve_norm_relu(n, b, y, (conv){wide, 9, stride, wide});
            y = convolve_norm(n, b, y, (conv){rows[k].channels, 1, 1, 0});
            x = i ? add_maps(n, b, x, y) : y;
        }
    classify(n, b, convolve_norm_relu(n, b, x, (conv){1280, 1, 1, 0}));
}

static void vgg16(net *n, uint64_t b)
{
    static const uint64_t widths[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
    map x = image(n, b, 224 * 224);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        x = widths[i] ? relu(n, b, convolve(n, b, x, (conv){widths[i], 9, 1, 0})) : pool(n, b, x, 2);
    x = (map){x.layer, 1, x.pixels * x.channels};
    x = relu(n, b, convolve(n, b, x, (conv){4096, 1, 1, 0}));
    x = relu(n, b, convolve(n, b, x, (conv){4096, 1, 1, 0}));
    convolve(n, b, x, (conv){1000, 1, 1, 0});
}

static const monet_case cases[] = {{"resnet50", 184, 15.06, 4.99, 12.0, resnet50},
                                   {"googlenet", 320, 14.93, 4.99, 15.8, googlenet},
                                   {"unet", 11, 14.32, 5.01, 11.5, unet},
                                   {"mobilenet", 272, 14.46, 5.01, 8.7, mobilenet},
                                   {"vgg16", 176, 14.12, 5.51, 9.1, vgg16}};

const monet_case *monet_list(size_t number)
{
    return number < sizeof cases / sizeof *cases ? &cases[number] : NULL;
}

remat_graph *monet_graph(remat_context *context, const monet_case *which, bool with_masks)
{
    net n;
    net_begin(context, &n);
    n.with_masks = with_masks;
    measure_must(context, remat_graph_set_name(n.graph, which->name));
    which->build(&n, which->batch);
    return net_finish_last(&n);
}
