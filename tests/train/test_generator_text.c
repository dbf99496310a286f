/* Text from a generator that lives: prompts, stops, ends, options that are refused, and memory that runs out in any call. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "base/alloc.h"

#include <remat/generator.h>
#include <remat/train.h>

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 262, \"hidden_size\": 8, \"intermediate_size\": 8, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 16}";
static const char settings[] =
    "{\"bos_token\": \"<|endoftext|>\", \"eos_token\": \"<|endoftext|>\", \"chat_template\": "
    "\"{% for m in messages %}{{ m.content }}{% endfor %}\"}";

/* A folder with a tokenizer and random weights. */
static void make_folder(fixture *f)
{
    remat_tokenizer_options options;
    remat_tokenizer *tokenizer;
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options train;
    remat_tokenizer_options_init(&options);
    options.vocabulary = 262;
    const char *text = scratch_write_text("text", "a bird a bee a bear a bird a bee a bear\n");
    expect_ok(f, remat_tokenizer_train(f->context, &text, 1, &options, &tokenizer));
    expect_ok(f, remat_tokenizer_save(tokenizer, scratch_path("tokenizer.json")));
    remat_tokenizer_destroy(tokenizer);
    scratch_write_text("config.json", config);
    scratch_write_text("tokenizer_config.json", settings);
    remat_train_options_init(&train);
    train.threads = 1;
    train.strategy = "none";
    expect_ok(f, remat_model_load_with(f->context, scratch_folder(),
                                       (const char *const[]){"model.length=4", "dataset.type=random", NULL}, &model));
    expect_ok(f, remat_trainer_create(model, &train, &trainer));
    expect_ok(f, remat_trainer_save_folder(trainer, scratch_folder(), false));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static remat_generator *open_generator(fixture *f)
{
    remat_generator *generator;
    remat_generator_options options;
    remat_generator_options_init(&options);
    options.threads = 1;
    options.chunk = 2;
    expect_ok(f, remat_generator_create(f->context, scratch_folder(), &options, &generator));
    return generator;
}

typedef struct reader {
    remat_generator *generator;
    remat_text_options options;
    char text[1000];
    size_t used, calls, most_calls;
} reader;

static bool take(void *user, const char *text, size_t bytes)
{
    reader *to = user;
    assert_true(to->used + bytes < sizeof to->text);
    memcpy(to->text + to->used, text, bytes);
    to->used += bytes;
    to->text[to->used] = '\0';
    return ++to->calls < to->most_calls;
}

static remat_status write_text(void *user)
{
    reader *to = user;
    to->used = to->calls = 0;
    to->text[0] = '\0';
    remat_generator_clear(to->generator);
    return remat_generator_write(to->generator, &to->options, take, to);
}

static reader make_reader(remat_generator *generator, const char *prompt)
{
    reader made = {.generator = generator, .most_calls = SIZE_MAX};
    remat_text_options_init(&made.options);
    made.options.prompt = prompt;
    made.options.count = 6;
    return made;
}

static void texts_end_where_they_are_told_to(void **state)
{
    fixture *f = *state;
    make_folder(f);
    remat_generator *generator = open_generator(f);
    reader whole = make_reader(generator, "a bird");
    expect_ok(f, write_text(&whole));
    assert_true(whole.used > 0);
    /* The first byte of the text as a stop: nothing is left. An empty stop is none. */
    char first[2] = {whole.text[0], '\0'};
    const char *const stops[] = {"", "no such text", first, NULL};
    reader stopped = make_reader(generator, "a bird");
    stopped.options.stops = stops;
    expect_ok(f, write_text(&stopped));
    assert_int_equal(stopped.used, 0);
    /* Whoever reads may end it. */
    reader ended = make_reader(generator, "a bird");
    ended.most_calls = 1;
    expect_ok(f, write_text(&ended));
    assert_int_equal(ended.calls, 1);
    assert_true(ended.used <= whole.used);
    /* The cache may be full before the count is reached; no count at all writes nothing. */
    reader full = make_reader(generator, "a bird a bee a bear");
    full.options.count = 1000;
    expect_ok(f, write_text(&full));
    full.options.count = 0;
    expect_ok(f, write_text(&full));
    assert_int_equal(full.used, 0);
    /* An empty prompt begins with the begin token; a chat has one anyway. */
    reader empty = make_reader(generator, NULL);
    expect_ok(f, write_text(&empty));
    empty.options.chat = 1;
    empty.options.prompt = "a";
    expect_ok(f, write_text(&empty));
    remat_generator_destroy(generator);
}

static void wrong_options_are_refused(void **state)
{
    fixture *f = *state;
    make_folder(f);
    remat_generator *generator = open_generator(f);
    reader to = make_reader(generator, "a");
    to.options.temperature = -1;
    expect_status(f, write_text(&to), REMAT_INVALID);
    expect_message(f, "temperature is from 0 on, and top_p above 0");
    to = make_reader(generator, "a");
    to.options.top_p = 0;
    expect_status(f, write_text(&to), REMAT_INVALID);
    to = make_reader(generator, "a bird a bee a bear a bird a bee a bear a bird a bee a bear a bird a bee a bear");
    expect_status(f, write_text(&to), REMAT_INVALID);
    expect_message(f, "tokens, and the cache has room for 16 with what follows");
    to = make_reader(generator, "a");
    to.options.struct_size = 0;
    expect_status(f, write_text(&to), REMAT_INVALID);
    remat_generator_destroy(generator);
    /* Without a configuration there is no begin token, no end and no template. */
    scratch_write_text("tokenizer_config.json", "{}");
    generator = open_generator(f);
    to = make_reader(generator, "");
    expect_status(f, write_text(&to), REMAT_INVALID);
    expect_message(f, "the prompt is empty, and there is no begin token");
    to.options.chat = 1;
    expect_status(f, write_text(&to), REMAT_BAD_INPUT);
    expect_message(f, "has no chat template: neither tokenizer_config.json nor chat_template.jinja says one");
    to = make_reader(generator, "a");
    expect_ok(f, write_text(&to));
    remat_generator_destroy(generator);
    scratch_write_text("tokenizer_config.json", "{\"bos_token\": \"<none>\"}");
    generator = open_generator(f);
    to = make_reader(generator, "");
    expect_status(f, write_text(&to), REMAT_INVALID);
    const int32_t tokens[] = {1, 262, -1};
    const float *logits;
    expect_status(f, remat_generator_feed(generator, tokens, 0, &logits), REMAT_INVALID);
    expect_status(f, remat_generator_feed(generator, tokens, 17, &logits), REMAT_INVALID);
    expect_status(f, remat_generator_feed(generator, tokens, 2, &logits), REMAT_INVALID);
    expect_status(f, remat_generator_feed(generator, tokens + 2, 1, &logits), REMAT_INVALID);
    expect_ok(f, remat_generator_feed(generator, tokens, 1, &logits));
    remat_generator_destroy(generator);
    remat_generator_options options;
    remat_generator_options_init(&options);
    options.chunk = 0;
    expect_status(f, remat_generator_create(f->context, scratch_folder(), &options, &generator), REMAT_INVALID);
    expect_message(f, "chunk: a run has at least one token");
}

/* What a call leaves behind when it finds no memory does not change the next one. */
static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    static const char *const stops[] = {"no such text", NULL};
    make_folder(f);
    remat_generator *generator = open_generator(f);
    reader wanted = make_reader(generator, "a bird");
    wanted.options.chat = 1;
    expect_ok(f, write_text(&wanted));
    remat_generator_destroy(generator);
    generator = open_generator(f);
    remat_alloc_take_no_reserve(f->context);
    reader to = make_reader(generator, "a bird");
    to.options.chat = 1;
    to.options.stops = stops;
    expect_call_failures_survived(f, "text", write_text, &to, 20);
    assert_string_equal(to.text, wanted.text);
    remat_generator_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(texts_end_where_they_are_told_to),
        FIXTURE_TEST(wrong_options_are_refused),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
