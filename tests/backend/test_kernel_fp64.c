/* The reference kernels in fp64 against those in fp32, and tensors in bf16 against fp64: the same operation on the same values,
 * one operation of each kind. */
#include <math.h>

#include "backend/extents.h"
#include "backend/recording.h"
#include "support/kernel_compare.h"

enum { MOST = 16, CHOSEN = 64 };

/* The tensors of an operation: fp32, and the same in fp64. */
typedef struct memory {
    test_random random;
    size_t count, counts[MOST];
    float *narrow[MOST];
    double *wide[MOST];
    int32_t chosen[CHOSEN]; /* the integer tensor of the operation */
    step_block step;
} memory;

static tensor_ref some(memory *m, size_t count, double low, double high)
{
    size_t i = m->count++;
    assert_true(i < MOST);
    m->counts[i] = count;
    m->narrow[i] = values_random(&m->random, count, low, high);
    m->wide[i] = malloc(count * sizeof(double));
    assert_non_null(m->wide[i]);
    for (size_t k = 0; k < count; k++)
        m->wide[i][k] = (double)m->narrow[i][k];
    return fp32(m->narrow[i]);
}

static tensor_ref values(memory *m, size_t count)
{
    return some(m, count, -1, 1);
}

static tensor_ref positive(memory *m, size_t count)
{
    return some(m, count, 0.5, 1.5);
}

static tensor_ref integers(memory *m, int32_t bound)
{
    for (size_t i = 0; i < CHOSEN; i++)
        m->chosen[i] = (int32_t)test_random_below(&m->random, (uint64_t)bound);
    return int32(m->chosen);
}

static tensor_ref bits(memory *m)
{
    for (size_t i = 0; i < CHOSEN; i++)
        m->chosen[i] = (int32_t)test_random_next(&m->random);
    return raw(m->chosen);
}

static void memory_close(memory *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->narrow[i]);
        free(m->wide[i]);
    }
}

typedef union any_args {
#define X(name, tensors) op_##name name;
    OPERATION_LIST(X)
#undef X
    tensor_ref tensors[OPERATION_MAX_TENSORS];
} any_args;

static void do_nothing(const remat_custom_call *call)
{
    assert_int_equal(call->threads, 1);
}

/* Some arguments for the operation: rows x columns values where it has rows, else so many. */
static any_args arguments(operation op, memory *m)
{
    enum { ROWS = 3, COLUMNS = 5, N = ROWS * COLUMNS, IN = 2 * 2 * 6 * 6, WEIGHTS = 3 * 2 * 9, QKV = 2 * 3 * 12 };
    const operation_window window = {2, 2, 6, 6, 3, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1},
                           pool = {2, 2, 6, 6, 2, 3, 3, 2, 2, 2, 2, 0, 0, 1, 1, 1};
    tensor_ref step = raw(&m->step), none = TENSOR_NONE;
    any_args a = {.tensors = {{NULL}}};
    switch (op) {
    case OP_gemm:
        a.gemm = (op_gemm){.a = values(m, 12), .b = values(m, 20), .c = values(m, N), .bias = values(m, 5)};
        a.gemm.activated = values(m, N);
        a.gemm.m = a.gemm.lda = 3;
        a.gemm.n = a.gemm.ldb = a.gemm.ldc = 5;
        a.gemm.k = 4;
        a.gemm.transpose_a = a.gemm.accumulate = true;
        a.gemm.activation = ACTIVATION_GELU_ERF;
        break;
    case OP_activate: a.activate = (op_activate){values(m, N), values(m, N), N, ACTIVATION_TANH}; break;
    case OP_activate_backward:
        a.activate_backward =
            (op_activate_backward){values(m, N), none, values(m, N), values(m, N), N, ACTIVATION_SWISH, true};
        break;
    case OP_rectify: a.rectify = (op_rectify){values(m, N), values(m, N), bits(m), N, ACTIVATION_LEAKY_RELU}; break;
    case OP_rectify_backward:
        a.rectify_backward = (op_rectify_backward){bits(m), values(m, N), values(m, N), N, ACTIVATION_LEAKY_RELU, true};
        break;
    case OP_add: a.add = (op_add){values(m, N), values(m, N), values(m, N), N}; break;
    case OP_multiply: a.multiply = (op_multiply){values(m, N), values(m, N), values(m, N), N, true}; break;
    case OP_scale: a.scale = (op_scale){values(m, N), N, 1.7}; break;
    case OP_accumulate: a.accumulate = (op_accumulate){values(m, N), values(m, N), N}; break;
    case OP_copy: a.copy = (op_copy){values(m, N), values(m, N), N}; break;
    case OP_convert: a.convert = (op_convert){values(m, N), values(m, N), N}; break;
    case OP_fill: a.fill = (op_fill){values(m, N), N, 0.3}; break;
    case OP_dropout: a.dropout = (op_dropout){values(m, N), values(m, N), step, N, 4, 0.7, false}; break;
    case OP_softmax: a.softmax = (op_softmax){values(m, N), values(m, N), ROWS, COLUMNS}; break;
    case OP_softmax_backward:
        a.softmax_backward = (op_softmax_backward){values(m, N), values(m, N), values(m, N), ROWS, COLUMNS, false};
        break;
    case OP_add_to_rows:
        a.add_to_rows = (op_add_to_rows){values(m, N), values(m, COLUMNS), values(m, N), ROWS, COLUMNS};
        break;
    case OP_copy_rows: a.copy_rows = (op_copy_rows){values(m, N), values(m, 20), ROWS, COLUMNS, 5, 6, true}; break;
    case OP_column_sums: a.column_sums = (op_column_sums){values(m, N), values(m, COLUMNS), ROWS, COLUMNS, true}; break;
    case OP_add_to_channels: a.add_to_channels = (op_add_to_channels){values(m, 4), values(m, 24), 2, 4, 3}; break;
    case OP_channel_sums: a.channel_sums = (op_channel_sums){values(m, 24), values(m, 4), 2, 4, 3, true}; break;
    case OP_gather: a.gather = (op_gather){integers(m, 4), values(m, 20), values(m, N), ROWS, COLUMNS}; break;
    case OP_gather_backward:
        a.gather_backward = (op_gather_backward){integers(m, 4), values(m, N), values(m, 20), ROWS, COLUMNS, 4, false};
        break;
    case OP_normalize:
        a.normalize = (op_normalize){values(m, N),
                                     positive(m, COLUMNS),
                                     values(m, COLUMNS),
                                     values(m, N),
                                     values(m, ROWS),
                                     values(m, ROWS),
                                     ROWS,
                                     COLUMNS,
                                     1e-5};
        break;
    case OP_normalize_backward:
        a.normalize_backward = (op_normalize_backward){.x = values(m, N),
                                                       .gain = positive(m, COLUMNS),
                                                       .means = values(m, ROWS),
                                                       .scales = positive(m, ROWS),
                                                       .dy = values(m, N),
                                                       .dx = values(m, N),
                                                       .dgain = values(m, COLUMNS),
                                                       .dshift = values(m, COLUMNS),
                                                       .rows = ROWS,
                                                       .columns = COLUMNS};
        break;
    case OP_batch_statistics:
        a.batch_statistics = (op_batch_statistics){
            values(m, 24), values(m, 3), values(m, 3), values(m, 3), positive(m, 3), 2, 3, 4, 1e-5, 0.1};
        break;
    case OP_batch_scales: a.batch_scales = (op_batch_scales){positive(m, 3), values(m, 3), 3, 1e-5}; break;
    case OP_batch_normalize:
        a.batch_normalize = (op_batch_normalize){
            values(m, 24), values(m, 3), positive(m, 3), positive(m, 3), values(m, 3), values(m, 24), 2, 3, 4};
        break;
    case OP_batch_normalize_backward:
        a.batch_normalize_backward = (op_batch_normalize_backward){values(m, 24),
                                                                   values(m, 3),
                                                                   positive(m, 3),
                                                                   positive(m, 3),
                                                                   values(m, 24),
                                                                   values(m, 24),
                                                                   values(m, 3),
                                                                   values(m, 3),
                                                                   2,
                                                                   3,
                                                                   4,
                                                                   true,
                                                                   false};
        break;
    case OP_group_normalize:
        a.group_normalize = (op_group_normalize){
            values(m, 24), values(m, 4), values(m, 4), values(m, 24), values(m, 4), values(m, 4), 2, 4, 3, 2, 1e-5};
        break;
    case OP_group_normalize_backward:
        a.group_normalize_backward = (op_group_normalize_backward){.x = values(m, 24),
                                                                   .gain = values(m, 4),
                                                                   .means = values(m, 4),
                                                                   .scales = positive(m, 4),
                                                                   .dy = values(m, 24),
                                                                   .dx = values(m, 24),
                                                                   .dgain = values(m, 4),
                                                                   .dshift = values(m, 4),
                                                                   .batch = 2,
                                                                   .channels = 4,
                                                                   .area = 3,
                                                                   .groups = 2};
        break;
    case OP_attention: {
        tensor_ref q = values(m, QKV);
        a.attention = (op_attention){.q = q, .k = tensor_from(q, 4), .v = tensor_from(q, 8), .batch = 2};
        a.attention.out = values(m, 24);
        a.attention.sums = values(m, 12);
        a.attention.heads = 2, a.attention.steps = 3, a.attention.size = 2;
        a.attention.row = a.attention.key_row = 12, a.attention.out_row = 4, a.attention.keys = 3;
        break;
    }
    case OP_attention_backward: {
        tensor_ref q = values(m, QKV), d = values(m, QKV);
        a.attention_backward = (op_attention_backward){.q = q, .k = tensor_from(q, 4), .v = tensor_from(q, 8), .dq = d};
        op_attention_backward *p = &a.attention_backward;
        p->dk = tensor_from(d, 4), p->dv = tensor_from(d, 8);
        p->out = values(m, 24), p->dout = values(m, 24), p->sums = positive(m, 12);
        p->batch = 2, p->heads = 2, p->steps = 3, p->size = 2, p->row = p->key_row = 12, p->out_row = 4, p->keys = 3;
        p->causal = p->accumulate = true;
        break;
    }
    case OP_attention_cached: {
        op_attention_cached *p = &a.attention_cached;
        *p = (op_attention_cached){.q = values(m, 12), .k = values(m, 10), .v = values(m, 10), .out = values(m, 12)};
        p->positions = integers(m, 5);
        p->rows = 3, p->heads = 2, p->size = 2, p->row = p->out_row = 4, p->keys = 5, p->key_row = 2, p->group = 2;
        break;
    }
    case OP_put_rows:
        a.put_rows = (op_put_rows){values(m, N), integers(m, ROWS), values(m, N), ROWS, COLUMNS, COLUMNS, ROWS};
        break;
    case OP_rotate:
        a.rotate =
            (op_rotate){.x = values(m, 6 * 8), .y = values(m, 6 * 8), .rows = 6, .steps = 3, .heads = 2, .size = 4};
        a.rotate.angles = (rotary_angles){ROTARY_LLAMA3, 10, 4, 1, 4, 20};
        a.rotate.scale = 1.25;
        a.rotate.accumulate = true;
        break;
    case OP_lstm_cell:
        a.lstm_cell = (op_lstm_cell){values(m, 24), values(m, 6), values(m, 6), values(m, 6), 2, 3, 12, 3};
        break;
    case OP_lstm_cell_backward:
        a.lstm_cell_backward = (op_lstm_cell_backward){values(m, 24),
                                                       values(m, 6),
                                                       values(m, 6),
                                                       values(m, 6),
                                                       values(m, 6),
                                                       values(m, 6),
                                                       values(m, 24),
                                                       2,
                                                       3,
                                                       12,
                                                       3,
                                                       false};
        break;
    case OP_gru_cell:
        a.gru_cell = (op_gru_cell){values(m, 18), values(m, 18), values(m, 6), values(m, 6), values(m, 6), 2, 3, 9, 3};
        break;
    case OP_gru_cell_backward:
        a.gru_cell_backward = (op_gru_cell_backward){values(m, 18),
                                                     values(m, 6),
                                                     values(m, 6),
                                                     values(m, 6),
                                                     values(m, 6),
                                                     values(m, 18),
                                                     values(m, 18),
                                                     2,
                                                     3,
                                                     9,
                                                     3,
                                                     false};
        break;
    case OP_convolve:
        a.convolve =
            (op_convolve){values(m, IN), values(m, WEIGHTS), values(m, 3), values(m, IN / 2 * 3), none, window};
        break;
    case OP_convolve_backward_weight:
        a.convolve_backward_weight = (op_convolve_backward_weight){
            values(m, IN), values(m, IN / 2 * 3), values(m, WEIGHTS), values(m, 3), none, window, true};
        break;
    case OP_convolve_backward_input:
        a.convolve_backward_input =
            (op_convolve_backward_input){values(m, WEIGHTS), values(m, IN / 2 * 3), values(m, IN), none, window, false};
        break;
    case OP_pool_max: a.pool_max = (op_pool_max){values(m, IN), values(m, 36), integers(m, 1), pool}; break;
    case OP_pool_max_backward:
        a.pool_max_backward = (op_pool_max_backward){integers(m, 36), values(m, 36), values(m, IN), pool, true};
        break;
    case OP_pool_average: a.pool_average = (op_pool_average){values(m, IN), values(m, 36), pool, 6, 6}; break;
    case OP_pool_average_backward:
        a.pool_average_backward = (op_pool_average_backward){values(m, 36), values(m, IN), pool, 0, 0, false};
        break;
    case OP_cross_entropy:
        a.cross_entropy = (op_cross_entropy){
            values(m, N), integers(m, COLUMNS), values(m, N), step, ROWS, COLUMNS, 0.25, 0, NULL, false};
        break;
    case OP_pointwise_loss:
        a.pointwise_loss =
            (op_pointwise_loss){values(m, N), values(m, N), values(m, N), step, N, LOSS_HUBER, 1, 0.5, true};
        break;
    case OP_squared_error:
        a.squared_error = (op_squared_error){values(m, N), values(m, N), values(m, N), step, N, 0.25, true};
        break;
    case OP_finish_loss: a.finish_loss = (op_finish_loss){step, 3, false}; break;
    case OP_count_correct:
        a.count_correct = (op_count_correct){values(m, N), integers(m, COLUMNS), step, ROWS, COLUMNS};
        break;
    case OP_add_squares: a.add_squares = (op_add_squares){values(m, N), step, N}; break;
    case OP_block_squares: a.block_squares = (op_block_squares){values(m, N), raw(&m->step.squares), N}; break;
    case OP_check_finite: a.check_finite = (op_check_finite){values(m, N), step, N, 3}; break;
    case OP_custom: a.custom = (op_custom){.of = values(m, 1), .function = do_nothing}; break;
    case OP_clip: a.clip = (op_clip){step, 0.5}; break;
    case OP_sgd:
        a.sgd = (op_sgd){values(m, N), values(m, N), values(m, N), none, step, N, 0.9, 0.01, true, 0, 0};
        break;
    case OP_adam:
        a.adam = (op_adam){values(m, N), values(m, N), values(m, N), positive(m, N), none, none, step, N,
                           0.9,          0.999,        1e-8,         0.01,           true, 0,    0};
        break;
    case OP_lion:
        a.lion = (op_lion){values(m, N), values(m, N), values(m, N), none, step, N, 0.9, 0.99, 0.01, 0, 0};
        break;
    case OP_adafactor:
        a.adafactor = (op_adafactor){values(m, N),
                                     values(m, N),
                                     positive(m, ROWS),
                                     positive(m, COLUMNS),
                                     step,
                                     ROWS,
                                     COLUMNS,
                                     0.001,
                                     1,
                                     0.01,
                                     0};
        break;
    case OPERATION_COUNT: break;
    }
    return a;
}

/* The same tensors in fp64. */
static any_args widen(operation op, any_args args, const memory *m)
{
    for (uint32_t t = 0; t < operation_table[op].tensors; t++)
        for (size_t i = 0; args.tensors[t].at && args.tensors[t].type == REMAT_FP32 && i < m->count; i++) {
            ptrdiff_t offset = (float *)args.tensors[t].at - m->narrow[i];
            if ((float *)args.tensors[t].at >= m->narrow[i] && offset < (ptrdiff_t)m->counts[i]) {
                args.tensors[t] = (tensor_ref){m->wide[i] + offset, REMAT_FP64};
                break;
            }
        }
    return args;
}

/* The workspace is the last tensor of those operations that have one. */
static void run(operation op, any_args args)
{
    const kernel_run alone = {1, NULL};
    size_t bytes = kernel_workspace(op, &args);
    void *workspace = malloc(bytes ? bytes : 1);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes);
    if (bytes)
        args.tensors[operation_table[op].tensors - 1] = raw(workspace);
    perform(kernels_reference(), &alone, op, &args);
    free(workspace);
}

static void judge(operation op, memory *m)
{
    const step_block start = {9, 5, 0, 0.01, 0.19, 0.002, 0.7, 4, 0.5, 2, 1, 0};
    any_args args = arguments(op, m), wide = widen(op, args, m);
    m->step = start;
    run(op, args);
    step_block step = m->step;
    int32_t chosen[CHOSEN];
    memcpy(chosen, m->chosen, sizeof chosen);
    m->step = start;
    run(op, wide);
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = 0; k < m->counts[i]; k++)
            if (!(fabs(m->wide[i][k] - (double)m->narrow[i][k]) <= 1e-5 * (1 + fabs(m->wide[i][k]))))
                fail_msg("%s: value %zu of tensor %zu is %.9g in fp64 and %.9g in fp32", operation_table[op].name, k, i,
                         m->wide[i][k], (double)m->narrow[i][k]);
    assert_memory_equal(chosen, m->chosen, sizeof chosen);
    assert_int_equal(step.correct, m->step.correct);
    expect_near(step.loss_sum, m->step.loss_sum, 1e-5);
    expect_near(step.loss, m->step.loss, 1e-5);
    expect_near(step.squares, m->step.squares, 1e-5);
    expect_near(step.scale, m->step.scale, 1e-5);
}

static void fp64_agrees_with_fp32(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int op = 0; op < OPERATION_COUNT; op++)
        for (int i = 0; i < 5; i++) {
            memory m = {.random = {test_random_next(&random)}};
            judge((operation)op, &m);
            memory_close(&m);
        }
}

/* ---- bf16 ---- */

/* To nearest, the even one of two, by arithmetic on the value. */
static uint16_t rounded(double value)
{
    if (value == 0)
        return signbit(value) ? 0x8000 : 0;
    int exponent;
    const double units = nearbyint(frexp(fabs(value), &exponent) * 256); /* 128 .. 256 */
    const int bits = (int)units - 128 + ((exponent + 126) << 7);
    return (uint16_t)(bits | (value < 0 ? 0x8000 : 0));
}

static double half_value(uint16_t half)
{
    const double value = ldexp(1 + (half & 127) / 128.0, (half >> 7 & 255) - 127);
    return (half & 0x7fff) == 0 ? 0 : half >> 15 ? -value : value;
}

static void conversions_round_to_nearest_even(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    test_random random = random_open();
    float *from = values_random(&random, COUNT, -3, 3), back[COUNT];
    for (int i = 0; i < 400; i += 2) { /* ties */
        from[i] = (float)half_value((uint16_t)(0x3f80 + i / 2)) + 0x1p-8f;
        from[i + 1] = -from[i];
    }
    const kernel_table *const *table = kernel_tables();
    for (const kernel_table *t = kernels_reference(); t; t = *table++) {
        uint16_t halves[COUNT];
        const kernel_run run = {2, NULL};
        const tensor_ref half = {halves, REMAT_BF16};
        perform(t, &run, OP_convert, &(op_convert){fp32(from), half, COUNT});
        perform(t, &run, OP_convert, &(op_convert){half, fp32(back), COUNT});
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(halves[i], rounded((double)from[i]));
            assert_true((double)back[i] == half_value(halves[i]));
        }
    }
    free(from);
}

/* Every tensor of numbers in bf16 that has a known extent. halves[i] are those of m->narrow[i]. */
static any_args to_halves(operation op, any_args args, const memory *m, uint16_t *const *halves)
{
    operation_extent extents[OPERATION_MAX_TENSORS];
    operation_extents(op, &args, extents);
    for (uint32_t t = 0; t < operation_table[op].tensors; t++)
        for (size_t i = 0; args.tensors[t].at && args.tensors[t].type == REMAT_FP32 && i < m->count; i++) {
            ptrdiff_t offset = (float *)args.tensors[t].at - m->narrow[i];
            if (extents[t].values && (float *)args.tensors[t].at >= m->narrow[i] && offset < (ptrdiff_t)m->counts[i]) {
                args.tensors[t] = (tensor_ref){halves[i] + offset, REMAT_BF16};
                break;
            }
        }
    return args;
}

/* Records it, with exactly the room that it says it needs, and runs it. */
static void run_recorded(remat_context *context, const char *kernels, operation op, any_args args)
{
    backend *device;
    backend_queue *queue;
    recording calls;
    size_t bytes = kernel_workspace(op, &args);
    void *workspace = malloc(bytes ? bytes : 1);
    if (bytes)
        args.tensors[operation_table[op].tensors - 1] = raw(workspace);
    assert_int_equal(backend_open(context, &(backend_options){.kernels = kernels, .threads = 2}, &device), REMAT_OK);
    assert_int_equal(backend_queue_create(device, &queue), REMAT_OK);
    recording_begin(&calls, device);
    calls.counts = true;
    calls.room = (char *)(uintptr_t)64;
    assert_int_equal(recording_add(&calls, op, &args), REMAT_OK);
    const uint64_t room = calls.room_bytes;
    calls.room = aligned_alloc(64, room + 64);
    assert_int_equal(recording_reserve(&calls), REMAT_OK);
    calls.room_bytes = 0;
    assert_int_equal(recording_add(&calls, op, &args), REMAT_OK);
    assert_int_equal(calls.room_bytes, room);
    assert_int_equal(backend_run(queue, &calls, 0, calls.used), REMAT_OK);
    assert_int_equal(backend_wait(queue), REMAT_OK);
    free(calls.room);
    recording_end(&calls);
    backend_queue_destroy(queue);
    backend_close(device);
    free(workspace);
}

static void judge_halves(remat_context *context, const char *kernels, operation op, memory *m)
{
    const step_block start = {9, 5, 0, 0.01, 0.19, 0.002, 0.7, 4, 0.5, 2, 1, 0};
    uint16_t *halves[MOST];
    any_args args = arguments(op, m), wide = widen(op, args, m), half;
    for (size_t i = 0; i < m->count; i++) {
        halves[i] = malloc(m->counts[i] * sizeof *halves[i]);
        for (size_t k = 0; k < m->counts[i]; k++) {
            halves[i][k] = rounded((double)m->narrow[i][k]);
            m->wide[i][k] = half_value(halves[i][k]);
            m->narrow[i][k] = (float)m->wide[i][k];
        }
    }
    m->step = start;
    run(op, wide);
    const step_block step = m->step;
    m->step = start;
    half = to_halves(op, args, m, halves);
    run_recorded(context, kernels, op, half);
    expect_near(step.loss_sum, m->step.loss_sum, 1e-5);
    for (size_t i = 0; i < m->count; i++) {
        bool is_half = false;
        for (uint32_t t = 0; t < operation_table[op].tensors; t++)
            is_half |= half.tensors[t].type == REMAT_BF16 && (uint16_t *)half.tensors[t].at >= halves[i] &&
                       (uint16_t *)half.tensors[t].at < halves[i] + m->counts[i];
        for (size_t k = 0; k < m->counts[i]; k++) {
            const double got = is_half ? half_value(halves[i][k]) : (double)m->narrow[i][k];
            if (!(fabs(got - m->wide[i][k]) <= 0x1.01p-8 * fabs(m->wide[i][k]) + 2e-5))
                fail_msg("%s, %s: value %zu of tensor %zu is %.9g in fp64 and %.9g in bf16", operation_table[op].name,
                         kernels, k, i, m->wide[i][k], got);
        }
        free(halves[i]);
    }
}

/* Operations on tensors in bf16 give what fp64 gives, rounded once. */
static void bf16_is_rounded_once(void **state)
{
    (void)state;
    remat_context *context;
    test_random random = random_open();
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    unsigned judged = 0;
    for (int op = 0; op < OPERATION_COUNT; op++)
        for (int i = 0; i < 6; i++) {
            memory m = {.random = {test_random_next(&random)}};
            operation_extent extents[OPERATION_MAX_TENSORS];
            const any_args probe = arguments((operation)op, &m);
            const bool known = operation_extents((operation)op, &probe, extents) && op != OP_convert;
            memory_close(&m);
            m = (memory){.random = {test_random_next(&random)}};
            if (known)
                judge_halves(context, i % 2 ? "fast" : "reference", (operation)op, &m);
            memory_close(&m);
            judged += known;
        }
    assert_true(judged >= 6 * 35);
    remat_context_destroy(context);
}

/* A sum that fp32 cannot hold: fp64 kernels compute in fp64 all the way. */
static void fp64_has_its_digits(void **state)
{
    (void)state;
    const double a[2] = {1, 3}, b[2] = {0x1p-40, 0x1p-45};
    double y[2], c;
    const kernel_run alone = {1, NULL};
    tensor_ref ta = {(void *)a, REMAT_FP64}, tb = {(void *)b, REMAT_FP64}, ty = {y, REMAT_FP64}, tc = {&c, REMAT_FP64};
    perform(kernels_reference(), &alone, OP_add, &(op_add){ta, tb, ty, 2});
    assert_true(y[0] == 1 + 0x1p-40 && y[1] == 3 + 0x1p-45);
    perform(kernels_reference(), &alone, OP_gemm,
            &(op_gemm){.a = ty, .b = ty, .c = tc, .m = 1, .n = 1, .k = 2, .lda = 2, .ldb = 1, .ldc = 1});
    assert_true(c == y[0] * y[0] + y[1] * y[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp64_agrees_with_fp32),
        cmocka_unit_test(fp64_has_its_digits),
        cmocka_unit_test(conversions_round_to_nearest_even),
        cmocka_unit_test(bf16_is_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
