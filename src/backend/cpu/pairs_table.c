#include "backend/cpu/kernel_halves.h"
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/pairs.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

#define X(name) void FAST(halves_##name)(const kernel_run *run, const void *args);
KERNEL_HALVES(X)
#undef X

static const kernel_row rows[] = {
#define HALVES(name, types) {OP_##name, types, FAST(halves_##name)},
#define ROW(name, types)    {OP_##name, types, FAST(name)},
#define PAIR(name, types)   {OP_##name, types, PAIRS(name)},
#define STEP(name, types)   {OP_##name, types, kernel_##name},
    KERNEL_HALF_ATTENTION(PAIR) KERNEL_ROWS(ROW, "f") KERNEL_CONVERT_ROWS(ROW) KERNEL_GEMM_ROWS(PAIR)
        KERNEL_GATHER_ROWS(ROW) KERNEL_HALF_LINES(ROW) KERNEL_HALVES_ROWS(HALVES) KERNEL_MOMENT_ROWS(ROW)
            KERNEL_STEP_ROWS(STEP) KERNEL_PLAIN_ROWS
#undef ROW
#undef PAIR
#undef STEP
#undef HALVES
};

extern const kernel_table PAIRS(fast_table);
const kernel_table PAIRS(fast_table) = {
    .name = TEXT(PAIRS_SET),
    .scratch_bytes = FAST_SCRATCH_BYTES,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .multiplies_halves = true,
    .draw = FAST(draw),
    .multiply_adds = FAST(multiply_adds),
};
