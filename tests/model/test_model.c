/* Models by calls and from files: settings, properties, repetition, what a summary says. */
#include "support/fixture.h"

#include "model/network.h"

static remat_status read_text(fixture *f, const char *text, remat_model **model)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(f->context, stream, "dir/text", model);
    fclose(stream);
    return status;
}

static void refused(fixture *f, const char *text, uint64_t line, const char *reason)
{
    remat_model *model;
    expect_status(f, read_text(f, text, &model), REMAT_BAD_INPUT);
    assert_null(model);
    expect_message(f, "dir/text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, line);
}

static char *summary_of(fixture *f, const remat_model *model, bool json)
{
    capture out;
    capture_begin(&out);
    expect_ok(f, remat_model_write_summary(model, out.stream, json));
    capture_end(&out);
    return out.text;
}

/* ---- calls ---- */

static remat_status build(remat_context *context, remat_model **model)
{
    remat_status status = remat_model_create(context, model);
    if (status == REMAT_OK)
        status = remat_model_add_layer(*model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:784"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(*model, "fully-connected",
                                       REMAT_PROPERTIES("name=fc1", "unit=512", "activation=relu"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(*model, "Fully_Connected", REMAT_PROPERTIES("name=out", "Unit = 10"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(*model, "mse", REMAT_PROPERTIES("name=loss", "input_layers=out"));
    if (status == REMAT_OK)
        status = remat_model_add_block(*model, REMAT_PROPERTIES("fc1", "out"));
    if (status == REMAT_OK)
        status = remat_model_set(*model, REMAT_PROPERTIES("batch_size=32", "epochs=10", "budget=300MiB"));
    if (status == REMAT_OK)
        status = remat_model_set_optimizer(*model, "adam", REMAT_PROPERTIES("learning_rate=0.002"));
    if (status == REMAT_OK)
        status = remat_model_set_dataset(*model, "npy", REMAT_PROPERTIES("inputs=x.npy", "labels=y.npy"));
    return status == REMAT_OK ? remat_model_compile(*model) : status;
}

static const char same_as_calls[] =
    "[Model]\nbatch_size = 32\nepochs = 10\nbudget = 300MiB\n[Optimizer]\nType = adam\nLearning-Rate = 0.002\n"
    "[Dataset]\nType = npy\ninputs = x.npy\nlabels = y.npy\n"
    "[in]\nType = input\ninput_shape = 1:1:784\n[fc1]\nType = fully_connected\nunit = 512\nactivation = relu\n"
    "[out]\nType = fully_connected\nunit = 10\n[loss]\nType = mse\n[Block block0]\nlayers = fc1, out\n";

static void calls_and_files_say_the_same(void **state)
{
    fixture *f = *state;
    remat_model *called, *read;
    expect_ok(f, build(f->context, &called));
    expect_ok(f, read_text(f, same_as_calls, &read));
    for (int json = 0; json < 2; json++) {
        char *a = summary_of(f, called, json), *b = summary_of(f, read, json);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    for (int i = 0; i < 2; i++) {
        const remat_model *model = i ? called : read;
        assert_int_equal(remat_model_batch(model), 32);
        assert_int_equal(model_get_settings(model)->epochs, 10);
        assert_string_equal(model_get_settings(model)->budget, "300MiB");
        assert_int_equal(model_get_optimizer(model)->type, OPTIMIZER_ADAM);
        assert_true(model_get_optimizer(model)->learning_rate == 0.002);
        assert_true(model_get_optimizer(model)->beta2 == 0.999);
        assert_int_equal(model_get_dataset(model)->type, DATASET_NPY);
        assert_string_equal(model_get_dataset(model)->labels, "y.npy");
        assert_true(model_get_dataset(model)->shuffle);
    }
    assert_string_equal(model_get_dataset(read)->folder, "dir");
    assert_null(model_get_dataset(called)->folder);
    remat_model_destroy(called);
    remat_model_destroy(read);
}

static void calls_refuse_what_is_wrong_at_once(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_status(f, remat_model_add_layer(model, "inptu", NULL), REMAT_INVALID);
    expect_message(f, "no layer type 'inptu'; did you mean 'input'?");
    expect_status(f, remat_model_add_layer(model, "zebra", NULL), REMAT_INVALID);
    expect_message(f, "there are input, fully_connected");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in")), REMAT_INVALID);
    expect_message(f, "layer 'in': input needs 'input_shape'");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "shape=3")), REMAT_INVALID);
    expect_message(f, "layer 'in': shape: input has no such property; it has input_shape");
    expect_message(f, "every layer has input_layers, block, trainable and precision");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=x")),
                  REMAT_INVALID);
    expect_message(f, "layer 'in': input_shape: 'x' is not a shape");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("input_shape")), REMAT_INVALID);
    expect_message(f, "write key=value");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("input_shape=1", "input-shape=2")),
                  REMAT_INVALID);
    expect_message(f, "said twice");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=a b", "input_shape=1")),
                  REMAT_INVALID);
    expect_message(f, "has a ' '");
    expect_status(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=Model", "input_shape=1")),
                  REMAT_INVALID);
    expect_message(f, "the name of a section");
    expect_status(f, remat_model_add_layer(model, "projection_cross_entropy", REMAT_PROPERTIES("unit=3")),
                  REMAT_INVALID);
    expect_message(f, "write those two");
    assert_int_equal(remat_model_layer_count(model), 0);
    remat_model_layer layer;
    expect_status(f, remat_model_get_layer(model, 0, &layer), REMAT_INVALID);
    expect_status(f, remat_model_write_summary(model, stdout, false), REMAT_INVALID);
    expect_message(f, "not compiled");
    expect_status(f, remat_model_compile(model), REMAT_INVALID);
    expect_message(f, "no layers");
    remat_model_destroy(model);
}

static void names_are_made_from_types(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_model_layer layer;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("input_shape=4", "name=activation1")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("activation=relu")));
    expect_status(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=ACTIVATION2")), REMAT_INVALID);
    expect_message(f, "there is a layer 'ACTIVATION2' already");
    expect_ok(f, remat_model_add_layer(model, "mse", NULL));
    expect_ok(f, remat_model_compile(model));
    expect_ok(f, remat_model_get_layer(model, 1, &layer));
    assert_string_equal(layer.name, "activation2");
    expect_ok(f, remat_model_get_layer(model, 2, &layer));
    assert_string_equal(layer.name, "mse2");
    expect_status(f, remat_model_add_layer(model, "mse", NULL), REMAT_INVALID);
    expect_message(f, "compiled model");
    expect_status(f, remat_model_compile(model), REMAT_INVALID);
    remat_model_destroy(model);
}

static void a_compiled_model_takes_another_batch_size(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_model_layer before, after;
    expect_ok(f, build(f->context, &model));
    expect_ok(f, remat_model_get_layer(model, 1, &before));
    assert_int_equal(before.output_bytes, 32 * 512 * sizeof(float));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=64")));
    expect_ok(f, remat_model_get_layer(model, 1, &after));
    assert_int_equal(after.output_bytes, 2 * before.output_bytes);
    assert_int_equal(remat_model_batch(model), 64);
    expect_status(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=0")), REMAT_INVALID);
    expect_status(f, remat_model_set(model, REMAT_PROPERTIES("batchsize=4")), REMAT_INVALID);
    expect_message(f, "batchsize: [Model] has no such property; did you mean batch_size? It has name, batch_size");
    assert_int_equal(remat_model_batch(model), 64);
    remat_model_destroy(model);
}

/* ---- settings ---- */

#define REST "[in : input]\ninput_shape = 4\n[loss : mse]\n"

static void settings_are_checked(void **state)
{
    fixture *f = *state;
    refused(f, "[Model]\nbudget = 8G\n" REST, 2, "budget: ");
    refused(f, "[Model]\nbatch_size = -1\n" REST, 2, "batch_size: '-1' is not a whole number");
    refused(f, "[Model]\nType = net\n" REST, 2, "one kind of model");
    refused(f, "[Model]\n[in : input]\ninput_shape = 4\n[MODEL]\n[loss : mse]\n", 4,
            "a second time; the first is in line 1");
    refused(f, "[Optimizer]\nlearning_rate = 1\n" REST, 1, "[Optimizer] needs a Type");
    refused(f, "[Optimizer]\nType = adagrad\n" REST, 2, "'adagrad' is not one of sgd, adam, adamw");
    refused(f, "[Optimizer]\nType = adam\nmomentum = 0.9\n" REST, 3,
            "momentum: it would do nothing here; it belongs to sgd");
    refused(f, "[Optimizer]\nType = sgd\nbeta1 = 0.9\n" REST, 3, "belongs to adam, adamw and lion");
    refused(f, "[Optimizer]\nType = sgd\nnesterov = true\n" REST, 3, "needs a momentum");
    refused(f, "[Optimizer]\nType = sgd\nschedule = step\n" REST, 3, "needs a step_size");
    refused(f, "[Optimizer]\nType = sgd\ngamma = 0.5\n" REST, 3, "belongs to the schedules step and plateau");
    refused(f, "[Optimizer]\nType = sgd\nmin_rate = 1\nschedule = cosine\n" REST, 3, "above the learning rate");
    refused(f, "[Dataset]\nType = npy\n" REST, 2, "needs 'inputs'");
    refused(f, "[Dataset]\nType = random\ninputs = a.npy\n" REST, 3, "belongs to npy, images, csv, text and jsonl");
    refused(f, "[Dataset : text]\ninputs = a\nlabels = b\n" REST, 3, "belongs to npy and csv");
    refused(f, "[Dataset : text]\ninputs = a\nvalidation_inputs = b\nvalidation_split = 0.5\n" REST, 4,
            "one of the two");
    refused(f, "[Dataset : text]\nType = text\ninputs = a\n" REST, 2, "the section's head says it already");
}

static void settings_have_standard_values(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, read_text(f, REST, &model));
    assert_int_equal(model_get_settings(model)->batch_size, 1);
    assert_int_equal(model_get_settings(model)->accumulate, 1);
    assert_null(model_get_settings(model)->budget);
    assert_null(model_get_settings(model)->name);
    assert_int_equal(model_get_optimizer(model)->type, OPTIMIZER_SGD);
    assert_true(model_get_optimizer(model)->learning_rate == 0.001);
    assert_int_equal(model_get_optimizer(model)->schedule, RATE_CONSTANT);
    assert_int_equal(model_get_dataset(model)->type, DATASET_NONE);
    assert_int_equal(model_get_dataset(model)->samples, 1024);
    assert_ptr_equal(model_context(model), f->context);
    remat_model_destroy(model);
}

/* ---- files ---- */

static void wrong_sections_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, "[in]\ninput_shape = 4\n", 1, "[in] has no Type");
    refused(f, "[Optimzer]\ntype = adam\n", 1, "there is no section [Optimzer]; did you mean [Optimizer]?");
    refused(f, "[datasets : csv]\ninputs = a\n", 1, "there is no section [datasets]; did you mean [Dataset]?");
    refused(f, "[in : ]\ninput_shape = 4\n", 1, "no type behind the ':'");
    refused(f, "[in : input]\nname = x\ninput_shape = 4\n", 2, "the section's name is the name of the layer");
    refused(f, "[in : input]\ninput_shape = 4\n[IN : mse]\n", 3, "there is a layer 'IN' already, in line 1");
    refused(f, "[in : input]\ninput_shape = 4\n[a : fully_connected]\nunits = 4\n[loss : mse]\n", 4,
            "layer 'a': units: fully_connected has no such property; did you mean unit? It has unit");
    refused(f, "[in : input]\ninput_shape = 4\n[a b : fully_connected]\nunit = 4\n", 3, "has a ' '");
    refused(f, "[in : input]\ninput_shape = 4\n[a..b : fully_connected]\nunit = 4\n", 3, "stands for a range");
}

static void a_missing_file_says_so(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_status(f, remat_model_load(f->context, "examples/models/none.ini", &model), REMAT_IO);
    expect_message(f, "none.ini: cannot be opened");
    assert_null(model);
}

/* ---- repetition ---- */

static void a_group_is_repeated(void **state)
{
    fixture *f = *state;
    remat_model *model, *plain;
    expect_ok(
        f, read_text(f,
                     "[in : input]\ninput_shape = 4\n[Repeat hidden]\ncount = 3\n[fc{i} : fully_connected]\nunit = 4\n"
                     "[sum{i} : addition]\ninput_layers = {in}, fc{i}\n[Block b{i}]\nlayers = fc{i}, sum{i}\n[End]\n"
                     "[loss : mse]\n",
                     &model));
    expect_ok(f, read_text(f,
                           "[in : input]\ninput_shape = 4\n[fc0 : fully_connected]\nunit = 4\n[sum0 : addition]\n"
                           "input_layers = in, fc0\n[fc1 : fully_connected]\nunit = 4\n[sum1 : addition]\n"
                           "input_layers = sum0, fc1\n[fc2 : fully_connected]\nunit = 4\n[sum2 : addition]\n"
                           "input_layers = sum1, fc2\n[loss : mse]\n[Block b0]\nlayers = fc0 .. sum0\n[Block b1]\n"
                           "layers = fc1 .. sum1\n[Block b2]\nlayers = fc2 .. sum2\n",
                           &plain));
    char *a = summary_of(f, model, true), *b = summary_of(f, plain, true);
    assert_string_equal(a, b);
    free(a);
    free(b);
    remat_network *network;
    expect_ok(f, network_build(model, &(network_options){1, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    assert_int_equal(network->layers[4].inputs[0], 2); /* sum1 reads sum0 */
    network_destroy(network);
    remat_model_destroy(model);
    remat_model_destroy(plain);
}

static void wrong_groups_are_refused(void **state)
{
    fixture *f = *state;
#define IN "[in : input]\ninput_shape = 4\n"
    refused(f, IN "[Repeat a]\ncount = 2\n[a{i} : dropout]\n[Repeat b]\ncount = 2\n[b{i} : dropout]\n[End]\n[End]\n", 6,
            "a group inside a group");
    refused(f, IN "[Repeat a]\ncount = 2\n[a{i} : dropout]\n", 3, "[Repeat a] has no [End]");
    refused(f, IN "[End]\n", 3, "[End] without a [Repeat NAME]");
    refused(f, IN "[Repeat a]\ncount = 2\n[End]\n", 3, "repeats nothing");
    refused(f, IN "[Repeat a]\n[a{i} : dropout]\n[End]\n", 3, "one key, count = N");
    refused(f, IN "[Repeat a]\ncount = 0\n[a{i} : dropout]\n[End]\n", 4,
            "count: '0' is not a whole number from 1 to 100000");
    refused(f, IN "[Repeat a]\ncount = 100001\n[a{i} : dropout]\n[End]\n", 4, "100000 is the most");
    refused(f, IN "[Repeat a]\ncount = 99999999999999999999\n[a{i} : dropout]\n[End]\n", 4, "count");
    refused(f, IN "[Repeat a]\ncount = 2\n[a : dropout]\n[End]\n", 5, "there is a layer 'a' already, in line 5");
    refused(f, IN "[Repeat a]\ncount = 2\n[a{j} : dropout]\n[End]\n", 5, "{i} is the number of the copy");
    refused(f, IN "[Repeat a]\ncount = 2\n[a{i} : dropout]\nrate = {i\n[End]\n", 6, "{i} is the number of the copy");
    refused(f, IN "[Repeat a]\ncount = 2\n[Model]\n[End]\n", 5, "[Model] cannot be repeated");
    refused(f, IN "[Repeat a]\ncount = 2\n[a{i} : dropout]\n[End]\nx = 1\n[loss : mse]\n", 6, "[End] has no keys");
    refused(f, "[Repeat a]\ncount = 2\n[a{i} : dropout]\ninput_layers = {in}\n[End]\n", 4,
            "no layer stands before the group");
    refused(f, IN "[a{i} : dropout]\n", 3, "has a '{'");
}

static void too_many_layers_are_refused(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    fprintf(text.stream, "[in : input]\ninput_shape = 1\n[Repeat a]\ncount = 100000\n");
    for (int i = 0; i < 11; i++)
        fprintf(text.stream, "[l{i}_%d : dropout]\n", i);
    fprintf(text.stream, "[End]\n[loss : mse]\n");
    capture_end(&text);
    refused(f, text.text, 5, "more than 1000000 layers");
    free(text.text);
}

/* ---- the examples ---- */

static void expect_example(fixture *f, const char *name, uint64_t parameters, size_t layers)
{
    remat_model *model;
    char path[100];
    snprintf(path, sizeof path, "examples/models/%s.ini", name);
    expect_ok(f, remat_model_load(f->context, path, &model));
    assert_int_equal(remat_model_parameter_count(model), parameters);
    assert_int_equal(remat_model_layer_count(model), layers);
    assert_string_equal(model_get_dataset(model)->folder, "examples/models");
    remat_model_destroy(model);
}

static uint64_t gpt_parameters(uint64_t layers, uint64_t width, uint64_t positions, uint64_t vocabulary)
{
    uint64_t attention = 4 * width * width + 4 * width, mlp = 8 * width * width + 5 * width, norms = 4 * width;
    return (vocabulary + positions) * width + layers * (attention + mlp + norms) + 2 * width;
}

static void the_examples_are_what_they_say(void **state)
{
    fixture *f = *state;
    expect_example(f, "mlp", 784 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10, 9);
    expect_example(f, "mlp_bench", 784 * 1024 + 1024 + 7 * (1024 * 1024 + 1024) + 1024 * 10 + 10, 19);
    expect_example(f, "transformer", 6 * (4 * 512 * 512 + 4 * 512 + 2 * 512 * 2048 + 2048 + 512 + 4 * 512), 2 + 6 * 8);
    expect_example(f, "gpt", gpt_parameters(4, 64, 210, 256), 5 + 4 * 10);
    expect_example(f, "gpt_bench", gpt_parameters(6, 384, 1024, 8192), 5 + 6 * 10);
    expect_example(f, "gpt24", gpt_parameters(24, 1024, 1024, 50257), 5 + 24 * 10);
    expect_example(f, "convnet", 16 * 9 + 16 + 32 * 16 * 9 + 32 + 32 * 49 * 64 + 64 + 640 + 10, 11);
    expect_example(f, "resnet", 16 * 9 + 32 + 4 * 2 * (16 * 16 * 9 + 32) + 160 + 10, 5 + 4 * 7 + 4);
}

/* ---- summaries ---- */

static void a_summary_has_every_figure(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_model_layer layer;
    expect_ok(f,
              read_text(f,
                        "[Model]\nname = small\nbatch_size = 3\n[in : input]\ninput_shape = 2:4\n"
                        "[n : layer_normalization]\n[flat : flatten]\n[fc : fully_connected]\nunit = 1000\nblock = b\n"
                        "activation = relu\n[loss : mse]\n",
                        &model));
    expect_ok(f, remat_model_get_layer(model, 1, &layer));
    assert_string_equal(layer.type, "layer_normalization");
    assert_int_equal(layer.output_shape[1], 2);
    assert_int_equal(layer.output_shape[2], 4);
    assert_int_equal(layer.parameters, 8);
    assert_int_equal(layer.output_bytes, 3 * 8 * sizeof(float));
    assert_true(layer.saved_bytes > 0);
    assert_string_equal(layer.block, "");
    expect_ok(f, remat_model_get_layer(model, 2, &layer));
    assert_int_equal(layer.output_bytes, 0); /* a view */
    expect_ok(f, remat_model_get_layer(model, 4, &layer));
    assert_string_equal(layer.name, "fc.activation");
    assert_string_equal(layer.block, "b");
    assert_int_equal(remat_model_parameter_count(model), 8 + 8000 + 1000);
    char *text = summary_of(f, model, false), *json = summary_of(f, model, true);
    expect_text(text, "small\n\nlayer");
    expect_text(text, "9,000");
    expect_text(text, "6 layers, 1 block, batch 3\n9,008 parameters");
    expect_text(json, "{\"format\": \"remat-summary\", \"version\": 1, \"name\": \"small\", \"batch\": 3");
    expect_text(json, "\"type\": \"flatten\", \"output_shape\": [1, 1, 8], \"parameters\": 0, \"output_bytes\": 0");
    expect_text(json, "\"block\": \"b\"}");
    expect_text(json, "\"parameters\": 9008");
    free(text);
    free(json);
    remat_model_destroy(model);
}

/* ---- no memory ---- */

static const char wide[] =
    "[Model]\nname = a\n[Optimizer : adam]\n[Dataset : text]\ninputs = a, b\n"
    "[tokens : input]\ninput_shape = 5\n[emb : embedding]\nin_dim = 11\nout_dim = 4\npositions = 8\n"
    "[Repeat r]\ncount = 20\n[n{i} : layer_normalization]\n[a{i} : multi_head_attention]\nnum_heads = 2\n"
    "[s{i} : addition]\ninput_layers = {in}, a{i}\n[Block b{i}]\nlayers = n{i} .. s{i}\n[End]\n"
    "[head : fully_connected]\nunit = 11\nbias = false\nshared_from = emb\n[loss : cross_entropy]\n";

static void every_allocation_of_reading_may_fail(void **state)
{
    fixture *f = *state;
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; status == REMAT_NO_MEMORY; n++) {
        f->memory.fail_at = f->memory.calls + n;
        remat_model *model;
        status = read_text(f, wide, &model);
        if (status == REMAT_NO_MEMORY) {
            assert_null(model);
            assert_int_equal(f->memory.blocks, 1); /* the context */
        }
        remat_model_destroy(model);
    }
    expect_ok(f, status);
}

static void every_allocation_of_the_calls_may_fail(void **state)
{
    fixture *f = *state;
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; status == REMAT_NO_MEMORY; n++) {
        f->memory.fail_at = f->memory.calls + n;
        remat_model *model;
        status = build(f->context, &model);
        remat_model_destroy(model);
    }
    expect_ok(f, status);
}

/* ---- damaged files ---- */

/* A file with some bytes gone or replaced (never by digits, so that no count grows) is read or refused, no more. */
static void damage_is_refused_or_harmless(void **state)
{
    fixture *f = *state;
    static const char letters[] = "[]=#{}:.,; \nix-_";
    uint64_t seed = test_seed();
    test_random random = {seed};
    for (int round = 0; round < LESS_WHEN_SANITIZED(1000, 300); round++) {
        char text[sizeof wide];
        strcpy(text, wide);
        for (uint64_t edits = 1 + test_random_below(&random, 3); edits; edits--) {
            size_t length = strlen(text), at = test_random_below(&random, length);
            if (test_random_below(&random, 2))
                memmove(text + at, text + at + 1, length - at);
            else
                text[at] = letters[test_random_below(&random, sizeof letters - 1)];
        }
        remat_model *model;
        remat_status status = read_text(f, text, &model);
        if (status != REMAT_OK && status != REMAT_BAD_INPUT)
            fail_msg("seed %llu: status %d: %s", (unsigned long long)seed, status, remat_context_message(f->context));
        remat_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(calls_and_files_say_the_same),
        FIXTURE_TEST(calls_refuse_what_is_wrong_at_once),
        FIXTURE_TEST(names_are_made_from_types),
        FIXTURE_TEST(a_compiled_model_takes_another_batch_size),
        FIXTURE_TEST(settings_are_checked),
        FIXTURE_TEST(settings_have_standard_values),
        FIXTURE_TEST(wrong_sections_are_refused),
        FIXTURE_TEST(a_missing_file_says_so),
        FIXTURE_TEST(a_group_is_repeated),
        FIXTURE_TEST(wrong_groups_are_refused),
        FIXTURE_TEST(too_many_layers_are_refused),
        FIXTURE_TEST(the_examples_are_what_they_say),
        FIXTURE_TEST(a_summary_has_every_figure),
        FIXTURE_TEST(every_allocation_of_reading_may_fail),
        FIXTURE_TEST(every_allocation_of_the_calls_may_fail),
        FIXTURE_TEST(damage_is_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
