/* Attention, forward. A work item is a group of query panels of one head. The keys come in blocks, packed once for the
 * whole group; for every panel the largest score so far, the sum of exponentials and the weighted sum of V are kept and
 * brought to the new largest score when a block raises it. */
#include <omp.h>

#include "kernels/fast_attention.h"
#include "kernels/reference.h"

#define MOST_PANELS 8

/* One panel of queries. */
typedef struct query_panel {
    size_t first, count;
    float *largest, *sum; /* QUERIES values each */
    float *out;           /* QUERIES rows of whole vectors */
} query_panel;

typedef struct forward_memory {
    float *keys, *values, *queries, *scores, *largest, *sums, *out;
} forward_memory;

#define GROUP (MOST_PANELS * QUERIES)
_Static_assert((3 * MOST_VALUES + QUERIES * (2 * MOST_SIZE + MOST_KEYS) + 2 * GROUP) * sizeof(float) <=
                   FAST_SCRATCH_BYTES,
               "everything fits");

static forward_memory forward_memory_of(float *scratch, size_t padded)
{
    forward_memory memory;
    memory.keys = scratch;
    memory.values = memory.keys + MOST_VALUES;
    memory.queries = memory.values + MOST_VALUES;
    memory.scores = memory.queries + QUERIES * padded;
    memory.largest = memory.scores + QUERIES * MOST_KEYS;
    memory.sums = memory.largest + GROUP;
    memory.out = memory.sums + GROUP;
    return memory;
}

/* Turns the scores of a block into weights, exp(scale * (score - largest)), and makes what was summed fit them. */
static void weigh(const head_view *h, const query_panel *panel, size_t first_key, size_t keys, float *scores)
{
    bool causal = h->of->causal;
    size_t plain = causal && panel->first < first_key + keys ? panel->first - smaller(panel->first, first_key) : keys;
    const fast_vector none = fast_repeat(-INFINITY);
    for (size_t v = 0; v < QUERY_VECTORS; v++) {
        size_t query = panel->first + v * FAST_LANES;
        float *column = scores + v * FAST_LANES, *largest = panel->largest + v * FAST_LANES;
        fast_vector before = fast_load(largest), after = before, total = {0};
        for (size_t key = 0; key < keys; key++) {
            fast_vector score = fast_load(column + key * QUERIES);
            if (key >= plain)
                score = fast_select(sees(first_key + key, query), score, none);
            after = fast_max(after, score);
        }
        fast_vector base = after * h->scale;
        for (size_t key = 0; key < keys; key++) {
            fast_vector weight = fast_exp(fast_load(column + key * QUERIES) * h->scale - base);
            if (key >= plain)
                weight = fast_select(sees(first_key + key, query), weight, (fast_vector){0});
            total += weight;
            fast_store(column + key * QUERIES, weight);
        }
        fast_vector factor = fast_exp((before - after) * h->scale);
        float *sum = panel->sum + v * FAST_LANES;
        fast_store(sum, fast_load(sum) * factor + total);
        fast_store(largest, after);
        if (first_key == 0)
            continue;
        for (size_t i = 0; i < FAST_LANES; i++) {
            float *row = panel->out + (v * FAST_LANES + i) * h->padded;
            for (size_t c = 0; c < h->padded; c += FAST_LANES)
                fast_store(row + c, fast_load(row + c) * factor[i]);
        }
    }
}

static void finish_panel(const head_view *h, const query_panel *panel)
{
    size_t size = h->of->size;
    for (size_t i = 0; i < panel->count; i++) {
        const float *from = panel->out + i * h->padded;
        float *to = h->out + (panel->first + i) * h->of->out_row, inverse = 1.0f / panel->sum[i];
        size_t c = 0;
        for (; c + FAST_LANES <= size; c += FAST_LANES)
            fast_store(to + c, fast_load(from + c) * inverse);
        if (c < size)
            fast_store_part(to + c, fast_load(from + c) * inverse, size - c);
        h->sums[panel->first + i] = panel->largest[i] * h->scale + logf(panel->sum[i]);
    }
}

static query_panel panel_of(const head_view *h, const forward_memory *memory, size_t first, size_t i)
{
    query_panel panel = {.first = first + i * QUERIES};
    panel.count = smaller(h->of->steps - panel.first, QUERIES);
    panel.largest = memory->largest + i * QUERIES;
    panel.sum = memory->sums + i * QUERIES;
    panel.out = memory->out + i * QUERIES * h->padded;
    return panel;
}

/* The queries from `first` on, `count` of them. */
static void attend(const head_view *h, size_t first, size_t count, float *scratch)
{
    const kernel_attention *a = h->of;
    size_t block = keys_in_block(h->padded), panels = (count + QUERIES - 1) / QUERIES;
    forward_memory memory = forward_memory_of(scratch, h->padded);
    for (size_t i = 0; i < panels * QUERIES; i++) {
        memory.largest[i] = -INFINITY;
        memory.sums[i] = 0;
    }
    memset(memory.out, 0, panels * QUERIES * h->padded * sizeof(float));
    for (size_t key = 0; key < a->steps; key += block) {
        size_t keys = keys_needed(a, key, smaller(a->steps - key, block), first, count);
        if (keys == 0)
            break;
        pack_source k = across_rows(h->k + key * a->row, a->row, keys, a->size);
        pack_source v = along_rows(h->v + key * a->row, a->row, keys, a->size);
        pack_tiles(&k, memory.keys);
        pack_panels(&v, memory.values);
        for (size_t i = 0; i < panels; i++) {
            query_panel panel = panel_of(h, &memory, first, i);
            size_t needed = keys_needed(a, key, keys, panel.first, panel.count);
            if (needed == 0)
                continue;
            pack_queries(h->q + panel.first * a->row, a->row, panel.count, a->size, memory.queries);
            multiply_scores(needed, a->size, memory.keys, memory.queries, memory.scores);
            weigh(h, &panel, key, needed, memory.scores);
            add_product(QUERIES, needed, h->padded, memory.scores, 1, QUERIES, memory.values, keys, panel.out,
                        h->padded);
        }
    }
    for (size_t i = 0; i < panels; i++) {
        query_panel panel = panel_of(h, &memory, first, i);
        finish_panel(h, &panel);
    }
}

/* Queries of a work item: many, so that packing the keys pays, unless there would be too few items to share out. */
static size_t queries_in_item(const kernel_attention *a)
{
    size_t wanted = a->batch * a->heads < 8 ? 2 : MOST_PANELS;
    size_t fitting = MOST_VALUES / round_up(a->size, FAST_LANES) / QUERIES;
    size_t panels = smaller(wanted, fitting);
    return (panels ? panels : 1) * QUERIES;
}

void FAST(attention)(const kernel_run *run, const kernel_attention *a)
{
    if (a->size > MOST_SIZE) {
        reference_attention(run, a);
        return;
    }
    if (a->size == 0)
        return;
    size_t queries = queries_in_item(a), heads = a->batch * a->heads;
    size_t items = (a->steps + queries - 1) / queries * heads;
    /* Later groups see more keys: they go first. */
#pragma omp parallel for schedule(dynamic, 1) num_threads(run->threads) if (run->threads > 1 && items > 1)
    for (size_t i = items; i > 0; i--) {
        size_t head = (i - 1) % heads, first = (i - 1) / heads * queries;
        head_view view = head_view_of(a, head / a->heads, head % a->heads);
        attend(&view, first, smaller(a->steps - first, queries), fast_scratch(run, omp_get_thread_num()));
    }
}
