/* Lifetimes for tests of the arena: made in several shapes, placed and judged by slow code of its own. */
#ifndef TESTS_LIFETIME_ROWS_H
#define TESTS_LIFETIME_ROWS_H

#include <stdbool.h>

#include "support/fixture.h"

/* Up to `most` tensors anywhere in [0, horizon), sizes from 0 to largest - 1, offsets that mean nothing. Returns how
 * many. */
size_t rows_random(remat_lifetime *rows, test_random *random, size_t most, uint64_t horizon, uint64_t largest);

/* `most` tensors, every moment but the last exactly full: what ends is replaced by other sizes of the same sum. Such
 * rows often have no placement as low as their load. */
void rows_full(remat_lifetime *rows, test_random *random, size_t most, uint64_t load);

/* Pieces of a square, cut at random: there is a placement without a single gap. */
void rows_cut(remat_lifetime *rows, test_random *random, size_t pieces, uint64_t side);

/* Two tensors that share bytes while both are alive, looked for pair by pair. */
bool rows_collide(const remat_lifetime *rows, size_t count);

/* The most bytes alive at one moment, with sizes rounded up. */
uint64_t rows_load(const remat_lifetime *rows, size_t count, uint64_t alignment);

/* The least height, by trying every offset of every tensor; `from` is a height that is not above it. At most 16 rows. */
uint64_t rows_optimum(const remat_lifetime *rows, size_t count, uint64_t from);

/* remat_arena_place with these options, and, where it wrote a placement, a look at whether that is one, by the library's
 * checker and by rows_collide. */
typedef struct row_options {
    uint64_t alignment, capacity, effort;
} row_options;
remat_status rows_place(fixture *f, remat_lifetime *rows, size_t count, row_options options,
                        remat_arena_result *result);

#endif
