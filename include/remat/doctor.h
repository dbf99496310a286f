/* Remat: what this build of the library uses on this machine. All texts are constant; every call is safe from any
 * thread. */
#ifndef REMAT_DOCTOR_H
#define REMAT_DOCTOR_H

#include <remat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction set of the fast kernels on this processor, such as "avx2". */
const char *remat_kernels_name(void);

/* The compiler that built the library. */
const char *remat_compiler_name(void);

/* How many threads are used where nobody says: OMP_NUM_THREADS if that is set, else as many as there are cores that this
 * process may use. */
unsigned remat_default_threads(void);

/* The chart library inside the pages that remat_report_write makes, such as "Chart.js v3.9.1". */
const char *remat_chart_name(void);

#ifdef __cplusplus
}
#endif
#endif
