/* Frozen weights in fewer bits: training gives the bits of training on the weights that they stand for, in less memory. */
#include <math.h>
#include <string.h>

#include <remat/train.h>

#include "base/weight_blocks.h"
#include "support/fixture.h"

enum { STEPS = 3 };

/* Matrices of more than a million values, so that products take them in parts. */
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
        FIXTURE_TEST(blocks_are_not_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
