#include <remat/doctor.h>

#include "backend/cpu/kernel.h"

const char *remat_kernels_name(void)
{
    return kernels_fast()->name;
}

const char *remat_compiler_name(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

unsigned remat_default_threads(void)
{
    return (unsigned)parallel_default_threads();
}

const char *remat_chart_name(void)
{
    return REMAT_CHART_NAME;
}
