#ifndef REMAT_BASE_SORT_H
#define REMAT_BASE_SORT_H

#include <stdbool.h>

#include <remat/context.h>

/* Whether item `a` belongs before item `b`. */
typedef bool (*remat_before_fn)(const void *user, uint32_t a, uint32_t b);

/* Sorts. The sort is stable: equal items keep their order. qsort does not promise that, and does not take its memory
 * from the context. */
remat_status remat_sort(remat_context *context, uint32_t *items, size_t count, remat_before_fn before,
                        const void *user);

/* The numbers from 0 to count - 1, sorted; the caller releases them. */
remat_status remat_order(remat_context *context, size_t count, remat_before_fn before, const void *user,
                         uint32_t **order);

#endif
