#include "support/random_graph.h"

enum { MOST_LINKS = 16, MOST_LAYERS = 2048 };

/* ---- building ---- */

typedef struct maker {
    fixture *f;
    test_random *random;
    remat_graph *graph;
    bool equal_sizes, far_links, apply_late, in_place, workspaces, expensive;
    uint32_t gradient_of[8192]; /* by tensor; GRAPH_NONE: none yet */
    uint32_t late[MOST_LAYERS]; /* gradients of weights that wait for the end */
    uint32_t late_layer[MOST_LAYERS];
    size_t late_count;
    struct {
        const char *name;
        graph_hint hint;
    } layers[MOST_LAYERS + 2];
    graph_notes *notes; /* or NULL */
    uint32_t layer_count;
} maker;

static uint64_t below(maker *m, uint64_t bound)
{
    return test_random_below(m->random, bound);
}

static bool chance(maker *m, uint64_t percent)
{
    return below(m, 100) < percent;
}

static uint64_t random_bytes(maker *m)
{
    return m->equal_sizes ? 640 : 64 * (1 + below(m, chance(m, 15) ? 80 : 20));
}

static uint64_t random_cost(maker *m)
{
    return m->expensive && chance(m, 30) ? 200 + below(m, 800) : 1 + below(m, 60);
}

static uint32_t new_tensor(maker *m, const char *name, uint64_t bytes)
{
    expect_ok(m->f, graph_add_tensor(m->graph, &(graph_tensor){.name = name, .bytes = bytes}));
    m->gradient_of[m->graph->tensor_count - 1] = GRAPH_NONE;
    return (uint32_t)m->graph->tensor_count - 1;
}

static uint32_t new_layer(maker *m, const char *name, remat_layer_type type)
{
    m->layers[m->layer_count].name = name;
    m->layers[m->layer_count].hint = (graph_hint){type, 10};
    return m->layer_count++;
}

typedef struct links {
    uint32_t reads[MOST_LINKS], writes[MOST_LINKS], updates[MOST_LINKS];
    size_t read_count, write_count, update_count;
} links;

static void read_once(links *to, uint32_t tensor)
{
    for (size_t i = 0; i < to->read_count; i++)
        if (to->reads[i] == tensor)
            return;
    to->reads[to->read_count++] = tensor;
}

enum { LOAD, FORWARD, BACKWARD };

static void take_note(maker *m, uint32_t layer)
{
    if (!m->notes)
        return;
    size_t count = m->graph->action_count;
    m->notes->hints = realloc(m->notes->hints, count * sizeof *m->notes->hints);
    m->notes->layers = realloc(m->notes->layers, count * sizeof *m->notes->layers);
    assert_true(m->notes->hints && m->notes->layers);
    m->notes->hints[count - 1] = m->layers[layer].hint;
    m->notes->layers[count - 1] = layer;
    m->notes->layer_count = m->layer_count;
}

static void add(maker *m, int kind, uint32_t layer, const links *from, uint32_t in_place_from, uint32_t in_place_to,
                uint64_t cost)
{
    graph_action action = {.name = m->layers[layer].name, .once = kind != FORWARD, .cost = cost};
    action.in_place_from = in_place_from;
    action.in_place_to = in_place_to;
    action.workspace_bytes = m->workspaces && chance(m, 30) ? random_bytes(m) : 0;
    graph_links lists = {from->reads,      from->updates,      from->writes,
                         from->read_count, from->update_count, from->write_count};
    expect_ok(m->f, graph_add_action(m->graph, &action, &lists));
    take_note(m, layer);
}

/* ---- layers ---- */

/* What the backward of a layer is made from. */
typedef struct drawn_layer {
    uint32_t layer, inputs[2], extra, middle, output;
    size_t input_count;
    bool reads_input, reads_output, reads_middle, has_weights, shares;
} drawn_layer;

static void draw_character(maker *m)
{
    m->equal_sizes = chance(m, 40);
    m->far_links = chance(m, 40);
    m->apply_late = chance(m, 25);
    m->in_place = chance(m, 70);
    m->workspaces = chance(m, 50);
    m->expensive = chance(m, 50);
}

static uint32_t pick_older(maker *m, const uint32_t *values, size_t count)
{
    size_t reach = m->far_links ? count : count < 3 ? count : 3;
    return values[count - 1 - below(m, reach)];
}

static void draw_forward(maker *m, const uint32_t *values, size_t count, drawn_layer *l)
{
    l->layer = new_layer(m, "layer", (remat_layer_type)below(m, 5));
    l->inputs[0] = chance(m, 90) ? values[count - 1] : pick_older(m, values, count);
    l->inputs[1] = pick_older(m, values, count);
    l->input_count = l->inputs[1] != l->inputs[0] && chance(m, 35) ? 2 : 1;
    l->extra = l->middle = GRAPH_NONE;
    links first = {0};
    for (size_t i = 0; i < l->input_count; i++)
        read_once(&first, l->inputs[i]);
    if (chance(m, 25)) { /* in two actions */
        l->middle = new_tensor(m, "middle", random_bytes(m));
        first.writes[first.write_count++] = l->middle;
        add(m, FORWARD, l->layer, &first, GRAPH_NONE, GRAPH_NONE, random_cost(m));
        first = (links){.reads = {l->middle}, .read_count = 1};
    }
    bool same = chance(m, 40);
    l->output = new_tensor(m, "output", same ? m->graph->tensors[first.reads[0]].bytes : random_bytes(m));
    first.writes[first.write_count++] = l->output;
    if (chance(m, 20)) {
        l->extra = new_tensor(m, "extra", random_bytes(m));
        first.writes[first.write_count++] = l->extra;
    }
    bool in_place = m->in_place && same && chance(m, 60);
    add(m, FORWARD, l->layer, &first, in_place ? first.reads[0] : GRAPH_NONE, in_place ? l->output : GRAPH_NONE,
        random_cost(m));
    l->reads_input = !in_place && chance(m, 60);
    l->reads_output = chance(m, 35);
    l->reads_middle = chance(m, 70);
    l->has_weights = chance(m, 45);
    l->shares = chance(m, 30);
}

static bool is_data(const maker *m, uint32_t tensor)
{
    for (size_t i = 0; i < m->graph->action_count && m->graph->actions[i].once; i++)
        for (size_t k = 0; k < m->graph->actions[i].write_count; k++)
            if (graph_writes(m->graph, &m->graph->actions[i])[k] == tensor)
                return true;
    return false;
}

static void read_saved(const drawn_layer *l, links *to)
{
    for (size_t i = 0; l->reads_input && i < l->input_count; i++)
        read_once(to, l->inputs[i]);
    if (l->reads_output)
        read_once(to, l->output);
    if (l->extra != GRAPH_NONE)
        read_once(to, l->extra);
    if (l->reads_middle && l->middle != GRAPH_NONE)
        read_once(to, l->middle);
}

static void draw_weights(maker *m, const drawn_layer *l, uint32_t gradient)
{
    uint32_t weights = new_tensor(m, "dw", random_bytes(m));
    links to = {.reads = {gradient}, .read_count = 1};
    for (size_t i = 0; i < l->input_count; i++)
        read_once(&to, l->inputs[i]);
    bool tied = m->late_count > 0 && chance(m, 15);
    if (tied)
        to.updates[to.update_count++] = m->late[below(m, m->late_count)];
    else
        to.writes[to.write_count++] = weights;
    add(m, BACKWARD, l->layer, &to, GRAPH_NONE, GRAPH_NONE, random_cost(m));
    if (tied)
        return;
    if (m->apply_late || chance(m, 10)) {
        m->late[m->late_count] = weights;
        m->late_layer[m->late_count++] = l->layer;
        return;
    }
    add(m, BACKWARD, l->layer, &(links){.reads = {weights}, .read_count = 1}, GRAPH_NONE, GRAPH_NONE, random_cost(m));
}

static void draw_backward(maker *m, const drawn_layer *l)
{
    uint32_t gradient = m->gradient_of[l->output];
    if (gradient == GRAPH_NONE)
        return;
    if (l->has_weights)
        draw_weights(m, l, gradient);
    links to = {.reads = {gradient}, .read_count = 1};
    uint32_t in_place_to = GRAPH_NONE;
    read_saved(l, &to);
    for (size_t i = 0; i < l->input_count; i++) {
        uint32_t input = l->inputs[i];
        if (is_data(m, input))
            continue;
        uint64_t bytes = m->graph->tensors[input].bytes;
        if (m->gradient_of[input] != GRAPH_NONE) {
            to.updates[to.update_count++] = m->gradient_of[input];
            continue;
        }
        m->gradient_of[input] = new_tensor(m, "dx", bytes);
        to.writes[to.write_count++] = m->gradient_of[input];
        if (in_place_to == GRAPH_NONE && l->shares && bytes == m->graph->tensors[gradient].bytes)
            in_place_to = m->gradient_of[input];
    }
    add(m, BACKWARD, l->layer, &to, in_place_to == GRAPH_NONE ? GRAPH_NONE : gradient, in_place_to, random_cost(m));
}

/* Labels belong to the loss, but come in with the rest. */
static void load_data(maker *m, uint32_t *values, size_t *count, uint32_t *labels, uint32_t loss)
{
    uint32_t layer = new_layer(m, "data", REMAT_OTHER);
    size_t inputs = 1 + below(m, 2);
    for (size_t i = 0; i < inputs; i++) {
        values[*count] = new_tensor(m, "x", random_bytes(m));
        add(m, LOAD, layer, &(links){.writes = {values[*count]}, .write_count = 1}, GRAPH_NONE, GRAPH_NONE, 1);
        ++*count;
    }
    *labels = new_tensor(m, "labels", 64 * (1 + below(m, 3)));
    add(m, LOAD, loss, &(links){.writes = {*labels}, .write_count = 1}, GRAPH_NONE, GRAPH_NONE, 1);
}

/* The loss: forward and the first gradient. */
static uint32_t draw_loss(maker *m, uint32_t layer, uint32_t last, uint32_t labels, uint32_t *saved)
{
    uint32_t value = new_tensor(m, "loss", 64);
    links to = {.reads = {last, labels}, .read_count = 2, .writes = {value}, .write_count = 1};
    *saved = GRAPH_NONE;
    if (chance(m, 50)) {
        *saved = new_tensor(m, "softmax", m->graph->tensors[last].bytes);
        to.writes[to.write_count++] = *saved;
    }
    bool in_place = *saved != GRAPH_NONE && m->in_place;
    add(m, FORWARD, layer, &to, in_place ? last : GRAPH_NONE, in_place ? *saved : GRAPH_NONE, random_cost(m));
    return value;
}

static void draw_loss_backward(maker *m, uint32_t layer, uint32_t last, uint32_t labels, uint32_t saved)
{
    m->gradient_of[last] = new_tensor(m, "dx", m->graph->tensors[last].bytes);
    uint32_t from = saved == GRAPH_NONE ? last : saved;
    links to = {.reads = {from, labels}, .read_count = 2, .writes = {m->gradient_of[last]}, .write_count = 1};
    bool in_place = saved != GRAPH_NONE && m->in_place;
    add(m, BACKWARD, layer, &to, in_place ? saved : GRAPH_NONE, in_place ? m->gradient_of[last] : GRAPH_NONE,
        random_cost(m));
}

static void apply_late(maker *m)
{
    for (size_t i = 0; i < m->late_count; i++)
        add(m, BACKWARD, m->late_layer[i], &(links){.reads = {m->late[i]}, .read_count = 1}, GRAPH_NONE, GRAPH_NONE,
            random_cost(m));
}

static maker *new_maker(fixture *f, test_random *random, graph_notes *notes)
{
    maker *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->f = f;
    m->random = random;
    m->notes = notes;
    if (notes)
        *notes = (graph_notes){0};
    expect_ok(f, graph_create(f->context, &m->graph));
    return m;
}

remat_graph *random_graph(fixture *f, test_random *random, const graph_traits *traits, graph_notes *notes)
{
    maker *m = new_maker(f, random, notes);
    draw_character(m);
    uint32_t values[MOST_LAYERS + 2], labels, saved;
    drawn_layer drawn[MOST_LAYERS];
    size_t count = 0, layers = traits->least_layers + below(m, traits->most_layers - traits->least_layers + 1);
    uint32_t loss = new_layer(m, "loss", REMAT_OTHER);
    load_data(m, values, &count, &labels, loss);
    /* Drawing from one state again makes the same layers again; of the first block no layer may reach far back. */
    bool results = chance(m, 20);
    uint64_t resume = test_random_next(m->random), forward = m->random->state, backward = ~forward;
    m->far_links = m->far_links && !traits->repeats;
    for (size_t i = 0; i < layers; i++) {
        if (traits->repeats && i % 4 == 0)
            m->random->state = forward;
        draw_forward(m, values, count, &drawn[i]);
        values[count++] = drawn[i].output;
    }
    uint32_t last = values[count - 1];
    uint32_t value = draw_loss(m, loss, last, labels, &saved);
    uint32_t result = chance(m, 70) ? value : last; /* the value of the loss, or what it was made from */
    draw_loss_backward(m, loss, last, labels, saved);
    for (size_t i = layers; i-- > 0;) {
        if (traits->repeats && i % 4 == 3)
            m->random->state = backward;
        draw_backward(m, &drawn[i]);
    }
    apply_late(m);
    if (results && !traits->no_results) {
        expect_ok(f, graph_add_result(m->graph, result));
        expect_ok(f, graph_add_result(m->graph, labels));
    }
    m->random->state = resume;
    remat_graph *graph = m->graph;
    free(m);
    return graph;
}

/* ---- a transformer ---- */

typedef struct half_block {
    uint32_t layer[4]; /* norm, first product, attention or gelu, second product with the residual */
    uint32_t input, normed, statistics, wide, mixed, extra, output;
} half_block;

static void half_forward(maker *m, uint32_t input, uint64_t unit, bool attends, half_block *h)
{
    static const char *const names[2][4] = {{"norm", "up", "gelu", "down"}, {"norm", "qkv", "attention", "project"}};
    static const remat_layer_type types[2][4] = {{REMAT_NORM, REMAT_FFN, REMAT_FFN, REMAT_FFN},
                                                 {REMAT_NORM, REMAT_FFN, REMAT_ATTENTION, REMAT_FFN}};
    for (int i = 0; i < 4; i++)
        h->layer[i] = new_layer(m, names[attends][i], types[attends][i]);
    uint64_t wide = attends ? 3 * unit : 4 * unit, mixed = attends ? unit : 4 * unit;
    h->input = input;
    h->normed = new_tensor(m, "normed", unit);
    h->statistics = new_tensor(m, "statistics", unit / 128);
    h->wide = new_tensor(m, attends ? "qkv" : "up", wide);
    h->mixed = new_tensor(m, attends ? "attended" : "gelu", mixed);
    h->extra = attends ? new_tensor(m, "sums", unit / 32) : GRAPH_NONE;
    h->output = new_tensor(m, "residual", unit);
    add(m, FORWARD, h->layer[0],
        &(links){.reads = {input}, .read_count = 1, .writes = {h->normed, h->statistics}, .write_count = 2}, GRAPH_NONE,
        GRAPH_NONE, 8);
    add(m, FORWARD, h->layer[1], &(links){.reads = {h->normed}, .read_count = 1, .writes = {h->wide}, .write_count = 1},
        GRAPH_NONE, GRAPH_NONE, attends ? 240 : 320);
    add(m, FORWARD, h->layer[2],
        &(links){.reads = {h->wide}, .read_count = 1, .writes = {h->mixed, h->extra}, .write_count = attends ? 2 : 1},
        GRAPH_NONE, GRAPH_NONE, attends ? 150 : 30);
    add(m, FORWARD, h->layer[3],
        &(links){.reads = {h->mixed, input}, .read_count = 2, .writes = {h->output}, .write_count = 1}, GRAPH_NONE,
        GRAPH_NONE, attends ? 85 : 325);
}

static void step_weights(maker *m, uint32_t layer, uint32_t gradient, uint32_t input, uint64_t bytes, uint64_t cost)
{
    uint32_t weights = new_tensor(m, "dw", bytes);
    add(m, BACKWARD, layer,
        &(links){.reads = {gradient, input}, .read_count = 2, .writes = {weights}, .write_count = 1}, GRAPH_NONE,
        GRAPH_NONE, cost);
    add(m, BACKWARD, layer, &(links){.reads = {weights}, .read_count = 1}, GRAPH_NONE, GRAPH_NONE, 5);
}

/* The gradient of the residual is one tensor all the way: the branch adds to it. */
static void half_backward(maker *m, uint32_t residual, uint64_t unit, const half_block *h)
{
    bool attends = h->extra != GRAPH_NONE;
    uint64_t wide = m->graph->tensors[h->wide].bytes, mixed = m->graph->tensors[h->mixed].bytes;
    uint32_t dmixed = new_tensor(m, "dmixed", mixed), dwide = new_tensor(m, "dwide", wide);
    uint32_t dnormed = new_tensor(m, "dnormed", unit);
    step_weights(m, h->layer[3], residual, h->mixed, mixed, attends ? 80 : 320);
    add(m, BACKWARD, h->layer[3], &(links){.reads = {residual}, .read_count = 1, .writes = {dmixed}, .write_count = 1},
        GRAPH_NONE, GRAPH_NONE, attends ? 80 : 320);
    links middle = {.reads = {dmixed, h->wide}, .read_count = 2, .writes = {dwide}, .write_count = 1};
    if (attends) {
        read_once(&middle, h->mixed);
        read_once(&middle, h->extra);
    }
    add(m, BACKWARD, h->layer[2], &middle, attends ? GRAPH_NONE : dmixed, attends ? GRAPH_NONE : dwide,
        attends ? 320 : 40);
    step_weights(m, h->layer[1], dwide, h->normed, wide, attends ? 240 : 320);
    add(m, BACKWARD, h->layer[1], &(links){.reads = {dwide}, .read_count = 1, .writes = {dnormed}, .write_count = 1},
        GRAPH_NONE, GRAPH_NONE, attends ? 240 : 320);
    add(m, BACKWARD, h->layer[0],
        &(links){
            .reads = {dnormed, h->input, h->statistics}, .read_count = 3, .updates = {residual}, .update_count = 1},
        GRAPH_NONE, GRAPH_NONE, 15);
}

remat_graph *transformer_graph(fixture *f, size_t blocks, uint64_t unit, graph_notes *notes)
{
    test_random random = {1};
    maker *m = new_maker(f, &random, notes);
    half_block *halves = calloc(2 * blocks + 1, sizeof *halves);
    assert_non_null(halves);
    uint32_t data = new_layer(m, "data", REMAT_OTHER), embed = new_layer(m, "embed", REMAT_EMBEDDING);
    uint32_t tokens = new_tensor(m, "tokens", unit / 256), labels = new_tensor(m, "labels", unit / 256);
    add(m, LOAD, data, &(links){.writes = {tokens, labels}, .write_count = 2}, GRAPH_NONE, GRAPH_NONE, 1);
    uint32_t at = new_tensor(m, "residual", unit);
    add(m, FORWARD, embed, &(links){.reads = {tokens}, .read_count = 1, .writes = {at}, .write_count = 1}, GRAPH_NONE,
        GRAPH_NONE, 5);
    for (size_t i = 0; i < 2 * blocks; i++) {
        half_forward(m, at, unit, i % 2 == 0, &halves[i]);
        at = halves[i].output;
    }
    uint32_t head = new_layer(m, "head", REMAT_OTHER), loss = new_tensor(m, "loss", 64);
    uint32_t logits = new_tensor(m, "logits", 16 * unit), residual = new_tensor(m, "dresidual", unit);
    add(m, FORWARD, head, &(links){.reads = {at}, .read_count = 1, .writes = {logits}, .write_count = 1}, GRAPH_NONE,
        GRAPH_NONE, 1300);
    add(m, FORWARD, head, &(links){.reads = {logits, labels}, .read_count = 2, .writes = {loss}, .write_count = 1},
        GRAPH_NONE, GRAPH_NONE, 60);
    uint32_t dlogits = new_tensor(m, "dlogits", 16 * unit);
    add(m, BACKWARD, head, &(links){.reads = {logits, labels}, .read_count = 2, .writes = {dlogits}, .write_count = 1},
        logits, dlogits, 60);
    step_weights(m, head, dlogits, at, 4 * unit, 1300);
    add(m, BACKWARD, head, &(links){.reads = {dlogits}, .read_count = 1, .writes = {residual}, .write_count = 1},
        GRAPH_NONE, GRAPH_NONE, 1300);
    for (size_t i = 2 * blocks; i-- > 0;)
        half_backward(m, residual, unit, &halves[i]);
    step_weights(m, embed, residual, tokens, 4 * unit, 20);
    remat_graph *graph = m->graph;
    free(halves);
    free(m);
    return graph;
}

/* ---- looking at one ---- */

void graph_notes_free(graph_notes *notes)
{
    free(notes->hints);
    free(notes->layers);
    *notes = (graph_notes){0};
}

void graph_print(const remat_graph *graph)
{
    for (size_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        printf("%zu%s %s cost %llu workspace %llu:", i, action->once ? " once" : "", action->name ? action->name : "",
               (unsigned long long)action->cost, (unsigned long long)action->workspace_bytes);
        for (size_t k = 0; k < action->read_count; k++)
            printf(" r%u", graph_reads(graph, action)[k]);
        for (size_t k = 0; k < action->update_count; k++)
            printf(" u%u", graph_updates(graph, action)[k]);
        for (size_t k = 0; k < action->write_count; k++)
            printf(" w%u(%llu)", graph_writes(graph, action)[k],
                   (unsigned long long)graph->tensors[graph_writes(graph, action)[k]].bytes);
        if (action->in_place_to != GRAPH_NONE)
            printf(" %u in place of %u", action->in_place_to, action->in_place_from);
        printf("\n");
    }
    for (size_t i = 0; i < graph->result_count; i++)
        printf("result %u\n", graph->results[i]);
}
