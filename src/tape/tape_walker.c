#include "tape/tape_walker.h"

#include <remat/revolve.h>

#include "base/alloc.h"

#include <string.h>

enum { CONTEXT_ROOM = 4096, ENTRY_ROOM = 24 }; /* a stack's entry has 16 bytes, a held state 8 */

/* ---- memory from the buffer: a stack of blocks, each behind a header ---- */

typedef struct block_header {
    size_t before; /* where the block before ends: the top once this one is gone */
    bool gone;     /* given back, but something above it is not yet */
    _Alignas(16) unsigned char memory[];
} block_header;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    tape_walker *walker = user;
    size_t whole = (sizeof(block_header) + bytes + 15) / 16 * 16;
    if (alignment > 16 || whole > walker->bytes - walker->used)
        return NULL;
    block_header *block = (block_header *)(void *)(walker->buffer + walker->used);
    *block = (block_header){.before = walker->last};
    walker->last = walker->used;
    walker->used += whole;
    return block->memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    tape_walker *walker = user;
    (void)bytes;
    block_header *block = (block_header *)(void *)((unsigned char *)memory - offsetof(block_header, memory));
    block->gone = true;
    while (walker->used > 0) {
        const block_header *top = (const block_header *)(const void *)(walker->buffer + walker->last);
        if (!top->gone)
            return;
        walker->used = walker->last;
        walker->last = top->before;
    }
}

/* ---- the walker ---- */

remat_status walker_reserve(tape_walker *walker, remat_context *owner, uint64_t slots)
{
    *walker = (tape_walker){.owner = owner};
    if (slots >= SIZE_MAX / (8 * ENTRY_ROOM))
        return remat_fail(owner, REMAT_NO_MEMORY, NULL, "there cannot be so many slots");
    /* Arrays double: all their copies together are at most four times what is needed. */
    walker->bytes = CONTEXT_ROOM + 4 * ENTRY_ROOM * ((size_t)slots + 16);
    walker->buffer = remat_alloc_aligned(owner, walker->bytes, 16);
    if (!walker->buffer)
        return REMAT_NO_MEMORY;
    remat_allocator hook = {allocate, release, walker};
    if (remat_context_create(&hook, &walker->context) != REMAT_OK)
        return remat_fail(owner, REMAT_INTERNAL, NULL, "a context does not fit into %d bytes", CONTEXT_ROOM);
    return REMAT_OK;
}

remat_status walker_create(tape_walker *walker, remat_context *owner, const remat_plan *plan)
{
    bool revolve = strncmp(plan->strategy, "revolve:", 8) == 0, online = strncmp(plan->strategy, "online:", 7) == 0;
    *walker = (tape_walker){.owner = owner};
    if (!plan->draft.marks && !plan->draft.steps && (revolve || online)) {
        uint64_t slots = plan->draft.slots < plan->chain->layer_count ? plan->draft.slots : plan->chain->layer_count;
        REMAT_TRY(walker_reserve(walker, owner, slots));
    }
    walker->plan = plan;
    walker->online = online;
    return REMAT_OK;
}

void walker_clear(tape_walker *walker)
{
    remat_context_destroy(walker->context);
    if (walker->owner)
        remat_release(walker->owner, walker->buffer, walker->bytes, 1);
    *walker = (tape_walker){0};
}

static remat_status walk_online(tape_walker *walker, remat_step_fn visit, void *user)
{
    remat_online *online;
    REMAT_TRY(remat_online_create(walker->context, walker->plan->draft.slots, &online));
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < walker->plan->chain->layer_count; i++)
        status = remat_online_advance(online, visit, user);
    if (status == REMAT_OK)
        status = remat_online_reverse(online, visit, user);
    remat_online_destroy(online);
    return status;
}

remat_status walker_walk(tape_walker *walker, remat_step_fn visit, void *user)
{
    if (!walker->context)
        return remat_plan_walk(walker->plan, visit, user);
    remat_status status = walker->online
                              ? walk_online(walker, visit, user)
                              : remat_revolve_walk(walker->context, (uint32_t)walker->plan->chain->layer_count,
                                                   walker->plan->draft.slots, visit, user);
    /* What the schedule has to say of its own; all else is on the owner's context already. */
    if (status != REMAT_OK && remat_context_error(walker->context)->status == status)
        return remat_fail(walker->owner, REMAT_INTERNAL, NULL, "%s", remat_context_message(walker->context));
    return status;
}
