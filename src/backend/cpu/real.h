/* The number type of all mathematics. The library computes in float. The tests build the kernels and layers a second
 * time for double, reference kernels only, so that central differences can judge gradients to 1e-6 and better. */
#ifndef REMAT_BACKEND_CPU_REAL_H
#define REMAT_BACKEND_CPU_REAL_H

#ifdef REMAT_REAL_IS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
