/* Checks the CUDA backend's attention against plain sums in fp64, on random inputs, then measures it.
 *
 *     bench_cuda_attention [check | small | time | once] [any]
 *
 * `small`: few checks, for compute-sanitizer. `once`: one call of each pass, for profilers. `any`: the kernels for all
 * devices, even where faster ones exist. Every check runs twice and compares all bytes; outputs are filled with NaN before,
 * and what lies between their rows must stay as it was. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backend/cuda/attention_tiles.cuh"

typedef __nv_bfloat16 bf16;

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t error_ = (call);                                       \
        if (error_ != cudaSuccess) {                                       \
            printf("line %d: %s\n", __LINE__, cudaGetErrorString(error_)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

struct test {
    bool is_bf16;
    int batch, heads, group, steps, keys, size;
    bool causal;
    int window;
    bool side_by_side;
    bool add;
    int without; /* bits: 1 without dq, 2 without dk, 4 without dv */
};

/* ---- plain sums ---- */

struct plain {
    test t;
    int64_t row, key_row, out_row;
};

template <typename T> __device__ double at(const void *from, int64_t i)
{
    return (double)attention::to_float(((const T *)from)[i]);
}

__device__ bool seen(const test &t, int i, int j)
{
    return !t.causal || (j <= i && (t.window == 0 || j + t.window > i));
}

template <typename T>
__global__ void plain_out(plain a, const void *q, const void *k, const void *v, double *out, double *sums)
{
    extern __shared__ double weight[];
    const test &t = a.t;
    const int i = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
    const int64_t query = ((int64_t)b * t.steps + i) * a.row + (int64_t)h * t.size;
    const int64_t key = (int64_t)b * t.keys * a.key_row + (int64_t)(h / t.group) * t.size;
    for (int j = threadIdx.x; j < t.keys; j += blockDim.x) {
        double sum = 0;
        for (int d = 0; d < t.size; d++)
            sum += at<T>(q, query + d) * at<T>(k, key + j * a.key_row + d);
        weight[j] = seen(t, i, j) ? sum / sqrt((double)t.size) : -INFINITY;
    }
    __syncthreads();
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < t.keys; j++)
        most = fmax(most, weight[j]);
    __syncthreads();
    for (int j = threadIdx.x; j < t.keys; j += blockDim.x)
        weight[j] = exp(weight[j] - most);
    __syncthreads();
    for (int j = 0; j < t.keys; j++)
        sum += weight[j];
    const int64_t to = ((int64_t)b * t.heads + h) * t.steps + i;
    for (int d = threadIdx.x; d < t.size; d += blockDim.x) {
        double x = 0;
        for (int j = 0; j < t.keys; j++)
            x += weight[j] * at<T>(v, key + j * a.key_row + d);
        out[to * t.size + d] = x / sum;
    }
    if (threadIdx.x == 0)
        sums[to] = most + log(sum);
}

/* The weight of key j for query i, and the gradient of their score. */
template <typename T>
__device__ void plain_pair(const plain &a, int b, int h, int i, int j, const void *q, const void *k, const void *v,
                           const void *out, const void *dout, const float *sums, double *weight, double *gradient)
{
    const test &t = a.t;
    const int64_t query = ((int64_t)b * t.steps + i) * a.row + (int64_t)h * t.size;
    const int64_t row = ((int64_t)b * t.steps + i) * a.out_row + (int64_t)h * t.size;
    const int64_t key = ((int64_t)b * t.keys + j) * a.key_row + (int64_t)(h / t.group) * t.size;
    double score = 0, product = 0, delta = 0;
    for (int d = 0; d < t.size; d++) {
        score += at<T>(q, query + d) * at<T>(k, key + d);
        product += at<T>(dout, row + d) * at<T>(v, key + d);
        delta += at<T>(dout, row + d) * at<T>(out, row + d);
    }
    const double scale = 1 / sqrt((double)t.size);
    *weight = seen(t, i, j) ? exp(score * scale - sums[((int64_t)b * t.heads + h) * t.steps + i]) : 0;
    *gradient = scale * *weight * (product - delta);
}

template <typename T>
__global__ void plain_dq(plain a, const void *q, const void *k, const void *v, const void *out, const void *dout,
                         const float *sums, double *dq)
{
    extern __shared__ double gradients[];
    const test &t = a.t;
    const int i = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
    for (int j = threadIdx.x; j < t.keys; j += blockDim.x) {
        double weight;
        plain_pair<T>(a, b, h, i, j, q, k, v, out, dout, sums, &weight, &gradients[j]);
    }
    __syncthreads();
    for (int d = threadIdx.x; d < t.size; d += blockDim.x) {
        double x = 0;
        for (int j = 0; j < t.keys; j++)
            x += gradients[j] * at<T>(k, ((int64_t)b * t.keys + j) * a.key_row + (int64_t)(h / t.group) * t.size + d);
        dq[(((int64_t)b * t.heads + h) * t.steps + i) * t.size + d] = x;
    }
}

template <typename T>
__global__ void plain_dkv(plain a, const void *q, const void *k, const void *v, const void *out, const void *dout,
                          const float *sums, double *dk, double *dv)
{
    extern __shared__ double weights[];
    const test &t = a.t;
    double *gradients = weights + t.steps;
    const int j = blockIdx.x, g = blockIdx.y, b = blockIdx.z;
    double x[2] = {0, 0}, y[2] = {0, 0}; /* heads have at most 2 * 128 values */
    for (int h = g * t.group; h < (g + 1) * t.group; h++) {
        __syncthreads();
        for (int i = threadIdx.x; i < t.steps; i += blockDim.x)
            plain_pair<T>(a, b, h, i, j, q, k, v, out, dout, sums, &weights[i], &gradients[i]);
        __syncthreads();
        for (int e = 0; e < 2; e++) {
            const int d = threadIdx.x + e * 128;
            for (int i = 0; i < t.steps && d < t.size; i++) {
                x[e] += gradients[i] * at<T>(q, ((int64_t)b * t.steps + i) * a.row + (int64_t)h * t.size + d);
                y[e] += weights[i] * at<T>(dout, ((int64_t)b * t.steps + i) * a.out_row + (int64_t)h * t.size + d);
            }
        }
    }
    for (int e = 0; e < 2; e++) {
        const int d = threadIdx.x + e * 128;
        const int64_t to = (((int64_t)b * (t.heads / t.group) + g) * t.keys + j) * t.size + d;
        if (d < t.size) {
            dk[to] = x[e];
            dv[to] = y[e];
        }
    }
}

/* ---- inputs and comparisons ---- */

template <typename T> __global__ void fill_random(T *to, int64_t count, uint32_t seed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    uint32_t x = (uint32_t)i * 2654435761u ^ seed * 0x9e3779b9u;
    float sum = 0; /* of four uniform numbers: nearly normal, with deviation 1 */
    for (int n = 0; n < 4; n++) {
        x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
        sum += (float)(x >> 8) / 16777216.0f - 0.5f;
        x += 0x6b43a9b5u;
    }
    attention::from_float(sum * 1.7320508f, to + i);
}

template <typename T> static void random_to(void *to, int64_t count, uint32_t seed)
{
    fill_random<<<(unsigned)((count + 255) / 256), 256>>>((T *)to, count, seed);
    CHECK(cudaGetLastError());
}

static double value_of(const char *bytes, bool is_bf16, int64_t i)
{
    if (is_bf16) {
        uint32_t bits = (uint32_t)((const uint16_t *)bytes)[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    return ((const float *)bytes)[i];
}

/* An output with rows of its own length in a buffer. */
struct output {
    const char *name;
    int64_t buffer_first, row, rows; /* rows: of a sequence */
    int heads;
    const std::vector<double> *want;
};

static int failures;

/* Compares, and marks what belongs to the output in `touched`. */
static double compare(const test &t, const output &o, const std::vector<char> &before, const std::vector<char> &after,
                      std::vector<char> &touched, bool add, double most_allowed, bool is_float, const char *what)
{
    const bool is_bf16 = t.is_bf16 && !is_float;
    const int size = is_float ? 1 : t.size;
    double square = 0, difference = 0;
    for (double x : *o.want)
        square += x * x;
    const double rms = std::sqrt(square / (double)o.want->size());
    bool told = false;
    int64_t n = 0;
    for (int b = 0; b < t.batch; b++)
        for (int h = 0; h < o.heads; h++)
            for (int64_t i = 0; i < o.rows; i++) {
                double of_row = 0; /* rows that few others share in are larger than most */
                for (int d = 0; d < size; d++)
                    of_row += std::pow((*o.want)[(size_t)(n + d)], 2) / size;
                const double usual = std::max(rms, std::sqrt(of_row));
                for (int d = 0; d < size; d++, n++) {
                    const int64_t at =
                        is_float ? n : o.buffer_first + ((int64_t)b * o.rows + i) * o.row + (int64_t)h * size + d;
                    const double base = add ? value_of(before.data(), is_bf16, at) : 0;
                    const double got = value_of(after.data(), is_bf16, at), want = (*o.want)[(size_t)n] + base;
                    touched[(size_t)at] = 1;
                    const double off = std::fabs(got - want);
                    difference += off * off;
                    if (!(off <= most_allowed * 4 * (std::fabs(want) + usual) + 1e-5) && !told) {
                        printf("  %s %s: sequence %d head %d row %d column %d: %.7g, not %.7g (rms %.3g)\n", what,
                               o.name, b, h, (int)i, d, got, want, rms);
                        told = true;
                        failures++;
                    }
                }
            }
    square += (double)o.want->size() * (add ? 1 : 1e-3); /* gradients can all be 0 */
    const double relative = std::sqrt(difference / square);
    if (!(relative <= most_allowed) && !told) {
        printf("  %s %s: off by %.3g of its norm\n", what, o.name, relative);
        failures++;
    }
    return relative;
}

static void compare_rest(const char *what, const std::vector<char> &before, const std::vector<char> &after,
                         const std::vector<char> &touched, size_t bytes)
{
    for (size_t i = 0; i < touched.size(); i++)
        if (!touched[i] && memcmp(&before[i * bytes], &after[i * bytes], bytes)) {
            printf("  %s: element %zu between the rows was written\n", what, i);
            failures++;
            return;
        }
}

static std::vector<char> bytes_of(const void *from, size_t bytes)
{
    std::vector<char> to(bytes);
    CHECK(cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost));
    return to;
}

static std::vector<double> doubles_of(const double *from, size_t count)
{
    std::vector<double> to(count);
    CHECK(cudaMemcpy(to.data(), from, count * sizeof(double), cudaMemcpyDeviceToHost));
    return to;
}

static void *device_bytes(size_t bytes)
{
    void *at;
    CHECK(cudaMalloc(&at, bytes + 256));
    return at;
}

template <typename T> static void store_out(const plain &a, const std::vector<double> &from, std::vector<char> &to)
{
    int64_t n = 0;
    for (int b = 0; b < a.t.batch; b++)
        for (int h = 0; h < a.t.heads; h++)
            for (int i = 0; i < a.t.steps; i++)
                for (int d = 0; d < a.t.size; d++, n++) {
                    T *at = (T *)to.data() + ((int64_t)b * a.t.steps + i) * a.out_row + (int64_t)h * a.t.size + d;
                    *at = (T)(float)from[(size_t)n];
                }
}

static tensor_ref tensor_at(const float *at)
{
    return {(void *)at, REMAT_FP32};
}
static tensor_ref tensor_at(const bf16 *at)
{
    return {(void *)at, REMAT_BF16};
}

template <typename T> static void check(const test &t)
{
    char what[200];
    snprintf(what, sizeof what, "%s B%d H%d/%d T%d K%d D%d%s w%d%s%s without %d", t.is_bf16 ? "bf16" : "fp32", t.batch,
             t.heads, t.group, t.steps, t.keys, t.size, t.causal ? " causal" : "", t.window,
             t.side_by_side ? " joint" : "", t.add ? " add" : "", t.without);
    plain a = {t, 0, 0, 0};
    const int key_heads = t.heads / t.group, width = t.heads * t.size, key_width = key_heads * t.size;
    a.row = t.side_by_side ? width + 2 * key_width : width + 8;
    a.key_row = t.side_by_side ? a.row : key_width + 16;
    a.out_row = t.side_by_side ? width : width + 24;
    const int64_t q_count = t.batch * t.steps * a.row, k_count = t.side_by_side ? 0 : t.batch * t.keys * a.key_row;
    const int64_t count = q_count + 2 * k_count, out_count = t.batch * t.steps * a.out_row;
    const int64_t k_first = t.side_by_side ? width : q_count,
                  v_first = k_first + (t.side_by_side ? key_width : k_count);
    const int64_t rows = (int64_t)t.batch * t.heads * t.steps, key_rows = (int64_t)t.batch * key_heads * t.keys;
    T *qkv = (T *)device_bytes(count * sizeof(T)), *dqkv = (T *)device_bytes(count * sizeof(T));
    T *out = (T *)device_bytes(out_count * sizeof(T)), *dout = (T *)device_bytes(out_count * sizeof(T));
    float *sums = (float *)device_bytes(rows * sizeof(float));
    double *wide = (double *)device_bytes(rows * t.size * sizeof(double)),
           *wide_sums = (double *)device_bytes(rows * 8);
    double *wide_dk = (double *)device_bytes(key_rows * t.size * 8),
           *wide_dv = (double *)device_bytes(key_rows * t.size * 8);
    random_to<T>(qkv, count, 1 + (uint32_t)t.steps);
    random_to<T>(dout, out_count, 2 + (uint32_t)t.size);

    const size_t shared = (size_t)std::max(t.keys, 2 * t.steps) * sizeof(double);
    CHECK(cudaFuncSetAttribute(plain_out<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    CHECK(cudaFuncSetAttribute(plain_dq<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    CHECK(cudaFuncSetAttribute(plain_dkv<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    plain_out<T>
        <<<dim3(t.steps, t.heads, t.batch), 128, shared>>>(a, qkv, qkv + k_first, qkv + v_first, wide, wide_sums);
    CHECK(cudaGetLastError());
    const std::vector<double> want_out = doubles_of(wide, rows * t.size), want_sums = doubles_of(wide_sums, rows);

    cuda_run run = {};
    CHECK(cudaDeviceGetAttribute(&run.multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    op_attention forward = {};
    forward.q = tensor_at(qkv), forward.k = tensor_at(qkv + k_first), forward.v = tensor_at(qkv + v_first);
    forward.out = tensor_at(out), forward.sums = tensor_at((float *)sums);
    forward.batch = t.batch, forward.heads = t.heads, forward.steps = t.steps, forward.size = t.size,
    forward.row = a.row;
    forward.out_row = a.out_row, forward.keys = t.keys, forward.key_row = a.key_row, forward.group = t.group;
    forward.window = t.window, forward.causal = t.causal;
    std::vector<char> first_out, first_sums;
    const std::vector<char> poison(std::max(out_count, count) * sizeof(T), (char)0xff);
    for (int turn = 0; turn < 2; turn++) {
        CHECK(cudaMemset(out, 0xff, out_count * sizeof(T)));
        CHECK(cudaMemset(sums, 0xff, rows * sizeof(float)));
        CHECK(cuda_attention(&run, &forward));
        CHECK(cudaDeviceSynchronize());
        std::vector<char> got_out = bytes_of(out, out_count * sizeof(T)),
                          got_sums = bytes_of(sums, rows * sizeof(float));
        if (turn == 0) {
            first_out = got_out, first_sums = got_sums;
        } else if (first_out != got_out || first_sums != got_sums) {
            printf("  %s forward: other bits in a second run\n", what);
            failures++;
        }
    }
    std::vector<char> touched(out_count, 0), touched_sums(rows, 0);
    const double off_out = compare(t, {"out", 0, a.out_row, t.steps, t.heads, &want_out}, poison, first_out, touched,
                                   false, t.is_bf16 ? 5e-3 : 2e-6, false, what);
    compare_rest(what, poison, first_out, touched, sizeof(T));
    const double off_sums = compare(t, {"sums", 0, 1, t.steps, t.heads, &want_sums}, poison, first_sums, touched_sums,
                                    false, 2e-6, true, what);

    /* The backward pass reads the exact results. */
    std::vector<char> stored(out_count * sizeof(T), 0);
    store_out<T>(a, want_out, stored);
    CHECK(cudaMemcpy(out, stored.data(), stored.size(), cudaMemcpyHostToDevice));
    std::vector<float> narrow(want_sums.begin(), want_sums.end());
    CHECK(cudaMemcpy(sums, narrow.data(), narrow.size() * 4, cudaMemcpyHostToDevice));
    plain_dq<T>
        <<<dim3(t.steps, t.heads, t.batch), 128, shared>>>(a, qkv, qkv + k_first, qkv + v_first, out, dout, sums, wide);
    CHECK(cudaGetLastError());
    plain_dkv<T><<<dim3(t.keys, key_heads, t.batch), 128, shared>>>(a, qkv, qkv + k_first, qkv + v_first, out, dout,
                                                                    sums, wide_dk, wide_dv);
    CHECK(cudaGetLastError());
    const std::vector<double> want_dq = doubles_of(wide, rows * t.size),
                              want_dk = doubles_of(wide_dk, key_rows * t.size),
                              want_dv = doubles_of(wide_dv, key_rows * t.size);

    op_attention_backward backward = {};
    backward.q = forward.q, backward.k = forward.k, backward.v = forward.v, backward.out = forward.out;
    backward.sums = forward.sums, backward.dout = tensor_at(dout);
    backward.dq = tensor_at(t.without & 1 ? (T *)NULL : dqkv),
    backward.dk = tensor_at(t.without & 2 ? (T *)NULL : dqkv + k_first);
    backward.dv = tensor_at(t.without & 4 ? (T *)NULL : dqkv + v_first);
    backward.batch = t.batch, backward.heads = t.heads, backward.steps = t.steps, backward.size = t.size;
    backward.row = a.row, backward.out_row = a.out_row, backward.keys = t.keys, backward.key_row = a.key_row;
    backward.group = t.group, backward.window = t.window, backward.causal = t.causal;
    backward.accumulate = t.add && t.side_by_side && t.group == 1;
    backward.add_dq = backward.add_dkv = t.add && !backward.accumulate;
    const uint64_t workspace = cuda_attention_backward_workspace(&backward);
    void *space = device_bytes(workspace);
    backward.workspace = tensor_at((float *)space);
    std::vector<char> before, first;
    for (int turn = 0; turn < 2; turn++) {
        CHECK(cudaMemset(dqkv, 0xff, count * sizeof(T)));
        CHECK(cudaMemset(space, 0xff, workspace + 256));
        if (t.add)
            random_to<T>(dqkv, count, 77);
        before = bytes_of(dqkv, count * sizeof(T));
        CHECK(cuda_attention_backward(&run, &backward));
        CHECK(cudaDeviceSynchronize());
        std::vector<char> got = bytes_of(dqkv, count * sizeof(T));
        if (turn == 0) {
            first = got;
        } else if (first != got) {
            printf("  %s backward: other bits in a second run\n", what);
            failures++;
        }
    }
    const std::vector<char> space_end = bytes_of((char *)space + workspace, 256);
    if (memcmp(space_end.data(), poison.data(), std::min<size_t>(256, poison.size()))) {
        printf("  %s: wrote behind its workspace\n", what);
        failures++;
    }
    const double allowed = t.is_bf16 ? 8e-3 : 1e-5;
    std::vector<char> touched_gradients(count, 0);
    double off[3] = {0, 0, 0};
    if (backward.dq.at)
        off[0] = compare(t, {"dq", 0, a.row, t.steps, t.heads, &want_dq}, before, first, touched_gradients, t.add,
                         allowed, false, what);
    if (backward.dk.at)
        off[1] = compare(t, {"dk", k_first, a.key_row, t.keys, key_heads, &want_dk}, before, first, touched_gradients,
                         t.add, allowed, false, what);
    if (backward.dv.at)
        off[2] = compare(t, {"dv", v_first, a.key_row, t.keys, key_heads, &want_dv}, before, first, touched_gradients,
                         t.add, allowed, false, what);
    compare_rest(what, before, first, touched_gradients, sizeof(T));
    printf("%-64s out %.1e sums %.1e dq %.1e dk %.1e dv %.1e\n", what, off_out, off_sums, off[0], off[1], off[2]);
    for (void *at : {(void *)qkv, (void *)dqkv, (void *)out, (void *)dout, (void *)sums, (void *)wide,
                     (void *)wide_sums, (void *)wide_dk, (void *)wide_dv, space})
        CHECK(cudaFree(at));
}

/* ---- time ---- */

/* The median time of one of 20 calls in a row, in ms. */
template <typename Call> static double median_ms(Call call)
{
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int turn = 0; turn < 8; turn++) {
        CHECK(cudaEventRecord(begin));
        for (int n = 0; n < 20; n++)
            call();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (turn > 0)
            times.push_back(ms / 20);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

template <typename T> static void measure(const test &t, bool once)
{
    const int64_t width = (int64_t)t.heads * t.size, tokens = (int64_t)t.batch * t.steps;
    T *qkv = (T *)device_bytes(tokens * 3 * width * sizeof(T)),
      *dqkv = (T *)device_bytes(tokens * 3 * width * sizeof(T));
    T *out = (T *)device_bytes(tokens * width * sizeof(T)), *dout = (T *)device_bytes(tokens * width * sizeof(T));
    float *sums = (float *)device_bytes(tokens * t.heads * sizeof(float));
    random_to<T>(qkv, tokens * 3 * width, 5);
    random_to<T>(dout, tokens * width, 6);
    cuda_run run = {};
    CHECK(cudaDeviceGetAttribute(&run.multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    op_attention forward = {};
    forward.q = tensor_at(qkv), forward.k = tensor_at(qkv + width), forward.v = tensor_at(qkv + 2 * width);
    forward.out = tensor_at(out), forward.sums = tensor_at((float *)sums);
    forward.batch = t.batch, forward.heads = t.heads, forward.steps = forward.keys = t.steps, forward.size = t.size;
    forward.row = forward.key_row = 3 * width, forward.out_row = width, forward.group = 1, forward.causal = t.causal;
    op_attention_backward backward = {};
    backward.q = forward.q, backward.k = forward.k, backward.v = forward.v, backward.out = forward.out;
    backward.sums = forward.sums, backward.dout = tensor_at(dout);
    backward.dq = tensor_at(dqkv), backward.dk = tensor_at(dqkv + width), backward.dv = tensor_at(dqkv + 2 * width);
    backward.batch = t.batch, backward.heads = t.heads, backward.steps = backward.keys = t.steps,
    backward.size = t.size;
    backward.row = backward.key_row = 3 * width, backward.out_row = width, backward.group = 1,
    backward.causal = t.causal;
    const uint64_t workspace = cuda_attention_backward_workspace(&backward);
    backward.workspace = tensor_at((float *)device_bytes(workspace));
    if (once) {
        CHECK(cuda_attention(&run, &forward));
        CHECK(cuda_attention_backward(&run, &backward));
        CHECK(cudaDeviceSynchronize());
        return;
    }
    const double forward_ms = median_ms([&] { CHECK(cuda_attention(&run, &forward)); });
    const double backward_ms = median_ms([&] { CHECK(cuda_attention_backward(&run, &backward)); });
    const double tflop = 4e-12 * (double)(tokens * t.steps * width) / (t.causal ? 2 : 1);
    printf(
        "%s B%d H%d T%d D%d%s: forward %.4f ms (%.0f TFLOP/s), backward %.4f ms (%.0f TFLOP/s), workspace %.1f MiB\n",
        t.is_bf16 ? "bf16" : "fp32", t.batch, t.heads, t.steps, t.size, t.causal ? " causal" : "", forward_ms,
        tflop / forward_ms * 1e3, backward_ms, 2.5 * tflop / backward_ms * 1e3, (double)workspace / 1048576);
    for (void *at : {(void *)qkv, (void *)dqkv, (void *)out, (void *)dout, (void *)sums, backward.workspace.at})
        CHECK(cudaFree(at));
}

static void check_all(bool small)
{
    static const test tests[] = {
        /* bf16, batch, heads, group, steps, keys, size, causal, window, side by side, add, without */
        {true, 1, 2, 1, 128, 128, 64, true, 0, true, false, 0},
        {true, 2, 3, 1, 197, 197, 64, true, 0, true, true, 0},
        {true, 2, 4, 2, 150, 150, 64, true, 70, false, false, 0},
        {true, 1, 2, 1, 130, 77, 64, false, 0, false, true, 0},
        {true, 1, 2, 1, 100, 100, 128, true, 0, true, false, 0},
        {true, 1, 2, 1, 70, 70, 96, true, 0, false, true, 0},
        {true, 1, 2, 1, 70, 70, 20, true, 0, false, false, 0},
        {false, 1, 2, 2, 70, 70, 64, true, 33, false, true, 0},
        {false, 1, 2, 1, 50, 70, 128, false, 0, false, false, 0},
        {false, 1, 1, 1, 40, 40, 192, true, 0, true, false, 0},
        /* from here on not in `small` */
        {true, 2, 3, 1, 1024, 1024, 64, true, 0, true, false, 0},
        {true, 1, 2, 1, 1000, 1000, 64, true, 0, true, true, 0},
        {true, 3, 2, 1, 512, 512, 64, false, 0, true, false, 0},
        {true, 1, 2, 1, 1, 1, 64, true, 0, true, false, 0},
        {true, 1, 2, 1, 5, 300, 64, false, 0, false, false, 0},
        {true, 2, 2, 1, 300, 5, 64, false, 0, false, false, 0},
        {true, 1, 8, 4, 384, 384, 64, true, 0, true, false, 0},
        {true, 1, 6, 3, 257, 129, 64, false, 0, false, true, 0},
        {true, 2, 2, 1, 640, 640, 64, true, 100, true, false, 0},
        {true, 1, 4, 2, 640, 640, 64, true, 1, false, false, 0},
        {true, 1, 2, 1, 640, 640, 64, true, 128, true, true, 0},
        {true, 1, 2, 1, 2048, 2048, 64, true, 0, true, false, 0},
        {true, 1, 2, 1, 2048, 2048, 64, true, 700, false, false, 0},
        {true, 2, 2, 1, 333, 333, 32, true, 0, true, false, 0},
        {true, 2, 2, 1, 333, 333, 48, true, 0, false, false, 0},
        {true, 2, 2, 1, 333, 222, 40, false, 0, false, false, 0},
        {true, 2, 2, 1, 333, 333, 64, true, 0, false, false, 1},
        {true, 2, 2, 1, 333, 333, 64, true, 0, false, false, 2},
        {true, 2, 2, 1, 333, 333, 64, true, 0, false, true, 5},
        {true, 2, 2, 1, 333, 333, 64, true, 0, false, false, 6},
        {true, 20, 10, 1, 384, 384, 64, true, 0, true, false, 0}, /* more heads than multiprocessors */
        {true, 67, 4, 2, 300, 300, 64, true, 0, false, true, 0},
        {true, 50, 4, 1, 130, 260, 64, false, 0, false, false, 0},
        {true, 90, 2, 1, 200, 200, 64, true, 60, true, false, 0},
        {true, 1, 3, 1, 700, 700, 128, true, 0, true, false, 0},
        {true, 1, 4, 2, 300, 411, 128, false, 0, false, true, 0},
        {true, 1, 2, 1, 500, 500, 128, true, 90, true, false, 0},
        {true, 1, 2, 1, 300, 300, 128, true, 0, false, false, 6},
        {true, 1, 3, 1, 400, 400, 96, true, 0, true, false, 0},
        {true, 1, 2, 1, 200, 300, 80, false, 0, false, false, 0},
        {true, 1, 2, 1, 200, 200, 160, true, 0, true, true, 0},
        {true, 1, 2, 1, 150, 150, 256, true, 0, false, false, 0},
        {true, 1, 3, 1, 150, 150, 33, true, 40, true, false, 0},
        {false, 2, 3, 1, 300, 300, 64, true, 0, true, false, 0},
        {false, 1, 2, 1, 500, 500, 64, true, 0, true, true, 0},
        {false, 1, 4, 4, 200, 333, 64, false, 0, false, true, 0},
        {false, 2, 2, 1, 222, 222, 48, true, 30, false, false, 1},
        {false, 1, 3, 1, 222, 222, 128, true, 0, true, false, 6},
        {false, 1, 2, 2, 222, 222, 100, true, 77, false, true, 0},
        {false, 1, 2, 1, 222, 111, 7, false, 0, false, false, 0},
        {false, 1, 2, 1, 133, 133, 256, true, 0, false, true, 0},
        {false, 1, 2, 1, 133, 144, 200, false, 0, false, false, 0},
        {false, 1, 2, 1, 1, 1, 64, true, 0, true, false, 0},
    };
    const size_t count = small ? 10 : sizeof tests / sizeof *tests;
    for (size_t i = 0; i < count; i++) {
        if (tests[i].is_bf16)
            check<bf16>(tests[i]);
        else
            check<float>(tests[i]);
    }
    printf(failures ? "%d FAILURES\n" : "all right (%d failures)\n", failures);
}

int main(int count, char **arguments)
{
    bool checks = count < 2, small = false, times = count < 2, once = false;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < count; i++) {
        checks |= !strcmp(arguments[i], "check");
        small |= !strcmp(arguments[i], "small");
        once |= !strcmp(arguments[i], "once");
        times |= !strcmp(arguments[i], "time");
        if (!strcmp(arguments[i], "any"))
            attention::use_hopper = false;
    }
    if (checks || small)
        check_all(small);
    if (once)
        measure<bf16>({true, 16, 16, 1, 1024, 1024, 64, true, 0, true, false, 0}, true);
    if (times) {
        measure<bf16>({true, 16, 16, 1, 1024, 1024, 64, true, 0, true, false, 0}, false);
        measure<bf16>({true, 64, 12, 1, 1024, 1024, 64, true, 0, true, false, 0}, false);
        measure<bf16>({true, 8, 25, 1, 1024, 1024, 64, true, 0, true, false, 0}, false);
        measure<bf16>({true, 4, 16, 1, 4096, 4096, 64, true, 0, true, false, 0}, false);
        measure<bf16>({true, 16, 16, 1, 1024, 1024, 64, false, 0, true, false, 0}, false);
        measure<bf16>({true, 16, 8, 1, 1024, 1024, 128, true, 0, true, false, 0}, false);
        measure<float>({false, 4, 16, 1, 1024, 1024, 64, true, 0, true, false, 0}, false);
        measure<float>({false, 4, 8, 1, 1024, 1024, 128, true, 0, true, false, 0}, false);
    }
    return failures > 0;
}
