/* C(m, i, l): least cost of layers i..l within m slots beside x_i, with y_{l+1} live (or, for l = n, the loss as a
 * last layer n). Either layer i is saved once and for all, or x_j is kept while j..l run and i..j-1 run again:
 *   C(m,i,l) = min( f_i + C(m - A_i, i+1, l) + b_i ,  min_j  F(i..j-1) + C(m - x_j, j, l) + C(m, i, j-1) )
 * Every size is rounded up to slots; the caller replays the schedule in bytes. */
#include "persistent_slots.h"

#include "base/parallel.h"

#include <stdlib.h>

static const int64_t NEVER = (int64_t)1 << 60;

typedef struct slot_table {
    const remat_profile *profile;
    size_t n, width; /* width: slots + 1 */
    uint64_t slot_bytes;
    int64_t *cost;            /* (n + 1) * (n + 2) / 2 rows of width */
    size_t *x, *move;         /* slots of x_j, and of a plain forward's x_k + x_{k+1} + workspace */
    uint64_t *forward_before; /* n + 1: cost of plain forwards 0..j-1 */
    remat_step_fn visit;
    void *user;
} slot_table;

static const remat_mode *keep_of(const slot_table *s, size_t i)
{
    return remat_layer_mode(remat_profile_layer(s->profile, i), REMAT_KEEP);
}

static uint64_t x_bytes(const slot_table *s, size_t i)
{
    return i == 0 ? remat_profile_input_bytes(s->profile) : remat_profile_layer(s->profile, i - 1)->output_bytes;
}

static uint64_t y_bytes(const slot_table *s, size_t i)
{
    return i == 0 ? remat_profile_input_gradient_bytes(s->profile) : x_bytes(s, i);
}

static size_t slots_for(const slot_table *s, uint64_t bytes)
{
    return (size_t)((bytes + s->slot_bytes - 1) / s->slot_bytes);
}

static int64_t *row(const slot_table *s, size_t i, size_t l)
{
    return s->cost + (l * (l + 1) / 2 + i) * s->width;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The inner loop: over all memories at once. */
static void take_cheaper(int64_t *restrict best, const int64_t *restrict right, const int64_t *restrict left,
                         int64_t forward, size_t count)
{
    for (size_t m = 0; m < count; m++) {
        int64_t cost = forward + right[m] + left[m];
        best[m] = cost < best[m] ? cost : best[m];
    }
}

/* The tail's bytes: y_{l+1}, or nothing before the loss. */
static size_t tail_slots(const slot_table *s, size_t l)
{
    return l == s->n ? 0 : slots_for(s, y_bytes(s, l + 1));
}

static size_t save_floor(const slot_table *s, size_t i, size_t l)
{
    const remat_mode *keep = keep_of(s, i);
    size_t saved = slots_for(s, keep->activation_bytes);
    size_t forward = tail_slots(s, l) + saved + slots_for(s, keep->forward_workspace_bytes);
    size_t backward = saved + slots_for(s, y_bytes(s, i + 1)) + slots_for(s, y_bytes(s, i)) +
                      slots_for(s, keep->backward_workspace_bytes);
    return larger(larger(forward, backward), saved);
}

/* Cost of saving layer i at m slots, NEVER where it does not fit. */
static int64_t save_cost(const slot_table *s, size_t i, size_t l, size_t m)
{
    const remat_mode *keep = keep_of(s, i);
    if (m < save_floor(s, i, l))
        return NEVER;
    int64_t inner = i == l ? 0 : row(s, i + 1, l)[m - slots_for(s, keep->activation_bytes)];
    return inner + (int64_t)(keep->forward_cost + keep->backward_cost);
}

static void fill_loss(const slot_table *s)
{
    size_t need = slots_for(s, y_bytes(s, s->n)) + slots_for(s, remat_profile_loss_workspace_bytes(s->profile));
    int64_t *best = row(s, s->n, s->n);
    for (size_t m = 0; m < s->width; m++)
        best[m] = m >= need ? 0 : NEVER;
}

static int64_t run_cost(const slot_table *s, size_t i, size_t j)
{
    return (int64_t)(s->forward_before[j] - s->forward_before[i]);
}

/* Slots of forward i..j-1 beside x_i and the tail, given those of i..j-2. */
static size_t extend_run(const slot_table *s, size_t peak, size_t i, size_t j)
{
    return larger(peak, s->move[j - 1] - (j - 1 == i ? s->x[i] : 0));
}

static void fill_row(const slot_table *s, size_t i, size_t l)
{
    int64_t *best = row(s, i, l);
    size_t peak = 0, tail = tail_slots(s, l);
    for (size_t m = 0; m < s->width; m++)
        best[m] = save_cost(s, i, l, m);
    for (size_t j = i + 1; j <= l; j++) {
        peak = extend_run(s, peak, i, j);
        size_t floor = larger(peak + tail, s->x[j]);
        if (floor < s->width)
            take_cheaper(best + floor, row(s, j, l) + (floor - s->x[j]), row(s, i, j - 1) + floor, run_cost(s, i, j),
                         s->width - floor);
    }
    for (size_t m = 0; m < s->width; m++)
        best[m] = best[m] < NEVER ? best[m] : NEVER;
}

typedef struct row_loop {
    const slot_table *table;
    size_t length;
} row_loop;

static void fill_rows(const void *args, parallel_range range)
{
    const row_loop *loop = args;
    for (size_t i = range.begin; i < range.end; i++)
        if (i < loop->table->n)
            fill_row(loop->table, i, i + loop->length - 1);
}

static void fill_table(const slot_table *s)
{
    fill_loss(s);
    for (size_t length = 1; length <= s->n + 1; length++)
        parallel_dynamic(parallel_default_threads(), s->n + 2 - length, 4, fill_rows, &(row_loop){s, length});
}

typedef struct todo {
    bool is_part; /* i..l within m slots; otherwise a step */
    size_t i, l, m;
    remat_step step;
} todo;

/* Where C(m,i,l) comes from: i means saving, otherwise the cut. */
static size_t find_cut(const slot_table *s, size_t i, size_t l, size_t m)
{
    int64_t want = row(s, i, l)[m];
    size_t peak = 0, tail = tail_slots(s, l);
    if (save_cost(s, i, l, m) == want)
        return i;
    for (size_t j = i + 1; j <= l; j++) {
        peak = extend_run(s, peak, i, j);
        if (m >= larger(peak + tail, s->x[j]) &&
            run_cost(s, i, j) + row(s, j, l)[m - s->x[j]] + row(s, i, j - 1)[m] == want)
            return j;
    }
    return l + 1;
}

static remat_status emit(const slot_table *s, remat_op op, size_t layer, uint16_t save)
{
    return s->visit(s->user, (remat_step){(uint32_t)layer, save, (uint8_t)op});
}

static remat_status expand(const slot_table *s, todo part, todo *stack, size_t *count)
{
    size_t i = part.i, l = part.l;
    if (i == s->n)
        return emit(s, REMAT_LOSS, 0, REMAT_NO_SAVE);
    size_t cut = find_cut(s, i, l, part.m);
    if (cut > l)
        return REMAT_INTERNAL;
    if (cut == i) {
        stack[(*count)++] = (todo){.step = {(uint32_t)i, REMAT_NO_SAVE, REMAT_BACKWARD}};
        if (i < l)
            stack[(*count)++] = (todo){true, i + 1, l, part.m - slots_for(s, keep_of(s, i)->activation_bytes), {0}};
        return emit(s, REMAT_FORWARD, i, REMAT_KEEP);
    }
    remat_status status = REMAT_OK;
    for (size_t k = i; k < cut && status == REMAT_OK; k++) {
        status = emit(s, REMAT_FORWARD, k, REMAT_NO_SAVE);
        if (status == REMAT_OK && k > i)
            status = emit(s, REMAT_DROP_X, k, REMAT_NO_SAVE);
    }
    stack[(*count)++] = (todo){true, i, cut - 1, part.m, {0}};
    stack[(*count)++] = (todo){.step = {(uint32_t)cut, REMAT_NO_SAVE, REMAT_DROP_X}};
    stack[(*count)++] = (todo){true, cut, l, part.m - s->x[cut], {0}};
    return status;
}

static remat_status write_schedule(const slot_table *s)
{
    /* each part on the stack adds at most two entries before a shorter one is expanded */
    todo *stack = malloc(3 * (s->n + 2) * sizeof *stack);
    size_t count = 1;
    if (!stack)
        return REMAT_NO_MEMORY;
    stack[0] = (todo){true, 0, s->n, s->width - 1, {0}};
    remat_status status = row(s, 0, s->n)[s->width - 1] < NEVER ? REMAT_OK : REMAT_INFEASIBLE;
    while (status == REMAT_OK && count > 0) {
        todo next = stack[--count];
        status = next.is_part ? expand(s, next, stack, &count) : s->visit(s->user, next.step);
    }
    free(stack);
    return status;
}

static void fill_sizes(slot_table *s)
{
    s->forward_before[0] = 0;
    for (size_t j = 0; j <= s->n; j++)
        s->x[j] = slots_for(s, x_bytes(s, j));
    for (size_t k = 0; k < s->n; k++) {
        s->move[k] = s->x[k] + s->x[k + 1] + slots_for(s, keep_of(s, k)->forward_workspace_bytes);
        s->forward_before[k + 1] = s->forward_before[k] + keep_of(s, k)->forward_cost;
    }
}

remat_status persistent_slots_walk(const remat_profile *profile, uint64_t budget, size_t slots, remat_step_fn visit,
                                   void *user)
{
    size_t n = remat_profile_layer_count(profile);
    slots = budget < slots ? (size_t)budget : slots;
    if (n == 0)
        return REMAT_OK;
    if (slots == 0)
        return REMAT_INFEASIBLE;
    slot_table s = {.profile = profile, .n = n, .slot_bytes = budget / slots, .visit = visit, .user = user};
    size_t input = slots_for(&s, x_bytes(&s, 0));
    if (input >= slots)
        return REMAT_INFEASIBLE;
    s.width = slots - input + 1;
    s.cost = malloc((n + 1) * (n + 2) / 2 * s.width * sizeof *s.cost);
    s.x = malloc((n + 1) * sizeof *s.x);
    s.move = malloc((n + 1) * sizeof *s.move);
    s.forward_before = malloc((n + 1) * sizeof *s.forward_before);
    remat_status status = REMAT_NO_MEMORY;
    if (s.cost && s.x && s.move && s.forward_before) {
        fill_sizes(&s);
        fill_table(&s);
        status = write_schedule(&s);
    }
    free(s.cost);
    free(s.x);
    free(s.move);
    free(s.forward_before);
    return status;
}
