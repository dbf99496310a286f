/* Operations on rows: softmax, additions and copies by rows, embeddings, rotations. */
#include "backend/cuda/cuda_blocks.cuh"

enum { ROW_THREADS = 256 };

/* ---- softmax: a block for each row ---- */

__global__ void softmax_rows(op_softmax p)
{
    const size_t from = (size_t)blockIdx.x * p.columns;
    float largest = -INFINITY, sum = 0;
    bool broken = false; /* fmaxf drops NaN */
    for (size_t i = threadIdx.x; i < p.columns; i += ROW_THREADS) {
        const float x = get(p.x, from + i);
        largest = fmaxf(largest, x);
        broken |= isnan(x);
    }
    largest = block_max<ROW_THREADS>(largest);
    for (size_t i = threadIdx.x; i < p.columns; i += ROW_THREADS)
        sum += expf(get(p.x, from + i) - largest);
    sum = block_sum<ROW_THREADS>(broken ? NAN : sum);
    for (size_t i = threadIdx.x; i < p.columns; i += ROW_THREADS)
        put(p.y, from + i, expf(get(p.x, from + i) - largest) / sum);
}

cudaError_t cuda_softmax(const cuda_run *run, const op_softmax *p)
{
    if (p->rows && p->columns)
        softmax_rows<<<(unsigned)p->rows, ROW_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void softmax_backward_rows(op_softmax_backward p)
{
    const size_t from = (size_t)blockIdx.x * p.columns;
    float sum = 0;
    for (size_t i = threadIdx.x; i < p.columns; i += ROW_THREADS)
        sum += get(p.y, from + i) * get(p.dy, from + i);
    sum = block_sum<ROW_THREADS>(sum);
    for (size_t i = threadIdx.x; i < p.columns; i += ROW_THREADS) {
        const float value = get(p.y, from + i) * (get(p.dy, from + i) - sum);
        put(p.dx, from + i, p.accumulate ? get(p.dx, from + i) + value : value);
    }
}

cudaError_t cuda_softmax_backward(const cuda_run *run, const op_softmax_backward *p)
{
    if (p->rows && p->columns)
        softmax_backward_rows<<<(unsigned)p->rows, ROW_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- additions and copies ---- */

__global__ void add_to_each_row(op_add_to_rows p, size_t count, bool eights)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (!eights) {
        for (; i < count; i += step)
            put(p.y, i, get(p.x, i) + get(p.addend, i % p.columns));
        return;
    }
    for (; 8 * i < count; i += step) {
        eight x = get8(p.x, 8 * i);
        const eight addend = get8(p.addend, 8 * i % p.columns);
#pragma unroll
        for (int j = 0; j < 8; j++)
            x.of[j] += addend.of[j];
        put8(p.y, 8 * i, x);
    }
}

cudaError_t cuda_add_to_rows(const cuda_run *run, const op_add_to_rows *p)
{
    const size_t count = p->rows * p->columns;
    const bool eights = p->columns % 8 == 0 && by_eights(p->x) && by_eights(p->addend) && by_eights(p->y);
    if (count)
        add_to_each_row<<<blocks_for(eights ? count / 8 : count, 256), 256, 0, run->stream>>>(*p, count, eights);
    return cudaGetLastError();
}

__global__ void copy_each_row(op_copy_rows p, size_t count, bool eights)
{
    const size_t step = (size_t)gridDim.x * blockDim.x, columns = eights ? p.columns / 8 : p.columns;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t row = i / columns, column = i % columns * (eights ? 8 : 1);
        const size_t from = row * p.x_row + column, to = row * p.y_row + column;
        if (!eights) {
            put(p.y, to, p.accumulate ? get(p.y, to) + get(p.x, from) : get(p.x, from));
            continue;
        }
        eight x = get8(p.x, from);
        if (p.accumulate) {
            const eight old = get8(p.y, to);
#pragma unroll
            for (int j = 0; j < 8; j++)
                x.of[j] += old.of[j];
        }
        put8(p.y, to, x);
    }
}

cudaError_t cuda_copy_rows(const cuda_run *run, const op_copy_rows *p)
{
    const bool eights =
        p->columns % 8 == 0 && p->x_row % 8 == 0 && p->y_row % 8 == 0 && by_eights(p->x) && by_eights(p->y);
    const size_t count = p->rows * p->columns / (eights ? 8 : 1);
    if (count)
        copy_each_row<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, count, eights);
    return cudaGetLastError();
}

__global__ void put_each_row(op_put_rows p)
{
    const size_t row = blockIdx.x, to = (size_t)((const int32_t *)p.places.at)[row];
    if (to < p.most)
        for (size_t i = threadIdx.x; i < p.columns; i += blockDim.x)
            put(p.y, to * p.columns + i, get(p.x, row * p.x_row + i));
}

cudaError_t cuda_put_rows(const cuda_run *run, const op_put_rows *p)
{
    if (p->rows && p->columns)
        put_each_row<<<(unsigned)p->rows, 128, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void add_to_each_channel(op_add_to_channels p, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        put(p.y, i, get(p.y, i) + get(p.addend, i / p.area % p.channels));
}

cudaError_t cuda_add_to_channels(const cuda_run *run, const op_add_to_channels *p)
{
    const size_t count = p->batch * p->channels * p->area;
    if (count)
        add_to_each_channel<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}

/* ---- embeddings ---- */

__global__ void gather_rows(op_gather p, bool eights)
{
    const size_t row = blockIdx.x, from = (size_t)((const int32_t *)p.ids.at)[row] * p.width, to = row * p.width;
    const bool blocks = is_packed(p.table);
    if (eights)
        for (size_t i = 8 * threadIdx.x; i < p.width; i += 8 * blockDim.x)
            put8(p.y, to + i, get8(p.table, from + i));
    else
        for (size_t i = threadIdx.x; i < p.width; i += blockDim.x)
            put(p.y, to + i, blocks ? block_value(p.table, from + i) : get(p.table, from + i));
}

cudaError_t cuda_gather(const cuda_run *run, const op_gather *p)
{
    const bool plain = p->table.type == REMAT_FP32 || p->table.type == REMAT_BF16;
    const bool eights = plain && p->width % 8 == 0 && by_eights(p->table) && by_eights(p->y);
    if (p->rows && p->width)
        gather_rows<<<(unsigned)p->rows, 128, 0, run->stream>>>(*p, eights);
    return cudaGetLastError();
}

/* The block of the first row with an id adds up all rows with that id, in their order. So an entry of the table has one writer. Rows
 * are found in pieces, and their values are fetched several at a time. */
enum { GATHER_THREADS = 128, GATHER_PIECE = 1024, GATHER_AHEAD = 8 };

/* Whether an earlier row has the same id. */
static __device__ bool is_repeated(const int32_t *ids, size_t row)
{
    const int32_t id = ids[row];
    int found = 0;
    for (size_t first = 0; first < row && !found; first += 8 * GATHER_THREADS) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const size_t i = first + j * GATHER_THREADS + threadIdx.x;
            found |= i < row && ids[i] == id;
        }
        found = __syncthreads_or(found);
    }
    return found;
}

/* The rows from `first` on in a piece that have this id, in order. */
static __device__ int find_rows(const int32_t *ids, size_t first, size_t rows, int32_t id, int *found)
{
    __shared__ int counts[GATHER_THREADS];
    enum { EACH = GATHER_PIECE / GATHER_THREADS };
    const size_t mine = first + threadIdx.x * EACH;
    int count = 0;
    for (int j = 0; j < EACH; j++)
        count += mine + j < rows && ids[mine + j] == id;
    if (__syncthreads_count(count) == 0)
        return 0; /* as most pieces have none */
    counts[threadIdx.x] = count;
    __syncthreads();
    int before = 0, total = 0;
    for (int t = 0; t < GATHER_THREADS; t++) {
        before += t < (int)threadIdx.x ? counts[t] : 0;
        total += counts[t];
    }
    for (int j = 0; j < EACH && count; j++)
        if (mine + j < rows && ids[mine + j] == id)
            found[before++] = (int)(threadIdx.x * EACH) + j;
    __syncthreads();
    return total;
}

__global__ void __launch_bounds__(GATHER_THREADS) add_rows(op_gather_backward p)
{
    __shared__ int found[GATHER_PIECE];
    const int32_t *ids = (const int32_t *)p.ids.at;
    const size_t row = blockIdx.x;
    if (is_repeated(ids, row))
        return;
    const int32_t id = ids[row];
    for (size_t first = row; first < p.rows; first += GATHER_PIECE) {
        const int count = find_rows(ids, first, p.rows, id, found);
        for (size_t i = threadIdx.x; i < p.width && count; i += GATHER_THREADS) {
            const size_t to = (size_t)id * p.width + i;
            float sum = get(p.dtable, to);
            for (int k = 0; k < count; k += GATHER_AHEAD) {
                float ahead[GATHER_AHEAD];
#pragma unroll
                for (int j = 0; j < GATHER_AHEAD; j++)
                    ahead[j] = k + j < count ? get(p.dy, (first + (size_t)found[k + j]) * p.width + i) : 0;
#pragma unroll
                for (int j = 0; j < GATHER_AHEAD; j++)
                    sum = k + j < count ? sum + ahead[j] : sum;
            }
            put(p.dtable, to, sum);
        }
        __syncthreads(); /* `found` has been read */
    }
}

cudaError_t cuda_gather_backward(const cuda_run *run, const op_gather_backward *p)
{
    if (!p->accumulate) {
        const cudaError_t cleared =
            cudaMemsetAsync(p->dtable.at, 0, dtype_bytes(p->dtable.type, p->entries * p->width), run->stream);
        if (cleared != cudaSuccess)
            return cleared;
    }
    if (p->rows && p->width)
        add_rows<<<(unsigned)p->rows, GATHER_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- rotations ---- */

static const size_t MOST_PAIRS = 128; /* of a head: their frequencies are arguments of the kernel */

struct frequencies {
    float of[MOST_PAIRS];
};

__global__ void rotate_pairs(op_rotate p, size_t first_pair, size_t pairs, frequencies f)
{
    const size_t half = p.size / 2, count = p.rows * p.heads * pairs, step = (size_t)gridDim.x * blockDim.x;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const size_t pair = at % pairs, head = at / pairs; /* of all heads of all rows */
        const size_t first = head * p.size + first_pair + pair, second = first + half;
        const size_t row = head / p.heads;
        const float position = p.positions.at ? (float)((const int32_t *)p.positions.at)[row] : (float)(row % p.steps);
        const float angle = __fmul_rn(position, f.of[pair]);
        double sine, cosine;
        sincos((double)angle, &sine, &cosine);
        const float c = (float)(p.scale * cosine), s = (float)(p.scale * (p.backward ? -sine : sine));
        const float x = get(p.x, first), y = get(p.x, second);
        const float a = __fsub_rn(__fmul_rn(x, c), __fmul_rn(y, s)), b = __fadd_rn(__fmul_rn(y, c), __fmul_rn(x, s));
        put(p.y, first, p.accumulate ? get(p.y, first) + a : a);
        put(p.y, second, p.accumulate ? get(p.y, second) + b : b);
    }
}

cudaError_t cuda_rotate(const cuda_run *run, const op_rotate *p)
{
    const size_t half = p->size / 2;
    for (size_t first = 0; first < half && p->rows; first += MOST_PAIRS) {
        const size_t pairs = half - first < MOST_PAIRS ? half - first : MOST_PAIRS;
        frequencies f;
        for (size_t i = 0; i < pairs; i++)
            f.of[i] = rotary_frequency(&p->angles, p->size, first + i);
        rotate_pairs<<<blocks_for(p->rows * p->heads * pairs, 256), 256, 0, run->stream>>>(*p, first, pairs, f);
    }
    return cudaGetLastError();
}
