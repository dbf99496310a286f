#include "graph/chain.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/output_file.h"

static void write_mode(output *out, const remat_mode *mode)
{
    output_text_field(out, "{", "name", mode->name);
    output_field(out, ", ", "activation_bytes", mode->activation_bytes);
    output_field(out, ", ", "forward_cost", mode->forward_cost);
    output_field(out, ", ", "backward_cost", mode->backward_cost);
    output_field(out, ", ", "forward_workspace_bytes", mode->forward_workspace_bytes);
    output_field(out, ", ", "backward_workspace_bytes", mode->backward_workspace_bytes);
    output_text(out, mode->holds_output ? ", \"holds_output\": true" : ", \"holds_output\": false");
    output_text(out, mode->lossless ? ", \"lossless\": true}" : ", \"lossless\": false}");
}

static void write_layer(output *out, const remat_layer *layer)
{
    const remat_mode *keep = &layer->modes[0];
    output_field(out, "{", "index", layer->index);
    output_text_field(out, ", ", "name", layer->name);
    output_text_field(out, ", ", "type", remat_layer_type_name(layer->type));
    output_field(out, ", ", "activation_bytes", keep->activation_bytes);
    output_field(out, ", ", "recompute_flops", layer->recompute_flops);
    output_field(out, ", ", "output_bytes", layer->output_bytes);
    output_field(out, ", ", "forward_cost", keep->forward_cost);
    output_field(out, ", ", "backward_cost", keep->backward_cost);
    output_field(out, ", ", "forward_workspace_bytes", keep->forward_workspace_bytes);
    output_field(out, ", ", "backward_workspace_bytes", keep->backward_workspace_bytes);
    for (size_t i = 1; i < layer->mode_count; i++) {
        output_text(out, i == 1 ? ",\n    \"modes\": [" : ", ");
        write_mode(out, &layer->modes[i]);
    }
    output_text(out, layer->mode_count > 1 ? "]}" : "}");
}

remat_status remat_profile_write(const remat_profile *profile, FILE *stream)
{
    output *out = remat_alloc(profile->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, profile->context, stream);
    output_text(out, "{\"format\": \"remat-profile\", \"version\": 1");
    if (profile->name)
        output_text_field(out, ", ", "name", profile->name);
    if (profile->cost_unit)
        output_text_field(out, ", ", "cost_unit", profile->cost_unit);
    if (profile->algorithms)
        output_text_field(out, ",\n ", "algorithms", profile->algorithms);
    output_field(out, ",\n ", "input_bytes", profile->input_bytes);
    output_field(out, ", ", "input_gradient_bytes", profile->input_gradient_bytes);
    output_field(out, ", ", "loss_workspace_bytes", profile->loss_workspace_bytes);
    output_text(out, ",\n \"layers\": [");
    for (size_t i = 0; i < profile->layer_count; i++) {
        output_text(out, i == 0 ? "\n  " : ",\n  ");
        write_layer(out, &profile->layers[i]);
    }
    output_text(out, "]}\n");
    remat_status status = output_end(out);
    remat_release(profile->context, out, 1, sizeof *out);
    return status;
}

static remat_status write_profile(const void *profile, FILE *stream)
{
    return remat_profile_write(profile, stream);
}

remat_status remat_profile_save(const remat_profile *profile, const char *path)
{
    return output_save(profile->context, path, write_profile, profile);
}
