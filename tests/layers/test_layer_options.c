/* What resolve() refuses, the shapes it finds, and what composite types are made of. */
#include "layers/layer_rig.h"
#include "support/fixture.h"

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
        expect_ok(f, properties_init(f->context, type->properties, options));
        free(options);
        for (const property *about = type->properties; about && about->key; about++)
            assert_true(about->help && *about->help && about->offset < type->options_bytes);
    }
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
         "padding: 'some' is not same, valid, or one, two or four whole numbers"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "padding=1,2,3"}, 0}, "one, two or four"},
        {{"conv2d", 1, {{6, 4, 4}}, {"filters=4", "kernel_size=3", "groups=4"}, 0},
         "conv2d: groups=4 must divide the 6 channels of the input and the 4 filters"},
        {{"conv2d", 1, {{1, 4, 9}}, {"filters=1", "kernel_size=3", "dilation=2"}, 0},
         "a window of height 5 does not fit into the input 1:4:9"},
        {{"conv1d", 1, {{1, 4, 9}}, {"filters=1", "kernel_size=3"}, 0}, "must have height 1: channels:1:steps"},
        {{"conv1d", 1, {{1, 1, 9}}, {"filters=1", "kernel_size=3", "padding=1,2,3,4"}, 0}, "causal, or one or two"},
        {{"conv2d_transpose", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "groups=3"}, 0}, "groups=3 must divide"},
        {{"conv2d_transpose", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "output_padding=1"}, 0},
         "output_padding must be less than the stride or the dilation"},
        {{"conv2d_transpose", 1, {{1, 1, 1}}, {"filters=1", "kernel_size=3", "padding=2"}, 0}, "leaves nothing of"},
        {{"conv2d_transpose", 1, {{1, 1ull << 40, 1}}, {"filters=1", "kernel_size=3"}, 0}, "is too large"},
        {{"pooling2d", 1, {{1, 4, 4}}, {"pool_size=2", "padding=0,9,0,9"}, 0}, "wholly over the edge"},
        {{"pooling2d", 1, {{1, 4, 4}}, {"pool_size=2", "padding=2"}, 0},
         "padding 2,2 is more than half of pool_size 2,2"},
        {{"group_normalization", 1, {{6, 2, 3}}, {"groups=4"}, 0},
         "group_normalization: groups=4 must divide the 6 channels of the input 6:2:3"},
        {{"attention_core", 1, {{1, 4, 6}, {1, 4, 6}}, {"num_heads=2"}, 0},
         "the queries are 1:4:6, and so keys and values must be a sequence of twice that width, but are 1:4:6"},
        {{"attention_core", 1, {{1, 4, 6}, {1, 4, 12}}, {"num_heads=2", "causal=true"}, 0},
         "causal is for one sequence"},
        {{"attention_core", 1, {{1, 4, 6}, {1, 4, 6}, {1, 4, 6}}, {"num_heads=3", "num_key_heads=2"}, 0},
         "num_heads 3 is not divisible by num_key_heads 2"},
        {{"attention_core", 1, {{1, 4, 6}, {1, 4, 6}, {1, 4, 3}}, {"num_heads=2", "num_key_heads=1"}, 0},
         "the queries are 1:4:6, and so keys and values must be 1:4:3, but are 1:4:6 and 1:4:3"},
        {{"attention_core", 1, {{1, 4, 6}}, {"num_heads=2", "window=2"}, 0}, "window is for causal attention"},
        {{"attention_core", 1, {{1, 4, 6}}, {"num_heads=2", "num_key_heads=1"}, 0}, "is for three inputs"},
        {{"rotary_embedding", 1, {{1, 4, 6}}, {"num_heads=2"}, 0}, "an even number of values each"},
        {{"rotary_embedding", 1, {{1, 4, 8}}, {"num_heads=2", "scaling=yarn"}, 0},
         "scaling=yarn needs original_length"},
        {{"rms_normalization", 1, {{1, 4, 8}}, {"size=3"}, 0}, "width 8 is not divisible by size 3"},
        {{"gated", 1, {{1, 2, 3}, {1, 2, 4}}, {0}, 0}, "gated: all inputs must have the same shape"},
        {{"lora", 1, {{1, 2, 3}}, {"unit=2", "activation=relu"}, 0}, "lora: it has no activation"},
        {{"lstm", 1, {{2, 2, 3}}, {"unit=4"}, 0}, "lstm: the input must be a sequence 1:steps:width, but is 2:2:3"},
        {{"gru", 1, {{1, 2, 3}}, {"unit=5000000000"}, 0}, "gru: unit is too large"},
        {{"last_step", 1, {{2, 2, 3}}, {0}, 0}, "last_step: the input must be a sequence"},
        {{"huber", 1, {{1, 2, 3}, {1, 2, 4}}, {0}, 0}, "huber: the prediction is 1:2:3, but the target is 1:2:4"},
        {{"huber", 1, {{1, 2, 3}, {1, 2, 3}}, {"delta=0"}, 0}, "delta: '0' is not a number of at least"},
        {{"cross_entropy", 1, {{1, 1, 3}, {1, 1, 1}}, {"class_weights=1,2"}, 0},
         "cross_entropy: there are 2 class_weights, but 3 classes"},
        {{"cross_entropy", 1, {{1, 1, 2}, {1, 1, 1}}, {"class_weights=1,"}, 0}, "class_weights: '1,' is not a list of"},
        {{"cross_entropy", 1, {{1, 1, 2}, {1, 1, 1}}, {"class_weights=1,-2"}, 0}, "numbers with commas between"},
        {{"cross_entropy", 1, {{1, 1, 2}, {1, 1, 1}}, {"label_smoothing=1.5"}, 0}, "from 0 to 1"},
        {{"mse", 1, {{1, 2, 3}, {1, 2, 4}}, {0}, 0}, "mse: the prediction is 1:2:3, but the target is 1:2:4"},
        {{"cross_entropy", 1, {{1, 4, 3}, {1, 1, 3}}, {0}, 0},
         "input 1:4:3 has 4 rows a sample and needs a label for each, but the labels are 1:1:3"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        layer_rig rig;
        expect_status(f, rig_resolve(&rig, f->context, &refused[i].from, &(backend_options){0}), REMAT_INVALID);
        expect_message(f, refused[i].message);
        rig_forget(&rig);
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
        {{"conv2d", 1, {{3, 32, 30}}, {"filters=8", "kernel_size=3", "padding=0,1,2,3"}, 0}, {8, 31, 33}},
        {{"conv2d", 1, {{3, 32, 30}}, {"filters=8", "kernel_size=3", "dilation=2,4", "padding=same"}, 0}, {8, 32, 30}},
        {{"conv1d", 1, {{3, 1, 30}}, {"filters=8", "kernel_size=4", "padding=causal", "stride=2"}, 0}, {8, 1, 15}},
        {{"conv1d", 1, {{3, 1, 30}}, {"filters=8", "kernel_size=4", "padding=1"}, 0}, {8, 1, 29}},
        {{"conv2d_transpose", 1, {{3, 8, 7}}, {"filters=4", "kernel_size=2", "stride=2"}, 0}, {4, 16, 14}},
        {{"conv2d_transpose", 1, {{3, 8, 7}}, {"filters=4", "kernel_size=3", "stride=2", "padding=same"}, 0},
         {4, 16, 14}},
        {{"conv2d_transpose", 1, {{3, 8, 7}}, {"filters=4", "kernel_size=4", "stride=2", "padding=1"}, 0}, {4, 16, 14}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pool_size=2"}, 0}, {3, 16, 15}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pool_size=3", "stride=1", "padding=1"}, 0}, {3, 33, 30}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pooling=global_average"}, 0}, {3, 1, 1}},
        {{"pooling2d", 1, {{3, 33, 30}}, {"pool_size=3", "stride=2", "ceil_mode=true"}, 0}, {3, 16, 15}},
        {{"pooling2d", 1, {{3, 13, 30}}, {"pool_size=2", "stride=2", "padding=1", "ceil_mode=true"}, 0}, {3, 7, 16}},
        {{"pooling2d", 1, {{3, 4, 4}}, {"pool_size=1", "stride=5", "ceil_mode=true"}, 0}, {3, 1, 1}},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        layer_rig rig;
        expect_ok(f, rig_resolve(&rig, f->context, &windows[i].from, &(backend_options){0}));
        assert_int_equal(rig.node.output.c, windows[i].output.c);
        assert_int_equal(rig.node.output.h, windows[i].output.h);
        assert_int_equal(rig.node.output.w, windows[i].output.w);
        rig_forget(&rig);
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
                                 &(layer_case){"fully_connected", 1, {{1, 1, 16}}, {"unit=8", starts[i].property}, 0},
                                 &(backend_options){0}));
        assert_int_equal(rig.node.parameters[0].fill, starts[i].fill);
        assert_int_equal(rig.node.parameters[1].fill, starts[i].bias_fill);
        assert_true(fabs(rig.node.parameters[0].fill_scale - starts[i].scale) < 1e-15);
        assert_true(rig.node.parameters[0].decay && !rig.node.parameters[1].decay);
        rig_forget(&rig);
    }
}

/* ---- composite types ---- */

typedef struct recorded_parts {
    layer_parts parts;
    char text[1024];
} recorded_parts;

static bool is_default(const property *about, const void *options, const layer_type *type)
{
    static const size_t bytes[] = {8, 8, 1, 4, 16, 24, sizeof(property_numbers), 8};
    char *defaults = calloc(1, type->options_bytes);
    remat_context *context;
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    assert_int_equal(properties_init(context, type->properties, defaults), REMAT_OK);
    bool same = memcmp((const char *)options + about->offset, defaults + about->offset, bytes[about->kind]) == 0;
    remat_context_destroy(context);
    free(defaults);
    return same;
}

/* Writes "type:suffix(input) key=value ...;" with every property that is not the default. */
static remat_status record(layer_parts *parts, const layer_type *type, const char *suffix, const int *inputs,
                           size_t input_count, const void *options)
{
    recorded_parts *to = (recorded_parts *)parts;
    assert_true(input_count == 1);
    size_t used = strlen(to->text), room = sizeof to->text;
    used += (size_t)snprintf(to->text + used, room - used, "%s:%s(%d)", type->name, suffix ? suffix : "", inputs[0]);
    for (const property *about = type->properties; about->key; about++) {
        const void *field = (const char *)options + about->offset;
        if (is_default(about, options, type))
            continue;
        used += (size_t)snprintf(to->text + used, room - used, " %s=", about->key);
        switch (about->kind) {
        case PROPERTY_COUNT:
            used += (size_t)snprintf(to->text + used, room - used, "%llu", *(const unsigned long long *)field);
            break;
        case PROPERTY_NUMBER:
            used += (size_t)snprintf(to->text + used, room - used, "%g", *(const double *)field);
            break;
        case PROPERTY_FLAG: used += (size_t)snprintf(to->text + used, room - used, "%d", *(const bool *)field); break;
        case PROPERTY_CHOICE:
            used += (size_t)snprintf(to->text + used, room - used, "%s", about->choices[*(const uint32_t *)field]);
            break;
        case PROPERTY_TEXT:
            used += (size_t)snprintf(to->text + used, room - used, "%s", *(const char *const *)field);
            break;
        case PROPERTY_PAIR: {
            const uint64_t *pair = field;
            used += (size_t)snprintf(to->text + used, room - used, "%llu,%llu", (unsigned long long)pair[0],
                                     (unsigned long long)pair[1]);
            break;
        }
        case PROPERTY_NUMBERS:
        case PROPERTY_DIMS: fail(); /* no part has one */
        }
    }
    snprintf(to->text + used, room - used, ";");
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
         "fully_connected:(-1) unit=3 bias=0 shared_from=other weight_initializer=normal;"
         "activation:activation(0) activation=gelu;"},
        {"conv2d", {"filters=3", "kernel_size=2"}, ""},
        {"conv2d",
         {"filters=3", "kernel_size=2", "activation=relu"},
         "conv2d:(-1) filters=3 kernel_size=2,2;activation:activation(0) activation=relu;"},
        {"conv1d",
         {"filters=3", "kernel_size=2", "activation=tanh"},
         "conv1d:(-1) filters=3 kernel_size=2;activation:activation(0) activation=tanh;"},
        {"conv2d_transpose",
         {"filters=3", "kernel_size=2", "activation=swish"},
         "conv2d_transpose:(-1) filters=3 kernel_size=2,2;activation:activation(0) activation=swish;"},
        {"multi_head_attention",
         {"num_heads=4", "causal=true", "init_scale=0.5"},
         "fully_connected:qkv(-1) multiple=3 init_scale=0.5;"
         "attention_core:core(0) num_heads=4 causal=1;"
         "fully_connected:out(1) multiple=1 init_scale=0.5;"},
        {"embedding", {"in_dim=5", "out_dim=3"}, ""},
        {"embedding",
         {"in_dim=5", "out_dim=3", "positions=7", "init_scale=0.25"},
         "embedding:(-1) in_dim=5 out_dim=3 init_scale=0.25;"
         "position_embedding:positions(0) positions=7 init_scale=0.25;"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof composites / sizeof composites[0]; i++) {
        const layer_type *type = layer_type_find(composites[i].type);
        void *options = calloc(1, type->options_bytes);
        layer_node node = {.type = type, .name = "whole", .options = options};
        layer_room room;
        layer_node_use(&node, &room);
        expect_ok(f, properties_init(f->context, type->properties, options));
        for (int p = 0; p < 6 && composites[i].properties[p]; p++) {
            char key[32];
            const char *text = strchr(composites[i].properties[p], '=');
            snprintf(key, sizeof key, "%.*s", (int)(text - composites[i].properties[p]), composites[i].properties[p]);
            expect_ok(f, property_set(f->context, type->name, type->properties, options, key, text + 1));
        }
        recorded_parts parts = {.parts = {record}};
        expect_ok(f, type->expand(f->context, &node, &parts.parts));
        assert_string_equal(parts.text, composites[i].parts);
        free(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_table),        FIXTURE_TEST(test_refused),    FIXTURE_TEST(test_window_shapes),
        FIXTURE_TEST(test_initializers), FIXTURE_TEST(test_composites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
