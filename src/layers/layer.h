/* A layer type is one file: its name, its properties, the shapes, parameters and saved tensors that follow from them,
 * and the operations of its forward and backward. layer_table.c lists the types; no other code has to know a new one.
 * docs/adding-a-layer.md walks through an example.
 *
 * A layer never allocates, never places a tensor, and never accesses a value. It says what it needs, gets tensors, and
 * records operations on them (backend/recording.h). It keeps no state between calls: a recomputed forward does the same
 * with the same inputs. */
#ifndef REMAT_LAYERS_LAYER_H
#define REMAT_LAYERS_LAYER_H

#include <remat/context.h>
#include <remat/profile.h>

#include "backend/recording.h"
#include "base/properties.h"

enum { LAYER_MAX_INPUTS = 16, LAYER_MAX_PARAMETERS = 4, LAYER_MAX_SAVED = 2 };

/* The shape of one sample: channels, height, width; missing leading ones are 1. A vector is 1:1:w, a sequence of h rows
 * 1:h:w, an image c:h:w. A tensor holds `batch` samples one after the other. */
typedef struct layer_shape {
    uint64_t c, h, w;
} layer_shape;

typedef enum layer_fill { LAYER_ZEROS, LAYER_ONES, LAYER_NORMAL, LAYER_UNIFORM } layer_fill;

typedef struct layer_parameter {
    const char *name;  /* "weight" */
    remat_dtype dtype; /* the model sets bf16 where it wants no copies in fp32 */
    uint32_t rank;
    uint64_t dims[4];
    layer_fill fill;
    double fill_scale; /* the deviation of LAYER_NORMAL, the bound of LAYER_UNIFORM */
    bool decay;        /* weight decay applies: true for matrices, false for biases and gains */
    bool statistic;    /* not trained, changed by the forward itself: running means */
    bool transient;    /* memory of a run, such as a cache: files do not have it */
    bool frozen;       /* not trained. The model sets it for those of a frozen layer */
    bool compressible; /* a matrix that may be in fewer bits where it is frozen */
    bool transposed;   /* files of other programs hold the matrix the other way round */
    bool adapter;      /* an addition to the model's own weights, which are frozen: it is saved apart from them */
} layer_parameter;

/* The type of its gradient: sums of weight gradients are in fp32 where the weights are in bf16. */
static inline remat_dtype layer_gradient_dtype(const layer_parameter *parameter)
{
    return dtype_traits_of(parameter->dtype)->accumulator;
}

/* Whether it has a gradient, and an optimizer changes it. */
static inline bool layer_parameter_is_trained(const layer_parameter *parameter)
{
    return !parameter->statistic && !parameter->frozen;
}

/* A tensor that forward makes only for the backward pass. */
typedef struct layer_saved {
    const char *name;
    remat_dtype dtype;
    uint64_t count;
} layer_saved;

/* What the backward reads besides the gradient of the output: bit i is input i. */
#define LAYER_NEEDS_INPUT(i) (1u << (i))
#define LAYER_NEEDS_OUTPUT   (1u << 30)
#define LAYER_NEEDS_SAVED    (1u << 31)

typedef struct layer_type layer_type;

/* A layer runs in three passes: forward; the gradient of its weights (of all its trained parameters); the gradient of its
 * inputs. The last two are the backward pass. */
typedef enum layer_pass { LAYER_FORWARD, LAYER_WEIGHT_GRADIENT, LAYER_INPUT_GRADIENT, LAYER_PASSES } layer_pass;

typedef struct layer_node {
    const layer_type *type;
    const char *name;
    const void *options; /* of the type's own struct */

    /* Set by the model before resolve(). */
    const backend *device; /* it will compute, and knows the workspaces of operations */
    remat_dtype dtype;     /* of its output, unless resolve() sets another; parameters have the type of statistics */
    bool halves;           /* the network is in bf16, if not this layer */
    bool half_weights;     /* matrices of weights are stored in bf16 alone. The model sets it */
    uint64_t batch;
    bool frozen; /* no parameter changes, statistics included */
    /* No other layer reads the output in the backward pass. The model sets it, and then resolves again. */
    bool output_unread;
    /* input_gradient makes the gradient of the input of this activation, which computes input 0. There, input 0 of the call is what its
     * derivative reads. The model sets it after resolve(). */
    activation_kind joined;
    uint32_t input_count;
    layer_shape *inputs;
    remat_dtype *input_dtypes;

    /* Set by resolve(). Everything starts at zero. */
    layer_shape output;
    const char *shared_from; /* the layer whose weight this one shares; NULL: none */
    uint32_t parameter_count;
    layer_parameter *parameters;
    uint32_t saved_count;
    layer_saved *saved;
    uint32_t needs[LAYER_PASSES];     /* by the gradient passes: LAYER_NEEDS_... */
    uint64_t workspace[LAYER_PASSES]; /* bytes */
    uint64_t accumulate_workspace;    /* extra bytes if the gradient of an input is added to another */
    uint64_t room[LAYER_PASSES];      /* bytes behind the workspace where tensors are converted. The model sets it */
    uint64_t flops[LAYER_PASSES];
    bool view;             /* the output is input 0 in another shape: no work, no memory */
    bool passes_gradient;  /* the gradient of every input is the gradient of the output, unchanged: a sum */
    bool loss;             /* adds to the loss and starts the backward pass: there is no gradient of its output */
    bool forward_in_place; /* the output may take the bytes of input 0 */
    bool input_gradient_in_place; /* the gradient of input 0 may take the bytes of the gradient of the output */
} layer_node;

/* Room for the lists of a node while it is being made: nobody knows yet how long they get. A resolved node of a network has
 * lists of their own length. */
typedef struct layer_room {
    layer_shape inputs[LAYER_MAX_INPUTS];
    remat_dtype input_dtypes[LAYER_MAX_INPUTS];
    layer_parameter parameters[LAYER_MAX_PARAMETERS];
    layer_saved saved[LAYER_MAX_SAVED];
} layer_room;

/* Gives a node the lists of a room, which are empty. */
static inline void layer_node_use(layer_node *node, layer_room *room)
{
    *room = (layer_room){0};
    node->inputs = room->inputs;
    node->input_dtypes = room->input_dtypes;
    node->parameters = room->parameters;
    node->saved = room->saved;
}

/* What a call gets. Tensors that do not apply have no address. The same struct serves all three passes. */
typedef struct layer_call {
    recording *calls; /* where the operations go */
    tensor_ref inputs[LAYER_MAX_INPUTS];
    tensor_ref output; /* none in a forward of a type with may_skip_output if nobody reads the output */
    tensor_ref saved[LAYER_MAX_SAVED];
    tensor_ref parameters[LAYER_MAX_PARAMETERS];
    tensor_ref gradients[LAYER_MAX_PARAMETERS]; /* of the parameters; none for statistics */
    bool accumulate_gradients[LAYER_MAX_PARAMETERS];
    tensor_ref d_output;
    tensor_ref d_inputs[LAYER_MAX_INPUTS]; /* none where nobody wants it */
    bool accumulate_inputs[LAYER_MAX_INPUTS];
    tensor_ref workspace;
    tensor_ref step;     /* the step block */
    uint32_t number;     /* of the layer: it selects the random stream, so that a recomputed forward draws the same */
    bool training;       /* false: evaluation, where dropout passes through and batch statistics are the running ones */
    bool is_recompute;   /* this forward ran before in this step, and its statistics are already counted */
    bool counts_correct; /* evaluation: losses over classes count the rows whose largest logit is the label's */
    double loss_share;   /* 1 / micro-batches: multiplies loss gradients, not the loss */
} layer_call;

/* What one call does: arithmetic, how much of it is in GEMMs, and bytes of tensors and parameters moved. */
typedef struct layer_work {
    uint64_t flops, gemm_flops, bytes;
} layer_work;

/* For composite types, which are made of other layers. The output of the last part added is the output of the whole: a
 * layer that reads NAME reads it. A part without a suffix (NULL or "") is called NAME itself, so that its parameters
 * are NAME.weight and so on; others are called NAME.SUFFIX. Inputs are numbers: -1-i is input i of the composite, 0 and
 * up are the parts added so far. `options` is the struct of the part's type; it is copied. */
typedef struct layer_parts layer_parts;
struct layer_parts {
    remat_status (*add)(layer_parts *parts, const layer_type *type, const char *suffix, const int *inputs,
                        size_t input_count, const void *options);
};

/* The labels that a loss gets as input 1. */
typedef enum layer_labels {
    LAYER_NO_LABELS,      /* the type is no loss */
    LAYER_LABELS_LIKE_IT, /* numbers with the shape and type of input 0 */
    LAYER_LABELS_CLASSES, /* an int32 for every row of input 0: c*h of a sample */
} layer_labels;

/* Records the operations of one pass. */
typedef remat_status (*layer_function)(const layer_node *layer, const layer_call *call);

struct layer_type {
    const char *name;
    const char *summary;
    remat_layer_type hint;
    size_t options_bytes;
    const property *properties; /* ends with key NULL */
    uint32_t min_inputs, max_inputs;
    layer_labels labels;
    /* Whether an input holds int32 numbers, such as tokens or positions, which only the data can. The options are set. NULL: none
     * does. */
    bool (*reads_tokens)(const layer_node *layer, uint32_t input);
    /* Forward gets no tensor for an output that nobody reads. Often a layer is recomputed only for its saved
     * tensors. */
    bool may_skip_output;
    bool multiplies;  /* its flops are those of GEMMs */
    bool fp32_output; /* its output is never bf16 */
    bool fp32_inputs; /* nor may its inputs be */
    /* Composite types have only expand(), which adds the parts. If it returns REMAT_OK and adds no part, the layer is
     * not composite, as fully_connected without an activation. */
    remat_status (*expand)(remat_context *context, const layer_node *layer, layer_parts *parts);
    /* Checks the inputs and sets everything under "Set by resolve()". A failure names what is wrong and what would be
     * right; the model adds the layer's name and line. */
    remat_status (*resolve)(remat_context *context, layer_node *layer);
    layer_function forward;
    /* NULL: input_gradient makes it as well, or there are no parameters. It reads none of them: they may not be there. */
    layer_function weight_gradient;
    layer_function input_gradient; /* NULL: there is none, or passes_gradient */
    /* For timings. By default a call in training counts the flops of its pass and reads or writes every tensor and
     * every parameter once. This function corrects that. NULL: no correction. */
    void (*correct_work)(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work);
};

/* The bytes of workspace of a pass, the room included; `accumulates`: the gradient of an input is added to another. */
static inline uint64_t layer_workspace(const layer_node *node, layer_pass pass, bool accumulates)
{
    const uint64_t own = node->workspace[pass] + (accumulates ? node->accumulate_workspace : 0);
    return node->room[pass] ? ((own + 63) & ~(uint64_t)63) + node->room[pass] : own;
}

/* All types, for building models and for help; NULL past the end. */
const layer_type *layer_type_find(const char *name);
const layer_type *layer_type_list(size_t position);

/* The values of a sample. resolve() has checked that a batch of them takes less than 2^63 bytes. */
static inline uint64_t layer_values(layer_shape shape)
{
    return shape.c * shape.h * shape.w;
}

#endif
