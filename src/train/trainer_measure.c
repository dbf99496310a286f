/* Measures the time of every layer: it runs some steps, times each action, and takes medians per layer. These steps
 * change weights, moments and statistics, which are restored afterwards.
 *
 * A device that gets a step as a whole needs less time for it than for its actions one by one. There, whole steps are timed as well, and
 * the times of the layers are scaled to add up to that. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "graph/chain.h"
#include "train/steadiness.h"
#include "train/trainer_object.h"

typedef struct measurement {
    remat_trainer *trainer;
    size_t layers;
    unsigned wanted;              /* steps; 0: until their times are steady */
    uint64_t *forward, *backward; /* of each layer in the current step */
    uint64_t *times;              /* of each step: forward of all layers, then backward of all layers */
    size_t times_capacity;
    uint64_t *totals; /* of each step: the sum of that */
    size_t total_capacity;
    uint64_t recomputed; /* in the current step, beside that */
    uint64_t *wholes;    /* of each step: the sum with that */
    size_t whole_capacity;
    size_t steps;
    uint64_t *room; /* for as many numbers as there are steps */
    size_t room_capacity;
    double share; /* of the measured times that a step takes when it runs as a whole; at most 1 */
} measurement;

static void observe(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended)
{
    measurement *m = user;
    const program_action *action = &m->trainer->program->actions[m->trainer->plan->sequence.actions[position]];
    if (action->kind == ACTION_LOAD)
        return;
    if (action->kind != ACTION_FORWARD) {
        m->backward[action->layer] += ended - began;
    } else if (!is_recompute) {
        m->forward[action->layer] = ended - began;
    } else {
        m->recomputed += ended - began; /* the same work once more */
    }
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
    options.forward_workspace_bytes = layer_workspace(node, LAYER_FORWARD, false);
    const uint64_t of_weights = layer_workspace(node, LAYER_WEIGHT_GRADIENT, false);
    const uint64_t of_inputs = layer_workspace(node, LAYER_INPUT_GRADIENT, false);
    options.backward_workspace_bytes = of_weights > of_inputs ? of_weights : of_inputs;
    return remat_profile_add_layer(profile, &options);
}

/* The median over the steps of number `n` of a row. */
static uint64_t median_time(measurement *m, size_t n)
{
    for (size_t r = 0; r < m->steps; r++)
        m->room[r] = m->times[r * 2 * m->layers + n];
    return (uint64_t)(m->share * (double)steadiness_median(m->room, m->steps));
}

static remat_status fill_profile(const remat_trainer *trainer, measurement *m, remat_profile *profile)
{
    REMAT_TRY(remat_profile_set_cost_unit(profile, "ns"));
    if (trainer->settings.name)
        REMAT_TRY(remat_profile_set_name(profile, trainer->settings.name));
    uint64_t input_bytes = 0;
    for (size_t n = 0; n < m->layers; n++) {
        const layer_node *node = &trainer->network->layers[n].node;
        if (node->input_count == 0)
            input_bytes += dtype_bytes(node->dtype, layer_values(node->output) * node->batch);
        else if (!node->view)
            REMAT_TRY(add_layer(trainer, n, median_time(m, n), median_time(m, m->layers + n), profile));
    }
    REMAT_TRY(remat_profile_set_input_bytes(profile, input_bytes));
    return remat_profile_set_input_gradient_bytes(profile, 0);
}

static remat_status add_algorithms(const remat_trainer *trainer, remat_profile *profile)
{
    char *text;
    REMAT_TRY(backend_algorithms(trainer->device, &text));
    const remat_status status = text ? remat_chain_set_algorithms(profile, text) : REMAT_OK;
    remat_text_release(trainer->context, text);
    return status;
}

static remat_status make_room(remat_context *context, measurement *m)
{
    REMAT_TRY(
        remat_grow(context, (void **)&m->times, &m->times_capacity, (m->steps + 1) * 2 * m->layers, sizeof *m->times));
    REMAT_TRY(remat_grow(context, (void **)&m->totals, &m->total_capacity, m->steps + 1, sizeof *m->totals));
    REMAT_TRY(remat_grow(context, (void **)&m->wholes, &m->whole_capacity, m->steps + 1, sizeof *m->wholes));
    return remat_grow(context, (void **)&m->room, &m->room_capacity, m->steps + 1, sizeof *m->room);
}

static bool has_enough(const measurement *m)
{
    return m->wanted ? m->steps >= m->wanted : steadiness_reached(m->totals, m->steps, m->room);
}

enum { WHOLE_WARM_UP = 2, WHOLE_STEPS = 9 };

static remat_status measure_whole(remat_trainer *trainer, measurement *m)
{
    uint64_t times[WHOLE_WARM_UP + WHOLE_STEPS];
    const uint64_t parts = steadiness_median(m->wholes, m->steps);
    for (size_t i = 0; i < WHOLE_WARM_UP + WHOLE_STEPS; i++)
        REMAT_TRY(trainer_time_first(trainer, &times[i]));
    const uint64_t whole = steadiness_median(times + WHOLE_WARM_UP, WHOLE_STEPS);
    if (whole < parts)
        m->share = (double)whole / (double)parts;
    return REMAT_OK;
}

/* The optimizer's step belongs to the layer's backward; it runs as in training. */
static remat_status measure(remat_trainer *trainer, measurement *m)
{
    const executor_hooks hooks = {.observe = observe, .user = m};
    REMAT_TRY(trainer_run_first(trainer, NULL));
    while (!has_enough(m)) {
        REMAT_TRY(make_room(trainer->context, m));
        m->forward = m->times + m->steps * 2 * m->layers;
        m->backward = m->forward + m->layers;
        memset(m->forward, 0, 2 * m->layers * sizeof *m->forward);
        m->recomputed = 0;
        REMAT_TRY(trainer_run_first(trainer, &hooks));
        m->totals[m->steps] = 0;
        m->wholes[m->steps] = m->recomputed;
        for (size_t n = 0; n < 2 * m->layers; n++)
            m->totals[m->steps] += m->forward[n];
        m->wholes[m->steps] += m->totals[m->steps];
        m->steps++;
    }
    trainer->measured =
        (remat_measurement){.steps = m->steps, .spread = steadiness_spread(m->totals, m->steps, m->room)};
    if (!trainer->device->host_visible)
        REMAT_TRY(measure_whole(trainer, m));
    trainer->measured.step_seconds = 1e-9 * m->share * (double)steadiness_median(m->totals, m->steps);
    return REMAT_OK;
}

remat_status remat_trainer_measure(remat_trainer *trainer, unsigned repeats, remat_profile **profile)
{
    if (trainer->pipeline)
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "a stage of a pipeline cannot be measured by itself");
    *profile = NULL;
    REMAT_TRY(trainer_check_started(trainer));
    remat_context *context = trainer->context;
    kept_memory kept = {0};
    measurement m = {.trainer = trainer, .layers = trainer->network->layer_count, .wanted = repeats, .share = 1};
    remat_status status = trainer_keep(trainer, &kept);
    backend_look_for_algorithms(trainer->device, true);
    if (status == REMAT_OK) {
        status = measure(trainer, &m);
        remat_status restored = trainer_put_back(trainer, &kept);
        if (status == REMAT_OK)
            status = restored;
    }
    if (status == REMAT_OK)
        status = remat_profile_create(context, profile);
    if (status == REMAT_OK)
        status = fill_profile(trainer, &m, *profile);
    if (status == REMAT_OK)
        status = add_algorithms(trainer, *profile);
    backend_look_for_algorithms(trainer->device, false);
    if (status != REMAT_OK) {
        remat_profile_destroy(*profile);
        *profile = NULL;
    }
    remat_release(context, m.times, m.times_capacity, sizeof *m.times);
    remat_release(context, m.totals, m.total_capacity, sizeof *m.totals);
    remat_release(context, m.wholes, m.whole_capacity, sizeof *m.wholes);
    remat_release(context, m.room, m.room_capacity, sizeof *m.room);
    return status;
}

void remat_trainer_get_measurement_sized(const remat_trainer *trainer, remat_measurement *measured,
                                         size_t measured_size)
{
    remat_struct_give(measured, measured_size, &trainer->measured, sizeof trainer->measured);
}
