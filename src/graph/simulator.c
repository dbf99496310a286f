#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "graph/chain.h"
#include "graph/step_effect.h"

#include <string.h>

/* What is known of layer i while a schedule plays. */
typedef struct layer_state {
    uint32_t forwards;
    uint16_t saved;      /* the mode of s_i, REMAT_NO_SAVE where it is not live */
    uint16_t decision;   /* how the state its backward used was saved, if by its first forward */
    bool x_live;         /* x_i on its own */
    bool saved_by_first; /* whether s_i comes from the layer's first forward */
} layer_state;

struct remat_simulator {
    remat_context *context;
    const remat_profile *chain;
    uint64_t live_bytes;
    size_t y; /* y_i is live for this i; NO_Y before the loss */
    remat_figures figures;
    step_effect effect;
    bool lists_tensors;
    layer_state *layers; /* N + 1: the last one only for x_N */
};

#define NO_Y SIZE_MAX

remat_status remat_simulator_create(remat_context *context, const remat_profile *profile, remat_simulator **simulator)
{
    remat_simulator *made = *simulator = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->chain = profile;
    made->layers = remat_alloc_zeroed(context, profile->layer_count + 1, sizeof *made->layers);
    if (!made->layers) {
        remat_simulator_destroy(made);
        *simulator = NULL;
        return REMAT_NO_MEMORY;
    }
    for (size_t i = 0; i <= profile->layer_count; i++)
        made->layers[i].saved = made->layers[i].decision = REMAT_NO_SAVE;
    made->layers[0].x_live = true;
    made->live_bytes = profile->input_bytes;
    made->y = NO_Y;
    made->figures.peak_bytes = profile->input_bytes;
    made->figures.peak_step = REMAT_NOWHERE;
    return REMAT_OK;
}

void remat_simulator_destroy(remat_simulator *simulator)
{
    if (!simulator)
        return;
    remat_release(simulator->context, simulator->layers, simulator->chain->layer_count + 1, sizeof *simulator->layers);
    remat_release(simulator->context, simulator, 1, sizeof *simulator);
}

/* ---- one step ---- */

/* The step at hand cannot be played; `why` is the whole reason. */
static remat_status illegal(const remat_simulator *simulator, remat_step step, const char *why, uint64_t i)
{
    char text[REMAT_STEP_TEXT], reason[160];
    remat_place place = REMAT_PLACE_NOWHERE;
    place.step = simulator->figures.steps;
    snprintf(reason, sizeof reason, why, (unsigned long long)i);
    remat_status status = remat_fail(simulator->context, REMAT_CHECK_FAILED, &place, "'%s' is not legal: %s",
                                     remat_step_print(simulator->chain, step, text), reason);
    return status;
}

/* Whether x_i can be read, on its own or inside the saved state of layer i-1. */
static bool x_readable(const remat_simulator *simulator, size_t i)
{
    if (simulator->layers[i].x_live)
        return true;
    if (i == 0 || simulator->layers[i - 1].saved == REMAT_NO_SAVE)
        return false;
    return simulator->chain->layers[i - 1].modes[simulator->layers[i - 1].saved].holds_output;
}

/* While a step runs, `transient` bytes come on top of what is live; all sums fit by the profile's own check. */
static void note_peak(remat_simulator *simulator, uint64_t transient)
{
    uint64_t bytes = simulator->live_bytes + transient;
    if (bytes > simulator->figures.peak_bytes) {
        simulator->figures.peak_bytes = bytes;
        simulator->figures.peak_step = simulator->figures.steps;
    }
}

/* What a step adds up to. It stays in registers; simulator->effect has it only where somebody wants the tensors. */
typedef struct step_sums {
    uint64_t made_bytes, ended_bytes, workspace_bytes, cost;
} step_sums;

static inline void make(remat_simulator *simulator, step_sums *sums, char kind, size_t i, uint64_t bytes)
{
    step_effect *effect = &simulator->effect;
    sums->made_bytes += bytes;
    if (simulator->lists_tensors)
        effect->made[effect->made_count++] = (remat_live_tensor){kind, (uint32_t)i, bytes};
}

static inline void end(remat_simulator *simulator, step_sums *sums, char kind, size_t i, uint64_t bytes)
{
    step_effect *effect = &simulator->effect;
    sums->ended_bytes += bytes;
    if (simulator->lists_tensors)
        effect->ended[effect->ended_count++] = (remat_live_tensor){kind, (uint32_t)i, bytes};
}

static inline remat_status count(remat_simulator *simulator, remat_step step, const step_sums *sums)
{
    note_peak(simulator, sums->made_bytes + sums->workspace_bytes);
    simulator->live_bytes += sums->made_bytes - sums->ended_bytes;
    if (simulator->lists_tensors) {
        simulator->effect.workspace_bytes = sums->workspace_bytes;
        simulator->effect.cost = sums->cost;
    }
    if (remat_add(&simulator->figures.total_cost, sums->cost))
        return REMAT_OK;
    return illegal(simulator, step, "the cost of the schedule passes 2^63", 0);
}

static inline remat_status play_forward(remat_simulator *simulator, remat_step step, step_sums *sums)
{
    size_t i = step.layer;
    const remat_layer *layer = &simulator->chain->layers[i];
    layer_state *state = &simulator->layers[i];
    bool saves = step.save != REMAT_NO_SAVE;
    if (saves && step.save >= layer->mode_count)
        return illegal(simulator, step, "the layer has no such mode", 0);
    const remat_mode *mode = &layer->modes[saves ? step.save : REMAT_KEEP];
    bool makes_x = !saves || !mode->holds_output;
    if (!x_readable(simulator, i))
        return illegal(simulator, step, "its input, x %llu, is not live", i);
    if (saves && state->saved != REMAT_NO_SAVE)
        return illegal(simulator, step, "s %llu is live already", i);
    if (makes_x && simulator->layers[i + 1].x_live)
        return illegal(simulator, step, "x %llu is live already", i + 1);
    if (saves)
        make(simulator, sums, 's', i, mode->activation_bytes);
    if (makes_x)
        make(simulator, sums, 'x', i + 1, layer->output_bytes);
    sums->workspace_bytes = mode->forward_workspace_bytes;
    sums->cost = mode->forward_cost;
    simulator->layers[i + 1].x_live |= makes_x;
    state->forwards++;
    if (saves) {
        state->saved = step.save;
        state->saved_by_first = state->forwards == 1;
    }
    return REMAT_OK;
}

static inline remat_status play_loss(remat_simulator *simulator, remat_step step, step_sums *sums)
{
    size_t n = simulator->chain->layer_count;
    if (n == 0)
        return illegal(simulator, step, "a chain without layers has an empty schedule", 0);
    if (simulator->y != NO_Y)
        return illegal(simulator, step, "the loss ran already", 0);
    if (!x_readable(simulator, n))
        return illegal(simulator, step, "its input, x %llu, is not live", n);
    make(simulator, sums, 'y', n, remat_chain_y_bytes(simulator->chain, n));
    sums->workspace_bytes = simulator->chain->loss_workspace_bytes;
    simulator->y = n;
    return REMAT_OK;
}

static inline remat_status play_backward(remat_simulator *simulator, remat_step step, step_sums *sums)
{
    size_t i = step.layer;
    layer_state *state = &simulator->layers[i];
    if (simulator->y == NO_Y)
        return illegal(simulator, step, "the loss has not run yet", 0);
    if (simulator->y != i + 1)
        return illegal(simulator, step, "the gradient of its output, y %llu, is not live", i + 1);
    if (state->saved == REMAT_NO_SAVE)
        return illegal(simulator, step, "its saved state, s %llu, is not live", i);
    if (!x_readable(simulator, i))
        return illegal(simulator, step, "its input, x %llu, is not live", i);
    const remat_mode *mode = &simulator->chain->layers[i].modes[state->saved];
    make(simulator, sums, 'y', i, remat_chain_y_bytes(simulator->chain, i));
    end(simulator, sums, 'y', i + 1, remat_chain_y_bytes(simulator->chain, i + 1));
    end(simulator, sums, 's', i, mode->activation_bytes);
    sums->workspace_bytes = mode->backward_workspace_bytes;
    sums->cost = mode->backward_cost;
    simulator->y = i;
    if (state->saved_by_first)
        state->decision = state->saved;
    state->saved = REMAT_NO_SAVE;
    return REMAT_OK;
}

static inline remat_status play_drop_x(remat_simulator *simulator, remat_step step, step_sums *sums)
{
    if (!simulator->layers[step.layer].x_live)
        return illegal(simulator, step, "x %llu is not live on its own", step.layer);
    simulator->layers[step.layer].x_live = false;
    end(simulator, sums, 'x', step.layer, remat_chain_x_bytes(simulator->chain, step.layer));
    return REMAT_OK;
}

static inline remat_status play_drop_state(remat_simulator *simulator, remat_step step, step_sums *sums)
{
    layer_state *state = &simulator->layers[step.layer];
    if (state->saved == REMAT_NO_SAVE)
        return illegal(simulator, step, "s %llu is not live", step.layer);
    end(simulator, sums, 's', step.layer, simulator->chain->layers[step.layer].modes[state->saved].activation_bytes);
    state->saved = REMAT_NO_SAVE;
    return REMAT_OK;
}

remat_status remat_simulator_step(remat_simulator *simulator, remat_step step)
{
    size_t n = simulator->chain->layer_count;
    if (step.layer > n || (step.layer == n && step.op != REMAT_DROP_X && step.op != REMAT_LOSS))
        return illegal(simulator, step, "the chain has only %llu layers", n);
    remat_status status = REMAT_INVALID;
    step_sums sums = {0};
    simulator->effect.made_count = simulator->effect.ended_count = 0;
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: status = play_forward(simulator, step, &sums); break;
    case REMAT_LOSS: status = play_loss(simulator, step, &sums); break;
    case REMAT_BACKWARD: status = play_backward(simulator, step, &sums); break;
    case REMAT_DROP_X: status = play_drop_x(simulator, step, &sums); break;
    case REMAT_DROP_STATE: status = play_drop_state(simulator, step, &sums); break;
    default: status = illegal(simulator, step, "there is no such step", 0);
    }
    if (status == REMAT_OK)
        status = count(simulator, step, &sums);
    simulator->figures.steps += status == REMAT_OK;
    return status;
}

/* ---- the whole ---- */

/* A mode that saves nothing where keeping saves something: backward recomputes the layer from its input. */
static bool keeps_nothing(const remat_layer *layer, uint16_t mode)
{
    return layer->modes[mode].activation_bytes == 0 && layer->modes[REMAT_KEEP].activation_bytes > 0;
}

static remat_status sum_up(const remat_simulator *simulator, remat_figures *figures)
{
    for (size_t i = 0; i < simulator->chain->layer_count; i++) {
        const remat_layer *layer = &simulator->chain->layers[i];
        const layer_state *state = &simulator->layers[i];
        uint64_t flops;
        if (!remat_multiply(state->forwards - 1, layer->recompute_flops, &flops) ||
            !remat_add(&figures->recompute_flops, flops))
            return remat_fail(simulator->context, REMAT_CHECK_FAILED, NULL,
                              "the flops of the schedule's recomputation pass 2^63");
        if (state->decision != REMAT_NO_SAVE) {
            figures->kept_bytes += layer->modes[state->decision].activation_bytes;
            figures->recomputed_layers += keeps_nothing(layer, state->decision);
            continue;
        }
        figures->recomputed_layers++;
        if (layer->modes[REMAT_KEEP].activation_bytes > figures->largest_recomputed_bytes)
            figures->largest_recomputed_bytes = layer->modes[REMAT_KEEP].activation_bytes;
    }
    return REMAT_OK;
}

remat_status remat_simulator_finish_sized(remat_simulator *simulator, remat_figures *figures, size_t figures_size)
{
    size_t left = simulator->y == NO_Y ? simulator->chain->layer_count : simulator->y;
    if (left > 0) {
        remat_place place = REMAT_PLACE_NOWHERE;
        place.step = simulator->figures.steps;
        return remat_fail(simulator->context, REMAT_CHECK_FAILED, &place,
                          "the schedule ends here, but layer %zu has had no backward", left - 1);
    }
    remat_figures found = simulator->figures;
    REMAT_TRY(sum_up(simulator, &found));
    remat_struct_give(figures, figures_size, &found, sizeof found);
    return REMAT_OK;
}

void simulator_list_tensors(remat_simulator *simulator)
{
    simulator->lists_tensors = true;
}

const step_effect *simulator_effect(const remat_simulator *simulator)
{
    return &simulator->effect;
}

uint64_t remat_simulator_live_bytes(const remat_simulator *simulator)
{
    return simulator->live_bytes;
}

void remat_simulator_live(const remat_simulator *simulator, remat_live_fn visit, void *user)
{
    const remat_profile *chain = simulator->chain;
    for (size_t i = 0; i <= chain->layer_count; i++) {
        const layer_state *state = &simulator->layers[i];
        if (state->x_live)
            visit(user, (remat_live_tensor){'x', (uint32_t)i, remat_chain_x_bytes(chain, i)});
        if (state->saved != REMAT_NO_SAVE)
            visit(user, (remat_live_tensor){'s', (uint32_t)i, chain->layers[i].modes[state->saved].activation_bytes});
    }
    if (simulator->y != NO_Y)
        visit(user, (remat_live_tensor){'y', (uint32_t)simulator->y, remat_chain_y_bytes(chain, simulator->y)});
}

uint32_t remat_simulator_forwards(const remat_simulator *simulator, size_t layer)
{
    return simulator->layers[layer].forwards;
}

uint16_t remat_simulator_decision(const remat_simulator *simulator, size_t layer)
{
    return simulator->layers[layer].decision;
}
