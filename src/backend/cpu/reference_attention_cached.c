#include "backend/cpu/reference.h"

#include <math.h>

/* One head of one row: its query, and the rows of the cache from `first` to `end`. */
static void attend(const op_attention_cached *p, const real *q, size_t column, size_t first, size_t end, real *out)
{
    const real *k = (const real *)p->k.at + column, *v = (const real *)p->v.at + column;
    const real scale = (real)(1.0 / sqrt((double)p->size));
    real largest = -(real)INFINITY, sum = 0;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t key = first; key < end; key++) {
            real score = 0;
            for (size_t c = 0; c < p->size; c++)
                score += q[c] * k[key * p->key_row + c];
            score *= scale;
            if (pass == 0) {
                largest = score > largest ? score : largest;
                continue;
            }
            const real weight = (real)exp((double)(score - largest));
            sum += weight;
            for (size_t c = 0; c < p->size; c++)
                out[c] = (key == first ? 0 : out[c]) + weight * v[key * p->key_row + c];
        }
    for (size_t c = 0; c < p->size; c++)
        out[c] /= sum;
}

void REFERENCE(attention_cached)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_attention_cached *p = args;
    const int32_t *positions = p->positions.at;
    const size_t group = p->group ? p->group : 1;
    for (size_t row = 0; row < p->rows; row++) {
        const size_t end = (size_t)positions[row] + 1;
        const size_t first = p->window && end > p->window ? end - p->window : 0;
        for (size_t head = 0; head < p->heads; head++)
            attend(p, (const real *)p->q.at + row * p->row + head * p->size, head / group * p->size, first, end,
                   (real *)p->out.at + row * p->out_row + head * p->size);
    }
}

void REFERENCE(put_rows)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_put_rows *p = args;
    const int32_t *places = p->places.at;
    for (size_t row = 0; row < p->rows; row++)
        for (size_t c = 0; c < p->columns; c++)
            ((real *)p->y.at)[(size_t)places[row] * p->columns + c] = ((const real *)p->x.at)[row * p->x_row + c];
}
