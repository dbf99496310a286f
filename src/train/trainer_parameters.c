/* Copies parameters and their moments to and from the caller. Their addresses are private to the trainer. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/weight_blocks.h"
#include "train/host_view.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

size_t remat_trainer_parameter_count(const remat_trainer *trainer)
{
    return trainer->network->parameter_count;
}

static remat_status check_position(const remat_trainer *trainer, size_t position)
{
    if (position < trainer->network->parameter_count)
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_INVALID, NULL, "there is no parameter %zu: the model has %zu", position,
                      trainer->network->parameter_count);
}

/* Statistics and frozen parameters are not trained, so that no optimizer uses what lies beside them. */
static uint32_t moment_count(const remat_trainer *trainer, const network_parameter *parameter)
{
    return layer_parameter_is_trained(&parameter->about) ? optimizer_moments(&trainer->optimizer) : 0;
}

remat_status remat_trainer_get_parameter_sized(const remat_trainer *trainer, size_t position,
                                               remat_parameter *parameter, size_t parameter_size)
{
    REMAT_TRY(check_position(trainer, position));
    const network_parameter *about = &trainer->network->parameters[position];
    remat_parameter found = {.name = about->name,
                             .rank = about->about.rank,
                             .count = about->values,
                             .dtype = about->about.dtype,
                             .trained = layer_parameter_is_trained(&about->about),
                             .moment_count = moment_count(trainer, about)};
    memcpy(found.dims, about->about.dims, sizeof found.dims);
    remat_struct_give(parameter, parameter_size, &found, sizeof found);
    return REMAT_OK;
}

static remat_status check_copy(const remat_trainer *trainer, const network_parameter *parameter, uint64_t count)
{
    REMAT_TRY(trainer_check_started(trainer));
    if (count != parameter->values)
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "parameter '%s' has %llu values, not %llu",
                          parameter->name, (unsigned long long)parameter->values, (unsigned long long)count);
    return REMAT_OK;
}

static remat_status find_values(const remat_trainer *trainer, size_t position, uint64_t count, tensor_ref *values)
{
    REMAT_TRY(check_position(trainer, position));
    REMAT_TRY(check_copy(trainer, &trainer->network->parameters[position], count));
    *values = trainer_parameter(trainer, (uint32_t)position);
    return REMAT_OK;
}

static remat_status check_moment(const remat_trainer *trainer, size_t position, size_t moment, uint64_t count)
{
    REMAT_TRY(check_position(trainer, position));
    const network_parameter *parameter = &trainer->network->parameters[position];
    if (moment >= moment_count(trainer, parameter))
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "parameter '%s' has %u moments; there is no moment %zu", parameter->name,
                          moment_count(trainer, parameter), moment);
    return check_copy(trainer, parameter, count);
}

/* A whole parameter that ranks share, in the type in which it is stored. */
static remat_status read_shared(const remat_trainer *trainer, uint32_t position, float *to)
{
    const network_parameter *about = &trainer->network->parameters[position];
    if (about->about.dtype == REMAT_FP32)
        return trainer_copy_whole(trainer, position, OPTIMIZER_STATES, to);
    void *whole = remat_alloc(trainer->context, about->bytes, 1);
    remat_status status = whole ? trainer_copy_whole(trainer, position, OPTIMIZER_STATES, whole) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        weight_blocks_unpack(about->about.dtype, whole, to, about->values);
    remat_release(trainer->context, whole, about->bytes, 1);
    return status;
}

static remat_status read_values(const remat_trainer *trainer, tensor_ref from, float *to, uint64_t count)
{
    host_view view;
    REMAT_TRY(host_view_open_floats(trainer->queue, from, count, true, &view));
    memcpy(to, view.floats, count * sizeof *to);
    return host_view_close(&view, false);
}

static remat_status write_values(const remat_trainer *trainer, tensor_ref to, const float *from, uint64_t count)
{
    host_view view;
    if (count == 0)
        return REMAT_OK;
    REMAT_TRY(host_view_open_floats(trainer->queue, to, count, false, &view));
    memcpy(view.floats, from, count * sizeof *from);
    return host_view_close(&view, true);
}

remat_status remat_trainer_read_parameter(const remat_trainer *trainer, size_t position, float *values, uint64_t count)
{
    tensor_ref from;
    REMAT_TRY(find_values(trainer, position, count, &from));
    if (trainer_shares(trainer, (uint32_t)position, REMAT_SHARD_WEIGHTS))
        return read_shared(trainer, (uint32_t)position, values);
    remat_status status = read_values(trainer, from, values, count);
    trainer_leave_weight(trainer, (uint32_t)position);
    return status;
}

remat_status remat_trainer_write_parameter(remat_trainer *trainer, size_t position, const float *values, uint64_t count)
{
    tensor_ref to;
    REMAT_TRY(find_values(trainer, position, count, &to));
    if (trainer_is_mapped(trainer, (uint32_t)position))
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "'%.100s' is mapped from the model's folder and cannot be written; frozen=%s holds a copy",
                          trainer->network->parameters[position].name, remat_dtype_name(to.type));
    const shard_part part = trainer_part(trainer, (uint32_t)position, REMAT_SHARD_WEIGHTS);
    return write_values(trainer, to, values + part.first, part.values);
}

remat_status remat_trainer_read_moment(const remat_trainer *trainer, size_t position, size_t moment, float *values,
                                       uint64_t count)
{
    REMAT_TRY(check_moment(trainer, position, moment, count));
    return trainer_read_moment(trainer, (uint32_t)position, (unsigned)moment, values);
}

remat_status remat_trainer_write_moment(remat_trainer *trainer, size_t position, size_t moment, const float *values,
                                        uint64_t count)
{
    REMAT_TRY(check_moment(trainer, position, moment, count));
    return trainer_write_moment(trainer, (uint32_t)position, (unsigned)moment, values);
}
