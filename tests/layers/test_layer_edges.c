/* Options at their edges: what is too large or does not fit in one direction only, and how every initializer scales. */
#include "layers/layer_rig.h"
#include "support/fixture.h"

static void one_direction_is_wrong(void **state)
{
    static const struct {
        layer_case from;
        const char *message;
    } refused[] = {
        {{"addition", 1, {{2, 2, 3}, {1, 2, 3}}, {0}, 0}, "input 1 is 2:2:3 and input 2 is 1:2:3"},
        {{"embedding", 1, {{1, 1, 4}}, {"in_dim=2147483647", "out_dim=1099511627776"}, 0},
         "parameter weight is too large"},
        {{"position_embedding", 1, {{1, 4, 4}}, {"positions=1152921504606846976"}, 0}, "parameter weight is too large"},
        {{"conv2d", 1, {{1ull << 30, 1, 1}}, {"filters=1099511627776", "kernel_size=1"}, 0},
         "parameter weight is too large"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=2,5"}, 0},
         "a window of width 5 does not fit into the input 1:4:4 with padding 0; at most 4 would"},
        {{"pooling2d", 1, {{1, 4, 4}}, {"pool_size=5,2"}, 0}, "a window of height 5 does not fit"},
        {{"pooling2d", 1, {{1, 9, 9}}, {"pool_size=4,3", "padding=2,2"}, 0},
         "padding 2,2 is more than half of pool_size 4,3"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "padding=65536,1"}, 0}, "padding"},
        {{"conv2d", 1, {{1, 4, 4}}, {"filters=1", "kernel_size=3", "padding=1,65536"}, 0}, "padding"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        layer_rig rig;
        expect_status(f, rig_resolve(&rig, f->context, &refused[i].from, &(backend_options){0}), REMAT_INVALID);
        expect_message(f, refused[i].message);
        rig_forget(&rig);
    }
}

/* Variances as the papers have them: 2 / (in + out), 2 / in, 1 / in. A uniform range of +-s has the variance s^2 / 3. */
static void variances_of_initializers(void **state)
{
    static const struct {
        const char *property;
        bool uniform;
        double variance;
    } starts[] = {
        {"weight_initializer=xavier_uniform", true, 2. / (16 + 8)},
        {"weight_initializer=xavier_normal", false, 2. / (16 + 8)},
        {"weight_initializer=he_uniform", true, 2. / 16},
        {"weight_initializer=he_normal", false, 2. / 16},
        {"weight_initializer=lecun_uniform", true, 1. / 16},
        {"weight_initializer=lecun_normal", false, 1. / 16},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const layer_case from = {"fully_connected", 1, {{1, 1, 16}}, {"unit=8", starts[i].property}, 0};
        layer_rig rig;
        expect_ok(f, rig_resolve(&rig, f->context, &from, &(backend_options){0}));
        const layer_parameter *weight = &rig.node.parameters[0];
        double variance = weight->fill_scale * weight->fill_scale / (starts[i].uniform ? 3 : 1);
        assert_int_equal(weight->fill, starts[i].uniform ? LAYER_UNIFORM : LAYER_NORMAL);
        assert_true(fabs(variance - starts[i].variance) < 1e-15);
        assert_int_equal(rig.node.parameters[1].fill, LAYER_ZEROS);
        rig_forget(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(one_direction_is_wrong),
        FIXTURE_TEST(variances_of_initializers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
