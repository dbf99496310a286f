/* The edges of small things: names of values that do not exist, numbers at their limits, properties of every kind. */
#include "base/alloc.h"
#include "base/dtype_traits.h"
#include "base/json_reader.h"
#include "base/min_max.h"
#include "base/properties.h"
#include "base/share.h"
#include "base/text_pool.h"
#include "support/fixture.h"

static void element_types_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        [REMAT_FP32] = "fp32",   [REMAT_FP16] = "fp16", [REMAT_BF16] = "bf16",   [REMAT_FP64] = "fp64",
        [REMAT_INT32] = "int32", [REMAT_INT8] = "int8", [REMAT_UINT8] = "uint8",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(remat_dtype_name((remat_dtype)i), names[i]);
    assert_string_equal(remat_dtype_name((remat_dtype)99), "unknown");
}

static void json_tokens_have_names(void **state)
{
    (void)state;
    for (int i = JSON_END; i <= JSON_NULL; i++)
        for (int k = JSON_END; k < i; k++)
            assert_string_not_equal(json_kind_name((json_kind)i), json_kind_name((json_kind)k));
    assert_string_equal(json_kind_name(JSON_REAL), "a number with a fraction or exponent");
    assert_string_equal(json_kind_name((json_kind)99), "something else");
}

static void shares_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t billionths; /* REMAT_NOWHERE: it is no share */
    } cases[] = {
        {"0", 0},
        {"1", REMAT_SHARE_ONE},
        {"1.", REMAT_SHARE_ONE},
        {".5", 500000000},
        {"0.25", 250000000},
        {"25e-2", 250000000},
        {"25E-2", 250000000},
        {"0.0025e2", 250000000},
        {"0.0000000019", 1},
        {"1e-9999999", 0},
        {"0e9999999", 0},
        {"000000000000000000001", REMAT_SHARE_ONE},
        {"1e9999999", REMAT_NOWHERE},
        {"20", REMAT_NOWHERE},
        {"1.0000000000001", REMAT_NOWHERE},
        {"2", REMAT_NOWHERE},
        {"1e", REMAT_NOWHERE},
        {"1ex", REMAT_NOWHERE},
        {"1e -1", REMAT_NOWHERE},
        {"1e+-1", REMAT_NOWHERE},
        {"", REMAT_NOWHERE},
        {".", REMAT_NOWHERE},
        {"0.5.5", REMAT_NOWHERE},
        {"0.5 ", REMAT_NOWHERE},
        {"-0.5", REMAT_NOWHERE},
        {"half", REMAT_NOWHERE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t found = 77;
        bool is_share = remat_share_parse(cases[i].text, &found);
        if (is_share != (cases[i].billionths != REMAT_NOWHERE) || (is_share && found != cases[i].billionths))
            fail_msg("'%s' is read as %llu", cases[i].text, (unsigned long long)found);
    }
}

/* ---- properties ---- */

enum { MANY = 80 };
static const char *choices[MANY + 1];

typedef struct fields {
    uint64_t count, pair[2], dims[3];
    double number;
    bool flag;
    uint32_t choice;
    const char *text;
} fields;

static const property table[] = {
    {"count", PROPERTY_COUNT, offsetof(fields, count), NULL, 2, 100, NULL, ""},
    {"open", PROPERTY_COUNT, offsetof(fields, count), NULL, 3, 0, NULL, ""},
    {"number", PROPERTY_NUMBER, offsetof(fields, number), NULL, -1, 1, NULL, ""},
    {"pair", PROPERTY_PAIR, offsetof(fields, pair), NULL, 1, 9, NULL, ""},
    {"dims", PROPERTY_DIMS, offsetof(fields, dims), NULL, 0, 0, NULL, ""},
    {"flag", PROPERTY_FLAG, offsetof(fields, flag), NULL, 0, 0, NULL, ""},
    {"text", PROPERTY_TEXT, offsetof(fields, text), NULL, 0, 0, NULL, ""},
    {"choice", PROPERTY_CHOICE, offsetof(fields, choice), NULL, 0, 0, choices, ""},
    {0},
};

static void what_is_allowed_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a whole number from 2 to 100",
        "a whole number of at least 3",
        "a number from -1 to 1",
        "one whole number, or two with a comma between, from 1 to 9",
        "a shape: w, h:w or c:h:w",
        "true or false",
        "any text",
        "one of tea",
    };
    choices[0] = "tea";
    choices[1] = NULL;
    char text[PROPERTY_ALLOWED_TEXT];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_string_equal(property_allowed(&table[i], text), texts[i]);
    for (size_t i = 0; i < MANY; i++)
        choices[i] = "a rather long choice";
    choices[MANY] = NULL;
    assert_int_equal(strlen(property_allowed(&table[7], text)), PROPERTY_ALLOWED_TEXT - 1); /* cut, not overrun */
}

static void wrong_values_are_refused(void **state)
{
    fixture *f = *state;
    static const char *const wrong[][2] = {
        {"dims", "0:1:1"},   {"dims", "1:0:1"}, {"dims", "1:1:0"},   {"dims", "1:1:1:1"}, {"dims", "1;1"},
        {"number", " \t"},   {"number", "+"},   {"number", "1e999"}, {"number", "1 2"},   {"number", "0x1"},
        {"pair", "1,10"},    {"pair", "10,1"},  {"pair", "1,"},      {"pair", "3 4"},     {"count", "101"},
        {"count", "\t1 \t"}, {"flag", "yes"},   {"choice", "none"},
    };
    fields values = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        expect_status(f, property_set(f->context, "it", table, &values, wrong[i][0], wrong[i][1]), REMAT_INVALID);
        assert_string_equal(remat_context_error(f->context)->field, wrong[i][0]);
    }
    expect_ok(f, property_set(f->context, "it", table, &values, "dims", " 2 : 3\t"));
    assert_true(values.dims[0] == 1 && values.dims[1] == 2 && values.dims[2] == 3);
    expect_ok(f, property_set(f->context, "it", table, &values, "number", "\t 0.5 "));
    assert_true(values.number == 0.5);
}

static void long_lists_and_bad_defaults_are_told(void **state)
{
    fixture *f = *state;
    property many[MANY + 1] = {0};
    fields values = {0};
    for (size_t i = 0; i < MANY; i++)
        many[i] = (property){"a_rather_long_key", PROPERTY_COUNT, 0, NULL, 0, 0, NULL, ""};
    expect_status(f, property_set(f->context, "it", many, &values, "other", "1"), REMAT_INVALID);
    expect_message(f, "it has a_rather_long_key, a_rather_long_key");
    expect_status(f, property_set(f->context, "it", many + MANY, &values, "other", "1"), REMAT_INVALID);
    expect_message(f, "it has no properties");
    expect_status(f, property_set(f->context, "it", NULL, &values, "other", "1"), REMAT_INVALID);
    expect_message(f, "it has no properties");
    const property wrong[] = {{"count", PROPERTY_COUNT, 0, "none", 0, 0, NULL, ""}, {0}};
    expect_status(f, properties_init(f->context, wrong, &values), REMAT_INVALID);
    expect_ok(f, properties_init(f->context, NULL, &values));
}

/* ---- memory ---- */

static void a_pool_has_a_limit(void **state)
{
    fixture *f = *state;
    text_pool pool;
    text_pool_begin(&pool, f->context);
    assert_null(text_pool_take(&pool, SIZE_MAX / 2, 4));
    assert_int_equal(remat_context_error(f->context)->status, REMAT_NO_MEMORY);
    assert_null(text_pool_take(&pool, TEXT_POOL_LIMIT + 1, 1));
    assert_non_null(text_pool_text(&pool, "text"));
    assert_null(text_pool_take(&pool, TEXT_POOL_LIMIT, 1)); /* together they are too much */
    text_pool_end(&pool);
}

static void no_bytes_are_one_byte(void **state)
{
    fixture *f = *state;
    void *memory = remat_alloc_aligned(f->context, 0, 64);
    assert_non_null(memory);
    assert_int_equal(remat_context_bytes(f->context), 1);
    remat_release(f->context, memory, 0, 1);
    void *zeros = remat_alloc_zeroed(f->context, 0, 0);
    assert_non_null(zeros);
    remat_release(f->context, zeros, 0, 0);
    assert_int_equal(remat_context_bytes(f->context), 0);
}

/* More than there is of memory, from the system's own allocator: small pages and large ones. */
static void the_systems_memory_ends_too(void **state)
{
    (void)state;
    remat_context *context;
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    assert_null(remat_alloc(context, SIZE_MAX / 4, 1));
    assert_int_equal(remat_context_error(context)->status, REMAT_NO_MEMORY);
    assert_null(remat_alloc_aligned(context, SIZE_MAX / 4, 64));
    assert_null(remat_alloc_zeroed(context, SIZE_MAX / 4, 1));
    assert_int_equal(remat_context_bytes(context), 0);
    remat_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_types_have_names),
        cmocka_unit_test(json_tokens_have_names),
        cmocka_unit_test(shares_are_read_exactly),
        cmocka_unit_test(what_is_allowed_is_told),
        FIXTURE_TEST(wrong_values_are_refused),
        FIXTURE_TEST(long_lists_and_bad_defaults_are_told),
        FIXTURE_TEST(a_pool_has_a_limit),
        FIXTURE_TEST(no_bytes_are_one_byte),
        cmocka_unit_test(the_systems_memory_ends_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
