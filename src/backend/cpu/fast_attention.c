/* Attention, forward. A work item is a group of query panels of one head. The keys come in blocks, copied once for the
 * whole group. Every panel keeps the largest score so far, the sum of exponentials and the weighted sum of V; when more
 * keys raise the largest score, the two sums are scaled to it. */
#include "backend/cpu/attention_segments.h"
#include "backend/cpu/fast_attention.h"
#include "backend/cpu/reference.h"

#define QUERIES     STRIP
#define MOST_PANELS 16

/* One panel of queries. Its weighted sum of V is in the output itself if that is in fp32. */
typedef struct query_panel {
    size_t first, count, out_row;
    float *queries;       /* packed */
    float *largest, *sum; /* QUERIES values each */
    float *out;
} query_panel;

typedef struct forward_memory {
    float *keys, *values, *queries, *outs, *scores, *largest, *sums;
    uint32_t *weights; /* as pairs: behind the keys, which are halves then */
} forward_memory;

#define GROUP (MOST_PANELS * QUERIES)
_Static_assert((4 * MOST_VALUES + QUERIES * MOST_KEYS + 2 * GROUP) * sizeof(float) <= FAST_SCRATCH_BYTES,
               "everything fits");

static forward_memory forward_memory_of(float *scratch)
{
    forward_memory memory;
    memory.keys = scratch;
    memory.weights = (uint32_t *)(void *)(memory.keys + MOST_VALUES / 2);
    memory.values = memory.keys + MOST_VALUES;
    memory.queries = memory.values + MOST_VALUES;
    memory.outs = memory.queries + MOST_VALUES;
    memory.scores = memory.outs + MOST_VALUES;
    memory.largest = memory.scores + QUERIES * MOST_KEYS;
    memory.sums = memory.largest + GROUP;
    return memory;
}

/* ---- a panel ---- */

static query_panel panel_of(const head_view *h, const forward_memory *memory, size_t first, size_t i)
{
    query_panel panel = {.first = first + i * QUERIES};
    panel.count = smaller(h->of->steps - panel.first, QUERIES);
    panel.queries = memory->queries + i * QUERIES * h->padded;
    panel.largest = memory->largest + i * QUERIES;
    panel.sum = memory->sums + i * QUERIES;
    panel.out_row = attention_is_half(h->of) ? h->padded : h->of->out_row;
    panel.out = attention_is_half(h->of) ? memory->outs + i * QUERIES * h->padded
                                         : (float *)h->out.at + panel.first * h->of->out_row;
    return panel;
}

static void panel_start(const head_view *h, const query_panel *panel)
{
    size_t row = h->of->row;
    pack_scored(h, tensor_from(h->q, panel->first * row), row, panel->count, panel->queries);
    for (size_t i = 0; i < QUERIES; i++) {
        panel->largest[i] = -INFINITY;
        panel->sum[i] = 0;
    }
}

static void panel_scale(const head_view *h, const query_panel *panel, const float *factors)
{
    if (all_are_pairs(h->of)) {
        for (size_t i = 0; i < h->of->size * QUERIES; i += FAST_LANES)
            fast_store(panel->out + i, fast_load(panel->out + i) * fast_load(factors + i % QUERIES));
        return;
    }
    for (size_t i = 0; i < panel->count; i++) {
        float *row = panel->out + i * panel->out_row, factor = factors[i];
#define SCALE(LOAD, STORE, c, FIRST) STORE(row + (c), LOAD(row + (c)) * factor)
        FAST_EACH(h->of->size, SCALE);
#undef SCALE
    }
}

/* Weights of `seen` keys as pairs; those of the other keys are 0. */
static void round_weights(const float *weights, size_t seen, size_t keys, uint32_t *pairs, size_t column)
{
#if HAS_PAIRS
    for (size_t key = 0; key < keys; key += 2)
        store_pairs(pairs, key, column, key < seen ? fast_load(weights + key * QUERIES) : (fast_vector){0},
                    key + 1 < seen ? fast_load(weights + (key + 1) * QUERIES) : (fast_vector){0});
#else
    (void)weights, (void)seen, (void)keys, (void)pairs, (void)column;
#endif
}

/* Turns scores into weights, exp(scale * (score - largest)), and scales what was summed before to the new largest. */
FAST_NOINLINE void panel_weigh(const head_view *h, const query_panel *panel, const pairing *of, float *scores,
                               uint32_t *pairs)
{
    const float scale = h->scale * LOG2_E;
    float factors[QUERIES];
    for (size_t at = 0; at < QUERIES; at += FAST_LANES) {
        size_t query = of->query + at, seen_by_all = keys_seen(of, query), seen = keys_seen(of, query + FAST_LANES);
        fast_vector before = fast_load(panel->largest + at), after = before, total = {0};
        for (size_t key = 0; key < seen_by_all; key++)
            after = fast_max(after, fast_load(scores + key * QUERIES + at));
        for (size_t key = seen_by_all; key < seen; key++) {
            float *score = scores + key * QUERIES + at;
            fast_store(score, fast_select(sees(of->key + key, query), fast_load(score), fast_repeat(-INFINITY)));
            after = fast_max(after, fast_load(score));
        }
        fast_vector base = after * scale;
        for (size_t key = 0; key < seen; key++) {
            float *score = scores + key * QUERIES + at;
            fast_vector weight = power_of_2(fast_fms(fast_load(score), fast_repeat(scale), base));
            total += weight;
            fast_store(score, weight);
        }
        if (all_are_pairs(h->of))
            round_weights(scores + at, seen, round_up(keys_seen(of, of->query + QUERIES), QUERIES), pairs, at);
        fast_vector factor = power_of_2((before - after) * scale);
        fast_store(factors + at, factor);
        fast_store(panel->sum + at, fast_fma(fast_load(panel->sum + at), factor, total));
        fast_store(panel->largest + at, after);
    }
    if (of->key > 0)
        panel_scale(h, panel, factors);
}

/* The logarithm: a guess from the bits of x, within 0.06, and two steps of Halley's method, each of which leaves a twelfth
 * of the third power of the error. */
static fast_vector log_of(fast_vector x)
{
    fast_vector y = __builtin_convertvector((fast_integers)x - 0x3f800000, fast_vector) * (0x1p-23f / LOG2_E);
    for (int step = 0; step < 2; step++) {
        fast_vector e = fast_exp(y);
        y += 2.0f * (x - e) / (x + e);
    }
    return y;
}

static void panel_finish(const head_view *h, const query_panel *panel)
{
    float inverse[QUERIES], log_sums[QUERIES];
    for (size_t at = 0; at < QUERIES; at += FAST_LANES) {
        fast_vector sum = fast_load(panel->sum + at);
        fast_store(inverse + at, 1.0f / sum);
        fast_store(log_sums + at, fast_fma(fast_load(panel->largest + at), fast_repeat(h->scale), log_of(sum)));
    }
    panel_scale(h, panel, inverse);
    const tensor_ref out = tensor_from(h->out, panel->first * h->of->out_row);
#if HAS_PAIRS
    if (all_are_pairs(h->of))
        scatter_transposed(h, panel->out, panel->count, out, h->of->out_row);
    else
#endif
        if (attention_is_half(h->of))
        scatter_halves(panel->out, h->padded, panel->count, h->of->size, out, h->of->out_row);
    memcpy(h->sums + panel->first, log_sums, panel->count * sizeof(float));
}

/* One panel and the keys of a block. */
static void panel_attend(const head_view *h, const query_panel *panel, size_t first_key, size_t keys,
                         const forward_memory *memory, prefetch_list *prefetch)
{
    for (size_t at = 0; at < keys; at += MOST_KEYS) {
        pairing of = {h->of->causal, first_key + at, smaller(keys - at, MOST_KEYS), panel->first, panel->count};
        gemm_rows out = {panel->out, panel->out_row, h->of->size, of.key ? QUERIES : 0};
        multiply_scores(h, &of, scored_from(h, memory->keys, at), panel->queries, memory->scores, QUERIES, prefetch);
        panel_weigh(h, panel, &of, memory->scores, memory->weights);
#if HAS_PAIRS
        if (all_are_pairs(h->of)) {
            sum_pairs_over_keys(h, keys_seen(&of, panel->first + QUERIES), (const uint16_t *)memory->values + at,
                                memory->weights, of.key > 0, panel->out);
            continue;
        }
#endif
        sum_over_keys(&of, memory->scores, QUERIES, memory->values + at * h->padded, &out, prefetch);
    }
}

/* ---- a group ---- */

/* The queries from `first` on, `count` of them. */
typedef struct query_group {
    head_view head;
    size_t first, count;
} query_group;

typedef struct rows_needed {
    prefetch_list q, k, v, out;
} rows_needed;

/* The list that prefetches the rows of the panel at `query`, and `keys` keys from `key` on. */
static prefetch_list panel_to_prefetch(const head_view *h, size_t query, size_t key, size_t keys, rows_needed *rows)
{
    size_t row = h->of->row, key_row = h->of->key_row, out_row = h->of->out_row, size = h->of->size;
    size_t count = smaller(h->of->steps - query, QUERIES);
    rows->out = rows_to_prefetch(tensor_from(h->out, query * out_row), out_row, count, size, NULL);
    rows->v = rows_to_prefetch(tensor_from(h->v, key * key_row), key_row, keys, size, &rows->out);
    rows->k = rows_to_prefetch(tensor_from(h->k, key * key_row), key_row, keys, size, &rows->v);
    rows->q = rows_to_prefetch(tensor_from(h->q, query * row), row, count, size, &rows->k);
    return rows->q;
}

/* `then` is what this thread will probably compute next, or NULL: its first rows are prefetched. */
static void group_attend(const query_group *group, const query_group *then, float *scratch)
{
    const head_view *h = &group->head;
    const attention_args *a = h->of;
    forward_memory memory = forward_memory_of(scratch);
    size_t block = keys_in_block(h->padded), panels = divide_up(group->count, QUERIES);
    for (size_t key = 0; key < a->keys; key += block) {
        pairing of = {a->causal, key, smaller(a->keys - key, block), group->first, group->count};
        size_t ready = 0;
        for (size_t i = 0; i < panels; i++) {
            query_panel panel = panel_of(h, &memory, group->first, i);
            size_t end = panel.first + panel.count, keys = keys_seen(&of, end);
            if (keys == 0)
                continue;
            if (key == 0)
                panel_start(h, &panel);
            const key_range fresh = {key, ready, keys};
            gather_scored(h, h->k, &fresh, memory.keys);
#if HAS_PAIRS
            if (all_are_pairs(a))
                gather_turned(h, h->v, &fresh, (uint16_t *)memory.values);
            else
#endif
                gather_keys(h, h->v, &fresh, memory.values);
            ready = keys;
            bool last = key + keys == (a->causal ? end : a->keys);
            rows_needed rows;
            prefetch_list prefetch = {0};
            if (i + 1 < panels)
                prefetch = panel_to_prefetch(h, end, key + keys, keys_seen(&of, end + QUERIES) - keys, &rows);
            else if (last && then)
                prefetch = panel_to_prefetch(&then->head, then->first, 0,
                                             smaller(a->keys, a->causal ? then->first + QUERIES : block), &rows);
            panel_attend(h, &panel, key, keys, &memory, &prefetch);
            if (last)
                panel_finish(h, &panel);
        }
    }
}

static query_group group_of(const attention_args *a, size_t item, size_t queries)
{
    size_t heads = a->batch * a->heads, first = item / heads * queries;
    return (query_group){head_view_of(a, item % heads), first, smaller(a->steps - first, queries)};
}

typedef struct attention_loop {
    const kernel_run *run;
    const attention_args *args;
    size_t items, queries; /* groups, and queries of a group */
} attention_loop;

/* Later groups see more keys: they go first. */
static void attend_groups(const void *args, parallel_range range)
{
    const attention_loop *loop = args;
    size_t threads = (size_t)loop->run->threads;
    pairs_begin();
    for (size_t pass = range.begin; pass < range.end; pass++) {
        size_t i = loop->items - pass;
        query_group group = group_of(loop->args, i - 1, loop->queries), then = group;
        if (i > threads)
            then = group_of(loop->args, i - 1 - threads, loop->queries);
        group_attend(&group, i > threads ? &then : NULL, fast_scratch(loop->run, range.thread));
    }
    pairs_end();
}

void ATTENTION(attention)(const kernel_run *run, const void *args)
{
    const op_attention *p = args;
    if (p->positions.at) {
        attend_segments(run, p, ATTENTION(attention));
        return;
    }
    if (!attention_is_fast(p->size, p->steps, p->window)) {
        reference_attention_fp32(run, p);
        return;
    }
    if (p->size == 0)
        return;
    const attention_args whole = {.batch = p->batch,
                                  .heads = p->heads,
                                  .steps = p->steps,
                                  .size = p->size,
                                  .row = p->row,
                                  .out_row = p->out_row,
                                  .keys = p->keys,
                                  .key_row = p->key_row,
                                  .group = p->group ? p->group : 1,
                                  .causal = p->causal,
                                  .q = p->q,
                                  .k = p->k,
                                  .v = p->v,
                                  .out = p->out,
                                  .sums = p->sums.at};
    const attention_args *a = &whole;
    size_t heads = a->batch * a->heads, threads = (size_t)run->threads;
    /* Many panels in a group, so that copying the keys pays; but few where there would not be work for all threads. The
     * results of a panel do not depend on its group. */
    size_t queries = queries_in_strips(heads < 4 * threads ? 2 : MOST_PANELS, round_up(a->size, FAST_LANES));
    const attention_loop loop = {run, a, divide_up(a->steps, queries) * heads, queries};
    parallel_dynamic(run->threads, loop.items, 1, attend_groups, &loop);
}
