/* A view of a backend's memory for the host: the memory itself if the host can access it, otherwise a copy. */
#ifndef REMAT_TRAIN_HOST_VIEW_H
#define REMAT_TRAIN_HOST_VIEW_H

#include "backend/backend.h"

typedef struct host_view {
    void *host; /* the values */
    void *at;   /* where they lie in the backend's memory */
    uint64_t bytes;
    backend_queue *queue;
    float *floats;    /* of host_view_open_floats */
    remat_dtype type; /* of what they stand for */
    uint64_t values;
} host_view;

/* Opens a view of `bytes` bytes. With `read` the view holds the values after the queue has finished. Without it, the
 * values are undefined. */
remat_status host_view_open(backend_queue *queue, void *at, uint64_t bytes, bool read, host_view *view);

/* The same of values in fp32, bf16 or blocks, as floats: `floats` has them. Floats that are written to bf16 are rounded to nearest. */
remat_status host_view_open_floats(backend_queue *queue, tensor_ref of, uint64_t values, bool read, host_view *view);

/* Closes the view. With `write`, its values are in the backend's memory when this returns. */
remat_status host_view_close(host_view *view, bool write);

#endif
