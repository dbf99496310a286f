/* Operations value by value. */
#include "backend/cuda/cuda_activation.cuh"
#include "backend/cuda/cuda_blocks.cuh"

/* out = f(inputs), for each value. A functor has operator()(const float in[INPUTS], float old), where `old` is the value before. */
template <int INPUTS> struct inputs_of {
    tensor_ref of[INPUTS > 0 ? INPUTS : 1];
};

template <int INPUTS, bool READS_OLD, class F>
__global__ void map_eights(inputs_of<INPUTS> in, tensor_ref out, size_t eights, F f)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t e = (size_t)blockIdx.x * blockDim.x + threadIdx.x; e < eights; e += step) {
        eight x[INPUTS > 0 ? INPUTS : 1], old = {}, y;
#pragma unroll
        for (int k = 0; k < INPUTS; k++)
            x[k] = get8(in.of[k], 8 * e);
        if (READS_OLD)
            old = get8(out, 8 * e);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float values[INPUTS > 0 ? INPUTS : 1];
#pragma unroll
            for (int k = 0; k < INPUTS; k++)
                values[k] = x[k].of[j];
            y.of[j] = f(values, old.of[j]);
        }
        put8(out, 8 * e, y);
    }
}

template <int INPUTS, bool READS_OLD, class F>
__global__ void map_values(inputs_of<INPUTS> in, tensor_ref out, size_t first, size_t count, F f)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = first + (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        float values[INPUTS > 0 ? INPUTS : 1];
#pragma unroll
        for (int k = 0; k < INPUTS; k++)
            values[k] = get(in.of[k], i);
        put(out, i, f(values, READS_OLD ? get(out, i) : 0));
    }
}

template <int INPUTS, bool READS_OLD, class F>
static cudaError_t map(const cuda_run *run, inputs_of<INPUTS> in, tensor_ref out, size_t count, F f)
{
    bool aligned = by_eights(out);
    for (int k = 0; k < INPUTS; k++)
        aligned = aligned && by_eights(in.of[k]);
    const size_t eights = aligned ? count / 8 : 0;
    if (eights)
        map_eights<INPUTS, READS_OLD><<<blocks_for(eights, 256), 256, 0, run->stream>>>(in, out, eights, f);
    if (8 * eights < count)
        map_values<INPUTS, READS_OLD>
            <<<blocks_for(count - 8 * eights, 256), 256, 0, run->stream>>>(in, out, 8 * eights, count, f);
    return cudaGetLastError();
}

/* With `adds`, the result is added to what is there. */
template <class F> struct added {
    F f;
    __device__ float operator()(const float *in, float old) const
    {
        return old + f(in, 0);
    }
};

template <int INPUTS, class F>
static cudaError_t map_adding(const cuda_run *run, inputs_of<INPUTS> in, tensor_ref out, size_t count, bool adds, F f)
{
    return adds ? map<INPUTS, true>(run, in, out, count, added<F>{f}) : map<INPUTS, false>(run, in, out, count, f);
}

/* ---- the operations ---- */

/* The kind is a template argument: a switch in the loop would cost more than the memory does. */
template <activation_kind KIND, bool QUICK> struct activated {
    __device__ float operator()(const float *in, float) const
    {
        return activation<KIND, QUICK>(in[0]);
    }
};
template <activation_kind KIND, bool QUICK> struct derived {
    __device__ float operator()(const float *in, float) const
    {
        return in[1] * activation_slope<KIND, QUICK>(in[0]);
    }
};

#define EACH_KIND(kind, DO)                                      \
    switch (kind) {                                              \
    case ACTIVATION_NONE: DO(ACTIVATION_NONE) break;             \
    case ACTIVATION_RELU: DO(ACTIVATION_RELU) break;             \
    case ACTIVATION_LEAKY_RELU: DO(ACTIVATION_LEAKY_RELU) break; \
    case ACTIVATION_GELU_TANH: DO(ACTIVATION_GELU_TANH) break;   \
    case ACTIVATION_GELU_ERF: DO(ACTIVATION_GELU_ERF) break;     \
    case ACTIVATION_SIGMOID: DO(ACTIVATION_SIGMOID) break;       \
    case ACTIVATION_TANH: DO(ACTIVATION_TANH) break;             \
    case ACTIVATION_SWISH: DO(ACTIVATION_SWISH) break;           \
    }

cudaError_t cuda_activate(const cuda_run *run, const op_activate *p)
{
    const inputs_of<1> in = {{p->x}};
#define DO(K)                                                                                     \
    return p->y.type == REMAT_BF16 ? map<1, false>(run, in, p->y, p->count, activated<K, true>()) \
                                   : map<1, false>(run, in, p->y, p->count, activated<K, false>());
    EACH_KIND(p->kind, DO)
#undef DO
    return cudaErrorInvalidValue;
}

cudaError_t cuda_activate_backward(const cuda_run *run, const op_activate_backward *p)
{
    const tensor_ref at = p->kind == ACTIVATION_NONE ? p->dy : activation_reads_output(p->kind) ? p->y : p->x;
    const inputs_of<2> in = {{at, p->dy}};
#define DO(K)                                                                                                    \
    return p->dx.type == REMAT_BF16 ? map_adding<2>(run, in, p->dx, p->count, p->accumulate, derived<K, true>()) \
                                    : map_adding<2>(run, in, p->dx, p->count, p->accumulate, derived<K, false>());
    EACH_KIND(p->kind, DO)
#undef DO
    return cudaErrorInvalidValue;
}

/* A thread has the eight values of a byte. */
template <activation_kind KIND> __global__ void rectify_eights(op_rectify p)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t byte = (size_t)blockIdx.x * blockDim.x + threadIdx.x; 8 * byte < p.count; byte += step) {
        unsigned bits = 0;
        for (size_t i = 8 * byte; i < p.count && i < 8 * byte + 8; i++) {
            const float x = get(p.x, i);
            bits |= (unsigned)(x > 0) << i % 8;
            if (p.y.at)
                put(p.y, i, activation<KIND, false>(x));
        }
        ((uint8_t *)p.positive.at)[byte] = (uint8_t)bits;
    }
}

template <activation_kind KIND> __global__ void rectify_eights_backward(op_rectify_backward p)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t byte = (size_t)blockIdx.x * blockDim.x + threadIdx.x; 8 * byte < p.count; byte += step) {
        const unsigned bits = ((const uint8_t *)p.positive.at)[byte];
        for (size_t i = 8 * byte; i < p.count && i < 8 * byte + 8; i++) {
            const float value = get(p.dy, i) * activation_slope<KIND, false>((float)(bits >> i % 8 & 1));
            put(p.dx, i, p.accumulate ? get(p.dx, i) + value : value);
        }
    }
}

cudaError_t cuda_rectify(const cuda_run *run, const op_rectify *p)
{
    const unsigned blocks = blocks_for((p->count + 7) / 8, 256);
    if (p->count && p->kind == ACTIVATION_RELU)
        rectify_eights<ACTIVATION_RELU><<<blocks, 256, 0, run->stream>>>(*p);
    else if (p->count)
        rectify_eights<ACTIVATION_LEAKY_RELU><<<blocks, 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

cudaError_t cuda_rectify_backward(const cuda_run *run, const op_rectify_backward *p)
{
    const unsigned blocks = blocks_for((p->count + 7) / 8, 256);
    if (p->count && p->kind == ACTIVATION_RELU)
        rectify_eights_backward<ACTIVATION_RELU><<<blocks, 256, 0, run->stream>>>(*p);
    else if (p->count)
        rectify_eights_backward<ACTIVATION_LEAKY_RELU><<<blocks, 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

struct sum_of {
    __device__ float operator()(const float *in, float) const
    {
        return in[0] + in[1];
    }
};
struct product_of {
    __device__ float operator()(const float *in, float) const
    {
        return __fmul_rn(in[0], in[1]);
    }
};
struct scaled_by {
    float factor;
    __device__ float operator()(const float *, float old) const
    {
        return old * factor;
    }
};
struct same_as {
    __device__ float operator()(const float *in, float) const
    {
        return in[0];
    }
};
struct constant {
    float value;
    __device__ float operator()(const float *, float) const
    {
        return value;
    }
};

cudaError_t cuda_add(const cuda_run *run, const op_add *p)
{
    return map<2, false>(run, inputs_of<2>{{p->a, p->b}}, p->y, p->count, sum_of());
}

cudaError_t cuda_multiply(const cuda_run *run, const op_multiply *p)
{
    return map_adding<2>(run, inputs_of<2>{{p->a, p->b}}, p->y, p->count, p->accumulate, product_of());
}

cudaError_t cuda_scale(const cuda_run *run, const op_scale *p)
{
    return map<0, true>(run, inputs_of<0>{}, p->y, p->count, scaled_by{(float)p->factor});
}

cudaError_t cuda_accumulate(const cuda_run *run, const op_accumulate *p)
{
    return map_adding<1>(run, inputs_of<1>{{p->x}}, p->y, p->count, true, same_as());
}

cudaError_t cuda_copy(const cuda_run *run, const op_copy *p)
{
    if (p->count == 0 || p->x.at == p->y.at)
        return cudaSuccess;
    return cudaMemcpyAsync(p->y.at, p->x.at, dtype_bytes(p->x.type, p->count), cudaMemcpyDeviceToDevice, run->stream);
}

cudaError_t cuda_fill(const cuda_run *run, const op_fill *p)
{
    return map<0, false>(run, inputs_of<0>{}, p->y, p->count, constant{(float)p->value});
}

/* ---- other types ---- */

__global__ void unpack_blocks(tensor_ref x, tensor_ref y, size_t count)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        put(y, i, block_value(x, i));
}

cudaError_t cuda_convert(const cuda_run *run, const op_convert *p)
{
    if (!is_packed(p->x))
        return map<1, false>(run, inputs_of<1>{{p->x}}, p->y, p->count, same_as());
    if (p->count)
        unpack_blocks<<<blocks_for(p->count, 256), 256, 0, run->stream>>>(p->x, p->y, p->count);
    return cudaGetLastError();
}

/* ---- dropout: a thread draws the four numbers of a block ---- */

__global__ void drop(op_dropout p)
{
    const step_block *block = (const step_block *)p.step.at;
    const stream from = stream_of(block, p.layer);
    const float keep = (float)p.keep;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t n = (size_t)blockIdx.x * blockDim.x + threadIdx.x; 4 * n < p.count; n += step) {
        const uint4 drawn = draw(from, n);
        const uint32_t numbers[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const size_t i = 4 * n + j;
            if (i >= p.count)
                break;
            const bool kept = (float)(numbers[j] >> 8) * 0x1p-24f < keep;
            const float value = kept ? __fdiv_rn(get(p.x, i), keep) : 0;
            put(p.y, i, p.accumulate ? get(p.y, i) + value : value);
        }
    }
}

cudaError_t cuda_dropout(const cuda_run *run, const op_dropout *p)
{
    if (p->count)
        drop<<<blocks_for((p->count + 3) / 4, 256), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}
