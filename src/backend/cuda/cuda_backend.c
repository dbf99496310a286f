/* One GPU. Memory of the device, a stream for each queue, and recordings that become graphs: the second time that a queue runs the
 * same calls, it captures them, and from then on launches them as one. That is possible because addresses never change. */
#include "backend/cuda/cuda_lanes.h"
#include "backend/cuda/cuda_limits.h"
#include "backend/cuda/cuda_products.h"
#include "backend/cuda/cuda_table.h"
#include "backend/cuda/cudnn_attention.h"

#include "backend/recording.h"
#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const backend_type backend_cuda;

/* The scratch memory of a queue: workspace of the matrix products, partial sums. */
#define SCRATCH_BYTES ((uint64_t)33 << 20)

/* The most that cuDNN's attention may take for its backward pass. */
#define ATTENTION_BYTES ((uint64_t)128 << 20)

typedef struct cuda_backend {
    backend base;
    cuda_products *products;
    cudnn_attention *attention; /* NULL: cuDNN is not there */
    int device, multiprocessors;
    char kernels[64]; /* such as "cuda sm_90" */
    char about[512];
    /* Times of events are distances to this one. */
    cudaEvent_t zero;
    uint64_t zero_nanoseconds;
} cuda_backend;

struct backend_event {
    cudaEvent_t at;
};

/* Calls that a queue has run before. */
typedef struct cuda_graph {
    uint64_t recording;
    size_t first, end;
    cudaGraphExec_t ready; /* NULL: they ran once */
} cuda_graph;

enum { MOST_GRAPHS = 8, LEAST_CALLS = 16 };

typedef struct cuda_queue {
    backend_queue base;
    cuda_run run;
    cuda_graph graphs[MOST_GRAPHS];
    size_t next_graph;
} cuda_queue;

/* ---- failures ---- */

remat_status cuda_fail(const backend *owner, cudaError_t error, const char *what)
{
    const bool memory = error == cudaErrorMemoryAllocation;
    cudaGetLastError(); /* it would be reported again */
    return remat_fail(owner->context, memory ? REMAT_NO_MEMORY : REMAT_IO, NULL, "%s on the GPU failed: %s", what,
                      cudaGetErrorString(error));
}

#define TRY(owner, call, what)                        \
    do {                                              \
        const cudaError_t tried = (call);             \
        if (tried != cudaSuccess)                     \
            return cuda_fail((owner), tried, (what)); \
    } while (0)

remat_status cuda_enter(const backend *owner)
{
    TRY(owner, cudaSetDevice(((const cuda_backend *)owner)->device), "choosing the device");
    return REMAT_OK;
}

/* ---- opening ---- */

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* "cuda:2" is the third device, "cuda" that of this process: the processes of a machine share its devices by turns. */
static remat_status choose_device(remat_context *context, const char *name, uint64_t process, int *device)
{
    int count = 0;
    char *end = NULL;
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (error != cudaSuccess || count == 0)
        return remat_fail(context, REMAT_INVALID, NULL, "there is no GPU that CUDA can use: %s",
                          error == cudaErrorInsufficientDriver
                              ? "there is no NVIDIA driver, or it is older than the CUDA that this remat was built with"
                          : error != cudaSuccess ? cudaGetErrorString(error)
                                                 : "no device was found");
    if (name[4] != ':') {
        *device = (int)(process % (uint64_t)count);
        return REMAT_OK;
    }
    const char *number = name + 5;
    const long wanted = strtol(number, &end, 10);
    if (end == number || *end || wanted < 0 || wanted >= count)
        return count == 1
                   ? remat_fail(context, REMAT_INVALID, NULL, "there is no device '%.40s'; there is cuda:0", name)
                   : remat_fail(context, REMAT_INVALID, NULL, "there is no device '%.40s'; there are cuda:0 to cuda:%d",
                                name, count - 1);
    *device = (int)wanted;
    return REMAT_OK;
}

static void describe(cuda_backend *cuda, const struct cudaDeviceProp *properties)
{
    int driver = 0;
    char cudnn[32] = "no cuDNN";
    const size_t cublas = cuda_products_version(cuda->products);
    cudaDriverGetVersion(&driver);
    if (cuda->attention) {
        const size_t version = cudnn_attention_version(cuda->attention);
        snprintf(cudnn, sizeof cudnn, "cuDNN %zu.%zu", version / 10000, version / 100 % 100);
    }
    snprintf(cuda->about, sizeof cuda->about, "%s, compute capability %d.%d, %zu MiB, CUDA %d.%d, cuBLASLt %zu.%zu, %s",
             properties->name, properties->major, properties->minor, properties->totalGlobalMem >> 20, driver / 1000,
             driver / 10 % 100, cublas / 10000, cublas / 100 % 100, cudnn);
    cuda->base.about = cuda->about;
}

static remat_status prepare(cuda_backend *cuda)
{
    struct cudaDeviceProp properties;
    backend *owner = &cuda->base;
    REMAT_TRY(cuda_enter(owner));
    TRY(owner, cudaGetDeviceProperties(&properties, cuda->device), "asking for its properties");
    if (properties.major < 8)
        return remat_fail(owner->context, REMAT_INVALID, NULL, "%s has compute capability %d.%d; 8.0 or more is needed",
                          properties.name, properties.major, properties.minor);
    cuda->multiprocessors = properties.multiProcessorCount;
    memcpy(owner->identity, properties.uuid.bytes, sizeof owner->identity);
    snprintf(cuda->kernels, sizeof cuda->kernels, "cuda sm_%d%d", properties.major, properties.minor);
    REMAT_TRY(cuda_products_open(owner->context, &cuda->products));
    REMAT_TRY(cudnn_attention_open(owner->context, 10 * properties.major + properties.minor, ATTENTION_BYTES,
                                   &cuda->attention));
    describe(cuda, &properties);
    size_t left = 0, total = 0;
    TRY(owner, cudaMemGetInfo(&left, &total), "asking for its memory");
    owner->free_bytes = left;
    TRY(owner, cudaEventCreate(&cuda->zero), "making an event");
    TRY(owner, cudaEventRecord(cuda->zero, NULL), "recording an event");
    TRY(owner, cudaEventSynchronize(cuda->zero), "waiting for an event");
    cuda->zero_nanoseconds = clock_now();
    return REMAT_OK;
}

static void close_cuda(backend *owner)
{
    cuda_backend *cuda = (cuda_backend *)owner;
    if (cuda->zero)
        cudaEventDestroy(cuda->zero);
    cudnn_attention_close(cuda->attention);
    cuda_products_close(owner->context, cuda->products);
    remat_release(owner->context, cuda, 1, sizeof *cuda);
}

static remat_status open_cuda(remat_context *context, const backend_options *options, backend **made)
{
    int device = 0;
    if (options->kernels && strcmp(options->kernels, "fast") != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "there are no kernels '%.40s' for the device cuda; there are fast", options->kernels);
    REMAT_TRY(choose_device(context, options->device, options->process, &device));
    cuda_backend *cuda = remat_alloc_zeroed(context, 1, sizeof *cuda);
    if (!cuda)
        return REMAT_NO_MEMORY;
    cuda->base = (backend){.type = &backend_cuda,
                           .context = context,
                           .kernels = cuda->kernels,
                           .threads = options->threads ? options->threads : 1,
                           .scratch_bytes = SCRATCH_BYTES,
                           .half_products = true,
                           .rounds_once = true,
                           .joins = ACTIVATION_GELU_TANH,
                           .loss_rows = 2048,
                           .lanes = &cuda_lanes};
    cuda->device = device;
    const remat_status status = prepare(cuda);
    if (status != REMAT_OK) {
        close_cuda(&cuda->base);
        return status;
    }
    *made = &cuda->base;
    return REMAT_OK;
}

/* ---- memory ---- */

static remat_status allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory)
{
    void *at = NULL;
    REMAT_TRY(cuda_enter(owner));
    const cudaError_t error =
        kind == MEMORY_STAGING ? cudaHostAlloc(&at, bytes, cudaHostAllocDefault) : cudaMalloc(&at, bytes);
    if (error != cudaSuccess) {
        size_t left = 0, total = 0;
        cudaGetLastError();
        if (error != cudaErrorMemoryAllocation || kind == MEMORY_STAGING ||
            cudaMemGetInfo(&left, &total) != cudaSuccess)
            return cuda_fail(owner, error, "allocating memory");
        return remat_fail(owner->context, REMAT_NO_MEMORY, NULL,
                          "the GPU has no memory for %llu bytes: %llu of its %llu bytes are free",
                          (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)total);
    }
    *memory = (backend_memory){at, bytes, kind};
    if (zeroed && kind == MEMORY_STAGING)
        memset(at, 0, bytes);
    if (zeroed && kind == MEMORY_DEVICE)
        TRY(owner, cudaMemset(at, 0, bytes), "clearing memory");
    return REMAT_OK;
}

static void release(backend *owner, backend_memory *memory)
{
    (void)owner;
    if (memory->kind == MEMORY_STAGING)
        cudaFreeHost(memory->at);
    else
        cudaFree(memory->at);
}

/* ---- kernels ---- */

static backend_kernel find_kernel(const backend *owner, operation op, const char *types)
{
    (void)owner;
    return cuda_table_find(op, types);
}

static uint64_t workspace(const backend *owner, operation op, const void *args)
{
    return cuda_table_workspace(((const cuda_backend *)owner)->attention, op, args);
}

/* ---- queues ---- */

static void queue_destroy(backend_queue *base)
{
    cuda_queue *queue = (cuda_queue *)base;
    if (queue->run.stream)
        cudaStreamSynchronize(queue->run.stream);
    for (size_t i = 0; i < MOST_GRAPHS; i++)
        if (queue->graphs[i].ready)
            cudaGraphExecDestroy(queue->graphs[i].ready);
    if (queue->run.stream)
        cudaStreamDestroy(queue->run.stream);
    if (queue->run.scratch)
        cudaFree(queue->run.scratch);
    remat_release(base->owner->context, queue, 1, sizeof *queue);
}

static remat_status fill_queue(cuda_queue *queue, bool computes)
{
    cuda_backend *cuda = (cuda_backend *)queue->base.owner;
    REMAT_TRY(cuda_enter(&cuda->base));
    if (computes)
        TRY(&cuda->base, cudaMalloc(&queue->run.scratch, SCRATCH_BYTES), "allocating scratch memory");
    TRY(&cuda->base, cudaStreamCreateWithFlags(&queue->run.stream, cudaStreamNonBlocking), "making a stream");
    queue->run.scratch_bytes = computes ? SCRATCH_BYTES : 0;
    queue->run.multiprocessors = cuda->multiprocessors;
    queue->run.products = cuda->products;
    queue->run.attention = cuda->attention;
    return REMAT_OK;
}

static remat_status make_queue(backend *owner, bool computes, backend_queue **made)
{
    cuda_queue *queue = remat_alloc_zeroed(owner->context, 1, sizeof *queue);
    if (!queue)
        return REMAT_NO_MEMORY;
    queue->base.owner = owner;
    const remat_status status = fill_queue(queue, computes);
    if (status != REMAT_OK) {
        queue_destroy(&queue->base);
        return status;
    }
    *made = &queue->base;
    return REMAT_OK;
}

static remat_status queue_create(backend *owner, backend_queue **made)
{
    return make_queue(owner, true, made);
}

remat_status cuda_lane_create(backend *owner, backend_queue **made)
{
    return make_queue(owner, false, made);
}

const cuda_run *cuda_queue_run(const backend_queue *queue)
{
    return &((const cuda_queue *)queue)->run;
}

cudaStream_t cuda_queue_stream(const backend_queue *queue)
{
    return ((const cuda_queue *)queue)->run.stream;
}

/* ---- running ---- */

/* Calls of one kernel that follow each other; returns where the next one is. */
enum { MOST_CALLS = 1024 };

static size_t collect(const recording *calls, size_t at, size_t end, const void *args[MOST_CALLS], size_t *count)
{
    const cuda_row *row = recording_call(calls, at)->kernel;
    *count = 0;
    while (at < end && *count < MOST_CALLS && recording_call(calls, at)->kernel == row) {
        recorded_call *call = recording_call(calls, at);
        args[(*count)++] = recorded_args(call);
        at += call->bytes;
    }
    return at;
}

/* A sum with the normalisation of it behind it; returns whether it was launched. */
static bool launch_sum(const cuda_queue *queue, const recording *calls, size_t *at, size_t end, cudaError_t *error)
{
    recorded_call *sum = recording_call(calls, *at);
    const size_t next = *at + sum->bytes;
    recorded_call *normalize = next < end ? recording_call(calls, next) : NULL;
    if (sum->op != OP_add || !sum->kernel || !normalize || normalize->op != OP_normalize || !normalize->kernel ||
        !cuda_can_add_and_normalize(recorded_args(sum), recorded_args(normalize)))
        return false;
    *error = cuda_add_and_normalize(&queue->run, recorded_args(sum), recorded_args(normalize));
    *at = next + normalize->bytes;
    return true;
}

static remat_status launch(const cuda_queue *queue, const recording *calls, size_t first, size_t end)
{
    const void *args[MOST_CALLS];
    for (size_t at = first; at < end;) {
        recorded_call *call = recording_call(calls, at);
        const cuda_row *row = call->kernel;
        cudaError_t error = cudaSuccess;
        size_t count;
        if (row && row->launch_many) {
            at = collect(calls, at, end, args, &count);
            error = row->launch_many(&queue->run, args, count);
        } else if (!launch_sum(queue, calls, &at, end, &error)) {
            error = row ? row->launch(&queue->run, recorded_args(call)) : cudaSuccess;
            at += call->bytes;
        }
        if (error != cudaSuccess)
            return cuda_fail(queue->base.owner, error, operation_table[call->op].name);
    }
    return REMAT_OK;
}

static bool are_many(const recording *calls, size_t first, size_t end)
{
    size_t count = 0;
    for (size_t at = first; at < end && count < LEAST_CALLS; at += recording_call(calls, at)->bytes)
        count++;
    return count == LEAST_CALLS;
}

/* The entry of these calls; a new one takes the place of the oldest. */
static cuda_graph *graph_of(cuda_queue *queue, const recording *calls, size_t first, size_t end, bool *is_new)
{
    *is_new = false;
    for (size_t i = 0; i < MOST_GRAPHS; i++) {
        cuda_graph *graph = &queue->graphs[i];
        if (graph->end && graph->recording == calls->number && graph->first == first && graph->end == end)
            return graph;
    }
    cuda_graph *graph = &queue->graphs[queue->next_graph];
    queue->next_graph = (queue->next_graph + 1) % MOST_GRAPHS;
    if (graph->ready)
        cudaGraphExecDestroy(graph->ready);
    *graph = (cuda_graph){calls->number, first, end, NULL};
    *is_new = true;
    return graph;
}

static remat_status capture(cuda_queue *queue, const recording *calls, cuda_graph *graph)
{
    const backend *owner = queue->base.owner;
    cudaGraph_t captured = NULL;
    TRY(owner, cudaStreamBeginCapture(queue->run.stream, cudaStreamCaptureModeThreadLocal), "beginning a graph");
    const remat_status status = launch(queue, calls, graph->first, graph->end);
    const cudaError_t ended = cudaStreamEndCapture(queue->run.stream, &captured);
    cudaError_t made = ended;
    if (status == REMAT_OK && ended == cudaSuccess)
        made = cudaGraphInstantiate(&graph->ready, captured, 0);
    if (captured)
        cudaGraphDestroy(captured);
    REMAT_TRY(status);
    TRY(owner, made, "making a graph");
    return REMAT_OK;
}

/* The first run is a plain one: libraries prepare what they need, which a graph must not contain. */
static remat_status run(backend_queue *base, const recording *calls, size_t first, size_t end)
{
    cuda_queue *queue = (cuda_queue *)base;
    bool is_new;
    REMAT_TRY(cuda_enter(base->owner));
    if (!are_many(calls, first, end))
        return launch(queue, calls, first, end);
    cuda_graph *graph = graph_of(queue, calls, first, end, &is_new);
    if (is_new)
        return launch(queue, calls, first, end);
    if (!graph->ready)
        REMAT_TRY(capture(queue, calls, graph));
    TRY(base->owner, cudaGraphLaunch(graph->ready, queue->run.stream), "launching a graph");
    return REMAT_OK;
}

static remat_status copy(backend_queue *base, void *to, const void *from, uint64_t bytes, enum cudaMemcpyKind kind)
{
    const cuda_queue *queue = (const cuda_queue *)base;
    REMAT_TRY(cuda_enter(base->owner));
    TRY(base->owner, cudaMemcpyAsync(to, from, bytes, kind, queue->run.stream), "copying");
    return REMAT_OK;
}

static remat_status copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes)
{
    return copy(queue, to, host, bytes, cudaMemcpyHostToDevice);
}

static remat_status copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes)
{
    return copy(queue, host, from, bytes, cudaMemcpyDeviceToHost);
}

static remat_status copy_within(backend_queue *queue, void *to, const void *from, uint64_t bytes)
{
    return copy(queue, to, from, bytes, cudaMemcpyDeviceToDevice);
}

static remat_status wait(backend_queue *base)
{
    TRY(base->owner, cudaStreamSynchronize(((const cuda_queue *)base)->run.stream), "the work");
    return REMAT_OK;
}

/* ---- events ---- */

static remat_status event_create(backend *owner, backend_event **made)
{
    *made = remat_alloc_zeroed(owner->context, 1, sizeof **made);
    if (!*made)
        return REMAT_NO_MEMORY;
    const cudaError_t error = cudaEventCreate(&(*made)->at);
    if (error == cudaSuccess)
        return REMAT_OK;
    remat_release(owner->context, *made, 1, sizeof **made);
    *made = NULL;
    return cuda_fail(owner, error, "making an event");
}

static void event_destroy(backend *owner, backend_event *event)
{
    cudaEventDestroy(event->at);
    remat_release(owner->context, event, 1, sizeof *event);
}

/* Distances are milliseconds in fp32: beyond a quarter of a second they would lose microseconds. */
static remat_status move_zero(cuda_backend *cuda, cudaStream_t stream)
{
    const backend *owner = &cuda->base;
    cudaEvent_t later;
    float milliseconds;
    if (clock_now() - cuda->zero_nanoseconds < 250000000u)
        return REMAT_OK;
    TRY(owner, cudaEventCreate(&later), "making an event");
    cudaError_t error = cudaEventRecord(later, stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(later);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, cuda->zero, later);
    if (error != cudaSuccess) {
        cudaEventDestroy(later);
        return cuda_fail(owner, error, "recording an event");
    }
    cudaEventDestroy(cuda->zero);
    cuda->zero = later;
    cuda->zero_nanoseconds += (uint64_t)(1e6 * (double)milliseconds);
    return REMAT_OK;
}

static remat_status event_record(backend_queue *base, backend_event *event)
{
    const cuda_queue *queue = (const cuda_queue *)base;
    REMAT_TRY(move_zero((cuda_backend *)base->owner, queue->run.stream));
    TRY(base->owner, cudaEventRecord(event->at, queue->run.stream), "recording an event");
    return REMAT_OK;
}

static remat_status event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds)
{
    const cuda_backend *cuda = (const cuda_backend *)owner;
    float milliseconds = 0;
    TRY(owner, cudaEventSynchronize(event->at), "waiting for an event");
    TRY(owner, cudaEventElapsedTime(&milliseconds, cuda->zero, event->at), "asking for a time");
    *nanoseconds = (uint64_t)((double)cuda->zero_nanoseconds + 1e6 * (double)milliseconds);
    return REMAT_OK;
}

/* ---- algorithms ---- */

static void look_for_algorithms(backend *owner, bool looks)
{
    cuda_products_look(((cuda_backend *)owner)->products, looks);
}

static remat_status algorithms(backend *owner, char **text)
{
    return cuda_products_chosen(((cuda_backend *)owner)->products, text);
}

static remat_status use_algorithms(backend *owner, const char *text)
{
    return cuda_products_use(((cuda_backend *)owner)->products, text);
}

const backend_type backend_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .allocate = allocate,
    .release = release,
    .find_kernel = find_kernel,
    .workspace = workspace,
    .measure_limits = cuda_measure_limits,
    .look_for_algorithms = look_for_algorithms,
    .algorithms = algorithms,
    .use_algorithms = use_algorithms,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .run = run,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .wait = wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
};
