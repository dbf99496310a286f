/* NCCL as it is loaded at run time: the functions in use, and what its header makes of its names. The binary interface of libnccl.so.2 is
 * that of all releases from 2.7 on, the first that sends and receives; tests/comm/test_nccl_abi.c compares this file with the header. */
#ifndef REMAT_COMM_NCCL_ABI_H
#define REMAT_COMM_NCCL_ABI_H

#include <stddef.h>

#define NCCL_ABI_FILE "libnccl.so.2"

typedef void *nccl_handle; /* ncclComm_t; a stream is an address too */
typedef struct nccl_id {
    char bytes[128];
} nccl_id; /* ncclUniqueId */

enum {
    NCCL_ABI_SUCCESS = 0,
    NCCL_ABI_IN_PROGRESS = 7,
    NCCL_ABI_UINT8 = 1,
    NCCL_ABI_FLOAT32 = 7,
    NCCL_ABI_FLOAT64 = 8,
    NCCL_ABI_SUM = 0,
    NCCL_ABI_OLDEST = 2700, /* 2.7.0, as releases before 2.9 count */
};

/* X(name, arguments): all return int. */
#define NCCL_ABI_FUNCTIONS(X)                                                                                    \
    X(GetVersion, (int *version))                                                                                \
    X(GetUniqueId, (nccl_id * id))                                                                               \
    X(CommInitRank, (nccl_handle * comm, int ranks, nccl_id id, int rank))                                       \
    X(CommDestroy, (nccl_handle comm))                                                                           \
    X(CommAbort, (nccl_handle comm))                                                                             \
    X(CommGetAsyncError, (nccl_handle comm, int *error))                                                         \
    X(GroupStart, (void))                                                                                        \
    X(GroupEnd, (void))                                                                                          \
    X(Send, (const void *data, size_t count, int type, int peer, nccl_handle comm, void *stream))                \
    X(Recv, (void *data, size_t count, int type, int peer, nccl_handle comm, void *stream))                      \
    X(Broadcast, (const void *from, void *to, size_t count, int type, int root, nccl_handle comm, void *stream)) \
    X(AllGather, (const void *mine, void *all, size_t count, int type, nccl_handle comm, void *stream))          \
    X(AllReduce, (const void *from, void *to, size_t count, int type, int op, nccl_handle comm, void *stream))

typedef struct nccl_library {
#define X(name, arguments) int(*name) arguments;
    NCCL_ABI_FUNCTIONS(X)
#undef X
    const char *(*GetErrorString)(int error);
} nccl_library;

/* nccl_library.c: loads it. NULL: it is not there, lacks something or is too old, and `why` says so. It stays loaded. */
const nccl_library *nccl_library_load(const char **why);

#endif
