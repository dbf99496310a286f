/* What lives at one position of the base order while its cascade and its own action run. */
#include "plan/graph/hold_scratch.h"

static bool is_held_out(const hold_state *s, uint32_t tensor, uint32_t position)
{
    const hold_tensor *t = &s->g->tensors[tensor];
    if (t->maker == GRAPH_NONE)
        return s->tail_to[tensor] > position;
    uint32_t gap = hold_gap_after(s->g, tensor, position);
    if (s->held_from[gap] > position)
        return false;
    return s->g->gaps[gap].end != HOLD_TAIL || s->tail_to[tensor] > position;
}

typedef struct position_sum {
    hold_state *s;
    uint32_t position, index;
    uint64_t stamp;
    int64_t live, most;
} position_sum;

static void note_touched(position_sum *sum, const hold_action *action)
{
    hold_scratch *k = sum->s->scratch;
    sum->s->work += action->read_count + action->write_count;
    for (uint32_t n = 0; n < action->read_count + action->write_count; n++) {
        uint32_t tensor = action->reads[n];
        k->last[tensor] = sum->index;
        if (k->seen[tensor] == sum->stamp)
            continue;
        k->seen[tensor] = sum->stamp;
        k->alive[tensor] = n < action->read_count && hold_is_available(sum->s, tensor, sum->position);
        if (n >= action->read_count && sum->s->g->tensors[tensor].maker != GRAPH_NONE)
            k->alive[tensor] = hold_is_available(sum->s, tensor, sum->position); /* a second output, which was held */
    }
    sum->index++;
}

/* A tensor with several writers ends where it ends in the base order; no cascade reads it. */
static bool ends_in_base(const hold_state *s, const hold_action *action)
{
    uint32_t from = action->in_place_from;
    return action->ends_in_place && s->g->tensors[from].maker == GRAPH_NONE && s->touches[from].count == 0;
}

static void run_action(position_sum *sum, const hold_action *action, bool is_own)
{
    hold_state *s = sum->s;
    hold_scratch *k = s->scratch;
    int64_t shared = 0;
    uint32_t from = action->in_place_from;
    bool in_place = from != GRAPH_NONE && k->last[from] == sum->index &&
                    (!is_held_out(s, from, sum->position) || (is_own && ends_in_base(s, action)));
    for (uint32_t i = 0; i < action->write_count; i++) {
        uint32_t tensor = action->writes[i];
        if (k->alive[tensor])
            continue;
        k->alive[tensor] = 1;
        sum->live += (int64_t)s->g->tensors[tensor].bytes;
        if (in_place && tensor == action->in_place_to)
            shared = (int64_t)s->g->tensors[tensor].bytes;
    }
    int64_t now = sum->live + (int64_t)action->workspace_bytes - shared;
    sum->most = now > sum->most ? now : sum->most;
    for (uint32_t n = 0; !is_own && n < action->read_count + action->write_count; n++) {
        uint32_t tensor = action->reads[n];
        if (k->last[tensor] == sum->index && k->alive[tensor] && !is_held_out(s, tensor, sum->position)) {
            k->alive[tensor] = 0;
            sum->live -= (int64_t)s->g->tensors[tensor].bytes;
        }
    }
    sum->index++;
}

void hold_count_bytes(hold_state *s, uint32_t position)
{
    const hold_graph *g = s->g;
    const hold_cascade *cascade = &s->cascades[position];
    position_sum sum = {.s = s, .position = position, .stamp = ++s->scratch->stamp};
    for (uint32_t i = 0; i < cascade->count; i++)
        note_touched(&sum, &g->actions[cascade->actions[i]]);
    if (cascade->runs)
        note_touched(&sum, &g->actions[position]);
    sum.index = 0;
    for (uint32_t i = 0; i < cascade->count; i++)
        run_action(&sum, &g->actions[cascade->actions[i]], false);
    if (cascade->runs)
        run_action(&sum, &g->actions[position], true);
    s->extra_bytes[position] = sum.most;
}
