#include "support/fixture.h"

#include "model/network.h"

#define INPUT "[in : input]\ninput_shape = 2:3:4\n"

static remat_model *read_text(fixture *f, const char *text)
{
    remat_model *model;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read(f->context, stream, "text", &model));
    fclose(stream);
    return model;
}

static void refused(fixture *f, const char *text, uint64_t line, const char *reason)
{
    remat_model *model;
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(f->context, stream, "text", &model);
    fclose(stream);
    expect_status(f, status, REMAT_BAD_INPUT);
    assert_null(model);
    expect_message(f, "text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, line);
}

static uint32_t find(const remat_network *network, const char *name)
{
    for (uint32_t i = 0; i < network->layer_count; i++)
        if (strcmp(network->layers[i].node.name, name) == 0)
            return i;
    fail_msg("there is no layer %s", name);
    return 0;
}

static void expect_reads(const remat_network *network, const char *reader, size_t input, const char *name)
{
    const network_layer *layer = &network->layers[find(network, reader)];
    assert_true(input < layer->node.input_count);
    assert_string_equal(network->layers[layer->inputs[input]].node.name, name);
}

static void expect_shape(layer_shape shape, uint64_t c, uint64_t h, uint64_t w)
{
    assert_int_equal(shape.c, c);
    assert_int_equal(shape.h, h);
    assert_int_equal(shape.w, w);
}

static void expect_parameter(const remat_network *network, size_t number, const char *name, uint64_t values)
{
    assert_true(number < network->parameter_count);
    assert_string_equal(network->parameters[number].name, name);
    assert_int_equal(network->parameters[number].values, values);
}

/* ---- what it is made of ---- */

static void a_chain_reads_the_layer_before(void **state)
{
    fixture *f = *state;
    remat_model *model = read_text(f, INPUT "[a : fully_connected]\nunit = 5\n[b : activation]\nactivation = tanh\n"
                                            "[c : fully_connected]\nunit = 6\n[loss : mse]\n");
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){7, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layer_count, 5);
    assert_int_equal(network->batch, 7);
    expect_reads(network, "a", 0, "in");
    expect_reads(network, "b", 0, "a");
    expect_reads(network, "loss", 0, "c");
    expect_shape(network->layers[0].node.output, 2, 3, 4);
    expect_shape(network->layers[2].node.output, 2, 3, 5);
    assert_int_equal(network->layers[3].node.batch, 7);
    assert_int_equal(network->parameter_count, 4);
    expect_parameter(network, 0, "a.weight", 20);
    expect_parameter(network, 1, "a.bias", 5);
    expect_parameter(network, 2, "c.weight", 30);
    assert_int_equal(network->parameters[3].layer, 3);
    assert_int_equal(network->layers[3].parameters[1], 3);
    /* The labels of mse look like the prediction. */
    assert_true(network->has_labels);
    assert_int_equal(network->labels_dtype, REMAT_FP32);
    expect_shape(network->labels, 2, 3, 6);
    assert_int_equal(network->layers[4].inputs[1], NETWORK_LABELS);
    assert_int_equal(network->layers[4].node.input_count, 2);
    assert_true(network->layers[4].node.loss);
    network_destroy(network);
    remat_model_destroy(model);
}

static void who_reads_a_composite_reads_its_last_part(void **state)
{
    fixture *f = *state;
    remat_model *model = read_text(f, "[in : input]\ninput_shape = 6:8\n[attn : multi_head_attention]\nnum_heads = 2\n"
                                      "[up : fully_connected]\nunit = 8\nactivation = gelu\n"
                                      "[sum : addition]\ninput_layers = in, attn, up\n[loss : mse]\n");
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){1, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layer_count, 8);
    expect_reads(network, "attn.core", 0, "attn.qkv");
    expect_reads(network, "attn.out", 0, "attn.core");
    expect_reads(network, "up", 0, "attn.out");
    expect_reads(network, "up.activation", 0, "up");
    expect_reads(network, "sum", 0, "in");
    expect_reads(network, "sum", 1, "attn.out");
    expect_reads(network, "sum", 2, "up.activation");
    assert_int_equal(network->layers[find(network, "attn.core")].described, 1);
    network_destroy(network);
    remat_model_destroy(model);
}

/* ---- merging and leaving out ---- */

#define CLASSES                                                             \
    "[in : input]\ninput_shape = 3:4\n[body : fully_connected]\nunit = 6\n" \
    "[head : fully_connected]\nunit = 9\n[loss : cross_entropy]\n[Block b]\nlayers = body, head\n"

static void a_projection_and_its_loss_are_one_in_training(void **state)
{
    fixture *f = *state;
    remat_model *model = read_text(f, CLASSES);
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){2, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layer_count, 3);
    const network_layer *head = &network->layers[2];
    assert_string_equal(head->node.name, "head");
    assert_string_equal(head->node.type->name, "projection_cross_entropy");
    expect_reads(network, "head", 0, "body");
    assert_int_equal(head->inputs[1], NETWORK_LABELS);
    assert_int_equal(head->block, NETWORK_NONE); /* a loss is never recomputed */
    assert_int_equal(network->layers[1].block, 0);
    assert_int_equal(network->labels_dtype, REMAT_INT32);
    assert_int_equal(layer_values(network->labels), 3);
    expect_parameter(network, 2, "head.weight", 54);
    assert_int_equal(network->parameters[2].layer, 2);
    network_destroy(network);
    remat_model_destroy(model);
}

static void without_losses_for_inference(void **state)
{
    fixture *f = *state;
    remat_model *model = read_text(f, CLASSES);
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){2, NETWORK_INFERENCE, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layer_count, 3);
    assert_string_equal(network->layers[2].node.type->name, "fully_connected");
    assert_int_equal(network->layers[2].block, 0);
    assert_false(network->has_labels);
    expect_parameter(network, 2, "head.weight", 54); /* the same names: weights fit both */
    network_destroy(network);
    remat_model_destroy(model);
}

static void only_a_projection_right_before_the_loss_is_merged(void **state)
{
    fixture *f = *state;
    remat_model *model =
        read_text(f, "[in : input]\ninput_shape = 4\n[head : fully_connected]\nunit = 9\nactivation = tanh\n"
                     "[loss : cross_entropy]\n");
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){2, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layer_count, 4);
    assert_string_equal(network->layers[3].node.type->name, "cross_entropy");
    network_destroy(network);
    remat_model_destroy(model);
}

/* A block that loses its only layer is gone. */
static void a_block_may_be_emptied_by_merging(void **state)
{
    fixture *f = *state;
    remat_model *model =
        read_text(f, "[in : input]\ninput_shape = 4\n[a : fully_connected]\nunit = 9\nactivation = tanh\n"
                     "block = x\n[head : fully_connected]\nunit = 9\nblock = y\n[loss : cross_entropy]\n");
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){2, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->block_count, 1);
    assert_string_equal(network->block_names[0], "x");
    network_destroy(network);
    expect_ok(f, network_build(model, &(network_options){2, NETWORK_INFERENCE, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->block_count, 2);
    network_destroy(network);
    remat_model_destroy(model);
}

/* ---- shared weights ---- */

static void a_tied_head_has_the_number_of_the_embedding(void **state)
{
    fixture *f = *state;
    remat_model *model = read_text(f, "[tokens : input]\ninput_shape = 5\n[emb : embedding]\nin_dim = 11\nout_dim = 4\n"
                                      "positions = 8\n[mid : fully_connected]\nunit = 4\nactivation = relu\n"
                                      "[head : fully_connected]\nunit = 11\nbias = false\nshared_from = EMB\n"
                                      "[loss : cross_entropy]\n");
    for (int purpose = NETWORK_TRAINING; purpose <= NETWORK_INFERENCE; purpose++) {
        remat_network *network;
        expect_ok(f,
                  network_build(model, &(network_options){3, (network_purpose)purpose, REMAT_FP32, NULL, 0}, &network));
        assert_int_equal(network->parameter_count, 4); /* emb.weight, emb.positions.weight, mid.weight, mid.bias */
        expect_parameter(network, 0, "emb.weight", 44);
        uint32_t head = find(network, "head");
        assert_int_equal(network->layers[head].node.parameter_count, 1);
        assert_int_equal(network->layers[head].parameters[0], 0);
        expect_reads(network, "mid", 0, "emb.positions");
        network_destroy(network);
    }
    assert_int_equal(remat_model_parameter_count(model), 44 + 32 + 16 + 4);
    remat_model_destroy(model);
}

static void wrong_sharing_is_refused(void **state)
{
    fixture *f = *state;
#define A "[in : input]\ninput_shape = 4\n[a : fully_connected]\nunit = 4\n"
    refused(f, A "[b : fully_connected]\nunit = 5\nshared_from = a\n[loss : mse]\n", 5,
            "its weight is 5 x 4, that of 'a' is 4 x 4");
    refused(f, A "[b : fully_connected]\nunit = 4\nshared_from = aa\n[loss : mse]\n", 5,
            "no layer 'aa'; did you mean 'a'?");
    refused(f, A "[b : fully_connected]\nunit = 4\nshared_from = b\n[loss : mse]\n", 5, "does not stand before it");
    refused(f, A "[b : fully_connected]\nunit = 4\nshared_from = c\n[c : fully_connected]\nunit = 4\n[loss : mse]\n", 5,
            "does not stand before it");
    refused(f,
            A "[b : activation]\nactivation = relu\n[c : fully_connected]\nunit = 4\nshared_from = b\n[loss : mse]\n",
            7, "of type activation, has no weight");
}

/* ---- what is wrong ---- */

static void wrong_inputs_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, INPUT "[a : activation]\nactivation = relu\ninput_layers = im\n[loss : mse]\n", 5,
            "no layer 'im'; did you mean 'in'?");
    refused(f, INPUT "[a : activation]\nactivation = relu\ninput_layers = elephant\n[loss : mse]\n", 5,
            "no layer 'elephant'");
    refused(f, INPUT "[a : activation]\nactivation = relu\ninput_layers = a\n[loss : mse]\n", 5, "it reads itself");
    refused(f, INPUT "[a : addition]\ninput_layers = in, b\n[b : activation]\nactivation = relu\n[loss : mse]\n", 4,
            "'b' is defined later");
    refused(f, INPUT "[a : addition]\ninput_layers = in,, in\n[loss : mse]\n", 4, "a name is missing");
    refused(f, INPUT "[a : activation]\nactivation = relu\ninput_layers = in, in\n[loss : mse]\n", 5,
            "activation reads exactly 1 layer, not 2");
    refused(f, INPUT "[loss : mse]\n[a : activation]\nactivation = relu\n", 4, "'loss', is a loss");
    refused(f, INPUT "[loss : mse]\n[a : activation]\nactivation = relu\ninput_layers = loss\n", 6, "'loss' is a loss");
    refused(f, "[a : activation]\nactivation = relu\n", 1, "begin with a layer of type input");
    refused(f, INPUT "[b : input]\ninput_shape = 3\ninput_layers = in\n[loss : mse]\n", 5,
            "input reads exactly 0 layers, not 1");
    refused(f,
            INPUT "[a : addition]\ninput_layers = in,in,in,in,in,in,in,in,in,in,in,in,in,in,in,in,in\n[loss : mse]\n",
            4, "17 layers; 16 is the most");
}

static void too_many_inputs_are_refused(void **state)
{
    fixture *f = *state;
    char text[4000] = "";
    for (int i = 0; i < 17; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "[in%d : input]\ninput_shape = 2\n", i);
    snprintf(text + strlen(text), sizeof text - strlen(text), "[a : addition]\ninput_layers = in0");
    for (int i = 1; i < 9; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", in%d", i);
    snprintf(text + strlen(text), sizeof text - strlen(text), "\n[b : addition]\ninput_layers = a");
    for (int i = 9; i < 17; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", in%d", i);
    snprintf(text + strlen(text), sizeof text - strlen(text), "\n[fc : fully_connected]\nunit = 1\n[loss : mse]\n");
    refused(f, text, 33, "at most 16 layers of type input");
}

static void weights_never_wrap_around(void **state)
{
    fixture *f = *state;
    /* Each is below 2^63 bytes, the four together are 2^64. */
    refused(f,
            "[in : input]\ninput_shape = 1:1:1024\n"
            "[p0 : position_embedding]\npositions = 1125899906842624\n"
            "[p1 : position_embedding]\npositions = 1125899906842624\n"
            "[p2 : position_embedding]\npositions = 1125899906842624\n"
            "[p3 : position_embedding]\npositions = 1125899906842624\n[loss : mse]\n",
            3, "too large");
}

static void a_trained_model_ends_in_one_loss(void **state)
{
    fixture *f = *state;
    refused(f, INPUT "[loss : mse]\n[more : mse]\ninput_layers = in\n", 4, "exactly one loss");
    refused(f, INPUT "[a : activation]\nactivation = relu\n[loss : mse]\ninput_layers = in\n", 3,
            "layer 'a': no layer reads it");
    refused(f, INPUT "[b : input]\ninput_shape = 3\n[loss : mse]\n", 1, "layer 'in': no layer reads it");
    refused(f, "", 1, "no layers");
    remat_model *model = read_text(f, INPUT "[a : activation]\nactivation = relu\n"); /* compiles, for inference */
    remat_network *network;
    assert_int_equal(remat_model_layer_count(model), 2);
    expect_status(f, network_build(model, &(network_options){1, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network),
                  REMAT_BAD_INPUT);
    expect_message(f, "text: the model has no loss");
    assert_null(network);
    expect_status(f, network_build(model, &(network_options){0, NETWORK_INFERENCE, REMAT_FP32, NULL, 0}, &network),
                  REMAT_INVALID);
    remat_model_destroy(model);
}

static void whole_numbers_come_from_inputs(void **state)
{
    fixture *f = *state;
    refused(f,
            "[in : input]\ninput_shape = 4\n[a : activation]\nactivation = relu\n[e : embedding]\nin_dim = 5\nout_dim "
            "= 2\n[loss : mse]\n",
            5, "only a layer of type input has, not 'a'");
    refused(
        f,
        "[in : input]\ninput_shape = 4\n[e : embedding]\nin_dim = 5\nout_dim = 4\n[a : activation]\nactivation = relu\n"
        "input_layers = in\n[s : concat]\naxis = h\ninput_layers = e, a\n[loss : mse]\n",
        6, "'in' is read as whole numbers and as others");
}

static void parts_and_layers_need_names_of_their_own(void **state)
{
    fixture *f = *state;
    refused(f,
            INPUT "[a : fully_connected]\nunit = 3\nactivation = relu\n[a.activation : activation]\nactivation = "
                  "relu\n[loss : mse]\n",
            3, "its part 'a.activation' has the name of another layer");
    refused(f, "[in : input]\ninput_shape = 6:9\n[attn : multi_head_attention]\nnum_heads = 2\n[loss : mse]\n", 3,
            "layer 'attn': part 'attn.core'");
}

static void sizes_never_wrap_around(void **state)
{
    fixture *f = *state;
    refused(f, "[in : input]\ninput_shape = 4294967296:4294967296:4294967296\n[loss : mse]\n", 1, "layer 'in'");
    refused(f, "[in : input]\ninput_shape = 4294967296\n[a : fully_connected]\nunit = 4294967296\n[loss : mse]\n", 3,
            "layer 'a'");
    refused(f, "[Model]\nbatch_size = 1000000000\n[in : input]\ninput_shape = 1000000:1000000\n[loss : mse]\n", 3,
            "too large");
}

/* ---- at random ---- */

/* Sums and activations that read any layers before them: the network must say what the text said. */
static void random_connections_are_kept(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    enum { LAYERS = 40 };
    for (int round = 0; round < 20; round++) {
        uint32_t inputs[LAYERS][LAYER_MAX_INPUTS], counts[LAYERS] = {0};
        capture text;
        capture_begin(&text);
        fprintf(text.stream, "[l0 : input]\ninput_shape = 4\n");
        for (uint32_t i = 1; i < LAYERS; i++) {
            counts[i] = 2 + (uint32_t)test_random_below(&random, LAYER_MAX_INPUTS - 2);
            fprintf(text.stream, "[l%u : addition]\ninput_layers = l%u", i, inputs[i][0] = i - 1);
            for (uint32_t j = 1; j < counts[i]; j++)
                fprintf(text.stream, ", L%u", inputs[i][j] = (uint32_t)test_random_below(&random, i));
            fprintf(text.stream, "\n");
        }
        fprintf(text.stream, "[loss : mse]\n");
        capture_end(&text);
        remat_model *model = read_text(f, text.text);
        remat_network *network;
        expect_ok(f, network_build(model, &(network_options){1, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
        assert_int_equal(network->layer_count, LAYERS + 1);
        for (uint32_t i = 1; i < LAYERS; i++) {
            assert_int_equal(network->layers[i].node.input_count, counts[i]);
            for (uint32_t j = 0; j < counts[i]; j++)
                assert_int_equal(network->layers[i].inputs[j], inputs[i][j]);
        }
        network_destroy(network);
        remat_model_destroy(model);
        free(text.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_chain_reads_the_layer_before),
        FIXTURE_TEST(who_reads_a_composite_reads_its_last_part),
        FIXTURE_TEST(a_projection_and_its_loss_are_one_in_training),
        FIXTURE_TEST(without_losses_for_inference),
        FIXTURE_TEST(only_a_projection_right_before_the_loss_is_merged),
        FIXTURE_TEST(a_block_may_be_emptied_by_merging),
        FIXTURE_TEST(a_tied_head_has_the_number_of_the_embedding),
        FIXTURE_TEST(wrong_sharing_is_refused),
        FIXTURE_TEST(wrong_inputs_are_refused),
        FIXTURE_TEST(too_many_inputs_are_refused),
        FIXTURE_TEST(weights_never_wrap_around),
        FIXTURE_TEST(a_trained_model_ends_in_one_loss),
        FIXTURE_TEST(whole_numbers_come_from_inputs),
        FIXTURE_TEST(parts_and_layers_need_names_of_their_own),
        FIXTURE_TEST(sizes_never_wrap_around),
        FIXTURE_TEST(random_connections_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
