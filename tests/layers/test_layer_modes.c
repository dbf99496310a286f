/* What differs between training, evaluation and a forward that runs again: batch statistics, dropout, losses; and layers
 * whose input wants no gradient. */
#include "layers/layer_rig.h"
#include "support/fixture.h"

static void open_rig(layer_rig *rig, fixture *f, layer_case from)
{
    rig_open(rig, f->context, &from, &(backend_options){.kernels = "reference"}, &(test_random){3});
}

static void test_running_statistics(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state, (layer_case){"batch_normalization", 4, {{1, 1, 2}}, {"momentum=0.25"}, 0});
    real *mean = rig_values(rig.call.parameters[2]), *variance = rig_values(rig.call.parameters[3]);
    static const real x[] = {1, 10, 2, 10, 3, 10, 6, 14}; /* of channel 0: mean 3, unbiased variance 14/3 */
    memcpy(rig.call.inputs[0].at, x, sizeof x);
    mean[0] = 1;
    variance[0] = 2;
    rig_forward(&rig, &rig.call);
    assert_true(fabsf(mean[0] - 1.5f) < 1e-6f);
    assert_true(fabsf(variance[0] - (2 + 0.25f * (14.0f / 3 - 2))) < 1e-6f);

    /* Again: the same output, and the batch is not counted twice. */
    real first[8], kept[2] = {mean[0], variance[0]};
    memcpy(first, rig.call.output.at, sizeof first);
    rig.call.is_recompute = true;
    rig_forward(&rig, &rig.call);
    assert_memory_equal(rig.call.output.at, first, sizeof first);
    assert_true(mean[0] == kept[0] && variance[0] == kept[1]);

    /* Evaluation: by the running statistics, which stay as they are. */
    rig.call.training = rig.call.is_recompute = false;
    rig_forward(&rig, &rig.call);
    real gain = *rig_values(rig.call.parameters[0]), shift = *rig_values(rig.call.parameters[1]);
    assert_true(fabsf(rig_values(rig.call.output)[2] - ((2 - kept[0]) / sqrtf(kept[1] + 1e-5f) * gain + shift)) <
                1e-5f);
    assert_true(mean[0] == kept[0] && variance[0] == kept[1]);
    rig_close(&rig);
}

/* An image has a mean for each channel, a vector one for each value. */
static void test_channels(void **state)
{
    fixture *f = *state;
    static const struct {
        layer_shape in;
        uint64_t channels;
    } shapes[] = {{{3, 5, 7}, 3}, {{1, 5, 7}, 1}, {{1, 1, 7}, 7}, {{3, 1, 1}, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        layer_rig rig;
        expect_ok(f, rig_resolve(&rig, f->context, &(layer_case){"batch_normalization", 2, {shapes[i].in}, {0}, 0},
                                 &(backend_options){0}));
        assert_int_equal(rig.node.parameters[0].dims[0], shapes[i].channels);
        assert_true(!rig.node.parameters[1].statistic && rig.node.parameters[2].statistic);
        rig_forget(&rig);
    }
}

static void test_dropout_modes(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state, (layer_case){"dropout", 5, {{1, 10, 100}}, {"rate=0.2"}, 0});
    const real *x = rig_values(rig.call.inputs[0]);
    rig_forward(&rig, &rig.call);
    int dropped = 0;
    for (int i = 0; i < 5000; i++) {
        dropped += rig_values(rig.call.output)[i] == 0;
        assert_true(rig_values(rig.call.output)[i] == 0 || fabsf(rig_values(rig.call.output)[i] - x[i] / 0.8f) < 1e-6f);
    }
    assert_in_range(dropped, 850, 1150);
    rig.call.training = false;
    rig_forward(&rig, &rig.call);
    assert_memory_equal(rig.call.output.at, x, 5000 * sizeof(real));
    rig_close(&rig);
}

/* In training the forward of a loss does nothing and the input gradient counts it, whether anybody wants the gradient or not;
 * in evaluation it is the other way round. */
static double count_loss(layer_rig *rig)
{
    tensor_ref gradient = rig->call.d_inputs[0];
    assert_int_equal(rig->node.flops[LAYER_FORWARD], 0);
    rig->block.loss = 0;
    rig->call.training = true;
    rig_forward(rig, &rig->call);
    rig->call.is_recompute = true;
    rig_forward(rig, &rig->call);
    assert_true(rig->block.loss == 0);
    rig->call.d_inputs[0] = TENSOR_NONE;
    rig_backward(rig, &rig->call);
    double unwanted = rig->block.loss;
    rig->block.loss = 0;
    rig->call.d_inputs[0] = gradient;
    rig_backward(rig, &rig->call);
    double trained = rig->block.loss;
    assert_true(trained == unwanted);
    rig->block.loss = 0;
    rig->call.training = false;
    rig_forward(rig, &rig->call);
    assert_true(trained > 0 && fabs(rig->block.loss - trained) < 1e-12);
    return trained;
}

/* Losses are means over the batch, not multiplied by the share of a micro-batch. */
static void test_losses(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state, (layer_case){"mse", 2, {{1, 1, 2}, {1, 1, 2}}, {0}, 0});
    memcpy(rig.call.inputs[0].at, (real[]){1, 2, 3, 4}, 4 * sizeof(real));
    memcpy(rig.call.inputs[1].at, (real[]){1, 1, 1, 1}, 4 * sizeof(real));
    assert_true(count_loss(&rig) == (0 + 1 + 4 + 9) / 4.0);
    assert_true(rig_values(rig.call.d_inputs[0])[3] == 2 * 3 * 0.25f / 4);
    rig_close(&rig);

    open_rig(&rig, *state, (layer_case){"cross_entropy", 3, {{1, 1, 4}, {1, 1, 1}}, {0}, 4});
    memset(rig.call.inputs[0].at, 0, 12 * sizeof(real));
    assert_true(fabs(count_loss(&rig) - log(4)) < 1e-6);
    rig_close(&rig);

    open_rig(&rig, *state, (layer_case){"projection_cross_entropy", 2, {{1, 3, 4}, {1, 1, 3}}, {"unit=5"}, 5});
    count_loss(&rig);
    rig_close(&rig);
}

/* The first trained layer of a model has an input that nobody wants the gradient of; its parameters get theirs all the
 * same. */
static void test_unwanted_gradients(void **state)
{
    fixture *f = *state;
    static const backend_options options[] = {{.kernels = "reference"}, {.kernels = "fast"}};
    for (size_t number = 0; number < 2 * LAYER_CASE_COUNT; number++) {
        const layer_case *from = &layer_cases[number / 2];
        layer_rig wanted, unwanted;
        rig_open(&wanted, f->context, from, &options[number % 2], &(test_random){number});
        rig_open(&unwanted, f->context, from, &options[number % 2], &(test_random){number});
        rig_forward(&wanted, &wanted.call);
        rig_forward(&unwanted, &unwanted.call);
        rig_backward(&wanted, &wanted.call);
        layer_call call = unwanted.call;
        memset(call.d_inputs, 0, sizeof call.d_inputs);
        if (!unwanted.node.passes_gradient)
            rig_backward(&unwanted, &call);
        for (uint32_t p = 0; p < wanted.node.parameter_count && !unwanted.node.passes_gradient; p++)
            if (wanted.call.gradients[p].at)
                assert_memory_equal(call.gradients[p].at, wanted.call.gradients[p].at,
                                    rig_parameter_values(&wanted, p) * sizeof(real));
        rig_close(&wanted);
        rig_close(&unwanted);
    }
}

/* Adding to a gradient that another layer began takes more workspace than making it. */
static void test_accumulate_workspace(void **state)
{
    fixture *f = *state;
    layer_rig rig;
    expect_ok(f, rig_resolve(&rig, f->context, &(layer_case){"attention_core", 2, {{1, 5, 12}}, {"num_heads=2"}, 0},
                             &(backend_options){0}));
    assert_int_equal(rig.node.accumulate_workspace, 5 * 12 * sizeof(real));
    rig_forget(&rig);
}

/* Padding goes above and left; what "same" has left over goes below and right. */
static void test_padding(void **state)
{
    layer_rig rig;
    open_rig(&rig, *state,
             (layer_case){"conv2d", 1, {{1, 2, 3}}, {"filters=1", "kernel_size=1", "padding=2,1", "bias=false"}, 0});
    const real *x = rig_values(rig.call.inputs[0]);
    rig_forward(&rig, &rig.call);
    assert_true(rig.node.output.h == 6 && rig.node.output.w == 5);
    for (int row = 0; row < 6; row++)
        for (int column = 0; column < 5; column++) {
            bool inside = row >= 2 && row < 4 && column >= 1 && column < 4;
            real expected = inside ? x[(row - 2) * 3 + column - 1] * *rig_values(rig.call.parameters[0]) : 0;
            assert_true(rig_values(rig.call.output)[row * 5 + column] == expected);
        }
    rig_close(&rig);

    open_rig(&rig, *state,
             (layer_case){"conv2d", 1, {{1, 1, 3}}, {"filters=1", "kernel_size=1,2", "padding=same", "bias=false"}, 0});
    x = rig_values(rig.call.inputs[0]);
    rig_forward(&rig, &rig.call);
    assert_true(rig.node.output.h == 1 && rig.node.output.w == 3);
    assert_true(rig_values(rig.call.output)[2] == x[2] * *rig_values(rig.call.parameters[0]));
    rig_close(&rig);
}

/* The mean of a window that reaches over the edge is that of the points inside: ones stay ones. */
static void test_average_padding(void **state)
{
    static const char *const paddings[] = {"padding=same", "padding=1", "padding=1,0"};
    for (size_t i = 0; i < sizeof paddings / sizeof paddings[0]; i++) {
        layer_rig rig;
        open_rig(
            &rig, *state,
            (layer_case){"pooling2d", 2, {{3, 5, 7}}, {"pooling=average", "pool_size=3", "stride=2", paddings[i]}, 0});
        real *x = rig_values(rig.call.inputs[0]);
        for (uint64_t k = 0; k < rig_input_values(&rig, 0); k++)
            x[k] = 1;
        rig_forward(&rig, &rig.call);
        for (uint64_t k = 0; k < rig_output_values(&rig); k++)
            assert_true(fabsf(rig_values(rig.call.output)[k] - 1) < 1e-6f);
        rig_close(&rig);
    }
}

/* 3 x 3 places of ones: with `count_padding` the sum of a window is divided by all its places, up to the end of the padding.
 * What ceil_mode adds beyond the padding does not count. The figures are those of PyTorch's avg_pool2d. */
static void test_counted_padding(void **state)
{
    static const struct {
        const char *padding, *ceil_mode;
        float corners[4];
        uint64_t outputs;
    } cases[] = {
        {"padding=1", "ceil_mode=false", {4 / 9.0f, 4 / 9.0f, 4 / 9.0f, 4 / 9.0f}, 2},
        {"padding=0", "ceil_mode=true", {1, 1, 1, 1}, 2},
        {"padding=same", "ceil_mode=false", {4 / 9.0f, 4 / 9.0f, 4 / 9.0f, 4 / 9.0f}, 2},
        {"padding=0,1,0,1", "ceil_mode=true", {1, 0.5f, 0.5f, 0.25f}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        layer_rig rig;
        const char *size = i == 1 ? "pool_size=2" : "pool_size=3";
        open_rig(&rig, *state,
                 (layer_case){
                     "pooling2d",
                     1,
                     {{1, 3, 3}},
                     {"pooling=average", size, "stride=2", "count_padding=true", cases[i].padding, cases[i].ceil_mode},
                     0});
        real *x = rig_values(rig.call.inputs[0]);
        for (uint64_t k = 0; k < 9; k++)
            x[k] = 1;
        rig_forward(&rig, &rig.call);
        assert_int_equal(rig.node.output.h, cases[i].outputs);
        for (uint64_t k = 0; k < 4; k++)
            assert_true(fabsf(rig_values(rig.call.output)[k] - cases[i].corners[k]) < 1e-6f);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_running_statistics),
        FIXTURE_TEST(test_channels),
        FIXTURE_TEST(test_dropout_modes),
        FIXTURE_TEST(test_losses),
        FIXTURE_TEST(test_unwanted_gradients),
        FIXTURE_TEST(test_accumulate_workspace),
        FIXTURE_TEST(test_padding),
        FIXTURE_TEST(test_average_padding),
        FIXTURE_TEST(test_counted_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
