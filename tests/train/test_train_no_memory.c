/* Models and trainers with each allocation failing in turn: each call says that there is no memory, nothing is lost, and
 * the same calls work as soon as there is some. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/train.h>

static const char network[] = "[Model]\n"
                              "name = every kind\n"
                              "batch_size = 2\n"
                              "accumulate = 2\n"
                              "clip_norm = 1\n"
                              "early_stopping = 3\n"
                              "[Optimizer : adamw]\n"
                              "learning_rate = 0.01\n"
                              "weight_decay = 0.1\n"
                              "schedule = cosine\n"
                              "warmup_steps = 1\n"
                              "[Dataset : random]\n"
                              "samples = 8\n"
                              "validation_split = 0.5\n"
                              "[in]\n"
                              "type = input\n"
                              "input_shape = 1:6:6\n"
                              "[conv]\n"
                              "type = conv2d\n"
                              "filters = 3\n"
                              "kernel_size = 3\n"
                              "padding = same\n"
                              "[norm]\n"
                              "type = batch_normalization\n"
                              "[relu]\n"
                              "type = activation\n"
                              "activation = relu\n"
                              "[pool]\n"
                              "type = pooling2d\n"
                              "pool_size = 2\n"
                              "[side]\n"
                              "type = conv2d\n"
                              "filters = 3\n"
                              "kernel_size = 1\n"
                              "[sum]\n"
                              "type = addition\n"
                              "input_layers = side, pool\n"
                              "[product]\n"
                              "type = multiply\n"
                              "input_layers = sum, pool\n"
                              "[both]\n"
                              "type = concat\n"
                              "input_layers = product, side\n"
                              "[mean]\n"
                              "type = pooling2d\n"
                              "pooling = average\n"
                              "pool_size = 2\n"
                              "[flat]\n"
                              "type = flatten\n"
                              "[shape]\n"
                              "type = reshape\n"
                              "target_shape = 1:3:3\n"
                              "[drop]\n"
                              "type = dropout\n"
                              "rate = 0.5\n"
                              "[rms]\n"
                              "type = rms_normalization\n"
                              "[fc]\n"
                              "type = fully_connected\n"
                              "unit = 4\n"
                              "activation = tanh\n"
                              "[out]\n"
                              "type = fully_connected\n"
                              "unit = 1\n"
                              "[loss]\n"
                              "type = mse\n";

static const char sequence[] = "[Model]\n"
                               "[Optimizer : sgd]\n"
                               "momentum = 0.9\n"
                               "[Dataset : random]\n"
                               "samples = 4\n"
                               "[in]\n"
                               "type = input\n"
                               "input_shape = 1:1:5\n"
                               "[embed]\n"
                               "type = embedding\n"
                               "in_dim = 256\n"
                               "out_dim = 4\n"
                               "positions = 5\n"
                               "[heads]\n"
                               "type = multi_head_attention\n"
                               "num_heads = 2\n"
                               "causal = true\n"
                               "[rows]\n"
                               "type = layer_normalization\n"
                               "[out]\n"
                               "type = fully_connected\n"
                               "unit = 256\n"
                               "shared_from = embed\n"
                               "bias = false\n"
                               "[loss]\n"
                               "type = cross_entropy\n"
                               "[Block first]\n"
                               "layers = heads, rows\n";

static remat_status read_model(remat_context *context, const char *text, remat_model **model)
{
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(context, stream, "model.ini", model);
    fclose(stream);
    return status;
}

static void no_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    (void)user, (void)parameter, (void)gradient, (void)count;
}

static void no_action(void *user, const remat_action *action)
{
    (void)user, (void)action;
}

/* Text is thrown away, and does not count as an allocation of ours. */
static FILE *nowhere(void)
{
    FILE *stream = fopen("/dev/null", "w");
    assert_non_null(stream);
    return stream;
}

static remat_status look_at_model(remat_context *context, void *user)
{
    remat_model *model = NULL;
    FILE *out = nowhere();
    remat_status status = read_model(context, user, &model);
    for (int json = 0; json < 2; json++) {
        FLOW(status, remat_model_write_summary(model, out, json));
        FLOW(status, remat_model_write_order(model, out, json));
        FLOW(status, remat_layer_types_write(context, NULL, out, json));
        FLOW(status, remat_layer_types_write(context, "conv2d", out, json));
    }
    remat_model_destroy(model);
    fclose(out);
    return status;
}

/* The calls that a file stands for, and settings that change after compiling. */
static remat_status build_by_calls(remat_context *context, void *user)
{
    remat_model *model = NULL;
    (void)user;
    remat_status status = remat_model_create(context, &model);
    FLOW(status, remat_model_set(model, REMAT_PROPERTIES("name=by calls", "batch_size=2", "budget=3MiB")));
    FLOW(status, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate = 0.1", "beta1=0.8")));
    FLOW(status, remat_model_set_dataset(model, "csv", REMAT_PROPERTIES("inputs=a.csv", "labels=1")));
    FLOW(status, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:4")));
    FLOW(status, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("unit=3", "activation=tanh")));
    FLOW(status, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("unit=4", "name=second")));
    FLOW(status, remat_model_add_layer(model, "addition", REMAT_PROPERTIES("name=sum", "input_layers=in, second")));
    FLOW(status, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    FLOW(status, remat_model_add_block(model, REMAT_PROPERTIES("second", "sum")));
    FLOW(status, remat_model_compile(model));
    FLOW(status, remat_model_set(model, REMAT_PROPERTIES("batch_size=5")));
    if (status == REMAT_OK) {
        assert_int_equal(remat_model_batch(model), 5);
        assert_int_equal(remat_model_budget(model), 3 << 20);
        assert_int_equal(remat_model_parameter_count(model), 4 * 3 + 3 + 3 * 4 + 4);
    }
    remat_model_destroy(model);
    return status;
}

static void models_survive_every_failure(void **state)
{
    (void)state;
    expect_failures_survived("calls", build_by_calls, NULL, 20, 2000);
    expect_failures_survived("network", look_at_model, (void *)(uintptr_t)network, 100, 2000);
    expect_failures_survived("sequence", look_at_model, (void *)(uintptr_t)sequence, 100, 2000);
}

typedef struct training {
    const char *model, *strategy;
    bool questions; /* curve, profile, plan file and parameters, besides training */
} training;

static remat_status ask_trainer(remat_trainer *trainer)
{
    remat_status status = REMAT_OK;
    size_t points = 0;
    remat_profile *profile = NULL;
    FILE *out = nowhere();
    FLOW(status, remat_trainer_find_curve(trainer, &points));
    FLOW(status, remat_trainer_measure(trainer, 1, &profile));
    if (remat_trainer_plan(trainer))
        FLOW(status, remat_trainer_write_plan(trainer, out, true));
    FLOW(status, remat_trainer_on_action(trainer, no_action, NULL));
    remat_profile_destroy(profile);
    fclose(out);
    return status;
}

static remat_status train(remat_context *context, void *user)
{
    const training *wanted = user;
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_step_result result;
    remat_validation_result validation;
    remat_train_options options;
    remat_train_options_init(&options);
    options.strategy = wanted->strategy;
    options.threads = 1;
    remat_status status = read_model(context, wanted->model, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    if (status != REMAT_OK)
        assert_null(trainer);
    if (wanted->questions)
        FLOW(status, ask_trainer(trainer));
    if (trainer)
        remat_trainer_on_gradient(trainer, no_gradient, NULL);
    FLOW(status, remat_trainer_step(trainer, &result));
    FLOW(status, remat_trainer_step(trainer, &result));
    if (wanted->model == network)
        FLOW(status, remat_trainer_validate(trainer, &validation));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

static void trainers_survive_every_failure(void **state)
{
    (void)state;
    static const training all[] = {
        {network, NULL, true}, {sequence, "every-nth:2", false}, {sequence, NULL, true}, {network, "optimal", false}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_failures_survived(all[i].model == network ? "network" : "sequence", train, (void *)(uintptr_t)&all[i],
                                 300, LESS_WHEN_SANITIZED(400, 100));
}

/* ---- files ---- */

typedef struct saved_files {
    const char *weights, *state, *plan;
} saved_files;

static remat_status save_and_load(remat_context *context, void *user)
{
    const saved_files *files = user;
    remat_model *model = NULL;
    remat_trainer *trainer = NULL, *second = NULL;
    remat_train_options options;
    remat_run_hooks hooks;
    remat_run_result result;
    remat_train_options_init(&options);
    remat_run_hooks_init(&hooks);
    options.threads = 1;
    options.strategy = "every-nth:2";
    remat_status status = read_model(context, network, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    FLOW(status, remat_trainer_run(trainer, &hooks, &result));
    FLOW(status, remat_trainer_check_save(trainer, files->state, true));
    FLOW(status, remat_trainer_save(trainer, files->state, true));
    FLOW(status, remat_trainer_save(trainer, files->weights, false));
    FLOW(status, remat_trainer_save_plan(trainer, files->plan));
    options.strategy = NULL;
    options.plan_path = files->plan;
    FLOW(status, remat_trainer_create(model, &options, &second));
    FLOW(status, remat_trainer_load(second, files->weights));
    FLOW(status, remat_trainer_resume(second, files->state));
    if (status == REMAT_OK)
        assert_int_equal(remat_trainer_steps_taken(second), remat_trainer_steps_taken(trainer));
    remat_trainer_destroy(second);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

static void files_survive_every_failure(void **state)
{
    (void)state;
    saved_files files = {scratch_path("weights"), scratch_path("state"), scratch_path("plan")};
    expect_failures_survived("files", save_and_load, &files, 300, LESS_WHEN_SANITIZED(400, 100));
}

static void no_byte(void *user, unsigned char byte)
{
    (void)user, (void)byte;
}

static remat_status predict(remat_context *context, void *user)
{
    remat_model *model = NULL;
    remat_predictor *predictor = NULL;
    remat_prediction prediction;
    remat_generate_options options;
    remat_generate_options_init(&options);
    options.count = 2;
    options.prompt = "ab";
    remat_train_options train_options;
    remat_train_options_init(&train_options);
    train_options.threads = 1;
    remat_status status = read_model(context, sequence, &model);
    FLOW(status, remat_predictor_create(model, user, &train_options, &predictor));
    FLOW(status, remat_predictor_generate(predictor, &options, no_byte, NULL));
    FLOW(status, remat_predictor_samples(predictor) == 4 ? REMAT_OK : remat_context_error(context)->status);
    FLOW(status, remat_predictor_run_samples(predictor, 2, &prediction));
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    return status;
}

static void predictors_survive_every_failure(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_trainer *trainer;
    const char *weights = scratch_path("sequence");
    expect_ok(f, read_model(f->context, sequence, &model));
    expect_ok(f, remat_trainer_create(model, NULL, &trainer));
    expect_ok(f, remat_trainer_save(trainer, weights, false));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    expect_failures_survived("predictor", predict, (void *)(uintptr_t)weights, 100, 1000);
}

static remat_status find_batch(remat_context *context, void *user)
{
    remat_model *model = NULL;
    remat_train_options options;
    uint64_t batch = 0;
    (void)user;
    remat_train_options_init(&options);
    options.budget_bytes = 1320000;
    options.threads = 1;
    options.plan_only = true;
    remat_status status = read_model(context, network, &model);
    FLOW(status, remat_train_largest_batch(model, &options, &batch));
    remat_model_destroy(model);
    return status;
}

static void the_largest_batch_survives_every_failure(void **state)
{
    (void)state;
    expect_failures_survived("largest batch", find_batch, NULL, 300, LESS_WHEN_SANITIZED(200, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_survive_every_failure),
        cmocka_unit_test(trainers_survive_every_failure),
        cmocka_unit_test(files_survive_every_failure),
        FIXTURE_TEST(predictors_survive_every_failure),
        cmocka_unit_test(the_largest_batch_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
