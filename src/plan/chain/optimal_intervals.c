#include "plan/chain/optimal_intervals.h"

#include "base/alloc.h"
#include "base/sort.h"

/* Between near * 2^(r-1) and near * 2^r layers from the start, the places of rank r. The ends of all intervals are such
 * places, so that the visited intervals number N * (near + near/2 * log(N/near)). */
size_t optimal_intervals_cuts(const optimal_intervals *intervals, optimal_interval interval, uint32_t *cuts)
{
    size_t count = 0, row = intervals->model->n + 2, reach = intervals->near, j = interval.start + (size_t)1;
    for (; j <= interval.last && j <= interval.start + reach; j++)
        cuts[count++] = (uint32_t)j;
    for (uint32_t rank = 1; j <= interval.last; rank++) {
        uint32_t level = rank < intervals->levels ? rank : intervals->levels - 1;
        const uint32_t *next = intervals->next_ranked + level * row;
        reach *= 2;
        while ((j = next[j]) <= interval.last && j <= interval.start + reach)
            cuts[count++] = (uint32_t)j++;
        if (j > interval.start + reach)
            j = interval.start + reach + 1;
    }
    return count;
}

static size_t bit_word(const optimal_intervals *intervals, size_t start, size_t length)
{
    return intervals->row[start] + (length - 1) / 64;
}

uint32_t optimal_intervals_find(const optimal_intervals *intervals, size_t start, size_t last)
{
    size_t length = last + 1 - start;
    start = optimal_model_canonical_start(intervals->model, start, last);
    size_t word = bit_word(intervals, start, length);
    uint64_t bit = (uint64_t)1 << ((length - 1) % 64);
    if (!(intervals->bits[word] & bit))
        return NO_INTERVAL;
    return intervals->before[word] + (uint32_t)__builtin_popcountll(intervals->bits[word] & (bit - 1));
}

static remat_status visit(remat_context *context, optimal_intervals *intervals, size_t start, size_t last)
{
    if (start > last)
        return REMAT_OK;
    size_t length = last + 1 - start;
    start = optimal_model_canonical_start(intervals->model, start, last);
    uint64_t *word = &intervals->bits[bit_word(intervals, start, length)];
    uint64_t bit = (uint64_t)1 << ((length - 1) % 64);
    if (*word & bit)
        return REMAT_OK;
    *word |= bit;
    void *list = intervals->list;
    REMAT_TRY(remat_grow(context, &list, &intervals->capacity, intervals->count + 1, sizeof *intervals->list));
    intervals->list = list;
    intervals->list[intervals->count++] = (optimal_interval){(uint32_t)start, (uint32_t)(start + length - 1)};
    return REMAT_OK;
}

/* Everything the whole chain is made of, however deep. The list is its own queue. */
static remat_status visit_closure(remat_context *context, optimal_intervals *intervals, uint32_t *cuts)
{
    remat_status status = visit(context, intervals, 0, intervals->model->n - 1);
    for (size_t k = 0; status == REMAT_OK && k < intervals->count; k++) {
        optimal_interval interval = intervals->list[k];
        status = visit(context, intervals, interval.start + (size_t)1, interval.last);
        size_t count = optimal_intervals_cuts(intervals, interval, cuts);
        intervals->cut_count += count;
        for (size_t c = 0; status == REMAT_OK && c < count; c++) {
            status = visit(context, intervals, cuts[c], interval.last);
            if (status == REMAT_OK)
                status = visit(context, intervals, interval.start, cuts[c] - (size_t)1);
        }
    }
    return status;
}

static bool is_shorter(const void *list, uint32_t a, uint32_t b)
{
    const optimal_interval *intervals = list;
    return intervals[a].last - intervals[a].start < intervals[b].last - intervals[b].start;
}

static void fill_next_ranked(optimal_intervals *intervals)
{
    size_t n = intervals->model->n, row = n + 2;
    for (uint32_t level = 0; level < intervals->levels; level++) {
        uint32_t *next = intervals->next_ranked + level * row;
        next[n + 1] = (uint32_t)(n + 1);
        for (size_t j = n + 1; j-- > 0;)
            next[j] = intervals->model->rank[j] >= level ? (uint32_t)j : next[j + 1];
    }
}

/* Lists the intervals, numbers them by start and length, and orders them by length. */
static remat_status fill(remat_context *context, optimal_intervals *intervals)
{
    size_t n = intervals->model->n;
    uint32_t *cuts = remat_alloc(context, n + 1, sizeof *cuts), total = 0;
    if (!cuts)
        return REMAT_NO_MEMORY;
    remat_status status = visit_closure(context, intervals, cuts);
    remat_release(context, cuts, n + 1, sizeof *cuts);
    for (size_t w = 0; w < intervals->words; w++) {
        intervals->before[w] = total;
        total += (uint32_t)__builtin_popcountll(intervals->bits[w]);
    }
    REMAT_TRY(status);
    return remat_order(context, intervals->count, is_shorter, intervals->list, &intervals->by_length);
}

static remat_status allocate_intervals(remat_context *context, optimal_intervals *intervals)
{
    size_t n = intervals->model->n;
    intervals->next_ranked = remat_alloc(context, (n + 2) * intervals->levels, sizeof *intervals->next_ranked);
    intervals->row = remat_alloc(context, n + 1, sizeof *intervals->row);
    if (!intervals->next_ranked || !intervals->row)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i <= n; i++) {
        intervals->row[i] = intervals->words;
        intervals->words += (n - i + 63) / 64;
    }
    intervals->bits = remat_alloc_zeroed(context, intervals->words, sizeof *intervals->bits);
    intervals->before = remat_alloc(context, intervals->words, sizeof *intervals->before);
    return intervals->bits && intervals->before ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status optimal_intervals_build(remat_context *context, const optimal_model *model, size_t near,
                                     optimal_intervals *intervals)
{
    *intervals = (optimal_intervals){.model = model, .near = near, .levels = 1};
    for (size_t reach = near; reach < model->n; reach *= 2)
        intervals->levels++;
    remat_status status = allocate_intervals(context, intervals);
    if (status == REMAT_OK) {
        fill_next_ranked(intervals);
        status = fill(context, intervals);
    }
    if (status != REMAT_OK)
        optimal_intervals_free(context, intervals);
    return status;
}

void optimal_intervals_free(remat_context *context, optimal_intervals *intervals)
{
    size_t n = intervals->model ? intervals->model->n : 0;
    remat_release(context, intervals->next_ranked, (n + 2) * intervals->levels, sizeof *intervals->next_ranked);
    remat_release(context, intervals->row, n + 1, sizeof *intervals->row);
    remat_release(context, intervals->bits, intervals->words, sizeof *intervals->bits);
    remat_release(context, intervals->before, intervals->words, sizeof *intervals->before);
    remat_release(context, intervals->list, intervals->capacity, sizeof *intervals->list);
    remat_release(context, intervals->by_length, intervals->count, sizeof *intervals->by_length);
    *intervals = (optimal_intervals){0};
}
