#include "backend/cpu/fast_block.h"
#include "backend/cpu/normalize_parts.h"

/* The averages over a row that dx needs (reference_normalize.c has the formulas). The same pass adds the row to the sums
 * of its part for dgain and dshift. */
typedef struct row_averages {
    float gradient, slope;
} row_averages;

/* The gradient of the input before it is multiplied by `scale`. */
FAST_INLINE fast_vector input_gradient(fast_vector x, fast_vector gain, fast_vector dy, float mean, float scale,
                                       row_averages averages)
{
    fast_vector normal = (x - mean) * scale;
    return fast_fnma(normal, fast_repeat(averages.slope), fast_fms(dy, gain, fast_repeat(averages.gradient)));
}

#define ROWS(name) name##_full
#define VALUE      float
#include "backend/cpu/fast_normalize_rows.h"
#undef ROWS
#undef VALUE
#define ROWS(name) name##_half
#define VALUE      uint16_t
#include "backend/cpu/fast_normalize_rows.h"
#undef ROWS
#undef VALUE

void FAST(normalize)(const kernel_run *run, const void *args)
{
    const op_normalize *p = args;
    if (p->columns)
        parallel_static(fast_threads(run, p->rows * p->columns), p->rows,
                        p->x.type == REMAT_BF16 ? normalize_rows_half : normalize_rows_full, p);
}

/* sums (+)= the lines of all parts, in order; a part's two lines lie side by side. */
static void add_parts(size_t parts, size_t columns, const float *lines, float *sums, bool accumulate)
{
    if (!accumulate)
        memset(sums, 0, columns * sizeof *sums);
    for (size_t part = 0; part < parts; part++, lines += 2 * columns) {
#define STEP(LOAD, STORE, i, FIRST) STORE(sums + i, LOAD(sums + i) + LOAD(lines + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

void FAST(normalize_backward)(const kernel_run *run, const void *args)
{
    const op_normalize_backward *p = args;
    const float *workspace = p->workspace.at;
    const size_t columns = p->columns, parts = normalize_parts(p->rows);
    if (!columns)
        return;
    parallel_static(fast_threads(run, p->rows * columns), parts,
                    p->x.type == REMAT_BF16 ? backward_parts_half : backward_parts_full, p);
    if (p->dgain.at)
        add_parts(parts, columns, workspace, p->dgain.at, p->accumulate_parameters);
    if (p->dshift.at)
        add_parts(parts, columns, workspace + columns, p->dshift.at, p->accumulate_parameters);
}
