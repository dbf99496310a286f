#include "fuzz/fuzz_tiny.h"

#define MODEL(STATE)                                                                               \
    "[Model]\nname=tiny\nbatch_size=2\nseed=5\n[Optimizer]\ntype=adam\nlearning_rate=0.01\n" STATE \
    "[in:input]\ninput_shape=1:1:2\n[a:fully_connected]\nunit=3\nactivation=tanh\n"                \
    "[n:batch_normalization]\n[b:fully_connected]\nunit=1\n[loss:mse]\n"

static remat_model *read_model(remat_context *context, const char *text, size_t length)
{
    FILE *stream = fuzz_stream(text, length);
    remat_model *model;
    remat_status status = remat_model_read(context, stream, "tiny.ini", &model);
    if (status != REMAT_OK)
        fprintf(stderr, "%s\n", remat_context_message(context));
    FUZZ_CHECK(status == REMAT_OK);
    fclose(stream);
    return model;
}

remat_model *fuzz_tiny_model(remat_context *context)
{
    static const char text[] = MODEL("");
    return read_model(context, text, sizeof text - 1);
}

remat_model *fuzz_small_state_model(remat_context *context)
{
    static const char text[] = MODEL("state=int8\n");
    return read_model(context, text, sizeof text - 1);
}

static remat_status sample(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user;
    float *to = inputs[0];
    to[0] = (float)(number % 3);
    to[1] = (float)(number % 5);
    if (labels)
        *(float *)labels = to[0] - to[1];
    return REMAT_OK;
}

remat_train_options fuzz_tiny_options(void)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = sample;
    options.samples = 8;
    options.steps = 8;
    options.threads = 1;
    options.kernels = "reference";
    return options;
}
