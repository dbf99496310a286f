/* A lower bound from segments of layers that are recomputed together. In any schedule a layer is one of
 *   held      its state is live from before the loss to its backward; it runs forward once;
 *   twice     it runs forward once more, after the loss, and that forward saves the state which its backward uses;
 *   often     it runs forward three times or more.
 * A `twice` layer i gets its input for the late forward in one of three ways:
 *   a. from a held state, or from a layer that runs often: this takes no memory here;
 *   b. x_i has been kept since before the loss: then x_i, or s_i made from it, is live at every moment until backward i;
 *   c. from the one late forward of layer i-1, which is `twice` itself: then s_{i-1} is live from before backward i until
 *      backward i-1.
 * Layers that follow one another by c form a segment. At backward k of a segment's layer k, the states of the segment up to
 * k are all live, with y_{k+1}, y_k and everything that is held or kept further left. At the loss everything that is held or
 * kept is live. The bound is the cheapest way to label the layers that meets these conditions: a dynamic program over the
 * layers whose value is a staircase over the bytes held so far. Staircases that get too long are rounded down. */
#include "plan/chain/lower_bound.h"

#include "base/alloc.h"
#include "base/min_max.h"
#include "plan/chain/optimal_model.h"
#include "plan/chain/optimal_staircase.h"

/* Corners a staircase. The work is corners times segments; with fewer corners than the least the bound says nothing. */
enum { MOST_CORNERS = 20000, FEWEST_CORNERS = 500, MOST_WORK = 1 << 25 };

typedef struct segment_search {
    const remat_profile *chain;
    size_t n;
    remat_context *context;
    uint64_t room; /* budget less the input */
    size_t limit;  /* corners a staircase */
    staircase_envelope envelope;
    uint64_t *save_bytes, *around_bytes, *twice_cost, *cheapest_forward; /* by layer */
    staircase *open, *closed; /* n + 1: what is held before layer i, where layer i-1 is `twice`, and where it is not */
} segment_search;

/* The least a layer may need, over its modes. */
static void fill_layer(segment_search *s, size_t i)
{
    const remat_layer *layer = &s->chain->layers[i];
    uint64_t bytes = UINT64_MAX, workspace = UINT64_MAX, cost = UINT64_MAX, forward = UINT64_MAX;
    for (uint32_t q = 0; q < layer->mode_count; q++) {
        const remat_mode *mode = &layer->modes[q];
        bytes = remat_min(bytes, mode->activation_bytes);
        workspace = remat_min(workspace, mode->backward_workspace_bytes);
        cost = remat_min(cost, mode->forward_cost + mode->backward_cost);
        forward = remat_min(forward, mode->forward_cost);
    }
    s->save_bytes[i] = bytes;
    s->around_bytes[i] = remat_chain_y_bytes(s->chain, i + 1) + remat_chain_y_bytes(s->chain, i) + workspace;
    s->twice_cost[i] = cost + forward;
    s->cheapest_forward[i] = forward;
}

/* Bytes that keeping x_i takes at every moment until backward i. */
static uint64_t kept_bytes(const segment_search *s, size_t i)
{
    if (i == 0)
        return 0;
    return remat_min(remat_chain_x_bytes(s->chain, i), remat_min(s->save_bytes[i], s->save_bytes[i - 1]));
}

static void offer_moved(segment_search *s, staircase from, uint64_t bytes, uint64_t cost, uint64_t most)
{
    staircase_offer offer = {from, stairs_nothing(), bytes, 0, cost};
    s->envelope.memory_cap = most;
    envelope_offer(&s->envelope, &offer);
}

static remat_status keep_stairs(segment_search *s, staircase *stairs)
{
    envelope_finish(&s->envelope);
    uint64_t *words = remat_alloc(s->context, 2 * s->envelope.count + 1, sizeof *words);
    if (!words)
        return REMAT_NO_MEMORY;
    *stairs = envelope_copy(&s->envelope, words);
    return REMAT_OK;
}

/* Layer i held in some mode, or run often. */
static remat_status close_layer(segment_search *s, size_t i)
{
    const remat_layer *layer = &s->chain->layers[i];
    uint64_t gradients = remat_chain_y_bytes(s->chain, i + 1) + remat_chain_y_bytes(s->chain, i);
    envelope_reset(&s->envelope, s->limit, s->room);
    for (int side = 0; side < 2; side++) {
        staircase before = side ? s->open[i] : s->closed[i];
        uint64_t least = s->save_bytes[i] + s->around_bytes[i];
        if (least <= s->room)
            offer_moved(s, before, 0, s->twice_cost[i] + s->cheapest_forward[i], s->room - least);
        for (uint32_t q = 0; q < layer->mode_count; q++) {
            const remat_mode *mode = &layer->modes[q];
            uint64_t around = gradients + mode->backward_workspace_bytes;
            if (around > s->room)
                continue;
            uint64_t cost = mode->forward_cost + mode->backward_cost, bytes = mode->activation_bytes;
            if (mode->holds_output)
                offer_moved(s, before, bytes, cost, s->room - around);
            else { /* x_{i+1} is held beside it, or recomputed */
                offer_moved(s, before, bytes, cost + s->cheapest_forward[i], s->room - around);
                offer_moved(s, before, bytes + layer->output_bytes, cost, s->room);
            }
        }
    }
    return keep_stairs(s, &s->closed[i + 1]);
}

/* A segment that ends with layer i. */
static remat_status open_layer(segment_search *s, size_t i)
{
    uint64_t need = 0, cost = 0;
    envelope_reset(&s->envelope, s->limit, s->room);
    for (size_t a = i + 1; a-- > 0;) {
        need = s->save_bytes[a] + remat_max(need, s->around_bytes[a]);
        cost += s->twice_cost[a];
        if (need > s->room)
            break;
        offer_moved(s, s->closed[a], 0, cost, s->room - need);
        /* inside its own segment s_a may stand for the kept x_a, which the layer before may recompute */
        offer_moved(s, s->open[a], kept_bytes(s, a), cost, s->room - need + kept_bytes(s, a));
    }
    return keep_stairs(s, &s->open[i + 1]);
}

/* Bytes the loss needs beside what is held; x_n is read alone, or inside a state that may be smaller. */
static uint64_t cheapest_at_loss(segment_search *s)
{
    size_t n = s->n;
    uint64_t loss = remat_chain_y_bytes(s->chain, n) + s->chain->loss_workspace_bytes, best = UINT64_MAX;
    uint64_t output = remat_min(remat_chain_x_bytes(s->chain, n), s->save_bytes[n - 1]);
    for (int side = 0; side < 2; side++) {
        staircase all = side ? s->open[n] : s->closed[n];
        uint64_t need = loss + (side ? output : 0);
        if (need <= s->room && all.count && all.memory[0] <= s->room - need)
            best = remat_min(best, all.cost[stairs_at(all, s->room - need)]);
    }
    return best;
}

static remat_status run(segment_search *s, uint64_t *bound)
{
    envelope_reset(&s->envelope, s->limit, s->room);
    offer_moved(s, stairs_nothing(), 0, 0, s->room);
    REMAT_TRY(keep_stairs(s, &s->closed[0]));
    for (size_t i = 0; i < s->n; i++) {
        REMAT_TRY(close_layer(s, i));
        REMAT_TRY(open_layer(s, i));
    }
    *bound = cheapest_at_loss(s);
    return REMAT_OK;
}

/* How many segments there are that fit the budget. */
static size_t count_segments(const segment_search *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t need = 0;
        for (size_t a = i + 1; a-- > 0 && need <= s->room; count++)
            need = s->save_bytes[a] + remat_max(need, s->around_bytes[a]);
    }
    return count;
}

static remat_status allocate_segments(segment_search *s)
{
    size_t n = s->n;
    s->save_bytes = remat_alloc(s->context, 4 * (n + 1), sizeof *s->save_bytes);
    s->open = remat_alloc_zeroed(s->context, 2 * (n + 1), sizeof *s->open);
    if (!s->save_bytes || !s->open)
        return REMAT_NO_MEMORY;
    s->around_bytes = s->save_bytes + (n + 1);
    s->twice_cost = s->around_bytes + (n + 1);
    s->cheapest_forward = s->twice_cost + (n + 1);
    s->closed = s->open + (n + 1);
    for (size_t i = 0; i < n; i++)
        fill_layer(s, i);
    s->limit = (size_t)remat_min(MOST_CORNERS, MOST_WORK / count_segments(s));
    /* rounding down may leave a few corners more than the limit, hence the doubled room */
    remat_status status = envelope_allocate(s->context, 2 * s->limit, &s->envelope);
    s->envelope.round_down = true;
    return status;
}

static void free_segments(segment_search *s)
{
    for (size_t k = 0; s->open && k < 2 * (s->n + 1); k++)
        remat_release(s->context, (void *)(uintptr_t)s->open[k].memory, 2 * (size_t)s->open[k].count + 1,
                      sizeof *s->open[k].memory);
    remat_release(s->context, s->open, 2 * (s->n + 1), sizeof *s->open);
    remat_release(s->context, s->save_bytes, 4 * (s->n + 1), sizeof *s->save_bytes);
    envelope_free(s->context, &s->envelope);
}

remat_status segment_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t *bound)
{
    segment_search s = {.chain = chain, .n = chain->layer_count, .context = context};
    *bound = 0;
    if (s.n == 0 || s.n > MOST_WORK / FEWEST_CORNERS || !optimal_figures_fit(chain))
        return REMAT_OK;
    *bound = UINT64_MAX;
    if (budget < chain->input_bytes)
        return REMAT_OK;
    s.room = remat_min(budget, FIGURE_LIMIT) - chain->input_bytes; /* there is no more to hold than the limit */
    remat_status status = allocate_segments(&s);
    if (status == REMAT_OK && s.limit >= FEWEST_CORNERS)
        status = run(&s, bound);
    else
        *bound = 0;
    free_segments(&s);
    return status;
}
