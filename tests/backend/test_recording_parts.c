/* Large operations on tensors in bf16 are recorded in parts. They give what one operation in fp32 gives from the same values,
 * rounded: to the bit, except for sums over rows, whose order is another. */
#include <math.h>

#include "backend/recording.h"
#include "base/half.h"
#include "base/weight_blocks.h"
#include "support/kernel_compare.h"

enum { MOST = 8 };

/* The tensors of an operation in fp32, and in bf16 with the same values. */
typedef struct rig {
    remat_context *context;
    backend *device;
    backend_queue *queue;
    test_random random;
    size_t count, counts[MOST];
    float *full[MOST];
    uint16_t *halves[MOST];
    step_block step;
    bool lacks_blocks; /* kernels that read weights in fp16 or blocks are not found */
    uint64_t room;     /* that the last operation took */
} rig;

static rig open_rig(const char *kernels)
{
    rig r = {.random = random_open()};
    assert_int_equal(remat_context_create(NULL, &r.context), REMAT_OK);
    assert_int_equal(backend_open(r.context, &(backend_options){.kernels = kernels, .threads = 2}, &r.device),
                     REMAT_OK);
    assert_int_equal(backend_queue_create(r.device, &r.queue), REMAT_OK);
    return r;
}

static void clear_rig(rig *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->full[i]);
        free(r->halves[i]);
    }
    r->count = 0;
}

static void close_rig(rig *r)
{
    clear_rig(r);
    backend_queue_destroy(r->queue);
    backend_close(r->device);
    remat_context_destroy(r->context);
}

static size_t some(rig *r, size_t count)
{
    const size_t i = r->count++;
    r->counts[i] = count;
    r->full[i] = values_random(&r->random, count, -1, 1);
    r->halves[i] = malloc(count * sizeof(uint16_t));
    half_pack(half_kernels_list(0), REMAT_BF16, false, r->full[i], r->halves[i], count);
    half_unpack(half_kernels_list(0), REMAT_BF16, r->halves[i], r->full[i], count);
    return i;
}

static tensor_ref tensor(const rig *r, size_t i, bool half)
{
    return half ? (tensor_ref){r->halves[i], REMAT_BF16} : fp32(r->full[i]);
}

/* A device whose GEMMs take neither fp16 nor blocks, such as a GPU: the kernels of the processor, without those that do. */
typedef struct lacking {
    backend base;
    backend_type type;
    const backend *of;
} lacking;

static backend_kernel find_other_kernel(const backend *owner, operation op, const char *types)
{
    const lacking *device = (const lacking *)(const void *)owner;
    return op == OP_gemm && strchr("hqn", types[1]) ? NULL : backend_find_kernel(device->of, op, types);
}

static lacking lacking_of(const backend *device)
{
    lacking made = {.base = *device, .type = *device->type, .of = device};
    made.type.find_kernel = find_other_kernel;
    return made;
}

/* Returns how many calls it became. */
static size_t run(rig *r, operation op, const void *args)
{
    recording calls;
    lacking other = lacking_of(r->device);
    other.base.type = &other.type;
    recording_begin(&calls, r->lacks_blocks ? &other.base : r->device);
    calls.room = (char *)(uintptr_t)64;
    calls.counts = true;
    assert_int_equal(recording_add(&calls, op, args), REMAT_OK);
    char *room = aligned_alloc(64, calls.room_bytes + 64);
    r->room = calls.room_bytes;
    calls.room = room;
    assert_int_equal(recording_reserve(&calls), REMAT_OK);
    assert_int_equal(recording_add(&calls, op, args), REMAT_OK);
    size_t count = 0;
    for (size_t at = 0; at < calls.used; at += recording_call(&calls, at)->bytes)
        count += recording_call(&calls, at)->op == op;
    assert_int_equal(backend_run(r->queue, &calls, 0, calls.used), REMAT_OK);
    assert_int_equal(backend_wait(r->queue), REMAT_OK);
    recording_end(&calls);
    free(room);
    return count;
}

/* Tensor i in bf16 is tensor i in fp32, rounded. */
static void expect_rounded(const rig *r, size_t i)
{
    uint16_t *wanted = malloc(r->counts[i] * sizeof *wanted);
    half_pack(half_kernels_list(0), REMAT_BF16, false, r->full[i], wanted, r->counts[i]);
    assert_memory_equal(wanted, r->halves[i], r->counts[i] * sizeof *wanted);
    free(wanted);
}

static void gemm_by_rows(rig *r)
{
    enum { M = 700, N = 40, K = OPERATION_K_BLOCK + 50, WIDE = 45 }; /* C has gaps between its rows */
    const size_t a = some(r, M * K), b = some(r, K * N), c = some(r, M * WIDE), bias = some(r, N);
    for (int half = 0; half < 2; half++) {
        const op_gemm gemm = {.a = tensor(r, a, half),
                              .b = tensor(r, b, false),
                              .c = tensor(r, c, half),
                              .bias = tensor(r, bias, false),
                              .m = M,
                              .n = N,
                              .k = K,
                              .lda = K,
                              .ldb = K,
                              .ldc = WIDE,
                              .transpose_b = true};
        assert_int_equal(run(r, OP_gemm, &gemm), half && !r->device->rounds_once ? 3 : 1);
    }
    if (!r->device->rounds_once) /* else it rounds B as well: test_pairs.c */
        expect_rounded(r, c);
}

/* Operands in bf16 are read as they are, in one call. */
static void gemm_of_halves(rig *r)
{
    enum { M = 30, N = 20, K = 1000 };
    const size_t a = some(r, K * M), b = some(r, K * N), c = some(r, M * N);
    float *start = values_copy(r->full[c], M * N), *whole = NULL;
    for (int half = 0; half < 2; half++) {
        memcpy(r->full[c], start, M * N * sizeof *start);
        const op_gemm gemm = {.a = tensor(r, a, half),
                              .b = tensor(r, b, half),
                              .c = tensor(r, c, false),
                              .m = M,
                              .n = N,
                              .k = K,
                              .lda = M,
                              .ldb = N,
                              .ldc = N,
                              .transpose_a = true,
                              .accumulate = true};
        assert_int_equal(run(r, OP_gemm, &gemm), 1);
        if (!half)
            whole = values_copy(r->full[c], M * N);
    }
    if (!r->device->rounds_once)
        expect_same_bits(r->full[c], whole, M * N);
    free(start);
    free(whole);
}

/* Bit by bit whether A is in bf16, whether C is, whether B is transposed, and whether C is added to. */
enum { HALF_A = 1, HALF_C = 2, TRANSPOSED = 4, ADDED = 8, BLOCK_CASES = 16 };

/* Weights in fp16 or blocks give the bits of the same weights in fp32. The kernels of the processor read them as they are: no room is taken for
 * them. For others, fewer than all values are unpacked at once. */
static void gemm_of_blocks(rig *r)
{
    enum { M = 4, WIDE = 1088, LONG = 1024, COUNT = WIDE * LONG };
    static const remat_dtype dtypes[] = {REMAT_FP16, REMAT_INT8_BLOCKS, REMAT_INT4_BLOCKS};
    const size_t a = some(r, M * WIDE), b = some(r, COUNT), c = some(r, M * WIDE), kept = some(r, M * WIDE);
    void *blocks = malloc(COUNT * sizeof(uint16_t));
    for (unsigned of = 0; of < 3 * BLOCK_CASES; of++) {
        const remat_dtype dtype = dtypes[of / BLOCK_CASES];
        const size_t n = of & TRANSPOSED ? WIDE : LONG, k = of & TRANSPOSED ? LONG : WIDE;
        op_gemm gemm = {.a = tensor(r, a, of & HALF_A),
                        .c = tensor(r, c, of & HALF_C),
                        .m = M,
                        .n = n,
                        .k = k,
                        .lda = k,
                        .ldb = LONG,
                        .ldc = n,
                        .transpose_b = of & TRANSPOSED,
                        .accumulate = of & ADDED};
        const size_t bytes = dtype_bytes(gemm.c.type, M * n);
        void *result = of & HALF_C ? (void *)r->halves[c] : r->full[c], *wanted = malloc(bytes);
        weight_blocks_pack(dtype, r->full[b], blocks, COUNT);
        weight_blocks_unpack(dtype, blocks, r->full[b], COUNT);
        memcpy(result, of & HALF_C ? (void *)r->halves[kept] : r->full[kept], bytes);
        gemm.b = tensor(r, b, false);
        run(r, OP_gemm, &gemm);
        memcpy(wanted, result, bytes);
        memcpy(result, of & HALF_C ? (void *)r->halves[kept] : r->full[kept], bytes);
        const uint64_t room = r->room;
        gemm.b = (tensor_ref){blocks, dtype};
        assert_int_equal(run(r, OP_gemm, &gemm), 1);
        assert_int_equal(r->room, room);
        assert_memory_equal(result, wanted, bytes);
        memcpy(result, of & HALF_C ? (void *)r->halves[kept] : r->full[kept], bytes);
        r->lacks_blocks = true;
        assert_true(run(r, OP_gemm, &gemm) > 1);
        r->lacks_blocks = false;
        assert_in_range(r->room, room + 1, COUNT * sizeof(float) - 1);
        assert_memory_equal(result, wanted, bytes);
        free(wanted);
    }
    free(blocks);
}

/* The fast kernels take rows in bf16 as they are. */
static void rows_of_norms(rig *r)
{
    const bool parts = strcmp(r->device->kernels, "reference") == 0;
    enum { ROWS = 600, COLUMNS = 33, N = ROWS * COLUMNS };
    const size_t x = some(r, N), y = some(r, N), dy = some(r, N), gain = some(r, COLUMNS), sums = some(r, COLUMNS);
    const size_t dgain = some(r, COLUMNS);
    float means[2][ROWS], scales[2][ROWS], *kept = NULL, *sum = NULL;
    for (int half = 0; half < 2; half++) {
        const op_normalize forward = {.x = tensor(r, x, half),
                                      .gain = tensor(r, gain, false),
                                      .y = tensor(r, y, half),
                                      .means = fp32(means[half]),
                                      .scales = fp32(scales[half]),
                                      .rows = ROWS,
                                      .columns = COLUMNS,
                                      .epsilon = 1e-5};
        assert_int_equal(run(r, OP_normalize, &forward), half && parts ? 3 : 1);
        op_normalize_backward backward = {.x = tensor(r, x, half),
                                          .gain = tensor(r, gain, false),
                                          .means = fp32(means[half]),
                                          .scales = fp32(scales[half]),
                                          .dy = tensor(r, dy, half),
                                          .dx = tensor(r, dy, half), /* in place */
                                          .dgain = tensor(r, dgain, false),
                                          .rows = ROWS,
                                          .columns = COLUMNS};
        void *workspace = malloc(backend_workspace(r->device, OP_normalize_backward, &backward));
        const op_column_sums columns = {tensor(r, dy, half), tensor(r, sums, false), ROWS, COLUMNS, false};
        assert_int_equal(run(r, OP_column_sums, &columns), half && parts ? 10 : 1);
        backward.workspace = raw(workspace);
        assert_int_equal(run(r, OP_normalize_backward, &backward), half && parts ? 3 : 1);
        free(workspace);
        if (!half) {
            kept = values_copy(r->full[dgain], COLUMNS);
            sum = values_copy(r->full[sums], COLUMNS);
        }
    }
    expect_rounded(r, y);
    expect_rounded(r, dy);
    expect_same_bits(means[0], means[1], ROWS);
    expect_same_bits(scales[0], scales[1], ROWS);
    for (int i = 0; i < COLUMNS; i++) {
        expect_near(r->full[dgain][i], kept[i], 1e-4);
        expect_near(r->full[sums][i], sum[i], 1e-4);
    }
    free(kept);
    free(sum);
}

typedef struct attention_shape {
    size_t batch, heads, steps, size;
    bool causal;
    size_t calls; /* that the fast kernels take in bf16 */
} attention_shape;

static bool makes_pairs(const rig *r)
{
    return strcmp(r->device->kernels, "avx512bf16") == 0 || strcmp(r->device->kernels, "amx") == 0;
}

static double dot(const float *x, const float *y, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* sums += |factor * x| */
static void add_magnitudes(double factor, const float *x, size_t count, float *sums)
{
    for (size_t i = 0; i < count; i++)
        sums[i] += (float)fabs(factor * (double)x[i]);
}

/* What a head reads, and bounds of what it writes. */
typedef struct attention_values {
    const float *qkv, *out, *dout;
    float *of_out, *of_dqkv; /* for each value of out and of dqkv, the sum of the magnitudes of its terms */
} attention_values;

/* Adds the terms of one query: out = P V, dQ = dS K, dK = dS' Q, dV = P' dO. It sees so many keys from row `first` on. */
static void add_query(const attention_shape *s, const attention_values *of, size_t first, size_t row, size_t keys,
                      size_t head)
{
    const size_t size = s->size, width = s->heads * size, wide = 3 * width, at = row * wide + head * size,
                 out = row * width + head * size;
    const double scale = 1 / sqrt((double)size), mean = dot(of->dout + out, of->out + out, size);
    double sum = 0;
    for (size_t key = first; key < first + keys; key++)
        sum += exp(scale * dot(of->qkv + at, of->qkv + key * wide + width + head * size, size));
    for (size_t key = first; key < first + keys; key++) {
        const size_t k = key * wide + width + head * size, v = k + width;
        const double weight = exp(scale * dot(of->qkv + at, of->qkv + k, size)) / sum,
                     dscore = scale * weight * (dot(of->dout + out, of->qkv + v, size) - mean);
        add_magnitudes(weight, of->qkv + v, size, of->of_out + out);
        add_magnitudes(dscore, of->qkv + k, size, of->of_dqkv + at);
        add_magnitudes(dscore, of->qkv + at, size, of->of_dqkv + k);
        add_magnitudes(weight, of->dout + out, size, of->of_dqkv + v);
    }
}

static void add_queries(const attention_shape *s, const attention_values *of)
{
    for (size_t row = 0; row < s->batch * s->steps; row++)
        for (size_t head = 0; head < s->heads; head++)
            add_query(s, of, row / s->steps * s->steps, row, s->causal ? row % s->steps + 1 : s->steps, head);
}

/* bf16 has 8 bits: rounding changes a number by 2^-8 of it at most. The result is rounded, and of two `roundings` what it is compared with,
 * too. Sums of pairs have another order than those in fp32: they differ by 2e-6, and with each addition by 2^-24 of the magnitudes of
 * all terms. Where heads are of whole steps of 32, weights and gradients of scores are rounded: each term is off by 2^-8 of it at most,
 * and a sum by 2^-8 of the magnitudes of its terms. One part in 256 more is for the rounding of what is off already. */
static void expect_rounded_or_near(const rig *r, size_t i, int roundings, const attention_shape *s,
                                   const float *magnitudes)
{
    const double terms = (s->size % 32 == 0 ? 0x1.01p-8 : 0) + (double)s->steps * 0x1p-24;
    if (!makes_pairs(r)) {
        expect_rounded(r, i);
        return;
    }
    for (size_t at = 0; at < r->counts[i]; at++) {
        float half;
        half_unpack(half_kernels_list(0), REMAT_BF16, &r->halves[i][at], &half, 1);
        expect_near(half, r->full[i][at],
                    roundings * 0x1p-8 * fabs((double)r->full[i][at]) + terms * (double)magnitudes[at] + 2e-6);
    }
}

/* The backward reads the output: in fp32 it gets that of bf16. */
static void round_output(rig *r, size_t i, size_t count)
{
    uint16_t *halves = malloc(count * sizeof *halves);
    half_pack(half_kernels_list(0), REMAT_BF16, false, r->full[i], halves, count);
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, r->full[i], count);
    free(halves);
}

/* Queries, keys and values are side by side, and so are their gradients. */
static void attention_of(rig *r, const attention_shape *s)
{
    const bool parts = strcmp(r->device->kernels, "reference") == 0;
    const size_t width = s->heads * s->size, rows = s->batch * s->steps, calls = parts ? s->batch : s->calls;
    const size_t qkv = some(r, rows * 3 * width), out = some(r, rows * width), dout = some(r, rows * width),
                 dqkv = some(r, rows * 3 * width);
    const attention_values of = {r->full[qkv], r->full[out], r->full[dout], calloc(r->counts[out], sizeof(float)),
                                 calloc(r->counts[dqkv], sizeof(float))};
    float *sums[2];
    for (int half = 0; half < 2; half++) {
        sums[half] = values_random(&r->random, s->batch * s->heads * s->steps, 0, 1);
        const tensor_ref in = tensor(r, qkv, half), gradient = tensor(r, dqkv, half);
        const op_attention forward = {.q = in,
                                      .k = tensor_from(in, width),
                                      .v = tensor_from(in, 2 * width),
                                      .out = tensor(r, out, half),
                                      .sums = fp32(sums[half]),
                                      .batch = s->batch,
                                      .heads = s->heads,
                                      .steps = s->steps,
                                      .size = s->size,
                                      .row = 3 * width,
                                      .out_row = width,
                                      .keys = s->steps,
                                      .key_row = 3 * width,
                                      .causal = s->causal};
        assert_int_equal(run(r, OP_attention, &forward), half ? calls : 1);
        const op_attention_backward backward = {.q = in,
                                                .k = forward.k,
                                                .v = forward.v,
                                                .out = forward.out,
                                                .sums = forward.sums,
                                                .dout = tensor(r, dout, half),
                                                .dq = gradient,
                                                .dk = tensor_from(gradient, width),
                                                .dv = tensor_from(gradient, 2 * width),
                                                .batch = s->batch,
                                                .heads = s->heads,
                                                .steps = s->steps,
                                                .size = s->size,
                                                .row = 3 * width,
                                                .out_row = width,
                                                .keys = s->steps,
                                                .key_row = 3 * width,
                                                .causal = s->causal};
        if (half) {
            if (makes_pairs(r))
                add_queries(s, &of);
            expect_rounded_or_near(r, out, 2, s, of.of_out);
            half_pack(half_kernels_list(0), REMAT_BF16, false, r->full[out], r->halves[out], rows * width);
        } else {
            round_output(r, out, rows * width);
        }
        assert_int_equal(run(r, OP_attention_backward, &backward), half ? calls : 1);
    }
    if (!makes_pairs(r))
        expect_same_bits(sums[0], sums[1], s->batch * s->heads * s->steps);
    for (size_t i = 0; i < s->batch * s->heads * s->steps; i++)
        expect_near(sums[1][i], sums[0][i], 2e-6);
    expect_rounded_or_near(r, dqkv, 1, s, of.of_dqkv);
    free(of.of_out);
    free(of.of_dqkv);
    free(sums[0]);
    free(sums[1]);
}

/* Heads that fit the memory of a thread are one call; the others are converted sample by sample. */
static void attention_of_halves(rig *r)
{
    static const attention_shape shapes[] = {
        {2, 3, 75, 20, true, 1}, {1, 2, 40, 64, false, 1}, {1, 1, 600, 64, true, 1}, {2, 1, 1030, 64, true, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        attention_of(r, &shapes[i]);
        clear_rig(r);
    }
}

static void parts_give_what_the_whole_gives(void **state)
{
    (void)state;
    for (const kernel_table *const *table = kernels_available(), *next = kernels_reference(); next;) {
        rig r = open_rig(next->name);
        void (*const cases[])(rig *) = {gemm_by_rows, gemm_of_halves, gemm_of_blocks, rows_of_norms,
                                        attention_of_halves};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            cases[i](&r);
            clear_rig(&r);
        }
        close_rig(&r);
        next = *table;
        table += *table != NULL;
    }
}

/* A recording without room says so instead of writing anywhere, and so does an operation that nobody can convert. */
static void what_cannot_be_converted_is_refused(void **state)
{
    (void)state;
    rig r = open_rig("fast");
    recording calls;
    const size_t x = some(&r, 12);
    recording_begin(&calls, r.device);
    const op_softmax softmax = {tensor(&r, x, true), tensor(&r, x, true), 3, 4};
    assert_int_equal(record_softmax(&calls, &softmax), REMAT_INTERNAL);
    calls.room = (char *)(uintptr_t)64;
    calls.counts = true;
    assert_int_equal(record_softmax(&calls, &softmax), REMAT_OK);
    const op_add_squares squares = {tensor(&r, x, true), raw(&r.step), 12};
    assert_int_equal(record_add_squares(&calls, &squares), REMAT_INVALID);
    recording_end(&calls);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_what_the_whole_gives),
        cmocka_unit_test(what_cannot_be_converted_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
