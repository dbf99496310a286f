/* Every call of MPI fails in turn, with a library in the place of Open MPI's (failing_mpi.c): each failure is told with the
 * name of the call, and nothing stays open. */
#include "comm/comm.h"
#include "comm/mpi_abi.h"
#include "support/library_failures.h"

#include <dlfcn.h>

static failing_library mpi;
static bool *is_running, *has_ended;

/* What a training does with ranks, each kind of transfer once. */
static remat_status use(remat_context *context, void *user)
{
    (void)user;
    remat_communicator *ranks;
    float number = 1;
    uint8_t byte = 1, all = 0;
    const int part = sizeof number, place = 0;
    const comm_transfer transfers[] = {
        {.kind = COMM_SEND, .data = &number, .bytes = sizeof number},
        {.kind = COMM_RECEIVE, .data = &number, .bytes = sizeof number},
        {.kind = COMM_BARRIER},
        {.kind = COMM_BROADCAST, .data = &number, .bytes = sizeof number},
        {.kind = COMM_GATHER, .data = &all, .mine = &byte, .bytes = 1},
        {.kind = COMM_JOIN, .data = &number, .parts = &part, .places = &place},
        {.kind = COMM_SUM, .data = &number, .bytes = sizeof number, .dtype = REMAT_FP32},
    };
    remat_status status = remat_communicator_open(context, NULL, &ranks);
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers && status == REMAT_OK; i++)
        status = comm_run(ranks, &transfers[i]);
    if (status == REMAT_OK)
        status = remat_communicator_agree(ranks, REMAT_OK, NULL, NULL, NULL, 0);
    remat_communicator_close(ranks);
    return status;
}

static void every_call_may_fail(void **state)
{
    expect_calls_survived(*state, use, NULL, &mpi, "MPI_", 21);
    expect_calls_survived(*state, use, NULL, &mpi, " fails with 16", 21); /* what the library says of it */
}

static void mpi_of_others_stays(void **state)
{
    fixture *f = *state;
    remat_communicator *ranks;
    mpi_handle world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    *is_running = true;
    expect_ok(f, remat_communicator_open(f->context, &world, &ranks));
    assert_string_equal(remat_communicator_name(ranks), "mpi");
    const comm_transfer halves = {.kind = COMM_SUM, .dtype = REMAT_BF16};
    expect_status(f, comm_run(ranks, &halves), REMAT_INVALID);
    expect_message(f, "MPI adds only fp32 and fp64");
    /* Whoever ended MPI meanwhile freed what it had. */
    *has_ended = true;
    *mpi.open = 0;
    remat_communicator_close(ranks);
    expect_status(f, remat_communicator_open(f->context, &world, &ranks), REMAT_INVALID);
    expect_message(f, "MPI has ended in this process and cannot begin again");
    *has_ended = false;
    *is_running = false;
}

static void memory_may_run_out(void **state)
{
    fixture *f = *state;
    remat_communicator *ranks;
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, remat_communicator_open(f->context, NULL, &ranks), REMAT_NO_MEMORY);
    expect_ok(f, remat_communicator_open(f->context, NULL, &ranks));
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, remat_communicator_agree(ranks, REMAT_OK, NULL, NULL, NULL, 0), REMAT_NO_MEMORY);
    bool any;
    expect_ok(f, comm_any(ranks, true, &any)); /* alone nothing is gathered */
    assert_true(any);
    uint64_t rank;
    char text[8];
    expect_status(f, remat_communicator_agree(ranks, REMAT_IO, "why", &rank, text, sizeof text), REMAT_IO);
    assert_string_equal(text, "why");
    expect_status(f, remat_communicator_agree(ranks, REMAT_IO, NULL, &rank, NULL, 0), REMAT_IO);
    expect_status(f, remat_communicator_agree(ranks, REMAT_IO, NULL, &rank, text, 0), REMAT_IO);
    remat_communicator_close(ranks);
    remat_communicator_close(NULL);
}

static void the_library_says_its_version(void **state)
{
    (void)state;
    assert_string_equal(remat_mpi_version(), "an MPI that fails");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMIX_RANK");
    assert_false(comm_mpi_is_launched());
    setenv("PMIX_RANK", "0", 1);
    assert_true(comm_mpi_is_launched());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_call_may_fail),
        FIXTURE_TEST(mpi_of_others_stays),
        FIXTURE_TEST(memory_may_run_out),
        FIXTURE_TEST(the_library_says_its_version),
    };
    /* A library of this name that is loaded already is the one that is found by it. */
    if (!dlopen(FAILING_MPI, RTLD_NOW | RTLD_GLOBAL))
        return 1;
    mpi = (failing_library){dlsym(RTLD_DEFAULT, "failing_mpi_calls"), dlsym(RTLD_DEFAULT, "failing_mpi_fails_at"),
                            dlsym(RTLD_DEFAULT, "failing_mpi_open")};
    is_running = dlsym(RTLD_DEFAULT, "failing_mpi_is_running");
    has_ended = dlsym(RTLD_DEFAULT, "failing_mpi_has_ended");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
