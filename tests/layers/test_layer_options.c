/* Properties: every kind, standard values, messages; what resolve() refuses; what composite types are made of. */
#include "layers/layer_rig.h"
#include "support/fixture.h"

/* ---- a type with a property of every kind ---- */

static const char *const colours[] = {"red", "dark_green", NULL};

typedef struct sample_options {
    uint64_t count;
    double number;
    bool flag;
    uint32_t choice;
    uint64_t pair[2];
    layer_shape dims;
    const char *text;
    uint64_t open; /* without an upper limit */
} sample_options;

static const layer_property sample_properties[] = {
    {"some_count", LAYER_COUNT, offsetof(sample_options, count), NULL, 2, 100, NULL, ""},
    {"number", LAYER_NUMBER, offsetof(sample_options, number), "0.5", -1, 1, NULL, ""},
    {"flag", LAYER_FLAG, offsetof(sample_options, flag), "true", 0, 0, NULL, ""},
    {"colour", LAYER_CHOICE, offsetof(sample_options, choice), "dark_green", 0, 0, colours, ""},
    {"pair", LAYER_PAIR, offsetof(sample_options, pair), "3", 1, 9, NULL, ""},
    {"shape", LAYER_DIMS, offsetof(sample_options, dims), NULL, 0, 0, NULL, ""},
    {"text", LAYER_TEXT, offsetof(sample_options, text), "", 0, 0, NULL, ""},
    {"open", LAYER_COUNT, offsetof(sample_options, open), "1", 1, 0, NULL, ""},
    {0},
};

static const layer_type sample_type = {
    .name = "sample",
    .options_bytes = sizeof(sample_options),
    .properties = sample_properties,
};

static void test_standard_values(void **state)
{
    fixture *f = *state;
    sample_options options = {0};
    options.text = "something";
    expect_ok(f, layer_options_init(f->context, &sample_type, &options));
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
    expect_ok(f, layer_options_set(f->context, &sample_type, options, key, text));
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
    assert_true(options.dims.c == 1 && options.dims.h == 1 && options.dims.w == 7);
    set(f, &options, "shape", "6:7");
    assert_true(options.dims.c == 1 && options.dims.h == 6 && options.dims.w == 7);
    set(f, &options, "shape", "5 : 6 : 7");
    assert_true(options.dims.c == 5 && options.dims.h == 6 && options.dims.w == 7);
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
        {"some_count", "101", "from 2 to 100"},
        {"some_count", "abc", "some_count: 'abc' is not a whole number"},
        {"some_count", "", "some_count: '' is not"},
        {"some_count", "3.5", "'3.5' is not a whole number"},
        {"some_count", "-3", "'-3' is not a whole number"},
        {"some_count", "3 4", "'3 4' is not a whole number"},
        {"some_count", "99999999999999999999", "is not a whole number"},
        {"open", "0", "open: '0' is not a whole number of at least 1"},
        {"open", "9223372036854775808", "is not a whole number of at least 1"},
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
        {"pair", "4,10", "from 1 to 9"},
        {"shape", "1:2:3:4", "shape: '1:2:3:4' is not a shape; write w, h:w or c:h:w"},
        {"shape", "0:2:3", "'0:2:3' is not a shape"},
        {"shape", "a", "'a' is not a shape"},
        {"height", "3",
         "height: sample has no such property; it has some_count, number, flag, colour, pair, shape, text, open"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sample_options options = {0};
        expect_status(f, layer_options_set(f->context, &sample_type, &options, wrong[i].key, wrong[i].text),
                      REMAT_INVALID);
        expect_message(f, wrong[i].message);
        assert_string_equal(remat_context_error(f->context)->field, wrong[i].key);
    }
}

static void test_missing(void **state)
{
    (void)state;
    const char *one[] = {"Some-Count"}, *both[] = {"shape", "some_count"};
    assert_string_equal(layer_options_missing(&sample_type, NULL, 0), "some_count");
    assert_string_equal(layer_options_missing(&sample_type, one, 1), "shape");
    assert_null(layer_options_missing(&sample_type, both, 2));
}

/* ---- the table ---- */

static void test_table(void **state)
{
    fixture *f = *state;
    assert_null(layer_type_find("dense"));
    assert_null(layer_type_find("input_"));
    assert_ptr_equal(layer_type_find("Fully-Connected"), layer_type_find("fully_connected"));
    const layer_type *type;
    for (size_t i = 0; (type = layer_type_list(i)); i++) {
        assert_ptr_equal(layer_type_find(type->name), type);
        assert_true(type->summary && *type->summary);
        assert_true(type->expand || type->resolve);
        void *options = calloc(1, type->options_bytes + 1);
        expect_ok(f, layer_options_init(f->context, type, options));
        free(options);
        for (const layer_property *property = type->properties; property && property->key; property++)
            assert_true(property->help && *property->help && property->offset < type->options_bytes);
    }
}

/* A type without properties says so. */
static void test_no_properties(void **state)
{
    fixture *f = *state;
    expect_status(f, layer_options_set(f->context, layer_type_find("flatten"), NULL, "unit", "3"), REMAT_INVALID);
    expect_message(f, "unit: flatten has no properties");
}

/* ---- what resolve() refuses ---- */

static void test_refused(void **state)
{
    static const struct {
        layer_case from;
        const char *message;
    } refused[] = {
        {{"fully_connected", 1, {{1, 1, 5}}, {0}, 0}, "fully_connected: say how many values come out, with unit=N"},
        {{"fully_connected", 1, {{1, 1, 5}}, {"unit=2", "multiple=2"}, 0}, "but not both"},
        {{"fully_connected", 1, {{1, 1, 1ull << 40}}, {"unit=1099511627776"}, 0}, "parameter weight is too large"},
        {{"fully_connected", 1ull << 40, {{1, 1, 1}}, {"unit=1099511627776"}, 0}, "must stay below 2^63 bytes"},
        {{"attention_core", 1, {{1, 4, 1530}}, {"num_heads=8"}, 0},
         "multi_head_attention: width 510 is not divisible by num_heads 8"},
        {{"attention_core", 1, {{1, 4, 10}}, {"num_heads=1"}, 0}, "width 10 is not divisible by 3"},
        {{"attention_core", 1, {{2, 4, 12}}, {"num_heads=2"}, 0}, "must be a sequence 1:steps:width, but is 2:4:12"},
        {{"embedding", 1, {{1, 2, 4}}, {"in_dim=3", "out_dim=2"}, 0}, "a row of tokens 1:1:steps, but is 1:2:4"},
        {{"position_embedding", 1, {{1, 9, 4}}, {"positions=8"}, 0}, "has 9 steps, but there are only positions=8"},
        {{"addition", 1, {{1, 2, 3}, {1, 3, 2}}, {0}, 0},
         "addition: all inputs must have the same shape, but input 1 is 1:2:3 and input 2 is 1:3:2"},
        {{"multiply", 1, {{1, 2, 3}, {1, 2, 4}}, {0}, 0}, "multiply: all inputs must have the same shape"},
        {{"concat", 1, {{1, 2, 3}, {1, 3, 3}}, {"axis=w"}, 0}, "inputs may differ along axis w only"},
        {{"reshape", 1, {{1, 2, 3}}, {"target_shape=1:1:7"}, 0},
         "target_shape 1:1:7 has 7 values, but the input 1:2:3 has 6"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=5"}, 0},
         "a window of height 5 does not fit into the input 1:4:4 with padding 0; at most 4 would"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "padding=some"}, 0},
         "padding: 'some' is not same, valid, or one or two whole numbers"},
        {{"pooling2d", 1, {{1, 4, 4}}, {"pool_size=2", "padding=2"}, 0},
         "padding 2,2 is more than half of pool_size 2,2"},
        {{"mse", 1, {{1, 2, 3}, {1, 2, 4}}, {0}, 0}, "mse: the prediction is 1:2:3, but the target is 1:2:4"},
        {{"cross_entropy", 1, {{1, 4, 3}, {1, 1, 3}}, {0}, 0},
         "input 1:4:3 has 4 rows a sample and needs a label for each, but the labels are 1:1:3"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        layer_rig rig;
        expect_status(f, rig_resolve(&rig, f->context, &refused[i].from), REMAT_INVALID);
        expect_message(f, refused[i].message);
        free(rig.node.options);
    }
}

/* ---- shapes ---- */

static void test_window_shapes(void **state)
{
    static const struct {
        layer_case from;
        layer_shape output;
    } windows[] = {
        {{"conv2d", 1, {{3, 32, 30}}, {"filters=8", "kernel_size=3"}, 0}, {8, 30, 28}},
        {{"conv2d", 1, {{3, 32, 30}}, {"filters=8", "kernel_size=3", "padding=same"}, 0}, {8, 32, 30}},
        {{"conv2d", 1, {{3, 31, 30}}, {"filters=8", "kernel_size=4", "padding=same", "stride=2"}, 0}, {8, 16, 15}},
        {{"conv2d", 1, {{3, 32, 30}}, {"filters=8", "kernel_size=5,3", "padding=2,1", "stride=2,3"}, 0}, {8, 16, 10}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pool_size=2"}, 0}, {3, 16, 15}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pool_size=3", "stride=1", "padding=1"}, 0}, {3, 33, 30}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pooling=global_average"}, 0}, {3, 1, 1}},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        layer_rig rig;
        expect_ok(f, rig_resolve(&rig, f->context, &windows[i].from));
        assert_int_equal(rig.node.output.c, windows[i].output.c);
        assert_int_equal(rig.node.output.h, windows[i].output.h);
        assert_int_equal(rig.node.output.w, windows[i].output.w);
        free(rig.node.options);
    }
}

static void test_initializers(void **state)
{
    static const struct {
        const char *property;
        layer_fill fill, bias_fill;
        double scale;
    } starts[] = {
        {"weight_initializer=default", LAYER_UNIFORM, LAYER_UNIFORM, 0.25},
        {"weight_initializer=zeros", LAYER_ZEROS, LAYER_ZEROS, 0},
        {"weight_initializer=ones", LAYER_ONES, LAYER_ZEROS, 0},
        {"weight_initializer=normal", LAYER_NORMAL, LAYER_ZEROS, 0.02},
        {"weight_initializer=xavier_uniform", LAYER_UNIFORM, LAYER_ZEROS, 0.5},
        {"weight_initializer=he_normal", LAYER_NORMAL, LAYER_ZEROS, 0.35355339059327379},
        {"weight_initializer=lecun_normal", LAYER_NORMAL, LAYER_ZEROS, 0.25},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        layer_rig rig;
        expect_ok(f, rig_resolve(&rig, f->context,
                                 &(layer_case){"fully_connected", 1, {{1, 1, 16}}, {"unit=8", starts[i].property}, 0}));
        assert_int_equal(rig.node.parameters[0].fill, starts[i].fill);
        assert_int_equal(rig.node.parameters[1].fill, starts[i].bias_fill);
        assert_true(fabs(rig.node.parameters[0].fill_scale - starts[i].scale) < 1e-15);
        assert_true(rig.node.parameters[0].decay && !rig.node.parameters[1].decay);
        free(rig.node.options);
    }
}

/* ---- composite types ---- */

typedef struct recorded_parts {
    layer_parts parts;
    char text[1024];
    fixture *f;
} recorded_parts;

/* Writes "type:suffix(inputs) properties;" and checks that the type takes the properties. */
static remat_status record(layer_parts *parts, const char *type, const char *suffix, const int *inputs,
                           size_t input_count, const char *const *properties, size_t property_count)
{
    recorded_parts *to = (recorded_parts *)parts;
    const layer_type *found = layer_type_find(type);
    assert_non_null(found);
    assert_true(input_count == 1);
    size_t used = strlen(to->text);
    used +=
        (size_t)snprintf(to->text + used, sizeof to->text - used, "%s:%s(%d)", type, suffix ? suffix : "", inputs[0]);
    void *options = calloc(1, found->options_bytes);
    for (size_t i = 0; i < property_count; i++) {
        char key[32];
        const char *text = strchr(properties[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(text - properties[i]), properties[i]);
        expect_ok(to->f, layer_options_set(to->f->context, found, options, key, text + 1));
        used += (size_t)snprintf(to->text + used, sizeof to->text - used, " %s", properties[i]);
    }
    snprintf(to->text + used, sizeof to->text - used, ";");
    free(options);
    return REMAT_OK;
}

static void test_composites(void **state)
{
    static const struct {
        const char *type, *properties[6], *parts;
    } composites[] = {
        {"fully_connected", {"unit=3"}, ""},
        {"fully_connected",
         {"unit=3", "activation=gelu", "shared_from=other", "bias=false", "weight_initializer=normal"},
         "fully_connected:(-1) unit=3 multiple=0 bias=false shared_from=other weight_initializer=normal "
         "init_scale=0.02;activation:activation(0) activation=gelu;"},
        {"multi_head_attention",
         {"num_heads=4", "causal=true", "init_scale=0.5"},
         "fully_connected:qkv(-1) multiple=3 bias=true weight_initializer=default init_scale=0.5;"
         "attention_core:core(0) num_heads=4 causal=true;"
         "fully_connected:out(1) multiple=1 bias=true weight_initializer=default init_scale=0.5;"},
        {"embedding", {"in_dim=5", "out_dim=3"}, ""},
        {"embedding",
         {"in_dim=5", "out_dim=3", "positions=7", "init_scale=0.25"},
         "embedding:(-1) in_dim=5 out_dim=3 init_scale=0.25;"
         "position_embedding:positions(0) positions=7 init_scale=0.25;"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof composites / sizeof composites[0]; i++) {
        const layer_type *type = layer_type_find(composites[i].type);
        layer_node node = {.type = type, .name = "whole", .options = calloc(1, type->options_bytes)};
        expect_ok(f, layer_options_init(f->context, type, node.options));
        char keys[6][32];
        for (int p = 0; p < 6 && composites[i].properties[p]; p++) {
            const char *text = strchr(composites[i].properties[p], '=');
            snprintf(keys[p], sizeof keys[p], "%.*s", (int)(text - composites[i].properties[p]),
                     composites[i].properties[p]);
            expect_ok(f, layer_options_set(f->context, type, node.options, keys[p], text + 1));
        }
        recorded_parts parts = {.parts = {record}, .f = f};
        expect_ok(f, type->expand(f->context, &node, &parts.parts));
        assert_string_equal(parts.text, composites[i].parts);
        free(node.options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_standard_values), FIXTURE_TEST(test_reading),       FIXTURE_TEST(test_wrong_values),
        FIXTURE_TEST(test_missing),         FIXTURE_TEST(test_table),         FIXTURE_TEST(test_no_properties),
        FIXTURE_TEST(test_refused),         FIXTURE_TEST(test_window_shapes), FIXTURE_TEST(test_initializers),
        FIXTURE_TEST(test_composites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
