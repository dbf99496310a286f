/* Samples for fine-tuning: what is learned, how rows are packed, what broken lines say. */
#include "support/fixture.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "data/data.h"

#include <remat/tokenizer.h>

#include <unistd.h>

static const char config[] =
    "{\"eos_token\": {\"content\": \"<|im_end|>\"}, \"bos_token\": null, \"chat_template\": "
    "\"{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}\"}";

/* A folder with the tokenizer of Qwen's kind and this configuration; NULL: none. */
static remat_tokenizer *load(fixture *f, const char *configuration)
{
    size_t length;
    char *json = scratch_read("tests/data/tokenizers/qwen2.json", &length);
    scratch_write("tokenizer.json", json, length);
    free(json);
    unlink(scratch_path("tokenizer_config.json"));
    if (configuration)
        scratch_write_text("tokenizer_config.json", configuration);
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_load(f->context, scratch_folder(), &tokenizer));
    return tokenizer;
}

static remat_status read_samples(remat_tokenizer *tokenizer, const char *lines, uint64_t length, int pack,
                                 remat_samples **samples)
{
    remat_samples_options options;
    remat_samples_options_init(&options);
    options.length = length;
    options.pack = pack;
    return remat_samples_load(tokenizer, scratch_write_text("samples.jsonl", lines), &options, samples);
}

/* The text of the tokens of a row that are learned. */
static const char *learned_text(fixture *f, remat_tokenizer *tokenizer, const remat_samples *samples, uint64_t row,
                                uint64_t length)
{
    remat_samples_row at;
    int32_t ids[512];
    size_t count = 0, bytes;
    const char *text;
    expect_ok(f, remat_samples_row_get(samples, row, &at));
    for (uint64_t i = 0; i < length; i++)
        if (at.labels[i] >= 0)
            ids[count++] = at.labels[i];
    expect_ok(f, remat_tokenizer_decode(tokenizer, ids, count, 1, &text, &bytes));
    return text;
}

static void prompts_are_not_learned(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer = load(f, config);
    remat_samples *samples;
    expect_ok(f,
              read_samples(
                  tokenizer,
                  "{\"prompt\": \"What is 1+1?\", \"completion\": \" It is 2.\", \"id\": [1, {}]}\n\n"
                  "{\"text\": \"All of this.\"}\r\n"
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": "
                  "\"Hello.\"}, {\"role\": \"user\", \"content\": \"Bye\"}, {\"role\": \"assistant\", \"content\": "
                  "\"So long.\"}]}\n",
                  128, 0, &samples));
    remat_samples_figures figures;
    remat_samples_figures_get(samples, &figures);
    assert_int_equal(figures.samples, 3);
    assert_int_equal(figures.rows, 3);
    assert_int_equal(figures.truncated, 0);
    assert_string_equal(learned_text(f, tokenizer, samples, 0, 128), " It is 2.<|im_end|>");
    /* The first token of a text has nothing before it from which it could be learned. */
    expect_text("All of this.<|im_end|>", learned_text(f, tokenizer, samples, 1, 128));
    assert_string_equal(learned_text(f, tokenizer, samples, 2, 128), "Hello.<|im_end|>\nSo long.<|im_end|>\n");
    remat_samples_row row;
    expect_status(f, remat_samples_row_get(samples, 3, &row), REMAT_INVALID);
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
}

static void short_samples_share_a_row(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer = load(f, NULL);
    remat_samples *samples;
    const int32_t *ids;
    size_t count;
    expect_ok(f, remat_tokenizer_encode(tokenizer, "abcd", 4, 1, &ids, &count));
    uint64_t inputs = count - 1, length = 2 * inputs + 1;
    assert_true(inputs >= 1);
    static const char lines[] = "{\"text\": \"abcd\"}\n{\"text\": \"abcd\"}\n{\"text\": \"abcd\"}\n";
    expect_ok(f, read_samples(tokenizer, lines, length, 1, &samples));
    remat_samples_figures figures;
    remat_samples_figures_get(samples, &figures);
    assert_int_equal(figures.rows, 2);
    assert_int_equal(figures.tokens, 3 * inputs);
    remat_samples_row row;
    expect_ok(f, remat_samples_row_get(samples, 0, &row));
    for (uint64_t i = 0; i < 2 * inputs; i++) {
        assert_int_equal(row.segments[i], i / inputs);
        assert_int_equal(row.positions[i], i % inputs);
        assert_true(row.labels[i] >= 0);
        if (i % inputs + 1 < inputs)
            assert_int_equal(row.labels[i], row.ids[i + 1]); /* never that of the next sample */
    }
    assert_int_equal(row.segments[length - 1], -1);
    assert_int_equal(row.labels[length - 1], -1);
    remat_samples_destroy(samples);
    /* Each in its own row; and cut. */
    expect_ok(f, read_samples(tokenizer, lines, length, 0, &samples));
    remat_samples_figures_get(samples, &figures);
    assert_int_equal(figures.rows, 3);
    remat_samples_destroy(samples);
    expect_ok(f, read_samples(
                     tokenizer,
                     "{\"text\": \"many different words here\"}\n{\"prompt\": \"many words\", \"completion\": \"x\"}",
                     2, 1, &samples));
    remat_samples_figures_get(samples, &figures);
    assert_int_equal(figures.truncated, 2);
    assert_int_equal(figures.dropped, 1);
    assert_int_equal(figures.learned, 2);
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
}

/* Batches from a source of data: ids, positions and segments as inputs. */
static void rows_are_a_source_of_data(void **state)
{
    fixture *f = *state;
    enum { LENGTH = 6, BATCH = 2 };
    remat_tokenizer *tokenizer = load(f, NULL);
    remat_samples *samples;
    expect_ok(f, read_samples(tokenizer, "{\"text\": \"abcd\"}\n{\"prompt\": \"ab\", \"completion\": \"cd\"}\n", LENGTH,
                              0, &samples));
    const char *path = scratch_path("samples.jsonl");
    const dataset_settings settings = {.type = DATASET_JSONL, .inputs = path, .tokenizer = scratch_folder()};
    const data_field field = {.values = LENGTH, .dtype = REMAT_INT32};
    data_field labels = field;
    labels.skips = true;
    const data_options options = {
        .settings = &settings, .needs = {.input_count = 1, .inputs = {field, field}, .labels = labels}, .batch = BATCH};
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 2);
    int32_t filled[2][BATCH * LENGTH];
    void *const inputs[] = {filled[0]};
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, BATCH, inputs, filled[1]));
    for (uint64_t i = 0; i < BATCH; i++) {
        remat_samples_row row;
        expect_ok(f, remat_samples_row_get(samples, i, &row));
        assert_memory_equal(filled[0] + i * LENGTH, row.ids, LENGTH * sizeof(int32_t));
        assert_memory_equal(filled[1] + i * LENGTH, row.labels, LENGTH * sizeof(int32_t));
    }
    data_source_close(source);
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
}

/* A template that writes the last turn differently from earlier ones. */
static void turns_are_found_where_the_last_one_differs(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer = load(
        f, "{\"chat_template\": [{\"name\": \"tools\", \"template\": \"{{\"}, {\"name\": \"default\", \"template\": "
           "\"{% for m in messages %}<|im_start|>{{ m.role }}\\n{% if loop.last and m.role == 'assistant' %}(last) {% "
           "endif %}"
           "{{ m.content|trim }}<|im_end|>\\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\\n{% "
           "endif %}\"}]}");
    remat_samples *samples;
    expect_ok(f,
              read_samples(tokenizer,
                           "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                           "\"content\": \" b \"}, "
                           "{\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", \"content\": \"d\"}]}",
                           64, 1, &samples));
    assert_string_equal(learned_text(f, tokenizer, samples, 0, 64), "b<|im_end|>(last) d<|im_end|>\n");
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
}

static void broken_lines_are_named(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *lines, *message;
    } cases[] = {
        {"", "samples.jsonl: there are no samples"},
        {"{\"text\": \"a\"}\n{\"text\": 3}\n", "samples.jsonl:2: text: 3 is not allowed; it must be a string"},
        {"{\"text\": \"ab\"}\n\n{\"txt\": \"a\"}\n", "samples.jsonl:3: this is no sample: it needs 'text'"},
        {"{\"text\": \"a\"", "samples.jsonl:1: the text ends where ',' or '}' should stand"},
        {"[1]", "samples.jsonl:1: an array is not allowed; it must be an object"},
        {"{\"text\": \"a\"} {}", "samples.jsonl:1: '{' where the end of the text should stand"},
        {"{\"prompt\": \"a\"}", "samples.jsonl:1: the sample has a 'prompt' and no 'completion'"},
        {"{\"completion\": \"a\"}", "the sample has a 'completion' and no 'prompt'"},
        {"{\"text\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}", "more than one of"},
        {"{\"messages\": []}", "samples.jsonl:1: messages: there are none"},
        {"{\"messages\": [3]}", "messages: a whole number is not allowed"},
        {"{\"messages\": [{\"role\": \"user\"}]}", "messages: message 1 has no 'content'"},
        {"{\"text\": \"\"}", "no sample has anything to learn in its first 9 tokens"},
    };
    remat_tokenizer *tokenizer = load(f, NULL);
    remat_samples *samples;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(f, read_samples(tokenizer, cases[i].lines, 8, 1, &samples), REMAT_BAD_INPUT);
        expect_message(f, cases[i].message);
    }
    static const char chat[] = "\n{\"messages\": [{\"role\": \"robot\", \"content\": \"b\"}]}";
    expect_status(f, read_samples(tokenizer, chat, 8, 1, &samples), REMAT_BAD_INPUT);
    expect_message(f, "samples.jsonl:2: messages need a chat template");
    expect_status(f, read_samples(tokenizer, chat, 0, 1, &samples), REMAT_INVALID);
    expect_status(f, remat_samples_load(tokenizer, scratch_path("none.jsonl"), NULL, &samples), REMAT_IO);
    remat_tokenizer_destroy(tokenizer);
    tokenizer = load(f, "{\"chat_template\": \"{{ raise_exception('no robots') }}\"}");
    expect_status(f, read_samples(tokenizer, chat, 8, 1, &samples), REMAT_BAD_INPUT);
    expect_message(f, "samples.jsonl:2: ");
    expect_message(f, "the template says 'no robots'");
    remat_tokenizer_destroy(tokenizer);
}

static remat_status load_samples(remat_context *context, void *user)
{
    (void)user;
    remat_tokenizer *tokenizer = NULL;
    remat_samples *samples = NULL;
    remat_status status = remat_tokenizer_load(context, scratch_folder(), &tokenizer);
    FLOW(status, remat_samples_load(tokenizer, scratch_path("samples.jsonl"), NULL, &samples));
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    remat_tokenizer_destroy(load(f, config));
    scratch_write_text("samples.jsonl",
                       "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
                       "\"content\": \"Hello.\"}]}\n{\"prompt\": \"a\", \"completion\": \"b\"}\n");
    expect_failures_survived("samples", load_samples, NULL, 50, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(prompts_are_not_learned),   FIXTURE_TEST(short_samples_share_a_row),
        FIXTURE_TEST(rows_are_a_source_of_data), FIXTURE_TEST(turns_are_found_where_the_last_one_differs),
        FIXTURE_TEST(broken_lines_are_named),    FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
