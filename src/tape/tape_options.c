#include "tape/tape_object.h"

#include "base/options.h"

void remat_tape_options_init_sized(remat_tape_options *options, size_t size)
{
    const remat_tape_options defaults = {
        .budget_bytes = REMAT_NO_BUDGET,
        .element = REMAT_FLOATS,
        .overflow = REMAT_OVERFLOW_ERROR,
        .directory = ".",
        .write_steps = 4,
        .read_steps = 4,
    };
    remat_options_give(options, size, &defaults, sizeof defaults);
}

const char *remat_tape_phase_name(remat_tape_phase phase)
{
    static const char *const names[] = {"forward", "recompute", "loss", "backward"};
    return (unsigned)phase < 4 ? names[phase] : "unknown";
}

const char *tape_store_name(remat_tape_store kind)
{
    static const char *const names[] = {"memory", "fp16", "bf16", "disk"};
    return (unsigned)kind < 4 ? names[kind] : "unknown";
}

remat_status tape_options_take(remat_context *context, const remat_tape_options *given, remat_tape_options *options)
{
    remat_tape_options_init(options);
    REMAT_TRY(remat_options_copy(context, options, sizeof *options, given, "remat_tape_options_init"));
    if (options->least_bytes)
        *options->least_bytes = 0;
    return REMAT_OK;
}

static remat_status invalid(remat_context *context, const char *field, uint64_t layer, const char *why)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = field;
    place.layer = layer;
    return remat_fail(context, REMAT_INVALID, &place, "%s", why);
}

/* 16 bits are for whole floats. */
static remat_status check_floats(remat_context *context, const remat_profile *profile)
{
    for (size_t i = 0; i < profile->layer_count; i++) {
        const remat_layer *layer = &profile->layers[i];
        if (layer->output_bytes % sizeof(float))
            return invalid(context, "output_bytes", i, "a 16-bit store needs whole floats: a multiple of 4 bytes");
        for (size_t k = 0; k < layer->mode_count; k++)
            if (layer->modes[k].activation_bytes % sizeof(float))
                return invalid(context, "activation_bytes", i,
                               "a 16-bit store needs whole floats: a multiple of 4 bytes");
    }
    return REMAT_OK;
}

static remat_status check_plan(remat_context *context, const remat_tape_options *options)
{
    if (options->plan && options->plan_path)
        return invalid(context, "plan_path", REMAT_NOWHERE, "a plan is given already; give one of the two");
    if ((options->plan || options->plan_path) && options->strategy)
        return invalid(context, "strategy", REMAT_NOWHERE, "a plan is given already; a strategy would make another");
    return REMAT_OK;
}

remat_status tape_options_check(remat_context *context, const remat_profile *profile, const remat_tape_options *options)
{
    bool half = store_is_half(options->store);
    if ((unsigned)options->store > REMAT_TAPE_DISK)
        return invalid(context, "store", REMAT_NOWHERE, "there is no such store");
    if ((unsigned)options->verify > REMAT_VERIFY_COPIES)
        return invalid(context, "verify", REMAT_NOWHERE, "there is no such level");
    if ((unsigned)options->overflow > REMAT_OVERFLOW_KEEP_FULL)
        return invalid(context, "overflow", REMAT_NOWHERE, "there is no such policy");
    if ((unsigned)options->element > REMAT_FLOATS)
        return invalid(context, "element", REMAT_NOWHERE, "there is no such element");
    if (half && options->element != REMAT_FLOATS)
        return invalid(context, "element", REMAT_NOWHERE,
                       "only floats can be kept in 16 bits; bytes go to memory or "
                       "disk");
    if (half && options->verify)
        return invalid(context, "verify", REMAT_NOWHERE,
                       "with a 16-bit store recomputing starts from rounded numbers "
                       "and comes out differently; use memory or disk to verify");
    if (options->store == REMAT_TAPE_DISK && !options->directory)
        return invalid(context, "directory", REMAT_NOWHERE, "the disk store needs a directory");
    if (options->store_planned && options->store == REMAT_TAPE_MEMORY)
        return invalid(context, "store_planned", REMAT_NOWHERE, "choose a store for the plan to use");
    REMAT_TRY(check_plan(context, options));
    return half ? check_floats(context, profile) : REMAT_OK;
}

tape_store_policy tape_options_policy(const remat_tape_options *options)
{
    tape_store_policy policy = {
        .kind = options->store,
        .planned = options->store_planned,
        .wait_steps = options->wait_steps,
        .write_steps = options->write_steps,
        .read_steps = options->read_steps,
    };
    /* On disk a shorter wait than it takes to write and read would only cost time. */
    uint64_t least = options->store == REMAT_TAPE_DISK ? policy.write_steps + policy.read_steps + 2 : 1;
    if (options->wait_steps == 0 || (options->store == REMAT_TAPE_DISK && policy.wait_steps < least))
        policy.wait_steps = least;
    return policy;
}
