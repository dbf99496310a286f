#include "plan/optimal_table.h"

#include "base/alloc.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { CHUNK_WORDS = 1 << 16, MOST_CORNERS = 1 << 15, FEWEST_CORNERS = 12, EXACT_LAYERS = 100, LONG_CHAIN = 2500 };
enum { DEFAULT_WORK = 800000000 }; /* corners looked at: a few seconds */
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
    optimal_cut *cuts;
    optimal_choice *choices;
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
    worker->cuts = remat_alloc(context, n + 1, sizeof *worker->cuts);
    worker->choices = remat_alloc(context, optimal_most_choices(table, n), sizeof *worker->choices);
    if (!worker->places || !worker->cuts || !worker->choices)
        return REMAT_NO_MEMORY;
    return envelope_allocate(context, most, &worker->envelope);
}

static void worker_free(remat_context *context, const optimal_table *table, solve_worker *worker)
{
    size_t n = table->model->n;
    remat_release(context, worker->places, n + 1, sizeof *worker->places);
    remat_release(context, worker->cuts, n + 1, sizeof *worker->cuts);
    remat_release(context, worker->choices, optimal_most_choices(table, n), sizeof *worker->choices);
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

static void solve_state(solve_shared *shared, solve_worker *worker, optimal_state state, size_t cuts)
{
    optimal_table *table = shared->table;
    size_t number = optimal_intervals_find(&table->intervals, state.start, state.last);
    bool suffix = (size_t)state.last + 1 == table->model->n && state.tail == TAIL_LOSS;
    staircase *stairs = &table->stairs[(number * table->per_side + state.tail) * table->per_side + state.end];
    envelope_reset(&worker->envelope, suffix ? table->suffix_corners : table->corners, table->memory_cap);
    size_t count = optimal_list_choices(table, state, worker->cuts, cuts, worker->choices);
    for (size_t c = 0; c < count; c++)
        envelope_offer(&worker->envelope, &worker->choices[c].offer);
    envelope_finish(&worker->envelope);
    worker->status = store_envelope(shared, worker, stairs);
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

static uint32_t ends_of_start(const optimal_table *table, size_t start)
{
    return start == 0 ? 1 : table->per_side;
}

/* Everything about an interval but the loss. */
static void solve_interval(solve_shared *shared, solve_worker *worker, optimal_interval interval)
{
    optimal_table *table = shared->table;
    bool suffix = (size_t)interval.last + 1 == table->model->n;
    size_t cuts = optimal_list_cuts(table, interval, worker->places, worker->cuts);
    if (interval.start < interval.last)
        wait_for_interval(shared, optimal_intervals_find(&table->intervals, interval.start + (size_t)1, interval.last));
    for (size_t c = 0; c < cuts; c++) {
        wait_for_interval(shared, worker->cuts[c].right);
        wait_for_interval(shared, worker->cuts[c].left);
    }
    if (has_failed(shared)) /* what was waited for may be half written */
        return;
    uint32_t tails = suffix ? 1 : table->per_side, ends = ends_of_start(table, interval.start);
    for (uint32_t tail = 0; tail < tails; tail++)
        for (uint32_t end = 0; end < ends && worker->status == REMAT_OK; end++) {
            optimal_state state = {interval.start, interval.last, tail, end};
            if (optimal_state_exists(table->model, state))
                solve_state(shared, worker, state, cuts);
        }
    uint32_t number = optimal_intervals_find(&table->intervals, interval.start, interval.last);
    atomic_store_explicit(&shared->interval_done[number], 1, memory_order_release);
}

/* One end of the suffix start..n-1 with the loss to come. */
static void solve_suffix(solve_shared *shared, solve_worker *worker, size_t start, uint32_t end)
{
    optimal_table *table = shared->table;
    size_t n = table->model->n;
    optimal_interval interval = {(uint32_t)start, (uint32_t)n - 1};
    optimal_state state = {interval.start, interval.last, TAIL_LOSS, end};
    if (optimal_state_exists(table->model, state)) {
        size_t cuts = optimal_list_cuts(table, interval, worker->places, worker->cuts);
        while (start + 1 < n && !has_failed(shared) &&
               atomic_load_explicit(&shared->suffix_done[start + 1], memory_order_acquire) < table->per_side)
            sched_yield();
        if (has_failed(shared))
            return;
        solve_state(shared, worker, state, cuts);
    }
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
    size_t n = shared->table->model->n, sides = shared->table->per_side, k;
    while ((k = atomic_fetch_add(&shared->next_interval, 1)) < intervals->count && still_well(shared, worker))
        solve_interval(shared, worker, intervals->list[k]);
    for (size_t number = 0; number < intervals->count; number++) /* the suffixes read any of them */
        wait_for_interval(shared, (uint32_t)number);
    while ((k = atomic_fetch_add(&shared->next_suffix, 1)) < n * sides && still_well(shared, worker)) {
        size_t start = n - 1 - k / sides;
        if (k % sides < ends_of_start(shared->table, start))
            solve_suffix(shared, worker, start, (uint32_t)(k % sides));
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
    remat_status status = REMAT_NO_MEMORY;
    if (workers && shared.interval_done && shared.suffix_done) {
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
    return status;
}

static size_t clamp_corners(uint64_t by_memory, uint64_t by_work)
{
    uint64_t corners = by_memory < by_work ? by_memory : by_work;
    if (corners > MOST_CORNERS)
        return MOST_CORNERS;
    return corners < FEWEST_CORNERS ? FEWEST_CORNERS : (size_t)corners;
}

/* Offers of all intervals together: every cut of every state, and what may be late there. */
static uint64_t count_offers(const optimal_table *table)
{
    uint64_t sides = table->per_side;
    return (table->intervals.pairs + table->intervals.count) * sides * sides * sides;
}

/* Corners per staircase such that neither storage nor work passes its limit. The suffixes, over which the whole
 * plan is threaded one layer at a time, get a share of their own: they are few and need fine steps. Short chains are
 * solved without thinning. */
static void choose_corners(optimal_table *table, const table_options *options)
{
    uint64_t sides = table->per_side, n = table->model->n, count = table->intervals.count;
    uint64_t bytes = options->memory_limit ? options->memory_limit : 400000000;
    uint64_t work = options->work_limit ? options->work_limit : DEFAULT_WORK;
    uint64_t suffix_offers = (table->intervals.pairs + count) * n / count * sides * sides * 3 / 2;
    bool short_chain = n <= EXACT_LAYERS, exact = short_chain && sides == 2;
    bool long_chain = n > LONG_CHAIN; /* the longer the chain, the more its suffixes need */
    uint64_t by_memory = bytes * (long_chain ? 4 : 7) / 160 / (count * sides * sides);
    uint64_t by_work = work * (long_chain ? 25 : short_chain ? 150 : 60) / 300 / count_offers(table);
    if (!short_chain && by_work > 48) /* more cuts bring more than more corners */
        by_work = n <= 200 ? 48 : 32;
    table->corners = options->corners ? options->corners : clamp_corners(by_memory, by_work);
    by_memory = bytes * (long_chain ? 6 : 3) / 160 / (n * sides);
    by_work = exact ? MOST_CORNERS : work * (long_chain ? 15 : 8) / 20 / suffix_offers;
    if (!short_chain && by_work > 2000)
        by_work = 2000;
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

static size_t state_count(const optimal_table *table)
{
    return table->intervals.count * table->per_side * table->per_side;
}

remat_status optimal_table_solve(remat_context *context, const optimal_model *model, const table_options *options,
                                 optimal_table *table)
{
    *table = (optimal_table){.model = model, .per_side = model->mode_limit + 1};
    table->memory_cap = options->budget - model->x[0];
    REMAT_TRY(build_intervals(context, options, table));
    choose_corners(table, options);
    table->stairs = remat_alloc_zeroed(context, state_count(table), sizeof *table->stairs);
    remat_status status = table->stairs ? optimal_table_fill_empty(context, table) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = solve_with_workers(context, table, thread_count(model, options));
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
    remat_release(context, table->stairs, state_count(table), sizeof *table->stairs);
    remat_release(context, table->empty, (table->model->n + 1) * table->per_side * 3, sizeof *table->empty);
    optimal_intervals_free(context, &table->intervals);
    *table = (optimal_table){0};
}

staircase optimal_table_curve(const optimal_table *table)
{
    return optimal_table_stairs(table, (optimal_state){0, (uint32_t)table->model->n - 1, TAIL_LOSS, END_DONE});
}
