#include "plan/chain/optimal_ends.h"

#include "base/alloc.h"

#include <string.h>

/* Orders a start's list: by k, then kind, tail and form. */
static bool comes_before(const optimal_end *a, const optimal_end *b)
{
    if (a->ahead != b->ahead)
        return a->ahead < b->ahead;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->tail != b->tail ? a->tail < b->tail : a->form < b->form;
}

/* Counts the entries, and writes them once there is room. */
typedef struct end_builder {
    const optimal_model *model;
    optimal_ends *ends;
    size_t *filled; /* n + 1: entries of each start so far */
    bool writing;
} end_builder;

static void add_end(end_builder *builder, size_t start, optimal_end end)
{
    if (builder->writing)
        builder->ends->list[builder->ends->first[start] + builder->filled[start]] = end;
    builder->filled[start]++;
}

/* LEAVES(k, every tail) for start and one form; k = start cannot leave a gradient: that would be STAYS. */
static void add_leaves(end_builder *builder, size_t start, size_t k, uint32_t form, size_t next)
{
    const optimal_model *model = builder->model;
    uint32_t tails = k == model->n ? TAIL_GRADIENT + 1 : optimal_tail_limit(model);
    for (uint32_t tail = k == start ? TAIL_SAVED : TAIL_GRADIENT; tail < tails; tail++)
        if (optimal_tail_exists(model, k, tail))
            add_end(builder, start,
                    (optimal_end){END_LEAVES, (uint32_t)(k - start), tail, form, (uint32_t)(next - start)});
}

/* The records of k: x_j smaller than every x_t, j < t <= k. */
static void add_records(end_builder *builder, size_t k, size_t record_limit, size_t reach)
{
    const optimal_model *model = builder->model;
    uint64_t least = optimal_model_smallest_x(model, k);
    size_t next = k;
    for (size_t j = k - 1, rank = 1; j > 0 && rank <= record_limit && k - j <= reach; j--) {
        for (uint32_t form = 0; form < model->form_limit; form++)
            if (optimal_model_x(model, j, form) < least)
                add_leaves(builder, j, k, form, next);
        if (optimal_model_smallest_x(model, j) < least) {
            least = optimal_model_smallest_x(model, j);
            next = j;
            rank++;
        }
    }
}

static void add_all(end_builder *builder, size_t record_limit, size_t reach)
{
    size_t n = builder->model->n;
    memset(builder->filled, 0, (n + 1) * sizeof *builder->filled);
    for (size_t start = 0; start < n; start++)
        add_end(builder, start, (optimal_end){END_STAYS, 0, TAIL_GRADIENT, 0, 0});
    for (size_t k = 1; k <= n; k++) { /* the input x_0 never leaves; k ascending keeps every list in order */
        for (uint32_t form = 0; form < builder->model->form_limit && k < n; form++)
            add_leaves(builder, k, k, form, k);
        add_records(builder, k, record_limit, reach);
    }
}

/* With several forms the entries of one k came form by form. */
static void sort_lists(const optimal_model *model, optimal_ends *ends)
{
    for (size_t start = 0; start < model->n && model->form_limit > 1; start++)
        for (size_t a = ends->first[start] + 1; a < ends->first[start + 1]; a++) {
            optimal_end end = ends->list[a];
            size_t b = a;
            for (; b > ends->first[start] && comes_before(&end, &ends->list[b - 1]); b--)
                ends->list[b] = ends->list[b - 1];
            ends->list[b] = end;
        }
}

remat_status optimal_ends_build(remat_context *context, const optimal_model *model, size_t record_limit, size_t reach,
                                optimal_ends *ends)
{
    size_t n = model->n;
    *ends = (optimal_ends){.starts = n};
    end_builder builder = {.model = model, .ends = ends};
    builder.filled = remat_alloc(context, n + 1, sizeof *builder.filled);
    ends->first = remat_alloc(context, n + 1, sizeof *ends->first);
    if (builder.filled && ends->first) {
        add_all(&builder, record_limit, reach);
        for (size_t start = 0; start <= n; start++) {
            ends->first[start] = ends->count;
            ends->count += start < n ? builder.filled[start] : 0;
        }
        ends->list = remat_alloc(context, ends->count, sizeof *ends->list);
    }
    if (ends->list) {
        builder.writing = true;
        add_all(&builder, record_limit, reach);
        sort_lists(model, ends);
    }
    remat_release(context, builder.filled, n + 1, sizeof *builder.filled);
    if (ends->list)
        return REMAT_OK;
    optimal_ends_free(context, ends);
    return REMAT_NO_MEMORY;
}

void optimal_ends_free(remat_context *context, optimal_ends *ends)
{
    remat_release(context, ends->list, ends->count, sizeof *ends->list);
    remat_release(context, ends->first, ends->starts + 1, sizeof *ends->first);
    *ends = (optimal_ends){0};
}

/* The first of start's entries that does not come before `end`. */
static size_t place_of(const optimal_ends *ends, size_t start, const optimal_end *end)
{
    size_t low = ends->first[start], high = ends->first[start + 1];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (comes_before(&ends->list[middle], end))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t optimal_ends_count(const optimal_ends *ends, size_t start, size_t last)
{
    optimal_end behind = {END_LEAVES, (uint32_t)(last + 1 - start), TAIL_SAVED, 0, 0};
    return (uint32_t)(place_of(ends, start, &behind) - ends->first[start]);
}

uint32_t optimal_ends_find(const optimal_ends *ends, size_t start, optimal_end end)
{
    size_t place = place_of(ends, start, &end);
    if (place == ends->first[start + 1] || comes_before(&end, &ends->list[place]))
        return NO_END;
    return (uint32_t)(place - ends->first[start]);
}

const optimal_end *optimal_ends_get(const optimal_ends *ends, size_t start, uint32_t end)
{
    return &ends->list[ends->first[start] + end];
}

size_t optimal_ends_next_record(const optimal_model *model, size_t start, size_t k)
{
    for (uint32_t form = 0; form < model->form_limit; form++) { /* not every form of x_start is a record */
        uint32_t e = optimal_ends_find(&model->ends, start,
                                       (optimal_end){END_LEAVES, (uint32_t)(k - start), TAIL_GRADIENT, form, 0});
        if (e != NO_END)
            return start + optimal_ends_get(&model->ends, start, e)->next;
    }
    return k;
}

/* About how many offers a solve with every cut makes. */
static uint64_t offers_with(const optimal_model *model, const optimal_ends *ends)
{
    uint64_t n = model->n, each = ends->count * 10 / n; /* tenths */
    return n * n * n / 6 * optimal_tail_limit(model) / 2 * each * each / 100 * model->form_limit;
}

/* What temporary bases gain ends at 1.3 times the least budget, and falls with the length of the chain: at the least
 * budget 5 to 20 % for up to 100 layers, 1 to 3 % for 200, 0.01 % for 1000. */
enum { SHORT_CHAIN = 100, MIDDLE_CHAIN = 400, LONG_REACH = 8, MOST_OFFERS = 6000000 /* about a second */ };

static remat_status choose_long(remat_context *context, const optimal_model *model, bool tight, optimal_ends *ends)
{
    bool simple = model->mode_limit == 1 && model->form_limit == 1;
    size_t limit = tight && simple && model->n <= MIDDLE_CHAIN ? 1 : 0;
    return optimal_ends_build(context, model, limit, LONG_REACH, ends);
}

remat_status optimal_ends_choose(remat_context *context, const optimal_model *model, bool tight, optimal_ends *ends)
{
    static const size_t limits[] = {ALL_RECORDS, 4, 2, 1, 0};
    if (model->n > SHORT_CHAIN)
        return choose_long(context, model, tight, ends);
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        optimal_ends_free(context, ends);
        REMAT_TRY(optimal_ends_build(context, model, limits[k], model->n, ends));
        if (model->n == 0 || offers_with(model, ends) <= MOST_OFFERS)
            break;
    }
    return REMAT_OK;
}
