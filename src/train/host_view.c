#include "train/host_view.h"

#include "base/alloc.h"
#include "base/error.h"

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

remat_status host_view_close(host_view *view, bool write)
{
    remat_status status = REMAT_OK;
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
