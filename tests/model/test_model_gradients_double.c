/* Gradients of whole random models against differences of their loss: sums that share a gradient, tensors with many
 * readers, the same tensor twice, tied weights. Built for double, with the reference kernels, without planner and arena:
 * every buffer has a place of its own. */
#include <math.h>

#include "support/cases.h"
#include "support/random_model.h"

#include "data/data_needs.h"
#include "train/executor.h"

static const double LARGEST_ERROR = 1e-6;

/* ---- a program that can run ---- */

typedef struct model_rig {
    remat_context *context;
    remat_network *network;
    remat_program *program;
    graph_sequence sequence;
    graph_lives lives;
    uint64_t *offsets;
    char *arena;
    real **parameters, **gradients; /* gradients: copied out by apply, or summed there by the executor */
    kernel_run run;
    remat_executor *executor;
} model_rig;

static void expect_ok(const model_rig *rig, remat_status status)
{
    if (status != REMAT_OK)
        fail_msg("%s", remat_context_message(rig->context));
}

static void rig_open(model_rig *rig, const remat_model *model, program_apply apply, uint64_t batch)
{
    expect_ok(rig, network_build(model, batch, NETWORK_TRAINING, &rig->network));
    expect_ok(rig, program_build(rig->network, apply, &rig->program));
    expect_ok(rig, graph_sequence_plain(rig->program->graph, &rig->sequence));
    expect_ok(rig, graph_walk(rig->program->graph, &rig->sequence, &rig->lives));
    rig->offsets = calloc(rig->lives.buffer_count, sizeof *rig->offsets);
    uint64_t bytes = 0;
    for (size_t i = 0; i < rig->lives.buffer_count; i++) {
        rig->offsets[i] = bytes;
        bytes += rig->lives.buffers[i].bytes;
    }
    rig->arena = aligned_alloc(64, bytes);
    memset(rig->arena, 0xff, bytes); /* not a number, wherever it is read before it is written */
    rig->parameters = calloc(rig->network->parameter_count, sizeof *rig->parameters);
    rig->gradients = calloc(rig->network->parameter_count, sizeof *rig->gradients);
    for (size_t p = 0; p < rig->network->parameter_count; p++) {
        rig->parameters[p] = calloc(rig->network->parameters[p].values, sizeof(real));
        rig->gradients[p] = calloc(rig->network->parameters[p].values, sizeof(real));
    }
    const executor_memory memory = {rig->arena, bytes, rig->offsets, rig->parameters,
                                    apply == PROGRAM_APPLY_OUTSIDE ? rig->gradients : NULL};
    rig->run = (kernel_run){.threads = 1};
    expect_ok(rig, executor_create(rig->program, &rig->sequence, &rig->lives, &memory, kernels_reference(), &rig->run,
                                   &rig->executor));
}

static void rig_close(model_rig *rig)
{
    for (size_t p = 0; p < rig->network->parameter_count; p++) {
        free(rig->parameters[p]);
        free(rig->gradients[p]);
    }
    free(rig->parameters);
    free(rig->gradients);
    executor_destroy(rig->executor);
    free(rig->arena);
    free(rig->offsets);
    graph_lives_release(rig->context, &rig->lives);
    graph_sequence_release(rig->context, &rig->sequence);
    program_destroy(rig->program);
    network_destroy(rig->network);
}

/* ---- numbers ---- */

static double number(test_random *random)
{
    return (double)test_random_below(random, 2000001) / 1e6 - 1;
}

static void fill_parameters(model_rig *rig, test_random *random)
{
    for (size_t p = 0; p < rig->network->parameter_count; p++) {
        const network_parameter *parameter = &rig->network->parameters[p];
        bool gain = parameter->about.fill == LAYER_ONES;
        for (uint64_t i = 0; i < parameter->values; i++)
            rig->parameters[p][i] = gain ? 1 + 0.3 * number(random) : 0.6 * number(random);
    }
}

static void fill_field(const data_field *field, uint64_t batch, void *to, test_random *random)
{
    for (uint64_t i = 0; i < field->values * batch; i++)
        if (field->integer)
            ((int32_t *)to)[i] = (int32_t)test_random_below(random, field->bound);
        else
            ((real *)to)[i] = number(random);
}

static double run(model_rig *rig, const executor_hooks *hooks, uint64_t data_seed)
{
    test_random random = {data_seed};
    data_wants wants = network_data_wants(rig->network);
    size_t next = 0;
    for (uint32_t n = 0; n < rig->network->layer_count; n++)
        if (rig->network->layers[n].node.input_count == 0)
            fill_field(&wants.inputs[next++], rig->network->batch, executor_input(rig->executor, n), &random);
    fill_field(&wants.labels, rig->network->batch, executor_labels(rig->executor), &random);
    const executor_turn turn = {data_seed, 3, true, 1.0};
    return executor_run(rig->executor, &turn, hooks);
}

static void copy_gradient(void *user, uint32_t parameter, const real *gradient)
{
    const model_rig *rig = user;
    memcpy(rig->gradients[parameter], gradient, rig->network->parameters[parameter].values * sizeof(real));
}

static void ignore_gradient(void *user, uint32_t parameter, const real *gradient)
{
    (void)user, (void)parameter, (void)gradient;
}

/* The derivative of the loss by one value, exact to the fourth power of the step. */
static double difference(model_rig *rig, real *value, uint64_t data_seed, double step)
{
    const executor_hooks hooks = {NULL, ignore_gradient, NULL, rig};
    real kept = *value;
    double losses[4];
    for (int i = 0; i < 4; i++) {
        static const int steps[] = {-2, -1, 1, 2};
        *value = kept + steps[i] * step;
        losses[i] = run(rig, &hooks, data_seed);
    }
    *value = kept;
    return (8 * (losses[2] - losses[1]) - (losses[3] - losses[0])) / (12 * step);
}

/* ---- the test ---- */

static double largest_of(const real *values, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

static void check_model(const remat_model *model, uint64_t batch, program_apply apply, uint64_t seed)
{
    model_rig rig = {.context = model_context(model)};
    test_random random = {seed};
    rig_open(&rig, model, apply, batch);
    fill_parameters(&rig, &random);
    /* With accumulation there are no apply steps, and the differences would add to the gradients: they are copied. */
    const executor_hooks hooks = {NULL, copy_gradient, NULL, &rig};
    double loss = run(&rig, &hooks, seed);
    assert_true(isfinite(loss));
    double overall = 1e-4;
    real **gradients = calloc(rig.network->parameter_count, sizeof *gradients);
    for (size_t p = 0; p < rig.network->parameter_count; p++) {
        uint64_t count = rig.network->parameters[p].values;
        gradients[p] = calloc(count, sizeof(real));
        memcpy(gradients[p], rig.gradients[p], count * sizeof(real));
        overall = fmax(overall, largest_of(gradients[p], count));
    }
    for (size_t p = 0; p < rig.network->parameter_count; p++) {
        const network_parameter *parameter = &rig.network->parameters[p];
        double scale = fmax(largest_of(gradients[p], parameter->values), 1e-3 * fmax(overall, fabs(loss)));
        for (int k = 0; k < 4 && !parameter->about.statistic; k++) {
            uint64_t i = test_random_below(&random, parameter->values);
            double step = 2e-3, wanted;
            do { /* where the loss is bent, only a small step comes near; a wrong gradient never does */
                step /= 10;
                wanted = difference(&rig, &rig.parameters[p][i], seed, step);
            } while (!(fabs(gradients[p][i] - wanted) <= LARGEST_ERROR * scale) && step > 1e-7);
            if (!(fabs(gradients[p][i] - wanted) <= LARGEST_ERROR * scale))
                fail_msg(
                    "model of seed %llu, apply %d: the gradient of %s, value %llu, is %.12g; differences say %.12g",
                    (unsigned long long)seed, (int)apply, parameter->name, (unsigned long long)i, gradients[p][i],
                    wanted);
        }
        free(gradients[p]);
    }
    free(gradients);
    rig_close(&rig);
}

static void test_random_models(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    static const program_apply ways[] = {PROGRAM_APPLY_AT_ONCE, PROGRAM_APPLY_AT_END, PROGRAM_APPLY_OUTSIDE};
    for (int i = 0; i < 90; i++) {
        random_model_options about = {.seed = test_random_next(&random), .smooth = true};
        about.layers = 2 + (unsigned)test_random_below(&random, 16);
        remat_context *context;
        remat_model *model;
        assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
        if (random_model_make(context, &about, &model, NULL) != REMAT_OK)
            fail_msg("%s", remat_context_message(context));
        check_model(model, 3, ways[i % 3], about.seed);
        remat_model_destroy(model);
        remat_context_destroy(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
