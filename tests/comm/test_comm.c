/* What every implementation of a communicator does. Alone this tests `none`; under mpirun, `mpi`, with as many ranks as it
 * was started with (run_mpi.sh). */
#include <string.h>

#include "comm/comm.h"
#include "support/fixture.h"

static remat_communicator *ranks;

static void run(const comm_transfer *transfer)
{
    if (comm_run(ranks, transfer) != REMAT_OK)
        fail_msg("rank %d: %s", (int)ranks->rank, remat_context_message(ranks->context));
}

static void test_names(void **state)
{
    (void)state;
    assert_true(ranks->rank < ranks->size);
    assert_true(ranks->local_size >= 1 && ranks->local_size <= ranks->size);
    assert_string_equal(remat_communicator_name(ranks), comm_mpi_is_launched() ? "mpi" : "none");
    if (!comm_mpi_is_launched())
        assert_int_equal(ranks->size, 1);
}

/* Even and odd ranks, from the last to the first. */
static void test_split(void **state)
{
    (void)state;
    remat_communicator *half;
    assert_int_equal(comm_split(ranks, ranks->rank % 2, ranks->size - ranks->rank, &half), REMAT_OK);
    const uint64_t last = ranks->size - 1 - (ranks->size - 1 - ranks->rank) % 2;
    assert_int_equal(half->size, last / 2 + 1);
    assert_int_equal(half->rank, (last - ranks->rank) / 2);
    double number = (double)ranks->rank;
    assert_int_equal(
        comm_run(half,
                 &(comm_transfer){.kind = COMM_SUM, .data = &number, .bytes = sizeof number, .dtype = REMAT_FP64}),
        REMAT_OK);
    double wanted = 0;
    for (uint64_t r = ranks->rank % 2; r < ranks->size; r += 2)
        wanted += (double)r;
    assert_true(number == wanted);
    remat_communicator_close(half);
}

static void test_collectives(void **state)
{
    (void)state;
    run(&(comm_transfer){.kind = COMM_BARRIER});
    for (uint64_t root = 0; root < ranks->size; root++) {
        uint64_t number = ranks->rank == root ? 7 + root : 0;
        run(&(comm_transfer){.kind = COMM_BROADCAST, .peer = root, .data = &number, .bytes = sizeof number});
        assert_int_equal(number, 7 + root);
    }
    uint64_t mine = ranks->rank * ranks->rank, all[64] = {0};
    assert_true(ranks->size <= 64);
    run(&(comm_transfer){.kind = COMM_GATHER, .data = all, .mine = &mine, .bytes = sizeof mine});
    for (uint64_t r = 0; r < ranks->size; r++)
        assert_int_equal(all[r], r * r);
    /* Rank r has r + 1 numbers, the last rank's first. */
    int parts[64], places[64], count = 0;
    uint32_t joined[64 * 65 / 2] = {0};
    for (int r = (int)ranks->size - 1; r >= 0; r--) {
        parts[r] = (r + 1) * (int)sizeof *joined;
        places[r] = count * (int)sizeof *joined;
        for (int i = 0; i <= r; i++, count++)
            joined[count] = r == (int)ranks->rank ? (uint32_t)(100 * r + i) : 0;
    }
    run(&(comm_transfer){.kind = COMM_JOIN, .data = joined, .parts = parts, .places = places});
    for (int r = (int)ranks->size - 1, at = 0; r >= 0; r--)
        for (int i = 0; i <= r; i++, at++)
            assert_int_equal(joined[at], 100 * r + i);
    float singles[3] = {(float)ranks->rank, 1, 0.5f};
    run(&(comm_transfer){.kind = COMM_SUM, .data = singles, .bytes = sizeof singles, .dtype = REMAT_FP32});
    assert_true(singles[0] == (float)(ranks->size * (ranks->size - 1) / 2) && singles[1] == (float)ranks->size);
    double number = 1;
    run(&(comm_transfer){.kind = COMM_SUM, .data = &number, .bytes = sizeof number, .dtype = REMAT_FP64});
    assert_true(number == (double)ranks->size);
}

/* Around the ring, in the order of starting; the receiver asks first, or last. Large ones wait for the receiver. */
static void test_ring(void **state)
{
    (void)state;
    enum { VALUES = 1 << 18 };
    static uint32_t sent[2][VALUES], received[2][VALUES];
    const uint64_t next = (ranks->rank + 1) % ranks->size, before = (ranks->rank + ranks->size - 1) % ranks->size;
    comm_request requests[4];
    if (ranks->size == 1)
        return;
    for (int order = 0; order < 2; order++) {
        for (uint32_t m = 0; m < 2; m++)
            for (uint32_t i = 0; i < VALUES; i++)
                sent[m][i] = (uint32_t)ranks->rank * 1000003u + m * 77u + i;
        memset(received, 0, sizeof received);
        for (int pass = 0; pass < 2; pass++)
            for (int m = 0; m < 2; m++) {
                const bool receives = (pass == 0) == (order == 0);
                const comm_transfer transfer = {.kind = receives ? COMM_RECEIVE : COMM_SEND,
                                                .peer = receives ? before : next,
                                                .tag = 3,
                                                .data = receives ? received[m] : sent[m],
                                                .bytes = sizeof sent[m]};
                assert_int_equal(comm_start(ranks, &transfer, &requests[2 * pass + m]), REMAT_OK);
            }
        for (int i = 0; i < 4; i++)
            assert_int_equal(comm_wait(ranks, &requests[i]), REMAT_OK);
        for (uint32_t m = 0; m < 2; m++)
            for (uint32_t i = 0; i < VALUES; i++)
                if (received[m][i] != (uint32_t)before * 1000003u + m * 77u + i)
                    fail_msg("message %u, value %u", m, i);
    }
}

static void test_agreeing(void **state)
{
    (void)state;
    bool any = true;
    assert_int_equal(comm_any(ranks, false, &any), REMAT_OK);
    assert_false(any);
    assert_int_equal(comm_any(ranks, ranks->rank == ranks->size - 1, &any), REMAT_OK);
    assert_true(any);
    uint64_t rank = 99;
    char text[64] = "";
    assert_int_equal(remat_communicator_agree(ranks, REMAT_OK, NULL, &rank, text, sizeof text), REMAT_OK);
    assert_int_equal(rank, ranks->size);
    const bool fails = ranks->rank == ranks->size - 1;
    assert_int_equal(remat_communicator_agree(ranks, fails ? REMAT_BAD_INPUT : REMAT_OK, fails ? "no such thing" : NULL,
                                              &rank, text, sizeof text),
                     REMAT_BAD_INPUT);
    assert_int_equal(rank, ranks->size - 1);
    assert_string_equal(text, "no such thing");
}

/* A rank that never answers is not waited for without end. */
static void test_timeout(void **state)
{
    (void)state;
    comm_request request;
    uint32_t number = 0;
    run(&(comm_transfer){.kind = COMM_BARRIER});
    if (ranks->size == 1)
        return;
    if (ranks->rank == 0) {
        const comm_transfer transfer = {
            .kind = COMM_RECEIVE, .peer = 1, .tag = 5, .data = &number, .bytes = sizeof number};
        assert_int_equal(comm_start(ranks, &transfer, &request), REMAT_OK);
        remat_communicator_set_timeout(ranks, 0.05);
        assert_int_equal(comm_wait(ranks, &request), REMAT_IO);
        assert_non_null(strstr(remat_context_message(ranks->context), "has waited"));
        remat_communicator_set_timeout(ranks, 60);
    }
    run(&(comm_transfer){.kind = COMM_BARRIER});
    if (ranks->rank == 1)
        run(&(comm_transfer){.kind = COMM_SEND, .peer = 0, .tag = 5, .data = &number, .bytes = sizeof number});
    if (ranks->rank == 0)
        assert_int_equal(comm_wait(ranks, &request), REMAT_OK);
}

static void test_mistakes(void **state)
{
    (void)state;
    comm_request request;
    const comm_transfer nobody = {.kind = COMM_SEND, .peer = ranks->size, .bytes = 1};
    assert_int_equal(comm_start(ranks, &nobody, &request), REMAT_INTERNAL);
    const comm_transfer large = {.kind = COMM_BROADCAST, .bytes = (uint64_t)COMM_MOST_BYTES + 1};
    assert_int_equal(comm_start(ranks, &large, &request), REMAT_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),       cmocka_unit_test(test_split),
                                       cmocka_unit_test(test_collectives), cmocka_unit_test(test_ring),
                                       cmocka_unit_test(test_agreeing),    cmocka_unit_test(test_timeout),
                                       cmocka_unit_test(test_mistakes)};
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK || remat_communicator_open(context, NULL, &ranks) != REMAT_OK)
        return 1;
    remat_communicator_set_timeout(ranks, 60);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        remat_communicator_abort(ranks, REMAT_INTERNAL);
    remat_communicator_close(ranks);
    remat_context_destroy(context);
    return failed;
}
