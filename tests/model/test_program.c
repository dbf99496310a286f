/* The actions that a network becomes: which gradients are shared, summed and copied, and when parameters change. */
#include "support/fixture.h"

#include "model/program.h"

typedef struct program_rig {
    remat_model *model;
    remat_network *network;
    remat_program *program;
} program_rig;

static program_rig open_rig(fixture *f, const char *text, program_apply apply)
{
    program_rig rig;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read(f->context, stream, "text", &rig.model));
    fclose(stream);
    expect_ok(f, network_build(rig.model, &(network_options){2, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &rig.network));
    expect_ok(f, program_build(rig.network, apply, &rig.program));
    return rig;
}

static void close_rig(program_rig *rig)
{
    program_destroy(rig->program);
    network_destroy(rig->network);
    remat_model_destroy(rig->model);
}

/* The action of a kind of the layer called `name`; NULL where there is none. */
static const graph_action *action_of(const program_rig *rig, action_kind kind, const char *name)
{
    const remat_graph *graph = rig->program->graph;
    for (size_t a = 0; a < graph->action_count; a++)
        if (rig->program->actions[a].kind == kind &&
            strcmp(rig->network->layers[rig->program->actions[a].layer].node.name, name) == 0)
            return &graph->actions[a];
    return NULL;
}

static program_binding binding_of(const program_rig *rig, action_kind kind, const char *name)
{
    const graph_action *action = action_of(rig, kind, name);
    assert_non_null(action);
    return program_binding_of(rig->program, (uint32_t)(action - rig->program->graph->actions));
}

static size_t count_kind(const program_rig *rig, action_kind kind)
{
    size_t count = 0;
    for (size_t a = 0; a < rig->program->graph->action_count; a++)
        count += rig->program->actions[a].kind == kind;
    return count;
}

static bool reads(const program_rig *rig, const graph_action *action, uint32_t tensor)
{
    for (size_t i = 0; i < action->read_count; i++)
        if (graph_reads(rig->program->graph, action)[i] == tensor)
            return true;
    return false;
}

static bool updates(const program_rig *rig, const graph_action *action, uint32_t tensor)
{
    for (size_t i = 0; i < action->update_count; i++)
        if (graph_updates(rig->program->graph, action)[i] == tensor)
            return true;
    return false;
}

#define INPUT       "[in : input]\ninput_shape = 8\n"
#define DENSE(name) "[" name " : fully_connected]\nunit = 8\n"
#define LOSS        "[loss : mse]\n"

/* ---- gradients ---- */

/* A residual: the sum passes its gradient on, so it needs no action of its own, and `a` is added to by `b`. */
static void test_shared(void **state)
{
    program_rig rig = open_rig(*state, INPUT DENSE("a") DENSE("b") "[sum : addition]\ninput_layers = a, b\n" LOSS,
                               PROGRAM_APPLY_AT_ONCE);
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "sum"));
    uint32_t gradient = binding_of(&rig, ACTION_INPUT_GRADIENT, "loss").d_inputs[0];
    const program_binding b = binding_of(&rig, ACTION_INPUT_GRADIENT, "b");
    assert_int_equal(b.d_output, gradient);
    /* b reads the gradient that a shares: it must not be overwritten while b still needs it, hence the copy. */
    assert_int_equal(b.copied[0], gradient);
    assert_int_not_equal(b.d_inputs[0], gradient);
    assert_int_equal(b.accumulate_inputs, 1);
    assert_int_equal(binding_of(&rig, ACTION_WEIGHT_GRADIENT, "a").d_output, b.d_inputs[0]);
    close_rig(&rig);
}

/* x + x: twice the gradient, in one copy. */
static void test_same_twice(void **state)
{
    program_rig rig =
        open_rig(*state, INPUT DENSE("a") "[sum : addition]\ninput_layers = a, a\n" LOSS, PROGRAM_APPLY_AT_ONCE);
    const program_binding sum = binding_of(&rig, ACTION_INPUT_GRADIENT, "sum");
    const graph_action *action = action_of(&rig, ACTION_INPUT_GRADIENT, "sum");
    assert_int_equal(sum.d_inputs[0], GRAPH_NONE);
    assert_int_equal(sum.copied[1], sum.d_output);
    assert_int_not_equal(sum.d_inputs[1], sum.d_output);
    assert_int_equal(sum.accumulate_inputs, 2);
    assert_true(reads(&rig, action, sum.d_output));
    assert_int_equal(action->update_count, 0);
    assert_int_equal(binding_of(&rig, ACTION_WEIGHT_GRADIENT, "a").d_output, sum.d_inputs[1]);
    close_rig(&rig);
}

/* A tensor that two sums read: the second adds to what the first shared. */
static void test_two_sums(void **state)
{
    program_rig rig = open_rig(*state,
                               INPUT DENSE("a") DENSE("b") "[s1 : addition]\ninput_layers = a, b\n" DENSE(
                                   "c") "[s2 : addition]\ninput_layers = a, c\n" LOSS,
                               PROGRAM_APPLY_AT_ONCE);
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "s2")); /* a and c share the gradient of the loss */
    const graph_action *s1 = action_of(&rig, ACTION_INPUT_GRADIENT, "s1");
    const program_binding binding = binding_of(&rig, ACTION_INPUT_GRADIENT, "s1");
    assert_int_equal(binding.d_inputs[0], binding_of(&rig, ACTION_INPUT_GRADIENT, "loss").d_inputs[0]);
    assert_int_equal(binding.copied[0], GRAPH_NONE); /* c is done with it */
    assert_true(updates(&rig, s1, binding.d_inputs[0]));
    close_rig(&rig);
}

/* What three layers read is written once and added to twice. */
static void test_three_readers(void **state)
{
    program_rig rig = open_rig(*state,
                               INPUT DENSE("a") DENSE("b") "[c : fully_connected]\nunit = 8\ninput_layers = a\n"
                                                           "[d : fully_connected]\nunit = 8\ninput_layers = a\n"
                                                           "[sum : addition]\ninput_layers = b, c, d\n" LOSS,
                               PROGRAM_APPLY_AT_ONCE);
    uint32_t gradient = binding_of(&rig, ACTION_WEIGHT_GRADIENT, "a").d_output;
    const char *const names[] = {"d", "c", "b"};
    for (int i = 0; i < 3; i++) {
        const program_binding binding = binding_of(&rig, ACTION_INPUT_GRADIENT, names[i]);
        assert_int_equal(binding.d_inputs[0], gradient);
        assert_int_equal(binding.accumulate_inputs, i > 0);
        assert_int_equal(updates(&rig, action_of(&rig, ACTION_INPUT_GRADIENT, names[i]), gradient), i > 0);
        assert_int_equal(binding.copied[0], GRAPH_NONE);
    }
    close_rig(&rig);
}

/* Nobody wants the gradient of data, nor of what was made from data alone. */
static void test_no_gradient_of_data(void **state)
{
    program_rig rig =
        open_rig(*state, INPUT "[act : activation]\nactivation = tanh\n" DENSE("a") LOSS, PROGRAM_APPLY_AT_ONCE);
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "act"));
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "a"));
    assert_non_null(action_of(&rig, ACTION_WEIGHT_GRADIENT, "a"));
    close_rig(&rig);
}

/* ---- parameters ---- */

#define TIED                                                                               \
    "[in : input]\ninput_shape = 4\n[table : embedding]\nin_dim = 9\nout_dim = 8\n" DENSE( \
        "a") "[head : fully_connected]\nunit = 9\nbias = false\nshared_from = table\n[loss : cross_entropy]\n"

/* The head writes the gradient of the tied weight, the embedding adds to it and applies it. */
static void test_tied(void **state)
{
    program_rig rig = open_rig(*state, TIED, PROGRAM_APPLY_AT_ONCE);
    assert_int_equal(rig.network->parameter_count, 3);
    uint32_t gradient = rig.program->gradients[0];
    const program_binding head = binding_of(&rig, ACTION_INPUT_GRADIENT, "head");
    assert_int_equal(head.gradients[0], gradient);
    assert_int_equal(head.accumulate_gradients, 0);
    const program_binding table = binding_of(&rig, ACTION_WEIGHT_GRADIENT, "table");
    assert_int_equal(table.gradients[0], gradient);
    assert_int_equal(table.accumulate_gradients, 1);
    assert_true(updates(&rig, action_of(&rig, ACTION_WEIGHT_GRADIENT, "table"), gradient));
    assert_null(action_of(&rig, ACTION_APPLY, "head"));
    assert_true(reads(&rig, action_of(&rig, ACTION_APPLY, "table"), gradient));
    close_rig(&rig);
}

static void test_when_to_apply(void **state)
{
    const char *text = INPUT DENSE("a") DENSE("b") LOSS;
    program_rig once = open_rig(*state, text, PROGRAM_APPLY_AT_ONCE);
    assert_int_equal(count_kind(&once, ACTION_APPLY), 2);
    /* b's weights change before a's gradient is made, but after all that reads them. */
    assert_true(action_of(&once, ACTION_APPLY, "b") < action_of(&once, ACTION_WEIGHT_GRADIENT, "a"));
    assert_true(action_of(&once, ACTION_APPLY, "b") > action_of(&once, ACTION_INPUT_GRADIENT, "b"));
    close_rig(&once);
    program_rig end = open_rig(*state, text, PROGRAM_APPLY_AT_END);
    assert_true(action_of(&end, ACTION_APPLY, "b") > action_of(&end, ACTION_WEIGHT_GRADIENT, "a"));
    close_rig(&end);
    program_rig sums = open_rig(*state, text, PROGRAM_ADD_AT_ONCE);
    assert_int_equal(count_kind(&sums, ACTION_APPLY), 2);
    /* The gradient of a micro-batch is complete before it is added to those of others. */
    assert_int_equal(binding_of(&sums, ACTION_WEIGHT_GRADIENT, "a").accumulate_gradients, 0);
    close_rig(&sums);
    program_rig forward = open_rig(*state, text, PROGRAM_FORWARD_ONLY);
    assert_int_equal(count_kind(&forward, ACTION_INPUT_GRADIENT) + count_kind(&forward, ACTION_WEIGHT_GRADIENT), 0);
    assert_int_equal(forward.program->graph->result_count, 0); /* the loss is no tensor */
    close_rig(&forward);
}

/* ---- bytes ---- */

/* An activation may take the bytes of its input, and its gradient those of the output's; views have none. */
static void test_in_place(void **state)
{
    program_rig rig =
        open_rig(*state, INPUT DENSE("a") "[act : activation]\nactivation = relu\n[flat : flatten]\n" DENSE("b") LOSS,
                 PROGRAM_APPLY_AT_ONCE);
    const graph_action *act = action_of(&rig, ACTION_INPUT_GRADIENT, "act");
    assert_non_null(act);
    assert_int_equal(act->in_place_from, binding_of(&rig, ACTION_INPUT_GRADIENT, "act").d_output);
    assert_int_equal(act->in_place_to, binding_of(&rig, ACTION_INPUT_GRADIENT, "act").d_inputs[0]);
    assert_null(action_of(&rig, ACTION_FORWARD, "flat"));
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "flat"));
    uint32_t output = binding_of(&rig, ACTION_FORWARD, "act").output;
    assert_int_equal(binding_of(&rig, ACTION_FORWARD, "b").inputs[0], output);
    for (size_t t = 0; t < rig.program->graph->tensor_count; t++)
        assert_int_equal(rig.program->graph->tensors[t].bytes % 4, 0);
    assert_int_equal(rig.program->graph->tensors[output].bytes, 2 * 8 * 4);
    close_rig(&rig);
}

/* ---- bits instead of outputs ---- */

/* What the backward of `act` reads besides the gradient: its output, or bits. */
static void expect_kept(fixture *f, const char *text, bool bits)
{
    program_rig rig = open_rig(f, text, PROGRAM_APPLY_AT_ONCE);
    const program_binding forward = binding_of(&rig, ACTION_FORWARD, "act"),
                          backward = binding_of(&rig, ACTION_INPUT_GRADIENT, "act");
    const graph_tensor *tensors = rig.program->graph->tensors;
    const graph_action *action = action_of(&rig, ACTION_INPUT_GRADIENT, "act");
    if (bits) {
        assert_int_equal(backward.output, GRAPH_NONE);
        assert_int_equal(backward.saved[0], forward.saved[0]);
        assert_true(reads(&rig, action, forward.saved[0]));
        assert_false(reads(&rig, action, forward.output));
        assert_int_equal(tensors[forward.saved[0]].dtype, REMAT_UINT8);
        assert_int_equal(tensors[forward.saved[0]].bytes, (tensors[forward.output].bytes / 4 + 7) / 8);
        assert_string_equal(tensors[forward.saved[0]].name, "act.positive");
    } else {
        assert_int_equal(backward.output, forward.output);
        assert_int_equal(forward.saved[0], GRAPH_NONE);
        assert_true(reads(&rig, action, forward.output));
    }
    close_rig(&rig);
}

static void test_bits_for_outputs(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *behind;
        bool bits; /* of a relu before it */
    } cases[] = {
        {DENSE("b"), false},
        {"[b : fully_connected]\nunit = 8\ntrainable = false\n", true},
        {"[b : addition]\ninput_layers = act, a\n", true},
        {"[b : addition]\ninput_layers = act, act\n", true},
        {"[b : multiply]\ninput_layers = act, a\n", false},
        {"[b : dropout]\nrate = 0.5\n", true},
        {"[b : pooling2d]\npool_size = 1,2\n", true},
        {"[b : pooling2d]\npooling = global_average\n", true},
        {"[b : layer_normalization]\n", false},
        {"[b : activation]\nactivation = tanh\n", true},
        {"[b : activation]\nactivation = gelu\n", false},
        {"[b : flatten]\n[c : dropout]\nrate = 0.5\n", true}, /* by way of a view */
        {"[b : flatten]\n" DENSE("c"), false},
        {"[b : dropout]\nrate = 0.5\n[c : fully_connected]\nunit = 8\ninput_layers = act\n"
         "[d : addition]\ninput_layers = b, c\n",
         false},     /* one of two readers needs it */
        {"", false}, /* the loss reads it */
    };
    static const char *const kinds[] = {"relu", "leaky_relu", "sigmoid", "tanh", "softmax"};
    char text[1024];
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            snprintf(text, sizeof text, INPUT DENSE("a") "[act : activation]\nactivation = %s\n%s" LOSS, kinds[k],
                     cases[c].behind);
            expect_kept(f, text, cases[c].bits && k < 2);
        }
}

/* An activation that has no backward saves nothing, and neither does one that is not trained. */
static void test_no_bits_for_nothing(void **state)
{
    fixture *f = *state;
    const char *text = INPUT "[act : activation]\nactivation = relu\n[b : dropout]\nrate = 0.5\n" DENSE("c") LOSS;
    program_rig rig = open_rig(f, text, PROGRAM_APPLY_AT_ONCE);
    assert_null(action_of(&rig, ACTION_INPUT_GRADIENT, "act"));
    assert_int_equal(binding_of(&rig, ACTION_FORWARD, "act").saved[0], GRAPH_NONE);
    close_rig(&rig);
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read(f->context, stream, "text", &rig.model));
    fclose(stream);
    static const network_purpose purposes[] = {NETWORK_INFERENCE, NETWORK_EVALUATION};
    for (int i = 0; i < 2; i++) {
        expect_ok(f, network_build(rig.model, &(network_options){2, purposes[i], REMAT_FP32, NULL, 0}, &rig.network));
        for (size_t n = 0; n < rig.network->layer_count; n++)
            assert_false(rig.network->layers[n].node.output_unread);
        network_destroy(rig.network);
    }
    remat_model_destroy(rig.model);
}

/* ---- costs ---- */

static void test_measured_costs(void **state)
{
    fixture *f = *state;
    program_rig rig = open_rig(f, INPUT DENSE("a") DENSE("b") LOSS, PROGRAM_APPLY_AT_ONCE);
    remat_profile *profile;
    expect_ok(
        f, read_profile_text(
               f,
               "{\"format\": \"remat-profile\", \"version\": 1, \"cost_unit\": \"ns\", \"layers\": "
               "[{\"index\": 0, \"name\": \"b\", \"type\": \"ffn\", \"activation_bytes\": 64, \"recompute_flops\": 5, "
               "\"forward_cost\": 1234, \"backward_cost\": 9999}]}",
               &profile));
    expect_ok(f, program_set_costs(rig.program, profile));
    remat_profile_destroy(profile);
    assert_int_equal(action_of(&rig, ACTION_FORWARD, "b")->cost, 1234);
    assert_int_equal(action_of(&rig, ACTION_WEIGHT_GRADIENT, "b")->cost +
                         action_of(&rig, ACTION_INPUT_GRADIENT, "b")->cost + action_of(&rig, ACTION_APPLY, "b")->cost,
                     9999);
    expect_ok(f,
              read_profile_text(f,
                                "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [{\"index\": 0, \"name\": "
                                "\"z\", \"type\": \"ffn\", \"activation_bytes\": 64, \"recompute_flops\": 5}]}",
                                &profile));
    expect_status(f, program_set_costs(rig.program, profile), REMAT_BAD_INPUT);
    expect_message(f, "not in ns");
    expect_ok(f, remat_profile_set_cost_unit(profile, "ns"));
    expect_status(f, program_set_costs(rig.program, profile), REMAT_BAD_INPUT);
    expect_message(f, "none of the model's layers");
    remat_profile_destroy(profile);
    close_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_shared),
        FIXTURE_TEST(test_same_twice),
        FIXTURE_TEST(test_two_sums),
        FIXTURE_TEST(test_three_readers),
        FIXTURE_TEST(test_no_gradient_of_data),
        FIXTURE_TEST(test_tied),
        FIXTURE_TEST(test_when_to_apply),
        FIXTURE_TEST(test_in_place),
        FIXTURE_TEST(test_bits_for_outputs),
        FIXTURE_TEST(test_no_bits_for_nothing),
        FIXTURE_TEST(test_measured_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
