#include <math.h>

#include "support/fixture.h"
#include "support/device_kernels.h"
#include "support/kernel_compare.h"

/* An attention with its memory: q, k and v side by side in one matrix, their gradients in another. */
typedef struct attention_case {
    op_attention a;
    op_attention_backward backward;
    float *qkv, *dqkv, *out, *dout, *sums;
    size_t qkv_count, out_count, sums_count;
} attention_case;

static attention_case case_open(test_random *random, size_t batch, size_t heads, size_t steps, size_t size, bool causal,
                                double largest)
{
    attention_case of = {.a = {.batch = batch, .heads = heads, .steps = steps, .size = size, .causal = causal}};
    op_attention *a = &of.a;
    size_t width = heads * size, padding = test_random_below(random, 3);
    a->row = 3 * width + padding;
    a->out_row = width + 2 * padding;
    a->keys = steps;
    a->key_row = a->row;
    of.qkv_count = (batch * steps - 1) * a->row + 3 * width;
    of.out_count = (batch * steps - 1) * a->out_row + width;
    of.sums_count = batch * heads * steps;
    of.qkv = values_random(random, of.qkv_count, -largest, largest);
    of.dqkv = values_random(random, of.qkv_count, -1, 1);
    of.out = values_random(random, of.out_count, -1, 1);
    of.dout = values_random(random, of.out_count, -1, 1);
    of.sums = values_random(random, of.sums_count, -1, 1);
    a->q = fp32(of.qkv);
    a->k = fp32(of.qkv + width);
    a->v = fp32(of.qkv + 2 * width);
    a->out = fp32(of.out);
    a->sums = fp32(of.sums);
    of.backward = (op_attention_backward){.q = a->q,
                                          .k = a->k,
                                          .v = a->v,
                                          .out = a->out,
                                          .sums = a->sums,
                                          .dout = fp32(of.dout),
                                          .dq = fp32(of.dqkv),
                                          .dk = fp32(of.dqkv + width),
                                          .dv = fp32(of.dqkv + 2 * width),
                                          .batch = batch,
                                          .heads = heads,
                                          .steps = steps,
                                          .size = size,
                                          .row = a->row,
                                          .out_row = a->out_row,
                                          .keys = steps,
                                          .key_row = a->row,
                                          .causal = causal};
    return of;
}

static void case_close(attention_case *of)
{
    free(of->qkv);
    free(of->dqkv);
    free(of->out);
    free(of->dout);
    free(of->sums);
}

static void judge(test_random *random, size_t batch, size_t heads, size_t steps, size_t size)
{
    attention_case of = case_open(random, batch, heads, steps, size, test_random_below(random, 2), 2);
    kernel_trial trial = {.op = OP_attention, .args = &of.a, .absolute = 2e-5, .relative = 1e-5};
    trial.outputs[0].values = of.out;
    trial.outputs[0].count = of.out_count;
    trial.outputs[1].values = of.sums;
    trial.outputs[1].count = of.sums_count;
    expect_agreement(&trial);
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_attention, &of.a);
    kernel_trial backward = {.op = OP_attention_backward, .args = &of.backward, .absolute = 1e-4, .relative = 1e-4};
    backward.outputs[0].values = of.dqkv;
    backward.outputs[0].count = of.qkv_count;
    expect_agreement(&backward);
    case_close(&of);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 7, 8, 9, 16, 23, 24, 25, 31, 32, 33, 47, 65, 70};
    static const size_t sizes[] = {1, 2, 3, 5, 8, 12, 15, 16, 17, 31, 33, 48, 64, 65};
    test_random random = random_open();
    for (int i = 0; i < LESS_WHEN_SANITIZED(80, 25); i++)
        judge(&random, 1 + test_random_below(&random, 2), 1 + test_random_below(&random, 3),
              steps[test_random_below(&random, 15)], sizes[test_random_below(&random, 14)]);
    judge(&random, 2, 4, 40, 8); /* enough heads for larger work items */
}

/* More keys than one block holds; heads so wide that blocks are short; wider than the fast kernels take. */
static void several_blocks_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int i = 0; i < 2; i++) {
        judge(&random, 1, 1, 300, 5);
        judge(&random, 1, 1, 521, 3);
        judge(&random, 4, 2, 270, 2);
        judge(&random, 1, 1, 41, 1000);
        judge(&random, 1, 1, 67, 700);
    }
    judge(&random, 1, 1, 3, 1030);
}

/* Positions of rows that hold segments of random lengths. */
static int32_t *positions_random(test_random *random, size_t rows, size_t longest)
{
    int32_t *positions = malloc(rows * sizeof *positions);
    for (size_t i = 0, left = 0; i < rows; i++) {
        if (left == 0)
            left = 1 + test_random_below(random, longest);
        positions[i] = i && left-- > 1 ? positions[i - 1] + 1 : 0;
    }
    return positions;
}

/* The plain formula in double: a row sees the rows from its segment's first one to itself. */
static void expect_masked_softmax(const attention_case *of, const int32_t *positions)
{
    const op_attention *a = &of->a;
    double score[256];
    for (size_t row = 0; row < a->batch * a->steps; row++)
        for (size_t head = 0; head < a->heads; head++) {
            const float *q = of->qkv + row * a->row + head * a->size, *k = q - row * a->row + a->heads * a->size;
            const float *v = k + a->heads * a->size;
            size_t first = row;
            while (first % a->steps && positions[first] != 0)
                first--;
            double sum = 0;
            for (size_t j = first; j <= row; j++) {
                score[j - first] = 0;
                for (size_t c = 0; c < a->size; c++)
                    score[j - first] += (double)q[c] * (double)k[j * a->row + c] / sqrt((double)a->size);
                sum += score[j - first] = exp(score[j - first]);
            }
            for (size_t c = 0; c < a->size; c++) {
                double wanted = 0;
                for (size_t j = first; j <= row; j++)
                    wanted += score[j - first] / sum * (double)v[j * a->row + c];
                expect_near(of->out[row * a->out_row + head * a->size + c], wanted, 1e-5);
            }
        }
}

static void judge_segments(test_random *random, size_t batch, size_t heads, size_t steps, size_t size, size_t longest)
{
    attention_case of = case_open(random, batch, heads, steps, size, true, 1);
    int32_t *positions = positions_random(random, batch * steps, longest);
    of.a.positions = of.backward.positions = (tensor_ref){positions, REMAT_INT32};
    expect_agreement(&((kernel_trial){.op = OP_attention,
                                      .args = &of.a,
                                      .outputs = {{of.out, of.out_count}, {of.sums, of.sums_count}},
                                      .absolute = 2e-5,
                                      .relative = 1e-5}));
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_attention, &of.a);
    expect_masked_softmax(&of, positions);
    expect_agreement(&((kernel_trial){.op = OP_attention_backward,
                                      .args = &of.backward,
                                      .outputs = {{of.dqkv, of.qkv_count}},
                                      .absolute = 1e-4,
                                      .relative = 1e-4}));
    free(positions);
    case_close(&of);
}

static void segments_do_not_see_each_other(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int i = 0; i < LESS_WHEN_SANITIZED(12, 4); i++)
        judge_segments(&random, 1 + test_random_below(&random, 3), 1 + test_random_below(&random, 3),
                       1 + test_random_below(&random, 90), 1 + test_random_below(&random, 20),
                       1 + test_random_below(&random, 40));
}

/* Rows of a cache instead of rows of the same sequence: row by row, what attention to a whole sequence gives. */
static void cached_attention_is_attention(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t i = 0; i < 6; i++) {
        const size_t steps = 1 + test_random_below(&random, 300), window = i % 2 ? 1 + steps / 3 : 0;
        attention_case of = case_open(&random, 1, 3, steps, 1 + 5 * i, true, 1);
        op_attention whole = of.a;
        whole.window = window;
        float *out = values_random(&random, of.out_count, -1, 1);
        const size_t rows = steps < 5 ? steps : 5;
        int32_t positions[5];
        kernel_run run = {1, NULL};
        perform(kernels_reference(), &run, OP_attention, &whole);
        for (size_t r = 0; r < rows; r++)
            positions[r] = (int32_t)(steps - rows + r);
        const size_t first = steps - rows;
        const op_attention_cached cached = {.q = fp32(of.qkv + first * of.a.row),
                                            .k = of.a.k,
                                            .v = of.a.v,
                                            .out = fp32(out + first * of.a.out_row),
                                            .positions = {positions, REMAT_INT32},
                                            .rows = rows,
                                            .heads = 3,
                                            .size = of.a.size,
                                            .row = of.a.row,
                                            .out_row = of.a.out_row,
                                            .keys = steps,
                                            .key_row = of.a.key_row,
                                            .group = 1,
                                            .window = window};
        expect_agreement(&((kernel_trial){.op = OP_attention_cached,
                                          .args = &cached,
                                          .outputs = {{out, of.out_count}},
                                          .absolute = 1e-5,
                                          .relative = 1e-5}));
        perform(kernels_reference(), &run, OP_attention_cached, &cached);
        for (size_t r = first; r < steps; r++)
            for (size_t c = 0; c < 3 * of.a.size; c++)
                expect_near(out[r * of.a.out_row + c], (double)of.out[r * of.a.out_row + c], 1e-5);
        free(out);
        case_close(&of);
    }
}

/* Queries of one sequence and keys of another. */
static void judge_cross(test_random *random, size_t batch, size_t heads, size_t steps, size_t keys, size_t size)
{
    size_t width = heads * size, queries = batch * steps * width, memory = batch * keys * 2 * width;
    float *q = values_random(random, queries, -2, 2), *kv = values_random(random, memory, -2, 2);
    float *out = values_random(random, queries, -1, 1), *dout = values_random(random, queries, -1, 1);
    float *dq = values_random(random, queries, -1, 1), *dkv = values_random(random, memory, -1, 1);
    float *sums = values_random(random, batch * heads * steps, -1, 1);
    const op_attention forward = {.q = fp32(q),
                                  .k = fp32(kv),
                                  .v = fp32(kv + width),
                                  .out = fp32(out),
                                  .sums = fp32(sums),
                                  .batch = batch,
                                  .heads = heads,
                                  .steps = steps,
                                  .size = size,
                                  .row = width,
                                  .out_row = width,
                                  .keys = keys,
                                  .key_row = 2 * width};
    expect_agreement(&((kernel_trial){.op = OP_attention,
                                      .args = &forward,
                                      .outputs = {{out, queries}, {sums, batch * heads * steps}},
                                      .absolute = 2e-5,
                                      .relative = 1e-5}));
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_attention, &forward);
    for (int way = 0; way < 5; way++) { /* replaced, added, added to each alone, and each alone made */
        op_attention_backward backward = {.q = forward.q,
                                          .k = forward.k,
                                          .v = forward.v,
                                          .out = forward.out,
                                          .sums = forward.sums,
                                          .dout = fp32(dout),
                                          .dq = way == 4 ? TENSOR_NONE : fp32(dq),
                                          .dk = way == 3 ? TENSOR_NONE : fp32(dkv),
                                          .dv = way == 3 ? TENSOR_NONE : fp32(dkv + width),
                                          .batch = batch,
                                          .heads = heads,
                                          .steps = steps,
                                          .size = size,
                                          .row = width,
                                          .out_row = width,
                                          .keys = keys,
                                          .key_row = 2 * width,
                                          .add_dq = way == 1,
                                          .add_dkv = way == 1 || way == 2};
        expect_agreement(&((kernel_trial){.op = OP_attention_backward,
                                          .args = &backward,
                                          .outputs = {{dq, queries}, {dkv, memory}},
                                          .absolute = 1e-4,
                                          .relative = 1e-4}));
    }
    float *all[] = {q, kv, out, dout, dq, dkv, sums};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void cross_attention_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][5] = {{1, 1, 1, 1, 1},   {2, 2, 5, 9, 3},      {1, 2, 40, 3, 16}, {2, 1, 3, 300, 8},
                                       {1, 3, 70, 65, 5}, {1, 1, 130, 600, 64}, {1, 1, 3, 5, 1030}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        judge_cross(&random, SHAPES[s][0], SHAPES[s][1], SHAPES[s][2], SHAPES[s][3], SHAPES[s][4]);
}

/* Heads that share keys and values, with and without a window. */
static void judge_groups(test_random *random, size_t heads, size_t group, size_t steps, size_t size, size_t window)
{
    const size_t batch = 2, width = heads * size, key_width = width / group;
    const size_t queries = batch * steps * width, memory = batch * steps * key_width;
    float *q = values_random(random, queries, -2, 2), *out = values_random(random, queries, -1, 1);
    float *k = values_random(random, memory, -2, 2), *v = values_random(random, memory, -2, 2);
    float *dout = values_random(random, queries, -1, 1), *dq = values_random(random, queries, -1, 1);
    float *dk = values_random(random, memory, -1, 1), *dv = values_random(random, memory, -1, 1);
    float *sums = values_random(random, batch * heads * steps, -1, 1);
    op_attention forward = {.q = fp32(q), .k = fp32(k), .v = fp32(v), .out = fp32(out), .sums = fp32(sums)};
    forward.batch = batch, forward.heads = heads, forward.steps = forward.keys = steps, forward.size = size;
    forward.row = forward.out_row = width, forward.key_row = key_width;
    forward.group = group, forward.window = window, forward.causal = true;
    expect_agreement(&((kernel_trial){.op = OP_attention,
                                      .args = &forward,
                                      .outputs = {{out, queries}, {sums, batch * heads * steps}},
                                      .absolute = 2e-5,
                                      .relative = 1e-5}));
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_attention, &forward);
    for (int way = 0; way < 4; way++) { /* replaced, added, without dk, without dv */
        op_attention_backward backward = {.q = forward.q, .k = forward.k, .v = forward.v, .out = forward.out};
        backward.sums = forward.sums, backward.dout = fp32(dout);
        backward.dq = fp32(dq), backward.dk = way == 2 ? TENSOR_NONE : fp32(dk);
        backward.dv = way == 3 ? TENSOR_NONE : fp32(dv);
        backward.batch = batch, backward.heads = heads, backward.steps = backward.keys = steps, backward.size = size;
        backward.row = backward.out_row = width, backward.key_row = key_width;
        backward.group = group, backward.window = window, backward.causal = true;
        backward.add_dq = backward.add_dkv = way == 1;
        expect_agreement(&((kernel_trial){.op = OP_attention_backward,
                                          .args = &backward,
                                          .outputs = {{dq, queries}, {dk, memory}, {dv, memory}},
                                          .absolute = 1e-4,
                                          .relative = 1e-4}));
    }
    /* The same as with a copy of the keys for every head. */
    float *wide_k = values_random(random, queries, 0, 1), *wide_v = values_random(random, queries, 0, 1);
    float *wide_out = values_random(random, queries, 0, 1);
    for (size_t i = 0; i < queries; i++) {
        const size_t from = i / width * key_width + i % width / size / group * size + i % size;
        wide_k[i] = k[from];
        wide_v[i] = v[from];
    }
    forward.k = fp32(wide_k), forward.v = fp32(wide_v), forward.out = fp32(wide_out);
    forward.key_row = width, forward.group = 0;
    perform(kernels_reference(), &run, OP_attention, &forward);
    expect_same_bits(wide_out, out, queries);
    float *all[] = {q, k, v, out, dout, dq, dk, dv, sums, wide_k, wide_v, wide_out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void grouped_heads_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][5] = {{2, 2, 5, 4, 0},   {6, 3, 17, 5, 0},    {4, 2, 70, 16, 0}, {4, 1, 9, 3, 4},
                                       {14, 7, 33, 8, 5}, {8, 4, 300, 16, 70}, {2, 2, 6, 4, 100}, {3, 3, 8, 2, 1}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        judge_groups(&random, SHAPES[s][0], SHAPES[s][1], SHAPES[s][2], SHAPES[s][3], SHAPES[s][4]);
}

static void nothing_to_attend_to(void **state)
{
    (void)state;
    const op_attention empty[] = {{.batch = 0, .heads = 2, .steps = 3, .size = 4, .row = 24, .out_row = 8},
                                  {.batch = 1, .heads = 0, .steps = 3, .size = 4},
                                  {.batch = 1, .heads = 2, .steps = 0, .size = 4, .row = 24, .out_row = 8}};
    const op_attention_backward empty_backward[] = {
        {.batch = 0, .heads = 2, .steps = 3, .size = 4, .row = 24, .out_row = 8},
        {.batch = 1, .heads = 0, .steps = 3, .size = 4},
        {.batch = 1, .heads = 2, .steps = 0, .size = 4, .row = 24, .out_row = 8, .accumulate = true}};
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = kernel_run_open(*table, 2);
        for (size_t i = 0; i < 3; i++) {
            perform(*table, &run, OP_attention, &empty[i]);
            perform(*table, &run, OP_attention_backward, &empty_backward[i]);
        }
        kernel_run_close(&run);
    }
}

/* Scores in the thousands, of which exponentials must not be taken. */
static void large_scores_do_not_overflow(void **state)
{
    (void)state;
    test_random random = random_open();
    attention_case of = case_open(&random, 1, 2, 300, 16, true, 60);
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = kernel_run_open(*table, 1);
        perform(*table, &run, OP_attention, &of.a);
        perform(*table, &run, OP_attention_backward, &of.backward);
        for (size_t i = 0; i < of.sums_count; i++)
            assert_true(isfinite(of.sums[i]));
        for (size_t i = 0; i < of.out_count; i++)
            assert_true(fabsf(of.out[i]) <= 60.01f);
        for (size_t i = 0; i < of.qkv_count; i++)
            assert_true(isfinite(of.dqkv[i]));
        kernel_run_close(&run);
    }
    case_close(&of);
}

/* ---- gradients that are added ---- */

/* Adding gives the bits of the gradient plus what was there, and touches nothing between the rows. */
static void judge_added(const kernel_table *table, test_random *random, int threads)
{
    size_t batch = 1 + test_random_below(random, 3), heads = 1 + test_random_below(random, 3);
    size_t steps = 1 + test_random_below(random, 60), size = 1 + test_random_below(random, 40);
    attention_case of = case_open(random, batch, heads, steps, size, test_random_below(random, 2), 2);
    kernel_run run = kernel_run_open(table, threads);
    float *before = values_copy(of.dqkv, of.qkv_count);
    perform(table, &run, OP_attention, &of.a);
    perform(table, &run, OP_attention_backward, &of.backward);
    for (size_t i = 0; i < of.qkv_count; i++)
        of.dqkv[i] = i % of.a.row < 3 * heads * size ? before[i] + of.dqkv[i] : before[i];
    float *wanted = values_copy(of.dqkv, of.qkv_count);
    memcpy(of.dqkv, before, of.qkv_count * sizeof(float));
    assert_int_equal(kernel_workspace(OP_attention_backward, &of.backward), 0);
    of.backward.accumulate = true;
    size_t bytes = kernel_workspace(OP_attention_backward, &of.backward);
    assert_int_equal(bytes, steps * of.a.row * sizeof(float));
    void *workspace = malloc(bytes);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes); /* NaN: nothing may be read from before */
    of.backward.workspace = raw(workspace);
    perform(table, &run, OP_attention_backward, &of.backward);
    for (size_t i = 0; table == device_kernels() && i < of.qkv_count; i++) /* a device may add in one operation */
        expect_near(of.dqkv[i], wanted[i], 1e-6 + 1e-6 * fabs((double)wanted[i]));
    if (table != device_kernels())
        expect_same_bits(of.dqkv, wanted, of.qkv_count);
    free(workspace);
    free(before);
    free(wanted);
    case_close(&of);
    kernel_run_close(&run);
}

static void gradients_are_added(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int i = 0; i < 12; i++) {
        judge_added(kernels_reference(), &random, 1);
        for (const kernel_table *const *table = kernel_tables(); *table; table++)
            judge_added(*table, &random, 1 + i % 3);
    }
}

/* ---- the reference against the formula, in double ---- */

static double naive_score(const op_attention *a, const double *qkv, size_t q_row, size_t k_row, size_t head)
{
    size_t width = a->heads * a->size;
    double sum = 0;
    for (size_t c = 0; c < a->size; c++)
        sum += qkv[q_row * a->row + head * a->size + c] * qkv[k_row * a->row + width + head * a->size + c];
    return sum / sqrt((double)a->size);
}

/* The sum of dout * out; `out` and `log_sums` are filled where they are not NULL. */
static double naive_attention(const attention_case *of, const double *qkv, double *out, double *log_sums)
{
    const op_attention *a = &of->a;
    size_t width = a->heads * a->size;
    double loss = 0, weights[64];
    for (size_t line = 0; line < a->batch * a->heads * a->steps; line++) {
        size_t i = line % a->steps, head = line / a->steps % a->heads, first = line / a->steps / a->heads * a->steps;
        size_t seen = a->causal ? i + 1 : a->steps;
        double sum = 0;
        for (size_t j = 0; j < seen; j++)
            sum += weights[j] = exp(naive_score(a, qkv, first + i, first + j, head));
        if (log_sums)
            log_sums[line] = log(sum);
        for (size_t c = 0; c < a->size; c++) {
            size_t at = (first + i) * a->out_row + head * a->size + c;
            double value = 0;
            for (size_t j = 0; j < seen; j++)
                value += weights[j] / sum * qkv[(first + j) * a->row + 2 * width + head * a->size + c];
            if (out)
                out[at] = value;
            loss += value * (double)of->dout[at];
        }
    }
    return loss;
}

static void judge_reference(test_random *random, size_t batch, size_t heads, size_t steps, size_t size, bool causal)
{
    attention_case of = case_open(random, batch, heads, steps, size, causal, 1.5);
    kernel_run run = {1, NULL};
    double *qkv = malloc(of.qkv_count * sizeof *qkv), *out = malloc(of.out_count * sizeof *out);
    double *log_sums = malloc(of.sums_count * sizeof *log_sums);
    for (size_t i = 0; i < of.qkv_count; i++)
        qkv[i] = (double)of.qkv[i];
    for (size_t i = 0; i < of.out_count; i++)
        out[i] = (double)of.out[i];
    perform(kernels_reference(), &run, OP_attention, &of.a);
    perform(kernels_reference(), &run, OP_attention_backward, &of.backward);
    naive_attention(&of, qkv, out, log_sums);
    for (size_t i = 0; i < of.out_count; i++)
        expect_near(of.out[i], out[i], 1e-5);
    for (size_t i = 0; i < of.sums_count; i++)
        expect_near(of.sums[i], log_sums[i], 1e-5);
    for (size_t i = 0; i < of.qkv_count; i++) {
        if (i % of.a.row >= 3 * heads * size)
            continue; /* between the rows */
        double value = qkv[i], step = 1e-5;
        qkv[i] = value + step;
        double above = naive_attention(&of, qkv, NULL, NULL);
        qkv[i] = value - step;
        double below = naive_attention(&of, qkv, NULL, NULL);
        qkv[i] = value;
        expect_near(of.dqkv[i], (above - below) / (2 * step), 2e-5);
    }
    free(qkv);
    free(out);
    free(log_sums);
    case_close(&of);
}

static void the_reference_is_the_formula(void **state)
{
    (void)state;
    test_random random = random_open();
    judge_reference(&random, 1, 1, 1, 1, true);
    judge_reference(&random, 2, 2, 5, 3, true);
    judge_reference(&random, 1, 3, 7, 4, false);
    judge_reference(&random, 2, 1, 12, 5, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_the_formula),  cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(several_blocks_agree),          cmocka_unit_test(segments_do_not_see_each_other),
        cmocka_unit_test(cached_attention_is_attention), cmocka_unit_test(cross_attention_agrees),
        cmocka_unit_test(nothing_to_attend_to),          cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(gradients_are_added),           cmocka_unit_test(grouped_heads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
