#include "support/failing_allocator.h"

#include <stdlib.h>

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    failing_allocator *state = user;
    if (++state->calls == state->fail_at)
        return NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0)
        return NULL;
    state->bytes += bytes;
    state->blocks++;
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    failing_allocator *state = user;
    state->bytes -= bytes;
    state->blocks--;
    free(memory);
}

remat_allocator failing_allocator_hook(failing_allocator *state)
{
    return (remat_allocator){allocate, release, state};
}
