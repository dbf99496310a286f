#include "train_text.h"

#include <math.h>
#include <unistd.h>

#include "go_on.h"
#include "run_text.h"
#include "shard_option.h"
#include "shown.h"

/* Costs that were measured are nanoseconds. */
static bool is_timed(const train_command *command)
{
    return command->given.train.profile_path != NULL;
}

void train_text_batch(const train_command *command, const remat_trainer_figures *figures)
{
    const remat_batch_choice *choice = &command->choice;
    uint64_t batch = figures->batch_size, allowed = command->most_batch;
    if (batch < choice->largest) {
        fprintf(
            stderr,
            "batch %llu: the fastest by the plan's prediction; the budget allows %llu, which recomputes more and takes "
            "%.1f %% longer for a sample (--batch largest)\n",
            (unsigned long long)batch, (unsigned long long)choice->largest,
            100 * (choice->largest_sample_cost / choice->fastest_sample_cost - 1));
        return;
    }
    bool validation = figures->validation_samples == batch;
    bool capped = validation || figures->training_samples / figures->accumulate == batch;
    fprintf(stderr, "batch %llu: the budget allows ", (unsigned long long)batch);
    if (!capped || (allowed && allowed <= batch)) {
        fputs("no more\n", stderr);
        return;
    }
    if (allowed)
        fprintf(stderr, "%llu", (unsigned long long)allowed);
    else
        fputs("more", stderr);
    fprintf(stderr, ", the %s data has %llu\n", validation ? "validation" : "training",
            (unsigned long long)(validation ? figures->validation_samples : figures->training_samples));
}

/* The library's memory besides tensors and samples. */
static uint64_t table_bytes(const train_command *command, const remat_trainer_figures *figures)
{
    const uint64_t tensors = figures->total_bytes - figures->mapped_bytes; /* what is mapped is not allocated */
    return remat_context_bytes(command->given.context) - tensors - figures->data_bytes;
}

static void print_outside(const train_command *command, const remat_trainer_figures *figures)
{
    char tables[REMAT_SIZE_TEXT], samples[REMAT_SIZE_TEXT], limit[REMAT_SIZE_TEXT];
    fprintf(stderr, "outside the budget: tables %s, samples in memory %s",
            remat_size_print(table_bytes(command, figures), tables), remat_size_print(figures->data_bytes, samples));
    if (command->limit)
        fprintf(stderr, "; the system limits the data of the process to %s", remat_size_print(command->limit, limit));
    fputc('\n', stderr);
}

static void print_stages(const train_command *command, const remat_trainer *trainer)
{
    for (uint64_t s = 0; s < command->given.train.pipeline; s++) {
        char total[REMAT_SIZE_TEXT];
        remat_stage_figures stage;
        if (remat_trainer_get_stage(trainer, s, &stage) == REMAT_OK)
            fprintf(stderr, "stage %llu: %s .. %s, %llu micro-batch%s in flight, memory %s\n", (unsigned long long)s,
                    stage.first_layer, stage.last_layer, (unsigned long long)stage.in_flight,
                    stage.in_flight == 1 ? "" : "es", remat_size_print(stage.total_bytes, total));
    }
}

void train_text_plan(const train_command *command, const remat_trainer *trainer)
{
    remat_trainer_figures all, *figures = &all;
    remat_trainer_get_figures(trainer, figures);
    char total[REMAT_SIZE_TEXT], weights[REMAT_SIZE_TEXT], moments[REMAT_SIZE_TEXT], arena[REMAT_SIZE_TEXT],
        scratch[REMAT_SIZE_TEXT];
    const uint64_t ranks = remat_communicator_size(command->ranks);
    run_text_title(stderr, figures);
    if (ranks > 1)
        fprintf(stderr, ", %llu ranks", (unsigned long long)ranks);
    if (ranks > 1 && command->given.train.shard != REMAT_SHARD_NONE)
        fprintf(stderr, " that share %s", shard_names[command->given.train.shard]);
    if (command->given.train.pipeline > 1)
        fprintf(stderr, " in %llu stages", (unsigned long long)command->given.train.pipeline);
    fprintf(stderr, ", %u thread%s, %s kernels\n", figures->threads, figures->threads == 1 ? "" : "s",
            figures->kernels);
    if (command->given.train.pipeline > 1)
        print_stages(command, trainer);
    fprintf(stderr, "memory %s: weights %s, optimizer %s, arena %s, scratch %s\n",
            remat_size_print(figures->total_bytes, total), remat_size_print(figures->weight_bytes, weights),
            remat_size_print(figures->optimizer_bytes + figures->gradient_bytes, moments),
            remat_size_print(figures->arena_bytes, arena), remat_size_print(figures->scratch_bytes, scratch));
    if (figures->mapped_file_bytes > figures->mapped_bytes)
        fprintf(stderr,
                "%s of frozen weights are mapped from the folder, and take %s: they are dropped after each use\n",
                remat_size_print(figures->mapped_file_bytes, total), remat_size_print(figures->mapped_bytes, weights));
    print_outside(command, figures);
    run_text_plan(stderr, figures, is_timed(command));
}

void train_text_json(const train_command *command, const remat_trainer *trainer, const remat_run_result *result)
{
    remat_trainer_figures all, *figures = &all;
    const bool timed = is_timed(command);
    remat_trainer_get_figures(trainer, figures);
    printf("{\n  \"format\": \"remat-train\", \"version\": 1,\n  ");
    run_text_json_text(stdout, "", "strategy", figures->strategy);
    run_text_json_text(stdout, ", ", "kernels", figures->kernels);
    printf(", \"threads\": %u,\n  \"steps\": %llu", figures->threads, (unsigned long long)result->steps);
    run_text_json_number(stdout, ", ", "last_loss", result->last_loss);
    run_text_json_number(stdout, ", ", "best_validation_loss", result->best_validation_loss);
    printf(", \"best_step\": %llu, \"restored_best\": %s", (unsigned long long)result->best_step,
           result->restored_best ? "true" : "false");
    run_text_json_number(stdout, ",\n  ", "step_seconds", result->median_step_seconds);
    run_text_json_number(stdout, ", ", "data_seconds", result->median_data_seconds);
    run_text_json_number(stdout, ", ", "predicted_step_seconds", timed ? 1e-9 * (double)figures->cost : NAN);
    printf(",\n  \"allocated_bytes\": %llu, \"peak_resident_bytes\": %llu, \"forwards_run\": %llu,\n  ",
           (unsigned long long)result->allocated_bytes, (unsigned long long)result->peak_resident_bytes,
           (unsigned long long)result->forwards);
    printf("\"table_bytes\": %llu, \"data_bytes\": %llu", (unsigned long long)table_bytes(command, figures),
           (unsigned long long)figures->data_bytes);
    if (command->limit)
        printf(", \"memory_limit_bytes\": %llu", (unsigned long long)command->limit);
    printf(",\n  ");
    run_text_json(stdout, figures, timed);
    printf(",\n  \"stopped\": %s, \"stopped_early\": %s\n}\n", result->stopped ? "true" : "false",
           result->stopped_early ? "true" : "false");
}

static void print_end(const remat_trainer_figures *figures, const remat_run_result *result, uint64_t taken, bool timed)
{
    if (result->steps == 0 && taken == 0) {
        fputs("nothing to do: 0 steps were asked for\n", stderr);
        return;
    }
    if (result->steps == 0) {
        fprintf(stderr, "nothing to do: %llu of %llu steps are taken\n", (unsigned long long)taken,
                (unsigned long long)figures->total_steps);
        return;
    }
    fprintf(stderr, "%llu steps%s, loss %.6f\n\n", (unsigned long long)result->steps,
            result->stopped         ? " (interrupted)"
            : result->stopped_early ? " (stopped early: validation no longer improves)"
                                    : "",
            result->last_loss);
    run_text_truth(stderr, figures, result, timed);
}

/* Which step was the best, and where its weights are. */
static void print_best(const train_command *command, const remat_run_result *result)
{
    if (result->best_step == 0)
        return;
    fprintf(stderr, "best validation: step %llu, loss %.6f", (unsigned long long)result->best_step,
            result->best_validation_loss);
    if (result->restored_best && command->save)
        fprintf(stderr, "; %s has these weights", shown(command->save));
    else if (command->best[0] && access(command->best, F_OK) == 0)
        fprintf(stderr, "; these weights are in %s", shown(command->best));
    fputc('\n', stderr);
}

/* What was saved, and how to go on with it. */
static void print_saved(const train_command *command, const remat_trainer_figures *figures,
                        const remat_run_result *result, uint64_t taken)
{
    fprintf(stderr, "saved %s", shown(command->save));
    if (!command->weights_only && !result->stopped_early) {
        const bool done = !result->stopped;
        fprintf(stderr, done ? "; train longer with\n  " : " after step %llu of %llu; go on with\n  ",
                (unsigned long long)taken, (unsigned long long)figures->total_steps);
        if (remat_communicator_size(command->ranks) > 1)
            fprintf(stderr, "mpirun -np %llu ", (unsigned long long)remat_communicator_size(command->ranks));
        go_on_print(stderr, command->argc, command->argv, command->save, done ? 2 * figures->total_steps : 0);
    }
    fputc('\n', stderr);
}

void train_text_end(const train_command *command, const remat_trainer *trainer, const remat_run_result *result,
                    bool saved)
{
    remat_trainer_figures figures;
    const uint64_t taken = remat_trainer_steps_taken(trainer);
    remat_trainer_get_figures(trainer, &figures);
    print_end(&figures, result, taken, is_timed(command));
    print_best(command, result);
    if (command->save && saved && result->steps > 0)
        print_saved(command, &figures, result, taken);
    if (!command->save && !command->save_folder && !command->best[0] && result->steps > 0)
        fputs("note: the weights are not kept; --save FILE saves them\n", stderr);
}
