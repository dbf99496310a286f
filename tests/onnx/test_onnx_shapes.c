/* The shapes of the outputs of ONNX operators, by hand. A case is a line of text:
 *     Conv 1,3,8,8 4,3,3,3 pads=1,1,1,1 -> 1,4,8,8
 * Inputs are shapes; -- is left out, a single number is "()", and {2,-1} is a list of whole numbers that is known. Attributes are
 * lists of whole numbers. A case without an arrow must be refused. */
#include <string.h>

#include "onnx_object.h"
#include "support/fixture.h"

enum { MOST_PARTS = 8 };

typedef struct onnx_case {
    char message[ONNX_MESSAGE];
    onnx_options options;
    importer im;
    Onnx__Node proto;
    Onnx__Attribute attributes[MOST_PARTS], *attribute_list[MOST_PARTS];
    char names[MOST_PARTS][32];
    int64_t numbers[MOST_PARTS][16];
    onnx_value inputs[MOST_PARTS], outputs[MOST_PARTS];
    onnx_value *input_list[MOST_PARTS], *output_list[MOST_PARTS];
    onnx_node node;
} onnx_case;

static size_t read_numbers(const char *text, int64_t *numbers)
{
    size_t count = 0;
    char *end;
    for (; *text && *text != '}'; text = *end == ',' ? end + 1 : end) {
        numbers[count++] = strtoll(text, &end, 10);
        assert_true(end != text);
    }
    return count;
}

static void read_input(onnx_case *c, const char *part)
{
    const size_t i = c->node.input_count++;
    onnx_value *value = &c->inputs[i];
    value->name = "input";
    value->is_defined = true;
    value->type = 1;
    c->input_list[i] = strcmp(part, "--") == 0 ? NULL : value;
    if (part[0] == '{') {
        value->type = 7;
        value->known = c->numbers[i];
        value->known_count = read_numbers(part + 1, c->numbers[i]);
        value->shape = (onnx_shape){1, {(int64_t)value->known_count}};
    } else if (strcmp(part, "()") != 0 && c->input_list[i])
        value->shape.rank = (unsigned)read_numbers(part, value->shape.sizes);
}

static void read_attribute(onnx_case *c, const char *part)
{
    const size_t i = c->proto.n_attribute++;
    const char *sign = strchr(part, '=');
    Onnx__Attribute *attribute = &c->attributes[i];
    onnx__attribute__init(attribute);
    snprintf(c->names[i], sizeof c->names[i], "%.*s", (int)(sign - part), part);
    attribute->name = c->names[i];
    attribute->ints = calloc(16, sizeof *attribute->ints);
    attribute->n_ints = read_numbers(sign + 1, attribute->ints);
    attribute->has_i = attribute->n_ints == 1;
    attribute->i = attribute->ints[0];
    c->attribute_list[i] = attribute;
}

static void run_case(const char *line)
{
    char text[256], *rest, *part;
    onnx_case *c = calloc(1, sizeof *c);
    snprintf(text, sizeof text, "%s", line);
    onnx__node__init(&c->proto);
    c->im.options = &c->options;
    c->im.message = c->message;
    c->im.name = "case";
    c->proto.attribute = c->attribute_list;
    c->node.proto = &c->proto;
    c->node.inputs = c->input_list;
    c->node.outputs = c->output_list;
    c->proto.op_type = strtok_r(text, " ", &rest);
    size_t wanted = 0;
    onnx_shape shapes[MOST_PARTS] = {{0}};
    bool arrow = false;
    while ((part = strtok_r(NULL, " ", &rest))) {
        if (strcmp(part, "->") == 0)
            arrow = true;
        else if (arrow && strcmp(part, "()") == 0)
            shapes[wanted++].rank = 0;
        else if (arrow) {
            shapes[wanted].rank = (unsigned)read_numbers(part, shapes[wanted].sizes);
            wanted++;
        } else if (strchr(part, '='))
            read_attribute(c, part);
        else
            read_input(c, part);
    }
    c->node.output_count = wanted ? wanted : 1;
    for (size_t i = 0; i < c->node.output_count; i++) {
        c->outputs[i].name = "output";
        c->output_list[i] = &c->outputs[i];
    }
    c->node.rule = onnx_operator_find(&c->proto);
    if (!c->node.rule)
        fail_msg("%s: not in the table", line);
    const bool fine = c->node.rule->shape(&c->im, &c->node);
    if (fine != arrow)
        fail_msg("%s: %s", line, fine ? "was taken" : c->message);
    if (!fine)
        expect_text(c->message, c->proto.op_type);
    for (size_t i = 0; i < wanted; i++)
        if (c->outputs[i].shape.rank != shapes[i].rank ||
            memcmp(c->outputs[i].shape.sizes, shapes[i].sizes, shapes[i].rank * sizeof(int64_t)) != 0)
            fail_msg("%s: output %zu has another shape", line, i);
    if (fine && !onnx_node_cost(&c->im, &c->node))
        fail_msg("%s: %s", line, c->message);
    for (size_t i = 0; i < c->proto.n_attribute; i++)
        free(c->attributes[i].ints);
    free(c);
}

static void shapes_are_right(void **state)
{
    static const char *const cases[] = {
        "Relu 2,3 -> 2,3",
        "Add 2,3 3 -> 2,3",
        "Add 2,1,4 3,1 -> 2,3,4",
        "Add 2,3 4",
        "Mul () 5,6 -> 5,6",
        "Equal 2,3 1 -> 2,3",
        "Where 3 2,1 () -> 2,3",
        "Conv 1,3,8,8 4,3,3,3 pads=1,1,1,1 -> 1,4,8,8",
        "Conv 2,3,9,9 4,3,3,3 strides=2,2 -> 2,4,4,4",
        "Conv 2,3,9,9 4,3,3,3 dilations=2,2 -> 2,4,5,5",
        "Conv 2,6,5 6,1,3 group=6 -> 2,6,3",
        "Conv 2,6,5 6,2,3 group=6",
        "Conv 2,3,2,2 4,3,3,3",
        "Conv 2,3,9,9 4,3,3,3 strides=0,1",
        "Conv 2,3,9,9 4,3,3,3 strides=1",
        "Conv 2,3,9,9",
        "ConvTranspose 1,4,5,5 4,2,2,2 strides=2,2 -> 1,2,10,10",
        "ConvTranspose 1,4,5 4,2,3 strides=2 pads=1,1 output_padding=1 -> 1,2,10",
        "MaxPool 1,2,8,8 kernel_shape=2,2 strides=2,2 -> 1,2,4,4",
        "MaxPool 1,2,7,7 kernel_shape=2,2 strides=2,2 ceil_mode=1 -> 1,2,4,4",
        "MaxPool 1,2,7,7",
        "AveragePool 1,2,7 kernel_shape=3 -> 1,2,5",
        "GlobalAveragePool 3,4,7,7 -> 3,4,1,1",
        "MatMul 5,2,3 3,4 -> 5,2,4",
        "MatMul 6,1,2,3 5,3,4 -> 6,5,2,4",
        "MatMul 3 3,4 -> 4",
        "MatMul 2,3 3 -> 2",
        "MatMul 3 3 -> ()",
        "MatMul 2,3 4,3",
        "MatMul () 3",
        "Gemm 2,3 3,4 4 -> 2,4",
        "Gemm 3,2 4,3 transA=1 transB=1 -> 2,4",
        "Gemm 3,2 4,3",
        "Concat 2,3 2,5 axis=1 -> 2,8",
        "Concat 2,3 2,5 axis=-1 -> 2,8",
        "Concat 2,3 2,5 axis=0",
        "Concat 2,3 2,5 axis=2",
        "Reshape 2,3,4 {2,-1} -> 2,12",
        "Reshape 2,3,4 {0,0,2,2} -> 2,3,2,2",
        "Reshape 2,3,4 {5,-1}",
        "Reshape 2,3,4 {-1,-1}",
        "Reshape 2,3,4 {2,3}",
        "Transpose 2,3,4 -> 4,3,2",
        "Transpose 2,3,4 perm=0,2,1 -> 2,4,3",
        "Transpose 2,3,4 perm=0,0,1",
        "Transpose 2,3,4 perm=0,1",
        "Flatten 2,3,4 -> 2,12",
        "Flatten 2,3,4 axis=0 -> 1,24",
        "Flatten 2,3,4 axis=9",
        "Split 6,4 axis=0 -> 3,4 3,4",
        "Split 7,4 axis=0 -> 4,4 3,4",
        "Split 6,4 {1,5} axis=0 -> 1,4 5,4",
        "Split 6,4 {9} axis=0",
        "Slice 10,4 {2} {8} -> 6,4",
        "Slice 10,4 {-3} {100} {0} {2} -> 2,4",
        "Slice 10,4 {9} {-100} {0} {-3} -> 4,4",
        "Slice 10,4 {2,1} {8} {0}",
        "Slice 10,4 {2} {8} {0} {0}",
        "Gather 10,4 2,3 -> 2,3,4",
        "Gather 10,4 2,3 axis=1 -> 10,2,3",
        "Gather 10,4 () -> 4",
        "GatherElements 3,4 2,4 -> 2,4",
        "ReduceMean 2,3,4 axes=1 -> 2,1,4",
        "ReduceMean 2,3,4 axes=-1 keepdims=0 -> 2,3",
        "ReduceSum 2,3,4 {0,2} keepdims=0 -> 3",
        "ReduceSum 2,3,4 keepdims=0 -> ()",
        "ReduceSum 2,3,4 {7}",
        "ArgMax 2,3,4 axis=1 keepdims=0 -> 2,4",
        "Squeeze 1,3,1 -> 3",
        "Squeeze 1,3,1 {0} -> 3,1",
        "Squeeze 1,3,1 {1}",
        "Unsqueeze 3,4 {0,3} -> 1,3,4,1",
        "Unsqueeze 3,4 {0,0}",
        "Expand 3,1 {2,3,4} -> 2,3,4",
        "Expand 3,1 {2,2,4}",
        "Shape 2,3,4 -> 3",
        "Size 2,3,4 -> ()",
        "ConstantOfShape {2,3} -> 2,3",
        "ConstantOfShape {2,-3}",
        "Range {0} {7} {2} -> 4",
        "Range {0} {7} {0}",
        "Pad 2,3 {0,1,0,2} -> 2,6",
        "Pad 2,3 {0,1}",
        "Tile 2,3 {2,2} -> 4,6",
        "Resize 1,2,4,4 -- -- {1,2,8,8} -> 1,2,8,8",
        "BatchNormalization 2,8,4,4 8 8 8 8 -> 2,8,4,4",
        "LayerNormalization 2,5,8 8 8 -> 2,5,8 2,5,1",
        "LayerNormalization 2,5,8 8 8 axis=1 -> 2,5,8 2,1,1",
        "LayerNormalization 2,5,8 8 8 axis=3",
        "Dropout 4,4 -> 4,4 4,4",
        "LSTM 7,4,3 1,20,3 1,20,5 -> 7,1,4,5 1,4,5 1,4,5",
        "GRU 7,4,3 2,15,3 2,15,5 -> 7,2,4,5 2,4,5",
        "LSTM 7,4,3 1,20,3",
        "SoftmaxCrossEntropyLoss 8,10 8 -> () 8,10",
        "Cast 3,3 to=1 -> 3,3",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(cases[i]);
}

/* The table is searched by halves. */
static void table_is_sorted(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Abs",        "Add",     "Conv",  "GRU", "Gather", "LSTM", "LayerNormalization", "RMSNormalization",
        "ReduceMean", "Softmax", "Where", "Xor", "PRelu",  "Pad",  "GlobalMaxPool"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        Onnx__Node proto = ONNX__NODE__INIT;
        proto.op_type = (char *)(uintptr_t)names[i];
        const onnx_operator *found = onnx_operator_find(&proto);
        assert_non_null(found);
        assert_string_equal(found->name, names[i]);
        proto.domain = (char *)(uintptr_t) "com.example";
        assert_null(onnx_operator_find(&proto));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_are_right), cmocka_unit_test(table_is_sorted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
