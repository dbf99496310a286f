/* Remat: the element types of tensors. */
#ifndef REMAT_DTYPE_H
#define REMAT_DTYPE_H

#ifdef __cplusplus
extern "C" {
#endif

/* All element types: name, number and text. The numbers never change: files and other languages use them. */
#define REMAT_DTYPE_LIST(X)                                                               \
    X(REMAT_FP32, 0, "fp32")                                                              \
    X(REMAT_FP16, 1, "fp16") /* 11 bits of precision, up to 65,504 */                     \
    X(REMAT_BF16, 2, "bf16") /* 8 bits of precision, the range of fp32 */                 \
    X(REMAT_FP64, 3, "fp64")                                                              \
    X(REMAT_INT32, 4, "int32")                                                            \
    X(REMAT_INT8, 5, "int8")                                                              \
    X(REMAT_UINT8, 6, "uint8")                                                            \
    X(REMAT_INT8_BLOCKS, 7, "int8 blocks") /* frozen weights: 64 of them share a scale */ \
    X(REMAT_INT4_BLOCKS, 8, "int4 blocks")

typedef enum remat_dtype {
#define X(name, value, text) name = value,
    REMAT_DTYPE_LIST(X)
#undef X
} remat_dtype;

/* The text of a type, such as "fp32"; "unknown" for any other number. */
const char *remat_dtype_name(remat_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
