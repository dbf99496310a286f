/* An allocator that counts, and that fails at one chosen call. */
#ifndef TESTS_FAILING_ALLOCATOR_H
#define TESTS_FAILING_ALLOCATOR_H

#include <remat/remat.h>

typedef struct failing_allocator {
    uint64_t calls;   /* so far */
    uint64_t fail_at; /* the number of the call that fails, from 1; 0: none */
    uint64_t bytes;   /* held right now */
    uint64_t blocks;
} failing_allocator;

remat_allocator failing_allocator_hook(failing_allocator *state);

#endif
