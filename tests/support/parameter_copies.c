#include "support/parameter_copies.h"

float *parameter_copy(fixture *f, const remat_trainer *trainer, size_t position, remat_parameter *about)
{
    expect_ok(f, remat_trainer_get_parameter(trainer, position, about));
    float *values = malloc(about->count * sizeof *values);
    assert_non_null(values);
    expect_ok(f, remat_trainer_read_parameter(trainer, position, values, about->count));
    return values;
}

float *moment_copy(fixture *f, const remat_trainer *trainer, size_t position, size_t moment)
{
    remat_parameter about;
    expect_ok(f, remat_trainer_get_parameter(trainer, position, &about));
    float *values = malloc(about.count * sizeof *values);
    assert_non_null(values);
    expect_ok(f, remat_trainer_read_moment(trainer, position, moment, values, about.count));
    return values;
}
