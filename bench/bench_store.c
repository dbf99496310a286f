/* How fast activations are packed into 16 bits, hashed, and written to and read from disk; whether disk and compute
 * overlap; and what the simple checkpointer itself costs. Usage: bench_store [DIRECTORY] (default /tmp) */
#include <remat/remat.h>
#include <remat/checkpointer.h>

#include "store/chunk_hash.h"
#include "store/disk_store.h"
#include "base/half.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void must(remat_context *context, remat_status status)
{
    if (status == REMAT_OK)
        return;
    fprintf(stderr, "bench_store: %s\n", remat_context_message(context));
    exit(1);
}

/* ---- conversions and hashes: GB of fp32 a second ---- */

typedef struct memory_case {
    const half_kernels *kernels;
    float *floats;
    uint16_t *halves;
    uint64_t *hashes;
    size_t count;
} memory_case;

static void pack_fp16(const memory_case *c)
{
    half_pack(c->kernels, REMAT_FP16, false, c->floats, c->halves, c->count);
}

static void pack_bf16(const memory_case *c)
{
    half_pack(c->kernels, REMAT_BF16, false, c->floats, c->halves, c->count);
}

static void unpack_fp16(const memory_case *c)
{
    half_unpack(c->kernels, REMAT_FP16, c->halves, c->floats, c->count);
}

static void unpack_bf16(const memory_case *c)
{
    half_unpack(c->kernels, REMAT_BF16, c->halves, c->floats, c->count);
}

static void copy(const memory_case *c)
{
    memcpy(c->halves, c->floats, c->count * 2);
}

static void make_hashes(const memory_case *c)
{
    chunk_hash_make(c->floats, c->count * 4, c->hashes);
}

static double rate(void (*work)(const memory_case *c), const memory_case *c)
{
    double best = 0;
    size_t repeats = ((size_t)1 << 26) / c->count;
    for (int round = 0; round < 5; round++) {
        double began = now();
        for (size_t i = 0; i < repeats; i++) {
            work(c);
            __asm__ volatile("" ::: "memory");
        }
        double gb = 4e-9 * (double)(c->count * repeats) / (now() - began);
        best = gb > best ? gb : best;
    }
    return best;
}

static void measure_memory(size_t count)
{
    memory_case c = {NULL, malloc(count * 4), malloc(count * 2), malloc(count), count};
    if (!c.floats || !c.halves || !c.hashes)
        exit(5);
    for (size_t i = 0; i < count; i++)
        c.floats[i] = (float)(i % 60000) * 1e-2f;
    memset(c.halves, 0, count * 2);
    printf("%zu KiB of fp32, GB/s of it\n", count * 4 / 1024);
    for (size_t i = 0; (c.kernels = half_kernels_list(i)); i++)
        printf("  %-7s  to fp16 %6.1f  from fp16 %6.1f  to bf16 %6.1f  from bf16 %6.1f\n", c.kernels->name,
               rate(pack_fp16, &c), rate(unpack_fp16, &c), rate(pack_bf16, &c), rate(unpack_bf16, &c));
    printf("  hashes of 4 KiB chunks %6.1f   (half of it copied %6.1f)\n", rate(make_hashes, &c), rate(copy, &c));
    free(c.floats);
    free(c.halves);
    free(c.hashes);
}

/* ---- disk ---- */

enum { BLOCKS = 48, BLOCK_BYTES = 16 << 20, BUFFERS = 4 };

static disk_store *make_store(remat_context *context, const char *directory)
{
    disk_slot slots[BLOCKS];
    for (uint64_t i = 0; i < BLOCKS; i++)
        slots[i] = (disk_slot){i * BLOCK_BYTES, BLOCK_BYTES};
    disk_store_options options = {.directory = directory, .slots = slots, .slot_count = BLOCKS};
    disk_store *store;
    must(context, disk_store_create(context, &options, &store));
    return store;
}

/* Work that needs the processor and not the memory, always the same for the same `amount`. */
static void compute(uint64_t amount)
{
    static volatile double sink;
    double value = 1;
    for (uint64_t i = 0; i < amount; i++)
        value = value * 1.0000001 + 1e-9;
    sink = value;
    (void)sink;
}

static double amount_per_second(void)
{
    const uint64_t amount = 50000000;
    double began = now();
    compute(amount);
    return (double)amount / (now() - began);
}

/* All blocks out and back in, as a forward and a backward pass do it, with `work` to do for each. */
static double run_disk(remat_context *context, disk_store *store, char *const buffers[BUFFERS], uint64_t work)
{
    double began = now();
    for (size_t i = 0; i < BLOCKS; i++) {
        char *buffer = buffers[i % BUFFERS];
        if (store && i >= BUFFERS)
            must(context, disk_store_wait(store, i - BUFFERS));
        compute(work);
        memset(buffer, (int)i, 64);
        if (store)
            must(context, disk_store_put(store, i, buffer, BLOCK_BYTES));
    }
    if (store)
        must(context, disk_store_drain(store));
    for (size_t ahead = 0; store && ahead < BUFFERS - 1; ahead++)
        must(context, disk_store_prefetch(store, BLOCKS - 1 - ahead, buffers[ahead], BLOCK_BYTES));
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t block = BLOCKS - 1 - i, ahead = i + BUFFERS - 1;
        if (store && ahead < BLOCKS)
            must(context, disk_store_prefetch(store, BLOCKS - 1 - ahead, buffers[ahead % BUFFERS], BLOCK_BYTES));
        if (store)
            must(context, disk_store_get(store, block, buffers[i % BUFFERS], BLOCK_BYTES));
        compute(work);
    }
    return now() - began;
}

/* The least of three: other programs only ever add. */
static double best_run(remat_context *context, disk_store *store, char *const buffers[BUFFERS], uint64_t work,
                       remat_store_counters *counters)
{
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        if (store)
            disk_store_reset(store);
        double took = run_disk(context, store, buffers, work);
        if (took < best && store)
            disk_store_count(store, counters);
        best = took < best ? took : best;
    }
    return best;
}

static void measure_overlap(remat_context *context, disk_store *store, char *const buffers[BUFFERS], double share,
                            double alone)
{
    remat_store_counters counters = {0};
    uint64_t work = (uint64_t)(amount_per_second() * share * alone / (2 * BLOCKS));
    double without = best_run(context, NULL, buffers, work, &counters);
    double with = best_run(context, store, buffers, work, &counters);
    printf("  compute %.1f times the disk's time: %.2f s without, %.2f s with (%+.1f %%); waited %.2f s, "
           "in I/O %.2f s; %s\n",
           share, without, with, 100 * (with / without - 1), 1e-9 * (double)counters.wait_ns,
           1e-9 * (double)counters.io_ns, counters.kept_up ? "kept up" : "did not keep up");
}

static void measure_disk(const char *directory)
{
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(5);
    char *buffers[BUFFERS];
    for (size_t i = 0; i < BUFFERS; i++) {
        buffers[i] = malloc(BLOCK_BYTES);
        if (!buffers[i])
            exit(5);
        memset(buffers[i], (int)i, BLOCK_BYTES);
    }
    disk_store *store = make_store(context, directory);
    remat_store_counters counters;
    double first = run_disk(context, store, buffers, 0), alone = best_run(context, store, buffers, 0, &counters);
    double gb = 2e-9 * BLOCKS * (double)BLOCK_BYTES;
    printf("\ndisk in %s: %d blocks of %d MiB out and in, %.2f GB/s the first time, %.2f GB/s again\n", directory,
           BLOCKS, BLOCK_BYTES >> 20, gb / first, gb / alone);
    static const double shares[] = {0.5, 1, 2, 4, 8};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        measure_overlap(context, store, buffers, shares[i], alone);
    disk_store_destroy(store);
    for (size_t i = 0; i < BUFFERS; i++)
        free(buffers[i]);
    remat_context_destroy(context);
}

/* ---- the checkpointer ---- */

static remat_status do_little(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                              size_t output_count)
{
    (void)user;
    (void)layer;
    output[0] = input[0] + (float)(input_count + output_count);
    return REMAT_OK;
}

static void measure_checkpointer(void)
{
    enum { LAYERS = 10000, FLOATS = 16 };
    static remat_checkpointer_layer layers[LAYERS];
    float input[FLOATS] = {0}, output[FLOATS];
    for (size_t i = 0; i < LAYERS; i++)
        layers[i] = (remat_checkpointer_layer){i, FLOATS};
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        exit(5);
    remat_checkpointer_options options;
    remat_checkpointer_options_init(&options);
    options.keep_every_n = 100;
    options.max_kept = LAYERS;
    remat_checkpointer *cp;
    must(context, remat_checkpointer_create(context, &options, &cp));
    double best = 1;
    for (int round = 0; round < 20; round++) {
        double began = now();
        must(context, remat_checkpointer_forward(cp, layers, LAYERS, input, FLOATS, do_little, NULL, output));
        double took = (now() - began) / LAYERS;
        best = took < best ? took : best;
    }
    printf("\ncheckpointer: forward costs %.0f ns a layer besides the layer\n", best * 1e9);
    remat_checkpointer_destroy(cp);
    remat_context_destroy(context);
}

int main(int count, char **arguments)
{
    measure_memory((size_t)64 << 10);
    measure_memory((size_t)16 << 20);
    measure_checkpointer();
    measure_disk(count > 1 ? arguments[1] : "/tmp");
    return 0;
}
