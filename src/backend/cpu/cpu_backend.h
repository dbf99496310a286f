/* The processor as a backend. The fenced backend is made of the same parts. */
#ifndef REMAT_BACKEND_CPU_CPU_BACKEND_H
#define REMAT_BACKEND_CPU_CPU_BACKEND_H

#include "backend/cpu/kernel.h"
#include "backend/recording.h"

typedef struct cpu_backend {
    backend base;
    const kernel_table *table;
} cpu_backend;

/* Sets everything but the type. REMAT_INVALID for kernels or threads that cannot be. */
remat_status cpu_backend_init(remat_context *context, const backend_options *options, cpu_backend *made);

remat_status cpu_backend_allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed,
                                  backend_memory *memory);
void cpu_backend_release(backend *owner, backend_memory *memory);
backend_kernel cpu_backend_find_kernel(const backend *owner, operation op, const char *types);
uint64_t cpu_backend_workspace(const backend *owner, operation op, const void *args);
remat_status cpu_backend_measure_limits(backend *owner, backend_limits *limits);

/* Nanoseconds of a clock that only rises. */
uint64_t cpu_backend_clock(void);

#endif
