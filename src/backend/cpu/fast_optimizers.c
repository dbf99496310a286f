#include "backend/cpu/fast_math.h"

typedef struct sgd_factors {
    float rate, momentum, decay, scale;
} sgd_factors;

FAST_INLINE void sgd_plain(const sgd_factors *o, size_t count, const float *gradient, float *weight)
{
    const fast_vector scale = fast_repeat(o->scale), decay = fast_repeat(o->decay), rate = fast_repeat(o->rate);
#define STEP(LOAD, STORE, i, FIRST)                                     \
    do {                                                                \
        fast_vector w = LOAD(weight + i);                               \
        fast_vector g = fast_fma(scale, LOAD(gradient + i), decay * w); \
        STORE(weight + i, fast_fnma(rate, g, w));                       \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

FAST_INLINE void sgd_momentum(const sgd_factors *o, bool nesterov, size_t count, const float *gradient, float *weight,
                              float *velocity)
{
    const fast_vector scale = fast_repeat(o->scale), decay = fast_repeat(o->decay), rate = fast_repeat(o->rate),
                      momentum = fast_repeat(o->momentum);
#define STEP(LOAD, STORE, i, FIRST)                                                     \
    do {                                                                                \
        fast_vector w = LOAD(weight + i);                                               \
        fast_vector g = fast_fma(scale, LOAD(gradient + i), decay * w);                 \
        fast_vector v = fast_fma(momentum, LOAD(velocity + i), g);                      \
        STORE(velocity + i, v);                                                         \
        STORE(weight + i, fast_fnma(rate, nesterov ? fast_fma(momentum, v, g) : v, w)); \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

static void sgd_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_sgd *p = loop->args;
    const step_block *step = p->step.at;
    const sgd_factors o = {(float)step->rate, (float)p->momentum, (float)p->decay, (float)step->scale};
    const float *gradient = p->gradient.at;
    float *weight = p->weight.at, *velocity = p->velocity.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK, length = fast_block_length(p->count, from);
        if (!fast_all_finite(length, gradient + from, o.rate))
            *loop->finite = false;
        else if (!velocity)
            sgd_plain(&o, length, gradient + from, weight + from);
        else if (p->nesterov)
            sgd_momentum(&o, true, length, gradient + from, weight + from, velocity + from);
        else
            sgd_momentum(&o, false, length, gradient + from, weight + from, velocity + from);
    }
}

void FAST(sgd)(const kernel_run *run, const void *args)
{
    const op_sgd *p = args;
    step_block *block = p->step.at;
    atomic_bool finite = true;
    if (!step_is_finite(block))
        return;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), sgd_blocks, &(finite_loop){p, &finite});
    if (!finite)
        block->broken = 1 + p->number;
}

/* The factors that are the same for all values. */
typedef struct adam_factors {
    float scale, join; /* the gradient is scale * gradient + join * weight */
    float shrink;      /* what is left of the weight */
    float beta1, rest1, beta2, rest2;
    float rate, deviation, epsilon;
} adam_factors;

static adam_factors factors_of(const op_adam *p)
{
    const step_block *block = p->step.at;
    const float rate = (float)block->rate, decay = (float)p->decay;
    const float beta1 = (float)p->beta1, beta2 = (float)p->beta2;
    return (adam_factors){.scale = (float)block->scale,
                          .join = p->decoupled ? 0.0f : decay,
                          .shrink = p->decoupled ? fast_fma_float(-rate, decay, 1.0f) : 1.0f,
                          .beta1 = beta1,
                          .rest1 = 1.0f - beta1,
                          .beta2 = beta2,
                          .rest2 = 1.0f - beta2,
                          .rate = rate / (float)block->correction1,
                          .deviation = 1.0f / sqrtf((float)block->correction2),
                          .epsilon = (float)p->epsilon};
}

static void adam_block(adam_factors f, size_t count, const float *gradient, float *weight, float *first, float *second)
{
    const fast_vector scale = fast_repeat(f.scale), beta1 = fast_repeat(f.beta1), beta2 = fast_repeat(f.beta2),
                      shrink = fast_repeat(f.shrink), deviation = fast_repeat(f.deviation),
                      epsilon = fast_repeat(f.epsilon);
#define STEP(LOAD, STORE, i, FIRST)                                                                      \
    do {                                                                                                 \
        fast_vector w = LOAD(weight + i);                                                                \
        fast_vector g = fast_fma(scale, LOAD(gradient + i), f.join * w);                                 \
        fast_vector m = fast_fma(beta1, LOAD(first + i), f.rest1 * g);                                   \
        fast_vector v = fast_fma(beta2, LOAD(second + i), f.rest2 * g * g);                              \
        STORE(first + i, m);                                                                             \
        STORE(second + i, v);                                                                            \
        STORE(weight + i, fast_fms(w, shrink, f.rate * m / fast_fma(fast_sqrt(v), deviation, epsilon))); \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

static void adam_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_adam *p = loop->args;
    const adam_factors factors = factors_of(p);
    const float *gradient = p->gradient.at;
    float *weight = p->weight.at, *first = p->first.at, *second = p->second.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK, length = fast_block_length(p->count, from);
        if (fast_all_finite(length, gradient + from, 1))
            adam_block(factors, length, gradient + from, weight + from, first + from, second + from);
        else
            *loop->finite = false;
    }
}

void FAST(adam)(const kernel_run *run, const void *args)
{
    const op_adam *p = args;
    step_block *block = p->step.at;
    atomic_bool finite = true;
    if (!step_is_finite(block))
        return;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), adam_blocks, &(finite_loop){p, &finite});
    if (!finite)
        block->broken = 1 + p->number;
}
