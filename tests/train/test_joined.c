/* Gradients of activations that are joined with the product behind them (model/network_join.c): which are, on a device that asks for it;
 * that such a training has the bits of one on the processor, which joins none, is test_fenced.c's to show. With REMAT_TEST_DEVICE=cuda
 * the joined product of that device is compared with double precision. */
#include <math.h>

#include "base/half.h"
#include "support/device_kernels.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/kernel_compare.h"
#include "support/program_rig.h"

/* Whether an action of the program has this name. */
static bool has_action(const remat_program *program, const char *name)
{
    for (size_t a = 0; a < program->graph->action_count; a++)
        if (strcmp(program->graph->actions[a].name, name) == 0)
            return true;
    return false;
}

/* Layers of a model: after `up` with `activation`, what `rest` says. Returns whether the activation has a backward pass of its own. */
static bool derives_alone(fixture *f, const char *device, const char *activation, const char *rest)
{
    char text[1024];
    snprintf(text, sizeof text,
             "[Model]\nbatch_size = 2\n[Optimizer]\nType = sgd\n[in]\nType = input\ninput_shape = 1:3:8\n"
             "[first]\nType = fully_connected\nunit = 8\n[up]\nType = fully_connected\nunit = 16\nactivation = %s\n%s"
             "[loss]\nType = mse\n",
             activation, rest);
    remat_model *model;
    FILE *stream = stream_of(text, strlen(text));
    expect_ok(f, remat_model_read(f->context, stream, "joined.ini", &model));
    fclose(stream);
    program_rig rig;
    program_rig_open(&rig, model,
                     &(program_rig_options){.batch = 2,
                                            .purpose = NETWORK_TRAINING,
                                            .apply = PROGRAM_APPLY_AT_ONCE,
                                            .dtype = REMAT_FP32,
                                            .device = {.device = device, .threads = 1}});
    const bool alone = has_action(rig.program, "up.activation.input_gradient");
    assert_true(has_action(rig.program, "up.weight_gradient"));
    program_rig_close(&rig);
    remat_model_destroy(model);
    return alone;
}

static void what_is_read_once_is_joined(void **state)
{
    fixture *f = *state;
    const char down[] = "[down]\nType = fully_connected\nunit = 8\n";
    const char twice[] = "[down]\nType = fully_connected\nunit = 16\n[sum]\nType = addition\ninput_layers = up, down\n";
    const char dropped[] = "[drop]\nType = dropout\nrate = 0.5\n[down]\nType = fully_connected\nunit = 8\n";
    assert_true(derives_alone(f, "cpu", "gelu", down));
    assert_false(derives_alone(f, fenced_device(), "gelu", down));
    assert_true(derives_alone(f, fenced_device(), "gelu_erf", down)); /* the device joins another one */
    assert_true(derives_alone(f, fenced_device(), "gelu", twice));    /* the sum wants the gradient, too */
    assert_true(derives_alone(f, fenced_device(), "gelu", dropped));
}

/* ---- the product of a GPU ---- */

static double slope_of(double x)
{
    const double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

static uint16_t *random_halves(test_random *random, size_t count, float *values)
{
    uint16_t *halves = malloc(count * sizeof *halves);
    for (size_t i = 0; i < count; i++)
        values[i] = random_value(random, -2, 2);
    half_pack(half_kernels_list(0), REMAT_BF16, false, values, halves, count);
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, values, count);
    return halves;
}

/* C = A B times the slope at X, rounded once; or twice, where the library has no such product. */
static void judge_joined(test_random *random, size_t m, size_t n, size_t k)
{
    float *av = malloc(m * k * sizeof *av), *bv = malloc(k * n * sizeof *bv), *xv = malloc(m * n * sizeof *xv);
    uint16_t *a = random_halves(random, m * k, av), *b = random_halves(random, k * n, bv);
    uint16_t *x = random_halves(random, m * n, xv), *c = calloc(m * n, sizeof *c);
    float *got = malloc(m * n * sizeof *got);
    const tensor_ref result = {c, REMAT_BF16};
    device_perform(OP_gemm, &(op_gemm){.a = {a, REMAT_BF16},
                                       .b = {b, REMAT_BF16},
                                       .c = result,
                                       .activated = result,
                                       .derivative_at = {x, REMAT_BF16},
                                       .m = m,
                                       .n = n,
                                       .k = k,
                                       .lda = k,
                                       .ldb = n,
                                       .ldc = n,
                                       .activation = ACTIVATION_GELU_TANH});
    half_unpack(half_kernels_list(0), REMAT_BF16, c, got, m * n);
    for (size_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (size_t j = 0; j < k; j++)
            sum += (double)av[i / n * k + j] * (double)bv[j * n + i % n];
        const double wanted = sum * slope_of((double)xv[i]);
        expect_near(got[i], wanted, 0x1p-7 * fabs(wanted) + 1e-3 * (1 + fabs(sum)));
    }
    free(av), free(bv), free(xv), free(got), free(a), free(b), free(x), free(c);
}

static void joined_products_are_right(void **state)
{
    (void)state;
    if (!device_kernels())
        skip();
    test_random random = random_open();
    judge_joined(&random, 128, 256, 64);
    judge_joined(&random, 1000, 384, 96);
    judge_joined(&random, 33, 40, 24);
    judge_joined(&random, 64, 20, 7); /* rows that no library takes */
    judge_joined(&random, 1, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_read_once_is_joined),
        cmocka_unit_test(joined_products_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
