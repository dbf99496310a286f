/* Preloaded into the program under test. Fails the allocation that REMAT_FAIL_ALLOCATION names, or with
 * REMAT_FAIL_ALLOCATIONS_FROM all from that one on, and tells the tracer where the program begins: what the loader does
 * before is not the program's. */
#include "faults/fault_marks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static unsigned long long first;
static bool begun, all_after;

typedef int (*main_function)(int, char **, char **);
static main_function program;

static int begin(int count, char **arguments, char **environment)
{
    const char *one = getenv("REMAT_FAIL_ALLOCATION"), *from = getenv("REMAT_FAIL_ALLOCATIONS_FROM");
    first = one ? strtoull(one, NULL, 10) : from ? strtoull(from, NULL, 10) : 0;
    all_after = from != NULL;
    raise(FAULT_BEGINS);
    begun = true;
    return program(count, arguments, environment);
}

/* The program begins with its main function. Before it, CUDA's runtime registers its kernels, and crashes where it has no memory for
 * that. */
int __libc_start_main(main_function given, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    int (*start)(main_function, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    program = given;
    return start(begin, count, arguments, init, fini, rtld_fini, stack_end);
}

#ifndef FAULTS_ONLY_MARK /* a sanitizer has its own allocator */

#ifdef FAULTS_SPARE_COUNTERS
/* When it ends, a program of `make coverage` writes a file of counters for each of its sources. That is thousands of calls, and
 * it crashes where one fails. It does so after the functions of `atexit`, but before those of this library's constructor. */
static void end(void)
{
    begun = false;
    raise(FAULT_ENDS);
}

static void prepare_end(void)
{
    static atomic_flag prepared = ATOMIC_FLAG_INIT;
    if (begun && !atomic_flag_test_and_set(&prepared))
        atexit(end);
}
#else
static void prepare_end(void)
{
}
#endif

static bool fails(void)
{
    static atomic_ullong count;
    prepare_end();
    if (!begun || first == 0)
        return false;
    unsigned long long number = atomic_fetch_add(&count, 1) + 1;
    if (number != first && !(all_after && number > first))
        return false;
    raise(FAULT_ALLOCATION_FAILS);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **at, size_t alignment, size_t size)
{
    int before = errno;
    void *made = memalign(alignment, size);
    errno = before;
    if (!made)
        return ENOMEM;
    *at = made;
    return 0;
}

#endif
