/* The sections that profiles and plans have in common. */
#ifndef REMAT_REPORT_REPORT_SECTIONS_H
#define REMAT_REPORT_REPORT_SECTIONS_H

#include "report/memory_walk.h"
#include "report/report_document.h"

/* "memory", and "arena" where a place for every tensor is wanted. */
remat_status section_memory(report_document *to, const remat_plan *plan, const remat_report_options *options);

/* "curve": every plan worth having, thinned where there are very many. */
remat_status section_curve(report_document *to, const remat_profile *profile, const remat_report_options *options);

/* "layers": what the profile says of them and, where `plan` is not NULL, what was decided. */
void section_layers(report_document *to, const remat_profile *profile, const remat_plan *plan);

#endif
