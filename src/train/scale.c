/* Simulates the steps of ranks (docs/scale.md). What a transfer takes: a message of n bytes takes latency + n / bandwidth, and
 * every rank sends and receives at the same time. */
#include <remat/scale.h>

#include <math.h>

#include "base/error.h"
#include "base/min_max.h"
#include "base/options.h"
#include "train/trainer_object.h"

void remat_cluster_init_sized(remat_cluster *cluster, size_t size)
{
    const remat_cluster defaults = {.ranks = 1, .network_bytes_per_second = 10e9, .network_latency = 10e-6};
    remat_options_give(cluster, size, &defaults, sizeof defaults);
}

/* ---- transfers ---- */

/* All parts of n bytes to all ranks: by doubling, which a library of collectives does as fast or faster. */
static double gather_seconds(const remat_cluster *to, double bytes)
{
    const double ranks = (double)to->ranks;
    return ceil(log2(ranks)) * to->network_latency + (ranks - 1) / ranks * bytes / to->network_bytes_per_second;
}

/* A part from each rank to each rank, one message each. */
static double scatter_seconds(const remat_cluster *to, double bytes)
{
    const double ranks = (double)to->ranks;
    return (ranks - 1) * to->network_latency + (ranks - 1) / ranks * bytes / to->network_bytes_per_second;
}

/* The library's sum over all ranks: a ring, once for the sums and once for the results. */
static double sum_seconds(const remat_cluster *to, double bytes)
{
    return 2 * scatter_seconds(to, bytes);
}

/* ---- what travels ---- */

static double gradient_bytes_of(const remat_trainer *trainer, uint32_t parameter)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    return layer_parameter_is_trained(&about->about)
               ? (double)dtype_bytes(layer_gradient_dtype(&about->about), about->values)
               : 0;
}

static double all_gradient_bytes(const remat_trainer *trainer)
{
    double bytes = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++)
        if (trainer_has(trainer, p, REMAT_SHARD_GRADIENTS))
            bytes += gradient_bytes_of(trainer, p);
    return bytes;
}

/* Gradients that travel from rank to rank while the backward pass runs, in links: each rank begins a link later than the one
 * before, and in the end the sums go around once more. */
static double chain_seconds(const remat_trainer *trainer, const remat_cluster *to, double micro_seconds, double rounds)
{
    enum { LINK_BYTES = 4 << 20 };
    const double bytes = all_gradient_bytes(trainer), links = ceil(bytes / LINK_BYTES);
    const double link = to->network_latency + fmin(bytes, LINK_BYTES) / to->network_bytes_per_second;
    const double once = links * to->network_latency + bytes / to->network_bytes_per_second;
    const double hidden =
        to->network_in_memory ? 0 : micro_seconds; /* of the transfers of a micro-batch, by computing */
    if (trainer->options.reduce_fast)              /* behind the last backward, which is two thirds of a micro-batch */
        return fmax(sum_seconds(to, bytes) - hidden * 2 / 3, sum_seconds(to, fmin(bytes, LINK_BYTES)));
    return rounds * fmax(once - hidden, 0) + once + 2 * (double)(to->ranks - 1) * link;
}

/* The weights of a layer, for one of its passes. */
static double fetch_seconds(const remat_program *program, uint32_t action, const remat_cluster *to)
{
    const network_layer *layer = &program->network->layers[program->actions[action].layer];
    double seconds = 0;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (program_fetches(program, action, i))
            seconds += gather_seconds(to, (double)program->network->parameters[layer->parameters[i]].bytes);
    return seconds;
}

/* The gradients of a layer to the ranks that add them. */
static double exchange_seconds(const remat_program *program, uint32_t action, const remat_cluster *to)
{
    const program_binding binding = program_binding_of(program, action);
    const network_layer *layer = &program->network->layers[binding.layer];
    double seconds = 0;
    for (uint32_t i = 0; i < layer->node.parameter_count && binding.kind == ACTION_APPLY; i++)
        if (binding.gradients[i] != GRAPH_NONE) {
            const network_parameter *about = &program->network->parameters[layer->parameters[i]];
            seconds += scatter_seconds(to, (double)dtype_bytes(layer_gradient_dtype(&about->about), about->values));
        }
    return seconds;
}

/* A micro-batch of ranks that share gradients or weights: what it takes besides computing. Each rank has one transfer at a time. Weights
 * begin to come where their workspace begins (gather_overlap.c), and an action waits for its own; gradients are waited for. */
static double pass_seconds(const remat_trainer *trainer, const remat_cluster *to)
{
    const remat_program *program = trainer->program;
    const graph_sequence *sequence = &trainer->plan->sequence;
    const graph_liveness *liveness = &trainer->plan->liveness;
    double now = 0, computed = 0, network = 0; /* when the network is free */
    double there[GATHER_MOST_AHEAD] = {0};     /* by position: when its weights are there */
    size_t next = 0;
    for (size_t position = 0; position < sequence->count; position++) {
        const uint32_t action = sequence->actions[position];
        double *mine = &there[position % GATHER_MOST_AHEAD];
        if (*mine == 0 && fetch_seconds(program, action, to) > 0) /* not begun */
            *mine = network = fmax(now, network) + fetch_seconds(program, action, to);
        now = fmax(now, *mine);
        *mine = 0;
        for (; next < liveness->range_count && liveness->ranges[next].born == position; next++) {
            const size_t reader = liveness->ranges[next].ends - 1;
            if (liveness->ranges[next].tensor == GRAPH_NONE && reader > position)
                there[reader % GATHER_MOST_AHEAD] = network =
                    fmax(now, network) + fetch_seconds(program, sequence->actions[reader], to);
        }
        if (exchange_seconds(program, action, to) > 0)
            now = network = fmax(now, network) + exchange_seconds(program, action, to);
        now += 1e-9 * (double)program->graph->actions[action].cost;
        computed += 1e-9 * (double)program->graph->actions[action].cost;
    }
    return now - computed;
}

/* The same where nothing is hidden: the sum. */
static double plain_pass_seconds(const remat_trainer *trainer, const remat_cluster *to)
{
    const remat_program *program = trainer->program;
    const graph_sequence *sequence = &trainer->plan->sequence;
    double seconds = 0;
    for (size_t position = 0; position < sequence->count; position++)
        seconds += fetch_seconds(program, sequence->actions[position], to) +
                   exchange_seconds(program, sequence->actions[position], to);
    return seconds;
}

/* Once a step: the norm, and the new weights. */
static double update_seconds(const remat_trainer *trainer, const remat_cluster *to)
{
    const remat_shard stage = trainer->options.shard;
    double seconds = gather_seconds(to, 16); /* losses */
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        if (gradient_bytes_of(trainer, p) <= 0)
            continue;
        if (stage >= REMAT_SHARD_GRADIENTS && trainer->settings.clip_norm > 0)
            seconds += gather_seconds(to, gradient_bytes_of(trainer, p) / SHARD_BLOCK * 2);
        if (stage == REMAT_SHARD_OPTIMIZER || stage == REMAT_SHARD_GRADIENTS)
            seconds += gather_seconds(to, (double)trainer->network->parameters[p].bytes);
    }
    return seconds;
}

static double transfer_seconds(const remat_trainer *trainer, const remat_cluster *to, double micro_seconds,
                               double rounds)
{
    if (to->ranks == 1)
        return 0;
    double seconds = update_seconds(trainer, to);
    if (trainer->options.shard < REMAT_SHARD_GRADIENTS)
        return seconds + chain_seconds(trainer, to, micro_seconds, rounds);
    return seconds + rounds * (to->network_in_memory ? plain_pass_seconds(trainer, to) : pass_seconds(trainer, to));
}

/* ---- a step ---- */

/* Weights, gradients and moments move through memory once, those that the rank updates. */
static double update_cost(const remat_trainer *trainer)
{
    uint64_t moved = 2 * trainer->state_bytes;
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const layer_parameter *about = &trainer->network->parameters[p].about;
        const uint64_t values = trainer_part(trainer, p, REMAT_SHARD_OPTIMIZER).values;
        if (layer_parameter_is_trained(about))
            moved += 2 * dtype_bytes(about->dtype, values) + dtype_bytes(layer_gradient_dtype(about), values);
    }
    return 1e-9 * (double)program_modelled_cost(&trainer->program->speed, 0, moved);
}

static uint64_t stages_of(const remat_train_options *options)
{
    return options->pipeline > 1 ? options->pipeline : 1;
}

static void simulate(const remat_trainer *trainer, const remat_cluster *cluster, remat_scale_estimate *estimate)
{
    remat_trainer_figures figures;
    const double rounds = (double)estimate->micro_batches, micro = 1e-9 * (double)trainer->plan->cost;
    remat_trainer_get_figures(trainer, &figures);
    estimate->fits = true;
    estimate->rank_bytes = figures.total_bytes;
    estimate->compute_seconds = rounds * micro + update_cost(trainer);
    estimate->recompute_seconds = trainer->plan->cost > trainer->plan->base_cost
                                      ? rounds * 1e-9 * (double)(trainer->plan->cost - trainer->plan->base_cost)
                                      : 0;
    estimate->transfer_seconds = transfer_seconds(trainer, cluster, micro, rounds);
    estimate->seconds = estimate->compute_seconds + estimate->transfer_seconds;
}

/* ---- a step of a pipeline ---- */

/* What a micro-batch sends from a stage to the next ones and back to those before. */
static double sent_seconds(const remat_program *program, const remat_cluster *to)
{
    double seconds = 0;
    for (size_t i = 0; i < program->transfer_count; i++)
        if (program->transfers[i].sends)
            seconds += to->network_latency + (double)program->transfers[i].bytes / to->network_bytes_per_second;
    return seconds;
}

/* Where the rows share the state of the optimizer: the new weights, from each to each. */
static double join_seconds(const remat_trainer *trainer, const remat_cluster *rows)
{
    double seconds = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count && trainer->shard; p++)
        if (gradient_bytes_of(trainer, p) > 0 && trainer_has(trainer, p, REMAT_SHARD_OPTIMIZER))
            seconds += scatter_seconds(rows, (double)trainer->network->parameters[p].bytes);
    return seconds;
}

/* Sums over stages, and the most of any. */
typedef struct pipeline_times {
    double path, slowest;  /* of a micro-batch: all stages, and one */
    double sent_path;      /* of its transfers */
    double with_transfers; /* of the stage that takes longest with its own */
    double recompute, update, chain;
} pipeline_times;

static void add_stage(const remat_trainer *trainer, const remat_cluster *cluster, double rounds, pipeline_times *times,
                      remat_scale_estimate *estimate)
{
    const double micro = 1e-9 * (double)trainer->plan->cost, sent = sent_seconds(trainer->program, cluster);
    const double again = 1e-9 * ((double)trainer->plan->cost - (double)trainer->plan->base_cost);
    remat_cluster rows = *cluster;
    rows.ranks = trainer_row_count(trainer);
    times->path += micro;
    times->sent_path += sent;
    if (micro > times->slowest)
        times->recompute = fmax(again, 0) * rounds;
    times->slowest = fmax(times->slowest, micro);
    times->with_transfers = fmax(times->with_transfers, cluster->network_in_memory ? micro + sent : fmax(micro, sent));
    times->update = fmax(times->update, update_cost(trainer));
    if (rows.ranks > 1)
        times->chain = fmax(times->chain, chain_seconds(trainer, &rows, micro, rounds) + join_seconds(trainer, &rows));
    estimate->rank_bytes = remat_max(estimate->rank_bytes, trainer_fixed_bytes(trainer) + trainer_arena_bytes(trainer));
}

/* The first micro-batch passes all stages; behind it one comes every time that the slowest stage takes. */
static void finish_pipeline(const remat_cluster *cluster, double rounds, const pipeline_times *times,
                            remat_scale_estimate *estimate)
{
    estimate->fits = true;
    estimate->compute_seconds = times->path + (rounds - 1) * times->slowest + times->update;
    estimate->recompute_seconds = times->recompute;
    estimate->transfer_seconds = times->sent_path + (rounds - 1) * (times->with_transfers - times->slowest) +
                                 times->chain + gather_seconds(cluster, 16);
    estimate->seconds = estimate->compute_seconds + estimate->transfer_seconds;
}

static remat_status simulate_pipeline(const remat_trainer *trainer, const remat_cluster *cluster,
                                      remat_scale_estimate *estimate)
{
    const double rounds = (double)estimate->micro_batches;
    pipeline_times times = {0};
    for (uint64_t s = 0; s < estimate->pipeline; s++) {
        remat_trainer stage;
        REMAT_TRY(trainer_open_stage(trainer, s, &stage));
        add_stage(&stage, cluster, rounds, &times, estimate);
        trainer_close_stage(&stage);
    }
    finish_pipeline(cluster, rounds, &times, estimate);
    return REMAT_OK;
}

/* A plan for a micro-batch of `batch` samples; REMAT_OK also where it does not fit. */
static remat_status try_batch(remat_model *model, const remat_train_options *options, const remat_cluster *cluster,
                              uint64_t batch, remat_scale_estimate *estimate)
{
    remat_train_options wanted = *options;
    remat_context *context = model_context(model);
    const uint64_t stages = stages_of(options), rows = cluster->ranks / stages;
    const uint64_t rounds = cluster->step_samples / rows / batch;
    *estimate = (remat_scale_estimate){.shard = cluster->ranks > 1 ? options->shard : REMAT_SHARD_NONE,
                                       .ranks = cluster->ranks,
                                       .batch_size = batch,
                                       .micro_batches = rounds,
                                       .pipeline = stages};
    wanted.plan_only = true;
    wanted.communicator = NULL;
    wanted.plan_ranks = cluster->ranks;
    wanted.batch_size = batch;
    wanted.accumulate = rounds * rows;
    remat_trainer *trainer;
    remat_context_set_quiet(context, true);
    remat_status status = remat_trainer_create(model, &wanted, &trainer);
    remat_context_set_quiet(context, false);
    if (status == REMAT_INFEASIBLE) {
        estimate->rank_bytes = remat_context_error(context)->needed_bytes;
        return REMAT_OK;
    }
    REMAT_TRY(status);
    if (stages == 1)
        simulate(trainer, cluster, estimate);
    else
        status = simulate_pipeline(trainer, cluster, estimate);
    remat_trainer_destroy(trainer);
    return status;
}

static uint64_t batch_of(remat_model *model, const remat_train_options *options)
{
    return options->batch_size ? options->batch_size : model_get_settings(model)->batch_size;
}

static remat_status take_cluster(remat_model *model, const remat_train_options *options, const remat_cluster *from,
                                 remat_cluster *cluster)
{
    const uint64_t batch = batch_of(model, options);
    const uint64_t accumulate = model_get_settings(model)->accumulate;
    remat_context *context = model_context(model);
    remat_cluster_init(cluster);
    REMAT_TRY(remat_options_copy(context, cluster, sizeof *cluster, from, "remat_cluster_init"));
    if (cluster->ranks == 0 || cluster->ranks > 1 << 20)
        return remat_fail(context, REMAT_INVALID, NULL, "a cluster has from 1 to 1048576 ranks");
    if (!(cluster->network_bytes_per_second > 0) || !(cluster->network_latency >= 0) ||
        !isfinite(cluster->network_latency))
        return remat_fail(context, REMAT_INVALID, NULL, "the network of a cluster has a speed and a latency");
    if (cluster->ranks % stages_of(options) != 0)
        return remat_fail(context, REMAT_INVALID, NULL, "%llu ranks cannot be pipelines of %llu stages",
                          (unsigned long long)cluster->ranks, (unsigned long long)stages_of(options));
    const uint64_t rows = cluster->ranks / stages_of(options);
    if (cluster->step_samples == 0)
        cluster->step_samples = batch * ((accumulate + rows - 1) / rows * rows);
    if (cluster->step_samples % rows != 0)
        return remat_fail(context, REMAT_INVALID, NULL, "%llu samples of a step are not a multiple of %llu %s",
                          (unsigned long long)cluster->step_samples, (unsigned long long)rows,
                          rows < cluster->ranks ? "rows of a pipeline" : "ranks");
    return REMAT_OK;
}

static remat_status take_options(remat_model *model, const remat_train_options *from, remat_train_options *options)
{
    remat_train_options_init(options);
    return remat_options_copy(model_context(model), options, sizeof *options, from, "remat_train_options_init");
}

remat_status remat_scale_simulate_sized(remat_model *model, const remat_train_options *options,
                                        const remat_cluster *cluster, remat_scale_estimate *estimate,
                                        size_t estimate_size)
{
    remat_cluster of;
    remat_train_options wanted;
    remat_scale_estimate found = {0};
    remat_struct_give(estimate, estimate_size, &found, sizeof found);
    REMAT_TRY(take_options(model, options, &wanted));
    const uint64_t batch = batch_of(model, &wanted);
    REMAT_TRY(take_cluster(model, &wanted, cluster, &of));
    const uint64_t samples = of.step_samples / (of.ranks / stages_of(&wanted));
    if (samples % batch != 0)
        return remat_fail(model_context(model), REMAT_INVALID, NULL,
                          "the %llu samples that a rank has in a step are not a multiple of a batch of %llu",
                          (unsigned long long)samples, (unsigned long long)batch);
    REMAT_TRY(try_batch(model, &wanted, &of, batch, &found));
    remat_struct_give(estimate, estimate_size, &found, sizeof found);
    return REMAT_OK;
}

/* ---- what cannot be ---- */

/* Without recomputing, with stages that take the same time and have as many gradients. Of the transfers only the gradients count: in the
 * fixed order each micro-batch sends them once, and they go around once more; MPI's sum sends them twice. */
static double least_seconds(const remat_trainer *whole, const remat_train_options *options,
                            const remat_cluster *cluster, uint64_t rounds, uint64_t stages)
{
    const double rows = (double)(cluster->ranks / stages), micro = 1e-9 * (double)whole->plan->base_cost;
    const double computing = micro * (double)(rounds - 1 + stages) / (double)stages;
    const double once = all_gradient_bytes(whole) / (double)stages / cluster->network_bytes_per_second;
    if (rows <= 1)
        return computing;
    return options->reduce_fast ? computing - micro / (double)stages + 2 * (rows - 1) / rows * once
                                : fmax(computing + once, (double)(rounds + 1) * once);
}

/* What the stage that needs most has at least, besides activations. */
static uint64_t least_bytes(const remat_trainer *whole, const remat_train_options *options, uint64_t stages,
                            uint64_t rows)
{
    const uint64_t shares = options->shard >= REMAT_SHARD_OPTIMIZER ? rows : 1;
    return (whole->weight_bytes + whole->gradient_bytes + whole->state_bytes / shares) / stages;
}

/* Whether a pipeline need not be planned: it does not fit, or it is too slow. Other ranks are planned soon enough. */
static remat_status rule_out(remat_model *model, const remat_train_options *options, const remat_cluster *cluster,
                             uint64_t batch, remat_scale_estimate *estimate, bool *ruled_out)
{
    const uint64_t stages = stages_of(options), rows = cluster->ranks / stages, budget = options->budget_bytes;
    const uint64_t rounds = cluster->step_samples / rows / batch;
    remat_train_options plain = *options;
    remat_trainer *whole;
    *ruled_out = false;
    if (stages == 1)
        return REMAT_OK;
    plain.plan_only = true;
    plain.communicator = NULL;
    plain.pipeline = plain.plan_ranks = 0;
    plain.shard = REMAT_SHARD_NONE;
    plain.batch_size = batch;
    plain.accumulate = 2;
    plain.strategy = "none";
    plain.budget_bytes = REMAT_NO_BUDGET;
    REMAT_TRY(remat_trainer_create(model, &plain, &whole));
    const double seconds = least_seconds(whole, options, cluster, rounds, stages);
    const uint64_t bytes = least_bytes(whole, options, stages, rows);
    remat_trainer_destroy(whole);
    *estimate = (remat_scale_estimate){.shard = options->shard,
                                       .ranks = cluster->ranks,
                                       .batch_size = batch,
                                       .micro_batches = rounds,
                                       .pipeline = stages,
                                       .rank_bytes = bytes};
    if (budget != REMAT_NO_BUDGET && budget != REMAT_UNLIMITED && bytes > budget) {
        *ruled_out = true;
    } else if (cluster->seconds_to_beat > 0 && seconds >= cluster->seconds_to_beat) {
        estimate->fits = estimate->is_bound = *ruled_out = true;
        estimate->seconds = seconds;
    }
    return REMAT_OK;
}

/* ---- the best micro-batch ---- */

static bool is_better(const remat_scale_estimate *a, const remat_scale_estimate *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (a->is_bound != b->is_bound)
        return b->is_bound;
    return a->fits ? a->seconds < b->seconds : a->rank_bytes < b->rank_bytes;
}

/* Micro-batches that divide what a rank has: one, and up to as many as fit. Memory grows with them, so the first that does not fit
 * is the last one tried. */
remat_status remat_scale_find_sized(remat_model *model, const remat_train_options *options,
                                    const remat_cluster *cluster, remat_scale_estimate *estimate, size_t estimate_size)
{
    enum { MOST_TRIALS = 24 };
    remat_cluster of;
    remat_train_options wanted;
    remat_scale_estimate found = {0}, trial;
    int trials = 0;
    remat_struct_give(estimate, estimate_size, &found, sizeof found);
    REMAT_TRY(take_options(model, options, &wanted));
    REMAT_TRY(take_cluster(model, &wanted, cluster, &of));
    const uint64_t samples = of.step_samples / (of.ranks / stages_of(&wanted));
    for (uint64_t batch = 1; batch <= samples && trials < MOST_TRIALS; batch++) {
        if (samples % batch != 0)
            continue;
        bool ruled_out;
        REMAT_TRY(rule_out(model, &wanted, &of, batch, &trial, &ruled_out));
        if (!ruled_out)
            REMAT_TRY(try_batch(model, &wanted, &of, batch, &trial));
        if (trials++ == 0 || is_better(&trial, &found))
            found = trial;
        if (found.fits && !found.is_bound && !(of.seconds_to_beat > 0 && of.seconds_to_beat < found.seconds))
            of.seconds_to_beat = found.seconds;
        if (!trial.fits)
            break;
    }
    remat_struct_give(estimate, estimate_size, &found, sizeof found);
    return REMAT_OK;
}

/* ---- the fewest ranks ---- */

static remat_status fits_with(const remat_trainer *trainer, uint64_t ranks, uint64_t arena, bool *fits)
{
    uint64_t fixed;
    REMAT_TRY(trainer_fixed_with(trainer, ranks, &fixed));
    *fits = fixed + arena <= trainer->options.budget_bytes;
    return REMAT_OK;
}

/* Doubled until it fits, then the gap is halved. */
static remat_status find_least(const remat_trainer *trainer, uint64_t most, uint64_t arena, uint64_t *ranks)
{
    uint64_t fails = 0, works = 1;
    bool fits;
    REMAT_TRY(fits_with(trainer, works, arena, &fits));
    while (!fits && works < most) {
        fails = works;
        works = remat_min(2 * works, most);
        REMAT_TRY(fits_with(trainer, works, arena, &fits));
    }
    if (!fits)
        return REMAT_OK;
    while (works - fails > 1) {
        const uint64_t middle = fails + (works - fails) / 2;
        REMAT_TRY(fits_with(trainer, middle, arena, &fits));
        if (fits)
            works = middle;
        else
            fails = middle;
    }
    *ranks = works;
    return REMAT_OK;
}

/* The arena does not depend on the number of ranks, so that one plan is enough. */
remat_status remat_scale_least_ranks(remat_model *model, const remat_train_options *options, uint64_t most,
                                     uint64_t *ranks)
{
    remat_train_options wanted;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    *ranks = 0;
    REMAT_TRY(take_options(model, options, &wanted));
    const uint64_t budget = wanted.budget_bytes;
    if (budget == REMAT_NO_BUDGET || most == 0)
        return remat_fail(model_context(model), REMAT_INVALID, NULL, "the fewest ranks for which budget?");
    wanted.plan_only = true;
    wanted.communicator = NULL;
    wanted.plan_ranks = wanted.accumulate = 2;
    wanted.budget_bytes = REMAT_UNLIMITED;
    wanted.strategy = "optimal";
    REMAT_TRY(remat_trainer_create(model, &wanted, &trainer));
    remat_trainer_get_figures(trainer, &figures);
    const uint64_t arena = figures.min_budget_bytes - (figures.total_bytes - figures.arena_bytes);
    trainer->options.budget_bytes = budget;
    remat_status status = find_least(trainer, wanted.shard == REMAT_SHARD_NONE ? 1 : most, arena, ranks);
    remat_trainer_destroy(trainer);
    return status;
}
