#include "plan/chain/exhaustive.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/min_max.h"
#include "plan/chain/exhaustive_store.h"

/* At most about 160 bytes and 2 microseconds for each. */
#define MOST_STATES 500000

/* A state says which x_1..x_N are live on their own, in which mode each live s_i was saved, and how far the backward is. The
 * input is always live: it cannot be made again, and backward 0, the last step, reads it.
 *
 *   bits 0 to 11    x_1 to x_12
 *   bits 12 to 59   four for each layer: 0, or 1 + the mode of s_i
 *   bits 60 to 63   the stage. N + 1: the loss has not run yet; b <= N: y_b is live, the layers below b are unfinished */
enum { MOST_LAYERS = 12, MOST_MODES = 15, STAGE_SHIFT = 60 };

/* Unless a mode makes saving the better way to run a layer forward (saving_never_beats_plain), only these steps are
 * tried. Each rule turns any legal schedule into one that keeps it, no costlier and with no more bytes at any moment:
 *
 *  1. A saved state is never dropped: its forward could have been a plain one.
 *  2. Drops come directly after the last use, since an earlier drop only lowers memory. So a forward may drop its input
 *     (or the output it made beside a saved state), a backward drops its input and the loss drops x_N: nobody reads
 *     those again.
 *  3. No plain x_{i+1} is made while s_i holds it (by 1, s_i stays), and no forward i runs while x_{i+1} is live (by 2
 *     it would have been dropped).
 *  4. x_b is never made once y_b exists: nobody reads it.
 *  5. A backward that fits and leaves no more bytes than there were is run at once, and so is the loss where x_N is
 *     live alone: the steps between do not read what it drops and have no more bytes beside them.
 *
 * Where a mode does, all legal steps are tried and anything may be dropped at any time. */
typedef struct search {
    const remat_profile *chain;
    size_t n; /* layers */
    exhaustive_store store;
    uint64_t budget;
    bool by_peak; /* labels are peaks, not costs, and there is no budget */
    bool allow_lossy;
    bool every_step;                        /* the rules above do not hold */
    uint64_t least_forward[MOST_LAYERS];    /* the cost of the cheapest kind of forward */
    uint64_t least_round_trip[MOST_LAYERS]; /* of a saving forward and its backward */
} search;

/* The state that is being expanded. */
typedef struct origin {
    uint64_t state, label, live;
    size_t stage;
    uint32_t node;
} origin;

/* What a step takes, and where it leads. */
typedef struct attempt {
    uint64_t bytes; /* beside what is live, while it runs */
    uint64_t cost;
    uint64_t state; /* after it */
    exhaustive_edge edge;
} attempt;

static bool allowed(const remat_mode *mode, bool allow_lossy)
{
    return mode->lossless || allow_lossy;
}

/* ---- states ---- */

static uint64_t x_bit(size_t i)
{
    return (uint64_t)1 << (i - 1);
}

/* Whether x_i is live on its own. */
static bool x_live(uint64_t state, size_t i)
{
    return i == 0 || (state & x_bit(i)) != 0;
}

static uint64_t saved_bits(size_t i, uint64_t number)
{
    return number << (MOST_LAYERS + 4 * i);
}

/* The mode of s_i, NULL where it is not live. */
static const remat_mode *saved_mode(const search *s, uint64_t state, size_t i)
{
    uint64_t number = state >> (MOST_LAYERS + 4 * i) & 15;
    return number ? &s->chain->layers[i].modes[number - 1] : NULL;
}

static uint64_t with_stage(uint64_t state, size_t stage)
{
    return (state & (((uint64_t)1 << STAGE_SHIFT) - 1)) | (uint64_t)stage << STAGE_SHIFT;
}

/* Whether x_i can be read from the saved state of layer i-1; and whether it can be read at all. */
static bool inside_saved(const search *s, uint64_t state, size_t i)
{
    const remat_mode *saved = i > 0 ? saved_mode(s, state, i - 1) : NULL;
    return saved && saved->holds_output;
}

static bool readable(const search *s, uint64_t state, size_t i)
{
    return x_live(state, i) || inside_saved(s, state, i);
}

static uint64_t live_bytes(const search *s, uint64_t state)
{
    uint64_t live = s->chain->input_bytes;
    for (size_t i = 0; i < s->n; i++) {
        const remat_mode *saved = saved_mode(s, state, i);
        live += (saved ? saved->activation_bytes : 0) + (x_live(state, i + 1) ? s->chain->layers[i].output_bytes : 0);
    }
    size_t stage = (size_t)(state >> STAGE_SHIFT);
    return stage <= s->n ? live + remat_chain_y_bytes(s->chain, stage) : live;
}

/* ---- reaching states ---- */

/* What every unfinished layer must still pay, whatever the memory. No step lowers it by more than the step's own cost,
 * so that the first way to leave the heap is the cheapest. */
static uint64_t remaining_cost(const search *s, uint64_t state)
{
    size_t n = s->n, stage = (size_t)(state >> STAGE_SHIFT);
    uint64_t sum = 0;
    for (size_t i = 0; i < remat_min(n, stage); i++) {
        uint64_t least = s->least_round_trip[i];
        const remat_mode *saved = saved_mode(s, state, i);
        if (saved) {
            /* x_{i+1} is read once more, by backward i+1 or the loss, unless that is done */
            bool is_recomputed = i + 1 < stage && !readable(s, state, i + 1);
            uint64_t now = saved->backward_cost + (is_recomputed ? s->least_forward[i] : 0);
            least = remat_min(least, now);
        }
        sum += least;
    }
    return sum;
}

/* Whether the step fits without raising the peak (which for a search by cost is: within the budget). */
static bool fits_already(const search *s, const origin *from, const attempt *step)
{
    return from->live + step->bytes <= (s->by_peak ? from->label : s->budget);
}

static remat_status enter(search *s, uint64_t state, uint64_t label, uint32_t parent, exhaustive_edge edge)
{
    uint32_t node;
    REMAT_TRY(exhaustive_store_reach(&s->store, (exhaustive_node){state, label, parent, edge}, &node));
    if (node == EXHAUSTIVE_NO_NODE)
        return REMAT_OK;
    if (s->by_peak)
        return exhaustive_store_push(&s->store, label, state >> STAGE_SHIFT, node);
    /* Estimates stay below 2^64: both parts are below 2^63. */
    return exhaustive_store_push(&s->store, label + remaining_cost(s, state), UINT64_MAX - label, node);
}

static remat_status take(search *s, const origin *from, const attempt *step)
{
    uint64_t peak = from->live + step->bytes, label = from->label;
    if (s->by_peak)
        label = remat_max(label, peak);
    else if (peak > s->budget || !remat_add(&label, step->cost)) /* no legal schedule's cost reaches 2^63 */
        return REMAT_OK;
    return enter(s, step->state, label, from->node, step->edge);
}

/* A forward, with its input left and (rule 2) with its input dropped. */
static remat_status take_forward(search *s, const origin *from, attempt step)
{
    size_t i = step.edge.step.layer;
    REMAT_TRY(take(s, from, &step));
    if (s->every_step || i == 0 || !x_live(step.state, i))
        return REMAT_OK;
    step.edge.drop_input = true;
    step.state &= ~x_bit(i);
    return take(s, from, &step);
}

/* ---- steps ---- */

static remat_status try_plain_forward(search *s, const origin *from, size_t i)
{
    const remat_layer *layer = &s->chain->layers[i];
    if (x_live(from->state, i + 1))
        return REMAT_OK;
    if (!s->every_step && (inside_saved(s, from->state, i + 1) || from->stage == i + 1))
        return REMAT_OK; /* rules 3 and 4 */
    return take_forward(s, from,
                        (attempt){
                            .bytes = layer->output_bytes + layer->modes[REMAT_KEEP].forward_workspace_bytes,
                            .cost = layer->modes[REMAT_KEEP].forward_cost,
                            .state = from->state | x_bit(i + 1),
                            .edge.step = {(uint32_t)i, REMAT_NO_SAVE, REMAT_FORWARD},
                        });
}

static remat_status try_saving_forward(search *s, const origin *from, size_t i, size_t number)
{
    const remat_layer *layer = &s->chain->layers[i];
    const remat_mode *mode = &layer->modes[number];
    bool adds_x = !mode->holds_output;
    if (x_live(from->state, i + 1) && (adds_x || !s->every_step))
        return REMAT_OK; /* not legal, or rule 3 */
    attempt step = {
        .bytes = mode->activation_bytes + (adds_x ? layer->output_bytes : 0) + mode->forward_workspace_bytes,
        .cost = mode->forward_cost,
        .state = from->state | saved_bits(i, number + 1),
        .edge.step = {(uint32_t)i, (uint16_t)number, REMAT_FORWARD},
    };
    if (!adds_x)
        return take_forward(s, from, step);
    if (!s->every_step) { /* rule 2: the output is dropped at once, or (rule 4) has to be */
        attempt dropping = step;
        dropping.edge.drop_output = true;
        REMAT_TRY(take_forward(s, from, dropping));
        if (from->stage == i + 1)
            return REMAT_OK;
    }
    step.state |= x_bit(i + 1);
    return take_forward(s, from, step);
}

/* *settled: by rule 5 nothing else need be tried. */
static remat_status try_loss(search *s, const origin *from, bool *settled)
{
    const remat_profile *chain = s->chain;
    size_t n = s->n;
    if (from->stage != n + 1 || !readable(s, from->state, n))
        return REMAT_OK;
    attempt step = {
        .bytes = remat_chain_y_bytes(chain, n) + chain->loss_workspace_bytes,
        .state = with_stage(from->state, n),
        .edge.step = {0, REMAT_NO_SAVE, REMAT_LOSS},
    };
    if (!s->every_step && x_live(from->state, n)) {
        step.state &= ~x_bit(n);
        step.edge.drop_output = true;
        *settled = fits_already(s, from, &step);
    }
    return take(s, from, &step);
}

static remat_status try_backward(search *s, const origin *from, bool *settled)
{
    if (from->stage > s->n)
        return REMAT_OK;
    size_t i = from->stage - 1;
    const remat_mode *saved = saved_mode(s, from->state, i);
    if (!saved || !readable(s, from->state, i))
        return REMAT_OK;
    attempt step = {
        .bytes = remat_chain_y_bytes(s->chain, i) + saved->backward_workspace_bytes,
        .cost = saved->backward_cost,
        .state = with_stage(from->state & ~saved_bits(i, 15), i),
        .edge.step = {(uint32_t)i, REMAT_NO_SAVE, REMAT_BACKWARD},
    };
    if (!s->every_step && i > 0 && x_live(from->state, i)) {
        step.state &= ~x_bit(i);
        step.edge.drop_input = true;
    }
    *settled = !s->every_step && fits_already(s, from, &step) && live_bytes(s, step.state) <= from->live;
    return take(s, from, &step);
}

static remat_status try_drops(search *s, const origin *from)
{
    for (size_t i = 0; i < s->n; i++) {
        attempt drop_x = {.state = from->state & ~x_bit(i + 1),
                          .edge.step = {(uint32_t)i + 1, REMAT_NO_SAVE, REMAT_DROP_X}};
        attempt drop_saved = {.state = from->state & ~saved_bits(i, 15),
                              .edge.step = {(uint32_t)i, REMAT_NO_SAVE, REMAT_DROP_STATE}};
        if (drop_x.state != from->state)
            REMAT_TRY(take(s, from, &drop_x));
        if (drop_saved.state != from->state)
            REMAT_TRY(take(s, from, &drop_saved));
    }
    return REMAT_OK;
}

static remat_status try_forwards(search *s, const origin *from, size_t i)
{
    const remat_layer *layer = &s->chain->layers[i];
    if (!readable(s, from->state, i))
        return REMAT_OK;
    REMAT_TRY(try_plain_forward(s, from, i));
    if (saved_mode(s, from->state, i))
        return REMAT_OK;
    for (size_t k = 0; k < layer->mode_count; k++)
        if (allowed(&layer->modes[k], s->allow_lossy))
            REMAT_TRY(try_saving_forward(s, from, i, k));
    return REMAT_OK;
}

static remat_status expand(search *s, const origin *from)
{
    size_t n = s->n;
    bool settled = false;
    REMAT_TRY(try_backward(s, from, &settled));
    if (!settled)
        REMAT_TRY(try_loss(s, from, &settled));
    if (settled)
        return REMAT_OK;
    /* what a layer makes after its own backward is of use to none that is left */
    for (size_t i = 0; i < remat_min(n, from->stage); i++)
        REMAT_TRY(try_forwards(s, from, i));
    return s->every_step ? try_drops(s, from) : REMAT_OK;
}

/* ---- the search ---- */

/* Whether running a layer forward to save it, in any mode, costs at least as much and takes at least as many bytes,
 * while it runs and after it, as running it plainly. */
static bool saving_never_beats_plain(const remat_profile *chain, bool allow_lossy, bool costs_count)
{
    for (size_t i = 0; i < chain->layer_count; i++) {
        const remat_layer *layer = &chain->layers[i];
        const remat_mode *plain = &layer->modes[REMAT_KEEP];
        for (size_t k = 0; k < layer->mode_count; k++) {
            const remat_mode *mode = &layer->modes[k];
            uint64_t added = mode->activation_bytes + (mode->holds_output ? 0 : layer->output_bytes);
            if (!allowed(mode, allow_lossy))
                continue;
            if (added < layer->output_bytes || (costs_count && mode->forward_cost < plain->forward_cost))
                return false;
            if (added + mode->forward_workspace_bytes < layer->output_bytes + plain->forward_workspace_bytes)
                return false;
        }
    }
    return true;
}

static void find_least_costs(search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const remat_layer *layer = &s->chain->layers[i];
        s->least_forward[i] = s->least_round_trip[i] = UINT64_MAX;
        for (size_t k = 0; k < layer->mode_count; k++) {
            const remat_mode *mode = &layer->modes[k];
            uint64_t both = mode->forward_cost + mode->backward_cost;
            if (!allowed(mode, s->allow_lossy))
                continue;
            s->least_forward[i] = remat_min(s->least_forward[i], mode->forward_cost);
            s->least_round_trip[i] = remat_min(s->least_round_trip[i], both);
        }
    }
}

/* Expands states in order until the last backward is done. *goal stays EXHAUSTIVE_NO_NODE where that cannot be. */
static remat_status run(search *s, uint64_t first_label, uint32_t *goal)
{
    *goal = EXHAUSTIVE_NO_NODE;
    uint64_t first = with_stage(0, s->n ? s->n + 1 : 0); /* without layers there is nothing to do */
    REMAT_TRY(enter(s, first, first_label, EXHAUSTIVE_NO_NODE, (exhaustive_edge){0}));
    while (s->store.waiting.count > 0) {
        uint32_t number = exhaustive_store_pop(&s->store);
        exhaustive_node *node = &s->store.nodes[number];
        if (node->edge.closed) /* it waited twice, and came with a better label before */
            continue;
        node->edge.closed = true;
        origin from = {node->state, node->label, live_bytes(s, node->state), (size_t)(node->state >> STAGE_SHIFT),
                       number};
        if (from.stage == 0) {
            *goal = number;
            return REMAT_OK;
        }
        REMAT_TRY(expand(s, &from));
    }
    return REMAT_OK;
}

/* ---- how short a chain must be ---- */

/* In how many ways layer i can be: x_{i+1} live or not, with or without s_i in some mode. By rule 3 a state that holds
 * the output has no x_{i+1} beside it. */
static uint64_t layer_ways(const remat_layer *layer, bool every_step)
{
    uint64_t ways = 2;
    for (size_t k = 0; k < layer->mode_count; k++)
        ways += layer->modes[k].holds_output && !every_step ? 1 : 2;
    return ways;
}

/* How many states there can be, or MOST_STATES + 1. Where the layers below b are unfinished, those in all their ways; and
 * x of the others, where nothing makes the search drop it. The last of these sets counts twice: before and after the
 * loss. */
static uint64_t count_states(const remat_profile *chain)
{
    bool every_step = !saving_never_beats_plain(chain, true, true);
    uint64_t states = 0, unfinished = 1;
    for (size_t b = 0; b < chain->layer_count; b++) {
        if (b >= MOST_LAYERS || chain->layers[b].mode_count > MOST_MODES)
            return MOST_STATES + 1;
        states += every_step ? unfinished << (chain->layer_count - b) : unfinished;
        unfinished *= layer_ways(&chain->layers[b], every_step);
        if (states > MOST_STATES || unfinished > MOST_STATES)
            return MOST_STATES + 1;
    }
    return remat_min(states + 2 * unfinished, MOST_STATES + 1);
}

bool exhaustive_applies(const remat_profile *chain)
{
    return count_states(chain) <= MOST_STATES;
}

/* Begins a search of a chain that is short enough. */
static remat_status start(search *s, remat_context *context, const remat_profile *chain)
{
    uint64_t states = count_states(chain);
    s->chain = chain;
    s->n = chain->layer_count;
    s->every_step = !saving_never_beats_plain(chain, s->allow_lossy, !s->by_peak);
    if (states > MOST_STATES)
        return remat_fail(context, REMAT_INTERNAL, NULL, "the chain is too long for the exhaustive search");
    find_least_costs(s);
    return exhaustive_store_init(&s->store, context, (size_t)states);
}

/* ---- the answer ---- */

/* Turns the parents of the way to `goal` around, into a list from the start, and adds its steps. */
static remat_status add_steps(search *s, uint32_t goal, plan_draft *draft)
{
    exhaustive_node *nodes = s->store.nodes;
    uint32_t next = EXHAUSTIVE_NO_NODE;
    for (uint32_t at = goal; at != EXHAUSTIVE_NO_NODE;) {
        uint32_t parent = nodes[at].parent;
        nodes[at].parent = next;
        next = at;
        at = parent;
    }
    for (uint32_t at = nodes[next].parent; at != EXHAUSTIVE_NO_NODE; at = nodes[at].parent) {
        remat_context *context = s->store.context;
        remat_step step = nodes[at].edge.step;
        uint32_t output = step.op == REMAT_LOSS ? (uint32_t)s->n : step.layer + 1;
        REMAT_TRY(plan_draft_add_step(context, draft, step));
        if (nodes[at].edge.drop_input)
            REMAT_TRY(plan_draft_add_step(context, draft, (remat_step){step.layer, REMAT_NO_SAVE, REMAT_DROP_X}));
        if (nodes[at].edge.drop_output)
            REMAT_TRY(plan_draft_add_step(context, draft, (remat_step){output, REMAT_NO_SAVE, REMAT_DROP_X}));
    }
    return REMAT_OK;
}

remat_status exhaustive_solve(remat_context *context, const remat_profile *chain, uint64_t budget, bool allow_lossy,
                              plan_draft *draft, bool *feasible, uint64_t *cost)
{
    search s = {.budget = budget, .allow_lossy = allow_lossy};
    uint32_t goal = EXHAUSTIVE_NO_NODE;
    *cost = 0;
    *feasible = chain->input_bytes <= budget;
    REMAT_TRY(start(&s, context, chain));
    remat_status status = *feasible ? run(&s, 0, &goal) : REMAT_OK;
    *feasible = status == REMAT_OK && goal != EXHAUSTIVE_NO_NODE;
    if (*feasible) {
        *cost = s.store.nodes[goal].label;
        status = draft ? add_steps(&s, goal, draft) : REMAT_OK;
    }
    exhaustive_store_clear(&s.store);
    return status;
}

/* ---- the smallest budget ---- */

/* A peak that no schedule is below: every layer goes backward once, beside the input. Starting from it instead of 0
 * lets rule 5 settle more states. */
static uint64_t least_peak(const remat_profile *chain)
{
    uint64_t peak = chain->input_bytes, readable_bytes = 0; /* the fewest from which x_i can be read */
    for (size_t i = 0; i < chain->layer_count; i++) {
        uint64_t saved = UINT64_MAX, next_bytes = chain->layers[i].output_bytes;
        for (size_t k = 0; k < chain->layers[i].mode_count; k++) {
            const remat_mode *mode = &chain->layers[i].modes[k];
            saved = remat_min(saved, mode->activation_bytes + mode->backward_workspace_bytes);
            if (mode->holds_output)
                next_bytes = remat_min(next_bytes, mode->activation_bytes);
        }
        peak = remat_max(peak, chain->input_bytes + readable_bytes + saved + remat_chain_y_bytes(chain, i) +
                                   remat_chain_y_bytes(chain, i + 1));
        readable_bytes = next_bytes;
    }
    return peak;
}

remat_status exhaustive_min_budget(remat_context *context, const remat_profile *chain, bool allow_lossy,
                                   uint64_t *bytes)
{
    search s = {.by_peak = true, .allow_lossy = allow_lossy};
    uint32_t goal;
    REMAT_TRY(start(&s, context, chain));
    remat_status status = run(&s, least_peak(chain), &goal);
    if (status == REMAT_OK)
        *bytes = s.store.nodes[goal].label; /* keeping everything always works */
    exhaustive_store_clear(&s.store);
    return status;
}
