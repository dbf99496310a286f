#include "support/device_kernels.h"

#include "backend/extents.h"
#include "backend/recording.h"
#include "base/moment_codes.h"
#include "support/cases.h"

#include <stdlib.h>
#include <string.h>

static const kernel_table table = {.name = "device"};

static struct {
    remat_context *context;
    backend *device;
    backend_queue *queue;
    backend_memory memory;
} rig;

enum { MEMORY = 256 << 20 };

const kernel_table *device_kernels(void)
{
    const char *name = getenv("REMAT_TEST_DEVICE");
    if (!name || !*name)
        return NULL;
    if (!rig.device) {
        assert_int_equal(remat_context_create(NULL, &rig.context), REMAT_OK);
        if (backend_open(rig.context, &(backend_options){.device = name}, &rig.device) != REMAT_OK)
            fail_msg("%s", remat_context_message(rig.context));
        assert_int_equal(backend_queue_create(rig.device, &rig.queue), REMAT_OK);
        assert_int_equal(backend_allocate(rig.device, MEMORY_DEVICE, MEMORY, false, &rig.memory), REMAT_OK);
    }
    return &table;
}

/* ---- how long tensors are ---- */

static uint64_t spread(uint64_t rows, uint64_t columns, uint64_t distance)
{
    return rows && columns ? (rows - 1) * distance + columns : 0;
}

static uint64_t largest_id(const int32_t *ids, size_t rows)
{
    int32_t largest = -1;
    for (size_t i = 0; i < rows; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    return (uint64_t)(largest + 1);
}

/* Values of what operation_extents leaves out: ids, choices, the step block, and all tensors of some operations. */
static uint64_t values_of(operation op, const void *args, uint32_t i)
{
    const uint64_t step = sizeof(step_block);
    switch (op) {
    case OP_gather: {
        const op_gather *p = args;
        return i == 0 ? p->rows : largest_id(p->ids.at, p->rows) * p->width;
    }
    case OP_gather_backward: {
        const op_gather_backward *p = args;
        return i == 0 ? p->rows : p->entries * p->width;
    }
    case OP_rectify: return (((const op_rectify *)args)->count + 7) / 8;
    case OP_rectify_backward: return (((const op_rectify_backward *)args)->count + 7) / 8;
    case OP_pool_max: {
        const op_pool_max *p = args;
        const uint64_t lines = p->window.batch * p->window.in_channels * p->window.out_h;
        return lines * (p->chosen.type == REMAT_INT32 ? p->window.out_w : operation_chosen_row(&p->window));
    }
    case OP_pool_max_backward: {
        const op_pool_max_backward *p = args;
        const uint64_t lines = p->window.batch * p->window.in_channels * p->window.out_h;
        return lines * (p->chosen.type == REMAT_INT32 ? p->window.out_w : operation_chosen_row(&p->window));
    }
    case OP_attention: return ((const op_attention *)args)->batch * ((const op_attention *)args)->steps;
    case OP_attention_backward:
        return ((const op_attention_backward *)args)->batch * ((const op_attention_backward *)args)->steps;
    case OP_attention_cached: {
        const op_attention_cached *p = args;
        const uint64_t width = p->heads * p->size, key_width = attention_key_heads(p->heads, p->group) * p->size;
        return i == 4   ? p->rows
               : i == 0 ? spread(p->rows, width, p->row)
               : i == 3 ? spread(p->rows, width, p->out_row)
                        : spread(p->keys, key_width, p->key_row);
    }
    case OP_put_rows: {
        const op_put_rows *p = args;
        return i == 0 ? spread(p->rows, p->columns, p->x_row) : i == 1 ? p->rows : p->most * p->columns;
    }
    case OP_rotate: return ((const op_rotate *)args)->rows;
    case OP_cross_entropy: return i == 1 ? ((const op_cross_entropy *)args)->rows : step;
    case OP_count_correct: return i == 1 ? ((const op_count_correct *)args)->rows : step;
    case OP_convert: return ((const op_convert *)args)->count;
    case OP_batch_scales: return ((const op_batch_scales *)args)->channels;
    case OP_block_squares: {
        const op_block_squares *p = args;
        return i == 0 ? p->count : (p->count + OPERATION_SQUARES_BLOCK - 1) / OPERATION_SQUARES_BLOCK * sizeof(double);
    }
    case OP_add_squares: return i == 1 ? step : ((const op_add_squares *)args)->count;
    case OP_sgd: {
        const op_sgd *p = args;
        return i == 4 ? step : i == 3 ? (p->count + MOMENT_BLOCK - 1) / MOMENT_BLOCK : p->count;
    }
    case OP_adam: {
        const op_adam *p = args;
        return i == 6 ? step : i >= 4 ? (p->count + MOMENT_BLOCK - 1) / MOMENT_BLOCK : p->count;
    }
    case OP_lion: {
        const op_lion *p = args;
        return i == 4 ? step : i == 3 ? (p->count + MOMENT_BLOCK - 1) / MOMENT_BLOCK : p->count;
    }
    case OP_adafactor: {
        const op_adafactor *p = args;
        return i == 4                 ? step
               : i < 2                ? p->rows * p->columns
               : i == 3               ? p->columns
               : p->column_squares.at ? p->rows
                                      : p->columns;
    }
    case OP_lstm_cell: {
        const op_lstm_cell *p = args;
        return i == 0 ? spread(p->batch, 4 * p->size, p->gates_row) : spread(p->batch, p->size, p->state_row);
    }
    case OP_lstm_cell_backward: {
        const op_lstm_cell_backward *p = args;
        return i == 0 || i == 6   ? spread(p->batch, 4 * p->size, p->gates_row)
               : i == 4 || i == 5 ? p->batch * p->size
                                  : spread(p->batch, p->size, p->state_row);
    }
    case OP_gru_cell: {
        const op_gru_cell *p = args;
        return i == 0   ? spread(p->batch, 3 * p->size, p->gates_row)
               : i == 1 ? p->batch * 3 * p->size
                        : spread(p->batch, p->size, p->state_row);
    }
    case OP_gru_cell_backward: {
        const op_gru_cell_backward *p = args;
        return i == 0 || i > 4 ? spread(p->batch, 3 * p->size, p->gates_row)
               : i == 4        ? p->batch * p->size
                               : spread(p->batch, p->size, p->state_row);
    }
    default: return step; /* operations on the step block alone, and the step of dropout, losses and checks */
    }
}

static bool is_workspace(operation op, uint32_t i)
{
    switch (op) {
    case OP_normalize_backward:
    case OP_group_normalize_backward: return i == 8;
    case OP_attention_backward: return i == 10;
    case OP_convolve:
    case OP_convolve_backward_weight: return i == 4;
    case OP_convolve_backward_input: return i == 3;
    default: return false;
    }
}

/* ---- copies ---- */

typedef struct area {
    char *from, *end; /* on the host */
    char *at;         /* on the device */
} area;

/* Tensors that share memory stay as they are to each other. */
static size_t add_area(area *all, size_t count, char *from, char *end)
{
    for (size_t i = 0; i < count;) {
        if (all[i].from >= end || from >= all[i].end) {
            i++;
            continue;
        }
        from = from < all[i].from ? from : all[i].from;
        end = end > all[i].end ? end : all[i].end;
        all[i] = all[--count];
        i = 0;
    }
    all[count] = (area){from, end, NULL};
    return count + 1;
}

static void expect_done(remat_status status, operation op)
{
    if (status != REMAT_OK)
        fail_msg("%s: %s", operation_table[op].name, remat_context_message(rig.context));
}

/* A GEMM has no activation on a device: that is an operation of its own, row by row where rows are apart. */
static bool perform_activated(operation op, const void *args)
{
    const op_gemm *whole = args;
    if (op != OP_gemm || !whole->activated.at)
        return false;
    op_gemm plain = *whole;
    plain.activated = plain.derivative_at = TENSOR_NONE;
    device_perform(OP_gemm, &plain);
    for (size_t row = 0; row < whole->m; row++) {
        const tensor_ref x = tensor_from(plain.c, row * plain.ldc), y = tensor_from(whole->activated, row * plain.ldc);
        const tensor_ref at = tensor_from(whole->derivative_at, row * plain.ldc);
        if (at.at)
            device_perform(OP_activate_backward,
                           &(op_activate_backward){
                               .x = at, .y = at, .dy = x, .dx = y, .count = whole->n, .kind = whole->activation});
        else
            device_perform(OP_activate, &(op_activate){.x = x, .y = y, .count = whole->n, .kind = whole->activation});
    }
    return true;
}

void device_perform(operation op, const void *args)
{
    if (perform_activated(op, args))
        return;
    union {
        tensor_ref tensors[OPERATION_MAX_TENSORS];
#define X(name, count) op_##name name;
        OPERATION_LIST(X)
#undef X
    } moved;
    operation_extent extents[OPERATION_MAX_TENSORS];
    area areas[OPERATION_MAX_TENSORS];
    size_t count = 0;
    memcpy(&moved, args, operation_table[op].bytes);
    operation_extents(op, args, extents);
    for (uint32_t i = 0; i < operation_table[op].tensors; i++) {
        if (!moved.tensors[i].at || is_workspace(op, i))
            continue;
        const bool counted = extents[i].reads || extents[i].writes; /* then 0 values are none */
        const uint64_t values = counted ? extents[i].values : values_of(op, args, i);
        char *from = moved.tensors[i].at;
        count = add_area(areas, count, from, from + dtype_bytes(moved.tensors[i].type, values) + 1);
    }
    char *next = rig.memory.at + 256;
    for (size_t i = 0; i < count; i++) {
        areas[i].at = next + ((uintptr_t)areas[i].from & 15); /* as badly aligned as on the host */
        const uint64_t bytes = (uint64_t)(areas[i].end - areas[i].from) - 1;
        next += (bytes + 1023) / 512 * 512;
        assert_true(next < rig.memory.at + MEMORY);
        expect_done(backend_copy_in(rig.queue, areas[i].at, areas[i].from, bytes), op);
    }
    for (uint32_t i = 0; i < operation_table[op].tensors; i++) {
        tensor_ref *tensor = &moved.tensors[i];
        if (is_workspace(op, i))
            *tensor = (tensor_ref){next, REMAT_UINT8};
        for (size_t a = 0; tensor->at && !is_workspace(op, i) && a < count; a++)
            if ((char *)tensor->at >= areas[a].from && (char *)tensor->at < areas[a].end) {
                tensor->at = areas[a].at + ((char *)tensor->at - areas[a].from);
                break;
            }
    }
    assert_true(next + backend_workspace(rig.device, op, args) < rig.memory.at + MEMORY);
    recording calls;
    recording_begin(&calls, rig.device);
    expect_done(recording_add(&calls, op, &moved), op);
    expect_done(backend_run(rig.queue, &calls, 0, calls.used), op);
    for (size_t i = 0; i < count; i++)
        expect_done(
            backend_copy_out(rig.queue, areas[i].from, areas[i].at, (uint64_t)(areas[i].end - areas[i].from) - 1), op);
    expect_done(backend_wait(rig.queue), op);
    recording_end(&calls);
}
