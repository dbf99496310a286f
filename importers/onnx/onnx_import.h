/* From an ONNX file to a graph of Remat: an example of how other programs bring their graphs. It uses the public headers
 * only.
 *
 * The file has the forward pass of a model. The graph has a training step: the forward actions, which may run again, a
 * loss, and a backward action for every node. What a backward action reads is decided by a table of operators
 * (onnx_operators.c). Costs are floating-point operations.
 *
 *   - A file that has its own gradients (operators such as ConvGrad, or of the domain ai.onnx.preview.training) is taken as it
 *     is: every node is an action that may run again, the outputs are results.
 *   - Weights (initializers) are given tensors. Their gradients are results: they live until the end of the step. The state
 *     of an optimizer is not counted.
 *   - The inputs of the model are given tensors.
 *   - Reshape and the like make no copy: their output is their input.
 *   - What depends on shapes only is computed while reading. */
#ifndef REMAT_ONNX_IMPORT_H
#define REMAT_ONNX_IMPORT_H

#include <remat/graph.h>

/* A value for a dimension that the file calls by a name. */
typedef struct onnx_dimension {
    const char *name;
    uint64_t size;
} onnx_dimension;

typedef struct onnx_options {
    uint64_t batch;                   /* for first dimensions of inputs that have no number; 0: 1, with a warning */
    const onnx_dimension *dimensions; /* for others */
    size_t dimension_count;
    void (*warn)(void *user, const char *message); /* NULL: warnings are dropped */
    void *user;
} onnx_options;

enum { ONNX_MESSAGE = 512 };

/* Reads the bytes of a file. `name` stands for it in messages. The caller destroys the graph.
 *   REMAT_BAD_INPUT  the file is damaged, or has something that cannot be imported; `message` names the node and says what;
 *   REMAT_INVALID    a dimension has no size; REMAT_NO_MEMORY. *graph is NULL. */
remat_status onnx_import(remat_context *context, const void *bytes, size_t count, const char *name,
                         const onnx_options *options, remat_graph **graph, char message[ONNX_MESSAGE]);

#endif
