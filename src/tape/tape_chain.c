#include "tape/tape_object.h"

#include "base/alloc.h"
#include "base/checked.h"

/* Rounds up to the alignment; what is near 2^63 stays, and the chain refuses it. */
static uint64_t rounded(uint64_t bytes)
{
    uint64_t rest = bytes % TAPE_ALIGNMENT;
    return rest == 0 || bytes >= REMAT_LIMIT ? bytes : bytes + (TAPE_ALIGNMENT - rest);
}

static bool layer_is_rounded(const remat_layer *layer)
{
    uint64_t rests = layer->output_bytes;
    for (size_t k = 0; k < layer->mode_count; k++) {
        const remat_mode *mode = &layer->modes[k];
        rests |= mode->activation_bytes | mode->forward_workspace_bytes | mode->backward_workspace_bytes;
    }
    return rests % TAPE_ALIGNMENT == 0;
}

static bool is_rounded(const remat_profile *profile)
{
    uint64_t rests = profile->input_bytes | profile->input_gradient_bytes | profile->loss_workspace_bytes;
    for (size_t i = 0; i < profile->layer_count; i++)
        if (!layer_is_rounded(&profile->layers[i]))
            return false;
    return rests % TAPE_ALIGNMENT == 0;
}

static void take_mode(const remat_mode *mode, remat_mode_options *options)
{
    remat_mode_options_init(options);
    options->name = mode->name;
    options->activation_bytes = rounded(mode->activation_bytes);
    options->forward_cost = mode->forward_cost;
    options->backward_cost = mode->backward_cost;
    options->forward_workspace_bytes = rounded(mode->forward_workspace_bytes);
    options->backward_workspace_bytes = rounded(mode->backward_workspace_bytes);
    options->holds_output = mode->holds_output;
    options->lossless = mode->lossless;
}

/* The store's own mode: the state is made in full as a part of the workspace, goes to the store, and is back in full as
 * a part of the backward's workspace. The output lies apart. Costs are those of keeping: packing is cheap against the
 * layers that one would want to keep, and the disk works in the background. */
static void make_store_mode(const remat_layer *layer, remat_tape_store kind, remat_mode_options *options)
{
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    take_mode(keep, options);
    uint64_t full = options->activation_bytes;
    options->name = tape_store_name(kind);
    options->activation_bytes = kind == REMAT_TAPE_DISK ? 0 : half_room(full);
    options->forward_workspace_bytes = remat_add_saturated(options->forward_workspace_bytes, full);
    options->backward_workspace_bytes = remat_add_saturated(options->backward_workspace_bytes, full);
    options->holds_output = false;
    options->lossless = !store_is_half(kind);
}

static remat_status copy_layer(remat_profile *chain, const remat_layer *layer, const remat_tape_options *options,
                               remat_mode_options *modes)
{
    remat_layer_options copy;
    remat_layer_options_init(&copy);
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    copy.index = layer->index;
    copy.name = layer->name;
    copy.type = layer->type;
    copy.activation_bytes = rounded(keep->activation_bytes);
    copy.recompute_flops = layer->recompute_flops;
    copy.output_bytes = rounded(layer->output_bytes);
    copy.forward_cost = keep->forward_cost;
    copy.backward_cost = keep->backward_cost;
    copy.forward_workspace_bytes = rounded(keep->forward_workspace_bytes);
    copy.backward_workspace_bytes = rounded(keep->backward_workspace_bytes);
    copy.modes = modes;
    copy.mode_count = layer->mode_count - 1;
    for (size_t k = 1; k < layer->mode_count; k++)
        take_mode(&layer->modes[k], &modes[k - 1]);
    if (options->store_planned)
        make_store_mode(layer, options->store, &modes[copy.mode_count++]);
    return remat_profile_add_layer(chain, &copy);
}

static remat_status copy_chain(remat_profile *chain, const remat_profile *profile, const remat_tape_options *options,
                               remat_mode_options *modes)
{
    REMAT_TRY(remat_profile_set_name(chain, profile->name));
    REMAT_TRY(remat_profile_set_cost_unit(chain, profile->cost_unit));
    REMAT_TRY(remat_profile_set_input_bytes(chain, rounded(profile->input_bytes)));
    REMAT_TRY(remat_profile_set_input_gradient_bytes(chain, rounded(profile->input_gradient_bytes)));
    REMAT_TRY(remat_profile_set_loss_workspace_bytes(chain, rounded(profile->loss_workspace_bytes)));
    for (size_t i = 0; i < profile->layer_count; i++)
        REMAT_TRY(copy_layer(chain, &profile->layers[i], options, modes));
    return REMAT_OK;
}

static remat_status copy(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                         remat_profile **own)
{
    size_t most_modes = 1;
    for (size_t i = 0; i < profile->layer_count; i++)
        if (profile->layers[i].mode_count > most_modes)
            most_modes = profile->layers[i].mode_count;
    remat_mode_options *modes = remat_alloc(context, most_modes, sizeof *modes);
    if (!modes)
        return REMAT_NO_MEMORY;
    remat_status status = remat_profile_create(context, own);
    if (status == REMAT_OK)
        status = copy_chain(*own, profile, options, modes);
    remat_release(context, modes, most_modes, sizeof *modes);
    if (status == REMAT_OK)
        return REMAT_OK;
    remat_profile_destroy(*own);
    *own = NULL;
    return status;
}

remat_status tape_chain_make(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                             remat_profile **own)
{
    *own = NULL;
    return !options->store_planned && is_rounded(profile) ? REMAT_OK : copy(context, profile, options, own);
}

remat_status remat_tape_profile(remat_context *context, const remat_profile *profile, const remat_tape_options *given,
                                remat_profile **chain)
{
    remat_tape_options options;
    *chain = NULL;
    REMAT_TRY(tape_options_take(context, given, &options));
    REMAT_TRY(tape_options_check(context, profile, &options));
    return copy(context, profile, &options, chain);
}
