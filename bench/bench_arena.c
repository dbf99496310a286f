/* The arena: time, height and bound for the published instances, where they lie beside the project, and for lifetimes as
 * training has them. */
#include "measure.h"

#include "arena/lifetimes_csv.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the processor: the published times are, too, and other programs on the machine do not count. */
static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_head(const char *title)
{
    printf("%-34s %9s %9s %16s %16s %9s\n", title, "tensors", "CPU s", "height", "lower bound", "above %");
}

static void place(remat_context *context, const char *name, remat_lifetime *rows, size_t count,
                  const remat_arena_options *options)
{
    remat_arena_result result;
    double start = cpu_now();
    remat_status status = remat_arena_place(context, rows, count, options, &result);
    double took = cpu_now() - start;
    if (status != REMAT_INFEASIBLE)
        measure_must(context, status);
    measure_must(context, remat_arena_check(context, rows, count, options->alignment, result.height));
    double above = result.lower_bound ? 100.0 * ((double)result.height / (double)result.lower_bound - 1) : 0.0;
    printf("%-34s %9zu %9.3f %16llu %16llu %9.3f%s\n", name, count, took, (unsigned long long)result.height,
           (unsigned long long)result.lower_bound, above,
           status == REMAT_INFEASIBLE            ? "  capacity missed"
           : result.height == result.lower_bound ? "  optimal"
                                                 : "");
    fflush(stdout);
}

/* ---- published instances ---- */

static void run_file(remat_context *context, const char *path, uint64_t capacity)
{
    remat_arena_options options;
    remat_lifetime_table *table;
    remat_arena_options_init(&options);
    options.capacity = capacity;
    FILE *stream = fopen(path, "r");
    if (!stream)
        exit(1);
    measure_must(context, remat_lifetime_table_read(context, stream, path, &table));
    fclose(stream);
    place(context, strrchr(path, '/') + 1, table->rows, table->count, &options);
    remat_lifetime_table_destroy(table);
}

static void run_files(remat_context *context, const char *title, uint64_t capacity)
{
    static const char pattern[] = "../shared/data/minimalloc/*.csv";
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        printf("%s: there is no %s\n", title, pattern);
        return;
    }
    print_head(title);
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_file(context, found.gl_pathv[i], capacity);
    globfree(&found);
    putchar('\n');
}

/* ---- training ---- */

typedef struct maker {
    remat_random stream;
    uint64_t position;
    remat_lifetime *rows;
    size_t count;
} maker;

static uint64_t draw(maker *to, uint64_t below)
{
    return remat_random_below(&to->stream, to->position++, below);
}

static void add(maker *to, uint64_t lower, uint64_t upper, uint64_t size)
{
    to->rows[to->count++] = (remat_lifetime){lower, upper, size, 0};
}

/* Layer i runs forward at time i and backward at 2n - 1 - i; what it saves lives from one to the other. */
static void make_saved(maker *to, size_t count)
{
    for (uint64_t i = 0; i < count; i++)
        add(to, i, 2 * count - i, 4096 + draw(to, 1 << 20));
}

/* With a gradient that goes from layer to layer and a workspace a layer. `every`: only each so many-th is saved. */
static void make_chain(maker *to, size_t count, uint64_t every)
{
    uint64_t n = count / 3;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = 4096 + draw(to, 1 << 20), back = 2 * n - 1 - i;
        add(to, i, i % every == 0 ? back + 1 : i + 2, size);
        add(to, back, back + 2, size);
        add(to, i, i + 1, 1024 + draw(to, 1 << 18));
    }
}

/* Nothing like training, but what an inference graph or a tape of small operations looks like. */
static void make_short(maker *to, size_t count)
{
    for (uint64_t i = 0; i < count; i++)
        add(to, i, i + 1 + draw(to, 40), 64 + draw(to, 65536));
}

static void run_made(remat_context *context, int kind, size_t count, uint64_t effort)
{
    static const char *const names[] = {"saved states", "with gradients, workspaces", "the same, checkpointed",
                                        "short lives"};
    maker to = {.stream = remat_random_stream(7, 0, 0), .rows = calloc(count, sizeof *to.rows)};
    remat_arena_options options;
    uint64_t root = 1;
    if (!to.rows)
        exit(1);
    while (root * root < count / 3)
        root++;
    if (kind == 0)
        make_saved(&to, count);
    else if (kind == 3)
        make_short(&to, count);
    else
        make_chain(&to, count, kind == 1 ? 1 : root);
    remat_arena_options_init(&options);
    options.alignment = 64;
    options.effort = effort;
    place(context, names[kind], to.rows, to.count, &options);
    free(to.rows);
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    run_files(context, "within 1048576", 1048576);
    if (!quick)
        run_files(context, "as low as possible", 0);
    for (int search = 0; search < (quick ? 1 : 2); search++) {
        print_head(search ? "made, effort 50000" : "made, without search");
        for (int kind = 0; kind < 4; kind++)
            for (size_t count = 1000; count <= (quick ? 10000u : 100000u); count *= 10)
                run_made(context, kind, count, search ? 50000 : 0);
        putchar('\n');
    }
    remat_context_destroy(context);
    return 0;
}
