/* Options that a trainer, a predictor and a device refuse, and how they say so; positions of another length. */
#include "support/fixture.h"
#include "support/scratch_files.h"

#include "data/safetensors.h"

#include <math.h>
#include <remat/train.h>

static const char head[] = "[Model]\nbatch_size = 2\n[Optimizer : sgd]\nlearning_rate = 0.1\n"
                           "[Dataset : random]\nsamples = 8\n[in : input]\ninput_shape = 1:1:4\n";

static remat_model *load(fixture *f, const char *layers, const char *const *settings)
{
    char text[2000];
    remat_model *model;
    snprintf(text, sizeof text, "%s%s", head, layers);
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read_with(f->context, stream, "text", settings, &model));
    fclose(stream);
    return model;
}

static const char plain[] = "[fc : fully_connected]\nunit = 3\n[loss : mse]\n";

static void expect_refused(fixture *f, const char *layers, const char *setting, const remat_train_options *options,
                           const char *message)
{
    remat_trainer *trainer;
    remat_model *model = load(f, layers, (const char *const[]){setting, NULL});
    expect_status(f, remat_trainer_create(model, options, &trainer), REMAT_INVALID);
    assert_null(trainer);
    expect_message(f, message);
    remat_model_destroy(model);
}

static void trainers_are_refused(void **state)
{
    fixture *f = *state;
    remat_train_options options, right;
    remat_train_options_init(&right);
    right.threads = 1;
    expect_refused(f, plain, "model.accumulate=5", &right,
                   "a step takes 10 samples (batch_size 2 x accumulate 5) and there are only 8");
    options = right;
    options.device_flops = -1;
    expect_refused(f, plain, "model.batch_size=2", &options, "the speed of a device is a positive number");
    options.device_flops = INFINITY;
    expect_refused(f, plain, "model.batch_size=2", &options, "the speed of a device is a positive number");
    options = right;
    options.device_bytes_per_second = -1;
    expect_refused(f, plain, "model.batch_size=2", &options, "the speed of a device is a positive number");
    options.device_bytes_per_second = INFINITY;
    expect_refused(f, plain, "model.batch_size=2", &options, "the speed of a device is a positive number");
    options = right;
    options.graph_plan_path = "none.json";
    options.plan_path = "none.json";
    expect_refused(f, plain, "model.batch_size=2", &options, "plan_path");
    options.plan_path = NULL;
    options.strategy = "full";
    expect_refused(f, plain, "model.batch_size=2", &options, "strategy");
    options = right;
    options.struct_size = 1;
    expect_refused(f, plain, "model.batch_size=2", &options, "remat_train_options_init");
}

static void devices_are_named(void **state)
{
    fixture *f = *state;
    char text[200];
    uint64_t bytes;
    remat_machine_limits limits;
    expect_ok(f, remat_device_describe(f->context, NULL, text, sizeof text));
    assert_true(*text);
    expect_ok(f, remat_device_memory(f->context, NULL, &bytes));
    expect_status(f, remat_device_describe(f->context, "toaster", text, sizeof text), REMAT_INVALID);
    expect_message(f, "toaster");
    expect_status(f, remat_device_memory(f->context, "toaster", &bytes), REMAT_INVALID);
    assert_int_equal(bytes, 0);
    expect_status(f, remat_measure_device(f->context, "toaster", 1, &limits), REMAT_INVALID);
}

/* ---- predictors ---- */

static void ignore(void *user, unsigned char byte)
{
    (void)user, (void)byte;
}

static void only_models_of_bytes_generate_bytes(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *layers, *message;
    } cases[] = {
        {plain, "its input must be read by an embedding of at least 256 tokens, not 0"},
        {"[e : embedding]\nin_dim = 255\nout_dim = 2\n[out : fully_connected]\nunit = 256\n[loss : cross_entropy]\n",
         "its input must be read by an embedding of at least 256 tokens, not 255"},
        {"[e : embedding]\nin_dim = 256\nout_dim = 2\n[out : fully_connected]\nunit = 255\n[loss : cross_entropy]\n",
         "for 4 bytes in it needs 1:4:256 logits or wider ones, not 1:4:255 of layer 'out'"},
        {"[e : embedding]\nin_dim = 256\nout_dim = 2\n[flat : flatten]\n[out : fully_connected]\nunit = 256\n[loss : "
         "cross_entropy]\n",
         "for 4 bytes in it needs 1:4:256 logits or wider ones, not 1:1:256 of layer 'out'"},
        {"[other : input]\ninput_shape = 1:1:4\n[sum : addition]\ninput_layers = in, other\n[loss : mse]\n",
         "it needs one input, not 2"},
    };
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remat_trainer *trainer;
        remat_predictor *predictor;
        char path[300];
        snprintf(path, sizeof path, "%s", scratch_path("w.safetensors"));
        remat_model *model = load(f, cases[i].layers, NULL);
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        expect_ok(f, remat_trainer_save(trainer, path, false));
        remat_trainer_destroy(trainer);
        expect_ok(f, remat_predictor_create(model, path, &options, &predictor));
        expect_status(f, remat_predictor_generate(predictor, NULL, ignore, NULL), REMAT_INVALID);
        expect_message(f, cases[i].message);
        remat_predictor_destroy(predictor);
        remat_model_destroy(model);
    }
}

/* Positions of another length are taken as far as they go, if asked to. */
static void positions_of_another_length_are_told(void **state)
{
    fixture *f = *state;
    static const float values[64];
    static const char layers[] = "[e : embedding]\nin_dim = 5\nout_dim = 2\n[p : position_embedding]\npositions = 4\n"
                                 "[out : fully_connected]\nunit = 3\nbias = false\n[loss : cross_entropy]\n";
    for (uint64_t rows = 3; rows < 7; rows++) {
        const safetensors_entry entries[] = {{"e.weight", 2, {5, 2}, values, REMAT_FP32},
                                             {"p.weight", 2, {rows, 2}, values, REMAT_FP32},
                                             {"out.weight", 2, {3, 2}, values, REMAT_FP32}};
        char path[300], message[100];
        snprintf(path, sizeof path, "%s", scratch_path("p.safetensors"));
        expect_ok(f, safetensors_save(f->context, path, entries, 3, NULL, 0, NULL));
        for (int partial = 0; partial < 2; partial++) {
            remat_trainer *trainer;
            remat_train_options options;
            remat_train_options_init(&options);
            options.threads = 1;
            options.strategy = "none";
            options.partial_weights = partial;
            remat_model *model = load(f, layers, NULL);
            expect_ok(f, remat_trainer_create(model, &options, &trainer));
            f->warnings = 0;
            const size_t before = f->warnings;
            remat_status status = remat_trainer_load(trainer, path);
            expect_status(f, status, rows == 4 || partial ? REMAT_OK : REMAT_BAD_INPUT);
            snprintf(message, sizeof message, "p.weight: it is %d x 2 in the file and 4 x 2 in the model", (int)rows);
            if (status != REMAT_OK)
                expect_message(f, message);
            else
                assert_int_equal(f->warnings - before, !partial ? 0 : rows == 4 ? 1 : 2);
            remat_trainer_destroy(trainer);
            remat_model_destroy(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(trainers_are_refused),
        FIXTURE_TEST(devices_are_named),
        FIXTURE_TEST(only_models_of_bytes_generate_bytes),
        FIXTURE_TEST(positions_of_another_length_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
