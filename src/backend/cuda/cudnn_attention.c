#include "backend/cuda/cudnn_attention.h"

#include "backend/cuda/cudnn_attention_graphs.h"

#ifdef REMAT_HAS_CUDNN

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

/* Earlier versions have faults in attention of their own. */
#define OLDEST_VERSION 91002

/* Where the backward graph's own workspace begins, after the means. */
#define WORKSPACE_STEP 256

typedef struct attention_plan {
    attention_sizes sizes;
    cudnn_builder builder; /* holds the graph that the plan was made of */
    cudnn_object plan;     /* NULL: cuDNN does not take it, and the builder says why */
    uint64_t workspace, means;
    struct {
        float scale, masked, window, one;
    } numbers;
} attention_plan;

struct cudnn_attention {
    remat_context *context;
    cudnn_library cudnn;
    cudnnHandle_t handle;
    int capability;
    uint64_t workspace_limit;
    attention_plan **plans;
    size_t count, capacity;
    char reason[400];
};

/* ---- opening ---- */

remat_status cudnn_attention_open(remat_context *context, int capability, uint64_t workspace_limit,
                                  cudnn_attention **made)
{
    cudnn_library cudnn;
    cudnnHandle_t handle;
    *made = NULL;
    if (!cudnn_library_load(&cudnn) || cudnn.version() < OLDEST_VERSION ||
        cudnn.create(&handle) != CUDNN_STATUS_SUCCESS)
        return REMAT_OK;
    cudnn_attention *fused = remat_alloc_zeroed(context, 1, sizeof(*fused));
    if (!fused) {
        cudnn.destroy(handle);
        return REMAT_NO_MEMORY;
    }
    fused->context = context;
    fused->cudnn = cudnn;
    fused->handle = handle;
    fused->capability = capability;
    fused->workspace_limit = workspace_limit;
    *made = fused;
    return REMAT_OK;
}

static void release_plan(cudnn_attention *fused, attention_plan *plan)
{
    cudnn_builder_end(&plan->builder);
    remat_release(fused->context, plan, 1, sizeof(*plan));
}

void cudnn_attention_close(cudnn_attention *fused)
{
    if (!fused)
        return;
    for (size_t i = 0; i < fused->count; i++)
        release_plan(fused, fused->plans[i]);
    remat_release(fused->context, fused->plans, fused->capacity, sizeof(*fused->plans));
    fused->cudnn.destroy(fused->handle);
    remat_release(fused->context, fused, 1, sizeof(*fused));
}

size_t cudnn_attention_version(const cudnn_attention *fused)
{
    return fused->cudnn.version();
}

const char *cudnn_attention_reason(const cudnn_attention *fused)
{
    return fused->reason;
}

/* ---- plans ---- */

static bool refuse(cudnn_attention *fused, const char *reason)
{
    snprintf(fused->reason, sizeof(fused->reason), "%s", reason);
    return false;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + WORKSPACE_STEP - 1) / WORKSPACE_STEP * WORKSPACE_STEP;
}

static void make_plan(cudnn_attention *fused, attention_plan *made)
{
    const attention_sizes *s = &made->sizes;
    int64_t bytes = 0;
    cudnn_builder_start(&made->builder, &fused->cudnn, fused->context);
    if (s->backward)
        attention_backward_graph(&made->builder, s);
    else
        attention_forward_graph(&made->builder, s);
    made->plan = cudnn_plan(&made->builder, fused->handle, &bytes);
    made->means = s->backward ? round_up((uint64_t)(s->batch * s->heads * s->steps) * sizeof(float)) : 0;
    made->workspace = (uint64_t)bytes;
    made->numbers.scale = (float)(1.0 / sqrt((double)s->size));
    made->numbers.masked = -INFINITY;
    made->numbers.window = (float)s->window;
    made->numbers.one = 1;
}

/* Makes a plan and keeps it, also one that says that there is none. NULL: out of memory. */
static attention_plan *add_plan(cudnn_attention *fused, const attention_sizes *sizes)
{
    if (remat_grow(fused->context, (void **)&fused->plans, &fused->capacity, fused->count + 1, sizeof(*fused->plans)) !=
        REMAT_OK)
        return NULL;
    attention_plan *made = remat_alloc_zeroed(fused->context, 1, sizeof(*made));
    if (!made)
        return NULL;
    made->sizes = *sizes;
    make_plan(fused, made);
    if (made->builder.out_of_memory) {
        release_plan(fused, made);
        return NULL;
    }
    fused->plans[fused->count++] = made;
    return made;
}

/* The plan of a shape, made the first time. NULL: there is none; the reason says why. */
static attention_plan *plan_of(cudnn_attention *fused, const attention_sizes *sizes)
{
    attention_plan *found = NULL;
    for (size_t i = 0; i < fused->count && !found; i++)
        if (memcmp(&fused->plans[i]->sizes, sizes, sizeof(*sizes)) == 0)
            found = fused->plans[i];
    if (!found)
        found = add_plan(fused, sizes);
    refuse(fused, !found ? "out of memory" : found->plan ? "" : found->builder.reason);
    return found && found->plan ? found : NULL;
}

/* How many sequences are computed at once, and the workspace for that. 0: none, because cuDNN does not take them. The backward
 * pass stores the gradients of all scores of these sequences. */
static int64_t sequences_at_once(cudnn_attention *fused, const attention_sizes *sizes, uint64_t *workspace)
{
    attention_sizes part = *sizes;
    for (;;) {
        const attention_plan *plan = plan_of(fused, &part);
        if (!plan)
            return 0;
        *workspace = plan->means + plan->workspace;
        if (!part.backward || part.batch == 1 || !fused->workspace_limit || *workspace <= fused->workspace_limit)
            return part.batch;
        const uint64_t each = (*workspace + (uint64_t)part.batch - 1) / (uint64_t)part.batch;
        const int64_t fitting = (int64_t)(fused->workspace_limit / each);
        part.batch = fitting < 1 ? 1 : fitting < part.batch ? fitting : part.batch - 1;
        /* Parts of the same size, where the last may be smaller. */
        const int64_t parts = (sizes->batch + part.batch - 1) / part.batch;
        part.batch = (sizes->batch + parts - 1) / parts;
        if (part.batch * sizes->heads * sizes->steps % 4 != 0) {
            refuse(fused, "the sums of a part would not be aligned to 16 bytes");
            return 0;
        }
    }
}

/* ---- what is taken ---- */

/* Whether a tensor has less than 2^31 values. */
static bool is_countable(int64_t batch, int64_t rows, int64_t row)
{
    uint64_t values;
    return remat_multiply((uint64_t)batch, (uint64_t)rows, &values) && remat_multiply(values, (uint64_t)row, &values) &&
           values <= INT32_MAX;
}

static bool sizes_are_taken(cudnn_attention *fused, const attention_sizes *s)
{
    if (s->batch < 1 || s->heads < 1 || s->steps < 1 || s->keys < 1)
        return refuse(fused, "there is nothing to compute");
    if (s->size < 1 || s->size > 128 || s->size % 8)
        return refuse(fused, "heads must have a multiple of 8 values, at most 128");
    if (s->row % 8 || s->key_row % 8 || s->out_row % 8)
        return refuse(fused, "rows are multiples of 16 bytes");
    if (s->causal ? s->steps != s->keys : s->window != 0)
        return refuse(fused, "a mask needs as many keys as steps");
    if (s->steps == 1)
        return refuse(fused, "there is one step");
    if (!is_countable(s->batch, s->steps, s->row) || !is_countable(s->batch, s->keys, s->key_row) ||
        !is_countable(s->batch, s->steps, s->out_row))
        return refuse(fused, "a tensor has 2^31 values or more");
    if (fused->capability < 80)
        return refuse(fused, "the device is older than compute capability 8.0");
    /* Elsewhere it was not seen to give the same bits in every run. */
    if (s->backward && fused->capability != 90)
        return refuse(fused, "the backward pass is for compute capability 9.0");
    if (s->backward && s->keys % 128 && fused->cudnn.version() <= 91500)
        return refuse(fused, "this version of cuDNN needs multiples of 128 keys");
    return true;
}

static bool is_fit(tensor_ref tensor, remat_dtype type)
{
    return !tensor.at || (tensor.type == type && (uintptr_t)tensor.at % 16 == 0);
}

static bool tensors_are_taken(cudnn_attention *fused, const tensor_ref *in_bf16, size_t count, tensor_ref sums)
{
    if (in_bf16[0].type != REMAT_BF16)
        return refuse(fused, "it is not in bf16");
    for (size_t i = 0; i < count; i++)
        if (!is_fit(in_bf16[i], REMAT_BF16))
            return refuse(fused, "a tensor is not in bf16 or not aligned to 16 bytes");
        else if (in_bf16[0].at && !in_bf16[i].at)
            return refuse(fused, "a tensor is absent");
    if (!is_fit(sums, REMAT_FP32) || (in_bf16[0].at && !sums.at))
        return refuse(fused, "the sums are absent, not in fp32 or not aligned to 16 bytes");
    return true;
}

static bool forward_sizes(cudnn_attention *fused, const op_attention *p, attention_sizes *sizes)
{
    const tensor_ref in_bf16[] = {p->q, p->k, p->v, p->out};
    *sizes = (attention_sizes){.batch = (int64_t)p->batch,
                               .heads = (int64_t)p->heads,
                               .key_heads = (int64_t)attention_key_heads(p->heads, p->group),
                               .steps = (int64_t)p->steps,
                               .keys = (int64_t)p->keys,
                               .size = (int64_t)p->size,
                               .row = (int64_t)p->row,
                               .key_row = (int64_t)p->key_row,
                               .out_row = (int64_t)p->out_row,
                               .causal = p->causal,
                               .window = p->window < p->keys ? (int64_t)p->window : 0};
    return tensors_are_taken(fused, in_bf16, sizeof(in_bf16) / sizeof(*in_bf16), p->sums) &&
           sizes_are_taken(fused, sizes);
}

static bool backward_sizes(cudnn_attention *fused, const op_attention_backward *p, attention_sizes *sizes)
{
    const tensor_ref in_bf16[] = {p->q, p->k, p->v, p->out, p->dout, p->dq, p->dk, p->dv};
    *sizes = (attention_sizes){.backward = 1,
                               .batch = (int64_t)p->batch,
                               .heads = (int64_t)p->heads,
                               .key_heads = (int64_t)attention_key_heads(p->heads, p->group),
                               .steps = (int64_t)p->steps,
                               .keys = (int64_t)p->keys,
                               .size = (int64_t)p->size,
                               .row = (int64_t)p->row,
                               .key_row = (int64_t)p->key_row,
                               .out_row = (int64_t)p->out_row,
                               .causal = p->causal,
                               .window = p->window < p->keys ? (int64_t)p->window : 0};
    if (p->accumulate || p->add_dq || p->add_dkv)
        return refuse(fused, "gradients are added");
    return tensors_are_taken(fused, in_bf16, sizeof(in_bf16) / sizeof(*in_bf16), p->sums) &&
           sizes_are_taken(fused, sizes);
}

bool cudnn_attention_takes(cudnn_attention *fused, const op_attention *args)
{
    attention_sizes sizes;
    uint64_t bytes;
    return fused && forward_sizes(fused, args, &sizes) && sequences_at_once(fused, &sizes, &bytes) > 0;
}

bool cudnn_attention_backward_takes(cudnn_attention *fused, const op_attention_backward *args)
{
    attention_sizes sizes;
    uint64_t bytes;
    return fused && backward_sizes(fused, args, &sizes) && sequences_at_once(fused, &sizes, &bytes) > 0;
}

uint64_t cudnn_attention_workspace(cudnn_attention *fused, const op_attention *args)
{
    attention_sizes sizes;
    uint64_t bytes = 0;
    return fused && forward_sizes(fused, args, &sizes) && sequences_at_once(fused, &sizes, &bytes) > 0 ? bytes : 0;
}

uint64_t cudnn_attention_backward_workspace(cudnn_attention *fused, const op_attention_backward *args)
{
    attention_sizes sizes;
    uint64_t bytes = 0;
    return fused && backward_sizes(fused, args, &sizes) && sequences_at_once(fused, &sizes, &bytes) > 0 ? bytes : 0;
}

/* ---- running ---- */

/* The tensors of all sequences. */
typedef struct attention_tensors {
    tensor_ref q, k, v, out, sums, dout, dq, dk, dv;
} attention_tensors;

/* The same from a later sequence on. */
static attention_tensors tensors_from(const attention_tensors *t, const attention_sizes *s, int64_t sequence)
{
    const uint64_t row = (uint64_t)(sequence * s->steps), key = (uint64_t)(sequence * s->keys * s->key_row);
    const uint64_t query = row * (uint64_t)s->row, out = row * (uint64_t)s->out_row;
    return (attention_tensors){.q = tensor_from(t->q, query),
                               .k = tensor_from(t->k, key),
                               .v = tensor_from(t->v, key),
                               .out = tensor_from(t->out, out),
                               .sums = tensor_from(t->sums, row * (uint64_t)s->heads),
                               .dout = tensor_from(t->dout, out),
                               .dq = tensor_from(t->dq, query),
                               .dk = tensor_from(t->dk, key),
                               .dv = tensor_from(t->dv, key)};
}

static remat_status fail(cudnn_attention *fused, const char *reason)
{
    return remat_fail(fused->context, REMAT_INTERNAL, NULL, "attention by cuDNN: %s", reason);
}

static remat_status run_plan(cudnn_attention *fused, attention_plan *plan, const attention_tensors *t, char *workspace)
{
    const attention_sizes *s = &plan->sizes;
    cudnn_binding bindings[14];
    size_t count = 0;
#define BIND(uid, address) bindings[count++] = (cudnn_binding){uid, address}
    BIND(ATTENTION_Q, t->q.at);
    BIND(ATTENTION_K, t->k.at);
    BIND(ATTENTION_V, t->v.at);
    BIND(ATTENTION_OUT, t->out.at);
    BIND(ATTENTION_SUMS, t->sums.at);
    BIND(ATTENTION_SCALE, &plan->numbers.scale);
    if (s->causal)
        BIND(ATTENTION_MASKED, &plan->numbers.masked);
    if (s->window)
        BIND(ATTENTION_WINDOW, &plan->numbers.window);
    if (s->backward) {
        BIND(ATTENTION_DOUT, t->dout.at);
        BIND(ATTENTION_DQ, t->dq.at);
        BIND(ATTENTION_DK, t->dk.at);
        BIND(ATTENTION_DV, t->dv.at);
        BIND(ATTENTION_MEANS, workspace);
        BIND(ATTENTION_ONE, &plan->numbers.one);
    }
#undef BIND
    char *own = plan->workspace ? workspace + plan->means : NULL;
    if (!cudnn_run(&plan->builder, fused->handle, plan->plan, bindings, count, own))
        return plan->builder.out_of_memory ? REMAT_NO_MEMORY : fail(fused, plan->builder.reason);
    return REMAT_OK;
}

static remat_status run(cudnn_attention *fused, struct CUstream_st *stream, const attention_sizes *sizes,
                        const attention_tensors *tensors, void *workspace)
{
    uint64_t bytes;
    const int64_t at_once = sequences_at_once(fused, sizes, &bytes);
    if (at_once < 1 || (bytes > 0 && !workspace) || (uintptr_t)workspace % 64)
        return fail(fused, at_once < 1 ? fused->reason : "the workspace is absent or not aligned to 64 bytes");
    if (fused->cudnn.set_stream(fused->handle, stream) != CUDNN_STATUS_SUCCESS)
        return fail(fused, "the stream was not taken");
    attention_sizes part = *sizes;
    for (int64_t first = 0; first < sizes->batch; first += at_once) {
        part.batch = sizes->batch - first < at_once ? sizes->batch - first : at_once;
        attention_plan *plan = plan_of(fused, &part);
        if (!plan)
            return fail(fused, fused->reason);
        const attention_tensors from = tensors_from(tensors, sizes, first);
        REMAT_TRY(run_plan(fused, plan, &from, workspace));
    }
    return REMAT_OK;
}

remat_status cudnn_attention_run(cudnn_attention *fused, struct CUstream_st *stream, const op_attention *args,
                                 void *workspace)
{
    attention_sizes sizes;
    if (!forward_sizes(fused, args, &sizes))
        return fail(fused, fused->reason);
    const attention_tensors tensors = {.q = args->q, .k = args->k, .v = args->v, .out = args->out, .sums = args->sums};
    return run(fused, stream, &sizes, &tensors, workspace);
}

remat_status cudnn_attention_backward_run(cudnn_attention *fused, struct CUstream_st *stream,
                                          const op_attention_backward *args, void *workspace)
{
    attention_sizes sizes;
    if (!backward_sizes(fused, args, &sizes))
        return fail(fused, fused->reason);
    const attention_tensors tensors = {.q = args->q,
                                       .k = args->k,
                                       .v = args->v,
                                       .out = args->out,
                                       .sums = args->sums,
                                       .dout = args->dout,
                                       .dq = args->dq,
                                       .dk = args->dk,
                                       .dv = args->dv};
    return run(fused, stream, &sizes, &tensors, workspace);
}

#else

remat_status cudnn_attention_open(remat_context *context, int capability, uint64_t workspace_limit,
                                  cudnn_attention **made)
{
    (void)context, (void)capability, (void)workspace_limit;
    *made = NULL;
    return REMAT_OK;
}

void cudnn_attention_close(cudnn_attention *fused)
{
    (void)fused;
}

size_t cudnn_attention_version(const cudnn_attention *fused)
{
    (void)fused;
    return 0;
}

const char *cudnn_attention_reason(const cudnn_attention *fused)
{
    (void)fused;
    return "cuDNN's headers were absent when Remat was built";
}

bool cudnn_attention_takes(cudnn_attention *fused, const op_attention *args)
{
    (void)fused, (void)args;
    return false;
}

bool cudnn_attention_backward_takes(cudnn_attention *fused, const op_attention_backward *args)
{
    (void)fused, (void)args;
    return false;
}

uint64_t cudnn_attention_workspace(cudnn_attention *fused, const op_attention *args)
{
    (void)fused, (void)args;
    return 0;
}

uint64_t cudnn_attention_backward_workspace(cudnn_attention *fused, const op_attention_backward *args)
{
    (void)fused, (void)args;
    return 0;
}

remat_status cudnn_attention_run(cudnn_attention *fused, struct CUstream_st *stream, const op_attention *args,
                                 void *workspace)
{
    (void)fused, (void)stream, (void)args, (void)workspace;
    return REMAT_INTERNAL;
}

remat_status cudnn_attention_backward_run(cudnn_attention *fused, struct CUstream_st *stream,
                                          const op_attention_backward *args, void *workspace)
{
    (void)fused, (void)stream, (void)args, (void)workspace;
    return REMAT_INTERNAL;
}

#endif
