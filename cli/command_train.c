#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "memory_limit.h"
#include "model_file.h"
#include "model_options.h"
#include "model_set.h"
#include "output_path.h"
#include "rank_voice.h"
#include "trace.h"
#include "train_text.h"
#include "training_save.h"
#include "shard_option.h"
#include "shown.h"
#include "waiting.h"

enum {
    OPTION_PLAN = MODEL_KEYS_END,
    OPTION_GRAPH_PLAN,
    OPTION_STEPS,
    OPTION_SEED,
    OPTION_SAVE,
    OPTION_MERGE,
    OPTION_SAVE_EVERY,
    OPTION_SAVE_BEST,
    OPTION_RESUME,
    OPTION_WEIGHTS_ONLY,
    OPTION_PARTIAL,
    OPTION_LOG,
    OPTION_MEMORY_LIMIT,
    OPTION_TRACE,
    OPTION_REDUCE,
    OPTION_RANK_TIMEOUT,
    OPTION_SHARD,
    OPTION_PIPELINE,
    OPTION_FROM_SCRATCH,
};

static const struct argp_option options[] = {
    {"budget", 'b', "SIZE", 0, "train within SIZE bytes in all: 300MiB, 2GB (default: the model's budget, or none)", 0},
    {"strategy", MODEL_STRATEGY, "NAME[:ARG]", 0,
     "what to keep: none, full, every-nth:2, ... (default: the model's blocks, or the best within the budget)", 0},
    {"plan", OPTION_PLAN, "FILE", 0, "run this plan instead of making one", 0},
    {MODEL_ROW_PROFILE, 0},
    {"graph-plan", OPTION_GRAPH_PLAN, "FILE", 0,
     "train with the schedule in FILE, a plan of the model's graph from `remat plan --graph-plan` or another program; "
     "it is checked first",
     0},
    {MODEL_ROW_DATA, 1},
    {MODEL_ROW_LABELS, 1},
    {"steps", OPTION_STEPS, "N", 0,
     "train for N steps in all (default: the model's epochs); 0 only makes the initial weights", 1},
    {"memory-limit", OPTION_MEMORY_LIMIT, "hard", 0,
     "let the system limit the memory to the budget, plus what the program has after planning, plus the recorded "
     "operations and 8 MiB for files; samples held in memory (CSV) count too. Beyond that, training ends with exit "
     "code 5",
     0},
    {MODEL_ROW_BATCH_OR_AUTO, 1},
    {"seed", OPTION_SEED, "N", 0, "seed of weights, order and dropout (default: the model's)", 1},
    {"threads", 'j', "N", 0, "threads to compute with (default: all cores); the bits do not depend on it", 1},
    {MODEL_ROW_KERNELS, 1},
    {MODEL_ROW_DEVICE, 1},
    {"reduce", OPTION_REDUCE, "fixed|fast", 0,
     "with several ranks (mpirun -np N): fixed (default) adds gradients in the order of the micro-batches, with the "
     "same bits for every N; fast leaves the order to MPI",
     1},
    {"shard", OPTION_SHARD, "WHAT", 0,
     "with several ranks: what they share, so that each holds only its part: none (default), optimizer, gradients (and "
     "the optimizer's state) or weights (and both of these); the bits are the same",
     1},
    {"pipeline", OPTION_PIPELINE, "P", 0,
     "with several ranks: cut the layers into P stages, each on a rank of its own, and pass the micro-batches through "
     "them. The number of ranks must be a multiple of P; the bits are the same",
     1},
    {"rank-timeout", OPTION_RANK_TIMEOUT, "SECONDS", 0,
     "with several ranks: end the training if another rank does not answer for SECONDS (default: 600)", 1},
    {"save", OPTION_SAVE, "FILE", 0,
     "write weights and state to FILE at the end, also after Ctrl-C, SIGTERM and SIGHUP. DIR/, or an existing folder: "
     "write a folder in Hugging Face's layout, adapters in PEFT's layout",
     2},
    {"merge", OPTION_MERGE, NULL, 0, "with --save DIR/: add the adapters to the weights and write the whole model", 2},
    {"save-every", OPTION_SAVE_EVERY, "N", 0, "with --save, also write that file after every N steps", 2},
    {"save-best", OPTION_SAVE_BEST, "FILE", 0,
     "write weights and state to FILE after each validation that is the best so far. Without it, a model with "
     "early_stopping and --save NAME.EXT writes them to NAME.best.EXT while it trains; if it stops early, --save "
     "writes the best weights and that file is removed",
     2},
    {"weights-only", OPTION_WEIGHTS_ONLY, NULL, 0, "save without the state of the optimizer and the training", 2},
    {"resume", OPTION_RESUME, "FILE", 0, "continue where the saved training stopped, with the same bits", 2},
    {"weights", 'w', "FILE", 0, "start with these weights: safetensors, or a state dict that torch.save wrote", 2},
    {MODEL_ROW_MAP, 2},
    {"from-scratch", OPTION_FROM_SCRATCH, NULL, 0,
     "for a folder: start with random weights, not with those of the folder", 2},
    {"partial", OPTION_PARTIAL, NULL, 0,
     "with --weights: take what fits. Tensors that are missing or have another shape, such as a new head, keep their "
     "initial values and are listed; if position embeddings have another length, the common part is taken",
     2},
    {"log", OPTION_LOG, "FILE", 0, "write a line of JSON for every step to FILE", 3},
    {"trace", OPTION_TRACE, "FILE", 0, "write every action of the run to FILE, JSON for Perfetto or chrome://tracing",
     3},
    {"json", MODEL_JSON, NULL, 0, "print the final figures as JSON", 3},
    {"quiet", 'q', NULL, 0, "no progress", 3},
    {0}};

/* --save DIR/ of a model that came from a folder, or has adapters: a folder, without the state of the training. */
static void choose_save(train_command *command, struct argp_state *state)
{
    const char *path = command->save;
    const size_t length = path ? strlen(path) : 0;
    const bool can = model_set_adapts() || (command->given.file && model_file_is_folder(command->given.file));
    if (length == 0 || !can || !(path[length - 1] == '/' || model_file_is_folder(path))) {
        if (command->merge)
            argp_error(state, "--merge is for --save DIR/");
        return;
    }
    if (command->save_every || command->save_best)
        argp_error(state, "--save-every and --save-best need --save FILE, not a folder");
    command->save_folder = path;
    command->save = NULL;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    train_command *command = state->input;
    switch (key) {
    case 'q': command->quiet = true; break;
    case OPTION_PLAN: command->given.train.plan_path = argument; break;
    case OPTION_GRAPH_PLAN: command->given.train.graph_plan_path = argument; break;
    case OPTION_STEPS: command->given.train.steps = command_count(state, command->given.context, argument); break;
    case OPTION_MEMORY_LIMIT:
        if (strcmp(argument, "hard") != 0)
            argp_error(state, "--memory-limit takes 'hard', not '%s'", shown(argument));
        command->hard = true;
        break;
    case OPTION_REDUCE: command->given.train.reduce_fast = reduce_parse(state, argument); break;
    case OPTION_SHARD: command->given.train.shard = shard_parse(state, argument); break;
    case OPTION_PIPELINE:
        command->given.train.pipeline = command_count(state, command->given.context, argument);
        if (command->given.train.pipeline == 0)
            argp_error(state, "--pipeline takes a number of stages from 1 on");
        break;
    case OPTION_RANK_TIMEOUT:
        command->rank_timeout = command_count(state, command->given.context, argument);
        if (command->rank_timeout == 0)
            argp_error(state, "--rank-timeout takes a number of seconds from 1 on");
        break;
    case OPTION_SEED: command->given.train.seed = command_count(state, command->given.context, argument); break;
    case OPTION_SAVE: command->save = argument; break;
    case OPTION_MERGE: command->merge = true; break;
    case OPTION_SAVE_EVERY:
        command->save_every = command_count(state, command->given.context, argument);
        if (command->save_every == 0)
            argp_error(state, "--save-every takes a number of steps from 1 on");
        break;
    case OPTION_SAVE_BEST: command->save_best = argument; break;
    case OPTION_RESUME: command->resume = argument; break;
    case 'w': command->given.weights = argument; break;
    case OPTION_WEIGHTS_ONLY: command->weights_only = true; break;
    case OPTION_FROM_SCRATCH: command->from_scratch = true; break;
    case OPTION_PARTIAL: command->given.train.partial_weights = true; break;
    case OPTION_TRACE: command->trace = argument; break;
    case OPTION_LOG: command->log = argument; break;
    case ARGP_KEY_END:
        model_options_parse(key, argument, state);
        choose_save(command, state);
        if (command->from_scratch && command->given.weights && command->given.weights != command->given.file)
            argp_error(state, "--from-scratch starts with random weights: leave out --weights");
        if (command->from_scratch)
            command->given.weights = NULL;
        if (command->resume && command->given.weights == command->given.file)
            command->given.weights = NULL; /* of a folder: the saved training has newer ones */
        if (command->resume && command->given.weights)
            argp_error(state, "--resume brings its own weights: leave out --weights");
        if (command->resume && command->given.train.seed != REMAT_DEFAULT)
            argp_error(state, "--resume continues with the seed of the saved training: leave out --seed");
        if ((command->given.train.names_path || command->given.train.partial_weights) && !command->given.weights)
            argp_error(state, "--map and --partial are for --weights FILE, which is missing");
        if (command->given.train.plan_path && command->given.train.strategy)
            argp_error(state, "--plan says what to keep: leave out --strategy");
        if (command->given.train.graph_plan_path && (command->given.train.plan_path || command->given.train.strategy))
            argp_error(state, "--graph-plan says what to keep: leave out --plan and --strategy");
        if (command->weights_only && !command->save && !command->save_best)
            argp_error(state, "--weights-only is for --save FILE, which is missing");
        if (command->save_every && !command->save)
            argp_error(state, "--save-every is for --save FILE, which is missing");
        break;
    default: return model_options_parse(key, argument, state);
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL.ini",
    .doc = "Train a model within a budget of bytes: a model file, or a folder in Hugging Face's layout. Before the "
           "first step, Remat decides what is kept and what is "
           "recomputed, and allocates all memory; the results do not depend on the plan. Ctrl-C, SIGTERM and "
           "SIGHUP end the run after the current step; --save still saves, and the exit code is 130, 143 or 129. "
           "Started by "
           "`mpirun -np N`, N processes share the micro-batches of each step; the bits do not depend on N.\v"
           "Examples:\n"
           "  remat train gpt.ini --budget 64MiB --steps 200 --save gpt.safetensors\n"
           "  remat train Qwen2.5-0.5B --length 256 --lora rank=8 --frozen int4 \\\n"
           "    --budget 450MB --data learn.jsonl --pack --save adapter/",
    .children = model_set_children,
};

static bool on_step(void *user, const remat_step_result *result)
{
    train_command *command = user;
    progress_step(&command->progress, result);
    return interrupt_signal() == 0;
}

static void on_validation(void *user, uint64_t step, const remat_validation_result *result)
{
    train_command *command = user;
    progress_validation(&command->progress, step, result);
}

/* Steps until the end, watched. Says on stderr what is wrong. */
static remat_status run(train_command *command, remat_trainer *trainer, uint64_t first, remat_run_result *result)
{
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.on_step = on_step;
    hooks.on_validation = on_validation;
    hooks.user = command;
    hooks.log_path = command->log;
    hooks.save_path = command->save;
    hooks.save_every = command->save_every;
    hooks.save_weights_only = command->weights_only;
    hooks.best_path = command->best[0] ? command->best : NULL;
    trace *watched = NULL;
    remat_status status =
        command->trace ? trace_start(command->given.context, trainer, command->trace, &watched) : REMAT_OK;
    if (status != REMAT_OK)
        return status;
    progress_start(&command->progress, trainer, first, command->quiet);
    interrupt_watch();
    status = remat_trainer_run(trainer, &hooks, result);
    progress_end(&command->progress);
    if (status != REMAT_OK)
        command_fail(command->given.context, status);
    trace_end(watched);
    return status;
}

static remat_status load(const train_command *command, remat_trainer *trainer)
{
    if (command->resume)
        return remat_trainer_resume(trainer, command->resume);
    return command->given.weights ? remat_trainer_load(trainer, command->given.weights) : REMAT_OK;
}

/* NAME.best.EXT for NAME.EXT. Devices and pipes have no other name. */
static void choose_best_path(train_command *command, const remat_trainer_figures *figures)
{
    struct stat info;
    const char *path = command->save_best ? command->save_best : command->save;
    if (!path || (!command->save_best && figures->early_stopping == 0))
        return;
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot || dot == path)
        dot = path + strlen(path);
    if (command->save_best)
        snprintf(command->best, sizeof command->best, "%s", path);
    else if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        snprintf(command->best, sizeof command->best, "%.*s.best%s", (int)(dot - path), path, dot);
}

static training_target save_target(const train_command *command)
{
    return (training_target){.path = command->save ? command->save : command->save_folder,
                             .is_folder = !command->save,
                             .with_state = !command->weights_only,
                             .merge = command->merge};
}

/* A run that failed keeps the steps that it took. */
static void save_after_failure(const train_command *command, const remat_trainer *trainer, remat_status failure)
{
    char message[TRAINING_SAVE_MESSAGE];
    const training_target target = save_target(command);
    if (training_save(command->given.context, trainer, &target, message) == REMAT_OK)
        fprintf(stderr, "remat: the %s saved to %s\n",
                failure == REMAT_DIVERGED ? "last finite weights were" : "training up to this step was",
                shown(target.path));
    fputs(message, stderr);
}

/* What may fail before the first step. Says on stderr what is wrong. */
static remat_status prepare(train_command *command, remat_trainer *trainer)
{
    const training_target target = save_target(command);
    remat_status status = load(command, trainer);
    if (status == REMAT_OK)
        status = training_save_check(trainer, &target);
    if (status != REMAT_OK)
        command_fail(command->given.context, status);
    return status;
}

/* Says on stderr what is wrong. `stopped`: by a signal, after a step. */
static remat_status train(train_command *command, remat_trainer *trainer, bool *stopped)
{
    remat_trainer_figures figures;
    remat_run_result result;
    remat_trainer_get_figures(trainer, &figures);
    choose_best_path(command, &figures);
    if (!command->quiet && command->given.batch_choice != BATCH_GIVEN)
        train_text_batch(command, &figures);
    if (!command->quiet)
        train_text_plan(command, trainer);
    const uint64_t first = remat_trainer_steps_taken(trainer);
    remat_status status = run(command, trainer, first, &result);
    /* These two come to all ranks, others to one. */
    if (status != REMAT_OK && status != REMAT_DIVERGED && status != REMAT_INVALID &&
        remat_communicator_size(command->ranks) > 1)
        ranks_fail(command->ranks, status);
    if (status != REMAT_OK) {
        if ((command->save || command->save_folder) && remat_trainer_steps_taken(trainer) > first)
            save_after_failure(command, trainer, status);
        return status;
    }
    char message[TRAINING_SAVE_MESSAGE] = "";
    const training_target target = save_target(command);
    if (target.path)
        status = training_save(command->given.context, trainer, &target, message);
    if (target.is_folder && target.path && status == REMAT_OK && !command->quiet)
        fprintf(stderr, "saved %s\n", shown(target.path));
    if (status == REMAT_OK && result.restored_best && command->save && !command->save_best)
        unlink(command->best); /* the same weights are saved now */
    /* What the run came to is worth knowing even where it could not be saved. */
    if (!command->quiet)
        train_text_end(command, trainer, &result, status == REMAT_OK);
    if (command->given.json)
        train_text_json(command, trainer, &result);
    fputs(message, stderr); /* last, where it is seen */
    *stopped = result.stopped;
    return status;
}

/* Bytes of it: the first rank collects what ranks share, tensor by tensor, when it saves. */
static uint64_t largest_parameter(const remat_trainer *trainer)
{
    uint64_t largest = 0;
    remat_parameter about;
    for (size_t p = 0; p < remat_trainer_parameter_count(trainer); p++)
        if (remat_trainer_get_parameter(trainer, p, &about) == REMAT_OK && about.count * sizeof(float) > largest)
            largest = about.count * sizeof(float);
    return largest;
}

/* Plans, then sets the limit, then goes on with that plan: planning takes more memory than training does. */
static remat_status start_limited(train_command *command, remat_model *model, remat_trainer **trainer)
{
    const uint64_t before = remat_context_bytes(command->given.context);
    waiting_for("planning");
    remat_status status = model_file_plan(model, &command->given.train, trainer);
    waiting_end();
    if (status != REMAT_OK)
        return command_fail(command->given.context, status), status;
    const uint64_t planned = remat_context_bytes(command->given.context) - before;
    remat_trainer_figures figures;
    remat_trainer_get_figures(*trainer, &figures);
    if (figures.budget_bytes == REMAT_NO_BUDGET) {
        fprintf(stderr, "remat: --memory-limit hard needs a budget: give --budget, or set it in the model\n");
        return REMAT_INVALID;
    }
    /* The operations are recorded once; once more to find where a training diverges; and for a trace, with times. */
    const uint64_t recorded = (figures.table_bytes - planned) * (command->trace ? 4 : 2);
    const uint64_t collected = command->given.train.shard != REMAT_SHARD_NONE || command->given.train.pipeline > 1
                                   ? largest_parameter(*trainer)
                                   : 0;
    /* The limit does not count what is mapped. */
    if (!memory_limit_set(figures.budget_bytes - figures.mapped_bytes + recorded + collected, figures.threads,
                          &command->limit))
        return REMAT_IO;
    status = remat_trainer_start(*trainer);
    return status == REMAT_OK ? REMAT_OK : (command_fail(command->given.context, status), status);
}

/* Files that would be missed only after hours, and files that would be overwritten. */
static remat_status check_outputs(const train_command *command)
{
    const char *const outputs[] = {command->save, command->save_best, command->log, command->trace};
    /* The last two may be replaced by --save: a training goes on in its own file. */
    const char *const inputs[] = {command->given.file,
                                  command->given.train.profile_path,
                                  command->given.train.plan_path,
                                  command->given.train.graph_plan_path,
                                  command->given.train.data_path,
                                  command->given.train.labels_path,
                                  command->given.train.names_path,
                                  command->resume,
                                  command->given.weights};
    enum { INPUTS = sizeof inputs / sizeof inputs[0] };
    remat_status status = output_path_make(command->save_folder);
    for (int o = 0; o < 4 && status == REMAT_OK; o++) {
        status = output_path_check(outputs[o], o < 2);
        if (status == REMAT_OK)
            status = output_path_check_inputs(outputs[o], inputs, o == 0 ? INPUTS - 2 : INPUTS);
        for (int other = 0; other < o && status == REMAT_OK; other++)
            status = output_path_check_other(outputs[o], outputs[other], "two outputs would be written to it");
    }
    return status;
}

static remat_status find_batch(train_command *command, remat_model *model)
{
    remat_train_options *wanted = &command->given.train;
    waiting_for("looking for the best batch");
    remat_status status = command->given.batch_choice == BATCH_FASTEST
                              ? remat_train_choose_batch(model, wanted, &command->choice)
                              : remat_train_largest_batch(model, wanted, &wanted->batch_size);
    waiting_end();
    if (status != REMAT_OK)
        return command_fail(command->given.context, status), status;
    if (command->given.batch_choice == BATCH_FASTEST)
        wanted->batch_size = command->choice.fastest;
    if (command->quiet || wanted->batch_size < command->choice.largest)
        return REMAT_OK;
    remat_train_options any = *wanted;
    remat_trainer *more;
    any.batch_size++;
    any.plan_only = true; /* whatever the data has */
    if (model_file_plan(model, &any, &more) != REMAT_OK)
        return REMAT_OK;
    remat_trainer_destroy(more);
    any.batch_size = 0;
    if (remat_train_largest_batch(model, &any, &command->most_batch) != REMAT_OK)
        command->most_batch = 0;
    return REMAT_OK;
}

/* Says on stderr what is wrong. */
static remat_status start(train_command *command, remat_model *model, remat_trainer **trainer)
{
    remat_status status = command->given.batch_choice != BATCH_GIVEN ? find_batch(command, model) : REMAT_OK;
    if (status != REMAT_OK)
        return status;
    if (command->hard)
        return start_limited(command, model, trainer);
    waiting_for("planning");
    status = remat_trainer_create(model, &command->given.train, trainer);
    waiting_end();
    memory_trim();
    return status == REMAT_OK ? REMAT_OK : (command_fail(command->given.context, status), status);
}

/* Ranks but the first print and trace nothing, and check no outputs: they write none. */
static remat_status join_ranks(train_command *command, remat_context *context)
{
    remat_status status = ranks_open(context, (double)command->rank_timeout, &command->ranks);
    if (status != REMAT_OK)
        return status;
    command->given.train.communicator = command->ranks;
    if (ranks_are_first(command->ranks))
        return REMAT_OK;
    command->quiet = true;
    command->trace = NULL;
    return REMAT_OK;
}

static remat_status read_and_start(train_command *command, remat_model **model, remat_trainer **trainer)
{
    const bool writes = ranks_are_first(command->ranks);
    remat_status status = writes ? check_outputs(command) : REMAT_OK;
    if (status == REMAT_OK)
        status = model_file_read_model(command->given.context, command->given.file, model);
    const char *const outputs[] = {command->save, command->save_best, command->log, command->trace};
    for (int o = 0; o < 4 && status == REMAT_OK && writes; o++)
        status = output_path_check_data(command->given.context, *model, outputs[o]);
    if (status == REMAT_OK)
        status = start(command, *model, trainer);
    return status == REMAT_OK ? prepare(command, *trainer) : status;
}

int command_train(remat_context *context, int argc, char **argv)
{
    train_command command = {0};
    command.argc = argc;
    command.argv = argv;
    model_options_init(context, &command.given);
    command_parse(&argp, argc, argv, &command);
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    bool stopped = false;
    remat_status status = join_ranks(&command, context);
    if (status != REMAT_OK)
        return (int)status;
    status = ranks_agree(command.ranks, read_and_start(&command, &model, &trainer));
    if (status == REMAT_OK)
        status = train(&command, trainer, &stopped);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    const int signal = interrupt_signal() ? interrupt_signal() : SIGTERM; /* maybe another rank's */
    return ranks_close(command.ranks, stopped && status == REMAT_OK ? 128 + signal : (int)status);
}
