#include "fit_additions.h"
#include "fit_pipeline.h"
#include "fit_ranks.h"
#include "graph_plan_text.h"
#include "machine.h"
#include "model_file.h"
#include "model_options.h"
#include "model_set.h"
#include "run_text.h"
#include "shard_option.h"
#include "shown.h"
#include "waiting.h"

#include <string.h>

enum {
    OPTION_DIM = MODEL_KEYS_END,
    OPTION_RANKS,
    OPTION_SHARD,
    OPTION_PIPELINE,
    OPTION_NETWORK,
    OPTION_DEVICE_SPEED,
    OPTION_STEP_SAMPLES,
    OPTION_REDUCE,
};

typedef struct fit_command {
    model_options given;
    import_settings import;
    remat_batch_choice choice; /* with --batch auto or largest */
    fit_ranks ranks;
    bool fits;
} fit_command;

static const struct argp_option options[] = {
    {"budget", 'b', "SIZE", 0, "does training fit into SIZE bytes in all? (default: the model's budget, or none)", 0},
    {MODEL_ROW_BATCH_OR_AUTO, 0},
    {"strategy", MODEL_STRATEGY, "NAME[:ARG]", 0, "what to keep (default: the best within the budget)", 0},
    {MODEL_ROW_PROFILE, 0},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores); each has scratch of its own", 0},
    {MODEL_ROW_DEVICE, 0},
    {ONNX_ROW_DIM(OPTION_DIM), 0},
    {"ranks", OPTION_RANKS, "N", 0,
     "what does each of N ranks need, for every --shard, and how many ranks are needed at least within the budget?", 1},
    {"shard", OPTION_SHARD, "WHAT", 0, "with --ranks: only none, optimizer, gradients or weights", 1},
    {"pipeline", OPTION_PIPELINE, "P", 0, "with --ranks: cut the layers into P stages; what does each stage need?", 1},
    {"network", OPTION_NETWORK, "SPEED,LATENCY[,memory]", 0,
     "with --ranks: simulate a step with a network such as 25GB/s,5us, and find the fastest micro-batch, --shard and "
     "--pipeline. memory: the ranks are on one machine, and their processors copy what is sent",
     1},
    {"device-speed", OPTION_DEVICE_SPEED, "FLOPS[,BYTES/s]", 0,
     "the speed of the device of a rank, such as 400TFLOPS,2TB/s (default: a modest processor, or --profile)", 1},
    {"reduce", OPTION_REDUCE, "fixed|fast", 0,
     "with --network: how gradients are added, as for `remat train` (default: fixed)", 1},
    {"step-samples", OPTION_STEP_SAMPLES, "N", 0,
     "with --ranks: samples of a step in all ranks together (default: the model's micro-batches, rounded up to a "
     "multiple of the ranks)",
     1},
    {"json", MODEL_JSON, NULL, 0, "print the answers as JSON", 2},
    {0}};

/* Rows of a pipeline share the samples, or all ranks do. */
static void check_pipeline(struct argp_state *state, const fit_ranks *ranks, uint64_t stages)
{
    if (stages && (!ranks->ranks || ranks->ranks % stages != 0))
        argp_error(state, "--pipeline is for --ranks N, where N is a multiple of its stages");
    if (ranks->ranks && ranks->step_samples % (ranks->ranks / (stages ? stages : 1)) != 0)
        argp_error(state, "--step-samples must be a multiple of %s", stages ? "the rows of stages" : "--ranks");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    fit_command *command = state->input;
    fit_ranks *ranks = &command->ranks;
    remat_context *context = command->given.context;
    switch (key) {
    case OPTION_DIM: onnx_file_dimension(state, context, argument, &command->import); break;
    case OPTION_RANKS:
        ranks->ranks = command_count(state, context, argument);
        if (ranks->ranks == 0 || ranks->ranks > 1 << 20)
            argp_error(state, "--ranks takes a number from 1 to 1048576");
        break;
    case OPTION_SHARD:
        command->given.train.shard = shard_parse(state, argument);
        ranks->has_shard = true;
        break;
    case OPTION_PIPELINE:
        command->given.train.pipeline = command_count(state, context, argument);
        if (command->given.train.pipeline < 2 || command->given.train.pipeline > 1 << 16)
            argp_error(state, "--pipeline takes a number of stages from 2 to 65536");
        break;
    case OPTION_NETWORK: fit_ranks_network(state, context, argument, ranks); break;
    case OPTION_DEVICE_SPEED: fit_ranks_speed(state, context, argument, &command->given.train); break;
    case OPTION_REDUCE: command->given.train.reduce_fast = reduce_parse(state, argument); break;
    case OPTION_STEP_SAMPLES: ranks->step_samples = command_count(state, context, argument); break;
    case ARGP_KEY_END:
        if (!ranks->ranks && (ranks->has_shard || ranks->has_network || ranks->step_samples))
            argp_error(state, "--shard, --network and --step-samples are for --ranks N, which is missing");
        check_pipeline(state, ranks, command->given.train.pipeline);
        return model_options_parse(key, argument, state);
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Say before training whether FILE, a model, a graph or an ONNX file, fits. A model without a budget is "
           "compared with the memory of the machine, or that of the control group. Prints for a model what takes the "
           "memory, the smallest budget and the layer that determines it, the budget from which nothing is recomputed, "
           "and what clipping and accumulation add; for a graph the peak with everything kept, the smallest budget "
           "that was found, and a bound below which no schedule exists. Exits with 4 if FILE does not fit.\v"
           "Examples:\n"
           "  remat fit gpt.ini --budget 300MiB\n"
           "  remat fit gpt.ini --budget 2GB --batch auto\n"
           "  remat fit gpt.ini --budget 2GB --ranks 8 --network 10GB/s,10us\n"
           "  remat fit gpt.ini --ranks 4 --pipeline 4\n"
           "  remat fit Qwen2.5-0.5B --length 256 --lora rank=8 --frozen int4 --budget 450MB\n"
           "  remat fit graph.json --budget 300MiB\n"
           "  remat fit model.onnx --budget 8GB --batch 32",
    .children = model_set_children,
};

/* ---- the questions ---- */

typedef struct answers {
    bool fits;
    remat_trainer *trainer;        /* whose figures are shown: of the plan that fits, or of the smallest */
    remat_trainer_figures figures; /* of it */
    uint64_t budget;               /* REMAT_NO_BUDGET where none */
    uint64_t machine; /* without a budget: what the machine and the limits of the process allow; 0: not known */
    const char *machine_name;
    fit_ends ends;
    char layer[256];     /* that determines the smallest budget; "" */
    uint64_t least_cost; /* of a step at the smallest budget */
    fit_additions additions;
    bool clips, accumulates;
} answers;

/* Every plan of a deep model takes seconds: none is made twice. */
static remat_status plan(remat_model *model, const remat_train_options *wanted, const char *what,
                         remat_trainer **trainer)
{
    waiting_for(what);
    remat_status status = model_file_plan(model, wanted, trainer);
    waiting_end();
    return status;
}

static remat_status plan_best(const fit_command *command, remat_model *model, uint64_t budget, const char *what,
                              remat_trainer **trainer)
{
    remat_train_options wanted = command->given.train;
    wanted.strategy = "optimal";
    wanted.budget_bytes = budget;
    return plan(model, &wanted, what, trainer);
}

/* Whether the best plan was looked for. Then it is known what the smallest takes, even if it does not fit. */
static bool is_best(const fit_command *command, const remat_trainer *trainer)
{
    const char *strategy = command->given.train.strategy;
    remat_trainer_figures figures = {.strategy = ""};
    if (trainer)
        remat_trainer_get_figures(trainer, &figures);
    return strategy ? strcmp(strategy, "optimal") == 0 : strcmp(figures.strategy, "blocks") != 0;
}

static void take_least(answers *found, const remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    found->ends = fit_ends_of(trainer);
    found->least_cost = figures.min_budget_cost;
    snprintf(found->layer, sizeof found->layer, "%s", figures.min_budget_layer ? figures.min_budget_layer : "");
}

/* Of whatever was planned, the best plan tells what the smallest takes. */
static remat_status find_least(const fit_command *command, remat_model *model, answers *found)
{
    remat_trainer *best;
    if (found->trainer && is_best(command, found->trainer)) {
        take_least(found, found->trainer);
        return REMAT_OK;
    }
    remat_status status = plan_best(command, model, REMAT_UNLIMITED, "planning for the smallest budget", &best);
    if (status != REMAT_OK)
        return status;
    take_least(found, best);
    remat_trainer_destroy(best);
    return REMAT_OK;
}

/* Where nothing fits, the smallest plan is shown. */
static remat_status plan_smallest(const fit_command *command, remat_model *model, answers *found)
{
    uint64_t least = found->ends.least;
    if (is_best(command, NULL))
        least = remat_context_error(command->given.context)->needed_bytes;
    remat_status status = plan_best(command, model, least, "planning for the smallest budget", &found->trainer);
    if (status == REMAT_OK)
        take_least(found, found->trainer);
    return status;
}

/* Without a budget, the machine is what the training must fit into, or the GPU that computes. */
static void compare_with_machine(const fit_command *command, answers *found)
{
    uint64_t free_bytes = 0;
    if (command->given.train.device &&
        remat_device_memory(command->given.context, command->given.train.device, &free_bytes) == REMAT_OK &&
        free_bytes) {
        found->machine = free_bytes;
        found->machine_name = "what is free on the GPU";
    } else {
        machine_memory memory;
        machine_read_memory(&memory);
        const uint64_t usable = machine_usable(&memory, &found->machine_name);
        found->machine = usable == MACHINE_NO_LIMIT ? 0 : usable;
    }
    found->fits = found->fits && (!found->machine || found->figures.total_bytes <= found->machine);
}

static remat_status answer_with(const fit_command *command, remat_model *model, fit_search *search, answers *found)
{
    remat_status status = plan(model, &command->given.train, "planning", &found->trainer);
    found->fits = status == REMAT_OK;
    if (status == REMAT_INFEASIBLE)
        command_fail(command->given.context, status);
    else if (status != REMAT_OK)
        return status;
    status = REMAT_OK;
    if (found->fits || !is_best(command, NULL))
        status = find_least(command, model, found);
    if (status == REMAT_OK && !found->fits)
        status = plan_smallest(command, model, found);
    if (status != REMAT_OK)
        return status;
    remat_trainer_get_figures(found->trainer, &found->figures);
    found->budget = command->given.train.budget_bytes;
    if (found->budget == REMAT_NO_BUDGET)
        found->budget = remat_model_budget(model);
    if (found->budget == REMAT_NO_BUDGET)
        compare_with_machine(command, found);
    found->clips = found->figures.clip_norm > 0;
    found->accumulates = found->figures.accumulate > 1;
    return fit_search_end(search, model, &command->given.train, found->ends, found->clips, found->accumulates,
                          &found->additions);
}

static remat_status answer(const fit_command *command, remat_model *model, answers *found)
{
    fit_search search;
    fit_search_begin(&search, model, &command->given.train);
    remat_status status = answer_with(command, model, &search, found);
    fit_search_abandon(&search);
    return status;
}

/* ---- the answers ---- */

/* Both ends of what a budget can be, side by side. */
static void print_ends(const answers *found)
{
    char bound[REMAT_COUNT_TEXT], least[REMAT_COUNT_TEXT], all[REMAT_COUNT_TEXT], least_size[REMAT_SIZE_TEXT],
        all_size[REMAT_SIZE_TEXT];
    uint64_t keep_all_cost = found->figures.keep_all_cost;
    printf("%-20s %16s %20s\n", "", "smallest budget", "nothing recomputed");
    printf("%-20s %16s %20s  bytes\n", "from", remat_count_print(found->ends.least, least),
           remat_count_print(found->ends.keep_all, all));
    printf("%-20s %16s %20s\n", "", remat_size_print_up(found->ends.least, least_size),
           remat_size_print_up(found->ends.keep_all, all_size));
    printf("%-20s %16s %20s  bytes: no plan takes less\n", "proven bound",
           remat_count_print(found->figures.min_budget_bound_bytes, bound), "");
    printf("%-20s %+14.1f %% %18.1f %%\n", "time",
           keep_all_cost ? 100 * ((double)found->least_cost / (double)keep_all_cost - 1) : 0.0, 0.0);
}

static void print_addition(const char *what, fit_ends more, bool used)
{
    char least[REMAT_SIZE_TEXT], all[REMAT_SIZE_TEXT];
    printf("%-20s %16s %20s%s\n", what, remat_size_print(more.least, least), remat_size_print(more.keep_all, all),
           used ? "  in use" : "");
}

static void print_choice(const remat_batch_choice *choice)
{
    printf("%llu is the fastest batch by the plan's prediction", (unsigned long long)choice->fastest);
    if (choice->fastest < choice->largest)
        printf("; %llu, the largest that fits, takes %.1f %% longer for a sample\n",
               (unsigned long long)choice->largest,
               100 * (choice->largest_sample_cost / choice->fastest_sample_cost - 1));
    else
        puts(", and the largest that fits");
}

/* Without a budget. */
static void print_machine(const answers *found)
{
    char total[REMAT_SIZE_TEXT], usable[REMAT_SIZE_TEXT], least[REMAT_SIZE_TEXT];
    remat_size_print(found->machine, usable);
    printf(": without a budget it takes %s and %s %s, %s\n", remat_size_print_up(found->figures.total_bytes, total),
           found->fits ? "fits into" : "does not fit into", usable, found->machine_name);
    if (!found->fits && found->ends.least < found->machine)
        printf("from --budget %s on it fits\n", remat_size_print_up(found->ends.least, least));
}

static void print_text(const fit_command *command, const answers *found)
{
    char budget[REMAT_SIZE_TEXT];
    bool timed = command->given.train.profile_path != NULL;
    const remat_trainer_figures *figures = &found->figures;
    run_text_title(stdout, figures);
    if (found->budget != REMAT_NO_BUDGET)
        printf(found->fits ? ": fits into %s\n" : ": does not fit into %s; this is the smallest plan\n",
               remat_size_print(found->budget, budget));
    else if (found->machine)
        print_machine(found);
    else
        printf(": without a budget\n");
    if (command->given.batch_choice == BATCH_LARGEST)
        printf("%llu is the largest batch that fits\n", (unsigned long long)figures->batch_size);
    else if (command->given.batch_choice == BATCH_FASTEST)
        print_choice(&command->choice);
    putchar('\n');
    run_text_memory(stdout, figures);
    putchar('\n');
    print_ends(found);
    print_addition("clip_norm adds", found->additions.clipping, found->clips);
    print_addition("accumulate adds", found->additions.accumulating, found->accumulates);
    if (found->layer[0])
        printf("layer %s determines the smallest budget\n", shown(found->layer));
    putchar('\n');
    run_text_plan(stdout, figures, timed);
}

static void print_addition_json(const char *what, fit_ends more, bool used)
{
    printf(",\n  \"%s\": {\"used\": %s, \"adds_bytes\": %llu, \"adds_min_budget_bytes\": %llu}", what,
           used ? "true" : "false", (unsigned long long)more.keep_all, (unsigned long long)more.least);
}

static void print_json(const fit_command *command, const answers *found)
{
    printf("{\"format\": \"remat-fit\", \"version\": 1, \"fits\": %s,\n  ", found->fits ? "true" : "false");
    run_text_json_text(stdout, "", "model", found->figures.model);
    run_text_json_text(stdout, ", ", "strategy", found->figures.strategy);
    if (found->budget != REMAT_NO_BUDGET)
        printf(", \"budget_bytes\": %llu", (unsigned long long)found->budget);
    if (found->machine)
        printf(", \"machine_bytes\": %llu", (unsigned long long)found->machine);
    if (command->given.batch_choice != BATCH_GIVEN)
        printf(", \"largest_batch\": %llu", (unsigned long long)command->choice.largest);
    if (command->given.batch_choice == BATCH_FASTEST)
        printf(", \"fastest_batch\": %llu", (unsigned long long)command->choice.fastest);
    printf(",\n  \"min_budget_bytes\": %llu, \"min_budget_bound_bytes\": %llu, \"keep_all_bytes\": %llu, "
           "\"min_budget_cost\": %llu",
           (unsigned long long)found->ends.least, (unsigned long long)found->figures.min_budget_bound_bytes,
           (unsigned long long)found->ends.keep_all, (unsigned long long)found->least_cost);
    if (found->layer[0])
        run_text_json_text(stdout, ", ", "min_budget_layer", found->layer);
    print_addition_json("clip_norm", found->additions.clipping, found->clips);
    print_addition_json("accumulation", found->additions.accumulating, found->accumulates);
    printf(",\n  \"plan\": {");
    run_text_json(stdout, &found->figures, command->given.train.profile_path != NULL);
    printf("}}\n");
}

static remat_status find_batch(fit_command *command, remat_model *model)
{
    remat_train_options wanted = command->given.train;
    remat_batch_choice *choice = &command->choice;
    const bool fastest = command->given.batch_choice == BATCH_FASTEST;
    wanted.plan_only = true;
    waiting_for(fastest ? "looking for the fastest batch" : "looking for the largest batch");
    remat_status status = fastest ? remat_train_choose_batch(model, &wanted, choice)
                                  : remat_train_largest_batch(model, &wanted, &choice->largest);
    waiting_end();
    command->given.train.batch_size = fastest ? choice->fastest : choice->largest;
    return status;
}

static remat_status fit(fit_command *command, remat_model *model)
{
    answers found = {0};
    remat_status status = REMAT_OK;
    if (command->given.batch_choice != BATCH_GIVEN)
        status = find_batch(command, model);
    if (status == REMAT_OK)
        status = answer(command, model, &found);
    if (status == REMAT_OK)
        (command->given.json ? print_json : print_text)(command, &found);
    command->fits = found.fits;
    remat_trainer_destroy(found.trainer);
    return status;
}

static int fit_model(fit_command *command, remat_model *model)
{
    if (command->ranks.ranks)
        return (command->given.train.pipeline ? fit_pipeline_show : fit_ranks_show)(model, &command->given,
                                                                                    &command->ranks);
    remat_status status = fit(command, model);
    if (status != REMAT_OK)
        command_fail(command->given.context, status);
    return status == REMAT_OK && !command->fits ? REMAT_INFEASIBLE : (int)status;
}

static int fit_graph(const fit_command *command, const remat_graph *graph, bool imported)
{
    const remat_train_options *given = &command->given.train;
    remat_graph_plan_options wanted;
    if (given->profile_path || (given->batch_size && !imported) || command->given.batch_choice != BATCH_GIVEN ||
        command->ranks.ranks) {
        fprintf(stderr, "remat: FILE is a graph; --profile, --ranks and --batch %sare only for models\n",
                imported ? "auto " : "");
        return REMAT_INVALID;
    }
    remat_graph_plan_options_init(&wanted);
    wanted.budget_bytes = given->budget_bytes;
    wanted.strategy = given->strategy;
    wanted.threads = given->threads;
    return graph_fit_show(command->given.context, graph, &wanted, command->given.json);
}

int command_fit(remat_context *context, int argc, char **argv)
{
    fit_command command = {0};
    model_options_init(context, &command.given);
    command_parse(&argp, argc, argv, &command);
    planned_file file;
    command.import.batch = command.given.train.batch_size;
    int code = (int)model_file_read(context, command.given.file, &command.import, &file);
    if (code == REMAT_OK && file.profile) {
        fprintf(stderr, "remat: FILE is a profile; `remat sweep` shows the smallest budget of a profile\n");
        code = REMAT_BAD_INPUT;
    } else if (code == REMAT_OK)
        code = file.model ? fit_model(&command, file.model) : fit_graph(&command, file.graph, file.imported);
    planned_file_release(&file);
    return code;
}
