/* Layers against their definitions, written here anew as plain loops: in double, with the reference kernels.
 * test_layer_bits compares the fast kernels with those. */
#define RIG_REAL  double
#define RIG_DTYPE REMAT_FP64
#include "layers/layer_rig.h"
#include "support/fixture.h"

static void open_rig(layer_rig *rig, fixture *f, layer_case from)
{
    rig_open(rig, f->context, &from, &(backend_options){.kernels = "reference"}, &(test_random){11});
    rig_forward(rig, &rig->call);
}

static void expect_values(const layer_rig *rig, const double *expected)
{
    const real *got = rig_values(rig->call.output);
    for (uint64_t i = 0; i < rig_output_values(rig); i++)
        if (!(fabs(got[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i]))))
            fail_msg("%s: value %llu is %.17g, not %.17g", rig->node.type->name, (unsigned long long)i, got[i],
                     expected[i]);
}

static void expect_shape(const layer_rig *rig, layer_shape shape)
{
    assert_int_equal(rig->node.output.c, shape.c);
    assert_int_equal(rig->node.output.h, shape.h);
    assert_int_equal(rig->node.output.w, shape.w);
}

/* ---- convolutions ---- */

/* Two groups, a stride, zeros 1,0 above and below and 2,1 at the sides. */
static void test_grouped(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state,
             (layer_case){"conv2d",
                          1,
                          {{4, 5, 6}},
                          {"filters=6", "kernel_size=3", "groups=2", "stride=2", "padding=1,0,2,1", "dilation=1,2"},
                          0});
    const real *x = rig_values(rig.call.inputs[0]), *w = rig_values(rig.call.parameters[0]),
               *bias = rig_values(rig.call.parameters[1]);
    double y[6][2][3];
    expect_shape(&rig, (layer_shape){6, 2, 3});
    assert_int_equal(rig.node.parameters[0].dims[1], 2);
    for (int m = 0; m < 6; m++)
        for (int oy = 0; oy < 2; oy++)
            for (int ox = 0; ox < 3; ox++) {
                y[m][oy][ox] = bias[m];
                for (int c = 0; c < 2; c++)
                    for (int ky = 0; ky < 3; ky++)
                        for (int kx = 0; kx < 3; kx++) {
                            int iy = 2 * oy + ky - 1, ix = 2 * ox + 2 * kx - 2;
                            if (iy >= 0 && iy < 5 && ix >= 0 && ix < 6)
                                y[m][oy][ox] +=
                                    w[((m * 2 + c) * 3 + ky) * 3 + kx] * x[((m / 3 * 2 + c) * 5 + iy) * 6 + ix];
                        }
            }
    expect_values(&rig, &y[0][0][0]);
    rig_close(&rig);
}

/* A step sees itself and what came before it. */
static void test_causal(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state,
             (layer_case){"conv1d", 2, {{3, 1, 7}}, {"filters=2", "kernel_size=3", "padding=causal", "dilation=2"}, 0});
    const real *x = rig_values(rig.call.inputs[0]), *w = rig_values(rig.call.parameters[0]),
               *bias = rig_values(rig.call.parameters[1]);
    double y[2][2][7];
    expect_shape(&rig, (layer_shape){2, 1, 7});
    assert_int_equal(rig.node.parameters[0].rank, 3);
    for (int b = 0; b < 2; b++)
        for (int m = 0; m < 2; m++)
            for (int t = 0; t < 7; t++) {
                y[b][m][t] = bias[m];
                for (int c = 0; c < 3; c++)
                    for (int k = 0; k < 3; k++)
                        if (t - 4 + 2 * k >= 0)
                            y[b][m][t] += w[(m * 3 + c) * 3 + k] * x[(b * 3 + c) * 7 + t - 4 + 2 * k];
            }
    expect_values(&rig, &y[0][0][0]);
    rig_close(&rig);
}

/* Every point of the input adds a filter to the output. */
static void test_transposed(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state,
             (layer_case){"conv2d_transpose",
                          1,
                          {{4, 3, 2}},
                          {"filters=2", "kernel_size=3,2", "stride=2,3", "padding=1,0", "output_padding=1", "groups=2"},
                          0});
    const real *x = rig_values(rig.call.inputs[0]), *w = rig_values(rig.call.parameters[0]),
               *bias = rig_values(rig.call.parameters[1]);
    enum { HIGH = 6, WIDE = 6 }; /* (3-1)*2 - 2 + 3 + 1, (2-1)*3 + 2 + 1 */
    double y[2][HIGH][WIDE];
    expect_shape(&rig, (layer_shape){2, HIGH, WIDE});
    assert_true(rig.node.parameters[0].dims[0] == 4 && rig.node.parameters[0].dims[1] == 1);
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < HIGH * WIDE; i++)
            y[m][i / WIDE][i % WIDE] = bias[m];
    for (int c = 0; c < 4; c++)
        for (int iy = 0; iy < 3; iy++)
            for (int ix = 0; ix < 2; ix++)
                for (int ky = 0; ky < 3; ky++)
                    for (int kx = 0; kx < 2; kx++) {
                        int oy = 2 * iy + ky - 1, ox = 3 * ix + kx;
                        if (oy >= 0 && oy < HIGH && ox < WIDE)
                            y[c / 2][oy][ox] += x[(c * 3 + iy) * 2 + ix] * w[(c * 3 + ky) * 2 + kx];
                    }
    expect_values(&rig, &y[0][0][0]);
    rig_close(&rig);
}

/* ---- normalisation ---- */

static void expect_normalized(layer_rig *rig, int channels, int groups, int area)
{
    const real *x = rig_values(rig->call.inputs[0]), *gain = rig_values(rig->call.parameters[0]),
               *shift = rig_values(rig->call.parameters[1]);
    double y[2 * 6 * 12];
    int together = channels / groups * area;
    for (int row = 0; row < 2 * groups; row++) {
        double mean = 0, square = 0;
        for (int i = 0; i < together; i++) {
            mean += x[row * together + i] / together;
            square += x[row * together + i] * x[row * together + i] / together;
        }
        for (int i = 0; i < together; i++) {
            int at = row * together + i, c = at / area % channels;
            double normal = (x[at] - mean) / sqrt(square - mean * mean + 1e-5);
            y[at] = gain ? normal * gain[c] + shift[c] : normal;
        }
    }
    expect_values(rig, y);
}

static void test_groups_are_normalized(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state, (layer_case){"group_normalization", 2, {{6, 3, 4}}, {"groups=3"}, 0});
    expect_normalized(&rig, 6, 3, 12);
    rig_close(&rig);
    open_rig(&rig, *state, (layer_case){"instance_normalization", 2, {{6, 3, 4}}, {0}, 0});
    assert_int_equal(rig.node.parameter_count, 0);
    expect_normalized(&rig, 6, 6, 12);
    rig_close(&rig);
}

/* ---- recurrent layers ---- */

enum { STEPS = 3, IN = 4, SIZE = 2 };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row `gate` of the weights times an input or a state, and the bias. */
static double product(const real *weight, const real *bias, int gate, const double *by, int width)
{
    double sum = bias[gate];
    for (int i = 0; i < width; i++)
        sum += weight[gate * width + i] * by[i];
    return sum;
}

static void run_cell(const layer_rig *rig, bool is_lstm, int sample, double y[STEPS][SIZE])
{
    const real *in = rig_values(rig->call.parameters[0]), *state = rig_values(rig->call.parameters[1]);
    const real *bias_in = rig_values(rig->call.parameters[2]), *bias_state = rig_values(rig->call.parameters[3]);
    double hidden[SIZE] = {0}, cells[SIZE] = {0};
    for (int t = 0; t < STEPS; t++) {
        const double *x = rig_values(rig->call.inputs[0]) + (sample * STEPS + t) * IN;
        double next[SIZE];
        for (int i = 0; i < SIZE; i++) {
            double from_x[4], from_h[4];
            for (int g = 0; g < (is_lstm ? 4 : 3); g++) {
                from_x[g] = product(in, bias_in, g * SIZE + i, x, IN);
                from_h[g] = product(state, bias_state, g * SIZE + i, hidden, SIZE);
            }
            double first = sigmoid(from_x[0] + from_h[0]), second = sigmoid(from_x[1] + from_h[1]);
            if (is_lstm) { /* in, forget, value, out */
                cells[i] = second * cells[i] + first * tanh(from_x[2] + from_h[2]);
                next[i] = sigmoid(from_x[3] + from_h[3]) * tanh(cells[i]);
            } else { /* reset, keep, value */
                next[i] = (1 - second) * tanh(from_x[2] + first * from_h[2]) + second * hidden[i];
            }
        }
        memcpy(hidden, next, sizeof hidden);
        memcpy(y[t], next, sizeof next);
    }
}

static void test_recurrent(void **state)
{
    static const char *const types[] = {"lstm", "gru"};
    for (int k = 0; k < 2; k++) {
        layer_rig rig;
        double y[2][STEPS][SIZE];
        open_rig(&rig, *state, (layer_case){types[k], 2, {{1, STEPS, IN}}, {"unit=2", "return_sequences=true"}, 0});
        for (int sample = 0; sample < 2; sample++)
            run_cell(&rig, k == 0, sample, y[sample]);
        expect_values(&rig, &y[0][0][0]);
        rig_close(&rig);
    }
}

/* Every step of one sequence looks at all of the other. */
static void test_cross_attention(void **state)
{
    enum { STEPS_HERE = 3, KEYS = 4, HEADS = 2, WIDE = 2, WIDTH = HEADS * WIDE };
    layer_rig rig;
    open_rig(&rig, *state,
             (layer_case){"attention_core", 2, {{1, STEPS_HERE, WIDTH}, {1, KEYS, 2 * WIDTH}}, {"num_heads=2"}, 0});
    double y[2][STEPS_HERE][WIDTH];
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < STEPS_HERE; i++)
            for (int head = 0; head < HEADS; head++) {
                const real *q = rig_values(rig.call.inputs[0]) + (b * STEPS_HERE + i) * WIDTH + head * WIDE;
                double weights[KEYS], sum = 0;
                for (int j = 0; j < KEYS; j++) {
                    const real *k = rig_values(rig.call.inputs[1]) + (b * KEYS + j) * 2 * WIDTH + head * WIDE;
                    weights[j] = exp((q[0] * k[0] + q[1] * k[1]) / sqrt(WIDE));
                    sum += weights[j];
                }
                for (int c = 0; c < WIDE; c++) {
                    double *to = &y[b][i][head * WIDE + c];
                    *to = 0;
                    for (int j = 0; j < KEYS; j++)
                        *to += weights[j] / sum *
                               rig_values(rig.call.inputs[1])[(b * KEYS + j) * 2 * WIDTH + WIDTH + head * WIDE + c];
                }
            }
    expect_values(&rig, &y[0][0][0]);
    rig_close(&rig);
}

/* ---- losses ---- */

/* In evaluation the forward computes the loss. */
static double loss_of(layer_rig *rig)
{
    layer_call call = rig->call;
    call.training = false;
    rig->block.loss = 0;
    rig_forward(rig, &call);
    return rig->block.loss;
}

static void expect_loss(layer_rig *rig, double expected)
{
    double got = loss_of(rig);
    if (!(fabs(got - expected) <= 1e-12 * (1 + fabs(expected))))
        fail_msg("%s: the loss is %.17g, not %.17g", rig->node.type->name, got, expected);
}

static void test_pointwise_losses(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state, (layer_case){"huber", 2, {{1, 3, 5}, {1, 3, 5}}, {"delta=0.5"}, 0});
    const real *x = rig_values(rig.call.inputs[0]), *target = rig_values(rig.call.inputs[1]);
    double expected = 0;
    for (int i = 0; i < 30; i++) {
        double d = fabs(x[i] - target[i]);
        expected += d < 0.5 ? d * d / 2 : 0.5 * (d - 0.25);
    }
    expect_loss(&rig, expected / 30);
    rig_close(&rig);

    open_rig(&rig, *state, (layer_case){"binary_cross_entropy", 2, {{1, 3, 5}, {1, 3, 5}}, {"positive_weight=2.5"}, 0});
    x = rig_values(rig.call.inputs[0]);
    target = rig_values(rig.call.inputs[1]);
    expected = 0;
    for (int i = 0; i < 30; i++) {
        double chance = 1 / (1 + exp(-x[i]));
        expected -= 2.5 * target[i] * log(chance) + (1 - target[i]) * log(1 - chance);
    }
    expect_loss(&rig, expected / 30);
    rig_close(&rig);
}

/* The target of a row is 0.7 at the label and 0.1 at each of three classes; what belongs to class c counts weight c. */
static void test_smoothed_and_weighted(void **state)
{
    static const double weights[] = {1, 0.5, 3};
    layer_rig rig;
    open_rig(
        &rig, *state,
        (layer_case){"cross_entropy", 4, {{1, 2, 3}, {1, 1, 2}}, {"label_smoothing=0.3", "class_weights=1,0.5,3"}, 3});
    const real *x = rig_values(rig.call.inputs[0]);
    int32_t *labels = rig.call.inputs[1].at;
    labels[5] = -1;
    double expected = 0;
    for (int row = 0; row < 8; row++) {
        double sum = 0;
        for (int c = 0; c < 3; c++)
            sum += exp(x[3 * row + c]);
        for (int c = 0; c < 3 && labels[row] >= 0; c++)
            expected -= weights[c] * (c == labels[row] ? 0.8 : 0.1) * log(exp(x[3 * row + c]) / sum);
    }
    expect_loss(&rig, expected / 8);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_grouped),          FIXTURE_TEST(test_causal),
        FIXTURE_TEST(test_transposed),       FIXTURE_TEST(test_groups_are_normalized),
        FIXTURE_TEST(test_recurrent),        FIXTURE_TEST(test_cross_attention),
        FIXTURE_TEST(test_pointwise_losses), FIXTURE_TEST(test_smoothed_and_weighted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
