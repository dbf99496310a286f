/* What programs built against the headers of release 0.1 call.
 *
 * Where today's headers pass the size of a struct to the library, those of 0.1 did not. Their functions have the names
 * of today's inline functions. They are in the shared library under these names, they read and write structs of 0.1's
 * sizes, and they do what they did. tests/abi runs a program that calls all of them. */
#include <remat/remat.h>

#include <string.h>

#include "arena/lifetimes_csv.h"
#include "train/trainer_object.h"

/* The size that a struct had: up to the last member of 0.1. `bytes` is what that comes to on 64-bit machines. */
#define SIZE_0_1(name, type, last, bytes)                                                                             \
    enum {                                                                                                            \
        name =                                                                                                        \
            (offsetof(type, last) + sizeof(((type *)0)->last) + _Alignof(type) - 1) / _Alignof(type) * _Alignof(type) \
    };                                                                                                                \
    _Static_assert(sizeof(void *) != 8 || name == (bytes), "the layout of " #type " in 0.1 is no more")

/* A struct that 0.1's functions hand out in arrays: it may not grow unless they copy what they hand out. */
#define UNCHANGED_SINCE_0_1(type, size) \
    _Static_assert(sizeof(type) == (size), "hand out arrays of 0.1's " #type " to 0.1's functions")

/* A function of 0.1. Today's headers have an inline function of its name, so the code calls it otherwise. */
#define FUNCTION_0_1(type, name, parameters)   \
    type name##_0_1 parameters __asm__(#name); \
    type name##_0_1 parameters

/* The initialiser of an options struct. */
#define INIT_0_1(options, size)                          \
    FUNCTION_0_1(void, options##_init, (options * made)) \
    {                                                    \
        options##_init_sized(made, size);                \
    }                                                    \
    _Static_assert(offsetof(options, struct_size) == 0, "options begin with their own size")

/* ---- remat/context.h ---- */

SIZE_0_1(ALLOCATOR, remat_allocator, user, 24);

FUNCTION_0_1(remat_status, remat_context_create, (const remat_allocator *allocator, remat_context **context))
{
    return remat_context_create_sized(allocator, ALLOCATOR, context);
}

/* ---- remat/profile.h ---- */

SIZE_0_1(MODE_OPTIONS, remat_mode_options, lossless, 64);
SIZE_0_1(LAYER_OPTIONS, remat_layer_options, mode_count, 104);
INIT_0_1(remat_mode_options, MODE_OPTIONS);
INIT_0_1(remat_layer_options, LAYER_OPTIONS);

SIZE_0_1(MODE, remat_mode, lossless, 56); /* remat_layer.modes is an array of them */
UNCHANGED_SINCE_0_1(remat_mode, MODE);

/* ---- remat/schedule.h ---- */

SIZE_0_1(FIGURES, remat_figures, largest_recomputed_bytes, 64);

FUNCTION_0_1(remat_status, remat_simulator_finish, (remat_simulator * simulator, remat_figures *figures))
{
    return remat_simulator_finish_sized(simulator, figures, FIGURES);
}

/* ---- remat/plan.h ---- */

SIZE_0_1(PLAN_OPTIONS, remat_plan_options, threads, 48);
SIZE_0_1(PLAN_STATISTICS, remat_plan_statistics, peak_reduction_percent, 64);
INIT_0_1(remat_plan_options, PLAN_OPTIONS);

FUNCTION_0_1(void, remat_plan_get_statistics, (const remat_plan *plan, remat_plan_statistics *statistics))
{
    remat_plan_get_statistics_sized(plan, statistics, PLAN_STATISTICS);
}

FUNCTION_0_1(remat_status, remat_plan_check,
             (remat_context * context, FILE *stream, const char *name, const remat_profile *profile,
              remat_figures *figures))
{
    return remat_plan_check_sized(context, stream, name, profile, figures, FIGURES);
}

/* ---- remat/sweep.h ---- */

typedef struct sweep_point_0_1 {
    uint64_t peak_bytes, total_cost;
} sweep_point_0_1;

sweep_point_0_1 remat_sweep_get(const remat_sweep *sweep, size_t position)
{
    remat_sweep_point found = {0};
    if (position < remat_sweep_count(sweep))
        remat_sweep_get_point(sweep, position, &found);
    return (sweep_point_0_1){found.peak_bytes, found.total_cost};
}

/* ---- remat/arena.h ---- */

SIZE_0_1(ARENA_OPTIONS, remat_arena_options, effort, 32);
SIZE_0_1(ARENA_RESULT, remat_arena_result, lower_bound, 16);
SIZE_0_1(LIFETIME, remat_lifetime, offset, 32);
INIT_0_1(remat_arena_options, ARENA_OPTIONS);

FUNCTION_0_1(remat_status, remat_arena_place,
             (remat_context * context, remat_lifetime *lifetimes, size_t count, const remat_arena_options *options,
              remat_arena_result *result))
{
    return remat_arena_place_sized(context, lifetimes, LIFETIME, count, options, result, ARENA_RESULT);
}

FUNCTION_0_1(remat_status, remat_arena_check,
             (remat_context * context, const remat_lifetime *lifetimes, size_t count, uint64_t alignment,
              uint64_t height))
{
    return remat_arena_check_sized(context, lifetimes, LIFETIME, count, alignment, height);
}

UNCHANGED_SINCE_0_1(remat_lifetime, LIFETIME);
remat_lifetime *remat_lifetime_table_rows(remat_lifetime_table *table)
{
    return table->rows;
}

FUNCTION_0_1(remat_status, remat_lifetime_table_write_json,
             (const remat_lifetime_table *table, const remat_arena_options *options, const remat_arena_result *result,
              bool fits, FILE *stream))
{
    return remat_lifetime_table_write_json_sized(table, options, result, ARENA_RESULT, fits, stream);
}

/* ---- remat/checkpointer.h ---- */

SIZE_0_1(STORE_COUNTERS, remat_store_counters, kept_up, 80);
SIZE_0_1(CHECKPOINTER_OPTIONS, remat_checkpointer_options, overflow, 32);
INIT_0_1(remat_checkpointer_options, CHECKPOINTER_OPTIONS);

void remat_checkpointer_count_overflows(const remat_checkpointer *checkpointer, remat_store_counters *counters)
{
    remat_checkpointer_get_counters_sized(checkpointer, counters, STORE_COUNTERS);
}

/* ---- remat/tape.h ---- */

SIZE_0_1(TAPE_CALLBACKS, remat_tape_callbacks, user, 32);
SIZE_0_1(TAPE_OPTIONS, remat_tape_options, progress_user, 120);
INIT_0_1(remat_tape_options, TAPE_OPTIONS);

FUNCTION_0_1(remat_status, remat_tape_create,
             (remat_context * context, const remat_profile *profile, const remat_tape_callbacks *callbacks,
              const remat_tape_options *options, remat_tape **tape))
{
    return remat_tape_create_sized(context, profile, callbacks, TAPE_CALLBACKS, options, tape);
}

FUNCTION_0_1(remat_status, remat_tape_create_online,
             (remat_context * context, const remat_profile *layer, uint64_t slots,
              const remat_tape_callbacks *callbacks, const remat_tape_options *options, remat_tape **tape))
{
    return remat_tape_create_online_sized(context, layer, slots, callbacks, TAPE_CALLBACKS, options, tape);
}

enum { TAPE_STATISTICS = offsetof(remat_tape_statistics, store) + STORE_COUNTERS };
_Static_assert(sizeof(void *) != 8 || TAPE_STATISTICS == 224, "the layout of remat_tape_statistics in 0.1 is no more");

FUNCTION_0_1(void, remat_tape_get_statistics, (const remat_tape *tape, remat_tape_statistics *statistics))
{
    remat_tape_get_statistics_sized(tape, statistics, TAPE_STATISTICS);
}

/* ---- remat/model.h ---- */

SIZE_0_1(MODEL_LAYER, remat_model_layer, apply, 120);

FUNCTION_0_1(remat_status, remat_model_get_layer, (const remat_model *model, size_t position, remat_model_layer *layer))
{
    return remat_model_get_layer_sized(model, position, layer, MODEL_LAYER);
}

/* ---- remat/train.h ---- */

SIZE_0_1(TRAIN_OPTIONS, remat_train_options, plan_only, 120);
SIZE_0_1(RUN_HOOKS, remat_run_hooks, save_weights_only, 64);
SIZE_0_1(GENERATE_OPTIONS, remat_generate_options, seed, 40);
INIT_0_1(remat_train_options, TRAIN_OPTIONS);
INIT_0_1(remat_run_hooks, RUN_HOOKS);
INIT_0_1(remat_generate_options, GENERATE_OPTIONS);

SIZE_0_1(TRAINER_FIGURES, remat_trainer_figures, remark, 272);

FUNCTION_0_1(void, remat_trainer_get_figures, (const remat_trainer *trainer, remat_trainer_figures *figures))
{
    remat_trainer_get_figures_sized(trainer, figures, TRAINER_FIGURES);
}

SIZE_0_1(TRAIN_POINT, remat_train_point, recomputed, 32);
UNCHANGED_SINCE_0_1(remat_train_point, TRAIN_POINT);

/* The points belong to the trainer until the next call. */
remat_status remat_trainer_curve(remat_trainer *trainer, const remat_train_point **points, size_t *count)
{
    remat_status status = remat_trainer_find_curve(trainer, count);
    *points = trainer->points;
    return status;
}

SIZE_0_1(STEP_RESULT, remat_step_result, data_seconds, 56);
SIZE_0_1(VALIDATION_RESULT, remat_validation_result, samples, 24);
SIZE_0_1(RUN_RESULT, remat_run_result, forwards, 72);

FUNCTION_0_1(remat_status, remat_trainer_step, (remat_trainer * trainer, remat_step_result *result))
{
    return remat_trainer_step_sized(trainer, result, STEP_RESULT);
}

FUNCTION_0_1(remat_status, remat_trainer_validate, (remat_trainer * trainer, remat_validation_result *result))
{
    return remat_trainer_validate_sized(trainer, result, VALIDATION_RESULT);
}

FUNCTION_0_1(remat_status, remat_trainer_run,
             (remat_trainer * trainer, const remat_run_hooks *hooks, remat_run_result *result))
{
    return remat_trainer_run_sized(trainer, hooks, result, RUN_RESULT);
}

/* Parameters were read and written through pointers. */
typedef struct parameter_0_1 {
    const char *name;
    uint32_t rank;
    uint64_t dims[4];
    uint64_t count;
    float *values;
    float *moments[2];
    bool trained;
} parameter_0_1;

/* NULL where the host cannot use the device's addresses, and where the values are not floats. */
static float *pointer_to(const remat_trainer *trainer, tensor_ref values)
{
    return trainer->device->host_visible && values.type == REMAT_FP32 ? values.at : NULL;
}

FUNCTION_0_1(remat_status, remat_trainer_get_parameter,
             (const remat_trainer *trainer, size_t position, parameter_0_1 *parameter))
{
    remat_parameter found;
    remat_status status = remat_trainer_get_parameter_sized(trainer, position, &found, sizeof found);
    if (status != REMAT_OK)
        return status;
    *parameter =
        (parameter_0_1){.name = found.name, .rank = found.rank, .count = found.count, .trained = found.trained};
    memcpy(parameter->dims, found.dims, sizeof parameter->dims);
    parameter->values = pointer_to(trainer, trainer_parameter(trainer, (uint32_t)position));
    for (unsigned m = 0; m < 2; m++)
        if (m < found.moment_count)
            parameter->moments[m] = pointer_to(trainer, trainer_state(trainer, (uint32_t)position, m));
    return REMAT_OK;
}

SIZE_0_1(MACHINE_LIMITS, remat_machine_limits, kernels, 32);

FUNCTION_0_1(remat_status, remat_measure_limits,
             (remat_context * context, unsigned threads, remat_machine_limits *limits))
{
    return remat_measure_limits_sized(context, threads, limits, MACHINE_LIMITS);
}

SIZE_0_1(PREDICTION, remat_prediction, values, 48);

FUNCTION_0_1(remat_status, remat_predictor_run,
             (remat_predictor * predictor, const void *const *inputs, remat_prediction *prediction))
{
    return remat_predictor_run_sized(predictor, inputs, prediction, PREDICTION);
}

FUNCTION_0_1(remat_status, remat_predictor_run_samples,
             (remat_predictor * predictor, uint64_t first, remat_prediction *prediction))
{
    return remat_predictor_run_samples_sized(predictor, first, prediction, PREDICTION);
}

/* ---- remat/report.h ---- */

SIZE_0_1(REPORT_OPTIONS, remat_report_options, threads, 16);
SIZE_0_1(MEMORY_COLUMN, remat_memory_column, workspace, 40);
INIT_0_1(remat_report_options, REPORT_OPTIONS);

FUNCTION_0_1(remat_status, remat_plan_memory,
             (const remat_plan *plan, remat_memory_column *columns, size_t count, size_t *used))
{
    return remat_plan_memory_sized(plan, columns, MEMORY_COLUMN, count, used);
}

/* ---- remat/doctor.h ---- */

/* The version of OpenMP that computes: none any more. */
int remat_openmp_version(void);
int remat_openmp_version(void)
{
    return 0;
}
