/* Checks and times attention by cuDNN on a GPU. Needs cuDNN 9 at run time. Build, after libremat.a:
 *
 *     for f in cudnn_library cudnn_graph_builder cudnn_attention_graphs cudnn_attention; do
 *         gcc -std=gnu11 -O2 -D_GNU_SOURCE -Iinclude -Isrc -isystem $CUDA/include -c src/backend/cuda/$f.c; done
 *     nvcc -O2 -arch=sm_90 -cudart static -Iinclude -Isrc bench/bench_cudnn_attention.cu cudnn_*.o libremat.a -ldl -o bench
 *
 * Run it as `bench`, or as `bench quick`: only small shapes, and no times.
 *
 * For every shape: results against a plain version in fp32, all bytes written, none written beyond the workspace, the same
 * bits in 20 runs whatever the workspace holds, in a CUDA graph, and with a limit on the workspace. Then times. */
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/cudnn_library.h"

#define CUDA(call)                                                                             \
    do {                                                                                       \
        cudaError_t status_ = (call);                                                          \
        if (status_ != cudaSuccess) {                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

typedef __nv_bfloat16 bf16;

static remat_context *context;
static int failures;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("    FAILED: %s\n", what);
        failures++;
    }
}

static void expect_ok(remat_status status)
{
    if (status != REMAT_OK) {
        printf("    FAILED: %s\n", remat_context_message(context));
        failures++;
    }
}

/* ---- memory ---- */

struct buffer {
    char *at = nullptr;
    size_t bytes = 0;
    explicit buffer(size_t size) : bytes(size)
    {
        CUDA(cudaMalloc(&at, size ? size : 1));
    }
    ~buffer()
    {
        cudaFree(at);
    }
    buffer(const buffer &) = delete;
    void fill(int byte)
    {
        CUDA(cudaMemset(at, byte, bytes));
    }
};

__global__ void fill_random(bf16 *to, size_t count, uint64_t seed, float scale)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        float sum = 0; /* of four uniform numbers: nearly normal */
        uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
        for (int k = 0; k < 4; k++) {
            x ^= x >> 30, x *= 0xBF58476D1CE4E5B9ull, x ^= x >> 27, x *= 0x94D049BB133111EBull, x ^= x >> 31;
            sum += (float)(x >> 40) / 16777216.0f - 0.5f;
        }
        to[i] = __float2bfloat16(sum * 1.7320508f * scale);
    }
}

__global__ void count_differences(const uint32_t *a, const uint32_t *b, size_t count, unsigned long long *differing)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        if (a[i] != b[i])
            atomicAdd(differing, 1ull);
}

static bool is_same(const buffer &a, const buffer &b)
{
    buffer counter(8);
    counter.fill(0);
    count_differences<<<512, 256>>>((const uint32_t *)a.at, (const uint32_t *)b.at, a.bytes / 4,
                                    (unsigned long long *)counter.at);
    unsigned long long differing = 1;
    CUDA(cudaMemcpy(&differing, counter.at, 8, cudaMemcpyDeviceToHost));
    return differing == 0;
}

/* ---- a plain version in fp32 ---- */

struct shape {
    size_t batch, heads, key_heads, steps, keys, size;
    bool causal;
    size_t window;
    bool is_packed; /* q, k and v side by side */
    size_t row() const
    {
        return (is_packed ? 3 : 1) * heads * size;
    }
    size_t key_row() const
    {
        return is_packed ? row() : 2 * key_heads * size;
    }
    std::string name() const
    {
        char text[160];
        snprintf(text, sizeof(text), "B%zu H%zu/%zu T%zu/%zu D%zu%s%s%s", batch, heads, key_heads, steps, keys, size,
                 causal ? " causal" : "", window ? (" window " + std::to_string(window)).c_str() : "",
                 is_packed ? " packed" : "");
        return text;
    }
};

struct plain_args {
    shape s;
    size_t row, key_row, out_row;
    const bf16 *q, *k, *v, *out, *dout;
    const float *sums;
    float *plain_out, *plain_sums, *probabilities, *dscores, *dq, *dk, *dv;
};

__device__ bool is_seen(const shape &s, size_t i, size_t j)
{
    return !s.causal || (j <= i && (!s.window || j + s.window > i));
}

/* One block for each query of each head: probabilities, gradients of the scores, out, sums and dq. */
__global__ void plain_queries(plain_args a, bool backward)
{
    const shape s = a.s;
    const size_t i = blockIdx.x, head = blockIdx.y % s.heads, sequence = blockIdx.y / s.heads;
    const float scale = rsqrtf((float)s.size);
    const bf16 *q = a.q + (sequence * s.steps + i) * a.row + head * s.size;
    const size_t keys = sequence * s.keys * a.key_row + head / (s.heads / s.key_heads) * s.size;
    const size_t at = ((sequence * s.heads + head) * s.steps + i);
    const size_t result = (sequence * s.steps + i) * s.heads * s.size + head * s.size;
    const size_t out_at = (sequence * s.steps + i) * a.out_row + head * s.size;
    extern __shared__ float p[];
    __shared__ float total, mean;
    for (size_t j = threadIdx.x; j < s.keys; j += blockDim.x) {
        float score = 0;
        for (size_t c = 0; c < s.size; c++)
            score += __bfloat162float(q[c]) * __bfloat162float(a.k[keys + j * a.key_row + c]);
        p[j] = is_seen(s, i, j) ? scale * score : -INFINITY;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float largest = -INFINITY, sum = 0;
        for (size_t j = 0; j < s.keys; j++)
            largest = fmaxf(largest, p[j]);
        for (size_t j = 0; j < s.keys; j++)
            sum += expf(p[j] - largest);
        total = largest + logf(sum);
        mean = 0;
        for (size_t c = 0; c < s.size && backward; c++)
            mean += __bfloat162float(a.dout[out_at + c]) * __bfloat162float(a.out[out_at + c]);
    }
    __syncthreads();
    if (!backward) {
        if (threadIdx.x == 0)
            a.plain_sums[at] = total;
        for (size_t c = threadIdx.x; c < s.size; c += blockDim.x) {
            float sum = 0;
            for (size_t j = 0; j < s.keys; j++)
                sum += expf(p[j] - total) * __bfloat162float(a.v[keys + j * a.key_row + c]);
            a.plain_out[result + c] = sum;
        }
        return;
    }
    for (size_t j = threadIdx.x; j < s.keys; j += blockDim.x) {
        float dp = 0, probability = expf(p[j] - total);
        for (size_t c = 0; c < s.size; c++)
            dp += __bfloat162float(a.dout[out_at + c]) * __bfloat162float(a.v[keys + j * a.key_row + c]);
        a.probabilities[at * s.keys + j] = probability;
        a.dscores[at * s.keys + j] = p[j] = scale * probability * (dp - mean);
    }
    __syncthreads();
    for (size_t c = threadIdx.x; c < s.size; c += blockDim.x) {
        float sum = 0;
        for (size_t j = 0; j < s.keys; j++)
            sum += p[j] * __bfloat162float(a.k[keys + j * a.key_row + c]);
        a.dq[result + c] = sum;
    }
}

/* One block for each key of each head of keys. */
__global__ void plain_keys(plain_args a)
{
    const shape s = a.s;
    const size_t j = blockIdx.x, key_head = blockIdx.y % s.key_heads, sequence = blockIdx.y / s.key_heads;
    const size_t group = s.heads / s.key_heads;
    for (size_t c = threadIdx.x; c < s.size; c += blockDim.x) {
        float dk = 0, dv = 0;
        for (size_t head = key_head * group; head < (key_head + 1) * group; head++)
            for (size_t i = 0; i < s.steps; i++) {
                const size_t at = ((sequence * s.heads + head) * s.steps + i) * s.keys + j,
                             row = sequence * s.steps + i;
                dk += a.dscores[at] * __bfloat162float(a.q[row * a.row + head * s.size + c]);
                dv += a.probabilities[at] * __bfloat162float(a.dout[row * a.out_row + head * s.size + c]);
            }
        const size_t at = ((sequence * s.keys + j) * s.key_heads + key_head) * s.size + c;
        a.dk[at] = dk;
        a.dv[at] = dv;
    }
}

/* |made - plain| / |plain| of a matrix with gaps between its rows. NaN where something was not written. */
static double error_of(const bf16 *made, size_t row, const float *plain, size_t rows, size_t columns)
{
    std::vector<bf16> host(rows * columns);
    std::vector<float> want(rows * columns);
    CUDA(cudaMemcpy2D(host.data(), columns * 2, made, row * 2, columns * 2, rows, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(want.data(), plain, rows * columns * 4, cudaMemcpyDeviceToHost));
    double difference = 0, norm = 0;
    for (size_t i = 0; i < rows * columns; i++) {
        const double d = (double)__bfloat162float(host[i]) - want[i];
        difference += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(difference / norm);
}

/* ---- the operations of a shape ---- */

struct problem {
    shape s;
    size_t width;
    buffer q, kv, out, sums, dout, dq, dkv;
    op_attention forward;
    op_attention_backward backward;

    explicit problem(const shape &of)
        : s(of), width(s.heads * s.size), q(s.batch * s.steps * s.row() * 2),
          kv(s.is_packed ? 0 : s.batch * s.keys * s.key_row() * 2), out(s.batch * s.steps * width * 2),
          sums(s.batch * s.heads * s.steps * 4), dout(out.bytes), dq(q.bytes), dkv(kv.bytes)
    {
        fill_random<<<512, 256>>>((bf16 *)q.at, q.bytes / 2, 1, 1.5f);
        fill_random<<<512, 256>>>((bf16 *)kv.at, kv.bytes / 2, 2, 1.5f);
        fill_random<<<512, 256>>>((bf16 *)dout.at, dout.bytes / 2, 3, 1);
        CUDA(cudaDeviceSynchronize());
        auto in = [&](char *base, char *keys, int which) { /* 0: q, 1: k, 2: v */
                                                           char *at =
                                                               s.is_packed ? base + which * width * 2
                                                               : which ? keys + (which - 1) * s.key_heads * s.size * 2
                                                                       : base;
                                                           return tensor_ref{at, REMAT_BF16};
        };
        memset(&forward, 0, sizeof(forward));
        memset(&backward, 0, sizeof(backward));
        backward.q = forward.q = in(q.at, kv.at, 0);
        backward.k = forward.k = in(q.at, kv.at, 1);
        backward.v = forward.v = in(q.at, kv.at, 2);
        backward.out = forward.out = tensor_ref{out.at, REMAT_BF16};
        backward.sums = forward.sums = tensor_ref{sums.at, REMAT_FP32};
        backward.dout = tensor_ref{dout.at, REMAT_BF16};
        backward.dq = in(dq.at, dkv.at, 0);
        backward.dk = in(dq.at, dkv.at, 1);
        backward.dv = in(dq.at, dkv.at, 2);
        backward.batch = forward.batch = s.batch;
        backward.heads = forward.heads = s.heads;
        backward.steps = forward.steps = s.steps;
        backward.size = forward.size = s.size;
        backward.row = forward.row = s.row();
        backward.out_row = forward.out_row = width;
        backward.keys = forward.keys = s.keys;
        backward.key_row = forward.key_row = s.key_row();
        backward.group = forward.group = s.heads / s.key_heads;
        backward.window = forward.window = s.window;
        backward.causal = forward.causal = s.causal;
    }
};

static cudnn_attention *open_cudnn(uint64_t limit)
{
    cudaDeviceProp device;
    CUDA(cudaGetDeviceProperties(&device, 0));
    cudnn_attention *fused = NULL;
    expect_ok(cudnn_attention_open(context, 10 * device.major + device.minor, limit, &fused));
    if (!fused) {
        printf("cuDNN is not there\n");
        exit(1);
    }
    return fused;
}

/* Asked before there are addresses, as a layer does. */
static uint64_t backward_workspace(cudnn_attention *fused, const problem &p)
{
    op_attention_backward sizes = p.backward;
    tensor_ref *refs = &sizes.q;
    for (int i = 0; i < 10; i++)
        refs[i] = tensor_ref{NULL, i == 0 ? REMAT_BF16 : REMAT_FP32};
    if (!cudnn_attention_backward_takes(fused, &sizes)) {
        printf("    backward is not taken: %s\n", cudnn_attention_reason(fused));
        return UINT64_MAX;
    }
    return cudnn_attention_backward_workspace(fused, &sizes);
}

/* ---- checks ---- */

static const size_t GUARD = 4096, OFFSET = 64; /* a workspace is aligned to 64 bytes, no more */

static void check_guard(const buffer &memory)
{
    std::vector<unsigned char> guard(GUARD);
    CUDA(cudaMemcpy(guard.data(), memory.at + memory.bytes - GUARD, GUARD, cudaMemcpyDeviceToHost));
    expect(std::all_of(guard.begin(), guard.end(), [](unsigned char c) { return c == 0x5A; }),
           "nothing is written beyond the workspace");
}

static void check_forward(cudnn_attention *fused, problem &p, plain_args &a, double *out_error, double *sums_error)
{
    const uint64_t bytes = cudnn_attention_workspace(fused, &p.forward);
    buffer workspace(OFFSET + bytes + GUARD);
    workspace.fill(0x5A);
    CUDA(cudaMemset(p.out.at, 0xFF, p.out.bytes));
    CUDA(cudaMemset(p.sums.at, 0xFF, p.sums.bytes));
    expect_ok(cudnn_attention_run(fused, 0, &p.forward, workspace.at + OFFSET));
    CUDA(cudaDeviceSynchronize());
    check_guard(workspace);
    buffer first(p.out.bytes);
    CUDA(cudaMemcpy(first.at, p.out.at, first.bytes, cudaMemcpyDeviceToDevice));
    for (int run = 0; run < 5; run++) {
        CUDA(cudaMemset(workspace.at, run * 85, OFFSET + bytes));
        expect_ok(cudnn_attention_run(fused, 0, &p.forward, workspace.at + OFFSET));
        expect(is_same(first, p.out), "forward gives the same bits");
    }
    plain_queries<<<dim3((unsigned)p.s.steps, (unsigned)(p.s.batch * p.s.heads)), 128, (p.s.keys * 4 + 15) / 16 * 16>>>(
        a, false);
    CUDA(cudaDeviceSynchronize());
    *out_error = error_of((bf16 *)p.out.at, p.width, a.plain_out, p.s.batch * p.s.steps, p.width);
    std::vector<float> made(p.sums.bytes / 4), want(made.size());
    CUDA(cudaMemcpy(made.data(), p.sums.at, p.sums.bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(want.data(), a.plain_sums, p.sums.bytes, cudaMemcpyDeviceToHost));
    *sums_error = 0;
    for (size_t i = 0; i < made.size(); i++)
        *sums_error = std::isfinite(made[i]) ? std::max(*sums_error, (double)fabsf(made[i] - want[i])) : INFINITY;
    expect(*out_error < 1e-2, "out is near the plain version's");
    expect(*sums_error < 1e-3, "sums are near the plain version's");
}

static void check_backward(cudnn_attention *fused, problem &p, plain_args &a, uint64_t bytes, double errors[3])
{
    buffer workspace(OFFSET + bytes + GUARD), first(p.dq.bytes), first_keys(p.dkv.bytes);
    workspace.fill(0x5A);
    p.dq.fill(0xFF);
    p.dkv.fill(0xFF);
    expect_ok(cudnn_attention_backward_run(fused, 0, &p.backward, workspace.at + OFFSET));
    CUDA(cudaDeviceSynchronize());
    check_guard(workspace);
    CUDA(cudaMemcpy(first.at, p.dq.at, first.bytes, cudaMemcpyDeviceToDevice));
    CUDA(cudaMemcpy(first_keys.at, p.dkv.at, first_keys.bytes, cudaMemcpyDeviceToDevice));
    int same = 0;
    for (int run = 0; run < 20; run++) {
        CUDA(cudaMemset(workspace.at, run * 51 % 256, OFFSET + bytes));
        p.dq.fill(0xFF);
        p.dkv.fill(0xFF);
        expect_ok(cudnn_attention_backward_run(fused, 0, &p.backward, workspace.at + OFFSET));
        same += is_same(first, p.dq) && is_same(first_keys, p.dkv);
    }
    expect(same == 20, "backward gives the same bits");
    plain_queries<<<dim3((unsigned)p.s.steps, (unsigned)(p.s.batch * p.s.heads)), 128, (p.s.keys * 4 + 15) / 16 * 16>>>(
        a, true);
    plain_keys<<<dim3((unsigned)p.s.keys, (unsigned)(p.s.batch * p.s.key_heads)), 64>>>(a);
    CUDA(cudaDeviceSynchronize());
    errors[0] = error_of((bf16 *)p.backward.dq.at, p.s.row(), a.dq, p.s.batch * p.s.steps, p.width);
    errors[1] = error_of((bf16 *)p.backward.dk.at, p.s.key_row(), a.dk, p.s.batch * p.s.keys, p.s.key_heads * p.s.size);
    errors[2] = error_of((bf16 *)p.backward.dv.at, p.s.key_row(), a.dv, p.s.batch * p.s.keys, p.s.key_heads * p.s.size);
    for (int i = 0; i < 3; i++)
        expect(errors[i] < 1.5e-2, "a gradient is near the plain version's");

    cudnn_attention *limited = open_cudnn(bytes / 2 + 4096);
    const uint64_t less = backward_workspace(limited, p);
    expect(p.s.batch == 1 || less <= bytes / 2 + 4096, "the limit holds");
    p.dq.fill(0xFF);
    p.dkv.fill(0xFF);
    expect_ok(cudnn_attention_backward_run(limited, 0, &p.backward, workspace.at + OFFSET));
    expect(is_same(first, p.dq) && is_same(first_keys, p.dkv), "a limit on the workspace changes no bit");
    CUDA(cudaDeviceSynchronize());
    cudnn_attention_close(limited);
}

/* Forward and backward in a CUDA graph, then outside: the same bits. Recording needs no first run outside it. */
static void check_graph(const shape &s)
{
    problem p(s);
    cudnn_attention *fused = open_cudnn(0);
    const bool taken = cudnn_attention_takes(fused, &p.forward) && cudnn_attention_backward_takes(fused, &p.backward);
    expect(taken, "both are taken");
    buffer workspace(
        std::max(cudnn_attention_workspace(fused, &p.forward), cudnn_attention_backward_workspace(fused, &p.backward)));
    buffer out(p.out.bytes), gradients(p.dq.bytes);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t step;
    size_t nodes = 0;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    expect_ok(cudnn_attention_run(fused, stream, &p.forward, workspace.at));
    expect_ok(cudnn_attention_backward_run(fused, stream, &p.backward, workspace.at));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < 3; i++)
        CUDA(cudaGraphLaunch(step, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(out.at, p.out.at, out.bytes, cudaMemcpyDeviceToDevice));
    CUDA(cudaMemcpy(gradients.at, p.dq.at, gradients.bytes, cudaMemcpyDeviceToDevice));
    p.out.fill(0xFF);
    p.dq.fill(0xFF);
    expect_ok(cudnn_attention_run(fused, 0, &p.forward, workspace.at));
    expect_ok(cudnn_attention_backward_run(fused, 0, &p.backward, workspace.at));
    const bool same = is_same(out, p.out) && is_same(gradients, p.dq);
    expect(same, "a CUDA graph gives the same bits");
    printf("%s: CUDA graph of %zu nodes, %s bits\n", s.name().c_str(), nodes, same ? "the same" : "OTHER");
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    cudnn_attention_close(fused);
}

static void check(cudnn_attention *fused, const shape &s)
{
    printf("%s\n", s.name().c_str());
    problem p(s);
    if (!cudnn_attention_takes(fused, &p.forward)) {
        printf("    forward is not taken: %s\n", cudnn_attention_reason(fused));
        return;
    }
    buffer out(p.out.bytes * 2), sums(p.sums.bytes), probabilities(s.batch * s.heads * s.steps * s.keys * 4),
        dscores(probabilities.bytes), dq(p.out.bytes * 2), dk(s.batch * s.keys * s.key_heads * s.size * 4),
        dv(dk.bytes);
    plain_args a = {s,
                    s.row(),
                    s.key_row(),
                    p.width,
                    (bf16 *)p.forward.q.at,
                    (bf16 *)p.forward.k.at,
                    (bf16 *)p.forward.v.at,
                    (bf16 *)p.out.at,
                    (bf16 *)p.dout.at,
                    (float *)p.sums.at,
                    (float *)out.at,
                    (float *)sums.at,
                    (float *)probabilities.at,
                    (float *)dscores.at,
                    (float *)dq.at,
                    (float *)dk.at,
                    (float *)dv.at};
    double out_error, sums_error, errors[3];
    check_forward(fused, p, a, &out_error, &sums_error);
    printf("    forward: workspace %llu, out %.2e, sums %.2e (largest)\n",
           (unsigned long long)cudnn_attention_workspace(fused, &p.forward), out_error, sums_error);
    const uint64_t bytes = backward_workspace(fused, p);
    if (bytes == UINT64_MAX)
        return;
    check_backward(fused, p, a, bytes, errors);
    printf("    backward: workspace %llu, dq %.2e, dk %.2e, dv %.2e\n", (unsigned long long)bytes, errors[0], errors[1],
           errors[2]);
    fflush(stdout);
}

/* ---- what is refused ---- */

static void check_refusals(cudnn_attention *fused)
{
    problem p({3, 2, 2, 129, 129, 64, true, 0, true});
    op_attention_backward whole = p.backward;
    auto refused = [&](const char *what, void (*change)(op_attention_backward &)) {
        op_attention_backward changed = whole;
        change(changed);
        const bool taken = cudnn_attention_backward_takes(fused, &changed);
        expect(!taken && cudnn_attention_reason(fused)[0], what);
        expect(cudnn_attention_backward_run(fused, 0, &changed, NULL) == REMAT_INTERNAL, what);
    };
    refused("fp32 is refused", [](op_attention_backward &b) { b.q.type = REMAT_FP32; });
    refused("dk in fp32 is refused", [](op_attention_backward &b) { b.dk.type = REMAT_FP32; });
    refused("sums in bf16 are refused", [](op_attention_backward &b) { b.sums.type = REMAT_BF16; });
    refused("dv must be there", [](op_attention_backward &b) { b.dv.at = NULL; });
    refused("addresses are aligned", [](op_attention_backward &b) { b.out.at = (char *)b.out.at + 2; });
    refused("gradients are not added", [](op_attention_backward &b) { b.accumulate = true; });
    refused("dq is not added", [](op_attention_backward &b) { b.add_dq = true; });
    refused("dk and dv are not added", [](op_attention_backward &b) { b.add_dkv = true; });
    refused("heads of 136 values are refused", [](op_attention_backward &b) { b.size = 136; });
    refused("rows are multiples of 16 bytes", [](op_attention_backward &b) { b.row += 4; });
    refused("causal attention has a key for each step", [](op_attention_backward &b) { b.keys = 128; });
    refused("a window is causal", [](op_attention_backward &b) { b.causal = false, b.window = 5; });
    refused("one step is refused", [](op_attention_backward &b) { b.steps = b.keys = 1; });
    refused("nothing is refused", [](op_attention_backward &b) { b.batch = 0; });
    cudnn_attention *limited = open_cudnn(1);
    expect(!cudnn_attention_backward_takes(limited, &whole), "sums of parts are aligned");
    cudnn_attention_close(limited);
}

/* Allocations fail one by one: nothing crashes, and nothing is left. */
struct failing_memory {
    size_t left, held;
};

static void check_memory_failures()
{
    problem p({2, 2, 2, 128, 128, 64, true, 0, true});
    bool taken = false;
    size_t allowed = 0;
    for (; !taken && allowed < 100; allowed++) {
        failing_memory memory = {1000, 0};
        remat_allocator allocator = {[](void *user, size_t bytes, size_t alignment) -> void * {
                                         failing_memory *of = (failing_memory *)user;
                                         if (of->left == 0)
                                             return NULL;
                                         of->left--;
                                         of->held += bytes;
                                         return aligned_alloc(alignment,
                                                              (bytes + alignment - 1) / alignment * alignment);
                                     },
                                     [](void *user, void *at, size_t bytes) {
                                         ((failing_memory *)user)->held -= bytes;
                                         free(at);
                                     },
                                     &memory};
        remat_context *failing;
        expect_ok(remat_context_create(&allocator, &failing));
        memory.left = allowed;
        cudnn_attention *fused;
        const remat_status status = cudnn_attention_open(failing, 90, 0, &fused);
        expect(status == (fused ? REMAT_OK : REMAT_NO_MEMORY), "opening says that memory is short");
        taken = fused && cudnn_attention_takes(fused, &p.forward) && cudnn_attention_backward_takes(fused, &p.backward);
        memory.left = 1000;
        if (fused)
            expect(cudnn_attention_backward_takes(fused, &p.backward), "it is taken when there is memory again");
        cudnn_attention_close(fused);
        remat_context_destroy(failing);
        expect(memory.held == 0, "all memory is released");
    }
    printf("taken with %zu allocations\n", allowed - 1);
    expect(taken, "it is taken in the end");
}

/* ---- times ---- */

/* Of a CUDA graph, as a step of training is one: ten runs in it, nine replays. */
template <typename work> static double median_us(work run)
{
    const int repeats = 10;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaEvent_t from, to;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < repeats; i++)
        run(stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&replay, graph, 0));
    CUDA(cudaEventCreate(&from));
    CUDA(cudaEventCreate(&to));
    std::vector<float> times;
    for (int round = -2; round < 9; round++) {
        float ms;
        CUDA(cudaEventRecord(from, stream));
        CUDA(cudaGraphLaunch(replay, stream));
        CUDA(cudaEventRecord(to, stream));
        CUDA(cudaEventSynchronize(to));
        CUDA(cudaEventElapsedTime(&ms, from, to));
        if (round >= 0)
            times.push_back(ms * 1e3f / repeats);
    }
    CUDA(cudaEventDestroy(from));
    CUDA(cudaEventDestroy(to));
    CUDA(cudaGraphExecDestroy(replay));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static void time_shape(const shape &s)
{
    problem p(s);
    const double pairs = (double)s.batch * s.heads * s.steps * s.keys * s.size / (s.causal ? 2 : 1);
    cudnn_attention *all = open_cudnn(0);
    const auto began = std::chrono::steady_clock::now();
    const uint64_t whole = backward_workspace(all, p), forward_bytes = cudnn_attention_workspace(all, &p.forward);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    printf("%-36s both plans made in %.0f ms\n", s.name().c_str(), took.count() * 1e3);
    buffer workspace(std::max(whole, forward_bytes));
    const double forward =
        median_us([&](cudaStream_t stream) { expect_ok(cudnn_attention_run(all, stream, &p.forward, workspace.at)); });
    printf("%-36s forward  %8.1f us %6.0f TFLOP/s, workspace %llu\n", s.name().c_str(), forward,
           4 * pairs / forward / 1e6, (unsigned long long)forward_bytes);
    cudnn_attention_close(all);
    for (uint64_t limit = 0; limit == 0 || limit >= 16; limit = limit ? limit / 2 : 512) {
        cudnn_attention *fused = open_cudnn(limit << 20);
        const uint64_t bytes = backward_workspace(fused, p);
        const double us = median_us([&](cudaStream_t stream) {
            expect_ok(cudnn_attention_backward_run(fused, stream, &p.backward, workspace.at));
        });
        printf("%-36s backward %8.1f us %6.0f TFLOP/s, workspace %llu (limit %llu MiB)\n", s.name().c_str(), us,
               10 * pairs / us / 1e6, (unsigned long long)bytes, (unsigned long long)limit);
        cudnn_attention_close(fused);
    }
    fflush(stdout);
}

static size_t device_memory_used()
{
    size_t free_bytes, total;
    CUDA(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

int main(int argc, char **argv)
{
    const bool is_quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    cudaDeviceProp device;
    if (remat_context_create(NULL, &context) != REMAT_OK || cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
        printf("skipped: there is no GPU\n");
        return 0;
    }
    if (cudnn_library_version() == 0) {
        printf("skipped: there is no cuDNN\n");
        return 0;
    }
    CUDA(cudaFree(0));
    const size_t before = device_memory_used();
    cudnn_attention *fused = open_cudnn(0);
    const size_t opened = device_memory_used();
    printf("%s, cuDNN %zu\n", device.name, cudnn_attention_version(fused));
    static const shape shapes[] = {
        {2, 3, 3, 128, 128, 64, true, 0, true},      {2, 4, 4, 200, 200, 64, true, 0, true},
        {3, 4, 4, 256, 256, 128, true, 0, true},     {2, 4, 2, 256, 256, 64, true, 0, false},
        {2, 4, 1, 384, 384, 128, true, 100, false},  {3, 4, 4, 256, 256, 64, true, 64, true},
        {2, 4, 4, 192, 384, 64, false, 0, false},    {2, 4, 4, 256, 256, 128, false, 0, true},
        {1, 2, 2, 33, 33, 64, true, 0, true},        {2, 4, 4, 7, 300, 64, false, 0, false},
        {2, 4, 4, 256, 256, 32, true, 0, true},      {2, 4, 4, 256, 256, 40, true, 0, true},
        {2, 4, 4, 256, 256, 80, true, 0, true},      {2, 4, 4, 256, 256, 96, true, 0, true},
        {16, 16, 16, 1024, 1024, 64, true, 0, true}, {8, 25, 25, 1024, 1024, 64, true, 0, true},
        {4, 8, 2, 2048, 2048, 128, true, 0, false},
    };
    check_graph(shapes[0]);
    check_refusals(fused);
    check_memory_failures();
    for (const shape &s : shapes)
        if (!is_quick || s.steps < 1024)
            check(fused, s);
    cudnn_attention_close(fused);
    printf("device memory: %zu bytes before cuDNN, %zu more for its handle, %zu more for its kernels\n", before,
           opened - before, device_memory_used() - opened);
    static const shape timed[] = {
        {16, 16, 16, 1024, 1024, 64, true, 0, true},
        {64, 12, 12, 1024, 1024, 64, true, 0, true},
        {8, 25, 25, 1024, 1024, 64, true, 0, true},
    };
    for (const shape &s : timed)
        if (!is_quick) {
            check_graph(s);
            time_shape(s);
        }
    printf(failures ? "%d FAILURES\n" : "all checks hold\n", failures);
    remat_context_destroy(context);
    return failures != 0;
}
