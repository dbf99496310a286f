/* Losses. Every row, or every block of values, leaves its loss in the scratch memory; one block adds them up in order. */
#include "backend/cuda/cuda_device.cuh"

enum { LOSS_THREADS = 512, ADD_THREADS = 256 };
static const size_t LOSS_VALUES = 4096, MOST_LOSS_PARTS = 1024;

/* *to += the sum of all parts: thread by thread, then over the threads. */
template <class T> __global__ void add_parts(const double *parts, size_t count, T *to)
{
    double sum = 0;
    for (size_t i = threadIdx.x; i < count; i += ADD_THREADS)
        sum += parts[i];
    sum = block_sum<ADD_THREADS>(sum);
    if (threadIdx.x == 0)
        *to += (T)sum;
}

/* ---- cross entropy ---- */

/* The largest value and the sum of exp(value - largest), of one thread or of several. */
struct tops {
    float largest, sum;
};

static __device__ __forceinline__ tops joined(tops a, tops b)
{
    const float largest = fmaxf(a.largest, b.largest);
    /* Where both are -infinity the difference is NaN. */
    const float by_a = a.largest == largest ? 1 : __expf(a.largest - largest);
    const float by_b = b.largest == largest ? 1 : __expf(b.largest - largest);
    return tops{largest, a.sum * by_a + b.sum * by_b};
}

static __device__ tops tops_of_block(tops mine)
{
    __shared__ tops of[LOSS_THREADS / WARP];
#pragma unroll
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        const tops other = {__shfl_xor_sync(ALL_LANES, mine.largest, apart),
                            __shfl_xor_sync(ALL_LANES, mine.sum, apart)};
        /* Both lanes of a pair join in the same order, so that they get the same bits. */
        mine = threadIdx.x % WARP & apart ? joined(other, mine) : joined(mine, other);
    }
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        of[threadIdx.x / WARP] = mine;
    __syncthreads();
    tops all = of[0];
#pragma unroll
    for (int w = 1; w < LOSS_THREADS / WARP; w++)
        all = joined(all, of[w]);
    return all;
}

static __device__ __forceinline__ void take(tops &mine, float x)
{
    if (x > mine.largest) {
        mine.sum = mine.sum * __expf(mine.largest - x) + 1;
        mine.largest = x;
    } else {
        mine.sum += isnan(x) ? x : mine.largest == -INFINITY ? 0 : __expf(x - mine.largest);
    }
}

template <bool EIGHTS>
__global__ void __launch_bounds__(LOSS_THREADS)
    cross_entropy_rows(op_cross_entropy p, const double *weights, double *losses)
{
    const size_t row = blockIdx.x, from = row * p.columns;
    const int32_t label = ((const int32_t *)p.labels.at)[row];
    tops mine = {-INFINITY, 0};
    if (EIGHTS)
        for (size_t i = 8 * threadIdx.x; i < p.columns; i += 8 * LOSS_THREADS) {
            const eight x = get8(p.logits, from + i);
            float largest = x.of[0];
#pragma unroll
            for (int j = 1; j < 8; j++)
                largest = fmaxf(largest, x.of[j]);
            if (largest > mine.largest) {
                mine.sum *= __expf(mine.largest - largest);
                mine.largest = largest;
            }
#pragma unroll
            for (int j = 0; j < 8; j++)
                mine.sum += mine.largest == -INFINITY ? 0 : __expf(x.of[j] - mine.largest);
        }
    else
        for (size_t i = threadIdx.x; i < p.columns; i += LOSS_THREADS)
            take(mine, get(p.logits, from + i));
    const tops all = tops_of_block(mine);
    const float smooth = (float)(p.smoothing / (double)p.columns), rest = (float)(1 - p.smoothing);
    const float log_sum = logf(all.sum), inverse = 1 / all.sum;
    /* The share of a column in the target: `smooth`, and `rest` for the label's, times its weight. */
    float shares = 1;
    double loss = 0;
    const bool plain = p.smoothing == 0 && !weights;
    if (plain && label >= 0 && threadIdx.x == 0)
        loss = (double)log_sum - ((double)get(p.logits, from + label) - all.largest);
    if (!plain) {
        float total = 0;
        for (size_t i = threadIdx.x; i < p.columns; i += LOSS_THREADS) {
            const float share = (smooth + ((int32_t)i == label ? rest : 0)) * (weights ? (float)weights[i] : 1);
            total += share;
            if (label >= 0 && share != 0) /* a logit may be -infinity elsewhere */
                loss += (double)share * ((double)log_sum - ((double)get(p.logits, from + i) - all.largest));
        }
        shares = block_sum<LOSS_THREADS>(total);
        loss = block_sum<LOSS_THREADS>(loss);
    }
    __syncthreads(); /* the label's logit has been read: the gradient may replace it */
    if (threadIdx.x == 0)
        losses[row] = label >= 0 ? loss : 0;
    if (!p.gradient.at)
        return;
    const step_block *block = (const step_block *)p.step.at;
    const double divisor = p.by_labels && block->labels ? (double)block->labels : 1;
    const float factor = label >= 0 ? (float)(p.factor / divisor) : 0, chance_factor = shares * factor * inverse;
    if (EIGHTS && plain) {
        for (size_t i = 8 * threadIdx.x; i < p.columns; i += 8 * LOSS_THREADS) {
            eight x = get8(p.logits, from + i);
#pragma unroll
            for (int j = 0; j < 8; j++)
                x.of[j] = label < 0 ? 0
                                    : __expf(x.of[j] - all.largest) * chance_factor -
                                          ((int32_t)(i + j) == label ? factor : 0);
            put8(p.gradient, from + i, x);
        }
        return;
    }
    for (size_t i = threadIdx.x; i < p.columns; i += LOSS_THREADS) {
        const float share = (smooth + ((int32_t)i == label ? rest : 0)) * (weights ? (float)weights[i] : 1);
        const float x = get(p.logits, from + i);
        put(p.gradient, from + i, label < 0 ? 0 : __expf(x - all.largest) * chance_factor - share * factor);
    }
}

cudaError_t cuda_cross_entropy(const cuda_run *run, const op_cross_entropy *p)
{
    step_block *block = (step_block *)p->step.at;
    double *losses = (double *)run->scratch, *weights = NULL;
    if (!p->rows || !p->columns)
        return cudaSuccess;
    if ((p->rows + p->columns) * sizeof(double) > run->scratch_bytes)
        return cudaErrorInvalidValue;
    if (p->weights) {
        weights = losses + p->rows;
        const cudaError_t copied =
            cudaMemcpyAsync(weights, p->weights, p->columns * sizeof *weights, cudaMemcpyHostToDevice, run->stream);
        if (copied != cudaSuccess)
            return copied;
    }
    const bool eights = p->columns % 8 == 0 && by_eights(p->logits) && by_eights(p->gradient);
    if (eights)
        cross_entropy_rows<true><<<(unsigned)p->rows, LOSS_THREADS, 0, run->stream>>>(*p, weights, losses);
    else
        cross_entropy_rows<false><<<(unsigned)p->rows, LOSS_THREADS, 0, run->stream>>>(*p, weights, losses);
    add_parts<<<1, ADD_THREADS, 0, run->stream>>>(losses, p->rows, &block->loss_sum);
    return cudaGetLastError();
}

__global__ void __launch_bounds__(ADD_THREADS) find_largest(op_count_correct p, double *right)
{
    __shared__ float largest[ADD_THREADS];
    __shared__ uint32_t places[ADD_THREADS];
    const size_t row = blockIdx.x, from = row * p.columns;
    const int32_t label = ((const int32_t *)p.labels.at)[row];
    /* As a loop that goes on from column 0: a value that is not larger, such as NaN, changes nothing. */
    const float first = get(p.logits, from);
    float best = first;
    uint32_t place = 0;
    for (size_t i = threadIdx.x; i < p.columns && !isnan(first); i += ADD_THREADS) {
        const float x = get(p.logits, from + i);
        if (x > best)
            best = x, place = (uint32_t)i;
    }
    largest[threadIdx.x] = best;
    places[threadIdx.x] = place;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int t = 1; t < ADD_THREADS; t++)
        if (largest[t] > best || (largest[t] == best && places[t] < place))
            best = largest[t], place = places[t];
    right[row] = label >= 0 && (uint32_t)label == place;
}

cudaError_t cuda_count_correct(const cuda_run *run, const op_count_correct *p)
{
    step_block *block = (step_block *)p->step.at;
    double *right = (double *)run->scratch;
    if (!p->rows || !p->columns)
        return cudaSuccess;
    if (p->rows * sizeof(double) > run->scratch_bytes)
        return cudaErrorInvalidValue;
    find_largest<<<(unsigned)p->rows, ADD_THREADS, 0, run->stream>>>(*p, right);
    add_parts<<<1, ADD_THREADS, 0, run->stream>>>(right, p->rows, &block->correct);
    return cudaGetLastError();
}

/* ---- losses of values ---- */

struct squared {
    __device__ double operator()(double x, double target, double *slope) const
    {
        *slope = 2 * (x - target);
        return (x - target) * (x - target);
    }
};

struct huber {
    double limit;
    __device__ double operator()(double x, double target, double *slope) const
    {
        const double difference = x - target, distance = fabs(difference);
        if (distance <= limit) {
            *slope = difference;
            return 0.5 * difference * difference;
        }
        *slope = difference > 0 ? limit : difference < 0 ? -limit : difference; /* NaN stays NaN */
        return limit * (distance - 0.5 * limit);
    }
};

struct logistic {
    double weight_of_target;
    __device__ double operator()(double x, double target, double *slope) const
    {
        const double small = exp(-fabs(x)), weight = 1 + (weight_of_target - 1) * target;
        const double opposite = x > 0 ? small / (1 + small) : 1 / (1 + small);
        *slope = (1 - target) - weight * opposite;
        return (1 - target) * x + weight * (log1p(small) + (x < 0 ? -x : 0));
    }
};

template <class F>
__global__ void sum_losses(tensor_ref x, tensor_ref target, tensor_ref gradient, size_t count, double factor,
                           bool accumulate, F loss, double *parts)
{
    const size_t step = (size_t)gridDim.x * ADD_THREADS;
    double sum = 0;
    for (size_t i = (size_t)blockIdx.x * ADD_THREADS + threadIdx.x; i < count; i += step) {
        double slope;
        sum += loss((double)get(x, i), (double)get(target, i), &slope);
        if (gradient.at)
            put(gradient, i, (float)((accumulate ? (double)get(gradient, i) : 0) + slope * factor));
    }
    sum = block_sum<ADD_THREADS>(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

template <class F>
static cudaError_t sum_all(const cuda_run *run, tensor_ref x, tensor_ref target, tensor_ref gradient, tensor_ref step,
                           size_t count, double factor, bool accumulate, F loss)
{
    step_block *block = (step_block *)step.at;
    double *parts = (double *)run->scratch;
    const size_t wanted = (count + LOSS_VALUES - 1) / LOSS_VALUES,
                 blocks = wanted < MOST_LOSS_PARTS ? wanted : MOST_LOSS_PARTS;
    if (count == 0)
        return cudaSuccess;
    sum_losses<<<(unsigned)blocks, ADD_THREADS, 0, run->stream>>>(x, target, gradient, count, factor, accumulate, loss,
                                                                  parts);
    add_parts<<<1, ADD_THREADS, 0, run->stream>>>(parts, blocks, &block->loss_sum);
    return cudaGetLastError();
}

cudaError_t cuda_squared_error(const cuda_run *run, const op_squared_error *p)
{
    return sum_all(run, p->x, p->target, p->gradient, p->step, p->count, p->factor, p->accumulate, squared());
}

cudaError_t cuda_pointwise_loss(const cuda_run *run, const op_pointwise_loss *p)
{
    if (p->kind == LOSS_HUBER)
        return sum_all(run, p->x, p->target, p->gradient, p->step, p->count, p->factor, p->accumulate,
                       huber{p->parameter});
    return sum_all(run, p->x, p->target, p->gradient, p->step, p->count, p->factor, p->accumulate,
                   logistic{p->parameter});
}
