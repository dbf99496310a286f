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
    float *keys, *values;          /* rows of a block */
    float *query_rows, *dout_rows; /* rows of a panel */
    float *queries, *douts;        /* the same, packed in strips */
    float *weights, *dscores;      /* MOST_QUERIES in a row */
    float *means;                  /* D */
} backward_memory;

_Static_assert((6 * MOST_VALUES + (2 * MOST_KEYS + 1) * MOST_QUERIES) * sizeof(float) <= FAST_SCRATCH_BYTES,
               "everything fits");

static backward_memory backward_memory_of(float *scratch)
{
    backward_memory memory;
    memory.keys = scratch;
    memory.values = memory.keys + MOST_VALUES;
    memory.query_rows = memory.values + MOST_VALUES;
    memory.dout_rows = memory.query_rows + MOST_VALUES;
    memory.queries = memory.dout_rows + MOST_VALUES;
    memory.douts = memory.queries + MOST_VALUES;
    memory.weights = memory.douts + MOST_VALUES;
    memory.dscores = memory.weights + MOST_KEYS * MOST_QUERIES;
    memory.means = memory.dscores + MOST_KEYS * MOST_QUERIES;
    return memory;
}

/* ---- a panel ---- */

static float dot(const float *x, const float *y, size_t size)
{
    fast_vector sum = {0};
    size_t c = 0;
    for (; c + FAST_LANES <= size; c += FAST_LANES)
        sum = fast_fma(fast_load(x + c), fast_load(y + c), sum);
    if (c < size)
        sum = fast_fma(fast_load_part(x + c, size - c), fast_load_part(y + c, size - c), sum);
    return fast_sum_lanes(sum);
}

static void panel_pack(const head_view *h, size_t query, size_t queries, const backward_memory *memory)
{
    size_t row = h->of->row, out_row = h->of->out_row, size = h->of->size;
    const float *q = h->q + query * row, *dout = h->dout + query * out_row, *out = h->out + query * out_row;
    gather_rows(q, row, queries, size, memory->query_rows);
    gather_rows(dout, out_row, queries, size, memory->dout_rows);
    for (size_t at = 0; at < queries; at += STRIP) {
        size_t count = smaller(queries - at, STRIP), to = at * h->padded;
        pack_strip(q + at * row, row, count, size, memory->queries + to);
        pack_strip(dout + at * out_row, out_row, count, size, memory->douts + to);
    }
    for (size_t i = 0; i < queries; i++)
        memory->means[i] = dot(dout + i * out_row, out + i * out_row, size);
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

/* What a panel and the keys of a block add to dq, dk and dv. The first `old` keys have sums in dk and dv already. */
static void panel_backward(const head_view *h, size_t query, size_t queries, size_t first_key, size_t keys, size_t old,
                           const backward_memory *memory, prefetch_list *prefetch)
{
    const attention_args *a = h->of;
    size_t row = a->row, key_row = a->key_row, size = a->size;
    for (size_t at = 0; at < keys; at += MOST_KEYS) {
        pairing of = {h->of->causal, first_key + at, smaller(keys - at, MOST_KEYS), query, queries};
        const float *k = memory->keys + at * h->padded, *v = memory->values + at * h->padded;
        for (size_t i = 0; i < queries; i += STRIP) {
            pairing strip = {of.causal, of.key, of.keys, query + i, STRIP};
            multiply_scores(&strip, size, k, memory->queries + i * h->padded, memory->weights + i, MOST_QUERIES,
                            prefetch);
            multiply_scores(&strip, size, v, memory->douts + i * h->padded, memory->dscores + i, MOST_QUERIES,
                            prefetch);
        }
        differentiate(h, &of, memory);
        if (h->dq) {
            gemm_rows dq = {h->dq + query * row, row, size, of.key || a->add_dq ? queries : 0};
            sum_over_keys(&of, memory->dscores, MOST_QUERIES, k, &dq, prefetch);
        }
        size_t old_here = a->add_dkv ? of.keys : old - smaller(old, at);
        if (h->dv) {
            gemm_rows dv = {h->dv + of.key * key_row, key_row, size, old_here};
            sum_over_queries(&of, memory->weights, MOST_QUERIES, memory->dout_rows, &dv, prefetch);
        }
        if (h->dk) {
            gemm_rows dk = {h->dk + of.key * key_row, key_row, size, old_here};
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
    size_t dk = h->dk ? keys : 0, dv = h->dv ? keys : 0, dqueries = h->dq ? queries : 0;
    rows->dk = rows_to_prefetch(dk ? h->dk + key * key_row : NULL, key_row, dk, size, NULL);
    rows->dv = rows_to_prefetch(dv ? h->dv + key * key_row : NULL, key_row, dv, size, &rows->dk);
    rows->dq = rows_to_prefetch(dqueries ? h->dq + query * row : NULL, row, dqueries, size, &rows->dv);
    rows->v = rows_to_prefetch(h->v + key * key_row, key_row, keys, size, &rows->dq);
    rows->k = rows_to_prefetch(h->k + key * key_row, key_row, keys, size, &rows->v);
    rows->out = rows_to_prefetch(h->out + query * out_row, out_row, queries, size, &rows->k);
    rows->dout = rows_to_prefetch(h->dout + query * out_row, out_row, queries, size, &rows->out);
    rows->q = rows_to_prefetch(h->q + query * row, row, queries, size, &rows->dout);
    return rows->q;
}

/* `then` is what this thread will probably compute next, or NULL: its first rows are prefetched. */
static void head_backward(const head_view *h, const head_view *then, float *scratch)
{
    const attention_args *a = h->of;
    size_t block = keys_in_block(h->padded), panel = queries_in_strips(MOST_STRIPS, h->padded);
    backward_memory memory = backward_memory_of(scratch);
    for (size_t key = 0; key < a->keys; key += block) {
        pairing of = {a->causal, key, smaller(a->keys - key, block), 0, a->steps};
        size_t ready = 0;
        for (size_t query = 0, queries; query < a->steps; query += queries) {
            queries = smaller(a->steps - query, panel);
            size_t end = query + queries, keys = keys_seen(&of, end);
            if (keys == 0)
                continue;
            gather_keys(h, key, ready, keys, memory.keys, memory.values);
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
    }
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
    for (size_t i = range.begin * a->group; i < range.end * a->group; i++) {
        const bool ends = (i + 1) % a->group == 0;
        const size_t next = ends ? i + 1 + (threads - 1) * a->group : i + 1;
        head_view head = head_view_of(i % a->group ? &added : a, i), then = head_view_of(a, next < heads ? next : i);
        head_backward(&head, next < heads ? &then : NULL, fast_scratch(loop->run, range.thread));
    }
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
    one.batch = 1;
    one.dq = workspace;
    one.dk = workspace + (whole->dk - whole->dq);
    one.dv = workspace + (whole->dv - whole->dq);
    const size_t in = one.steps * one.row, out = one.steps * one.out_row;
    for (size_t i = 0; i < whole->batch; i++) {
        backward(run, &one);
        add_gradient(run, &one, one.dq, whole->dq + i * in);
        add_gradient(run, &one, one.dk, whole->dk + i * in);
        add_gradient(run, &one, one.dv, whole->dv + i * in);
        one.q += in;
        one.k += in;
        one.v += in;
        one.out += out;
        one.dout += out;
        one.sums += one.heads * one.steps;
    }
}

void FAST(attention_backward)(const kernel_run *run, const void *args)
{
    const op_attention_backward *p = args;
    if (p->positions.at) {
        attend_segments_backward(run, p, FAST(attention_backward));
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
                                  .q = p->q.at,
                                  .k = p->k.at,
                                  .v = p->v.at,
                                  .dout = p->dout.at,
                                  .out = p->out.at,
                                  .sums = p->sums.at,
                                  .dq = p->dq.at,
                                  .dk = p->dk.at,
                                  .dv = p->dv.at};
    if (p->accumulate)
        backward_add(run, &whole, p->workspace.at);
    else
        backward(run, &whole);
}
