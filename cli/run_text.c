#include "run_text.h"
#include "shown.h"

#include <math.h>
#include <string.h>

void run_text_title(FILE *to, const remat_trainer_figures *figures)
{
    char count[REMAT_COUNT_TEXT];
    const uint64_t all = figures->parameters + figures->frozen_parameters;
    fprintf(to, "%s, %s parameters", *figures->model ? shown(figures->model) : "model", remat_count_print(all, count));
    if (figures->frozen_parameters)
        fprintf(to, " (%s trained)", remat_count_print(figures->parameters, count));
    fprintf(to, ", batch %llu", (unsigned long long)figures->batch_size);
    if (figures->accumulate > 1)
        fprintf(to, " x %llu", (unsigned long long)figures->accumulate);
}

/* ---- memory ---- */

static void print_row(FILE *to, const char *what, uint64_t bytes, const char *remark)
{
    char exact[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
    fprintf(to, "%-20s %16s  %10s%s%s\n", what, remat_count_print(bytes, exact), remat_size_print(bytes, size),
            *remark ? "  " : "", remark);
}

/* Of frozen weights that are not copied. */
static const char *mapped_remark(const remat_trainer_figures *figures, char remark[100])
{
    char bytes[REMAT_SIZE_TEXT], all[REMAT_SIZE_TEXT];
    remat_size_print(figures->mapped_bytes, bytes);
    if (figures->mapped_file_bytes == 0)
        return "";
    if (figures->mapped_bytes == figures->mapped_file_bytes)
        snprintf(remark, 100, "%s of it mapped from the folder", bytes);
    else
        snprintf(remark, 100, "%s of it for the %s in the folder, dropped after each use", bytes,
                 remat_size_print(figures->mapped_file_bytes, all));
    return remark;
}

void run_text_memory(FILE *to, const remat_trainer_figures *figures)
{
    char remark[100];
    bool lasting = figures->gradient_bytes > 0;
    print_row(to, "weights", figures->weight_bytes, mapped_remark(figures, remark));
    print_row(to, "optimizer", figures->optimizer_bytes, "");
    print_row(to, "weight gradients", figures->gradient_bytes + figures->peak_weight_gradient_bytes,
              lasting ? "over all micro-batches" : "at the peak");
    print_row(to, "activations", figures->peak_activation_bytes, "at the peak");
    print_row(to, "their gradients", figures->peak_gradient_bytes, "at the peak");
    print_row(to, "workspace", figures->peak_workspace_bytes, "at the peak");
    print_row(to, "data", figures->peak_data_bytes, "at the peak");
    if (figures->arena_bytes > figures->peak_bytes)
        print_row(to, "not filled", figures->arena_bytes - figures->peak_bytes, "at the peak");
    print_row(to, "scratch", figures->scratch_bytes, "of the kernels");
    /* Rounded up, like the budgets that stand beside it. */
    char exact[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
    fprintf(to, "%-20s %16s  %10s\n", "total", remat_count_print(figures->total_bytes, exact),
            remat_size_print_up(figures->total_bytes, size));
}

/* ---- what the plan changes ---- */

static double more(const remat_trainer_figures *figures)
{
    return figures->keep_all_cost ? 100 * ((double)figures->cost / (double)figures->keep_all_cost - 1) : 0;
}

uint64_t run_text_keep_all(const remat_trainer_figures *figures)
{
    return figures->total_bytes - figures->arena_bytes + figures->keep_all_arena_bytes + figures->mapped_file_bytes -
           figures->mapped_bytes;
}

void run_text_plan(FILE *to, const remat_trainer_figures *figures, bool timed)
{
    char arena[REMAT_SIZE_TEXT], all[REMAT_SIZE_TEXT], saved[REMAT_SIZE_TEXT];
    uint64_t kept = figures->layers - figures->recomputed_layers;
    fprintf(to, "%s: layers kept %llu, recomputed %llu", shown(figures->strategy), (unsigned long long)kept,
            (unsigned long long)figures->recomputed_layers);
    if (figures->arena_bytes < figures->keep_all_arena_bytes) {
        uint64_t less = figures->keep_all_arena_bytes - figures->arena_bytes;
        fprintf(to, "; arena %s of %s, %s saved (%.1f %%)", remat_size_print(figures->arena_bytes, arena),
                remat_size_print(figures->keep_all_arena_bytes, all), remat_size_print(less, saved),
                100 * (double)less / (double)figures->keep_all_arena_bytes);
    }
    if (figures->cost != figures->keep_all_cost)
        fprintf(to, ", for %.1f %% more time a step", more(figures));
    if (figures->cost != figures->keep_all_cost && timed)
        fprintf(to, " (%.1f ms)", 1e-6 * ((double)figures->cost - (double)figures->keep_all_cost));
    fputc('\n', to);
    if (figures->remark[0])
        fprintf(to, "note: %s\n", shown(figures->remark));
}

/* ---- the end ---- */

static void print_predicted(FILE *to, const char *what, const char *predicted, const char *measured, const char *remark)
{
    fprintf(to, "%-10s %15s %15s%s%s\n", what, predicted, measured, *remark ? "  " : "", remark);
}

static void print_resident(FILE *to, const remat_run_result *result)
{
    char resident[REMAT_COUNT_TEXT], own[REMAT_SIZE_TEXT], remark[128] = "resident; some memory was never used";
    if (result->peak_resident_bytes >= result->allocated_bytes)
        snprintf(remark, sizeof remark, "resident, %s of it the program itself",
                 remat_size_print(result->peak_resident_bytes - result->allocated_bytes, own));
    print_predicted(to, "process", "", remat_count_print(result->peak_resident_bytes, resident), remark);
}

static void print_time(FILE *to, const remat_trainer_figures *figures, const remat_run_result *result, bool timed)
{
    char predicted[32] = "", measured[32] = "", remark[64] = "no profile: predicted times are relative";
    if (result->median_step_seconds > 0)
        snprintf(measured, sizeof measured, "%.2f ms", 1e3 * result->median_step_seconds);
    if (timed) {
        double seconds = 1e-9 * (double)figures->cost;
        snprintf(predicted, sizeof predicted, "%.2f ms", 1e3 * seconds);
        remark[0] = 0;
        if (result->median_step_seconds > 0)
            snprintf(remark, sizeof remark, "%+.1f %%", 100 * (result->median_step_seconds / seconds - 1));
    }
    print_predicted(to, "step time", predicted, measured, remark);
}

void run_text_truth(FILE *to, const remat_trainer_figures *figures, const remat_run_result *result, bool timed)
{
    char predicted[REMAT_COUNT_TEXT], measured[REMAT_COUNT_TEXT];
    print_predicted(to, "", "predicted", "measured", "");
    print_predicted(to, "memory", remat_count_print(figures->total_bytes, predicted),
                    remat_count_print(result->allocated_bytes, measured), "bytes for tensors");
    print_resident(to, result);
    print_time(to, figures, result, timed);
    if (result->steps)
        print_predicted(to, "forwards", remat_count_print(figures->forwards, predicted),
                        remat_count_print(result->forwards, measured), "layers run forward for a batch");
    run_text_plan(to, figures, timed);
}

/* ---- JSON ---- */

void run_text_json_number(FILE *to, const char *before, const char *key, double value)
{
    if (isfinite(value))
        fprintf(to, "%s\"%s\": %.9g", before, key, value);
    else
        fprintf(to, "%s\"%s\": null", before, key);
}

/* The code point of the UTF-8 character at `text`, which has so many bytes. */
static unsigned code_of(const char *text, size_t bytes)
{
    unsigned code = (unsigned char)*text & (bytes == 1 ? 0xffu : 0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3fu);
    return code;
}

/* Escapes what JSON wants, and what a terminal would act on: that becomes longer in remat_text_escape. */
void run_text_json_letters(FILE *to, const char *text)
{
    for (size_t bytes; *text; text += bytes) {
        unsigned char first = (unsigned char)*text;
        char one[5] = "";
        bytes = strnlen(text, first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1);
        memcpy(one, text, bytes);
        size_t shown_bytes = remat_text_escape(one, NULL, 0);
        if (first == '"' || first == '\\')
            fprintf(to, "\\%c", first);
        else if (shown_bytes == bytes)
            fputs(one, to);
        else if (shown_bytes == 6 || first < 0x80)
            fprintf(to, "\\u%04x", code_of(text, bytes));
        else { /* no UTF-8: that byte is left out, and the next one is looked at */
            fputs("\\ufffd", to);
            bytes = 1;
        }
    }
}

void run_text_json_quoted(FILE *to, const char *text)
{
    fputc('"', to);
    run_text_json_letters(to, text);
    fputc('"', to);
}

void run_text_json_text(FILE *to, const char *before, const char *key, const char *text)
{
    fprintf(to, "%s\"%s\": ", before, key);
    run_text_json_quoted(to, text);
}

static void print_count(FILE *to, const char *before, const char *key, uint64_t value)
{
    fprintf(to, "%s\"%s\": %llu", before, key, (unsigned long long)value);
}

void run_text_json(FILE *to, const remat_trainer_figures *figures, bool timed)
{
    print_count(to, "", "parameters", figures->parameters);
    print_count(to, ", ", "frozen_parameters", figures->frozen_parameters);
    print_count(to, ", ", "batch", figures->batch_size);
    print_count(to, ", ", "accumulate", figures->accumulate);
    if (figures->budget_bytes != REMAT_NO_BUDGET)
        print_count(to, ",\n  ", "total_budget_bytes", figures->budget_bytes);
    print_count(to, ",\n  ", "weight_bytes", figures->weight_bytes);
    if (figures->mapped_file_bytes) {
        print_count(to, ", ", "mapped_bytes", figures->mapped_bytes);
        print_count(to, ", ", "mapped_file_bytes", figures->mapped_file_bytes);
    }
    print_count(to, ", ", "optimizer_bytes", figures->optimizer_bytes);
    print_count(to, ", ", "gradient_bytes", figures->gradient_bytes);
    print_count(to, ", ", "scratch_bytes", figures->scratch_bytes);
    print_count(to, ",\n  ", "arena_bytes", figures->arena_bytes);
    print_count(to, ", ", "total_bytes", figures->total_bytes);
    print_count(to, ", ", "keep_all_arena_bytes", figures->keep_all_arena_bytes);
    print_count(to, ",\n  ", "peak_bytes", figures->peak_bytes);
    print_count(to, ", ", "peak_activation_bytes", figures->peak_activation_bytes);
    print_count(to, ", ", "peak_gradient_bytes", figures->peak_gradient_bytes);
    print_count(to, ",\n  ", "peak_weight_gradient_bytes", figures->peak_weight_gradient_bytes);
    print_count(to, ", ", "peak_workspace_bytes", figures->peak_workspace_bytes);
    print_count(to, ", ", "peak_data_bytes", figures->peak_data_bytes);
    print_count(to, ",\n  ", "cost", figures->cost);
    print_count(to, ", ", "keep_all_cost", figures->keep_all_cost);
    fprintf(to, ", \"cost_measured\": %s", timed ? "true" : "false");
    print_count(to, ",\n  ", "layers", figures->layers);
    print_count(to, ", ", "recomputed_layers", figures->recomputed_layers);
    print_count(to, ", ", "forwards", figures->forwards);
    run_text_json_text(to, ",\n  ", "remark", figures->remark);
}
