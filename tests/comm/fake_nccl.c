/* An NCCL for processes of one machine, under the name of its library, that moves memory of the fenced device over sockets. As the real one
 * does, it runs a call when the stream comes to it, blocks that stream until the other rank runs its part, and runs the calls of a
 * communicator one after the other. The first call of a kind blocks the host until all ranks of the communicator make it. A call can be made to
 * fail, and a communicator to report an error later. */
#include "comm/nccl_abi.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Set by the test. */
void (*fake_nccl_call)(void *stream, void (*call)(void *argument), void *argument);
void *(*fake_nccl_address)(void *stream, const void *at);
int fake_nccl_calls;           /* so far */
int fake_nccl_fails_at;        /* 0: none */
int fake_nccl_late_error;      /* what communicators report from now on */
int fake_nccl_open;            /* communicators that were neither destroyed nor aborted */
int fake_nccl_version = 22809; /* 2.28.9 */

enum { FAILED = 3, MOST_RANKS = 16, MOST_WAIT = 60000 /* milliseconds */ };

enum { SEND, RECV, BROADCAST, GATHER, SUM, KINDS };

typedef struct fake_comm {
    int ranks, rank;
    int sockets[MOST_RANKS], hosts[MOST_RANKS]; /* of streams, of first calls */
    bool has_met[KINDS];
    struct fake_comm *next;
} fake_comm;

static fake_comm *ended; /* a stream may still have calls of them */

typedef struct fake_call {
    int kind;
    fake_comm *comm;
    void *stream;
    const void *from;
    void *to;
    size_t bytes;
    int peer, type;
} fake_call;

#define X(name, arguments) int nccl##name arguments;
NCCL_ABI_FUNCTIONS(X)
#undef X
const char *ncclGetErrorString(int error);

static int answer(void)
{
    return ++fake_nccl_calls == fake_nccl_fails_at ? FAILED : NCCL_ABI_SUCCESS;
}

const char *ncclGetErrorString(int error)
{
    return error == FAILED ? "a failure of the test" : "another failure";
}

int ncclGetVersion(int *version)
{
    *version = fake_nccl_version;
    return NCCL_ABI_SUCCESS;
}

/* ---- sockets ---- */

static bool put(int socket, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t put = send(socket, from + done, bytes - done, MSG_NOSIGNAL);
        if (put <= 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool get(int socket, char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = recv(socket, to + done, bytes - done, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Every rank waits for those of higher rank at a name that is no file's, and says its own number where it goes. */
static struct sockaddr_un place_of(const nccl_id *id, int rank)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    snprintf(place.sun_path + 1, sizeof place.sun_path - 1, "%.60s-%d", id->bytes, rank);
    return place;
}

/* Twice: `of_host` is for first calls. */
static bool reach(fake_comm *comm, const nccl_id *id, int other, bool of_host)
{
    const struct sockaddr_un place = place_of(id, other);
    const int said[2] = {comm->rank, of_host}, made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *(of_host ? &comm->hosts[other] : &comm->sockets[other]) = made;
    for (int trial = 0; trial < MOST_WAIT; trial++, usleep(1000))
        if (connect(made, (const struct sockaddr *)&place, sizeof place) == 0)
            return put(made, (const char *)said, sizeof said);
    return false;
}

static bool be_reached(fake_comm *comm, int waits)
{
    int said[2] = {0, 0};
    const int made = accept(waits, NULL, NULL);
    if (made < 0 || !get(made, (char *)said, sizeof said))
        return false;
    *(said[1] ? &comm->hosts[said[0]] : &comm->sockets[said[0]]) = made;
    return true;
}

static bool connect_all(fake_comm *comm, const nccl_id *id)
{
    const struct sockaddr_un place = place_of(id, comm->rank);
    const struct timeval most = {MOST_WAIT / 1000, 0};
    const int waits = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool all = setsockopt(waits, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0 &&
               bind(waits, (const struct sockaddr *)&place, sizeof place) == 0 && listen(waits, 2 * MOST_RANKS) == 0;
    for (int r = 0; r < comm->rank && all; r++)
        all = reach(comm, id, r, false) && reach(comm, id, r, true);
    for (int i = 2 * (comm->rank + 1); i < 2 * comm->ranks && all; i++)
        all = be_reached(comm, waits);
    close(waits);
    return all;
}

int ncclGetUniqueId(nccl_id *id)
{
    static int count;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "remat-nccl-%ld-%d", (long)getpid(), count++);
    return answer();
}

/* Its memory stays until the process ends: a stream may still have calls. */
static int end(fake_comm *comm)
{
    for (int r = 0; r < comm->ranks; r++)
        if (r != comm->rank) {
            shutdown(comm->sockets[r], SHUT_RDWR); /* who blocks there goes on */
            shutdown(comm->hosts[r], SHUT_RDWR);
            close(comm->sockets[r]);
            close(comm->hosts[r]);
        }
    comm->next = ended;
    ended = comm;
    return NCCL_ABI_SUCCESS;
}

int ncclCommInitRank(nccl_handle *made, int ranks, nccl_id id, int rank)
{
    if (ranks > MOST_RANKS || answer() != NCCL_ABI_SUCCESS)
        return FAILED;
    fake_comm *comm = calloc(1, sizeof *comm);
    *comm = (fake_comm){.ranks = ranks, .rank = rank};
    for (int r = 0; r < ranks; r++)
        comm->sockets[r] = comm->hosts[r] = -1;
    if (!connect_all(comm, &id)) {
        end(comm);
        return FAILED;
    }
    fake_nccl_open++;
    *made = comm;
    return NCCL_ABI_SUCCESS;
}

int ncclCommDestroy(nccl_handle comm)
{
    fake_nccl_open--;
    return end(comm);
}

int ncclCommAbort(nccl_handle comm)
{
    fake_nccl_open--;
    return end(comm);
}

int ncclCommGetAsyncError(nccl_handle comm, int *error)
{
    (void)comm;
    *error = fake_nccl_late_error;
    return NCCL_ABI_SUCCESS;
}

/* ---- calls ---- */

static bool broadcast(const fake_comm *comm, char *data, size_t bytes, int root)
{
    bool all = true;
    if (comm->rank != root)
        return get(comm->sockets[root], data, bytes);
    for (int r = 0; r < comm->ranks; r++)
        all &= r == root || put(comm->sockets[r], data, bytes);
    return all;
}

static void gather(const fake_comm *comm, char *all, size_t bytes)
{
    for (int r = 0; r < comm->ranks; r++)
        broadcast(comm, all + (size_t)r * bytes, bytes, r);
}

static void sum(const fake_call *call, const char *from, char *to)
{
    char *all = malloc((size_t)call->comm->ranks * call->bytes);
    memcpy(all + (size_t)call->comm->rank * call->bytes, from, call->bytes);
    gather(call->comm, all, call->bytes);
    memset(to, 0, call->bytes);
    for (int r = 0; r < call->comm->ranks; r++)
        if (call->type == NCCL_ABI_FLOAT32)
            for (size_t i = 0; i < call->bytes / sizeof(float); i++)
                ((float *)(void *)to)[i] += ((float *)(void *)(all + (size_t)r * call->bytes))[i];
        else
            for (size_t i = 0; i < call->bytes / sizeof(double); i++)
                ((double *)(void *)to)[i] += ((double *)(void *)(all + (size_t)r * call->bytes))[i];
    free(all);
}

/* The acknowledgement makes a send end when it was received, not before. */
static void run(void *argument)
{
    fake_call *call = argument;
    const fake_comm *comm = call->comm;
    char *to = call->to ? fake_nccl_address(call->stream, call->to) : NULL, done = 1;
    const char *from = call->from ? fake_nccl_address(call->stream, call->from) : NULL;
    switch (call->kind) {
    case SEND:
        if (put(comm->sockets[call->peer], from, call->bytes))
            get(comm->sockets[call->peer], &done, 1);
        break;
    case RECV:
        if (get(comm->sockets[call->peer], to, call->bytes))
            put(comm->sockets[call->peer], &done, 1);
        break;
    case BROADCAST: broadcast(comm, to, call->bytes, call->peer); break;
    case GATHER:
        memmove(to + (size_t)comm->rank * call->bytes, from, call->bytes);
        gather(comm, to, call->bytes);
        break;
    case SUM: sum(call, from, to); break;
    }
    free(call);
}

/* A send and a receive are of one kind. */
static bool meet(fake_comm *comm, int kind)
{
    bool *has_met = &comm->has_met[kind == RECV ? SEND : kind];
    bool all = true;
    char byte = 1;
    for (int r = 0; r < comm->ranks && !*has_met; r++)
        all &= r == comm->rank || put(comm->hosts[r], &byte, 1);
    for (int r = 0; r < comm->ranks && !*has_met && all; r++)
        all &= r == comm->rank || get(comm->hosts[r], &byte, 1);
    *has_met = true;
    return all;
}

static int put_call(fake_call given)
{
    if (answer() != NCCL_ABI_SUCCESS || !meet(given.comm, given.kind))
        return FAILED;
    fake_call *call = malloc(sizeof *call);
    *call = given;
    fake_nccl_call(given.stream, run, call);
    return NCCL_ABI_SUCCESS;
}

int ncclGroupStart(void)
{
    return answer();
}

int ncclGroupEnd(void)
{
    return answer();
}

int ncclSend(const void *data, size_t count, int type, int peer, nccl_handle comm, void *stream)
{
    (void)type;
    return put_call(
        (fake_call){.kind = SEND, .comm = comm, .stream = stream, .from = data, .bytes = count, .peer = peer});
}

int ncclRecv(void *data, size_t count, int type, int peer, nccl_handle comm, void *stream)
{
    (void)type;
    return put_call(
        (fake_call){.kind = RECV, .comm = comm, .stream = stream, .to = data, .bytes = count, .peer = peer});
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, nccl_handle comm, void *stream)
{
    (void)from, (void)type; /* in place */
    return put_call(
        (fake_call){.kind = BROADCAST, .comm = comm, .stream = stream, .to = to, .bytes = count, .peer = root});
}

int ncclAllGather(const void *mine, void *all, size_t count, int type, nccl_handle comm, void *stream)
{
    (void)type;
    return put_call(
        (fake_call){.kind = GATHER, .comm = comm, .stream = stream, .from = mine, .to = all, .bytes = count});
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, nccl_handle comm, void *stream)
{
    (void)op;
    return put_call((fake_call){.kind = SUM,
                                .comm = comm,
                                .stream = stream,
                                .from = from,
                                .to = to,
                                .bytes = count * (type == NCCL_ABI_FLOAT32 ? 4 : 8),
                                .type = type});
}
