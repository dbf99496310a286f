#include "plan/chain/optimal_table.h"

#include "base/alloc.h"
#include "base/parallel.h"

#include <sched.h>
#include <stdatomic.h>

enum { CHUNK_WORDS = 1 << 16, MOST_CORNERS = 1 << 15, FEWEST_CORNERS = 12, EXACT_LAYERS = 100, LONG_CHAIN = 2500 };
enum { WHOLE_CORNERS = 200, UNPRUNED_LAYERS = 40, MOST_THREADS = 64, LAYERS_A_THREAD = 8 };
#define MOST_CORNER_BYTES ((uint64_t)400000000)
#define MOST_WORK         ((uint64_t)800000000) /* corners looked at: a few seconds */

typedef struct corner_chunk {
    struct corner_chunk *next;
    size_t size; /* of words */
    uint64_t words[];
} corner_chunk;

/* What one thread works with. */
typedef struct solve_worker {
    remat_context *context;
    optimal_table *table;
    pthread_mutex_t *lock; /* for what the workers share: the context, and the table's chunks */
    staircase_envelope envelope;
    uint32_t *places;
    optimal_split *splits;
    optimal_interval listed; /* the interval that the splits are of; they serve all its states */
    size_t listed_count;     /* 0: none */
    uint64_t *free_words;    /* of a chunk, which the table owns */
    size_t free_count;
    bool thinned;
} solve_worker;

/* The staircase of the whole chain is what plans are chosen from. */
static size_t whole_corners(const optimal_table *table)
{
    return remat_max(table->suffix_corners, WHOLE_CORNERS);
}

static remat_status worker_allocate(remat_context *context, optimal_table *table, pthread_mutex_t *lock,
                                    solve_worker *worker)
{
    worker->context = context;
    worker->lock = lock;
    worker->table = table;
    worker->places = remat_alloc(context, table->model->n + 1, sizeof *worker->places);
    worker->splits = remat_alloc(context, optimal_most_splits(table), sizeof *worker->splits);
    if (!worker->places || !worker->splits)
        return REMAT_NO_MEMORY;
    return envelope_allocate(context, remat_max(table->corners, whole_corners(table)), &worker->envelope);
}

static void worker_free(solve_worker *worker)
{
    if (!worker->table)
        return;
    remat_release(worker->context, worker->places, worker->table->model->n + 1, sizeof *worker->places);
    remat_release(worker->context, worker->splits, optimal_most_splits(worker->table), sizeof *worker->splits);
    envelope_free(worker->context, &worker->envelope);
}

/* ---- storing staircases ---- */

static bool add_chunk(solve_worker *worker, size_t size)
{
    pthread_mutex_lock(worker->lock); /* the context's hook, and its counts, are for one thread at a time */
    corner_chunk *chunk = remat_alloc(worker->context, sizeof *chunk + size * sizeof chunk->words[0], 1);
    if (chunk) {
        chunk->size = size;
        chunk->next = worker->table->chunks;
        worker->table->chunks = chunk;
    }
    pthread_mutex_unlock(worker->lock);
    if (!chunk)
        return false;
    worker->free_words = chunk->words;
    worker->free_count = size;
    return true;
}

static bool store_envelope(solve_worker *worker, staircase *stairs)
{
    size_t words = 2 * worker->envelope.count + 1;
    worker->thinned = worker->thinned || worker->envelope.thinned;
    if (worker->envelope.count == 0)
        return true;
    if (worker->free_count < words && !add_chunk(worker, remat_max(words, CHUNK_WORDS)))
        return false;
    *stairs = envelope_copy(&worker->envelope, worker->free_words);
    worker->free_words += words;
    worker->free_count -= words;
    return true;
}

/* ---- solving ---- */

static bool offer_choice(void *envelope, const optimal_choice *choice)
{
    envelope_offer(envelope, &choice->offer);
    return false;
}

static size_t list_worker_splits(solve_worker *worker, optimal_interval interval)
{
    if (worker->listed_count && worker->listed.start == interval.start && worker->listed.last == interval.last)
        return worker->listed_count;
    size_t places = optimal_intervals_cuts(&worker->table->intervals, interval, worker->places);
    worker->listed = interval;
    worker->listed_count = optimal_list_splits(worker->table, interval, worker->places, places, worker->splits);
    return worker->listed_count;
}

static bool note_start(void *context, const optimal_choice *choice)
{
    uint64_t *least = context;
    *least = remat_min(*least, offer_start(&choice->offer));
    return false;
}

/* A temporary base serves the tightest plans alone: above twice the memory where its staircase begins, keeping x_start or
 * dropping it at once was never dearer on any chain tried (1.5 is enough, 1.25 is not). */
static uint64_t state_cap(const solve_worker *worker, optimal_state state, size_t splits)
{
    enum { BASE_RANGE = 2 };
    const optimal_table *table = worker->table;
    uint64_t least = MEMORY_END;
    if (state.rest && optimal_rest_of(table->model, state).k > state.start)
        optimal_each_choice(table, state, worker->splits, splits, note_start, &least);
    return remat_min(table->memory_cap, BASE_RANGE * least);
}

/* False where there is no memory left. */
static bool solve_state(solve_worker *worker, optimal_state state, size_t splits, size_t corners)
{
    optimal_table *table = worker->table;
    staircase_envelope *envelope = &worker->envelope;
    staircase_offer rival;
    /* of a suffix, another thread may be making the rival at this moment */
    bool has_rival =
        table->prunes && (size_t)state.last + 1 < table->model->n && optimal_state_rival(table, state, &rival);
    envelope_reset(envelope, corners, table->prunes ? state_cap(worker, state, splits) : table->memory_cap);
    if (has_rival)
        envelope_offer(envelope, &rival);
    optimal_each_choice(table, state, worker->splits, splits, offer_choice, envelope);
    if (has_rival)
        envelope_keep_below(envelope, &rival);
    envelope_finish(envelope);
    return store_envelope(worker, &table->stairs[optimal_table_state_number(table, state)]);
}

/* All states of an interval but those before the loss. */
static bool solve_interval(solve_worker *worker, optimal_interval interval)
{
    const optimal_table *table = worker->table;
    const optimal_model *model = table->model;
    uint32_t kinds = (size_t)interval.last + 1 == model->n ? 1 : model->pending_limit;
    uint32_t rests = optimal_rest_count(model, interval.start, interval.last);
    size_t splits = list_worker_splits(worker, interval);
    optimal_state state = {.start = interval.start, .last = interval.last};
    for (; state.pending < kinds; state.pending++)
        for (state.rest = 0; state.rest < rests; state.rest++)
            if (optimal_state_exists(model, state) && !solve_state(worker, state, splits, table->corners))
                return false;
    return true;
}

/* One state of the layers start..n-1 before the loss. */
static bool solve_suffix(solve_worker *worker, uint32_t start, uint32_t rest)
{
    optimal_interval interval = {start, (uint32_t)worker->table->model->n - 1};
    optimal_state state = {start, interval.last, PENDING_LOSS, rest};
    size_t corners = start == 0 ? whole_corners(worker->table) : worker->table->suffix_corners;
    return !optimal_state_exists(worker->table->model, state) ||
           solve_state(worker, state, list_worker_splits(worker, interval), corners);
}

/* What the threads share. Items come in groups: the intervals of one length, the states of one suffix. A group uses only
 * groups before it, so that its items can begin once all of these are done. */
typedef struct solve_progress {
    atomic_size_t next, done; /* items taken, items finished */
    atomic_bool failed;
} solve_progress;

/* Whether this thread's item is one of the group begin..end-1; waits until it can begin. Yielding is better than barriers:
 * groups are many and small, and other programs may be running. */
static bool in_group(solve_progress *progress, size_t item, size_t begin, size_t end)
{
    while (item < end && progress->done < begin && !progress->failed)
        sched_yield();
    return item < end && !progress->failed;
}

/* The thread's next item. */
static size_t finish_item(solve_progress *progress, bool solved)
{
    if (!solved)
        progress->failed = true;
    progress->done++;
    return progress->next++;
}

static void work(solve_worker *worker, solve_progress *progress)
{
    const optimal_table *table = worker->table;
    const optimal_interval *list = table->intervals.list;
    const uint32_t *order = table->intervals.by_length;
    size_t item = progress->next++, begin = 0, end, n = table->model->n;
    for (; begin < table->intervals.count; begin = end) {
        uint32_t length = list[order[begin]].last - list[order[begin]].start;
        for (end = begin; end < table->intervals.count && list[order[end]].last - list[order[end]].start == length;)
            end++;
        while (in_group(progress, item, begin, end))
            item = finish_item(progress, solve_interval(worker, list[order[item]]));
    }
    for (size_t start = n; start-- > 0; begin = end) {
        end = begin + optimal_rest_count(table->model, start, n - 1);
        while (in_group(progress, item, begin, end))
            item = finish_item(progress, solve_suffix(worker, (uint32_t)start, (uint32_t)(item - begin)));
    }
}

typedef struct solve_loop {
    solve_worker *workers;
    solve_progress *progress;
} solve_loop;

/* Each worker goes on until there is nothing left to solve, so it does not matter how many of them run at once. */
static void let_work(const void *args, parallel_range range)
{
    const solve_loop *loop = args;
    for (size_t i = range.begin; i < range.end; i++)
        work(&loop->workers[i], loop->progress);
}

/* A thread wants some layers to itself, and the result does not depend on how many there are. */
static remat_status solve_with_workers(remat_context *context, optimal_table *table, unsigned wanted)
{
    size_t most = remat_min(MOST_THREADS, 1 + table->model->n / LAYERS_A_THREAD);
    size_t threads = remat_min(wanted ? wanted : (size_t)parallel_default_threads(), most);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    solve_worker *workers = remat_alloc_zeroed(context, threads, sizeof *workers);
    remat_status status = workers ? REMAT_OK : REMAT_NO_MEMORY;
    for (size_t t = 0; t < threads && status == REMAT_OK; t++)
        status = worker_allocate(context, table, &lock, &workers[t]);
    if (status == REMAT_OK) {
        solve_progress progress = {0};
        const solve_loop loop = {workers, &progress};
        parallel_static((int)threads, threads, let_work, &loop);
        status = progress.failed ? REMAT_NO_MEMORY : REMAT_OK;
    }
    for (size_t t = 0; workers && t < threads; t++) {
        table->thinned = table->thinned || workers[t].thinned;
        worker_free(&workers[t]);
    }
    remat_release(context, workers, threads, sizeof *workers);
    return status;
}

/* ---- how fine ---- */

/* Kinds of what is pending, and of rests with long staircases; those of temporary bases are short. */
static uint64_t sides_of(const optimal_model *model)
{
    return 1 + (uint64_t)model->mode_limit * model->form_count;
}

/* Offers of all intervals together: every cut of every state, and what may be dropped there. */
static uint64_t count_offers(const optimal_table *table)
{
    uint64_t sides = sides_of(table->model);
    return (table->intervals.cut_count + table->intervals.count) * sides * sides * sides;
}

static size_t clamp_corners(uint64_t by_memory, uint64_t by_work)
{
    return (size_t)remat_max(remat_min(remat_min(by_memory, by_work), MOST_CORNERS), FEWEST_CORNERS);
}

/* Corners per staircase such that neither storage nor work passes its limit. The suffixes, over which the whole
 * plan is threaded one layer at a time, get a share of their own: they are few and need fine steps. Short chains are
 * solved without thinning. */
static void choose_corners(optimal_table *table, const table_options *options)
{
    uint64_t sides = sides_of(table->model), n = table->model->n, count = table->intervals.count;
    uint64_t suffix_offers = (table->intervals.cut_count + count) * n / count * sides * sides * 3 / 2;
    bool short_chain = n <= EXACT_LAYERS, exact = short_chain && sides == 2;
    bool long_chain = n > LONG_CHAIN; /* the longer the chain, the more its suffixes need */
    uint64_t by_memory = MOST_CORNER_BYTES * (long_chain ? 4 : 7) / 160 / (count * sides * sides);
    uint64_t by_work = MOST_WORK * (long_chain ? 25 : short_chain ? 150 : 60) / 300 / count_offers(table);
    if (!short_chain && by_work > 48) /* more cuts bring more than more corners */
        by_work = n <= 200 ? 48 : n <= 400 ? 24 : 32;
    table->corners = options->corners ? options->corners : clamp_corners(by_memory, by_work);
    by_memory = MOST_CORNER_BYTES * (long_chain ? 6 : 3) / 160 / (n * sides);
    by_work = exact ? MOST_CORNERS : MOST_WORK * (long_chain ? 15 : 8) / 20 / suffix_offers;
    if (!short_chain)
        by_work = remat_min(by_work, n <= 400 ? 800 : 2000);
    table->suffix_corners = options->suffix_corners ? options->suffix_corners : clamp_corners(by_memory, by_work);
}

static size_t choose_near(const optimal_model *model)
{
    if (model->n <= EXACT_LAYERS)
        return EXACT_LAYERS;
    return model->n <= 400 ? 24 : model->n <= 1500 ? 16 : model->n <= 4000 ? 8 : 6;
}

/* Every mode multiplies the work: with many, fewer cuts are tried. */
static remat_status build_intervals(remat_context *context, const table_options *options, optimal_table *table)
{
    for (size_t near = options->near ? options->near : choose_near(table->model);; near /= 2) {
        REMAT_TRY(optimal_intervals_build(context, table->model, near, &table->intervals));
        bool bearable = count_offers(table) <= MOST_WORK / FEWEST_CORNERS / 3;
        if (bearable || table->model->n <= EXACT_LAYERS || options->near || near < 8)
            return REMAT_OK;
        optimal_intervals_free(context, &table->intervals);
    }
}

static remat_status fill_table(remat_context *context, const table_options *options, optimal_table *table)
{
    REMAT_TRY(build_intervals(context, options, table));
    REMAT_TRY(optimal_table_number_states(context, table));
    REMAT_TRY(optimal_table_fill_pending_steps(context, table));
    choose_corners(table, options);
    return solve_with_workers(context, table, options->threads);
}

remat_status optimal_table_solve(remat_context *context, const optimal_model *model, const table_options *options,
                                 optimal_table *table)
{
    *table = (optimal_table){.model = model, .prunes = model->n > UNPRUNED_LAYERS};
    table->memory_cap = model->chain->most_bytes - model->chain->input_bytes;
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
    size_t count = table->intervals.count, steps = (table->model->n + 1) * table->model->pending_limit * 3;
    if (table->stairs)
        remat_release(context, table->stairs, table->first_state[count], sizeof *table->stairs);
    remat_release(context, table->first_state, count + 1, sizeof *table->first_state);
    remat_release(context, table->rest_count, count, sizeof *table->rest_count);
    remat_release(context, table->pending_steps, steps, sizeof *table->pending_steps);
    optimal_intervals_free(context, &table->intervals);
    *table = (optimal_table){0};
}

staircase optimal_table_curve(const optimal_table *table)
{
    return optimal_table_stairs(table, (optimal_state){0, (uint32_t)table->model->n - 1, PENDING_LOSS, 0});
}
