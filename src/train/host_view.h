/* Memory of a backend as the host may see it: the same memory where the host can use its addresses, else a copy. */
#ifndef REMAT_TRAIN_HOST_VIEW_H
#define REMAT_TRAIN_HOST_VIEW_H

#include "backend/backend.h"

typedef struct host_view {
    void *host; /* the values */
    void *at;   /* where they lie in the backend's memory */
    uint64_t bytes;
    backend_queue *queue;
} host_view;

/* Opens a view of `bytes` bytes. With `read` it holds what is there when the queue has done its work; without, anything. */
remat_status host_view_open(backend_queue *queue, void *at, uint64_t bytes, bool read, host_view *view);

/* Ends it. With `write` what the view holds is in the backend's memory when this returns. */
remat_status host_view_close(host_view *view, bool write);

#endif
