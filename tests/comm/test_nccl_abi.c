/* comm/nccl_abi.h says what the header of NCCL says. Where that is not installed there is nothing to compare. */
#include "comm/nccl_abi.h"
#include "support/fixture.h"

#ifdef HAS_NCCL_HEADER
#include <nccl.h>

_Static_assert((int)NCCL_ABI_SUCCESS == (int)ncclSuccess, "success");
_Static_assert((int)NCCL_ABI_IN_PROGRESS == (int)ncclInProgress, "in progress");
_Static_assert((int)NCCL_ABI_UINT8 == (int)ncclUint8, "bytes");
_Static_assert((int)NCCL_ABI_FLOAT32 == (int)ncclFloat32, "fp32");
_Static_assert((int)NCCL_ABI_FLOAT64 == (int)ncclFloat64, "fp64");
_Static_assert((int)NCCL_ABI_SUM == (int)ncclSum, "sums");
_Static_assert(sizeof(nccl_id) == sizeof(ncclUniqueId), "the number of a communicator");
_Static_assert(sizeof(nccl_handle) == sizeof(ncclComm_t) && sizeof(void *) == sizeof(cudaStream_t), "addresses");
_Static_assert(sizeof(int) == sizeof(ncclResult_t) && sizeof(int) == sizeof(ncclDataType_t) &&
                   sizeof(int) == sizeof(ncclRedOp_t),
               "an enum is passed as an int");

/* Arguments have the same types in the same order, where handles and streams are addresses. */
#define SAME(name, ...) _Static_assert(__builtin_types_compatible_p(__typeof__(name), ncclResult_t(__VA_ARGS__)), #name)
SAME(ncclGetVersion, int *);
SAME(ncclGetUniqueId, ncclUniqueId *);
SAME(ncclCommInitRank, ncclComm_t *, int, ncclUniqueId, int);
SAME(ncclCommDestroy, ncclComm_t);
SAME(ncclCommAbort, ncclComm_t);
SAME(ncclCommGetAsyncError, ncclComm_t, ncclResult_t *);
SAME(ncclGroupStart, void);
SAME(ncclGroupEnd, void);
SAME(ncclSend, const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
SAME(ncclRecv, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
SAME(ncclBroadcast, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
SAME(ncclAllGather, const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
SAME(ncclAllReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
_Static_assert(__builtin_types_compatible_p(__typeof__(ncclGetErrorString), const char *(ncclResult_t)), "texts");

int main(void)
{
    printf("NCCL %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    return 0;
}
#else
int main(void)
{
    printf("[  SKIPPED ] nccl.h is not installed\n");
    return TEST_SKIPPED;
}
#endif
