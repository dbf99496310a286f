/* Which activations run with the product before them: buffers are placed by hand, calls of the kernels are counted, and
 * all that is made has the bits of a run in which every action runs by itself. */
#include "support/fixture.h"
#include "support/kernel_compare.h"

#include "data/data_needs.h"
#include "train/executor.h"

/* ---- kernels that are counted ---- */

static struct {
    unsigned activate, activate_backward;
} calls;

static void counted_activate(const kernel_run *run, kernel_activation kind, size_t count, const real *x, real *y)
{
    calls.activate++;
    kernels_fast()->activate(run, kind, count, x, y);
}

static void counted_backward(const kernel_run *run, kernel_activation kind, size_t count, const real *x, const real *y,
                             const real *dy, real *dx, bool accumulate)
{
    calls.activate_backward++;
    kernels_fast()->activate_backward(run, kind, count, x, y, dy, dx, accumulate);
}

/* ---- a program with a place of its own for every buffer ---- */

enum { BATCH = 37 };

typedef struct fuse_rig {
    fixture *f;
    remat_network *network;
    remat_program *program;
    graph_sequence sequence;
    graph_lives lives;
    uint64_t *offsets, bytes;
    char *arena;
    real **parameters;
    real *made; /* what a run came to: gradients one after the other, or results */
    size_t made_count, room;
    kernel_table kernels;
    kernel_run run;
} fuse_rig;

static fuse_rig rig_open(fixture *f, remat_model *model, network_purpose purpose, program_apply apply)
{
    fuse_rig rig = {.f = f, .kernels = *kernels_fast()};
    expect_ok(f, network_build(model, BATCH, purpose, &rig.network));
    expect_ok(f, program_build(rig.network, apply, &rig.program));
    expect_ok(f, graph_sequence_plain(rig.program->graph, &rig.sequence));
    expect_ok(f, graph_walk(rig.program->graph, &rig.sequence, &rig.lives));
    rig.offsets = calloc(rig.lives.buffer_count, sizeof *rig.offsets);
    for (size_t b = 0; b < rig.lives.buffer_count; b++) {
        rig.offsets[b] = rig.bytes;
        rig.bytes += rig.lives.buffers[b].bytes;
    }
    rig.arena = aligned_alloc(64, rig.bytes);
    test_random random = {7};
    rig.parameters = calloc(rig.network->parameter_count, sizeof *rig.parameters);
    for (size_t p = 0; p < rig.network->parameter_count; p++)
        rig.parameters[p] = values_random(&random, rig.network->parameters[p].values, -0.5, 0.5);
    rig.room = 1 << 16;
    rig.made = calloc(rig.room, sizeof *rig.made);
    rig.run = kernel_run_open(&rig.kernels, 2);
    rig.kernels.activate = counted_activate;
    rig.kernels.activate_backward = counted_backward;
    return rig;
}

static void rig_close(fuse_rig *rig)
{
    for (size_t p = 0; p < rig->network->parameter_count; p++)
        free(rig->parameters[p]);
    free(rig->parameters);
    free(rig->made);
    free(rig->arena);
    free(rig->offsets);
    kernel_run_close(&rig->run);
    graph_lives_release(rig->f->context, &rig->lives);
    graph_sequence_release(rig->f->context, &rig->sequence);
    program_destroy(rig->program);
    network_destroy(rig->network);
}

/* The buffer of a tensor's only instance. */
static uint32_t buffer_of(const fuse_rig *rig, const char *tensor)
{
    for (size_t i = 0; i < rig->lives.life_count; i++)
        if (rig->lives.lives[i].tensor != GRAPH_NONE &&
            strcmp(rig->program->graph->tensors[rig->lives.lives[i].tensor].name, tensor) == 0)
            return rig->lives.lives[i].buffer;
    fail_msg("there is no tensor %s", tensor);
    return 0;
}

static void keep_values(fuse_rig *rig, const real *values, uint64_t count)
{
    assert_true(rig->made_count + count <= rig->room);
    memcpy(rig->made + rig->made_count, values, count * sizeof *values);
    rig->made_count += count;
}

static void keep_gradient(void *user, uint32_t parameter, const real *gradient)
{
    fuse_rig *rig = user;
    keep_values(rig, gradient, rig->network->parameters[parameter].values);
}

static void look_away(void *user, size_t position, bool again, uint64_t began, uint64_t ended)
{
    (void)user, (void)position, (void)again, (void)began, (void)ended;
}

static double run_once(fuse_rig *rig, remat_executor *executor, bool observed)
{
    test_random random = {11};
    data_wants wants = network_data_wants(rig->network);
    memset(rig->arena, 0xff, rig->bytes); /* not a number, wherever it is read before it is written */
    rig->made_count = 0;
    memset(&calls, 0, sizeof calls);
    real *data[2] = {executor_input(executor, 0), executor_labels(executor)};
    uint64_t counts[2] = {wants.inputs[0].values * BATCH, wants.labels.values * BATCH};
    for (int d = 0; d < 2 && data[d]; d++)
        for (uint64_t i = 0; i < counts[d]; i++)
            data[d][i] = random_value(&random, -1, 1);
    const executor_hooks hooks = {NULL, keep_gradient, observed ? look_away : NULL, rig};
    const executor_turn turn = {5, 1, rig->program->apply != PROGRAM_FORWARD_ONLY, 1.0};
    double loss = executor_run(executor, &turn, &hooks);
    uint32_t layer;
    const real *result = executor_result(executor, 0, &layer);
    if (result)
        keep_values(rig, result, layer_values(rig->network->layers[layer].node.output) * BATCH);
    return loss;
}

/* With the offsets as they are now: so many are fused, and the run has the same bits and counts as an observed one. */
static void expect_fused(fuse_rig *rig, uint64_t fused, unsigned activate, unsigned activate_backward)
{
    const executor_memory memory = {rig->arena, rig->bytes, rig->offsets, rig->parameters, NULL};
    remat_executor *executor;
    expect_ok(rig->f,
              executor_create(rig->program, &rig->sequence, &rig->lives, &memory, &rig->kernels, &rig->run, &executor));
    assert_int_equal(executor_fused(executor), fused);
    double wanted_loss = run_once(rig, executor, true);
    uint64_t forwards = executor_forwards(executor), all = calls.activate + calls.activate_backward;
    size_t count = rig->made_count;
    float *wanted = values_copy(rig->made, count);
    for (int i = 0; i < 2; i++) {
        double loss = run_once(rig, executor, false);
        assert_memory_equal(&loss, &wanted_loss, sizeof loss);
        assert_int_equal(rig->made_count, count);
        expect_same_bits(rig->made, wanted, count);
        assert_int_equal(executor_forwards(executor), forwards);
        assert_int_equal(calls.activate, activate);
        assert_int_equal(calls.activate_backward, activate_backward);
        assert_int_equal(calls.activate + calls.activate_backward + fused, all);
    }
    assert_true(count > 0);
    free(wanted);
    executor_destroy(executor);
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
        fuse_rig rig = rig_open(f, model, NETWORK_TRAINING, ways[w]);
        expect_fused(&rig, fused, activate, activate_backward);
        rig_close(&rig);
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
        for (int product_adds = 0; product_adds < 2; product_adds++) {
            remat_model *model = begin_model(f, "input_shape=1:2:17");
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=y", "unit=40"));
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=x", "unit=40"));
            add(f, model, "activation", REMAT_PROPERTIES("name=act", "activation=tanh"));
            add(f, model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=40"));
            add(f, model, behind[b][0], REMAT_PROPERTIES("name=all", behind[b][1 + product_adds]));
            add(f, model, "mse", REMAT_PROPERTIES("name=loss"));
            if (product_adds)
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
    fuse_rig rig = rig_open(f, model, NETWORK_INFERENCE, PROGRAM_FORWARD_ONLY);
    uint32_t in = buffer_of(&rig, "in"), act = buffer_of(&rig, "act"), fc = buffer_of(&rig, "fc");
    assert_int_not_equal(act, fc);
    uint64_t alone = rig.offsets[act];
    expect_fused(&rig, 1, 0, 0);
    rig.offsets[act] = rig.offsets[in]; /* free when the activation runs, not before */
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[act] = alone;
    rig.offsets[in] = alone - rig.lives.buffers[in].bytes; /* beside it: in front, then with one line in common */
    rig.offsets[fc] = 0;
    expect_fused(&rig, 1, 0, 0);
    rig.offsets[in] += 64;
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[in] = rig.offsets[act] + rig.lives.buffers[act].bytes - 64;
    expect_fused(&rig, 0, 1, 0);
    rig.offsets[in] += 64;
    expect_fused(&rig, 1, 0, 0);
    rig_close(&rig);
    remat_model_destroy(model);
}

/* The same backward: the gradient of the sum is `act`'s and `other`'s alike, so that nothing may take its place. The
 * gradient of the weights lives until its apply step, which stands between the two. */
static void derivatives_need_room(void **state)
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
    fuse_rig rig = rig_open(f, model, NETWORK_TRAINING, PROGRAM_APPLY_AT_ONCE);
    uint32_t result = buffer_of(&rig, "fc.derivative"), made = buffer_of(&rig, "sum.derivative");
    assert_int_not_equal(result, made);
    expect_fused(&rig, 2, 0, 0);
    const struct {
        uint32_t buffer;
        uint64_t fused;
    } before[] = {
        {buffer_of(&rig, "last.weight.gradient"), 1}, /* the optimizer reads it before the activation's own turn */
        {buffer_of(&rig, "last.derivative"), 1},      /* the product reads it */
        {buffer_of(&rig, "loss.labels"), 2},          /* dead by then */
    };
    for (int i = 0; i < 3; i++) {
        uint64_t alone = rig.offsets[before[i].buffer];
        rig.offsets[before[i].buffer] = rig.offsets[result];
        assert_true(rig.lives.buffers[before[i].buffer].bytes <= rig.lives.buffers[result].bytes);
        assert_true(rig.lives.buffers[before[i].buffer].ends <= rig.lives.buffers[result].born);
        expect_fused(&rig, before[i].fused, 0, 2 - (unsigned)before[i].fused);
        rig.offsets[before[i].buffer] = alone;
    }
    rig_close(&rig);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pairs_run_as_one),          FIXTURE_TEST(others_run_alone),      FIXTURE_TEST(sums_of_gradients),
        FIXTURE_TEST(forward_results_need_room), FIXTURE_TEST(derivatives_need_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
