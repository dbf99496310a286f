/* Frozen weights that are mapped from the model's folder: the bits of copies, in the memory that was planned, also where the budget does
 * not hold them all; and folders that change or do not have them. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <remat/generator.h>
#include <remat/train.h>

#include "base/half.h"
#include "data/safetensors.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/scratch_files.h"
#include "train/trainer_object.h"

enum { WIDTH = 128, INNER = 320, LAYERS = 1, VOCABULARY = 512, LENGTH = 16, STEPS = 3, MOST_TENSORS = 32 };

/* ---- a folder ---- */

typedef struct tensor_list {
    safetensors_entry entries[MOST_TENSORS];
    char names[MOST_TENSORS][80];
    size_t count;
    remat_dtype dtype;
    test_random random;
} tensor_list;

static void add_tensor(tensor_list *list, const char *name, uint64_t rows, uint64_t columns)
{
    const size_t count = (size_t)(rows * (columns ? columns : 1));
    safetensors_entry *entry = &list->entries[list->count];
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = columns ? (float)test_random_below(&list->random, 2001) * 5e-5f - 0.05f : 1;
    if (list->dtype != REMAT_FP32)
        half_pack(half_kernels_choose(), list->dtype, true, values, (uint16_t *)(void *)values, count);
    snprintf(list->names[list->count], sizeof list->names[0], "%s", name);
    *entry = (safetensors_entry){.name = list->names[list->count],
                                 .rank = columns ? 2 : 1,
                                 .dims = {rows, columns},
                                 .data = values,
                                 .dtype = list->dtype};
    list->count++;
}

static void write_weights(fixture *f, const char *folder, remat_dtype dtype, uint64_t seed)
{
    static const struct {
        const char *name;
        uint64_t rows, columns;
    } of_layer[] = {
        {"input_layernorm", WIDTH, 0},      {"post_attention_layernorm", WIDTH, 0}, {"self_attn.q_proj", WIDTH, WIDTH},
        {"self_attn.k_proj", WIDTH, WIDTH}, {"self_attn.v_proj", WIDTH, WIDTH},     {"self_attn.o_proj", WIDTH, WIDTH},
        {"mlp.gate_proj", INNER, WIDTH},    {"mlp.up_proj", INNER, WIDTH},          {"mlp.down_proj", WIDTH, INNER}};
    tensor_list list = {.dtype = dtype, .random = {seed}};
    char name[80], path[300];
    add_tensor(&list, "model.embed_tokens.weight", VOCABULARY, WIDTH);
    add_tensor(&list, "model.norm.weight", WIDTH, 0);
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < sizeof of_layer / sizeof of_layer[0]; i++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, of_layer[i].name);
            add_tensor(&list, name, of_layer[i].rows, of_layer[i].columns);
        }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    expect_ok(f, safetensors_save(f->context, path, list.entries, list.count, NULL, 0, NULL));
    for (size_t i = 0; i < list.count; i++)
        free((void *)(uintptr_t)list.entries[i].data);
}

static void make_folder(const char *name, const char *dtype, char folder[256])
{
    char text[512];
    snprintf(folder, 256, "%s", scratch_path(name));
    mkdir(folder, 0777);
    snprintf(text, sizeof text,
             "{\"model_type\": \"llama\", \"vocab_size\": %d, \"hidden_size\": %d, \"intermediate_size\": %d, "
             "\"num_hidden_layers\": %d, \"num_attention_heads\": 2, \"max_position_embeddings\": 64, "
             "\"tie_word_embeddings\": true, \"torch_dtype\": \"%s\"}",
             VOCABULARY, WIDTH, INNER, LAYERS, dtype);
    char config[100];
    snprintf(config, sizeof config, "%s/config.json", name);
    scratch_write_text(config, text);
}

static remat_model *load(fixture *f, const char *folder, const char *frozen, const char *other)
{
    remat_model *model;
    const char *const settings[] = {"model.length=16",
                                    "dataset.type=random",
                                    "model.lora=rank=4",
                                    "optimizer.learning_rate=0.01",
                                    frozen,
                                    other,
                                    NULL};
    expect_ok(f, remat_model_load_with(f->context, folder, settings, &model));
    return model;
}

static remat_status make_sample(void *user, uint64_t number, void *const *inputs, void *labels)
{
    (void)user;
    int32_t *tokens = inputs[0], *next = labels;
    for (uint64_t i = 0; i < LENGTH; i++) {
        tokens[i] = (int32_t)((number * 11 + i * i * 3 + i * 5) % VOCABULARY);
        next[i] = i < LENGTH / (1 + number % 2) ? (int32_t)((number + i * 7) % VOCABULARY) : -1;
    }
    return REMAT_OK;
}

static remat_train_options options_of(uint64_t budget)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.sample = make_sample;
    options.samples = 8;
    options.validation_samples = 1;
    options.steps = STEPS;
    options.budget_bytes = budget;
    options.threads = 2;
    return options;
}

/* ---- training ---- */

/* What the process has in memory of the files of a folder. */
static uint64_t resident_of(const char *folder)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[1024];
    unsigned long long kib;
    uint64_t bytes = 0;
    bool inside = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strchr(line, ':') && strchr(line, '-') < strchr(line, ':') && line[0] != 'V')
            inside = strstr(line, folder) != NULL;
        else if (inside && sscanf(line, "Rss: %llu kB", &kib) == 1)
            bytes += kib * 1024;
    }
    fclose(maps);
    return bytes;
}

typedef struct outcome {
    double losses[STEPS];
    remat_validation_result validation;
    remat_trainer_figures figures;
    char *saved;
    size_t saved_bytes;
    uint64_t resident;
} outcome;

static void train(fixture *f, const char *folder, const char *frozen, const char *other, uint64_t budget, outcome *made)
{
    remat_model *model = load(f, folder, frozen, other);
    const remat_train_options options = options_of(budget);
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_ok(f, remat_trainer_load(trainer, folder));
    remat_trainer_get_figures(trainer, &made->figures);
    assert_int_equal(trainer_allocated_bytes(trainer) + made->figures.mapped_bytes, made->figures.total_bytes);
    for (int i = 0; i < STEPS; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        made->losses[i] = result.loss;
    }
    expect_ok(f, remat_trainer_validate(trainer, &made->validation));
    made->resident = resident_of(folder);
    const char *path = scratch_path("saved.safetensors");
    expect_ok(f, remat_trainer_save(trainer, path, true));
    made->saved = scratch_read(path, &made->saved_bytes);
    assert_true(resident_of(folder) <= made->resident + 4096 ||
                made->figures.mapped_bytes == made->figures.mapped_file_bytes);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void expect_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_memory_equal(&a->validation.loss, &b->validation.loss, sizeof a->validation.loss);
    assert_int_equal(a->saved_bytes, b->saved_bytes);
    assert_memory_equal(a->saved, b->saved, a->saved_bytes);
}

/* A weight may share its first and its last page with others, and each is mapped by itself. */
static void expect_resident(const outcome *made, size_t weights)
{
    assert_true(made->resident <= made->figures.mapped_bytes + weights * 2 * 4096);
}

/* Copies, all mapped weights, some of them and as few as possible. */
static void compare(fixture *f, const char *folder, const char *copied, uint64_t value_bytes, const char *other)
{
    outcome outcomes[4];
    const uint64_t matrices = VOCABULARY * WIDTH + LAYERS * (4 * WIDTH * WIDTH + 3 * INNER * WIDTH);
    const uint64_t largest = VOCABULARY * WIDTH * value_bytes;
    train(f, folder, copied, other, REMAT_UNLIMITED, &outcomes[0]);
    assert_int_equal(outcomes[0].figures.mapped_file_bytes, 0);
    assert_int_equal(outcomes[0].resident, 0);
    train(f, folder, "model.frozen=keep", other, REMAT_UNLIMITED, &outcomes[1]);
    const remat_trainer_figures *all = &outcomes[1].figures;
    assert_int_equal(all->mapped_file_bytes, matrices * value_bytes);
    assert_int_equal(all->mapped_bytes, all->mapped_file_bytes);
    assert_int_equal(all->total_bytes, outcomes[0].figures.total_bytes);
    assert_true(outcomes[1].resident >= all->mapped_bytes);
    train(f, folder, "model.frozen=keep", other, all->min_budget_bytes, &outcomes[2]);
    assert_true(outcomes[2].figures.total_bytes <= all->min_budget_bytes);
    assert_int_equal(outcomes[2].figures.mapped_bytes, largest); /* the embedding, which is the head too */
    expect_resident(&outcomes[2], 1);
    /* A little less than the least with all of them. */
    const uint64_t some = all->min_budget_bytes - largest + all->mapped_file_bytes - 64;
    train(f, folder, "model.frozen=keep", other, some, &outcomes[3]);
    assert_true(outcomes[3].figures.total_bytes <= some);
    assert_true(outcomes[3].figures.mapped_bytes > largest);
    assert_true(outcomes[3].figures.mapped_bytes < all->mapped_bytes);
    expect_resident(&outcomes[3], MOST_TENSORS);
    for (int i = 1; i < 4; i++)
        expect_same(&outcomes[i], &outcomes[0]);
    for (int i = 0; i < 4; i++)
        free(outcomes[i].saved);
}

/* With other settings: copies, and a budget that does not hold them. */
static void compare_smallest(fixture *f, const char *folder, const char *held, const char *other)
{
    outcome copied, mapped;
    train(f, folder, held, other, REMAT_UNLIMITED, &copied);
    const uint64_t budget = copied.figures.total_bytes - copied.figures.arena_bytes - WIDTH * VOCABULARY;
    train(f, folder, "model.frozen=keep", other, budget, &mapped);
    assert_true(mapped.figures.mapped_bytes < mapped.figures.mapped_file_bytes);
    expect_resident(&mapped, MOST_TENSORS);
    expect_same(&mapped, &copied);
    free(copied.saved);
    free(mapped.saved);
}

static void bits_are_those_of_copies(void **state)
{
    fixture *f = *state;
    char folder[256];
    make_folder("halves", "bfloat16", folder);
    write_weights(f, folder, REMAT_BF16, 1);
    compare(f, folder, "model.frozen=bf16", 2, NULL);
    compare_smallest(f, folder, "model.frozen=bf16", "model.precision=bf16");
    compare_smallest(f, folder, "model.frozen=bf16", "model.accumulate=2");
    compare_smallest(f, folder, "model.frozen=bf16", "model.length_classes=2");
    make_folder("fp16", "float16", folder);
    write_weights(f, folder, REMAT_FP16, 1);
    compare(f, folder, "model.frozen=fp16", 2, NULL);
    compare_smallest(f, folder, "model.frozen=fp16", "model.precision=bf16");
    make_folder("full", "float32", folder);
    write_weights(f, folder, REMAT_FP32, 2);
    compare(f, folder, "model.frozen=fp32", 4, NULL);
}

/* ---- what is not mapped ---- */

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *device, bool plan_only)
{
    remat_train_options options = options_of(REMAT_UNLIMITED);
    remat_trainer *trainer;
    options.device = device;
    options.plan_only = plan_only;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

static void expect_mapped(fixture *f, const char *folder, const char *device, bool is_mapped)
{
    remat_trainer_figures figures;
    remat_model *model = load(f, folder, "model.frozen=keep", NULL);
    remat_trainer *trainer = open_trainer(f, model, device, false);
    remat_trainer_get_figures(trainer, &figures);
    assert_true((figures.mapped_file_bytes > 0) == is_mapped);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void others_are_copied(void **state)
{
    fixture *f = *state;
    char folder[256];
    make_folder("device", "bfloat16", folder);
    write_weights(f, folder, REMAT_BF16, 1);
    expect_mapped(f, folder, NULL, true);
    expect_mapped(f, folder, fenced_device(), false); /* its kernels read no memory of the host */
    make_folder("other type", "bfloat16", folder);
    write_weights(f, folder, REMAT_FP32, 1);
    expect_mapped(f, folder, NULL, false);
    expect_mapped(f, "tests/reference/pretrained/gpt2", NULL,
                  true); /* the embedding; matrices lie the other way round */
}

/* ---- folders that do not have them, or change ---- */

static void planned_weights_must_be_there(void **state)
{
    fixture *f = *state;
    char folder[256];
    remat_trainer_figures figures;
    make_folder("empty", "bfloat16", folder);
    remat_model *model = load(f, folder, "model.frozen=keep", NULL);
    remat_trainer *trainer = open_trainer(f, model, NULL, true);
    remat_trainer_get_figures(trainer, &figures);
    assert_true(figures.mapped_file_bytes > 0);
    expect_status(f, remat_trainer_start(trainer), REMAT_BAD_INPUT);
    expect_message(f, "neither model.safetensors nor model.safetensors.index.json");
    remat_trainer_destroy(trainer);
    trainer = open_trainer(f, model, NULL, true);
    write_weights(f, folder, REMAT_FP32, 1);
    expect_status(f, remat_trainer_start(trainer), REMAT_BAD_INPUT);
    expect_message(f, "model.safetensors: model.embed_tokens.weight: it is F32 in the file and was planned as BF16");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void changed_files_are_found(void **state)
{
    fixture *f = *state;
    char folder[256], path[300];
    remat_step_result result;
    make_folder("changed", "bfloat16", folder);
    write_weights(f, folder, REMAT_BF16, 1);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    remat_model *model = load(f, folder, "model.frozen=keep", NULL);
    remat_trainer *trainer = open_trainer(f, model, NULL, false);
    expect_ok(f, remat_trainer_step(trainer, &result));
    assert_int_equal(truncate(path, 5000), 0);
    expect_status(f, remat_trainer_step(trainer, &result), REMAT_IO);
    expect_message(f, "changed/model.safetensors: was changed while it was in use");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void other_values_are_refused(void **state)
{
    fixture *f = *state;
    char folder[256], other[256];
    float *values = calloc(VOCABULARY * WIDTH, sizeof *values);
    assert_non_null(values);
    make_folder("mine", "bfloat16", folder);
    write_weights(f, folder, REMAT_BF16, 1);
    make_folder("yours", "bfloat16", other);
    write_weights(f, other, REMAT_BF16, 2);
    remat_model *model = load(f, folder, "model.frozen=keep", NULL);
    remat_trainer *trainer = open_trainer(f, model, NULL, false);
    const char *path = scratch_path("state.safetensors");
    expect_status(f, remat_trainer_load(trainer, other), REMAT_INVALID);
    expect_message(f, "yours/model.safetensors: model.embed_tokens.weight: it is not that of");
    expect_message(f, "--frozen bf16 holds a copy");
    for (size_t p = 0; p < remat_trainer_parameter_count(trainer); p++) {
        remat_parameter about;
        expect_ok(f, remat_trainer_get_parameter(trainer, p, &about));
        if (strcmp(about.name, "model.embed_tokens.weight") != 0)
            continue;
        expect_ok(f, remat_trainer_read_parameter(trainer, p, values, about.count));
        expect_status(f, remat_trainer_write_parameter(trainer, p, values, about.count), REMAT_INVALID);
        expect_message(f, "mapped from the model's folder");
    }
    expect_ok(f, remat_trainer_save(trainer, path, true));
    expect_ok(f, remat_trainer_resume(trainer, path)); /* the same values, in another file */
    write_weights(f, other, REMAT_BF16, 1);
    expect_ok(f, remat_trainer_load(trainer, other));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    model = load(f, other, "model.frozen=keep", NULL);
    write_weights(f, other, REMAT_BF16, 3);
    trainer = open_trainer(f, model, NULL, false);
    expect_status(f, remat_trainer_resume(trainer, path), REMAT_INVALID);
    expect_message(f, "state.safetensors");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    free(values);
}

/* ---- models that only run ---- */

static void predict(fixture *f, const char *folder, const char *frozen, float logits[LENGTH * VOCABULARY])
{
    const char *const settings[] = {"model.length=16", "model.batch_size=1", frozen, NULL};
    const remat_train_options options = options_of(REMAT_UNLIMITED);
    int32_t tokens[LENGTH];
    remat_model *model;
    remat_predictor *predictor;
    remat_prediction prediction;
    for (int32_t i = 0; i < LENGTH; i++)
        tokens[i] = i * i * 7 % VOCABULARY;
    expect_ok(f, remat_model_load_with(f->context, folder, settings, &model));
    expect_ok(f, remat_predictor_create(model, folder, &options, &predictor));
    expect_ok(f, remat_predictor_run(predictor, (const void *const[]){tokens}, &prediction));
    memcpy(logits, prediction.values, LENGTH * VOCABULARY * sizeof *logits);
    const uint64_t resident = resident_of(folder);
    assert_true(strcmp(frozen, "model.frozen=keep") == 0 ? resident > VOCABULARY * WIDTH * 2 : resident == 0);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

static void generate(fixture *f, const char *folder, const char *frozen, float logits[LENGTH * VOCABULARY],
                     remat_generator_figures *figures)
{
    const char *const settings[] = {frozen, NULL};
    remat_generator_options options;
    remat_generator *generator;
    remat_generator_options_init(&options);
    options.settings = settings;
    options.cache = LENGTH;
    options.chunk = 3;
    options.threads = 2;
    expect_ok(f, remat_generator_create(f->context, folder, &options, &generator));
    for (int32_t i = 0, some; i < LENGTH; i += some) {
        const int32_t tokens[3] = {i, 5 * i, 9 * i};
        const float *values;
        some = i % 2 ? 1 : 3;
        expect_ok(f, remat_generator_feed(generator, tokens, (size_t)some, &values));
        memcpy(logits + (size_t)i * VOCABULARY, values, VOCABULARY * sizeof *values);
    }
    remat_generator_get_figures(generator, figures);
    remat_generator_destroy(generator);
}

/* Evaluations and generated texts have the bits of copies, and of copies in fp32. */
static void models_that_run_map_them(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *name, *frozen;
        remat_dtype dtype;
    } kinds[] = {{"bfloat16", "model.frozen=bf16", REMAT_BF16}, {"float16", "model.frozen=fp16", REMAT_FP16}};
    static float logits[3][LENGTH * VOCABULARY], texts[3][LENGTH * VOCABULARY];
    remat_generator_figures figures[3];
    char folder[256];
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        const char *const held[] = {"model.frozen=fp32", kinds[kind].frozen, "model.frozen=keep"};
        make_folder(kinds[kind].frozen, kinds[kind].name, folder);
        write_weights(f, folder, kinds[kind].dtype, 5);
        for (int i = 0; i < 3; i++) {
            predict(f, folder, held[i], logits[i]);
            generate(f, folder, held[i], texts[i], &figures[i]);
            assert_memory_equal(logits[i], logits[0], sizeof logits[0]);
            assert_memory_equal(texts[i], texts[0], sizeof texts[0]);
        }
        assert_int_equal(figures[1].mapped_bytes, 0);
        assert_int_equal(figures[2].mapped_bytes,
                         (VOCABULARY * WIDTH + LAYERS * (4 * WIDTH * WIDTH + 3 * INNER * WIDTH)) * 2);
        assert_int_equal(figures[2].total_bytes, figures[1].total_bytes);
    }
}

/* A file that is written to while a model runs is found before the next run. */
static void changed_files_stop_a_run(void **state)
{
    fixture *f = *state;
    const char *const settings[] = {"model.frozen=keep", NULL};
    remat_generator_options options;
    remat_generator *generator;
    char folder[256], path[300];
    const float *logits;
    make_folder("changed_run", "bfloat16", folder);
    write_weights(f, folder, REMAT_BF16, 6);
    remat_generator_options_init(&options);
    options.settings = settings;
    expect_ok(f, remat_generator_create(f->context, folder, &options, &generator));
    expect_ok(f, remat_generator_feed(generator, (const int32_t[]){3}, 1, &logits));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(truncate(path, 5000), 0);
    expect_status(f, remat_generator_feed(generator, (const int32_t[]){4}, 1, &logits), REMAT_IO);
    remat_generator_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(bits_are_those_of_copies),      FIXTURE_TEST(others_are_copied),
        FIXTURE_TEST(planned_weights_must_be_there), FIXTURE_TEST(changed_files_are_found),
        FIXTURE_TEST(other_values_are_refused),      FIXTURE_TEST(models_that_run_map_them),
        FIXTURE_TEST(changed_files_stop_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
