/* What the benchmarks share: time, memory, and chains to plan. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <remat/remat.h>

/* Seconds, of the wall clock. */
double measure_now(void);

/* The most memory this process has had resident, in bytes. */
uint64_t measure_peak_resident(void);

/* The median; sorts the values. */
double measure_median(double *values, size_t count);

/* Ends the program with the context's message unless `status` is REMAT_OK. */
void measure_must(remat_context *context, remat_status status);

/* A chain of a kind, with sizes in whole megabytes:
 *   random        activation 1..200, output up to that, costs apart from sizes, workspaces
 *   proportional  costs in proportion to the activation: no layer is a better bargain than another
 *   whole         the output is the whole activation
 *   transformer   12 layers a block, every block a little different
 *   periodic      a prefix, one block of 12 layers repeated, a suffix
 *   homogeneous   all layers alike */
remat_profile *measure_chain(remat_context *context, const char *kind, size_t layers, uint64_t seed);

/* The peak with everything kept. */
uint64_t measure_keep_all(remat_context *context, const remat_profile *profile);

#endif
