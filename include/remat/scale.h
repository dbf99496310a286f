/* Remat: what each of several ranks needs, and how long their steps take, without starting them.
 *
 *     remat_cluster cluster;
 *     remat_cluster_init(&cluster);
 *     cluster.ranks = 1024;
 *     cluster.network_bytes_per_second = 25e9;
 *     cluster.network_latency = 5e-6;
 *     options.budget_bytes = 80000000000;
 *     options.shard = REMAT_SHARD_WEIGHTS;
 *     remat_scale_estimate found;
 *     remat_scale_find(model, &options, &cluster, &found);
 *
 * Memory comes from the plan of a rank, to the byte. The time of a step is simulated: computing from the costs of the
 * plan (measured ones with profile_path, otherwise estimates for device_flops and device_bytes_per_second), transfers
 * by the usual formulas for messages, rings and trees. docs/scale.md has the formulas, and how accurate they are.
 *
 * Threads: as for remat_trainer_create. */
#ifndef REMAT_SCALE_H
#define REMAT_SCALE_H

#include <remat/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_cluster {
    size_t struct_size;
    uint64_t ranks;                  /* from 1 */
    double network_bytes_per_second; /* that a rank can send, while it receives as many. Default: 10e9 */
    double network_latency;          /* of a message, in seconds. Default: 10e-6 */
    /* Samples of a step, of all ranks together: a multiple of `ranks`, or of the rows of a pipeline. 0: as many micro-batches as the
     * model accumulates, rounded up to a multiple of these. */
    uint64_t step_samples;
    /* remat_scale_find: only what may be faster than this is planned, in seconds. 0: everything. */
    double seconds_to_beat;
    /* The ranks are on one machine, and their processors copy the messages through its memory: no transfer is hidden behind
     * computing. */
    bool network_in_memory;
} remat_cluster;
void remat_cluster_init_sized(remat_cluster *cluster, size_t size);
static inline void remat_cluster_init(remat_cluster *cluster)
{
    remat_cluster_init_sized(cluster, sizeof *cluster);
}

typedef struct remat_scale_estimate {
    remat_shard shard;
    bool fits;      /* into the budget; otherwise the figures are those of the smallest plan, and there are no times */
    uint64_t ranks; /* as in the cluster */
    uint64_t batch_size;      /* samples of a micro-batch */
    uint64_t micro_batches;   /* of a rank in a step, or of a row of a pipeline */
    uint64_t rank_bytes;      /* all memory for tensors of a rank */
    double seconds;           /* of a step */
    double compute_seconds;   /* of these: forward, backward, recomputing and the update */
    double transfer_seconds;  /* of these: transfers that nothing hides */
    double recompute_seconds; /* of compute_seconds */
    uint64_t pipeline;        /* stages; 1: no pipeline. With one, rank_bytes are those of the stage that needs most */
    bool is_bound; /* nothing was planned: a step takes `seconds` or more, and that is not below seconds_to_beat */
} remat_scale_estimate;

/* Simulates a step with batch_size, budget, shard and pipeline of the options. It sets plan_only, plan_ranks and
 * accumulate itself. REMAT_INVALID: the samples of a step are not a multiple of ranks x batch_size, or a member of the
 * cluster is wrong. Other errors are those of remat_trainer_create, but a budget that is too small is no error: `fits`
 * is false then. */
remat_status remat_scale_simulate_sized(remat_model *model, const remat_train_options *options,
                                        const remat_cluster *cluster, remat_scale_estimate *estimate,
                                        size_t estimate_size);
static inline remat_status remat_scale_simulate(remat_model *model, const remat_train_options *options,
                                                const remat_cluster *cluster, remat_scale_estimate *estimate)
{
    return remat_scale_simulate_sized(model, options, cluster, estimate, sizeof *estimate);
}

/* Finds the size of a micro-batch with which a step is fastest. batch_size of the options only sets the default of
 * step_samples. */
remat_status remat_scale_find_sized(remat_model *model, const remat_train_options *options,
                                    const remat_cluster *cluster, remat_scale_estimate *estimate, size_t estimate_size);
static inline remat_status remat_scale_find(remat_model *model, const remat_train_options *options,
                                            const remat_cluster *cluster, remat_scale_estimate *estimate)
{
    return remat_scale_find_sized(model, options, cluster, estimate, sizeof *estimate);
}

/* The smallest number of ranks, up to `most`, with which a rank fits into the budget of the options; 0: none. With
 * REMAT_SHARD_NONE every rank needs the same, so it is 1 or 0. */
remat_status remat_scale_least_ranks(remat_model *model, const remat_train_options *options, uint64_t most,
                                     uint64_t *ranks);

#ifdef __cplusplus
}
#endif
#endif
