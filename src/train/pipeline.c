#include "train/pipeline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

static uint32_t stage_of(const pipeline *stages, uint32_t layer)
{
    uint32_t s = 0;
    while (s + 1 < stages->count && layer >= stages->starts[s + 1])
        s++;
    return s;
}

static void fill(pipeline *stages)
{
    const remat_network *network = stages->network;
    for (uint32_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        const uint32_t stage = stage_of(stages, n);
        for (uint32_t i = 0; i < layer->node.parameter_count; i++)
            stages->held[(size_t)layer->parameters[i] * stages->count + stage] = true;
    }
    for (size_t p = 0; p < network->parameter_count; p++)
        stages->owners[p] = stage_of(stages, network->parameters[p].layer);
}

remat_status pipeline_create(const remat_network *network, uint32_t count, uint32_t number, const uint32_t *starts,
                             pipeline **made)
{
    remat_context *context = network->context;
    pipeline *stages = *made = remat_alloc_zeroed(context, 1, sizeof *stages);
    if (!stages)
        return REMAT_NO_MEMORY;
    *stages = (pipeline){.context = context, .network = network, .count = count, .number = number, .in_flight = 1};
    stages->starts = remat_alloc(context, (size_t)count + 1, sizeof *stages->starts);
    stages->owners = remat_alloc(context, network->parameter_count, sizeof *stages->owners);
    stages->held = remat_alloc_zeroed(context, network->parameter_count * (size_t)count, sizeof *stages->held);
    if (!stages->starts || !stages->owners || !stages->held) {
        pipeline_destroy(stages);
        *made = NULL;
        return REMAT_NO_MEMORY;
    }
    memcpy(stages->starts, starts, ((size_t)count + 1) * sizeof *starts);
    fill(stages);
    return REMAT_OK;
}

void pipeline_destroy_executors(pipeline *stages)
{
    if (!stages || !stages->executors)
        return;
    for (size_t i = 1; i < stages->in_flight; i++)
        executor_destroy(stages->executors[i]);
    remat_release(stages->context, stages->executors, stages->in_flight, sizeof(remat_executor *));
    stages->executors = NULL;
}

void pipeline_destroy(pipeline *stages)
{
    if (!stages)
        return;
    remat_context *context = stages->context;
    const size_t parameters = stages->network->parameter_count;
    pipeline_destroy_executors(stages);
    remat_release(context, stages->offsets, stages->offset_count, sizeof *stages->offsets);
    stage_transfers_destroy(stages->training);
    stage_transfers_destroy(stages->evaluation);
    gradient_chain_destroy(stages->statistics);
    remat_communicator_close(stages->rows);
    remat_release(context, stages->starts, (size_t)stages->count + 1, sizeof *stages->starts);
    remat_release(context, stages->owners, parameters, sizeof *stages->owners);
    remat_release(context, stages->held, parameters * (size_t)stages->count, sizeof *stages->held);
    remat_release(context, stages, 1, sizeof *stages);
}

bool pipeline_holds(const pipeline *stages, uint32_t parameter, uint32_t stage)
{
    return stages->held[(size_t)parameter * stages->count + stage];
}

program_stage pipeline_stage(const pipeline *stages)
{
    return (program_stage){stages->count, stages->number, stages->starts};
}
