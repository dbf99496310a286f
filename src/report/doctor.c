#include <remat/doctor.h>

#include "backend/cpu/kernel.h"
#include "data/library.h"

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

const char *remat_library_name(size_t position, bool *is_there)
{
    if (position >= LIBRARY_COUNT)
        return NULL;
    *is_there = library_is_there((library_kind)position);
    return library_name((library_kind)position);
}
