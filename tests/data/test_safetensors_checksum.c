/* Damaged weights files are refused, whichever bit is wrong. */
#include "support/fixture.h"
#include "support/scratch_files.h"

#include "base/hash.h"
#include "data/safetensors_file.h"

static const float values[] = {1, -2, 3.5f, 0, 1e-30f, 1e30f, 7, 8, 9};

static const safetensors_entry entries[] = {
    {"fc1.weight", 2, {2, 3}, values, REMAT_FP32},
    {"fc1.bias", 1, {3}, values + 1, REMAT_FP32},
    {"scale", 0, {0}, values + 6, REMAT_FP32},
    {"nothing", 2, {0, 5}, NULL, REMAT_FP32},
};
enum { ENTRIES = sizeof entries / sizeof entries[0], TEXTS = 3 };
static const safetensors_text texts[TEXTS] = {{"format", "remat-weights"}, {"version", "2"}, {"step", "12"}};

static char *saved(fixture *f, const safetensors_entry *some, const safetensors_text *metadata, size_t *length)
{
    const char *path = scratch_path("good.safetensors");
    expect_ok(f, safetensors_save(f->context, path, some, ENTRIES, metadata, TEXTS, NULL));
    return scratch_read(path, length);
}

/* Opens and reads everything. */
static remat_status read_all(fixture *f, const char *path, bool expect_same)
{
    safetensors *file;
    REMAT_TRY(safetensors_open(f->context, path, &file));
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < file->count && status == REMAT_OK; i++) {
        float got[sizeof values / sizeof values[0]];
        const safetensors_tensor *tensor = &file->tensors[i];
        assert_true(tensor->values <= sizeof values / sizeof values[0]);
        status = safetensors_check(file, tensor);
        /* Reading finds what checking finds. */
        assert_int_equal(safetensors_read(file, tensor, got, tensor->values), status);
    }
    for (size_t i = 0; i < ENTRIES && status == REMAT_OK && expect_same; i++) {
        float got[sizeof values / sizeof values[0]];
        const safetensors_tensor *tensor = safetensors_find(file, entries[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->rank, entries[i].rank);
        assert_memory_equal(tensor->dims, entries[i].dims, tensor->rank * sizeof(uint64_t));
        expect_ok(f, safetensors_read(file, tensor, got, tensor->values));
        if (tensor->values)
            assert_memory_equal(got, entries[i].data, tensor->values * sizeof(float));
    }
    for (size_t i = 0; i < TEXTS && status == REMAT_OK && expect_same; i++)
        assert_string_equal(safetensors_metadata(file, texts[i].key), texts[i].value);
    safetensors_close(file);
    return status;
}

static void every_wrong_bit_is_found(void **state)
{
    fixture *f = *state;
    size_t length, refused = 0;
    char *bytes = saved(f, entries, texts, &length);
    expect_ok(f, read_all(f, scratch_path("good.safetensors"), true));
    for (size_t bit = 0; bit < length * 8; bit += LESS_WHEN_SANITIZED(1, 5)) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        remat_status status = read_all(f, scratch_write("bad.safetensors", bytes, length), true);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT);
        refused += status == REMAT_BAD_INPUT;
    }
    /* Only blanks behind the header may change without changing anything. */
    assert_true(refused >= (length * 8 - 7 * 8) / LESS_WHEN_SANITIZED(1, 5));
    free(bytes);
}

static void damage_is_named(void **state)
{
    fixture *f = *state;
    size_t length;
    char *bytes = saved(f, entries, texts, &length);
    bytes[length - 3 * 4 - 4] ^= 1; /* the first number of fc1.bias */
    expect_status(f, read_all(f, scratch_write("bad.safetensors", bytes, length), false), REMAT_BAD_INPUT);
    expect_message(f, "bad.safetensors: fc1.bias: the file is damaged: the values of this tensor have the checksum ");
    bytes[length - 3 * 4 - 4] ^= 1;
    char *step = strstr(bytes + 8, "\"12\"");
    step[1] = '2';
    expect_status(f, read_all(f, scratch_write("bad.safetensors", bytes, length), false), REMAT_BAD_INPUT);
    expect_message(f, "bad.safetensors: the file is damaged: its header has the checksum ");
    step[1] = '1';
    static const char *const keys[] = {"remat_checksum", "remat_tensor_checksums"};
    for (size_t i = 0; i < 2; i++) { /* one without the other */
        char *key = strstr(bytes + 8, keys[i]);
        key[0] = 'x';
        expect_status(f, read_all(f, scratch_write("bad.safetensors", bytes, length), false), REMAT_BAD_INPUT);
        expect_message(f, "the file is damaged");
        key[0] = 'r';
    }
    free(bytes);
}

/* What other programs write, with any metadata, is read as it is. */
static void files_without_checksums_are_read(void **state)
{
    fixture *f = *state;
    size_t length;
    char *bytes = saved(f, entries, texts, &length);
    memcpy(strstr(bytes + 8, "remat_checksum"), "other", 5);
    memcpy(strstr(bytes + 8, "remat_tensor"), "other", 5);
    bytes[length - 1] ^= 1;
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, scratch_write("other.safetensors", bytes, length), &file));
    assert_false(safetensors_has_checksums(file));
    safetensors_close(file);
    expect_ok(f, read_all(f, scratch_path("other.safetensors"), false));
    free(bytes);
}

/* The definition in docs/formats.md, without the library's own functions. */
static void checksums_are_as_documented(void **state)
{
    fixture *f = *state;
    static const char item[] = "fc1.weight\0F32\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0"; /* and the NUL of the literal */
    static const char *const sorted[] = {"fc1.bias", "fc1.weight", "nothing", "scale"};
    size_t length;
    free(saved(f, entries, texts, &length));
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, scratch_path("good.safetensors"), &file));
    assert_true(safetensors_has_checksums(file));
    char of_tensors[ENTRIES * 16 + 1], of_header[17], pair[200];
    uint64_t sum = XXH3_64bits(item, sizeof item) + XXH3_64bits("fc1.bias\0F32\0\3\0\0\0\0\0\0", 8 + 1 + 4 + 8) +
                   XXH3_64bits("nothing\0F32\0\0\0\0\0\0\0\0\0\5\0\0\0\0\0\0", 7 + 1 + 4 + 16) +
                   XXH3_64bits("scale\0F32", 5 + 1 + 4);
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t e = 0; e < ENTRIES; e++)
            if (strcmp(entries[e].name, sorted[i]) == 0)
                sprintf(of_tensors + 16 * i, "%016llx",
                        (unsigned long long)XXH3_64bits(entries[e].data,
                                                        safetensors_find(file, sorted[i])->values * sizeof(float)));
    assert_string_equal(safetensors_metadata(file, "remat_tensor_checksums"), of_tensors);
    for (size_t i = 0; i <= TEXTS; i++) {
        const char *key = i < TEXTS ? texts[i].key : "remat_tensor_checksums";
        int used = sprintf(pair, "%s%c%s", key, 0, i < TEXTS ? texts[i].value : of_tensors);
        sum += XXH3_64bits(pair, (size_t)used + 1);
    }
    sprintf(of_header, "%016llx", (unsigned long long)sum);
    assert_string_equal(safetensors_metadata(file, "remat_checksum"), of_header);
    safetensors_close(file);
}

static void the_order_does_not_matter(void **state)
{
    fixture *f = *state;
    safetensors_entry backwards[ENTRIES];
    safetensors_text turned[TEXTS];
    for (size_t i = 0; i < ENTRIES; i++)
        backwards[i] = entries[ENTRIES - 1 - i];
    for (size_t i = 0; i < TEXTS; i++)
        turned[i] = texts[TEXTS - 1 - i];
    size_t length, other_length;
    char *bytes = saved(f, entries, texts, &length), *other = saved(f, backwards, turned, &other_length);
    expect_ok(f, read_all(f, scratch_path("good.safetensors"), true));
    assert_memory_equal(strstr(bytes + 8, "remat_tensor"), strstr(other + 8, "remat_tensor"), 120);
    /* Checksums among the metadata that is given are those of another file. */
    turned[0] = (safetensors_text){"remat_checksum", "0"};
    free(other);
    other = saved(f, entries, turned, &other_length);
    assert_null(strstr(other + 8, "\"remat_checksum\":\"0\""));
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, scratch_path("good.safetensors"), &file));
    assert_true(safetensors_has_checksums(file));
    safetensors_close(file);
    free(bytes);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_wrong_bit_is_found),         FIXTURE_TEST(damage_is_named),
        FIXTURE_TEST(files_without_checksums_are_read), FIXTURE_TEST(checksums_are_as_documented),
        FIXTURE_TEST(the_order_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
