#include "hard_graphs.h"

#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* ---- a step of training, from its layers ---- */

enum { MOST_INPUTS = 64, NEEDS_INPUTS = 1, NEEDS_OUTPUT = 2 };

typedef struct net_layer {
    uint32_t output, gradient;
    uint32_t inputs[MOST_INPUTS];
    size_t input_count;
    uint64_t bytes, cost, weight_bytes;
    int needs; /* of its backward */
} net_layer;

typedef struct net {
    remat_context *context;
    remat_graph *graph;
    net_layer *layers;
    size_t count, capacity;
} net;

static uint32_t add_tensor(net *n, uint64_t bytes)
{
    remat_graph_tensor tensor;
    remat_graph_tensor_init(&tensor);
    tensor.bytes = bytes;
    measure_must(n->context, remat_graph_add_tensor(n->graph, &tensor));
    return (uint32_t)remat_graph_tensor_count(n->graph) - 1;
}

typedef struct parts {
    uint32_t reads[2 * MOST_INPUTS + 2], writes[MOST_INPUTS], updates[MOST_INPUTS];
    size_t read_count, write_count, update_count;
} parts;

static void add_number(uint32_t *list, size_t *count, uint32_t number)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == number)
            return;
    list[(*count)++] = number;
}

static void add_action(net *n, const parts *p, uint64_t cost, bool once)
{
    remat_graph_action action;
    remat_graph_action_init(&action);
    action.reads = p->reads;
    action.read_count = p->read_count;
    action.writes = p->writes;
    action.write_count = p->write_count;
    action.updates = p->updates;
    action.update_count = p->update_count;
    action.cost = cost;
    action.once = once;
    measure_must(n->context, remat_graph_add_action(n->graph, &action));
}

static uint32_t add_layer(net *n, const uint32_t *inputs, size_t count, uint64_t bytes, uint64_t cost, int needs,
                          uint64_t weight_bytes)
{
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? 2 * n->capacity : 64;
        n->layers = realloc(n->layers, n->capacity * sizeof *n->layers);
        if (!n->layers || count > MOST_INPUTS)
            exit(1);
    }
    net_layer *layer = &n->layers[n->count];
    *layer = (net_layer){.input_count = count,
                         .bytes = bytes,
                         .cost = cost,
                         .needs = needs,
                         .weight_bytes = weight_bytes,
                         .gradient = REMAT_NO_TENSOR};
    layer->output = add_tensor(n, bytes);
    parts p = {.writes = {layer->output}, .write_count = 1};
    for (size_t i = 0; i < count; i++) {
        layer->inputs[i] = inputs[i];
        add_number(p.reads, &p.read_count, n->layers[inputs[i]].output);
    }
    add_action(n, &p, cost, count == 0);
    return (uint32_t)n->count++;
}

static uint32_t add_one(net *n, uint32_t input, uint64_t bytes, uint64_t cost, int needs, uint64_t weight_bytes)
{
    return add_layer(n, &input, 1, bytes, cost, needs, weight_bytes);
}

static uint32_t add_two(net *n, uint32_t a, uint32_t b, uint64_t bytes, uint64_t cost, int needs)
{
    const uint32_t inputs[] = {a, b};
    return add_layer(n, inputs, 2, bytes, cost, needs, 0);
}

static void read_needs(const net *n, const net_layer *layer, parts *p)
{
    for (size_t i = 0; layer->needs & NEEDS_INPUTS && i < layer->input_count; i++)
        add_number(p->reads, &p->read_count, n->layers[layer->inputs[i]].output);
    if (layer->needs & NEEDS_OUTPUT)
        add_number(p->reads, &p->read_count, layer->output);
    add_number(p->reads, &p->read_count, layer->gradient);
}

static void add_backward(net *n, net_layer *layer)
{
    if (layer->weight_bytes) {
        parts weights = {0}, apply = {0};
        read_needs(n, layer, &weights);
        weights.writes[weights.write_count++] = apply.reads[apply.read_count++] = add_tensor(n, layer->weight_bytes);
        add_action(n, &weights, layer->cost, true);
        add_action(n, &apply, 1, true);
    }
    parts p = {0};
    read_needs(n, layer, &p);
    for (size_t i = 0; i < layer->input_count; i++) {
        net_layer *input = &n->layers[layer->inputs[i]];
        if (input->input_count == 0)
            continue;
        bool is_first = input->gradient == REMAT_NO_TENSOR;
        if (is_first)
            input->gradient = add_tensor(n, input->bytes);
        bool is_written = false;
        for (size_t k = 0; k < p.write_count; k++)
            is_written |= p.writes[k] == input->gradient;
        if (is_first)
            p.writes[p.write_count++] = input->gradient;
        else if (!is_written)
            add_number(p.updates, &p.update_count, input->gradient);
    }
    if (p.write_count + p.update_count)
        add_action(n, &p, layer->cost, true);
}

/* A loss on each of the given layers, then everything backward. */
static remat_graph *finish(net *n, const uint32_t *losses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        net_layer *layer = &n->layers[losses[i]];
        parts p = {.reads = {layer->output}, .read_count = 1, .write_count = 1};
        p.writes[0] = layer->gradient = add_tensor(n, layer->bytes);
        add_action(n, &p, layer->cost / 10 + 1, true);
    }
    for (size_t i = n->count; i-- > 0;)
        if (n->layers[i].input_count && n->layers[i].gradient != REMAT_NO_TENSOR)
            add_backward(n, &n->layers[i]);
    free(n->layers);
    return n->graph;
}

static remat_graph *finish_last(net *n)
{
    uint32_t last = (uint32_t)n->count - 1;
    return finish(n, &last, 1);
}

/* ---- the nets ---- */

/* Convolution 3 x 3, norm, ReLU. */
static uint32_t convolve(net *n, uint32_t x, uint64_t pixels, uint64_t from, uint64_t to)
{
    x = add_one(n, x, pixels * to * 4, pixels * from * to * 9 / 1000 + pixels * to / 100, NEEDS_INPUTS, from * to * 36);
    x = add_one(n, x, pixels * to * 4, pixels * to / 100, NEEDS_INPUTS, 0);
    return add_one(n, x, pixels * to * 4, pixels * to / 200, NEEDS_OUTPUT, 0);
}

static remat_graph *unet(net *n)
{
    enum { LEVELS = 4 };
    uint64_t pixels = 256 * 256, channels = 16, before = 3, sizes[LEVELS];
    uint32_t links[LEVELS], x = add_layer(n, NULL, 0, pixels * 12, 1, 0, 0);
    for (int i = 0; i < LEVELS; i++, channels *= 2) {
        x = convolve(n, convolve(n, x, pixels, before, channels), pixels, channels, channels);
        links[i] = x;
        sizes[i] = before = channels;
        pixels /= 4;
        x = add_one(n, x, pixels * channels * 4, pixels * channels / 100, NEEDS_OUTPUT, 0);
    }
    x = convolve(n, convolve(n, x, pixels, before, channels), pixels, channels, channels);
    for (int i = LEVELS; i-- > 0; channels = sizes[i]) {
        uint64_t to = sizes[i];
        pixels *= 4;
        x = add_one(n, x, pixels * to * 4, pixels * channels * to * 4 / 1000, NEEDS_INPUTS, channels * to * 16);
        x = add_two(n, x, links[i], pixels * to * 8, pixels * to / 50, 0);
        x = convolve(n, convolve(n, x, pixels, 2 * to, to), pixels, to, to);
    }
    add_one(n, x, pixels * 8, pixels * channels * 2 / 1000 + 1, NEEDS_INPUTS, channels * 8);
    return finish_last(n);
}

static remat_graph *densenet(net *n, bool pairs)
{
    static const int blocks[] = {6, 12};
    const uint64_t growth = 32;
    uint64_t pixels = 56 * 56, channels = 64;
    uint32_t x = add_layer(n, NULL, 0, pixels * channels * 4, 1, 0, 0);
    x = add_one(n, x, pixels * channels * 4, pixels * channels * channels / 1000, NEEDS_INPUTS,
                channels * channels * 4);
    for (size_t b = 0; b < 2; b++) {
        uint32_t features[MOST_INPUTS] = {x}, all = x;
        size_t count = 1;
        uint64_t sum = channels;
        for (int i = 0; i <= blocks[b]; i++) {
            if (i > 0 && pairs)
                all = add_two(n, all, features[count - 1], pixels * sum * 4, pixels * sum / 50, 0);
            else if (i > 0)
                all = add_layer(n, features, count, pixels * sum * 4, pixels * sum / 50, 0, 0);
            if (i == blocks[b])
                break;
            uint32_t y = add_one(n, all, pixels * sum * 4, pixels * sum / 100, NEEDS_INPUTS, 0);
            y = add_one(n, y, pixels * sum * 4, pixels * sum / 200, NEEDS_OUTPUT, 0);
            y = add_one(n, y, pixels * 16 * growth, pixels * sum * 4 * growth / 1000, NEEDS_INPUTS, sum * 16 * growth);
            y = add_one(n, y, pixels * 16 * growth, pixels * 4 * growth / 100, NEEDS_INPUTS, 0);
            y = add_one(n, y, pixels * 16 * growth, pixels * 4 * growth / 200, NEEDS_OUTPUT, 0);
            features[count++] = add_one(n, y, pixels * growth * 4, pixels * 36 * growth * growth / 1000, NEEDS_INPUTS,
                                        144 * growth * growth);
            sum += growth;
        }
        channels = sum / 2;
        x = add_one(n, all, pixels * channels * 4, pixels * sum * channels / 1000, NEEDS_INPUTS, sum * channels * 4);
        pixels /= 4;
        x = add_one(n, x, pixels * channels * 4, pixels * channels / 100, 0, 0);
    }
    add_one(n, x, 4000, channels, NEEDS_INPUTS, channels * 4000);
    return finish_last(n);
}

enum { TOKENS = 512, WIDTH = 256, ROW = TOKENS * WIDTH };

static uint32_t linear(net *n, uint32_t x, uint64_t from, uint64_t to)
{
    return add_one(n, x, TOKENS * to * 4, TOKENS * from * to / 1000, NEEDS_INPUTS, from * to * 4);
}

static uint32_t feed_forward(net *n, uint32_t x)
{
    uint32_t y = add_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0);
    y = linear(n, y, WIDTH, 4 * WIDTH);
    y = add_one(n, y, ROW * 16, ROW * 4 / 50, NEEDS_INPUTS, 0);
    return add_two(n, x, linear(n, y, 4 * WIDTH, WIDTH), ROW * 4, ROW / 200, 0);
}

static uint32_t attend(net *n, uint32_t x)
{
    uint32_t y = linear(n, add_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0), WIDTH, 3 * WIDTH);
    y = add_one(n, y, ROW * 4, (uint64_t)TOKENS * TOKENS * WIDTH * 4 / 1000, NEEDS_INPUTS | NEEDS_OUTPUT, 0);
    return add_two(n, x, linear(n, y, WIDTH, WIDTH), ROW * 4, ROW / 200, 0);
}

static uint32_t embed(net *n)
{
    uint32_t x = add_layer(n, NULL, 0, TOKENS * 4, 1, 0, 0);
    return add_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 1000 * WIDTH * 4);
}

static remat_graph *transformer(net *n)
{
    uint32_t x = embed(n);
    for (int i = 0; i < 12; i++)
        x = feed_forward(n, attend(n, x));
    return finish_last(n);
}

static remat_graph *encoder_decoder(net *n)
{
    uint32_t links[12], x = embed(n);
    for (int i = 0; i < 12; i++)
        links[i] = x = feed_forward(n, x);
    for (int i = 12; i-- > 0;)
        x = feed_forward(n, add_two(n, x, links[i], ROW * 4, ROW / 200, 0));
    return finish_last(n);
}

static remat_graph *cross_attention(net *n)
{
    uint32_t memory = embed(n);
    for (int i = 0; i < 6; i++)
        memory = feed_forward(n, attend(n, memory));
    uint32_t x = embed(n);
    for (int i = 0; i < 6; i++) {
        x = attend(n, x);
        uint32_t query = linear(n, add_one(n, x, ROW * 4, ROW / 100, NEEDS_INPUTS, 0), WIDTH, WIDTH);
        uint32_t keys = linear(n, memory, WIDTH, 2 * WIDTH);
        uint32_t y = add_two(n, query, keys, ROW * 4, (uint64_t)TOKENS * TOKENS * WIDTH * 4 / 1000, 3);
        x = feed_forward(n, add_two(n, x, linear(n, y, WIDTH, WIDTH), ROW * 4, ROW / 200, 0));
    }
    return finish_last(n);
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
        heads[i] = linear(n, feed_forward(n, add_two(n, heads[i], x, ROW * 4, ROW / 200, 0)), WIDTH, WIDTH / 4);
    return finish(n, heads, count);
}

static remat_graph *recurrent(net *n)
{
    enum { STEPS = 24, BATCH = 64, STATE = 128, BYTES = BATCH * STATE * 4 };
    const uint64_t weights = (uint64_t)STATE * STATE * 4, cost = (uint64_t)BATCH * STATE * STATE / 1000;
    uint32_t states[STEPS], x = add_layer(n, NULL, 0, BYTES, 1, 0, 0);
    x = add_one(n, x, BYTES, cost, NEEDS_INPUTS, weights);
    for (size_t i = 0; i < STEPS; i++) {
        states[i] = x = add_one(n, x, BYTES, cost, NEEDS_INPUTS | NEEDS_OUTPUT, weights);
        uint32_t sum = add_layer(n, states, i + 1, BYTES, BATCH * STATE * (i + 1) / 100, NEEDS_INPUTS, 0);
        x = add_two(n, x, sum, BYTES, 2 * cost, NEEDS_INPUTS | NEEDS_OUTPUT);
    }
    return finish_last(n);
}

static remat_graph *resnet(net *n)
{
    uint64_t pixels = 56 * 56, channels = 64;
    uint32_t x = add_layer(n, NULL, 0, pixels * channels * 4, 1, 0, 0);
    x = convolve(n, x, pixels, channels, channels);
    for (int i = 0; i < 16; i++) {
        if (i % 4 == 3) {
            pixels /= 4;
            x = add_one(n, x, pixels * channels * 8, pixels * channels * channels * 2 / 1000, NEEDS_INPUTS,
                        channels * channels * 8);
            channels *= 2;
        }
        uint32_t y = convolve(n, convolve(n, x, pixels, channels, channels), pixels, channels, channels);
        x = add_two(n, x, y, pixels * channels * 4, pixels * channels / 200, 0);
        x = add_one(n, x, pixels * channels * 4, pixels * channels / 200, NEEDS_OUTPUT, 0);
    }
    add_one(n, x, 4000, channels, NEEDS_INPUTS, channels * 4000);
    return finish_last(n);
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

static void begin(remat_context *context, net *n)
{
    *n = (net){.context = context};
    measure_must(context, remat_graph_create(context, &n->graph));
}

remat_graph *hard_graph(remat_context *context, const char *name)
{
    for (size_t i = 0; hard_graph_name(i); i++)
        if (strcmp(name, nets[i].name) == 0) {
            net n;
            begin(context, &n);
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

remat_graph *hard_graph_random(remat_context *context, size_t actions, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    net n;
    begin(context, &n);
    uint32_t x = add_layer(&n, NULL, 0, 1000, 1, 0, 0);
    add_one(&n, x, 1000 + draw(&state, 9000), 100 + draw(&state, 1000), NEEDS_INPUTS, 10);
    while (3 * n.count < actions) {
        uint32_t inputs[3];
        size_t count = 0;
        for (uint64_t k = draw(&state, 3) + 1; k > 0; k--) {
            uint64_t near = draw(&state, 4), last = n.count - 1;
            uint64_t input = draw(&state, 4) ? last - (near < last - 1 ? near : last - 1) : 1 + draw(&state, last);
            add_number(inputs, &count, (uint32_t)input);
        }
        add_layer(&n, inputs, count, 500 + draw(&state, 10000), 50 + draw(&state, 1500), (int)draw(&state, 4),
                  draw(&state, 2) * 100);
    }
    return finish_last(&n);
}
