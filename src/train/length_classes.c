#include "train/length_classes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "layers/rotary_embedding.h"
#include "model/model_object.h"
#include "train/trainer_object.h"

bool trainer_has_classes(const remat_trainer *trainer)
{
    return trainer->settings.length_classes > 1;
}

/* Tokens in a row of the data. */
static uint64_t row_length(const remat_trainer *trainer)
{
    return layer_values(trainer->network->labels);
}

static remat_status refuse(const remat_trainer *trainer, const char *why)
{
    return remat_fail(trainer->context, REMAT_INVALID, NULL, "length_classes: %s", why);
}

static remat_status check(const remat_trainer *trainer)
{
    const remat_network *network = trainer->network;
    if (!trainer->model->folder)
        return refuse(trainer, "they are for models of a folder in Hugging Face's layout");
    if (trainer->pipeline || trainer_rank_count(trainer) > 1)
        return refuse(trainer, "ranks run one plan together; leave them out, or use one rank");
    if (trainer->options.plan_path || trainer->options.graph_plan_path)
        return refuse(trainer, "a plan file is for one length");
    if (network->labels_dtype != REMAT_INT32 || trainer->settings.length_classes > row_length(trainer))
        return refuse(trainer, "there are more of them than tokens in a sample");
    for (size_t n = 0; n < network->layer_count; n++)
        if (rotary_depends_on_length(&network->layers[n].node))
            return refuse(trainer, "with the rope scaling 'dynamic' the angles depend on the length of a row");
    return REMAT_OK;
}

/* Weights, gradients and states are those of the whole length. */
static bool same_layout(const remat_network *a, const remat_network *b)
{
    if (a->parameter_count != b->parameter_count || a->parameter_bytes != b->parameter_bytes ||
        a->gradient_bytes != b->gradient_bytes)
        return false;
    for (size_t p = 0; p < a->parameter_count; p++)
        if (a->parameters[p].offset != b->parameters[p].offset ||
            a->parameters[p].gradient_offset != b->parameters[p].gradient_offset)
            return false;
    return true;
}

static remat_status build_class(const remat_trainer *trainer, length_class *made)
{
    network_options wanted = trainer->network->options;
    wanted.length = made->length;
    REMAT_TRY(network_build(trainer->model, &wanted, &made->network));
    if (!same_layout(trainer->network, made->network))
        return remat_fail(trainer->context, REMAT_INTERNAL, NULL, "the layout of the weights depends on the length");
    return program_build_for(made->network, trainer->program->apply, &trainer->program->speed, NULL, &made->program);
}

/* The lengths rise in equal steps, rounded up. */
remat_status length_classes_build(remat_trainer *trainer)
{
    const uint64_t count = trainer->settings.length_classes;
    if (!trainer_has_classes(trainer))
        return REMAT_OK;
    REMAT_TRY(check(trainer));
    trainer->classes = remat_alloc_zeroed(trainer->context, count - 1, sizeof *trainer->classes);
    if (!trainer->classes)
        return REMAT_NO_MEMORY;
    trainer->class_count = count - 1;
    for (uint64_t i = 0; i + 1 < count; i++) {
        trainer->classes[i].length = (row_length(trainer) * (i + 1) + count - 1) / count;
        REMAT_TRY(build_class(trainer, &trainer->classes[i]));
    }
    return REMAT_OK;
}

remat_status length_classes_plan(remat_trainer *trainer)
{
    for (size_t i = 0; i < trainer->class_count; i++)
        REMAT_TRY(trainer_plan_program(trainer, trainer->classes[i].program, NULL, &trainer->classes[i].plan));
    return REMAT_OK;
}

uint64_t length_classes_arena(const remat_trainer *trainer, uint64_t bytes)
{
    for (size_t i = 0; i < trainer->class_count; i++)
        if (trainer->classes[i].plan)
            bytes = remat_max(bytes, trainer->classes[i].plan->arena_bytes);
    return bytes;
}

/* ---- executors ---- */

remat_status length_classes_start(remat_trainer *trainer)
{
    for (size_t i = 0; i < trainer->class_count; i++) {
        length_class *class = &trainer->classes[i];
        const executor_options options = trainer_executor_options(trainer, class->program, class->plan);
        REMAT_TRY(executor_create(trainer->context, &options, &class->executor));
    }
    return REMAT_OK;
}

remat_status length_classes_measure(remat_trainer *trainer, uint64_t *bytes)
{
    *bytes = 0;
    for (size_t i = 0; i < trainer->class_count; i++) {
        const length_class *class = &trainer->classes[i];
        const executor_options options = trainer_executor_options(trainer, class->program, class->plan);
        uint64_t some;
        REMAT_TRY(executor_measure(trainer->context, &options, &some));
        *bytes += some;
    }
    return REMAT_OK;
}

void length_classes_stop(remat_trainer *trainer)
{
    for (size_t i = 0; i < trainer->class_count; i++)
        executor_destroy(trainer->classes[i].executor);
}

void length_classes_release(remat_trainer *trainer)
{
    for (size_t i = 0; i < trainer->class_count; i++) {
        graph_plan_destroy(trainer->classes[i].plan);
        program_destroy(trainer->classes[i].program);
        network_destroy(trainer->classes[i].network);
    }
    remat_release(trainer->context, trainer->classes, trainer->class_count, sizeof *trainer->classes);
}

/* ---- batches ---- */

/* Tokens up to the last label of the longest sample. */
static uint64_t needed_length(const remat_trainer *trainer)
{
    const int32_t *labels = trainer->staged.labels;
    const uint64_t length = row_length(trainer);
    uint64_t needed = 0;
    for (uint64_t row = 0; row < trainer->network->batch; row++)
        for (uint64_t at = length; at > needed; at--)
            if (labels[row * length + at - 1] >= 0)
                needed = at;
    return needed;
}

const length_class *length_classes_choose(const remat_trainer *trainer)
{
    const uint64_t needed = trainer->class_count ? needed_length(trainer) : 0;
    for (size_t i = 0; i < trainer->class_count; i++)
        if (needed <= trainer->classes[i].length)
            return &trainer->classes[i];
    return NULL;
}
