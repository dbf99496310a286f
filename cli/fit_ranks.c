#include "fit_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_file.h"
#include "run_text.h"
#include "shard_option.h"
#include "shown.h"
#include "waiting.h"

enum {
    MOST_RANKS = 4096, /* that are looked through for the smallest number */
    MOST_STAGES = 64,  /* of pipelines that are looked through */
};

/* ---- options ---- */

/* A number with one of these units behind it; 0: it is none. */
typedef struct unit {
    const char *name;
    double factor;
} unit;

static double parse_number(const char *text, const unit *units, size_t count)
{
    char *end;
    const double value = strtod(text, &end);
    for (size_t i = 0; i < count && end > text && isfinite(value); i++)
        if (strcmp(end, units[i].name) == 0)
            return value * units[i].factor;
    return 0;
}

static double parse_seconds(const char *text)
{
    static const unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    return parse_number(text, units, sizeof units / sizeof units[0]);
}

static double parse_flops(const char *text)
{
    static const unit units[] = {{"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};
    return parse_number(text, units, sizeof units / sizeof units[0]);
}

/* 25GB/s; 0: it is none. */
static double parse_rate(remat_context *context, const char *text)
{
    char size[64];
    uint64_t bytes;
    const size_t length = strlen(text);
    if (length < 3 || length >= sizeof size || strcmp(text + length - 2, "/s") != 0)
        return 0;
    snprintf(size, sizeof size, "%.*s", (int)length - 2, text);
    return remat_size_parse(context, size, &bytes) == REMAT_OK ? (double)bytes : 0;
}

/* Cuts a text at its comma. */
static const char *behind_comma(const char *text, char first[64])
{
    const char *comma = strchr(text, ',');
    snprintf(first, 64, "%.*s", comma ? (int)(comma - text) : (int)strlen(text), text);
    return comma ? comma + 1 : NULL;
}

void fit_ranks_network(struct argp_state *state, remat_context *context, const char *text, fit_ranks *asked)
{
    char first[64];
    const char *second = behind_comma(text, first);
    remat_cluster *cluster = &asked->cluster;
    remat_cluster_init(cluster);
    cluster->network_bytes_per_second = parse_rate(context, first);
    const char *third = second ? behind_comma(second, first) : NULL;
    if (second)
        cluster->network_latency = parse_seconds(first);
    cluster->network_in_memory = third && strcmp(third, "memory") == 0;
    if (!(cluster->network_bytes_per_second > 0) || !(cluster->network_latency > 0) ||
        (third && !cluster->network_in_memory))
        argp_error(state,
                   "--network takes a speed and a latency such as 25GB/s,5us, not '%s'; ',memory' may follow for ranks "
                   "of one machine",
                   shown(text));
    asked->has_network = true;
}

void fit_ranks_speed(struct argp_state *state, remat_context *context, const char *text, remat_train_options *options)
{
    char first[64];
    const char *second = behind_comma(text, first);
    options->device_flops = parse_flops(first);
    if (second)
        options->device_bytes_per_second = parse_rate(context, second);
    if (!(options->device_flops > 0) || (second && !(options->device_bytes_per_second > 0)))
        argp_error(state, "--device-speed takes a speed such as 100GFLOPS or 400TFLOPS,2TB/s, not '%s'", shown(text));
}

/* ---- answers ---- */

typedef struct stage_answer {
    bool asked;
    remat_trainer_figures figures; /* of a plan without a budget */
    uint64_t keep_all;
    uint64_t least_ranks;          /* with a budget; 0: none */
    remat_scale_estimate estimate; /* with a network */
} stage_answer;

typedef struct answers {
    const model_options *given;
    const fit_ranks *asked;
    uint64_t budget; /* REMAT_NO_BUDGET: none */
    remat_cluster cluster;
    stage_answer stages[SHARD_STAGES];
    remat_scale_estimate pipelines[MOST_STAGES]; /* with a network: from the one with most stages on */
    size_t pipeline_count;
    const remat_scale_estimate *best; /* NULL: none fits */
} answers;

static void take_best(answers *found, const remat_scale_estimate *estimate)
{
    if (estimate->fits && !estimate->is_bound && (!found->best || estimate->seconds < found->best->seconds))
        found->best = estimate;
}

static remat_status plan_stage(remat_model *model, const answers *found, remat_shard stage, stage_answer *answer)
{
    remat_train_options wanted = found->given->train;
    remat_trainer *trainer;
    wanted.shard = stage;
    wanted.reduce_fast = false; /* takes no memory */
    wanted.plan_ranks = found->cluster.ranks;
    wanted.accumulate = found->cluster.ranks > 1 ? found->cluster.ranks : 0; /* how many there are does not matter */
    wanted.strategy = "optimal";
    wanted.budget_bytes = REMAT_UNLIMITED;
    remat_status status = model_file_plan(model, &wanted, &trainer);
    if (status != REMAT_OK)
        return status;
    remat_trainer_get_figures(trainer, &answer->figures);
    answer->figures.model = answer->figures.strategy = answer->figures.peak_layer = answer->figures.remark = "";
    answer->keep_all = run_text_keep_all(&answer->figures);
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

static remat_status answer_stage(remat_model *model, answers *found, remat_shard stage)
{
    stage_answer *answer = &found->stages[stage];
    remat_train_options wanted = found->given->train;
    answer->asked = true;
    wanted.shard = stage;
    wanted.reduce_fast &= stage < REMAT_SHARD_GRADIENTS; /* from there on the order is fixed */
    wanted.budget_bytes = found->budget;
    remat_status status = plan_stage(model, found, stage, answer);
    if (status == REMAT_OK && found->budget != REMAT_NO_BUDGET)
        status = remat_scale_least_ranks(model, &wanted, MOST_RANKS, &answer->least_ranks);
    if (status != REMAT_OK || !found->asked->has_network)
        return status;
    status = wanted.batch_size ? remat_scale_simulate(model, &wanted, &found->cluster, &answer->estimate)
                               : remat_scale_find(model, &wanted, &found->cluster, &answer->estimate);
    if (status == REMAT_OK)
        take_best(found, &answer->estimate);
    return status;
}

/* ---- pipelines ---- */

/* With and without a shared state of the optimizer, which is slower as long as nothing else must be recomputed. A model that has too
 * few layers for so many stages is REMAT_INVALID. */
static remat_status answer_pipeline(remat_model *model, answers *found, uint64_t stages)
{
    remat_train_options wanted = found->given->train;
    remat_cluster cluster = found->cluster;
    remat_scale_estimate *answer = &found->pipelines[found->pipeline_count], shared;
    const bool may_share = !found->asked->has_shard && cluster.ranks > stages;
    wanted.pipeline = stages;
    wanted.budget_bytes = found->budget;
    cluster.seconds_to_beat = found->best ? found->best->seconds : 0;
    remat_status status = remat_scale_find(model, &wanted, &cluster, answer);
    if (status == REMAT_OK && may_share && (!answer->fits || answer->is_bound || answer->recompute_seconds > 0)) {
        wanted.shard = REMAT_SHARD_OPTIMIZER;
        status = remat_scale_find(model, &wanted, &cluster, &shared);
        if (status == REMAT_OK && shared.fits && !shared.is_bound &&
            (!answer->fits || answer->is_bound || shared.seconds < answer->seconds))
            *answer = shared;
    }
    if (status != REMAT_OK)
        return status;
    take_best(found, answer);
    found->pipeline_count++;
    return REMAT_OK;
}

/* Those with many stages fit more easily, and others must beat them. */
static remat_status answer_pipelines(remat_model *model, answers *found)
{
    const uint64_t ranks = found->cluster.ranks;
    if (!found->asked->has_network || found->given->train.batch_size ||
        (found->asked->has_shard && found->given->train.shard > REMAT_SHARD_OPTIMIZER))
        return REMAT_OK;
    for (uint64_t stages = ranks < MOST_STAGES ? ranks : MOST_STAGES; stages > 1; stages--) {
        if (ranks % stages != 0)
            continue;
        waiting_for("planning pipelines");
        remat_status status = answer_pipeline(model, found, stages);
        waiting_end();
        if (status != REMAT_OK && status != REMAT_INVALID)
            return status;
    }
    return REMAT_OK;
}

static remat_status answer_all(remat_model *model, answers *found)
{
    for (int stage = 0; stage < SHARD_STAGES; stage++) {
        if (found->asked->has_shard && stage != (int)found->given->train.shard)
            continue;
        waiting_for("planning for ranks");
        remat_status status = answer_stage(model, found, (remat_shard)stage);
        waiting_end();
        if (status != REMAT_OK)
            return status;
    }
    return answer_pipelines(model, found);
}

static bool fits(const answers *found)
{
    bool any = found->budget == REMAT_NO_BUDGET;
    for (int s = 0; s < SHARD_STAGES; s++)
        any |= found->stages[s].asked && found->stages[s].figures.min_budget_bytes <= found->budget;
    return any || found->best;
}

/* ---- texts ---- */

static void print_ranks(const answers *found, const stage_answer *answer)
{
    if (found->budget == REMAT_NO_BUDGET)
        putchar('\n');
    else if (answer->least_ranks)
        printf(" %16llu\n", (unsigned long long)answer->least_ranks);
    else
        printf(" %16s\n", answer == &found->stages[REMAT_SHARD_NONE] ? "no number" : "more than 4096");
}

static void print_memory(const answers *found)
{
    char budget[REMAT_SIZE_TEXT];
    printf("%-10s %12s %12s %12s %16s %20s", "each rank", "weights", "optimizer", "gradients", "smallest budget",
           "nothing recomputed");
    if (found->budget != REMAT_NO_BUDGET)
        printf(" ranks for %s", remat_size_print(found->budget, budget));
    putchar('\n');
    for (int s = 0; s < SHARD_STAGES; s++) {
        const stage_answer *answer = &found->stages[s];
        char texts[5][REMAT_SIZE_TEXT];
        if (!answer->asked)
            continue;
        printf("%-10s %12s %12s %12s %16s %20s", shard_names[s],
               remat_size_print(answer->figures.weight_bytes, texts[0]),
               remat_size_print(answer->figures.optimizer_bytes, texts[1]),
               remat_size_print(answer->figures.gradient_bytes, texts[2]),
               remat_size_print_up(answer->figures.min_budget_bytes, texts[3]),
               remat_size_print_up(answer->keep_all, texts[4]));
        print_ranks(found, answer);
    }
}

static void print_seconds(double seconds)
{
    if (seconds >= 1)
        printf(" %10.2f s ", seconds);
    else
        printf(" %10.2f ms", 1e3 * seconds);
}

static void print_time(const remat_scale_estimate *e)
{
    char memory[REMAT_SIZE_TEXT], batches[48], name[48];
    if (e->pipeline > 1)
        snprintf(name, sizeof name, "%llu stages%s", (unsigned long long)e->pipeline,
                 e->shard == REMAT_SHARD_OPTIMIZER ? ", optimizer" : "");
    else
        snprintf(name, sizeof name, "%s", shard_names[e->shard]);
    snprintf(batches, sizeof batches, "%llu x %llu", (unsigned long long)e->micro_batches,
             (unsigned long long)e->batch_size);
    printf("%-20s %14s %12s", name, batches, e->is_bound ? "" : remat_size_print_up(e->rank_bytes, memory));
    if (!e->fits) {
        puts("  does not fit");
        return;
    }
    print_seconds(e->seconds);
    if (e->is_bound) {
        puts("  or more");
        return;
    }
    print_seconds(e->compute_seconds - e->recompute_seconds);
    print_seconds(e->recompute_seconds);
    print_seconds(e->transfer_seconds);
    putchar('\n');
}

static void print_times(const answers *found)
{
    const remat_scale_estimate *e = found->best;
    printf("\n%-20s %14s %12s %13s %13s %13s %13s\n", "a step", "micro-batches", "memory", "time", "computing",
           "recomputing", "transfers");
    for (int s = 0; s < SHARD_STAGES; s++)
        if (found->stages[s].asked)
            print_time(&found->stages[s].estimate);
    for (size_t i = found->pipeline_count; i-- > 0;)
        print_time(&found->pipelines[i]);
    if (!e)
        return;
    printf("\nthe fastest is --shard %s", shard_names[e->shard]);
    if (e->pipeline > 1)
        printf(" --pipeline %llu", (unsigned long long)e->pipeline);
    printf(" with micro-batches %llu x %llu for each %s: %.4g samples a second, %.0f %% of the time in computing\n",
           (unsigned long long)e->micro_batches, (unsigned long long)e->batch_size,
           e->pipeline > 1 ? "row of stages" : "rank", (double)found->cluster.step_samples / e->seconds,
           100 * e->compute_seconds / e->seconds);
}

static void print_text(const answers *found, const remat_trainer_figures *figures)
{
    const remat_cluster *cluster = &found->cluster;
    run_text_title(stdout, figures);
    printf(": %llu ranks, %llu samples a step", (unsigned long long)cluster->ranks,
           (unsigned long long)cluster->step_samples);
    if (found->asked->has_network)
        printf(", network %.4g GB/s and %.4g us%s", 1e-9 * cluster->network_bytes_per_second,
               1e6 * cluster->network_latency, cluster->network_in_memory ? ", through memory" : "");
    printf("\n\n");
    print_memory(found);
    if (found->asked->has_network)
        print_times(found);
    if (!fits(found))
        puts("\nno rank fits into the budget");
}

static void print_estimate_json(const remat_scale_estimate *e)
{
    printf("\"fits\": %s, \"batch_size\": %llu, \"micro_batches\": %llu, \"rank_bytes\": %llu",
           e->fits ? "true" : "false", (unsigned long long)e->batch_size, (unsigned long long)e->micro_batches,
           (unsigned long long)e->rank_bytes);
    if (!e->fits)
        return;
    run_text_json_number(stdout, ", ", "seconds", e->seconds);
    run_text_json_number(stdout, ", ", "compute_seconds", e->compute_seconds);
    run_text_json_number(stdout, ", ", "recompute_seconds", e->recompute_seconds);
    run_text_json_number(stdout, ", ", "transfer_seconds", e->transfer_seconds);
}

/* Those that were planned. */
static void print_pipelines_json(const answers *found)
{
    bool first = true;
    printf(",\n  \"pipelines\": [");
    for (size_t i = found->pipeline_count; i-- > 0;) {
        const remat_scale_estimate *e = &found->pipelines[i];
        if (e->is_bound)
            continue;
        printf("%s\n    {\"pipeline\": %llu, \"shared\": \"%s\", ", first ? "" : ",", (unsigned long long)e->pipeline,
               shard_names[e->shard]);
        print_estimate_json(e);
        putchar('}');
        first = false;
    }
    putchar(']');
}

static void print_stage_json(const answers *found, int s, bool first)
{
    const stage_answer *answer = &found->stages[s];
    const remat_scale_estimate *e = &answer->estimate;
    printf("%s\n    {\"shard\": \"%s\", \"weight_bytes\": %llu, \"optimizer_bytes\": %llu, \"gradient_bytes\": %llu, "
           "\"min_budget_bytes\": %llu, \"keep_all_bytes\": %llu",
           first ? "" : ",", shard_names[s], (unsigned long long)answer->figures.weight_bytes,
           (unsigned long long)answer->figures.optimizer_bytes, (unsigned long long)answer->figures.gradient_bytes,
           (unsigned long long)answer->figures.min_budget_bytes, (unsigned long long)answer->keep_all);
    if (found->budget != REMAT_NO_BUDGET)
        printf(", \"least_ranks\": %llu", (unsigned long long)answer->least_ranks);
    if (found->asked->has_network) {
        printf(",\n     ");
        print_estimate_json(e);
    }
    putchar('}');
}

static void print_json(const answers *found)
{
    bool first = true;
    printf("{\"format\": \"remat-fit-ranks\", \"version\": 1, \"fits\": %s, \"ranks\": %llu, \"step_samples\": %llu",
           fits(found) ? "true" : "false", (unsigned long long)found->cluster.ranks,
           (unsigned long long)found->cluster.step_samples);
    if (found->budget != REMAT_NO_BUDGET)
        printf(", \"budget_bytes\": %llu", (unsigned long long)found->budget);
    if (found->best)
        printf(", \"fastest\": \"%s\", \"fastest_pipeline\": %llu", shard_names[found->best->shard],
               (unsigned long long)found->best->pipeline);
    printf(",\n  \"stages\": [");
    for (int s = 0; s < SHARD_STAGES; s++)
        if (found->stages[s].asked) {
            print_stage_json(found, s, first);
            first = false;
        }
    putchar(']');
    if (found->asked->has_network)
        print_pipelines_json(found);
    puts("}");
}

int fit_ranks_show(remat_model *model, const model_options *given, const fit_ranks *asked)
{
    answers found = {.given = given, .asked = asked, .cluster = asked->cluster};
    remat_trainer *trainer;
    remat_trainer_figures figures;
    found.budget = given->train.budget_bytes == REMAT_NO_BUDGET ? remat_model_budget(model) : given->train.budget_bytes;
    if (!asked->has_network)
        remat_cluster_init(&found.cluster);
    found.cluster.ranks = asked->ranks;
    found.cluster.step_samples = asked->step_samples;
    remat_status status = model_file_plan_freely(model, &given->train, &trainer);
    if (status == REMAT_OK) {
        remat_trainer_get_figures(trainer, &figures);
        if (!asked->step_samples)
            found.cluster.step_samples =
                figures.batch_size * ((figures.accumulate + asked->ranks - 1) / asked->ranks * asked->ranks);
        status = answer_all(model, &found);
    }
    if (status != REMAT_OK)
        command_fail(given->context, status);
    else if (given->json)
        print_json(&found);
    else
        print_text(&found, &figures);
    remat_trainer_destroy(trainer);
    return status != REMAT_OK ? (int)status : fits(&found) ? REMAT_OK : REMAT_INFEASIBLE;
}
