#include "base/alloc.h"
#include "plan/graph/graph_piece.h"

/* One instance of a tensor. */
typedef struct instance {
    uint32_t tensor;
    uint32_t born, ends;
} instance;

/* A write that may take the place of an instance, if that turns out to end there. */
typedef struct in_place {
    uint32_t position, from;
    uint64_t bytes;
} in_place;

struct piece_scratch {
    const graph_piece *piece;
    size_t most_positions, most_instances;
    bool without_data;
    uint32_t *actions; /* in order; the backward begins at `turn` */
    size_t count, turn;
    uint8_t *have;
    instance *instances; /* those of the forward, which is the same for all choices, stay */
    size_t instance_count, forward_instances;
    uint32_t *forward_ends; /* of those, where the forward itself is done with them */
    uint32_t *latest;       /* by tensor: its latest instance */
    in_place *shared;
    size_t shared_count, forward_shared;
    uint64_t *change; /* of the bytes that live, by position; differences wrap, and back */
    uint64_t *saved;  /* by position: what is not taken twice */
};

/* Forward actions run at most twice: once forward, once in the backward. */
remat_status piece_scratch_create(const graph_piece *piece, piece_scratch **made)
{
    remat_context *context = piece->context;
    piece_scratch *s = *made = remat_alloc_zeroed(context, 1, sizeof *s);
    if (!s)
        return REMAT_NO_MEMORY;
    s->piece = piece;
    s->most_positions = piece->forward_count + piece->action_count + 1;
    s->most_instances = 2 * piece->link_count + piece->tensor_count;
    s->actions = remat_alloc(context, s->most_positions, sizeof *s->actions);
    s->have = remat_alloc(context, piece->tensor_count, sizeof *s->have);
    s->instances = remat_alloc(context, s->most_instances, sizeof *s->instances);
    s->forward_ends = remat_alloc(context, s->most_instances, sizeof *s->forward_ends);
    s->latest = remat_alloc(context, piece->tensor_count, sizeof *s->latest);
    s->shared = remat_alloc(context, s->most_positions, sizeof *s->shared);
    s->change = remat_alloc(context, s->most_positions, sizeof *s->change);
    s->saved = remat_alloc(context, s->most_positions, sizeof *s->saved);
    if (s->actions && s->have && s->instances && s->forward_ends && s->latest && s->shared && s->change && s->saved) {
        piece_leave_out_data(s, false);
        return REMAT_OK;
    }
    piece_scratch_destroy(s);
    *made = NULL;
    return REMAT_NO_MEMORY;
}

void piece_scratch_destroy(piece_scratch *s)
{
    if (!s)
        return;
    remat_context *context = s->piece->context;
    remat_release(context, s->actions, s->most_positions, sizeof *s->actions);
    remat_release(context, s->have, s->piece->tensor_count, sizeof *s->have);
    remat_release(context, s->instances, s->most_instances, sizeof *s->instances);
    remat_release(context, s->forward_ends, s->most_instances, sizeof *s->forward_ends);
    remat_release(context, s->latest, s->piece->tensor_count, sizeof *s->latest);
    remat_release(context, s->shared, s->most_positions, sizeof *s->shared);
    remat_release(context, s->change, s->most_positions, sizeof *s->change);
    remat_release(context, s->saved, s->most_positions, sizeof *s->saved);
    remat_release(context, s, 1, sizeof *s);
}

/* ---- which actions run ---- */

static uint64_t make_needs(piece_scratch *s, const piece_action *action);

/* Makes a tensor again, and before it what its maker needs; returns the cost. */
static uint64_t make(piece_scratch *s, uint32_t tensor)
{
    uint32_t maker = s->piece->tensors[tensor].maker;
    const piece_action *action = &s->piece->actions[maker];
    uint64_t cost = make_needs(s, action) + action->cost;
    s->actions[s->count++] = maker;
    const uint32_t *writes = s->piece->links + action->first_link + action->need_count;
    for (size_t i = 0; i < action->write_count; i++)
        s->have[writes[i]] = 1;
    return cost;
}

static uint64_t make_needs(piece_scratch *s, const piece_action *action)
{
    uint64_t cost = 0;
    const uint32_t *needs = s->piece->links + action->first_link;
    for (size_t i = 0; i < action->need_count; i++)
        if (needs[i] < s->piece->inner_count && !s->have[needs[i]])
            cost += make(s, needs[i]);
    return cost;
}

static uint64_t list_backward(piece_scratch *s, const uint8_t *keep)
{
    const graph_piece *piece = s->piece;
    uint64_t cost = 0;
    for (size_t t = 0; t < piece->inner_count; t++)
        s->have[t] = keep[t];
    for (size_t i = piece->forward_count; i < piece->action_count; i++) {
        cost += make_needs(s, &piece->actions[i]);
        s->actions[s->count++] = (uint32_t)i;
    }
    return cost;
}

/* ---- what lives when ---- */

static uint64_t bytes_of(const piece_scratch *s, uint32_t tensor)
{
    const piece_tensor *it = &s->piece->tensors[tensor];
    return it->is_data && s->without_data ? 0 : it->bytes;
}

static void be_born(piece_scratch *s, uint32_t tensor, uint32_t position)
{
    s->latest[tensor] = (uint32_t)s->instance_count;
    s->instances[s->instance_count++] = (instance){tensor, position, position + 1};
}

static void live_through(piece_scratch *s, uint32_t position)
{
    const graph_piece *piece = s->piece;
    const piece_action *action = &piece->actions[s->actions[position]];
    const uint32_t *links = piece->links + action->first_link;
    for (size_t i = 0; i < action->need_count; i++)
        s->instances[s->latest[links[i]]].ends = position + 1;
    uint32_t from = action->in_place_from, to = action->in_place_to;
    if (from != GRAPH_NONE && to != GRAPH_NONE && bytes_of(s, from) == piece->tensors[to].bytes)
        s->shared[s->shared_count++] = (in_place){position, s->latest[from], piece->tensors[to].bytes};
    for (size_t i = 0; i < action->write_count; i++)
        be_born(s, links[action->need_count + i], position);
}

static void run_forward(piece_scratch *s)
{
    const graph_piece *piece = s->piece;
    s->instance_count = s->shared_count = 0;
    s->turn = piece->forward_count;
    for (uint32_t position = 0; position < s->turn; position++) {
        s->actions[position] = position;
        live_through(s, position);
    }
    if (piece->output != GRAPH_NONE)
        s->instances[s->latest[piece->output]].ends = (uint32_t)s->turn;
    for (size_t i = 0; i < s->instance_count; i++)
        s->forward_ends[i] = s->instances[i].ends;
    s->forward_instances = s->instance_count;
    s->forward_shared = s->shared_count;
}

/* As it was when the forward was done. */
static void return_to_turn(piece_scratch *s)
{
    s->count = s->turn;
    s->instance_count = s->forward_instances;
    s->shared_count = s->forward_shared;
    for (uint32_t i = 0; i < s->instance_count; i++) {
        s->instances[i].ends = s->forward_ends[i];
        s->latest[s->instances[i].tensor] = i;
    }
}

static void run_backward(piece_scratch *s)
{
    const graph_piece *piece = s->piece;
    for (uint32_t t = (uint32_t)piece->inner_count; t < piece->tensor_count && s->count > s->turn; t++)
        if (piece->tensors[t].arrives)
            be_born(s, t, (uint32_t)s->turn);
    for (uint32_t position = (uint32_t)s->turn; position < s->count; position++)
        live_through(s, position);
    for (uint32_t t = (uint32_t)piece->inner_count; t < piece->tensor_count && s->count > s->turn; t++)
        if (piece->tensors[t].leaves)
            s->instances[s->latest[t]].ends = (uint32_t)s->count;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void sum_up(piece_scratch *s, piece_figures *figures)
{
    const graph_piece *piece = s->piece;
    for (size_t p = 0; p <= s->count; p++)
        s->change[p] = s->saved[p] = 0;
    for (size_t i = 0; i < s->instance_count; i++) {
        const instance *it = &s->instances[i];
        uint64_t bytes = bytes_of(s, it->tensor);
        s->change[it->born] += bytes;
        s->change[it->ends] -= bytes;
        if (it->born >= s->turn || it->ends <= s->turn)
            continue;
        figures->held_bytes += bytes;
        figures->holds_output |= piece->tensors[it->tensor].is_output;
    }
    for (size_t i = 0; i < s->shared_count; i++)
        if (s->instances[s->shared[i].from].ends == s->shared[i].position + 1)
            s->saved[s->shared[i].position] = s->shared[i].bytes;
    uint64_t now = 0;
    for (size_t p = 0; p < s->count; p++) {
        now += s->change[p];
        uint64_t bytes = now - s->saved[p] + piece->actions[s->actions[p]].workspace_bytes;
        uint64_t *peak = p < s->turn ? &figures->forward_peak : &figures->backward_peak;
        *peak = greatest(*peak, bytes);
    }
}

void piece_leave_out_data(piece_scratch *s, bool leave_out)
{
    s->without_data = leave_out;
    run_forward(s);
}

void piece_evaluate(piece_scratch *s, const uint8_t *keep, piece_figures *figures)
{
    *figures = (piece_figures){0};
    return_to_turn(s);
    figures->remake_cost = list_backward(s, keep);
    run_backward(s);
    sum_up(s, figures);
}

uint64_t piece_forward_peak(piece_scratch *s)
{
    piece_figures figures = {0};
    return_to_turn(s);
    sum_up(s, &figures);
    return figures.forward_peak;
}

const uint32_t *piece_backward_actions(const piece_scratch *s, size_t *count)
{
    *count = s->count - s->turn;
    return s->actions + s->turn;
}
