/* Ranks that Open MPI connects. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/comm.h"
#include "comm/mpi_abi.h"

typedef struct mpi_communicator {
    remat_communicator base;
    mpi_handle comm;
} mpi_communicator;

/* ---- the library ---- */

static mpi_library library;
static bool is_loaded;
static char version[MPI_ABI_VERSION_TEXT * 32]; /* MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI; room to spare */
static int open_count;                          /* communicators; MPI is used by one thread at a time */
static bool is_ours;                            /* MPI was initialized here */

static bool find_all(void *handle)
{
    bool all = true;
#define X(name, arguments) all &= (*(void **)&library.name = dlsym(handle, "MPI_" #name)) != NULL;
    MPI_ABI_FUNCTIONS(X)
#undef X
#define X(field, symbol) all &= (library.field = dlsym(handle, #symbol)) != NULL;
    MPI_ABI_OBJECTS(X)
#undef X
    return all;
}

/* Its plugins look for names of the library among those that all see. */
static void load(void)
{
    int length = 0;
    void *handle = dlopen(MPI_ABI_FILE, RTLD_NOW | RTLD_GLOBAL);
    is_loaded = handle && find_all(handle) && library.Get_library_version(version, &length) == MPI_ABI_SUCCESS;
}

const mpi_library *mpi_library_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded ? &library : NULL;
}

const char *remat_mpi_version(void)
{
    return mpi_library_load() ? version : NULL;
}

bool comm_mpi_is_launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
}

static remat_status check(remat_context *context, int code, const char *what)
{
    char text[MPI_ABI_ERROR_TEXT * 2] = "";
    int length;
    if (code == MPI_ABI_SUCCESS)
        return REMAT_OK;
    library.Error_string(code, text, &length);
    return remat_fail(context, REMAT_IO, NULL, "%s fails: %.400s", what, text);
}

#define CHECK(context, name, ...) REMAT_TRY(check(context, library.name(__VA_ARGS__), "MPI_" #name))

/* ---- transfers ---- */

static remat_status start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request)
{
    const mpi_handle comm = ((mpi_communicator *)ranks)->comm, byte = library.byte;
    const int bytes = (int)transfer->bytes, peer = (int)transfer->peer;
    void *data = transfer->data;
    const bool is_double = transfer->dtype == REMAT_FP64;
    switch (transfer->kind) {
    case COMM_SEND: CHECK(ranks->context, Isend, data, bytes, byte, peer, transfer->tag, comm, &request->handle); break;
    case COMM_RECEIVE:
        CHECK(ranks->context, Irecv, data, bytes, byte, peer, transfer->tag, comm, &request->handle);
        break;
    case COMM_BARRIER: CHECK(ranks->context, Ibarrier, comm, &request->handle); break;
    case COMM_BROADCAST: CHECK(ranks->context, Ibcast, data, bytes, byte, peer, comm, &request->handle); break;
    case COMM_GATHER:
        CHECK(ranks->context, Iallgather, transfer->mine, bytes, byte, data, bytes, byte, comm, &request->handle);
        break;
    case COMM_JOIN:
        CHECK(ranks->context, Iallgatherv, MPI_ABI_IN_PLACE, 0, byte, data, transfer->parts, transfer->places, byte,
              comm, &request->handle);
        break;
    case COMM_SUM:
        if (!is_double && transfer->dtype != REMAT_FP32)
            return remat_fail(ranks->context, REMAT_INVALID, NULL, "MPI adds only fp32 and fp64");
        CHECK(ranks->context, Iallreduce, MPI_ABI_IN_PLACE, data, bytes / (is_double ? 8 : 4),
              is_double ? library.fp64 : library.fp32, library.sum, comm, &request->handle);
        break;
    }
    request->is_active = true;
    return REMAT_OK;
}

static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    int flag = 0;
    CHECK(ranks->context, Test, &request->handle, &flag, MPI_ABI_STATUS_IGNORE);
    *done = flag != 0;
    request->is_active = !*done;
    return REMAT_OK;
}

/* ---- opening and closing ---- */

static void abort_all(remat_communicator *ranks, int code)
{
    library.Abort(((mpi_communicator *)ranks)->comm, code);
}

static void close_mpi(remat_communicator *ranks)
{
    mpi_communicator *closed = (mpi_communicator *)ranks;
    int finalized = 0;
    library.Finalized(&finalized);
    if (closed->comm && !finalized)
        library.Comm_free(&closed->comm);
    if (--open_count == 0 && is_ours && !finalized)
        library.Finalize();
    remat_release(ranks->context, closed, 1, sizeof *closed);
}

static remat_status split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    mpi_handle part;
    CHECK(ranks->context, Comm_split, ((mpi_communicator *)ranks)->comm, (int)group, (int)place, &part);
    remat_status status = comm_mpi_open(ranks->context, &part, made);
    library.Comm_free(&part);
    return status;
}

static const comm_type type = {"mpi", start, test, abort_all, close_mpi, split, NULL};

static remat_status initialize(remat_context *context)
{
    int flag = 0, provided;
    CHECK(context, Finalized, &flag);
    if (flag)
        return remat_fail(context, REMAT_INVALID, NULL, "MPI has ended in this process and cannot begin again");
    CHECK(context, Initialized, &flag);
    if (flag)
        return REMAT_OK;
    CHECK(context, Init_thread, NULL, NULL, MPI_ABI_THREAD_FUNNELED, &provided);
    is_ours = true;
    return REMAT_OK;
}

static remat_status fill(mpi_communicator *made, const void *mpi_comm)
{
    remat_context *context = made->base.context;
    int rank, size, local = 0, local_rank = 0;
    mpi_handle machine;
    CHECK(context, Comm_dup, mpi_comm ? *(mpi_handle const *)mpi_comm : library.world, &made->comm);
    CHECK(context, Comm_set_errhandler, made->comm, library.return_errors);
    CHECK(context, Comm_rank, made->comm, &rank);
    CHECK(context, Comm_size, made->comm, &size);
    CHECK(context, Comm_split_type, made->comm, MPI_ABI_SHARED, rank, library.no_info, &machine);
    const int counted = library.Comm_size(machine, &local), ranked = library.Comm_rank(machine, &local_rank);
    const int freed = library.Comm_free(&machine);
    REMAT_TRY(check(context, counted, "MPI_Comm_size"));
    REMAT_TRY(check(context, ranked, "MPI_Comm_rank"));
    REMAT_TRY(check(context, freed, "MPI_Comm_free"));
    made->base.rank = (uint64_t)rank;
    made->base.size = (uint64_t)size;
    made->base.local_size = (uint64_t)local;
    made->base.local_rank = (uint64_t)local_rank;
    return REMAT_OK;
}

remat_status comm_mpi_open(remat_context *context, const void *mpi_comm, remat_communicator **made)
{
    if (!mpi_library_load())
        return remat_fail(context, REMAT_INVALID, NULL,
                          "several ranks need Open MPI, and its " MPI_ABI_FILE
                          " is not installed or is incomplete; the "
                          "Debian package is openmpi-bin");
    REMAT_TRY(initialize(context));
    mpi_communicator *opened = remat_alloc_zeroed(context, 1, sizeof *opened);
    if (!opened)
        return REMAT_NO_MEMORY;
    opened->base = (remat_communicator){.type = &type, .context = context};
    open_count++;
    remat_status status = fill(opened, mpi_comm);
    if (status != REMAT_OK) {
        close_mpi(&opened->base);
        return status;
    }
    *made = &opened->base;
    return REMAT_OK;
}
