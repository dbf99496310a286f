/* Cutting a network into stages. */
#include "support/fixture.h"

#include "train/pipeline.h"

static remat_model *make_model(fixture *f)
{
    static const char *const layers[][4] = {
        {"input", "name=in", "input_shape=1:1:64", NULL}, {"fully_connected", "name=a", "unit=512", NULL},
        {"fully_connected", "name=b", "unit=512", NULL},  {"fully_connected", "name=c", "unit=512", NULL},
        {"fully_connected", "name=d", "unit=512", NULL},  {"fully_connected", "name=e", "unit=512", NULL},
        {"fully_connected", "name=f", "unit=3", NULL},    {"mse", "name=loss", NULL},
    };
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        expect_ok(f, remat_model_add_layer(model, layers[i][0], layers[i] + 1));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=8")));
    expect_ok(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* No cut, of all that there are, has a faster slowest stage. */
static void try_all(const stage_cuts *cuts, size_t stages, size_t stage, size_t first, uint64_t slowest, uint64_t *best)
{
    if (stage + 1 == stages) {
        const uint64_t last = stage_cuts_cost(cuts, first, cuts->count);
        slowest = slowest > last ? slowest : last;
        *best = slowest < *best ? slowest : *best;
        return;
    }
    for (size_t end = first + 1; end < cuts->count; end++) {
        const uint64_t cost = stage_cuts_cost(cuts, first, end);
        try_all(cuts, stages, stage + 1, end, cost > slowest ? cost : slowest, best);
    }
}

static void test_fastest(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_network *network;
    remat_program *program;
    stage_cuts cuts;
    expect_ok(f, network_build(model, &(network_options){8, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &network));
    expect_ok(f, program_build(network, PROGRAM_ADD_AT_ONCE, &program));
    expect_ok(f, stage_cuts_find(program, &cuts));
    assert_int_equal(cuts.layers[0], 0);
    assert_int_equal(cuts.count, 7); /* before each layer that computes, the loss too; and the first is with the data */
    for (size_t stages = 1; stages <= cuts.count; stages++) {
        size_t chosen[9];
        uint64_t best = UINT64_MAX, slowest = 0, least_crossing = 0;
        expect_ok(f, stage_cuts_choose(&cuts, stages, chosen));
        assert_true(chosen[0] == 0 && chosen[stages] == cuts.count);
        for (size_t s = 0; s < stages; s++) {
            const uint64_t cost = stage_cuts_cost(&cuts, chosen[s], chosen[s + 1]);
            assert_true(chosen[s] < chosen[s + 1]);
            slowest = cost > slowest ? cost : slowest;
            least_crossing += cuts.bytes[chosen[s]];
        }
        try_all(&cuts, stages, 0, 0, 0, &best);
        assert_true(slowest >= best && slowest <= best + best / 5); /* what crosses takes time, too */
        assert_true(stages == 1 || least_crossing > 0);
    }
    stage_cuts_narrow(&cuts, 2);
    for (size_t i = 1; i < cuts.count; i++)
        assert_true(cuts.bytes[i] <= 2 * (uint64_t)3 * 8 * sizeof(float)); /* only behind the last layer */
    stage_cuts_release(&cuts);
    program_destroy(program);
    network_destroy(network);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_fastest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
