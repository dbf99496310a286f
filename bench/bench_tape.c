/* What the tape itself costs, recomputation apart; what the disk store and the verify mode cost.
 *
 *   bench_tape [DIRECTORY]   where the disk store's file goes; default: the current directory */
#include "measure.h"

#include <remat/tape.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Time that this thread had a processor: other programs on the machine do not count. */
static double processor_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- layers with a given amount of work ---- */

typedef struct work {
    uint64_t rounds; /* of each callback */
    size_t bytes;    /* of input, output and state */
    bool fills;      /* whether it writes its results */
    volatile double sink;
} work;

static void spend(work *w, const void *input, void *output)
{
    double x = w->sink; /* which the compiler does not know */
    if (w->fills)
        memcpy(output, input, w->bytes);
    for (uint64_t i = 0; i < w->rounds; i++)
        x = x * 0.999 + 0.01;
    w->sink = x;
}

/* How many rounds take so long, on a processor of its own. */
static uint64_t rounds_for(double seconds)
{
    work w = {.rounds = 1000000};
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        double began = processor_now();
        spend(&w, NULL, NULL);
        double took = processor_now() - began;
        best = took < best ? took : best;
    }
    return (uint64_t)(seconds / best * 1e6);
}

static int forward(void *user, const remat_tape_call *call)
{
    spend(user, call->input, call->output);
    return 0;
}

static int backward(void *user, const remat_tape_call *call)
{
    spend(user, call->output_gradient, call->input_gradient);
    return 0;
}

static int loss(void *user, const remat_tape_call *call)
{
    work *w = user;
    if (w->fills)
        memcpy(call->input_gradient, call->input, w->bytes);
    return 0;
}

static remat_profile *chain(remat_context *context, size_t layers, size_t bytes, bool uneven)
{
    remat_profile *profile;
    measure_must(context, remat_profile_create(context, &profile));
    measure_must(context, remat_profile_set_input_bytes(profile, bytes));
    for (size_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = bytes + (uneven ? i * 2654435761u % 977 * 64 : 0);
        layer.output_bytes = bytes;
        layer.recompute_flops = 1;
        measure_must(context, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

typedef struct outcome {
    remat_tape_statistics figures; /* of the fastest run */
    double wall, processor;        /* the least of all runs: other programs use the machine, too */
    double planned;                /* seconds of create */
} outcome;

static remat_tape *make(remat_context *context, const remat_profile *profile, work *w,
                        const remat_tape_options *options, outcome *of)
{
    remat_tape_callbacks callbacks = {forward, backward, loss, w};
    remat_tape *tape;
    double began = measure_now();
    measure_must(context, remat_tape_create(context, profile, &callbacks, options, &tape));
    *of = (outcome){.wall = 1e9, .processor = 1e9, .planned = measure_now() - began};
    return tape;
}

static void run_once(remat_context *context, remat_tape *tape, const work *w, outcome *of)
{
    unsigned char *input = calloc(w->bytes, 1);
    double wall = measure_now(), processor = processor_now();
    measure_must(context, remat_tape_run(tape, input, NULL));
    wall = measure_now() - wall;
    processor = processor_now() - processor;
    if (wall < of->wall)
        remat_tape_get_statistics(tape, &of->figures);
    of->wall = wall < of->wall ? wall : of->wall;
    of->processor = processor < of->processor ? processor : of->processor;
    free(input);
}

static outcome measure(remat_context *context, const remat_profile *profile, work *w, const remat_tape_options *options,
                       int runs)
{
    outcome of;
    remat_tape *tape = make(context, profile, w, options, &of);
    for (int i = 0; i < runs; i++)
        run_once(context, tape, w, &of);
    remat_tape_destroy(tape);
    return of;
}

static double callbacks_of(const outcome *of)
{
    return (double)(of->figures.forwards + of->figures.recomputes + of->figures.backwards + 1);
}

/* ---- the tape itself ---- */

static void empty_steps(remat_context *context, const char *strategy, size_t layers, bool uneven)
{
    remat_profile *profile = chain(context, layers, 64, uneven);
    work w = {.bytes = 64};
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.strategy = strategy;
    outcome of = measure(context, profile, &w, &options, 7);
    printf("empty callbacks, %-11s %6zu %s layers: %6.1f ns a callback (target 200); planned in %.3f s; arena %llu "
           "bytes, peak %llu, bookkeeping %llu\n",
           strategy, layers, uneven ? "uneven" : "equal ", of.processor * 1e9 / callbacks_of(&of), of.planned,
           (unsigned long long)of.figures.arena_bytes, (unsigned long long)of.figures.peak_bytes,
           (unsigned long long)of.figures.bookkeeping_bytes);
    remat_profile_destroy(profile);
}

/* The same work in plain loops, everything kept by hand: what there is to compare with. */
static double plain_loops(work *w, size_t layers)
{
    unsigned char *states = calloc(layers + 1, w->bytes), *gradients = calloc(2, w->bytes);
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        double began = processor_now();
        for (size_t i = 0; i < layers; i++)
            spend(w, states + i * w->bytes, states + (i + 1) * w->bytes);
        for (size_t i = 0; i < layers; i++)
            spend(w, gradients + i % 2 * w->bytes, gradients + (i + 1) % 2 * w->bytes);
        double took = processor_now() - began;
        best = took < best ? took : best;
    }
    free(states);
    free(gradients);
    return best;
}

static void steps_of_100_us(remat_context *context)
{
    enum { LAYERS = 2000 };
    remat_profile *profile = chain(context, LAYERS, 4096, false);
    work w = {.rounds = rounds_for(100e-6), .bytes = 4096, .fills = true};
    double plain = plain_loops(&w, LAYERS);
    outcome of = measure(context, profile, &w, NULL, 5);
    printf("callbacks of 100 us: plain loops %.4f s, the tape %.4f s: %+.2f %% (target 2 %%)\n", plain, of.processor,
           100.0 * (of.processor / plain - 1.0));
    remat_profile_destroy(profile);
}

/* ---- the disk, and verifying ---- */

static void disk(remat_context *context, const char *directory, double seconds, size_t bytes)
{
    enum { LAYERS = 100 };
    remat_profile *profile = chain(context, LAYERS, bytes, false);
    work w = {.rounds = rounds_for(seconds), .bytes = bytes, .fills = true};
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.store = REMAT_TAPE_DISK;
    options.directory = directory;
    outcome memory, spilled;
    remat_tape *kept = make(context, profile, &w, NULL, &memory);
    remat_tape *on_disk = make(context, profile, &w, &options, &spilled);
    for (int i = 0; i < 5; i++) { /* in turns, so that other programs disturb both alike */
        run_once(context, kept, &w, &memory);
        run_once(context, on_disk, &w, &spilled);
    }
    double waited = (double)spilled.figures.store.wait_ns * 1e-9;
    printf("steps of %4.1f ms with %.0f MiB (%.0f MB/s each way): memory %.3f s in %llu bytes, disk %.3f s in %llu: "
           "%+.1f %% (target 10 %%); this thread's own time and its waiting %+.1f %%, waiting %.3f s; %s\n",
           seconds * 1e3, (double)bytes / 1048576.0, (double)bytes / 1e6 / seconds, memory.wall,
           (unsigned long long)memory.figures.arena_bytes, spilled.wall,
           (unsigned long long)spilled.figures.arena_bytes, 100.0 * (spilled.wall / memory.wall - 1.0),
           100.0 * ((spilled.processor + waited) / memory.processor - 1.0), waited,
           spilled.figures.store.kept_up ? "the disk kept up" : "the disk did not keep up");
    remat_tape_destroy(kept);
    remat_tape_destroy(on_disk);
    remat_profile_destroy(profile);
}

static void verify(remat_context *context)
{
    enum { LAYERS = 100, BYTES = 1 << 20 };
    remat_profile *profile = chain(context, LAYERS, BYTES, false);
    work w = {.rounds = rounds_for(2e-3), .bytes = BYTES, .fills = true};
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.strategy = "sqrt";
    for (int level = 0; level <= 2; level++) {
        options.verify = (remat_tape_verify)level;
        outcome of = measure(context, profile, &w, &options, 3);
        printf("verify level %d, sqrt, steps of 2 ms with 1 MiB: %.3f s, of which verifying %.2f %%\n", level,
               of.processor, 100.0 * (double)of.figures.verify_ns / (double)of.figures.total_ns);
    }
    remat_profile_destroy(profile);
}

int main(int count, char **arguments)
{
    const char *directory = count > 1 ? arguments[1] : ".";
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    empty_steps(context, "none", 100000, false);
    empty_steps(context, "sqrt", 100000, false);
    empty_steps(context, "revolve:50", 100000, false);
    empty_steps(context, "none", 10000, true);
    empty_steps(context, "sqrt", 10000, true);
    empty_steps(context, "revolve:50", 10000, true);
    steps_of_100_us(context);
    verify(context);
    disk(context, directory, 5e-3, 1 << 20);
    disk(context, directory, 5e-3, 4 << 20);
    disk(context, directory, 1e-3, 8 << 20);
    remat_context_destroy(context);
    return 0;
}
