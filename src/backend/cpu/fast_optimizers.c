#include "backend/cpu/fast_moments.h"

_Static_assert(FAST_BLOCK % MOMENT_BLOCK == 0, "threads take whole blocks of moments");

/* A pass of the loop is FAST_BLOCK values. */
static void run_blocks(const kernel_run *run, parallel_part *part, const void *args, size_t count, step_block *step,
                       uint64_t number)
{
    atomic_bool finite = true;
    if (!step_is_finite(step))
        return;
    parallel_static(fast_threads(run, count), fast_blocks(count), part, &(finite_loop){args, &finite});
    if (!finite)
        step->broken = 1 + number;
}

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

FAST_INLINE void sgd_block(const sgd_factors *o, bool nesterov, size_t count, const float *gradient, float *weight,
                           float *velocity)
{
    if (!velocity)
        sgd_plain(o, count, gradient, weight);
    else if (nesterov)
        sgd_momentum(o, true, count, gradient, weight, velocity);
    else
        sgd_momentum(o, false, count, gradient, weight, velocity);
}

/* Weights or moments in fewer bits: a block of them at a time. */
static void sgd_packed(const op_sgd *p, const sgd_factors *o, size_t begin, size_t length)
{
    float room[2][MOMENT_BLOCK];
    moment_drawn drawn;
    for (size_t from = begin; from < begin + length; from += MOMENT_BLOCK) {
        const size_t count = smaller(begin + length - from, MOMENT_BLOCK);
        float *weight = weight_open(p->weight, from, count, room[0]);
        float *velocity = moment_open(p->velocity, p->velocity_scales, from, count, room[1]);
        sgd_block(o, p->nesterov, count, (const float *)p->gradient.at + from, weight, velocity);
        weight_close(p->weight, p->step.at, p->number, p->offset, from, count, weight);
        if (velocity == room[1])
            moment_pack(p->velocity, p->velocity_scales, from, count, velocity,
                        moment_draw(p->step.at, MOMENT_STREAM + p->number, p->offset + from, drawn), 0);
    }
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
        else if (p->weight.type == REMAT_BF16 || (velocity && p->velocity.type != REMAT_FP32))
            sgd_packed(p, &o, from, length);
        else
            sgd_block(&o, p->nesterov, length, gradient + from, weight + from, velocity ? velocity + from : NULL);
    }
}

void FAST(sgd)(const kernel_run *run, const void *args)
{
    const op_sgd *p = args;
    run_blocks(run, sgd_blocks, p, p->count, p->step.at, p->number);
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

static void adam_packed(const op_adam *p, adam_factors factors, size_t begin, size_t length)
{
    float room[3][MOMENT_BLOCK];
    moment_drawn drawn;
    for (size_t from = begin; from < begin + length; from += MOMENT_BLOCK) {
        const size_t count = smaller(begin + length - from, MOMENT_BLOCK);
        float *weight = weight_open(p->weight, from, count, room[0]);
        float *first = moment_open(p->first, p->first_scales, from, count, room[1]);
        float *second = moment_open(p->second, p->second_scales, from, count, room[2]);
        adam_block(factors, count, (const float *)p->gradient.at + from, weight, first, second);
        weight_close(p->weight, p->step.at, p->number, p->offset, from, count, weight);
        if (first != room[1])
            continue;
        const uint32_t *numbers = moment_draw(p->step.at, MOMENT_STREAM + p->number, p->offset + from, drawn);
        moment_pack(p->first, p->first_scales, from, count, first, numbers, 0);
        moment_pack(p->second, p->second_scales, from, count, second, numbers, 1);
    }
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
        if (!fast_all_finite(length, gradient + from, 1))
            *loop->finite = false;
        else if (p->first.type == REMAT_FP32 && p->weight.type == REMAT_FP32)
            adam_block(factors, length, gradient + from, weight + from, first + from, second + from);
        else
            adam_packed(p, factors, from, length);
    }
}

void FAST(adam)(const kernel_run *run, const void *args)
{
    const op_adam *p = args;
    run_blocks(run, adam_blocks, p, p->count, p->step.at, p->number);
}

/* ---- lion ---- */

typedef struct lion_factors {
    float scale, shrink, rate, beta1, rest1, beta2, rest2;
} lion_factors;

static void lion_block(lion_factors f, size_t count, const float *gradient, float *weight, float *mean)
{
    const fast_vector rate = fast_repeat(f.rate), beta1 = fast_repeat(f.beta1), beta2 = fast_repeat(f.beta2),
                      shrink = fast_repeat(f.shrink);
#define STEP(LOAD, STORE, i, FIRST)                                                                  \
    do {                                                                                             \
        fast_vector g = f.scale * LOAD(gradient + i), m = LOAD(mean + i);                            \
        fast_vector direction = fast_fma(beta1, m, f.rest1 * g);                                     \
        fast_integers moves = (fast_integers)(direction > 0.0f) | (fast_integers)(direction < 0.0f); \
        fast_vector move = (fast_vector)(moves & (fast_integers)fast_with_sign(rate, direction));    \
        STORE(mean + i, fast_fma(beta2, m, f.rest2 * g));                                            \
        STORE(weight + i, fast_fms(LOAD(weight + i), shrink, move));                                 \
    } while (0)
    FAST_EACH(count, STEP);
#undef STEP
}

static void lion_packed(const op_lion *p, lion_factors factors, size_t begin, size_t length)
{
    float room[2][MOMENT_BLOCK];
    moment_drawn drawn;
    for (size_t from = begin; from < begin + length; from += MOMENT_BLOCK) {
        const size_t count = smaller(begin + length - from, MOMENT_BLOCK);
        float *weight = weight_open(p->weight, from, count, room[0]);
        float *mean = moment_open(p->mean, p->mean_scales, from, count, room[1]);
        lion_block(factors, count, (const float *)p->gradient.at + from, weight, mean);
        weight_close(p->weight, p->step.at, p->number, p->offset, from, count, weight);
        if (mean == room[1])
            moment_pack(p->mean, p->mean_scales, from, count, mean,
                        moment_draw(p->step.at, MOMENT_STREAM + p->number, p->offset + from, drawn), 0);
    }
}

static void lion_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_lion *p = loop->args;
    const step_block *step = p->step.at;
    const float rate = (float)step->rate, beta1 = (float)p->beta1, beta2 = (float)p->beta2;
    const lion_factors factors = {
        (float)step->scale, fast_fma_float(-rate, (float)p->decay, 1.0f), rate, beta1, 1.0f - beta1, beta2,
        1.0f - beta2};
    const float *gradient = p->gradient.at;
    float *weight = p->weight.at, *mean = p->mean.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK, length = fast_block_length(p->count, from);
        if (!fast_all_finite(length, gradient + from, 1))
            *loop->finite = false;
        else if (p->mean.type == REMAT_FP32 && p->weight.type == REMAT_FP32)
            lion_block(factors, length, gradient + from, weight + from, mean + from);
        else
            lion_packed(p, factors, from, length);
    }
}

void FAST(lion)(const kernel_run *run, const void *args)
{
    const op_lion *p = args;
    run_blocks(run, lion_blocks, p, p->count, p->step.at, p->number);
}
