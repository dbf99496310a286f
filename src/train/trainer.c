#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include <remat/units.h>

#include "base/options.h"
#include "data/data_needs.h"
#include "graph/chain.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

void remat_train_options_init_sized(remat_train_options *options, size_t size)
{
    const remat_train_options defaults = {
        .budget_bytes = REMAT_NO_BUDGET, .seed = REMAT_DEFAULT, .steps = REMAT_DEFAULT};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* ---- settings ---- */

static remat_status take_settings(remat_trainer *trainer, const remat_train_options *options)
{
    remat_context *context = trainer->context;
    remat_train_options_init(&trainer->options);
    REMAT_TRY(
        remat_options_copy(context, &trainer->options, sizeof trainer->options, options, "remat_train_options_init"));
    trainer->settings = *model_get_settings(trainer->model);
    trainer->optimizer = *model_get_optimizer(trainer->model);
    if (trainer->options.budget_bytes == REMAT_NO_BUDGET && trainer->settings.budget)
        REMAT_TRY(remat_size_parse(context, trainer->settings.budget, &trainer->options.budget_bytes));
    if (trainer->options.graph_plan_path && (trainer->options.plan_path || trainer->options.strategy))
        return remat_fail(context, REMAT_INVALID, NULL, "graph_plan_path is the plan: leave out %s",
                          trainer->options.plan_path ? "plan_path" : "strategy");
    if (!trainer->options.strategy && !trainer->options.plan_path && !trainer->options.graph_plan_path)
        trainer->options.strategy = trainer->settings.strategy;
    if (trainer->options.strategy) {
        trainer->strategy = remat_text_copy(context, trainer->options.strategy);
        if (!trainer->strategy)
            return REMAT_NO_MEMORY;
        trainer->options.strategy = trainer->strategy;
    }
    if (trainer->options.batch_size)
        trainer->settings.batch_size = trainer->options.batch_size;
    if (trainer->options.accumulate)
        trainer->settings.accumulate = trainer->options.accumulate;
    trainer->seed = trainer->options.seed == REMAT_DEFAULT ? trainer->settings.seed : trainer->options.seed;
    trainer->best_validation = trainer->plateau.best = INFINITY;
    if (trainer->options.names_path)
        REMAT_TRY(weight_names_load(context, trainer->options.names_path, &trainer->names));
    trainer->ranks = trainer->options.communicator;
    if (trainer->ranks && trainer->options.threads == 0)
        trainer->options.threads = trainer_default_threads(trainer->ranks);
    const backend_options device = {.device = trainer->options.device,
                                    .kernels = trainer->options.kernels,
                                    .threads = trainer->options.threads,
                                    .process = trainer->ranks ? trainer->ranks->local_rank : 0};
    REMAT_TRY(backend_open(context, &device, &trainer->device));
    return trainer_check_ranks(trainer);
}

/* ---- from model to memory ---- */

static program_apply when_to_apply(const remat_trainer *trainer)
{
    if (trainer_adds(trainer))
        return PROGRAM_ADD_AT_ONCE;
    return trainer->settings.clip_norm > 0 ? PROGRAM_APPLY_AT_END : PROGRAM_APPLY_AT_ONCE;
}

/* A type for frozen weights would do nothing where none is frozen. */
static remat_status check_frozen(const remat_trainer *trainer)
{
    const remat_network *network = trainer->network;
    bool found = model_frozen_dtype(trainer->model) == REMAT_FP32;
    for (size_t p = 0; p < network->parameter_count && !found; p++)
        found = network->parameters[p].about.frozen;
    return found ? REMAT_OK
                 : remat_fail(trainer->context, REMAT_INVALID, NULL,
                              "frozen: it would do nothing, because no layer is frozen; lora and train freeze layers");
}

static remat_status build_network(remat_trainer *trainer)
{
    const network_options wanted = {.batch = trainer->settings.batch_size,
                                    .purpose = NETWORK_TRAINING,
                                    .dtype = model_training_dtype(trainer->model),
                                    .device = trainer->device};
    REMAT_TRY(network_get(trainer->model, &wanted, &trainer->network));
    REMAT_TRY(check_frozen(trainer));
    const double flops = trainer->options.device_flops, bytes = trainer->options.device_bytes_per_second;
    if (!(flops >= 0) || !(bytes >= 0) || !isfinite(flops) || !isfinite(bytes))
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "the speed of a device is a positive number");
    return REMAT_OK;
}

static remat_status build_training(const remat_trainer *trainer, const program_stage *stage, remat_program **program)
{
    const double flops = trainer->options.device_flops, bytes = trainer->options.device_bytes_per_second;
    const program_speed speed = {flops > 0 ? flops * 1e-9 : program_default_speed.flops,
                                 bytes > 0 ? bytes * 1e-9 : program_default_speed.bytes};
    return program_build_for(trainer->network, when_to_apply(trainer), &speed, stage, program);
}

static remat_status set_costs(const remat_trainer *trainer, remat_program *program)
{
    if (!trainer->options.profile_path)
        return REMAT_OK;
    remat_profile *profile;
    REMAT_TRY(remat_profile_load(trainer->context, trainer->options.profile_path, &profile));
    remat_status status = program_set_costs(program, profile);
    if (status == REMAT_OK && profile->algorithms)
        status = backend_use_algorithms(trainer->device, profile->algorithms);
    remat_profile_destroy(profile);
    return status;
}

remat_status trainer_build_program(const remat_trainer *trainer, remat_program **program)
{
    REMAT_TRY(build_training(trainer, NULL, program));
    remat_status status = set_costs(trainer, *program);
    if (status != REMAT_OK)
        program_destroy(*program);
    return status;
}

remat_status trainer_build_programs(remat_trainer *trainer)
{
    const program_stage stage = trainer->pipeline ? pipeline_stage(trainer->pipeline) : (program_stage){0};
    const program_stage *of = trainer->pipeline ? &stage : NULL;
    REMAT_TRY(build_training(trainer, of, &trainer->program));
    REMAT_TRY(program_build_for(trainer->network, PROGRAM_FORWARD_ONLY, NULL, of, &trainer->evaluation));
    REMAT_TRY(set_costs(trainer, trainer->program));
    if (trainer->options.shard < REMAT_SHARD_WEIGHTS || trainer_rank_count(trainer) == 1)
        return REMAT_OK;
    REMAT_TRY(program_fetch_weights(trainer->program));
    return program_fetch_weights(trainer->evaluation);
}

remat_status trainer_open_data(const remat_trainer *trainer, uint64_t seed, const data_encoding *encoding,
                               data_source **data)
{
    const remat_train_options *options = &trainer->options;
    dataset_settings dataset = *model_get_dataset(trainer->model);
    const data_generator generator = {options->sample, options->sample_user,
                                      options->samples + options->validation_samples};
    if (options->sample)
        dataset.validation_split =
            generator.samples ? (double)options->validation_samples / (double)generator.samples : 0;
    if (options->data_path)
        REMAT_TRY(data_replace_files(trainer->context, options->data_path, options->labels_path, &dataset));
    const data_options open = {.settings = &dataset,
                               .generator = options->sample ? &generator : NULL,
                               .needs = network_data_needs(trainer->network),
                               .batch = trainer->network->batch,
                               .seed = seed,
                               .threads = (int)trainer->device->threads,
                               .encoding = encoding};
    return data_source_open(trainer->context, &open, data);
}

remat_status trainer_find_steps(remat_trainer *trainer)
{
    const remat_train_options *options = &trainer->options;
    uint64_t per_step;
    if (!remat_multiply(trainer->network->batch, trainer->settings.accumulate, &per_step))
        per_step = REMAT_LIMIT;
    trainer->steps_per_epoch = data_source_samples(trainer->data, DATA_TRAINING) / per_step;
    if (trainer->steps_per_epoch == 0)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "a step takes %llu samples (batch_size %llu x accumulate %llu) and there are only %llu",
                          (unsigned long long)per_step, (unsigned long long)trainer->network->batch,
                          (unsigned long long)trainer->settings.accumulate,
                          (unsigned long long)data_source_samples(trainer->data, DATA_TRAINING));
    if (trainer->settings.early_stopping && data_source_samples(trainer->data, DATA_VALIDATION) == 0)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "early_stopping = %llu, but there is no validation data to stop by; set validation_split or "
                          "validation_inputs in [Dataset]",
                          (unsigned long long)trainer->settings.early_stopping);
    if (options->steps != REMAT_DEFAULT)
        trainer->total_steps = options->steps;
    else if (!remat_multiply(trainer->settings.epochs, trainer->steps_per_epoch, &trainer->total_steps))
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "epochs = %llu are too many steps",
                          (unsigned long long)trainer->settings.epochs);
    return REMAT_OK;
}

static remat_status create(remat_trainer *trainer, const remat_train_options *options)
{
    REMAT_TRY(take_settings(trainer, options));
    REMAT_TRY(build_network(trainer));
    REMAT_TRY(trainer_cut(trainer));
    REMAT_TRY(trainer_build_programs(trainer));
    REMAT_TRY(length_classes_build(trainer));
    REMAT_TRY(trainer_find_mapped(trainer));
    REMAT_TRY(trainer_place(trainer));
    if (!trainer->options.plan_only)
        REMAT_TRY(trainer_load_data(trainer)); /* first: it fails sooner than a plan is made */
    REMAT_TRY(trainer_plan(trainer));
    REMAT_TRY(length_classes_plan(trainer));
    return trainer_keep_mapped(trainer);
}

remat_status remat_trainer_create(remat_model *model, const remat_train_options *options, remat_trainer **trainer)
{
    *trainer = NULL;
    remat_context *context = model_context(model);
    const uint64_t before = remat_context_bytes(context);
    remat_trainer *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->model = model;
    remat_status status = create(made, options);
    if (status == REMAT_OK) {
        made->planned_bytes = remat_context_bytes(context) - before - made->data_bytes;
        status = made->options.plan_only ? trainer_count_tables(made) : trainer_start(made);
    }
    if (status != REMAT_OK) {
        trainer_blame(made, status);
        remat_trainer_destroy(made);
        return status;
    }
    *trainer = made;
    return REMAT_OK;
}

void remat_trainer_destroy(remat_trainer *trainer)
{
    if (!trainer)
        return;
    remat_trainer_on_action(trainer, NULL, NULL);
    if (trainer->queue)
        backend_wait(trainer->queue); /* recordings go before the queue does */
    pipeline_destroy_executors(trainer->pipeline);
    executor_destroy(trainer->executor);
    executor_destroy(trainer->evaluator);
    length_classes_stop(trainer);
    trainer_release_ranks(trainer);
    trainer_release_apply(trainer);
    data_source_close(trainer->data);
    trainer_release(trainer);
    graph_plan_destroy(trainer->plan);
    remat_release(trainer->context, trainer->points, trainer->point_capacity, sizeof *trainer->points);
    placed_graph_release(&trainer->evaluation_plan);
    length_classes_release(trainer);
    program_destroy(trainer->program);
    program_destroy(trainer->evaluation);
    trainer_release_places(trainer);
    trainer_release_mapped(trainer);
    trainer_release_stages(trainer);
    network_destroy(trainer->network);
    remat_text_release(trainer->context, trainer->strategy);
    weight_names_destroy(trainer->names);
    backend_close(trainer->device);
    remat_release(trainer->context, trainer, 1, sizeof *trainer);
}

/* ---- asking ---- */

uint64_t remat_trainer_steps_taken(const remat_trainer *trainer)
{
    return trainer->step;
}
