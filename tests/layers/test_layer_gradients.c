/* Gradients of every layer against central differences: in double, with the reference kernels. */
#define RIG_REAL  double
#define RIG_DTYPE REMAT_FP64
#include "layers/layer_rig.h"

static const backend_options reference = {.kernels = "reference"};

static const double LARGEST_ERROR = 1e-6;

static int setup(void **state)
{
    return remat_context_create(NULL, (remat_context **)state) == REMAT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    remat_context_destroy(*state);
    return 0;
}

/* What the gradients are gradients of: the loss, or the sum of all outputs times the gradient given for each. */
static double objective(layer_rig *rig)
{
    layer_call call = rig->call;
    call.is_recompute = !rig->node.loss; /* leave statistics alone */
    call.training = !rig->node.loss;     /* the loss that is made along with the gradient is made here */
    rig->block.loss = 0;
    rig_forward(rig, &call);
    double sum = rig->block.loss * call.loss_share;
    for (uint64_t i = 0; i < rig_output_values(rig) && !rig->node.loss; i++)
        sum += rig_values(call.output)[i] * rig_values(rig->d_output)[i];
    return sum;
}

/* The largest difference as a share of the largest value. */
static double error_of(const real *a, const real *b, uint64_t count)
{
    double largest = 1e-4, error = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (isnan(a[i]) || isnan(b[i]))
            return HUGE_VAL;
        largest = fmax(largest, fmax(fabs(a[i]), fabs(b[i])));
        error = fmax(error, fabs(a[i] - b[i]));
    }
    return error / largest;
}

static void expect_close(const layer_rig *rig, size_t number, const char *what, uint32_t position, double error,
                         double allowed)
{
    if (!(error <= allowed))
        fail_msg("case %zu, %s: %s %u is off by %.2e", number, rig->node.type->name, what, position, error);
}

static real *differences(layer_rig *rig, tensor_ref of, uint64_t count)
{
    real *values = rig_values(of);
    const double step = 1e-5;
    real *result = rig_alloc(count * sizeof(real));
    for (uint64_t i = 0; i < count; i++) {
        real kept = values[i];
        values[i] = kept + step;
        double above = objective(rig);
        values[i] = kept - step;
        double below = objective(rig);
        values[i] = kept;
        result[i] = (above - below) / (2 * step);
    }
    return result;
}

static void check_differences(layer_rig *rig, size_t number)
{
    layer_call *call = &rig->call;
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        if (call->d_inputs[i].at) {
            uint64_t count = rig_input_values(rig, i);
            real *expected = differences(rig, call->inputs[i], count);
            expect_close(rig, number, "the gradient of input", i, error_of(call->d_inputs[i].at, expected, count),
                         LARGEST_ERROR);
            free(expected);
        }
    for (uint32_t p = 0; p < rig->node.parameter_count; p++)
        if (call->gradients[p].at) {
            uint64_t count = rig_parameter_values(rig, p);
            real *expected = differences(rig, call->parameters[p], count);
            expect_close(rig, number, "the gradient of parameter", p, error_of(call->gradients[p].at, expected, count),
                         LARGEST_ERROR);
            free(expected);
        }
}

/* Adding to what is there gives the sum of both. */
static void expect_sum(const layer_rig *rig, size_t number, const char *what, uint32_t i, tensor_ref before,
                       tensor_ref made, tensor_ref added, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        rig_values(before)[k] += rig_values(made)[k];
    expect_close(rig, number, what, i, error_of(before.at, added.at, count), 1e-13);
    free(before.at);
    free(added.at);
}

static void check_accumulate(layer_rig *rig, size_t number, test_random *random)
{
    layer_call added = rig->call;
    tensor_ref inputs[LAYER_MAX_INPUTS] = {0}, parameters[LAYER_MAX_PARAMETERS] = {0};
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        if (rig->call.d_inputs[i].at) {
            inputs[i] = rig_spread(random, rig_input_values(rig, i));
            added.d_inputs[i] = rig_copy(inputs[i], rig_input_values(rig, i));
            added.accumulate_inputs[i] = true;
        }
    for (uint32_t p = 0; p < rig->node.parameter_count; p++)
        if (rig->call.gradients[p].at) {
            parameters[p] = rig_spread(random, rig_parameter_values(rig, p));
            added.gradients[p] = rig_copy(parameters[p], rig_parameter_values(rig, p));
            added.accumulate_gradients[p] = true;
        }
    rig_backward(rig, &added);
    for (uint32_t i = 0; i < rig->node.input_count; i++)
        if (inputs[i].at)
            expect_sum(rig, number, "the gradient added to that of input", i, inputs[i], rig->call.d_inputs[i],
                       added.d_inputs[i], rig_input_values(rig, i));
    for (uint32_t p = 0; p < rig->node.parameter_count; p++)
        if (parameters[p].at)
            expect_sum(rig, number, "the gradient added to that of parameter", p, parameters[p], rig->call.gradients[p],
                       added.gradients[p], rig_parameter_values(rig, p));
}

static void test_central_differences(void **state)
{
    uint64_t seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    test_random random = {seed};
    for (size_t number = 0; number < LAYER_CASE_COUNT; number++) {
        layer_rig rig;
        rig_open(&rig, *state, &layer_cases[number], &reference, &random);
        rig_forward(&rig, &rig.call);
        rig.block.loss = 0;
        rig_backward(&rig, &rig.call);
        double loss = rig.block.loss;
        check_differences(&rig, number);
        objective(&rig); /* outputs and saved tensors as they were */
        check_accumulate(&rig, number, &random);
        if (strcmp(layer_cases[number].type, "projection_cross_entropy") == 0) {
            double expected = objective(&rig) / rig.call.loss_share;
            assert_true(fabs(loss - expected) <= 1e-13 * expected);
        }
        rig_close(&rig);
    }
}

/* Other cases must not be forgotten when a type is added. */
static void test_every_type_has_a_case(void **state)
{
    (void)state;
    const layer_type *type;
    for (size_t i = 0; (type = layer_type_list(i)); i++) {
        bool found = !type->resolve || strcmp(type->name, "input") == 0; /* composites and data have no gradients */
        for (size_t k = 0; k < LAYER_CASE_COUNT; k++)
            found |= strcmp(layer_cases[k].type, type->name) == 0;
        if (!found)
            fail_msg("layer_cases.h has no case of %s", type->name);
    }
}

/* Rows with a negative label add nothing, to the loss and to the gradient. */
static void test_negative_labels(void **state)
{
    test_random random = {17};
    layer_rig rig;
    rig_open(&rig, *state, &(layer_case){"cross_entropy", 2, {{1, 3, 5}, {1, 1, 3}}, {0}, 5}, &reference, &random);
    int32_t *labels = rig.call.inputs[1].at;
    labels[1] = labels[4] = -1;
    rig_backward(&rig, &rig.call);
    check_differences(&rig, 0);
    for (int i = 0; i < 5; i++)
        assert_true(rig_values(rig.call.d_inputs[0])[5 + i] == 0);
    rig_close(&rig);
}

/* x * x: both inputs are one tensor, and the gradients of both are one sum. In place gives the same bits. */
static void test_square(void **state)
{
    test_random random = {18};
    layer_rig rig;
    rig_open(&rig, *state, &(layer_case){"multiply", 2, {{1, 3, 5}, {1, 3, 5}}, {0}, 0}, &reference, &random);
    layer_call call = rig.call;
    call.inputs[1] = call.inputs[0];
    call.d_inputs[1] = call.d_inputs[0];
    call.accumulate_inputs[1] = true;
    rig_backward(&rig, &call);
    for (int i = 0; i < 30; i++)
        assert_true(fabs(rig_values(call.d_inputs[0])[i] -
                         2 * rig_values(call.inputs[0])[i] * rig_values(rig.d_output)[i]) < 1e-15);
    tensor_ref in_place = rig_copy(rig.d_output, 30);
    call.d_inputs[0] = call.d_inputs[1] = in_place;
    call.d_output = in_place;
    rig_backward(&rig, &call);
    assert_memory_equal(in_place.at, rig.call.d_inputs[0].at, 30 * sizeof(real));
    free(in_place.at);
    rig_close(&rig);
}

/* activation(x) * x: the same, with the gradient of the activation. In place of a sum, and added to one. */
static void test_gated_by_itself(void **state)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        test_random random = {19};
        layer_rig rig;
        rig_open(&rig, *state, &(layer_case){"gated", 2, {{1, 3, 5}, {1, 3, 5}}, {0}, 0}, &reference, &random);
        layer_call call = rig.call;
        call.inputs[1] = call.inputs[0];
        call.d_inputs[1] = call.d_inputs[0];
        call.accumulate_inputs[0] = accumulate;
        call.accumulate_inputs[1] = true;
        for (int i = 0; i < 30; i++)
            rig_values(call.d_inputs[0])[i] = 3;
        rig_backward(&rig, &call);
        for (int i = 0; i < 30; i++) {
            const double x = rig_values(call.inputs[0])[i], s = 1 / (1 + exp(-x)); /* swish: x * s */
            const double slope = 2 * x * s + x * x * s * (1 - s);
            assert_true(fabs(rig_values(call.d_inputs[0])[i] - (accumulate ? 3 : 0) -
                             slope * rig_values(rig.d_output)[i]) < 1e-12);
        }
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_central_differences, setup, teardown),
        cmocka_unit_test(test_every_type_has_a_case),
        cmocka_unit_test_setup_teardown(test_negative_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_square, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gated_by_itself, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
