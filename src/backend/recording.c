#include "backend/recording.h"

#include "backend/extents.h"
#include "base/alloc.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

void recording_begin(recording *calls, const backend *owner)
{
    static atomic_uint_fast64_t numbers;
    *calls = (recording){.owner = owner, .number = atomic_fetch_add(&numbers, 1) + 1};
}

remat_status recording_reserve(recording *calls)
{
    size_t counted = calls->used;
    calls->counts = false;
    calls->used = 0;
    if (counted == 0)
        return REMAT_OK;
    calls->bytes = remat_alloc(calls->owner->context, counted, 1);
    calls->capacity = calls->bytes ? counted : 0;
    return calls->bytes ? REMAT_OK : REMAT_NO_MEMORY;
}

void recording_end(recording *calls)
{
    if (calls->owner)
        remat_release(calls->owner->context, calls->bytes, calls->capacity, 1);
    *calls = (recording){0};
}

static remat_status fail_types(const recording *calls, operation op, const tensor_ref *tensors)
{
    char list[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < operation_table[op].tensors && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 tensors[i].at ? remat_dtype_name(tensors[i].type) : "none");
    return remat_fail(calls->owner->context, REMAT_INVALID, NULL, "the %s kernels have no %s of %s",
                      calls->owner->kernels, operation_table[op].name, list);
}

static remat_status add_call(recording *calls, operation op, const void *args, backend_kernel kernel)
{
    const operation_traits *traits = &operation_table[op];
    remat_context *context = calls->owner->context;
    recorded_call call = {.kernel = kernel, .op = op};
    call.bytes = (uint32_t)(sizeof call + ((traits->bytes + 7u) & ~7u));
    if (!calls->counts) {
        REMAT_TRY(remat_grow(context, (void **)&calls->bytes, &calls->capacity, calls->used + call.bytes, 1));
        memcpy(calls->bytes + calls->used, &call, sizeof call);
        memcpy(calls->bytes + calls->used + sizeof call, args, traits->bytes);
    }
    calls->used += call.bytes;
    return REMAT_OK;
}

static backend_kernel find_kernel(const recording *calls, operation op, const void *args)
{
    char types[OPERATION_MAX_TENSORS + 1];
    operation_types(op, args, types);
    return backend_find_kernel(calls->owner, op, types);
}

/* ---- tensors in bf16 ---- */

/* Values in bf16 that one or more tensors of a call use: tensors that overlap are converted together. */
typedef struct region {
    uint16_t *from, *end;
    float *at; /* as fp32, in the room */
    bool reads, writes;
} region;

typedef struct region_list {
    region all[OPERATION_MAX_TENSORS];
    size_t count;
} region_list;

static void add_region(region_list *list, region added)
{
    for (size_t i = 0; i < list->count;) {
        const region *other = &list->all[i];
        if (other->from >= added.end || added.from >= other->end) {
            i++;
            continue;
        }
        /* Where one tensor writes only a part of the whole, the rest of it must be read. */
        bool covers = added.from <= other->from && added.end >= other->end;
        bool covered = other->from <= added.from && other->end >= added.end;
        added.reads |= other->reads || !(covers || covered);
        added.writes |= other->writes;
        added.from = added.from < other->from ? added.from : other->from;
        added.end = added.end > other->end ? added.end : other->end;
        list->all[i] = list->all[--list->count];
        i = 0;
    }
    list->all[list->count++] = added;
}

/* Whether a call gets tensor i converted; bit i of `kept`: it takes that one as it is. */
static bool is_converted(const tensor_ref *tensors, uint32_t i, uint32_t kept)
{
    return tensors[i].at && tensors[i].type == REMAT_BF16 && !(kept >> i & 1u);
}

static bool find_regions(operation op, const tensor_ref *tensors, uint32_t kept, region_list *list)
{
    operation_extent extents[OPERATION_MAX_TENSORS];
    list->count = 0;
    if (!operation_extents(op, tensors, extents))
        return false;
    for (uint32_t i = 0; i < operation_table[op].tensors; i++)
        if (is_converted(tensors, i, kept)) {
            uint16_t *from = tensors[i].at;
            if (extents[i].values == 0)
                return false;
            add_region(list, (region){from, from + extents[i].values, NULL, extents[i].reads, extents[i].writes});
        }
    return list->count > 0;
}

static void place_regions(recording *calls, region_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++) {
        region *r = &list->all[i];
        r->at = (float *)(void *)(calls->room + bytes);
        bytes += ((uint64_t)(r->end - r->from) * sizeof(float) + 63) & ~(uint64_t)63;
    }
    if (bytes > calls->room_bytes)
        calls->room_bytes = bytes;
}

static remat_status convert_region(recording *calls, const region *r, bool back)
{
    const tensor_ref half = {r->from, REMAT_BF16}, full = {r->at, REMAT_FP32};
    const op_convert convert = {back ? full : half, back ? half : full, (size_t)(r->end - r->from)};
    backend_kernel kernel = find_kernel(calls, OP_convert, &convert);
    return kernel ? add_call(calls, OP_convert, &convert, kernel) : fail_types(calls, OP_convert, &convert.x);
}

static void use_region(const region_list *list, tensor_ref *tensor)
{
    for (size_t i = 0; i < list->count; i++) {
        const region *r = &list->all[i];
        uint16_t *at = tensor->at;
        if (at >= r->from && at < r->end) {
            *tensor = (tensor_ref){r->at + (at - r->from), REMAT_FP32};
            return;
        }
    }
}

static remat_status add_some_converted(recording *calls, operation op, const void *args, uint32_t kept)
{
    union {
        tensor_ref tensors[OPERATION_MAX_TENSORS];
#define X(name, count) op_##name name;
        OPERATION_LIST(X)
#undef X
    } widened;
    region_list list;
    if (!find_regions(op, args, kept, &list))
        return fail_types(calls, op, args);
    if (!calls->room)
        return remat_fail(calls->owner->context, REMAT_INTERNAL, NULL, "there is no room to convert the tensors of %s",
                          operation_table[op].name);
    memcpy(&widened, args, operation_table[op].bytes);
    place_regions(calls, &list);
    for (uint32_t i = 0; i < operation_table[op].tensors; i++)
        if (is_converted(args, i, kept))
            use_region(&list, &widened.tensors[i]);
    backend_kernel kernel = find_kernel(calls, op, &widened);
    if (!kernel)
        return fail_types(calls, op, args);
    for (size_t i = 0; i < list.count; i++)
        if (list.all[i].reads)
            REMAT_TRY(convert_region(calls, &list.all[i], false));
    REMAT_TRY(add_call(calls, op, &widened, kernel));
    for (size_t i = 0; i < list.count; i++)
        if (list.all[i].writes)
            REMAT_TRY(convert_region(calls, &list.all[i], true));
    return REMAT_OK;
}

static remat_status add_converted(recording *calls, operation op, const void *args)
{
    return add_some_converted(calls, op, args, 0);
}

/* ---- large operations by parts, so that the room is small and what is converted stays in the cache ---- */

enum { ROWS_AT_ONCE = 256, ROWS_SUMMED = 64 };

/* ---- weights in fewer bits ---- */

/* Room for `count` values behind what is in use, during a nested call. */
typedef struct room_part {
    char *room;
    uint64_t bytes, before;
} room_part;

static float *take_room(recording *calls, uint64_t count, room_part *part)
{
    *part = (room_part){calls->room, (count * sizeof(float) + 63) & ~(uint64_t)63, calls->room_bytes};
    calls->room += part->bytes;
    calls->room_bytes = 0;
    return (float *)(void *)part->room;
}

static void give_room(recording *calls, const room_part *part)
{
    const uint64_t bytes = part->bytes + calls->room_bytes;
    calls->room = part->room;
    calls->room_bytes = bytes > part->before ? bytes : part->before;
}

static remat_status convert(recording *calls, tensor_ref x, tensor_ref y, size_t count)
{
    const op_convert op = {x, y, count};
    backend_kernel kernel = find_kernel(calls, OP_convert, &op);
    return kernel ? add_call(calls, OP_convert, &op, kernel) : fail_types(calls, OP_convert, &op.x);
}

enum { WEIGHTS_AT_ONCE = 1 << 20 }; /* values */

/* For devices whose GEMMs read neither blocks nor fp16. The weights of a part become fp32 in the room, are multiplied, and the next part takes their place. Parts are columns of C, or
 * steps of k at multiples of OPERATION_K_BLOCK: the bits are those of the whole matrix in fp32. */
static remat_status add_weight_parts(recording *calls, const op_gemm *whole)
{
    const bool by_columns = whole->transpose_b;
    const size_t all = by_columns ? whole->n : whole->k;
    size_t step = WEIGHTS_AT_ONCE / (whole->ldb ? whole->ldb : 1);
    step = by_columns ? (step < 64 ? 64 : step / 64 * 64)
                      : (step < OPERATION_K_BLOCK ? OPERATION_K_BLOCK : step / OPERATION_K_BLOCK * OPERATION_K_BLOCK);
    step = step < all ? step : all;
    room_part room;
    const tensor_ref full = {take_room(calls, (uint64_t)step * whole->ldb, &room), REMAT_FP32};
    remat_status status = REMAT_OK;
    for (size_t at = 0; at < all && status == REMAT_OK; at += step) {
        const size_t count = all - at < step ? all - at : step;
        op_gemm part = *whole;
        part.b = full;
        if (by_columns) {
            part.n = count;
            part.c = tensor_from(whole->c, at);
            part.bias = tensor_from(whole->bias, at);
        } else {
            part.k = count;
            part.a = tensor_from(whole->a, at);
            part.accumulate = whole->accumulate || at > 0;
        }
        status = convert(calls, tensor_from(whole->b, at * whole->ldb), full, count * whole->ldb);
        if (status == REMAT_OK)
            status = recording_add(calls, OP_gemm, &part);
    }
    give_room(calls, &room);
    return status;
}

/* A sum in bf16 would be rounded after each part, so it is made in fp32. */
static remat_status add_gemm_by_weights(recording *calls, const op_gemm *whole)
{
    const bool simple = whole->ldc == whole->n && !whole->activated.at && (whole->transpose_b || !whole->bias.at);
    if (!simple || !calls->room)
        return fail_types(calls, OP_gemm, &whole->a);
    if (whole->transpose_b || whole->c.type != REMAT_BF16)
        return add_weight_parts(calls, whole);
    op_gemm sum = *whole;
    room_part room;
    const size_t count = whole->m * whole->n;
    sum.c = (tensor_ref){take_room(calls, count, &room), REMAT_FP32};
    sum.half_result = true;
    remat_status status = whole->accumulate ? convert(calls, whole->c, sum.c, count) : REMAT_OK;
    if (status == REMAT_OK)
        status = add_weight_parts(calls, &sum);
    if (status == REMAT_OK)
        status = convert(calls, sum.c, whole->c, count);
    give_room(calls, &room);
    return status;
}

/* ---- GEMMs ---- */

static size_t rows_from(size_t rows, size_t row, size_t most)
{
    return rows - row < most ? rows - row : most;
}

/* Which operands of a GEMM its kernel reads as they are: both or none. */
static uint32_t kept_operands(const recording *calls, const op_gemm *gemm)
{
    op_gemm full = *gemm;
    full.c.type = full.bias.type = full.activated.type = full.derivative_at.type = REMAT_FP32;
    return find_kernel(calls, OP_gemm, &full) ? 3u : 0;
}

/* Whether a GEMM that is computed in bf16 would round C several times. */
static bool is_long(const recording *calls, const op_gemm *gemm)
{
    return gemm->c.type == REMAT_BF16 && gemm->k > OPERATION_K_BLOCK && !calls->owner->rounds_once;
}

static bool is_half(tensor_ref tensor)
{
    return tensor.type == REMAT_BF16;
}

/* The operand that is not in bf16 becomes bf16 in the room: the product is faster than one in fp32. */
static remat_status add_half_gemm(recording *calls, const op_gemm *whole)
{
    op_gemm halves = *whole;
    tensor_ref *operand = is_half(whole->a) ? &halves.b : &halves.a;
    operation_extent extents[OPERATION_MAX_TENSORS];
    room_part room;
    if (!calls->room)
        return fail_types(calls, OP_gemm, &whole->a);
    operation_extents(OP_gemm, whole, extents);
    const uint64_t count = extents[operand == &halves.a ? 0 : 1].values;
    const tensor_ref from = *operand;
    *operand = (tensor_ref){take_room(calls, (count + 1) / 2, &room), REMAT_BF16};
    remat_status status = convert(calls, from, *operand, count);
    if (status == REMAT_OK)
        status = recording_add(calls, OP_gemm, &halves);
    give_room(calls, &room);
    return status;
}

/* Rows of C are independent. */
static remat_status add_gemm(recording *calls, const op_gemm *whole)
{
    const uint32_t kept = kept_operands(calls, whole);
    op_gemm part = *whole;
    part.half_result |= is_half(whole->c);
    if (calls->owner->half_products && is_half(whole->a) != is_half(whole->b))
        return add_half_gemm(calls, whole);
    const bool packed = dtype_traits_of(whole->b.type)->blocks || whole->b.type == REMAT_FP16;
    if (packed && whole->b.at && !kept)
        return add_gemm_by_weights(calls, whole);
    for (size_t row = 0; row < whole->m; row += part.m) {
        part.m = rows_from(whole->m, row, ROWS_AT_ONCE);
        part.a = tensor_from(whole->a, whole->transpose_a ? row : row * whole->lda);
        part.c = tensor_from(whole->c, row * whole->ldc);
        part.activated = tensor_from(whole->activated, row * whole->ldc);
        part.derivative_at = tensor_from(whole->derivative_at, row * whole->ldc);
        REMAT_TRY(add_some_converted(calls, OP_gemm, &part, kept));
    }
    return REMAT_OK;
}

/* Samples are independent. */
static remat_status add_attention(recording *calls, const op_attention *whole)
{
    op_attention part = *whole;
    part.batch = 1;
    for (size_t sample = 0; sample < whole->batch; sample++) {
        const uint64_t keys = (uint64_t)sample * whole->keys * whole->key_row, row = (uint64_t)sample * whole->steps;
        part.q = tensor_from(whole->q, row * whole->row);
        part.k = tensor_from(whole->k, keys);
        part.v = tensor_from(whole->v, keys);
        part.out = tensor_from(whole->out, row * whole->out_row);
        part.sums = tensor_from(whole->sums, row * whole->heads);
        part.positions = tensor_from(whole->positions, row);
        REMAT_TRY(add_converted(calls, OP_attention, &part));
    }
    return REMAT_OK;
}

static remat_status add_attention_backward(recording *calls, const op_attention_backward *whole)
{
    op_attention_backward part = *whole;
    part.batch = 1;
    for (size_t sample = 0; sample < whole->batch; sample++) {
        const uint64_t keys = (uint64_t)sample * whole->keys * whole->key_row, row = (uint64_t)sample * whole->steps;
        part.q = tensor_from(whole->q, row * whole->row);
        part.dq = tensor_from(whole->dq, row * whole->row);
        part.k = tensor_from(whole->k, keys);
        part.dk = tensor_from(whole->dk, keys);
        part.v = tensor_from(whole->v, keys);
        part.dv = tensor_from(whole->dv, keys);
        part.out = tensor_from(whole->out, row * whole->out_row);
        part.dout = tensor_from(whole->dout, row * whole->out_row);
        part.sums = tensor_from(whole->sums, row * whole->heads);
        part.positions = tensor_from(whole->positions, row);
        REMAT_TRY(add_converted(calls, OP_attention_backward, &part));
    }
    return REMAT_OK;
}

static remat_status add_normalize(recording *calls, const op_normalize *whole)
{
    op_normalize part = *whole;
    for (size_t row = 0; row < whole->rows; row += part.rows) {
        part.rows = rows_from(whole->rows, row, ROWS_AT_ONCE);
        part.x = tensor_from(whole->x, row * whole->columns);
        part.y = tensor_from(whole->y, row * whole->columns);
        part.means = tensor_from(whole->means, row);
        part.scales = tensor_from(whole->scales, row);
        REMAT_TRY(add_converted(calls, OP_normalize, &part));
    }
    return REMAT_OK;
}

/* The gradients of gain and shift are added up part by part. */
static remat_status add_normalize_backward(recording *calls, const op_normalize_backward *whole)
{
    op_normalize_backward part = *whole;
    for (size_t row = 0; row < whole->rows; row += part.rows) {
        part.rows = rows_from(whole->rows, row, ROWS_AT_ONCE);
        part.x = tensor_from(whole->x, row * whole->columns);
        part.dy = tensor_from(whole->dy, row * whole->columns);
        part.dx = tensor_from(whole->dx, row * whole->columns);
        part.means = tensor_from(whole->means, row);
        part.scales = tensor_from(whole->scales, row);
        part.accumulate_parameters = whole->accumulate_parameters || row > 0;
        REMAT_TRY(add_converted(calls, OP_normalize_backward, &part));
    }
    return REMAT_OK;
}

static remat_status add_column_sums(recording *calls, const op_column_sums *whole)
{
    op_column_sums part = *whole;
    if (whole->sums.type == REMAT_BF16)
        return add_converted(calls, OP_column_sums, whole);
    for (size_t row = 0; row < whole->rows; row += part.rows) {
        part.rows = rows_from(whole->rows, row, ROWS_SUMMED);
        part.x = tensor_from(whole->x, row * whole->columns);
        part.accumulate = whole->accumulate || row > 0;
        REMAT_TRY(add_converted(calls, OP_column_sums, &part));
    }
    return REMAT_OK;
}

/* Whether the kernel for these types takes these sizes, too. */
static bool takes_sizes(const recording *calls, operation op, const void *args)
{
    if (op == OP_gemm)
        return !is_long(calls, args);
    if (!calls->owner->small_half_heads)
        return true;
    if (op == OP_attention) {
        const op_attention *p = args;
        return !is_half(p->q) || attention_takes_halves(p->steps, p->size, p->window);
    }
    if (op == OP_attention_backward) {
        const op_attention_backward *p = args;
        return !is_half(p->q) || (attention_takes_halves(p->steps, p->size, p->window) && p->group <= 1 &&
                                  !p->accumulate && !p->add_dq && !p->add_dkv);
    }
    return true;
}

remat_status recording_add(recording *calls, operation op, const void *args)
{
    backend_kernel kernel = find_kernel(calls, op, args);
    if (kernel && takes_sizes(calls, op, args))
        return add_call(calls, op, args, kernel);
    switch (op) {
    case OP_gemm: return add_gemm(calls, args);
    case OP_attention: return add_attention(calls, args);
    case OP_attention_backward: return add_attention_backward(calls, args);
    case OP_normalize: return add_normalize(calls, args);
    case OP_normalize_backward: return add_normalize_backward(calls, args);
    case OP_column_sums: return add_column_sums(calls, args);
    default: return add_converted(calls, op, args);
    }
}
