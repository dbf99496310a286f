#include "backend/cpu/fast.h"
#include "backend/cpu/kernel_rows.h"

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

static const kernel_row rows[] = {
#define ROW(name, types)  {OP_##name, types, FAST(name)},
#define STEP(name, types) {OP_##name, types, kernel_##name},
    KERNEL_ROWS(ROW, "f") KERNEL_MOMENT_ROWS(ROW) KERNEL_STEP_ROWS(STEP)
#undef ROW
#undef STEP
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
