/* Frozen weights in fewer bits: training gives the bits of training on the weights that they stand for, in less memory. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <remat/train.h>

#include "base/weight_blocks.h"
#include "support/fixture.h"
#include "support/scratch_files.h"

enum { STEPS = 3 };

/* Matrices of more than a million values, that no product should unpack as a whole. */
static const char text[] =
    "[Model]\nbatch_size = 2\n[Optimizer : adamw]\nlearning_rate = 0.01\n"
    "[Dataset : random]\nsamples = 8\n[tokens : input]\ninput_shape = 5\n"
    "[emb : embedding]\nin_dim = 40\nout_dim = 1024\n[norm : rms_normalization]\n"
    "[fc1 : fully_connected]\nunit = 1536\nactivation = gelu\n"
    "[fc2 : fully_connected]\nunit = 1024\n[sum : addition]\ninput_layers = emb, fc2\n"
    "[head : fully_connected]\nunit = 40\nbias = false\nshared_from = emb\n[loss : cross_entropy]\n";

static void open_trainer(fixture *f, const char *frozen, const char *precision, uint64_t budget, remat_model **model,
                         remat_trainer **trainer)
{
    remat_train_options options;
    const char *const settings[] = {"model.lora=rank=4,targets=fc?", frozen, precision, NULL};
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read_with(f->context, stream, "text", settings, model));
    fclose(stream);
    remat_train_options_init(&options);
    options.budget_bytes = budget;
    options.threads = 2; /* the bits do not depend on it */
    expect_ok(f, remat_trainer_create(*model, &options, trainer));
}

static void copy_weights(fixture *f, const remat_trainer *from, remat_trainer *to)
{
    for (size_t p = 0; p < remat_trainer_parameter_count(from); p++) {
        remat_parameter about;
        expect_ok(f, remat_trainer_get_parameter(from, p, &about));
        float *values = malloc(about.count * sizeof *values);
        assert_non_null(values);
        expect_ok(f, remat_trainer_read_parameter(from, p, values, about.count));
        expect_ok(f, remat_trainer_write_parameter(to, p, values, about.count));
        free(values);
    }
}

static void judge(fixture *f, const char *frozen, const char *precision, double bytes_of_a_weight)
{
    remat_model *models[3];
    remat_trainer *trainers[3];
    remat_trainer_figures figures, plain;
    open_trainer(f, frozen, precision, REMAT_UNLIMITED, &models[0], &trainers[0]);
    remat_trainer_get_figures(trainers[0], &figures);
    open_trainer(f, frozen, precision, figures.min_budget_bytes, &models[1], &trainers[1]);
    open_trainer(f, "model.frozen=fp32", precision, REMAT_UNLIMITED, &models[2], &trainers[2]);
    remat_trainer_get_figures(trainers[2], &plain);
    const double packed = 40.0 * 1024 + 2 * 1024.0 * 1536;
    assert_true(fabs((double)(plain.weight_bytes - figures.weight_bytes) - packed * (4 - bytes_of_a_weight)) <= 64);
    assert_int_equal(figures.arena_bytes, plain.arena_bytes); /* no memory for unpacked weights */
    copy_weights(f, trainers[0], trainers[2]);
    for (int step = 0; step < STEPS; step++) {
        remat_step_result results[3];
        for (int i = 0; i < 3; i++)
            expect_ok(f, remat_trainer_step(trainers[i], &results[i]));
        assert_memory_equal(&results[0].loss, &results[1].loss, sizeof(double));
        assert_memory_equal(&results[0].loss, &results[2].loss, sizeof(double));
    }
    for (int i = 0; i < 3; i++) {
        remat_trainer_destroy(trainers[i]);
        remat_model_destroy(models[i]);
    }
}

static void bits_are_those_of_the_weights_they_stand_for(void **state)
{
    judge(*state, "model.frozen=bf16", NULL, 2);
    judge(*state, "model.frozen=fp16", NULL, 2);
    judge(*state, "model.frozen=fp16", "model.precision=bf16", 2);
    judge(*state, "model.frozen=int8", NULL, 68.0 / 64);
    judge(*state, "model.frozen=int4", NULL, 36.0 / 64);
    judge(*state, "model.frozen=int4", "model.precision=bf16", 36.0 / 64);
}

/* Packing rounds to the nearest, and what is not finite stays so. */
static void blocks_are_close(void **state)
{
    (void)state;
    static const remat_dtype dtypes[] = {REMAT_FP32, REMAT_BF16, REMAT_INT8_BLOCKS, REMAT_INT4_BLOCKS};
    static const double allowed[] = {0, 1.0 / 256, 0.5 / 127 + 1e-6, 0.153};
    float values[2 * WEIGHT_BLOCK], back[2 * WEIGHT_BLOCK];
    for (size_t i = 0; i < 2 * WEIGHT_BLOCK; i++)
        values[i] = i < WEIGHT_BLOCK ? (float)sin((double)i) : 0;
    for (size_t d = 0; d < 4; d++) {
        int8_block packed[8];
        assert_true(dtype_bytes(dtypes[d], 2 * WEIGHT_BLOCK) <= sizeof packed);
        weight_blocks_pack(dtypes[d], values, packed, 2 * WEIGHT_BLOCK);
        weight_blocks_unpack(dtypes[d], packed, back, 2 * WEIGHT_BLOCK);
        for (size_t i = 0; i < 2 * WEIGHT_BLOCK; i++)
            assert_true(fabs((double)back[i] - (double)values[i]) <= allowed[d]);
        const float kept = values[3];
        values[3] = INFINITY;
        weight_blocks_pack(dtypes[d], values, packed, 2 * WEIGHT_BLOCK);
        weight_blocks_unpack(dtypes[d], packed, back, 2 * WEIGHT_BLOCK);
        assert_true(!isfinite(back[3]));
        assert_true(back[WEIGHT_BLOCK] == 0);
        values[3] = kept;
    }
}

/* The 16 numbers of int4 are what its codes stand for; each value gets the nearest. */
static void codes_are_the_nearest(void **state)
{
    (void)state;
    test_random random = {7};
    int4_block block = {.scale = 1};
    float numbers[WEIGHT_BLOCK], values[WEIGHT_BLOCK], back[WEIGHT_BLOCK];
    for (size_t i = 0; i < WEIGHT_BLOCK / 2; i++)
        block.codes[i] = (uint8_t)(i % 8 * 0x22 + 0x10);
    weight_blocks_unpack(REMAT_INT4_BLOCKS, &block, numbers, WEIGHT_BLOCK);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < WEIGHT_BLOCK; i++)
            values[i] = (float)((double)test_random_below(&random, 2000001) / 1e6 - 1);
        values[round % WEIGHT_BLOCK] = round % 2 ? 1 : -1;
        weight_blocks_pack(REMAT_INT4_BLOCKS, values, &block, WEIGHT_BLOCK);
        weight_blocks_unpack(REMAT_INT4_BLOCKS, &block, back, WEIGHT_BLOCK);
        for (size_t i = 0; i < WEIGHT_BLOCK; i++) {
            double nearest = INFINITY;
            for (size_t k = 0; k < 16; k++)
                nearest = fmin(nearest, fabs((double)numbers[k] - (double)values[i]));
            assert_true(fabs((double)back[i] - (double)values[i]) <= nearest + 1e-7);
        }
        int8_block bytes;
        weight_blocks_pack(REMAT_INT8_BLOCKS, values, &bytes, WEIGHT_BLOCK);
        for (size_t i = 0; i < WEIGHT_BLOCK; i++)
            assert_int_equal(bytes.codes[i], lrint((double)(values[i] / bytes.scale)));
    }
}

/* Matrices that begin with one number, which every type holds as it is. */
static void constants_are_exact(void **state)
{
    fixture *f = *state;
    static const char *const types[] = {"model.frozen=fp16", "model.frozen=bf16", "model.frozen=int8",
                                        "model.frozen=int4"};
    static const char model_text[] = "[Model]\nbatch_size = 2\n[Dataset : random]\n[in : input]\ninput_shape = 64\n"
                                     "[ones : fully_connected]\nunit = 64\nweight_initializer = ones\n"
                                     "[zeros : fully_connected]\nunit = 64\nweight_initializer = zeros\n[loss : mse]\n";
    for (size_t t = 0; t < 3; t++) {
        const char *const settings[] = {"model.lora=rank=2,targets=*", types[t], NULL};
        remat_model *model;
        remat_trainer *trainer;
        remat_parameter about;
        float values[64 * 64];
        unsigned matrices = 0;
        FILE *stream = stream_of(model_text, strlen(model_text));
        expect_ok(f, remat_model_read_with(f->context, stream, "text", settings, &model));
        fclose(stream);
        expect_ok(f, remat_trainer_create(model, NULL, &trainer));
        for (size_t p = 0; p < remat_trainer_parameter_count(trainer); p++) {
            expect_ok(f, remat_trainer_get_parameter(trainer, p, &about));
            if (about.count != 64 * 64)
                continue;
            expect_ok(f, remat_trainer_read_parameter(trainer, p, values, about.count));
            for (size_t i = 0; i < 64 * 64; i++)
                assert_true(values[i] == (matrices == 0 ? 1 : 0));
            matrices++;
        }
        assert_int_equal(matrices, 2);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

static remat_trainer *open_folder(fixture *f, const char *folder, const char *lora, const char *frozen,
                                  remat_model **model)
{
    const char *const settings[] = {"model.length=8", "dataset.type=random", lora, frozen, NULL};
    remat_trainer *trainer;
    expect_ok(f, remat_model_load_with(f->context, folder, settings, model));
    expect_ok(f, remat_trainer_create(*model, NULL, &trainer));
    return trainer;
}

/* A folder with weights that were drawn. */
static void make_gpt2(fixture *f, char folder[256])
{
    remat_model *model;
    snprintf(folder, 256, "%s", scratch_path("gpt2"));
    mkdir(folder, 0777);
    scratch_write_text("gpt2/config.json",
                       "{\"model_type\": \"gpt2\", \"vocab_size\": 48, \"n_embd\": 64, \"n_layer\": 1, "
                       "\"n_head\": 2, \"n_positions\": 8, \"torch_dtype\": \"float32\"}");
    remat_trainer *trainer = open_folder(f, folder, NULL, NULL, &model);
    expect_ok(f, remat_trainer_save_folder(trainer, folder, false));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* GPT-2's matrices lie the other way round in the file, and are read at once. */
static void turned_matrices_are_packed(void **state)
{
    fixture *f = *state;
    char folder[256];
    make_gpt2(f, folder);
    remat_model *models[2];
    remat_trainer *packed = open_folder(f, folder, "model.lora=rank=2", "model.frozen=int8", &models[0]);
    remat_trainer *plain = open_folder(f, folder, "model.lora=rank=2", "model.frozen=fp32", &models[1]);
    remat_parameter about;
    unsigned changed = 0;
    expect_ok(f, remat_trainer_load(packed, folder));
    expect_ok(f, remat_trainer_load(plain, folder));
    for (size_t p = 0; p < remat_trainer_parameter_count(plain); p++) {
        expect_ok(f, remat_trainer_get_parameter(plain, p, &about));
        float *values = calloc(2 * about.count, sizeof *values), *exact = values + about.count;
        assert_non_null(values);
        expect_ok(f, remat_trainer_read_parameter(packed, p, values, about.count));
        expect_ok(f, remat_trainer_read_parameter(plain, p, exact, about.count));
        double largest = 0;
        for (uint64_t i = 0; i < about.count; i++)
            largest = fmax(largest, fabs((double)exact[i]));
        for (uint64_t i = 0; i < about.count; i++)
            assert_true(fabs((double)values[i] - (double)exact[i]) <= largest / 250);
        changed += memcmp(values, exact, about.count * sizeof *values) != 0;
        free(values);
    }
    assert_true(changed > 3);
    remat_trainer_destroy(packed);
    remat_trainer_destroy(plain);
    for (int i = 0; i < 2; i++)
        remat_model_destroy(models[i]);
}

static void blocks_are_not_saved(void **state)
{
    fixture *f = *state;
    remat_model *model;
    remat_trainer *trainer;
    open_trainer(f, "model.frozen=int8", NULL, REMAT_UNLIMITED, &model, &trainer);
    expect_status(f, remat_trainer_save(trainer, "/dev/null", false), REMAT_INVALID);
    expect_message(f, "save the adapters to a folder");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(bits_are_those_of_the_weights_they_stand_for),
        FIXTURE_TEST(blocks_are_close),
        cmocka_unit_test(codes_are_the_nearest),
        FIXTURE_TEST(constants_are_exact),
        FIXTURE_TEST(turned_matrices_are_packed),
        FIXTURE_TEST(blocks_are_not_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
