/* A binary heap: gives back the least item first. */
#ifndef REMAT_BASE_HEAP_H
#define REMAT_BASE_HEAP_H

#include <remat/context.h>

/* Items are ordered by all three numbers, so that the same items always come out in the same order. */
typedef struct heap_item {
    uint64_t key, second_key;
    uint32_t value;
} heap_item;

/* All zeros is an empty heap. */
typedef struct item_heap {
    heap_item *items;
    size_t count, capacity;
} item_heap;

remat_status heap_push(remat_context *context, item_heap *heap, heap_item item);
/* The least item; there must be one. */
heap_item heap_pop(item_heap *heap);
void heap_end(remat_context *context, item_heap *heap);

#endif
