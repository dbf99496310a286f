/* Fine-tuning and generating with each allocation failing in turn. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/generator.h>
#include <remat/train.h>

#include <string.h>

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 270, \"hidden_size\": 8, \"intermediate_size\": 8, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 16}";
static const char settings_of_tokenizer[] =
    "{\"eos_token\": \"<|endoftext|>\", \"chat_template\": \"{% for m in messages %}{{ m.content }}{% endfor %}\"}";
static const char lines[] = "{\"text\": \"a bird\"}\n{\"prompt\": \"a\", \"completion\": \" bee\"}\n"
                            "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a bear\"}]}\n";

/* A folder with a tokenizer and no weights. */
static void make_folder(remat_context *context)
{
    remat_tokenizer_options options;
    remat_tokenizer *tokenizer;
    remat_tokenizer_options_init(&options);
    options.vocabulary = 262;
    const char *text = scratch_write_text("text", "a bird a bee a bear a bird a bee a bear\n");
    assert_int_equal(remat_tokenizer_train(context, &text, 1, &options, &tokenizer), REMAT_OK);
    assert_int_equal(remat_tokenizer_save(tokenizer, scratch_path("tokenizer.json")), REMAT_OK);
    remat_tokenizer_destroy(tokenizer);
    scratch_write_text("config.json", config);
    scratch_write_text("tokenizer_config.json", settings_of_tokenizer);
    scratch_write_text("lines.jsonl", lines);
}

static remat_status train(remat_context *context, void *user)
{
    static const char *const settings[] = {"model.length=5", "model.pack=true", "model.accumulate=2", NULL};
    char data[512];
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_step_result result;
    (void)user;
    snprintf(data, sizeof data, "%s", scratch_path("lines.jsonl"));
    remat_train_options_init(&options);
    options.data_path = data;
    options.strategy = "none";
    options.threads = 1;
    remat_status status = remat_model_load_with(context, scratch_folder(), settings, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    FLOW(status, remat_trainer_step(trainer, &result));
    FLOW(status, remat_trainer_save_folder(trainer, scratch_folder(), false));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

/* Frozen weights that are mapped, and dropped. */
static remat_status train_mapped(remat_context *context, void *user)
{
    static const char *const settings[] = {"model.length=5", "model.lora=rank=2", "model.frozen=keep", NULL};
    char data[512];
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_step_result result;
    snprintf(data, sizeof data, "%s", scratch_path("lines.jsonl"));
    remat_train_options_init(&options);
    options.data_path = data;
    options.strategy = "none";
    options.threads = 1;
    options.budget_bytes = *(const uint64_t *)user;
    remat_status status = remat_model_load_with(context, scratch_folder(), settings, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    FLOW(status, remat_trainer_load(trainer, scratch_folder()));
    FLOW(status, remat_trainer_step(trainer, &result));
    FLOW(status, remat_trainer_save(trainer, scratch_path("mapped.safetensors"), true));
    FLOW(status, remat_trainer_resume(trainer, scratch_path("mapped.safetensors")));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

/* The least that this takes. */
static uint64_t smallest(remat_context *context)
{
    static const char *const settings[] = {"model.length=5", "model.lora=rank=2", "model.frozen=keep", NULL};
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    remat_trainer_figures figures;
    remat_train_options_init(&options);
    options.strategy = "none";
    options.threads = 1;
    options.plan_only = true;
    assert_int_equal(remat_model_load_with(context, scratch_folder(), settings, &model), REMAT_OK);
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
    remat_trainer_get_figures(trainer, &figures);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    assert_true(figures.mapped_file_bytes > 0);
    return figures.min_budget_bytes;
}

static bool ignore_text(void *user, const char *text, size_t bytes)
{
    (void)user, (void)text, (void)bytes;
    return true;
}

static remat_status generate(remat_context *context, void *user)
{
    static const char *const stops[] = {"xyz", NULL};
    remat_generator_options options;
    remat_text_options text;
    remat_generator *generator = NULL;
    (void)user;
    remat_generator_options_init(&options);
    options.threads = 1;
    options.chunk = 2;
    remat_text_options_init(&text);
    text.prompt = "a bird";
    text.count = 3;
    text.stops = stops;
    text.chat = 1;
    remat_status status = remat_generator_create(context, scratch_folder(), &options, &generator);
    FLOW(status, remat_generator_write(generator, &text, ignore_text, NULL));
    remat_generator_destroy(generator);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    make_folder(f->context);
    assert_int_equal(train(f->context, NULL), REMAT_OK); /* whether there are weights changes what is done */
    expect_failures_survived("train", train, NULL, 100, LESS_WHEN_SANITIZED(250, 100));
    uint64_t budget = smallest(f->context);
    expect_failures_survived("train_mapped", train_mapped, &budget, 100, LESS_WHEN_SANITIZED(250, 100));
    expect_failures_survived("generate", generate, NULL, 100, LESS_WHEN_SANITIZED(250, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
