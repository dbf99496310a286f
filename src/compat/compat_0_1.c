/* What programs built against the headers of release 0.1 call.
 *
 * Where today's headers pass a size to the library, those of 0.1 did not: their functions have the same names as today's
 * inline ones, and structs of the sizes below. They are in the shared library under these names, read and write no more
 * than that, and do what they did. tests/abi runs such a program. */
#include <remat/remat.h>

/* The linker's name of a function whose C name is an inline function of today's headers. */
#define LINKED_AS(name) __asm__(#name)

/* ---- remat/context.h ---- */

enum { ALLOCATOR_BYTES = 3 * sizeof(void *) };

remat_status context_create_0_1(const remat_allocator *allocator, remat_context **context)
    LINKED_AS(remat_context_create);
remat_status context_create_0_1(const remat_allocator *allocator, remat_context **context)
{
    return remat_context_create_sized(allocator, ALLOCATOR_BYTES, context);
}
