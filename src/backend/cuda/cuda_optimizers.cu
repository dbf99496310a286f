/* Optimizers: a warp for each block of MOMENT_BLOCK values, eight to a lane. A block in which a gradient is not finite stays as it
 * is. */
#include "backend/cuda/cuda_device.cuh"

#include "base/moment_codes.h"

enum { BLOCK = MOMENT_BLOCK, BLOCKS_AT_ONCE = 8, EACH = BLOCK / WARP };

/* As step_is_finite, but for what a block of the same kernel has noted meanwhile. */
static __device__ __forceinline__ bool may_update(const step_block *block, uint64_t number)
{
    const uint64_t broken = *(const volatile uint64_t *)&block->broken;
    return isfinite(block->loss) && isfinite(block->squares) && (broken == 0 || broken == 1 + number);
}

/* ---- moments of any type ---- */

/* The scale of a block of which each lane has `count` values. */
static __device__ __forceinline__ float scale_of(remat_dtype type, const float values[EACH], int count)
{
    float smallest = SQUARE_MOST, largest = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < count && type == REMAT_INT8) {
            largest = fmaxf(largest, fminf(fabsf(values[j]), FLT_MAX));
        } else if (j < count) {
            const float square = fminf(values[j], SQUARE_MOST);
            largest = fmaxf(largest, square);
            smallest = square > 0 ? fminf(smallest, square) : smallest;
        }
    largest = warp_max(largest);
    return type == REMAT_INT8 ? largest : square_scale(-warp_max(-smallest), largest);
}

/* The lane's values of a block that begins at `from`; `count` of them are there. */
static __device__ __forceinline__ void unpack(tensor_ref t, tensor_ref scales, size_t from, int count, bool eights,
                                              float values[EACH])
{
    if (!t.at)
        return;
    if (eights && count == EACH && (t.type == REMAT_FP32 || t.type == REMAT_BF16)) {
        const eight v = get8(t, from);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            values[j] = v.of[j];
        return;
    }
    const float scale = scales.at ? ((const float *)scales.at)[from / BLOCK] : 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (j >= count)
            continue;
        if (t.type == REMAT_UINT8) {
            values[j] = square_value(((const uint8_t *)t.at)[from + j], scale);
        } else if (t.type == REMAT_INT8) {
            values[j] = mean_value(((const int8_t *)t.at)[from + j], scale);
        } else {
            values[j] = get(t, from + j);
        }
    }
}

/* Which half of its random numbers a tensor is rounded with. */
static __device__ __forceinline__ void pack(tensor_ref t, tensor_ref scales, size_t from, int count, bool eights,
                                            const float values[EACH], const stream &random, uint64_t offset, int half)
{
    if (!t.at)
        return;
    if (t.type == REMAT_FP32) {
        if (eights && count == EACH) {
            eight v;
#pragma unroll
            for (int j = 0; j < EACH; j++)
                v.of[j] = values[j];
            put8(t, from, v);
        } else {
#pragma unroll
            for (int j = 0; j < EACH; j++)
                if (j < count)
                    ((float *)t.at)[from + j] = values[j];
        }
        return;
    }
    const float scale = scales.at ? scale_of(t.type, values, count) : 0;
    if (scales.at && threadIdx.x % WARP == 0)
        ((float *)scales.at)[from / BLOCK] = scale;
    const uint4 a = draw(random, (offset + from) / 4), b = draw(random, (offset + from) / 4 + 1);
    const uint32_t numbers[EACH] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const uint32_t number = numbers[j] >> 16 * half & 0xffff;
        if (j >= count)
            continue;
        if (t.type == REMAT_BF16) {
            ((uint16_t *)t.at)[from + j] = (uint16_t)((__float_as_uint(values[j]) + number) >> 16);
        } else if (t.type == REMAT_UINT8) {
            ((uint8_t *)t.at)[from + j] = (uint8_t)square_code(values[j], scale, number);
        } else {
            const int code = (int)mean_code(fabsf(values[j]), scale, number);
            ((int8_t *)t.at)[from + j] = (int8_t)(values[j] < 0 ? -code : code);
        }
    }
}

/* ---- the loop over blocks ---- */

/* Parameters that are updated together. */
enum { MOST_UPDATED = 128 };

template <class P> struct updated_parameters {
    P of[MOST_UPDATED];
    unsigned first[MOST_UPDATED + 1]; /* block of each; the last one is the number of blocks */
    unsigned parameters;
};

template <class P> static __device__ __forceinline__ unsigned parameter_of_block(const updated_parameters<P> &all)
{
    unsigned low = 0, high = all.parameters; /* first[low] <= blockIdx.x < first[high] */
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        if (all.first[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __device__ __forceinline__ void note_broken(step_block *block, uint64_t number)
{
    if (threadIdx.x % WARP == 0)
        *(volatile uint64_t *)&block->broken = 1 + number;
}

/* RULE: how gradients, weights and up to two moments change, value by value; its members say what is kept where. */
template <class RULE, class P>
__global__ void __launch_bounds__(BLOCKS_AT_ONCE *WARP) update(const __grid_constant__ updated_parameters<P> all)
{
    const unsigned low = parameter_of_block(all);
    const RULE rule(all.of[low]);
    const P &p = all.of[low];
    step_block *block = (step_block *)p.step.at;
    const size_t count = p.count;
    const tensor_ref gradient = p.gradient;
    const bool eights = rule.aligned();
    if (!may_update(block, p.number))
        return;
    const stream random = stream_of(block, MOMENT_STREAM + (uint32_t)p.number);
    const stream weight_random = stream_of(block, WEIGHT_STREAM + (uint32_t)p.number);
    const size_t blocks = (count + BLOCK - 1) / BLOCK, wide = all.first[low + 1] - all.first[low];
    for (size_t b = (size_t)(blockIdx.x - all.first[low]) * BLOCKS_AT_ONCE + threadIdx.x / WARP; b < blocks;
         b += wide * BLOCKS_AT_ONCE) {
        const size_t from = b * BLOCK + threadIdx.x % WARP * EACH;
        const int mine = from >= count ? 0 : count - from < EACH ? (int)(count - from) : EACH;
        float g[EACH] = {}, w[EACH] = {}, first[EACH] = {}, second[EACH] = {};
        unpack(gradient, rule.none(), from, mine, eights, g);
        bool finite = true;
#pragma unroll
        for (int j = 0; j < EACH; j++)
            finite &= isfinite(rule.checked(g[j])) != 0;
        if (!__all_sync(ALL_LANES, finite)) {
            note_broken(block, p.number);
            continue;
        }
        unpack(p.weight, rule.none(), from, mine, eights, w);
        unpack(rule.first(), rule.first_scales(), from, mine, eights, first);
        unpack(rule.second(), rule.second_scales(), from, mine, eights, second);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            rule.change(g[j], w[j], first[j], second[j]);
        pack(p.weight, rule.none(), from, mine, eights, w, weight_random, p.offset, 0);
        pack(rule.first(), rule.first_scales(), from, mine, eights, first, random, p.offset, 0);
        pack(rule.second(), rule.second_scales(), from, mine, eights, second, random, p.offset, 1);
    }
}

/* ---- the same where everything is in fp32 ----
 *
 * Nothing is rounded and nothing has scales, so that the kernel needs few registers and all loads of a block are on their way at once: it
 * is as fast as the memory. A lane has values 4 l .. 4 l + 3 of both halves of a block. The results are those of the kernel above. */
enum { HALVES_OF_BLOCK = 2, HALF = BLOCK / HALVES_OF_BLOCK };

static __device__ __forceinline__ void load_fours(const void *from, size_t at, size_t count, float4 to[HALVES_OF_BLOCK])
{
#pragma unroll
    for (int h = 0; h < HALVES_OF_BLOCK; h++) {
        const size_t i = at + h * HALF;
        to[h] = from && i < count ? *(const float4 *)((const float *)from + i) : make_float4(0, 0, 0, 0);
    }
}

static __device__ __forceinline__ void store_fours(void *to, size_t at, size_t count,
                                                   const float4 from[HALVES_OF_BLOCK])
{
#pragma unroll
    for (int h = 0; h < HALVES_OF_BLOCK; h++)
        if (to && at + h * HALF < count)
            *(float4 *)((float *)to + at + h * HALF) = from[h];
}

template <class RULE>
static __device__ __forceinline__ bool are_finite(const RULE &rule, const float4 g[HALVES_OF_BLOCK])
{
    bool finite = true;
#pragma unroll
    for (int h = 0; h < HALVES_OF_BLOCK; h++)
        finite &= isfinite(rule.checked(g[h].x)) && isfinite(rule.checked(g[h].y)) && isfinite(rule.checked(g[h].z)) &&
                  isfinite(rule.checked(g[h].w));
    return __all_sync(ALL_LANES, finite);
}

template <class RULE, class P>
__global__ void __launch_bounds__(BLOCKS_AT_ONCE *WARP, 4)
    update_full(const __grid_constant__ updated_parameters<P> all)
{
    const unsigned low = parameter_of_block(all);
    const P &p = all.of[low];
    const size_t count = p.count, wide = (size_t)(all.first[low + 1] - all.first[low]) * BLOCKS_AT_ONCE * BLOCK;
    size_t at = (size_t)(blockIdx.x - all.first[low]) * BLOCKS_AT_ONCE * BLOCK + threadIdx.x / WARP * BLOCK +
                threadIdx.x % WARP * 4;
    float4 g[HALVES_OF_BLOCK], w[HALVES_OF_BLOCK], first[HALVES_OF_BLOCK], second[HALVES_OF_BLOCK];
    const size_t lane = threadIdx.x % WARP * 4; /* all lanes of a warp go on alike */
    load_fours(p.gradient.at, at, count, g);
    load_fours(p.weight.at, at, count, w);
    const RULE rule(p);
    step_block *block = (step_block *)p.step.at;
    load_fours(rule.first().at, at, count, first);
    load_fours(rule.second().at, at, count, second);
    if (!may_update(block, p.number))
        return;
    while (at - lane < count) {
        if (!are_finite(rule, g)) {
            note_broken(block, p.number);
        } else {
#pragma unroll
            for (int h = 0; h < HALVES_OF_BLOCK; h++) {
                rule.change(g[h].x, w[h].x, first[h].x, second[h].x);
                rule.change(g[h].y, w[h].y, first[h].y, second[h].y);
                rule.change(g[h].z, w[h].z, first[h].z, second[h].z);
                rule.change(g[h].w, w[h].w, first[h].w, second[h].w);
            }
            store_fours(p.weight.at, at, count, w);
            store_fours(rule.first().at, at, count, first);
            store_fours(rule.second().at, at, count, second);
        }
        at += wide;
        load_fours(p.gradient.at, at, count, g);
        load_fours(p.weight.at, at, count, w);
        load_fours(rule.first().at, at, count, first);
        load_fours(rule.second().at, at, count, second);
    }
}

struct with_nothing {
    __device__ tensor_ref none() const
    {
        return tensor_ref{NULL, REMAT_FP32};
    }
    __device__ tensor_ref second() const
    {
        return none();
    }
    __device__ tensor_ref second_scales() const
    {
        return none();
    }
    __device__ float checked(float g) const
    {
        return g;
    }
    __device__ bool fits(tensor_ref t) const
    {
        return (uintptr_t)t.at % 16 == 0;
    }
};

struct sgd_rule : with_nothing {
    const op_sgd &p;
    float rate, scale, momentum, decay;
    __device__ sgd_rule(const op_sgd &of) : p(of)
    {
        const step_block *block = (const step_block *)p.step.at;
        rate = (float)block->rate, scale = (float)block->scale;
        momentum = (float)p.momentum, decay = (float)p.decay;
    }
    __device__ bool aligned() const
    {
        return fits(p.gradient) && fits(p.weight) && fits(p.velocity);
    }
    __device__ tensor_ref first() const
    {
        return p.velocity;
    }
    __device__ tensor_ref first_scales() const
    {
        return p.velocity_scales;
    }
    __device__ float checked(float g) const
    {
        return rate * g;
    }
    __device__ void change(float gradient, float &w, float &velocity, float &) const
    {
        const float g = scale * gradient + decay * w;
        float step = g;
        if (p.velocity.at) {
            velocity = momentum * velocity + g;
            step = p.nesterov ? g + momentum * velocity : velocity;
        }
        w -= rate * step;
    }
};

struct adam_rule : with_nothing {
    const op_adam &p;
    float scale, beta1, beta2, epsilon, shrink, decay, rate, deviation;
    __device__ adam_rule(const op_adam &of) : p(of)
    {
        const step_block *block = (const step_block *)p.step.at;
        scale = (float)block->scale, beta1 = (float)p.beta1, beta2 = (float)p.beta2, epsilon = (float)p.epsilon;
        decay = (float)p.decay, shrink = (float)block->rate * decay;
        rate = (float)block->rate / (float)block->correction1, deviation = sqrtf((float)block->correction2);
    }
    __device__ bool aligned() const
    {
        return fits(p.gradient) && fits(p.weight) && fits(p.first) && fits(p.second);
    }
    __device__ tensor_ref first() const
    {
        return p.first;
    }
    __device__ tensor_ref first_scales() const
    {
        return p.first_scales;
    }
    __device__ tensor_ref second() const
    {
        return p.second;
    }
    __device__ tensor_ref second_scales() const
    {
        return p.second_scales;
    }
    __device__ void change(float gradient, float &w, float &mean, float &square) const
    {
        float g = scale * gradient;
        if (p.decoupled)
            w -= shrink * w;
        else
            g += decay * w;
        mean = beta1 * mean + (1 - beta1) * g;
        square = beta2 * square + (1 - beta2) * g * g;
        w -= rate * mean / (sqrtf(square) / deviation + epsilon);
    }
};

struct lion_rule : with_nothing {
    const op_lion &p;
    float rate, scale, shrink, beta1, beta2;
    __device__ lion_rule(const op_lion &of) : p(of)
    {
        const step_block *block = (const step_block *)p.step.at;
        rate = (float)block->rate, scale = (float)block->scale, shrink = rate * (float)p.decay;
        beta1 = (float)p.beta1, beta2 = (float)p.beta2;
    }
    __device__ bool aligned() const
    {
        return fits(p.gradient) && fits(p.weight) && fits(p.mean);
    }
    __device__ tensor_ref first() const
    {
        return p.mean;
    }
    __device__ tensor_ref first_scales() const
    {
        return p.mean_scales;
    }
    __device__ void change(float gradient, float &w, float &mean, float &) const
    {
        const float g = scale * gradient, direction = beta1 * mean + (1 - beta1) * g;
        w -= shrink * w;
        w -= direction > 0 ? rate : direction < 0 ? -rate : 0;
        mean = beta2 * mean + (1 - beta2) * g;
    }
};

/* Enough blocks to fill a large device; each goes over its parameter in steps of all. */
static const unsigned MOST_BLOCKS = 2048;

static bool is_full(tensor_ref t)
{
    return !t.at || (t.type == REMAT_FP32 && (uintptr_t)t.at % 16 == 0);
}

/* Whether the kernel for fp32 takes them: moments with scales are in 8 bits. */
static bool is_all_full(const op_sgd *p)
{
    return p->count % 4 == 0 && is_full(p->gradient) && is_full(p->weight) && is_full(p->velocity);
}
static bool is_all_full(const op_adam *p)
{
    return p->count % 4 == 0 && is_full(p->gradient) && is_full(p->weight) && is_full(p->first) && is_full(p->second);
}
static bool is_all_full(const op_lion *p)
{
    return p->count % 4 == 0 && is_full(p->gradient) && is_full(p->weight) && is_full(p->mean);
}

/* Parameters of one kind that follow each other are updated together. */
template <class RULE, class P> static cudaError_t launch(const cuda_run *run, const void *const *calls, size_t count)
{
    updated_parameters<P> all;
    for (size_t done = 0; done < count;) {
        const bool full = is_all_full((const P *)calls[done]);
        all.parameters = 0;
        all.first[0] = 0;
        for (; done < count && all.parameters < MOST_UPDATED; done++) {
            const P *p = (const P *)calls[done];
            const unsigned at = all.parameters, blocks = blocks_for((p->count + BLOCK - 1) / BLOCK, BLOCKS_AT_ONCE);
            if (p->count == 0)
                continue;
            if (is_all_full(p) != full)
                break;
            all.of[at] = *p;
            all.first[at + 1] = all.first[at] + (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
            all.parameters++;
        }
        if (all.parameters && full)
            update_full<RULE, P><<<all.first[all.parameters], BLOCKS_AT_ONCE * WARP, 0, run->stream>>>(all);
        else if (all.parameters)
            update<RULE, P><<<all.first[all.parameters], BLOCKS_AT_ONCE * WARP, 0, run->stream>>>(all);
    }
    return cudaGetLastError();
}

#define OPTIMIZER(name)                                                                       \
    cudaError_t cuda_many_##name(const cuda_run *run, const void *const *calls, size_t count) \
    {                                                                                         \
        return launch<name##_rule, op_##name>(run, calls, count);                             \
    }                                                                                         \
    cudaError_t cuda_##name(const cuda_run *run, const op_##name *p)                          \
    {                                                                                         \
        const void *const calls[] = {p};                                                      \
        return cuda_many_##name(run, calls, 1);                                               \
    }
OPTIMIZER(sgd)
OPTIMIZER(adam)
OPTIMIZER(lion)

/* ---- adafactor ----
 *
 * The scratch memory holds partial sums, and the numbers that one kernel leaves for the next:
 *
 *     | facts | sums of the weights' and of the updates' squares, part by part |
 */
enum { FACTOR_THREADS = 256, FACTOR_PARTS = 256 };

struct facts {
    uint32_t broken;
    double mean, rate;
};

__global__ void look_for_broken(op_adafactor p, facts *found)
{
    const size_t count = p.rows * p.columns, step = (size_t)gridDim.x * blockDim.x;
    bool finite = true;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        finite &= isfinite(get(p.gradient, i)) != 0;
    if (!finite)
        found->broken = 1; /* all write the same */
}

static __device__ __forceinline__ bool may_go_on(const op_adafactor &p, const facts *found)
{
    return may_update((const step_block *)p.step.at, p.number) && !found->broken;
}

static __device__ __forceinline__ float moved(float old, double to, double share)
{
    return (float)((double)old + share * (to - (double)old));
}

__global__ void square_rows(op_adafactor p, const facts *found)
{
    const step_block *block = (const step_block *)p.step.at;
    const size_t row = blockIdx.x;
    if (!may_go_on(p, found))
        return;
    double sum = 0;
    for (size_t c = threadIdx.x; c < p.columns; c += FACTOR_THREADS) {
        const double g = block->scale * (double)get(p.gradient, row * p.columns + c);
        sum += g * g;
    }
    sum = block_sum<FACTOR_THREADS>(sum);
    if (threadIdx.x == 0)
        put(p.row_squares, row, moved(get(p.row_squares, row), sum / (double)p.columns, block->correction1));
}

/* Of columns, or of single values where there are no rows. */
__global__ void square_columns(op_adafactor p, const facts *found)
{
    const step_block *block = (const step_block *)p.step.at;
    const size_t c = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= p.columns || !may_go_on(p, found))
        return;
    double sum = 0;
    for (size_t r = 0; r < p.rows; r++) {
        const double g = block->scale * (double)get(p.gradient, r * p.columns + c);
        sum += g * g;
    }
    const tensor_ref to = p.column_squares.at ? p.column_squares : p.row_squares;
    put(to, c, moved(get(to, c), sum / (double)p.rows, block->correction1));
}

__global__ void find_mean(op_adafactor p, facts *found)
{
    double sum = 0;
    for (size_t r = threadIdx.x; p.column_squares.at && r < p.rows; r += FACTOR_THREADS)
        sum += (double)get(p.row_squares, r) / (double)p.rows;
    sum = block_sum<FACTOR_THREADS>(sum);
    if (threadIdx.x == 0)
        found->mean = sum > OPERATION_ADAFACTOR_EPSILON ? sum : OPERATION_ADAFACTOR_EPSILON;
}

static __device__ double factored(const op_adafactor &p, const facts *found, size_t i)
{
    const step_block *block = (const step_block *)p.step.at;
    const size_t row = i / p.columns, column = i % p.columns;
    const double least = OPERATION_ADAFACTOR_EPSILON * OPERATION_ADAFACTOR_EPSILON;
    const double square = p.column_squares.at
                              ? (double)get(p.row_squares, row) * (double)get(p.column_squares, column) / found->mean
                              : (double)get(p.row_squares, column);
    return block->scale * (double)get(p.gradient, i) / sqrt(square > least ? square : least);
}

__global__ void measure_updates(op_adafactor p, const facts *found, double *parts)
{
    const size_t count = p.rows * p.columns, step = (size_t)gridDim.x * FACTOR_THREADS;
    double weights = 0, updates = 0;
    for (size_t i = (size_t)blockIdx.x * FACTOR_THREADS + threadIdx.x; i < count; i += step) {
        const double w = get(p.weight, i), u = factored(p, found, i);
        weights += w * w;
        updates += u * u;
    }
    weights = block_sum<FACTOR_THREADS>(weights);
    updates = block_sum<FACTOR_THREADS>(updates);
    if (threadIdx.x == 0)
        parts[2 * blockIdx.x] = weights, parts[2 * blockIdx.x + 1] = updates;
}

__global__ void find_rate(op_adafactor p, facts *found, const double *parts)
{
    step_block *block = (step_block *)p.step.at;
    const double count = (double)p.rows * (double)p.columns;
    double weights = threadIdx.x < FACTOR_PARTS ? parts[2 * threadIdx.x] : 0;
    double updates = threadIdx.x < FACTOR_PARTS ? parts[2 * threadIdx.x + 1] : 0;
    weights = block_sum<FACTOR_THREADS>(weights);
    updates = block_sum<FACTOR_THREADS>(updates);
    if (threadIdx.x != 0)
        return;
    const double size = sqrt(weights / count), length = sqrt(updates / count) / p.threshold;
    found->rate = (size > p.least_scale ? size : p.least_scale) * block->correction2 / (length > 1 ? length : 1);
    if (found->broken && block->broken == 0 && isfinite(block->loss) && isfinite(block->squares))
        block->broken = 1 + p.number;
}

__global__ void take_updates(op_adafactor p, const facts *found)
{
    const step_block *block = (const step_block *)p.step.at;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.rows * p.columns || !may_go_on(p, found))
        return;
    const float w =
        (float)((double)get(p.weight, i) * (1 - block->rate * p.decay) - found->rate * factored(p, found, i));
    if (p.weight.type == REMAT_FP32) {
        put(p.weight, i, w);
        return;
    }
    const uint4 drawn = draw(stream_of(block, WEIGHT_STREAM + (uint32_t)p.number), i / 4);
    const uint32_t numbers[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    ((uint16_t *)p.weight.at)[i] = (uint16_t)((__float_as_uint(w) + (numbers[i % 4] & 0xffff)) >> 16);
}

cudaError_t cuda_adafactor(const cuda_run *run, const op_adafactor *p)
{
    facts *found = (facts *)run->scratch;
    double *parts = (double *)run->scratch + 64;
    const size_t count = p->rows * p->columns;
    if (!count)
        return cudaSuccess;
    const cudaError_t cleared = cudaMemsetAsync(found, 0, sizeof *found, run->stream);
    if (cleared != cudaSuccess)
        return cleared;
    look_for_broken<<<FACTOR_PARTS, FACTOR_THREADS, 0, run->stream>>>(*p, found);
    if (p->column_squares.at)
        square_rows<<<(unsigned)p->rows, FACTOR_THREADS, 0, run->stream>>>(*p, found);
    square_columns<<<blocks_for(p->columns, 64), 64, 0, run->stream>>>(*p, found);
    find_mean<<<1, FACTOR_THREADS, 0, run->stream>>>(*p, found);
    measure_updates<<<FACTOR_PARTS, FACTOR_THREADS, 0, run->stream>>>(*p, found, parts);
    find_rate<<<1, FACTOR_THREADS, 0, run->stream>>>(*p, found, parts);
    take_updates<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, found);
    return cudaGetLastError();
}
