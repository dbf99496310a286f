#include "model_sweep.h"
#include "model_file.h"
#include "plot.h"
#include "run_text.h"
#include "waiting.h"

#include <stdlib.h>

enum { ROWS_SHOWN = 24 };

typedef struct curve {
    remat_train_point *points;
    size_t count, knee;
    remat_trainer_figures figures; /* of the cheapest plan */
    uint64_t keep_all_bytes;       /* in all, with nothing recomputed */
    bool timed, all;
} curve;

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static double overhead(const curve *shown, const remat_train_point *point)
{
    return percent(point->cost, shown->figures.keep_all_cost) - 100;
}

bool sweep_row_is_shown(size_t i, size_t count, size_t knee)
{
    if (count <= ROWS_SHOWN || i == 0 || i == knee || i + 1 == count)
        return true;
    return i * (ROWS_SHOWN - 1) / (count - 1) != (i + 1) * (ROWS_SHOWN - 1) / (count - 1);
}

void sweep_rest_print(size_t hidden)
{
    printf(hidden == 1 ? "\n%zu more plan lies between these; --all shows it\n"
                       : "\n%zu more plans lie between these; --all shows them\n",
           hidden);
}

static void print_table(const curve *shown)
{
    size_t rows = 0;
    run_text_title(stdout, &shown->figures);
    printf(", %zu plan%s, costs %s\n\n", shown->count, shown->count == 1 ? "" : "s",
           shown->timed ? "measured" : "modelled");
    printf("%16s %11s %11s %9s %12s %9s %11s\n", "total bytes", "", "arena", "of all", "step", "more", "recomputed");
    for (size_t i = 0; i < shown->count; i++) {
        if (!shown->all && !sweep_row_is_shown(i, shown->count, shown->knee))
            continue;
        rows++;
        const remat_train_point *point = &shown->points[i];
        char bytes[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT], arena[REMAT_SIZE_TEXT];
        printf("%16s %11s %11s %8.1f%% %9.2f ms %8.2f%% %11llu%s\n", remat_count_print(point->total_bytes, bytes),
               remat_size_print(point->total_bytes, size), remat_size_print(point->arena_bytes, arena),
               percent(point->arena_bytes, shown->figures.keep_all_arena_bytes), 1e-6 * (double)point->cost,
               overhead(shown, point), (unsigned long long)point->recomputed, i == shown->knee ? "  knee" : "");
    }
    if (rows < shown->count)
        sweep_rest_print(shown->count - rows);
    else
        putchar('\n');
    printf("Each row is a plan: --budget with its total bytes makes it. 'recomputed' counts layers.\n");
    if (!shown->timed)
        printf("Without --profile the times are modelled: only their ratios are meaningful.\n");
}

static void print_json(const curve *shown)
{
    printf("{\"format\": \"remat-sweep\", \"version\": 1, ");
    run_text_json_text(stdout, "", "model", shown->figures.model);
    printf(", \"batch\": %llu, \"cost_measured\": %s,\n \"base_cost\": %llu, \"base_total_bytes\": %llu, "
           "\"base_arena_bytes\": %llu, \"knee\": %zu,\n \"points\": [",
           (unsigned long long)shown->figures.batch_size, shown->timed ? "true" : "false",
           (unsigned long long)shown->figures.keep_all_cost, (unsigned long long)shown->keep_all_bytes,
           (unsigned long long)shown->figures.keep_all_arena_bytes, shown->knee);
    for (size_t i = 0; i < shown->count; i++) {
        const remat_train_point *point = &shown->points[i];
        printf("%s\n  {\"total_bytes\": %llu, \"arena_bytes\": %llu, \"total_cost\": %llu, \"recomputed\": %llu}",
               i ? "," : "", (unsigned long long)point->total_bytes, (unsigned long long)point->arena_bytes,
               (unsigned long long)point->cost, (unsigned long long)point->recomputed);
    }
    printf("]}\n");
}

static void print_csv(const curve *shown)
{
    printf("total_bytes,arena_bytes,total_cost,overhead_percent,recomputed,knee\n");
    for (size_t i = 0; i < shown->count; i++) {
        const remat_train_point *point = &shown->points[i];
        printf("%llu,%llu,%llu,%.4f,%llu,%d\n", (unsigned long long)point->total_bytes,
               (unsigned long long)point->arena_bytes, (unsigned long long)point->cost, overhead(shown, point),
               (unsigned long long)point->recomputed, i == shown->knee);
    }
}

static remat_status draw(const curve *shown)
{
    remat_sweep_point *points = malloc(shown->count * sizeof *points);
    if (!points)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < shown->count; i++)
        points[i] = (remat_sweep_point){shown->points[i].total_bytes, shown->points[i].cost};
    plot_curve(points, shown->count, shown->knee, shown->figures.keep_all_cost);
    free(points);
    return REMAT_OK;
}

static remat_status find_points(remat_trainer *trainer, curve *found)
{
    waiting_for("planning the whole curve");
    remat_status status = remat_trainer_find_curve(trainer, &found->count);
    waiting_end();
    if (status != REMAT_OK)
        return status;
    found->points = malloc(found->count * sizeof *found->points);
    if (!found->points)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; status == REMAT_OK && i < found->count; i++)
        status = remat_trainer_get_point(trainer, i, &found->points[i]);
    return status;
}

int model_sweep_show(remat_context *context, remat_model *model, const remat_train_options *options,
                     sweep_format format, sweep_extent extent)
{
    remat_train_options wanted = *options;
    wanted.strategy = "optimal";
    remat_trainer *trainer;
    curve shown = {.timed = options->profile_path != NULL, .all = extent.all};
    remat_status status = model_file_plan_freely(model, &wanted, &trainer);
    if (status == REMAT_OK)
        status = find_points(trainer, &shown);
    if (status == REMAT_OK) {
        remat_trainer_get_figures(trainer, &shown.figures);
        shown.knee = remat_trainer_knee(trainer);
        shown.keep_all_bytes = run_text_keep_all(&shown.figures);
        if (format == SWEEP_JSON)
            print_json(&shown);
        else if (format == SWEEP_CSV)
            print_csv(&shown);
        else
            print_table(&shown);
        if (extent.plot)
            status = draw(&shown);
    }
    if (status != REMAT_OK)
        command_fail(context, status);
    free(shown.points);
    remat_trainer_destroy(trainer);
    return (int)status;
}
