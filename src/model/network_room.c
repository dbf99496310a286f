/* Kernels that compute in fp32 get tensors in bf16 converted (backend/recording.h). The memory for that is planned: every pass of
 * a layer is recorded once with made-up addresses, which finds the most that one of its operations needs. */
#include "model/network_builder.h"

#include "backend/recording.h"
#include "base/checked.h"
#include "base/error.h"

#define NOWHERE ((char *)(uintptr_t)4096)

/* Hands out addresses that nobody uses; tensors do not overlap. */
typedef struct address_list {
    char *next;
} address_list;

static tensor_ref made_up(address_list *list, remat_dtype dtype, uint64_t values)
{
    const tensor_ref tensor = {list->next, dtype};
    list->next += (dtype_bytes(dtype, values) + 127) & ~(uint64_t)63; /* apart even where there are no values */
    return tensor;
}

static bool is_number(remat_dtype dtype)
{
    return dtype == REMAT_BF16 || dtype == REMAT_FP32;
}

static layer_call made_up_call(const layer_node *node, recording *calls)
{
    address_list list = {NOWHERE};
    layer_call call = {.calls = calls, .loss_share = 1};
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint64_t values = layer_values(node->inputs[i]) * node->batch;
        call.inputs[i] = made_up(&list, node->input_dtypes[i], values);
        if (is_number(node->input_dtypes[i]) && !(node->loss && i > 0))
            call.d_inputs[i] = made_up(&list, node->input_dtypes[i], values);
    }
    call.output = made_up(&list, node->dtype, layer_values(node->output) * node->batch);
    if (!node->loss)
        call.d_output = made_up(&list, node->dtype, layer_values(node->output) * node->batch);
    for (uint32_t s = 0; s < node->saved_count; s++)
        call.saved[s] = made_up(&list, node->saved[s].dtype, node->saved[s].count);
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        const layer_parameter *about = &node->parameters[p];
        uint64_t values = 1;
        for (uint32_t d = 0; d < about->rank; d++)
            values *= about->dims[d];
        call.parameters[p] = made_up(&list, about->dtype, values);
        if (layer_parameter_is_trained(about))
            call.gradients[p] = made_up(&list, layer_gradient_dtype(about), values);
    }
    call.workspace = made_up(&list, REMAT_UINT8, 1); /* holds no bf16, so that its length does not matter */
    call.step = made_up(&list, REMAT_UINT8, sizeof(step_block));
    return call;
}

static remat_status record_forward(const layer_node *node, layer_call *call)
{
    for (int training = 0; training < 2; training++) {
        call->training = training;
        call->counts_correct = !training;
        REMAT_TRY(node->type->forward(node, call));
    }
    const uint64_t values = layer_values(node->output) * node->batch;
    if (node->loss)
        return REMAT_OK;
    return record_check_finite(call->calls, &(op_check_finite){.x = call->output, .step = call->step, .count = values});
}

static remat_status record_input_gradient(const layer_node *node, layer_call *call)
{
    if (node->passes_gradient) {
        for (uint32_t i = 0; i < node->input_count; i++)
            REMAT_TRY(record_accumulate(call->calls, &(op_accumulate){call->d_output, call->d_inputs[i],
                                                                      layer_values(node->inputs[i]) * node->batch}));
        return REMAT_OK;
    }
    for (int accumulates = 0; accumulates < 2 && node->type->input_gradient; accumulates++) {
        for (uint32_t i = 0; i < node->input_count; i++)
            call->accumulate_inputs[i] = accumulates;
        REMAT_TRY(node->type->input_gradient(node, call));
    }
    return REMAT_OK;
}

static remat_status record_pass(const layer_node *node, layer_pass pass, layer_call *call)
{
    call->training = true;
    switch (pass) {
    case LAYER_FORWARD: return record_forward(node, call);
    case LAYER_WEIGHT_GRADIENT: return node->type->weight_gradient ? node->type->weight_gradient(node, call) : REMAT_OK;
    default: return record_input_gradient(node, call);
    }
}

/* Whether something has to be converted. */
static bool has_bf16(const layer_node *node)
{
    bool found = node->dtype == REMAT_BF16;
    for (uint32_t i = 0; i < node->input_count; i++)
        found |= node->input_dtypes[i] == REMAT_BF16;
    for (uint32_t p = 0; p < node->parameter_count; p++) /* weights in fewer bits */
        found |= node->parameters[p].dtype != dtype_traits_of(node->parameters[p].dtype)->accumulator;
    return found;
}

static remat_status find_room(const network_builder *builder, layer_node *node)
{
    for (int pass = 0; pass < LAYER_PASSES; pass++) {
        recording calls;
        recording_begin(&calls, builder->network->options.device);
        calls.counts = true;
        calls.room = NOWHERE;
        layer_call call = made_up_call(node, &calls);
        remat_status status = record_pass(node, (layer_pass)pass, &call);
        node->room[pass] = calls.room_bytes;
        recording_end(&calls);
        if (status != REMAT_OK)
            return status;
        if (layer_workspace(node, (layer_pass)pass, true) >= REMAT_LIMIT)
            return remat_fail(builder->context, REMAT_INVALID, NULL,
                              "%s: its workspace is too large; it must stay below 2^63 bytes", node->type->name);
    }
    return REMAT_OK;
}

remat_status network_find_room(network_builder *builder)
{
    remat_network *network = builder->network;
    for (size_t i = 0; i < network->layer_count; i++) {
        layer_node *node = &network->layers[i].node;
        if (node->input_count && !node->view && has_bf16(node))
            REMAT_TRY(network_blame(builder, &network->layers[i], find_room(builder, node)));
    }
    return REMAT_OK;
}
