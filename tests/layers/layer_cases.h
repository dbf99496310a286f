/* The layers that the tests of gradients and of bits go through: every type, odd sizes, several inputs. */
#ifndef TESTS_LAYER_CASES_H
#define TESTS_LAYER_CASES_H

#include "layers/layer.h"

typedef struct layer_case {
    const char *type;
    uint64_t batch;
    layer_shape inputs[4];     /* ends with c 0 */
    const char *properties[6]; /* "key=text", ends with NULL */
    int32_t numbers;           /* integer inputs are below this */
} layer_case;

/* Two of these are more rows than losses work on at a time. */
enum { OVER_HALF_A_BLOCK = OPERATION_K_BLOCK / 2 + 5 };

static const layer_case layer_cases[] = {
    {"fully_connected", 3, {{1, 1, 5}}, {"unit=7"}, 0},
    {"fully_connected", 2, {{2, 3, 11}}, {"unit=1", "bias=false"}, 0},
    {"fully_connected", 1, {{1, 9, 17}}, {"unit=33"}, 0},
    {"fully_connected", 2, {{1, 4, 3}}, {"multiple=3", "weight_initializer=normal"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=none"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=relu"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=leaky_relu"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=gelu"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=gelu_erf"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=sigmoid"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=tanh"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=swish"}, 0},
    {"activation", 3, {{1, 5, 7}}, {"activation=softmax"}, 0},
    {"activation", 2, {{3, 1, 35}}, {"activation=softmax"}, 0},
    {"layer_normalization", 3, {{1, 5, 9}}, {0}, 0},
    {"layer_normalization", 2, {{2, 13, 33}}, {"epsilon=0.1"}, 0},
    {"rms_normalization", 3, {{1, 5, 9}}, {0}, 0},
    {"rms_normalization", 1, {{1, 40, 31}}, {"epsilon=0.1"}, 0},
    {"batch_normalization", 7, {{1, 1, 5}}, {0}, 0},
    {"batch_normalization", 3, {{4, 5, 3}}, {0}, 0},
    {"batch_normalization", 2, {{1, 5, 7}}, {"epsilon=0.1", "momentum=0.5"}, 0},
    {"group_normalization", 3, {{6, 4, 3}}, {"groups=2"}, 0},
    {"group_normalization", 2, {{4, 5, 7}}, {"groups=1", "affine=false", "epsilon=0.1"}, 0},
    {"group_normalization", 3, {{1, 1, 12}}, {"groups=3"}, 0},
    {"instance_normalization", 3, {{4, 3, 5}}, {0}, 0},
    {"instance_normalization", 2, {{3, 7, 6}}, {"affine=true", "epsilon=0.1"}, 0},
    {"attention_core", 2, {{1, 5, 12}}, {"num_heads=2"}, 0},
    {"attention_core", 1, {{1, 1, 6}}, {"num_heads=2", "causal=true"}, 0},
    {"attention_core", 2, {{1, 19, 21}}, {"num_heads=1", "causal=true"}, 0},
    {"attention_core", 3, {{1, 7, 45}}, {"num_heads=3", "causal=true"}, 0},
    {"attention_core", 1, {{1, 67, 9}}, {"num_heads=3"}, 0},
    {"embedding", 3, {{1, 1, 7}}, {"in_dim=11", "out_dim=5"}, 11},
    {"embedding", 1, {{1, 1, 40}}, {"in_dim=3", "out_dim=17"}, 3},
    {"position_embedding", 3, {{1, 5, 7}}, {"positions=5"}, 0},
    {"position_embedding", 2, {{1, 3, 7}}, {"positions=9"}, 0},
    {"dropout", 3, {{1, 5, 7}}, {"rate=0.3"}, 0},
    {"dropout", 1, {{1, 1, 131}}, {"rate=0.9"}, 0},
    {"dropout", 2, {{1, 3, 5}}, {"rate=0"}, 0},
    {"dropout", 2, {{1, 3, 5}}, {"rate=1"}, 0},
    {"addition", 3, {{1, 5, 7}, {1, 5, 7}}, {0}, 0},
    {"addition", 2, {{2, 3, 5}, {2, 3, 5}, {2, 3, 5}}, {0}, 0},
    {"multiply", 3, {{1, 5, 7}, {1, 5, 7}}, {0}, 0},
    {"concat", 3, {{2, 5, 7}, {2, 5, 3}}, {"axis=w"}, 0},
    {"concat", 3, {{2, 1, 3}, {2, 4, 3}, {2, 2, 3}}, {"axis=h"}, 0},
    {"concat", 2, {{1, 3, 5}, {4, 3, 5}}, {"axis=c"}, 0},
    {"flatten", 3, {{2, 3, 5}}, {0}, 0},
    {"reshape", 3, {{2, 3, 5}}, {"target_shape=5:1:6"}, 0},
    {"conv2d", 2, {{3, 7, 5}}, {"filters=4", "kernel_size=3"}, 0},
    {"conv2d", 2, {{1, 6, 9}}, {"filters=2", "kernel_size=2,3", "stride=2,1", "padding=same", "bias=false"}, 0},
    {"conv2d", 1, {{2, 5, 5}}, {"filters=3", "kernel_size=5", "padding=2,1", "stride=2"}, 0},
    {"conv2d", 3, {{5, 4, 3}}, {"filters=3", "kernel_size=1"}, 0},
    {"conv2d", 2, {{6, 7, 5}}, {"filters=6", "kernel_size=3", "groups=6", "padding=1"}, 0},
    {"conv2d", 2, {{4, 6, 5}}, {"filters=6", "kernel_size=2,3", "groups=2", "stride=2,1", "padding=1,0,2,1"}, 0},
    {"conv2d", 2, {{2, 9, 8}}, {"filters=3", "kernel_size=3,2", "dilation=2,3", "padding=same", "stride=1,2"}, 0},
    {"conv1d", 3, {{4, 1, 11}}, {"filters=5", "kernel_size=3", "padding=causal", "dilation=2"}, 0},
    {"conv1d", 2, {{4, 1, 9}}, {"filters=2", "kernel_size=4", "padding=2,1", "stride=2", "groups=2"}, 0},
    {"conv2d_transpose", 2, {{3, 4, 3}}, {"filters=2", "kernel_size=3"}, 0},
    {"conv2d_transpose",
     2,
     {{4, 3, 5}},
     {"filters=6", "kernel_size=3,2", "stride=2", "padding=1,0", "output_padding=1,0", "groups=2"},
     0},
    {"conv2d_transpose", 1, {{2, 4, 3}}, {"filters=3", "kernel_size=3", "stride=2,3", "padding=same", "bias=false"}, 0},
    {"conv2d_transpose", 1, {{2, 4, 3}}, {"filters=2", "kernel_size=2", "dilation=3,2", "padding=0,1,1,0"}, 0},
    {"pooling2d", 2, {{3, 6, 8}}, {"pooling=max"}, 0},
    {"pooling2d", 2, {{2, 6, 8}}, {"pooling=average", "pool_size=3", "stride=2", "padding=0,1,0,1"}, 0},
    {"pooling2d", 2, {{2, 7, 5}}, {"pooling=max", "pool_size=3", "stride=2", "padding=1"}, 0},
    {"pooling2d", 2, {{2, 7, 5}}, {"pooling=average", "pool_size=3,2", "stride=1", "padding=same"}, 0},
    {"pooling2d", 2, {{2, 7, 5}}, {"pooling=average", "pool_size=2,4"}, 0},
    {"pooling2d", 2, {{3, 3, 7}}, {"pooling=global_max"}, 0},
    {"pooling2d", 2, {{3, 3, 7}}, {"pooling=global_average"}, 0},
    {"mse", 3, {{1, 5, 7}, {1, 5, 7}}, {0}, 0},
    {"mse", 1, {{1, 1, 1}, {1, 1, 1}}, {0}, 0},
    {"huber", 3, {{1, 5, 7}, {1, 5, 7}}, {"delta=0.7"}, 0},
    {"binary_cross_entropy", 3, {{1, 5, 7}, {1, 5, 7}}, {0}, 0},
    {"binary_cross_entropy", 2, {{2, 3, 5}, {2, 3, 5}}, {"positive_weight=3.5"}, 0},
    {"cross_entropy", 3, {{1, 1, 7}, {1, 1, 1}}, {0}, 7},
    {"cross_entropy", 3, {{1, 3, 7}, {1, 1, 3}}, {"label_smoothing=0.1"}, 7},
    {"cross_entropy", 3, {{1, 3, 4}, {1, 1, 3}}, {"class_weights=1, 0.5, 3, 0"}, 4},
    {"cross_entropy", 2, {{1, 5, 4}, {1, 1, 5}}, {"class_weights=1,0.5,3,2", "label_smoothing=0.3"}, 4},
    {"projection_cross_entropy",
     2,
     {{1, 5, 7}, {1, 1, 5}},
     {"unit=3", "class_weights=1,2,3", "label_smoothing=0.2"},
     3},
    {"cross_entropy", 2, {{1, OVER_HALF_A_BLOCK, 5}, {1, 1, OVER_HALF_A_BLOCK}}, {0}, 5},
    {"projection_cross_entropy", 3, {{1, 5, 7}, {1, 1, 5}}, {"unit=11"}, 11},
    {"projection_cross_entropy", 2, {{1, OVER_HALF_A_BLOCK, 3}, {1, 1, OVER_HALF_A_BLOCK}}, {"unit=5"}, 5},
    {"projection_cross_entropy", 1, {{1, 4, 3}, {1, 1, 4}}, {"unit=6", "bias=false"}, 6},
};
enum { LAYER_CASE_COUNT = sizeof layer_cases / sizeof layer_cases[0] };

#endif
