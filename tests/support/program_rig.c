#include "support/program_rig.h"

#include "support/cases.h"

static void expect_fine(const program_rig *rig, remat_status status)
{
    if (status != REMAT_OK)
        fail_msg("%s", remat_context_message(rig->context));
}

void program_rig_open(program_rig *rig, const remat_model *model, const program_rig_options *options)
{
    *rig = (program_rig){.context = model_context(model)};
    expect_fine(rig, backend_open(rig->context, &options->device, &rig->device));
    expect_fine(rig, backend_queue_create(rig->device, &rig->queue));
    const network_options network = {
        .batch = options->batch, .purpose = options->purpose, .dtype = options->dtype, .device = rig->device};
    expect_fine(rig, network_build(model, &network, &rig->network));
    expect_fine(rig, program_build(rig->network, options->apply, &rig->program));
    expect_fine(rig, graph_sequence_plain(rig->program->graph, &rig->sequence));
    expect_fine(rig, graph_walk(rig->program->graph, &rig->sequence, GRAPH_PLACED, &rig->liveness));
    rig->offsets = calloc(rig->liveness.buffer_count, sizeof *rig->offsets);
    for (size_t b = 0; b < rig->liveness.buffer_count; b++) {
        rig->offsets[b] = rig->arena_bytes;
        rig->arena_bytes += rig->liveness.buffers[b].bytes;
    }
    rig->arena = aligned_alloc(64, rig->arena_bytes);
    rig->parameters = calloc(1, rig->network->parameter_bytes);
    rig->gradients = calloc(1, rig->network->parameter_bytes);
    expect_fine(rig, staging_create(rig->network, rig->device, (staging_options){.buffers = 1}, &rig->staged));
}

static tensor_ref tensor_in(const program_rig *rig, char *area, size_t parameter)
{
    const network_parameter *about = &rig->network->parameters[parameter];
    return (tensor_ref){area + about->offset, about->about.dtype};
}

static remat_status copy_gradient(void *user, recording *calls, uint32_t parameter, tensor_ref gradient)
{
    const program_rig *rig = user;
    return record_copy(calls, &(op_copy){.x = gradient,
                                         .y = tensor_in(rig, rig->gradients, parameter),
                                         .count = rig->network->parameters[parameter].values});
}

void program_rig_make_executor(program_rig *rig)
{
    const executor_options options = {
        .program = rig->program,
        .sequence = &rig->sequence,
        .liveness = &rig->liveness,
        .memory = {.arena = rig->arena,
                   .arena_bytes = rig->arena_bytes,
                   .offsets = rig->offsets,
                   .parameters = rig->parameters,
                   .step = (char *)&rig->block},
        .device = rig->device,
        .optimizer = {.apply = copy_gradient, .user = rig},
        .training = rig->program->apply != PROGRAM_FORWARD_ONLY,
        .loss_share = 1,
    };
    executor_destroy(rig->executor);
    expect_fine(rig, executor_create(rig->context, &options, &rig->executor));
    memset(rig->arena, 0xff, rig->arena_bytes); /* not a number, wherever it is read before it is written */
    staging_aim(&rig->staged, rig->executor);
}

void program_rig_close(program_rig *rig)
{
    executor_destroy(rig->executor);
    staging_release(&rig->staged, rig->device);
    free(rig->parameters);
    free(rig->gradients);
    free(rig->arena);
    free(rig->offsets);
    graph_liveness_release(rig->context, &rig->liveness);
    graph_sequence_release(rig->context, &rig->sequence);
    program_destroy(rig->program);
    network_destroy(rig->network);
    backend_queue_destroy(rig->queue);
    backend_close(rig->device);
}

double program_rig_run(program_rig *rig, uint64_t seed, const executor_hooks *hooks)
{
    rig->block = (step_block){.seed = seed, .step = 3, .scale = 1};
    expect_fine(rig, staging_send(&rig->staged, rig->executor, rig->queue));
    expect_fine(rig, hooks ? executor_run_observed(rig->executor, rig->queue, hooks)
                           : executor_run(rig->executor, rig->queue));
    expect_fine(rig, backend_wait(rig->queue));
    return rig->block.loss;
}

void *program_rig_parameter(const program_rig *rig, size_t parameter)
{
    return tensor_in(rig, rig->parameters, parameter).at;
}

void *program_rig_gradient(const program_rig *rig, size_t parameter)
{
    return tensor_in(rig, rig->gradients, parameter).at;
}
