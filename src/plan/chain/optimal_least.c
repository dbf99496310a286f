#include "plan/chain/optimal_least.h"

#include "base/alloc.h"

static int64_t *start_row(const optimal_least *least, uint32_t tail, uint32_t end, size_t start)
{
    size_t n = least->model->n;
    return least->by_start + ((tail * least->per_side + end) * n + start) * n;
}

static int64_t *last_row(const optimal_least *least, uint32_t tail, uint32_t end, size_t last)
{
    size_t n = least->model->n;
    return least->by_last + ((tail * least->per_side + end) * n + last) * n;
}

/* The end with this number of its own, as the model lists it; NO_END where there is none. */
static uint32_t listed_end(const optimal_least *least, size_t start, uint32_t end)
{
    if (end == 0)
        return 0;
    return optimal_ends_find(&least->model->ends, start,
                             (optimal_end){END_LEAVES, 0, TAIL_SAVED + end - 1, FORM_PLAIN, 0});
}

static uint64_t dense_of(const optimal_least *least, uint32_t start, uint32_t last, uint32_t tail, uint32_t end)
{
    if (start <= last)
        return (uint64_t)start_row(least, tail, end, start)[last];
    uint64_t memory = MEMORY_END, cost;
    if (optimal_tail_exists(least->model, start, tail))
        optimal_tail_step(least->model, start, tail, &memory, &cost);
    return memory;
}

uint64_t optimal_least_of(const optimal_least *least, optimal_state state)
{
    uint32_t number = 0;
    if (state.start <= state.last && state.end != 0) {
        const optimal_end *end = optimal_ends_get(&least->model->ends, state.start, state.end);
        if (end->kind != END_LEAVES || end->ahead != 0 || end->form != FORM_PLAIN)
            return MEMORY_END;
        number = end->tail;
    }
    if (state.tail >= least->per_side || number >= least->per_side)
        return MEMORY_END;
    return dense_of(least, state.start, state.last, state.tail, number);
}

uint64_t optimal_least_budget(const optimal_least *least)
{
    optimal_state root = {0, (uint32_t)least->model->n - 1, TAIL_LOSS, 0};
    return optimal_least_of(least, root) + least->model->x[0];
}

/* min over k of max(right[k] + shift[k] + base, left[k], peak[k] + held) */
static inline __attribute__((always_inline)) int64_t cut_loop(const int64_t *right, const int64_t *shift,
                                                              const int64_t *left, const int64_t *peak, int64_t base,
                                                              int64_t held, size_t count)
{
    int64_t best = INT64_MAX;
#pragma omp simd reduction(min : best)
    for (size_t k = 0; k < count; k++) {
        int64_t a = right[k] + shift[k] + base, b = left[k], c = peak[k] + held;
        int64_t most = a > b ? a : b;
        most = most > c ? most : c;
        best = best < most ? best : most;
    }
    return best;
}

static int64_t cut_plain(const int64_t *right, const int64_t *shift, const int64_t *left, const int64_t *peak,
                         int64_t base, int64_t held, size_t count)
{
    return cut_loop(right, shift, left, peak, base, held, count);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static int64_t cut_avx2(const int64_t *right, const int64_t *shift, const int64_t *left,
                                                        const int64_t *peak, int64_t base, int64_t held, size_t count)
{
    return cut_loop(right, shift, left, peak, base, held, count);
}

__attribute__((target("avx512f"))) static int64_t cut_avx512(const int64_t *right, const int64_t *shift,
                                                             const int64_t *left, const int64_t *peak, int64_t base,
                                                             int64_t held, size_t count)
{
    return cut_loop(right, shift, left, peak, base, held, count);
}
#endif

static void choose_loop(optimal_least *least)
{
    least->least_cut = cut_plain;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f"))
        least->least_cut = cut_avx512;
    else if (__builtin_cpu_supports("avx2"))
        least->least_cut = cut_avx2;
#endif
}

/* Over all cuts, in blocks: the run's peak only grows, so once it passes the best the rest cannot win. */
static int64_t least_cuts(const optimal_least *least, optimal_state state, int64_t best, int64_t base, int64_t held)
{
    enum { BLOCK = 64 };
    for (size_t from = state.start + (size_t)1; from <= state.last; from += BLOCK) {
        size_t count = state.last + (size_t)1 - from;
        count = count < BLOCK ? count : BLOCK;
        if (least->run_peak[from] + held >= best)
            break;
        for (uint32_t late = 0; late < least->per_side; late++) { /* 0: x_cut is kept; 1 + q: it is late */
            const int64_t *right = last_row(least, state.tail, late, state.last) + from;
            const int64_t *left = start_row(least, late, state.end, state.start) + from - 1;
            int64_t found = least->least_cut(right, late ? least->zero + from : least->x + from, left,
                                             least->run_peak + from, base, held, count);
            best = found < best ? found : best;
        }
    }
    return best;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Here and below state.end is the number of its own. */
static int64_t least_save(const optimal_least *least, optimal_state state)
{
    int64_t best = (int64_t)MEMORY_END;
    optimal_state listed = {state.start, state.last, state.tail, listed_end(least, state.start, state.end)};
    for (uint32_t q = 0; q + 1 < least->per_side; q++) {
        uint64_t floor, shift, cost;
        if (!optimal_save_figures(least->model, listed, q, &floor, &shift, &cost))
            continue;
        uint64_t inner = dense_of(least, state.start + 1, state.last, state.tail, 0);
        int64_t memory = larger((int64_t)(inner + shift), (int64_t)floor);
        best = memory < best ? memory : best;
    }
    return best;
}

static int64_t run_peak(const optimal_model *model, size_t i, size_t j)
{
    optimal_pass pass = optimal_model_pass(model, i, j, FORM_PLAIN, FORM_PLAIN);
    return (int64_t)(pass.first > pass.rest ? pass.first : pass.rest);
}

static void fill_state(const optimal_least *least, optimal_state state)
{
    const optimal_model *model = least->model;
    int64_t best = (int64_t)MEMORY_END;
    size_t behind = (size_t)state.last + 1;
    if (optimal_tail_exists(model, behind, state.tail) && listed_end(least, state.start, state.end) != NO_END) {
        int64_t base = state.end == 0 ? 0 : (int64_t)model->x[state.start];
        int64_t held = base + (int64_t)optimal_tail_bytes(model, behind, state.tail);
        best = least_save(least, state);
        if (state.tail != TAIL_GRADIENT) {
            int64_t settle = larger(
                run_peak(model, state.start, behind) + held,
                (int64_t)(dense_of(least, (uint32_t)behind, state.last, state.tail, 0) + model->x[behind]) + base);
            settle = larger(settle, start_row(least, TAIL_GRADIENT, state.end, state.start)[state.last]);
            best = settle < best ? settle : best;
        }
        best = least_cuts(least, state, best, base, held);
    }
    best = best < (int64_t)MEMORY_END ? best : (int64_t)MEMORY_END;
    start_row(least, state.tail, state.end, state.start)[state.last] = best;
    last_row(least, state.tail, state.end, state.last)[state.start] = best;
}

static void fill(const optimal_least *least)
{
    size_t n = least->model->n;
    for (size_t j = 0; j <= n; j++) {
        least->x[j] = (int64_t)least->model->x[j];
        least->zero[j] = 0;
    }
    for (size_t start = n; start-- > 0;) {
        for (size_t j = start + 1; j <= n; j++)
            least->run_peak[j] = run_peak(least->model, start, j);
        for (size_t last = start; last < n; last++)
            for (uint32_t tail = 0; tail < least->per_side; tail++)
                for (uint32_t end = 0; end < least->per_side; end++)
                    fill_state(least, (optimal_state){(uint32_t)start, (uint32_t)last, tail, end});
    }
}

static size_t figure_count(const optimal_least *least)
{
    return (size_t)least->per_side * least->per_side * least->model->n * least->model->n;
}

bool optimal_least_applies(const optimal_model *model)
{
    uint64_t sides = model->mode_limit + (uint64_t)1, n = model->n;
    return n <= 1500 && n * n * sides * sides <= 20000000; /* twice 160 MB */
}

remat_status optimal_least_build(remat_context *context, const optimal_model *model, optimal_least *least)
{
    size_t n = model->n;
    *least = (optimal_least){.model = model, .per_side = model->mode_limit + 1};
    least->by_start = remat_alloc(context, figure_count(least), sizeof *least->by_start);
    least->by_last = remat_alloc(context, figure_count(least), sizeof *least->by_last);
    least->x = remat_alloc(context, 3 * (n + 1), sizeof *least->x);
    if (!least->by_start || !least->by_last || !least->x) {
        optimal_least_free(context, least);
        return REMAT_NO_MEMORY;
    }
    least->zero = least->x + (n + 1);
    least->run_peak = least->zero + (n + 1);
    choose_loop(least);
    fill(least);
    return REMAT_OK;
}

void optimal_least_free(remat_context *context, optimal_least *least)
{
    if (!least->model)
        return;
    remat_release(context, least->by_start, figure_count(least), sizeof *least->by_start);
    remat_release(context, least->by_last, figure_count(least), sizeof *least->by_last);
    remat_release(context, least->x, 3 * (least->model->n + 1), sizeof *least->x);
    *least = (optimal_least){0};
}
