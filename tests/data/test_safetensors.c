#include "support/fixture.h"
#include "support/scratch_files.h"

#include "data/safetensors_file.h"

#include <jansson.h>
#include <unistd.h>

/* A file made by hand: a header and bytes behind it. */
static const char *write_file(const char *header, const void *data, size_t bytes)
{
    char file[8192];
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, data, bytes);
    return scratch_write("a.safetensors", file, 8 + length + bytes);
}

static void expect_bad(fixture *f, const char *path, const char *message)
{
    safetensors *file;
    expect_status(f, safetensors_open(f->context, path, &file), REMAT_BAD_INPUT);
    assert_null(file);
    expect_message(f, message);
    expect_message(f, "a.safetensors");
}

static const float values[] = {1, -2, 3.5f, 0, 1e-30f, 1e30f, 7};

static const safetensors_entry entries[] = {
    {"fc1.weight", 2, {2, 3}, values, REMAT_FP32},
    {"fc1.bias", 1, {3}, values + 1, REMAT_FP32},
    {"scale", 0, {0}, values + 6, REMAT_FP32},
    {"nothing", 2, {0, 5}, NULL, REMAT_FP32},
    {"odd \"name\"\n\xc3\xa9", 4, {1, 1, 1, 1}, values + 2, REMAT_FP32},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };
static const safetensors_text texts[] = {{"format", "remat"}, {"step", "12"}, {"quoted \"key\"", ""}};

static void save(fixture *f, const char *path)
{
    expect_ok(f, safetensors_save(f->context, path, entries, ENTRIES, texts, 3, NULL));
}

static void what_is_saved_is_read(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("w.safetensors");
    save(f, path);
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, path, &file));
    assert_int_equal(file->count, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        const safetensors_tensor *tensor = safetensors_find(file, entries[i].name);
        assert_non_null(tensor);
        assert_string_equal(tensor->name, entries[i].name);
        assert_string_equal(tensor->dtype, "F32");
        assert_int_equal(tensor->rank, entries[i].rank);
        assert_memory_equal(tensor->dims, entries[i].dims, entries[i].rank * sizeof(uint64_t));
        float got[8];
        expect_ok(f, safetensors_read(file, tensor, got, tensor->values));
        if (tensor->values)
            assert_memory_equal(got, entries[i].data, tensor->values * sizeof(float));
        expect_status(f, safetensors_read(file, tensor, got, tensor->values + 1), REMAT_INVALID);
    }
    assert_null(safetensors_find(file, "fc1"));
    assert_null(safetensors_find(file, "zzz"));
    assert_null(safetensors_find(file, ""));
    assert_string_equal(safetensors_metadata(file, "step"), "12");
    assert_string_equal(safetensors_metadata(file, "quoted \"key\""), "");
    assert_null(safetensors_metadata(file, "none"));
    safetensors_close(file);
    safetensors_close(NULL);
    expect_ok(f, safetensors_save(f->context, path, NULL, 0, NULL, 0, NULL));
    expect_ok(f, safetensors_open(f->context, path, &file));
    assert_int_equal(file->count, 0);
    safetensors_close(file);
}

/* The bytes, taken apart by jansson and the format's description alone. */
static void the_bytes_are_as_the_format_says(void **state)
{
    fixture *f = *state;
    save(f, scratch_path("w.safetensors"));
    size_t length;
    char *bytes = scratch_read(scratch_path("w.safetensors"), &length);
    uint64_t header;
    memcpy(&header, bytes, 8);
    assert_int_equal(header % 8, 0);
    assert_true(bytes[8] == '{');
    json_t *tree = json_loadb(bytes + 8, header, 0, NULL);
    assert_non_null(tree);
    assert_string_equal(json_string_value(json_object_get(json_object_get(tree, "__metadata__"), "format")), "remat");
    json_int_t reached = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        json_t *tensor = json_object_get(tree, entries[i].name), *offsets = json_object_get(tensor, "data_offsets");
        assert_string_equal(json_string_value(json_object_get(tensor, "dtype")), "F32");
        assert_int_equal(json_array_size(json_object_get(tensor, "shape")), entries[i].rank);
        json_int_t count = 1;
        for (size_t d = 0; d < entries[i].rank; d++)
            count *= json_integer_value(json_array_get(json_object_get(tensor, "shape"), d));
        assert_int_equal(json_integer_value(json_array_get(offsets, 0)), reached);
        if (count)
            assert_memory_equal(bytes + 8 + header + reached, entries[i].data, (size_t)count * 4);
        reached += count * 4;
        assert_int_equal(json_integer_value(json_array_get(offsets, 1)), reached);
    }
    assert_int_equal(8 + header + (uint64_t)reached, length);
    json_decref(tree);
    save(f, scratch_path("v.safetensors"));
    size_t second_length;
    char *second = scratch_read(scratch_path("v.safetensors"), &second_length);
    assert_int_equal(length, second_length);
    assert_memory_equal(bytes, second, length);
    free(bytes);
    free(second);
}

/* The same by a reader in another language, where there is one. */
static void python_reads_it(void **state)
{
    fixture *f = *state;
    if (system("python3 -c pass >/dev/null 2>&1") != 0)
        skip();
    static const float some[] = {1, -2, 0.5f, 0, 3, 256};
    const safetensors_entry two[] = {{"fc1.weight", 2, {2, 2}, some, REMAT_FP32},
                                     {"fc1.bias", 1, {2}, some + 4, REMAT_FP32}};
    const char *path = scratch_path("p.safetensors");
    expect_ok(f, safetensors_save(f->context, path, two, 2, texts, 2, NULL));
    char command[700], got[1000];
    snprintf(command, sizeof command, "python3 tests/reference/read_safetensors.py %s", path);
    FILE *reader = popen(command, "r");
    assert_non_null(reader);
    got[fread(got, 1, sizeof got - 1, reader)] = '\0';
    assert_int_equal(pclose(reader), 0);
    /* The checksums are part of the format: they stay as they are. */
    assert_string_equal(got, "metadata [\"format\", \"remat\"]\n"
                             "metadata [\"remat_checksum\", \"3161bdfdf4faa4c2\"]\n"
                             "metadata [\"remat_tensor_checksums\", \"c57d6af321692f7a9767da78d1013864\"]\n"
                             "metadata [\"step\", \"12\"]\n"
                             "tensor [\"fc1.weight\", [2, 2], [1.0, -2.0, 0.5, 0.0]]\n"
                             "tensor [\"fc1.bias\", [2], [3.0, 256.0]]\n");
}

/* Files with other types, as frameworks write them. */
static void other_types_are_converted(void **state)
{
    fixture *f = *state;
    static const struct {
        double wide[2];
        uint16_t half[2], brain[2];
        uint32_t ids[1];
    } data = {{1.5, -1e300}, {0x3c00, 0xc100}, {0x3f80, 0xc000}, {5}};
    const char *path = write_file("{\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[24,28]},"
                                  " \"b\":{\"data_offsets\":[20,24],\"dtype\":\"BF16\",\"shape\":[2]},"
                                  "\"h\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[16,20]},"
                                  "\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}      ",
                                  &data, 28);
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, path, &file));
    float got[2];
    expect_ok(f, safetensors_read(file, safetensors_find(file, "d"), got, 2));
    assert_true(got[0] == 1.5f && got[1] < -1e38f);
    expect_ok(f, safetensors_read(file, safetensors_find(file, "h"), got, 2));
    assert_true(got[0] == 1.0f && got[1] == -2.5f);
    expect_ok(f, safetensors_read(file, safetensors_find(file, "b"), got, 2));
    assert_true(got[0] == 1.0f && got[1] == -2.0f);
    expect_status(f, safetensors_read(file, safetensors_find(file, "i"), got, 1), REMAT_BAD_INPUT);
    expect_message(f, "'i' has values of type I32; weights must be F32, F16, BF16 or F64");
    safetensors_close(file);
    /* Longer than what is converted at once. */
    enum { MANY = 5000 };
    double *wide = malloc(MANY * sizeof *wide);
    float *narrow = malloc(MANY * sizeof *narrow);
    char *bytes = malloc(128 + MANY * 8);
    memset(bytes, ' ', 128);
    uint64_t length = 120;
    memcpy(bytes, &length, 8);
    static const char header[] = "{\"d\":{\"dtype\":\"F64\",\"shape\":[5000],\"data_offsets\":[0,40000]}}";
    memcpy(bytes + 8, header, strlen(header));
    for (int i = 0; i < MANY; i++)
        wide[i] = i * 0.5;
    memcpy(bytes + 128, wide, MANY * 8);
    expect_ok(f, safetensors_open(f->context, scratch_write("m.safetensors", bytes, 128 + MANY * 8), &file));
    expect_ok(f, safetensors_read(file, safetensors_find(file, "d"), narrow, MANY));
    for (int i = 0; i < MANY; i++)
        assert_true(narrow[i] == (float)i * 0.5f);
    safetensors_close(file);
    free(wide);
    free(narrow);
    free(bytes);
}

static void bad_files_say_what_is_wrong(void **state)
{
    fixture *f = *state;
#define T(type, shape, from, to) "{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
    static const struct {
        const char *header, *message;
    } bad[] = {
        {"{\"a\":" T("F32", "2", "0", "8") ",\"b\":" T("F32", "1", "4", "8") "}", "'b' starts at byte 4"},
        {"{\"a\":" T("F32", "1", "0", "4") ",\"b\":" T("F32", "0", "8", "8") "}", "'b' starts at byte 8"},
        {"{\"a\":" T("F32", "1", "4", "8") "}", "'a' starts at byte 4; what lies before it ends at 0"},
        {"{\"a\":" T("F32", "1", "0", "4") "}", "the tensors need 4 bytes, behind the header are 8"},
        {"{\"a\":" T("F32", "3", "0", "12") "}", "the tensors need 12 bytes"},
        {"{}", "the tensors need 0 bytes"},
        {"{\"a\":" T("F32", "2", "0", "4") "}", "0 to 4; its type and shape need 8 bytes"},
        {"{\"a\":" T("F32", "2", "8", "0") "}", "8 to 0"},
        {"{\"a\":" T("F33", "2", "0", "8") "}", "type 'F33' is unknown"},
        {"{\"a\":" T("F32", "-2", "0", "8") "}", "whole numbers"},
        {"{\"a\":" T("F32", "2.0", "0", "8") "}", "whole numbers"},
        {"{\"a\":" T("F32", "1,1,1,1,1,1,1,1,2", "0", "8") "}", "more than 8 dimensions"},
        {"{\"a\":" T("F32", "4294967296,4294967296", "0", "8") "}", "2^63 values"},
        {"{\"a\":" T("F64", "2305843009213693952", "0", "8") "}", "2^63 bytes"},
        {"{\"a\":" T("F32", "2", "0", "8,8") "}", "two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", "two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype: there twice"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", "nothing else"},
        {"{\"a\":" T("F32", "1", "0", "4") ",\"a\":" T("F32", "1", "4", "8") "}", "'a' is there twice"},
        {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"},\"a\":" T("F32", "2", "0", "8") "}", "has 'k' twice"},
        {"{\"__metadata__\":{\"k\":1},\"a\":" T("F32", "2", "0", "8") "}", "it must be a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{},\"a\":" T("F32", "2", "0", "8") "}", "there twice"},
        {"{\"a\":5}", "it must be an object"},
        {"{\"a\":" T("F32", "2", "0", "8") "} x", "the end of the text"},
        {"{\"a\":" T("F32", "2", "0", "8"), "the text ends"},
        {" {}", "does not start with '{'"},
        {"[]", "does not start with '{'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_bad(f, write_file(bad[i].header, "12345678", 8), bad[i].message);
    expect_bad(f, scratch_write("a.safetensors", "1234567", 7), "7 bytes are too few");
    expect_bad(f, scratch_write("a.safetensors", "\x10\0\0\0\0\0\0\0{}", 10), "a header of 16 bytes in a file of 10");
    expect_bad(f, scratch_write("a.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "a header of");
    expect_bad(f, scratch_write("a.safetensors", "\0\0\0\0\0\0\0\0{}", 10), "a header of 0");
    safetensors *file;
    expect_status(f, safetensors_open(f->context, scratch_path("none"), &file), REMAT_IO);
}

static void names_are_checked_when_saving(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("n.safetensors");
    safetensors_entry twice[] = {
        {"a", 1, {1}, values, REMAT_FP32}, {"b", 1, {1}, values, REMAT_FP32}, {"a", 1, {1}, values, REMAT_FP32}};
    expect_status(f, safetensors_save(f->context, path, twice, 3, NULL, 0, NULL), REMAT_INVALID);
    expect_message(f, "two tensors are called 'a'");
    twice[0].name = "__metadata__";
    expect_status(f, safetensors_save(f->context, path, twice, 1, NULL, 0, NULL), REMAT_INVALID);
    twice[0] = (safetensors_entry){"a", 9, {1}, values, REMAT_FP32};
    expect_status(f, safetensors_save(f->context, path, twice, 1, NULL, 0, NULL), REMAT_INVALID);
    twice[0] = (safetensors_entry){"a", 2, {(uint64_t)1 << 40, (uint64_t)1 << 40}, values, REMAT_FP32};
    expect_status(f, safetensors_save(f->context, path, twice, 1, NULL, 0, NULL), REMAT_INVALID);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* What could not be read again is not written. */
static void files_have_limits(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("limit.safetensors");
    expect_status(f, safetensors_save(f->context, path, entries, SAFETENSORS_MAX_ENTRIES + 1, NULL, 0, NULL),
                  REMAT_INVALID);
    expect_message(f, "1000001 tensors; a file can have at most 1000000");
    if (LESS_WHEN_SANITIZED(false, true))
        return; /* 100 MB letter by letter take their time */
    enum { LENGTH = SAFETENSORS_MAX_HEADER / 8 };
    char *name = malloc(LENGTH + 1);
    safetensors_entry named[8];
    memset(name, 'n', LENGTH);
    name[LENGTH] = '\0';
    for (size_t i = 0; i < 8; i++)
        named[i] = (safetensors_entry){name + i, 1, {1}, values, REMAT_FP32};
    expect_status(f, safetensors_save(f->context, path, named, 8, NULL, 0, NULL), REMAT_INVALID);
    expect_message(f, "bytes; a file can have at most 100000000");
    assert_int_equal(access(path, F_OK), -1);
    free(name);
}

static void a_failed_save_leaves_the_old_file(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("w.safetensors");
    save(f, path);
    size_t length, again_length;
    char *before = scratch_read(path, &length);
    uint64_t calls = f->memory.calls;
    save(f, path);
    calls = f->memory.calls - calls;
    for (uint64_t i = 1; i <= calls; i++) {
        f->memory.fail_at = f->memory.calls + i;
        expect_status(f, safetensors_save(f->context, path, entries, 2, NULL, 0, NULL), REMAT_NO_MEMORY);
        char *after = scratch_read(path, &again_length);
        assert_int_equal(length, again_length);
        assert_memory_equal(before, after, length);
        free(after);
    }
    f->memory.fail_at = 0;
    free(before);
    expect_status(f, safetensors_save(f->context, "/dev/full", entries, ENTRIES, texts, 3, NULL), REMAT_IO);
    expect_status(f, safetensors_save(f->context, "/nowhere/w", entries, ENTRIES, texts, 3, NULL), REMAT_IO);
}

static void opening_survives_failed_allocations(void **state)
{
    fixture *f = *state;
    const char *path = scratch_path("w.safetensors");
    save(f, path);
    safetensors *file;
    uint64_t calls = f->memory.calls;
    expect_ok(f, safetensors_open(f->context, path, &file));
    calls = f->memory.calls - calls;
    safetensors_close(file);
    for (uint64_t i = 1; i <= calls; i++) {
        f->memory.fail_at = f->memory.calls + i;
        expect_status(f, safetensors_open(f->context, path, &file), REMAT_NO_MEMORY);
        assert_null(file);
    }
    f->memory.fail_at = 0;
}

static void random_damage_never_crashes(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    save(f, scratch_path("w.safetensors"));
    size_t length;
    char *good = scratch_read(scratch_path("w.safetensors"), &length), *copy = malloc(length);
    /* Without checksums, which would find most of the damage before anything else does. */
    memcpy(strstr(good + 8, "remat_tensor"), "other", 5);
    memcpy(strstr(good + 8, "remat_check"), "other", 5);
    int opened = 0;
    for (int turn = 0; turn < LESS_WHEN_SANITIZED(4000, 1000); turn++) {
        memcpy(copy, good, length);
        for (uint64_t i = test_random_below(&random, 3); i != UINT64_MAX; i--) {
            size_t at = test_random_below(&random, length);
            copy[at] = test_random_below(&random, 2) ? "0123456789[]{},\":"[test_random_below(&random, 17)]
                                                     : (char)test_random_next(&random);
        }
        size_t cut = test_random_below(&random, 4) ? length : test_random_below(&random, length + 1);
        safetensors *file;
        remat_status status = safetensors_open(f->context, scratch_write("d.safetensors", copy, cut), &file);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT);
        for (size_t i = 0; status == REMAT_OK && i < file->count; i++) {
            const safetensors_tensor *tensor = &file->tensors[i];
            assert_true(tensor->end <= length);
            float *to = malloc(tensor->values * sizeof *to + 1);
            safetensors_read(file, tensor, to, tensor->values);
            free(to);
        }
        opened += status == REMAT_OK;
        safetensors_close(file);
    }
    assert_true(opened > 0); /* where only values or letters of names were hit */
    free(good);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_saved_is_read),
        FIXTURE_TEST(the_bytes_are_as_the_format_says),
        FIXTURE_TEST(other_types_are_converted),
        FIXTURE_TEST(bad_files_say_what_is_wrong),
        FIXTURE_TEST(names_are_checked_when_saving),
        FIXTURE_TEST(files_have_limits),
        FIXTURE_TEST(a_failed_save_leaves_the_old_file),
        FIXTURE_TEST(random_damage_never_crashes),
        FIXTURE_TEST(opening_survives_failed_allocations),
        FIXTURE_TEST(python_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
