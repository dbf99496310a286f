#include "compare.h"
#include "shown.h"

#include <stdlib.h>
#include <string.h>

/* One line of the table. */
typedef struct row {
    char strategy[48];
    bool planned, fits, proven;
    uint64_t peak, cost, base_cost;
} row;

typedef struct comparison {
    remat_context *context;
    const remat_profile *profile;
    const remat_plan_options *options;
    row *rows;
    size_t count, capacity;
} comparison;

static remat_status add_row(comparison *all, const char *strategy, bool takes_budget)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity * 2 + 16;
        row *rows = realloc(all->rows, capacity * sizeof *rows);
        if (!rows)
            return REMAT_NO_MEMORY;
        all->rows = rows;
        all->capacity = capacity;
    }
    row *made = &all->rows[all->count];
    *made = (row){.planned = false};
    snprintf(made->strategy, sizeof made->strategy, "%s", strategy);
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->rows[i].strategy, strategy) == 0)
            return REMAT_OK; /* short chains make some arguments equal */
    remat_plan_options options = *all->options;
    options.strategy = strategy;
    options.method = takes_budget && strcmp(strategy, "optimal") == 0 ? options.method : NULL;
    if (!takes_budget)
        options.budget_bytes = REMAT_NO_BUDGET; /* its peak is what it is; whether it fits is said beside it */
    remat_plan *plan;
    remat_status status = remat_plan_create(all->context, all->profile, &options, &plan);
    if (status != REMAT_OK && status != REMAT_INFEASIBLE)
        return status;
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    made->planned = figures->feasible;
    made->peak = figures->feasible ? figures->schedule.peak_bytes : figures->min_budget_bytes;
    made->cost = figures->schedule.total_cost;
    made->base_cost = figures->base_cost;
    made->fits = figures->feasible && made->peak <= all->options->budget_bytes;
    made->proven = takes_budget && figures->feasible && made->cost == figures->lower_bound_cost;
    all->count++;
    remat_plan_destroy(plan);
    return REMAT_OK;
}

static remat_status add_counts(comparison *all, const char *name, const uint64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char strategy[48];
        if (counts[i] == 0)
            continue;
        snprintf(strategy, sizeof strategy, "%s:%llu", name, (unsigned long long)counts[i]);
        remat_status status = add_row(all, strategy, false);
        if (status != REMAT_OK)
            return status;
    }
    return REMAT_OK;
}

static uint64_t peak_with_slots(const comparison *all, uint64_t slots)
{
    char strategy[48];
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    snprintf(strategy, sizeof strategy, "revolve:%llu", (unsigned long long)slots);
    options.strategy = strategy;
    if (remat_plan_create(all->context, all->profile, &options, &plan) != REMAT_OK)
        return UINT64_MAX;
    uint64_t peak = remat_plan_get_figures(plan)->schedule.peak_bytes;
    remat_plan_destroy(plan);
    return peak;
}

/* The most slots that fit, by halving: what somebody who uses revolve under this budget would set. */
static uint64_t fitting_slots(const comparison *all, uint64_t layers)
{
    uint64_t low = 2, high = layers > 2 ? layers : 2;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (peak_with_slots(all, middle) <= all->options->budget_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static remat_status add_rows(comparison *all)
{
    uint64_t n = remat_profile_layer_count(all->profile);
    bool has_budget = all->options->budget_bytes != REMAT_NO_BUDGET;
    const uint64_t blocks[] = {1, 2, 4, 8}, steps[] = {2, 3, 4}, parts[] = {n / 4, n / 2, n - n / 4};
    static const char *const fixed[] = {"none",          "attention-only", "ffn-only", "selective:0.25",
                                        "selective:0.5", "selective:0.75", "sqrt"};
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < sizeof fixed / sizeof fixed[0]; i++)
        status = add_row(all, fixed[i], false);
    if (status == REMAT_OK)
        status = add_counts(all, "full", blocks, 4);
    if (status == REMAT_OK)
        status = add_counts(all, "every-nth", steps, 3);
    if (status == REMAT_OK)
        status = add_counts(all, "largest", parts, 3);
    if (status == REMAT_OK && has_budget && n > 0) {
        uint64_t slots = fitting_slots(all, n);
        status = add_counts(all, "revolve", &slots, 1);
    }
    if (status == REMAT_OK && has_budget)
        status = add_row(all, "budget", true);
    return status == REMAT_OK ? add_row(all, "optimal", true) : status;
}

static void print_table(const comparison *all)
{
    char size[REMAT_SIZE_TEXT], bytes[REMAT_COUNT_TEXT], cost[REMAT_COUNT_TEXT];
    bool has_budget = all->options->budget_bytes != REMAT_NO_BUDGET;
    if (has_budget)
        printf("budget %s bytes (%s)\n\n", remat_count_print(all->options->budget_bytes, bytes),
               remat_size_print(all->options->budget_bytes, size));
    printf("%-18s %20s %11s  %20s %9s  %s\n", "strategy", "peak bytes", "", "cost", "more", has_budget ? "fits" : "");
    for (size_t i = 0; i < all->count; i++) {
        const row *line = &all->rows[i];
        printf("%-18s %20s %11s  ", shown(line->strategy), remat_count_print(line->peak, bytes),
               remat_size_print(line->peak, size));
        if (!line->planned) {
            printf("%20s %9s  no: this is its smallest peak\n", "", "");
            continue;
        }
        double more =
            line->base_cost ? 100.0 * ((double)line->cost - (double)line->base_cost) / (double)line->base_cost : 0.0;
        printf("%20s %8.2f%%  %s%s\n", remat_count_print(line->cost, cost), more,
               !has_budget  ? ""
               : line->fits ? "yes"
                            : "no",
               line->proven && has_budget ? ", no legal schedule is cheaper" : "");
    }
}

static void print_json(const comparison *all)
{
    printf("[");
    for (size_t i = 0; i < all->count; i++) {
        const row *line = &all->rows[i];
        printf("%s{\"strategy\": \"%s\", \"feasible\": %s, \"peak_bytes\": %llu", i ? ",\n " : "", line->strategy,
               line->planned ? "true" : "false", (unsigned long long)line->peak);
        if (line->planned)
            printf(", \"total_cost\": %llu", (unsigned long long)line->cost);
        printf(", \"fits\": %s}", line->fits ? "true" : "false");
    }
    printf("]\n");
}

remat_status compare_print(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                           bool json)
{
    comparison all = {.context = context, .profile = profile, .options = options};
    remat_status status = add_rows(&all);
    if (status == REMAT_OK) {
        if (json)
            print_json(&all);
        else
            print_table(&all);
    }
    free(all.rows);
    return status;
}
