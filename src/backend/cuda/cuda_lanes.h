/* Streams for transfers by NCCL, beside those that compute (backend_lanes). */
#ifndef REMAT_BACKEND_CUDA_CUDA_LANES_H
#define REMAT_BACKEND_CUDA_CUDA_LANES_H

#include <cuda_runtime_api.h>

#include "backend/backend.h"

extern const backend_lanes cuda_lanes;

/* cuda_backend.c */
remat_status cuda_fail(const backend *owner, cudaError_t error, const char *what);
remat_status cuda_enter(const backend *owner); /* chooses the device */
remat_status cuda_lane_create(backend *owner, backend_queue **made);
cudaStream_t cuda_queue_stream(const backend_queue *queue);

#endif
