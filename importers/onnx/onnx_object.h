/* What the parts of the importer share. */
#ifndef REMAT_ONNX_OBJECT_H
#define REMAT_ONNX_OBJECT_H

#include <stdint.h>

#include "onnx_import.h"
#include "onnx_subset.pb-c.h"

enum { MOST_DIMENSIONS = 8, MOST_KNOWN = 4096 };
#define NO_TENSOR REMAT_NO_TENSOR

typedef struct onnx_shape {
    unsigned rank;
    int64_t sizes[MOST_DIMENSIONS]; /* from 0 on */
} onnx_shape;

/* A tensor of the file, called by its name. */
typedef struct onnx_value {
    const char *name;
    const Onnx__ValueInfo *stated; /* in value_info or among the outputs, or NULL */
    bool is_defined;               /* its type and shape are known, */
    bool is_weight;                /* it is an initializer, */
    bool is_trained;               /* and gets a gradient */
    bool wants_gradient;           /* it depends on a weight that is trained */
    int type;                      /* of its elements, in the numbers of ONNX */
    onnx_shape shape;
    int64_t *known; /* whole numbers that are known while reading, such as shapes; NULL: not known */
    size_t known_count;
    const Onnx__Tensor *constant; /* the numbers in the file, or NULL */
    uint32_t tensor;              /* in the graph; NO_TENSOR: not there yet */
    uint32_t gradients;           /* the sum of what came so far; NO_TENSOR: nothing */
} onnx_value;

struct onnx_operator;
typedef struct onnx_node {
    const Onnx__Node *proto;
    const struct onnx_operator *rule; /* NULL: unknown */
    onnx_value **inputs, **outputs;   /* NULL: left out */
    size_t input_count, output_count;
    bool is_folded; /* all its outputs are known, or nobody needs to run it */
    bool wants_gradient;
    uint32_t saved; /* what the backward needs besides inputs and outputs; NO_TENSOR: nothing */
    uint64_t cost;
} onnx_node;

typedef struct importer {
    remat_context *context;
    const char *name;
    const onnx_options *options;
    char *message;
    remat_status status; /* of the first failure */
    const Onnx__Graph *proto;
    onnx_value *values; /* by name */
    size_t value_count;
    onnx_node *nodes;
    size_t node_count;
    onnx_value **links; /* inputs and outputs of all nodes */
    int64_t version;    /* of the operators */
    bool warned_batch;
    bool has_backward;  /* the file has its own gradients: nothing is derived */
    bool lacks_numbers; /* a rule failed only because numbers are not known */
    remat_graph *graph;
    uint32_t tensor_count;
} importer;

/* Notes a failure; false. With a node, the message names it. */
bool onnx_fail(importer *im, remat_status status, const onnx_node *node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void onnx_warn(importer *im, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What messages call a node. */
const char *onnx_node_name(const onnx_node *node);

/* onnx_values.c: all names, and the shapes that the file states. */
bool onnx_values_collect(importer *im);
onnx_value *onnx_value_find(const importer *im, const char *name);
bool onnx_shape_stated(importer *im, const Onnx__ValueInfo *info, bool is_input, onnx_value *value);
/* The bytes of an element; 0: texts and other types that have no size. */
unsigned onnx_type_bytes(int type);
bool onnx_type_is_float(int type);
bool onnx_shape_elements(const onnx_shape *shape, uint64_t *elements);
bool onnx_value_bytes(importer *im, const onnx_value *value, uint64_t *bytes);
uint64_t onnx_value_elements(const onnx_value *value); /* 0 of one that is left out */

/* onnx_attributes.c: attributes of a node; the default where there is none. */
const Onnx__Attribute *onnx_attribute(const onnx_node *node, const char *name);
int64_t onnx_attribute_int(const onnx_node *node, const char *name, int64_t otherwise);
const char *onnx_attribute_text(const onnx_node *node, const char *name, char text[32]);
/* The whole numbers of a tensor in the file; false where it has others, too many, or too few. */
bool onnx_tensor_numbers(importer *im, const Onnx__Tensor *tensor, onnx_value *value);

/* onnx_constants.c: computes what depends on shapes only. */
bool onnx_fold(importer *im, onnx_node *node);
bool onnx_set_known(importer *im, onnx_value *value, size_t count);

/* The type and shape of an output; one that is left out has none. */
bool onnx_set_output(importer *im, const onnx_node *node, size_t output, int type, const onnx_shape *shape);

/* onnx_shapes.c: what the rules of operators share. An input; NULL where it is left out. */
const onnx_value *onnx_input(const onnx_node *node, size_t i);
/* Fails where one of the first inputs is left out. */
bool onnx_need(importer *im, const onnx_node *node, size_t count);
/* An axis, counted from the end where it is negative. */
bool onnx_find_axis(importer *im, const onnx_node *node, int64_t axis, unsigned rank, unsigned *found);
/* Numbers that newer operators have as an input and older ones as an attribute; NULL: none. */
bool onnx_find_numbers(importer *im, const onnx_node *node, size_t position, const char *name, const int64_t **numbers,
                       size_t *count);
/* A place counted from the end where it is negative, and at least and at most something. */
int64_t onnx_within(int64_t at, int64_t size, int64_t least, int64_t most);

/* onnx_shapes.c, onnx_moves.c, onnx_windows.c: one rule for each kind of operator. */
typedef bool (*onnx_shape_fn)(importer *im, const onnx_node *node);

enum onnx_needs {
    NEEDS_NOTHING = 0,
    NEEDS_INPUTS = 1,
    NEEDS_OUTPUT = 2,
    NEEDS_OTHER = 4, /* of two factors: each for the gradient of the other */
    NEEDS_SAVED = 8, /* something of its own: a mask, statistics */
};

enum onnx_cost { COST_NONE, COST_ELEMENTS, COST_WINDOW, COST_PRODUCT, COST_RECURRENT };

enum onnx_traits {
    IS_VIEW = 1,         /* the output is the input */
    IS_ELEMENTWISE = 2,  /* the output may take the bytes of the first input, and so may its gradient */
    HAS_NO_GRADIENT = 4, /* shapes, comparisons, indices */
    PASSES_GRADIENT = 8, /* where shapes are equal, the gradient of an input is that of the output */
    READS_PART = 16,     /* it reads as much of its first input as it writes */
};

typedef struct onnx_operator {
    const char *name;
    onnx_shape_fn shape;
    unsigned needs;
    enum onnx_cost cost;
    unsigned flops; /* for each element, with COST_ELEMENTS */
    unsigned traits;
    unsigned gradient_inputs; /* a bit for each input that has a gradient */
} onnx_operator;
const onnx_operator *onnx_operator_find(const Onnx__Node *proto);
bool onnx_node_cost(importer *im, onnx_node *node);
/* The bytes of what the operator saves for its backward; 0: nothing. */
uint64_t onnx_node_saved_bytes(const onnx_node *node);

bool shape_same(importer *im, const onnx_node *node);
bool shape_broadcast(importer *im, const onnx_node *node);
bool shape_compare(importer *im, const onnx_node *node);
bool shape_where(importer *im, const onnx_node *node);
bool shape_convolution(importer *im, const onnx_node *node);
bool shape_transposed_convolution(importer *im, const onnx_node *node);
bool shape_pool(importer *im, const onnx_node *node);
bool shape_global_pool(importer *im, const onnx_node *node);
bool shape_matmul(importer *im, const onnx_node *node);
bool shape_gemm(importer *im, const onnx_node *node);
bool shape_concat(importer *im, const onnx_node *node);
bool shape_reshape(importer *im, const onnx_node *node);
bool shape_transpose(importer *im, const onnx_node *node);
bool shape_flatten(importer *im, const onnx_node *node);
bool shape_split(importer *im, const onnx_node *node);
bool shape_slice(importer *im, const onnx_node *node);
bool shape_gather(importer *im, const onnx_node *node);
bool shape_like_indices(importer *im, const onnx_node *node);
bool shape_resize(importer *im, const onnx_node *node);
bool shape_reduce(importer *im, const onnx_node *node);
bool shape_arg(importer *im, const onnx_node *node);
bool shape_cast(importer *im, const onnx_node *node);
bool shape_constant(importer *im, const onnx_node *node);
bool shape_squeeze(importer *im, const onnx_node *node);
bool shape_unsqueeze(importer *im, const onnx_node *node);
bool shape_expand(importer *im, const onnx_node *node);
bool shape_of_shape(importer *im, const onnx_node *node);
bool shape_of_size(importer *im, const onnx_node *node);
bool shape_filled(importer *im, const onnx_node *node);
bool shape_range(importer *im, const onnx_node *node);
bool shape_pad(importer *im, const onnx_node *node);
bool shape_tile(importer *im, const onnx_node *node);
bool shape_dropout(importer *im, const onnx_node *node);
bool shape_normalized(importer *im, const onnx_node *node);
bool shape_recurrent(importer *im, const onnx_node *node);
bool shape_loss(importer *im, const onnx_node *node);
/* From what the file states of the outputs. */
bool shape_stated(importer *im, const onnx_node *node);

/* onnx_backward.c */
bool onnx_build_graph(importer *im);

#endif
