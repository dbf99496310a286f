#include "backend/cuda/cuda_lanes.h"

#include "base/alloc.h"
#include "base/error.h"

struct backend_mark {
    cudaEvent_t at;
};

static remat_status check(const backend *owner, cudaError_t error, const char *what)
{
    return error == cudaSuccess ? REMAT_OK : cuda_fail(owner, error, what);
}

static void *stream(backend_queue *lane)
{
    cuda_enter(lane->owner);
    return cuda_queue_stream(lane);
}

/* Without a time: an event with one would have to be compared with others, for which the host waits. */
static remat_status mark_create(backend *owner, backend_mark **made)
{
    REMAT_TRY(cuda_enter(owner));
    *made = remat_alloc_zeroed(owner->context, 1, sizeof **made);
    if (!*made)
        return REMAT_NO_MEMORY;
    const cudaError_t error = cudaEventCreateWithFlags(&(*made)->at, cudaEventDisableTiming);
    if (error == cudaSuccess)
        return REMAT_OK;
    remat_release(owner->context, *made, 1, sizeof **made);
    *made = NULL;
    return cuda_fail(owner, error, "making an event");
}

static void mark_destroy(backend *owner, backend_mark *mark)
{
    cudaEventDestroy(mark->at);
    remat_release(owner->context, mark, 1, sizeof *mark);
}

static remat_status mark_set(backend_queue *queue, backend_mark *mark)
{
    REMAT_TRY(cuda_enter(queue->owner));
    return check(queue->owner, cudaEventRecord(mark->at, cuda_queue_stream(queue)), "recording an event");
}

static remat_status mark_follow(backend_queue *queue, backend_mark *mark)
{
    REMAT_TRY(cuda_enter(queue->owner));
    return check(queue->owner, cudaStreamWaitEvent(cuda_queue_stream(queue), mark->at, 0), "following an event");
}

static remat_status mark_test(backend *owner, backend_mark *mark, bool *reached)
{
    const cudaError_t error = cudaEventQuery(mark->at);
    *reached = error == cudaSuccess;
    if (error != cudaErrorNotReady)
        return check(owner, error, "the work");
    cudaGetLastError(); /* it would be reported again */
    return REMAT_OK;
}

const backend_lanes cuda_lanes = {.create = cuda_lane_create,
                                  .stream = stream,
                                  .mark_create = mark_create,
                                  .mark_destroy = mark_destroy,
                                  .mark_set = mark_set,
                                  .mark_follow = mark_follow,
                                  .mark_test = mark_test};
