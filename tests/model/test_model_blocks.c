#include "support/fixture.h"

static const char perceptron[] = "[in : input]\ninput_shape = 4\n"
                                 "[fc1 : fully_connected]\nunit = 5\n"
                                 "[act1 : activation]\nactivation = relu\n"
                                 "[fc2 : fully_connected]\nunit = 3\n"
                                 "[act2 : activation]\nactivation = relu\n"
                                 "[out : fully_connected]\nunit = 2\n"
                                 "[loss : mse]\n";
enum { BLOCKS_LINE = 14 }; /* the first line behind it */

static remat_status read_text(fixture *f, const char *text, remat_model **model)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(f->context, stream, "text", model);
    fclose(stream);
    return status;
}

static remat_status read_with(fixture *f, const char *more, remat_model **model)
{
    char text[2000];
    snprintf(text, sizeof text, "%s%s", perceptron, more);
    return read_text(f, text, model);
}

/* The block of the layer called `name`; NULL where there is no such layer. */
static const char *block_of(fixture *f, const remat_model *model, const char *name)
{
    remat_model_layer layer;
    for (size_t i = 0; i < remat_model_layer_count(model); i++) {
        expect_ok(f, remat_model_get_layer(model, i, &layer));
        if (strcmp(layer.name, name) == 0)
            return layer.block;
    }
    return NULL;
}

static void refused(fixture *f, const char *more, uint64_t line, const char *reason)
{
    remat_model *model;
    expect_status(f, read_with(f, more, &model), REMAT_BAD_INPUT);
    assert_null(model);
    expect_message(f, "text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, BLOCKS_LINE + line);
}

static void blocks_are_lists_or_ranges(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, read_with(f, "[Block a]\nlayers = fc1, ACT1\n[block b]\nlayers = fc2 .. act2\n", &model));
    assert_string_equal(block_of(f, model, "in"), "");
    assert_string_equal(block_of(f, model, "fc1"), "a");
    assert_string_equal(block_of(f, model, "act1"), "a");
    assert_string_equal(block_of(f, model, "fc2"), "b");
    assert_string_equal(block_of(f, model, "act2"), "b");
    assert_string_equal(block_of(f, model, "out"), "");
    assert_int_equal(f->warnings, 0);
    remat_model_destroy(model);
}

static void layers_can_name_their_block_themselves(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(
        f, read_text(f,
                     "[in : input]\ninput_shape = 4\n[a : fully_connected]\nunit = 4\nblock = one\n"
                     "[b : activation]\nactivation = tanh\nblock = one\n[c : fully_connected]\nunit = 4\nblock = two\n"
                     "activation = relu\n[loss : mse]\n",
                     &model));
    assert_string_equal(block_of(f, model, "a"), "one");
    assert_string_equal(block_of(f, model, "b"), "one");
    assert_string_equal(block_of(f, model, "c"), "two");
    assert_string_equal(block_of(f, model, "c.activation"), "two"); /* a composite brings all its parts */
    remat_model_destroy(model);
}

static void wrong_blocks_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, "[Block a]\nlayers = fc1, fc2\n", 1,
            "consecutive in the order of execution: 'fc2' does not directly follow");
    refused(f, "[Block a]\nlayers = act1, fc1\n", 1, "consecutive");
    refused(f, "[Block a]\nlayers = fc1, fc1\n", 1, "'fc1' stands again");
    refused(f, "[Block a]\nlayers = fc1, acct1\n", 1, "no layer 'acct1'; did you mean 'act1'?");
    refused(f, "[Block a]\nlayers = zebra\n", 1, "no layer 'zebra'");
    refused(f, "[Block a]\nlayers = fc1 .. fc2\n[Block b]\nlayers = fc2 .. act2\n", 3, "in the block 'a' already");
    refused(f, "[Block a]\nlayers = fc1 .. act2\n[Block b]\nlayers = act1, fc2\n", 3,
            "in the block 'a' already"); /* nested */
    refused(f, "[Block a]\nlayers = fc1, act1\n[Block A]\nlayers = fc2, act2\n", 3,
            "there is a block 'A' already, in line 15");
    refused(f, "[Block a]\nlayers = act2 .. fc1\n", 1, "write fc1 .. act2");
    refused(f, "[Block a]\nlayers = in, fc1\n", 1, "holds data");
    refused(f, "[Block a]\nlayers = out .. loss\n", 1, "a loss is never recomputed");
    refused(f, "[Block a]\nlayers = fc1 .. fc2, act2\n", 1, "a range is written a .. c");
    refused(f, "[Block a]\n", 0, "has one key: layers");
    refused(f, "[Block a]\nlayer = fc1\n", 0, "has one key: layers");
    refused(f, "[Block a b]\nlayers = fc1\n", 1, "the block name 'a b' has a ' '");
}

static void a_block_cannot_go_on_after_a_gap(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_status(
        f,
        read_text(f,
                  "[in : input]\ninput_shape = 4\n[a : fully_connected]\nunit = 4\nblock = x\n"
                  "[b : activation]\nactivation = tanh\n[c : fully_connected]\nunit = 4\nblock = x\n[loss : mse]\n",
                  &model),
        REMAT_BAD_INPUT);
    expect_message(f, "text:10: the layers of a block must be consecutive");
    expect_message(f, "'x' ended with the layer 'a'");
}

static void one_layer_is_a_block_with_a_warning(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, read_with(f, "[Block a]\nlayers = fc1\n", &model));
    assert_int_equal(f->warnings, 1);
    expect_text(f->warning, "the block 'a' is only the layer 'fc1'");
    expect_text(f->warning, "saves nothing");
    remat_model_destroy(model);
    /* What a layer normalization saves besides is freed: no warning. */
    f->warnings = 0;
    expect_ok(f, read_text(f, "[in : input]\ninput_shape = 2:4\n[n : layer_normalization]\nblock = x\n[loss : mse]\n",
                           &model));
    assert_int_equal(f->warnings, 0);
    remat_model_destroy(model);
}

/* The calls of the source document. */
static void calls_declare_blocks_too(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=input", "input_shape=1:1:784")));
    expect_status(f, remat_model_add_block(model, REMAT_PROPERTIES("fc1")), REMAT_INVALID);
    expect_message(f, "no layer 'fc1'");
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=512")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=act1", "activation=relu")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=256")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=act2", "activation=relu")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=10")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_status(f, remat_model_add_block(model, REMAT_PROPERTIES("fc1", "fc2")), REMAT_INVALID);
    expect_message(f, "consecutive");
    expect_status(f, remat_model_add_block(model, (const char *const[]){NULL}), REMAT_INVALID);
    expect_message(f, "at least one layer");
    expect_ok(f, remat_model_add_block(model, REMAT_PROPERTIES("fc1", "act1", "fc2", "act2")));
    expect_status(f, remat_model_add_block(model, REMAT_PROPERTIES("act2", "out")), REMAT_INVALID);
    expect_message(f, "in the block 'block0' already");
    expect_ok(f, remat_model_compile(model));
    assert_string_equal(block_of(f, model, "act2"), "block0");
    expect_status(f, remat_model_add_block(model, REMAT_PROPERTIES("out")), REMAT_INVALID);
    expect_message(f, "a block cannot be added to a compiled model");
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(blocks_are_lists_or_ranges),
        FIXTURE_TEST(layers_can_name_their_block_themselves),
        FIXTURE_TEST(wrong_blocks_are_refused),
        FIXTURE_TEST(a_block_cannot_go_on_after_a_gap),
        FIXTURE_TEST(one_layer_is_a_block_with_a_warning),
        FIXTURE_TEST(calls_declare_blocks_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
