/* Which layer is to blame where a training is too large. */
#include <stdio.h>

#include <remat/units.h>

#include "base/error.h"
#include "train/trainer_object.h"

/* From these sizes on a tensor is named: where memory runs out, and where numbers are too large. */
static const uint64_t LARGE = UINT64_C(1) << 30, ABSURD = UINT64_C(1) << 42;

typedef struct large_tensor {
    uint32_t layer;
    const char *what;
    uint64_t bytes;
} large_tensor;

static large_tensor find_largest(const remat_network *network)
{
    large_tensor largest = {.what = "output"};
    for (size_t i = 0; i < network->layer_count; i++) {
        const layer_node *node = &network->layers[i].node;
        const uint64_t bytes = node->view ? 0 : layer_values(node->output) * node->batch * sizeof(float);
        if (bytes > largest.bytes)
            largest = (large_tensor){(uint32_t)i, "output", bytes};
    }
    for (size_t p = 0; p < network->parameter_count; p++)
        if (network->parameters[p].bytes > largest.bytes)
            largest = (large_tensor){network->parameters[p].layer, network->parameters[p].about.name,
                                     network->parameters[p].bytes};
    return largest;
}

remat_status trainer_blame(const remat_trainer *trainer, remat_status status)
{
    if (!trainer->network || (status != REMAT_NO_MEMORY && status != REMAT_INVALID))
        return status;
    const large_tensor largest = find_largest(trainer->network);
    if (largest.bytes < (status == REMAT_NO_MEMORY ? LARGE : ABSURD))
        return status;
    char size[REMAT_SIZE_TEXT], message[300];
    const network_layer *layer = &trainer->network->layers[largest.layer];
    const remat_place place = model_layer_place(trainer->model, layer->described);
    snprintf(message, sizeof message, "%.250s", remat_context_message(trainer->context));
    return remat_fail(trainer->context, status, &place, "layer '%.80s': its %s alone takes %s; check its sizes (%s)",
                      layer->node.name, largest.what, remat_size_print(largest.bytes, size), message);
}
