/* What `remat bench` measured, as a table and as JSON. */
#ifndef REMAT_CLI_BENCH_TEXT_H
#define REMAT_CLI_BENCH_TEXT_H

#include <remat/train.h>

enum { BENCH_FORWARD, BENCH_RECOMPUTE, BENCH_WEIGHT_GRADIENT, BENCH_INPUT_GRADIENT, BENCH_APPLY, BENCH_PHASES };
extern const char *const bench_phases[BENCH_PHASES];

/* Over all steps. */
typedef struct bench_tally {
    double seconds, flops, gemm_flops, bytes;
} bench_tally;
void bench_tally_add(bench_tally *sum, const bench_tally *more);

typedef struct bench_row {
    const char *name; /* NULL: nothing was seen of it */
    bench_tally phases[BENCH_PHASES];
} bench_row;

typedef struct bench_result {
    uint64_t steps;
    bench_row *rows; /* one for each layer, and one for what is done to all gradients at once */
    size_t row_count;
    double step_seconds, data_seconds; /* medians */
    remat_trainer_figures figures;
    remat_machine_limits limits;
} bench_result;

void bench_print_table(const bench_result *result);
void bench_print_json(const bench_result *result);

#endif
