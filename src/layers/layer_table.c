/* The layer types. A new one is a file with a `const layer_type layer_type_NAME`, and a line here. */
#include "layers/layer.h"
#include "base/names.h"

#define LAYER_TYPES(X)        \
    X(input)                  \
    X(fully_connected)        \
    X(lora)                   \
    X(activation)             \
    X(layer_normalization)    \
    X(rms_normalization)      \
    X(batch_normalization)    \
    X(group_normalization)    \
    X(instance_normalization) \
    X(multi_head_attention)   \
    X(attention_core)         \
    X(rotary_embedding)       \
    X(lstm)                   \
    X(gru)                    \
    X(last_step)              \
    X(embedding)              \
    X(position_embedding)     \
    X(dropout)                \
    X(addition)               \
    X(multiply)               \
    X(gated)                  \
    X(concat)                 \
    X(flatten)                \
    X(reshape)                \
    X(conv2d)                 \
    X(conv1d)                 \
    X(conv2d_transpose)       \
    X(pooling2d)              \
    X(mse)                    \
    X(huber)                  \
    X(binary_cross_entropy)   \
    X(cross_entropy)          \
    X(projection_cross_entropy)

#define X(name) extern const layer_type layer_type_##name;
LAYER_TYPES(X)
#undef X

static const layer_type *const types[] = {
#define X(name) &layer_type_##name,
    LAYER_TYPES(X)
#undef X
};

const layer_type *layer_type_list(size_t position)
{
    return position < sizeof types / sizeof types[0] ? types[position] : NULL;
}

const layer_type *layer_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (names_equal(types[i]->name, name))
            return types[i];
    return NULL;
}
