/* Training in bf16: against a slow version that rounds where tensors are stored, against fp32, and with the same bits under
 * every plan, with any number of threads and after resuming. */
#include "backend/cpu/kernel.h"
#include "support/parameter_copies.h"
#include "support/scratch_files.h"
#include "support/small_models.h"
#include "train/trainer_toy.h"

/* ---- a slow version of one step ---- */

enum { BATCH = 4, IN = 2, HIDDEN = 16 };

static double bf16(double value)
{
    int exponent;
    const double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(fraction * 256), exponent - 8);
}

typedef struct slow_net {
    double weight1[HIDDEN][IN], bias1[HIDDEN], weight2[HIDDEN], bias2;
    double d_weight1[HIDDEN][IN], d_bias1[HIDDEN], d_weight2[HIDDEN], d_bias2;
} slow_net;

/* fc1 with tanh, fc2, mse; `keep` rounds what is stored, `multiply` what is multiplied. Returns the loss. */
static double slow_step(slow_net *net, double (*keep)(double), double (*multiply)(double))
{
    double loss = 0;
    for (int s = 0; s < BATCH; s++) {
        float x[IN], label;
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        toy_sample(&data, (uint64_t)s, (void *const[]){x}, &label);
        double hidden[HIDDEN], out = net->bias2;
        for (int h = 0; h < HIDDEN; h++) {
            const double sum = net->bias1[h] + multiply(net->weight1[h][0]) * multiply((double)x[0]) +
                               multiply(net->weight1[h][1]) * multiply((double)x[1]);
            hidden[h] = keep(tanh(keep(sum)));
            out += multiply(net->weight2[h]) * hidden[h];
        }
        const double error = keep(out) - (double)label, d_out = keep(2 * error / BATCH);
        loss += error * error / BATCH;
        net->d_bias2 += d_out;
        for (int h = 0; h < HIDDEN; h++) {
            net->d_weight2[h] += d_out * hidden[h];
            const double d_hidden = keep(d_out * multiply(net->weight2[h]));
            const double d_sum = keep(d_hidden * (1 - hidden[h] * hidden[h]));
            net->d_bias1[h] += d_sum;
            for (int i = 0; i < IN; i++)
                net->d_weight1[h][i] += d_sum * multiply((double)x[i]);
        }
    }
    return loss;
}

static double as_it_is(double value)
{
    return value;
}

static remat_model *small_net(fixture *f, const char *precision)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:2")));
    expect_ok(
        f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc1", "unit=16", "activation=tanh")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc2", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4", precision)));
    expect_ok(f, remat_model_set_dataset(model, "none", REMAT_PROPERTIES("shuffle=false")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static void keep_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    memcpy(((float(*)[64])user)[parameter], gradient, count * sizeof *gradient);
}

/* With the reference, and with every set of this processor. */
static void a_step_is_that_of_the_slow_version(void **state)
{
    fixture *f = *state;
    const kernel_table *tables[8] = {kernels_reference()};
    for (size_t i = 0; kernels_available()[i]; i++)
        tables[i + 1] = kernels_available()[i];
    for (size_t k = 0; tables[k]; k++) {
        toy data = {.fail_at = UINT64_MAX, .scale = 1};
        remat_model *model = small_net(f, "precision=bf16");
        remat_train_options options = toy_options(&data);
        options.steps = 1;
        options.kernels = tables[k]->name;
        remat_trainer *trainer;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        float gradients[4][64], read[64];
        remat_trainer_on_gradient(trainer, keep_gradient, gradients);
        slow_net net = {0}, full;
        expect_ok(f, remat_trainer_read_parameter(trainer, 0, read, HIDDEN * IN));
        for (int i = 0; i < HIDDEN * IN; i++)
            net.weight1[i / IN][i % IN] = (double)read[i];
        expect_ok(f, remat_trainer_read_parameter(trainer, 2, read, HIDDEN));
        for (int i = 0; i < HIDDEN; i++)
            net.weight2[i] = (double)read[i];
        expect_ok(f, remat_trainer_read_parameter(trainer, 1, read, HIDDEN));
        for (int i = 0; i < HIDDEN; i++)
            net.bias1[i] = (double)read[i];
        expect_ok(f, remat_trainer_read_parameter(trainer, 3, read, 1));
        net.bias2 = (double)read[0];
        full = net;
        const double loss = slow_step(&net, bf16, tables[k]->multiplies_halves ? bf16 : as_it_is);
        slow_step(&full, as_it_is, as_it_is);
        const double got = one_step(f, trainer).loss;
        if (!(fabs(got - loss) <= 1e-5 * loss))
            fail_msg("the loss is %.9g, not %.9g", got, loss);
        double apart = 0;
        for (int h = 0; h < HIDDEN; h++) {
            for (int i = 0; i < IN; i++) {
                assert_true(fabs((double)gradients[0][h * IN + i] - net.d_weight1[h][i]) <= 1e-6);
                apart = fmax(apart, fabs(full.d_weight1[h][i] - net.d_weight1[h][i]));
            }
            assert_true(fabs((double)gradients[1][h] - net.d_bias1[h]) <= 1e-6);
            assert_true(fabs((double)gradients[2][h] - net.d_weight2[h]) <= 1e-6);
        }
        assert_true(fabs((double)gradients[3][0] - net.d_bias2) <= 1e-6);
        assert_true(apart > 1e-5); /* without rounding it is another step */
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

/* ---- the examples ---- */

typedef struct outcome {
    double losses[8];
    remat_trainer_figures figures;
} outcome;

static remat_trainer *train(fixture *f, remat_model *model, const char *strategy, unsigned threads, uint64_t budget,
                            const char *kernels, outcome *to)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.strategy = strategy;
    options.threads = threads;
    options.budget_bytes = budget;
    options.kernels = kernels;
    options.steps = 4;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_get_figures(trainer, &to->figures);
    for (int i = 0; i < 4; i++)
        to->losses[i] = one_step(f, trainer).loss;
    return trainer;
}

static void expect_same(fixture *f, const remat_trainer *a, const remat_trainer *b, const char *name)
{
    for (size_t i = 0; i < remat_trainer_parameter_count(a); i++) {
        remat_parameter one, two;
        float *left = parameter_copy(f, a, i, &one), *right = parameter_copy(f, b, i, &two);
        assert_int_equal(one.dtype, two.dtype);
        if (memcmp(left, right, one.count * sizeof *left) != 0)
            fail_msg("%s: the values of %s differ", name, one.name);
        free(left);
        free(right);
    }
}

static void train_examples(fixture *f, const char *settings)
{
    for (size_t i = 0; small_model_name(i); i++) {
        const char *name = small_model_name(i);
        remat_model *model, *full;
        outcome wanted, got, in_fp32;
        expect_ok(f, small_model_load_with(f->context, name, settings, &model));
        expect_ok(f, small_model_load(f->context, name, &full));
        remat_trainer *kept = train(f, model, "none", 1, REMAT_NO_BUDGET, NULL, &wanted);
        remat_trainer *other = train(f, model, "full", 3, REMAT_NO_BUDGET, NULL, &got);
        expect_same(f, kept, other, name);
        remat_trainer_destroy(other);
        other =
            train(f, model, NULL, 1, (wanted.figures.min_budget_bytes + wanted.figures.total_bytes) / 2, NULL, &got);
        assert_memory_equal(wanted.losses, got.losses, 4 * sizeof(double));
        expect_same(f, kept, other, name);
        remat_trainer_destroy(other);
        other = train(f, full, "none", 1, REMAT_NO_BUDGET, NULL, &in_fp32);
        for (int s = 0; s < 4; s++)
            if (!(fabs(wanted.losses[s] / in_fp32.losses[s] - 1) < 0.02))
                fail_msg("%s: the loss of step %d is %g in bf16 and %g in fp32", name, s + 1, wanted.losses[s],
                         in_fp32.losses[s]);
        remat_trainer_destroy(other);
        other = train(f, model, "none", 2, REMAT_NO_BUDGET, "reference", &got);
        for (int s = 0; s < 4; s++)
            assert_true(fabs(wanted.losses[s] / got.losses[s] - 1) < 0.02);
        remat_trainer_destroy(other);
        remat_trainer_destroy(kept);
        remat_model_destroy(model);
        remat_model_destroy(full);
    }
}

static void examples_train_with_the_same_bits(void **state)
{
    train_examples(*state, "precision = bf16");
}

static void examples_train_without_master_copies(void **state)
{
    train_examples(*state, "precision = bf16\nmaster = false");
}

static void go_on(fixture *f, const char *optimizer, const char *master, const char *moments, const char *micro_batches)
{
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    const char *path = scratch_path("bf16.safetensors");
    remat_model *model = toy_model(f, optimizer, REMAT_PROPERTIES("learning_rate=0.01", moments),
                                   REMAT_PROPERTIES("batch_size=16", "precision=bf16", master, micro_batches));
    remat_trainer *whole = toy_trainer(f, model, &data, 200), *half = toy_trainer(f, model, &data, 200);
    double first = one_step(f, whole).loss, last = 0;
    for (int i = 1; i < 200; i++)
        last = one_step(f, whole).loss;
    assert_true(last < 0.1 * first); /* the toy is learned */
    for (int i = 0; i < 90; i++)
        one_step(f, half);
    expect_ok(f, remat_trainer_save(half, path, true));
    remat_trainer_destroy(half);
    half = toy_trainer(f, model, &data, 200);
    expect_ok(f, remat_trainer_resume(half, path));
    for (int i = 90; i < 200; i++)
        one_step(f, half);
    expect_same(f, whole, half, "the toy");
    remat_validation_result validation;
    expect_ok(f, remat_trainer_validate(whole, &validation));
    assert_true(validation.loss < 0.1 * first);
    remat_trainer_destroy(half);
    remat_trainer_destroy(whole);
    remat_model_destroy(model);
}

static void trainings_go_on_with_the_same_bits(void **state)
{
    go_on(*state, "adamw", "master=true", "state=int8", "accumulate=2");
    go_on(*state, "adamw", "master=false", "state=int8", "accumulate=2");
    go_on(*state, "adamw", "master=false", "state=fp32", "clip_norm=1");
    go_on(*state, "lion", "master=false", "state=bf16", "accumulate=1");
    go_on(*state, "sgd", "master=false", "momentum=0.9", "accumulate=1");
    go_on(*state, "adafactor", "master=false", "least_scale=0.1", "accumulate=1");
}

/* ---- without master copies ---- */

static bool is_bf16(float value)
{
    return bf16((double)value) == (double)value;
}

/* Matrices are bf16 in memory and in the file, vectors are not; another training does not go on with them by mistake. */
static void matrices_are_in_bf16(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    const char *path = scratch_path("halves.safetensors");
    remat_model *models[2];
    remat_trainer *trainers[2];
    remat_trainer_figures figures[2];
    for (int i = 0; i < 2; i++) {
        models[i] = toy_model(f, "adamw", REMAT_PROPERTIES("learning_rate=0.01"),
                              REMAT_PROPERTIES("batch_size=16", "precision=bf16", i ? "master=false" : "master=true"));
        trainers[i] = toy_trainer(f, models[i], &data, 200);
        for (int s = 0; s < 5; s++)
            one_step(f, trainers[i]);
        remat_trainer_get_figures(trainers[i], &figures[i]);
    }
    assert_true(figures[1].weight_bytes < figures[0].weight_bytes);
    assert_int_equal(figures[0].total_bytes - figures[0].arena_bytes - figures[0].weight_bytes,
                     figures[1].total_bytes - figures[1].arena_bytes - figures[1].weight_bytes);
    size_t matrices = 0, rough_vectors = 0;
    for (size_t i = 0; i < remat_trainer_parameter_count(trainers[1]); i++) {
        remat_parameter about;
        float *values = parameter_copy(f, trainers[1], i, &about);
        assert_int_equal(about.dtype, about.rank > 1 ? REMAT_BF16 : REMAT_FP32);
        matrices += about.rank > 1;
        for (uint64_t v = 0; v < about.count; v++) {
            assert_true(about.rank == 1 || is_bf16(values[v]));
            rough_vectors += about.rank == 1 && !is_bf16(values[v]);
        }
        values[0] = 1.00390625f; /* between two neighbours: the even one is taken */
        expect_ok(f, remat_trainer_write_parameter(trainers[1], i, values, about.count));
        expect_ok(f, remat_trainer_read_parameter(trainers[1], i, values, about.count));
        assert_true(values[0] == (about.rank > 1 ? 1.0f : 1.00390625f));
        free(values);
    }
    assert_true(matrices > 0 && rough_vectors > 0);
    expect_ok(f, remat_trainer_save(trainers[1], path, true));
    expect_status(f, remat_trainer_resume(trainers[0], path), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "master = false, the model says true"));
    expect_ok(f, remat_trainer_load(trainers[0], path)); /* the weights alone are fine */
    expect_ok(f, remat_trainer_save(trainers[0], path, true));
    expect_status(f, remat_trainer_resume(trainers[1], path), REMAT_BAD_INPUT);
    for (int i = 0; i < 2; i++) {
        remat_trainer_destroy(trainers[i]);
        remat_model_destroy(models[i]);
    }
}

/* ---- layers in fp32 ---- */

static remat_model *read_model(fixture *f, const char *text, remat_status wanted)
{
    remat_model *model;
    FILE *stream = stream_of(text, strlen(text));
    expect_status(f, remat_model_read(f->context, stream, "model.ini", &model), wanted);
    fclose(stream);
    return model;
}

#define NET(MODEL, FC1, FC2)                                                                                      \
    "[Model]\nbatch_size=2\n" MODEL "[Dataset:random]\nsamples=8\n[in:input]\ninput_shape=1:1:64\n"               \
    "[fc1:fully_connected]\nunit=64\n" FC1 "[fc2:fully_connected]\nunit=64\n" FC2 "[sum:addition]\ninput_layers=" \
    "fc1,fc2\n[out:fully_connected]\nunit=1\n[loss:mse]\n"

static uint64_t output_bytes(fixture *f, const char *text)
{
    remat_model *model = read_model(f, text, REMAT_OK);
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    one_step(f, trainer);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return figures.peak_activation_bytes;
}

static void single_layers_stay_in_fp32(void **state)
{
    fixture *f = *state;
    const uint64_t fp32 = output_bytes(f, NET("", "", "")),
                   bf16_bytes = output_bytes(f, NET("precision=bf16\n", "", ""));
    const uint64_t mixed = output_bytes(f, NET("precision=bf16\n", "precision=fp32\n", "precision=fp32\n"));
    assert_true(bf16_bytes < mixed && mixed <= fp32);
    /* A sum passes its gradient on, so that what it adds has one type. */
    read_model(f, NET("precision=bf16\n", "precision=fp32\n", ""), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "'fc1' in fp32 and 'fc2' in bf16"));
    read_model(f, NET("", "precision=bf16\n", ""), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "bf16 is said once, in [Model]"));
    read_model(f, NET("precision=fp16\n", "", ""), REMAT_BAD_INPUT);
    read_model(f, NET("master=false\n", "", ""), REMAT_BAD_INPUT);
    assert_non_null(strstr(remat_context_message(f->context), "it needs precision=bf16"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_step_is_that_of_the_slow_version),
        FIXTURE_TEST(examples_train_with_the_same_bits),
        FIXTURE_TEST(examples_train_without_master_copies),
        FIXTURE_TEST(trainings_go_on_with_the_same_bits),
        FIXTURE_TEST(matrices_are_in_bf16),
        FIXTURE_TEST(single_layers_stay_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
