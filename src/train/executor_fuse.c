/* An activation behind a matrix product runs with it: every value is activated while it is in a register or the cache, and
 * one pass over memory is saved. The same goes backward, where the product makes the gradient of the activation's output.
 *
 *     forward of fc, forward of relu                     first time or again: what is recomputed together is fused together
 *     derivative of fc, apply of fc, derivative of relu  an apply step touches weights and their gradients only
 *
 * Nothing between the two steps makes or changes a tensor. So what the activation reads is there when the product runs,
 * and is the same as later. Only its result comes into being too early: either it takes the place of what the product
 * makes, or nobody may live there at that time. The bits are those of two steps; the memory is what it was. */
#include "base/alloc.h"
#include "base/error.h"
#include "layers/activation.h"
#include "train/executor_object.h"

/* The buffers that live at a position; positions are asked for in ascending order. */
typedef struct living {
    const graph_lives *lives;
    const uint64_t *offsets;
    uint32_t *buffers;
    size_t count;
    uint32_t next; /* the first one not yet born: buffers stand in order of birth */
} living;

static bool is_free(living *all, size_t position, uint64_t offset, uint64_t bytes)
{
    const graph_buffer *buffers = all->lives->buffers;
    for (; all->next < all->lives->buffer_count && buffers[all->next].born <= position; all->next++)
        all->buffers[all->count++] = all->next;
    bool is_free = true;
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        uint32_t b = all->buffers[i];
        if (buffers[b].ends <= position)
            continue;
        all->buffers[kept++] = b;
        is_free &= offset + bytes <= all->offsets[b] || all->offsets[b] + buffers[b].bytes <= offset;
    }
    all->count = kept;
    return is_free;
}

/* A product and the activation of what it makes. */
typedef struct pair {
    prepared_step *product, *activation;
    const real *made; /* by the product: the activation reads it */
    uint32_t result;  /* the tensor that the activation makes */
    layer_fused fused;
} pair;

static bool is_forward_pair(const remat_program *program, pair *two)
{
    const program_binding *product = &program->bindings[two->product->action];
    const program_binding *activation = &program->bindings[two->activation->action];
    two->made = two->product->call.output;
    two->result = activation->output;
    two->fused.result = two->activation->call.output;
    return activation->inputs[0] == product->output;
}

static bool is_derivative_pair(const remat_program *program, pair *two)
{
    const program_binding *product = &program->bindings[two->product->action];
    const program_binding *activation = &program->bindings[two->activation->action];
    const layer_call *call = &two->activation->call;
    two->made = two->product->call.d_inputs[0];
    two->result = activation->d_inputs[0];
    two->fused.result = call->d_inputs[0];
    two->fused.derivative_at = kernel_activation_reads_output(two->fused.kind) ? call->output : call->inputs[0];
    return two->made && activation->d_output == product->d_inputs[0] && two->fused.result &&
           !call->accumulate_inputs[0];
}

static bool is_pair(const remat_program *program, pair *two)
{
    two->fused.kind = activation_pointwise(&program->network->layers[two->activation->layer].node);
    if (two->fused.kind == KERNEL_NONE || two->product->kind != two->activation->kind)
        return false;
    return two->product->kind == GRAPH_FORWARD ? is_forward_pair(program, two) : is_derivative_pair(program, two);
}

static bool is_product(const remat_program *program, const prepared_step *step)
{
    return program->network->layers[step->layer].node.type->fuses_activation &&
           (step->kind == GRAPH_FORWARD || step->kind == GRAPH_DERIVATIVE);
}

/* Behind this step and the apply steps that follow it. */
static size_t position_behind(const remat_executor *executor, size_t position)
{
    do
        position++;
    while (position < executor->count && executor->steps[position].kind == GRAPH_APPLY);
    return position;
}

remat_status executor_fuse(remat_executor *executor, const graph_lives *lives, const executor_memory *memory)
{
    const remat_program *program = executor->program;
    uint32_t *room = remat_alloc(executor->context, lives->buffer_count, sizeof *room);
    if (!room)
        return REMAT_NO_MEMORY;
    living all = {lives, memory->offsets, room, 0, 0};
    for (size_t position = 0; position < executor->count; position++) {
        prepared_step *step = &executor->steps[position];
        size_t next = is_product(program, step) ? position_behind(executor, position) : executor->count;
        if (next == executor->count)
            continue;
        pair two = {.product = step, .activation = &executor->steps[next]};
        if (!is_pair(program, &two))
            continue;
        uint64_t offset = (uint64_t)((const char *)two.fused.result - memory->arena);
        uint64_t bytes = program->graph->tensors[two.result].bytes;
        if (two.fused.result != two.made && !is_free(&all, position, offset, bytes))
            continue;
        step->fused = two.fused;
        step->until = next;
        two.activation->absorbed = true;
        executor->fused++;
    }
    remat_release(executor->context, room, lives->buffer_count, sizeof *room);
    return REMAT_OK;
}
