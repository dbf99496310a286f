#include "backend/cpu/reference.h"

#include <tgmath.h>

#define LEAKY_SLOPE ((real)0.01)
#define GELU_CUBE   ((real)0.044715)

static const real SQRT_2_OVER_PI = (real)0.79788456080286535588;
static const real SQRT_HALF = (real)0.70710678118654752440;
static const real DENSITY_AT_0 = (real)0.39894228040143267794; /* of the normal distribution: 1 / sqrt(2 pi) */

static real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}

static real gelu_tanh_inner(real x)
{
    return tanh(SQRT_2_OVER_PI * (x + GELU_CUBE * x * x * x));
}

static real activation(activation_kind kind, real x)
{
    switch (kind) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACTIVATION_LEAKY_RELU: return x > 0 ? x : LEAKY_SLOPE * x;
    case ACTIVATION_GELU_TANH: return (real)0.5 * x * (1 + gelu_tanh_inner(x));
    case ACTIVATION_GELU_ERF: return (real)0.5 * x * (1 + erf(x * SQRT_HALF));
    case ACTIVATION_SIGMOID: return sigmoid(x);
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SWISH: return x * sigmoid(x);
    }
    return x;
}

/* Of the output y where activation_reads_output(kind), else of the input x. */
static real derivative(activation_kind kind, real x, real y)
{
    switch (kind) {
    case ACTIVATION_NONE: return 1;
    case ACTIVATION_RELU: return y > 0 ? 1 : 0;
    case ACTIVATION_LEAKY_RELU: return y > 0 ? 1 : LEAKY_SLOPE;
    case ACTIVATION_GELU_TANH: {
        real t = gelu_tanh_inner(x), slope = SQRT_2_OVER_PI * (1 + 3 * GELU_CUBE * x * x);
        return (real)0.5 * (1 + t) + (real)0.5 * x * (1 - t * t) * slope;
    }
    case ACTIVATION_GELU_ERF: return (real)0.5 * (1 + erf(x * SQRT_HALF)) + x * DENSITY_AT_0 * exp((real)-0.5 * x * x);
    case ACTIVATION_SIGMOID: return y * (1 - y);
    case ACTIVATION_TANH: return 1 - y * y;
    case ACTIVATION_SWISH: {
        real s = sigmoid(x);
        return s + x * s * (1 - s);
    }
    }
    return 1;
}

static void activate_range(const void *args, parallel_range range)
{
    const op_activate *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = activation(p->kind, x[i]);
}

void REFERENCE(activate)(const kernel_run *run, const void *args)
{
    const op_activate *p = args;
    parallel_static(run->threads, p->count, activate_range, p);
}

static void activate_backward_range(const void *args, parallel_range range)
{
    const op_activate_backward *p = args;
    const real *x = p->x.at, *y = p->y.at, *dy = p->dy.at;
    real *dx = p->dx.at;
    bool of_output = activation_reads_output(p->kind);
    for (size_t i = range.begin; i < range.end; i++) {
        real input = of_output || p->kind == ACTIVATION_NONE ? 0 : x[i], output = of_output ? y[i] : 0;
        real value = dy[i] * derivative(p->kind, input, output);
        dx[i] = p->accumulate ? dx[i] + value : value;
    }
}

void REFERENCE(activate_backward)(const kernel_run *run, const void *args)
{
    const op_activate_backward *p = args;
    parallel_static(run->threads, p->count, activate_backward_range, p);
}

/* A pass of the loop is a byte of eight bits, so that no two threads write the same one. */
static void rectify_range(const void *args, parallel_range range)
{
    const op_rectify *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
    uint8_t *positive = p->positive.at;
    for (size_t byte = range.begin; byte < range.end; byte++) {
        unsigned bits = 0;
        for (size_t i = 8 * byte; i < p->count && i < 8 * byte + 8; i++) {
            bits |= (unsigned)(x[i] > 0) << i % 8;
            if (y)
                y[i] = activation(p->kind, x[i]);
        }
        positive[byte] = (uint8_t)bits;
    }
}

void REFERENCE(rectify)(const kernel_run *run, const void *args)
{
    const op_rectify *p = args;
    parallel_static(run->threads, (p->count + 7) / 8, rectify_range, p);
}

static void rectify_backward_range(const void *args, parallel_range range)
{
    const op_rectify_backward *p = args;
    const uint8_t *positive = p->positive.at;
    const real *dy = p->dy.at;
    real *dx = p->dx.at;
    for (size_t i = range.begin; i < range.end; i++) {
        real value = dy[i] * derivative(p->kind, 0, (real)(positive[i / 8] >> i % 8 & 1));
        dx[i] = p->accumulate ? dx[i] + value : value;
    }
}

void REFERENCE(rectify_backward)(const kernel_run *run, const void *args)
{
    const op_rectify_backward *p = args;
    parallel_static(run->threads, p->count, rectify_backward_range, p);
}
