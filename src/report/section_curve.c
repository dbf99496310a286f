#include "report/report_sections.h"

#include <remat/sweep.h>

enum { POINTS_SHOWN = 2000 };

/* Both ends, the knee, and what lies evenly between. */
static bool shown(size_t i, size_t count, size_t knee)
{
    if (count <= POINTS_SHOWN || i == 0 || i == knee || i + 1 == count)
        return true;
    return i * (POINTS_SHOWN - 1) / (count - 1) != (i + 1) * (POINTS_SHOWN - 1) / (count - 1);
}

remat_status section_curve(report_document *to, const remat_profile *profile, const remat_report_options *options)
{
    remat_plan_options wanted;
    remat_plan_options_init(&wanted);
    wanted.allow_lossy = options->allow_lossy;
    wanted.threads = options->threads;
    remat_sweep *sweep;
    REMAT_TRY(remat_sweep_create(to->context, profile, &wanted, &sweep));
    size_t count = remat_sweep_count(sweep), knee = remat_sweep_knee(sweep), knee_shown = 0, written = 0;
    document_open(to, "curve", '{');
    document_text(to, "method", remat_sweep_method(sweep));
    document_number(to, "plans", count);
    document_open(to, "points", '[');
    for (size_t i = 0; i < count; i++) {
        if (!shown(i, count, knee))
            continue;
        remat_sweep_point point = {0};
        remat_sweep_get_point(sweep, i, &point);
        if (i == knee)
            knee_shown = written;
        document_open(to, NULL, '[');
        document_number(to, NULL, point.peak_bytes);
        document_number(to, NULL, point.total_cost);
        document_close(to, ']');
        written++;
    }
    document_close(to, ']');
    if (written > 0)
        document_number(to, "knee", knee_shown);
    document_close(to, '}');
    remat_sweep_destroy(sweep);
    return REMAT_OK;
}
