/* How the backward of a row normalisation cuts its rows: every part has its own sums for dgain and dshift in the
 * workspace. The cut depends on the rows alone, so that the sums have the same bits with any number of threads. */
#ifndef REMAT_BACKEND_CPU_NORMALIZE_PARTS_H
#define REMAT_BACKEND_CPU_NORMALIZE_PARTS_H

#include <stddef.h>

enum { NORMALIZE_MOST_PARTS = 32, NORMALIZE_ROWS_OF_PART = 16 };

static inline size_t normalize_parts(size_t rows)
{
    size_t parts = (rows + NORMALIZE_ROWS_OF_PART - 1) / NORMALIZE_ROWS_OF_PART;
    return parts < NORMALIZE_MOST_PARTS ? parts : NORMALIZE_MOST_PARTS;
}

#endif
