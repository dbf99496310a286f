/* A layer of one's own: a gate, y = x * sigmoid(slope * x), with a learned slope for every channel. The program registers it,
 * checks its gradients against differences, and trains a model with it within a budget.
 *
 *     cc -O2 examples/custom_layer.c -Iinclude -Lbuild -lremat -lm -Wl,-rpath,build -o custom_layer && ./custom_layer */
#include <math.h>
#include <stdio.h>

#include <remat/remat.h>

/* The layer has one parameter: a slope for every channel, which starts at 1. */
static remat_status shape(void *user, remat_custom_sizes *sizes, char *message, size_t message_bytes)
{
    (void)user;
    uint64_t channels = sizes->inputs[0][0];
    if (channels > 4096) {
        snprintf(message, message_bytes, "at most 4096 channels, not %llu", (unsigned long long)channels);
        return REMAT_INVALID;
    }
    uint64_t values = sizes->batch * channels * sizes->inputs[0][1] * sizes->inputs[0][2];
    sizes->parameter_count = 1;
    sizes->parameters[0] =
        (remat_custom_parameter){.name = "slope", .dims = {channels}, .start = REMAT_START_ONES, .scale = 0};
    sizes->forward_flops = 10 * values;
    sizes->backward_flops = 20 * values;
    return REMAT_OK;
}

/* One pass over all values, for each element type. Backward adds to gradients. */
#define DEFINE_GATE(real)                                                                                \
    static void forward_##real(const remat_custom_call *call)                                            \
    {                                                                                                    \
        const real *x = call->inputs[0], *slope = call->parameters[0];                                   \
        real *y = call->output;                                                                          \
        uint64_t channels = call->output_shape[0], area = call->output_shape[1] * call->output_shape[2]; \
        for (uint64_t i = 0; i < call->batch * channels * area; i++)                                     \
            y[i] = x[i] / (1 + (real)exp(-(double)(slope[i / area % channels] * x[i])));                 \
    }                                                                                                    \
    static void backward_##real(const remat_custom_call *call)                                           \
    {                                                                                                    \
        const real *x = call->inputs[0], *slope = call->parameters[0], *dy = call->d_output;             \
        real *dx = call->d_inputs[0], *dslope = call->gradients[0];                                      \
        uint64_t channels = call->output_shape[0], area = call->output_shape[1] * call->output_shape[2]; \
        for (uint64_t i = 0; i < call->batch * channels * area; i++) {                                   \
            uint64_t c = i / area % channels;                                                            \
            real gate = 1 / (1 + (real)exp(-(double)(slope[c] * x[i]))), bend = gate * (1 - gate);       \
            if (dx)                                                                                      \
                dx[i] += dy[i] * (gate + x[i] * slope[c] * bend);                                        \
            if (dslope)                                                                                  \
                dslope[c] += dy[i] * x[i] * x[i] * bend;                                                 \
        }                                                                                                \
    }
DEFINE_GATE(float)
DEFINE_GATE(double)

static void forward(const remat_custom_call *call)
{
    (call->dtype == REMAT_FP64 ? forward_double : forward_float)(call);
}

static void backward(const remat_custom_call *call)
{
    (call->dtype == REMAT_FP64 ? backward_double : backward_float)(call);
}

static remat_status add_gate(remat_context *context)
{
    remat_custom_layer layer;
    remat_custom_layer_init(&layer);
    layer.name = "gate";
    layer.summary = "x * sigmoid(slope * x), with a learned slope for every channel";
    layer.shape = shape;
    layer.forward = forward;
    layer.backward = backward;
    layer.computes_fp64 = true;
    remat_status status = remat_custom_layer_register(context, &layer);
    remat_gradient_check check;
    const uint64_t input[1][3] = {{3, 4, 5}};
    if (status == REMAT_OK)
        status = remat_custom_layer_check(context, "gate", NULL, 2, input, 1, &check);
    if (status == REMAT_OK)
        printf("gradients of %llu values: the largest error is below %g\n", (unsigned long long)check.values,
               check.allowed_error);
    return status;
}

/* Writes sample number n: a point in the plane. Its label is 1 if its distance from the origin is between 0.5 and 1. */
static remat_status sample(void *user, uint64_t n, void *const *inputs, void *labels)
{
    const remat_random *stream = user;
    float *point = inputs[0];
    for (uint64_t i = 0; i < 2; i++)
        point[i] = 3 * remat_random_uniform(stream, 2 * n + i) - 1.5f;
    float distance = hypotf(point[0], point[1]);
    *(int32_t *)labels = distance > 0.5f && distance < 1.0f;
    return REMAT_OK;
}

static remat_status build(remat_model *model)
{
    remat_status status = remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=point", "input_shape=1:1:2"));
    static const char *const names[][2] = {{"name=fc1", "name=gate1"}, {"name=fc2", "name=gate2"}};
    for (int i = 0; i < 2 && status == REMAT_OK; i++) {
        status = remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES(names[i][0], "unit=64"));
        if (status == REMAT_OK)
            status = remat_model_add_layer(model, "gate", REMAT_PROPERTIES(names[i][1]));
    }
    if (status == REMAT_OK)
        status = remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=2"));
    if (status == REMAT_OK)
        status = remat_model_add_layer(model, "cross_entropy", REMAT_PROPERTIES("name=loss"));
    if (status == REMAT_OK)
        status = remat_model_set(model, REMAT_PROPERTIES("batch_size=256", "epochs=20"));
    if (status == REMAT_OK)
        status = remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01"));
    return status == REMAT_OK ? remat_model_compile(model) : status;
}

static remat_status train(remat_model *model)
{
    remat_random stream = remat_random_stream(7, 0, 0);
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = sample;
    options.sample_user = &stream;
    options.samples = 4096;
    options.validation_samples = 1024;
    options.strategy = "full"; /* every layer is recomputed: the bits are the same */
    remat_trainer *trainer;
    remat_status status = remat_trainer_create(model, &options, &trainer);
    if (status != REMAT_OK)
        return status;
    remat_validation_result validation;
    status = remat_trainer_run(trainer, NULL, NULL);
    if (status == REMAT_OK)
        status = remat_trainer_validate(trainer, &validation);
    if (status == REMAT_OK)
        printf("trained: %.1f %% of new points are told right\n", 100 * validation.accuracy);
    if (status == REMAT_OK && validation.accuracy < 0.9)
        status = REMAT_CHECK_FAILED;
    remat_trainer_destroy(trainer);
    return status;
}

int main(void)
{
    remat_context *context;
    remat_model *model = NULL;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    remat_status status = add_gate(context);
    if (status == REMAT_OK)
        status = remat_model_create(context, &model);
    if (status == REMAT_OK)
        status = build(model);
    if (status == REMAT_OK)
        status = train(model);
    if (status != REMAT_OK)
        fprintf(stderr, "%s\n", remat_context_message(context));
    remat_model_destroy(model);
    remat_context_destroy(context);
    return status == REMAT_OK ? 0 : 1;
}
