/* The limits of a GPU: backend_measure_limits. */
#ifndef REMAT_BACKEND_CUDA_CUDA_LIMITS_H
#define REMAT_BACKEND_CUDA_CUDA_LIMITS_H

#include "backend/backend.h"
#include "backend/cuda/cuda_run.h"

remat_status cuda_measure_limits(backend *owner, backend_limits *limits);

/* cuda_backend.c: what launchers get for a queue. */
const cuda_run *cuda_queue_run(const backend_queue *queue);

#endif
