/* Gradients of whole random models against differences of their loss: sums that share a gradient, tensors with many
 * readers, the same tensor twice, tied weights. In double, with the reference kernels. */
#include <math.h>

#include "support/cases.h"
#include "support/program_rig.h"
#include "support/random_model.h"

#include "data/data_needs.h"
#include "data/data_set.h"

static const double LARGEST_ERROR = 1e-6;

/* ---- numbers ---- */

static double number(test_random *random)
{
    return (double)test_random_below(random, 2000001) / 1e6 - 1;
}

static void fill_parameters(program_rig *rig, test_random *random)
{
    for (size_t p = 0; p < rig->network->parameter_count; p++) {
        const network_parameter *parameter = &rig->network->parameters[p];
        bool gain = parameter->about.fill == LAYER_ONES;
        double *values = program_rig_parameter(rig, p);
        for (uint64_t i = 0; i < parameter->values; i++)
            values[i] = gain ? 1 + 0.3 * number(random) : 0.6 * number(random);
    }
}

static void fill_field(const data_field *field, uint64_t batch, void *to, test_random *random)
{
    for (uint64_t i = 0; i < field->values * batch; i++)
        if (data_field_is_integer(field))
            ((int32_t *)to)[i] = (int32_t)test_random_below(random, field->bound);
        else
            ((double *)to)[i] = number(random);
}

static double run(program_rig *rig, uint64_t data_seed)
{
    test_random random = {data_seed};
    data_needs needs = network_data_needs(rig->network);
    for (size_t i = 0; i < needs.input_count; i++)
        fill_field(&needs.inputs[i], rig->network->batch, rig->staged.inputs[i], &random);
    fill_field(&needs.labels, rig->network->batch, rig->staged.labels, &random);
    return program_rig_run(rig, data_seed, NULL);
}

/* The derivative of the loss by one value, exact to the fourth power of the step. */
static double difference(program_rig *rig, double *value, uint64_t data_seed, double step)
{
    double kept = *value;
    double losses[4];
    for (int i = 0; i < 4; i++) {
        static const int steps[] = {-2, -1, 1, 2};
        *value = kept + steps[i] * step;
        losses[i] = run(rig, data_seed);
    }
    *value = kept;
    return (8 * (losses[2] - losses[1]) - (losses[3] - losses[0])) / (12 * step);
}

/* ---- the test ---- */

static double largest_of(const double *values, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

static void check_model(const remat_model *model, uint64_t batch, program_apply apply, uint64_t seed)
{
    program_rig rig;
    test_random random = {seed};
    const program_rig_options options = {
        batch, NETWORK_TRAINING, apply, REMAT_FP64, {.kernels = "reference", .threads = 1}};
    program_rig_open(&rig, model, &options);
    program_rig_make_executor(&rig);
    fill_parameters(&rig, &random);
    double loss = run(&rig, seed);
    assert_true(isfinite(loss));
    double overall = 1e-4;
    double **gradients = calloc(rig.network->parameter_count, sizeof *gradients);
    for (size_t p = 0; p < rig.network->parameter_count; p++) { /* later runs make others, or add to them */
        uint64_t count = rig.network->parameters[p].values;
        gradients[p] = calloc(count, sizeof *gradients[p]);
        memcpy(gradients[p], program_rig_gradient(&rig, p), count * sizeof *gradients[p]);
        overall = fmax(overall, largest_of(gradients[p], count));
    }
    for (size_t p = 0; p < rig.network->parameter_count; p++) {
        const network_parameter *parameter = &rig.network->parameters[p];
        double scale = fmax(largest_of(gradients[p], parameter->values), 1e-3 * fmax(overall, fabs(loss)));
        for (int k = 0; k < 4 && layer_parameter_is_trained(&parameter->about); k++) {
            uint64_t i = test_random_below(&random, parameter->values);
            double step = 2e-3, wanted;
            do { /* where the loss is bent, only a small step comes near; a wrong gradient never does */
                step /= 10;
                wanted = difference(&rig, (double *)program_rig_parameter(&rig, p) + i, seed, step);
            } while (!(fabs(gradients[p][i] - wanted) <= LARGEST_ERROR * scale) && step > 1e-7);
            if (!(fabs(gradients[p][i] - wanted) <= LARGEST_ERROR * scale))
                fail_msg(
                    "model of seed %llu, apply %d: the gradient of %s, value %llu, is %.12g; differences say %.12g",
                    (unsigned long long)seed, (int)apply, parameter->name, (unsigned long long)i, gradients[p][i],
                    wanted);
        }
        free(gradients[p]);
    }
    free(gradients);
    program_rig_close(&rig);
}

static void test_random_models(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    static const program_apply ways[] = {PROGRAM_APPLY_AT_ONCE, PROGRAM_APPLY_AT_END, PROGRAM_ADD_AT_ONCE};
    for (int i = 0; i < 90; i++) {
        random_model_options about = {.seed = test_random_next(&random), .smooth = true, .frozen = 10};
        about.layers = 2 + (unsigned)test_random_below(&random, 16);
        remat_context *context;
        remat_model *model;
        assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
        if (random_model_make(context, &about, &model, NULL) != REMAT_OK)
            fail_msg("%s", remat_context_message(context));
        check_model(model, 3, ways[i % 3], about.seed);
        remat_model_destroy(model);
        remat_context_destroy(context);
    }
}

/* Gradients go through frozen layers to the trained ones below, and are added there to others. */
static void test_frozen_layers(void **state)
{
    (void)state;
    static const char *const layers[][6] = {
        {"input", "name=in", "input_shape=2:4:5", NULL},
        {"conv2d", "name=c1", "filters=3", "kernel_size=3", "trainable=false", NULL},
        {"conv2d", "name=c2", "filters=3", "kernel_size=2", "padding=same", NULL},
        {"batch_normalization", "name=norm", "trainable=false", NULL},
        {"addition", "name=sum", "input_layers=c2,norm", NULL},
        {"layer_normalization", "name=rows", "trainable=false", NULL},
        {"fully_connected", "name=fc", "unit=4", "activation=tanh", "trainable=false", NULL},
        {"flatten", "name=flat", NULL},
        {"fully_connected", "name=last", "unit=3", "trainable=false", NULL},
        {"cross_entropy", "name=loss", NULL},
    };
    static const program_apply ways[] = {PROGRAM_APPLY_AT_ONCE, PROGRAM_APPLY_AT_END, PROGRAM_ADD_AT_ONCE};
    for (int way = 0; way < 3; way++) {
        remat_context *context;
        remat_model *model;
        assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
        assert_int_equal(remat_model_create(context, &model), REMAT_OK);
        for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
            if (remat_model_add_layer(model, layers[i][0], layers[i] + 1) != REMAT_OK)
                fail_msg("%s", remat_context_message(context));
        if (remat_model_compile(model) != REMAT_OK)
            fail_msg("%s", remat_context_message(context));
        check_model(model, 3, ways[way], 7);
        remat_model_destroy(model);
        remat_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_models), cmocka_unit_test(test_frozen_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
