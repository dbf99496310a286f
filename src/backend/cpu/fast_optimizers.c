#include "backend/cpu/fast_math.h"

FAST_INLINE void sgd_plain(const kernel_sgd *o, size_t count, const float *gradient, float *weight)
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

FAST_INLINE void sgd_momentum(const kernel_sgd *o, bool nesterov, size_t count, const float *gradient, float *weight,
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

/* The factors that are the same for all values. */
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
                          .shrink = o->decoupled ? fast_fma_float(-o->rate, o->decay, 1.0f) : 1.0f,
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

void FAST(adam)(const kernel_run *run, const kernel_adam *options, size_t count, const float *gradient, float *weight,
                float *first, float *second)
{
    const adam_factors factors = factors_of(options);
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        adam_block(factors, fast_block_length(count, from), gradient + from, weight + from, first + from,
                   second + from);
}
