#include "graph/chain.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/utf8.h"
#include "graph/index_set.h"

#include <string.h>

const char *remat_layer_type_name(remat_layer_type type)
{
    switch (type) {
#define X(name, text) \
    case name: return text;
        REMAT_LAYER_TYPE_LIST(X)
#undef X
    }
    return "unknown";
}

remat_status remat_profile_create(remat_context *context, remat_profile **profile)
{
    remat_profile *made = *profile = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    remat_status status = index_set_create(context, &made->indexes);
    if (status != REMAT_OK) {
        remat_profile_destroy(made);
        *profile = NULL;
    }
    return status;
}

static void release_modes(remat_context *context, const remat_mode *modes, size_t count)
{
    for (size_t i = 1; modes && i < count; i++)
        remat_text_release(context, modes[i].name);
    remat_release(context, (void *)(uintptr_t)modes, count, sizeof *modes);
}

void remat_profile_destroy(remat_profile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->layer_count; i++) {
        remat_text_release(profile->context, profile->layers[i].name);
        release_modes(profile->context, profile->layers[i].modes, profile->layers[i].mode_count);
    }
    remat_release(profile->context, profile->layers, profile->layer_capacity, sizeof *profile->layers);
    index_set_destroy(profile->indexes);
    remat_text_release(profile->context, profile->name);
    remat_text_release(profile->context, profile->cost_unit);
    remat_text_release(profile->context, profile->algorithms);
    remat_release(profile->context, profile, 1, sizeof *profile);
}

void remat_mode_options_init_sized(remat_mode_options *options, size_t size)
{
    const remat_mode_options defaults = {
        .forward_cost = REMAT_DEFAULT,
        .backward_cost = REMAT_DEFAULT,
        .forward_workspace_bytes = REMAT_DEFAULT,
        .backward_workspace_bytes = REMAT_DEFAULT,
        .holds_output = true,
        .lossless = true,
    };
    remat_options_give(options, size, &defaults, sizeof defaults);
}

void remat_layer_options_init_sized(remat_layer_options *options, size_t size)
{
    const remat_layer_options defaults = {
        .index = REMAT_DEFAULT,
        .type = REMAT_OTHER,
        .output_bytes = REMAT_DEFAULT,
        .forward_cost = REMAT_DEFAULT,
        .backward_cost = REMAT_DEFAULT,
        .forward_workspace_bytes = REMAT_DEFAULT,
        .backward_workspace_bytes = REMAT_DEFAULT,
    };
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* ---- one layer ---- */

/* Everything about one addition, so that its helpers can say where they are. */
typedef struct addition {
    remat_profile *chain;
    const remat_layer_options *options;
    remat_place where;
} addition;

static remat_status invalid(addition *add, const char *field, const char *rule, uint64_t value)
{
    add->where.field = field;
    return remat_fail(add->chain->context, add->where.file ? REMAT_BAD_INPUT : REMAT_INVALID, &add->where,
                      "%llu is not allowed; it must be %s", (unsigned long long)value, rule);
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value == REMAT_DEFAULT ? otherwise : value;
}

static remat_status check_limits(addition *add, const remat_mode *mode, const char *const fields[5])
{
    const uint64_t values[5] = {mode->activation_bytes, mode->forward_cost, mode->backward_cost,
                                mode->forward_workspace_bytes, mode->backward_workspace_bytes};
    for (int i = 0; i < 5; i++)
        if (values[i] >= REMAT_LIMIT)
            return invalid(add, fields[i], "below 2^63", values[i]);
    return REMAT_OK;
}

static remat_status fill_keep(addition *add, remat_mode *keep)
{
    static const char *const fields[5] = {"activation_bytes", "forward_cost", "backward_cost",
                                          "forward_workspace_bytes", "backward_workspace_bytes"};
    const remat_layer_options *options = add->options;
    uint64_t forward_cost = or_default(options->forward_cost, options->recompute_flops);
    *keep = (remat_mode){
        .name = "keep",
        .activation_bytes = options->activation_bytes,
        .forward_cost = forward_cost,
        .backward_cost = or_default(options->backward_cost, remat_add_saturated(forward_cost, forward_cost)),
        .forward_workspace_bytes = or_default(options->forward_workspace_bytes, 0),
        .backward_workspace_bytes = or_default(options->backward_workspace_bytes, 0),
        .holds_output = true,
        .lossless = true,
    };
    return check_limits(add, keep, fields);
}

/* What is refused here could not be read again from a file. */
static remat_status check_text(remat_context *context, remat_status wrong, const remat_place *where, const char *field,
                               const char *text)
{
    remat_place place = where ? *where : REMAT_PLACE_NOWHERE;
    place.field = field;
    if (strlen(text) > REMAT_LONGEST_NAME)
        return remat_fail(context, wrong, &place, "%zu bytes long; a name may have at most %d", strlen(text),
                          REMAT_LONGEST_NAME);
    if (!remat_utf8_valid(text))
        return remat_fail(context, wrong, &place, "the name is not valid UTF-8");
    return REMAT_OK;
}

static remat_status fill_mode(addition *add, const remat_mode_options *from, const remat_mode *modes, size_t at,
                              remat_mode *mode)
{
    static const char *const fields[5] = {"modes.activation_bytes", "modes.forward_cost", "modes.backward_cost",
                                          "modes.forward_workspace_bytes", "modes.backward_workspace_bytes"};
    remat_context *context = add->chain->context;
    remat_status wrong = add->where.file ? REMAT_BAD_INPUT : REMAT_INVALID;
    const remat_mode *keep = &modes[0];
    add->where.field = "modes.name";
    if (!from->name || !*from->name)
        return remat_fail(context, wrong, &add->where, "a mode needs a name");
    REMAT_TRY(check_text(context, wrong, &add->where, "modes.name", from->name));
    if (strcmp(from->name, "keep") == 0 || strcmp(from->name, "recompute") == 0)
        return remat_fail(context, wrong, &add->where, "'%s' is reserved; a mode needs a name of its own", from->name);
    for (size_t i = 1; i < at; i++)
        if (strcmp(modes[i].name, from->name) == 0)
            return remat_fail(context, wrong, &add->where, "the mode '%s' is there twice; names must differ",
                              from->name);
    *mode = (remat_mode){
        .activation_bytes = from->activation_bytes,
        .forward_cost = or_default(from->forward_cost, keep->forward_cost),
        .backward_cost = or_default(from->backward_cost, keep->backward_cost),
        .forward_workspace_bytes = or_default(from->forward_workspace_bytes, keep->forward_workspace_bytes),
        .backward_workspace_bytes = or_default(from->backward_workspace_bytes, keep->backward_workspace_bytes),
        .holds_output = from->holds_output,
        .lossless = from->lossless,
    };
    REMAT_TRY(check_limits(add, mode, fields));
    mode->name = remat_text_copy(context, from->name);
    return mode->name ? REMAT_OK : REMAT_NO_MEMORY;
}

/* Adds the most that this layer could ever contribute to what is live at once, and to the cost of one pass. */
static remat_status add_up(addition *add, const remat_layer *layer, uint64_t *bytes, uint64_t *cost)
{
    uint64_t activation = 0, scratch = 0, pass = 0;
    for (size_t i = 0; i < layer->mode_count; i++) {
        const remat_mode *mode = &layer->modes[i];
        uint64_t workspace = mode->forward_workspace_bytes > mode->backward_workspace_bytes
                                 ? mode->forward_workspace_bytes
                                 : mode->backward_workspace_bytes;
        uint64_t both = remat_add_saturated(mode->forward_cost, mode->backward_cost);
        activation = mode->activation_bytes > activation ? mode->activation_bytes : activation;
        scratch = workspace > scratch ? workspace : scratch;
        pass = both > pass ? both : pass;
    }
    /* saved state, plain output, its gradient, workspace */
    if (!remat_add(bytes, activation) || !remat_add(bytes, layer->output_bytes) ||
        !remat_add(bytes, layer->output_bytes) || !remat_add(bytes, scratch))
        return invalid(add, "activation_bytes", "small enough that all bytes of the chain sum to less than 2^63",
                       activation);
    if (!remat_add(cost, pass))
        return invalid(add, "forward_cost", "small enough that all costs of the chain sum to less than 2^63", pass);
    return REMAT_OK;
}

static remat_status fill_layer(addition *add, remat_layer *layer, remat_mode *modes)
{
    const remat_layer_options *options = add->options;
    remat_context *context = add->chain->context;
    REMAT_TRY(fill_keep(add, &modes[0]));
    if (layer->index >= REMAT_LIMIT)
        return invalid(add, "index", "below 2^63", layer->index);
    if (options->recompute_flops >= REMAT_LIMIT)
        return invalid(add, "recompute_flops", "below 2^63", options->recompute_flops);
    if ((unsigned)options->type > REMAT_OTHER)
        return invalid(add, "type", "one of remat_layer_type", (uint64_t)options->type);
    if (layer->output_bytes > modes[0].activation_bytes) {
        add->where.field = "output_bytes";
        return remat_fail(context, add->where.file ? REMAT_BAD_INPUT : REMAT_INVALID, &add->where,
                          "%llu is larger than activation_bytes %llu; the output is part of the activation",
                          (unsigned long long)layer->output_bytes, (unsigned long long)modes[0].activation_bytes);
    }
    for (size_t i = 1; i < layer->mode_count; i++) {
        remat_mode_options mode;
        remat_mode_options_init(&mode);
        /* The caller's structs may be smaller or larger than the library's: their size is the stride of the array. */
        const char *from = (const char *)options->modes + (i - 1) * options->modes->struct_size;
        REMAT_TRY(remat_options_copy(context, &mode, sizeof mode, from, "remat_mode_options_init"));
        REMAT_TRY(fill_mode(add, &mode, modes, i, &modes[i]));
    }
    char name[40];
    snprintf(name, sizeof name, "layer%llu", (unsigned long long)layer->index);
    if (options->name)
        REMAT_TRY(
            check_text(context, add->where.file ? REMAT_BAD_INPUT : REMAT_INVALID, &add->where, "name", options->name));
    layer->name = remat_text_copy(context, options->name ? options->name : name);
    return layer->name ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status take_index(addition *add, uint64_t index)
{
    bool known;
    REMAT_TRY(index_set_add(add->chain->indexes, index, &known));
    if (known)
        return invalid(add, "index", "unique in the chain", index);
    return REMAT_OK;
}

remat_status remat_chain_add(remat_profile *chain, const remat_layer_options *options, const remat_place *where)
{
    addition add = {chain, options, where ? *where : REMAT_PLACE_NOWHERE};
    add.where.layer = chain->layer_count;
    if (chain->layer_count >= UINT32_MAX - 1)
        return invalid(&add, "layers", "below 2^32 - 1", chain->layer_count);
    if (options->mode_count > REMAT_MOST_MODES)
        return invalid(&add, "modes", "255 at most", options->mode_count);
    if (options->mode_count > 0 && !options->modes)
        return invalid(&add, "modes", "0 where there is no array of them", options->mode_count);
    REMAT_TRY(remat_grow(chain->context, (void **)&chain->layers, &chain->layer_capacity, chain->layer_count + 1,
                         sizeof *chain->layers));
    size_t mode_count = options->mode_count + 1;
    remat_mode *modes = remat_alloc_zeroed(chain->context, mode_count, sizeof *modes);
    if (!modes)
        return REMAT_NO_MEMORY;
    remat_layer layer = {
        .index = or_default(options->index, chain->layer_count),
        .type = options->type,
        .mode_count = (uint32_t)mode_count,
        .modes = modes,
        .recompute_flops = options->recompute_flops,
        .output_bytes = or_default(options->output_bytes, options->activation_bytes),
    };
    uint64_t most_bytes = chain->most_bytes, most_cost = chain->most_cost;
    remat_status status = fill_layer(&add, &layer, modes);
    if (status == REMAT_OK)
        status = add_up(&add, &layer, &most_bytes, &most_cost);
    if (status == REMAT_OK)
        status = take_index(&add, layer.index);
    if (status != REMAT_OK) {
        remat_text_release(chain->context, layer.name);
        release_modes(chain->context, modes, mode_count);
        return status;
    }
    chain->layers[chain->layer_count++] = layer;
    chain->most_bytes = most_bytes;
    chain->most_cost = most_cost;
    return REMAT_OK;
}

remat_status remat_profile_add_layer(remat_profile *profile, const remat_layer_options *options)
{
    remat_layer_options copy;
    remat_layer_options_init(&copy);
    REMAT_TRY(remat_options_copy(profile->context, &copy, sizeof copy, options, "remat_layer_options_init"));
    return remat_chain_add(profile, &copy, NULL);
}

remat_status remat_profile_add(remat_profile *profile, remat_layer_type type, uint64_t activation_bytes,
                               uint64_t recompute_flops)
{
    remat_layer_options options;
    remat_layer_options_init(&options);
    options.type = type;
    options.activation_bytes = activation_bytes;
    options.recompute_flops = recompute_flops;
    return remat_profile_add_layer(profile, &options);
}

/* ---- the chain's own figures ---- */

remat_status remat_chain_set(remat_profile *chain, const char *field, uint64_t value, const remat_place *where)
{
    uint64_t *figure = strcmp(field, "input_bytes") == 0            ? &chain->input_bytes
                       : strcmp(field, "input_gradient_bytes") == 0 ? &chain->input_gradient_bytes
                                                                    : &chain->loss_workspace_bytes;
    addition add = {chain, NULL, where ? *where : REMAT_PLACE_NOWHERE};
    bool carries_gradient = figure == &chain->input_bytes && !chain->input_gradient_set;
    uint64_t before = *figure * (carries_gradient ? 2 : 1), most = chain->most_bytes - before;
    if (value >= REMAT_LIMIT)
        return invalid(&add, field, "below 2^63", value);
    if (!remat_add(&most, value) || (carries_gradient && !remat_add(&most, value)))
        return invalid(&add, field, "small enough that all bytes of the chain sum to less than 2^63", value);
    *figure = value;
    if (carries_gradient)
        chain->input_gradient_bytes = value;
    chain->input_gradient_set |= figure == &chain->input_gradient_bytes;
    chain->most_bytes = most;
    return REMAT_OK;
}

remat_status remat_profile_set_input_bytes(remat_profile *profile, uint64_t bytes)
{
    return remat_chain_set(profile, "input_bytes", bytes, NULL);
}

remat_status remat_profile_set_input_gradient_bytes(remat_profile *profile, uint64_t bytes)
{
    return remat_chain_set(profile, "input_gradient_bytes", bytes, NULL);
}

remat_status remat_profile_set_loss_workspace_bytes(remat_profile *profile, uint64_t bytes)
{
    return remat_chain_set(profile, "loss_workspace_bytes", bytes, NULL);
}

static remat_status replace_text(remat_context *context, const char **text, const char *with)
{
    if (with)
        REMAT_TRY(check_text(context, REMAT_INVALID, NULL, NULL, with));
    char *copy = with ? remat_text_copy(context, with) : NULL;
    if (with && !copy)
        return REMAT_NO_MEMORY;
    remat_text_release(context, *text);
    *text = copy;
    return REMAT_OK;
}

remat_status remat_profile_set_name(remat_profile *profile, const char *name)
{
    return replace_text(profile->context, &profile->name, name);
}

remat_status remat_profile_set_cost_unit(remat_profile *profile, const char *unit)
{
    return replace_text(profile->context, &profile->cost_unit, unit);
}

remat_status remat_chain_set_algorithms(remat_profile *chain, const char *algorithms)
{
    char *copy = remat_text_copy(chain->context, algorithms);
    if (!copy)
        return REMAT_NO_MEMORY;
    remat_text_release(chain->context, chain->algorithms);
    chain->algorithms = copy;
    return REMAT_OK;
}

const char *remat_profile_name(const remat_profile *profile)
{
    return profile->name ? profile->name : "";
}

const char *remat_profile_cost_unit(const remat_profile *profile)
{
    return profile->cost_unit ? profile->cost_unit : "";
}

uint64_t remat_profile_input_bytes(const remat_profile *profile)
{
    return profile->input_bytes;
}

uint64_t remat_profile_input_gradient_bytes(const remat_profile *profile)
{
    return profile->input_gradient_bytes;
}

uint64_t remat_profile_loss_workspace_bytes(const remat_profile *profile)
{
    return profile->loss_workspace_bytes;
}

size_t remat_profile_layer_count(const remat_profile *profile)
{
    return profile->layer_count;
}

const remat_layer *remat_profile_layer(const remat_profile *profile, size_t position)
{
    return position < profile->layer_count ? &profile->layers[position] : NULL;
}

const remat_mode *remat_layer_mode(const remat_layer *layer, size_t mode)
{
    return mode < layer->mode_count ? &layer->modes[mode] : NULL;
}
