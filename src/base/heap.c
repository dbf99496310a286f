#include "base/heap.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>

static bool is_before(const heap_item *a, const heap_item *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->second_key != b->second_key ? a->second_key < b->second_key : a->value < b->value;
}

remat_status heap_push(remat_context *context, item_heap *heap, heap_item item)
{
    REMAT_TRY(remat_grow(context, (void **)&heap->items, &heap->capacity, heap->count + 1, sizeof *heap->items));
    size_t at = heap->count++;
    for (; at > 0 && is_before(&item, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
    return REMAT_OK;
}

heap_item heap_pop(item_heap *heap)
{
    heap_item *items = heap->items, first = items[0], last = items[--heap->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        child += child + 1 < heap->count && is_before(&items[child + 1], &items[child]);
        if (!is_before(&items[child], &last))
            break;
        items[at] = items[child];
    }
    items[at] = last;
    return first;
}

void heap_end(remat_context *context, item_heap *heap)
{
    remat_release(context, heap->items, heap->capacity, sizeof *heap->items);
    *heap = (item_heap){0};
}
