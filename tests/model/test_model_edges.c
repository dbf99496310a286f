/* Calls that describe a model wrongly: texts that are no properties, names that cannot be, numbers of inputs and sizes
 * beyond every limit. The message says which, and the model is as before. */
#include "support/fixture.h"

#include <remat/model.h>

static void expect_refused(fixture *f, remat_status status, const char *message)
{
    expect_status(f, status, REMAT_INVALID);
    expect_message(f, message);
}

static remat_model *new_model(fixture *f)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    return model;
}

static void texts_that_are_no_properties(void **state)
{
    fixture *f = *state;
    remat_model *model = new_model(f);
    static const char *const wrong[] = {"name", "=x", "name="};
    for (size_t i = 0; i < 3; i++) {
        const char *const list[] = {wrong[i], NULL};
        expect_refused(f, remat_model_add_layer(model, "input", list), "is no property; write key=value");
        expect_refused(f, remat_model_set(model, list), "is no property");
        expect_refused(f, remat_model_set_optimizer(model, "sgd", list), "is no property");
        expect_refused(f, remat_model_set_dataset(model, "random", list), "is no property");
    }
    const char *many[1100] = {NULL};
    for (size_t i = 0; i < 1099; i++)
        many[i] = "name=x";
    expect_refused(f, remat_model_set(model, many), "more than 1024 properties");
    expect_refused(f, remat_model_set(model, REMAT_PROPERTIES("seed=1", "seed=2")), "said twice");
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES(" \tBatch-Size \t=  7")));
    expect_ok(f, remat_model_set(model, NULL));
    assert_int_equal(remat_model_batch(model), 7);
    assert_int_equal(remat_model_budget(model), UINT64_MAX);
    assert_int_equal(remat_model_parameter_count(model), 0); /* not compiled: nothing is known */
    assert_int_equal(remat_model_layer_count(model), 0);
    remat_model_destroy(model);
}

static void names_that_cannot_be(void **state)
{
    fixture *f = *state;
    remat_model *model = new_model(f);
    char long_name[3000] = "name=";
    memset(long_name + 5, 'n', sizeof long_name - 6);
    const struct {
        const char *property, *message;
    } wrong[] = {
        {long_name, "has 1 to "},
        {"name= ", "has 1 to "},
        {"name=a b", "has a ' '"},
        {"name=a\xff", "not valid UTF-8"},
        {"name=optimizer/a", "begins with 'optimizer/'"},
        {"name=a..b", "which stands for a range"},
        {"name=Model", "is the name of a section"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *const list[] = {wrong[i].property, "input_shape=1:1:2", NULL};
        expect_refused(f, remat_model_add_layer(model, "input", list), wrong[i].message);
    }
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=\xc3\xa9", "input_shape=1:1:2")));
    remat_model_destroy(model);
}

/* A model of an input, one layer and a loss, which is refused when it is compiled. */
static void refused_as(fixture *f, const char *type, const char *const *properties, const char *message)
{
    remat_model *model = new_model(f);
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:4")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=act", "activation=tanh")));
    expect_ok(f, remat_model_add_layer(model, type, properties));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_refused(f, remat_model_compile(model), message);
    capture out;
    capture_begin(&out);
    expect_status(f, remat_model_write_summary(model, out.stream, false), REMAT_INVALID);
    expect_status(f, remat_model_write_order(model, out.stream, false), REMAT_INVALID);
    capture_end(&out);
    assert_int_equal(out.length, 0);
    free(out.text);
    remat_model_destroy(model);
}

static void inputs_and_sizes_that_do_not_fit(void **state)
{
    fixture *f = *state;
    refused_as(f, "activation", REMAT_PROPERTIES("activation=relu", "input_layers=in,act"), "reads exactly 1 layer");
    refused_as(f, "addition", REMAT_PROPERTIES("name=sum"), "addition reads 2 to 16 layers, not 1");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("unit=4", "shared_from=ac"), "did you mean 'act'?");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("unit=4", "shared_from=zzzzzzzz"),
               "there is no layer 'zzzzzzzz'");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("unit=4", "shared_from=act"), "has no weight");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("unit=4", "shared_from=loss"), "does not stand before it");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("name=me", "unit=4", "shared_from=me"), "share the weight of an");
    refused_as(f, "fully_connected", REMAT_PROPERTIES("unit=4611686018427387904"), "2^63");
}

static void a_batch_that_does_not_fit_changes_nothing(void **state)
{
    fixture *f = *state;
    remat_model *model = new_model(f);
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:4")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=3")));
    expect_ok(f, remat_model_add_layer(model, "mse", NULL));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=2")));
    expect_ok(f, remat_model_compile(model));
    expect_status(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4611686018427387904")), REMAT_INVALID);
    assert_int_equal(remat_model_batch(model), 2);
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=3")));
    remat_model_layer layer;
    expect_ok(f, remat_model_get_layer(model, 1, &layer));
    assert_string_equal(layer.name, "fc");
    assert_int_equal(layer.output_bytes, 3 * 3 * sizeof(float));
    expect_status(f, remat_model_get_layer(model, remat_model_layer_count(model), &layer), REMAT_INVALID);
    expect_status(f, remat_model_add_layer(model, "mse", NULL), REMAT_INVALID); /* it is compiled */
    expect_status(f, remat_model_add_block(model, REMAT_PROPERTIES("fc")), REMAT_INVALID);
    expect_status(f, remat_model_add_block(model, NULL), REMAT_INVALID);
    remat_model_destroy(model);
}

static void types_that_do_not_exist(void **state)
{
    fixture *f = *state;
    remat_model *model = new_model(f);
    expect_refused(f, remat_model_add_layer(model, "fully_conected", NULL), "fully_connected");
    expect_refused(f, remat_model_add_layer(model, "zzzzzzzzzzzzzzzzzz", NULL), "input");
    expect_status(f, remat_model_set_optimizer(model, "adamm", NULL), REMAT_INVALID);
    expect_status(f, remat_model_set_dataset(model, "jpeg", NULL), REMAT_INVALID);
    capture out;
    capture_begin(&out);
    expect_status(f, remat_layer_types_write(f->context, "dense", out.stream, true), REMAT_INVALID);
    capture_end(&out);
    assert_int_equal(out.length, 0);
    free(out.text);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(texts_that_are_no_properties),     FIXTURE_TEST(names_that_cannot_be),
        FIXTURE_TEST(inputs_and_sizes_that_do_not_fit), FIXTURE_TEST(a_batch_that_does_not_fit_changes_nothing),
        FIXTURE_TEST(types_that_do_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
