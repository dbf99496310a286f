/* A network as actions on tensors. The planner sees only the graph. The executor also needs to know, for each action,
 * which tensor is which argument of the layer.
 *
 * Gradients of tensors that several layers read are sums. The first layer in backward order writes the gradient, the
 * others add to it. The inputs of an addition share the gradient of its output, without a copy. It is copied only if
 * one of them must be added to while another is still to be read.
 *
 * A program may be that of one stage of a pipeline: some layers that follow each other. It has the actions of these layers only.
 * Outputs of layers before them are received, and what later stages read is sent; gradients travel the other way:
 *
 *     load, receive | forward ... | turn: send outputs, receive their gradients | backward ... send gradients of what was received
 *
 * A tensor that several stages read goes from each of them to the next one, and its gradient back in the same way. Each stage
 * adds to the gradient that it received, so the sum has the order that it has without stages. The gradient of a weight that
 * several stages have goes to the first of them, which applies it. */
#ifndef REMAT_MODEL_PROGRAM_H
#define REMAT_MODEL_PROGRAM_H

#include "base/text_pool.h"
#include "model/network.h"
#include "graph/graph_object.h"
#include "plan/graph/graph_outline.h"

/* When the optimizer changes the parameters. */
typedef enum program_apply {
    PROGRAM_APPLY_AT_ONCE, /* as soon as a layer's gradient is complete: the gradient is live only until then */
    PROGRAM_APPLY_AT_END,  /* all together, after the global norm is known: gradients are live until then */
    PROGRAM_ADD_AT_ONCE,   /* accumulation: the same, but the action adds the gradient to a sum over several runs */
    PROGRAM_FORWARD_ONLY,  /* no backward: evaluation and prediction */
} program_apply;

typedef enum __attribute__((packed)) action_kind {
    ACTION_LOAD,            /* data comes in: once */
    ACTION_FORWARD,         /* may run again */
    ACTION_WEIGHT_GRADIENT, /* of the layer's parameters: once, like all below */
    ACTION_INPUT_GRADIENT,  /* of the layer's inputs */
    ACTION_APPLY,           /* the optimizer's step on the layer's parameters; or their gradients are added to a sum */
    ACTION_RECEIVE,         /* from another stage: once, like the others below */
    ACTION_SEND,            /* a gradient, to another stage */
    ACTION_TURN,            /* the end of the forward pass of a stage: sends its outputs and receives their gradients */
} action_kind;

/* What an action of the graph does. Its tensors are in program.bound, from `first` on: output, d_output, then the lists
 * of program_binding, each as long as the layer has inputs, saved tensors or parameters. */
typedef struct program_action {
    uint32_t layer; /* whose action it is */
    uint32_t first;
    uint16_t accumulate_inputs;
    uint8_t accumulate_gradients;
    action_kind kind;
} program_action;

/* The same with the tensors; GRAPH_NONE where there is none. */
typedef struct program_binding {
    action_kind kind;
    uint32_t layer;
    uint32_t inputs[LAYER_MAX_INPUTS];
    uint32_t output;
    uint32_t saved[LAYER_MAX_SAVED];
    uint32_t d_output;
    uint32_t d_inputs[LAYER_MAX_INPUTS];
    uint32_t copied[LAYER_MAX_INPUTS]; /* d_inputs[i] starts as a copy of this gradient */
    uint32_t gradients[LAYER_MAX_PARAMETERS];
    uint32_t accumulate_inputs;    /* bit i */
    uint32_t accumulate_gradients; /* bit i */
} program_binding;

/* What a device does in a nanosecond, for costs that are not measured. */
typedef struct program_speed {
    double flops, bytes;
} program_speed;
extern const program_speed program_default_speed;

/* One of several stages. */
typedef struct program_stage {
    uint32_t count, number;
    const uint32_t *starts; /* count + 1 layers: stage s has the layers starts[s] .. starts[s + 1] - 1 */
} program_stage;

/* A tensor that comes from another stage or goes to one, by way of an area for these. */
typedef struct program_transfer {
    uint32_t action; /* ACTION_RECEIVE, ACTION_SEND or ACTION_TURN */
    uint32_t peer;   /* the other stage */
    uint32_t tag;    /* the same on both sides, and of no other transfer of a pass */
    uint32_t tensor;
    bool sends, is_forward;
    remat_dtype dtype;
    uint64_t values, bytes;
    uint64_t offset; /* in the area: a multiple of 64 */
} program_transfer;

typedef struct remat_program {
    remat_context *context;
    program_speed speed;
    const remat_network *network;
    program_apply apply;
    bool fetches; /* weights are fetched for each pass */
    remat_graph *graph;
    program_action *actions; /* one for each action of the graph */
    graph_hint *hints;       /* likewise, for the planner; none with PROGRAM_FORWARD_ONLY */
    size_t action_capacity, hint_capacity;
    uint32_t *bound; /* tensors of the actions */
    size_t bound_count, bound_capacity;
    uint32_t *outputs;           /* of each network layer: the tensor that holds its output */
    uint32_t *forwards;          /* of each network layer: the action that makes its output, GRAPH_NONE */
    uint32_t labels;             /* the tensor of the labels, GRAPH_NONE */
    uint32_t *gradients;         /* of each network parameter: the tensor of its gradient, GRAPH_NONE */
    uint32_t *applied;           /* of each network parameter: the layer whose apply step changes it, NETWORK_NONE */
    program_transfer *transfers; /* of a stage */
    size_t transfer_count, transfer_capacity;
    uint64_t transfer_bytes; /* of the area */
    uint32_t turn;           /* the action; GRAPH_NONE: no stage follows */
    text_pool names;         /* of tensors and actions, where they are not those of layers */
} remat_program;

/* The network must outlive the program. `speed` NULL: the default. `stage` NULL: all layers. */
remat_status program_build(const remat_network *network, program_apply apply, remat_program **made);
remat_status program_build_for(const remat_network *network, program_apply apply, const program_speed *speed,
                               const program_stage *stage, remat_program **made);
void program_destroy(remat_program *program);

/* What an action does, with its tensors. */
program_binding program_binding_of(const remat_program *program, uint32_t action);

/* Whether an action reads parameter number i of its layer; statistics apart. */
bool program_reads(const remat_program *program, uint32_t action, uint32_t number);

/* Makes it a program whose weights are fetched (program_fetch.c). Before it is planned, and after program_set_costs: who measured the costs
 * fetched nothing, and what that takes is added. */
remat_status program_fetch_weights(remat_program *program);
/* Whether parameter number i of the layer is fetched for an action; the bytes of all that are, each placed at a multiple of 64 in
 * the order of their numbers, at the end of the workspace. */
bool program_fetches(const remat_program *program, uint32_t action, uint32_t number);
uint64_t program_fetched_bytes(const remat_program *program, uint32_t action);

/* Of each action: the block that the model declares for its layer, or GRAPH_NONE. The caller releases the list. */
remat_status program_find_blocks(const remat_program *program, uint32_t **blocks);

/* Replaces the estimated costs by measured ones, in nanoseconds. Layers of the profile are found by name. Layers that
 * it does not have keep their estimates. Times of another batch size are scaled, with a warning. REMAT_BAD_INPUT: the unit is
 * not ns, no name matches, or outputs have other sizes. */
remat_status program_set_costs(remat_program *program, const remat_profile *profile);

/* The estimated time of an action, in nanoseconds, if nothing was measured. */
uint64_t program_modelled_cost(const program_speed *speed, uint64_t flops, uint64_t bytes);

#endif
