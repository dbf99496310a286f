#include "base/parallel.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/min_max.h"

enum { CACHE_LINE = 64, STACK_BYTES = 1 << 20, MOST_DEFAULT_THREADS = 1024 };
/* Looks at a word before a thread sleeps: some tens of microseconds. Few where threads have to share the processors, because
 * a thread that spins there keeps another from its work. A worker looks twice as often as the caller: most of the time it
 * first waits until the other threads have finished the loop, and then for the next loop. */
enum { SPINS = 1000, CROWDED_SPINS = 100 };
/* Waking takes a system call for each thread. The caller wakes so many, and each of them wakes others. */
enum { WAKES = 4 };

/* A thread of a team. The caller counts `region` up to let it join a loop. */
typedef struct worker {
    _Alignas(CACHE_LINE) atomic_uint region;
    atomic_bool asleep;
    struct team *team;
    int number;
    pthread_t thread;
} worker;

/* One loop. */
typedef struct loop {
    parallel_part *part; /* NULL: the workers end */
    const void *args;
    size_t count, chunk; /* a chunk of 0: the static split */
    int threads, spins;
} loop;

/* The workers of one caller at a time. The caller writes `now` while no worker runs, and alone uses the fields before it. */
typedef struct team {
    struct team *next_idle, *next;
    worker **workers;
    int count, capacity; /* workers that run, and records of workers */
    bool refused;        /* the system gave no more threads; only parallel_start asks again */
    loop now;
    _Alignas(CACHE_LINE) atomic_size_t taken;    /* passes of a dynamic loop */
    _Alignas(CACHE_LINE) atomic_uint unfinished; /* workers */
    atomic_bool caller_asleep;
} team;

/* All teams, those that nobody uses, and the threads of loops that run now. The memory is the process's: it belongs to no
 * context, because contexts come and go while the workers stay. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static team *all_teams, *idle_teams;
static int busy_threads, processors;

static _Thread_local team *joined; /* the team whose loop this thread is in, or NULL */

int (*parallel_create_thread)(pthread_t *made, const pthread_attr_t *attributes, void *(*run)(void *),
                              void *args) = pthread_create;

/* ---- waiting ---- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps unless the word has changed. May return early. */
static void sleep_on(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* In both waits, the one who sleeps says so before it looks at the word for the last time, and the other changes the word
 * before it looks for sleepers: one of them sees the other. */

static void wait_for_loop(worker *self, unsigned last, int spins)
{
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(&self->region, memory_order_acquire) != last)
            return;
        relax();
    }
    atomic_store(&self->asleep, true);
    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load_explicit(&self->region, memory_order_acquire) == last)
        sleep_on(&self->region, last);
    atomic_store_explicit(&self->asleep, false, memory_order_relaxed);
}

/* Wakes the sleeping workers that thread number `thread` has to wake. Their words have been changed. */
static void wake_next(team *of, int thread)
{
    const int first = WAKES * thread + 1;
    if (first >= of->now.threads)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    for (int number = first; number < first + WAKES && number < of->now.threads; number++) {
        worker *next = of->workers[number - 1];
        if (atomic_load_explicit(&next->asleep, memory_order_relaxed))
            wake(&next->region);
    }
}

/* The last worker first: who sees its own word changed sees the words changed of those that it has to wake. */
static void let_workers_join(team *of)
{
    for (int number = of->now.threads - 1; number > 0; number--) {
        atomic_uint *region = &of->workers[number - 1]->region;
        atomic_store_explicit(region, atomic_load_explicit(region, memory_order_relaxed) + 1, memory_order_release);
    }
    wake_next(of, 0);
}

static void wait_for_workers(team *of)
{
    unsigned left;
    for (int i = 0; i < of->now.spins; i++) {
        if (atomic_load_explicit(&of->unfinished, memory_order_acquire) == 0)
            return;
        relax();
    }
    atomic_store(&of->caller_asleep, true);
    while ((left = atomic_load(&of->unfinished)) > 0)
        sleep_on(&of->unfinished, left);
    atomic_store(&of->caller_asleep, false);
}

static void finish_share(team *of)
{
    if (atomic_fetch_sub(&of->unfinished, 1) == 1 && atomic_load(&of->caller_asleep))
        wake(&of->unfinished);
}

/* ---- workers ---- */

static void run_share(team *of, int thread)
{
    const loop *now = &of->now;
    size_t threads = (size_t)now->threads, number = (size_t)thread;
    if (now->chunk == 0) {
        size_t each = now->count / threads, longer = now->count % threads;
        size_t begin = number * each + remat_min(number, longer), end = begin + each + (number < longer);
        now->part(now->args, (parallel_range){begin, end, thread});
        return;
    }
    for (;;) {
        size_t begin = atomic_fetch_add_explicit(&of->taken, now->chunk, memory_order_relaxed);
        if (begin >= now->count)
            return;
        size_t end = begin + remat_min(now->chunk, now->count - begin);
        now->part(now->args, (parallel_range){begin, end, thread});
    }
}

static void *run_worker(void *args)
{
    worker *self = args;
    team *of = self->team;
    unsigned region = 0;
    int spins = SPINS;
    joined = of;
    for (;;) {
        wait_for_loop(self, region++, 2 * spins);
        wake_next(of, self->number);
        if (!of->now.part)
            return NULL;
        spins = of->now.spins;
        run_share(of, self->number);
        finish_share(of);
    }
}

/* False where there is no memory for its record. */
static bool add_record(team *to)
{
    worker **more = realloc(to->workers, ((size_t)to->capacity + 1) * sizeof(worker *));
    if (!more)
        return false;
    to->workers = more;
    worker *made = aligned_alloc(CACHE_LINE, sizeof *made);
    if (!made)
        return false;
    to->workers[to->capacity++] = made;
    return true;
}

static bool start_worker(team *of)
{
    if (of->count == of->capacity && !add_record(of))
        return false;
    worker *made = of->workers[of->count];
    *made = (worker){.team = of, .number = of->count + 1};
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = parallel_create_thread(&made->thread, &attributes, run_worker, made) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    of->count += started;
    return started;
}

static void start_workers(team *of, int threads)
{
    while (of->count + 1 < threads && !of->refused)
        of->refused = !start_worker(of);
}

/* ---- teams ---- */

/* Linux knows up to 8,192 processors. The call fails where the set has no room for all that the machine may have. */
static int count_processors(void)
{
    cpu_set_t sets[16384 / CPU_SETSIZE];
    return sched_getaffinity(0, sizeof sets, sets) == 0 ? CPU_COUNT_S(sizeof sets, sets) : 1;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child has one thread. Its teams have no workers, and only the team of the loop that called fork is in use. */
static void after_fork_in_child(void)
{
    idle_teams = NULL;
    busy_threads = joined ? 1 : 0;
    for (team *of = all_teams; of; of = of->next) {
        of->count = 0;
        of->refused = false;
        atomic_store(&of->unfinished, 0);
        if (of != joined) {
            of->next_idle = idle_teams;
            idle_teams = of;
        }
    }
    pthread_mutex_unlock(&lock);
}

static team *make_team(void)
{
    if (processors == 0) {
        processors = count_processors();
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
    }
    team *made = aligned_alloc(CACHE_LINE, sizeof *made);
    if (!made)
        return NULL;
    memset(made, 0, sizeof *made);
    made->next = all_teams;
    all_teams = made;
    return made;
}

/* A team for a loop on so many threads, one that has them already if there is one; NULL where there is no memory. `spins`
 * is for this loop. */
static team *take_team(int threads, int *spins)
{
    pthread_mutex_lock(&lock);
    team **at = &idle_teams, *taken;
    while (*at && (*at)->count + 1 < threads)
        at = &(*at)->next_idle;
    if (!*at)
        at = &idle_teams;
    if (*at) {
        taken = *at;
        *at = taken->next_idle;
    } else {
        taken = make_team();
    }
    busy_threads += taken ? threads : 0;
    *spins = busy_threads > processors ? CROWDED_SPINS : SPINS;
    pthread_mutex_unlock(&lock);
    if (taken)
        start_workers(taken, threads);
    return taken;
}

static void give_back(team *taken, int threads)
{
    pthread_mutex_lock(&lock);
    taken->next_idle = idle_teams;
    idle_teams = taken;
    busy_threads -= threads;
    pthread_mutex_unlock(&lock);
}

static void stop_team(team *of)
{
    of->now = (loop){.part = NULL, .threads = of->count + 1};
    let_workers_join(of);
    for (int i = 0; i < of->count; i++)
        pthread_join(of->workers[i]->thread, NULL);
    for (int i = 0; i < of->capacity; i++)
        free(of->workers[i]);
    free(of->workers);
    free(of);
}

/* When the process ends, or the library is unloaded. While a loop still runs in another thread, nothing is stopped: then the
 * whole process is about to end. */
__attribute__((destructor)) static void stop_all_teams(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    for (team *of = all_teams, *next; of && busy_threads == 0; of = next) {
        next = of->next;
        stop_team(of);
        all_teams = next;
        idle_teams = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- loops ---- */

static int threads_of(const team *of, int asked)
{
    return asked <= of->count ? asked : of->count + 1;
}

static void run_loop(loop wanted)
{
    size_t chunks = wanted.count / remat_max(wanted.chunk, 1) + (wanted.count % remat_max(wanted.chunk, 1) > 0);
    int asked = wanted.threads > 1 ? (int)remat_min((size_t)wanted.threads, chunks) : 1, spins;
    team *of = asked > 1 && !joined ? take_team(asked, &spins) : NULL;
    if (wanted.count == 0)
        return;
    if (!of) {
        wanted.part(wanted.args, (parallel_range){0, wanted.count, 0});
        return;
    }
    wanted.threads = threads_of(of, asked);
    wanted.spins = spins;
    of->now = wanted;
    atomic_store_explicit(&of->taken, 0, memory_order_relaxed);
    atomic_store_explicit(&of->unfinished, (unsigned)wanted.threads - 1, memory_order_relaxed);
    joined = of;
    let_workers_join(of);
    run_share(of, 0);
    wait_for_workers(of);
    joined = NULL;
    give_back(of, asked);
}

void parallel_static(int threads, size_t count, parallel_part *part, const void *args)
{
    run_loop((loop){part, args, count, 0, threads, 0});
}

void parallel_dynamic(int threads, size_t count, size_t chunk, parallel_part *part, const void *args)
{
    run_loop((loop){part, args, count, remat_max(chunk, 1), threads, 0});
}

int parallel_start(int threads)
{
    int spins;
    team *of = threads > 1 && !joined ? take_team(threads, &spins) : NULL;
    if (!of)
        return 1;
    of->refused = false;
    start_workers(of, threads);
    int started = threads_of(of, threads);
    give_back(of, threads);
    return started;
}

int parallel_default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char *end;
    long wanted = text ? strtol(text, &end, 10) : 0;
    bool valid =
        wanted > 0 && (*end == '\0' || *end == ','); /* of a list, the first is for loops that are in no other */
    return valid ? (int)remat_min((uint64_t)wanted, MOST_DEFAULT_THREADS) : count_processors();
}
