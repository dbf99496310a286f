/* Open MPI as it is loaded at run time: the functions in use, and what its header makes of its names. The binary interface
 * of libmpi.so.40 is that of all releases from 3.0 on; tests/comm/test_mpi_abi.c compares this file with the header.
 * Handles are addresses, which only the library looks behind. */
#ifndef REMAT_COMM_MPI_ABI_H
#define REMAT_COMM_MPI_ABI_H

#define MPI_ABI_FILE "libmpi.so.40"

typedef void *mpi_handle; /* MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Errhandler, MPI_Info */

enum {
    MPI_ABI_SUCCESS = 0,
    MPI_ABI_THREAD_FUNNELED = 1,
    MPI_ABI_SHARED = 0, /* MPI_COMM_TYPE_SHARED */
    MPI_ABI_ERROR_TEXT = 256,
    MPI_ABI_VERSION_TEXT = 256,
};
#define MPI_ABI_IN_PLACE      ((void *)1)
#define MPI_ABI_STATUS_IGNORE ((void *)0)

/* X(name, arguments): all return int. */
#define MPI_ABI_FUNCTIONS(X)                                                                                           \
    X(Init_thread, (int *argc, char ***argv, int required, int *provided))                                             \
    X(Initialized, (int *flag))                                                                                        \
    X(Finalized, (int *flag))                                                                                          \
    X(Finalize, (void))                                                                                                \
    X(Get_library_version, (char *version, int *length))                                                               \
    X(Error_string, (int code, char *text, int *length))                                                               \
    X(Comm_dup, (mpi_handle comm, mpi_handle * made))                                                                  \
    X(Comm_free, (mpi_handle * comm))                                                                                  \
    X(Comm_rank, (mpi_handle comm, int *rank))                                                                         \
    X(Comm_size, (mpi_handle comm, int *size))                                                                         \
    X(Comm_split, (mpi_handle comm, int color, int key, mpi_handle *made))                                             \
    X(Comm_split_type, (mpi_handle comm, int type, int key, mpi_handle info, mpi_handle *made))                        \
    X(Comm_set_errhandler, (mpi_handle comm, mpi_handle handler))                                                      \
    X(Abort, (mpi_handle comm, int code))                                                                              \
    X(Isend, (const void *data, int count, mpi_handle type, int to, int tag, mpi_handle comm, mpi_handle *request))    \
    X(Irecv, (void *data, int count, mpi_handle type, int from, int tag, mpi_handle comm, mpi_handle *request))        \
    X(Ibarrier, (mpi_handle comm, mpi_handle * request))                                                               \
    X(Ibcast, (void *data, int count, mpi_handle type, int root, mpi_handle comm, mpi_handle *request))                \
    X(Iallgather, (const void *mine, int count, mpi_handle type, void *data, int each, mpi_handle each_type,           \
                   mpi_handle comm, mpi_handle *request))                                                              \
    X(Iallgatherv, (const void *mine, int count, mpi_handle type, void *data, const int *counts, const int *places,    \
                    mpi_handle each_type, mpi_handle comm, mpi_handle *request))                                       \
    X(Iallreduce,                                                                                                      \
      (const void *mine, void *data, int count, mpi_handle type, mpi_handle op, mpi_handle comm, mpi_handle *request)) \
    X(Test, (mpi_handle * request, int *flag, void *status))

/* X(field, symbol): objects of the library whose addresses are the handles. */
#define MPI_ABI_OBJECTS(X)                   \
    X(world, ompi_mpi_comm_world)            \
    X(byte, ompi_mpi_byte)                   \
    X(fp32, ompi_mpi_float)                  \
    X(fp64, ompi_mpi_double)                 \
    X(sum, ompi_mpi_op_sum)                  \
    X(return_errors, ompi_mpi_errors_return) \
    X(no_info, ompi_mpi_info_null)

typedef struct mpi_library {
#define X(name, arguments) int(*name) arguments;
    MPI_ABI_FUNCTIONS(X)
#undef X
#define X(field, symbol) mpi_handle field;
    MPI_ABI_OBJECTS(X)
#undef X
} mpi_library;

/* comm_mpi.c: loads it; NULL where it is not installed or lacks something. It stays loaded. */
const mpi_library *mpi_library_load(void);

#endif
