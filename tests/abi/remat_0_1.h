/* The public headers of release 0.1 in one file, without their comments. Programs were built against them: what stands
 * here never changes. tests/abi/program_0_1.c is such a program, and tests/layout/symbols.sh wants every function of it
 * to be in the shared library. */
#ifndef REMAT_TESTS_ABI_REMAT_0_1_H
#define REMAT_TESTS_ABI_REMAT_0_1_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

/* remat/status.h */
#define REMAT_STATUS_LIST(X)                                \
    X(REMAT_OK, 0, "done")                                  \
    X(REMAT_INTERNAL, 1, "internal error")                  \
    X(REMAT_INVALID, 2, "invalid parameter or wrong usage") \
    X(REMAT_BAD_INPUT, 3, "bad input file")                 \
    X(REMAT_INFEASIBLE, 4, "the budget is too small")       \
    X(REMAT_NO_MEMORY, 5, "out of memory")                  \
    X(REMAT_IO, 6, "input or output failed")                \
    X(REMAT_CHECK_FAILED, 7, "a check failed")
typedef enum remat_status {
#define X(name, value, text) name = value,
    REMAT_STATUS_LIST(X)
#undef X
} remat_status;
const char *remat_status_text(remat_status status);

/* remat/context.h */
typedef struct remat_context remat_context;
typedef struct remat_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} remat_allocator;
remat_status remat_context_create(const remat_allocator *allocator, remat_context **context);
void remat_context_destroy(remat_context *context);
const char *remat_context_message(const remat_context *context);
#define REMAT_NOWHERE UINT64_MAX
typedef struct remat_error {
    remat_status status;
    const char *message;
    const char *file;
    uint64_t line;
    uint64_t layer;
    uint64_t step;
    const char *field;
} remat_error;
const remat_error *remat_context_error(const remat_context *context);
typedef void (*remat_warning_fn)(void *user, const char *message);
void remat_context_on_warning(remat_context *context, remat_warning_fn warn, void *user);
uint64_t remat_context_bytes(const remat_context *context);
uint64_t remat_context_peak_bytes(const remat_context *context);

/* remat/units.h */
remat_status remat_size_parse(remat_context *context, const char *text, uint64_t *bytes);
remat_status remat_count_parse(remat_context *context, const char *text, uint64_t *count);
remat_status remat_size_from_mib(remat_context *context, double mib, uint64_t *bytes);
#define REMAT_SIZE_TEXT 24
const char *remat_size_print(uint64_t bytes, char text[REMAT_SIZE_TEXT]);
const char *remat_size_print_up(uint64_t bytes, char text[REMAT_SIZE_TEXT]);
#define REMAT_COUNT_TEXT 32
const char *remat_count_print(uint64_t count, char text[REMAT_COUNT_TEXT]);

/* remat/random.h */
typedef struct remat_random {
    uint32_t key[2];
    uint32_t high[2];
} remat_random;
remat_random remat_random_stream(uint64_t seed, uint32_t layer, uint32_t step);
void remat_random_block(const remat_random *stream, uint64_t block, uint32_t out[4]);
uint64_t remat_random_bits(const remat_random *stream, uint64_t position);
float remat_random_uniform(const remat_random *stream, uint64_t position);
uint64_t remat_random_below(const remat_random *stream, uint64_t position, uint64_t bound);
double remat_random_normal(const remat_random *stream, uint64_t position);
void remat_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* remat/profile.h */
#define REMAT_LAYER_TYPE_LIST(X)    \
    X(REMAT_ATTENTION, "attention") \
    X(REMAT_FFN, "ffn")             \
    X(REMAT_EMBEDDING, "embedding") \
    X(REMAT_NORM, "norm")           \
    X(REMAT_OTHER, "other")
typedef enum remat_layer_type {
#define X(name, text) name,
    REMAT_LAYER_TYPE_LIST(X)
#undef X
} remat_layer_type;
const char *remat_layer_type_name(remat_layer_type type);
typedef struct remat_mode {
    const char *name;
    uint64_t activation_bytes;
    uint64_t forward_cost;
    uint64_t backward_cost;
    uint64_t forward_workspace_bytes;
    uint64_t backward_workspace_bytes;
    bool holds_output;
    bool lossless;
} remat_mode;
typedef struct remat_layer {
    const char *name;
    uint64_t index;
    remat_layer_type type;
    uint32_t mode_count;
    const remat_mode *modes;
    uint64_t recompute_flops;
    uint64_t output_bytes;
} remat_layer;
double remat_layer_cost_ratio(const remat_layer *layer);
typedef struct remat_profile remat_profile;
remat_status remat_profile_create(remat_context *context, remat_profile **profile);
void remat_profile_destroy(remat_profile *profile);
remat_status remat_profile_add(remat_profile *profile, remat_layer_type type, uint64_t activation_bytes,
                               uint64_t recompute_flops);
#define REMAT_DEFAULT UINT64_MAX
typedef struct remat_mode_options {
    size_t struct_size;
    const char *name;
    uint64_t activation_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    bool holds_output, lossless;
} remat_mode_options;
void remat_mode_options_init(remat_mode_options *options);
typedef struct remat_layer_options {
    size_t struct_size;
    uint64_t index;
    const char *name;
    remat_layer_type type;
    uint64_t activation_bytes, recompute_flops;
    uint64_t output_bytes;
    uint64_t forward_cost, backward_cost;
    uint64_t forward_workspace_bytes, backward_workspace_bytes;
    const remat_mode_options *modes;
    size_t mode_count;
} remat_layer_options;
void remat_layer_options_init(remat_layer_options *options);
remat_status remat_profile_add_layer(remat_profile *profile, const remat_layer_options *options);
remat_status remat_profile_set_name(remat_profile *profile, const char *name);
remat_status remat_profile_set_cost_unit(remat_profile *profile, const char *unit);
remat_status remat_profile_set_input_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_input_gradient_bytes(remat_profile *profile, uint64_t bytes);
remat_status remat_profile_set_loss_workspace_bytes(remat_profile *profile, uint64_t bytes);
const char *remat_profile_name(const remat_profile *profile);
const char *remat_profile_cost_unit(const remat_profile *profile);
uint64_t remat_profile_input_bytes(const remat_profile *profile);
uint64_t remat_profile_input_gradient_bytes(const remat_profile *profile);
uint64_t remat_profile_loss_workspace_bytes(const remat_profile *profile);
size_t remat_profile_layer_count(const remat_profile *profile);
const remat_layer *remat_profile_layer(const remat_profile *profile, size_t position);
remat_status remat_profile_load(remat_context *context, const char *path, remat_profile **profile);
remat_status remat_profile_read(remat_context *context, FILE *stream, const char *name, remat_profile **profile);
remat_status remat_profile_write(const remat_profile *profile, FILE *stream);
remat_status remat_profile_save(const remat_profile *profile, const char *path);

/* remat/schedule.h */
typedef enum remat_op {
    REMAT_FORWARD,
    REMAT_LOSS,
    REMAT_BACKWARD,
    REMAT_DROP_X,
    REMAT_DROP_STATE,
} remat_op;
#define REMAT_NO_SAVE 0xffff
#define REMAT_KEEP    0
typedef struct remat_step {
    uint32_t layer;
    uint16_t save;
    uint8_t op;
} remat_step;
typedef remat_status (*remat_step_fn)(void *user, remat_step step);
#define REMAT_STEP_TEXT 96
const char *remat_step_print(const remat_profile *profile, remat_step step, char text[REMAT_STEP_TEXT]);
typedef struct remat_figures {
    uint64_t steps;
    uint64_t peak_bytes;
    uint64_t peak_step;
    uint64_t total_cost;
    uint64_t kept_bytes;
    uint64_t recompute_flops;
    uint64_t recomputed_layers;
    uint64_t largest_recomputed_bytes;
} remat_figures;
typedef struct remat_simulator remat_simulator;
remat_status remat_simulator_create(remat_context *context, const remat_profile *profile, remat_simulator **simulator);
void remat_simulator_destroy(remat_simulator *simulator);
remat_status remat_simulator_step(remat_simulator *simulator, remat_step step);
remat_status remat_simulator_finish(remat_simulator *simulator, remat_figures *figures);
uint64_t remat_simulator_live_bytes(const remat_simulator *simulator);
typedef struct remat_live_tensor {
    char kind;
    uint32_t layer;
    uint64_t bytes;
} remat_live_tensor;
typedef void (*remat_live_fn)(void *user, remat_live_tensor tensor);
void remat_simulator_live(const remat_simulator *simulator, remat_live_fn visit, void *user);
uint32_t remat_simulator_forwards(const remat_simulator *simulator, size_t layer);
uint16_t remat_simulator_decision(const remat_simulator *simulator, size_t layer);

/* remat/revolve.h */
uint64_t remat_revolve_forwards(uint64_t layers, uint64_t slots);
remat_status remat_revolve_walk(remat_context *context, uint32_t layers, uint64_t slots, remat_step_fn visit,
                                void *user);
typedef struct remat_online remat_online;
remat_status remat_online_create(remat_context *context, uint64_t slots, remat_online **online);
void remat_online_destroy(remat_online *online);
remat_status remat_online_advance(remat_online *online, remat_step_fn visit, void *user);
remat_status remat_online_reverse(remat_online *online, remat_step_fn visit, void *user);

/* remat/plan.h */
#define REMAT_NO_BUDGET UINT64_MAX
typedef enum remat_budget_counts { REMAT_COUNT_PEAK, REMAT_COUNT_KEPT } remat_budget_counts;
typedef struct remat_plan_options {
    size_t struct_size;
    const char *strategy;
    uint64_t budget_bytes;
    remat_budget_counts count;
    bool allow_lossy;
    const char *method;
    unsigned threads;
} remat_plan_options;
void remat_plan_options_init(remat_plan_options *options);
typedef struct remat_plan remat_plan;
remat_status remat_plan_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                               remat_plan **plan);
void remat_plan_destroy(remat_plan *plan);
typedef struct remat_plan_figures {
    bool feasible;
    bool has_budget;
    uint64_t budget_bytes;
    uint64_t min_budget_bytes;
    uint64_t base_cost;
    uint64_t base_peak_bytes;
    uint64_t lower_bound_cost;
    uint64_t method_bound_cost;
    uint64_t estimated_bytes;
    remat_figures schedule;
} remat_plan_figures;
const remat_plan_figures *remat_plan_get_figures(const remat_plan *plan);
const char *remat_plan_strategy(const remat_plan *plan);
const char *remat_plan_method(const remat_plan *plan);
const char *remat_plan_remark(const remat_plan *plan);
uint16_t remat_plan_decision(const remat_plan *plan, size_t layer);
uint32_t remat_plan_forwards(const remat_plan *plan, size_t layer);
const char *remat_plan_decision_name(const remat_plan *plan, size_t layer);
remat_status remat_plan_walk(const remat_plan *plan, remat_step_fn visit, void *user);
remat_status remat_plan_peak_live(const remat_plan *plan, remat_live_fn visit, void *user);
typedef struct remat_plan_statistics {
    uint64_t estimated_bytes;
    double mean_activation_bytes;
    uint64_t layers, recomputed_layers;
    double recomputed_ratio, recomputed_percent;
    uint64_t peak_reduction_bytes;
    double peak_reduction_percent;
} remat_plan_statistics;
void remat_plan_get_statistics(const remat_plan *plan, remat_plan_statistics *statistics);
remat_status remat_plan_write(const remat_plan *plan, FILE *stream, bool with_schedule);
remat_status remat_plan_save(const remat_plan *plan, const char *path);
remat_status remat_plan_read(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                             remat_plan **plan);
remat_status remat_plan_load(remat_context *context, const char *path, const remat_profile *profile, remat_plan **plan);
remat_status remat_plan_check(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                              remat_figures *figures);
typedef struct remat_strategy_info {
    const char *name, *argument, *summary;
    bool needs_budget;
} remat_strategy_info;
const remat_strategy_info *remat_strategy_list(size_t position);

/* remat/sweep.h */
typedef struct remat_sweep remat_sweep;
remat_status remat_sweep_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                                remat_sweep **sweep);
void remat_sweep_destroy(remat_sweep *sweep);
typedef struct remat_sweep_point {
    uint64_t peak_bytes, total_cost;
} remat_sweep_point;
size_t remat_sweep_count(const remat_sweep *sweep);
remat_sweep_point remat_sweep_get(const remat_sweep *sweep, size_t position);
size_t remat_sweep_knee(const remat_sweep *sweep);
const char *remat_sweep_method(const remat_sweep *sweep);
remat_status remat_sweep_plan(const remat_sweep *sweep, size_t position, remat_plan **plan);

/* remat/arena.h */
typedef struct remat_lifetime {
    uint64_t lower, upper;
    uint64_t size;
    uint64_t offset;
} remat_lifetime;
typedef struct remat_arena_options {
    size_t struct_size;
    uint64_t alignment;
    uint64_t capacity;
    uint64_t effort;
} remat_arena_options;
void remat_arena_options_init(remat_arena_options *options);
typedef struct remat_arena_result {
    uint64_t height;
    uint64_t lower_bound;
} remat_arena_result;
remat_status remat_arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count,
                               const remat_arena_options *options, remat_arena_result *result);
remat_status remat_arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count,
                               uint64_t alignment, uint64_t height);
typedef struct remat_lifetime_table remat_lifetime_table;
remat_status remat_lifetime_table_read(remat_context *context, FILE *stream, const char *name,
                                       remat_lifetime_table **table);
void remat_lifetime_table_destroy(remat_lifetime_table *table);
size_t remat_lifetime_table_count(const remat_lifetime_table *table);
remat_lifetime *remat_lifetime_table_rows(remat_lifetime_table *table);
const char *remat_lifetime_table_id(const remat_lifetime_table *table, size_t row);
remat_status remat_lifetime_table_write(const remat_lifetime_table *table, FILE *stream);
remat_status remat_lifetime_table_write_json(const remat_lifetime_table *table, const remat_arena_options *options,
                                             const remat_arena_result *result, bool fits, FILE *stream);

/* remat/store.h */
typedef enum remat_element { REMAT_BYTES, REMAT_FLOATS } remat_element;
typedef enum remat_precision { REMAT_FP32, REMAT_FP16, REMAT_BF16 } remat_precision;
const char *remat_precision_name(remat_precision precision);
typedef enum remat_overflow { REMAT_OVERFLOW_ERROR, REMAT_OVERFLOW_SATURATE, REMAT_OVERFLOW_KEEP_FULL } remat_overflow;
typedef struct remat_store_counters {
    uint64_t overflows;
    uint64_t kept_full;
    uint64_t blocks_written, blocks_read;
    uint64_t bytes_written, bytes_read;
    uint64_t io_ns;
    uint64_t wait_ns;
    uint64_t elapsed_ns;
    bool kept_up;
} remat_store_counters;

/* remat/checkpointer.h */
typedef struct remat_checkpointer_options {
    size_t struct_size;
    uint64_t keep_every_n;
    uint64_t max_kept;
    remat_precision precision;
    remat_overflow overflow;
} remat_checkpointer_options;
void remat_checkpointer_options_init(remat_checkpointer_options *options);
typedef struct remat_checkpointer remat_checkpointer;
remat_status remat_checkpointer_create(remat_context *context, const remat_checkpointer_options *options,
                                       remat_checkpointer **checkpointer);
void remat_checkpointer_destroy(remat_checkpointer *checkpointer);
typedef struct remat_checkpointer_layer {
    uint64_t number;
    size_t count;
} remat_checkpointer_layer;
typedef remat_status (*remat_checkpointer_fn)(void *user, uint64_t layer, const float *input, size_t input_count,
                                              float *output, size_t output_count);
remat_status remat_checkpointer_forward(remat_checkpointer *checkpointer, const remat_checkpointer_layer *layers,
                                        size_t layer_count, const float *input, size_t input_count,
                                        remat_checkpointer_fn forward, void *user, float *output);
remat_status remat_checkpointer_recompute(const remat_checkpointer *checkpointer, uint64_t number,
                                          const remat_checkpointer_layer *layers, size_t layer_count,
                                          remat_checkpointer_fn forward, void *user, float *output);
remat_status remat_checkpointer_save(remat_checkpointer *checkpointer, uint64_t number, const float *activation,
                                     size_t count);
remat_status remat_checkpointer_get(const remat_checkpointer *checkpointer, uint64_t number, float *activation,
                                    size_t count);
bool remat_checkpointer_has(const remat_checkpointer *checkpointer, uint64_t number, size_t *count);
bool remat_checkpointer_keeps(const remat_checkpointer *checkpointer, uint64_t number);
void remat_checkpointer_clear(remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_count(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_kept_bytes(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_input_bytes(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_avoided_bytes(const remat_checkpointer *checkpointer);
uint64_t remat_checkpointer_missed(const remat_checkpointer *checkpointer);
void remat_checkpointer_count_overflows(const remat_checkpointer *checkpointer, remat_store_counters *counters);
const remat_checkpointer_options *remat_checkpointer_get_options(const remat_checkpointer *checkpointer);

/* remat/tape.h */
typedef enum remat_tape_phase {
    REMAT_PHASE_FORWARD,
    REMAT_PHASE_RECOMPUTE,
    REMAT_PHASE_LOSS,
    REMAT_PHASE_BACKWARD
} remat_tape_phase;
const char *remat_tape_phase_name(remat_tape_phase phase);
typedef struct remat_tape_call {
    uint32_t layer;
    uint16_t mode;
    remat_tape_phase phase;
    const void *input;
    void *saved;
    void *output;
    const void *output_gradient;
    void *input_gradient;
    void *workspace;
    remat_random random;
} remat_tape_call;
typedef int (*remat_tape_fn)(void *user, const remat_tape_call *call);
typedef struct remat_tape_callbacks {
    remat_tape_fn forward, backward, loss;
    void *user;
} remat_tape_callbacks;
typedef int (*remat_tape_progress_fn)(void *user, uint64_t done, uint64_t total, remat_tape_phase phase,
                                      uint32_t layer);
typedef enum remat_tape_store { REMAT_TAPE_MEMORY, REMAT_TAPE_FP16, REMAT_TAPE_BF16, REMAT_TAPE_DISK } remat_tape_store;
typedef enum remat_tape_verify { REMAT_VERIFY_OFF, REMAT_VERIFY_HASHES, REMAT_VERIFY_COPIES } remat_tape_verify;
typedef struct remat_tape_options {
    size_t struct_size;
    const char *strategy;
    uint64_t budget_bytes;
    uint64_t *least_bytes;
    bool allow_lossy;
    const remat_plan *plan;
    const char *plan_path;
    remat_tape_store store;
    bool store_planned;
    remat_element element;
    remat_overflow overflow;
    const char *directory;
    uint32_t write_steps;
    uint32_t read_steps;
    uint32_t wait_steps;
    remat_tape_verify verify;
    uint64_t seed;
    remat_tape_progress_fn progress;
    void *progress_user;
} remat_tape_options;
void remat_tape_options_init(remat_tape_options *options);
typedef struct remat_tape remat_tape;
remat_status remat_tape_create(remat_context *context, const remat_profile *profile,
                               const remat_tape_callbacks *callbacks, const remat_tape_options *options,
                               remat_tape **tape);
void remat_tape_destroy(remat_tape *tape);
remat_status remat_tape_run(remat_tape *tape, const void *input, void *input_gradient);
void remat_tape_set_step(remat_tape *tape, uint32_t step);
uint32_t remat_tape_step(const remat_tape *tape);
uint64_t remat_tape_arena_bytes(const remat_tape *tape);
const remat_plan *remat_tape_plan(const remat_tape *tape);
remat_status remat_tape_profile(remat_context *context, const remat_profile *profile, const remat_tape_options *options,
                                remat_profile **chain);
typedef struct remat_tape_statistics {
    uint64_t arena_bytes, peak_bytes;
    uint64_t bookkeeping_bytes;
    uint64_t kept_bytes;
    uint64_t avoided_bytes;
    uint64_t runs;
    uint64_t forwards, recomputes, backwards;
    uint64_t forward_ns, recompute_ns, loss_ns, backward_ns;
    uint64_t store_ns;
    uint64_t verify_ns;
    uint64_t total_ns;
    uint64_t stored_bytes, restored_bytes;
    remat_store_counters store;
} remat_tape_statistics;
void remat_tape_get_statistics(const remat_tape *tape, remat_tape_statistics *statistics);
uint32_t remat_tape_forwards(const remat_tape *tape, size_t layer);
const char *remat_tape_remark(const remat_tape *tape);
remat_status remat_tape_create_online(remat_context *context, const remat_profile *layer, uint64_t slots,
                                      const remat_tape_callbacks *callbacks, const remat_tape_options *options,
                                      remat_tape **tape);
remat_status remat_tape_begin(remat_tape *tape, const void *input);
remat_status remat_tape_advance(remat_tape *tape);
const void *remat_tape_output(const remat_tape *tape);
remat_status remat_tape_reverse(remat_tape *tape, void *input_gradient);

/* remat/model.h */
typedef struct remat_model remat_model;
#define REMAT_PROPERTIES(...) ((const char *const[]){__VA_ARGS__, NULL})
remat_status remat_model_create(remat_context *context, remat_model **model);
void remat_model_destroy(remat_model *model);
remat_status remat_model_load(remat_context *context, const char *path, remat_model **model);
remat_status remat_model_read(remat_context *context, FILE *stream, const char *name, remat_model **model);
remat_status remat_model_add_layer(remat_model *model, const char *type, const char *const *properties);
remat_status remat_model_add_block(remat_model *model, const char *const *layers);
remat_status remat_model_set(remat_model *model, const char *const *properties);
remat_status remat_model_set_optimizer(remat_model *model, const char *type, const char *const *properties);
remat_status remat_model_set_dataset(remat_model *model, const char *type, const char *const *properties);
remat_status remat_model_compile(remat_model *model);
typedef struct remat_model_layer {
    const char *name, *type;
    uint64_t output_shape[3];
    uint64_t parameters;
    uint64_t output_bytes;
    uint64_t saved_bytes;
    uint64_t workspace_bytes;
    const char *block;
    uint64_t forward, recompute, gradient, derivative, apply;
} remat_model_layer;
size_t remat_model_layer_count(const remat_model *model);
remat_status remat_model_get_layer(const remat_model *model, size_t position, remat_model_layer *layer);
uint64_t remat_model_batch(const remat_model *model);
uint64_t remat_model_budget(const remat_model *model);
uint64_t remat_model_parameter_count(const remat_model *model);
remat_status remat_layer_types_write(remat_context *context, const char *type, FILE *stream, bool json);
remat_status remat_model_write_summary(const remat_model *model, FILE *stream, bool json);
remat_status remat_model_write_order(const remat_model *model, FILE *stream, bool json);

/* remat/train.h */
typedef struct remat_trainer remat_trainer;
typedef remat_status (*remat_sample_fn)(void *user, uint64_t sample, void *const *inputs, void *labels);
#define REMAT_ANY_BUDGET ((uint64_t)INT64_MAX)
typedef struct remat_train_options {
    size_t struct_size;
    uint64_t budget_bytes;
    const char *strategy;
    const char *plan_path;
    const char *profile_path;
    const char *kernels;
    unsigned threads;
    uint64_t batch_size;
    uint64_t seed;
    uint64_t steps;
    remat_sample_fn sample;
    void *sample_user;
    uint64_t samples, validation_samples;
    bool plan_only;
} remat_train_options;
void remat_train_options_init(remat_train_options *options);
remat_status remat_trainer_create(remat_model *model, const remat_train_options *options, remat_trainer **trainer);
void remat_trainer_destroy(remat_trainer *trainer);
typedef struct remat_trainer_figures {
    uint64_t weight_bytes;
    uint64_t optimizer_bytes;
    uint64_t gradient_bytes;
    uint64_t scratch_bytes;
    uint64_t arena_bytes;
    uint64_t total_bytes;
    uint64_t peak_bytes;
    uint64_t keep_all_arena_bytes;
    uint64_t min_budget_bytes;
    uint64_t peak_activation_bytes, peak_gradient_bytes;
    uint64_t peak_weight_gradient_bytes, peak_workspace_bytes, peak_data_bytes;
    uint64_t budget_bytes;
    uint64_t cost, keep_all_cost;
    uint64_t parameters;
    uint64_t batch_size, accumulate, steps_per_epoch, total_steps;
    uint64_t training_samples, validation_samples;
    double clip_norm;
    uint64_t layers, recomputed_layers, forwards;
    unsigned threads;
    const char *model;
    const char *strategy;
    const char *peak_layer;
    const char *kernels;
    const char *remark;
} remat_trainer_figures;
void remat_trainer_get_figures(const remat_trainer *trainer, remat_trainer_figures *figures);
const remat_profile *remat_trainer_chain(const remat_trainer *trainer);
const remat_plan *remat_trainer_plan(const remat_trainer *trainer);
remat_status remat_trainer_write_plan(const remat_trainer *trainer, FILE *stream, bool with_schedule);
remat_status remat_trainer_save_plan(const remat_trainer *trainer, const char *path);
uint32_t remat_trainer_forwards(const remat_trainer *trainer, size_t layer);
typedef struct remat_train_point {
    uint64_t total_bytes, arena_bytes;
    uint64_t cost;
    uint64_t recomputed;
} remat_train_point;
remat_status remat_trainer_curve(remat_trainer *trainer, const remat_train_point **points, size_t *count);
size_t remat_trainer_knee(const remat_trainer *trainer);
remat_status remat_train_largest_batch(remat_model *model, const remat_train_options *options, uint64_t *batch);
typedef struct remat_step_result {
    uint64_t step;
    uint64_t epoch;
    double loss;
    double rate;
    double gradient_norm;
    double seconds;
    double data_seconds;
} remat_step_result;
remat_status remat_trainer_step(remat_trainer *trainer, remat_step_result *result);
uint64_t remat_trainer_steps_taken(const remat_trainer *trainer);
typedef struct remat_validation_result {
    double loss, accuracy;
    uint64_t samples;
} remat_validation_result;
remat_status remat_trainer_validate(remat_trainer *trainer, remat_validation_result *result);
typedef struct remat_run_hooks {
    size_t struct_size;
    bool (*on_step)(void *user, const remat_step_result *result);
    void (*on_validation)(void *user, uint64_t step, const remat_validation_result *result);
    void *user;
    const char *log_path;
    const char *save_path;
    uint64_t save_every;
    bool save_weights_only;
} remat_run_hooks;
void remat_run_hooks_init(remat_run_hooks *hooks);
typedef struct remat_run_result {
    uint64_t steps;
    bool stopped;
    bool stopped_early;
    double last_loss;
    double mean_step_seconds;
    double mean_data_seconds;
    double best_validation_loss;
    uint64_t peak_resident_bytes;
    uint64_t allocated_bytes;
    uint64_t forwards;
} remat_run_result;
remat_status remat_trainer_run(remat_trainer *trainer, const remat_run_hooks *hooks, remat_run_result *result);
typedef struct remat_parameter {
    const char *name;
    uint32_t rank;
    uint64_t dims[4];
    uint64_t count;
    float *values;
    float *moments[2];
    bool trained;
} remat_parameter;
size_t remat_trainer_parameter_count(const remat_trainer *trainer);
remat_status remat_trainer_get_parameter(const remat_trainer *trainer, size_t position, remat_parameter *parameter);
typedef void (*remat_gradient_fn)(void *user, size_t parameter, const float *gradient, uint64_t count);
void remat_trainer_on_gradient(remat_trainer *trainer, remat_gradient_fn visit, void *user);
typedef struct remat_action {
    const char *layer;
    const char *what;
    size_t position;
    uint64_t began, ended;
    uint64_t live_bytes;
    uint64_t flops, bytes;
    uint64_t product_flops;
} remat_action;
typedef void (*remat_action_fn)(void *user, const remat_action *action);
remat_status remat_trainer_on_action(remat_trainer *trainer, remat_action_fn visit, void *user);
remat_status remat_trainer_save(const remat_trainer *trainer, const char *path, bool with_state);
remat_status remat_trainer_load(remat_trainer *trainer, const char *path);
remat_status remat_trainer_resume(remat_trainer *trainer, const char *path);
remat_status remat_trainer_measure(remat_trainer *trainer, unsigned repeats, remat_profile **profile);
typedef struct remat_machine_limits {
    double flops, bytes;
    unsigned threads;
    const char *kernels;
} remat_machine_limits;
remat_status remat_measure_limits(remat_context *context, unsigned threads, remat_machine_limits *limits);
typedef struct remat_predictor remat_predictor;
remat_status remat_predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                                    remat_predictor **predictor);
void remat_predictor_destroy(remat_predictor *predictor);
typedef struct remat_prediction {
    const char *layer;
    uint64_t batch, shape[3];
    const float *values;
} remat_prediction;
remat_status remat_predictor_run(remat_predictor *predictor, const void *const *inputs, remat_prediction *prediction);
uint64_t remat_predictor_samples(remat_predictor *predictor);
remat_status remat_predictor_run_samples(remat_predictor *predictor, uint64_t first, remat_prediction *prediction);
typedef struct remat_generate_options {
    size_t struct_size;
    const char *prompt;
    uint64_t count;
    double temperature;
    uint64_t seed;
} remat_generate_options;
void remat_generate_options_init(remat_generate_options *options);
remat_status remat_predictor_generate(remat_predictor *predictor, const remat_generate_options *options,
                                      void (*emit)(void *user, unsigned char byte), void *user);

/* remat/report.h */
typedef struct remat_report remat_report;
remat_status remat_report_create(remat_context *context, remat_report **report);
void remat_report_destroy(remat_report *report);
typedef struct remat_report_options {
    size_t struct_size;
    bool curve;
    bool arena;
    bool allow_lossy;
    unsigned threads;
} remat_report_options;
void remat_report_options_init(remat_report_options *options);
remat_status remat_report_add_profile(remat_report *report, const char *label, const remat_profile *profile,
                                      const remat_report_options *options);
remat_status remat_report_add_plan(remat_report *report, const char *label, const remat_plan *plan,
                                   const remat_report_options *options);
remat_status remat_report_add_plan_file(remat_report *report, const char *label, FILE *stream);
remat_status remat_report_add_trainer(remat_report *report, const char *label, remat_trainer *trainer,
                                      const remat_report_options *options);
remat_status remat_report_add_run(remat_report *report, const char *label, const char *path);
size_t remat_report_count(const remat_report *report);
remat_status remat_report_write(const remat_report *report, FILE *stream);
remat_status remat_report_write_json(const remat_report *report, FILE *stream);
remat_status remat_report_save(const remat_report *report, const char *path);
typedef struct remat_memory_column {
    uint64_t step;
    uint64_t inputs, states, gradients, workspace;
} remat_memory_column;
remat_status remat_plan_memory(const remat_plan *plan, remat_memory_column *columns, size_t count, size_t *used);
typedef enum remat_file_kind {
    REMAT_FILE_PROFILE,
    REMAT_FILE_PLAN,
    REMAT_FILE_MODEL,
    REMAT_FILE_RUN,
    REMAT_FILE_LIFETIMES,
    REMAT_FILE_OTHER,
} remat_file_kind;
remat_status remat_file_kind_tell(remat_context *context, FILE *stream, const char *name, remat_file_kind *kind);

/* remat/doctor.h */
const char *remat_kernels_name(void);
const char *remat_compiler_name(void);
int remat_openmp_version(void);
const char *remat_chart_name(void);

/* remat/remat.h */
#define REMAT_VERSION_MAJOR 0
#define REMAT_VERSION_MINOR 1
#define REMAT_VERSION_PATCH 0
const char *remat_version(void);

#endif
