#include "support/random_model.h"

#include "support/cases.h"

enum { MOST = 64, NAME = 16 };

typedef struct dims {
    unsigned c, h, w;
} dims;

/* A layer that others may read. */
typedef struct made_layer {
    char name[NAME];
    dims shape;
    bool read;
} made_layer;

typedef struct maker {
    remat_model *model;
    const random_model_options *options;
    test_random random;
    made_layer made[MOST];
    size_t count; /* the first one is the input, or the embedding */
    size_t first; /* that a block may hold */
    remat_status status;
} maker;

static unsigned below(maker *m, unsigned bound)
{
    return (unsigned)test_random_below(&m->random, bound);
}

static bool chance(maker *m, unsigned percent)
{
    return below(m, 100) < percent;
}

static const char *pick(maker *m, const char *const *names, unsigned count)
{
    return names[below(m, count)];
}

/* ---- adding one layer ---- */

/* `extra` is more properties, ending with NULL. */
static void add(maker *m, const char *type, dims shape, const size_t *inputs, size_t input_count,
                const char *const *extra)
{
    if (m->status != REMAT_OK || m->count == MOST)
        return;
    made_layer *layer = &m->made[m->count];
    char name[NAME + 8], reads[4 * NAME + 32] = "input_layers=";
    snprintf(layer->name, sizeof layer->name, "n%zu", m->count);
    snprintf(name, sizeof name, "name=%s", layer->name);
    for (size_t i = 0; i < input_count; i++) {
        strcat(strcat(reads, i ? "," : ""), m->made[inputs[i]].name);
        m->made[inputs[i]].read = true;
    }
    const char *properties[12] = {name, input_count ? reads : NULL};
    for (size_t next = input_count ? 2 : 1; *extra; next++)
        properties[next] = *extra++;
    layer->shape = shape;
    m->count++;
    m->status = remat_model_add_layer(m->model, type, properties);
}

#define NOTHING REMAT_PROPERTIES(NULL)

static void add_to_last(maker *m, const char *type, dims shape, const char *const *extra)
{
    add(m, type, shape, (size_t[]){m->count - 1}, 1, extra);
}

static size_t values(dims shape)
{
    return (size_t)shape.c * shape.h * shape.w;
}

static bool same(dims a, dims b)
{
    return a.c == b.c && a.h == b.h && a.w == b.w;
}

/* A layer of the same shape as the last one, the last one included. */
static size_t partner(maker *m)
{
    size_t found[MOST], count = 0;
    for (size_t i = 0; i < m->count; i++)
        if (same(m->made[i].shape, m->made[m->count - 1].shape))
            found[count++] = i;
    return found[below(m, (unsigned)count)];
}

/* ---- kinds of layers ---- */

static void add_dense(maker *m, unsigned unit)
{
    static const char *const any[] = {"none", "relu", "leaky_relu", "gelu", "gelu_erf", "sigmoid", "tanh", "swish"};
    static const char *const smooth[] = {"none", "gelu", "gelu_erf", "sigmoid", "tanh", "swish"};
    char text[32], activation[32];
    dims shape = m->made[m->count - 1].shape;
    shape.w = unit;
    snprintf(text, sizeof text, "unit=%u", unit);
    snprintf(activation, sizeof activation, "activation=%s", m->options->smooth ? pick(m, smooth, 6) : pick(m, any, 8));
    add_to_last(m, "fully_connected", shape,
                REMAT_PROPERTIES(text, chance(m, m->options->frozen) ? "trainable=false"
                                       : chance(m, 50)               ? activation
                                       : chance(m, 50)               ? "bias=false"
                                                                     : NULL));
}

static void add_activation(maker *m)
{
    static const char *const any[] = {"activation=relu",     "activation=leaky_relu", "activation=gelu",
                                      "activation=gelu_erf", "activation=sigmoid",    "activation=tanh",
                                      "activation=swish",    "activation=softmax",    "activation=none"};
    static const char *const smooth[] = {"activation=gelu", "activation=gelu_erf", "activation=sigmoid",
                                         "activation=tanh", "activation=swish",    "activation=softmax"};
    add_to_last(m, "activation", m->made[m->count - 1].shape,
                REMAT_PROPERTIES(m->options->smooth ? pick(m, smooth, 6) : pick(m, any, 9)));
}

static void add_normalization(maker *m)
{
    dims shape = m->made[m->count - 1].shape;
    bool channels = shape.c > 1 || (shape.c == 1 && shape.h == 1);
    if (!m->options->separate && channels && chance(m, 50))
        add_to_last(m, "batch_normalization", shape, NOTHING);
    else if (channels && chance(m, 30))
        add_to_last(m, shape.c % 2 == 0 ? "group_normalization" : "instance_normalization", shape,
                    shape.c % 2 == 0 ? REMAT_PROPERTIES("groups=2") : REMAT_PROPERTIES("affine=true", "epsilon=0.1"));
    else
        add_to_last(m, chance(m, 50) ? "layer_normalization" : "rms_normalization", shape, NOTHING);
}

static void add_sum(maker *m)
{
    size_t inputs[3] = {m->count - 1, partner(m), partner(m)};
    if (chance(m, 30)) {
        inputs[0] = inputs[1];
        inputs[1] = m->count - 1;
    }
    add(m, "addition", m->made[m->count - 1].shape, inputs, chance(m, 25) ? 3 : 2, NOTHING);
}

static void add_product(maker *m)
{
    size_t inputs[2] = {m->count - 1, partner(m)};
    add(m, "multiply", m->made[m->count - 1].shape, inputs, 2, NOTHING);
}

static void add_concat(maker *m)
{
    size_t inputs[2] = {partner(m), m->count - 1};
    dims shape = m->made[m->count - 1].shape;
    bool channels = shape.c > 1;
    if (values(shape) > 200) {
        add_activation(m);
        return;
    }
    shape = channels ? (dims){2 * shape.c, shape.h, shape.w} : (dims){shape.c, shape.h, 2 * shape.w};
    add(m, "concat", shape, inputs, 2, REMAT_PROPERTIES(channels ? "axis=c" : "axis=w"));
}

/* Steps that change a state, or look at another layer of the same shape. */
static void add_recurrent(maker *m)
{
    dims shape = m->made[m->count - 1].shape;
    char unit[32];
    snprintf(unit, sizeof unit, "unit=%u", shape.w);
    if (chance(m, 30))
        add(m, "multi_head_attention", shape, (size_t[]){m->count - 1, partner(m)}, 2, REMAT_PROPERTIES("num_heads=1"));
    else
        add_to_last(m, chance(m, 50) ? "lstm" : "gru", shape, REMAT_PROPERTIES(unit, "return_sequences=true"));
}

static void add_attention(maker *m)
{
    dims shape = m->made[m->count - 1].shape;
    add_to_last(m, "multi_head_attention", shape,
                REMAT_PROPERTIES(shape.w % 4 == 0 && chance(m, 50) ? "num_heads=4" : "num_heads=1",
                                 chance(m, 50) ? "causal=true" : "causal=false"));
}

static void add_image_layer(maker *m)
{
    static const char *const poolings[] = {"pooling=average", "pooling=max"};
    dims shape = m->made[m->count - 1].shape;
    if (chance(m, 35) && shape.h >= 4 && shape.w >= 4) {
        dims half = {shape.c, shape.h / 2, shape.w / 2};
        add_to_last(m, "pooling2d", half,
                    REMAT_PROPERTIES(pick(m, poolings, m->options->smooth ? 1 : 2), "pool_size=2"));
        return;
    }
    char filters[32], groups[32];
    unsigned before = shape.c;
    shape.c = chance(m, 50) ? shape.c : 1 + below(m, 4);
    snprintf(filters, sizeof filters, "filters=%u", shape.c);
    snprintf(groups, sizeof groups, "groups=%u", shape.c == before && chance(m, 40) ? shape.c : 1);
    add_to_last(m, chance(m, 20) ? "conv2d_transpose" : "conv2d", shape,
                REMAT_PROPERTIES(filters, "kernel_size=3", "padding=same", groups,
                                 chance(m, 20) ? "dilation=2" : "dilation=1",
                                 chance(m, m->options->frozen) ? "trainable=false" : NULL));
}

static void add_reshape(maker *m)
{
    dims shape = m->made[m->count - 1].shape;
    char text[48];
    shape = (dims){1, shape.c * shape.h, shape.w};
    snprintf(text, sizeof text, "target_shape=%u:%u:%u", shape.c, shape.h, shape.w);
    add_to_last(m, "reshape", shape, REMAT_PROPERTIES(text));
}

static void add_any(maker *m)
{
    dims shape = m->made[m->count - 1].shape;
    bool image = shape.c > 1 || (shape.h > 1 && shape.h == shape.w);
    bool sequence = !image && shape.h > 1;
    unsigned unit = chance(m, 60) ? shape.w : 4 * (1 + below(m, 4));
    if (values(shape) > 400)
        unit = 8;
    unsigned which = below(m, 100);
    if (image && which < 45)
        add_image_layer(m);
    else if (sequence && which < 20 && chance(m, 60))
        add_attention(m);
    else if (sequence && which < 20)
        add_recurrent(m);
    else if (!image && which < 35)
        add_dense(m, unit);
    else if (which < 50)
        add_activation(m);
    else if (which < 62)
        add_normalization(m);
    else if (which < 68 && !m->options->separate)
        add_to_last(m, "dropout", shape, REMAT_PROPERTIES(chance(m, 80) ? "rate=0.3" : "rate=0"));
    else if (which < 84)
        add_sum(m);
    else if (which < 90)
        add_product(m);
    else if (which < 95)
        add_concat(m);
    else if (image)
        add_reshape(m);
    else
        add_dense(m, unit);
}

/* ---- the whole ---- */

static void add_input(maker *m, bool *tokens)
{
    static const dims shapes[] = {{1, 1, 12}, {1, 1, 7}, {1, 5, 8}, {1, 9, 4}, {2, 6, 6}, {1, 8, 8}};
    *tokens = chance(m, 30);
    if (*tokens) {
        m->status = remat_model_add_layer(m->model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:6"));
        add(m, "embedding", (dims){1, 6, 8}, NULL, 0, REMAT_PROPERTIES("in_dim=11", "out_dim=8"));
        return;
    }
    dims shape = shapes[below(m, 6)];
    char text[48];
    snprintf(text, sizeof text, "input_shape=%u:%u:%u", shape.c, shape.h, shape.w);
    add(m, "input", shape, NULL, 0, REMAT_PROPERTIES(text));
    m->first = 1;
}

/* Whatever nobody reads is led to the head, as far as shapes allow; some stay unread, which is allowed as well. */
static void join_loose_ends(maker *m)
{
    size_t last = m->count - 1;
    for (size_t i = 0; i < last; i++)
        if (!m->made[i].read && same(m->made[i].shape, m->made[last].shape) && chance(m, 80))
            add(m, "addition", m->made[last].shape, (size_t[]){m->count - 1, i}, 2, NOTHING);
}

static void add_head(maker *m, bool tokens)
{
    dims shape = m->made[m->count - 1].shape;
    if (tokens) {
        if (shape.w != 8)
            add_dense(m, 8);
        if (chance(m, 60))
            add_to_last(m, "layer_normalization", m->made[m->count - 1].shape, NOTHING);
        char tied[NAME + 16];
        snprintf(tied, sizeof tied, "shared_from=%s", m->made[0].name);
        size_t last = m->count - 1;
        if (m->status == REMAT_OK) {
            char reads[NAME + 32];
            snprintf(reads, sizeof reads, "input_layers=%s", m->made[last].name);
            m->status = remat_model_add_layer(m->model, "fully_connected",
                                              REMAT_PROPERTIES("name=head", reads, "unit=11", "bias=false", tied));
        }
    } else if (m->status == REMAT_OK) {
        if (values(shape) != shape.w && chance(m, 70))
            m->status = remat_model_add_layer(m->model, "flatten", REMAT_PROPERTIES("name=flat"));
        if (m->status == REMAT_OK)
            m->status = remat_model_add_layer(m->model, "fully_connected", REMAT_PROPERTIES("name=head", "unit=5"));
        /* Only a projection that the loss alone reads can be one with it. */
        if (m->status == REMAT_OK && chance(m, 40))
            m->status = remat_model_add_layer(m->model, "activation", REMAT_PROPERTIES("name=last", "activation=tanh"));
    }
    bool mse = !tokens && chance(m, 50);
    if (m->status == REMAT_OK)
        m->status = remat_model_add_layer(m->model, mse ? "mse" : "cross_entropy", REMAT_PROPERTIES("name=loss"));
}

static void add_blocks(maker *m)
{
    unsigned size = m->options->block;
    for (size_t i = m->first; size && i + size <= m->count && m->status == REMAT_OK; i += size) {
        const char *names[MOST + 1] = {NULL};
        for (unsigned k = 0; k < size; k++)
            names[k] = m->made[i + k].name;
        m->status = remat_model_add_block(m->model, names);
    }
}

static void set_all(maker *m)
{
    const random_model_options *options = m->options;
    char batch[48], accumulate[48], seed[48];
    unsigned samples = options->batch ? options->batch : 2 + below(m, 4);
    unsigned micro = options->accumulate ? options->accumulate : chance(m, 30) ? 2 + below(m, 2) : 1;
    bool clip = options->clip < 0 ? chance(m, 40) : options->clip != 0;
    snprintf(batch, sizeof batch, "batch_size=%u", samples);
    snprintf(accumulate, sizeof accumulate, "accumulate=%u", micro);
    snprintf(seed, sizeof seed, "seed=%u", below(m, 1000));
    if (m->status == REMAT_OK)
        m->status = remat_model_set(m->model,
                                    REMAT_PROPERTIES(batch, accumulate, seed, clip ? "clip_norm=0.5" : "clip_norm=0"));
    if (m->status == REMAT_OK)
        m->status = remat_model_set_dataset(m->model, "random", REMAT_PROPERTIES("samples=48", "validation_split=0.3"));
    static const char *const names[] = {"sgd", "adam", "adamw", "lion", "adafactor"};
    static const char *const states[] = {"state=fp32", "state=bf16", "state=int8"};
    const char *name = options->optimizer ? options->optimizer : pick(m, names, 5);
    bool momentum = strcmp(name, "sgd") == 0 && chance(m, 60), decay = chance(m, 40);
    bool any_state = !options->optimizer && (momentum || (strcmp(name, "sgd") != 0 && strcmp(name, "adafactor") != 0));
    const char *kept = any_state ? pick(m, states, 3) : "schedule=constant"; /* which says nothing new */
    if (m->status == REMAT_OK)
        m->status = remat_model_set_optimizer(
            m->model, name,
            momentum ? REMAT_PROPERTIES("learning_rate=0.02", "momentum=0.9", kept,
                                        chance(m, 50) ? "nesterov=true" : "nesterov=false")
                     : REMAT_PROPERTIES("learning_rate=0.01", kept, decay ? "weight_decay=0.05" : "weight_decay=0"));
}

remat_status random_model_make(remat_context *context, const random_model_options *options, remat_model **model,
                               size_t *layer_count)
{
    maker m = {.options = options, .random = {options->seed}};
    m.status = remat_model_create(context, model);
    if (m.status != REMAT_OK)
        return m.status;
    m.model = *model;
    bool tokens = false;
    add_input(&m, &tokens);
    for (unsigned i = 0; i < options->layers && m.count < MOST - 4; i++)
        add_any(&m);
    if (m.status == REMAT_OK)
        join_loose_ends(&m);
    if (m.status == REMAT_OK)
        add_head(&m, tokens);
    set_all(&m);
    if (m.status == REMAT_OK)
        add_blocks(&m);
    if (m.status == REMAT_OK)
        m.status = remat_model_compile(*model);
    if (layer_count)
        *layer_count = m.count - m.first;
    if (m.status != REMAT_OK) {
        remat_model_destroy(*model);
        *model = NULL;
    }
    return m.status;
}
