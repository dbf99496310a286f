#include "backend/cpu/fast_math.h"

FAST_INLINE void sgd_plain(const kernel_sgd *o, size_t count, const float *gradient, float *weight)
{
#define STEP(LOAD, STORE, i, FIRST)                                   \
    do {                                                              \
        fast_vector w = LOAD(weight + i);                             \
        fast_vector g = o->scale * LOAD(gradient + i) + o->decay * w; \
        STORE(weight + i, w - o->rate * g);                           \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

FAST_INLINE void sgd_momentum(const kernel_sgd *o, bool nesterov, size_t count, const float *gradient, float *weight,
                              float *velocity)
{
#define STEP(LOAD, STORE, i, FIRST)                                            \
    do {                                                                       \
        fast_vector w = LOAD(weight + i);                                      \
        fast_vector g = o->scale * LOAD(gradient + i) + o->decay * w;          \
        fast_vector v = o->momentum * LOAD(velocity + i) + g;                  \
        STORE(velocity + i, v);                                                \
        STORE(weight + i, w - o->rate * (nesterov ? o->momentum * v + g : v)); \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

void FAST(sgd)(const kernel_run *run, const kernel_sgd *options, size_t count, const float *gradient, float *weight,
               float *velocity)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK) {
        const kernel_sgd o = *options; /* a copy of its own: no store can be thought to change it */
        size_t length = fast_block_length(count, from);
        if (!velocity)
            sgd_plain(&o, length, gradient + from, weight + from);
        else if (o.nesterov)
            sgd_momentum(&o, true, length, gradient + from, weight + from, velocity + from);
        else
            sgd_momentum(&o, false, length, gradient + from, weight + from, velocity + from);
    }
}

/* What of the options is the same for all values. */
typedef struct adam_factors {
    float scale, join; /* the gradient is scale * gradient + join * weight */
    float shrink;      /* what is left of the weight */
    float beta1, rest1, beta2, rest2;
    float rate, deviation, epsilon;
} adam_factors;

static adam_factors factors_of(const kernel_adam *o)
{
    return (adam_factors){.scale = o->scale,
                          .join = o->decoupled ? 0.0f : o->decay,
                          .shrink = o->decoupled ? 1.0f - o->rate * o->decay : 1.0f,
                          .beta1 = o->beta1,
                          .rest1 = 1.0f - o->beta1,
                          .beta2 = o->beta2,
                          .rest2 = 1.0f - o->beta2,
                          .rate = o->rate / o->correction1,
                          .deviation = 1.0f / sqrtf(o->correction2),
                          .epsilon = o->epsilon};
}

static void adam_block(adam_factors f, size_t count, const float *gradient, float *weight, float *first, float *second)
{
#define STEP(LOAD, STORE, i, FIRST)                                                              \
    do {                                                                                         \
        fast_vector w = LOAD(weight + i);                                                        \
        fast_vector g = f.scale * LOAD(gradient + i) + f.join * w;                               \
        fast_vector m = f.beta1 * LOAD(first + i) + f.rest1 * g;                                 \
        fast_vector v = f.beta2 * LOAD(second + i) + f.rest2 * g * g;                            \
        STORE(first + i, m);                                                                     \
        STORE(second + i, v);                                                                    \
        STORE(weight + i, w * f.shrink - f.rate * m / (fast_sqrt(v) * f.deviation + f.epsilon)); \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

void FAST(adam)(const kernel_run *run, const kernel_adam *options, size_t count, const float *gradient, float *weight,
                float *first, float *second)
{
    const adam_factors factors = factors_of(options);
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        adam_block(factors, fast_block_length(count, from), gradient + from, weight + from, first + from,
                   second + from);
}
