/* Measures the time of every layer: it runs some steps, times each action, and takes medians per layer. These steps
 * change weights, moments and statistics, which are restored afterwards. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/trainer_object.h"

typedef struct measurement {
    remat_trainer *trainer;
    uint64_t *forward, *backward; /* of each layer in the current step */
} measurement;

static void observe(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended)
{
    measurement *m = user;
    const program_action *action = &m->trainer->program->actions[m->trainer->plan->sequence.actions[position]];
    if (action->kind == ACTION_LOAD)
        return;
    if (action->kind != ACTION_FORWARD) {
        m->backward[action->layer] += ended - began;
    } else if (!is_recompute) { /* a second run is the same work */
        m->forward[action->layer] = ended - began;
    }
}

static int compare_counts(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_counts);
    return values[count / 2];
}

/* Bytes that the layer's backward needs from its forward, as a chain would count them: the output and what is saved. */
static remat_status add_layer(const remat_trainer *trainer, size_t n, uint64_t forward, uint64_t backward,
                              remat_profile *profile)
{
    const layer_node *node = &trainer->network->layers[n].node;
    remat_layer_options options;
    remat_layer_options_init(&options);
    uint32_t output = trainer->program->outputs[n];
    options.name = node->name;
    options.type = node->type->hint;
    options.output_bytes =
        output == GRAPH_NONE ? 0 : graph_placed_bytes(trainer->program->graph->tensors[output].bytes);
    options.activation_bytes = options.output_bytes;
    for (uint32_t s = 0; s < node->saved_count; s++)
        options.activation_bytes += (dtype_bytes(node->saved[s].dtype, node->saved[s].count) + 63) & ~(uint64_t)63;
    options.recompute_flops = node->flops[LAYER_FORWARD];
    options.forward_cost = forward;
    options.backward_cost = backward;
    options.forward_workspace_bytes = node->workspace[LAYER_FORWARD];
    options.backward_workspace_bytes = node->workspace[LAYER_WEIGHT_GRADIENT] > node->workspace[LAYER_INPUT_GRADIENT]
                                           ? node->workspace[LAYER_WEIGHT_GRADIENT]
                                           : node->workspace[LAYER_INPUT_GRADIENT];
    return remat_profile_add_layer(profile, &options);
}

static remat_status fill_profile(const remat_trainer *trainer, uint64_t *forward, uint64_t *backward, unsigned repeats,
                                 remat_profile *profile)
{
    REMAT_TRY(remat_profile_set_cost_unit(profile, "ns"));
    if (trainer->settings.name)
        REMAT_TRY(remat_profile_set_name(profile, trainer->settings.name));
    uint64_t input_bytes = 0;
    for (size_t n = 0; n < trainer->network->layer_count; n++) {
        const layer_node *node = &trainer->network->layers[n].node;
        if (node->input_count == 0)
            input_bytes += dtype_bytes(node->dtype, layer_values(node->output) * node->batch);
        else if (!node->view)
            REMAT_TRY(add_layer(trainer, n, median(forward + n * repeats, repeats),
                                median(backward + n * repeats, repeats), profile));
    }
    REMAT_TRY(remat_profile_set_input_bytes(profile, input_bytes));
    return remat_profile_set_input_gradient_bytes(profile, 0);
}

/* The optimizer's step belongs to the layer's backward; it runs as in training. */
static remat_status measure(remat_trainer *trainer, unsigned repeats, uint64_t *forward, uint64_t *backward,
                            measurement *m)
{
    size_t layers = trainer->network->layer_count;
    const executor_hooks hooks = {.observe = observe, .user = m};
    REMAT_TRY(trainer_run_first(trainer, NULL));
    for (unsigned r = 0; r < repeats; r++) {
        memset(m->forward, 0, layers * sizeof *m->forward);
        memset(m->backward, 0, layers * sizeof *m->backward);
        REMAT_TRY(trainer_run_first(trainer, &hooks));
        for (size_t n = 0; n < layers; n++) {
            forward[n * repeats + r] = m->forward[n];
            backward[n * repeats + r] = m->backward[n];
        }
    }
    return REMAT_OK;
}

remat_status remat_trainer_measure(remat_trainer *trainer, unsigned repeats, remat_profile **profile)
{
    *profile = NULL;
    if (repeats == 0)
        repeats = 5;
    remat_context *context = trainer->context;
    size_t layers = trainer->network->layer_count, room = layers * repeats;
    uint64_t *forward = remat_alloc_zeroed(context, room, sizeof *forward);
    uint64_t *backward = remat_alloc_zeroed(context, room, sizeof *backward);
    kept_memory kept = {0};
    measurement m = {trainer, remat_alloc(context, layers, sizeof(uint64_t)),
                     remat_alloc(context, layers, sizeof(uint64_t))};
    remat_status status = REMAT_NO_MEMORY;
    if (forward && backward && m.forward && m.backward)
        status = trainer_keep(trainer, &kept);
    if (status == REMAT_OK) {
        status = measure(trainer, repeats, forward, backward, &m);
        remat_status restored = trainer_put_back(trainer, &kept);
        if (status == REMAT_OK)
            status = restored;
    }
    if (status == REMAT_OK)
        status = remat_profile_create(context, profile);
    if (status == REMAT_OK)
        status = fill_profile(trainer, forward, backward, repeats, *profile);
    if (status != REMAT_OK) {
        remat_profile_destroy(*profile);
        *profile = NULL;
    }
    remat_release(context, forward, room, sizeof *forward);
    remat_release(context, backward, room, sizeof *backward);
    remat_release(context, m.forward, layers, sizeof(uint64_t));
    remat_release(context, m.backward, layers, sizeof(uint64_t));
    return status;
}
