#include "support/fixture.h"

#include "base/ini_reader.h"

static remat_status read_bytes(fixture *f, const void *bytes, size_t length, ini_file **file)
{
    FILE *stream = stream_of(bytes, length);
    remat_status status = ini_read(f->context, stream, "text", file);
    fclose(stream);
    if (status != REMAT_OK)
        assert_null(*file);
    return status;
}

static ini_file *read_text(fixture *f, const char *text)
{
    ini_file *file;
    expect_ok(f, read_bytes(f, text, strlen(text), &file));
    return file;
}

static void expect_section(const ini_file *file, size_t number, const char *name, uint64_t line, size_t count)
{
    assert_true(number < file->section_count);
    assert_string_equal(file->sections[number].name, name);
    assert_int_equal(file->sections[number].line, line);
    assert_int_equal(file->sections[number].count, count);
}

static void expect_entry(const ini_file *file, size_t number, const char *key, const char *value, uint64_t line)
{
    assert_true(number < file->entry_count);
    assert_string_equal(file->entries[number].key, key);
    assert_string_equal(file->entries[number].value, value);
    assert_int_equal(file->entries[number].line, line);
}

static void sections_and_keys_have_their_lines(void **state)
{
    ini_file *file = read_text(*state, "[Model]\nbatch_size = 4\n\n[fc1]\n  Type=fully_connected  \nunit\t=\t5\n");
    assert_int_equal(file->section_count, 2);
    assert_int_equal(file->entry_count, 3);
    expect_section(file, 0, "Model", 1, 1);
    expect_section(file, 1, "fc1", 4, 2);
    expect_entry(file, 0, "batch_size", "4", 2);
    expect_entry(file, 1, "type", "fully_connected", 5);
    expect_entry(file, 2, "unit", "5", 6);
    ini_destroy(file);
}

static void keys_fold_and_values_do_not(void **state)
{
    ini_file *file = read_text(*state, "[ A b ]\nBatch-Size = Some-Value = 5\n");
    expect_section(file, 0, "A b", 1, 1);
    expect_entry(file, 0, "batch_size", "Some-Value = 5", 2);
    ini_destroy(file);
}

static void comments_begin_lines_or_stand_behind_white_space(void **state)
{
    ini_file *file = read_text(*state, "# one\n; two\n[a] # three\nk = v ; four\nl = a#b;c # five\n  # six\nm = 1\t#7");
    assert_int_equal(file->entry_count, 3);
    expect_entry(file, 0, "k", "v", 4);
    expect_entry(file, 1, "l", "a#b;c", 5);
    expect_entry(file, 2, "m", "1", 7);
    ini_destroy(file);
}

static void marks_and_line_ends_of_other_systems_are_fine(void **state)
{
    ini_file *file = read_text(*state, "\xef\xbb\xbf[a]\r\nk = v\r\r\n\r\n[\xc3\xa4]\r\nl = w");
    assert_int_equal(file->section_count, 2);
    expect_entry(file, 0, "k", "v", 2);
    expect_section(file, 1, "\xc3\xa4", 4, 1);
    expect_entry(file, 1, "l", "w", 5);
    ini_destroy(file);
}

static void lines_may_be_long(void **state)
{
    enum { LENGTH = 300000 };
    char *text = malloc(LENGTH + 32);
    strcpy(text, "[a]\nk = ");
    memset(text + 8, 'x', LENGTH);
    strcpy(text + 8 + LENGTH, "\nl = y\n");
    ini_file *file = read_text(*state, text);
    assert_int_equal(strlen(file->entries[0].value), LENGTH);
    expect_entry(file, 1, "l", "y", 3);
    ini_destroy(file);
    free(text);
}

static void an_empty_file_is_an_empty_file(void **state)
{
    ini_file *file = read_text(*state, "");
    assert_int_equal(file->section_count, 0);
    ini_destroy(file);
    file = read_text(*state, "\n\n  \n# nothing\n");
    assert_int_equal(file->section_count, 0);
    ini_destroy(file);
}

static void refused(fixture *f, const char *text, uint64_t line, const char *reason)
{
    ini_file *file;
    expect_status(f, read_bytes(f, text, strlen(text), &file), REMAT_BAD_INPUT);
    expect_message(f, "text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, line);
}

static void errors_name_the_line(void **state)
{
    fixture *f = *state;
    refused(f, "k = v\n", 1, "before the first section");
    refused(f, "[a]\nk v\n", 2, "neither [SECTION] nor key = value");
    refused(f, "[a]\n = v\n", 2, "key before '=' is missing");
    refused(f, "[a]\nk =\n", 2, "'k' has no value");
    refused(f, "[a]\nk = # nothing\n", 2, "'k' has no value");
    refused(f, "[a\nk = v\n", 1, "']' is missing");
    refused(f, "[a] k = v\n", 1, "behind the section");
    refused(f, "\n[ ]\n", 2, "needs a name");
    refused(f, "[a]\nk k = v\n", 2, "is no key");
    refused(f, "[a]\nk = v\n\nK = w\n", 4, "the first time in line 2");
    refused(f, "[a]\nk = \xff\n", 2, "not UTF-8");
    ini_file *file;
    expect_status(f, read_bytes(f, "[a]\nk\0= v\n", 10, &file), REMAT_BAD_INPUT);
    expect_message(f, "text:2: NUL byte");
}

static void too_many_keys_are_refused(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    fprintf(text.stream, "[a]\n");
    for (int i = 0; i <= INI_MOST_KEYS; i++)
        fprintf(text.stream, "k%d = v\n", i);
    capture_end(&text);
    refused(f, text.text, INI_MOST_KEYS + 2, "more than 1024 keys");
    free(text.text);
}

/* Random bytes, many of them the ones that mean something. */
static void nothing_that_can_be_read_does_harm(void **state)
{
    fixture *f = *state;
    static const char letters[] = "[]=#;\n\r\t aB-_.{}\"\xef\xbb\xbf\xc3\xa4\0\xff";
    uint64_t seed = test_seed();
    test_random random = {seed};
    for (int round = 0; round < LESS_WHEN_SANITIZED(20000, 4000); round++) {
        char bytes[200];
        size_t length = test_random_below(&random, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = test_random_below(&random, 12) ? letters[test_random_below(&random, sizeof letters)]
                                                      : (char)test_random_next(&random);
        ini_file *file;
        remat_status status = read_bytes(f, bytes, length, &file);
        if (status != REMAT_OK && status != REMAT_BAD_INPUT)
            fail_msg("seed %llu: status %d", (unsigned long long)seed, status);
        ini_destroy(file);
    }
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    for (int i = 0; i < 40; i++)
        fprintf(text.stream, "[section%d]\nkey = %0200d\n", i, i);
    capture_end(&text);
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; status == REMAT_NO_MEMORY; n++) {
        f->memory.fail_at = f->memory.calls + n;
        ini_file *file;
        status = read_bytes(f, text.text, text.length, &file);
        ini_destroy(file);
        if (status == REMAT_NO_MEMORY)
            assert_int_equal(f->memory.blocks, 1); /* the context */
    }
    assert_int_equal(status, REMAT_OK);
    free(text.text);
}

static void settings_change_a_file(void **state)
{
    fixture *f = *state;
    static const char *const optional[] = {"model", "optimizer", NULL};
    ini_file *file = read_text(f, "[Model]\nseed = 4\n[h.fc : conv2d]\nunit = 2\n[loss]\ntype = mse\n");
    expect_ok(f, ini_set(file, "model.Batch-Size=7", optional));
    expect_ok(f, ini_set(file, "MODEL.seed=5", optional));
    expect_ok(f, ini_set(file, "h.fc.unit=3", optional));
    expect_ok(f, ini_set(file, "h.fc.type=fully_connected", optional));
    expect_ok(f, ini_set(file, "optimizer.type=adam", optional));
    assert_int_equal(file->section_count, 4);
    assert_string_equal(file->sections[1].name, "h.fc:fully_connected");
    expect_entry(file, 0, "seed", "5", INI_SETTING + 1);
    expect_entry(file, 1, "batch_size", "7", INI_SETTING);
    expect_entry(file, file->sections[1].first, "unit", "3", INI_SETTING + 2);
    assert_true(file->sections[1].line == 3 && file->sections[1].changed == INI_SETTING + 3);
    assert_true(file->sections[2].line == 5 && file->sections[2].changed == 0);
    expect_entry(file, file->sections[2].first, "type", "mse", 6);
    expect_entry(file, file->sections[3].first, "type", "adam", INI_SETTING + 4);
    expect_status(f, ini_set(file, "lost.type=mse", optional), REMAT_INVALID);
    expect_message(f, "text has no section 'lost'; did you mean 'loss'?");
    static const char *const bad[] = {
        "", "seed=3", "model.seed", "model.seed=", "model.=3", ".seed=3", "=3", "\xff.a=b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_status(f, ini_set(file, bad[i], optional), REMAT_INVALID);
        expect_message(f, "write SECTION.KEY=VALUE");
    }
    ini_destroy(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(settings_change_a_file),
        FIXTURE_TEST(sections_and_keys_have_their_lines),
        FIXTURE_TEST(keys_fold_and_values_do_not),
        FIXTURE_TEST(comments_begin_lines_or_stand_behind_white_space),
        FIXTURE_TEST(marks_and_line_ends_of_other_systems_are_fine),
        FIXTURE_TEST(lines_may_be_long),
        FIXTURE_TEST(an_empty_file_is_an_empty_file),
        FIXTURE_TEST(errors_name_the_line),
        FIXTURE_TEST(too_many_keys_are_refused),
        FIXTURE_TEST(nothing_that_can_be_read_does_harm),
        FIXTURE_TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
