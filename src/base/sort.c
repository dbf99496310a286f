#include "base/sort.h"

#include "base/alloc.h"

#include <string.h>

/* Merges the sorted runs [low, middle) and [middle, high). */
static void merge(const uint32_t *from, uint32_t *to, size_t low, size_t middle, size_t high, remat_before_fn before,
                  const void *user)
{
    size_t left = low, right = middle;
    for (size_t at = low; at < high; at++) {
        bool take_right = left == middle || (right < high && before(user, from[right], from[left]));
        to[at] = take_right ? from[right++] : from[left++];
    }
}

remat_status remat_sort(remat_context *context, uint32_t *items, size_t count, remat_before_fn before, const void *user)
{
    uint32_t *spare = remat_alloc(context, count, sizeof *spare);
    if (!spare)
        return REMAT_NO_MEMORY;
    uint32_t *from = items, *to = spare;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t low = 0; low < count; low += 2 * run) {
            size_t middle = low + run < count ? low + run : count;
            size_t high = middle + run < count ? middle + run : count;
            merge(from, to, low, middle, high, before, user);
        }
        uint32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    remat_release(context, spare, count, sizeof *spare);
    return REMAT_OK;
}

remat_status remat_order(remat_context *context, size_t count, remat_before_fn before, const void *user,
                         uint32_t **order)
{
    *order = remat_alloc(context, count, sizeof **order);
    if (!*order)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        (*order)[i] = (uint32_t)i;
    remat_status status = remat_sort(context, *order, count, before, user);
    if (status != REMAT_OK) {
        remat_release(context, *order, count, sizeof **order);
        *order = NULL;
    }
    return status;
}
