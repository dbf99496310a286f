#include "backend/cpu/fast.h"
#include "backend/cpu/kernel_halves.h"
#include "backend/cpu/kernel_rows.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

#define X(name) void FAST(halves_##name)(const kernel_run *run, const void *args);
KERNEL_HALVES(X)
#undef X

static const kernel_row rows[] = {
#define HALVES(name, types) {OP_##name, types, FAST(halves_##name)},
#define ROW(name, types)    {OP_##name, types, FAST(name)},
#define STEP(name, types)   {OP_##name, types, kernel_##name},
    KERNEL_ROWS(ROW, "f") KERNEL_CONVERT_ROWS(ROW) KERNEL_GEMM_ROWS(ROW) KERNEL_GATHER_ROWS(ROW) KERNEL_HALF_LINES(ROW)
        KERNEL_HALF_ATTENTION(ROW) KERNEL_HALVES_ROWS(HALVES) KERNEL_MOMENT_ROWS(ROW) KERNEL_STEP_ROWS(STEP)
            KERNEL_PLAIN_ROWS
#undef ROW
#undef STEP
#undef HALVES
};

extern const kernel_table FAST(fast_table);
const kernel_table FAST(fast_table) = {
    .name = TEXT(FAST_ISA),
    .scratch_bytes = FAST_SCRATCH_BYTES,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .draw = FAST(draw),
    .multiply_adds = FAST(multiply_adds),
};
