/* The reference kernels: one plain function for each operation, compiled once for each element type. REFERENCE_TYPE names
 * the type (CMakeLists.txt has the list): `real` is then float or double, and REFERENCE(gemm) is
 * reference_gemm_fp32 or reference_gemm_fp64. */
#ifndef REMAT_BACKEND_CPU_REFERENCE_H
#define REMAT_BACKEND_CPU_REFERENCE_H

#include "backend/cpu/kernel.h"

#define X(name, tensors)                                                   \
    void reference_##name##_fp32(const kernel_run *run, const void *args); \
    void reference_##name##_fp64(const kernel_run *run, const void *args);
OPERATION_LIST(X)
#undef X

#ifdef REFERENCE_TYPE
#define REFERENCE_JOIN_(name, type) name##_##type
#define REFERENCE_JOIN(name, type)  REFERENCE_JOIN_(name, type)
#define REFERENCE(name)             REFERENCE_JOIN(reference_##name, REFERENCE_TYPE)
typedef float reference_fp32;
typedef double reference_fp64;
typedef REFERENCE_JOIN(reference, REFERENCE_TYPE) real;
#endif

#endif
