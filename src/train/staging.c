#include "train/staging.h"

#include <string.h>

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

/* Of one buffer. */
static uint64_t buffer_bytes(const remat_network *network)
{
    uint64_t bytes = rounded(label_bytes(network));
    for (size_t n = 0; n < network->layer_count; n++)
        if (network->layers[n].node.input_count == 0)
            bytes += rounded(input_bytes(&network->layers[n].node));
    return bytes;
}

uint64_t staging_bytes(const remat_network *network, const backend *device, staging_options options)
{
    return device->host_visible && !options.apart ? 0 : options.buffers * buffer_bytes(network);
}

remat_status staging_create(const remat_network *network, backend *device, staging_options options, staging *made)
{
    *made = (staging){.network = network, .buffers = options.buffers, .ahead = STAGING_NOTHING};
    return backend_allocate(device, MEMORY_STAGING, staging_bytes(network, device, options), false, &made->memory);
}

void staging_release(staging *made, backend *device)
{
    backend_release(device, &made->memory);
    *made = (staging){0};
}

void staging_aim(staging *at, const remat_executor *executor)
{
    uint64_t offset = at->memory.at ? at->current * buffer_bytes(at->network) : 0;
    at->input_count = 0;
    at->ahead = STAGING_NOTHING;
    for (uint32_t n = 0; n < at->network->layer_count; n++) {
        const layer_node *node = &at->network->layers[n].node;
        if (node->input_count != 0)
            continue;
        at->inputs[at->input_count++] = at->memory.at ? at->memory.at + offset : executor_input(executor, n).at;
        offset += rounded(input_bytes(node));
    }
    at->labels = at->memory.at && at->network->has_labels ? at->memory.at + offset : executor_labels(executor).at;
}

bool staging_turn(staging *at, const remat_executor *executor)
{
    if (!at->memory.at || at->buffers < 2)
        return false;
    at->current = (at->current + 1) % at->buffers;
    staging_aim(at, executor);
    return true;
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

/* Rows move together, to the front. */
static void shorten(char *rows, uint64_t count, uint64_t from, uint64_t to)
{
    for (uint64_t i = 1; i < count; i++)
        memmove(rows + i * to, rows + i * from, to);
}

remat_status staging_send_short(staging *from, const remat_network *to, const remat_executor *executor,
                                backend_queue *queue)
{
    const uint64_t batch = to->batch;
    size_t next = 0;
    for (uint32_t n = 0; n < to->layer_count; n++) {
        const layer_node *node = &to->layers[n].node;
        if (node->input_count != 0)
            continue;
        shorten(from->inputs[next], batch, input_bytes(&from->network->layers[n].node) / batch,
                input_bytes(node) / batch);
        REMAT_TRY(backend_copy_in(queue, executor_input(executor, n).at, from->inputs[next++], input_bytes(node)));
    }
    shorten(from->labels, batch, label_bytes(from->network) / batch, label_bytes(to) / batch);
    return backend_copy_in(queue, executor_labels(executor).at, from->labels, label_bytes(to));
}
