#include "model_plan.h"
#include "model_file.h"
#include "plot.h"
#include "run_text.h"
#include "shown.h"
#include "waiting.h"

#include <string.h>

enum { ROWS_SHOWN = 40, LONGEST_NAME = 24, LONGEST_KEPT = 44 };

/* ---- for people ---- */

/* A long list is shown by its two ends: the row after `i` that is shown, and a word about those that are not. */
static size_t skip_rows(size_t i, size_t count, bool all, const char *what)
{
    if (all || count <= ROWS_SHOWN || i != ROWS_SHOWN / 2)
        return i;
    printf("         %zu more %s; --all-layers shows them\n", count - ROWS_SHOWN, what);
    return i + count - ROWS_SHOWN;
}

static remat_status print_layers(remat_model *model, const remat_trainer *trainer, bool all)
{
    size_t count = remat_model_layer_count(model);
    printf("\n%7s  %-*s  %-22s %10s %8s  %s\n", "layer", LONGEST_NAME, "name", "type", "output", "forwards",
           "decision");
    for (size_t i = 0; i < count; i++) {
        remat_model_layer layer;
        i = skip_rows(i, count, all, "layers");
        remat_status status = remat_model_get_layer(model, i, &layer);
        if (status != REMAT_OK)
            return status;
        uint32_t forwards = remat_trainer_forwards(trainer, i);
        char size[REMAT_SIZE_TEXT];
        printf("%7zu  %-*.*s  %-22s %10s %8u  %s\n", i, LONGEST_NAME, LONGEST_NAME, shown(layer.name), layer.type,
               layer.output_bytes ? remat_size_print(layer.output_bytes, size) : "-", forwards,
               forwards > 1    ? "recompute"
               : forwards == 1 ? "keep"
                               : "");
    }
    return REMAT_OK;
}

static void print_piece(const remat_profile *chain, const remat_plan *plan, size_t i)
{
    const remat_layer *piece = remat_profile_layer(chain, i);
    uint16_t mode = remat_plan_decision(plan, i);
    char size[REMAT_SIZE_TEXT];
    const char *kept = shown(remat_plan_decision_name(plan, i));
    const uint64_t bytes = mode == REMAT_NO_SAVE ? 0 : remat_layer_mode(piece, mode)->activation_bytes;
    const char *how = "keep ";
    if (mode == REMAT_NO_SAVE || mode == REMAT_KEEP)
        how = "";
    else if (bytes == 0 && remat_layer_mode(piece, REMAT_KEEP)->activation_bytes > 0)
        how = "recompute, keep ";
    printf("%7zu  %-*.*s  %10s %8u  %s%.*s%s\n", i, LONGEST_NAME, LONGEST_NAME, shown(piece->name),
           remat_size_print(bytes, size), remat_plan_forwards(plan, i), how, LONGEST_KEPT, kept,
           strlen(kept) > LONGEST_KEPT ? "..." : "");
}

static void print_pieces(const remat_profile *chain, const remat_plan *plan, bool all)
{
    size_t count = remat_profile_layer_count(chain);
    printf("\n%7s  %-*s  %10s %8s  %s\n", "piece", LONGEST_NAME, "layers", "kept", "forwards", "decision");
    for (size_t i = 0; i < count; i++) {
        i = skip_rows(i, count, all, "pieces");
        print_piece(chain, plan, i);
    }
}

static remat_status print_text(remat_model *model, const remat_trainer *trainer, const model_plan_request *request)
{
    const remat_plan *plan = remat_trainer_plan(trainer);
    const remat_profile *chain = remat_trainer_chain(trainer);
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    run_text_title(stdout, &figures);
    if (plan)
        printf(", strategy %s\n", shown(figures.strategy));
    else if (figures.budget_bytes == REMAT_NO_BUDGET)
        puts(": the blocks of the model decide; --strategy or --budget make a new plan");
    else
        puts(": the blocks of the model are the best within this budget");
    remat_status status = print_layers(model, trainer, request->all_layers);
    if (status != REMAT_OK)
        return status;
    if (plan && remat_profile_layer_count(chain) > 1)
        print_pieces(chain, plan, request->all_layers);
    putchar('\n');
    run_text_memory(stdout, &figures);
    putchar('\n');
    run_text_plan(stdout, &figures, request->options.profile_path != NULL);
    return plan && request->plot ? plot_memory(chain, plan) : REMAT_OK;
}

/* ---- for programs ---- */

static void print_figures(const remat_trainer *trainer, bool timed)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    run_text_json_text(stdout, "{\"format\": \"remat-plan\", \"version\": 1, ", "strategy", figures.strategy);
    printf(", \"feasible\": true,\n  \"min_budget_bytes\": %llu, ", (unsigned long long)figures.min_budget_bytes);
    run_text_json(stdout, &figures, timed);
    printf("}\n");
}

static void print_infeasible(remat_model *model, const model_plan_request *request, uint64_t needed)
{
    remat_trainer *trainer; /* one without a budget, for the name of the strategy */
    if (model_file_plan_freely(model, &request->options, &trainer) != REMAT_OK)
        return;
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    if (request->json) {
        run_text_json_text(stdout, "{\"format\": \"remat-plan\", \"version\": 1, ", "strategy", figures.strategy);
        printf(", \"feasible\": false, \"min_budget_bytes\": %llu}\n", (unsigned long long)needed);
    } else {
        char exact[REMAT_COUNT_TEXT], size[REMAT_SIZE_TEXT];
        printf("feasible  false\nneeded    %s bytes (%s)\n", remat_count_print(needed, exact),
               remat_size_print_up(needed, size));
    }
    remat_trainer_destroy(trainer);
}

/* ---- both ---- */

static remat_status show(remat_model *model, const remat_trainer *trainer, const model_plan_request *request)
{
    remat_status status = REMAT_OK;
    if (request->output)
        status = remat_trainer_save_plan(trainer, request->output);
    if (status == REMAT_OK && request->profile_output && remat_trainer_chain(trainer))
        status = remat_profile_save(remat_trainer_chain(trainer), request->profile_output);
    if (status == REMAT_OK && request->graph_output)
        status = remat_graph_save(remat_trainer_graph(trainer), request->graph_output);
    if (status == REMAT_OK && request->graph_plan_output)
        status = remat_trainer_save_graph_plan(trainer, request->graph_plan_output);
    if (status != REMAT_OK)
        return status;
    if (!request->json)
        return print_text(model, trainer, request);
    if (remat_trainer_plan(trainer))
        return remat_trainer_write_plan(trainer, stdout, !request->no_schedule);
    print_figures(trainer, request->options.profile_path != NULL);
    return REMAT_OK;
}

int model_plan_show(remat_context *context, remat_model *model, const model_plan_request *request)
{
    remat_trainer *trainer;
    waiting_for("planning");
    remat_status status = model_file_plan(model, &request->options, &trainer);
    waiting_end();
    if (status == REMAT_INFEASIBLE) {
        command_fail(context, status);
        print_infeasible(model, request, remat_context_error(context)->needed_bytes);
        return (int)status;
    }
    if (status == REMAT_OK && request->profile_output && !remat_trainer_chain(trainer)) {
        fprintf(stderr,
                "remat: the blocks of the model decide, so there is no chain to write; --strategy or --budget make a "
                "new plan\n");
        remat_trainer_destroy(trainer);
        return REMAT_INVALID;
    }
    if (status == REMAT_OK)
        status = show(model, trainer, request);
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_trainer_destroy(trainer);
    return (int)status;
}
