/* How fast the GEMM is on the shapes of training, against what the processor could do at best and, where their
 * shared libraries are installed, against the GEMMs of oneDNN and OpenBLAS.
 *
 *   bench_gemm [THREADS [PART]]      default: 2 threads, all shapes; PART: only shapes with this text in their name
 *   bench_gemm halves [THREADS [PART [ISA]]]   the same shapes in bf16, with every instruction set of this processor,
 *                                       or with one
 *   bench_gemm blocks [PART [ISA]]   how fast each shape is in blocks of several sizes, and in those that
 *                                       src/backend/cpu/fast_gemm_table.c has for it; ISA: avx512, avx2 or portable */
#include "measure.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backend/cpu/fast_gemm_table.h"

/* ---- the peak: multiply-adds that wait for nothing but themselves ---- */

/* Operations a second of all threads together; the best of several tries. */
static double measure_peak(const kernel_table *table, const kernel_run *run)
{
    double best = 0;
    for (int i = 0; i < 7; i++) {
        double began = measure_now(), work = table->multiply_adds(run, 2000000);
        double rate = work / (measure_now() - began);
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- the others ---- */

typedef int (*dnnl_sgemm_function)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                                   int64_t, float, float *, int64_t);
typedef void (*cblas_sgemm_function)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                                     float *, int);

typedef struct rivals {
    dnnl_sgemm_function dnnl;
    cblas_sgemm_function openblas;
} rivals;

static void *find(const char *const *libraries, const char *symbol)
{
    for (; *libraries; libraries++) {
        void *library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
        void *found = library ? dlsym(library, symbol) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

static rivals find_rivals(void)
{
    static const char *const dnnl[] = {"libdnnl.so.3", "libdnnl.so.2", NULL};
    static const char *const openblas[] = {"libopenblas.so.0", "libopenblas.so", NULL};
    rivals found;
    *(void **)&found.dnnl = find(dnnl, "dnnl_sgemm");
    *(void **)&found.openblas = find(openblas, "cblas_sgemm");
    return found;
}

/* ---- shapes ---- */

typedef enum kind { FORWARD, INPUT, WEIGHT, WEIGHT_ADD } kind;
static const char *const kind_names[] = {"Y = X W'", "dX = dY W", "dW = dY' X", "dW += dY' X"};

typedef struct shape {
    const char *name;
    kind kind;
    size_t rows, in, out; /* of a layer: X is rows x in, W is out x in, Y is rows x out */
} shape;

#define LAYER(name, rows, in, out)                                                               \
    {name, FORWARD, rows, in, out}, {name, INPUT, rows, in, out}, {name, WEIGHT, rows, in, out}, \
    {                                                                                            \
        name, WEIGHT_ADD, rows, in, out                                                          \
    }
static const shape shapes[] = {
    LAYER("gpt384 qkv", 1024, 384, 1152), LAYER("gpt384 project", 1024, 384, 384),
    LAYER("gpt384 up", 1024, 384, 1536),  LAYER("gpt384 down", 1024, 1536, 384),
    LAYER("gpt384 head", 256, 384, 8192), LAYER("gpt768 qkv", 1024, 768, 2304),
    LAYER("gpt768 up", 1024, 768, 3072),  LAYER("gpt768 down", 1024, 3072, 768),
    LAYER("mlp wide", 2048, 1024, 1024),  LAYER("mlp small", 128, 1024, 1024),
    LAYER("mlp first", 128, 784, 1024),   LAYER("mlp last", 128, 1024, 10),
    LAYER("mlp odd", 301, 777, 333),      LAYER("mlp last wide", 2048, 1024, 10),
    LAYER("conv hidden", 32, 1568, 64),   LAYER("conv last", 32, 64, 10),
    LAYER("one attention", 256, 64, 256), /* of a head: scores; gradients of queries and of keys */
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static op_gemm gemm_of(const shape *s, float *x, float *y, float *z)
{
    op_gemm p = {.a = {x, REMAT_FP32}, .b = {y, REMAT_FP32}, .c = {z, REMAT_FP32}};
    size_t sizes[3][3] = {{s->rows, s->out, s->in}, {s->rows, s->in, s->out}, {s->out, s->in, s->rows}};
    const size_t *size = sizes[s->kind == WEIGHT_ADD ? WEIGHT : s->kind];
    p.m = size[0];
    p.n = size[1];
    p.k = size[2];
    p.transpose_a = s->kind >= WEIGHT;
    p.transpose_b = s->kind == FORWARD;
    p.accumulate = s->kind == WEIGHT_ADD;
    p.lda = p.transpose_a ? p.m : p.k;
    p.ldb = p.transpose_b ? p.k : p.n;
    p.ldc = p.n;
    return p;
}

static void run_dnnl(const rivals *others, const op_gemm *p)
{
    others->dnnl(p->transpose_a ? 'T' : 'N', p->transpose_b ? 'T' : 'N', (int64_t)p->m, (int64_t)p->n, (int64_t)p->k,
                 1.0f, p->a.at, (int64_t)p->lda, p->b.at, (int64_t)p->ldb, p->accumulate ? 1.0f : 0.0f, p->c.at,
                 (int64_t)p->ldc);
}

static void run_openblas(const rivals *others, const op_gemm *p)
{
    others->openblas(101, p->transpose_a ? 112 : 111, p->transpose_b ? 112 : 111, (int)p->m, (int)p->n, (int)p->k, 1.0f,
                     p->a.at, (int)p->lda, p->b.at, (int)p->ldb, p->accumulate ? 1.0f : 0.0f, p->c.at, (int)p->ldc);
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Operations a second of ours, oneDNN and OpenBLAS, the median of runs in turns; 0 where there is none. */
static void measure_shape(const kernel_run *run, const rivals *others, const op_gemm *p, double rates[3])
{
    kernel_function product = kernel_find(kernels_fast(), OP_gemm, "fff---")->run;
    enum { RUNS = 15 };
    double seconds[3][RUNS], work = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    int repeats = 1 + (int)(4e8 / work); /* several milliseconds each */
    for (int i = 0; i < RUNS; i++) {
        for (int who = 0; who < 3; who++) {
            double began = measure_now();
            for (int repeat = 0; repeat < repeats; repeat++) {
                if (who == 0)
                    product(run, p);
                else if (who == 1 && others->dnnl)
                    run_dnnl(others, p);
                else if (who == 2 && others->openblas)
                    run_openblas(others, p);
            }
            seconds[who][i] = measure_now() - began;
        }
    }
    for (int who = 0; who < 3; who++) {
        qsort(seconds[who], RUNS, sizeof(double), compare);
        rates[who] = work * repeats / seconds[who][RUNS / 2];
    }
    rates[1] = others->dnnl ? rates[1] : 0;
    rates[2] = others->openblas ? rates[2] : 0;
}

static float *filled(size_t count, uint64_t seed)
{
    remat_random stream = remat_random_stream(seed, 0, 0);
    size_t page = (size_t)2 << 20, bytes = (count * sizeof(float) + page - 1) / page * page;
    float *values = aligned_alloc(page, bytes);
    madvise(values, bytes, MADV_HUGEPAGE); /* as the arena of a training does */
    for (size_t i = 0; i < count; i++)
        values[i] = (float)remat_random_below(&stream, i, 2001) * 1e-3f - 1.0f;
    return values;
}

static int compare_gemms(int threads, const char *wanted)
{
    const kernel_table *table = kernels_fast();
    const size_t most = (size_t)8192 * 1024;
    char text[16];
    snprintf(text, sizeof text, "%d", threads);
    setenv("OMP_NUM_THREADS", text, 1); /* the rivals read it when they are loaded */
    kernel_run run = {threads, aligned_alloc(64, table->scratch_bytes * (size_t)threads)};
    rivals others = find_rivals();
    float *x = filled(most, 1), *y = filled(most, 2), *z = filled(most, 3);
    double peak = measure_peak(table, &run);
    printf("%s, %d threads, peak %.1f GFLOP/s\n", table->name, threads, peak * 1e-9);
    printf("%-15s %-12s %5s %5s %5s %8s %7s %8s %8s\n", "", "", "m", "n", "k", "GFLOP/s", "of peak", "oneDNN",
           "OpenBLAS");
    for (size_t i = 0; i < SHAPES; i++) {
        double rates[3];
        op_gemm p = gemm_of(&shapes[i], x, y, z);
        if (!strstr(shapes[i].name, wanted))
            continue;
        measure_shape(&run, &others, &p, rates);
        printf("%-15s %-12s %5zu %5zu %5zu %8.1f %6.1f%% %8.1f %8.1f\n", shapes[i].name, kind_names[shapes[i].kind],
               p.m, p.n, p.k, rates[0] * 1e-9, 100.0 * rates[0] / peak, rates[1] * 1e-9, rates[2] * 1e-9);
    }
    free(run.scratch);
    free(x);
    free(y);
    free(z);
    return 0;
}

/* ---- bf16 ---- */

/* As a layer in bf16 has them: X, Y and their gradients in bf16, the weights and their gradient in fp32. */
static op_gemm half_gemm_of(const shape *s, bool rounds_once, float *x, float *y, float *z)
{
    op_gemm p = gemm_of(s, x, y, z);
    p.a.type = REMAT_BF16;
    if (s->kind >= WEIGHT)
        p.b.type = REMAT_BF16;
    else if (rounds_once || p.k <= OPERATION_K_BLOCK)
        p.c.type = REMAT_BF16;
    return p;
}

static double measure_halves(const kernel_table *table, const kernel_run *run, const op_gemm *p)
{
    enum { RUNS = 7 };
    char types[] = "bff---";
    double seconds[RUNS], work = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    types[1] = p->b.type == REMAT_BF16 ? 'b' : 'f';
    types[2] = p->c.type == REMAT_BF16 ? 'b' : 'f';
    kernel_function product = kernel_find(table, OP_gemm, types)->run;
    int repeats = 1 + (int)(4e8 / work);
    for (int i = 0; i < RUNS; i++) {
        double began = measure_now();
        for (int repeat = 0; repeat < repeats; repeat++)
            product(run, p);
        seconds[i] = measure_now() - began;
    }
    return work * repeats / measure_median(seconds, RUNS);
}

/* A line for each shape: GFLOP/s of every instruction set of this processor. */
static int compare_halves(int threads, const char *wanted, const char *set)
{
    const kernel_table *tables[8] = {NULL};
    for (size_t t = 0, count = 0; kernels_available()[t]; t++)
        if (strlen(set) == 0 || strcmp(kernels_available()[t]->name, set) == 0)
            tables[count++] = kernels_available()[t];
    const size_t most = (size_t)8192 * 1024;
    kernel_run run = {threads, aligned_alloc(64, FAST_SCRATCH_BYTES * (size_t)threads)};
    float *x = filled(most, 1), *y = filled(most, 2), *z = filled(most, 3);
    memset(x, 0, most * sizeof *x); /* no values that are not finite, in either type */
    memset(y, 0, most * sizeof *y);
    memset(z, 0, most * sizeof *z);
    printf("bf16, %d threads, GFLOP/s\n%-46s", threads, "");
    for (size_t t = 0; tables[t]; t++)
        printf(" %10s", tables[t]->name);
    printf("\n");
    for (size_t i = 0; i < SHAPES; i++) {
        op_gemm p = gemm_of(&shapes[i], x, y, z);
        if (!strstr(shapes[i].name, wanted))
            continue;
        printf("%-15s %-12s %5zu %5zu %5zu", shapes[i].name, kind_names[shapes[i].kind], p.m, p.n, p.k);
        for (size_t t = 0; tables[t]; t++) {
            p = half_gemm_of(&shapes[i], tables[t]->multiplies_halves, x, y, z);
            printf(" %10.1f", 1e-9 * measure_halves(tables[t], &run, &p));
        }
        printf("\n");
    }
    free(run.scratch);
    free(x);
    free(y);
    free(z);
    return 0;
}

/* ---- blocks ---- */

static const gemm_isa isas[] = {GEMM_ISAS(GEMM_ISA_ROW)};

static const gemm_blocks candidates[] = {
    {16, 576, false},  {32, 576, false},  {64, 576, false}, {96, 576, false}, {128, 576, false},
    {192, 576, false}, {128, 672, false}, {64, 384, false}, {96, 384, false}, {64, 192, false},
    {64, 768, false},  {32, 576, true},   {64, 576, true},  {128, 576, true}, {128, 672, true},
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

/* Of this thread alone: what else runs on the machine hardly counts. */
static double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Operands taken from one place after another of so many values, as in training: they are in no near cache. */
enum { POOL = 48 << 20 };

/* Seconds of one call in each of the candidates' blocks and, last, in the table's: medians of runs in turns. */
static void measure_blocks(const gemm_isa *with, const kernel_run *run, op_gemm p, float *pool,
                           double seconds[CANDIDATES + 1])
{
    enum { RUNS = 15, WHOLE_LINES = 64 };
    double all[CANDIDATES + 1][RUNS], work = 2.0 * (double)p.m * (double)p.n * (double)p.k;
    int repeats = 1 + (int)(2e8 / work);
    size_t a = p.m * p.k / WHOLE_LINES + 1, b = p.k * p.n / WHOLE_LINES + 1, c = p.m * p.n / WHOLE_LINES + 1;
    size_t places = POOL / WHOLE_LINES / (a + b + c), place = 0;
    gemm_blocks chosen = with->blocks_for(&p);
    for (int i = 0; i < RUNS; i++) {
        for (int turn = 0; turn <= CANDIDATES; turn++) {
            int who = (turn + i) % (CANDIDATES + 1);
            double began = cpu_now();
            for (int repeat = 0; repeat < repeats; repeat++) {
                float *at = pool + place * (a + b + c) * WHOLE_LINES;
                place = (place + 1) % places;
                p.a.at = at;
                p.b.at = at + a * WHOLE_LINES;
                p.c.at = at + (a + b) * WHOLE_LINES;
                with->in_blocks(run, &p, who == CANDIDATES ? &chosen : &candidates[who]);
            }
            all[who][i] = (cpu_now() - began) / repeats;
        }
    }
    for (int who = 0; who <= CANDIDATES; who++)
        seconds[who] = measure_median(all[who], RUNS);
}

/* A line for each shape: how many percent longer than the best each of the candidates takes, and the table's choice. */
static int compare_blocks(const char *wanted, const char *name)
{
    const gemm_isa *with = NULL;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        with = strcmp(isas[i].name, name) == 0 ? &isas[i] : with;
    if (!with) {
        fprintf(stderr, "bench_gemm: no instruction set %s\n", name);
        return 1;
    }
    kernel_run run = {1, aligned_alloc(64, FAST_SCRATCH_BYTES)};
    float *pool = filled(POOL, 1);
    printf("%s: percent above the time in the best blocks; + where a row-wise A is packed\n%-40s", name, "");
    for (int i = 0; i < CANDIDATES; i++)
        printf(" %3zux%zu%c", candidates[i].rows, candidates[i].columns, candidates[i].pack_a ? '+' : ' ');
    printf("   table\n");
    for (size_t i = 0; i < SHAPES; i++) {
        double seconds[CANDIDATES + 1], best = 0;
        op_gemm p = gemm_of(&shapes[i], NULL, NULL, NULL);
        gemm_blocks chosen = with->blocks_for(&p);
        if (!strstr(shapes[i].name, wanted) || shapes[i].kind == WEIGHT_ADD)
            continue;
        measure_blocks(with, &run, p, pool, seconds);
        for (int who = 0; who <= CANDIDATES; who++)
            best = best == 0 || seconds[who] < best ? seconds[who] : best;
        printf("%-13s %-10s %4zu %4zu %4zu", shapes[i].name, kind_names[shapes[i].kind], p.m, p.n, p.k);
        for (int who = 0; who <= CANDIDATES; who++)
            printf("%s %7.1f ", who == CANDIDATES ? " " : "", 100 * (seconds[who] / best - 1));
        printf("%zux%zu%s, %.1f GFLOP/s\n", chosen.rows, chosen.columns, chosen.pack_a ? "+" : "",
               2e-9 * (double)p.m * (double)p.n * (double)p.k / seconds[CANDIDATES]);
    }
    free(run.scratch);
    free(pool);
    return 0;
}

/* The best set that has fp32 of its own. */
static const char *best_isa(void)
{
    const kernel_table *const *table = kernels_available();
    while ((*table)->multiplies_halves)
        table++;
    return (*table)->name;
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "blocks") == 0)
        return compare_blocks(count > 2 ? arguments[2] : "", count > 3 ? arguments[3] : best_isa());
    if (count > 1 && strcmp(arguments[1], "halves") == 0)
        return compare_halves(count > 2 ? atoi(arguments[2]) : 2, count > 3 ? arguments[3] : "",
                              count > 4 ? arguments[4] : "");
    return compare_gemms(count > 1 ? atoi(arguments[1]) : 2, count > 2 ? arguments[2] : "");
}
