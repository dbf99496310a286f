/* Attention, backward. A work item is one head of keys: its dk and dv are sums over the queries of its heads, in order. The weights are
 * recomputed from the scores and `sums`. With P the weights, D the dot product of a row of dout with its row of out:
 *     dV += P' dO     dS = scale * P * (dO V' - D)     dQ += dS K     dK += dS' Q
 * P, dP and dS are stored as [key][query], like the scores of the forward. */
#include "backend/cpu/attention_segments.h"
#include "backend/cpu/fast_attention.h"
#include "backend/cpu/reference.h"

/* Panels are large: for each of them, dk and dv are read and written once. */
#define MOST_STRIPS  2
#define MOST_QUERIES (MOST_STRIPS * STRIP)

typedef struct backward_memory {
    float *keys;                       /* rows of a block */
    void *scored_keys, *scored_values; /* the same rows and those of V, as scores are made of them */
    float *query_rows, *dout_rows;     /* rows of a panel */
    float *queries, *douts;            /* the same, packed in strips */
    float *weights, *dscores;          /* MOST_QUERIES in a row */
    float *means;                      /* D */
    /* Of tensors in bf16, the gradients before they are rounded: dq of the head, dk and dv of a block. */
    float *dq, *dk, *dv;
    /* Where all products are of pairs, what takes the place of rows: K transposed, panels of Q and dO, and dS as pairs, STRIP_PAIRS for
     * a strip. Weights and dS are rounded in place. */
    uint16_t *turned_keys;
    uint32_t *query_pairs, *dout_pairs, *dscore_pairs;
} backward_memory;

enum { STRIP_PAIRS = MOST_KEYS / 2 * STRIP };

/* In bf16, heads are narrower: their panels leave memory for the gradients. */
#define HALF_PANEL (MOST_QUERIES * ATTENTION_HALF_SIZE)
_Static_assert((6 * MOST_VALUES + (2 * MOST_KEYS + 1) * MOST_QUERIES) * sizeof(float) <= FAST_SCRATCH_BYTES,
               "everything fits in fp32");
_Static_assert((4 * MOST_VALUES + 4 * HALF_PANEL + (2 * MOST_KEYS + 1) * MOST_QUERIES + ATTENTION_HALF_VALUES) *
                       sizeof(float) <=
                   FAST_SCRATCH_BYTES,
               "everything fits in bf16");

static backward_memory backward_memory_of(float *scratch, const attention_args *a)
{
    const size_t panel = attention_is_half(a) ? HALF_PANEL : MOST_VALUES;
    backward_memory memory;
    memory.keys = scratch;
    memory.scored_values = memory.keys + MOST_VALUES;
    memory.scored_keys = scores_are_pairs(a) ? (void *)((uint16_t *)memory.scored_values + MOST_VALUES) : memory.keys;
    memory.query_rows = memory.keys + 2 * MOST_VALUES;
    memory.dout_rows = memory.query_rows + panel;
    memory.queries = memory.dout_rows + panel;
    memory.douts = memory.queries + panel;
    memory.weights = memory.douts + panel;
    memory.dscores = memory.weights + MOST_KEYS * MOST_QUERIES;
    memory.means = memory.dscores + MOST_KEYS * MOST_QUERIES;
    memory.dk = memory.means + MOST_QUERIES;
    memory.dv = memory.dk + MOST_VALUES;
    memory.dq = memory.dv + MOST_VALUES;
    memory.turned_keys = (uint16_t *)(void *)memory.keys;
    memory.query_pairs = (uint32_t *)(void *)memory.query_rows;
    memory.dout_pairs = memory.query_pairs + HALF_PANEL / 2;
    memory.dscore_pairs = (uint32_t *)(void *)memory.dout_rows;
    return memory;
}

/* ---- a panel ---- */

/* The dot product of two rows. */
FAST_INLINE float dot_as(bool half, const void *x, const void *y, size_t size)
{
    fast_vector sum = {0};
    size_t c = 0;
    for (; c + FAST_LANES <= size; c += FAST_LANES)
        sum = fast_fma(load_values(x, half, c, FAST_LANES), load_values(y, half, c, FAST_LANES), sum);
    if (c < size)
        sum = fast_fma(load_values(x, half, c, size - c), load_values(y, half, c, size - c), sum);
    return fast_sum_lanes(sum);
}

static float dot(tensor_ref x, tensor_ref y, size_t size)
{
    return y.type == REMAT_BF16 ? dot_as(true, x.at, y.at, size) : dot_as(false, x.at, y.at, size);
}

/* Rows of queries for sum_pairs_over_queries. */
static void pack_rows(const head_view *h, tensor_ref rows, size_t row, size_t queries, uint32_t *to)
{
#if HAS_PAIRS
    for (size_t column = 0; column < h->of->size; column += PAIRS_PANEL) {
        const pack_source panel = {rows.at, row, queries, PAIRS_PANEL, false, REMAT_BF16, column}, next = {0};
        pairs_pack_b(&panel, &next, to + round_up(queries, PAIRS_STEP) / 2 * column);
    }
#else
    (void)h, (void)rows, (void)row, (void)queries, (void)to;
#endif
}

static void panel_pack(const head_view *h, size_t query, size_t queries, const backward_memory *memory)
{
    size_t row = h->of->row, out_row = h->of->out_row, size = h->of->size;
    const tensor_ref q = tensor_from(h->q, query * row), dout = tensor_from(h->dout, query * out_row),
                     out = tensor_from(h->out, query * out_row);
    if (all_are_pairs(h->of)) {
        pack_rows(h, q, row, queries, memory->query_pairs);
        pack_rows(h, dout, out_row, queries, memory->dout_pairs);
    } else {
        gather_rows(q, row, queries, size, memory->query_rows);
        gather_rows(dout, out_row, queries, size, memory->dout_rows);
    }
    for (size_t at = 0; at < queries; at += STRIP) {
        size_t count = smaller(queries - at, STRIP), to = at * h->padded;
        pack_scored(h, tensor_from(q, at * row), row, count, memory->queries + to);
        pack_scored(h, tensor_from(dout, at * out_row), out_row, count, memory->douts + to);
    }
    for (size_t i = 0; i < queries; i++)
        memory->means[i] = dot(tensor_from(dout, i * out_row), tensor_from(out, i * out_row), size);
}

/* Scores become weights, and gradients of weights become gradients of scores. */
FAST_NOINLINE void differentiate(const head_view *h, const pairing *of, const backward_memory *memory)
{
    const float scale = h->scale * LOG2_E;
    for (size_t at = 0; at < of->queries; at += FAST_LANES) {
        size_t query = of->query + at, seen_by_all = keys_seen(of, query), seen = keys_seen(of, query + FAST_LANES);
        const fast_vector factor = fast_repeat(h->scale);
        fast_vector base = {0}, mean = fast_load(memory->means + at) * factor;
        memcpy(&base, h->sums + query, smaller(of->queries - at, FAST_LANES) * sizeof(float));
        base *= LOG2_E;
        for (size_t key = 0; key < seen; key++) {
            size_t place = key * MOST_QUERIES + at;
            fast_vector weight = power_of_2(fast_fms(fast_load(memory->weights + place), fast_repeat(scale), base));
            if (key >= seen_by_all)
                weight = fast_select(sees(of->key + key, query), weight, (fast_vector){0});
            fast_store(memory->weights + place, weight);
            fast_store(memory->dscores + place, weight * fast_fms(fast_load(memory->dscores + place), factor, mean));
        }
    }
}

#if HAS_PAIRS

/* The same, rounded to bf16: rows of weights and of gradients in place of their scores, and pairs of the gradients. They are 0 where
 * nobody looks, up to whole steps. */
FAST_NOINLINE void differentiate_rounded(const head_view *h, const pairing *of, const backward_memory *memory)
{
    const fast_vector scale = fast_repeat(h->scale * LOG2_E), factor = fast_repeat(h->scale);
    for (size_t at = 0; at < round_up(of->queries, STRIP); at += FAST_LANES) {
        const size_t query = of->query + at, seen_by_all = keys_seen(of, query),
                     there = at < of->queries ? smaller(of->queries - at, FAST_LANES) : 0,
                     seen = there ? keys_seen(of, query + FAST_LANES) : 0;
        const fast_vector base = fast_load_part(h->sums + query, there) * LOG2_E,
                          mean = fast_load_part(memory->means + at, there) * factor;
        uint32_t *pairs = memory->dscore_pairs + at / STRIP * STRIP_PAIRS;
        fast_vector before = {0};
        for (size_t key = 0; key < round_up(of->keys, PAIRS_STEP); key++) {
            const size_t place = key * MOST_QUERIES + at;
            fast_vector weight = {0}, dscore = {0};
            if (key < seen) {
                weight = power_of_2(fast_fms(fast_load(memory->weights + place), scale, base));
                dscore = weight * fast_fms(fast_load(memory->dscores + place), factor, mean);
                if (key >= seen_by_all || there < FAST_LANES) {
                    const fast_integers visible = sees(of->causal ? of->key + key : 0, of->causal ? query : 0);
                    weight = fast_first(fast_select(visible, weight, (fast_vector){0}), there);
                    dscore = fast_first(fast_select(visible, dscore, (fast_vector){0}), there);
                }
            }
            /* A row of halves takes the first half of its row of floats: those of vectors before this one. */
            store_halves((uint16_t *)(void *)(memory->weights + key * MOST_QUERIES) + at, weight);
            store_halves((uint16_t *)(void *)(memory->dscores + key * MOST_QUERIES) + at, dscore);
            if (key % 2)
                store_pairs(pairs, key - 1, at % STRIP, before, dscore);
            before = dscore;
        }
    }
}

/* What a panel and these keys add to dq, dk and dv. The first `old` of the keys from `at` on have sums in dk and dv already. */
static void add_pairs(const head_view *h, const pairing *of, size_t at, size_t old, const backward_memory *memory)
{
    differentiate_rounded(h, of, memory);
    for (size_t i = 0; i < of->queries && h->dq.at; i += STRIP)
        sum_pairs_over_keys(h, keys_seen(of, of->query + smaller(i + STRIP, of->queries)), memory->turned_keys + at,
                            memory->dscore_pairs + i / STRIP * STRIP_PAIRS, of->key || h->of->add_dq,
                            memory->dq + (of->query + i) * h->padded);
    const gemm_rows dv = {memory->dv + at * h->padded, h->padded, h->of->size, old},
                    dk = {memory->dk + at * h->padded, h->padded, h->of->size, old};
    if (h->dv.at)
        sum_pairs_over_queries(of, (const uint16_t *)(const void *)memory->weights, 2 * MOST_QUERIES,
                               memory->dout_pairs, &dv);
    if (h->dk.at)
        sum_pairs_over_queries(of, (const uint16_t *)(const void *)memory->dscores, 2 * MOST_QUERIES,
                               memory->query_pairs, &dk);
}

#endif

/* Where a gradient of the rows from `row` on is summed: in the tensor, or in rows of `padded` values if that is in bf16. */
static gemm_rows sums_of(const head_view *h, tensor_ref tensor, size_t tensor_row, float *own, size_t row, size_t old)
{
    if (attention_is_half(h->of))
        return (gemm_rows){own + row * h->padded, h->padded, h->of->size, old};
    return (gemm_rows){(float *)tensor.at + row * tensor_row, tensor_row, h->of->size, old};
}

/* What a panel and the keys of a block add to dq, dk and dv. The first `old` keys have sums in dk and dv already. */
static void panel_backward(const head_view *h, size_t query, size_t queries, size_t first_key, size_t keys, size_t old,
                           const backward_memory *memory, prefetch_list *prefetch)
{
    const attention_args *a = h->of;
    size_t row = a->row, key_row = a->key_row;
    for (size_t at = 0; at < keys; at += MOST_KEYS) {
        pairing of = {h->of->causal, first_key + at, smaller(keys - at, MOST_KEYS), query, queries};
        const float *k = memory->keys + at * h->padded;
        for (size_t i = 0; i < queries; i += STRIP) {
            pairing strip = {of.causal, of.key, of.keys, query + i, STRIP};
            multiply_scores(h, &strip, scored_from(h, memory->scored_keys, at), memory->queries + i * h->padded,
                            memory->weights + i, MOST_QUERIES, prefetch);
            multiply_scores(h, &strip, scored_from(h, memory->scored_values, at), memory->douts + i * h->padded,
                            memory->dscores + i, MOST_QUERIES, prefetch);
        }
        const size_t old_here = a->add_dkv ? of.keys : old - smaller(old, at);
#if HAS_PAIRS
        if (all_are_pairs(a)) {
            add_pairs(h, &of, at, old_here, memory);
            continue;
        }
#endif
        differentiate(h, &of, memory);
        if (h->dq.at) {
            gemm_rows dq = sums_of(h, h->dq, row, memory->dq, query, of.key || a->add_dq ? queries : 0);
            sum_over_keys(&of, memory->dscores, MOST_QUERIES, k, &dq, prefetch);
        }
        const tensor_ref block_dv = tensor_from(h->dv, first_key * key_row),
                         block_dk = tensor_from(h->dk, first_key * key_row);
        if (h->dv.at) {
            gemm_rows dv = sums_of(h, block_dv, key_row, memory->dv, at, old_here);
            sum_over_queries(&of, memory->weights, MOST_QUERIES, memory->dout_rows, &dv, prefetch);
        }
        if (h->dk.at) {
            gemm_rows dk = sums_of(h, block_dk, key_row, memory->dk, at, old_here);
            sum_over_queries(&of, memory->dscores, MOST_QUERIES, memory->query_rows, &dk, prefetch);
        }
    }
}

/* ---- a head ---- */

typedef struct rows_needed {
    prefetch_list q, dout, out, k, v, dq, dk, dv;
} rows_needed;

/* The list that prefetches the rows of the panel at `query`, and `keys` keys from `key` on. */
static prefetch_list panel_to_prefetch(const head_view *h, size_t query, size_t queries, size_t key, size_t keys,
                                       rows_needed *rows)
{
    size_t row = h->of->row, key_row = h->of->key_row, out_row = h->of->out_row, size = h->of->size;
    const bool half = attention_is_half(h->of); /* what is written then is read nowhere */
    size_t dk = h->dk.at && !half ? keys : 0, dv = h->dv.at && !half ? keys : 0,
           dqueries = h->dq.at && !half ? queries : 0;
    rows->dk = rows_to_prefetch(tensor_from(h->dk, key * key_row), key_row, dk, size, NULL);
    rows->dv = rows_to_prefetch(tensor_from(h->dv, key * key_row), key_row, dv, size, &rows->dk);
    rows->dq = rows_to_prefetch(tensor_from(h->dq, query * row), row, dqueries, size, &rows->dv);
    rows->v = rows_to_prefetch(tensor_from(h->v, key * key_row), key_row, keys, size, &rows->dq);
    rows->k = rows_to_prefetch(tensor_from(h->k, key * key_row), key_row, keys, size, &rows->v);
    rows->out = rows_to_prefetch(tensor_from(h->out, query * out_row), out_row, queries, size, &rows->k);
    rows->dout = rows_to_prefetch(tensor_from(h->dout, query * out_row), out_row, queries, size, &rows->out);
    rows->q = rows_to_prefetch(tensor_from(h->q, query * row), row, queries, size, &rows->dout);
    return rows->q;
}

/* The gradients of a block of keys are complete. */
static void round_keys(const head_view *h, size_t key, size_t keys, const backward_memory *memory)
{
    const size_t row = h->of->key_row, size = h->of->size;
    if (h->dk.at)
        scatter_halves(memory->dk, h->padded, keys, size, tensor_from(h->dk, key * row), row);
    if (h->dv.at)
        scatter_halves(memory->dv, h->padded, keys, size, tensor_from(h->dv, key * row), row);
}

/* `then` is what this thread will probably compute next, or NULL: its first rows are prefetched. */
static void head_backward(const head_view *h, const head_view *then, float *scratch)
{
    const attention_args *a = h->of;
    size_t block = keys_in_block(h->padded), panel = queries_in_strips(MOST_STRIPS, h->padded);
    backward_memory memory = backward_memory_of(scratch, a);
    for (size_t key = 0; key < a->keys; key += block) {
        pairing of = {a->causal, key, smaller(a->keys - key, block), 0, a->steps};
        size_t ready = 0;
        for (size_t query = 0, queries; query < a->steps; query += queries) {
            queries = smaller(a->steps - query, panel);
            size_t end = query + queries, keys = keys_seen(&of, end);
            if (keys == 0)
                continue;
            const key_range fresh = {key, ready, keys};
#if HAS_PAIRS
            if (all_are_pairs(a))
                gather_turned(h, h->k, &fresh, memory.turned_keys);
            else
#endif
                gather_keys(h, h->k, &fresh, memory.keys);
            gather_scored(h, h->v, &fresh, memory.scored_values);
            if (scores_are_pairs(a))
                gather_scored(h, h->k, &fresh, memory.scored_keys);
            panel_pack(h, query, queries, &memory);
            rows_needed rows;
            prefetch_list prefetch = {0};
            if (end < a->steps)
                prefetch = panel_to_prefetch(h, end, smaller(a->steps - end, panel), key + keys,
                                             keys_seen(&of, end + panel) - keys, &rows);
            else if (then && key + keys == a->keys)
                prefetch = panel_to_prefetch(then, 0, smaller(a->steps, panel), 0,
                                             smaller(a->keys, a->causal ? panel : block), &rows);
            panel_backward(h, query, queries, key, keys, ready, &memory, &prefetch);
            ready = keys;
        }
        if (attention_is_half(a))
            round_keys(h, key, ready, &memory);
    }
#if HAS_PAIRS
    for (size_t query = 0; query < a->steps && all_are_pairs(a) && h->dq.at; query += STRIP)
        scatter_transposed(h, memory.dq + query * h->padded, smaller(a->steps - query, STRIP),
                           tensor_from(h->dq, query * a->row), a->row);
#endif
    if (attention_is_half(a) && !all_are_pairs(a) && h->dq.at)
        scatter_halves(memory.dq, h->padded, a->steps, a->size, h->dq, a->row);
}

typedef struct backward_loop {
    const kernel_run *run;
    const attention_args *args;
} backward_loop;

static void backward_heads(const void *args, parallel_range range)
{
    const backward_loop *loop = args;
    const attention_args *a = loop->args;
    size_t heads = a->batch * a->heads, threads = (size_t)loop->run->threads;
    attention_args added = *a; /* the heads behind the first of a group add to its dk and dv */
    added.add_dkv = true;
    pairs_begin();
    for (size_t i = range.begin * a->group; i < range.end * a->group; i++) {
        const bool ends = (i + 1) % a->group == 0;
        const size_t next = ends ? i + 1 + (threads - 1) * a->group : i + 1;
        head_view head = head_view_of(i % a->group ? &added : a, i), then = head_view_of(a, next < heads ? next : i);
        head_backward(&head, next < heads ? &then : NULL, fast_scratch(loop->run, range.thread));
    }
    pairs_end();
}

static void backward(const kernel_run *run, const attention_args *a)
{
    const backward_loop loop = {run, a};
    parallel_dynamic(run->threads, a->batch * a->heads / a->group, 1, backward_heads, &loop);
}

/* to += from, for the columns of one of the three gradients. */
static void add_gradient(const kernel_run *run, const attention_args *a, float *from, float *to)
{
    const op_copy_rows add = {.x = {from, REMAT_FP32},
                              .y = {to, REMAT_FP32},
                              .rows = a->steps,
                              .columns = a->heads * a->size,
                              .x_row = a->row,
                              .y_row = a->row,
                              .accumulate = true};
    FAST(copy_rows)(run, &add);
}

/* The gradients of one sequence at a time are made in the workspace, and added to what is there. */
static void backward_add(const kernel_run *run, const attention_args *whole, float *workspace)
{
    attention_args one = *whole;
    float *dq = whole->dq.at, *dk = whole->dk.at, *dv = whole->dv.at, *one_dk = workspace + (dk - dq),
          *one_dv = workspace + (dv - dq);
    one.batch = 1;
    one.dq.at = workspace;
    one.dk.at = one_dk;
    one.dv.at = one_dv;
    const size_t in = one.steps * one.row, out = one.steps * one.out_row;
    for (size_t i = 0; i < whole->batch; i++) {
        backward(run, &one);
        add_gradient(run, &one, workspace, dq + i * in);
        add_gradient(run, &one, one_dk, dk + i * in);
        add_gradient(run, &one, one_dv, dv + i * in);
        one.q = tensor_from(one.q, in);
        one.k = tensor_from(one.k, in);
        one.v = tensor_from(one.v, in);
        one.out = tensor_from(one.out, out);
        one.dout = tensor_from(one.dout, out);
        one.sums += one.heads * one.steps;
    }
}

void ATTENTION(attention_backward)(const kernel_run *run, const void *args)
{
    const op_attention_backward *p = args;
    if (p->positions.at) {
        attend_segments_backward(run, p, ATTENTION(attention_backward));
        return;
    }
    if (!attention_is_fast(p->size, p->steps, p->window)) {
        reference_attention_backward_fp32(run, p);
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
                                  .add_dq = p->add_dq,
                                  .add_dkv = p->add_dkv,
                                  .q = p->q,
                                  .k = p->k,
                                  .v = p->v,
                                  .dout = p->dout,
                                  .out = p->out,
                                  .sums = p->sums.at,
                                  .dq = p->dq,
                                  .dk = p->dk,
                                  .dv = p->dv};
    if (p->accumulate)
        backward_add(run, &whole, p->workspace.at);
    else
        backward(run, &whole);
}
