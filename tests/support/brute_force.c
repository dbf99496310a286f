#include "support/brute_force.h"

#include "support/cases.h"

enum { MOST = BRUTE_FORCE_MOST_LAYERS };

/* What is live. */
typedef struct state {
    bool x[MOST + 1];
    unsigned s[MOST]; /* 0: not live; else 1 + its mode */
    size_t y;         /* the one gradient that is live; n + 1: none yet */
} state;

typedef struct waiting {
    uint64_t cost;
    size_t number;
} waiting;

typedef struct brute {
    const remat_profile *profile;
    size_t n;
    uint64_t budget;
    bool allow_lossy;
    bool by_peak;          /* the peak takes the place of the cost */
    uint64_t *cost, *peak; /* of each state by its number; cost UINT64_MAX: not reached */
    bool *closed;
    waiting *heap;
    size_t heap_count, heap_capacity;
} brute;

/* ---- states as numbers ---- */

static const remat_layer *layer_at(const brute *b, size_t i)
{
    return remat_profile_layer(b->profile, i);
}

static size_t number_of(const brute *b, const state *s)
{
    size_t number = s->y;
    for (size_t i = 0; i <= b->n; i++)
        number = 2 * number + s->x[i];
    for (size_t i = 0; i < b->n; i++)
        number = (layer_at(b, i)->mode_count + 1) * number + s->s[i];
    return number;
}

static state state_of(const brute *b, size_t number)
{
    state s = {0};
    for (size_t i = b->n; i-- > 0;) {
        s.s[i] = (unsigned)(number % (layer_at(b, i)->mode_count + 1));
        number /= layer_at(b, i)->mode_count + 1;
    }
    for (size_t i = b->n + 1; i-- > 0; number /= 2)
        s.x[i] = number % 2;
    s.y = number;
    return s;
}

static size_t count_states(const brute *b)
{
    size_t count = b->n + 2;
    for (size_t i = 0; i <= b->n; i++)
        count *= 2;
    for (size_t i = 0; i < b->n; i++)
        count *= layer_at(b, i)->mode_count + 1;
    return count;
}

/* ---- the table of the specification ---- */

static uint64_t bytes_of_x(const brute *b, size_t i)
{
    return i == 0 ? remat_profile_input_bytes(b->profile) : layer_at(b, i - 1)->output_bytes;
}

static uint64_t bytes_of_y(const brute *b, size_t i)
{
    return i == 0 ? remat_profile_input_gradient_bytes(b->profile) : layer_at(b, i - 1)->output_bytes;
}

static uint64_t live(const brute *b, const state *s)
{
    uint64_t sum = s->y <= b->n ? bytes_of_y(b, s->y) : 0;
    for (size_t i = 0; i <= b->n; i++)
        sum += s->x[i] ? bytes_of_x(b, i) : 0;
    for (size_t i = 0; i < b->n; i++)
        sum += s->s[i] ? layer_at(b, i)->modes[s->s[i] - 1].activation_bytes : 0;
    return sum;
}

static bool readable(const brute *b, const state *s, size_t i)
{
    return s->x[i] || (i > 0 && s->s[i - 1] && layer_at(b, i - 1)->modes[s->s[i - 1] - 1].holds_output);
}

/* ---- Dijkstra ---- */

static void push(brute *b, waiting w)
{
    if (b->heap_count == b->heap_capacity) {
        b->heap_capacity = 2 * b->heap_capacity + 64;
        b->heap = realloc(b->heap, b->heap_capacity * sizeof *b->heap);
    }
    size_t at = b->heap_count++;
    for (; at > 0 && w.cost < b->heap[(at - 1) / 2].cost; at = (at - 1) / 2)
        b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = w;
}

static waiting pop(brute *b)
{
    waiting top = b->heap[0], last = b->heap[--b->heap_count];
    size_t at = 0;
    for (size_t child = 1; child < b->heap_count; at = child, child = 2 * at + 1) {
        if (child + 1 < b->heap_count && b->heap[child + 1].cost < b->heap[child].cost)
            child++;
        if (b->heap[child].cost >= last.cost)
            break;
        b->heap[at] = b->heap[child];
    }
    b->heap[at] = last;
    return top;
}

/* A step from state `from`, whose number is `at`, that has `extra` bytes beside what is live. */
static void step(brute *b, const state *from, size_t at, uint64_t extra, uint64_t cost, const state *to)
{
    uint64_t bytes = live(b, from) + extra, peak = bytes > b->peak[at] ? bytes : b->peak[at];
    cost = b->by_peak ? peak : b->cost[at] + cost; /* both below 2^63 */
    if (bytes > b->budget || cost >= (uint64_t)1 << 63)
        return;
    size_t number = number_of(b, to);
    if (b->cost[number] <= cost)
        return;
    b->cost[number] = cost;
    b->peak[number] = peak;
    push(b, (waiting){cost, number});
}

static void forwards(brute *b, const state *from, size_t at, size_t i)
{
    const remat_layer *layer = layer_at(b, i);
    if (!readable(b, from, i))
        return;
    if (!from->x[i + 1]) {
        state to = *from;
        to.x[i + 1] = true;
        step(b, from, at, layer->output_bytes + layer->modes[0].forward_workspace_bytes, layer->modes[0].forward_cost,
             &to);
    }
    for (unsigned k = 0; k < layer->mode_count && !from->s[i]; k++) {
        const remat_mode *mode = &layer->modes[k];
        if ((!mode->lossless && !b->allow_lossy) || (!mode->holds_output && from->x[i + 1]))
            continue;
        state to = *from;
        to.s[i] = k + 1;
        to.x[i + 1] |= !mode->holds_output;
        step(b, from, at,
             mode->activation_bytes + (mode->holds_output ? 0 : layer->output_bytes) + mode->forward_workspace_bytes,
             mode->forward_cost, &to);
    }
}

static void loss(brute *b, const state *from, size_t at)
{
    if (from->y != b->n + 1 || !readable(b, from, b->n))
        return;
    state to = *from;
    to.y = b->n;
    step(b, from, at, bytes_of_y(b, b->n) + remat_profile_loss_workspace_bytes(b->profile), 0, &to);
}

static void backward(brute *b, const state *from, size_t at)
{
    if (from->y == 0 || from->y > b->n || !from->s[from->y - 1] || !readable(b, from, from->y - 1))
        return;
    size_t i = from->y - 1;
    const remat_mode *mode = &layer_at(b, i)->modes[from->s[i] - 1];
    state to = *from;
    to.y = i;
    to.s[i] = 0;
    step(b, from, at, bytes_of_y(b, i) + mode->backward_workspace_bytes, mode->backward_cost, &to);
}

static void drops(brute *b, const state *from, size_t at)
{
    for (size_t i = 0; i <= b->n; i++) {
        state without_x = *from, without_s = *from;
        without_x.x[i] = false;
        if (from->x[i])
            step(b, from, at, 0, 0, &without_x);
        if (i == b->n || !from->s[i])
            continue;
        without_s.s[i] = 0;
        step(b, from, at, 0, 0, &without_s);
    }
}

static brute_answer search(brute *b)
{
    state start = {.y = b->n + 1};
    start.x[0] = true;
    size_t first = number_of(b, &start);
    b->peak[first] = remat_profile_input_bytes(b->profile);
    b->cost[first] = b->by_peak ? b->peak[first] : 0;
    push(b, (waiting){b->cost[first], first});
    while (b->heap_count > 0) {
        size_t at = pop(b).number;
        state from = state_of(b, at);
        if (b->closed[at])
            continue;
        b->closed[at] = true;
        if (from.y == 0)
            return (brute_answer){true, b->cost[at], b->peak[at]};
        for (size_t i = 0; i < b->n; i++)
            forwards(b, &from, at, i);
        loss(b, &from, at);
        backward(b, &from, at);
        drops(b, &from, at);
    }
    return (brute_answer){0};
}

static brute_answer solve(brute b)
{
    b.n = remat_profile_layer_count(b.profile);
    uint64_t input = remat_profile_input_bytes(b.profile);
    assert_true(b.n <= BRUTE_FORCE_MOST_LAYERS);
    if (input > b.budget)
        return (brute_answer){0};
    if (b.n == 0)
        return (brute_answer){true, 0, input};
    size_t states = count_states(&b);
    b.cost = malloc(states * sizeof *b.cost);
    b.peak = malloc(states * sizeof *b.peak);
    b.closed = calloc(states, sizeof *b.closed);
    memset(b.cost, 0xff, states * sizeof *b.cost);
    brute_answer answer = search(&b);
    free(b.cost);
    free(b.peak);
    free(b.closed);
    free(b.heap);
    return answer;
}

brute_answer brute_force(const remat_profile *profile, uint64_t budget, bool allow_lossy)
{
    return solve((brute){.profile = profile, .budget = budget, .allow_lossy = allow_lossy});
}

uint64_t brute_force_min_budget(const remat_profile *profile, bool allow_lossy)
{
    return solve((brute){.profile = profile, .budget = UINT64_MAX, .allow_lossy = allow_lossy, .by_peak = true}).peak;
}
