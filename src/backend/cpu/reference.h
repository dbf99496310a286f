/* The reference kernels, one plain function for each entry of the table. */
#ifndef REMAT_BACKEND_CPU_REFERENCE_H
#define REMAT_BACKEND_CPU_REFERENCE_H

#include "backend/cpu/kernels.h"

#define X(name) __typeof__(*((kernel_table *)0)->name) reference_##name;
KERNEL_LIST(X)
#undef X

#endif
