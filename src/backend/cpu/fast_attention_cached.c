/* Attention of a few steps to keys and values in a cache. A thread takes some heads of some rows. Keys come in blocks: their scores
 * are made, then weighed, then the values are added; a block with a larger score scales what was summed before. */
#include "backend/cpu/fast_attention.h"

enum { BLOCK = 256 };

/* One head of one row. */
typedef struct cached_head {
    const op_attention_cached *of;
    const float *q, *k, *v;
    float *out;
    size_t first, end; /* rows of the cache */
} cached_head;

static cached_head head_of(const op_attention_cached *p, size_t item)
{
    const size_t row = item / p->heads, head = item % p->heads, column = head / (p->group ? p->group : 1) * p->size;
    const size_t end = (size_t)((const int32_t *)p->positions.at)[row] + 1;
    return (cached_head){.of = p,
                         .q = (const float *)p->q.at + row * p->row + head * p->size,
                         .k = (const float *)p->k.at + column,
                         .v = (const float *)p->v.at + column,
                         .out = (float *)p->out.at + row * p->out_row + head * p->size,
                         .first = p->window && end > p->window ? end - p->window : 0,
                         .end = end};
}

static float dot_product(const float *x, const float *y, size_t size)
{
    fast_vector sum = {0};
    size_t c = 0;
    for (; c + FAST_LANES <= size; c += FAST_LANES)
        sum = fast_fma(fast_load(x + c), fast_load(y + c), sum);
    if (c < size)
        sum = fast_fma(fast_load_part(x + c, size - c), fast_load_part(y + c, size - c), sum);
    return fast_sum_lanes(sum);
}

static void scale_row(float *row, size_t size, float factor)
{
#define SCALE(LOAD, STORE, c, FIRST) STORE(row + (c), LOAD(row + (c)) * factor)
    FAST_EACH(size, SCALE);
#undef SCALE
}

static void add_row(float *to, const float *row, size_t size, float factor)
{
#define ADD(LOAD, STORE, c, FIRST) STORE(to + (c), fast_fma(LOAD(row + (c)), fast_repeat(factor), LOAD(to + (c))))
    FAST_EACH(size, ADD);
#undef ADD
}

static void attend_head(const cached_head *h)
{
    const op_attention_cached *p = h->of;
    const float scale = 1.0f / sqrtf((float)p->size);
    float largest = -INFINITY, sum = 0, scores[BLOCK];
    memset(h->out, 0, p->size * sizeof *h->out);
    for (size_t key = h->first; key < h->end; key += BLOCK) {
        const size_t count = smaller(h->end - key, BLOCK);
        float most = largest;
        for (size_t i = 0; i < count; i++) {
            scores[i] = scale * dot_product(h->q, h->k + (key + i) * p->key_row, p->size);
            most = scores[i] > most ? scores[i] : most;
        }
        if (most > largest && key > h->first) {
            scale_row(h->out, p->size, expf(largest - most));
            sum *= expf(largest - most);
        }
        largest = most;
        for (size_t i = 0; i < count; i++) {
            const float weight = expf(scores[i] - largest);
            sum += weight;
            add_row(h->out, h->v + (key + i) * p->key_row, p->size, weight);
        }
    }
    scale_row(h->out, p->size, 1 / sum);
}

static void attend_heads(const void *args, parallel_range range)
{
    const op_attention_cached *p = args;
    for (size_t item = range.begin; item < range.end; item++) {
        const cached_head head = head_of(p, item);
        attend_head(&head);
    }
}

void FAST(attention_cached)(const kernel_run *run, const void *args)
{
    const op_attention_cached *p = args;
    parallel_dynamic(run->threads, p->rows * p->heads, 1, attend_heads, p);
}

void FAST(put_rows)(const kernel_run *run, const void *args)
{
    (void)run; /* a few rows */
    const op_put_rows *p = args;
    const int32_t *places = p->places.at;
    for (size_t row = 0; row < p->rows; row++)
        memcpy((float *)p->y.at + (size_t)places[row] * p->columns, (const float *)p->x.at + row * p->x_row,
               p->columns * sizeof(float));
}
