/* Running trained models: values against a plain computation, batches, samples of the dataset, generated text. */
#include <math.h>

#include "support/fixture.h"
#include "support/parameter_copies.h"
#include "support/scratch_files.h"
#include "support/small_models.h"

enum { IN = 5, HIDDEN = 4, OUT = 3 };

/* Dropout and batch normalization behave as in evaluation: nothing is dropped, running statistics count. */
static remat_model *dense_model(fixture *f)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=5")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=hidden", "unit=4")));
    expect_ok(f, remat_model_add_layer(model, "batch_normalization", REMAT_PROPERTIES("name=norm")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=act", "activation=relu")));
    expect_ok(f, remat_model_add_layer(model, "dropout", REMAT_PROPERTIES("name=drop", "rate=0.5")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=3")));
    expect_ok(f, remat_model_add_layer(model, "cross_entropy", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4")));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=24", "validation_split=0.25")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* Trains a little and saves; `parameters` gets copies of all parameters, in their order. */
static void train_and_save(fixture *f, remat_model *model, const char *path, float *parameters[16])
{
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, NULL, &trainer));
    for (int i = 0; i < 6; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
    }
    for (size_t p = 0; parameters && p < remat_trainer_parameter_count(trainer); p++) {
        remat_parameter parameter;
        parameters[p] = parameter_copy(f, trainer, p, &parameter);
    }
    expect_ok(f, remat_trainer_save(trainer, path, false));
    remat_trainer_destroy(trainer);
}

static remat_predictor *open_predictor(fixture *f, remat_model *model, const char *path, uint64_t batch)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.batch_size = batch;
    options.threads = 1;
    remat_predictor *predictor;
    expect_ok(f, remat_predictor_create(model, path, &options, &predictor));
    return predictor;
}

/* The same model in plain loops. Parameters: hidden weight and bias, gain, shift, mean, variance, out weight and bias. */
static void plain_outputs(float *const *p, const float *x, double *y)
{
    double hidden[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        hidden[i] = p[1][i];
        for (int k = 0; k < IN; k++)
            hidden[i] += (double)p[0][i * IN + k] * x[k];
        hidden[i] = (hidden[i] - p[4][i]) / sqrt(p[5][i] + 1e-5) * p[2][i] + p[3][i];
        hidden[i] = fmax(hidden[i], 0);
    }
    for (int i = 0; i < OUT; i++) {
        y[i] = p[7][i];
        for (int k = 0; k < HIDDEN; k++)
            y[i] += (double)p[6][i * HIDDEN + k] * hidden[k];
    }
}

static void test_values(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("predictor.safetensors");
    remat_model *model = dense_model(f);
    float *parameters[16] = {NULL}, inputs[4 * IN];
    train_and_save(f, model, path, parameters);
    test_random random = {test_seed()};
    for (int i = 0; i < 4 * IN; i++)
        inputs[i] = (float)test_random_below(&random, 2001) / 1000 - 1;
    remat_predictor *predictor = open_predictor(f, model, path, 0);
    remat_prediction prediction;
    expect_ok(f, remat_predictor_run(predictor, (const void *const[]){inputs}, &prediction));
    assert_string_equal(prediction.layer, "out");
    assert_int_equal(prediction.batch, 4);
    assert_int_equal(prediction.shape[0] * prediction.shape[1], 1);
    assert_int_equal(prediction.shape[2], OUT);
    for (int s = 0; s < 4; s++) {
        double wanted[OUT];
        plain_outputs(parameters, inputs + s * IN, wanted);
        for (int i = 0; i < OUT; i++)
            assert_true(fabs(prediction.values[s * OUT + i] - wanted[i]) < 1e-5 * (1 + fabs(wanted[i])));
    }
    /* The same samples one at a time, to the bit. */
    remat_predictor *single = open_predictor(f, model, path, 1);
    for (int s = 0; s < 4; s++) {
        remat_prediction one;
        expect_ok(f, remat_predictor_run(single, (const void *const[]){inputs + s * IN}, &one));
        assert_int_equal(one.batch, 1);
        assert_memory_equal(one.values, prediction.values + s * OUT, OUT * sizeof(float));
    }
    remat_predictor_destroy(single);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    for (int p = 0; p < 16; p++)
        free(parameters[p]);
}

static void test_samples(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("predictor.safetensors");
    remat_model *model = dense_model(f);
    train_and_save(f, model, path, NULL);
    remat_predictor *predictor = open_predictor(f, model, path, 4), *single = open_predictor(f, model, path, 1);
    assert_int_equal(remat_predictor_samples(predictor), 24); /* those for training and for validation */
    for (uint64_t first = 0; first < 24; first += 4) {
        remat_prediction prediction, one;
        expect_ok(f, remat_predictor_run_samples(predictor, first, &prediction));
        for (uint64_t s = 0; s < 4; s++) {
            expect_ok(f, remat_predictor_run_samples(single, first + s, &one));
            assert_memory_equal(one.values, prediction.values + s * OUT, OUT * sizeof(float));
        }
    }
    remat_prediction past;
    expect_status(f, remat_predictor_run_samples(single, 24, &past), REMAT_INVALID);
    expect_message(f, "there are 24");
    /* The last batch has what is left; one larger than the data has all of it. */
    for (uint64_t batch = 5; batch <= 40; batch += 35) {
        remat_predictor *uneven = open_predictor(f, model, path, batch);
        assert_int_equal(remat_predictor_samples(uneven), 24);
        remat_prediction prediction, one;
        for (uint64_t first = 0; first < 24; first += prediction.batch) {
            expect_ok(f, remat_predictor_run_samples(uneven, first, &prediction));
            assert_int_equal(prediction.batch, 24 - first < batch ? 24 - first : batch);
            for (uint64_t s = 0; s < prediction.batch; s++) {
                expect_ok(f, remat_predictor_run_samples(single, first + s, &one));
                assert_memory_equal(one.values, prediction.values + s * OUT, OUT * sizeof(float));
            }
        }
        remat_predictor_destroy(uneven);
    }
    remat_predictor_destroy(single);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

/* ---- text ---- */

typedef struct collected {
    char text[64];
    size_t count;
} collected;

static void collect(void *user, unsigned char byte)
{
    collected *to = user;
    assert_true(to->count < sizeof to->text);
    to->text[to->count++] = (char)byte;
}

static collected generate(fixture *f, remat_predictor *predictor, const char *prompt, double temperature, uint64_t seed)
{
    remat_generate_options options;
    remat_generate_options_init(&options);
    options.prompt = prompt;
    options.count = 40;
    options.temperature = temperature;
    options.seed = seed;
    collected text = {.count = 0};
    expect_ok(f, remat_predictor_generate(predictor, &options, collect, &text));
    assert_int_equal(text.count, 40);
    return text;
}

static void test_generate(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("bytes.safetensors");
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "gpt.ini", &model));
    train_and_save(f, model, path, NULL);
    remat_predictor *predictor = open_predictor(f, model, path, 1);
    collected a = generate(f, predictor, "static", 0, 1), b = generate(f, predictor, "static", 0, 2);
    assert_memory_equal(a.text, b.text, 40); /* nothing is drawn */
    a = generate(f, predictor, "static", 1, 1);
    b = generate(f, predictor, "static", 1, 1);
    assert_memory_equal(a.text, b.text, 40);
    b = generate(f, predictor, "static", 1, 2);
    assert_memory_not_equal(a.text, b.text, 40);
    generate(f, predictor, NULL, 0.5, 3);
    generate(f, predictor, "longer than the sequence that the model knows", 0.5, 3);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

/* ---- what goes wrong ---- */

static void test_wrong_tokens(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("bytes.safetensors");
    remat_model *model;
    expect_ok(f, small_model_load(f->context, "gpt.ini", &model));
    train_and_save(f, model, path, NULL);
    remat_predictor *predictor = open_predictor(f, model, path, 1);
    int32_t tokens[10] = {0, 255, 1, 2, 3, 4, 5, 6, 7, 8};
    remat_prediction prediction;
    expect_ok(f, remat_predictor_run(predictor, (const void *const[]){tokens}, &prediction));
    assert_int_equal(prediction.shape[1], 10);
    assert_int_equal(prediction.shape[2], 256);
    tokens[3] = 256;
    expect_status(f, remat_predictor_run(predictor, (const void *const[]){tokens}, &prediction), REMAT_BAD_INPUT);
    expect_message(f, "256");
    tokens[3] = -1;
    expect_status(f, remat_predictor_run(predictor, (const void *const[]){tokens}, &prediction), REMAT_BAD_INPUT);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

/* One layer after the other: what is no model of bytes, and why. */
static void expect_not_bytes(fixture *f, const char *input, const char *const *first, const char *const *second,
                             const char *why)
{
    const char *path = scratch_path("not_bytes.safetensors");
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", input)));
    expect_ok(f, remat_model_add_layer(model, first[0], first + 1));
    expect_ok(f, remat_model_add_layer(model, second[0], second + 1));
    expect_ok(f, remat_model_add_layer(model, "cross_entropy", NULL));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=4")));
    expect_ok(f, remat_model_compile(model));
    train_and_save(f, model, path, NULL);
    remat_predictor *predictor = open_predictor(f, model, path, 0);
    collected text = {.count = 0};
    expect_status(f, remat_predictor_generate(predictor, NULL, collect, &text), REMAT_INVALID);
    expect_message(f, "not a model of bytes");
    expect_message(f, why);
    assert_int_equal(text.count, 0);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

static void test_not_bytes(void **state)
{
    fixture *f = *state;
    const char *const *logits = REMAT_PROPERTIES("fully_connected", "unit=256");
    const char *const *embedding = REMAT_PROPERTIES("embedding", "in_dim=256", "out_dim=8");
    /* Shapes alone do not make one: these inputs are numbers, not tokens. */
    expect_not_bytes(f, "input_shape=1:1", REMAT_PROPERTIES("fully_connected", "unit=8"), logits, "embedding");
    expect_not_bytes(f, "input_shape=6", REMAT_PROPERTIES("embedding", "in_dim=255", "out_dim=8"), logits, "not 255");
    expect_not_bytes(f, "input_shape=6", embedding, REMAT_PROPERTIES("fully_connected", "unit=255"), "1:6:255");
    expect_not_bytes(f, "input_shape=6", embedding, REMAT_PROPERTIES("reshape", "target_shape=2:3:8"), "2:3:8");
}

static void test_errors(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("predictor.safetensors");
    remat_model *model = dense_model(f), *other;
    train_and_save(f, model, path, NULL);
    remat_predictor *predictor;
    expect_status(f, remat_predictor_create(model, "there/is/no.st", NULL, &predictor), REMAT_IO);
    assert_null(predictor);
    expect_ok(f, small_model_load(f->context, "mlp.ini", &other));
    expect_status(f, remat_predictor_create(other, path, NULL, &predictor), REMAT_BAD_INPUT);
    assert_null(predictor);
    remat_train_options options;
    remat_train_options_init(&options);
    options.kernels = "foo";
    expect_status(f, remat_predictor_create(model, path, &options, &predictor), REMAT_INVALID);
    expect_message(f, "foo");
    predictor = open_predictor(f, model, path, 0);
    remat_generate_options generating;
    remat_generate_options_init(&generating);
    collected text = {.count = 0};
    expect_status(f, remat_predictor_generate(predictor, &generating, collect, &text), REMAT_INVALID);
    remat_predictor_destroy(predictor);
    uint64_t held = f->memory.bytes, calls = f->memory.calls;
    remat_predictor_destroy(open_predictor(f, model, path, 0));
    calls = f->memory.calls - calls;
    for (uint64_t n = 1; n <= calls; n++) {
        f->memory.fail_at = f->memory.calls + n;
        expect_status(f, remat_predictor_create(model, path, NULL, &predictor), REMAT_NO_MEMORY);
        assert_null(predictor);
        assert_int_equal(f->memory.bytes, held);
    }
    f->memory.fail_at = 0;
    remat_model_destroy(model);
    remat_model_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_values),    FIXTURE_TEST(test_samples),
                                       FIXTURE_TEST(test_generate),  FIXTURE_TEST(test_wrong_tokens),
                                       FIXTURE_TEST(test_not_bytes), FIXTURE_TEST(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
