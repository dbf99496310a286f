/* What fails between ranks whose tensors are in memory of a device: calls of MPI, calls of NCCL and allocations, each in turn, with
 * libraries of one rank in the places of both (failing_mpi.c, fake_nccl.c). Every failure is told, and nothing stays open. */
#include "comm/comm.h"
#include "support/fake_nccl_calls.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/library_failures.h"

#include <dlfcn.h>
#include <unistd.h>

static failing_library mpi, nccl;

typedef struct opened {
    remat_communicator *hosts, *ranks;
    backend *device;
    backend_queue *queue;
    backend_memory memory;
} opened;

enum { PART = 1 << 20, PARTS = 40, BYTES = PART * (PARTS + 1) };

static bool all_talk(const void *user, uint64_t from, uint64_t to)
{
    (void)user, (void)from, (void)to;
    return true;
}

static remat_status open_all(remat_context *context, bool by_nccl, opened *o)
{
    remat_status status = REMAT_OK;
    const backend_options options = {.device = fenced_device()};
    *o = (opened){0};
    FLOW(status, remat_communicator_open(context, NULL, &o->hosts));
    FLOW(status, backend_open(context, &options, &o->device));
    FLOW(status, backend_queue_create(o->device, &o->queue));
    FLOW(status, backend_allocate(o->device, MEMORY_DEVICE, BYTES, true, &o->memory));
    FLOW(status, by_nccl ? comm_device_open(o->hosts, o->queue, &(comm_pairs){all_talk, NULL}, &o->ranks)
                         : comm_staged_open(o->hosts, o->queue, false, &o->ranks));
    return status;
}

static void close_all(opened *o)
{
    if (o->queue)
        backend_wait(o->queue);
    remat_communicator_close(o->ranks);
    if (o->memory.at)
        backend_release(o->device, &o->memory);
    if (o->queue)
        backend_queue_destroy(o->queue);
    if (o->device)
        backend_close(o->device);
    remat_communicator_close(o->hosts);
}

/* Collective ones, of all and of a part. */
static remat_status use_collectives(remat_communicator *ranks, backend_queue *queue, char *at)
{
    const int part = 64, place = 0;
    const comm_transfer transfers[] = {
        {.kind = COMM_BARRIER},
        {.kind = COMM_BROADCAST, .data = at, .bytes = 64},
        {.kind = COMM_GATHER, .data = at, .mine = at + 64, .bytes = 64},
        {.kind = COMM_JOIN, .data = at, .parts = &part, .places = &place},
        {.kind = COMM_SUM, .data = at, .bytes = 64, .dtype = REMAT_FP32},
        {.kind = COMM_SUM, .data = at, .bytes = 64, .dtype = REMAT_FP64},
    };
    remat_communicator *same = NULL;
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++)
        FLOW(status, comm_run(ranks, &transfers[i]));
    FLOW(status, comm_split(ranks, 0, 0, &same));
    FLOW(status, comm_run(same, &transfers[4]));
    FLOW(status, backend_wait(queue));
    remat_communicator_close(same);
    return status;
}

/* More receives than get room at once. The last of them is waited for first. */
static remat_status use_receives(remat_communicator *ranks, char *at)
{
    comm_request requests[PARTS] = {0};
    remat_status status = comm_run(ranks, &(comm_transfer){.kind = COMM_SEND, .data = at, .bytes = PART});
    for (size_t i = 0; i < PARTS; i++)
        FLOW(status,
             comm_start(ranks,
                        &(comm_transfer){
                            .kind = COMM_RECEIVE, .tag = (int)(i % 3), .data = at + PART * (i + 1), .bytes = PART},
                        &requests[i]));
    FLOW(status, comm_wait(ranks, &requests[PARTS - 1]));
    for (size_t i = 0; i < PARTS; i++)
        FLOW(status, comm_wait(ranks, &requests[i]));
    return status;
}

static remat_status use(remat_context *context, void *by_nccl)
{
    opened o;
    remat_status status = open_all(context, by_nccl != NULL, &o);
    FLOW(status, use_collectives(o.ranks, o.queue, o.memory.at));
    if (!by_nccl)
        FLOW(status, use_receives(o.ranks, o.memory.at));
    close_all(&o);
    return status;
}

/* Opens NCCL and a part of it. After a failed transfer MPI may still write a notice, so that its memory stays: there are none here. */
static remat_status open_nccl(remat_context *context, void *by_nccl)
{
    opened o;
    remat_communicator *same = NULL;
    remat_status status = open_all(context, by_nccl != NULL, &o);
    FLOW(status, comm_split(o.ranks, 0, 0, &same));
    remat_communicator_close(same);
    close_all(&o);
    return status;
}

static bool yes = true;

static void staged_mpi_fails(void **state)
{
    expect_calls_survived(*state, use, NULL, &mpi, "MPI_", 60);
}

static void staged_memory_runs_out(void **state)
{
    (void)state;
    expect_failures_survived("staged", use, NULL, 20, 200);
}

static void nccl_fails(void **state)
{
    expect_calls_survived(*state, use, &yes, &nccl, "a failure of the test", 7);
}

static void nccl_mpi_fails(void **state)
{
    expect_calls_survived(*state, open_nccl, &yes, &mpi, "MPI_", 15);
}

static void nccl_memory_runs_out(void **state)
{
    (void)state;
    expect_failures_survived("nccl", use, &yes, 10, 200);
}

static remat_status use_none(remat_context *context, void *user)
{
    remat_communicator *ranks = NULL, *part = NULL;
    (void)user;
    remat_status status = comm_none_open(context, &ranks);
    FLOW(status, comm_split(ranks, 0, 0, &part));
    remat_communicator_close(part);
    remat_communicator_close(ranks);
    return status;
}

static void alone_nobody_is_reached(void **state)
{
    fixture *f = *state;
    remat_communicator *ranks;
    uint64_t mine = 7, all = 0;
    expect_failures_survived("none", use_none, NULL, 2, 10);
    expect_ok(f, comm_none_open(f->context, &ranks));
    expect_status(f, comm_run(ranks, &(comm_transfer){.kind = COMM_SEND, .data = &mine, .bytes = 8}), REMAT_INTERNAL);
    expect_message(f, "a rank alone sends to itself");
    expect_ok(f, comm_run(ranks, &(comm_transfer){.kind = COMM_GATHER, .data = &all, .mine = &mine, .bytes = 0}));
    assert_int_equal(all, 0);
    expect_ok(f, comm_run(ranks, &(comm_transfer){.kind = COMM_GATHER, .data = &all, .mine = &mine, .bytes = 8}));
    assert_int_equal(all, 7);
    remat_communicator_close(ranks);
}

static void *of_mpi(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(staged_mpi_fails),     FIXTURE_TEST(staged_memory_runs_out),
                                       FIXTURE_TEST(nccl_fails),           FIXTURE_TEST(nccl_mpi_fails),
                                       FIXTURE_TEST(nccl_memory_runs_out), FIXTURE_TEST(alone_nobody_is_reached)};
    fake_nccl_calls fake;
    /* Libraries of these names that are loaded already are the ones that are found by them. */
    if (!dlopen(FAILING_MPI, RTLD_NOW | RTLD_GLOBAL) || !fake_nccl_load(FAKE_NCCL, (uint64_t)getpid(), &fake))
        return 1;
    mpi = (failing_library){of_mpi("failing_mpi_calls"), of_mpi("failing_mpi_fails_at"), of_mpi("failing_mpi_open")};
    nccl = (failing_library){fake.calls, fake.fails_at, fake.open};
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
