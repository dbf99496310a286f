/* Transfers of memory that the host cannot touch, as run_mpi.sh starts it: through memory of the host, or with the argument "nccl" by an
 * NCCL of the tests. "same": all ranks have one GPU; "old": NCCL is too old. REMAT_TEST_DEVICE=cuda: on GPUs, whatever way they go. */
#include <unistd.h>

#include "comm/comm.h"
#include "support/fake_nccl_calls.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"

static remat_communicator *hosts, *ranks;
static backend *device;
static backend_queue *queue;
static backend_memory memory;
static fake_nccl_calls fake;
static const char *way = "";   /* the argument */
static bool is_fake, is_other; /* NCCL, device */
static char warning[1024];

enum { MOST_BYTES = 128 << 20 };

static bool all_talk(const void *user, uint64_t from, uint64_t to)
{
    (void)user, (void)from, (void)to;
    return true;
}

static remat_status open_ranks(void)
{
    return comm_device_open(hosts, queue, &(comm_pairs){all_talk, NULL}, &ranks);
}

static void check_status(remat_status status)
{
    if (status != REMAT_OK)
        fail_msg("rank %d: %s", (int)hosts->rank, remat_context_message(hosts->context));
}

static void run(comm_transfer transfer)
{
    check_status(comm_run(ranks, &transfer));
}

/* The device works late, and nobody waits for it. */
static void write_to(uint64_t offset, const void *data, uint64_t bytes)
{
    check_status(backend_copy_in(queue, memory.at + offset, data, bytes));
}

static void read_from(uint64_t offset, void *data, uint64_t bytes)
{
    check_status(backend_copy_out(queue, data, memory.at + offset, bytes));
    check_status(backend_wait(queue));
}

static void test_way(void **state)
{
    (void)state;
    if (is_other) {
        printf("tensors go by %s\n", remat_communicator_name(ranks));
        return;
    }
    assert_string_equal(remat_communicator_name(ranks), strcmp(way, "nccl") == 0 ? "nccl" : "staged");
    if (hosts->rank > 0 || strcmp(way, "nccl") == 0)
        assert_string_equal(warning, "");
    else
        assert_non_null(strstr(warning, "through memory of the host"));
    if (hosts->rank == 0 && strcmp(way, "same") == 0 && hosts->size > 1)
        assert_non_null(strstr(warning, "ranks 0 and 1 have the same GPU"));
    if (hosts->rank == 0 && strcmp(way, "old") == 0)
        assert_non_null(strstr(warning, "rank 0: NCCL 2.6.4 is too old"));
}

static void test_collectives(void **state)
{
    (void)state;
    const uint64_t size = ranks->size, rank = ranks->rank;
    uint64_t number, all[64] = {0};
    run((comm_transfer){.kind = COMM_BARRIER});
    for (uint64_t root = 0; root < size; root++) {
        number = rank == root ? 7 + root : 0;
        write_to(0, &number, sizeof number);
        run((comm_transfer){.kind = COMM_BROADCAST, .peer = root, .data = memory.at, .bytes = sizeof number});
        number = 0;
        read_from(0, &number, sizeof number);
        assert_int_equal(number, 7 + root);
    }
    number = rank * rank;
    write_to(4096, &number, sizeof number);
    run((comm_transfer){.kind = COMM_GATHER, .data = memory.at, .mine = memory.at + 4096, .bytes = sizeof number});
    read_from(0, all, size * sizeof *all);
    for (uint64_t r = 0; r < size; r++)
        assert_int_equal(all[r], r * r);
    float few[2] = {1, (float)rank};
    write_to(64, few, sizeof few);
    run((comm_transfer){.kind = COMM_SUM, .data = memory.at + 64, .bytes = sizeof few, .dtype = REMAT_FP32});
    double many = 0.5;
    write_to(128, &many, sizeof many);
    run((comm_transfer){.kind = COMM_SUM, .data = memory.at + 128, .bytes = sizeof many, .dtype = REMAT_FP64});
    read_from(64, few, sizeof few);
    read_from(128, &many, sizeof many);
    assert_true(size == 1 || (few[0] == (float)size && few[1] == (float)(size * (size - 1) / 2)));
    assert_true(size == 1 || many == 0.5 * (double)size);
}

/* Parts of the same size, and of others, one of them empty. */
static void test_join(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        int parts[64], places[64], end = 0;
        unsigned char bytes[4096] = {0};
        for (uint64_t r = 0; r < ranks->size; r++) {
            parts[r] = same ? 48 : (int)(37 * r);
            places[r] = end;
            end += parts[r];
        }
        memset(bytes, (int)ranks->rank + 1, sizeof bytes);
        write_to((uint64_t)places[ranks->rank], bytes, (uint64_t)parts[ranks->rank]);
        run((comm_transfer){.kind = COMM_JOIN, .data = memory.at, .parts = parts, .places = places});
        read_from(0, bytes, (uint64_t)end);
        for (uint64_t r = 0; r < ranks->size; r++)
            for (int i = 0; i < parts[r]; i++)
                assert_int_equal(bytes[places[r] + i], r + 1);
    }
}

/* All ranks send to all others at once, more than is received at a time, and wait in another order than they started. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 18, BYTES = (1 << 20) + 64 }; /* each gets a room of 2 MiB; receives have 32 MiB at a time */
    const uint64_t size = ranks->size, rank = ranks->rank;
    comm_request sends[COUNT * 8], receives[COUNT * 8];
    assert_true(size <= 4);
    for (uint64_t r = 0; r < size; r++)
        for (uint64_t i = 0; r != rank && i < COUNT; i++)
            check_status(comm_start(ranks,
                                    &(comm_transfer){.kind = COMM_RECEIVE,
                                                     .peer = r,
                                                     .tag = (int)(COUNT - 1 - i),
                                                     .data = memory.at + (r * COUNT + COUNT - 1 - i) * BYTES,
                                                     .bytes = BYTES},
                                    &receives[r * COUNT + COUNT - 1 - i]));
    char *data = malloc(BYTES);
    for (uint64_t i = 0; i < COUNT; i++) {
        char *at = memory.at + ((rank * COUNT) + i) * BYTES; /* nobody sends to itself: the place is free */
        memset(data, (int)(16 * rank + i), BYTES);
        write_to((uint64_t)(at - memory.at), data, BYTES);
        check_status(backend_wait(queue)); /* `data` changes */
        for (uint64_t r = 0; r < size; r++)
            if (r != rank)
                check_status(comm_start(
                    ranks, &(comm_transfer){.kind = COMM_SEND, .peer = r, .tag = (int)i, .data = at, .bytes = BYTES},
                    &sends[r * COUNT + i]));
    }
    for (uint64_t i = 0; i < COUNT; i++)
        for (uint64_t r = 0; r < size; r++) {
            const uint64_t tag = i * 5 % COUNT;
            if (r == rank)
                continue;
            check_status(comm_wait(ranks, &receives[r * COUNT + tag]));
            read_from((r * COUNT + tag) * BYTES, data, BYTES);
            for (size_t k = 0; k < BYTES; k += 4095)
                assert_int_equal((unsigned char)data[k], 16 * r + tag);
        }
    for (uint64_t r = 0; r < size; r++)
        for (uint64_t i = 0; r != rank && i < COUNT; i++)
            check_status(comm_wait(ranks, &sends[r * COUNT + i]));
    free(data);
}

/* What has the same tag arrives in order, and what is received again follows what the queue does with it. */
static void test_same_tag(void **state)
{
    (void)state;
    enum { COUNT = 9 };
    const uint64_t size = ranks->size, next = (ranks->rank + 1) % size, before = (ranks->rank + size - 1) % size;
    comm_request sends[COUNT], receives[COUNT];
    uint64_t numbers[COUNT], got[COUNT] = {0};
    if (size == 1)
        return;
    for (uint64_t i = 0; i < COUNT; i++) {
        numbers[i] = 100 * ranks->rank + i;
        write_to(64 * i, &numbers[i], 8);
        check_status(comm_start(
            ranks, &(comm_transfer){.kind = COMM_SEND, .peer = next, .tag = 3, .data = memory.at + 64 * i, .bytes = 8},
            &sends[i]));
        check_status(comm_start(
            ranks,
            &(comm_transfer){
                .kind = COMM_RECEIVE, .peer = before, .tag = 3, .data = memory.at + 4096 + 64 * i, .bytes = 8},
            &receives[i]));
    }
    for (uint64_t i = COUNT; i-- > 0;)
        check_status(comm_wait(ranks, &receives[i]));
    for (uint64_t i = 0; i < COUNT; i++) {
        check_status(comm_wait(ranks, &sends[i]));
        read_from(4096 + 64 * i, &got[i], 8);
        assert_int_equal(got[i], 100 * before + i);
    }
}

static void test_split(void **state)
{
    (void)state;
    remat_communicator *half;
    check_status(comm_split(ranks, ranks->rank % 2, ranks->rank, &half));
    float number = (float)ranks->rank, wanted = 0;
    write_to(0, &number, sizeof number);
    const comm_transfer sum = {.kind = COMM_SUM, .data = memory.at, .bytes = sizeof number, .dtype = REMAT_FP32};
    check_status(comm_run(half, &sum));
    read_from(0, &number, sizeof number);
    for (uint64_t r = ranks->rank % 2; r < ranks->size; r += 2)
        wanted += (float)r;
    assert_true(number == wanted);
    remat_communicator_close(half);
}

/* A rank that does not come is not waited for without end, and closing ends what is under way. */
static void lose_rank(const comm_transfer *never)
{
    comm_request request;
    remat_communicator *whole = ranks;
    check_status(open_ranks());
    if (hosts->rank == 0) {
        remat_communicator_set_timeout(hosts, 0.05);
        check_status(comm_start(ranks, never, &request));
        assert_int_equal(comm_wait(ranks, &request), REMAT_IO);
        assert_non_null(strstr(remat_context_message(hosts->context), "rank 0 has waited"));
        remat_communicator_set_timeout(hosts, 60);
    }
    check_status(comm_run(hosts, &(comm_transfer){.kind = COMM_BARRIER}));
    remat_communicator_close(ranks);
    ranks = whole;
}

static void test_lost_rank(void **state)
{
    (void)state;
    if (strcmp(way, "nccl") != 0 || !is_fake || hosts->size == 1)
        return;
    lose_rank(&(comm_transfer){.kind = COMM_SUM, .data = memory.at, .bytes = 4, .dtype = REMAT_FP32});
    lose_rank(&(comm_transfer){.kind = COMM_SEND, .peer = 1, .data = memory.at, .bytes = 4});
    lose_rank(&(comm_transfer){.kind = COMM_RECEIVE, .peer = 1, .data = memory.at, .bytes = 4});
}

/* NCCL's own errors: at a call, and later. */
static void test_errors(void **state)
{
    (void)state;
    char wanted[64];
    const comm_transfer sum = {.kind = COMM_SUM, .data = memory.at, .bytes = 4, .dtype = REMAT_FP32};
    comm_request request;
    remat_communicator *whole = ranks;
    if (strcmp(way, "nccl") != 0 || !is_fake)
        return;
    snprintf(wanted, sizeof wanted, "rank %d: ", (int)hosts->rank);
    check_status(open_ranks());
    *fake.fails_at = *fake.calls + 1;
    assert_int_equal(comm_run(ranks, &sum), REMAT_IO);
    assert_non_null(strstr(remat_context_message(hosts->context), wanted));
    assert_non_null(strstr(remat_context_message(hosts->context), "ncclAllReduce fails: a failure of the test"));
    remat_communicator_close(ranks);
    check_status(open_ranks());
    *fake.late_error = 3;
    check_status(comm_start(ranks, &sum, &request));
    assert_int_equal(comm_wait(ranks, &request), REMAT_IO);
    assert_non_null(strstr(remat_context_message(hosts->context), "a transfer by NCCL fails"));
    *fake.late_error = 0;
    check_status(comm_run(hosts, &(comm_transfer){.kind = COMM_BARRIER}));
    remat_communicator_close(ranks);
    const bool fails = hosts->rank == hosts->size - 1; /* it alone; the others do not wait for it in NCCL */
    *fake.fails_at = fails ? *fake.calls + 1 : 0;
    assert_int_equal(open_ranks(), REMAT_IO);
    assert_non_null(strstr(remat_context_message(hosts->context),
                           fails ? "ncclGetUniqueId fails: a failure of the test" : "NCCL fails on another rank"));
    *fake.fails_at = 0;
    check_status(comm_run(hosts, &(comm_transfer){.kind = COMM_BARRIER}));
    ranks = whole;
}

static void keep_warning(void *user, const char *message)
{
    (void)user;
    snprintf(warning, sizeof warning, "%s", message);
}

static bool prepare(remat_context *context, int argc, char **argv)
{
    const char *other = getenv("REMAT_TEST_DEVICE");
    way = argc > 1 ? argv[1] : "";
    is_other = other != NULL;
    is_fake = argc > 1 && !other;
    if (is_fake && !fake_nccl_load(FAKE_NCCL, strcmp(way, "same") == 0 ? 1 : (uint64_t)getpid(), &fake))
        return false;
    if (is_fake && strcmp(way, "old") == 0)
        *fake.version = 2604;
    const backend_options options = {.device = other ? other : fenced_device(), .process = hosts->local_rank};
    return backend_open(context, &options, &device) == REMAT_OK && backend_queue_create(device, &queue) == REMAT_OK &&
           backend_allocate(device, MEMORY_DEVICE, MOST_BYTES, true, &memory) == REMAT_OK && open_ranks() == REMAT_OK;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_way),       cmocka_unit_test(test_collectives),
                                       cmocka_unit_test(test_join),      cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_same_tag),  cmocka_unit_test(test_split),
                                       cmocka_unit_test(test_lost_rank), cmocka_unit_test(test_errors)};
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    remat_context_on_warning(context, keep_warning, NULL);
    if (remat_communicator_open(context, NULL, &hosts) != REMAT_OK)
        return 1;
    remat_communicator_set_timeout(hosts, 60);
    if (!prepare(context, argc, argv)) {
        fprintf(stderr, "rank %d: %s\n", (int)hosts->rank, remat_context_message(context));
        remat_communicator_abort(hosts, REMAT_INTERNAL);
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        remat_communicator_abort(hosts, REMAT_INTERNAL);
    remat_communicator_close(ranks);
    backend_release(device, &memory);
    backend_queue_destroy(queue);
    backend_close(device);
    remat_communicator_close(hosts);
    remat_context_destroy(context);
    return is_fake && *fake.open != 0;
}
