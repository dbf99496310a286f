#include "hard_graphs.h"

#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "net_graph.h"

/* ---- the nets ---- */

/* Convolution 3 x 3, norm, ReLU. */
static uint32_t convolve(net *n, uint32_t x, uint64_t pixels, uint64_t from, uint64_t to)
{
    x = net_one(n, x, pixels * to * 4, pixels * from * to * 9 / 1000 + pixels * to / 100, NEEDS_INPUTS, from * to * 36);
    x = net_one(n, x, pixels * to * 4, pixels * to / 100, NEEDS_INPUTS, 0);
    return net_one(n, x, pixels * to * 4, pixels * to / 200, NEEDS_OUTPUT, 0);
}

static remat_graph *unet(net *n)
{
    enum { LEVELS = 4 };
    uint64_t pixels = 256 * 256, channels = 16, before = 3, sizes[LEVELS];
    uint32_t links[LEVELS], x = net_data(n, pixels * 12);
    for (int i = 0; i < LEVELS; i++, channels *= 2) {
        x = convolve(n, convolve(n, x, pixels, before, channels), pixels, channels, channels);
        links[i] = x;
        sizes[i] = before = channels;
        pixels /= 4;
        x = net_one(n, x, pixels * channels * 4, pixels * channels / 100, NEEDS_OUTPUT, 0);
    }
    x = convolve(n, convolve(n, x, pixels, before, channels), pixels, channels, channels);
    for (int i = LEVELS; i-- > 0; channels = sizes[i]) {
        uint64_t to = sizes[i];
        pixels *= 4;
        x = net_one(n, x, pixels * to * 4, pixels * channels * to * 4 / 1000, NEEDS_INPUTS, channels * to * 16);
        x = net_two(n, x, links[i], pixels * to * 8, pixels * to / 50, 0);
        x = convolve(n, convolve(n, x, pixels, 2 * to, to), pixels, to, to);
    }
    net_one(n, x, pixels * 8, pixels * channels * 2 / 1000 + 1, NEEDS_INPUTS, channels * 8);
    return net_finish_last(n);
}

static remat_graph *densenet(net *n, bool pairs)
{
    static const int blocks[] = {6, 12};
    const uint64_t growth = 32;
    uint64_t pixels = 56 * 56, channels = 64;
    uint32_t x = net_data(n, pixels * channels * 4);
    x = net_one(n, x, pixels * channels * 4, pixels * channels * channels / 1000, NEEDS_INPUTS,
                channels * channels * 4);
    for (size_t b = 0; b < 2; b++) {
        uint32_t features[MOST_INPUTS] = {x}, all = x;
        size_t count = 1;
        uint64_t sum = channels;
        for (int i = 0; i <= blocks[b]; i++) {
            if (i > 0 && pairs)
                all = net_two(n, all, features[count - 1], pixels * sum * 4, pixels * sum / 50, 0);
            else if (i > 0)
                all = net_layer_add(n, features, count, pixels * sum * 4, pixels * sum / 50, 0, 0);
            if (i == blocks[b])
                break;
            uint32_t y = net_one(n, all, pixels * sum * 4, pixels * sum / 100, NEEDS_INPUTS, 0);
            y = net_one(n, y, pixels * sum * 4, pixels * sum / 200, NEEDS_OUTPUT, 0);
            y = net_one(n, y, pixels * 16 * growth, pixels * sum * 4 * growth / 1000, NEEDS_INPUTS, sum * 16 * growth);
            y = net_one(n, y, pixels * 16 * growth, pixels * 4 * growth / 100, NEEDS_INPUTS, 0);
            y = net_one(n, y, pixels * 16 * growth, pixels * 4 * growth / 200, NEEDS_OUTPUT, 0);
            features[count++] = net_one(n, y, pixels * growth * 4, pixels * 36 * growth * growth / 1000, NEEDS_INPUTS,
                                        144 * growth * growth);
            sum += growth;
        }
        channels = sum / 2;
        x = net_one(n, all, pixels * channels * 4, pixels * sum * channels / 1000, NEEDS_INPUTS, sum * channels * 4);
        pixels /= 4;
        x = net_one(n, x, pixels * channels * 4, pixels * channels / 100, 0, 0);
    }
    net_one(n, x, 4000, channels, NEEDS_INPUTS, channels * 4000);
    return net_finish_last(n);
}

enum { TOKENS = 512, WIDTH = 256, ROW = TOKENS * WIDTH };

static uint32_t linear(net *n, uint32_t x, uint64_t from, uint64_t to)
{
    return net_one(n, x, TOKENS * to * 4, TOKENS * from * to / 1000, NEEDS_INPUTS, from * to * 4);
}

static uint32_t feed_forward(net *n, uint32_t x)
{
    uint32_t y = net_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0);
    y = linear(n, y, WIDTH, 4 * WIDTH);
    y = net_one(n, y, ROW * 16, ROW * 4 / 50, NEEDS_INPUTS, 0);
    return net_two(n, x, linear(n, y, 4 * WIDTH, WIDTH), ROW * 4, ROW / 200, 0);
}

static uint32_t attend(net *n, uint32_t x)
{
    uint32_t y = linear(n, net_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0), WIDTH, 3 * WIDTH);
    y = net_one(n, y, ROW * 4, (uint64_t)TOKENS * TOKENS * WIDTH * 4 / 1000, NEEDS_INPUTS | NEEDS_OUTPUT, 0);
    return net_two(n, x, linear(n, y, WIDTH, WIDTH), ROW * 4, ROW / 200, 0);
}

static uint32_t embed(net *n)
{
    uint32_t x = net_data(n, TOKENS * 4);
    return net_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 1000 * WIDTH * 4);
}

static remat_graph *transformer(net *n)
{
    uint32_t x = embed(n);
    for (int i = 0; i < 12; i++)
        x = feed_forward(n, attend(n, x));
    return net_finish_last(n);
}

static remat_graph *encoder_decoder(net *n)
{
    uint32_t links[12], x = embed(n);
    for (int i = 0; i < 12; i++)
        links[i] = x = feed_forward(n, x);
    for (int i = 12; i-- > 0;)
        x = feed_forward(n, net_two(n, x, links[i], ROW * 4, ROW / 200, 0));
    return net_finish_last(n);
}

static remat_graph *cross_attention(net *n)
{
    uint32_t memory = embed(n);
    for (int i = 0; i < 6; i++)
        memory = feed_forward(n, attend(n, memory));
    uint32_t x = embed(n);
    for (int i = 0; i < 6; i++) {
        x = attend(n, x);
        uint32_t query = linear(n, net_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0), WIDTH, WIDTH);
        uint32_t keys = linear(n, memory, WIDTH, 2 * WIDTH);
        uint32_t y = net_two(n, query, keys, ROW * 4, (uint64_t)TOKENS * TOKENS * WIDTH * 4 / 1000, 3);
        x = feed_forward(n, net_two(n, x, linear(n, y, WIDTH, WIDTH), ROW * 4, ROW / 200, 0));
    }
    return net_finish_last(n);
}

static remat_graph *multi_task(net *n)
{
    uint32_t heads[6], x = embed(n);
    size_t count = 0;
    for (int i = 0; i < 16; i++) {
        x = feed_forward(n, x);
        if (i % 3 == 0)
            heads[count++] = x;
    }
    for (size_t i = 0; i < count; i++)
        heads[i] = linear(n, feed_forward(n, net_two(n, heads[i], x, ROW * 4, ROW / 200, 0)), WIDTH, WIDTH / 4);
    return net_finish(n, heads, count);
}

static remat_graph *recurrent(net *n)
{
    enum { STEPS = 24, BATCH = 64, STATE = 128, BYTES = BATCH * STATE * 4 };
    const uint64_t weights = (uint64_t)STATE * STATE * 4, cost = (uint64_t)BATCH * STATE * STATE / 1000;
    uint32_t states[STEPS], x = net_data(n, BYTES);
    x = net_one(n, x, BYTES, cost, NEEDS_INPUTS, weights);
    for (size_t i = 0; i < STEPS; i++) {
        states[i] = x = net_one(n, x, BYTES, cost, NEEDS_INPUTS | NEEDS_OUTPUT, weights);
        uint32_t sum = net_layer_add(n, states, i + 1, BYTES, BATCH * STATE * (i + 1) / 100, NEEDS_INPUTS, 0);
        x = net_two(n, x, sum, BYTES, 2 * cost, NEEDS_INPUTS | NEEDS_OUTPUT);
    }
    return net_finish_last(n);
}

static remat_graph *resnet(net *n)
{
    uint64_t pixels = 56 * 56, channels = 64;
    uint32_t x = net_data(n, pixels * channels * 4);
    x = convolve(n, x, pixels, channels, channels);
    for (int i = 0; i < 16; i++) {
        if (i % 4 == 3) {
            pixels /= 4;
            x = net_one(n, x, pixels * channels * 8, pixels * channels * channels * 2 / 1000, NEEDS_INPUTS,
                        channels * channels * 8);
            channels *= 2;
        }
        uint32_t y = convolve(n, convolve(n, x, pixels, channels, channels), pixels, channels, channels);
        x = net_two(n, x, y, pixels * channels * 4, pixels * channels / 200, 0);
        x = net_one(n, x, pixels * channels * 4, pixels * channels / 200, NEEDS_OUTPUT, 0);
    }
    net_one(n, x, 4000, channels, NEEDS_INPUTS, channels * 4000);
    return net_finish_last(n);
}

static remat_graph *densenet_flat(net *n)
{
    return densenet(n, false);
}

static remat_graph *densenet_pairs(net *n)
{
    return densenet(n, true);
}

static const struct {
    const char *name;
    remat_graph *(*build)(net *);
} nets[] = {{"unet", unet},
            {"densenet", densenet_flat},
            {"densenet_pairs", densenet_pairs},
            {"encoder_decoder", encoder_decoder},
            {"cross_attention", cross_attention},
            {"multi_task", multi_task},
            {"recurrent", recurrent},
            {"transformer", transformer},
            {"resnet", resnet}};

const char *hard_graph_name(size_t number)
{
    return number < sizeof nets / sizeof *nets ? nets[number].name : NULL;
}

remat_graph *hard_graph(remat_context *context, const char *name)
{
    for (size_t i = 0; hard_graph_name(i); i++)
        if (strcmp(name, nets[i].name) == 0) {
            net n;
            net_begin(context, &n);
            measure_must(context, remat_graph_set_name(n.graph, name));
            return nets[i].build(&n);
        }
    return NULL;
}

static uint64_t draw(uint64_t *state, uint64_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % bound;
}

/* A loss on every layer that no other one reads. */
static remat_graph *finish_unread(net *n)
{
    uint32_t *losses = calloc(n->count, sizeof *losses);
    bool *is_read = calloc(n->count, sizeof *is_read);
    size_t count = 0;
    if (!losses || !is_read)
        exit(1);
    for (size_t i = 0; i < n->count; i++)
        for (size_t k = 0; k < n->layers[i].input_count; k++)
            is_read[n->layers[i].inputs[k]] = true;
    for (size_t i = 0; i < n->count; i++)
        if (!is_read[i])
            losses[count++] = (uint32_t)i;
    remat_graph *graph = net_finish(n, losses, count);
    free(losses);
    free(is_read);
    return graph;
}

remat_graph *hard_graph_random(remat_context *context, size_t actions, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    net n;
    net_begin(context, &n);
    uint32_t x = net_data(&n, 1000);
    net_one(&n, x, 1000 + draw(&state, 9000), 100 + draw(&state, 1000), NEEDS_INPUTS, 10);
    while (3 * n.count < actions) {
        uint32_t inputs[3];
        size_t count = 0;
        for (uint64_t k = draw(&state, 3) + 1; k > 0; k--) {
            uint64_t near = draw(&state, 4), last = n.count - 1;
            uint64_t input = draw(&state, 4) ? last - (near < last - 1 ? near : last - 1) : 1 + draw(&state, last);
            bool is_new = true;
            for (size_t i = 0; i < count; i++)
                is_new &= inputs[i] != input;
            if (is_new)
                inputs[count++] = (uint32_t)input;
        }
        net_layer_add(&n, inputs, count, 500 + draw(&state, 10000), 50 + draw(&state, 1500), (int)draw(&state, 4),
                      draw(&state, 2) * 100);
    }
    return finish_unread(&n);
}
