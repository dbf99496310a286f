/* The two passes that make a program: program_forward.c and program_backward.c; and what stages need: program_stage.c. */
#ifndef REMAT_MODEL_PROGRAM_BUILDER_H
#define REMAT_MODEL_PROGRAM_BUILDER_H

#include "model/program.h"

/* What a stage has to do with the output of a layer; views are the layer that they show. */
typedef struct stage_output {
    uint32_t base;       /* the layer itself, or what it shows */
    uint32_t lowest;     /* the first layer of the stage that reads it; NETWORK_NONE */
    uint32_t from, next; /* the stages before and behind that have it; NETWORK_NONE */
    bool flows_back;     /* its gradient comes from behind */
} stage_output;

/* The same of a trained parameter. */
typedef struct stage_weight {
    uint32_t lowest;
    uint32_t from; /* the stage before that gets the gradient */
    uint32_t next;
    bool flows_back;
} stage_weight;

typedef struct builder {
    remat_program *program;
    remat_context *context;
    const remat_network *network;
    uint32_t first, end; /* the layers of the program */
    const program_stage *stage;
    stage_output *stage_outputs; /* of each network layer, with a stage */
    stage_weight *stage_weights; /* of each network parameter, with a stage */
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

/* program_backward.c: a new gradient of a layer's output. */
remat_status builder_new_gradient(builder *b, uint32_t producer, uint32_t *number);

/* program_stage.c: what this stage has to do with each output and each parameter. */
remat_status builder_find_stage(builder *b, const program_stage *stage);
bool builder_reads_labels(const builder *b);
/* Behind the loads; between forward and backward; behind the backward of a layer. They do nothing without a stage. */
remat_status builder_add_receives(builder *b);
remat_status builder_add_turn(builder *b);
remat_status builder_add_sends(builder *b, uint32_t layer);
/* Before the first gradient of a parameter is made: what later stages made of it, if they did. */
remat_status builder_receive_weight_gradient(builder *b, uint32_t parameter, uint32_t d_output);

remat_status builder_add_forward(builder *b);
remat_status builder_add_results(builder *b);
remat_status builder_add_backward(builder *b);
void builder_release(builder *b);

/* The tensor behind an input of a network layer. */
uint32_t program_input_tensor(const remat_program *program, uint32_t input);

#endif
