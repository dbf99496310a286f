/* Remat: what this build of the library uses on this machine. All texts are constant; every call is safe from any
 * thread. */
#ifndef REMAT_DOCTOR_H
#define REMAT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <remat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction set of the fast kernels on this processor, such as "avx2". */
const char *remat_kernels_name(void);

/* The compiler that built the library. */
const char *remat_compiler_name(void);

/* Libraries that some files need: zlib for compressed .npz, libpng and libjpeg for images. Returns the name of the
 * library at a position from 0, and whether it can be used; NULL past the end. */
const char *remat_library_name(size_t position, bool *is_there);

/* The default number of threads: OMP_NUM_THREADS if it is set, otherwise the number of cores that this process may
 * use. */
unsigned remat_default_threads(void);

/* The chart library inside the pages that remat_report_write makes, such as "Chart.js v3.9.1". */
const char *remat_chart_name(void);

#ifdef __cplusplus
}
#endif
#endif
