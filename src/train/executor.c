#include "train/executor_object.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"

void executor_destroy(remat_executor *executor)
{
    if (!executor)
        return;
    remat_context *context = executor->context;
    poison_map_destroy(executor->poison);
    remat_release(context, executor->steps, executor->count, sizeof *executor->steps);
    remat_release(context, executor->loaded, executor->program->graph->tensor_count, sizeof *executor->loaded);
    remat_release(context, executor->gradients, executor->program->network->parameter_count,
                  sizeof *executor->gradients);
    remat_release(context, executor, 1, sizeof *executor);
}

/* Where a tensor is, and until which position. */
typedef struct instance {
    void *at;
    size_t ends;
} instance;

/* The state while the steps are prepared: the latest instance of every tensor. */
typedef struct preparation {
    remat_executor *executor;
    const graph_lives *lives;
    const executor_memory *memory;
    instance *latest;
    size_t next_life;
} preparation;

static void *address(const preparation *p, uint32_t tensor)
{
    return tensor == GRAPH_NONE ? NULL : p->latest[tensor].at;
}

/* Whether anybody will read what this position makes. */
static bool is_read(const preparation *p, uint32_t tensor, size_t position)
{
    return p->latest[tensor].ends > position + 1;
}

/* Takes up the instances born at this position; returns the workspace, if there is one. */
static void *take_births(preparation *p, size_t position)
{
    void *workspace = NULL;
    for (; p->next_life < p->lives->life_count && p->lives->lives[p->next_life].born == position; p->next_life++) {
        const graph_life *life = &p->lives->lives[p->next_life];
        void *at = p->memory->arena + p->memory->offsets[life->buffer];
        if (life->tensor == GRAPH_NONE)
            workspace = at;
        else
            p->latest[life->tensor] = (instance){at, life->ends};
    }
    return workspace;
}

static void bind_parameters(const preparation *p, const network_layer *layer, const program_binding *binding,
                            graph_kind kind, layer_call *call)
{
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        call->parameters[i] = p->memory->parameters[layer->parameters[i]];
        call->gradients[i] = address(p, binding->gradients[i]);
        if (p->memory->gradients && kind != GRAPH_FORWARD)
            call->gradients[i] = p->memory->gradients[layer->parameters[i]];
        call->accumulate_gradients[i] = binding->accumulate_gradients >> i & 1u;
    }
}

static void bind(preparation *p, size_t position, uint32_t number, prepared_step *step)
{
    const remat_program *program = p->executor->program;
    const graph_action *action = &program->graph->actions[number];
    const program_binding *binding = &program->bindings[number];
    const network_layer *layer = &program->network->layers[action->layer];
    layer_call *call = &step->call;
    /* What is read has the address it had before this step; an in-place write does not move it. */
    call->d_output = address(p, binding->d_output);
    for (uint32_t i = 0; i < layer->node.input_count; i++) {
        call->inputs[i] = address(p, binding->inputs[i]);
        step->copied[i] = address(p, binding->copied[i]);
    }
    call->workspace = take_births(p, position);
    call->output = address(p, binding->output);
    if (action->kind == GRAPH_FORWARD && layer->node.type->may_leave_output && !is_read(p, binding->output, position))
        call->output = NULL;
    for (uint32_t s = 0; s < layer->node.saved_count; s++)
        call->saved[s] = address(p, binding->saved[s]);
    for (uint32_t i = 0; i < layer->node.input_count; i++) {
        call->d_inputs[i] = address(p, binding->d_inputs[i]);
        call->accumulate_inputs[i] = binding->accumulate_inputs >> i & 1u;
    }
    bind_parameters(p, layer, binding, action->kind, call);
}

static void note_results(preparation *p, const graph_action *action)
{
    remat_executor *executor = p->executor;
    const remat_program *program = executor->program;
    const uint32_t *reads = graph_reads(program->graph, action);
    for (size_t i = 0; i < action->read_count; i++) {
        executor->results[i] = address(p, reads[i]);
        for (uint32_t n = 0; n < program->network->layer_count; n++)
            if (program->outputs[n] == reads[i])
                executor->result_layers[i] = n;
    }
}

static void note_gradients(preparation *p, const network_layer *layer, const program_binding *binding)
{
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (binding->gradients[i] != GRAPH_NONE)
            p->executor->gradients[layer->parameters[i]] = address(p, binding->gradients[i]);
}

static void prepare(preparation *p, const graph_sequence *sequence, bool *ran)
{
    remat_executor *executor = p->executor;
    const remat_program *program = executor->program;
    for (size_t position = 0; position < sequence->count; position++) {
        uint32_t number = sequence->actions[position];
        const graph_action *action = &program->graph->actions[number];
        prepared_step *step = &executor->steps[position];
        step->kind = action->kind;
        step->layer = action->layer;
        step->action = number;
        step->until = position;
        bind(p, position, number, step);
        step->call.again = ran[number];
        ran[number] = true;
        step->call.loss = &executor->loss;
        step->call.correct = &executor->correct;
        if (action->kind == GRAPH_LOAD)
            executor->loaded[program->bindings[number].output] = step->call.output;
        if (action->kind == GRAPH_FINISH)
            note_results(p, action);
        if (action->kind == GRAPH_GRADIENT || action->kind == GRAPH_DERIVATIVE)
            note_gradients(p, &program->network->layers[action->layer], &program->bindings[number]);
    }
}

static remat_status prepare_all(remat_executor *executor, const graph_sequence *sequence, const graph_lives *lives,
                                const executor_memory *memory)
{
    remat_context *context = executor->context;
    size_t tensors = executor->program->graph->tensor_count, actions = executor->program->graph->action_count;
    instance *latest = remat_alloc_zeroed(context, tensors, sizeof *latest);
    bool *ran = remat_alloc_zeroed(context, actions, sizeof *ran);
    remat_status status = REMAT_NO_MEMORY;
    if (latest && ran) {
        preparation p = {executor, lives, memory, latest, 0};
        prepare(&p, sequence, ran);
        status = REMAT_OK;
    }
    remat_release(context, latest, tensors, sizeof *latest);
    remat_release(context, ran, actions, sizeof *ran);
    return status;
}

remat_status executor_create(const remat_program *program, const graph_sequence *sequence, const graph_lives *lives,
                             const executor_memory *memory, const kernel_table *kernels, const kernel_run *run,
                             remat_executor **made)
{
    *made = NULL;
    remat_context *context = program->context;
    remat_executor *executor = remat_alloc_zeroed(context, 1, sizeof *executor);
    if (!executor)
        return REMAT_NO_MEMORY;
    executor->context = context;
    executor->program = program;
    executor->count = sequence->count;
    executor->steps = remat_alloc_zeroed(context, sequence->count, sizeof *executor->steps);
    executor->loaded = remat_alloc_zeroed(context, program->graph->tensor_count, sizeof *executor->loaded);
    executor->gradients = remat_alloc_zeroed(context, program->network->parameter_count, sizeof *executor->gradients);
    remat_status status = REMAT_NO_MEMORY;
    if (executor->steps && executor->loaded && executor->gradients) {
        status = prepare_all(executor, sequence, lives, memory);
        for (size_t i = 0; i < executor->count; i++) {
            executor->steps[i].call.kernels = kernels;
            executor->steps[i].call.run = run;
        }
    }
    if (status == REMAT_OK)
        status = executor_fuse(executor, lives, memory);
    if (status == REMAT_OK)
        status =
            poison_map_create(context, lives, memory->offsets, memory->arena, memory->arena_bytes, &executor->poison);
    if (status != REMAT_OK) {
        executor_destroy(executor);
        return status;
    }
    *made = executor;
    return REMAT_OK;
}

void *executor_input(const remat_executor *executor, uint32_t layer)
{
    return executor->loaded[executor->program->outputs[layer]];
}

void *executor_labels(const remat_executor *executor)
{
    uint32_t labels = executor->program->labels;
    return labels == GRAPH_NONE ? NULL : executor->loaded[labels];
}

const real *executor_result(const remat_executor *executor, size_t i, uint32_t *layer)
{
    if (i >= LAYER_MAX_INPUTS || !executor->results[i])
        return NULL;
    *layer = executor->result_layers[i];
    return executor->results[i];
}

const real *executor_gradient(const remat_executor *executor, uint32_t parameter)
{
    return executor->gradients[parameter];
}

uint64_t executor_correct(const remat_executor *executor)
{
    return executor->correct;
}

uint64_t executor_forwards(const remat_executor *executor)
{
    return executor->forwards;
}

uint64_t executor_fused(const remat_executor *executor)
{
    return executor->fused;
}

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_derivative(const layer_node *node, prepared_step *step)
{
    layer_call *call = &step->call;
    size_t values[LAYER_MAX_INPUTS];
    for (uint32_t i = 0; i < node->input_count; i++) {
        values[i] = (size_t)(layer_values(node->inputs[i]) * node->batch);
        if (step->copied[i])
            memcpy(call->d_inputs[i], step->copied[i], values[i] * sizeof(real));
    }
    if (!node->passes_gradient) {
        node->type->derivative(node, call);
        return;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (call->d_inputs[i])
            call->kernels->accumulate(call->run, values[i], call->d_output, call->d_inputs[i]);
}

static void run_apply(remat_executor *executor, prepared_step *step, const executor_hooks *hooks)
{
    const network_layer *layer = &executor->program->network->layers[step->layer];
    const program_binding *binding = &executor->program->bindings[step->action];
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (binding->gradients[i] != GRAPH_NONE)
            hooks->apply(hooks->user, layer->parameters[i], step->call.gradients[i]);
}

/* One run of the sequence. */
typedef struct walk {
    const executor_turn *turn;
    const executor_hooks *hooks;
    bool fused, ready;
} walk;

static void run_step(remat_executor *executor, prepared_step *step, walk *at)
{
    const layer_node *node = &executor->program->network->layers[step->layer].node;
    layer_call *call = &step->call;
    bool done = at->fused && step->absorbed;
    call->fused = at->fused && step->fused.result ? &step->fused : NULL;
    call->training = at->turn->training;
    call->loss_share = at->turn->loss_share;
    call->random = remat_random_stream(at->turn->seed, step->layer, at->turn->step);
    switch (step->kind) {
    case GRAPH_FORWARD:
        if (!done)
            node->type->forward(node, call);
        executor->forwards++;
        break;
    case GRAPH_GRADIENT: node->type->gradient(node, call); break;
    case GRAPH_DERIVATIVE:
        if (!done)
            run_derivative(node, step);
        break;
    case GRAPH_APPLY: run_apply(executor, step, at->hooks); break;
    case GRAPH_LOAD: /* the caller filled it */
    case GRAPH_FINISH: break;
    }
}

double executor_run(remat_executor *executor, const executor_turn *turn, const executor_hooks *hooks)
{
    walk at = {turn, hooks, !hooks->observe, false}; /* who observes wants the time of every layer */
    executor->loss = 0;
    executor->correct = 0;
    executor->forwards = 0;
    for (size_t position = 0; position < executor->count; position++) {
        prepared_step *step = &executor->steps[position];
        poison_map_enter(executor->poison, at.fused ? step->until : position);
        if (step->kind == GRAPH_APPLY && !at.ready && hooks->ready)
            hooks->ready(hooks->user); /* before the clock starts: it is not this layer's time */
        at.ready |= step->kind == GRAPH_APPLY;
        uint64_t began = hooks->observe ? clock_now() : 0;
        run_step(executor, step, &at);
        if (hooks->observe)
            hooks->observe(hooks->user, position, step->call.again, began, clock_now());
        poison_map_leave(executor->poison, position);
    }
    poison_map_open(executor->poison);
    return executor->loss;
}
