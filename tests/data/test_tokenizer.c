/* Tokenizers of all families against what the library `tokenizers` recorded: tests/data/tokenizers/make_tokenizers.js, and
 * compare_tokenizers.py for those that it trained. With TOKENIZER_ANSWERS in the environment, the strings and answers of that folder
 * are compared instead of those in the tree. */
#include "support/fixture.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/tokenizer.h>

#include <jansson.h>

#define FOLDER "tests/data/tokenizers/"

static const char *const families[] = {"gpt2",           "gpt2_prefix", "llama2",  "llama3", "trained_bytes",
                                       "trained_pieces", "metaspace",   "mistral", "qwen2",  "tekken"};
enum { FAMILIES = sizeof families / sizeof families[0] };

static remat_tokenizer *load(fixture *f, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, FOLDER "%s.json", name);
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_load(f->context, path, &tokenizer));
    return tokenizer;
}

/* ---- references ---- */

/* Ids as the library wrote them: numbers with blanks between. */
static size_t parse_ids(const char *line, int32_t *ids, size_t most)
{
    size_t count = 0;
    for (char *end; *line && count < most; line = end) {
        long id = strtol(line, &end, 10);
        if (end == line)
            break;
        ids[count++] = (int32_t)id;
    }
    return count;
}

static void chomp(char *line)
{
    line[strcspn(line, "\n")] = '\0';
}

static void compare_string(fixture *f, remat_tokenizer *tokenizer, const char *text, const char *wanted_ids,
                           const char *wanted_text)
{
    enum { MOST = 4096 };
    static int32_t wanted[MOST];
    const int32_t *ids;
    const char *decoded;
    size_t count, bytes, expected = parse_ids(wanted_ids, wanted, MOST);
    expect_ok(f, remat_tokenizer_encode(tokenizer, text, strlen(text), 1, &ids, &count));
    if (count != expected || (count && memcmp(ids, wanted, count * sizeof *ids) != 0))
        fail_msg("'%s': %zu tokens, wanted %s", text, count, wanted_ids);
    const uint32_t *starts = remat_tokenizer_starts(tokenizer);
    for (size_t i = 0; i < count; i++) {
        assert_true(starts[i] <= strlen(text));
        assert_true(i == 0 || starts[i - 1] <= starts[i]);
    }
    expect_ok(f, remat_tokenizer_decode(tokenizer, wanted, expected, 0, &decoded, &bytes));
    assert_int_equal(bytes, strlen(decoded));
    assert_string_equal(decoded, wanted_text);
}

static void compare_family(fixture *f, const char *name)
{
    enum { LINE = 1 << 16 };
    static char text[LINE], ids[LINE], decoded[LINE], path[200];
    remat_tokenizer *tokenizer = load(f, name);
    const char *folder = getenv("TOKENIZER_ANSWERS");
    folder = folder ? folder : FOLDER;
    snprintf(path, sizeof path, "%s/strings.jsonl", folder);
    FILE *strings = fopen(path, "r");
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *answers = fopen(path, "r");
    assert_non_null(strings);
    assert_non_null(answers);
    size_t compared = 0;
    for (; fgets(text, LINE, strings) && fgets(ids, LINE, answers) && fgets(decoded, LINE, answers); compared++) {
        chomp(ids);
        json_t *sample = json_loads(text, 0, NULL), *answer = json_loads(decoded, JSON_DECODE_ANY, NULL);
        assert_non_null(sample);
        assert_non_null(answer);
        compare_string(f, tokenizer, json_string_value(json_object_get(sample, "text")), ids,
                       json_string_value(answer));
        json_decref(sample);
        json_decref(answer);
    }
    assert_true(compared > 200);
    fclose(strings);
    fclose(answers);
    remat_tokenizer_destroy(tokenizer);
}

static void ids_and_texts_are_those_of_the_library(void **state)
{
    for (int i = 0; i < FAMILIES; i++)
        compare_family(*state, families[i]);
}

static void a_text_may_be_one_long_word(void **state)
{
    fixture *f = *state;
    enum { LENGTH = 100000 };
    char *text = malloc(LENGTH);
    memset(text, 'e', LENGTH);
    for (int i = 0; i < FAMILIES; i++) {
        remat_tokenizer *tokenizer = load(f, families[i]);
        const int32_t *ids;
        size_t count, bytes;
        const char *decoded;
        expect_ok(f, remat_tokenizer_encode(tokenizer, text, LENGTH, 0, &ids, &count));
        int32_t *copy = malloc(count * sizeof *copy);
        memcpy(copy, ids, count * sizeof *copy);
        expect_ok(f, remat_tokenizer_decode(tokenizer, copy, count, 0, &decoded, &bytes));
        assert_true(bytes >= LENGTH && memcmp(decoded + bytes - LENGTH, text, LENGTH) == 0);
        free(copy);
        remat_tokenizer_destroy(tokenizer);
    }
    free(text);
}

static void tokens_are_found_by_id_and_text(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer = load(f, "qwen2");
    int32_t start = remat_tokenizer_find(tokenizer, "<|im_start|>"), blank = remat_tokenizer_find(tokenizer, "Ġ");
    assert_true(start > 0 && blank > 0);
    assert_string_equal(remat_tokenizer_token(tokenizer, start), "<|im_start|>");
    assert_true(remat_tokenizer_is_special(tokenizer, start));
    assert_false(remat_tokenizer_is_special(tokenizer, blank));
    assert_int_equal(remat_tokenizer_find(tokenizer, "<|no_such|>"), -1);
    assert_null(remat_tokenizer_token(tokenizer, -1));
    assert_null(remat_tokenizer_token(tokenizer, (int32_t)remat_tokenizer_size(tokenizer)));
    assert_non_null(remat_tokenizer_token(tokenizer, (int32_t)remat_tokenizer_size(tokenizer) - 1));
    remat_tokenizer_destroy(tokenizer);
}

/* Bytes that are no UTF-8 are refused where they stand, also at the end. */
static void texts_that_are_no_utf8_are_refused(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer = load(f, "gpt2");
    const int32_t *ids;
    size_t count;
    expect_status(f, remat_tokenizer_encode(tokenizer, "ab\xff", 3, 1, &ids, &count), REMAT_BAD_INPUT);
    expect_message(f, "byte 3 of the text, 0xff, is not UTF-8");
    expect_status(f, remat_tokenizer_encode(tokenizer, "a\xc3\xa9", 2, 1, &ids, &count), REMAT_BAD_INPUT);
    expect_ok(f, remat_tokenizer_encode(tokenizer, "a\0b", 3, 1, &ids, &count));
    assert_int_equal(count, 3);
    remat_tokenizer_destroy(tokenizer);
}

/* ---- broken files ---- */

static remat_status read_text(fixture *f, const char *text)
{
    remat_tokenizer *tokenizer;
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_tokenizer_read(f->context, stream, "tokenizer.json", &tokenizer);
    fclose(stream);
    remat_tokenizer_destroy(tokenizer);
    return status;
}

#define MODEL(more) \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0,\n\"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]" more "}"

static void broken_files_name_the_key_and_the_line(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[]", "an array is not allowed; it must be an object"},
        {"{}", "tokenizer.json: model: it is missing"},
        {"{\"version\": \"2.0\"}", "tokenizer.json:1: version: '2.0' is unknown; 1.0 is read"},
        {"{\"model\": {\"vocab\": {}}}", "model: it has no 'merges'"},
        {"{\n\"model\": {\"type\": \"Unigram\"}}", "tokenizer.json:2: model.type: 'Unigram' is not supported; BPE is"},
        {"{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
         "vocab: the tokens 'a' and 'b' both have the id 0"},
        {"{\"model\": {\"vocab\": {\"a\": 0, \"a\": 1}, \"merges\": []}}", "vocab: the token 'a' is there twice"},
        {"{\"model\": {\"vocab\": {\"a\": 900000}, \"merges\": []}}", "vocab: the id 900000 is too large"},
        {"{\"model\": {\"vocab\": {\"a\": -1}, \"merges\": []}}", "vocab: -1 is not allowed"},
        {"{\"model\": {\"vocab\": {\"a\": 0},\n\"merges\": [\n\"a c\"]}}",
         "tokenizer.json:3: merges: the token 'c' is not in the vocabulary"},
        {"{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}", "merges: 'a' is not two tokens"},
        {"{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}}", "merges: ']' is not allowed"},
        {"{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [[\"a\", \"a\"]]}}",
         "the token 'aa' is not in the vocabulary"},
        {"{\"model\": {\"dropout\": 0.1}}", "dropout: this is not supported"},
        {"{\"normalizer\": {\"type\": \"Lowercase\"}}", "normalizer: the type 'Lowercase' is not supported"},
        {"{\"normalizer\": {\"type\": \"Replace\"}}", "normalizer: it has no 'pattern'"},
        {"{\"normalizer\": {\"normalizers\": []}}", "normalizer: it has no 'type'"},
        {"{\"normalizer\": 3}", "normalizer: a whole number is not allowed; it must be an object"},
        {"{\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}}",
         "pre_tokenizer: the type 'BertPreTokenizer' is not supported"},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"ab\"}}",
         "'ab' is not allowed; it must be one character"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, {\"type\": "
         "\"Digits\"}]}}",
         "behind ByteLevel, the type 'Digits' is not supported"},
        {"{\"decoder\": {\"type\": \"WordPiece\"}}", "decoder: the type 'WordPiece' is not supported"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\"}}",
         "post_processor: the type 'BertProcessing' is not supported"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
         "\"<s>\"}}]}}",
         "single: '<s>' is not in special_tokens"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}}",
         "the text must be in the template once"},
        {"{\"added_tokens\": [{\"id\": 3}]}", "added_tokens: a token has no 'content'"},
        {"{\"added_tokens\": [{\"id\": 3, \"content\": \"x\", \"special\": 1}]}", "special: 1 is not allowed"},
        {"{" MODEL("") ", \"model\": {}}", "model: there twice"},
        {"{" MODEL("") "} x", "'x' where the end of the text should stand"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(f, read_text(f, cases[i].text), REMAT_BAD_INPUT);
        expect_message(f, cases[i].message);
    }
    expect_ok(f, read_text(f, "{" MODEL("") "}"));
}

static void patterns_that_are_not_supported_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *pattern, *message;
    } cases[] = {
        {"a(b", "a group is not closed"},
        {"a)b", "a ')' has no '('"},
        {"[a", "a class is not closed"},
        {"[z-a]", "a range of characters is wrong"},
        {"a*", "the pattern matches an empty text"},
        {"*", "there is nothing to repeat"},
        {"^a", "anchors are not supported"},
        {"(?<=a)b", "this kind of group is not supported"},
        {"\\\\p{Greek}", "this category is unknown"},
        {"\\\\b", "this escape is not supported"},
        {"(?i:é)", "(?i: is supported for ASCII letters only"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((a", "groups are nested too deeply"},
        {"(((a{999}b){999}b){999}b)", "the pattern is too long"},
        {"a{1001}", "a number of repetitions is too large"},
        {"a{1,1001}", "a number of repetitions is too large"},
        {"a{2,1}", "the number of repetitions is wrong"},
        {"a{0}", "the number of repetitions is wrong"},
        {"a{1", "the number of repetitions is wrong"},
        {"a{1}+", "{...}+ is not supported"},
        {"a+*", "a repetition of a repetition is not supported"},
        {"(?=a)+b", "a look ahead is not repeated"},
        {"(?!a)*b", "a look ahead is not repeated"},
        {"(?:ab)++", "a possessive repetition of a group is not supported"},
        {"(?:a?)+b", "a repetition of what may be empty is not supported"},
        {"(?:a?|b)+b", "a repetition of what may be empty is not supported"},
        {"(?:a|b?)*b", "a repetition of what may be empty is not supported"},
        {"(?:|a){2}b", "a repetition of what may be empty is not supported"},
        {"(?=a)", "the pattern matches an empty text"},
        {"(*a)", "this kind of group is not supported"},
        {"(a", "a group is not closed"},
        {"a$", "anchors are not supported"},
        {"[a-", "a class is not closed"},
        {"[a-\\\\", "a backslash stands at the end"},
        {"[a-\\\\d]", "a range of characters is wrong"},
        {"[[a]]", "classes inside classes are not supported"},
        {"[a&&b]", "classes inside classes are not supported"},
        {"[\\\\q]", "this escape is not supported"},
        {"(?i:[a-z])", "ranges in (?i: are not supported"},
        {"(?i:[é])", "(?i: is supported for ASCII letters only"},
        {"\\\\", "a backslash stands at the end"},
        {"\\\\1", "this escape is not supported"},
        {"\\\\é", "this escape is not supported"},
        {"\\\\pL", "\\p needs a category in braces"},
        {"\\\\p{L", "\\p needs a category in braces"},
        {"\\\\x4", "a hexadecimal number of a character is wrong"},
        {"\\\\xg", "a hexadecimal number of a character is wrong"},
        {"\\\\x{41", "a hexadecimal number of a character is wrong"},
        {"\\\\x{}", "a hexadecimal number of a character is wrong"},
        {"\\\\x{110000}", "a hexadecimal number of a character is wrong"},
        {"\\\\u304", "a hexadecimal number of a character is wrong"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, \"behavior\": \"Isolated\"}}",
            cases[i].pattern);
        expect_status(f, read_text(f, text), REMAT_BAD_INPUT);
        expect_message(f, cases[i].message);
        expect_message(f, "tokenizer.json:1: pattern: ");
    }
}

/* A pattern that would need exponential time ends in a failure. */
static void hostile_patterns_end(void **state)
{
    fixture *f = *state;
    static const char text[] =
        "{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?:a+b?)+c\"}, \"behavior\": "
        "\"Isolated\", \"invert\": false}, \"model\": {\"vocab\": {}, \"merges\": []}}";
    FILE *stream = stream_of(text, strlen(text));
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_read(f->context, stream, "text", &tokenizer));
    fclose(stream);
    char many[64];
    memset(many, 'a', sizeof many);
    const int32_t *ids;
    size_t count;
    expect_status(f, remat_tokenizer_encode(tokenizer, many, sizeof many, 0, &ids, &count), REMAT_BAD_INPUT);
    expect_message(f, "takes too many steps");
    remat_tokenizer_destroy(tokenizer);
}

static void files_that_are_not_there_are_named(void **state)
{
    fixture *f = *state;
    remat_tokenizer *tokenizer;
    expect_status(f, remat_tokenizer_load(f->context, scratch_path("none.json"), &tokenizer), REMAT_IO);
    expect_message(f, "none.json: cannot be opened");
    expect_status(f, remat_tokenizer_load(f->context, scratch_folder(), &tokenizer), REMAT_IO);
    expect_message(f, "/tokenizer.json: cannot be opened");
}

/* ---- training ---- */

static const char lesson[] =
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest";

static void training_merges_the_most_frequent_pairs(void **state)
{
    fixture *f = *state;
    const char *path = scratch_write_text("lesson.txt", lesson);
    remat_tokenizer_options options;
    remat_tokenizer_options_init(&options);
    options.vocabulary = 257 + 4;
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_train(f->context, &path, 1, &options, &tokenizer));
    assert_int_equal(remat_tokenizer_size(tokenizer), 261);
    /* "es" and "st" occur nine times, as does "we" no more than eight; the smaller ids first. */
    assert_string_equal(remat_tokenizer_token(tokenizer, 0), "<|endoftext|>");
    assert_string_equal(remat_tokenizer_token(tokenizer, 257), "es");
    assert_string_equal(remat_tokenizer_token(tokenizer, 258), "est");
    expect_ok(f, remat_tokenizer_save(tokenizer, scratch_path("made.json")));
    const int32_t *ids;
    size_t count, more;
    expect_ok(f, remat_tokenizer_encode(tokenizer, lesson, strlen(lesson), 1, &ids, &count));
    int32_t first[8];
    assert_true(count > 8);
    memcpy(first, ids, sizeof first);
    remat_tokenizer_destroy(tokenizer);
    /* What was written reads the same. */
    expect_ok(f, remat_tokenizer_load(f->context, scratch_path("made.json"), &tokenizer));
    expect_ok(f, remat_tokenizer_encode(tokenizer, lesson, strlen(lesson), 1, &ids, &more));
    assert_int_equal(more, count);
    assert_memory_equal(ids, first, sizeof first);
    expect_status(f, remat_tokenizer_save(tokenizer, scratch_path("again.json")), REMAT_INVALID);
    remat_tokenizer_destroy(tokenizer);
    options.vocabulary = 100;
    expect_status(f, remat_tokenizer_train(f->context, &path, 1, &options, &tokenizer), REMAT_INVALID);
    expect_message(f, "from 257 to");
}

/* The library's trainer finds the same tokens in the same order. */
static void trained_tokens_are_those_of_the_library(void **state)
{
    fixture *f = *state;
    const char *path = FOLDER "lesson.txt";
    remat_tokenizer_options options;
    remat_tokenizer_options_init(&options);
    options.vocabulary = 100000;
    options.least = 1;
    options.special = "";
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_train(f->context, &path, 1, &options, &tokenizer));
    FILE *merges = fopen(FOLDER "lesson_merges.txt", "r");
    assert_non_null(merges);
    char line[1000];
    int32_t id = 256;
    for (; fgets(line, sizeof line, merges); id++) {
        chomp(line);
        const char *token = remat_tokenizer_token(tokenizer, id);
        assert_non_null(token);
        assert_string_equal(token, line);
    }
    fclose(merges);
    assert_true(id > 1000);
    assert_int_equal(remat_tokenizer_size(tokenizer), id);
    remat_tokenizer_destroy(tokenizer);
}

static void training_stops_where_no_pair_is_left(void **state)
{
    fixture *f = *state;
    const char *paths[] = {scratch_write_text("a.txt", "aaaa aaaa"), scratch_write_text("b.txt", "\xff")};
    remat_tokenizer_options options;
    remat_tokenizer_options_init(&options);
    options.special = "<s> </s>";
    options.pattern = "\\S+|\\s+";
    remat_tokenizer *tokenizer;
    expect_ok(f, remat_tokenizer_train(f->context, paths, 1, &options, &tokenizer));
    assert_int_equal(remat_tokenizer_find(tokenizer, "</s>"), 1);
    assert_int_equal(remat_tokenizer_size(tokenizer), 258 + 2); /* aa, aaaa */
    expect_ok(f, remat_tokenizer_save(tokenizer, scratch_path("split.json")));
    remat_tokenizer_destroy(tokenizer);
    expect_ok(f, remat_tokenizer_load(f->context, scratch_path("split.json"), &tokenizer));
    const int32_t *ids;
    size_t count;
    expect_ok(f, remat_tokenizer_encode(tokenizer, "aaaa</s>", 8, 1, &ids, &count));
    assert_int_equal(count, 2);
    assert_int_equal(ids[0], 259);
    assert_int_equal(ids[1], 1);
    remat_tokenizer_destroy(tokenizer);
    expect_status(f, remat_tokenizer_train(f->context, paths, 2, &options, &tokenizer), REMAT_BAD_INPUT);
    expect_message(f, "b.txt: byte 1 of the text, 0xff, is not UTF-8");
}

/* ---- memory ---- */

static remat_status use_tokenizer(remat_context *context, void *user)
{
    remat_tokenizer *tokenizer;
    const int32_t *ids;
    const char *decoded;
    size_t count, bytes;
    static const char text[] =
        "  Ünïcode e\xcc\x81 \xe2\x96\x81 [INST] 12 a_very_long_word_that_has_many_letters_in_a_row_without_end";
    remat_status status = remat_tokenizer_load(context, user, &tokenizer);
    FLOW(status, remat_tokenizer_encode(tokenizer, text, strlen(text), 1, &ids, &count));
    int32_t copy[256] = {0};
    if (status == REMAT_OK)
        memcpy(copy, ids, (count < 256 ? count : 256) * sizeof *ids);
    FLOW(status, remat_tokenizer_decode(tokenizer, copy, count < 256 ? count : 256, 1, &decoded, &bytes));
    remat_tokenizer_destroy(tokenizer);
    return status;
}

static remat_status train_tokenizer(remat_context *context, void *user)
{
    const char *path = user;
    remat_tokenizer *tokenizer;
    remat_status status = remat_tokenizer_train(context, &path, 1, NULL, &tokenizer);
    remat_tokenizer_destroy(tokenizer);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    static char qwen[] = FOLDER "qwen2.json", mistral[] = FOLDER "mistral.json", path[300];
    expect_failures_survived("a byte-level tokenizer", use_tokenizer, qwen, 50, 100);
    expect_failures_survived("a tokenizer of characters", use_tokenizer, mistral, 50, 100);
    snprintf(path, sizeof path, "%s", scratch_write_text("lesson.txt", lesson));
    expect_failures_survived("training", train_tokenizer, path, 30, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(ids_and_texts_are_those_of_the_library),
        FIXTURE_TEST(a_text_may_be_one_long_word),
        FIXTURE_TEST(tokens_are_found_by_id_and_text),
        FIXTURE_TEST(texts_that_are_no_utf8_are_refused),
        FIXTURE_TEST(broken_files_name_the_key_and_the_line),
        FIXTURE_TEST(patterns_that_are_not_supported_are_refused),
        FIXTURE_TEST(hostile_patterns_end),
        FIXTURE_TEST(files_that_are_not_there_are_named),
        FIXTURE_TEST(training_merges_the_most_frequent_pairs),
        FIXTURE_TEST(trained_tokens_are_those_of_the_library),
        FIXTURE_TEST(training_stops_where_no_pair_is_left),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
