// A C++ program that plans, trains and reads weights: the headers are C++ as well.
#include <remat/remat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace
{

void must(remat_context *context, remat_status status)
{
    if (status == REMAT_OK)
        return;
    std::fprintf(stderr, "%s\n", remat_context_message(context));
    std::exit(1);
}

remat_status sample(void *, std::uint64_t number, void *const *inputs, void *labels)
{
    float *x = static_cast<float *>(inputs[0]), *y = static_cast<float *>(labels);
    x[0] = static_cast<float>(number % 7);
    x[1] = 1;
    y[0] = x[0] / 7;
    return REMAT_OK;
}

void plan(remat_context *context)
{
    remat_profile *profile;
    must(context, remat_profile_create(context, &profile));
    for (std::uint64_t i = 0; i < 6; i++)
        must(context, remat_profile_add(profile, REMAT_FFN, 1024, 100 + i));
    remat_plan_options options;
    remat_plan_options_init(&options);
    options.budget_bytes = 1;
    remat_plan *made;
    if (remat_plan_create(context, profile, &options, &made) != REMAT_INFEASIBLE)
        std::exit(1);
    remat_plan_destroy(made);
    options.budget_bytes = remat_context_error(context)->needed_bytes;
    must(context, remat_plan_create(context, profile, &options, &made));
    remat_plan_statistics statistics;
    remat_plan_get_statistics(made, &statistics);
    if (statistics.layers != 6)
        std::exit(1);
    remat_plan_destroy(made);
    remat_profile_destroy(profile);
}

void train(remat_context *context)
{
    remat_model *model;
    must(context, remat_model_create(context, &model));
    must(context, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    must(context, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=1")));
    must(context, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    must(context, remat_model_set(model, REMAT_PROPERTIES("batch_size=7")));
    must(context, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("learning_rate=0.01")));
    must(context, remat_model_compile(model));
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = sample;
    options.samples = 70;
    options.threads = 1;
    remat_trainer *trainer;
    must(context, remat_trainer_create(model, &options, &trainer));
    remat_run_result result;
    must(context, remat_trainer_run(trainer, nullptr, &result));
    remat_parameter parameter;
    must(context, remat_trainer_get_parameter(trainer, 0, &parameter));
    std::vector<float> values(parameter.count);
    must(context, remat_trainer_read_parameter(trainer, 0, values.data(), values.size()));
    if (result.steps != 10 || values.size() != 2)
        std::exit(1);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

} // namespace

int main()
{
    remat_context *context;
    if (remat_context_create(nullptr, &context) != REMAT_OK)
        return 1;
    plan(context);
    train(context);
    remat_context_destroy(context);
    std::puts("done");
    return 0;
}
