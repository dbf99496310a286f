/* Attention, backward. A work item is one head: its dk and dv are sums over all queries, taken in order. The weights are
 * made again from the scores and `sums`. With P the weights, D the dot product of a row of dout with its row of out:
 *     dV += P' dO     dS = scale * P * (dO V' - D)     dQ += dS K     dK += dS' Q
 * All of P, dP and dS stand as [key][query], like the scores of the forward. */
#include <omp.h>

#include "kernels/fast_attention.h"
#include "kernels/reference.h"

typedef struct backward_memory {
    float *keys, *values;          /* packed as A */
    float *key_rows;               /* packed as B, along the rows */
    float *queries, *douts;        /* as B, across */
    float *query_rows, *dout_rows; /* as B, along */
    float *weights, *dscores;
    float *means; /* D */
} backward_memory;

_Static_assert((3 * MOST_VALUES + QUERIES * (4 * MOST_SIZE + 2 * MOST_KEYS + 1)) * sizeof(float) <= FAST_SCRATCH_BYTES,
               "everything fits");

static backward_memory backward_memory_of(float *scratch, size_t padded)
{
    backward_memory memory;
    memory.keys = scratch;
    memory.values = memory.keys + MOST_VALUES;
    memory.key_rows = memory.values + MOST_VALUES;
    memory.queries = memory.key_rows + MOST_VALUES;
    memory.douts = memory.queries + QUERIES * padded;
    memory.query_rows = memory.douts + QUERIES * padded;
    memory.dout_rows = memory.query_rows + QUERIES * padded;
    memory.weights = memory.dout_rows + QUERIES * padded;
    memory.dscores = memory.weights + QUERIES * MOST_KEYS;
    memory.means = memory.dscores + QUERIES * MOST_KEYS;
    return memory;
}

static void clear_rows(float *rows, size_t row, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        memset(rows + i * row, 0, size * sizeof(float));
}

static float dot(const float *x, const float *y, size_t size)
{
    fast_vector sum = {0};
    size_t c = 0;
    for (; c + FAST_LANES <= size; c += FAST_LANES)
        sum += fast_load(x + c) * fast_load(y + c);
    if (c < size)
        sum += fast_load_part(x + c, size - c) * fast_load_part(y + c, size - c);
    return fast_sum_lanes(sum);
}

static void pack_keys(const head_view *h, size_t key, size_t keys, const backward_memory *memory)
{
    size_t row = h->of->row, size = h->of->size;
    pack_source k = across_rows(h->k + key * row, row, keys, size), v = across_rows(h->v + key * row, row, keys, size);
    pack_source k_rows = along_rows(h->k + key * row, row, keys, size);
    pack_tiles(&k, memory->keys);
    pack_tiles(&v, memory->values);
    pack_panels(&k_rows, memory->key_rows);
}

static void pack_query_panel(const head_view *h, size_t query, size_t queries, const backward_memory *memory)
{
    size_t row = h->of->row, out_row = h->of->out_row, size = h->of->size;
    const float *q = h->q + query * row, *dout = h->dout + query * out_row, *out = h->out + query * out_row;
    pack_source q_rows = along_rows(q, row, queries, size), dout_rows = along_rows(dout, out_row, queries, size);
    pack_queries(q, row, queries, size, memory->queries);
    pack_queries(dout, out_row, queries, size, memory->douts);
    pack_panels(&q_rows, memory->query_rows);
    pack_panels(&dout_rows, memory->dout_rows);
    for (size_t i = 0; i < QUERIES; i++)
        memory->means[i] = i < queries ? dot(dout + i * out_row, out + i * out_row, size) : 0;
}

/* Scores become weights, and gradients of weights become gradients of scores. */
static void differentiate(const head_view *h, size_t query, size_t queries, size_t first_key, size_t keys,
                          const backward_memory *memory)
{
    for (size_t v = 0; v < QUERY_VECTORS; v++) {
        size_t at = v * FAST_LANES, count = at < queries ? smaller(queries - at, FAST_LANES) : 0;
        fast_vector log_sum = {0}, mean = fast_load(memory->means + at);
        memcpy(&log_sum, h->sums + query + at, count * sizeof(float));
        for (size_t key = 0; key < keys; key++) {
            float *weights = memory->weights + key * QUERIES + at, *dscores = memory->dscores + key * QUERIES + at;
            fast_vector weight = fast_exp(fast_load(weights) * h->scale - log_sum);
            if (h->of->causal && first_key + key >= query)
                weight = fast_select(sees(first_key + key, query + at), weight, (fast_vector){0});
            fast_store(weights, weight);
            fast_store(dscores, weight * (fast_load(dscores) - mean) * h->scale);
        }
    }
}

static void head_backward(const head_view *h, float *scratch)
{
    const kernel_attention *a = h->of;
    size_t block = keys_in_block(h->padded), row = a->row, size = a->size;
    backward_memory memory = backward_memory_of(scratch, h->padded);
    clear_rows(h->dq, row, a->steps, size);
    clear_rows(h->dk, row, a->steps, size);
    clear_rows(h->dv, row, a->steps, size);
    for (size_t key = 0; key < a->steps; key += block) {
        size_t keys = smaller(a->steps - key, block);
        pack_keys(h, key, keys, &memory);
        for (size_t query = 0; query < a->steps; query += QUERIES) {
            size_t queries = smaller(a->steps - query, QUERIES);
            size_t needed = keys_needed(a, key, keys, query, queries);
            if (needed == 0)
                continue;
            pack_query_panel(h, query, queries, &memory);
            multiply_scores(needed, size, memory.keys, memory.queries, memory.weights);
            multiply_scores(needed, size, memory.values, memory.douts, memory.dscores);
            differentiate(h, query, queries, key, needed, &memory);
            add_product(queries, needed, size, memory.dscores, 1, QUERIES, memory.key_rows, keys, h->dq + query * row,
                        row);
            add_product(needed, queries, size, memory.weights, QUERIES, 1, memory.dout_rows, queries, h->dv + key * row,
                        row);
            add_product(needed, queries, size, memory.dscores, QUERIES, 1, memory.query_rows, queries,
                        h->dk + key * row, row);
        }
    }
}

void FAST(attention_backward)(const kernel_run *run, const kernel_attention *a)
{
    if (a->size > MOST_SIZE) {
        reference_attention_backward(run, a);
        return;
    }
    if (a->size == 0)
        return;
    size_t heads = a->batch * a->heads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->threads) if (run->threads > 1 && heads > 1)
    for (size_t i = 0; i < heads; i++) {
        head_view view = head_view_of(a, i / a->heads, i % a->heads);
        head_backward(&view, fast_scratch(run, omp_get_thread_num()));
    }
}
