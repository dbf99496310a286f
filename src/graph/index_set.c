#include "graph/index_set.h"

#include "base/alloc.h"
#include "base/error.h"

/* Open addressing with linear probing. A slot holds index + 1 so that 0 means free: indexes are below 2^63. */
struct index_set {
    remat_context *context;
    uint64_t *slots;
    size_t slot_count, used; /* slot_count is a power of two, at most half used */
};

remat_status index_set_create(remat_context *context, index_set **set)
{
    index_set *made = *set = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    return REMAT_OK;
}

void index_set_destroy(index_set *set)
{
    if (!set)
        return;
    remat_release(set->context, set->slots, set->slot_count, sizeof *set->slots);
    remat_release(set->context, set, 1, sizeof *set);
}

/* The finaliser of splitmix64: every bit of the index reaches every bit of the slot, so that regular patterns (multiples
 * of a power of two, bits set apart) spread as well as any. */
static uint64_t mix(uint64_t index)
{
    index = (index ^ index >> 30) * 0xBF58476D1CE4E5B9u;
    index = (index ^ index >> 27) * 0x94D049BB133111EBu;
    return index ^ index >> 31;
}

static size_t slot_of(const uint64_t *slots, size_t slot_count, uint64_t index)
{
    size_t at = (size_t)mix(index) & (slot_count - 1);
    while (slots[at] && slots[at] != index + 1)
        at = (at + 1) & (slot_count - 1);
    return at;
}

static remat_status grow(index_set *set)
{
    size_t count = set->slot_count ? set->slot_count * 2 : 32;
    uint64_t *slots = remat_alloc_zeroed(set->context, count, sizeof *slots);
    if (!slots)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < set->slot_count; i++)
        if (set->slots[i])
            slots[slot_of(slots, count, set->slots[i] - 1)] = set->slots[i];
    remat_release(set->context, set->slots, set->slot_count, sizeof *slots);
    set->slots = slots;
    set->slot_count = count;
    return REMAT_OK;
}

remat_status index_set_add(index_set *set, uint64_t index, bool *known)
{
    if ((set->used + 1) * 2 > set->slot_count)
        REMAT_TRY(grow(set));
    size_t at = slot_of(set->slots, set->slot_count, index);
    *known = set->slots[at] != 0;
    if (!*known) {
        set->slots[at] = index + 1;
        set->used++;
    }
    return REMAT_OK;
}
