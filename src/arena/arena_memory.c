/* Arrays that store their size, so that a release needs only the pointer; and a sort that allocates nothing. */
#include "arena/arena_internal.h"

#include "base/alloc.h"

#include <string.h>

/* Stands before every array. */
typedef struct array_head {
    size_t bytes;
    max_align_t items[];
} array_head;

void *arena_array(remat_context *context, size_t count, size_t element)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, element, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(array_head), &bytes))
        bytes = SIZE_MAX;
    array_head *head = remat_alloc(context, bytes, 1);
    if (!head)
        return NULL;
    head->bytes = bytes;
    return head->items;
}

void *arena_array_grow(remat_context *context, void *array, size_t old_bytes, size_t count, size_t element)
{
    void *grown = arena_array(context, count, element);
    if (grown && array) {
        memcpy(grown, array, old_bytes);
        arena_release(context, array);
    }
    return grown;
}

void arena_release(remat_context *context, void *array)
{
    if (!array)
        return;
    array_head *head = (array_head *)(void *)((char *)array - offsetof(array_head, items));
    remat_release(context, head, head->bytes, 1);
}
static void merge_runs(uint32_t *to, const uint32_t *from, const uint64_t *keys, uint32_t begin, uint32_t middle,
                       uint32_t end)
{
    uint32_t left = begin, right = middle;
    for (uint32_t at = begin; at < end; at++) {
        bool take_left = right == end || (left < middle && keys[from[left]] <= keys[from[right]]);
        to[at] = take_left ? from[left++] : from[right++];
    }
}

/* Stable merge sort of indices by ascending key. */
void arena_sort(uint32_t *order, const uint64_t *keys, uint32_t *scratch, uint32_t count)
{
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t begin = 0; begin < count; begin += 2 * width) {
            uint64_t middle = begin + width < count ? begin + width : count;
            uint64_t end = begin + 2 * width < count ? begin + 2 * width : count;
            merge_runs(scratch, order, keys, (uint32_t)begin, (uint32_t)middle, (uint32_t)end);
        }
        for (uint32_t i = 0; i < count; i++)
            order[i] = scratch[i];
    }
}
