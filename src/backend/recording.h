/* A list of operations with all their arguments, recorded once and run many times.
 *
 * Layers record what they compute; nothing runs while they do. Each call of the list is
 *
 *     | kernel | operation | bytes | the operation's struct |
 *
 * one directly after the other. A position is the offset of a call in bytes. A queue can run the calls from one
 * position to another, such as those of one layer. */
#ifndef REMAT_BACKEND_RECORDING_H
#define REMAT_BACKEND_RECORDING_H

#include "backend/backend.h"

struct recording {
    const backend *owner; /* whose kernels are called */
    uint64_t number;      /* no other recording of the program has it: a queue may keep what it prepares for this one */
    char *bytes;
    size_t used, capacity;
    bool counts; /* calls are only counted: `used` is what they would take */
    /* Memory for tensors that are converted before and after a call. */
    char *room;
    uint64_t room_bytes; /* that the calls so far need */
};

typedef struct recorded_call {
    backend_kernel kernel; /* NULL: the call does nothing */
    uint32_t op;           /* an operation */
    uint32_t bytes;        /* of the call, this header included */
} recorded_call;

/* Makes an empty recording for a backend, and releases it. */
void recording_begin(recording *calls, const backend *owner);
/* Ends the counting of a recording that counts, and makes room for exactly what was counted. Record the same again.
 * REMAT_NO_MEMORY. */
remat_status recording_reserve(recording *calls);
void recording_end(recording *calls);

/* Appends a call. Where the backend has no kernel that takes tensors in bf16, these are converted to fp32 in the room before the
 * call, and those that it writes are rounded to bf16 after it. REMAT_INVALID: the backend has no kernel for the types of its
 * tensors. REMAT_NO_MEMORY. */
remat_status recording_add(recording *calls, operation op, const void *args);

/* The same for each operation by its name, with the right type of arguments: record_gemm(calls, &args). */
#define X(name, tensors)                                                              \
    static inline remat_status record_##name(recording *calls, const op_##name *args) \
    {                                                                                 \
        return recording_add(calls, OP_##name, args);                                 \
    }
OPERATION_LIST(X)
#undef X

/* The call at a position, and its arguments. */
static inline recorded_call *recording_call(const recording *calls, size_t position)
{
    return (recorded_call *)(void *)(calls->bytes + position);
}
static inline void *recorded_args(recorded_call *call)
{
    return call + 1;
}

#endif
