#include "plan/chain/least_memory.h"

#include "base/alloc.h"

/* The figures of one start while they are found. */
typedef struct least_row {
    uint64_t *x;      /* n + 1: bytes of x */
    uint64_t *passes; /* n + 1: most bytes of a pass from x_start to x_j */
    uint64_t *row;    /* n: the least memory of start..last, by last */
} least_row;

static uint64_t *row_of(const least_memory *least, size_t last)
{
    return least->gradient + last * (least->n + 1);
}

uint64_t least_memory_of(const least_memory *least, optimal_state state)
{
    return state.pending == PENDING_GRADIENT ? row_of(least, state.last)[state.start] : least->loss[state.start];
}

/* The least memory of one state. right[j]: that of j..last with the same pending; j up to `most_cut`. */
static uint64_t least_of(const optimal_model *model, const least_row *from, optimal_state state, const uint64_t *right,
                         size_t most_cut)
{
    uint64_t best = MEMORY_END, pending = optimal_pending_bytes(model, state.last + (size_t)1, state.pending);
    for (uint32_t q = 0; q < model->mode_limit; q++) {
        uint64_t floor, shift, cost;
        if (optimal_save_figures(model, state, q, &floor, &shift, &cost))
            best = remat_min(best, remat_max(floor, right[state.start + 1] + shift));
    }
    for (size_t j = state.start + (size_t)1; j <= most_cut && from->passes[j] + pending < best; j++) {
        uint64_t most = remat_max(from->passes[j] + pending, remat_max(right[j] + from->x[j], from->row[j - 1]));
        best = remat_min(best, most);
    }
    return best;
}

static void fill(const optimal_model *model, least_memory *least, const least_row *from)
{
    size_t n = least->n;
    uint64_t cost;
    for (size_t j = 0; j <= n; j++)
        from->x[j] = remat_chain_x_bytes(model->chain, j);
    for (size_t last = 0; last < n; last++) /* what is pending, without layers */
        optimal_pending_step(model, last + 1, PENDING_GRADIENT, &row_of(least, last)[last + 1], &cost);
    optimal_pending_step(model, n, PENDING_LOSS, &least->loss[n], &cost);
    for (size_t start = n; start-- > 0;) {
        optimal_pass pass = {0};
        for (size_t j = start + 1; j <= n; j++) {
            optimal_pass_extend(model, FORM_PLAIN, start, j - 1, &pass);
            from->passes[j] = remat_max(pass.first, pass.rest);
        }
        optimal_state state = {(uint32_t)start, (uint32_t)start, PENDING_GRADIENT, 0};
        for (; state.last < n; state.last++) {
            uint64_t *right = row_of(least, state.last);
            right[start] = from->row[state.last] = least_of(model, from, state, right, state.last);
        }
        state = (optimal_state){(uint32_t)start, (uint32_t)n - 1, PENDING_LOSS, 0};
        least->loss[start] = least_of(model, from, state, least->loss, n);
    }
}

remat_status least_memory_build(remat_context *context, const optimal_model *model, least_memory *least)
{
    size_t n = model->n;
    *least = (least_memory){.n = n};
    least->gradient = remat_alloc(context, n * (n + 1), sizeof *least->gradient);
    least->loss = remat_alloc(context, n + 1, sizeof *least->loss);
    uint64_t *rows = remat_alloc(context, 3 * (n + 1), sizeof *rows);
    bool made = least->gradient && least->loss && rows;
    if (made)
        fill(model, least, &(least_row){rows, rows + n + 1, rows + 2 * (n + 1)});
    else
        least_memory_free(context, least);
    remat_release(context, rows, 3 * (n + 1), sizeof *rows);
    return made ? REMAT_OK : REMAT_NO_MEMORY;
}

void least_memory_free(remat_context *context, least_memory *least)
{
    remat_release(context, least->gradient, least->n * (least->n + 1), sizeof *least->gradient);
    remat_release(context, least->loss, least->n + 1, sizeof *least->loss);
    *least = (least_memory){0};
}
