#include "train/staging.h"

#include "base/error.h"

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

static uint64_t input_bytes(const layer_node *node)
{
    return dtype_bytes(node->dtype, layer_values(node->output) * node->batch);
}

static uint64_t label_bytes(const remat_network *network)
{
    return network->has_labels ? dtype_bytes(network->labels_dtype, layer_values(network->labels) * network->batch) : 0;
}

uint64_t staging_bytes(const remat_network *network, const backend *device, bool is_stage)
{
    uint64_t bytes = rounded(label_bytes(network));
    for (size_t n = 0; n < network->layer_count; n++)
        if (network->layers[n].node.input_count == 0)
            bytes += rounded(input_bytes(&network->layers[n].node));
    return device->host_visible && !is_stage ? 0 : bytes;
}

remat_status staging_create(const remat_network *network, backend *device, bool is_stage, staging *made)
{
    *made = (staging){.network = network};
    return backend_allocate(device, MEMORY_STAGING, staging_bytes(network, device, is_stage), false, &made->memory);
}

void staging_release(staging *made, backend *device)
{
    backend_release(device, &made->memory);
    *made = (staging){0};
}

void staging_aim(staging *at, const remat_executor *executor)
{
    uint64_t offset = 0;
    at->input_count = 0;
    for (uint32_t n = 0; n < at->network->layer_count; n++) {
        const layer_node *node = &at->network->layers[n].node;
        if (node->input_count != 0)
            continue;
        at->inputs[at->input_count++] = at->memory.at ? at->memory.at + offset : executor_input(executor, n).at;
        offset += rounded(input_bytes(node));
    }
    at->labels = at->memory.at && at->network->has_labels ? at->memory.at + offset : executor_labels(executor).at;
}

remat_status staging_send(const staging *from, const remat_executor *executor, backend_queue *queue)
{
    size_t next = 0;
    if (!from->memory.at)
        return REMAT_OK;
    for (uint32_t n = 0; n < from->network->layer_count; n++) {
        const layer_node *node = &from->network->layers[n].node;
        if (node->input_count != 0)
            continue;
        if (executor_input(executor, n).at)
            REMAT_TRY(backend_copy_in(queue, executor_input(executor, n).at, from->inputs[next], input_bytes(node)));
        next++;
    }
    if (!from->labels || !executor_labels(executor).at)
        return REMAT_OK;
    return backend_copy_in(queue, executor_labels(executor).at, from->labels, label_bytes(from->network));
}
