/* A call of release 0.1 whose name is today's inline function's, so that it is declared where that one is not. */
#ifndef TESTS_PARAMETER_OF_0_1_H
#define TESTS_PARAMETER_OF_0_1_H

#include <stdbool.h>

#include <remat/context.h>

/* As compat_0_1.c has it. */
typedef struct parameter_of_0_1 {
    const char *name;
    uint32_t rank;
    uint64_t dims[4], count;
    float *values, *moments[2];
    bool trained;
} parameter_of_0_1;

struct remat_trainer;
remat_status get_parameter_of_0_1(const struct remat_trainer *trainer, size_t position, parameter_of_0_1 *parameter);

#endif
