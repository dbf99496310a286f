/* Models, trainers, predictors and reports. */
#include "program_0_1.h"

#include <math.h>

/* ---- models ---- */

remat_status made_sample(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    ++*(uint64_t *)user;
    float *x = inputs[0], *y = labels;
    x[0] = (float)(sample % 17) / 17;
    x[1] = (float)(sample % 13) / 13;
    if (y) /* NULL for predictors */
        y[0] = x[0] * x[1];
    return REMAT_OK;
}

remat_model *made_model(remat_context *context)
{
    remat_model *model;
    OK(context, remat_model_create(context, &model));
    OK(context, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    OK(context,
       remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=16", "activation=tanh")));
    OK(context,
       remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=16", "activation=gelu")));
    OK(context, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=1")));
    OK(context, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    OK(context, remat_model_add_block(model, REMAT_PROPERTIES("fc1", "fc2")));
    OK(context, remat_model_set(model, REMAT_PROPERTIES("name=small", "batch_size=8", "epochs=2", "clip_norm=1")));
    OK(context, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    OK(context, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=64")));
    OK(context, remat_model_compile(model));
    return model;
}

void use_models(remat_context *context)
{
    remat_model *model = made_model(context);
    CHECK(remat_model_batch(model) == 8 && remat_model_budget(model) == REMAT_NO_BUDGET);
    CHECK(remat_model_parameter_count(model) == 2 * 16 + 16 + 16 * 16 + 16 + 16 + 1);
    for (size_t i = 0; i < remat_model_layer_count(model); i++) {
        GUARDED(remat_model_layer, layer);
        OK(context, remat_model_get_layer(model, i, layer));
        INTACT(layer);
        printf("%s %s %llu %llu %s %lld %lld %lld %lld %lld\n", layer->name, layer->type,
               (unsigned long long)layer->output_shape[2], (unsigned long long)layer->parameters, layer->block,
               (long long)layer->forward, (long long)layer->recompute, (long long)layer->gradient,
               (long long)layer->derivative, (long long)layer->apply);
    }
    FILE *stream = tmpfile();
    OK(context, remat_model_write_summary(model, stream, true));
    OK(context, remat_model_write_order(model, stream, true));
    OK(context, remat_layer_types_write(context, "mse", stream, false));
    CHECK(ftell(stream) > 500);
    fclose(stream);
    remat_model_destroy(model);
    const char *text = "[Model]\nbatch_size = 4\nbudget = 1MiB\n[Dataset : random]\nsamples = 8\n[in : input]\n"
                       "input_shape = 3\n[out : fully_connected]\nunit = 2\n[loss : mse]\n";
    stream = fopen(scratch_path("model.ini"), "w+");
    CHECK(stream != NULL && fputs(text, stream) >= 0);
    rewind(stream);
    OK(context, remat_model_read(context, stream, "text", &model));
    fclose(stream);
    remat_model_destroy(model);
    OK(context, remat_model_load(context, scratch_path("model.ini"), &model));
    CHECK(remat_model_budget(model) == 1 << 20);
    remat_model_destroy(model);
}

/* ---- trainers ---- */

typedef struct watch {
    uint64_t steps, validations, gradients, actions;
    double gradient_sum;
} watch;

static bool on_step(void *user, const remat_step_result *result)
{
    watch *seen = user;
    CHECK(result->step == ++seen->steps && isfinite(result->loss) && result->rate > 0 && result->gradient_norm > 0);
    return true;
}

static void on_validation(void *user, uint64_t step, const remat_validation_result *result)
{
    ++((watch *)user)->validations;
    CHECK(step > 0 && isfinite(result->loss) && isnan(result->accuracy) && result->samples == 16);
}

static void on_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    watch *seen = user;
    CHECK(parameter < 6);
    seen->gradients++;
    for (uint64_t i = 0; i < count; i++)
        seen->gradient_sum += fabs((double)gradient[i]);
}

static void on_action(void *user, const remat_action *action)
{
    ++((watch *)user)->actions;
    CHECK(action->layer[0] && action->what[0] && action->ended >= action->began);
    CHECK(action->product_flops <= action->flops);
}

static void check_figures(const remat_trainer *trainer)
{
    GUARDED(remat_trainer_figures, figures);
    remat_trainer_get_figures(trainer, figures);
    INTACT(figures);
    CHECK(figures->total_bytes == figures->weight_bytes + figures->optimizer_bytes + figures->gradient_bytes +
                                      figures->scratch_bytes + figures->arena_bytes);
    CHECK(figures->training_samples == 64 && figures->validation_samples == 16 && figures->batch_size == 8);
    CHECK(strcmp(figures->model, "small") == 0 && figures->peak_layer && figures->clip_norm == 1);
    CHECK(figures->budget_bytes == REMAT_NO_BUDGET && figures->threads == 1 && figures->parameters == 337);
    CHECK(figures->peak_bytes <= figures->arena_bytes && figures->min_budget_bytes <= figures->total_bytes);
    printf("%llu %s %s\n", (unsigned long long)figures->forwards, figures->strategy, figures->kernels);
}

static double check_parameters(remat_context *context, const remat_trainer *trainer, bool set)
{
    double sum = 0;
    CHECK(remat_trainer_parameter_count(trainer) == 6);
    for (size_t i = 0; i < 6; i++) {
        GUARDED(remat_parameter, parameter);
        OK(context, remat_trainer_get_parameter(trainer, i, parameter));
        INTACT(parameter);
        CHECK(parameter->name[0] && parameter->trained && parameter->moments[0] && parameter->moments[1]);
        uint64_t values = 1;
        for (uint32_t d = 0; d < parameter->rank; d++)
            values *= parameter->dims[d];
        CHECK(values == parameter->count);
        for (uint64_t k = 0; k < parameter->count; k++) {
            if (set)
                parameter->values[k] = (float)(k % 7) / 70;
            sum += (double)parameter->values[k];
        }
    }
    FAILS(context, remat_trainer_get_parameter(trainer, 6, &(remat_parameter){0}), REMAT_INVALID);
    return sum;
}

static void use_curve(remat_context *context, remat_trainer *trainer)
{
    const remat_train_point *points;
    size_t count;
    OK(context, remat_trainer_curve(trainer, &points, &count));
    CHECK(count > 0 && remat_trainer_knee(trainer) < count);
    for (size_t i = 1; i < count; i++)
        CHECK(points[i].total_bytes > points[i - 1].total_bytes && points[i].cost < points[i - 1].cost);
    CHECK(points[0].arena_bytes < points[0].total_bytes && points[count - 1].recomputed == 0);
}

static void use_plan(remat_context *context, remat_model *model, remat_train_options options)
{
    remat_trainer *planned;
    options.strategy = "full";
    options.plan_only = true;
    OK(context, remat_trainer_create(model, &options, &planned));
    CHECK(remat_trainer_plan(planned) && remat_profile_layer_count(remat_trainer_chain(planned)) > 1);
    FILE *stream = tmpfile();
    OK(context, remat_trainer_write_plan(planned, stream, true));
    CHECK(ftell(stream) > 200);
    fclose(stream);
    OK(context, remat_trainer_save_plan(planned, scratch_path("trainer.plan")));
    for (size_t i = 0; i < remat_model_layer_count(model); i++)
        printf("%u", remat_trainer_forwards(planned, i));
    printf("\n");
    remat_trainer_destroy(planned);
    options.strategy = NULL;
    options.budget_bytes = 1;
    FAILS(context, remat_trainer_create(model, &options, &planned), REMAT_INFEASIBLE);
    CHECK(!planned);
    uint64_t batch = 0;
    options.budget_bytes = 1 << 20;
    options.plan_only = false;
    OK(context, remat_train_largest_batch(model, &options, &batch));
    CHECK(batch > 0);
}

static void use_files(remat_context *context, remat_model *model, remat_trainer *trainer, remat_train_options options)
{
    remat_trainer *other;
    OK(context, remat_trainer_save(trainer, scratch_path("weights.safetensors"), true));
    OK(context, remat_trainer_create(model, &options, &other));
    OK(context, remat_trainer_load(other, scratch_path("weights.safetensors")));
    CHECK(remat_trainer_steps_taken(other) == 0);
    OK(context, remat_trainer_resume(other, scratch_path("weights.safetensors")));
    CHECK(remat_trainer_steps_taken(other) == remat_trainer_steps_taken(trainer));
    CHECK(check_parameters(context, other, false) == check_parameters(context, trainer, false));
    remat_trainer_destroy(other);
}

void use_trainers(remat_context *context)
{
    remat_model *model = made_model(context);
    remat_trainer *trainer;
    uint64_t asked = 0;
    watch seen = {0};
    GUARDED(remat_train_options, options);
    remat_train_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->budget_bytes == REMAT_NO_BUDGET && !options->plan_only);
    CHECK(options->seed == REMAT_DEFAULT && options->steps == REMAT_DEFAULT && !options->sample);
    options->sample = made_sample;
    options->sample_user = &asked;
    options->samples = 64;
    options->validation_samples = 16;
    options->threads = 1;
    options->kernels = "reference";
    OK(context, remat_trainer_create(model, options, &trainer));
    check_figures(trainer);
    remat_trainer_on_gradient(trainer, on_gradient, &seen);
    OK(context, remat_trainer_on_action(trainer, on_action, &seen));
    GUARDED(remat_step_result, step);
    OK(context, remat_trainer_step(trainer, step));
    INTACT(step);
    CHECK(step->step == 1 && step->epoch == 0 && step->rate == 0.01 && step->seconds >= step->data_seconds);
    CHECK(seen.gradients == 6 && seen.gradient_sum > 0 && seen.actions > 8);
    OK(context, remat_trainer_on_action(trainer, NULL, NULL));
    check_parameters(context, trainer, true);
    OK(context, remat_trainer_step(trainer, step));
    GUARDED(remat_validation_result, validation);
    OK(context, remat_trainer_validate(trainer, validation));
    INTACT(validation);
    printf("%.6f %.6f\n", step->loss, validation->loss);
    remat_profile *measured;
    OK(context, remat_trainer_measure(trainer, 1, &measured));
    CHECK(remat_profile_layer_count(measured) > 3);
    remat_profile_destroy(measured);
    use_files(context, model, trainer, *options);
    GUARDED(remat_run_hooks, hooks);
    remat_run_hooks_init(hooks);
    INTACT(hooks);
    CHECK(hooks->struct_size == sizeof *hooks && !hooks->on_step && !hooks->log_path);
    hooks->on_step = on_step;
    hooks->on_validation = on_validation;
    hooks->user = &seen;
    hooks->log_path = scratch_path("run.log");
    GUARDED(remat_run_result, result);
    seen.steps = 2;
    OK(context, remat_trainer_run(trainer, hooks, result));
    INTACT(result);
    CHECK(result->steps == 14 && !result->stopped && !result->stopped_early && result->mean_step_seconds > 0);
    CHECK(seen.steps == 16 && seen.validations == 2 && isfinite(result->best_validation_loss) && asked > 100);
    printf("%.6f %.6f %llu\n", result->last_loss, result->best_validation_loss, (unsigned long long)result->forwards);
    use_curve(context, trainer);
    use_plan(context, model, *options);
    remat_trainer_destroy(trainer);
    GUARDED(remat_machine_limits, limits);
    OK(context, remat_measure_limits(context, 1, limits));
    INTACT(limits);
    CHECK(limits->flops > 0 && limits->bytes > 0 && limits->threads == 1 && limits->kernels[0]);
    remat_model_destroy(model);
}

/* ---- predictors ---- */

static void count_byte(void *user, unsigned char byte)
{
    (void)byte;
    ++*(size_t *)user;
}

static void use_bytes(remat_context *context)
{
    const char *text = "[Model]\nbatch_size = 1\nseed = 3\n[Dataset : random]\nsamples = 4\n[in : input]\n"
                       "input_shape = 1:1:4\n[embedding]\nType = embedding\nin_dim = 256\nout_dim = 8\n"
                       "[out : fully_connected]\nunit = 256\n[loss : cross_entropy]\n";
    FILE *stream = tmpfile();
    fputs(text, stream);
    rewind(stream);
    remat_model *model;
    OK(context, remat_model_read(context, stream, "bytes", &model));
    fclose(stream);
    remat_trainer *trainer;
    remat_predictor *predictor;
    OK(context, remat_trainer_create(model, NULL, &trainer));
    OK(context, remat_trainer_save(trainer, scratch_path("bytes.safetensors"), false));
    remat_trainer_destroy(trainer);
    OK(context, remat_predictor_create(model, scratch_path("bytes.safetensors"), NULL, &predictor));
    GUARDED(remat_generate_options, options);
    remat_generate_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->count == 200 && options->temperature == 0.8);
    options->prompt = "abc";
    options->count = 5;
    size_t written = 0;
    OK(context, remat_predictor_generate(predictor, options, count_byte, &written));
    CHECK(written == 5);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

void use_predictors(remat_context *context)
{
    remat_model *model = made_model(context);
    remat_predictor *predictor;
    uint64_t asked = 0;
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = made_sample;
    options.sample_user = &asked;
    options.samples = 12;
    options.kernels = "reference";
    OK(context, remat_predictor_create(model, scratch_path("weights.safetensors"), &options, &predictor));
    float samples[8][2], wanted[8];
    for (uint64_t i = 0; i < 8; i++) {
        void *inputs[1] = {samples[i]};
        made_sample(&asked, i, inputs, &wanted[i]);
    }
    const void *inputs[1] = {samples};
    GUARDED(remat_prediction, prediction);
    OK(context, remat_predictor_run(predictor, inputs, prediction));
    INTACT(prediction);
    CHECK(strcmp(prediction->layer, "out") == 0 && prediction->batch == 8 && prediction->shape[2] == 1);
    double first = (double)prediction->values[0];
    CHECK(remat_predictor_samples(predictor) == 12);
    OK(context, remat_predictor_run_samples(predictor, 0, prediction));
    INTACT(prediction);
    CHECK((double)prediction->values[0] == first);
    OK(context, remat_predictor_run_samples(predictor, 8, prediction));
    CHECK(prediction->batch == 4);
    printf("%.6f\n", first);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    use_bytes(context);
}

/* ---- reports ---- */

static remat_file_kind kind_of(remat_context *context, const char *path)
{
    FILE *stream = fopen(path, "r");
    remat_file_kind kind;
    CHECK(stream != NULL);
    OK(context, remat_file_kind_tell(context, stream, path, &kind));
    fclose(stream);
    return kind;
}

void use_reports(remat_context *context)
{
    remat_profile *profile = made_profile(context);
    remat_model *model = made_model(context);
    remat_plan *plan;
    remat_trainer *trainer;
    remat_report *report;
    GUARDED(remat_report_options, options);
    remat_report_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->curve && options->arena && !options->allow_lossy);
    options->threads = 1;
    OK(context, remat_plan_load(context, scratch_path("plan.json"), profile, &plan));
    struct {
        remat_memory_column columns[4];
        unsigned char guard[GUARD_BYTES];
    } room;
    size_t used = 0;
    memset(&room, 0xa5, sizeof room);
    OK(context, remat_plan_memory(plan, room.columns, 4, &used));
    CHECK(used == 4 && guard_is_intact(room.guard));
    uint64_t most = 0;
    for (size_t i = 0; i < 4; i++) {
        const remat_memory_column *c = &room.columns[i];
        uint64_t sum = c->inputs + c->states + c->gradients + c->workspace;
        most = sum > most ? sum : most;
    }
    CHECK(most == remat_plan_get_figures(plan)->schedule.peak_bytes);
    OK(context, remat_report_create(context, &report));
    OK(context, remat_report_add_profile(report, "profile", profile, options));
    OK(context, remat_report_add_plan(report, "plan", plan, NULL));
    FILE *stream = fopen(scratch_path("plan.json"), "r");
    OK(context, remat_report_add_plan_file(report, "file", stream));
    fclose(stream);
    remat_train_options planning;
    remat_train_options_init(&planning);
    planning.plan_only = true;
    OK(context, remat_trainer_create(model, &planning, &trainer));
    OK(context, remat_report_add_trainer(report, "model", trainer, options));
    OK(context, remat_report_add_run(report, "run", scratch_path("run.log")));
    CHECK(remat_report_count(report) == 5);
    stream = tmpfile();
    OK(context, remat_report_write_json(report, stream));
    OK(context, remat_report_write(report, stream));
    CHECK(ftell(stream) > 10000);
    fclose(stream);
    OK(context, remat_report_save(report, scratch_path("page.html")));
    CHECK(kind_of(context, scratch_path("plan.json")) == REMAT_FILE_PLAN);
    CHECK(kind_of(context, scratch_path("profile.json")) == REMAT_FILE_PROFILE);
    CHECK(kind_of(context, scratch_path("run.log")) == REMAT_FILE_RUN);
    CHECK(kind_of(context, scratch_path("model.ini")) == REMAT_FILE_MODEL);
    remat_report_destroy(report);
    remat_trainer_destroy(trainer);
    remat_plan_destroy(plan);
    remat_model_destroy(model);
    remat_profile_destroy(profile);
}
