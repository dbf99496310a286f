#include "plan/chain/optimal_table.h"

#include "base/alloc.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { CHUNK_WORDS = 1 << 16, MOST_CORNERS = 1 << 15, FEWEST_CORNERS = 12, EXACT_LAYERS = 100, LONG_CHAIN = 2500 };
enum { DEFAULT_WORK = 800000000 }; /* corners looked at: a few seconds */
enum { UNPRUNED_LAYERS = 40 };
enum { MOST_THREADS = 64, LAYERS_A_THREAD = 8 };

typedef struct corner_chunk {
    struct corner_chunk *next;
    size_t size; /* of words */
    uint64_t words[];
} corner_chunk;

/* What one thread works with. */
typedef struct solve_worker {
    staircase_envelope envelope;
    uint32_t *places;
    optimal_split *splits;
    uint64_t *free_words;
    size_t free_count, stored;
    remat_status status;
    bool thinned;
} solve_worker;

static remat_status worker_allocate(remat_context *context, const optimal_table *table, solve_worker *worker)
{
    size_t n = table->model->n;
    size_t most = table->corners > table->suffix_corners ? table->corners : table->suffix_corners;
    worker->places = remat_alloc(context, n + 1, sizeof *worker->places);
    worker->splits = remat_alloc(context, optimal_most_splits(table), sizeof *worker->splits);
    if (!worker->places || !worker->splits)
        return REMAT_NO_MEMORY;
    return envelope_allocate(context, most, &worker->envelope);
}

static void worker_free(remat_context *context, const optimal_table *table, solve_worker *worker)
{
    size_t n = table->model->n;
    remat_release(context, worker->places, n + 1, sizeof *worker->places);
    remat_release(context, worker->splits, optimal_most_splits(table), sizeof *worker->splits);
    envelope_free(context, &worker->envelope);
}

/* What the threads share. Intervals are taken shortest first, so whatever one waits for is done or under way:
 * no barriers, and every staircase is the same whoever makes it. */
typedef struct solve_shared {
    remat_context *context;
    optimal_table *table;
    atomic_size_t next_interval, next_suffix;
    atomic_uchar *interval_done; /* by number */
    atomic_uint *suffix_done;    /* by start: how many ends */
    size_t *first_suffix;        /* n + 1: how many ends all suffixes have that are shorter than 1, 2, .. layers */
    atomic_bool failed;
    omp_lock_t lock; /* for allocating */
} solve_shared;

/* The context's hook, and its counts, are for one thread at a time. */
static corner_chunk *allocate_chunk(solve_shared *shared, size_t size)
{
    omp_set_lock(&shared->lock);
    corner_chunk *chunk = remat_alloc(shared->context, sizeof *chunk + size * sizeof chunk->words[0], 1);
    if (chunk) {
        chunk->size = size;
        chunk->next = shared->table->chunks;
        shared->table->chunks = chunk;
    }
    omp_unset_lock(&shared->lock);
    return chunk;
}

/* Takes words from the worker's chunk; the table owns the chunks. */
static uint64_t *take_words(solve_shared *shared, solve_worker *worker, size_t words)
{
    if (worker->free_count < words) {
        size_t size = words > CHUNK_WORDS ? words : CHUNK_WORDS;
        corner_chunk *chunk = allocate_chunk(shared, size);
        if (!chunk)
            return NULL;
        worker->free_words = chunk->words;
        worker->free_count = size;
    }
    uint64_t *taken = worker->free_words;
    worker->free_words += words;
    worker->free_count -= words;
    return taken;
}

static remat_status store_envelope(solve_shared *shared, solve_worker *worker, staircase *stairs)
{
    const staircase_envelope *envelope = &worker->envelope;
    size_t count = envelope->count;
    *stairs = (staircase){0};
    worker->thinned = worker->thinned || envelope->thinned;
    if (count == 0)
        return REMAT_OK;
    uint64_t *words = take_words(shared, worker, 2 * count + 1);
    if (!words)
        return REMAT_NO_MEMORY;
    memcpy(words, envelope->memory, (count + 1) * sizeof *words);
    memcpy(words + count + 1, envelope->cost, count * sizeof *words);
    *stairs = (staircase){words, words + count + 1, (uint32_t)count};
    worker->stored += count;
    return REMAT_OK;
}

static bool offer_choice(void *context, const optimal_choice *choice)
{
    envelope_offer(context, &choice->offer);
    return false;
}

static bool note_start(void *context, const optimal_choice *choice)
{
    uint64_t *least = context, start = offer_start(&choice->offer);
    if (start < *least)
        *least = start;
    return false;
}

static uint64_t state_least(const optimal_table *table, const solve_worker *worker, optimal_state state, size_t splits)
{
    uint64_t least = MEMORY_END;
    optimal_each_choice(table, state, worker->splits, splits, false, note_start, &least);
    return least;
}

/* A temporary base serves the tightest plans alone: above twice the memory where its staircase begins, keeping x_start
 * or leaving it at once was never dearer on any chain tried (1.5 is enough, 1.25 is not), so it is not continued there.
 */
enum { RECORD_RANGE = 2 };

bool optimal_table_prunes(const optimal_model *model)
{
    return model->n > UNPRUNED_LAYERS;
}

static void solve_stairs(const optimal_table *table, solve_worker *worker, optimal_state state, size_t splits)
{
    bool suffix = (size_t)state.last + 1 == table->model->n && state.tail == TAIL_LOSS;
    uint64_t cap = table->memory_cap;
    bool prunes = optimal_table_prunes(table->model);
    if (prunes && optimal_ends_get(&table->model->ends, state.start, state.end)->ahead > 0) {
        uint64_t least = state_least(table, worker, state, splits);
        if (least < cap / RECORD_RANGE)
            cap = least * RECORD_RANGE;
    }
    staircase_offer rival;
    /* of a suffix, another thread may be making the rival at this very moment */
    bool has_rival = !suffix && prunes && optimal_state_rival(table, state, &rival);
    envelope_reset(&worker->envelope, suffix ? table->suffix_corners : table->corners, cap);
    if (has_rival)
        envelope_offer(&worker->envelope, &rival);
    optimal_each_choice(table, state, worker->splits, splits, false, offer_choice, &worker->envelope);
    if (has_rival)
        envelope_keep_below(&worker->envelope, &rival);
    envelope_finish(&worker->envelope);
}

static void solve_state(solve_shared *shared, solve_worker *worker, optimal_state state, size_t splits)
{
    optimal_table *table = shared->table;
    solve_stairs(table, worker, state, splits);
    worker->status = store_envelope(shared, worker, &table->stairs[optimal_table_state_number(table, state)]);
}

static bool has_failed(const solve_shared *shared)
{
    return atomic_load_explicit(&shared->failed, memory_order_relaxed);
}

static void wait_for_interval(solve_shared *shared, uint32_t number)
{
    if (number == NO_INTERVAL)
        return;
    while (!atomic_load_explicit(&shared->interval_done[number], memory_order_acquire) && !has_failed(shared))
        sched_yield();
}

/* Whatever the states of an interval read: its parts, and those whose last use ends inside it. */
static void wait_for_parts(solve_shared *shared, const solve_worker *worker, optimal_interval interval, size_t splits)
{
    const optimal_intervals *intervals = &shared->table->intervals;
    const optimal_model *model = shared->table->model;
    const optimal_ends *ends = &model->ends;
    size_t next = interval.start + (size_t)1;
    if (interval.start == interval.last)
        return;
    wait_for_interval(shared, optimal_intervals_find(intervals, next, interval.last));
    for (size_t s = 0; s < splits; s++) {
        wait_for_interval(shared, worker->splits[s].right);
        if (worker->splits[s].k <= interval.last) /* not its own */
            wait_for_interval(shared, worker->splits[s].left);
    }
    for (uint32_t e = optimal_ends_count(ends, interval.start, interval.last); e-- > 0;) {
        size_t k = interval.start + (size_t)optimal_ends_get(ends, interval.start, e)->ahead;
        for (size_t cut = interval.start; k <= interval.last && cut < k;) {
            cut = optimal_ends_next_record(model, cut, k);
            wait_for_interval(shared, optimal_intervals_find(intervals, cut, interval.last));
        }
    }
}

static size_t list_worker_splits(const optimal_table *table, solve_worker *worker, optimal_interval interval)
{
    size_t places = optimal_intervals_cuts(&table->intervals, interval, worker->places);
    return optimal_list_splits(table, interval, worker->places, places, false, worker->splits);
}

/* Everything about an interval but the loss. */
static void solve_interval(solve_shared *shared, solve_worker *worker, optimal_interval interval)
{
    optimal_table *table = shared->table;
    bool suffix = (size_t)interval.last + 1 == table->model->n;
    uint32_t number = optimal_intervals_find(&table->intervals, interval.start, interval.last);
    size_t splits = list_worker_splits(table, worker, interval);
    wait_for_parts(shared, worker, interval, splits);
    if (has_failed(shared)) /* what was waited for may be half written */
        return;
    uint32_t tails = suffix ? 1 : table->tails, ends = table->end_count[number];
    for (uint32_t tail = 0; tail < tails; tail++)
        for (uint32_t end = 0; end < ends && worker->status == REMAT_OK; end++) {
            optimal_state state = {interval.start, interval.last, tail, end};
            if (optimal_state_exists(table->model, state))
                solve_state(shared, worker, state, splits);
        }
    atomic_store_explicit(&shared->interval_done[number], 1, memory_order_release);
}

static uint32_t suffix_ends(const optimal_table *table, size_t start)
{
    return optimal_ends_count(&table->model->ends, start, table->model->n - 1);
}

/* One end of the suffix start..n-1 with the loss to come. */
static void solve_suffix(solve_shared *shared, solve_worker *worker, size_t start, uint32_t end)
{
    optimal_table *table = shared->table;
    size_t n = table->model->n;
    optimal_interval interval = {(uint32_t)start, (uint32_t)n - 1};
    optimal_state state = {interval.start, interval.last, TAIL_LOSS, end};
    size_t splits = list_worker_splits(table, worker, interval);
    while (start + 1 < n && !has_failed(shared) &&
           atomic_load_explicit(&shared->suffix_done[start + 1], memory_order_acquire) < suffix_ends(table, start + 1))
        sched_yield();
    if (has_failed(shared))
        return;
    solve_state(shared, worker, state, splits);
    atomic_fetch_add_explicit(&shared->suffix_done[start], 1, memory_order_release);
}

static bool still_well(solve_shared *shared, const solve_worker *worker)
{
    if (worker->status != REMAT_OK)
        atomic_store(&shared->failed, true);
    return !has_failed(shared);
}

static void work(solve_shared *shared, solve_worker *worker)
{
    const optimal_intervals *intervals = &shared->table->intervals;
    size_t n = shared->table->model->n, k, at = 0;
    while ((k = atomic_fetch_add(&shared->next_interval, 1)) < intervals->count && still_well(shared, worker))
        solve_interval(shared, worker, intervals->list[k]);
    for (size_t number = 0; number < intervals->count; number++) /* the suffixes read any of them */
        wait_for_interval(shared, (uint32_t)number);
    while ((k = atomic_fetch_add(&shared->next_suffix, 1)) < shared->first_suffix[n] && still_well(shared, worker)) {
        while (shared->first_suffix[at + 1] <= k)
            at++;
        solve_suffix(shared, worker, n - 1 - at, (uint32_t)(k - shared->first_suffix[at]));
    }
    still_well(shared, worker);
}

/* A thread wants some layers to itself, and the result does not depend on how many there are. */
static size_t thread_count(const optimal_model *model, const table_options *options)
{
    size_t threads = options->threads > 0 ? options->threads : (size_t)omp_get_max_threads();
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    return threads < 1 + model->n / LAYERS_A_THREAD ? threads : 1 + model->n / LAYERS_A_THREAD;
}

static remat_status run_workers(solve_shared *shared, solve_worker *workers, size_t threads)
{
    optimal_table *table = shared->table;
    remat_status status = REMAT_OK;
    for (size_t t = 0; t < threads && status == REMAT_OK; t++)
        status = worker_allocate(shared->context, table, &workers[t]);
    if (status == REMAT_OK) {
        int team = (int)threads;
#pragma omp parallel num_threads(team)
        work(shared, &workers[omp_get_thread_num()]);
    }
    for (size_t t = 0; t < threads; t++) {
        if (workers[t].status != REMAT_OK)
            status = workers[t].status;
        table->stored_corners += workers[t].stored;
        table->thinned = table->thinned || workers[t].thinned;
        worker_free(shared->context, table, &workers[t]);
    }
    return status;
}

static remat_status solve_with_workers(remat_context *context, optimal_table *table, size_t threads)
{
    size_t count = table->intervals.count, n = table->model->n;
    solve_shared shared = {.context = context, .table = table};
    solve_worker *workers = remat_alloc_zeroed(context, threads, sizeof *workers);
    shared.interval_done = remat_alloc(context, count, sizeof *shared.interval_done);
    shared.suffix_done = remat_alloc(context, n, sizeof *shared.suffix_done);
    shared.first_suffix = remat_alloc_zeroed(context, n + 1, sizeof *shared.first_suffix);
    remat_status status = REMAT_NO_MEMORY;
    if (workers && shared.interval_done && shared.suffix_done && shared.first_suffix) {
        for (size_t k = 0; k < n; k++)
            shared.first_suffix[k + 1] = shared.first_suffix[k] + suffix_ends(table, n - 1 - k);
        for (size_t k = 0; k < count; k++)
            atomic_init(&shared.interval_done[k], 0);
        for (size_t k = 0; k < n; k++)
            atomic_init(&shared.suffix_done[k], 0);
        omp_init_lock(&shared.lock);
        status = run_workers(&shared, workers, threads);
        omp_destroy_lock(&shared.lock);
    }
    remat_release(context, workers, threads, sizeof *workers);
    remat_release(context, shared.interval_done, count, sizeof *shared.interval_done);
    remat_release(context, shared.suffix_done, n, sizeof *shared.suffix_done);
    remat_release(context, shared.first_suffix, n + 1, sizeof *shared.first_suffix);
    return status;
}

static size_t clamp_corners(uint64_t by_memory, uint64_t by_work)
{
    uint64_t corners = by_memory < by_work ? by_memory : by_work;
    if (corners > MOST_CORNERS)
        return MOST_CORNERS;
    return corners < FEWEST_CORNERS ? FEWEST_CORNERS : (size_t)corners;
}

/* Kinds of tail, and of ends whose staircases are long: STAYS and LEAVES(start, SAVED). Pairs are rare, and the
 * staircases of temporary bases short. */
static uint64_t sides_of(const optimal_model *model)
{
    return 1 + (uint64_t)model->mode_limit * model->form_limit;
}

/* Offers of all intervals together: every cut of every state, and what may be late there. */
static uint64_t count_offers(const optimal_table *table)
{
    uint64_t sides = sides_of(table->model);
    return (table->intervals.pairs + table->intervals.count) * sides * sides * sides;
}

/* Corners per staircase such that neither storage nor work passes its limit. The suffixes, over which the whole
 * plan is threaded one layer at a time, get a share of their own: they are few and need fine steps. Short chains are
 * solved without thinning. */
static void choose_corners(optimal_table *table, const table_options *options)
{
    uint64_t sides = sides_of(table->model), n = table->model->n, count = table->intervals.count;
    uint64_t bytes = options->memory_limit ? options->memory_limit : 400000000;
    uint64_t work = options->work_limit ? options->work_limit : DEFAULT_WORK;
    uint64_t suffix_offers = (table->intervals.pairs + count) * n / count * sides * sides * 3 / 2;
    bool short_chain = n <= EXACT_LAYERS, exact = short_chain && sides == 2;
    bool long_chain = n > LONG_CHAIN; /* the longer the chain, the more its suffixes need */
    uint64_t by_memory = bytes * (long_chain ? 4 : 7) / 160 / (count * sides * sides);
    uint64_t by_work = work * (long_chain ? 25 : short_chain ? 150 : 60) / 300 / count_offers(table);
    if (!short_chain && by_work > 48) /* more cuts bring more than more corners */
        by_work = n <= 200 ? 48 : n <= 400 ? 16 : 32;
    table->corners = options->corners ? options->corners : clamp_corners(by_memory, by_work);
    by_memory = bytes * (long_chain ? 6 : 3) / 160 / (n * sides);
    by_work = exact ? MOST_CORNERS : work * (long_chain ? 15 : 8) / 20 / suffix_offers;
    if (!short_chain && by_work > (n <= 400 ? 400u : 2000u))
        by_work = n <= 400 ? 400 : 2000;
    table->suffix_corners = options->suffix_corners ? options->suffix_corners : clamp_corners(by_memory, by_work);
}

static size_t choose_near(const optimal_model *model, const table_options *options)
{
    if (options->near)
        return options->near;
    if (model->n <= EXACT_LAYERS)
        return EXACT_LAYERS;
    return model->n <= 200 ? 24 : model->n <= 1500 ? 16 : model->n <= 4000 ? 8 : 6;
}

/* Every mode multiplies the work: with many, fewer cuts are tried. */
static remat_status build_intervals(remat_context *context, const table_options *options, optimal_table *table)
{
    size_t near = choose_near(table->model, options);
    uint64_t work = options->work_limit ? options->work_limit : DEFAULT_WORK;
    for (;; near /= 2) {
        REMAT_TRY(optimal_intervals_build(context, table->model, near, &table->intervals));
        bool bearable = count_offers(table) <= work / FEWEST_CORNERS / 3;
        if (bearable || table->model->n <= EXACT_LAYERS || options->near || near < 8)
            return REMAT_OK;
        optimal_intervals_free(context, &table->intervals);
    }
}

static remat_status fill_table(remat_context *context, const table_options *options, optimal_table *table)
{
    REMAT_TRY(build_intervals(context, options, table));
    REMAT_TRY(optimal_table_number_states(context, table));
    REMAT_TRY(optimal_table_fill_empty(context, table));
    choose_corners(table, options);
    return solve_with_workers(context, table, thread_count(table->model, options));
}

remat_status optimal_table_solve(remat_context *context, const optimal_model *model, const table_options *options,
                                 optimal_table *table)
{
    *table = (optimal_table){.model = model, .tails = optimal_tail_limit(model)};
    table->memory_cap = options->budget - model->x[0];
    remat_status status = fill_table(context, options, table);
    if (status != REMAT_OK)
        optimal_table_free(context, table);
    return status;
}

void optimal_table_free(remat_context *context, optimal_table *table)
{
    if (!table->model)
        return;
    while (table->chunks) {
        corner_chunk *next = table->chunks->next;
        remat_release(context, table->chunks, sizeof *next + table->chunks->size * sizeof next->words[0], 1);
        table->chunks = next;
    }
    size_t count = table->intervals.count;
    if (table->stairs)
        remat_release(context, table->stairs, table->first_state[count], sizeof *table->stairs);
    remat_release(context, table->first_state, count + 1, sizeof *table->first_state);
    remat_release(context, table->end_count, count, sizeof *table->end_count);
    remat_release(context, table->empty, (table->model->n + 1) * table->tails * 3, sizeof *table->empty);
    optimal_intervals_free(context, &table->intervals);
    *table = (optimal_table){0};
}

staircase optimal_table_curve(const optimal_table *table)
{
    return optimal_table_stairs(table, (optimal_state){0, (uint32_t)table->model->n - 1, TAIL_LOSS, 0});
}
