/* What the function `shape` of a custom layer may set, what is refused, and layers without one. */
#include "train/trainer_toy.h"

#include <string.h>

/* ---- sizes ---- */

static void fine(remat_custom_sizes *sizes)
{
    sizes->parameter_count = 1;
    sizes->parameters[0] = (remat_custom_parameter){.name = "weight", .dims = {3}, .start = REMAT_START_ONES};
    sizes->saved_count = 1;
    sizes->saved_values[0] = 2;
}

static void no_output(remat_custom_sizes *sizes)
{
    sizes->output[1] = 0;
}

static void large_output(remat_custom_sizes *sizes)
{
    sizes->output[0] = (uint64_t)1 << 61;
}

static void many_parameters(remat_custom_sizes *sizes)
{
    sizes->parameter_count = REMAT_CUSTOM_PARAMETERS + 1;
}

static void many_saved(remat_custom_sizes *sizes)
{
    sizes->saved_count = REMAT_CUSTOM_SAVED + 1;
}

static void no_name(remat_custom_sizes *sizes)
{
    fine(sizes);
    sizes->parameters[0].name = NULL;
}

static void no_size(remat_custom_sizes *sizes)
{
    fine(sizes);
    sizes->parameters[0].dims[0] = 0;
}

static void no_start(remat_custom_sizes *sizes)
{
    fine(sizes);
    sizes->parameters[0].start = (remat_custom_start)(REMAT_START_UNIFORM + 1);
}

static void large_parameter(remat_custom_sizes *sizes)
{
    fine(sizes);
    sizes->parameters[0].dims[0] = sizes->parameters[0].dims[1] = (uint64_t)1 << 40;
}

static void large_saved(remat_custom_sizes *sizes)
{
    fine(sizes);
    sizes->saved_values[0] = (uint64_t)1 << 62;
}

static const struct {
    void (*set)(remat_custom_sizes *sizes);
    const char *message; /* NULL: it is fine */
} shapes[] = {
    {fine, NULL},
    {no_output, "tested: its function `shape` set an empty output, over 4 parameters or over 2 saved tensors"},
    {many_parameters, "tested: its function `shape` set an empty output, over 4 parameters"},
    {many_saved, "tested: its function `shape` set an empty output, over 4 parameters"},
    {large_output, "values is too large; it must stay below 2^63 bytes"},
    {no_name, "tested: parameter 0 has no name, no size or no known start"},
    {no_size, "tested: parameter 0 has no name, no size or no known start"},
    {no_start, "tested: parameter 0 has no name, no size or no known start"},
    {large_parameter, "too large"},
    {large_saved, "tested: what it saves (saved0) is too large"},
};

static remat_status set_shape(void *user, remat_custom_sizes *sizes, char *message, size_t message_bytes)
{
    (void)message, (void)message_bytes;
    shapes[*(const size_t *)user].set(sizes);
    return REMAT_OK;
}

static remat_status refuse_silently(void *user, remat_custom_sizes *sizes, char *message, size_t message_bytes)
{
    (void)user, (void)sizes, (void)message, (void)message_bytes;
    return REMAT_INVALID;
}

/* ---- y = 2 x ---- */

static uint64_t values_of(const remat_custom_call *call)
{
    return call->batch * call->output_shape[0] * call->output_shape[1] * call->output_shape[2];
}

static void twice(const remat_custom_call *call)
{
    for (uint64_t i = 0; i < values_of(call); i++)
        ((float *)call->output)[i] = 2 * ((const float *)call->inputs[0])[i];
}

static void twice_backward(const remat_custom_call *call)
{
    for (uint64_t i = 0; call->d_inputs[0] && i < values_of(call); i++)
        ((float *)call->d_inputs[0])[i] += 2 * ((const float *)call->d_output)[i];
}

static remat_custom_layer plain(const char *name)
{
    static const remat_custom_property properties[] = {{"key", NULL, 1, 0, 2}};
    remat_custom_layer layer;
    remat_custom_layer_init(&layer);
    layer.name = name;
    layer.properties = properties;
    layer.property_count = 1;
    layer.forward = twice;
    layer.backward = twice_backward;
    layer.backward_reads_inputs = false;
    layer.backward_reads_output = true;
    return layer;
}

static const uint64_t input[1][3] = {{1, 2, 3}};

static void sizes_are_checked(void **state)
{
    fixture *f = *state;
    size_t which = 0;
    remat_custom_layer layer = plain("tested");
    layer.user = &which;
    layer.shape = set_shape;
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    for (; which < sizeof shapes / sizeof *shapes; which++) {
        remat_model *model;
        expect_ok(f, remat_model_create(f->context, &model));
        expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=2:3:4")));
        expect_ok(f, remat_model_add_layer(model, "tested", REMAT_PROPERTIES("name=own")));
        expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
        expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=2")));
        remat_status status = remat_model_compile(model);
        expect_status(f, status, shapes[which].message ? REMAT_INVALID : REMAT_OK);
        if (shapes[which].message)
            expect_message(f, shapes[which].message);
        remat_model_destroy(model);
    }
    layer = plain("silent");
    layer.shape = refuse_silently;
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    expect_status(f, remat_custom_layer_check(f->context, "silent", NULL, 2, input, 1, NULL), REMAT_INVALID);
    expect_message(f, "silent: its inputs do not fit");
}

static void definitions_are_checked(void **state)
{
    fixture *f = *state;
    char name[65];
    memset(name, 'a', 64);
    name[64] = '\0';
    remat_custom_layer layer = plain(name);
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "at most 63 of them");
    layer = plain(NULL);
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    layer = plain("");
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    layer = plain("own");
    layer.backward = NULL;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "needs the functions forward and backward");
    layer = plain("own");
    layer.min_inputs = 0;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    layer = plain("own");
    layer.min_inputs = 2;
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "must read 1 to 4 inputs, not 2 to 1");
    layer = plain("own");
    layer.properties = &(remat_custom_property){"A key", "help", 1, 0, 2};
    expect_status(f, remat_custom_layer_register(f->context, &layer), REMAT_INVALID);
    expect_message(f, "property 0 of custom layer 'own' has no proper key");
}

/* Without a shape of its own the output has that of the input. The gradients that nobody wants are not asked for. */
static void layers_without_a_shape_train(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_custom_layer layer = plain("twice");
    expect_ok(f, remat_custom_layer_register(f->context, &layer));
    remat_gradient_check check;
    expect_ok(f, remat_custom_layer_check(f->context, "twice", NULL, 2, input, 1, &check));
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(f, remat_model_add_layer(model, "twice", REMAT_PROPERTIES("name=first"))); /* of data */
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=4")));
    expect_ok(f, remat_model_add_layer(model, "twice", REMAT_PROPERTIES("name=second")));
    expect_ok(f, remat_model_add_layer(model, "addition", REMAT_PROPERTIES("name=sum", "input_layers=fc,second")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=16", "accumulate=2")));
    expect_ok(f, remat_model_compile(model));
    remat_train_options options = toy_options(&data);
    options.steps = 40;
    remat_trainer *trainer;
    remat_run_result result;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    double first = one_step(f, trainer).loss;
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_true(result.last_loss < first);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* Registered types stay to the end of the context. */
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
        cmocka_unit_test_setup_teardown(sizes_are_checked, fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(definitions_are_checked, fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(layers_without_a_shape_train, fixture_setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
