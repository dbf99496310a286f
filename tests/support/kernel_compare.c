#include "support/kernel_compare.h"

#include "support/device_kernels.h"

#include <math.h>

extern const kernel_table fast_table_portable;
#if defined(__x86_64__)
extern const kernel_table fast_table_avx2, fast_table_avx512;
#endif

const size_t KERNEL_SIZES[] = {1,  2,   3,   4,   5,    7,    8,    9,    12,    15,    16, 17, 23,
                               31, 32,  33,  47,  48,   49,   55,   63,   64,    65,    67, 70, 96,
                               97, 127, 129, 255, 1000, 4095, 4097, 4100, 16385, 40003, 0};

enum { MOST_OUTPUTS = 4 };
enum { MOST_THREADS = 8 };

/* The sets that multiply in bf16, best last. The library alone knows whether the system lets a process use them. */
static size_t add_tables_of_pairs(const kernel_table **to)
{
    size_t count = 0;
    while (kernels_available()[count]->multiplies_halves)
        count++;
    for (size_t i = 0; i < count; i++)
        to[i] = kernels_available()[count - 1 - i];
    return count;
}

const kernel_table *const *kernel_tables(void)
{
    static const kernel_table *tables[6];
    size_t count = 0;
    if (device_kernels()) {
        tables[0] = device_kernels();
        return tables;
    }
    tables[count++] = &fast_table_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tables[count++] = &fast_table_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        tables[count++] = &fast_table_avx512;
    count += add_tables_of_pairs(tables + count);
#endif
    tables[count] = NULL;
    return tables;
}

kernel_run kernel_run_open(const kernel_table *table, int threads)
{
    kernel_run run = {threads, NULL};
    if (table->scratch_bytes)
        assert_non_null(run.scratch = aligned_alloc(64, (size_t)threads * table->scratch_bytes));
    return run;
}

void kernel_run_close(kernel_run *run)
{
    free(run->scratch);
    run->scratch = NULL;
}

types_text types_of(operation op, const void *args)
{
    const tensor_ref *tensors = args;
    types_text text = {""};
    for (uint32_t i = 0; i < operation_table[op].tensors; i++)
        text.letters[i] = tensors[i].at ? dtype_traits_of(tensors[i].type)->letter : '-';
    return text;
}

void perform(const kernel_table *table, const kernel_run *run, operation op, const void *args)
{
    types_text types = types_of(op, args);
    if (table == device_kernels()) {
        device_perform(op, args);
        return;
    }
    const kernel_row *kernel = kernel_find(table, op, types.letters);
    if (!kernel)
        fail_msg("%s has no kernel for %s of %s", table->name, operation_table[op].name, types.letters);
    kernel->run(run, args);
}

test_random random_open(void)
{
    uint64_t seed = test_seed();
    print_message("seed %llu\n", (unsigned long long)seed);
    return (test_random){seed};
}

float random_value(test_random *random, double low, double high)
{
    return (float)(low + (high - low) * ((double)(test_random_next(random) >> 11) * 0x1p-53));
}

float *values_random(test_random *random, size_t count, double low, double high)
{
    float *values = malloc(count ? count * sizeof *values : 1);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = random_value(random, low, high);
    return values;
}

float *values_copy(const float *from, size_t count)
{
    float *values = malloc(count ? count * sizeof *values : 1);
    assert_non_null(values);
    memcpy(values, from, count * sizeof *values);
    return values;
}

double ulps_from(float got, double exact)
{
    float nearest = (float)exact;
    if (got == nearest || (isnan(got) && isnan(nearest)))
        return 0;
    if (!isfinite(got) || !isfinite(nearest))
        return INFINITY;
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

void expect_same_bits_at(const float *a, const float *b, size_t count, const char *file, int line)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a)) {
            print_error("value %zu of %zu is %.9g, expected the bits of %.9g\n", i, count, (double)a[i], (double)b[i]);
            _fail(file, line);
        }
}

void expect_near_at(double got, double want, double tolerance, const char *file, int line)
{
    if (!(fabs(got - want) <= tolerance)) {
        print_error("%.17g is more than %g away from %.17g\n", got, tolerance, want);
        _fail(file, line);
    }
}

/* What the outputs of a trial hold at some moment. */
typedef struct snapshot {
    float *values[MOST_OUTPUTS];
    double sum;
} snapshot;

static snapshot snapshot_take(const kernel_trial *trial)
{
    snapshot taken = {{NULL}, trial->sum ? *trial->sum : 0};
    for (size_t k = 0; k < MOST_OUTPUTS; k++)
        if (trial->outputs[k].values)
            taken.values[k] = values_copy(trial->outputs[k].values, trial->outputs[k].count);
    return taken;
}

static void snapshot_put_back(const snapshot *from, const kernel_trial *trial)
{
    for (size_t k = 0; k < MOST_OUTPUTS; k++)
        if (from->values[k])
            memcpy(trial->outputs[k].values, from->values[k], trial->outputs[k].count * sizeof(float));
    if (trial->sum)
        *trial->sum = from->sum;
}

static void snapshot_release(snapshot *taken)
{
    for (size_t k = 0; k < MOST_OUTPUTS; k++)
        free(taken->values[k]);
}

static snapshot result_of(const kernel_trial *trial, const snapshot *before, const kernel_table *table, kernel_run *run,
                          int threads)
{
    snapshot_put_back(before, trial);
    run->threads = threads;
    if (trial->call)
        trial->call(table, run, trial->task);
    else
        perform(table, run, trial->op, trial->args);
    return snapshot_take(trial);
}

static bool close_enough(const kernel_trial *trial, double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= trial->absolute + trial->relative * fabs(want);
}

static void expect_close(const kernel_trial *trial, const char *name, const snapshot *got, const snapshot *want,
                         const char *file, int line)
{
    for (size_t k = 0; k < MOST_OUTPUTS; k++)
        for (size_t i = 0; want->values[k] && i < trial->outputs[k].count; i++)
            if (!close_enough(trial, (double)got->values[k][i], (double)want->values[k][i])) {
                print_error("%s: value %zu of %zu of output %zu is %.9g, the reference has %.9g\n", name, i,
                            trial->outputs[k].count, k, (double)got->values[k][i], (double)want->values[k][i]);
                _fail(file, line);
            }
    if (!close_enough(trial, got->sum, want->sum)) {
        print_error("%s: the sum is %.17g, the reference has %.17g\n", name, got->sum, want->sum);
        _fail(file, line);
    }
}

static void expect_same(const kernel_trial *trial, const char *name, int threads, const snapshot *got,
                        const snapshot *want, const char *file, int line)
{
    for (size_t k = 0; k < MOST_OUTPUTS; k++)
        if (want->values[k] && memcmp(got->values[k], want->values[k], trial->outputs[k].count * sizeof(float))) {
            print_error("%s: output %zu has other bits with %d threads than with 1\n", name, k, threads);
            expect_same_bits_at(got->values[k], want->values[k], trial->outputs[k].count, file, line);
        }
    if (memcmp(&got->sum, &want->sum, sizeof got->sum)) {
        print_error("%s: the sum is %.17g with %d threads and %.17g with 1\n", name, got->sum, threads, want->sum);
        _fail(file, line);
    }
}

static void expect_same_for_threads(const kernel_trial *trial, const snapshot *before, const kernel_table *table,
                                    kernel_run *run, int threads, const snapshot *alone, const char *file, int line)
{
    snapshot got = result_of(trial, before, table, run, threads);
    expect_same(trial, table->name, threads, &got, alone, file, line);
    snapshot_release(&got);
}

/* The scratch of all trials of a program: taking it anew each time is slow under AddressSanitizer. */
static kernel_run kept_run(const kernel_table *table)
{
    static kernel_run kept;
    static size_t bytes;
    if (table->scratch_bytes > bytes) {
        kernel_run_close(&kept);
        kept = kernel_run_open(table, MOST_THREADS);
        bytes = table->scratch_bytes;
    }
    return kept;
}

void expect_agreement_at(const kernel_trial *trial, const char *file, int line)
{
    snapshot before = snapshot_take(trial);
    kernel_run run = {1, NULL};
    snapshot want = result_of(trial, &before, kernels_reference(), &run, 1);
    expect_same_for_threads(trial, &before, kernels_reference(), &run, 2, &want, file, line);
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        run = kept_run(*table);
        snapshot got = result_of(trial, &before, *table, &run, 1);
        expect_close(trial, (*table)->name, &got, &want, file, line);
        expect_same_for_threads(trial, &before, *table, &run, 2, &got, file, line);
        expect_same_for_threads(trial, &before, *table, &run, MOST_THREADS, &got, file, line);
        snapshot_release(&got);
    }
    snapshot_put_back(&before, trial);
    snapshot_release(&want);
    snapshot_release(&before);
}
