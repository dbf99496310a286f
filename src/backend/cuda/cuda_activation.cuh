/* Activations and their slopes. */
#ifndef REMAT_BACKEND_CUDA_CUDA_ACTIVATION_CUH
#define REMAT_BACKEND_CUDA_CUDA_ACTIVATION_CUH

#include "backend/cuda/cuda_device.cuh"

__device__ __forceinline__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* exp where the result is rounded to bf16 anyway, or to the last bits. */
template <bool QUICK> __device__ __forceinline__ float exp_of(float x)
{
    return QUICK ? __expf(x) : expf(x);
}

template <bool QUICK> __device__ __forceinline__ float sigmoid_of(float x)
{
    return QUICK ? __fdividef(1, 1 + exp_of<true>(-fmaxf(x, -80))) : sigmoid(x);
}

/* 0.5 x (1 + tanh(u)) is x times this sigmoid, which loses nothing where tanh is near -1. */
template <bool QUICK> __device__ __forceinline__ float gelu_sigmoid(float x)
{
    return sigmoid_of<QUICK>(2 * 0.79788456080286535588f * (x + 0.044715f * x * x * x));
}

template <activation_kind KIND, bool QUICK> __device__ __forceinline__ float activation(float x)
{
    switch (KIND) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACTIVATION_LEAKY_RELU: return x > 0 ? x : 0.01f * x;
    case ACTIVATION_GELU_TANH: return x * gelu_sigmoid<QUICK>(x);
    case ACTIVATION_GELU_ERF: return 0.5f * x * erfcf(x * -0.70710678118654752440f);
    case ACTIVATION_SIGMOID: return sigmoid_of<QUICK>(x);
    case ACTIVATION_TANH: return tanhf(x);
    case ACTIVATION_SWISH: return x * sigmoid_of<QUICK>(x);
    }
    return x;
}

/* At the output where activation_reads_output(KIND), else at the input. */
template <activation_kind KIND, bool QUICK> __device__ __forceinline__ float activation_slope(float at)
{
    switch (KIND) {
    case ACTIVATION_NONE: return 1;
    case ACTIVATION_RELU: return at > 0 ? 1 : 0;
    case ACTIVATION_LEAKY_RELU: return at > 0 ? 1 : 0.01f;
    case ACTIVATION_GELU_TANH: {
        const float s = gelu_sigmoid<QUICK>(at), slope = 0.79788456080286535588f * (1 + 3 * 0.044715f * at * at);
        return s + 2 * at * s * (1 - s) * slope;
    }
    case ACTIVATION_GELU_ERF:
        return 0.5f * erfcf(at * -0.70710678118654752440f) + at * 0.39894228040143267794f * expf(-0.5f * at * at);
    case ACTIVATION_SIGMOID: return at * (1 - at);
    case ACTIVATION_TANH: return 1 - at * at;
    case ACTIVATION_SWISH: {
        const float s = sigmoid_of<QUICK>(at);
        return s + at * s * (1 - s);
    }
    }
    return 1;
}

#endif
