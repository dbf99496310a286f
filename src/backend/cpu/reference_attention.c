#include "backend/cpu/reference.h"

#include <math.h>

/* Neither table needs any: what the backward lacks it makes again from `sums`. */
size_t attention_workspace(size_t batch, size_t heads, size_t steps, size_t size)
{
    (void)batch, (void)heads, (void)steps, (void)size;
    return 0;
}

static real dot(size_t size, const real *x, const real *y)
{
    real sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add_scaled(size_t size, real factor, const real *x, real *y)
{
    for (size_t i = 0; i < size; i++)
        y[i] += factor * x[i];
}

static void fill_zero(size_t size, real *y)
{
    for (size_t i = 0; i < size; i++)
        y[i] = 0;
}

static real exponential(real x)
{
    return (real)exp((double)x);
}

/* The rows of one sequence and head. */
typedef struct head_rows {
    size_t size;
    real scale;
    const real *q, *k, *v, *dout;
    real *out, *sums, *dq, *dk, *dv;
} head_rows;

static head_rows head_of(const kernel_attention *a, size_t sequence, size_t head, bool backward)
{
    size_t at = sequence * a->steps * a->row + head * a->size;
    size_t out = sequence * a->steps * a->out_row + head * a->size;
    head_rows of = {.size = a->size, .scale = (real)(1.0 / sqrt((double)a->size))};
    of.q = a->q + at;
    of.k = a->k + at;
    of.v = a->v + at;
    of.out = a->out + out;
    of.sums = a->sums + (sequence * a->heads + head) * a->steps;
    if (backward) {
        of.dout = a->dout + out;
        of.dq = a->dq + at;
        of.dk = a->dk + at;
        of.dv = a->dv + at;
    }
    return of;
}

/* Row i looks at the rows 0 .. steps_seen - 1. */
static size_t steps_seen(const kernel_attention *a, size_t i)
{
    return a->causal ? i + 1 : a->steps;
}

static void head_forward(const kernel_attention *a, const head_rows *r)
{
    for (size_t i = 0; i < a->steps; i++) {
        const real *q = r->q + i * a->row;
        real *out = r->out + i * a->out_row;
        real largest = -(real)INFINITY, sum = 0;
        for (size_t j = 0; j < steps_seen(a, i); j++) {
            real score = r->scale * dot(r->size, q, r->k + j * a->row);
            largest = score > largest ? score : largest;
        }
        fill_zero(r->size, out);
        for (size_t j = 0; j < steps_seen(a, i); j++) {
            real weight = exponential(r->scale * dot(r->size, q, r->k + j * a->row) - largest);
            sum += weight;
            add_scaled(r->size, weight, r->v + j * a->row, out);
        }
        for (size_t c = 0; c < r->size; c++)
            out[c] /= sum;
        r->sums[i] = largest + (real)log((double)sum);
    }
}

static void head_backward(const kernel_attention *a, const head_rows *r)
{
    for (size_t i = 0; i < a->steps; i++) {
        fill_zero(r->size, r->dq + i * a->row);
        fill_zero(r->size, r->dk + i * a->row);
        fill_zero(r->size, r->dv + i * a->row);
    }
    for (size_t i = 0; i < a->steps; i++) {
        const real *q = r->q + i * a->row, *dout = r->dout + i * a->out_row;
        real mean = dot(r->size, dout, r->out + i * a->out_row); /* of the probabilities' gradients */
        for (size_t j = 0; j < steps_seen(a, i); j++) {
            const real *k = r->k + j * a->row;
            real probability = exponential(r->scale * dot(r->size, q, k) - r->sums[i]);
            real dscore = r->scale * probability * (dot(r->size, dout, r->v + j * a->row) - mean);
            add_scaled(r->size, probability, dout, r->dv + j * a->row);
            add_scaled(r->size, dscore, k, r->dq + i * a->row);
            add_scaled(r->size, dscore, q, r->dk + j * a->row);
        }
    }
}

void reference_attention(const kernel_run *run, const kernel_attention *a)
{
    (void)run;
    for (size_t sequence = 0; sequence < a->batch; sequence++) {
        for (size_t head = 0; head < a->heads; head++) {
            head_rows rows = head_of(a, sequence, head, false);
            head_forward(a, &rows);
        }
    }
}

void reference_attention_backward(const kernel_run *run, const kernel_attention *a)
{
    (void)run;
    for (size_t sequence = 0; sequence < a->batch; sequence++) {
        for (size_t head = 0; head < a->heads; head++) {
            head_rows rows = head_of(a, sequence, head, true);
            head_backward(a, &rows);
        }
    }
}
