/* Fuses an activation with the GEMM before it. Every value is activated while it is in a register or the cache, which
 * saves one pass over memory. In the backward pass, the GEMM that computes the gradient of the activation's output also
 * computes the gradient of its input; not on a device that joins derivatives (model/network_join.c).
 *
 *     forward of fc, forward of relu                             also if both are recomputed
 *     input gradient of fc, apply of fc, input gradient of relu  an apply action uses only weights and their gradients
 *
 * Nothing between the two writes another tensor. So what the activation reads already exists when the GEMM runs, and
 * does not change until later. Only the result of the activation is written earlier than planned. It must either
 * replace the result of the GEMM, or no other tensor may be live at its address at that time. The bits are those of two
 * operations, and the memory does not change. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/executor_object.h"

/* The buffers that are alive at a position; positions are asked for in ascending order. */
typedef struct living {
    const graph_liveness *liveness;
    const uint64_t *offsets;
    uint32_t *buffers;
    size_t count;
    uint32_t next; /* the first one not yet born: buffers stand in order of birth */
} living;

static bool is_free(living *all, size_t position, uint64_t offset, uint64_t bytes)
{
    const graph_buffer *buffers = all->liveness->buffers;
    for (; all->next < all->liveness->buffer_count && buffers[all->next].born <= position; all->next++)
        all->buffers[all->count++] = all->next;
    bool is_free = true;
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        uint32_t b = all->buffers[i];
        if (buffers[b].ends <= position)
            continue;
        all->buffers[kept++] = b;
        is_free &= offset + bytes <= all->offsets[b] || all->offsets[b] + buffers[b].bytes <= offset;
    }
    all->count = kept;
    return is_free;
}

/* ---- finding the two calls ---- */

/* The only call of a position; NULL where there are none or several. */
static recorded_call *only_call(const recorded_run *run, size_t position)
{
    size_t first = run->starts[position], end = run->starts[position + 1];
    recorded_call *call = first < end ? recording_call(&run->calls, first) : NULL;
    return call && first + call->bytes == end ? call : NULL;
}

static recorded_call *last_call(const recorded_run *run, size_t position)
{
    recorded_call *call = NULL;
    for (size_t at = run->starts[position]; at < run->starts[position + 1]; at += call->bytes)
        call = recording_call(&run->calls, at);
    return call;
}

/* The position before, over apply actions; the count where there is none. */
static size_t position_before(const remat_executor *executor, size_t position)
{
    while (position-- > 0)
        if (executor_action(executor, position)->kind != ACTION_APPLY)
            return position;
    return executor->count;
}

/* ---- making them one ---- */

/* The GEMM with the activation in it; false if the two do not belong together. */
static bool join(const op_gemm *gemm, recorded_call *call, op_gemm *joined)
{
    *joined = *gemm;
    if (gemm->activated.at || gemm->ldc != gemm->n)
        return false;
    if (call->op == OP_activate) {
        const op_activate *activate = recorded_args(call);
        joined->activation = activate->kind;
        joined->activated = activate->y;
        return activate->x.at == gemm->c.at && activate->count == gemm->m * gemm->n;
    }
    if (call->op == OP_rectify) {
        const op_rectify *rectify = recorded_args(call);
        joined->activation = rectify->kind;
        joined->activated = rectify->y;
        return rectify->y.at && rectify->x.at == gemm->c.at && rectify->count == gemm->m * gemm->n;
    }
    if (call->op == OP_activate_backward) {
        const op_activate_backward *backward = recorded_args(call);
        joined->activation = backward->kind;
        joined->activated = backward->dx;
        joined->derivative_at = activation_reads_output(backward->kind) ? backward->y : backward->x;
        return backward->dy.at == gemm->c.at && !backward->accumulate && backward->count == gemm->m * gemm->n;
    }
    return false;
}

/* What is left to do of an activation that is in a GEMM: nothing, or its bits, which are those of its output. */
static void leave(recorded_call *activation)
{
    op_rectify *rectify = recorded_args(activation);
    if (activation->op != OP_rectify) {
        activation->kernel = NULL;
        return;
    }
    rectify->x = rectify->y;
    rectify->y = TENSOR_NONE;
}

/* The kernel may be another one now that there is more to do. */
static backend_kernel kernel_of(const remat_executor *executor, const op_gemm *gemm)
{
    char types[OPERATION_MAX_TENSORS + 1];
    operation_types(OP_gemm, gemm, types);
    return backend_find_kernel(executor->options.device, OP_gemm, types);
}

static bool fuse(remat_executor *executor, recorded_run *run, size_t position, living *all)
{
    recorded_call *activation = only_call(run, position);
    size_t before = position_before(executor, position);
    if (!activation || before == executor->count ||
        executor_action(executor, before)->kind != executor_action(executor, position)->kind)
        return false;
    recorded_call *call = last_call(run, before);
    op_gemm joined;
    /* Where the device joins derivatives the bits would be others: the network has joined what is to be joined. */
    if (activation->op == OP_activate_backward && executor->options.device->joins != ACTIVATION_NONE)
        return false;
    if (!call || call->op != OP_gemm || !join(recorded_args(call), activation, &joined))
        return false;
    uint64_t offset = (uint64_t)((char *)joined.activated.at - executor->options.memory.arena);
    uint64_t bytes = dtype_bytes(joined.activated.type, joined.m * joined.n);
    if (joined.activated.at != joined.c.at && !is_free(all, before, offset, (bytes + 63) & ~(uint64_t)63))
        return false;
    backend_kernel kernel = kernel_of(executor, &joined);
    if (!kernel)
        return false;
    call->kernel = kernel;
    *(op_gemm *)recorded_args(call) = joined;
    leave(activation);
    executor->until[before] = position;
    return true;
}

remat_status executor_fuse(remat_executor *executor, recorded_run *run)
{
    const graph_liveness *liveness = executor->options.liveness;
    uint32_t *room = remat_alloc(executor->context, liveness->buffer_count, sizeof *room);
    if (!room)
        return REMAT_NO_MEMORY;
    living all = {liveness, executor->options.memory.offsets, room, 0, 0};
    for (size_t position = 1; position < executor->count; position++)
        executor->fused_count += fuse(executor, run, position, &all);
    remat_release(executor->context, room, liveness->buffer_count, sizeof *room);
    return REMAT_OK;
}
