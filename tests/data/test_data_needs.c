/* What a sample of a model consists of, as programs that write samples see it. */
#include "support/fixture.h"

static remat_model *read_model(fixture *f, const char *text)
{
    remat_model *model;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read(f->context, stream, "model.ini", &model));
    fclose(stream);
    return model;
}

static void inputs_and_labels_are_described(void **state)
{
    fixture *f = *state;
    remat_model *model = read_model(f, "[Model]\nbatch_size = 3\n[image : input]\ninput_shape = 1:4:6\n"
                                       "[words : input]\ninput_shape = 1:1:4\n"
                                       "[table : embedding]\ninput_layers = words\nin_dim = 11\nout_dim = 6\n"
                                       "[sum : addition]\ninput_layers = image, table\n"
                                       "[out : fully_connected]\nunit = 5\n[loss : cross_entropy]\n");
    remat_sample_field field;
    assert_int_equal(remat_model_input_count(model), 2);
    expect_ok(f, remat_model_get_input(model, 0, &field));
    assert_string_equal(field.layer, "image");
    assert_int_equal(field.dtype, REMAT_FP32);
    assert_int_equal(field.count, 4 * 6);
    assert_int_equal(field.shape[0], 1);
    assert_int_equal(field.shape[1], 4);
    assert_int_equal(field.shape[2], 6);
    assert_int_equal(field.bound, 0);
    expect_ok(f, remat_model_get_input(model, 1, &field));
    assert_string_equal(field.layer, "words");
    assert_int_equal(field.dtype, REMAT_INT32);
    assert_int_equal(field.count, 4);
    assert_int_equal(field.bound, 11);
    expect_status(f, remat_model_get_input(model, 2, &field), REMAT_INVALID);
    expect_message(f, "there is no input 2; the compiled model has 2");
    expect_ok(f, remat_model_get_labels(model, &field));
    assert_string_equal(field.layer, "out"); /* the loss is part of it */
    assert_int_equal(field.dtype, REMAT_INT32);
    assert_int_equal(field.count, 4); /* one class for each row */
    assert_int_equal(field.bound, 5);
    remat_model_destroy(model);
}

static void labels_of_numbers_have_the_shape_of_the_output(void **state)
{
    fixture *f = *state;
    remat_model *model = read_model(f, "[Model]\n[in : input]\ninput_shape = 1:1:4\n[out : fully_connected]\nunit = 3\n"
                                       "[loss : mse]\n");
    remat_sample_field field;
    expect_ok(f, remat_model_get_labels(model, &field));
    assert_int_equal(field.dtype, REMAT_FP32);
    assert_int_equal(field.count, 3);
    assert_int_equal(field.bound, 0);
    remat_model_destroy(model);
}

static void a_model_without_a_loss_or_not_compiled_has_no_labels(void **state)
{
    fixture *f = *state;
    remat_model *model =
        read_model(f, "[Model]\n[in : input]\ninput_shape = 1:1:4\n[out : fully_connected]\nunit = 3\n");
    remat_sample_field field;
    assert_int_equal(remat_model_input_count(model), 1);
    expect_status(f, remat_model_get_labels(model, &field), REMAT_INVALID);
    remat_model_destroy(model);
    expect_ok(f, remat_model_create(f->context, &model));
    assert_int_equal(remat_model_input_count(model), 0);
    expect_status(f, remat_model_get_input(model, 0, &field), REMAT_INVALID);
    expect_status(f, remat_model_get_labels(model, &field), REMAT_INVALID);
    expect_message(f, "not compiled");
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(inputs_and_labels_are_described),
        FIXTURE_TEST(labels_of_numbers_have_the_shape_of_the_output),
        FIXTURE_TEST(a_model_without_a_loss_or_not_compiled_has_no_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
