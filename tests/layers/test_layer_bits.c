/* In single precision: the bits of a layer do not depend on threads, on running again or on doing it in place, with the
 * reference and with the fast kernels of every instruction set, and these agree with the reference. */
#include "layers/layer_rig.h"
#include "support/fixture.h"
#include "support/kernel_compare.h"

/* Large enough that the fast kernels cut them into several parts. */
static const layer_case large_cases[] = {
    {"fully_connected", 4, {{1, 130, 257}}, {"unit=300"}, 0},
    {"lora", 2, {{1, 130, 257}}, {"unit=300", "rank=8", "dropout=0.1"}, 0},
    {"activation", 4, {{1, 130, 257}}, {"activation=gelu"}, 0},
    {"activation", 4, {{1, 130, 257}}, {"activation=relu", OUTPUT_UNREAD}, 0},
    {"activation", 4, {{1, 130, 257}}, {"activation=leaky_relu", OUTPUT_UNREAD}, 0},
    {"activation", 4, {{1, 130, 257}}, {"activation=softmax"}, 0},
    {"layer_normalization", 4, {{1, 130, 257}}, {0}, 0},
    {"rms_normalization", 4, {{1, 130, 257}}, {0}, 0},
    {"batch_normalization", 4, {{17, 41, 43}}, {0}, 0},
    {"attention_core", 2, {{1, 150, 288}}, {"num_heads=3", "causal=true"}, 0},
    {"attention_core", 2, {{1, 150, 99}}, {"num_heads=3"}, 0},
    {"attention_core",
     2,
     {{1, 150, 96}, {1, 150, 48}, {1, 150, 48}},
     {"num_heads=4", "num_key_heads=2", "causal=true"},
     0},
    {"rotary_embedding", 3, {{1, 200, 96}}, {"num_heads=4"}, 0},
    {"gated", 2, {{1, 70, 260}, {1, 70, 260}}, {0}, 0},
    {"embedding", 4, {{1, 1, 300}}, {"in_dim=100", "out_dim=129"}, 100},
    {"position_embedding", 4, {{1, 100, 129}}, {"positions=150"}, 0},
    {"dropout", 4, {{1, 130, 257}}, {"rate=0.1"}, 0},
    {"addition", 4, {{1, 130, 257}, {1, 130, 257}}, {0}, 0},
    {"multiply", 4, {{1, 130, 257}, {1, 130, 257}}, {0}, 0},
    {"concat", 4, {{1, 130, 257}, {1, 130, 31}}, {0}, 0},
    {"conv2d", 4, {{9, 31, 33}}, {"filters=21", "kernel_size=3", "padding=same"}, 0},
    {"conv2d", 4, {{9, 31, 33}}, {"filters=21", "kernel_size=5,3", "padding=2", "stride=2"}, 0},
    {"pooling2d", 4, {{9, 31, 33}}, {"pooling=max", "pool_size=3", "stride=2"}, 0},
    {"pooling2d", 4, {{9, 31, 33}}, {"pooling=average", "padding=same"}, 0},
    {"mse", 4, {{1, 130, 257}, {1, 130, 257}}, {0}, 0},
    {"cross_entropy", 4, {{1, 130, 257}, {1, 1, 130}}, {0}, 257},
    {"projection_cross_entropy", 4, {{1, 150, 65}, {1, 1, 150}}, {"unit=257"}, 257},
};
enum { LARGE_COUNT = sizeof large_cases / sizeof large_cases[0], ALL_COUNT = LAYER_CASE_COUNT + LARGE_COUNT };

static const layer_case *case_of(size_t number)
{
    return number < LAYER_CASE_COUNT ? &layer_cases[number] : &large_cases[number - LAYER_CASE_COUNT];
}

/* ---- one run from fresh tensors ---- */

typedef struct manner {
    const char *name;
    unsigned threads;
    bool recompute; /* the forward runs a second time, over poisoned results, before the backward */
    bool in_place;  /* forward and input gradient, where the layer allows it */
} manner;

static void forward(layer_rig *rig, const manner *how)
{
    const layer_node *node = &rig->node;
    layer_call call = rig->call;
    if (how->in_place && node->forward_in_place) {
        memcpy(call.output.at, call.inputs[0].at, rig_output_values(rig) * sizeof(real));
        call.inputs[0] = call.output;
    }
    rig_forward(rig, &call);
    if (!how->recompute)
        return;
    if (!node->loss)
        memset(call.output.at, 0xff, rig_output_values(rig) * sizeof(real));
    for (uint32_t s = 0; s < node->saved_count; s++)
        memset(call.saved[s].at, 0xff, rig_saved_bytes(rig, s));
    call.is_recompute = true;
    rig_forward(rig, &call);
}

static void backward(layer_rig *rig, const manner *how)
{
    const layer_node *node = &rig->node;
    layer_call call = rig->call;
    bool in_place = how->in_place && node->input_gradient_in_place;
    tensor_ref place = call.d_inputs[0];
    if (in_place && node->loss) {
        memcpy(place.at, call.inputs[0].at, rig_input_values(rig, 0) * sizeof(real));
        call.inputs[0] = place;
    } else if (in_place) {
        memcpy(place.at, rig->d_output.at, rig_output_values(rig) * sizeof(real));
        call.d_output = place;
    }
    rig_backward(rig, &call);
}

static const manner plainly = {.name = "with 1 thread", .threads = 1};

static void run(layer_rig *rig, fixture *f, size_t number, const char *kernels, const manner *how)
{
    test_random random = {number + 1};
    const backend_options options = {.kernels = kernels, .threads = how->threads};
    rig_open(rig, f->context, case_of(number), &options, &random);
    forward(rig, how);
    backward(rig, how);
}

/* ---- comparing two runs ---- */

/* Fails where a and b differ; `whose` says in words what b is. */
typedef void compare_fn(const char *whose, const char *what, uint32_t i, const real *a, const real *b, uint64_t count);

static void compare_bits(const char *whose, const char *what, uint32_t i, const real *a, const real *b, uint64_t count)
{
    if (memcmp(a, b, count * sizeof(real)) != 0)
        fail_msg("%s: the bits of %s %u differ", whose, what, i);
}

static void compare_values(const char *whose, const char *what, uint32_t i, const real *a, const real *b,
                           uint64_t count)
{
    double largest = 1e-6, error = 0;
    for (uint64_t k = 0; k < count; k++) {
        largest = fmax(largest, fabs((double)a[k]));
        error = isnan(a[k]) || isnan(b[k]) ? HUGE_VAL : fmax(error, fabs((double)a[k] - (double)b[k]));
    }
    if (!(error <= 2e-5 * largest))
        fail_msg("%s: %s %u differs by %.2e where the largest is %.2e", whose, what, i, error, largest);
}

/* `how` is the manner of b. */
static void compare_runs(const layer_rig *a, const layer_rig *b, const manner *how, compare_fn *compare)
{
    const layer_node *node = &a->node;
    char whose[128];
    snprintf(whose, sizeof whose, "%s of %s, %s", node->type->name, b->device->kernels, how->name);
    if (!node->loss)
        compare(whose, "output", 0, a->call.output.at, b->call.output.at, rig_output_values(a));
    for (uint32_t i = 0; i < node->input_count; i++)
        if (a->call.d_inputs[i].at)
            compare(whose, "the gradient of input", i, a->call.d_inputs[i].at, b->call.d_inputs[i].at,
                    rig_input_values(a, i));
    for (uint32_t p = 0; p < node->parameter_count; p++) {
        if (a->call.gradients[p].at)
            compare(whose, "the gradient of parameter", p, a->call.gradients[p].at, b->call.gradients[p].at,
                    rig_parameter_values(a, p));
        compare(whose, "parameter", p, a->call.parameters[p].at, b->call.parameters[p].at, rig_parameter_values(a, p));
    }
    bool bits = compare == compare_bits;
    for (uint32_t s = 0; s < node->saved_count && bits; s++)
        if (memcmp(a->call.saved[s].at, b->call.saved[s].at, rig_saved_bytes(a, s)) != 0)
            fail_msg("%s: the bits of saved %s differ", whose, node->saved[s].name);
    if (bits ? memcmp(&a->block.loss, &b->block.loss, sizeof a->block.loss) != 0
             : fabs(a->block.loss - b->block.loss) > 1e-5 * fabs(a->block.loss))
        fail_msg("%s: the loss is %.17g and %.17g", whose, a->block.loss, b->block.loss);
}

static void test_fast_agrees_with_reference(void **state)
{
    for (size_t number = 0; number < ALL_COUNT; number++) {
        layer_rig wanted, got;
        run(&wanted, *state, number, "reference", &plainly);
        for (const kernel_table *const *table = kernel_tables(); *table; table++) {
            run(&got, *state, number, (*table)->name, &plainly);
            compare_runs(&wanted, &got, &plainly, compare_values);
            rig_close(&got);
        }
        rig_close(&wanted);
    }
}

/* Every layer plainly and in all other manners. */
static void expect_same_bits_in_all_manners(fixture *f, const char *kernels)
{
    static const manner manners[] = {
        {.name = "once more", .threads = 1},
        {.name = "forward again", .threads = 1, .recompute = true},
        {.name = "with 2 threads", .threads = 2},
        {.name = "with 8 threads", .threads = 8},
        {.name = "in place", .threads = 2, .in_place = true},
    };
    for (size_t number = 0; number < ALL_COUNT; number++) {
        layer_rig wanted, got;
        run(&wanted, f, number, kernels, &plainly);
        for (size_t m = 0; m < sizeof manners / sizeof manners[0]; m++) {
            run(&got, f, number, kernels, &manners[m]);
            compare_runs(&wanted, &got, &manners[m], compare_bits);
            rig_close(&got);
        }
        rig_close(&wanted);
    }
}

static void test_bits_of_reference(void **state)
{
    expect_same_bits_in_all_manners(*state, "reference");
}

static void test_bits_of_fast(void **state)
{
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        expect_same_bits_in_all_manners(*state, (*table)->name);
}

/* ---- a projection and its loss, as one layer and as two ---- */

static void compare_fused(fixture *f, const char *kernels, uint64_t rows)
{
    const layer_case fused_case = {"projection_cross_entropy", 1, {{1, rows, 33}, {1, 1, rows}}, {"unit=71"}, 71};
    const layer_case linear_case = {"fully_connected", 1, {{1, rows, 33}}, {"unit=71"}, 0};
    const layer_case loss_case = {"cross_entropy", 1, {{1, rows, 71}, {1, 1, rows}}, {0}, 71};
    layer_rig fused, linear, loss;
    const backend_options options = {.kernels = kernels, .threads = 1};
    rig_open(&fused, f->context, &fused_case, &options, &(test_random){5});
    rig_open(&linear, f->context, &linear_case, &options, &(test_random){6});
    rig_open(&loss, f->context, &loss_case, &options, &(test_random){7});
    rig_backward(&fused, &fused.call);

    layer_call first = linear.call, second = loss.call;
    first.inputs[0] = fused.call.inputs[0];
    first.parameters[0] = fused.call.parameters[0];
    first.parameters[1] = fused.call.parameters[1];
    second.inputs[0] = first.output;
    second.inputs[1] = fused.call.inputs[1];
    rig_forward(&linear, &first);
    rig_forward(&loss, &second);
    rig_backward(&loss, &second);
    first.d_output = second.d_inputs[0];
    rig_backward(&linear, &first);

    compare_bits(kernels, "the gradient of input", 0, fused.call.d_inputs[0].at, first.d_inputs[0].at, rows * 33);
    compare_bits(kernels, "the gradient of parameter", 0, fused.call.gradients[0].at, first.gradients[0].at, 71 * 33);
    compare_values(kernels, "the gradient of parameter", 1, fused.call.gradients[1].at, first.gradients[1].at, 71);
    assert_true(fabs(fused.block.loss - loss.block.loss) <= 1e-12 * loss.block.loss);
    rig_close(&fused);
    rig_close(&linear);
    rig_close(&loss);
}

static void test_fused_projection(void **state)
{
    const uint64_t rows[] = {1, OPERATION_K_BLOCK - 1, OPERATION_K_BLOCK, OPERATION_K_BLOCK + 1,
                             2 * OPERATION_K_BLOCK + 88};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        compare_fused(*state, "reference", rows[i]);
        for (const kernel_table *const *table = kernel_tables(); *table; table++)
            compare_fused(*state, (*table)->name, rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_fast_agrees_with_reference),
        FIXTURE_TEST(test_bits_of_reference),
        FIXTURE_TEST(test_bits_of_fast),
        FIXTURE_TEST(test_fused_projection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
