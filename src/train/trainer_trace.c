/* Watching the actions of a step. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

remat_status remat_trainer_on_action(remat_trainer *trainer, remat_action_fn visit, void *user)
{
    trainer->on_action = visit;
    trainer->on_action_user = user;
    return REMAT_OK;
}

/* ---- the optimizer's part ---- */

/* Operations on one value, as the kernels write them; a division and a root count one each. */
static uint64_t optimizer_flops(const optimizer_settings *optimizer)
{
    switch (optimizer->type) {
    case OPTIMIZER_SGD: return optimizer->momentum == 0 ? 5 : optimizer->nesterov ? 9 : 7;
    case OPTIMIZER_LION: return 9;
    case OPTIMIZER_ADAFACTOR: return 20; /* the update is computed twice */
    default: return 17;
    }
}

/* The gradient is read; the weight and the state are read and written. */
static layer_work update_work(const remat_trainer *trainer, uint32_t parameter)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    return (layer_work){.flops = about->values * optimizer_flops(&trainer->optimizer),
                        .bytes = dtype_bytes(layer_gradient_dtype(&about->about), about->values) + 2 * about->bytes +
                                 trainer_state_moved(trainer, parameter)};
}

/* The gradient is added to the sum over the micro-batches. */
static layer_work add_work(const remat_trainer *trainer, uint32_t parameter)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    return (layer_work){.flops = about->values, .bytes = 3 * about->bytes};
}

static layer_work apply_work(const remat_trainer *trainer, uint32_t action)
{
    const program_binding binding = program_binding_of(trainer->program, action);
    const network_layer *layer = &trainer->network->layers[binding.layer];
    layer_work sum = {0};
    for (uint32_t p = 0; p < layer->node.parameter_count; p++)
        if (binding.gradients[p] != GRAPH_NONE) {
            const uint32_t number = layer->parameters[p];
            layer_work one = trainer_adds(trainer) ? add_work(trainer, number) : update_work(trainer, number);
            sum.flops += one.flops;
            sum.bytes += one.bytes;
        }
    return sum;
}

/* ---- who is told ---- */

static void report(const remat_trainer *trainer, remat_action seen, layer_work work)
{
    seen.flops = work.flops;
    seen.bytes = work.bytes;
    seen.gemm_flops = work.gemm_flops;
    trainer->on_action(trainer->on_action_user, &seen);
}

void trainer_observe(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended)
{
    const remat_trainer *trainer = user;
    const char *const names[] = {"load",
                                 "forward",
                                 "weight_gradient",
                                 "input_gradient",
                                 trainer_adds(trainer) ? "weight_gradient" : "apply",
                                 "receive",
                                 "send",
                                 "send"};
    uint32_t number = trainer->plan->sequence.actions[position];
    const program_action *binding = &trainer->program->actions[number];
    const remat_action seen = {.layer = trainer->network->layers[binding->layer].node.name,
                               .phase = is_recompute ? "recompute" : names[binding->kind],
                               .position = binding->layer,
                               .began = began,
                               .ended = ended,
                               .live_bytes = trainer->plan->liveness.live_bytes[position]};
    report(trainer, seen,
           binding->kind == ACTION_APPLY ? apply_work(trainer, number) : executor_work(trainer->executor, position));
}

void trainer_note_apply(const remat_trainer *trainer, uint32_t parameter, uint64_t began, uint64_t ended)
{
    uint32_t layer = trainer->program->applied[parameter];
    const remat_action seen = {.layer = trainer->network->layers[layer].node.name,
                               .phase = "apply",
                               .position = layer,
                               .began = began,
                               .ended = ended};
    report(trainer, seen, update_work(trainer, parameter));
}

static remat_action all_gradients(const remat_trainer *trainer, const char *what, uint64_t began, uint64_t ended)
{
    return (remat_action){.layer = "(all gradients)",
                          .phase = what,
                          .position = trainer->network->layer_count,
                          .began = began,
                          .ended = ended};
}

void trainer_note_clear(const remat_trainer *trainer, uint64_t began, uint64_t ended)
{
    report(trainer, all_gradients(trainer, "weight_gradient", began, ended),
           (layer_work){.bytes = trainer->gradients.bytes});
}

void trainer_note_norm(const remat_trainer *trainer, uint64_t live_bytes, uint64_t began, uint64_t ended)
{
    layer_work work = {0};
    if (trainer->settings.clip_norm <= 0)
        return;
    for (size_t p = 0; p < trainer->network->parameter_count; p++) {
        const network_parameter *about = &trainer->network->parameters[p];
        if (!layer_parameter_is_trained(&about->about) || trainer->program->applied[p] == NETWORK_NONE)
            continue;
        work.flops += 2 * about->values;
        work.bytes += about->bytes;
    }
    remat_action seen = all_gradients(trainer, "apply", began, ended);
    seen.live_bytes = live_bytes;
    report(trainer, seen, work);
}

void trainer_note_transfer(void *user, const char *what, uint64_t number, uint64_t bytes, uint64_t began,
                           uint64_t ended)
{
    const remat_trainer *trainer = user;
    char name[40];
    if (!trainer->on_action)
        return;
    snprintf(name, sizeof name, "link %llu", (unsigned long long)number);
    const remat_action seen = {
        .layer = name, .phase = what, .position = trainer->network->layer_count, .began = began, .ended = ended};
    report(trainer, seen, (layer_work){.bytes = bytes});
}

void trainer_observe_norm(void *user, size_t position, uint64_t began, uint64_t ended)
{
    const remat_trainer *trainer = user;
    trainer_note_norm(trainer, trainer->plan->liveness.live_bytes[position], began, ended);
}
