/* Attention by cuDNN's fused kernels, where cuDNN can be loaded: bf16 with sums in fp32, the same results in every run.
 *
 * Plans are made once for each shape and kept. Making one takes a fraction of a second, so ask while nothing is timed:
 *
 *     cudnn_attention *fused;
 *     cudnn_attention_open(context, 90, limit, &fused);            // NULL: not there
 *     if (cudnn_attention_takes(fused, &args))                     // otherwise use our own kernels
 *         cudnn_attention_workspace(fused, &args);                 // to be planned
 *     ...
 *     cudnn_attention_run(fused, stream, &args, workspace);
 *     cudnn_attention_close(fused);
 *
 * Nothing but the workspace is allocated on the device by a run, and a run can be recorded in a CUDA graph. One thread at a
 * time; the device must be current in it. */
#ifndef REMAT_BACKEND_CUDA_CUDNN_ATTENTION_H
#define REMAT_BACKEND_CUDA_CUDNN_ATTENTION_H

/* Before operation.h, because C++ must not see these between the braces below. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/operation.h"

typedef struct cudnn_attention cudnn_attention;
struct CUstream_st; /* what cudaStream_t points to */

/* Opens cuDNN for the current device, whose compute capability is 10 * major + minor. *made is NULL if the library is not there
 * or too old. The backward pass takes as many sequences at once as fit into `workspace_limit` bytes, at least one; 0: all.
 * REMAT_NO_MEMORY. */
remat_status cudnn_attention_open(remat_context *context, int capability, uint64_t workspace_limit,
                                  cudnn_attention **made);
void cudnn_attention_close(cudnn_attention *fused); /* NULL is fine */

/* Such as 91900. */
size_t cudnn_attention_version(const cudnn_attention *fused);

/* Whether cuDNN computes attention of these sizes and types. NULL takes nothing. Without addresses only the sizes and the type
 * of q count; tensors with addresses must have the right types, and be aligned to 16 bytes. Gradients are written, never added,
 * and all three are made. */
bool cudnn_attention_takes(cudnn_attention *fused, const op_attention *args);
bool cudnn_attention_backward_takes(cudnn_attention *fused, const op_attention_backward *args);

/* Why the last one was not taken; "": it was. */
const char *cudnn_attention_reason(const cudnn_attention *fused);

/* The bytes of workspace that it needs, for what is taken. */
uint64_t cudnn_attention_workspace(cudnn_attention *fused, const op_attention *args);
uint64_t cudnn_attention_backward_workspace(cudnn_attention *fused, const op_attention_backward *args);

/* Puts the work on a stream. The workspace is aligned to 64 bytes; it may be NULL where none is needed. args->workspace is not
 * used. REMAT_INTERNAL: it is not taken, or cuDNN failed. */
remat_status cudnn_attention_run(cudnn_attention *fused, struct CUstream_st *stream, const op_attention *args,
                                 void *workspace);
remat_status cudnn_attention_backward_run(cudnn_attention *fused, struct CUstream_st *stream,
                                          const op_attention_backward *args, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
