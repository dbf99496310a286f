#include "waiting.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    const char *what; /* NULL: nothing to wait for */
    bool running, drawn;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void erase(void)
{
    if (line.drawn)
        fputs("\r\033[K", stderr);
    line.drawn = false;
}

static void *draw(void *unused)
{
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&line.lock);
    for (unsigned seconds = 1; line.what; seconds++) {
        next.tv_sec++;
        while (line.what && pthread_cond_timedwait(&line.changed, &line.lock, &next) == 0)
            ; /* what is waited for has changed */
        if (!line.what)
            break;
        fprintf(stderr, "\r%s, %u s\033[K", line.what, seconds);
        fflush(stderr);
        line.drawn = true;
    }
    erase();
    pthread_mutex_unlock(&line.lock);
    return unused;
}

/* Without a thread there is no line, and nothing else is lost. */
static void start(void)
{
    pthread_attr_t small;
    if (pthread_attr_init(&small) != 0)
        return;
    if (pthread_attr_setstacksize(&small, STACK_BYTES) == 0)
        line.running = pthread_create(&line.thread, &small, draw, NULL) == 0;
    pthread_attr_destroy(&small);
}

void waiting_for(const char *what)
{
    if (!isatty(STDERR_FILENO))
        return;
    pthread_mutex_lock(&line.lock);
    line.what = what;
    if (!line.running)
        start();
    pthread_mutex_unlock(&line.lock);
}

void waiting_end(void)
{
    if (!line.running)
        return;
    pthread_mutex_lock(&line.lock);
    line.what = NULL;
    pthread_cond_signal(&line.changed);
    pthread_mutex_unlock(&line.lock);
    pthread_join(line.thread, NULL);
    line.running = false;
}

void waiting_clear(void)
{
    pthread_mutex_lock(&line.lock);
    erase();
    pthread_mutex_unlock(&line.lock);
}
