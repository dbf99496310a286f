/* Remat: layers of your own.
 *
 * A custom layer is a set of functions that you register under a name. From then on, models of that context may use the name
 * as a type, in calls and in INI files. Plans, budgets, recomputing, saving and resuming work as for any other layer.
 *
 *     static void forward(const remat_custom_call *call) { ... call->output from call->inputs ... }
 *     static void backward(const remat_custom_call *call) { ... adds to call->d_inputs and call->gradients ... }
 *
 *     remat_custom_layer layer;
 *     remat_custom_layer_init(&layer);
 *     layer.name = "square";
 *     layer.forward = forward;
 *     layer.backward = backward;
 *     remat_custom_layer_register(ctx, &layer);
 *     remat_gradient_check check;
 *     remat_custom_layer_check(ctx, "square", NULL, 3, (const uint64_t[1][3]){{1, 5, 7}}, 1, &check);
 *     remat_model_add_layer(model, "square", REMAT_PROPERTIES("name=s"));
 *
 * examples/custom_layer.c is a complete program. These rules make recomputing possible:
 *
 *   - Keep nothing between calls. What backward needs is an input, the output or a saved tensor.
 *   - The same inputs must give the same bits, however often forward runs and with any number of threads.
 *   - Read and write nothing but the tensors of the call.
 *
 * The functions run on the processor. */
#ifndef REMAT_CUSTOM_LAYER_H
#define REMAT_CUSTOM_LAYER_H

#include <stdbool.h>

#include <remat/context.h>
#include <remat/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { REMAT_CUSTOM_INPUTS = 4, REMAT_CUSTOM_PARAMETERS = 4, REMAT_CUSTOM_SAVED = 2, REMAT_CUSTOM_PROPERTIES = 16 };

/* How a parameter starts. */
typedef enum remat_custom_start {
    REMAT_START_ZEROS,
    REMAT_START_ONES,
    REMAT_START_NORMAL,  /* with deviation `scale` */
    REMAT_START_UNIFORM, /* between -scale and scale */
} remat_custom_start;

typedef struct remat_custom_parameter {
    const char *name; /* such as "weight"; it must live as long as the context */
    uint64_t dims[4]; /* unused ones are 0 */
    remat_custom_start start;
    double scale;
} remat_custom_parameter;

/* What a layer needs, for one batch size. Shapes are those of one sample: channels, height, width. A tensor holds the
 * samples of a batch one after the other. */
typedef struct remat_custom_sizes {
    /* Given. */
    uint64_t batch;
    uint32_t input_count;
    uint64_t inputs[REMAT_CUSTOM_INPUTS][3];
    const double *properties; /* in the order of the definition */
    /* To be set by `shape`. All is 0 before, except that the output has the shape of input 0. */
    uint64_t output[3];
    uint32_t parameter_count;
    remat_custom_parameter parameters[REMAT_CUSTOM_PARAMETERS];
    uint32_t saved_count;
    uint64_t saved_values[REMAT_CUSTOM_SAVED]; /* of the whole batch: what forward makes for backward */
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    uint64_t forward_flops, backward_flops; /* for plans without measured times */
} remat_custom_sizes;

/* What forward and backward receive. Tensors have the element type `dtype`: REMAT_FP32 in training. Tensors that do not
 * apply are NULL. */
typedef struct remat_custom_call {
    void *user;
    const double *properties;
    uint64_t batch;
    uint32_t input_count;
    uint64_t input_shapes[REMAT_CUSTOM_INPUTS][3], output_shape[3];
    remat_dtype dtype;
    int threads;   /* that the layer may use */
    bool training; /* false: evaluation */
    const void *inputs[REMAT_CUSTOM_INPUTS];
    const void *parameters[REMAT_CUSTOM_PARAMETERS];
    void *output;                    /* forward writes it; backward reads it */
    void *saved[REMAT_CUSTOM_SAVED]; /* the same */
    void *workspace;                 /* aligned to the element type; its content is lost after the call */
    /* For backward, which reads d_output and adds to the others. NULL: not needed. */
    const void *d_output;
    void *d_inputs[REMAT_CUSTOM_INPUTS];
    void *gradients[REMAT_CUSTOM_PARAMETERS];
} remat_custom_call;

/* A number that models set as "key=value". */
typedef struct remat_custom_property {
    const char *key, *help;
    double value;    /* the default */
    double min, max; /* max 0: no upper limit */
} remat_custom_property;

/* Texts are copied. */
typedef struct remat_custom_layer {
    size_t struct_size; /* set by init */
    const char *name;   /* lower case letters, digits and '_' */
    const char *summary;
    uint32_t min_inputs, max_inputs; /* 1 and 1 by default; at most REMAT_CUSTOM_INPUTS */
    const remat_custom_property *properties;
    uint32_t property_count;
    void *user; /* for the calls */
    /* Sets what the layer needs. NULL: the output has the shape of input 0, and nothing else is needed. On failure, write
     * what is wrong and what would be right into `message`, and return REMAT_INVALID. */
    remat_status (*shape)(void *user, remat_custom_sizes *sizes, char *message, size_t message_bytes);
    void (*forward)(const remat_custom_call *call);
    void (*backward)(const remat_custom_call *call);
    /* What backward reads besides d_output, parameters and saved tensors. The less, the more can be dropped. */
    bool backward_reads_inputs; /* true by default */
    bool backward_reads_output; /* false by default */
    bool computes_fp64;         /* the functions look at call->dtype, and take REMAT_FP64 as well; for exact checks */
} remat_custom_layer;

void remat_custom_layer_init_sized(remat_custom_layer *layer, size_t size);
static inline void remat_custom_layer_init(remat_custom_layer *layer)
{
    remat_custom_layer_init_sized(layer, sizeof *layer);
}

/* Registers a type for all models of the context. It stays registered as long as the context exists. REMAT_INVALID: a
 * function or the name is missing, or there is already a type of that name. REMAT_NO_MEMORY. */
remat_status remat_custom_layer_register(remat_context *context, const remat_custom_layer *layer);

/* The result of a comparison of gradients with differences of the output. */
typedef struct remat_gradient_check {
    double largest_error; /* as a share of the largest gradient of the same tensor */
    double allowed_error; /* 1e-6 in double precision, 2e-2 otherwise */
    /* The value with that error. */
    char tensor[64]; /* such as "input 0" or "weight" */
    uint64_t position;
    double gradient, difference;
    uint64_t values; /* that were compared */
} remat_gradient_check;

/* Runs a layer on random inputs and compares its gradients with central differences. `properties` and `check` may be
 * NULL. Works for registered types, and for built-in types that are not losses and not made of other types.
 * REMAT_CHECK_FAILED: an error is larger than allowed; the message names the tensor, and `check` has the figures.
 * REMAT_INVALID, REMAT_NO_MEMORY. */
remat_status remat_custom_layer_check_sized(remat_context *context, const char *type, const char *const *properties,
                                            uint64_t batch, const uint64_t (*inputs)[3], uint32_t input_count,
                                            remat_gradient_check *check, size_t check_size);
static inline remat_status remat_custom_layer_check(remat_context *context, const char *type,
                                                    const char *const *properties, uint64_t batch,
                                                    const uint64_t (*inputs)[3], uint32_t input_count,
                                                    remat_gradient_check *check)
{
    return remat_custom_layer_check_sized(context, type, properties, batch, inputs, input_count, check,
                                          check ? sizeof *check : 0);
}

#ifdef __cplusplus
}
#endif
#endif
