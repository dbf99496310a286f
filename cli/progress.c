#include "progress.h"
#include "terminal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <remat/remat.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_start(progress_display *progress, const remat_trainer *trainer, uint64_t first_step, bool quiet)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    *progress = (progress_display){.bar = !quiet && isatty(STDERR_FILENO),
                                   .quiet = quiet,
                                   .total = figures.total_steps,
                                   .samples = figures.batch_size * figures.accumulate,
                                   .bytes = figures.total_bytes,
                                   .first = first_step};
    /* At most about twenty lines, whatever the length. */
    progress->every = figures.total_steps > 20 ? (figures.total_steps + 19) / 20 : 1;
}

static void print_left(char *text, size_t room, double seconds)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, room, "%llu:%02llu:%02llu", (unsigned long long)(s / 3600), (unsigned long long)(s / 60 % 60),
                 (unsigned long long)(s % 60));
    else
        snprintf(text, room, "%02llu:%02llu", (unsigned long long)(s / 60), (unsigned long long)(s % 60));
}

/* Samples a second over the steps since it was last asked. */
static double take_speed(progress_display *progress)
{
    if (progress->recent_steps && progress->recent_seconds > 0)
        progress->speed = (double)progress->recent_steps * (double)progress->samples / progress->recent_seconds;
    progress->recent_steps = 0;
    progress->recent_seconds = 0;
    return progress->speed;
}

static void draw_bar(progress_display *progress, const remat_step_result *result)
{
    char left[32] = "", size[REMAT_SIZE_TEXT], text[256], bar[64] = "";
    double speed = progress->recent_seconds >= 1 || progress->speed == 0 ? take_speed(progress) : progress->speed;
    double share = progress->total ? (double)result->step / (double)progress->total : 0;
    if (progress->total && speed > 0)
        print_left(left, sizeof left, (double)(progress->total - result->step) * (double)progress->samples / speed);
    int written = snprintf(text, sizeof text, " step %llu/%llu  loss %.4f  %.1f samples/s  %s  %s left",
                           (unsigned long long)result->step, (unsigned long long)progress->total, result->loss, speed,
                           remat_size_print(progress->bytes, size), left);
    int width = terminal_columns(STDERR_FILENO);
    int room = written > 0 && width - 14 > written ? width - written - 4 : 0;
    if (room > 40)
        room = 40;
    for (int i = 0; i < room; i++)
        bar[i] = (double)i < share * room ? '#' : '.';
    if (room)
        fprintf(stderr, "\r[%s]%s\033[K", bar, text);
    else
        fprintf(stderr, "\r%.*s\033[K", width - 1, text + 1);
    fflush(stderr);
}

void progress_step(progress_display *progress, const remat_step_result *result)
{
    if (progress->quiet)
        return;
    double now = seconds_now();
    progress->recent_steps++;
    progress->recent_seconds += result->seconds;
    if (progress->bar) {
        if (now - progress->drawn < 0.1 && result->step != progress->total)
            return;
        progress->drawn = now;
        draw_bar(progress, result);
    } else if (result->step == progress->first + 1 || result->step % progress->every == 0 ||
               result->step == progress->total) {
        fprintf(stderr, "step %llu/%llu  loss %.6f  rate %.3g  %.1f samples/s\n", (unsigned long long)result->step,
                (unsigned long long)progress->total, result->loss, result->learning_rate, take_speed(progress));
    }
}

void progress_validation(progress_display *progress, uint64_t step, const remat_validation_result *result)
{
    if (progress->quiet)
        return;
    if (progress->bar)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "step %llu  validation loss %.6f", (unsigned long long)step, result->loss);
    if (!isnan(result->accuracy))
        fprintf(stderr, "  accuracy %.2f %%", 100 * result->accuracy);
    fputc('\n', stderr);
}

void progress_end(progress_display *progress)
{
    if (progress->bar)
        fputc('\n', stderr);
}
