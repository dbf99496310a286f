/* Tokenizer files that are damaged anywhere, and memory that runs out anywhere while one is read and used. */
#include "support/damaged_text.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "data/tokenizer/tokenizer_config.h"

/* Everything that the reader knows, in few bytes: marks instead of blanks, and bytes as letters. */
#define ADDED                                                                                                          \
    "\"added_tokens\": [{\"id\": 6, \"content\": \"<s>\", \"single_word\": true, \"lstrip\": true, \"rstrip\": true, " \
    "\"normalized\": false, \"special\": true, \"more\": 1},\n {\"id\": 7, \"content\": \"<n>\", \"content\": 1}],\n"
#define VOCAB "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"▁\": 3, \"<0x41>\": 4, \"<unk>\": 5}"
static const char marks[] =
    "{\"version\": \"1.0\", \"truncation\": {\"a\": [1]}, \"padding\": null, \"other\": 1,\n" ADDED
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Replace\", "
    "\"pattern\": "
    "{\"String\": \" .\"}, \"content\": \"b\"}, {\"type\": \"Prepend\", \"prepend\": \"a\"}]},\n"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": "
    "true}, "
    "{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"MergedWithNext\", \"invert\": false}, "
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\d\"}, \"behavior\": \"MergedWithPrevious\"}, "
    "{\"type\": \"Metaspace\", \"replacement\": \"▁\", \"add_prefix_space\": false, \"prepend_scheme\": \"first\", "
    "\"split\": true}]},\n"
    "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": "
    "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": "
    "{\"id\": "
    "\"A\", \"id\": 1}}, {\"SpecialToken\": {\"id\": \"<s>\"}}], \"special_tokens\": {\"<s>\": {\"id\": \"<s>\", "
    "\"ids\": [6]}}}]},\n"
    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"▁\"}, "
    "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" "
    "\", "
    "\"start\": 1, \"stop\": 0}, {\"type\": \"Metaspace\", \"replacement\": \"▁\"}]},\n"
    "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"continuing_subword_prefix\": \"\", "
    "\"end_of_word_suffix\": 0, \"fuse_unk\": true, \"byte_fallback\": true, \"ignore_merges\": false, \"more\": "
    "1,\n" VOCAB ", \"merges\": [\"#version: 0.2\", \"a b\", [\"a\", \"b\"]]}}\n";
static const char letters[] =
    "{" ADDED "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": true},\n"
    "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"ignore_merges\": true, \"dropout\": 0.0, \"vocab\": {\"a\": "
    "0, "
    "\"b\": 1, \"ab\": 2, \"Ġ\": 3, \"Ġab\": 4}, \"merges\": [\"a b\"]}}";

/* Reads a tokenizer and takes a text there and back. */
static remat_status use(remat_context *context, const char *text, void *user)
{
    static const char sample[] = "ab  Ab .<s>1-2 e\xcc\x81<n>b\xe2\x82\xac a<s>";
    remat_tokenizer *tokenizer;
    const int32_t *ids;
    const char *decoded;
    size_t count = 0, bytes;
    (void)user;
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_tokenizer_read(context, stream, "tokenizer.json", &tokenizer);
    fclose(stream);
    FLOW(status, remat_tokenizer_encode(tokenizer, sample, strlen(sample), 1, &ids, &count));
    int32_t copy[100] = {0};
    if (status == REMAT_OK) {
        assert_true(count < 100);
        memcpy(copy, ids, count * sizeof *ids);
    }
    FLOW(status, remat_tokenizer_decode(tokenizer, copy, count, 0, &decoded, &bytes));
    FLOW(status, remat_tokenizer_decode(tokenizer, copy, count, 1, &decoded, &bytes));
    remat_tokenizer_destroy(tokenizer);
    return status;
}

static void damaged_files_are_refused_by_name(void **state)
{
    fixture *f = *state;
    expect_ok(f, use(f->context, marks, NULL));
    expect_ok(f, use(f->context, letters, NULL));
    assert_true(expect_beginnings_judged(f, marks, use, NULL, "tokenizer.json:") >= strlen(marks) - 2);
    assert_true(expect_beginnings_judged(f, letters, use, NULL, "tokenizer.json:") >= strlen(letters) - 2);
    assert_true(expect_other_values_judged(f, marks, use, NULL, "") > 700);
    assert_true(expect_other_values_judged(f, letters, use, NULL, "") > 200);
}

static remat_status use_once(remat_context *context, void *user)
{
    return use(context, user, NULL);
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    expect_failures_without_reserve_survived("marks", use_once, (void *)(uintptr_t)marks, 300,
                                             LESS_WHEN_SANITIZED(3000, 500));
    expect_failures_without_reserve_survived("letters", use_once, (void *)(uintptr_t)letters, 100,
                                             LESS_WHEN_SANITIZED(3000, 500));
}

/* ---- the configuration beside it ---- */

static const char config_text[] =
    "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\", \"lstrip\": false}, \"more\": [{}],\n"
    "\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, {\"name\": \"default\", \"template\": \"d\", "
    "\"more\": 1}]}\n";

static remat_status read_config(remat_context *context, const char *text, void *user)
{
    tokenizer_config config = {0};
    (void)user;
    scratch_write_text("tokenizer_config.json", text);
    remat_status status = tokenizer_config_read(context, scratch_folder(), &config);
    tokenizer_config_end(context, &config);
    return status;
}

static void damaged_configurations_are_refused(void **state)
{
    fixture *f = *state;
    assert_true(expect_beginnings_judged(f, config_text, read_config, NULL, "tokenizer_config.json:") >=
                strlen(config_text) - 2);
    assert_true(expect_other_values_judged(f, config_text, read_config, NULL, "tokenizer_config.json:") > 50);
    /* The template named default is the one; a file of its own stands for it. */
    tokenizer_config config = {0};
    scratch_write_text("tokenizer_config.json", config_text);
    expect_ok(f, tokenizer_config_read(f->context, scratch_folder(), &config));
    assert_string_equal(config.chat_template, "d");
    assert_string_equal(config.bos_token, "<s>");
    assert_string_equal(config.eos_token, "</s>");
    tokenizer_config_end(f->context, &config);
    const char *own = scratch_write_text("chat_template.jinja", "own");
    expect_ok(f, tokenizer_config_read(f->context, scratch_folder(), &config));
    assert_string_equal(config.chat_template, "own");
    assert_string_equal(config.template_name, own);
    tokenizer_config_end(f->context, &config);
}

static remat_status read_config_once(remat_context *context, void *user)
{
    tokenizer_config config = {0};
    remat_status status = tokenizer_config_read(context, user, &config);
    tokenizer_config_end(context, &config);
    return status;
}

static void failed_allocations_of_configurations_are_survived(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    scratch_write_text("tokenizer_config.json", config_text);
    scratch_write_text("chat_template.jinja", "own");
    expect_failures_without_reserve_survived("a configuration", read_config_once, folder, 10, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(damaged_files_are_refused_by_name),
        FIXTURE_TEST(failed_allocations_are_survived),
        FIXTURE_TEST(damaged_configurations_are_refused),
        FIXTURE_TEST(failed_allocations_of_configurations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
