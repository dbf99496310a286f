#include "held_out_graphs.h"

#include <string.h>

#include "measure.h"
#include "net_graph.h"

/* ---- parts of nets ---- */

static uint32_t convolve(net *n, uint32_t x, uint64_t pixels, uint64_t from, uint64_t to)
{
    return net_one(n, x, pixels * to * 4, pixels * from * to * 9 / 1000 + 1, NEEDS_INPUTS, from * to * 36);
}

static uint32_t convolve_1x1(net *n, uint32_t x, uint64_t pixels, uint64_t from, uint64_t to)
{
    return net_one(n, x, pixels * to * 4, pixels * from * to / 1000 + 1, NEEDS_INPUTS, from * to * 4);
}

static uint32_t norm(net *n, uint32_t x, uint64_t pixels, uint64_t channels)
{
    return net_one(n, x, pixels * channels * 4, pixels * channels / 100, NEEDS_INPUTS, channels * 8);
}

static uint32_t relu(net *n, uint32_t x, uint64_t pixels, uint64_t channels)
{
    return net_one(n, x, pixels * channels * 4, pixels * channels / 200, NEEDS_OUTPUT, 0);
}

static uint32_t add(net *n, uint32_t a, uint32_t b, uint64_t pixels, uint64_t channels)
{
    return net_two(n, a, b, pixels * channels * 4, pixels * channels / 200, 0);
}

/* Nearest neighbours; and the other way, the largest of four. */
static uint32_t enlarge(net *n, uint32_t x, uint64_t pixels, uint64_t channels)
{
    return net_one(n, x, pixels * channels * 4, pixels * channels / 150, 0, 0);
}

static uint32_t pool(net *n, uint32_t x, uint64_t pixels, uint64_t channels)
{
    return net_one(n, x, pixels * channels * 4, pixels * channels / 50, NEEDS_SMALL_PLACES, 0);
}

static uint32_t unit(net *n, uint32_t x, uint64_t pixels, uint64_t from, uint64_t to)
{
    return relu(n, norm(n, convolve(n, x, pixels, from, to), pixels, to), pixels, to);
}

static uint32_t residual(net *n, uint32_t x, uint64_t pixels, uint64_t channels)
{
    uint32_t y =
        norm(n, convolve(n, unit(n, x, pixels, channels, channels), pixels, channels, channels), pixels, channels);
    return relu(n, add(n, x, y, pixels, channels), pixels, channels);
}

/* ---- the nets ---- */

static remat_graph *unet(net *n, int levels, uint64_t pixels, uint64_t channels)
{
    uint64_t before = 3, sizes[8];
    uint32_t links[8], x = net_data(n, pixels * 12);
    for (int i = 0; i < levels; i++, channels *= 2) {
        links[i] = x = unit(n, unit(n, x, pixels, before, channels), pixels, channels, channels);
        sizes[i] = before = channels;
        pixels /= 4;
        x = pool(n, x, pixels, channels);
    }
    x = unit(n, unit(n, x, pixels, before, channels), pixels, channels, channels);
    for (int i = levels; i-- > 0; channels = sizes[i]) {
        const uint64_t to = sizes[i];
        pixels *= 4;
        x = convolve_1x1(n, enlarge(n, x, pixels, channels), pixels, channels, to);
        x = net_two(n, links[i], x, pixels * to * 8, pixels * to / 50, 0);
        x = unit(n, unit(n, x, pixels, 2 * to, to), pixels, to, to);
    }
    convolve_1x1(n, x, pixels, channels, 4);
    return net_finish_last(n);
}

static remat_graph *unet3(net *n)
{
    return unet(n, 3, 192 * 192, 24);
}

static remat_graph *unet5(net *n)
{
    return unet(n, 5, 256 * 320, 12);
}

/* Node (i, k) reads the nodes (i, 0) to (i, k - 1) and, enlarged, (i + 1, k - 1). */
static remat_graph *unet_nested(net *n)
{
    enum { DEPTH = 4 };
    uint32_t nodes[DEPTH][DEPTH], heads[DEPTH - 1];
    uint64_t pixels[DEPTH] = {128 * 128}, channels[DEPTH] = {16};
    for (int i = 0; i < DEPTH; i++) {
        if (i > 0) {
            pixels[i] = pixels[i - 1] / 4;
            channels[i] = channels[i - 1] * 2;
        }
        uint32_t x = i ? pool(n, nodes[i - 1][0], pixels[i], channels[i - 1]) : net_data(n, pixels[0] * 12);
        x = unit(n, x, pixels[i], i ? channels[i - 1] : 3, channels[i]);
        nodes[i][0] = unit(n, x, pixels[i], channels[i], channels[i]);
        for (int k = 1; k <= i; k++) {
            const int level = i - k;
            const uint64_t size = pixels[level], width = channels[level];
            uint32_t inputs[DEPTH + 1];
            memcpy(inputs, nodes[level], (size_t)k * sizeof *inputs);
            inputs[k] = convolve_1x1(n, enlarge(n, nodes[level + 1][k - 1], size, 2 * width), size, 2 * width, width);
            const uint64_t sum = width * (uint64_t)(k + 1);
            x = net_layer_add(n, inputs, (size_t)k + 1, size * sum * 4, size * sum / 100, 0, 0);
            nodes[level][k] = unit(n, unit(n, x, size, sum, width), size, width, width);
        }
    }
    for (int k = 1; k < DEPTH; k++)
        heads[k - 1] = convolve_1x1(n, nodes[0][k], pixels[0], channels[0], 1);
    return net_finish(n, heads, DEPTH - 1);
}

static remat_graph *densenet_small(net *n)
{
    static const int blocks[] = {5, 9, 7};
    enum { GROWTH = 20 };
    uint64_t pixels = 64 * 64, channels = 2 * GROWTH;
    uint32_t x = unit(n, net_data(n, pixels * 12), pixels, 3, channels);
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        uint32_t features[MOST_INPUTS] = {x};
        size_t count = 1;
        for (int i = 0; i < blocks[b]; i++, channels += GROWTH) {
            uint32_t all =
                count == 1 ? x
                           : net_layer_add(n, features, count, pixels * channels * 4, pixels * channels / 100, 0, 0);
            all = relu(n, norm(n, all, pixels, channels), pixels, channels);
            features[count++] = convolve(n, all, pixels, channels, GROWTH);
        }
        x = net_layer_add(n, features, count, pixels * channels * 4, pixels * channels / 100, 0, 0);
        x = convolve_1x1(n, norm(n, x, pixels, channels), pixels, channels, channels / 2);
        channels /= 2;
        pixels /= 4;
        x = enlarge(n, x, pixels, channels); /* an average: the same work */
    }
    convolve_1x1(n, x, pixels, channels, 10);
    return net_finish_last(n);
}

/* Attention over `keys` rows that another layer made, with a residual link; then two dense layers with another. */
static uint32_t attend_to(net *n, uint32_t x, uint64_t rows, uint32_t memory, uint64_t keys, uint64_t width)
{
    uint32_t query = convolve_1x1(n, norm(n, x, rows, width), rows, width, width);
    uint32_t pairs = convolve_1x1(n, memory, keys, width, 2 * width);
    uint32_t y =
        net_two(n, query, pairs, rows * width * 4, rows * keys * width * 2 / 1000, NEEDS_INPUTS | NEEDS_OUTPUT);
    return add(n, x, convolve_1x1(n, y, rows, width, width), rows, width);
}

static uint32_t dense(net *n, uint32_t x, uint64_t rows, uint64_t width)
{
    uint32_t y = convolve_1x1(n, norm(n, x, rows, width), rows, width, 3 * width);
    y = net_one(n, y, rows * width * 12, rows * width * 3 / 40, NEEDS_INPUTS, 0);
    return add(n, x, convolve_1x1(n, y, rows, 3 * width, width), rows, width);
}

static remat_graph *translation(net *n)
{
    enum { WIDTH = 192, FROM = 800, TO = 200, ENCODER = 4, DECODER = 8 };
    uint32_t memory = convolve_1x1(n, net_data(n, FROM * 4), FROM, 1, WIDTH);
    for (int i = 0; i < ENCODER; i++)
        memory = dense(n, attend_to(n, memory, FROM, memory, FROM, WIDTH), FROM, WIDTH);
    memory = norm(n, memory, FROM, WIDTH);
    uint32_t x = convolve_1x1(n, net_data(n, TO * 4), TO, 1, WIDTH);
    for (int i = 0; i < DECODER; i++) {
        x = attend_to(n, x, TO, x, TO, WIDTH);
        x = dense(n, attend_to(n, x, TO, memory, FROM, WIDTH), TO, WIDTH);
    }
    convolve_1x1(n, x, TO, WIDTH, 8 * WIDTH);
    return net_finish_last(n);
}

static remat_graph *five_heads(net *n)
{
    uint64_t pixels = 96 * 96, channels = 24;
    uint32_t heads[5], x = unit(n, net_data(n, pixels * 12), pixels, 3, channels);
    size_t count = 0;
    for (int i = 0; i < 12; i++) {
        if (i == 4 || i == 8) {
            pixels /= 4;
            x = unit(n, pool(n, x, pixels, channels), pixels, channels, 2 * channels);
            channels *= 2;
        }
        x = residual(n, x, pixels, channels);
        if (i == 1 || i == 3 || i == 6 || i == 9 || i == 11) {
            uint32_t y = unit(n, unit(n, x, pixels, channels, channels / 2), pixels, channels / 2, channels / 2);
            heads[count++] = convolve_1x1(n, y, pixels, channels / 2, 5);
        }
    }
    return net_finish(n, heads, count);
}

static remat_graph *recurrent_gates(net *n)
{
    enum { STEPS = 24, ROWS = 48, STATE = 96 };
    uint32_t states[STEPS + 1], x = net_data(n, ROWS * STATE * 4);
    states[0] = convolve_1x1(n, x, ROWS, STATE, STATE);
    for (size_t i = 0; i < STEPS; i++) {
        uint32_t scores = net_layer_add(n, states, i + 1, ROWS * (i + 1) * 4, ROWS * STATE * (i + 1) / 500 + 1,
                                        NEEDS_INPUTS | NEEDS_OUTPUT, 0);
        uint32_t inputs[STEPS + 2];
        memcpy(inputs, states, (i + 1) * sizeof *inputs);
        inputs[i + 1] = scores;
        uint32_t seen =
            net_layer_add(n, inputs, i + 2, ROWS * STATE * 4, ROWS * STATE * (i + 1) / 500 + 1, NEEDS_INPUTS, 0);
        uint32_t both = net_two(n, states[i], seen, ROWS * STATE * 8, ROWS * STATE / 50, 0);
        uint32_t gates = convolve_1x1(n, both, ROWS, 2 * STATE, 3 * STATE);
        gates = net_one(n, gates, ROWS * STATE * 12, ROWS * STATE * 3 / 20, NEEDS_OUTPUT, 0);
        states[i + 1] = net_two(n, gates, states[i], ROWS * STATE * 4, ROWS * STATE / 50, NEEDS_INPUTS);
    }
    convolve_1x1(n, states[STEPS], ROWS, STATE, 20);
    return net_finish_last(n);
}

/* MobileNetV2: 1 x 1 to t times the channels, depthwise 3 x 3, 1 x 1 back; a link around it where the shape stays. */
static remat_graph *mobilenet(net *n)
{
    static const struct {
        uint64_t times, channels;
        int blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    uint64_t pixels = 112 * 112, channels = 32;
    uint32_t x = unit(n, net_data(n, 4 * pixels * 12), pixels, 3, channels);
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int k = 0; k < stages[i].blocks; k++) {
            const uint64_t wide = channels * stages[i].times, to = stages[i].channels;
            uint32_t y = x;
            if (wide != channels)
                y = relu(n, norm(n, convolve_1x1(n, y, pixels, channels, wide), pixels, wide), pixels, wide);
            pixels /= k == 0 && stages[i].stride == 2 ? 4 : 1;
            y = net_one(n, y, pixels * wide * 4, pixels * wide * 9 / 1000, NEEDS_INPUTS, wide * 36);
            y = relu(n, norm(n, y, pixels, wide), pixels, wide);
            y = norm(n, convolve_1x1(n, y, pixels, wide, to), pixels, to);
            x = k > 0 ? add(n, x, y, pixels, to) : y;
            channels = to;
        }
    convolve_1x1(n, x, pixels, channels, 1280);
    return net_finish_last(n);
}

static remat_graph *siamese(net *n)
{
    enum { BLOCKS = 6, TOWERS = 2 };
    uint32_t taps[TOWERS][3], fused[3];
    const uint64_t first = 80 * 80;
    for (int t = 0; t < TOWERS; t++) {
        uint64_t pixels = first, channels = 20;
        uint32_t x = unit(n, net_data(n, pixels * 12), pixels, 3, channels);
        for (int i = 0; i < BLOCKS; i++) {
            x = residual(n, x, pixels, channels);
            if (i % 2 == 0)
                continue;
            taps[t][i / 2] = x;
            pixels /= 4;
            x = i + 1 < BLOCKS ? unit(n, pool(n, x, pixels, channels), pixels, channels, 2 * channels) : x;
            channels *= 2;
        }
    }
    uint64_t pixels = first, channels = 20;
    for (int k = 0; k < 3; k++, pixels /= 4, channels *= 2) {
        uint32_t y = net_two(n, taps[0][k], taps[1][k], pixels * channels * 4, pixels * channels / 100, NEEDS_INPUTS);
        fused[k] = net_one(n, unit(n, y, pixels, channels, 32), 32 * 64 * 4, pixels * 32 / 100, 0, 0);
    }
    uint32_t all = net_layer_add(n, fused, 3, 32 * 64 * 12, 32 * 64 * 3 / 50, 0, 0);
    convolve_1x1(n, all, 64, 96, 2);
    return net_finish_last(n);
}

static remat_graph *hrnet(net *n)
{
    enum { MOST = 4 };
    uint64_t pixels[MOST] = {64 * 64, 32 * 32, 16 * 16, 8 * 8}, channels[MOST] = {18, 36, 72, 144};
    uint32_t streams[MOST] = {0};
    streams[0] = unit(n, unit(n, net_data(n, pixels[0] * 12), pixels[0], 3, 18), pixels[0], 18, 18);
    for (int count = 1; count <= MOST; count++) {
        if (count > 1)
            streams[count - 1] =
                unit(n, streams[count - 2], pixels[count - 1], channels[count - 2], channels[count - 1]);
        uint32_t after[MOST] = {0};
        for (int i = 0; i < count; i++)
            streams[i] = residual(n, streams[i], pixels[i], channels[i]);
        for (int to = 0; to < count; to++) {
            uint32_t parts[MOST];
            for (int from = 0; from < count; from++) {
                uint32_t y = streams[from];
                if (from > to) /* from a smaller one: fewer channels, then more pixels */
                    y = enlarge(n, convolve_1x1(n, y, pixels[from], channels[from], channels[to]), pixels[to],
                                channels[to]);
                else if (from < to)
                    y = norm(n, convolve(n, y, pixels[to], channels[from], channels[to]), pixels[to], channels[to]);
                parts[from] = y;
            }
            uint32_t sum = count == 1 ? parts[0]
                                      : net_layer_add(n, parts, (size_t)count, pixels[to] * channels[to] * 4,
                                                      pixels[to] * channels[to] * (uint64_t)count / 300, 0, 0);
            after[to] = relu(n, sum, pixels[to], channels[to]);
        }
        memcpy(streams, after, sizeof streams);
    }
    for (int i = 1; i < MOST; i++)
        streams[i] = enlarge(n, streams[i], pixels[0], channels[i]);
    uint32_t all = net_layer_add(n, streams, MOST, pixels[0] * 270 * 4, pixels[0] * 270 / 100, 0, 0);
    convolve_1x1(n, all, pixels[0], 270, 10);
    return net_finish_last(n);
}

static const struct {
    const char *name;
    remat_graph *(*build)(net *);
} nets[] = {{"unet3", unet3},
            {"unet5", unet5},
            {"unet_nested", unet_nested},
            {"densenet_small", densenet_small},
            {"translation", translation},
            {"five_heads", five_heads},
            {"recurrent_gates", recurrent_gates},
            {"mobilenet", mobilenet},
            {"siamese", siamese},
            {"hrnet", hrnet}};

const char *held_out_graph_name(size_t number)
{
    return number < sizeof nets / sizeof *nets ? nets[number].name : NULL;
}

remat_graph *held_out_graph(remat_context *context, const char *name)
{
    for (size_t i = 0; held_out_graph_name(i); i++)
        if (strcmp(name, nets[i].name) == 0) {
            net n;
            net_begin(context, &n);
            measure_must(context, remat_graph_set_name(n.graph, name));
            return nets[i].build(&n);
        }
    return NULL;
}
