#include "fit_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "model_file.h"
#include "run_text.h"
#include "waiting.h"

typedef struct stage_answer {
    char first_layer[100], last_layer[100]; /* as much of their names as a table needs */
    remat_stage_figures stage;
} stage_answer;

typedef struct answers {
    const fit_ranks *asked;
    uint64_t stages, rows, micro_batches; /* of a row */
    uint64_t budget;                      /* REMAT_NO_BUDGET: none */
    bool fits;
    stage_answer *each;
    remat_scale_estimate estimate; /* with a network */
} answers;

/* ---- questions ---- */

static remat_status plan_stages(remat_model *model, const remat_train_options *options, answers *found)
{
    remat_train_options wanted = *options;
    remat_trainer *trainer;
    wanted.plan_ranks = found->asked->ranks;
    wanted.accumulate = found->micro_batches * found->rows;
    if (!wanted.strategy)
        wanted.strategy = "optimal";
    waiting_for("planning for stages");
    remat_status status = model_file_plan(model, &wanted, &trainer);
    for (uint64_t s = 0; s < found->stages && status == REMAT_OK; s++) {
        stage_answer *answer = &found->each[s];
        status = remat_trainer_get_stage(trainer, s, &answer->stage);
        if (status != REMAT_OK)
            break;
        snprintf(answer->first_layer, sizeof answer->first_layer, "%s", answer->stage.first_layer);
        snprintf(answer->last_layer, sizeof answer->last_layer, "%s", answer->stage.last_layer);
    }
    remat_trainer_destroy(trainer);
    waiting_end();
    return status;
}

static remat_status answer_all(remat_model *model, const model_options *given, answers *found)
{
    remat_train_options wanted = given->train;
    remat_cluster cluster = found->asked->cluster;
    wanted.budget_bytes = found->budget == REMAT_NO_BUDGET ? REMAT_UNLIMITED : found->budget;
    remat_status status = plan_stages(model, &wanted, found);
    found->fits = status == REMAT_OK;
    if (status == REMAT_INFEASIBLE) {
        wanted.budget_bytes = REMAT_UNLIMITED; /* what the fastest cut needs */
        status = plan_stages(model, &wanted, found);
    }
    if (status != REMAT_OK || !found->asked->has_network)
        return status;
    wanted.budget_bytes = found->budget;
    cluster.ranks = found->asked->ranks;
    cluster.step_samples = found->asked->step_samples;
    return wanted.batch_size ? remat_scale_simulate(model, &wanted, &cluster, &found->estimate)
                             : remat_scale_find(model, &wanted, &cluster, &found->estimate);
}

/* ---- texts ---- */

static void print_stages(const answers *found)
{
    const bool has_budget = found->budget != REMAT_NO_BUDGET && found->fits;
    printf("%-6s %9s %12s %12s %12s %16s %20s%s  %s\n", "stage", "in flight", "weights", "optimizer", "gradients",
           "smallest budget", "nothing recomputed", has_budget ? "   in the budget" : "", "layers");
    for (uint64_t s = 0; s < found->stages; s++) {
        const stage_answer *answer = &found->each[s];
        char texts[6][REMAT_SIZE_TEXT];
        printf("%-6llu %9llu %12s %12s %12s %16s %20s", (unsigned long long)s,
               (unsigned long long)answer->stage.in_flight, remat_size_print(answer->stage.weight_bytes, texts[0]),
               remat_size_print(answer->stage.optimizer_bytes, texts[1]),
               remat_size_print(answer->stage.gradient_bytes, texts[2]),
               remat_size_print_up(answer->stage.min_budget_bytes, texts[3]),
               remat_size_print_up(answer->stage.keep_all_bytes, texts[4]));
        if (has_budget)
            printf(" %15s", remat_size_print_up(answer->stage.total_bytes, texts[5]));
        printf("  %s .. %s\n", answer->first_layer, answer->last_layer);
    }
}

static void print_text(const answers *found, const remat_trainer_figures *figures)
{
    const remat_scale_estimate *e = &found->estimate;
    run_text_title(stdout, figures);
    printf(": %llu ranks, %llu stages, %llu micro-batches in each row of stages\n\n",
           (unsigned long long)found->asked->ranks, (unsigned long long)found->stages,
           (unsigned long long)found->micro_batches);
    print_stages(found);
    if (found->asked->has_network && e->fits)
        printf(
            "\na step with micro-batches %llu x %llu: %.4g s, of these %.4g s for transfers, %.4g samples a second\n",
            (unsigned long long)e->micro_batches, (unsigned long long)e->batch_size, e->seconds, e->transfer_seconds,
            (double)(e->micro_batches * e->batch_size * found->rows) / e->seconds);
    if (!found->fits)
        puts("\nno cut into so many stages was found that fits into the budget; these are the figures of the fastest");
}

static void print_json(const answers *found)
{
    const remat_scale_estimate *e = &found->estimate;
    printf("{\"format\": \"remat-fit-pipeline\", \"version\": 1, \"fits\": %s, \"ranks\": %llu, \"pipeline\": %llu, "
           "\"micro_batches\": %llu",
           found->fits ? "true" : "false", (unsigned long long)found->asked->ranks, (unsigned long long)found->stages,
           (unsigned long long)found->micro_batches);
    if (found->budget != REMAT_NO_BUDGET)
        printf(", \"budget_bytes\": %llu", (unsigned long long)found->budget);
    if (found->asked->has_network && e->fits) {
        printf(",\n  \"step\": {\"batch_size\": %llu, \"micro_batches\": %llu, \"rank_bytes\": %llu",
               (unsigned long long)e->batch_size, (unsigned long long)e->micro_batches,
               (unsigned long long)e->rank_bytes);
        run_text_json_number(stdout, ", ", "seconds", e->seconds);
        run_text_json_number(stdout, ", ", "compute_seconds", e->compute_seconds);
        run_text_json_number(stdout, ", ", "recompute_seconds", e->recompute_seconds);
        run_text_json_number(stdout, ", ", "transfer_seconds", e->transfer_seconds);
        putchar('}');
    }
    printf(",\n  \"stages\": [");
    for (uint64_t s = 0; s < found->stages; s++) {
        const stage_answer *answer = &found->each[s];
        printf("%s\n    {", s ? "," : "");
        run_text_json_text(stdout, "", "first_layer", answer->first_layer);
        run_text_json_text(stdout, ", ", "last_layer", answer->last_layer);
        printf(", \"in_flight\": %llu, \"weight_bytes\": %llu, \"optimizer_bytes\": %llu, \"gradient_bytes\": %llu, "
               "\"min_budget_bytes\": %llu, \"keep_all_bytes\": %llu, \"total_bytes\": %llu, \"cost\": %llu}",
               (unsigned long long)answer->stage.in_flight, (unsigned long long)answer->stage.weight_bytes,
               (unsigned long long)answer->stage.optimizer_bytes, (unsigned long long)answer->stage.gradient_bytes,
               (unsigned long long)answer->stage.min_budget_bytes, (unsigned long long)answer->stage.keep_all_bytes,
               (unsigned long long)answer->stage.total_bytes, (unsigned long long)answer->stage.cost);
    }
    puts("]}");
}

int fit_pipeline_show(remat_model *model, const model_options *given, const fit_ranks *asked)
{
    answers found = {.asked = asked, .stages = given->train.pipeline};
    remat_trainer *trainer;
    remat_trainer_figures figures;
    remat_train_options alone = given->train;
    alone.pipeline = 0;
    found.rows = asked->ranks / found.stages;
    found.budget = given->train.budget_bytes == REMAT_NO_BUDGET ? remat_model_budget(model) : given->train.budget_bytes;
    remat_status status = model_file_plan_freely(model, &alone, &trainer);
    if (status == REMAT_OK) {
        remat_trainer_get_figures(trainer, &figures);
        found.micro_batches = (figures.accumulate + found.rows - 1) / found.rows;
        if (asked->step_samples)
            found.micro_batches = asked->step_samples / found.rows / figures.batch_size;
        found.micro_batches += found.micro_batches == 0;
        found.each = calloc(found.stages, sizeof *found.each);
        status = found.each ? answer_all(model, given, &found) : REMAT_NO_MEMORY;
    }
    if (status != REMAT_OK)
        command_fail(given->context, status);
    else if (given->json)
        print_json(&found);
    else
        print_text(&found, &figures);
    remat_trainer_destroy(trainer);
    free(found.each);
    return status != REMAT_OK ? (int)status : found.fits ? REMAT_OK : REMAT_INFEASIBLE;
}
