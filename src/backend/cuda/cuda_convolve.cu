/* Convolutions as matrix products. The values under the taps of some images are laid out as a matrix, with a column for every place
 * of the outputs:
 *
 *     columns   (channels * taps) x (images * places)        outputs   out_channels x (images * places)
 *
 *     outputs = weight columns        dweight += doutputs columns'        dcolumns = weight' doutputs
 *
 * The workspace is | columns | outputs | weight in bf16 |. Grouped convolutions have few products for each value; they are computed
 * directly. */
#include "backend/cuda/cuda_device.cuh"

enum { CONV_BYTES = 64 << 20, CONV_THREADS = 256 };

static size_t taps_of(const operation_window *w)
{
    return w->in_channels * w->kernel_h * w->kernel_w;
}

static size_t places_of(const operation_window *w)
{
    return w->out_h * w->out_w;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) & ~(uint64_t)255;
}

/* How many images are laid out at a time. */
static size_t images_at_once(const operation_window *w)
{
    const size_t each = (taps_of(w) + w->out_channels) * places_of(w) * sizeof(float);
    size_t images = each ? CONV_BYTES / each : w->batch;
    images = images < w->batch ? images : w->batch;
    return images ? images : 1;
}

struct conv_room {
    char *columns, *outputs, *weight;
    uint64_t bytes;
};

static conv_room room_of(const operation_window *w, char *at)
{
    const size_t places = images_at_once(w) * places_of(w);
    const uint64_t columns = rounded(taps_of(w) * places * sizeof(float));
    const uint64_t outputs = rounded(w->out_channels * places * sizeof(float));
    conv_room room = {at, at + columns, at + columns + outputs,
                      columns + outputs + rounded(taps_of(w) * w->out_channels * 2)};
    return room;
}

uint64_t cuda_convolve_workspace(const operation_window *w, remat_dtype type)
{
    (void)type;
    return w->groups > 1 ? 0 : room_of(w, NULL).bytes;
}

/* ---- layouts ---- */

__global__ void lay_out_taps(operation_window w, tensor_ref x, size_t first, size_t images, tensor_ref columns)
{
    const size_t places = w.out_h * w.out_w, width = images * places, taps = w.kernel_h * w.kernel_w;
    const size_t count = w.in_channels * taps * width, step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t row = i / width, image = i % width / places, place = i % places;
        const size_t channel = row / taps, ky = row % taps / w.kernel_w, kx = row % w.kernel_w;
        const long y = (long)(place / w.out_w * w.stride_h + ky * w.dilation_h) - (long)w.pad_h;
        const long z = (long)(place % w.out_w * w.stride_w + kx * w.dilation_w) - (long)w.pad_w;
        const bool inside = y >= 0 && z >= 0 && y < (long)w.in_h && z < (long)w.in_w;
        const size_t from =
            (((first + image) * w.in_channels + channel) * w.in_h + (inside ? y : 0)) * w.in_w + (inside ? z : 0);
        put(columns, i, inside ? get(x, from) : 0);
    }
}

/* Between images of out_channels planes and one matrix for all images, with the bias added on the way out. */
__global__ void lay_out_outputs(operation_window w, tensor_ref images_of, size_t first, size_t images,
                                tensor_ref matrix)
{
    const size_t places = w.out_h * w.out_w, width = images * places, count = w.out_channels * width;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t channel = i / width, image = i % width / places, place = i % places;
        put(matrix, i, get(images_of, ((first + image) * w.out_channels + channel) * places + place));
    }
}

__global__ void give_outputs(operation_window w, tensor_ref matrix, tensor_ref bias, size_t first, size_t images,
                             tensor_ref y)
{
    const size_t places = w.out_h * w.out_w, width = images * places, count = w.out_channels * width;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t image = i / (w.out_channels * places), channel = i / places % w.out_channels, place = i % places;
        const float value = get(matrix, channel * width + image * places + place);
        put(y, first * w.out_channels * places + i, value + (bias.at ? get(bias, channel) : 0));
    }
}

/* Every place of the input adds up the columns that were taken from it, tap after tap. */
__global__ void gather_taps(operation_window w, tensor_ref columns, size_t first, size_t images, tensor_ref dx,
                            bool accumulate)
{
    const size_t places = w.out_h * w.out_w, width = images * places, area = w.in_h * w.in_w;
    const size_t count = images * w.in_channels * area, step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t image = i / (w.in_channels * area), channel = i / area % w.in_channels;
        const size_t y = i % area / w.in_w, x = i % w.in_w, at = first * w.in_channels * area + i;
        float sum = 0;
        for (size_t ky = 0; ky < w.kernel_h; ky++)
            for (size_t kx = 0; kx < w.kernel_w; kx++) {
                const long above = (long)(y + w.pad_h) - (long)(ky * w.dilation_h);
                const long left = (long)(x + w.pad_w) - (long)(kx * w.dilation_w);
                if (above < 0 || left < 0 || above % (long)w.stride_h || left % (long)w.stride_w)
                    continue;
                const size_t row = (size_t)above / w.stride_h, column = (size_t)left / w.stride_w;
                if (row >= w.out_h || column >= w.out_w)
                    continue;
                const size_t tap = (channel * w.kernel_h + ky) * w.kernel_w + kx;
                sum += get(columns, tap * width + image * places + row * w.out_w + column);
            }
        put(dx, at, accumulate ? get(dx, at) + sum : sum);
    }
}

/* ---- by matrices ---- */

#define TRY(call)                         \
    do {                                  \
        const cudaError_t tried = (call); \
        if (tried != cudaSuccess)         \
            return tried;                 \
    } while (0)

static unsigned grid_of(size_t count)
{
    const unsigned blocks = blocks_for(count, CONV_THREADS);
    return blocks < 65536 ? blocks : 65536;
}

/* The weight in the type that the product takes. */
static cudaError_t weight_in(const cuda_run *run, const operation_window *w, tensor_ref weight, remat_dtype type,
                             char *room, tensor_ref *in)
{
    *in = weight;
    if (weight.type == type)
        return cudaSuccess;
    in->at = room;
    in->type = type;
    const op_convert convert = {weight, *in, taps_of(w) * w->out_channels};
    return cuda_convert(run, &convert);
}

static size_t images_from(const operation_window *w, size_t first, size_t step)
{
    return w->batch - first < step ? w->batch - first : step;
}

static cudaError_t convolve_by_matrix(const cuda_run *run, const op_convolve *p)
{
    const operation_window *w = &p->window;
    const conv_room room = room_of(w, (char *)p->workspace.at);
    const size_t step = images_at_once(w), taps = taps_of(w);
    const tensor_ref columns = {room.columns, p->x.type}, outputs = {room.outputs, REMAT_FP32};
    tensor_ref weight;
    TRY(weight_in(run, w, p->weight, p->x.type, room.weight, &weight));
    for (size_t first = 0; first < w->batch; first += step) {
        const size_t images = images_from(w, first, step), width = images * places_of(w);
        lay_out_taps<<<grid_of(taps * width), CONV_THREADS, 0, run->stream>>>(*w, p->x, first, images, columns);
        op_gemm product = {};
        product.a = weight, product.b = columns, product.c = outputs;
        product.m = w->out_channels, product.n = width, product.k = taps;
        product.lda = taps, product.ldb = width, product.ldc = width;
        TRY(cuda_gemm(run, &product));
        give_outputs<<<grid_of(w->out_channels * width), CONV_THREADS, 0, run->stream>>>(*w, outputs, p->bias, first,
                                                                                         images, p->y);
    }
    return cudaGetLastError();
}

static cudaError_t derive_weight_by_matrix(const cuda_run *run, const op_convolve_backward_weight *p)
{
    const operation_window *w = &p->window;
    const conv_room room = room_of(w, (char *)p->workspace.at);
    const size_t step = images_at_once(w), taps = taps_of(w);
    /* Both in the type of x; dy has it too, but where a layer computes in fp32 on inputs in bf16. */
    const remat_dtype type = p->x.type == REMAT_BF16 && p->dy.type == REMAT_BF16 ? REMAT_BF16 : REMAT_FP32;
    const tensor_ref columns = {room.columns, type}, outputs = {room.outputs, type};
    for (size_t first = 0; first < w->batch; first += step) {
        const size_t images = images_from(w, first, step), width = images * places_of(w);
        lay_out_taps<<<grid_of(taps * width), CONV_THREADS, 0, run->stream>>>(*w, p->x, first, images, columns);
        lay_out_outputs<<<grid_of(w->out_channels * width), CONV_THREADS, 0, run->stream>>>(*w, p->dy, first, images,
                                                                                            outputs);
        op_gemm product = {};
        product.a = outputs, product.b = columns, product.c = p->dweight;
        product.m = w->out_channels, product.n = taps, product.k = width;
        product.lda = width, product.ldb = width, product.ldc = taps;
        product.transpose_b = true;
        product.accumulate = p->accumulate || first > 0;
        TRY(cuda_gemm(run, &product));
    }
    return cudaGetLastError();
}

static cudaError_t derive_input_by_matrix(const cuda_run *run, const op_convolve_backward_input *p)
{
    const operation_window *w = &p->window;
    const conv_room room = room_of(w, (char *)p->workspace.at);
    const size_t step = images_at_once(w), taps = taps_of(w);
    const tensor_ref columns = {room.columns, REMAT_FP32}, outputs = {room.outputs, p->dy.type};
    tensor_ref weight;
    TRY(weight_in(run, w, p->weight, p->dy.type, room.weight, &weight));
    for (size_t first = 0; first < w->batch; first += step) {
        const size_t images = images_from(w, first, step), width = images * places_of(w);
        lay_out_outputs<<<grid_of(w->out_channels * width), CONV_THREADS, 0, run->stream>>>(*w, p->dy, first, images,
                                                                                            outputs);
        op_gemm product = {};
        product.a = weight, product.b = outputs, product.c = columns;
        product.m = taps, product.n = width, product.k = w->out_channels;
        product.lda = taps, product.ldb = width, product.ldc = width;
        product.transpose_a = true;
        TRY(cuda_gemm(run, &product));
        gather_taps<<<grid_of(images * w->in_channels * w->in_h * w->in_w), CONV_THREADS, 0, run->stream>>>(
            *w, columns, first, images, p->dx, p->accumulate);
    }
    return cudaGetLastError();
}

/* ---- directly, for groups ---- */

__global__ void convolve_directly(op_convolve p, size_t count)
{
    const operation_window &w = p.window;
    const size_t o = (size_t)blockIdx.x * blockDim.x + threadIdx.x, places = w.out_h * w.out_w;
    if (o >= count)
        return;
    const size_t m = o / places % w.out_channels, image = o / places / w.out_channels, place = o % places;
    const size_t channels = w.in_channels / w.groups, group = m / (w.out_channels / w.groups);
    float sum = p.bias.at ? get(p.bias, m) : 0;
    for (size_t c = 0; c < channels; c++)
        for (size_t ky = 0; ky < w.kernel_h; ky++)
            for (size_t kx = 0; kx < w.kernel_w; kx++) {
                const long y = (long)(place / w.out_w * w.stride_h + ky * w.dilation_h) - (long)w.pad_h;
                const long x = (long)(place % w.out_w * w.stride_w + kx * w.dilation_w) - (long)w.pad_w;
                if (y < 0 || x < 0 || y >= (long)w.in_h || x >= (long)w.in_w)
                    continue;
                sum += get(p.x, ((image * w.in_channels + group * channels + c) * w.in_h + y) * w.in_w + x) *
                       get(p.weight, ((m * channels + c) * w.kernel_h + ky) * w.kernel_w + kx);
            }
    put(p.y, o, sum);
}

__global__ void derive_input_directly(op_convolve_backward_input p, size_t count)
{
    const operation_window &w = p.window;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, area = w.in_h * w.in_w;
    if (i >= count)
        return;
    const size_t channel = i / area % w.in_channels, image = i / area / w.in_channels, y = i % area / w.in_w,
                 x = i % w.in_w;
    const size_t channels = w.in_channels / w.groups, outs = w.out_channels / w.groups, group = channel / channels;
    float sum = 0;
    for (size_t m = group * outs; m < (group + 1) * outs; m++)
        for (size_t ky = 0; ky < w.kernel_h; ky++)
            for (size_t kx = 0; kx < w.kernel_w; kx++) {
                const long above = (long)(y + w.pad_h) - (long)(ky * w.dilation_h);
                const long left = (long)(x + w.pad_w) - (long)(kx * w.dilation_w);
                if (above < 0 || left < 0 || above % (long)w.stride_h || left % (long)w.stride_w)
                    continue;
                const size_t row = (size_t)above / w.stride_h, column = (size_t)left / w.stride_w;
                if (row >= w.out_h || column >= w.out_w)
                    continue;
                sum += get(p.dy, ((image * w.out_channels + m) * w.out_h + row) * w.out_w + column) *
                       get(p.weight, ((m * channels + channel % channels) * w.kernel_h + ky) * w.kernel_w + kx);
            }
    put(p.dx, i, p.accumulate ? get(p.dx, i) + sum : sum);
}

/* A block for each weight. */
__global__ void derive_weight_directly(op_convolve_backward_weight p)
{
    const operation_window &w = p.window;
    const size_t places = w.out_h * w.out_w, channels = w.in_channels / w.groups;
    const size_t kx = blockIdx.x % w.kernel_w, ky = blockIdx.x / w.kernel_w % w.kernel_h;
    const size_t c = blockIdx.x / (w.kernel_w * w.kernel_h) % channels,
                 m = blockIdx.x / (w.kernel_w * w.kernel_h * channels);
    const size_t channel = m / (w.out_channels / w.groups) * channels + c;
    float sum = 0;
    for (size_t i = threadIdx.x; i < w.batch * places; i += CONV_THREADS) {
        const size_t image = i / places, place = i % places;
        const long y = (long)(place / w.out_w * w.stride_h + ky * w.dilation_h) - (long)w.pad_h;
        const long x = (long)(place % w.out_w * w.stride_w + kx * w.dilation_w) - (long)w.pad_w;
        if (y < 0 || x < 0 || y >= (long)w.in_h || x >= (long)w.in_w)
            continue;
        sum += get(p.x, ((image * w.in_channels + channel) * w.in_h + y) * w.in_w + x) *
               get(p.dy, (image * w.out_channels + m) * places + place);
    }
    sum = block_sum<CONV_THREADS>(sum);
    if (threadIdx.x == 0)
        put(p.dweight, blockIdx.x, p.accumulate ? get(p.dweight, blockIdx.x) + sum : sum);
}

/* ---- the operations ---- */

cudaError_t cuda_convolve(const cuda_run *run, const op_convolve *p)
{
    const operation_window *w = &p->window;
    const size_t count = w->batch * w->out_channels * places_of(w);
    if (!count)
        return cudaSuccess;
    if (w->groups == 1)
        return convolve_by_matrix(run, p);
    convolve_directly<<<blocks_for(count, CONV_THREADS), CONV_THREADS, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}

cudaError_t cuda_convolve_backward_weight(const cuda_run *run, const op_convolve_backward_weight *p)
{
    const operation_window *w = &p->window;
    const size_t weights = w->out_channels * (w->in_channels / w->groups) * w->kernel_h * w->kernel_w;
    if (p->dbias.at) {
        op_channel_sums sums = {};
        sums.x = p->dy, sums.sums = p->dbias;
        sums.batch = w->batch, sums.channels = w->out_channels, sums.area = places_of(w);
        sums.accumulate = p->accumulate;
        TRY(cuda_channel_sums(run, &sums));
    }
    if (!weights)
        return cudaSuccess;
    if (w->groups == 1 && w->batch && places_of(w))
        return derive_weight_by_matrix(run, p);
    derive_weight_directly<<<(unsigned)weights, CONV_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

cudaError_t cuda_convolve_backward_input(const cuda_run *run, const op_convolve_backward_input *p)
{
    const operation_window *w = &p->window;
    const size_t count = w->batch * w->in_channels * w->in_h * w->in_w;
    if (!count)
        return cudaSuccess;
    if (w->groups == 1 && w->out_channels && places_of(w))
        return derive_input_by_matrix(run, p);
    derive_input_directly<<<blocks_for(count, CONV_THREADS), CONV_THREADS, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}
