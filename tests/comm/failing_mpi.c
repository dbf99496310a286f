/* An MPI of one rank, under the name of Open MPI's library. One of its calls fails: test_mpi_failures.c says which. */
#include "comm/mpi_abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Set by the test. */
int failing_mpi_calls;       /* so far */
int failing_mpi_fails_at;    /* 0: none */
int failing_mpi_open;        /* communicators that were not freed */
bool failing_mpi_is_running; /* initialized, and not ended */
bool failing_mpi_has_ended;

char ompi_mpi_comm_world, ompi_mpi_byte, ompi_mpi_float, ompi_mpi_double, ompi_mpi_op_sum, ompi_mpi_errors_return,
    ompi_mpi_info_null;

enum { FAILED = 16 };

static int answer(void)
{
    return ++failing_mpi_calls == failing_mpi_fails_at ? FAILED : MPI_ABI_SUCCESS;
}

static int answer_number(int *to, int number)
{
    *to = number;
    return answer();
}

static int answer_request(mpi_handle *request)
{
    *request = request;
    return answer();
}

#define X(name, arguments) int MPI_##name arguments;
MPI_ABI_FUNCTIONS(X)
#undef X

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc, (void)argv;
    const int code = answer_number(provided, required);
    failing_mpi_is_running = code == MPI_ABI_SUCCESS;
    return code;
}

int MPI_Initialized(int *flag)
{
    return answer_number(flag, failing_mpi_is_running);
}

int MPI_Finalized(int *flag)
{
    return answer_number(flag, failing_mpi_has_ended);
}

int MPI_Finalize(void)
{
    failing_mpi_is_running = false;
    return answer();
}

int MPI_Get_library_version(char *version, int *length)
{
    *length = snprintf(version, MPI_ABI_VERSION_TEXT, "an MPI that fails");
    return MPI_ABI_SUCCESS;
}

int MPI_Error_string(int code, char *text, int *length)
{
    *length = snprintf(text, MPI_ABI_ERROR_TEXT, "call %d fails with %d", failing_mpi_calls, code);
    return MPI_ABI_SUCCESS;
}

static int make(mpi_handle *made)
{
    const int code = answer();
    *made = code == MPI_ABI_SUCCESS ? &ompi_mpi_comm_world : NULL;
    failing_mpi_open += code == MPI_ABI_SUCCESS;
    return code;
}

int MPI_Comm_dup(mpi_handle comm, mpi_handle *made)
{
    (void)comm;
    return make(made);
}

int MPI_Comm_split(mpi_handle comm, int color, int key, mpi_handle *made)
{
    (void)comm, (void)color, (void)key;
    return make(made);
}

int MPI_Comm_split_type(mpi_handle comm, int type, int key, mpi_handle info, mpi_handle *made)
{
    (void)comm, (void)type, (void)key, (void)info;
    return make(made);
}

int MPI_Comm_free(mpi_handle *comm)
{
    *comm = NULL;
    failing_mpi_open--;
    return answer();
}

int MPI_Comm_rank(mpi_handle comm, int *rank)
{
    (void)comm;
    return answer_number(rank, 0);
}

int MPI_Comm_size(mpi_handle comm, int *size)
{
    (void)comm;
    return answer_number(size, 1);
}

int MPI_Comm_set_errhandler(mpi_handle comm, mpi_handle handler)
{
    (void)comm, (void)handler;
    return answer();
}

int MPI_Abort(mpi_handle comm, int code)
{
    (void)comm, (void)code;
    return answer();
}

int MPI_Isend(const void *data, int count, mpi_handle type, int to, int tag, mpi_handle comm, mpi_handle *request)
{
    (void)data, (void)count, (void)type, (void)to, (void)tag, (void)comm;
    return answer_request(request);
}

int MPI_Irecv(void *data, int count, mpi_handle type, int from, int tag, mpi_handle comm, mpi_handle *request)
{
    (void)data, (void)count, (void)type, (void)from, (void)tag, (void)comm;
    return answer_request(request);
}

int MPI_Ibarrier(mpi_handle comm, mpi_handle *request)
{
    (void)comm;
    return answer_request(request);
}

int MPI_Ibcast(void *data, int count, mpi_handle type, int root, mpi_handle comm, mpi_handle *request)
{
    (void)data, (void)count, (void)type, (void)root, (void)comm;
    return answer_request(request);
}

int MPI_Iallgather(const void *mine, int count, mpi_handle type, void *data, int each, mpi_handle each_type,
                   mpi_handle comm, mpi_handle *request)
{
    (void)type, (void)each, (void)each_type, (void)comm;
    memcpy(data, mine, (size_t)count);
    return answer_request(request);
}

int MPI_Iallgatherv(const void *mine, int count, mpi_handle type, void *data, const int *counts, const int *places,
                    mpi_handle each_type, mpi_handle comm, mpi_handle *request)
{
    (void)mine, (void)count, (void)type, (void)data, (void)counts, (void)places, (void)each_type, (void)comm;
    return answer_request(request);
}

int MPI_Iallreduce(const void *mine, void *data, int count, mpi_handle type, mpi_handle op, mpi_handle comm,
                   mpi_handle *request)
{
    (void)mine, (void)data, (void)count, (void)type, (void)op, (void)comm;
    return answer_request(request);
}

int MPI_Test(mpi_handle *request, int *flag, void *status)
{
    (void)request, (void)status;
    return answer_number(flag, 1);
}
