#include "train/host_view.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/weight_blocks.h"

remat_status host_view_open(backend_queue *queue, void *at, uint64_t bytes, bool read, host_view *view)
{
    *view = (host_view){.host = at, .at = at, .bytes = bytes, .queue = queue};
    if (queue->owner->host_visible)
        return backend_wait(queue);
    view->host = remat_alloc(queue->owner->context, bytes, 1);
    if (!view->host)
        return REMAT_NO_MEMORY;
    remat_status status = read ? backend_copy_out(queue, view->host, at, bytes) : REMAT_OK;
    if (status == REMAT_OK)
        status = backend_wait(queue);
    if (status != REMAT_OK)
        host_view_close(view, false);
    return status;
}

remat_status host_view_open_floats(backend_queue *queue, tensor_ref of, uint64_t values, bool read, host_view *view)
{
    REMAT_TRY(host_view_open(queue, of.at, dtype_bytes(of.type, values), read, view));
    view->values = values;
    view->type = of.type;
    if (of.type == REMAT_FP32) {
        view->floats = view->host;
        return REMAT_OK;
    }
    view->floats = remat_alloc(queue->owner->context, values, sizeof *view->floats);
    if (!view->floats) {
        host_view_close(view, false);
        return REMAT_NO_MEMORY;
    }
    if (read)
        weight_blocks_unpack(of.type, view->host, view->floats, values);
    return REMAT_OK;
}

/* Releases floats that are a copy. */
static void close_floats(host_view *view, bool write)
{
    if (!view->floats || view->floats == view->host)
        return;
    if (write && view->type == REMAT_BF16)
        half_pack(half_kernels_choose(), REMAT_BF16, true, view->floats, view->host, view->values);
    else if (write)
        weight_blocks_pack(view->type, view->floats, view->host, view->values);
    remat_release(view->queue->owner->context, view->floats, view->values, sizeof *view->floats);
    view->floats = NULL;
}

remat_status host_view_close(host_view *view, bool write)
{
    remat_status status = REMAT_OK;
    close_floats(view, write);
    if (view->queue->owner->host_visible)
        return status;
    if (write) {
        status = backend_copy_in(view->queue, view->at, view->host, view->bytes);
        remat_status waited = backend_wait(view->queue);
        if (status == REMAT_OK)
            status = waited;
    }
    remat_release(view->queue->owner->context, view->host, view->bytes, 1);
    *view = (host_view){0};
    return status;
}
