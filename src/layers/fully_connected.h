/* Code that fully_connected shares with projection_cross_entropy, which replaces it before a loss. The options of both
 * begin with the same. */
#ifndef REMAT_LAYERS_FULLY_CONNECTED_H
#define REMAT_LAYERS_FULLY_CONNECTED_H

#include "layers/activation.h"
#include "layers/initializer.h"

typedef struct fully_connected_options {
    uint64_t unit, multiple;
    bool bias;
    const char *shared_from;
    uint32_t activation;
    initializer start;
    bool transposed; /* files of other programs hold the weight as width x unit */
} fully_connected_options;

extern const layer_type layer_type_fully_connected;

/* The properties, for a field `name` of this type in an options struct. */
#define FULLY_CONNECTED_PROPERTIES(options, name)                                                             \
    {"unit", PROPERTY_COUNT, offsetof(options, name.unit), "0", 0, 0, NULL, "how many values come out"},      \
        {"multiple",                                                                                          \
         PROPERTY_COUNT,                                                                                      \
         offsetof(options, name.multiple),                                                                    \
         "0",                                                                                                 \
         0,                                                                                                   \
         0,                                                                                                   \
         NULL,                                                                                                \
         "instead of unit: this many times the width of the input"},                                          \
        {"bias", PROPERTY_FLAG, offsetof(options, name.bias), "true", 0, 0, NULL, "whether a bias is added"}, \
        {"shared_from",                                                                                       \
         PROPERTY_TEXT,                                                                                       \
         offsetof(options, name.shared_from),                                                                 \
         "",                                                                                                  \
         0,                                                                                                   \
         0,                                                                                                   \
         NULL,                                                                                                \
         "the layer whose weight this one uses as well"},                                                     \
        ACTIVATION_PROPERTY(options, name.activation), INITIALIZER_PROPERTIES(options, name.start),           \
    {                                                                                                         \
        "transposed", PROPERTY_FLAG, offsetof(options, name.transposed), "false", 0, 0, NULL,                 \
            "whether weights files of other programs hold the matrix as width x unit, as those of GPT-2 do"   \
    }

/* Finds the number of units from the options and the input, and appends weight [units, width] and bias. */
remat_status fully_connected_resolve_units(remat_context *context, layer_node *layer, uint64_t *units);

/* The three GEMMs, over `rows` rows. `more`: these are not the first rows, so the gradient is added to that of the
 * earlier rows. */
remat_status fully_connected_forward(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                     tensor_ref y);
remat_status fully_connected_weight_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                             tensor_ref dy, bool more);
remat_status fully_connected_input_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref dy,
                                            tensor_ref dx);

#endif
