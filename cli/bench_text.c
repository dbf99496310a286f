#include "bench_text.h"
#include "run_text.h"
#include "shown.h"

#include <math.h>
#include <string.h>

const char *const bench_phases[BENCH_PHASES] = {"forward", "recompute", "weight_gradient", "input_gradient", "apply"};

/* The same as heads of columns: gradients of the weights and of the inputs. */
static const char *const heads[BENCH_PHASES] = {"forward", "recompute", "d weights", "d inputs", "apply"};

void bench_tally_add(bench_tally *sum, const bench_tally *more)
{
    sum->seconds += more->seconds;
    sum->flops += more->flops;
    sum->gemm_flops += more->gemm_flops;
    sum->bytes += more->bytes;
}

/* Of the phases before `until`. */
static bench_tally sum_of(const bench_row *row, int until)
{
    bench_tally sum = {0};
    for (int p = 0; p < until; p++)
        bench_tally_add(&sum, &row->phases[p]);
    return sum;
}

static bench_row sum_of_rows(const bench_result *result)
{
    bench_row all = {.name = "all layers"};
    for (size_t i = 0; i < result->row_count; i++)
        for (int p = 0; p < BENCH_PHASES; p++)
            bench_tally_add(&all.phases[p], &result->rows[i].phases[p]);
    return all;
}

/* ---- the table ---- */

/* What suits the size: times in ms or us, flops in G, M or k. */
typedef struct unit {
    const char *name;
    double size;
} unit;

static unit time_unit(double seconds)
{
    return seconds < 1e-3 ? (unit){"us", 1e-6} : (unit){"ms", 1e-3};
}

static unit flop_unit(double flops)
{
    return flops >= 1e9 ? (unit){"GFLOP", 1e9} : flops >= 1e6 ? (unit){"MFLOP", 1e6} : (unit){"kFLOP", 1e3};
}

/* Four digits, and at least one behind the point: 431.0, 89.53, 0.01712. */
static int decimals(double value)
{
    int places = value > 0 ? (int)ceil(3 - log10(value)) : 1;
    return places < 1 ? 1 : places > 12 ? 12 : places;
}

static double share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_row(const bench_row *row, double a_step, double total, const remat_machine_limits *limits)
{
    bench_tally all = sum_of(row, BENCH_PHASES), computing = sum_of(row, BENCH_APPLY);
    printf("%-28s", shown(row->name));
    for (int p = 0; p < BENCH_PHASES; p++)
        printf(" %9.3f", a_step * row->phases[p].seconds);
    printf(" %9.3f %5.1f %%", a_step * all.seconds, share(all.seconds, total));
    if (computing.seconds > 0)
        printf(" %8.1f %5.1f %% %7.1f %5.1f %%", 1e-9 * computing.flops / computing.seconds,
               share(computing.flops / computing.seconds, limits->flops_per_second),
               1e-9 * computing.bytes / computing.seconds,
               share(computing.bytes / computing.seconds, limits->bytes_per_second));
    putchar('\n');
}

/* One number for each phase and one for all; where nothing ran there is none. */
static void print_rates(const char *name, const bench_tally *by_phase, bool bytes, double size)
{
    printf("%-28s", name);
    for (int p = 0; p <= BENCH_PHASES; p++) {
        if (by_phase[p].seconds > 0)
            printf(" %9.1f", (bytes ? by_phase[p].bytes : by_phase[p].flops) / by_phase[p].seconds / size);
        else
            printf(" %9s", "-");
    }
    putchar('\n');
}

static void print_phase_rates(const bench_row *all, const remat_machine_limits *limits)
{
    bench_tally by_phase[BENCH_PHASES + 1];
    memcpy(by_phase, all->phases, sizeof all->phases);
    by_phase[BENCH_PHASES] = sum_of(all, BENCH_PHASES);
    print_rates("GFLOP/s", by_phase, false, 1e9);
    print_rates("  % of the peak", by_phase, false, limits->flops_per_second / 100);
    print_rates("GB/s", by_phase, true, 1e9);
    print_rates("  % of the peak", by_phase, true, limits->bytes_per_second / 100);
}

/* What is computed again is work, but none that the model asks for: it takes no part in the rate. */
static void print_step(const bench_row *all, double steps, const bench_result *result)
{
    const bench_tally sum = sum_of(all, BENCH_PHASES), *recompute = &all->phases[BENCH_RECOMPUTE];
    double flops = (sum.flops - recompute->flops) / steps, products = (sum.gemm_flops - recompute->gemm_flops) / steps;
    const unit time = time_unit(result->step_seconds), work = flop_unit(flops);
    int places = decimals(result->step_seconds / time.size);
    printf("\n%.*f %s a step (median), %.*f of them for the samples, with %u thread%s (%s)\n", places,
           result->step_seconds / time.size, time.name, places, result->data_seconds / time.size,
           result->figures.threads, result->figures.threads == 1 ? "" : "s", result->figures.kernels);
    places = decimals(flops / work.size);
    printf("%.*f %s a step, %.*f of them in matrix products", places, flops / work.size, work.name, places,
           products / work.size);
    if (recompute->flops > 0)
        printf(", and %.*f more for recomputation", places, recompute->flops / steps / work.size);
    double rate = products / result->step_seconds;
    printf("\n%.1f GFLOP/s of matrix products: %.1f %% of the peak\n", 1e-9 * rate,
           share(rate, result->limits.flops_per_second));
}

void bench_print_table(const bench_result *result)
{
    const remat_machine_limits *limits = &result->limits;
    bench_row all = sum_of_rows(result);
    double steps = (double)result->steps, total = sum_of(&all, BENCH_PHASES).seconds;
    const unit time = time_unit(result->step_seconds);
    printf("%s %-25s", time.name, "a step");
    for (int p = 0; p < BENCH_PHASES; p++)
        printf(" %9s", heads[p]);
    printf(" %9s %7s %8s %7s %7s %7s\n", "sum", "share", "GFLOP/s", "of peak", "GB/s", "of peak");
    for (size_t i = 0; i < result->row_count; i++)
        if (result->rows[i].name)
            print_row(&result->rows[i], 1 / time.size / steps, total, limits);
    print_row(&all, 1 / time.size / steps, total, limits);
    print_phase_rates(&all, limits);
    print_step(&all, steps, result);
    printf("limits with %u thread%s (%s): %.1f GFLOP/s in multiply-adds on registers, %.1f GB/s through memory\n",
           limits->threads, limits->threads == 1 ? "" : "s", limits->kernels, 1e-9 * limits->flops_per_second,
           1e-9 * limits->bytes_per_second);
    puts("These steps ran layer by layer, nothing fused, so that every time belongs to a layer. GB/s above the peak: "
         "data in the cache.");
}

/* ---- JSON ---- */

static void print_tally(const char *prefix, const bench_tally *of, double steps)
{
    printf(", \"%sseconds\": %.9g, \"%sflops\": %.0f, \"%sgemm_flops\": %.0f, \"%sbytes\": %.0f", prefix,
           of->seconds / steps, prefix, of->flops / steps, prefix, of->gemm_flops / steps, prefix, of->bytes / steps);
}

static void print_json_row(const bench_row *row, const char *before, double steps)
{
    bench_tally computing = sum_of(row, BENCH_APPLY);
    run_text_json_text(stdout, before, "name", row->name);
    printf(", \"flops\": %.0f, \"bytes\": %.0f", computing.flops / steps, computing.bytes / steps);
    for (int p = 0; p < BENCH_PHASES; p++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "%s_", bench_phases[p]);
        print_tally(prefix, &row->phases[p], steps);
    }
    putchar('}');
}

void bench_print_json(const bench_result *result)
{
    const remat_machine_limits *limits = &result->limits;
    bench_row all = sum_of_rows(result);
    double steps = (double)result->steps;
    printf("{\"format\": \"remat-bench\", \"version\": 1, \"steps\": %llu, \"step_seconds\": %.9g, \"data_seconds\": "
           "%.9g,\n \"threads\": %u, \"kernels\": \"%s\",\n"
           " \"peak_flops\": %.6g, \"peak_bytes\": %.6g, \"peak_threads\": %u, \"peak_kernels\": \"%s\",\n"
           " \"phases\": [",
           (unsigned long long)result->steps, result->step_seconds, result->data_seconds, result->figures.threads,
           result->figures.kernels, limits->flops_per_second, limits->bytes_per_second, limits->threads,
           limits->kernels);
    for (int p = 0; p < BENCH_PHASES; p++) {
        printf("%s\n  {\"name\": \"%s\"", p ? "," : "", bench_phases[p]);
        print_tally("", &all.phases[p], steps);
        putchar('}');
    }
    printf("\n ], \"layers\": [");
    const char *before = "\n  {";
    for (size_t i = 0; i < result->row_count; i++)
        if (result->rows[i].name) {
            print_json_row(&result->rows[i], before, steps);
            before = ",\n  {";
        }
    puts("\n]}");
}
