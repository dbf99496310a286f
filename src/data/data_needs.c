/* Describes what a network reads, for the data loader. */
#include "data/data_needs.h"

#include "base/options.h"
#include "model/model_object.h"

#include <remat/model.h>

/* Numbers of tokens must be rows of every table that reads them; positions are those of steps. 0 where nobody reads them. */
static uint64_t token_bound(const remat_network *network, uint32_t input)
{
    uint64_t bound = 0;
    for (size_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        for (uint32_t i = 0; i < layer->node.input_count; i++)
            if (layer->inputs[i] == input && layer->node.input_dtypes[i] == REMAT_INT32) {
                const bool is_table = layer->node.parameter_count > 0;
                uint64_t rows = is_table ? layer->node.parameters[0].dims[0] : layer->node.inputs[0].h;
                bound = bound && bound < rows ? bound : rows;
            }
    }
    return bound;
}

static uint64_t class_count(const remat_network *network)
{
    const layer_node *loss = &network->layers[network->layer_count - 1].node;
    return loss->parameter_count ? loss->parameters[0].dims[0] : loss->inputs[0].w;
}

data_needs network_data_needs(const remat_network *network)
{
    data_needs needs = {0};
    for (uint32_t n = 0; n < network->layer_count; n++) {
        const layer_node *node = &network->layers[n].node;
        if (node->input_count != 0 || needs.input_count == LAYER_MAX_INPUTS)
            continue;
        uint64_t bound = token_bound(network, n);
        needs.inputs[needs.input_count++] = (data_field){
            layer_values(node->output), node->dtype, bound, false, {node->output.c, node->output.h, node->output.w}};
    }
    if (network->has_labels)
        needs.labels = (data_field){layer_values(network->labels),
                                    network->labels_dtype,
                                    network->labels_dtype == REMAT_INT32 ? class_count(network) : 0,
                                    true,
                                    {0}};
    return needs;
}

/* ---- the same for programs ---- */

static remat_sample_field public_field(const data_field *field, const network_layer *layer)
{
    return (remat_sample_field){.layer = layer->node.name,
                                .dtype = field->dtype,
                                .count = field->values,
                                .shape = {field->shape[0], field->shape[1], field->shape[2]},
                                .bound = field->bound};
}

static data_needs model_needs(const remat_model *model)
{
    return model->network ? network_data_needs(model->network) : (data_needs){0};
}

size_t remat_model_input_count(const remat_model *model)
{
    return model_needs(model).input_count;
}

remat_status remat_model_get_input_sized(const remat_model *model, size_t position, remat_sample_field *input,
                                         size_t input_size)
{
    const data_needs needs = model_needs(model);
    if (position >= needs.input_count)
        return remat_fail(model->context, REMAT_INVALID, NULL, "there is no input %zu; the compiled model has %zu",
                          position, needs.input_count);
    const network_layer *layer = model->network->layers;
    for (size_t seen = 0;; layer++)
        if (layer->node.input_count == 0 && seen++ == position)
            break;
    const remat_sample_field found = public_field(&needs.inputs[position], layer);
    remat_struct_give(input, input_size, &found, sizeof found);
    return REMAT_OK;
}

remat_status remat_model_get_labels_sized(const remat_model *model, remat_sample_field *labels, size_t labels_size)
{
    const data_needs needs = model_needs(model);
    if (!model->network || !model->network->has_labels)
        return remat_fail(model->context, REMAT_INVALID, NULL, "the model has no loss, or is not compiled");
    const remat_sample_field found =
        public_field(&needs.labels, &model->network->layers[model->network->layer_count - 1]);
    remat_struct_give(labels, labels_size, &found, sizeof found);
    return REMAT_OK;
}
