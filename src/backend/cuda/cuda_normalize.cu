/* Normalisation of rows: a warp for each row, which passes over it from the first-level cache after the first time. */
#include "backend/cuda/cuda_device.cuh"

#include <type_traits>

enum { ROWS_AT_ONCE = 4, NORM_THREADS = ROWS_AT_ONCE * WARP };

/* The pieces of a row that are a lane's: eight columns each, or one where rows cannot be read by eights. */
#define EACH_PIECE(columns, eights, i) \
    for (size_t i = (threadIdx.x % WARP) * ((eights) ? 8 : 1); i < (columns); i += WARP * ((eights) ? 8 : 1))

struct piece {
    float of[8];
};

template <bool EIGHTS> __device__ __forceinline__ piece get_piece(tensor_ref t, size_t i)
{
    piece v;
    if (EIGHTS) {
        const eight x = get8(t, i);
#pragma unroll
        for (int j = 0; j < 8; j++)
            v.of[j] = x.of[j];
    } else {
        v.of[0] = get(t, i);
    }
    return v;
}

template <bool EIGHTS> __device__ __forceinline__ void put_piece(tensor_ref t, size_t i, const piece &v)
{
    if (EIGHTS) {
        eight x;
#pragma unroll
        for (int j = 0; j < 8; j++)
            x.of[j] = v.of[j];
        put8(t, i, x);
    } else {
        put(t, i, v.of[0]);
    }
}

/* The sums as they are when they have been written and read again. */
__device__ __forceinline__ eight sum_of_eights(const eight &a, const eight &b, remat_dtype type)
{
    eight y;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const float sum = a.of[j] + b.of[j];
        y.of[j] = type == REMAT_BF16 ? __bfloat162float(__float2bfloat16_rn(sum)) : sum;
    }
    return y;
}

template <bool EIGHTS> __global__ void __launch_bounds__(NORM_THREADS) normalize_rows(op_normalize p)
{
    enum { EACH = EIGHTS ? 8 : 1 };
    const size_t row = (size_t)blockIdx.x * ROWS_AT_ONCE + threadIdx.x / WARP, from = row * p.columns;
    if (row >= p.rows)
        return;
    float mean = 0, variance = 0;
    if (p.means.at) {
        EACH_PIECE(p.columns, EIGHTS, i)
        {
            const piece x = get_piece<EIGHTS>(p.x, from + i);
#pragma unroll
            for (int j = 0; j < EACH; j++)
                mean += x.of[j];
        }
        mean = warp_sum(mean) / (float)p.columns;
    }
    EACH_PIECE(p.columns, EIGHTS, i)
    {
        const piece x = get_piece<EIGHTS>(p.x, from + i);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            variance += (x.of[j] - mean) * (x.of[j] - mean);
    }
    variance = warp_sum(variance) / (float)p.columns;
    const float scale = rsqrtf(variance + (float)p.epsilon);
    if (threadIdx.x % WARP == 0) {
        if (p.means.at)
            put(p.means, row, mean);
        put(p.scales, row, scale);
    }
    if (!p.y.at)
        return;
    EACH_PIECE(p.columns, EIGHTS, i)
    {
        piece x = get_piece<EIGHTS>(p.x, from + i);
        const piece gain = get_piece<EIGHTS>(p.gain, i), shift = p.shift.at ? get_piece<EIGHTS>(p.shift, i) : piece{};
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x.of[j] = (x.of[j] - mean) * scale * gain.of[j] + shift.of[j];
        put_piece<EIGHTS>(p.y, from + i, x);
    }
}

/* The same for rows of at most PIECES * 256 columns: a lane holds its share of the row in registers, and reads it once. The sums have
 * the order of the kernel above. ADDS: the row is the sum of two others (op_add), which is made here, rounded and written. */
template <int PIECES, bool ADDS>
__global__ void __launch_bounds__(NORM_THREADS) normalize_held_rows(op_normalize p, op_add sum)
{
    const size_t row = (size_t)blockIdx.x * ROWS_AT_ONCE + threadIdx.x / WARP, from = row * p.columns;
    const size_t lane = threadIdx.x % WARP * 8, apart = WARP * 8;
    if (row >= p.rows)
        return;
    eight x[PIECES];
    float mean = 0, variance = 0;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        const size_t i = lane + k * apart;
        if (ADDS && i < p.columns)
            x[k] = sum_of_eights(get8(sum.a, from + i), get8(sum.b, from + i), sum.y.type);
        else
            x[k] = i < p.columns ? get8(p.x, from + i) : eight{};
    }
    if (ADDS)
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            if (lane + k * apart < p.columns)
                put8(sum.y, from + lane + k * apart, x[k]);
    if (p.means.at) {
#pragma unroll
        for (int k = 0; k < PIECES; k++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                mean += x[k].of[j];
        mean = warp_sum(mean) / (float)p.columns;
    }
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (lane + k * apart < p.columns)
#pragma unroll
            for (int j = 0; j < 8; j++)
                variance += (x[k].of[j] - mean) * (x[k].of[j] - mean);
    variance = warp_sum(variance) / (float)p.columns;
    const float scale = rsqrtf(variance + (float)p.epsilon);
    if (threadIdx.x % WARP == 0) {
        if (p.means.at)
            put(p.means, row, mean);
        put(p.scales, row, scale);
    }
    if (!p.y.at)
        return;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        const size_t i = lane + k * apart;
        if (i >= p.columns)
            continue;
        const eight gain = get8(p.gain, i), shift = p.shift.at ? get8(p.shift, i) : eight{};
#pragma unroll
        for (int j = 0; j < 8; j++)
            x[k].of[j] = (x[k].of[j] - mean) * scale * gain.of[j] + shift.of[j];
        put8(p.y, from + i, x[k]);
    }
}

static bool is_by_eights(const op_normalize *p)
{
    return p->columns % 8 == 0 && by_eights(p->x) && by_eights(p->gain) && by_eights(p->shift) && by_eights(p->y);
}

/* False: the rows are too long for it. */
template <bool ADDS> static bool normalize_held(const cuda_run *run, const op_normalize &p, const op_add &sum)
{
    const size_t pieces = (p.columns + 8 * WARP - 1) / (8 * WARP);
    const unsigned blocks = blocks_for(p.rows, ROWS_AT_ONCE);
    if (pieces <= 2)
        normalize_held_rows<2, ADDS><<<blocks, NORM_THREADS, 0, run->stream>>>(p, sum);
    else if (pieces <= 4)
        normalize_held_rows<4, ADDS><<<blocks, NORM_THREADS, 0, run->stream>>>(p, sum);
    else if (pieces <= 8)
        normalize_held_rows<8, ADDS><<<blocks, NORM_THREADS, 0, run->stream>>>(p, sum);
    return pieces <= 8;
}

cudaError_t cuda_normalize(const cuda_run *run, const op_normalize *p)
{
    const bool eights = is_by_eights(p);
    if (!p->columns || !p->rows)
        return cudaSuccess;
    const unsigned blocks = blocks_for(p->rows, ROWS_AT_ONCE);
    if (eights && normalize_held<false>(run, *p, op_add{}))
        return cudaGetLastError();
    if (eights)
        normalize_rows<true><<<blocks, NORM_THREADS, 0, run->stream>>>(*p);
    else
        normalize_rows<false><<<blocks, NORM_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- a sum and its normalisation in one kernel ---- */

static bool are_apart(tensor_ref a, size_t a_count, tensor_ref b, size_t b_count)
{
    const char *x = (const char *)a.at, *y = (const char *)b.at;
    return !x || !y || x + dtype_bytes(a.type, a_count) <= y || y + dtype_bytes(b.type, b_count) <= x;
}

/* Whether what the normalisation writes leaves an operand of the sum alone until that was read. Rows are read and written by their own
 * warps only, so a row may take the place of the same row. */
static bool spares(const op_normalize *p, tensor_ref operand)
{
    const size_t count = p->rows * p->columns;
    const bool same = p->y.at == operand.at && p->y.type == operand.type;
    return (same || are_apart(p->y, count, operand, count)) && are_apart(p->means, p->rows, operand, count) &&
           are_apart(p->scales, p->rows, operand, count);
}

bool cuda_can_add_and_normalize(const op_add *sum, const op_normalize *p)
{
    const size_t count = p->rows * p->columns;
    return count && sum->y.at == p->x.at && sum->y.type == p->x.type && sum->count == count && is_by_eights(p) &&
           by_eights(sum->a) && by_eights(sum->b) && p->columns <= 8 * 8 * WARP && spares(p, sum->a) &&
           spares(p, sum->b) && are_apart(p->y, count, sum->y, count);
}

cudaError_t cuda_add_and_normalize(const cuda_run *run, const op_add *sum, const op_normalize *p)
{
    normalize_held<true>(run, *p, *sum);
    return cudaGetLastError();
}

/* ---- backward ----
 *
 * A block takes the rows part, part + parts, ... of the batch, one after the other. A thread has the same eight columns in all of
 * them, and adds up their shares in the gradients of gain and shift. These go to the workspace:
 *
 *     | gain of part 0 | shift of part 0 | gain of part 1 | ...
 */
static const size_t MOST_NORM_PARTS = 528, LONGEST_ROW = 4096;

static size_t norm_parts(size_t rows)
{
    return rows < MOST_NORM_PARTS ? rows : MOST_NORM_PARTS;
}

uint64_t cuda_normalize_backward_workspace(const op_normalize_backward *p)
{
    return norm_parts(p->rows) * 2 * p->columns * sizeof(float);
}

/* What a thread has of a row, as it is in memory. `old` is what dx holds, if it is added to. */
template <bool HALVES> struct row_share {
    typename std::conditional<HALVES, uint4, eight>::type x, dy, old;
    float mean, scale;
};

static __device__ __forceinline__ void get_share(tensor_ref t, size_t i, eight *to)
{
    *to = get8(t, i);
}
static __device__ __forceinline__ void get_share(tensor_ref t, size_t i, uint4 *to)
{
    *to = *(const uint4 *)((const __nv_bfloat16 *)t.at + i);
}
static __device__ __forceinline__ eight as_eight(const eight &v)
{
    return v;
}
static __device__ __forceinline__ eight as_eight(const uint4 &v)
{
    return eight_of(v);
}

template <bool HALVES>
static __device__ __forceinline__ row_share<HALVES> share_of(const op_normalize_backward &p, size_t row, size_t column)
{
    row_share<HALVES> s = {};
    if (row < p.rows && column < p.columns) {
        get_share(p.x, row * p.columns + column, &s.x);
        get_share(p.dy, row * p.columns + column, &s.dy);
        if (p.accumulate && p.dx.at)
            get_share(p.dx, row * p.columns + column, &s.old);
        s.mean = p.means.at ? get(p.means, row) : 0;
        s.scale = get(p.scales, row);
    }
    return s;
}

/* HALVES: x, dy and dx are in bf16. Rows are computed one or two at a time, in bf16 there is room for more, and the next ones are on their
 * way meanwhile. */
template <int THREADS, bool HALVES>
__global__ void __launch_bounds__(THREADS, 512 / THREADS) derive_rows(op_normalize_backward p, bool sums)
{
    enum { ROWS = HALVES ? 2 : 1 };
    __shared__ float shared[2][2 * ROWS][THREADS / WARP]; /* written for some rows while those before are still read */
    const size_t column = 8 * threadIdx.x;
    const bool mine = column < p.columns;
    const float share = 1 / (float)p.columns;
    const eight gain = mine ? get8(p.gain, column) : eight{};
    eight gains = {}, shifts = {};
    row_share<HALVES> ahead[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        ahead[i] = share_of<HALVES>(p, blockIdx.x + (size_t)i * gridDim.x, column);
    int turn = 0;
    for (size_t first = blockIdx.x; first < p.rows; first += (size_t)ROWS * gridDim.x, turn ^= 1) {
        row_share<HALVES> now[ROWS];
        float totals[2 * ROWS]; /* of each row: the average of the gradients, and the slope */
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            now[i] = ahead[i];
            ahead[i] = share_of<HALVES>(p, first + (size_t)(ROWS + i) * gridDim.x, column);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) { /* a row that is not there adds zeros */
            const eight x = as_eight(now[i].x), dy = as_eight(now[i].dy);
            float average = 0, slope = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float normal = (x.of[j] - now[i].mean) * now[i].scale, g = dy.of[j] * gain.of[j];
                average += g;
                slope += g * normal;
                gains.of[j] += dy.of[j] * normal;
                shifts.of[j] += dy.of[j];
            }
            totals[2 * i] = average;
            totals[2 * i + 1] = slope;
        }
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            totals[k] = warp_sum(totals[k]);
            if (threadIdx.x % WARP == 0)
                shared[turn][k][threadIdx.x / WARP] = totals[k];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 2 * ROWS; k++) {
            totals[k] = 0;
#pragma unroll
            for (int w = 0; w < THREADS / WARP; w++)
                totals[k] += shared[turn][k][w];
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const size_t row = first + (size_t)i * gridDim.x;
            if (row >= p.rows || !p.dx.at || !mine)
                continue;
            const float average = p.means.at ? totals[2 * i] * share : 0, slope = totals[2 * i + 1] * share;
            const eight x = as_eight(now[i].x), dy = as_eight(now[i].dy), old = as_eight(now[i].old);
            eight dx;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float normal = (x.of[j] - now[i].mean) * now[i].scale, g = dy.of[j] * gain.of[j];
                const float value = now[i].scale * (g - average - normal * slope);
                dx.of[j] = p.accumulate ? old.of[j] + value : value;
            }
            put8(p.dx, row * p.columns + column, dx);
        }
    }
    if (!sums || !mine)
        return;
    const tensor_ref partial = {(float *)p.workspace.at + (size_t)blockIdx.x * 2 * p.columns, REMAT_FP32};
    put8(partial, column, gains);
    put8(partial, p.columns + column, shifts);
}

/* Rows that are too long for that or not by eights: gradients of the input by rows, and the sums column by column. */
struct row_averages {
    float mean, scale, average, slope;
};

template <bool EIGHTS>
static __device__ __forceinline__ row_averages averages_of(const op_normalize_backward &p, size_t row)
{
    enum { EACH = EIGHTS ? 8 : 1 };
    row_averages a = {p.means.at ? get(p.means, row) : 0, get(p.scales, row), 0, 0};
    EACH_PIECE(p.columns, EIGHTS, i)
    {
        const piece x = get_piece<EIGHTS>(p.x, row * p.columns + i), dy = get_piece<EIGHTS>(p.dy, row * p.columns + i);
        const piece gain = get_piece<EIGHTS>(p.gain, i);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const float g = dy.of[j] * gain.of[j];
            a.average += g;
            a.slope += g * (x.of[j] - a.mean) * a.scale;
        }
    }
    a.average = p.means.at ? warp_sum(a.average) / (float)p.columns : 0;
    a.slope = warp_sum(a.slope) / (float)p.columns;
    return a;
}

template <bool EIGHTS> __global__ void __launch_bounds__(NORM_THREADS) derive_long_rows(op_normalize_backward p)
{
    enum { EACH = EIGHTS ? 8 : 1 };
    const size_t row = (size_t)blockIdx.x * ROWS_AT_ONCE + threadIdx.x / WARP;
    if (row >= p.rows)
        return;
    const row_averages a = averages_of<EIGHTS>(p, row);
    EACH_PIECE(p.columns, EIGHTS, i)
    {
        const size_t at = row * p.columns + i;
        const piece x = get_piece<EIGHTS>(p.x, at), dy = get_piece<EIGHTS>(p.dy, at);
        piece gain = get_piece<EIGHTS>(p.gain, i), old = {};
        if (p.accumulate)
            old = get_piece<EIGHTS>(p.dx, at);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const float n = (x.of[j] - a.mean) * a.scale;
            const float value = a.scale * (dy.of[j] * gain.of[j] - a.average - n * a.slope);
            gain.of[j] = p.accumulate ? old.of[j] + value : value;
        }
        put_piece<EIGHTS>(p.dx, at, gain);
    }
}

__global__ void sum_long_columns(op_normalize_backward p, size_t parts)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, part = blockIdx.y;
    if (i >= p.columns)
        return;
    float gain = 0, shift = 0;
    for (size_t row = part; row < p.rows; row += parts) {
        const float dy = get(p.dy, row * p.columns + i), mean = p.means.at ? get(p.means, row) : 0;
        gain += dy * (get(p.x, row * p.columns + i) - mean) * get(p.scales, row);
        shift += dy;
    }
    float *partial = (float *)p.workspace.at + part * 2 * p.columns;
    partial[i] = gain;
    partial[p.columns + i] = shift;
}

__global__ void add_norm_parts(op_normalize_backward p, size_t parts)
{
    const size_t i = (size_t)blockIdx.x * PART_COLUMNS + threadIdx.x, at = i % p.columns;
    const float total = sum_parts((const float *)p.workspace.at, parts, 2 * p.columns, i);
    const tensor_ref to = i < p.columns ? p.dgain : p.dshift;
    if (i < 2 * p.columns && to.at && threadIdx.y == 0)
        put(to, at, p.accumulate_parameters ? get(to, at) + total : total);
}

template <bool EIGHTS>
static void derive_long(const cuda_run *run, const op_normalize_backward *p, size_t parts, bool sums)
{
    if (sums) /* first, because dx may overlap dy */
        sum_long_columns<<<dim3(blocks_for(p->columns, 128), (unsigned)parts), 128, 0, run->stream>>>(*p, parts);
    if (p->dx.at)
        derive_long_rows<EIGHTS><<<blocks_for(p->rows, ROWS_AT_ONCE), NORM_THREADS, 0, run->stream>>>(*p);
}

template <int THREADS>
static void derive_with(const cuda_run *run, const op_normalize_backward *p, size_t parts, bool sums)
{
    const bool halves = p->x.type == REMAT_BF16 && p->dy.type == REMAT_BF16 && (!p->dx.at || p->dx.type == REMAT_BF16);
    if (halves)
        derive_rows<THREADS, true><<<(unsigned)parts, THREADS, 0, run->stream>>>(*p, sums);
    else
        derive_rows<THREADS, false><<<(unsigned)parts, THREADS, 0, run->stream>>>(*p, sums);
}

static void derive(const cuda_run *run, const op_normalize_backward *p, size_t parts, bool sums)
{
    const size_t threads = p->columns / 8;
    if (threads <= 32)
        derive_with<32>(run, p, parts, sums);
    else if (threads <= 64)
        derive_with<64>(run, p, parts, sums);
    else if (threads <= 128)
        derive_with<128>(run, p, parts, sums);
    else if (threads <= 256)
        derive_with<256>(run, p, parts, sums);
    else
        derive_with<512>(run, p, parts, sums);
}

cudaError_t cuda_normalize_backward(const cuda_run *run, const op_normalize_backward *p)
{
    const bool sums = p->dgain.at || p->dshift.at;
    const bool eights =
        p->columns % 8 == 0 && by_eights(p->x) && by_eights(p->gain) && by_eights(p->dy) && by_eights(p->dx);
    const size_t parts = norm_parts(p->rows);
    if (!p->columns || (!parts && p->accumulate_parameters))
        return cudaSuccess;
    if (parts && eights && p->columns <= LONGEST_ROW)
        derive(run, p, parts, sums);
    else if (parts && eights)
        derive_long<true>(run, p, parts, sums);
    else if (parts)
        derive_long<false>(run, p, parts, sums);
    if (sums)
        add_norm_parts<<<blocks_for(2 * p->columns, PART_COLUMNS), dim3(PART_COLUMNS, PART_LANES), 0, run->stream>>>(
            *p, parts);
    return cudaGetLastError();
}
