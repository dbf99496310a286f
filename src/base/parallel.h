/* Loops that several threads share. The body of a loop is a function that runs over a range of it:
 *
 *     static void scale_range(const void *args, parallel_range range)
 *     {
 *         const op_scale *p = args;
 *         for (size_t i = range.begin; i < range.end; i++)
 *             ...
 *     }
 *     parallel_static(threads, p->count, scale_range, p);
 *
 * The calling thread takes its share, as thread 0. The other threads are workers, started when they are first needed and kept
 * for later loops. While nothing is to be done they spin for a moment and then sleep. Every caller has workers of its own
 * while its loop runs, so any number of threads may call these functions at once. Where the system refuses a thread, the
 * loop runs on fewer. A loop inside of a loop runs on the thread that reaches it. After fork(), the child starts workers of
 * its own. Workers block all signals. */
#ifndef REMAT_BASE_PARALLEL_H
#define REMAT_BASE_PARALLEL_H

#include <pthread.h>
#include <stddef.h>

/* Passes begin .. end - 1 of the loop, and the number of the thread that runs them: 0 .. threads - 1. */
typedef struct parallel_range {
    size_t begin, end;
    int thread;
} parallel_range;

typedef void parallel_part(const void *args, parallel_range range);

/* Every thread runs one range. The ranges follow each other in the order of the threads; their lengths differ by one at
 * most. */
void parallel_static(int threads, size_t count, parallel_part *part, const void *args);

/* Every thread takes the next `chunk` passes when it is done with the last. */
void parallel_dynamic(int threads, size_t count, size_t chunk, parallel_part *part, const void *args);

/* Starts the workers for loops on so many threads. Returns how many threads such a loop would have now, the calling one
 * included: 1 inside of a loop. */
int parallel_start(int threads);

/* The threads to use where nobody says how many: OMP_NUM_THREADS, else as many as there are processors for this process. */
int parallel_default_threads(void);

/* What starts a worker: pthread_create. Tests let it fail. */
extern int (*parallel_create_thread)(pthread_t *made, const pthread_attr_t *attributes, void *(*run)(void *),
                                     void *args);

#endif
