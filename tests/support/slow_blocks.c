#include "support/slow_blocks.h"

#include "support/cases.h"

#include <math.h>

static slow_blocks all_kept(size_t n)
{
    slow_blocks blocks = {n, calloc(n + 1, sizeof *blocks.block)};
    assert_non_null(blocks.block);
    return blocks;
}

void slow_blocks_clear(slow_blocks *blocks)
{
    free(blocks->block);
    *blocks = (slow_blocks){0};
}

slow_blocks slow_blocks_of(const bool *recompute, size_t n)
{
    slow_blocks blocks = all_kept(n);
    size_t number = 0;
    for (size_t i = 0; i < n; i++) {
        number += recompute[i] && (i == 0 || !recompute[i - 1]);
        blocks.block[i] = recompute[i] ? number : 0;
    }
    return blocks;
}

/* ---- the strategies ---- */

static slow_blocks runs_of(size_t n, size_t length)
{
    slow_blocks blocks = all_kept(n);
    for (size_t i = 0; i < n; i++)
        blocks.block[i] = i / length + 1;
    return blocks;
}

/* How many layers stand before layer i when the largest come first, ties by position. */
static size_t rank_by_bytes(const remat_profile *profile, size_t i)
{
    size_t before = 0;
    uint64_t own = remat_profile_layer(profile, i)->modes[0].activation_bytes;
    for (size_t k = 0; k < remat_profile_layer_count(profile); k++) {
        uint64_t other = remat_profile_layer(profile, k)->modes[0].activation_bytes;
        before += other > own || (other == own && k < i);
    }
    return before;
}

static bool selects(const remat_profile *profile, const char *strategy, size_t i)
{
    const char *argument = strchr(strategy, ':');
    uint64_t count = argument ? strtoull(argument + 1, NULL, 10) : 0;
    remat_layer_type type = remat_profile_layer(profile, i)->type;
    if (strcmp(strategy, "attention-only") == 0)
        return type == REMAT_ATTENTION;
    if (strcmp(strategy, "ffn-only") == 0)
        return type == REMAT_FFN;
    if (strncmp(strategy, "every-nth:", 10) == 0)
        return i % count == 0;
    if (strncmp(strategy, "largest:", 8) == 0)
        return rank_by_bytes(profile, i) < count;
    if (strncmp(strategy, "selective:", 10) == 0) {
        uint64_t n = remat_profile_layer_count(profile);
        uint64_t k = (uint64_t)round(strtod(argument + 1, NULL) * (double)n);
        for (uint64_t j = 0; j < k; j++)
            if (j * n / k == i)
                return true;
        return false;
    }
    assert_string_equal(strategy, "none");
    return false;
}

slow_blocks slow_blocks_by_strategy(const remat_profile *profile, const char *strategy)
{
    size_t n = remat_profile_layer_count(profile);
    if (strcmp(strategy, "full") == 0)
        return runs_of(n, 1);
    if (strncmp(strategy, "full:", 5) == 0)
        return runs_of(n, strtoull(strategy + 5, NULL, 10));
    if (strcmp(strategy, "sqrt") == 0)
        return runs_of(n, n ? (size_t)ceil(sqrt((double)n)) : 1);
    bool *recompute = calloc(n + 1, sizeof *recompute);
    for (size_t i = 0; i < n; i++)
        recompute[i] = selects(profile, strategy, i);
    slow_blocks blocks = slow_blocks_of(recompute, n);
    free(recompute);
    return blocks;
}

/* ---- budget ---- */

static bool frees_more_per_flop(const remat_profile *profile, size_t a, size_t b)
{
    const remat_layer *one = remat_profile_layer(profile, a), *two = remat_profile_layer(profile, b);
    unsigned __int128 left = (unsigned __int128)one->modes[0].activation_bytes * (two->recompute_flops + 1);
    unsigned __int128 right = (unsigned __int128)two->modes[0].activation_bytes * (one->recompute_flops + 1);
    return left > right || (left == right && a < b);
}

size_t *slow_budget_order(const remat_profile *profile)
{
    size_t n = remat_profile_layer_count(profile), *order = calloc(n + 1, sizeof *order);
    for (size_t i = 0; i < n; i++) { /* insertion */
        size_t at = i;
        for (; at > 0 && frees_more_per_flop(profile, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

slow_blocks slow_blocks_of_prefix(const remat_profile *profile, const size_t *order, size_t length)
{
    size_t n = remat_profile_layer_count(profile);
    bool *recompute = calloc(n + 1, sizeof *recompute);
    for (size_t i = 0; i < length; i++)
        recompute[order[i]] = true;
    slow_blocks blocks = slow_blocks_of(recompute, n);
    free(recompute);
    return blocks;
}

/* ---- the schedule ---- */

/* All steps but the drops. */
static void run_steps(const slow_blocks *blocks, step_list *steps)
{
    size_t n = blocks->n;
    for (size_t i = 0; i < n; i++)
        step_list_add(steps, REMAT_FORWARD, i, blocks->block[i] ? REMAT_NO_SAVE : REMAT_KEEP);
    if (n > 0)
        step_list_add(steps, REMAT_LOSS, 0, REMAT_NO_SAVE);
    for (size_t i = n; i-- > 0;) {
        bool last = i + 1 == n || blocks->block[i + 1] != blocks->block[i];
        for (size_t k = 0; blocks->block[i] && last && k <= i; k++)
            if (blocks->block[k] == blocks->block[i])
                step_list_add(steps, REMAT_FORWARD, k, REMAT_KEEP);
        step_list_add(steps, REMAT_BACKWARD, i, REMAT_NO_SAVE);
    }
}

static bool reads_x(remat_step step, size_t i, size_t n)
{
    return step.op == REMAT_LOSS ? i == n : step.layer == i;
}

/* The step after which the plain x that step `at` makes is dropped: its last reader before it is made again. */
static size_t last_reader(const step_list *steps, size_t at, size_t n)
{
    size_t made = steps->steps[at].layer, last = at;
    for (size_t k = at + 1; k < steps->count; k++) {
        remat_step step = steps->steps[k];
        if (step.op == REMAT_FORWARD && step.layer == made)
            break;
        if (reads_x(step, made + 1, n))
            last = k;
    }
    return last;
}

void slow_blocks_schedule(const slow_blocks *blocks, step_list *steps)
{
    step_list bare = {0};
    run_steps(blocks, &bare);
    size_t *dropped = calloc(bare.count + 1, sizeof *dropped); /* i + 1 for x_{i+1}, behind that step; 0 for none */
    for (size_t at = 0; at < bare.count; at++)
        if (bare.steps[at].op == REMAT_FORWARD && bare.steps[at].save == REMAT_NO_SAVE) {
            size_t behind = last_reader(&bare, at, blocks->n);
            assert_int_equal(dropped[behind], 0);
            dropped[behind] = bare.steps[at].layer + 1;
        }
    for (size_t at = 0; at < bare.count; at++) {
        step_list_take(steps, bare.steps[at]);
        if (dropped[at])
            step_list_add(steps, REMAT_DROP_X, dropped[at], REMAT_NO_SAVE);
    }
    free(dropped);
    step_list_clear(&bare);
}

uint64_t slow_blocks_peak(const remat_profile *profile, const slow_blocks *blocks)
{
    step_list steps = {0};
    slow_blocks_schedule(blocks, &steps);
    slow_figures figures = slow_replay_all(profile, steps.steps, steps.count);
    assert_true(figures.legal);
    step_list_clear(&steps);
    return figures.peak;
}
