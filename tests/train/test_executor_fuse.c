/* Which activations run with the product before them: buffers are placed by hand, recorded calls are counted, and all that is
 * made has the bits of a run in which every action runs by itself. */
#include "support/fixture.h"
#include "support/kernel_compare.h"
#include "support/program_rig.h"

#include "data/data_needs.h"
#include "train/executor_object.h"

enum { BATCH = 37 };

static void rig_open(program_rig *rig, const remat_model *model, network_purpose purpose, program_apply apply)
{
    const program_rig_options options = {BATCH, purpose, apply, REMAT_FP32, {.threads = 2}};
    program_rig_open(rig, model, &options);
    test_random random = {7};
    for (size_t p = 0; p < rig->network->parameter_count; p++) {
        float *values = program_rig_parameter(rig, p);
        for (uint64_t i = 0; i < rig->network->parameters[p].values; i++)
            values[i] = random_value(&random, -0.5, 0.5);
    }
}

/* The buffer of a tensor's only instance. */
static uint32_t buffer_of(const program_rig *rig, const char *tensor)
{
    for (size_t i = 0; i < rig->liveness.range_count; i++)
        if (rig->liveness.ranges[i].tensor != GRAPH_NONE &&
            strcmp(rig->program->graph->tensors[rig->liveness.ranges[i].tensor].name, tensor) == 0)
            return rig->liveness.ranges[i].buffer;
    fail_msg("there is no tensor %s", tensor);
    return 0;
}

static unsigned count_calls(const recording *calls, operation op)
{
    unsigned count = 0;
    for (size_t at = 0; at < calls->used; at += recording_call(calls, at)->bytes)
        count += recording_call(calls, at)->op == op && recording_call(calls, at)->kernel;
    return count;
}

static void look_away(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended)
{
    (void)user, (void)position, (void)is_recompute, (void)began, (void)ended;
}

/* What a run makes: all gradients, or the result. The caller frees it. */
static float *run_once(program_rig *rig, bool observed, double *loss, size_t *bytes)
{
    test_random random = {11};
    data_needs needs = network_data_needs(rig->network);
    const executor_hooks hooks = {.observe = look_away};
    float *data[2] = {rig->staged.inputs[0], rig->staged.labels};
    uint64_t counts[2] = {needs.inputs[0].values * BATCH, needs.labels.values * BATCH};
    memset(rig->arena, 0xff, rig->arena_bytes);
    memset(rig->gradients, 0, rig->network->parameter_bytes);
    for (int d = 0; d < 2 && data[d]; d++)
        for (uint64_t i = 0; i < counts[d]; i++)
            data[d][i] = random_value(&random, -1, 1);
    *loss = program_rig_run(rig, 5, observed ? &hooks : NULL);
    uint32_t layer;
    tensor_ref result = executor_result(rig->executor, 0, &layer);
    *bytes = result.at ? layer_values(rig->network->layers[layer].node.output) * BATCH * sizeof(float)
                       : rig->network->parameter_bytes;
    float *made = malloc(*bytes);
    memcpy(made, result.at ? result.at : rig->gradients, *bytes);
    return made;
}

/* With the offsets as they are now: so many are fused, and the run has the same bits as an observed one. */
static void expect_fused(program_rig *rig, uint64_t fused, unsigned activate, unsigned activate_backward)
{
    double wanted_loss, loss;
    size_t bytes;
    program_rig_make_executor(rig);
    assert_int_equal(executor_fused(rig->executor), fused);
    float *wanted = run_once(rig, true, &wanted_loss, &bytes);
    const recording *plain = &rig->executor->plain.calls, *calls = &rig->executor->fused.calls;
    assert_int_equal(count_calls(calls, OP_activate), activate);
    assert_int_equal(count_calls(calls, OP_activate_backward), activate_backward);
    assert_int_equal(count_calls(plain, OP_activate) + count_calls(plain, OP_activate_backward),
                     activate + activate_backward + fused);
    assert_int_equal(count_calls(plain, OP_gemm), count_calls(calls, OP_gemm));
    for (int i = 0; i < 2; i++) {
        float *made = run_once(rig, false, &loss, &bytes);
        assert_memory_equal(&loss, &wanted_loss, sizeof loss);
        assert_memory_equal(made, wanted, bytes);
        free(made);
    }
    assert_true(bytes > 0);
    free(wanted);
}

/* ---- models ---- */

static void add(fixture *f, remat_model *model, const char *type, const char *const *properties)
{
    expect_ok(f, remat_model_add_layer(model, type, properties));
}

static remat_model *begin_model(fixture *f, const char *shape)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    add(f, model, "input", REMAT_PROPERTIES("name=in", shape));
    return model;
}

/* A training step of the model, which is compiled here and destroyed. */
static void expect_fused_in(fixture *f, remat_model *model, uint64_t fused, unsigned activate,
                            unsigned activate_backward)
{
    static const program_apply ways[] = {PROGRAM_APPLY_AT_ONCE, PROGRAM_APPLY_AT_END};
    expect_ok(f, remat_model_compile(model));
    for (int w = 0; w < 2; w++) {
        program_rig rig;
        rig_open(&rig, model, NETWORK_TRAINING, ways[w]);
        expect_fused(&rig, fused, activate, activate_backward);
        program_rig_close(&rig);
    }
    remat_model_destroy(model);
}

/* ---- the tests ---- */

/* Two products, each with the activation behind it, and one whose activation is no function of single values. */
static void pairs_run_as_one(void **state)
{
    fixture *f = *state;
    static const char *const kinds[] = {"relu", "leaky_relu", "gelu", "gelu_erf", "sigmoid", "tanh", "swish"};
    for (int k = 0; k < 7; k++) {
        char kind[32];
        snprintf(kind, sizeof kind, "activation=%s", kinds[k]);
        remat_model *model = begin_model(f, "input_shape=1:3:21");
        add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=33", kind));
        add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=20", kind));
        add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc3", "unit=9", "activation=softmax"));
        add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
        expect_fused_in(f, model, 4, 0, 0);
    }
}

/* Something else stands between product and activation, or the product is another one's. */
static void others_run_alone(void **state)
{
    fixture *f = *state;
    remat_model *model = begin_model(f, "input_shape=1:1:24");
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=24"));
    add(f, model, "layer_normalization", REMAT_PROPERTIES("name=norm"));
    add(f, model, "activation", REMAT_PROPERTIES("name=apart", "activation=gelu"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=b", "unit=24"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=c", "unit=24", "input_layers=apart"));
    add(f, model, "activation", REMAT_PROPERTIES("name=late", "activation=gelu", "input_layers=b"));
    add(f, model, "addition", REMAT_PROPERTIES("name=sum", "input_layers=b,c,late"));
    add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
    /* Only the gradient of `apart` is whole behind a product: c's makes it, b's adds to it. */
    expect_fused_in(f, model, 1, 2, 1);
    model = begin_model(f, "input_shape=1:1:24");
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=first", "unit=24"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=24"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=b", "unit=24", "activation=swish"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=c", "unit=24", "input_layers=a"));
    add(f, model, "addition", REMAT_PROPERTIES("name=sum", "input_layers=first,b,c"));
    add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
    /* Backward, the activation of b follows c's product, which makes the gradient of a. */
    expect_fused_in(f, model, 1, 0, 1);
}

/* An activation that adds to the gradient of its input stays alone, whoever wrote that gradient, shares it or has it copied.
 * A product that adds, even to a copy, does not mind. */
static void sums_of_gradients(void **state)
{
    fixture *f = *state;
    static const char *const behind[][3] = {
        {"multiply", "input_layers=fc,x", "input_layers=act,fc"},
        {"addition", "input_layers=fc,x", "input_layers=act,fc"},
        {"addition", "input_layers=fc,x,y", "input_layers=act,fc,y"},
    };
    for (int b = 0; b < 3; b++)
        for (int gemm_adds = 0; gemm_adds < 2; gemm_adds++) {
            remat_model *model = begin_model(f, "input_shape=1:2:17");
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=y", "unit=40"));
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=x", "unit=40"));
            add(f, model, "activation", REMAT_PROPERTIES("name=act", "activation=tanh"));
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=40"));
            add(f, model, behind[b][0], REMAT_PROPERTIES("name=all", behind[b][1 + gemm_adds]));
            add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
            if (gemm_adds)
                expect_fused_in(f, model, 2, 0, 0);
            else
                expect_fused_in(f, model, 1, 0, 1);
        }
}

/* The forward's result must not lie on what the product still reads. `fc` is read again, so that nothing is in place. */
static void forward_results_need_room(void **state)
{
    fixture *f = *state;
    remat_model *model = begin_model(f, "input_shape=1:2:48");
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=48"));
    add(f, model, "activation", REMAT_PROPERTIES("name=act", "activation=swish"));
    add(f, model, "multiply", REMAT_PROPERTIES("name=gated", "input_layers=fc,act"));
    add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
    expect_ok(f, remat_model_compile(model));
    program_rig rig;
    rig_open(&rig, model, NETWORK_INFERENCE, PROGRAM_FORWARD_ONLY);
    uint32_t in = buffer_of(&rig, "in"), act = buffer_of(&rig, "act"), fc = buffer_of(&rig, "fc");
    assert_int_not_equal(act, fc);
    uint64_t alone = rig.offsets[act];
    expect_fused(&rig, 1, 0, 0);
    rig.offsets[act] = rig.offsets[in]; /* free when the activation runs, not before */
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[act] = alone;
    rig.offsets[in] = alone - rig.liveness.buffers[in].bytes; /* beside it: in front, then with one line in common */
    rig.offsets[fc] = 0;
    expect_fused(&rig, 1, 0, 0);
    rig.offsets[in] += 64;
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[in] = rig.offsets[act] + rig.liveness.buffers[act].bytes - 64;
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[in] += 64;
    expect_fused(&rig, 1, 0, 0);
    program_rig_close(&rig);
    remat_model_destroy(model);
}

/* The same backward: the gradient of the sum is `act`'s and `other`'s alike, so that nothing may take its place. The
 * gradient of the weights lives until its apply step, which stands between the two. */
static void input_gradients_need_room(void **state)
{
    fixture *f = *state;
    remat_model *model = begin_model(f, "input_shape=1:1:48");
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=other", "unit=48"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=48"));
    add(f, model, "activation", REMAT_PROPERTIES("name=act", "activation=gelu"));
    add(f, model, "addition", REMAT_PROPERTIES("name=sum", "input_layers=other,act"));
    add(f, model, "fully_connected", REMAT_PROPERTIES("name=last", "unit=16"));
    add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
    expect_ok(f, remat_model_compile(model));
    program_rig rig;
    rig_open(&rig, model, NETWORK_TRAINING, PROGRAM_APPLY_AT_ONCE);
    uint32_t result = buffer_of(&rig, "fc.gradient"), made = buffer_of(&rig, "sum.gradient");
    assert_int_not_equal(result, made);
    expect_fused(&rig, 2, 0, 0);
    const struct {
        uint32_t buffer;
        uint64_t fused;
    } before[] = {
        {buffer_of(&rig, "last.weight.gradient"), 1}, /* the optimizer reads it before the activation's own turn */
        {buffer_of(&rig, "last.gradient"), 1},        /* the product reads it */
        {buffer_of(&rig, "loss.labels"), 2},          /* dead by then */
    };
    for (int i = 0; i < 3; i++) {
        uint64_t alone = rig.offsets[before[i].buffer];
        rig.offsets[before[i].buffer] = rig.offsets[result];
        assert_true(rig.liveness.buffers[before[i].buffer].bytes <= rig.liveness.buffers[result].bytes);
        assert_true(rig.liveness.buffers[before[i].buffer].ends <= rig.liveness.buffers[result].born);
        expect_fused(&rig, before[i].fused, 0, 2 - (unsigned)before[i].fused);
        rig.offsets[before[i].buffer] = alone;
    }
    program_rig_close(&rig);
    remat_model_destroy(model);
}

/* A rectifier that leaves bits is in the product before it, and makes only its bits by itself. */
static void bits_are_made_behind(void **state)
{
    fixture *f = *state;
    static const char *const kinds[] = {"activation=relu", "activation=leaky_relu"};
    for (int k = 0; k < 2; k++) {
        remat_model *model = begin_model(f, "input_shape=1:3:21");
        add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=33", kinds[k]));
        add(f, model, "dropout", REMAT_PROPERTIES("name=drop", "rate=0.3"));
        add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=9"));
        add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
        expect_ok(f, remat_model_compile(model));
        program_rig rig;
        rig_open(&rig, model, NETWORK_TRAINING, PROGRAM_APPLY_AT_ONCE);
        program_rig_make_executor(&rig);
        double wanted_loss, loss;
        size_t bytes;
        float *wanted = run_once(&rig, true, &wanted_loss, &bytes), *made = run_once(&rig, false, &loss, &bytes);
        assert_int_equal(executor_fused(rig.executor), 1);
        const recording *calls = &rig.executor->fused.calls;
        assert_int_equal(count_calls(calls, OP_rectify), 1);
        assert_int_equal(count_calls(calls, OP_rectify_backward), 1);
        for (size_t at = 0; at < calls->used; at += recording_call(calls, at)->bytes) {
            const op_rectify *rectify = recorded_args(recording_call(calls, at));
            if (recording_call(calls, at)->op == OP_rectify)
                assert_null(rectify->y.at);
        }
        assert_memory_equal(&loss, &wanted_loss, sizeof loss);
        assert_memory_equal(made, wanted, bytes);
        free(wanted);
        free(made);
        program_rig_close(&rig);
        remat_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pairs_run_as_one),          FIXTURE_TEST(others_run_alone),
        FIXTURE_TEST(sums_of_gradients),         FIXTURE_TEST(forward_results_need_room),
        FIXTURE_TEST(input_gradients_need_room), FIXTURE_TEST(bits_are_made_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
