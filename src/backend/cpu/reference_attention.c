#include "backend/cpu/attention_segments.h"
#include "backend/cpu/reference.h"

#include <math.h>

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

/* What forward and backward read and write, from the first sequence and head on. */
typedef struct attention_args {
    size_t heads, steps, size, row, out_row, keys, key_row, group, window;
    bool causal, add_dq, add_dkv;
    const real *q, *k, *v, *dout;
    real *out, *sums, *dq, *dk, *dv;
} attention_args;

/* The same from another sequence and head on. */
static attention_args head_of(attention_args a, size_t sequence, size_t head)
{
    size_t at = sequence * a.steps * a.row + head * a.size, out = sequence * a.steps * a.out_row + head * a.size;
    size_t key = sequence * a.keys * a.key_row + head / a.group * a.size;
    a.q += at;
    a.k += key;
    a.v += key;
    a.out += out;
    a.sums += (sequence * a.heads + head) * a.steps;
    a.dout = a.dout ? a.dout + out : NULL;
    a.dq = a.dq ? a.dq + at : NULL;
    a.dk = a.dk ? a.dk + key : NULL;
    a.dv = a.dv ? a.dv + key : NULL;
    return a;
}

static real scale_of(const attention_args *a)
{
    return (real)(1.0 / sqrt((double)a->size));
}

/* Row i sees the rows first_seen .. steps_seen - 1. */
static size_t first_seen(const attention_args *a, size_t i)
{
    return a->causal && a->window && i >= a->window ? i + 1 - a->window : 0;
}

static size_t steps_seen(const attention_args *a, size_t i)
{
    return a->causal ? i + 1 : a->keys;
}

static void head_forward(const attention_args *a)
{
    const real scale = scale_of(a);
    for (size_t i = 0; i < a->steps; i++) {
        const real *q = a->q + i * a->row;
        real *out = a->out + i * a->out_row;
        real largest = -(real)INFINITY, sum = 0;
        for (size_t j = first_seen(a, i); j < steps_seen(a, i); j++) {
            real score = scale * dot(a->size, q, a->k + j * a->key_row);
            largest = score > largest ? score : largest;
        }
        fill_zero(a->size, out);
        for (size_t j = first_seen(a, i); j < steps_seen(a, i); j++) {
            real weight = exponential(scale * dot(a->size, q, a->k + j * a->key_row) - largest);
            sum += weight;
            add_scaled(a->size, weight, a->v + j * a->key_row, out);
        }
        for (size_t c = 0; c < a->size; c++)
            out[c] /= sum;
        a->sums[i] = largest + (real)log((double)sum);
    }
}

static void head_backward(const attention_args *a)
{
    const real scale = scale_of(a);
    for (size_t i = 0; i < a->steps && a->dq && !a->add_dq; i++)
        fill_zero(a->size, a->dq + i * a->row);
    for (size_t j = 0; j < a->keys && !a->add_dkv; j++) {
        if (a->dk)
            fill_zero(a->size, a->dk + j * a->key_row);
        if (a->dv)
            fill_zero(a->size, a->dv + j * a->key_row);
    }
    for (size_t i = 0; i < a->steps; i++) {
        const real *q = a->q + i * a->row, *dout = a->dout + i * a->out_row;
        real mean = dot(a->size, dout, a->out + i * a->out_row); /* of the gradients of the probabilities */
        for (size_t j = first_seen(a, i); j < steps_seen(a, i); j++) {
            const real *k = a->k + j * a->key_row;
            real probability = exponential(scale * dot(a->size, q, k) - a->sums[i]);
            real dscore = scale * probability * (dot(a->size, dout, a->v + j * a->key_row) - mean);
            if (a->dq)
                add_scaled(a->size, dscore, k, a->dq + i * a->row);
            if (a->dv)
                add_scaled(a->size, probability, dout, a->dv + j * a->key_row);
            if (a->dk)
                add_scaled(a->size, dscore, q, a->dk + j * a->key_row);
        }
    }
}

void REFERENCE(attention)(const kernel_run *run, const void *args)
{
    const op_attention *p = args;
    if (p->positions.at) {
        attend_segments(run, p, REFERENCE(attention));
        return;
    }
    const attention_args whole = {.heads = p->heads,
                                  .steps = p->steps,
                                  .size = p->size,
                                  .row = p->row,
                                  .out_row = p->out_row,
                                  .keys = p->keys,
                                  .key_row = p->key_row,
                                  .group = p->group ? p->group : 1,
                                  .window = p->window,
                                  .causal = p->causal,
                                  .q = p->q.at,
                                  .k = p->k.at,
                                  .v = p->v.at,
                                  .out = p->out.at,
                                  .sums = p->sums.at};
    for (size_t sequence = 0; sequence < p->batch; sequence++)
        for (size_t head = 0; head < p->heads; head++) {
            attention_args of_head = head_of(whole, sequence, head);
            head_forward(&of_head);
        }
}

static void add_rows(const attention_args *a, const real *from, real *to)
{
    for (size_t i = 0; i < a->steps; i++)
        for (size_t c = 0; c < a->heads * a->size; c++)
            to[i * a->row + c] += from[i * a->row + c];
}

void REFERENCE(attention_backward)(const kernel_run *run, const void *args)
{
    const op_attention_backward *p = args;
    if (p->positions.at) {
        attend_segments_backward(run, p, REFERENCE(attention_backward));
        return;
    }
    const attention_args whole = {.heads = p->heads,
                                  .steps = p->steps,
                                  .size = p->size,
                                  .row = p->row,
                                  .out_row = p->out_row,
                                  .keys = p->keys,
                                  .key_row = p->key_row,
                                  .group = p->group ? p->group : 1,
                                  .window = p->window,
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
    real *made = p->workspace.at; /* the gradients of one sequence, where they are to be added */
    for (size_t sequence = 0; sequence < p->batch; sequence++) {
        attention_args target = head_of(whole, sequence, 0), made_in = target;
        if (p->accumulate) {
            made_in.dq = made;
            made_in.dk = made + (whole.dk - whole.dq);
            made_in.dv = made + (whole.dv - whole.dq);
        }
        for (size_t head = 0; head < p->heads; head++) {
            attention_args of_head = head_of(made_in, 0, head);
            of_head.add_dkv |= head % of_head.group > 0; /* the first of a group has made it */
            head_backward(&of_head);
        }
        if (p->accumulate) {
            add_rows(&target, made_in.dq, target.dq);
            add_rows(&target, made_in.dk, target.dk);
            add_rows(&target, made_in.dv, target.dv);
        }
    }
}
