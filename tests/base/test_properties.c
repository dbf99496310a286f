/* Properties: every kind, default values, messages. */
#include "base/properties.h"
#include "support/fixture.h"

static const char *const colours[] = {"red", "dark_green", NULL};

typedef struct sample_options {
    uint64_t count;
    double number;
    bool flag;
    uint32_t choice;
    uint64_t pair[2];
    uint64_t dims[3];
    const char *text;
    uint64_t open; /* without an upper limit */
} sample_options;

static const property sample_properties[] = {
    {"some_count", PROPERTY_COUNT, offsetof(sample_options, count), NULL, 2, 100, NULL, ""},
    {"number", PROPERTY_NUMBER, offsetof(sample_options, number), "0.5", -1, 1, NULL, ""},
    {"flag", PROPERTY_FLAG, offsetof(sample_options, flag), "true", 0, 0, NULL, ""},
    {"colour", PROPERTY_CHOICE, offsetof(sample_options, choice), "dark_green", 0, 0, colours, ""},
    {"pair", PROPERTY_PAIR, offsetof(sample_options, pair), "3", 1, 9, NULL, ""},
    {"shape", PROPERTY_DIMS, offsetof(sample_options, dims), NULL, 0, 0, NULL, ""},
    {"text", PROPERTY_TEXT, offsetof(sample_options, text), "", 0, 0, NULL, ""},
    {"open", PROPERTY_COUNT, offsetof(sample_options, open), "1", 1, 0, NULL, ""},
    {0},
};

static void test_default_values(void **state)
{
    fixture *f = *state;
    sample_options options = {0};
    options.text = "something";
    expect_ok(f, properties_init(f->context, sample_properties, &options));
    assert_int_equal(options.count, 0);
    assert_true(options.number == 0.5);
    assert_true(options.flag);
    assert_int_equal(options.choice, 1);
    assert_int_equal(options.pair[0], 3);
    assert_int_equal(options.pair[1], 3);
    assert_null(options.text);
}

static void set(fixture *f, sample_options *options, const char *key, const char *text)
{
    expect_ok(f, property_set(f->context, "sample", sample_properties, options, key, text));
}

static void test_reading(void **state)
{
    fixture *f = *state;
    sample_options options = {0};
    set(f, &options, "some_count", "100");
    assert_int_equal(options.count, 100);
    set(f, &options, "Some-Count", " 2 ");
    assert_int_equal(options.count, 2);
    set(f, &options, "NUMBER", "-2.5e-1");
    assert_true(options.number == -0.25);
    set(f, &options, "flag", "False");
    assert_false(options.flag);
    set(f, &options, "colour", "Dark-Green");
    assert_int_equal(options.choice, 1);
    set(f, &options, "pair", "4, 5");
    assert_int_equal(options.pair[0], 4);
    assert_int_equal(options.pair[1], 5);
    set(f, &options, "shape", "7");
    assert_true(options.dims[0] == 1 && options.dims[1] == 1 && options.dims[2] == 7);
    set(f, &options, "shape", "6:7");
    assert_true(options.dims[0] == 1 && options.dims[1] == 6 && options.dims[2] == 7);
    set(f, &options, "shape", "5 : 6 : 7");
    assert_true(options.dims[0] == 5 && options.dims[1] == 6 && options.dims[2] == 7);
    set(f, &options, "text", "fc1");
    assert_string_equal(options.text, "fc1");
    set(f, &options, "open", "9223372036854775807");
    assert_true(options.open == INT64_MAX);
}

static void test_wrong_values(void **state)
{
    static const struct {
        const char *key, *text, *message;
    } wrong[] = {
        {"some_count", "1", "some_count: '1' is not a whole number from 2 to 100"},
        {"some_count", "101", "some_count: '101' is too large; 100 is the most"},
        {"some_count", "abc", "some_count: 'abc' is not a whole number"},
        {"some_count", "", "some_count: '' is not"},
        {"some_count", "3.5", "'3.5' is not a whole number"},
        {"some_count", "-3", "'-3' is not a whole number"},
        {"some_count", "3 4", "'3 4' is not a whole number"},
        {"some_count", "99999999999999999999", "is too large; 100 is the most"},
        {"open", "0", "open: '0' is not a whole number of at least 1"},
        {"open", "9223372036854775808", "open: '9223372036854775808' is too large; it must be below 2^63"},
        {"pair", "3,10", "pair: '3,10' is too large; 9 is the most"},
        {"shape", "3:99999999999999999999", "'3:99999999999999999999' is too large; it must be below 2^63"},
        {"number", "1.01", "number: '1.01' is not a number from -1 to 1"},
        {"number", "nan", "'nan' is not a number"},
        {"number", "1e999", "is not a number"},
        {"number", "0x1", "'0x1' is not a number"},
        {"number", "0.5f", "'0.5f' is not a number"},
        {"number", "", "'' is not a number"},
        {"flag", "yes", "flag: 'yes' is neither true nor false"},
        {"colour", "blue", "colour: 'blue' is not one of red, dark_green"},
        {"colour", "", "'' is not one of red, dark_green"},
        {"pair", "3,4,5", "pair: '3,4,5' is neither one whole number nor two"},
        {"pair", "3,", "'3,' is neither"},
        {"pair", "3:4", "'3:4' is neither"},
        {"pair", "0,4", "from 1 to 9"},
        {"pair", "4,0", "from 1 to 9"},
        {"shape", "1:2:3:4", "shape: '1:2:3:4' is not a shape; write w, h:w or c:h:w"},
        {"shape", "0:2:3", "'0:2:3' is not a shape"},
        {"shape", "a", "'a' is not a shape"},
        {"height", "3",
         "height: sample has no such property; it has some_count, number, flag, colour, pair, shape, text, open"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sample_options options = {0};
        expect_status(f, property_set(f->context, "sample", sample_properties, &options, wrong[i].key, wrong[i].text),
                      REMAT_INVALID);
        expect_message(f, wrong[i].message);
        assert_string_equal(remat_context_error(f->context)->field, wrong[i].key);
    }
}

/* A struct without properties says so. */
static void test_no_properties(void **state)
{
    static const property none[] = {{0}};
    fixture *f = *state;
    expect_status(f, property_set(f->context, "flatten", none, NULL, "unit", "3"), REMAT_INVALID);
    expect_message(f, "unit: flatten has no properties");
    expect_status(f, property_set(f->context, "flatten", NULL, NULL, "unit", "3"), REMAT_INVALID);
    expect_message(f, "unit: flatten has no properties");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_default_values),
        FIXTURE_TEST(test_reading),
        FIXTURE_TEST(test_wrong_values),
        FIXTURE_TEST(test_no_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
