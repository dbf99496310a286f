/* The sections that profiles and plans have in common. */
#ifndef REMAT_REPORT_REPORT_SECTIONS_H
#define REMAT_REPORT_REPORT_SECTIONS_H

#include "report/memory_walk.h"
#include "report/report_document.h"

/* "memory", and "arena" if offsets are wanted. */
remat_status section_memory(report_document *to, const remat_plan *plan, const remat_report_options *options);

/* "curve": the points of the curve, or a selection if there are very many. */
remat_status section_curve(report_document *to, const remat_profile *profile, const remat_report_options *options);

/* "layers": their figures in the profile and, if `plan` is not NULL, the decisions. */
void section_layers(report_document *to, const remat_profile *profile, const remat_plan *plan);

#endif
