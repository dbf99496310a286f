/* The two passes that make a program: program_forward.c and program_backward.c. */
#ifndef REMAT_MODEL_PROGRAM_BUILDER_H
#define REMAT_MODEL_PROGRAM_BUILDER_H

#include "model/program.h"

typedef struct builder {
    remat_program *program;
    remat_context *context;
    const remat_network *network;
    /* Of each network layer. */
    uint32_t *saved; /* LAYER_MAX_SAVED tensors each */
    bool *wanted;    /* its output needs a gradient */
    /* Of each activation tensor, by number. All activations are added before the first gradient. */
    size_t activation_count;
    uint32_t *gradient; /* its gradient so far */
    bool *differentiable;
    /* Of each tensor of the graph: how many activations have it as their gradient and are still to be read in the
     * backward pass. */
    uint32_t *sharers;
    size_t sharer_capacity;
} builder;

/* Adds a tensor with a name made of two parts. */
typedef struct tensor_size {
    remat_dtype dtype;
    uint64_t count;
} tensor_size;
remat_status builder_add_tensor(builder *b, const char *owner, const char *what, tensor_size size, uint32_t *number);

/* Of a layer's output, and of its gradient. */
tensor_size builder_output_size(const layer_node *node);

/* Collects the links of one action; a tensor that is already there is not added again. */
typedef struct link_list {
    uint32_t items[2 * LAYER_MAX_INPUTS + LAYER_MAX_SAVED + LAYER_MAX_PARAMETERS + 4];
    size_t count;
} link_list;
void link_list_add(link_list *list, uint32_t tensor);

/* Adds the action with its name, links and binding; the cost follows from flops and the bytes of all links. */
typedef struct action_draft {
    graph_action action;
    program_binding binding;
    link_list reads, writes, updates;
    uint64_t flops;
} action_draft;
action_draft action_draft_start(action_kind kind, size_t layer);
remat_status builder_add_action(builder *b, action_draft *draft);

/* Adds what the next action of the graph does (program.c). */
remat_status builder_add_binding(builder *b, program_binding *binding);

remat_status builder_add_forward(builder *b);
remat_status builder_add_results(builder *b);
remat_status builder_add_backward(builder *b);
void builder_release(builder *b);

/* The tensor behind an input of a network layer. */
uint32_t program_input_tensor(const remat_program *program, uint32_t input);

#endif
