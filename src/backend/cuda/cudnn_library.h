/* cuDNN, loaded at run time. Its headers give types and numbers only: nothing is linked, and where they were absent when
 * Remat was built, or the library is absent now, there is no cuDNN. */
#ifndef REMAT_BACKEND_CUDA_CUDNN_LIBRARY_H
#define REMAT_BACKEND_CUDA_CUDNN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_include)
#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime.h>)
#define REMAT_HAS_CUDNN
#include <cudnn_graph.h>
#endif
#endif

#ifdef REMAT_HAS_CUDNN

/* The functions of cuDNN's backend interface that we call: name here, name there. */
#define CUDNN_FUNCTIONS(X)                   \
    X(version, cudnnGetVersion)              \
    X(status_text, cudnnGetErrorString)      \
    X(last_error, cudnnGetLastErrorString)   \
    X(create, cudnnCreate)                   \
    X(destroy, cudnnDestroy)                 \
    X(set_stream, cudnnSetStream)            \
    X(make, cudnnBackendCreateDescriptor)    \
    X(unmake, cudnnBackendDestroyDescriptor) \
    X(set, cudnnBackendSetAttribute)         \
    X(get, cudnnBackendGetAttribute)         \
    X(finalize, cudnnBackendFinalize)        \
    X(execute, cudnnBackendExecute)

typedef struct cudnn_library {
#define X(name, symbol) __typeof__(&(symbol)) name;
    CUDNN_FUNCTIONS(X)
#undef X
} cudnn_library;

/* Finds cuDNN 9 where the dynamic linker looks. False: it is not there. */
bool cudnn_library_load(cudnn_library *functions);

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that would be loaded, such as 91900; 0: none. */
size_t cudnn_library_version(void);

#ifdef __cplusplus
}
#endif

#endif
