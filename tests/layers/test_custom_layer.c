/* Layers that a program registers: shapes, parameters, saved tensors, workspaces, properties, and the check of gradients. */
#include "train/trainer_toy.h"

#include <string.h>

/* y = scale * (a - mean(a))^2 + weight * b, over the values of a sample. The mean is saved; the workspace holds the
 * differences. */
static remat_status blend_shape(void *user, remat_custom_sizes *sizes, char *message, size_t message_bytes)
{
    assert_ptr_equal(user, &blend_shape);
    uint64_t values = sizes->inputs[0][0] * sizes->inputs[0][1] * sizes->inputs[0][2];
    if (memcmp(sizes->inputs[0], sizes->inputs[1], sizeof sizes->inputs[0]) != 0) {
        snprintf(message, message_bytes, "both inputs must have one shape");
        return REMAT_INVALID;
    }
    sizes->parameter_count = 1;
    sizes->parameters[0] =
        (remat_custom_parameter){.name = "weight", .dims = {values}, .start = REMAT_START_UNIFORM, .scale = 0.5};
    sizes->saved_count = 1;
    sizes->saved_values[0] = sizes->batch;
    sizes->forward_workspace_bytes = sizes->backward_workspace_bytes = values * sizeof(double);
    return REMAT_OK;
}

static double read_value(const remat_custom_call *call, const void *tensor, uint64_t i)
{
    return call->dtype == REMAT_FP64 ? ((const double *)tensor)[i] : (double)((const float *)tensor)[i];
}

static void write_value(const remat_custom_call *call, void *tensor, uint64_t i, double value)
{
    if (call->dtype == REMAT_FP64)
        ((double *)tensor)[i] = value;
    else
        ((float *)tensor)[i] = (float)value;
}

static void add_value(const remat_custom_call *call, void *tensor, uint64_t i, double value)
{
    if (tensor)
        write_value(call, tensor, i, read_value(call, tensor, i) + value);
}

static uint64_t values_of(const remat_custom_call *call)
{
    return call->output_shape[0] * call->output_shape[1] * call->output_shape[2];
}

static void blend_forward(const remat_custom_call *call)
{
    uint64_t count = values_of(call);
    double *differences = call->workspace;
    for (uint64_t b = 0; b < call->batch; b++) {
        double mean = 0;
        for (uint64_t i = 0; i < count; i++)
            mean += read_value(call, call->inputs[0], b * count + i) / (double)count;
        write_value(call, call->saved[0], b, mean);
        mean = read_value(call, call->saved[0], b);
        for (uint64_t i = 0; i < count; i++)
            differences[i] = read_value(call, call->inputs[0], b * count + i) - mean;
        for (uint64_t i = 0; i < count; i++)
            write_value(call, call->output, b * count + i,
                        call->properties[0] * differences[i] * differences[i] +
                            read_value(call, call->parameters[0], i) *
                                read_value(call, call->inputs[1], b * count + i));
    }
}

static void blend(const remat_custom_call *call, double wrong)
{
    uint64_t count = values_of(call);
    double *slopes = call->workspace;
    for (uint64_t b = 0; b < call->batch; b++) {
        double mean = read_value(call, call->saved[0], b), average = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = b * count + i;
            double dy = read_value(call, call->d_output, at);
            slopes[i] = 2 * call->properties[0] * (read_value(call, call->inputs[0], at) - mean) * dy;
            average += slopes[i] / (double)count;
            add_value(call, call->d_inputs[1], at, read_value(call, call->parameters[0], i) * dy);
            add_value(call, call->gradients[0], i, wrong * read_value(call, call->inputs[1], at) * dy);
        }
        for (uint64_t i = 0; i < count; i++)
            add_value(call, call->d_inputs[0], b * count + i, slopes[i] - average);
    }
}

static void blend_backward(const remat_custom_call *call)
{
    blend(call, 1);
}

static void wrong_backward(const remat_custom_call *call)
{
    blend(call, 1.1);
}

static remat_custom_layer definition(const char *name)
{
    static const remat_custom_property properties[] = {{"scale", "of the square", 0.25, 0, 2}};
    remat_custom_layer layer;
    remat_custom_layer_init(&layer);
    layer.name = name;
    layer.summary = "a blend of two inputs";
    layer.min_inputs = layer.max_inputs = 2;
    layer.properties = properties;
    layer.property_count = 1;
    layer.user = (void *)&blend_shape;
    layer.shape = blend_shape;
    layer.forward = blend_forward;
    layer.backward = blend_backward;
    layer.computes_fp64 = true;
    return layer;
}

static const uint64_t two_inputs[2][3] = {{2, 3, 4}, {2, 3, 4}};

static void test_check(void **state)
{
    fixture *f = *state;
    remat_custom_layer layer = definition("blend");
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    remat_gradient_check check;
    expect_ok(f,
              remat_custom_layer_check(f->context, "blend", REMAT_PROPERTIES("scale=1.5"), 3, two_inputs, 2, &check));
    assert_true(check.largest_error <= 1e-6 && check.allowed_error == 1e-6);
    assert_int_equal(check.values, 72 + 72 + 24);

    layer.name = "single"; /* in fp32 */
    layer.computes_fp64 = false;
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    expect_ok(f, remat_custom_layer_check(f->context, "single", NULL, 3, two_inputs, 2, &check));
    assert_true(check.allowed_error == 2e-2);

    layer = definition("wrong");
    layer.backward = wrong_backward;
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    expect_status(f, remat_custom_layer_check(f->context, "wrong", NULL, 3, two_inputs, 2, &check), REMAT_CHECK_FAILED);
    expect_message(f, "wrong: the gradient of weight");
    assert_string_equal(check.tensor, "weight");
    assert_true(fabs(check.gradient / check.difference - 1.1) < 1e-4);
    expect_status(f, remat_custom_layer_check(f->context, "wrong", NULL, 3, two_inputs, 2, NULL), REMAT_CHECK_FAILED);
}

/* The same check judges the types of the library. */
static void test_check_of_other_types(void **state)
{
    fixture *f = *state;
    static const uint64_t image[1][3] = {{3, 5, 4}}, sequence[1][3] = {{1, 5, 6}};
    expect_ok(f, remat_custom_layer_check(f->context, "conv2d", REMAT_PROPERTIES("filters=2", "kernel_size=3"), 2,
                                          image, 1, NULL));
    expect_ok(f, remat_custom_layer_check(f->context, "layer_normalization", NULL, 2, sequence, 1, NULL));
    expect_ok(f, remat_custom_layer_check(f->context, "batch_normalization", NULL, 4, image, 1, NULL));
    expect_ok(f, remat_custom_layer_check(f->context, "addition", NULL, 2, two_inputs, 2, NULL));
    expect_ok(f, remat_custom_layer_check(f->context, "flatten", NULL, 2, image, 1, NULL));
    static const struct {
        const char *type, *property, *message;
        uint32_t inputs;
    } refused[] = {
        {"mse", NULL, "the gradients of a layer of type mse cannot be checked", 2},
        {"embedding", "in_dim=3", "cannot be checked", 1},
        {"addition", NULL, "addition reads 2 to 16 layers, not 1", 1},
        {"conv2d", "filters", "'filters' is not key=value", 1},
        {"conv2d", "filter=3", "filter", 1},
        {"convolve", NULL, "there is no layer type 'convolve'", 1},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *const properties[] = {refused[i].property, NULL};
        expect_status(
            f,
            remat_custom_layer_check(f->context, refused[i].type, properties, 2, two_inputs, refused[i].inputs, NULL),
            REMAT_INVALID);
        expect_message(f, refused[i].message);
    }
    expect_status(f, remat_custom_layer_check(f->context, "flatten", NULL, 0, image, 1, NULL), REMAT_INVALID);
    expect_status(f,
                  remat_custom_layer_check(f->context, "flatten", NULL, 1, (const uint64_t[1][3]){{1, 0, 2}}, 1, NULL),
                  REMAT_INVALID);
}

static void test_refused(void **state)
{
    fixture *f = *state;
    remat_custom_layer layer = definition("blend");
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "there is a layer type 'blend' already");
    layer = definition("conv2d");
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    layer = definition("Blend it");
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "lower case letters");
    layer = definition("other");
    layer.forward = NULL;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "needs the functions forward and backward");
    layer = definition("other");
    layer.max_inputs = 5;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "must read 1 to 4 inputs");
    layer = definition("other");
    layer.property_count = 17;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    layer = definition("other");
    layer.struct_size = 0;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);

    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=a", "input_shape=4")));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=b", "input_shape=5")));
    expect_status(f, remat_model_add_layer(model, "blend", REMAT_PROPERTIES("scale=3")), REMAT_INVALID);
    expect_message(f, "scale: '3' is not a number from 0 to 2");
    expect_status(f, remat_model_add_layer(model, "blemd", REMAT_PROPERTIES("scale=1")), REMAT_INVALID);
    expect_message(f, "did you mean 'blend'?");
    expect_ok(f, remat_model_add_layer(model, "blend", REMAT_PROPERTIES("input_layers=a,b")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_status(f, remat_model_compile(model), REMAT_INVALID);
    expect_message(f, "blend: both inputs must have one shape");
    remat_model_destroy(model);
}

/* Every allocation fails once: the registration and the check fail cleanly, and work afterwards. */
static void test_no_memory(void **state)
{
    fixture *f = *state;
    remat_custom_layer layer = definition("blend");
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; n < 100 && status != REMAT_OK; n++) {
        f->memory.fail_at = f->memory.calls + n;
        status = remat_custom_layer_register(f->context, &layer);
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
    }
    expect_ok(f, status);
    status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; n < 1000 && status != REMAT_OK; n++) {
        f->memory.fail_at = f->memory.calls + n;
        status = remat_custom_layer_check(f->context, "blend", REMAT_PROPERTIES("scale=1"), 1, two_inputs, 2, NULL);
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
    }
    f->memory.fail_at = 0;
    expect_ok(f, status);
}

/* ---- training ---- */

static remat_model *blend_model(fixture *f)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=32")));
    expect_ok(
        f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=b", "unit=32", "input_layers=in")));
    expect_ok(f, remat_model_add_layer(model, "blend", REMAT_PROPERTIES("name=c", "input_layers=a,b")));
    expect_ok(f, remat_model_add_layer(model, "blend", REMAT_PROPERTIES("name=d", "input_layers=c,c")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=16")));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* The same bits under every plan, the memory that was predicted, and a loss that falls. */
static void test_training(void **state)
{
    fixture *f = *state;
    remat_custom_layer layer = definition("blend");
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    static const char *const strategies[] = {"none", "full", "every-nth:2"};
    double losses[3];
    for (int s = 0; s < 3; s++) {
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        remat_model *model = blend_model(f);
        remat_model_layer about;
        expect_ok(f, remat_model_get_layer(model, 3, &about));
        assert_string_equal(about.type, "blend");
        assert_int_equal(about.saved_bytes, 16 * 4);
        assert_int_equal(about.workspace_bytes, 32 * 8);
        assert_int_equal(about.parameters, 32);
        remat_train_options options = toy_options(&data);
        options.steps = 60;
        options.strategy = strategies[s];
        remat_trainer *trainer;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        double first = one_step(f, trainer).loss;
        remat_trainer_figures figures;
        remat_run_result result;
        remat_trainer_get_figures(trainer, &figures);
        expect_ok(f, remat_trainer_run(trainer, NULL, &result));
        assert_int_equal(result.allocated_bytes, figures.total_bytes);
        losses[s] = result.last_loss;
        assert_true(losses[s] < first / 2);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
    assert_true(losses[0] == losses[1] && losses[0] == losses[2]);
}

/* Registered types stay to the end of the context. Then all memory is given back. */
static int teardown(void **state)
{
    fixture *f = *state;
    remat_context_destroy(f->context);
    bool clean = f->memory.bytes == 0 && f->memory.blocks == 0;
    free(f);
    return clean ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_check, fixture_setup, teardown),
        FIXTURE_TEST(test_check_of_other_types),
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(test_training, fixture_setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
