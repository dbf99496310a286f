#include "support/plain_recursion.h"

#include <stdlib.h>

#include "support/cases.h"

enum { SIDES = PLAIN_MOST_MODES + 1 };

/* tail 0: y_{l+1} is live; 1 + q: s_{l+1} in mode q waits for x_{l+1}, or, at the end of the chain, the loss does.
 * end 0: everything is done and x_i stays; 1 + q: x_i goes, and s_i in mode q is left. */
struct plain_recursion {
    const remat_profile *profile;
    int n;
    uint64_t memo[PLAIN_MOST_BYTES][PLAIN_MOST_LAYERS][PLAIN_MOST_LAYERS][SIDES][SIDES];
    bool known[PLAIN_MOST_BYTES][PLAIN_MOST_LAYERS][PLAIN_MOST_LAYERS][SIDES][SIDES];
};

plain_recursion *plain_recursion_start(const remat_profile *profile)
{
    plain_recursion *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->profile = profile;
    r->n = (int)remat_profile_layer_count(profile);
    assert_in_range(r->n, 1, PLAIN_MOST_LAYERS);
    return r;
}

void plain_recursion_end(plain_recursion *r)
{
    free(r);
}

static const remat_layer *layer(const plain_recursion *r, int i)
{
    return remat_profile_layer(r->profile, (size_t)i);
}

static long x_bytes(const plain_recursion *r, int i)
{
    return (long)(i == 0 ? remat_profile_input_bytes(r->profile) : layer(r, i - 1)->output_bytes);
}

static long y_bytes(const plain_recursion *r, int i)
{
    return i == 0 ? (long)remat_profile_input_gradient_bytes(r->profile) : x_bytes(r, i);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static long held_by_tail(const plain_recursion *r, int l, int tail)
{
    if (tail == 0)
        return y_bytes(r, l + 1);
    return l == r->n - 1 ? 0 : (long)layer(r, l + 1)->modes[tail - 1].activation_bytes + y_bytes(r, l + 2);
}

/* The tail's own step within m bytes beside x_{l+1}. */
static uint64_t settle(const plain_recursion *r, long m, int l, int tail)
{
    long need = held_by_tail(r, l, tail);
    uint64_t cost = 0;
    if (tail > 0 && l == r->n - 1) {
        need += y_bytes(r, l + 1) + (long)remat_profile_loss_workspace_bytes(r->profile);
    } else if (tail > 0) {
        const remat_mode *mode = &layer(r, l + 1)->modes[tail - 1];
        need += y_bytes(r, l + 1) + (long)mode->backward_workspace_bytes;
        cost = mode->backward_cost;
    }
    return m >= need ? cost : PLAIN_NEVER;
}

static uint64_t go(plain_recursion *r, long m, int i, int l, int tail, int end);

static uint64_t save_first(plain_recursion *r, long m, int i, int l, int tail, int end, int q)
{
    const remat_mode *mode = &layer(r, i)->modes[q];
    long state = (long)mode->activation_bytes, added = state + (mode->holds_output ? 0 : x_bytes(r, i + 1));
    long peak = held_by_tail(r, l, tail) + added + (long)mode->forward_workspace_bytes + (end ? x_bytes(r, i) : 0);
    long backward = state + y_bytes(r, i + 1) + y_bytes(r, i) + (long)mode->backward_workspace_bytes;
    if (m < peak || (!end && m < backward))
        return PLAIN_NEVER;
    uint64_t inner = i == l ? settle(r, m - added, l, tail) : go(r, m - added, i + 1, l, tail, 0);
    return inner + mode->forward_cost + (end ? 0 : mode->backward_cost);
}

/* Cost of forward i..j-1 without saving on top of `held`. */
static uint64_t plain_run(const plain_recursion *r, long m, long held, int i, int j)
{
    uint64_t cost = 0;
    for (int k = i; k < j; k++) {
        const remat_mode *keep = &layer(r, k)->modes[REMAT_KEEP];
        if (m < held + (k > i ? x_bytes(r, k) : 0) + x_bytes(r, k + 1) + (long)keep->forward_workspace_bytes)
            return PLAIN_NEVER;
        cost += keep->forward_cost;
    }
    return cost;
}

static uint64_t compute(plain_recursion *r, long m, int i, int l, int tail, int end)
{
    uint64_t best = PLAIN_NEVER;
    long base = end ? x_bytes(r, i) : 0, held = base + held_by_tail(r, l, tail);
    for (int q = 0; q < (int)layer(r, i)->mode_count; q++)
        if (!end || end == 1 + q)
            best = smaller(best, save_first(r, m, i, l, tail, end, q));
    for (int j = i + 1; j <= l; j++) {
        uint64_t run = plain_run(r, m, held, i, j);
        best = smaller(best, run + go(r, m - x_bytes(r, j) - base, j, l, tail, 0) + go(r, m, i, j - 1, 0, end));
        for (int q = 0; q < (int)layer(r, j)->mode_count; q++)
            best = smaller(best, run + go(r, m - base, j, l, tail, 1 + q) + go(r, m, i, j - 1, 1 + q, end));
    }
    if (tail > 0)
        best = smaller(best, plain_run(r, m, held, i, l + 1) + settle(r, m - base - x_bytes(r, l + 1), l, tail) +
                                 go(r, m, i, l, 0, end));
    return best;
}

static uint64_t go(plain_recursion *r, long m, int i, int l, int tail, int end)
{
    if (m < 0)
        return PLAIN_NEVER;
    if (!r->known[m][i][l][tail][end]) {
        r->memo[m][i][l][tail][end] = compute(r, m, i, l, tail, end);
        r->known[m][i][l][tail][end] = true;
    }
    return r->memo[m][i][l][tail][end];
}

uint64_t plain_recursion_cost(plain_recursion *r, uint64_t budget)
{
    assert_true(budget < PLAIN_MOST_BYTES);
    return go(r, (long)budget - x_bytes(r, 0), 0, r->n - 1, 1, 0);
}
