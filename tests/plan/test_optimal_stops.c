/* Walks along the optimal planner's table: wherever the visitor stops, its status comes back and no further step is told; where
 * memory runs out, that is the answer; and the cost that a walk states is the one of its corner. */
#include "plan/chain/optimal_table.h"
#include "support/fixture.h"

typedef struct stopper {
    uint64_t told, stop_at; /* the step that ends the walk, from 1 */
} stopper;

static remat_status stop(void *user, remat_step step)
{
    stopper *s = user;
    (void)step;
    return ++s->told == s->stop_at ? REMAT_IO : REMAT_OK;
}

/* Modes that hold their output and modes that do not, and outputs that are cheaper to hold than to make again. */
static remat_profile *mixed_layers(fixture *f, size_t count, unsigned kind)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 40));
    for (size_t i = 0; i < count; i++) {
        remat_mode_options mode;
        remat_layer_options layer;
        remat_mode_options_init(&mode);
        remat_layer_options_init(&layer);
        mode.name = "small";
        mode.activation_bytes = 15 + i * 5 % 11;
        mode.holds_output = kind % 2 == 0;
        layer.activation_bytes = 60 + 7 * (i * 3 % 5);
        layer.output_bytes = kind < 2 ? 20 : 5 + i * 7 % 40;
        layer.recompute_flops = 5 + i % 4;
        layer.modes = &mode;
        layer.mode_count = (i + kind) % 3 != 0;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

/* One corner of the curve. */
static void expect_stops(fixture *f, const optimal_table *table, uint64_t budget, uint64_t cost)
{
    stopper whole = {0};
    uint64_t stated;
    expect_ok(f, optimal_table_plan(f->context, table, NULL, budget, stop, &whole, &stated));
    assert_int_equal(stated, cost);
    for (uint64_t at = 1; at <= whole.told; at++) {
        stopper s = {0, at};
        assert_int_equal(optimal_table_plan(f->context, table, NULL, budget, stop, &s, NULL), REMAT_IO);
        assert_int_equal(s.told, at);
    }
    uint64_t held = f->memory.bytes, failures = 0;
    for (remat_status status = REMAT_NO_MEMORY; status != REMAT_OK && failures < 100; failures++) {
        stopper s = {0};
        f->memory.fail_at = f->memory.calls + failures + 1;
        status = optimal_table_plan(f->context, table, NULL, budget, stop, &s, NULL);
        f->memory.fail_at = 0;
        assert_true(status == REMAT_OK ? s.told == whole.told : status == REMAT_NO_MEMORY);
        assert_int_equal(f->memory.bytes, held);
    }
    assert_in_range(failures, 3, 99); /* two rooms and the list of tasks, at least */
}

static void walks_that_stop(void **state)
{
    fixture *f = *state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t layers = 1; layers <= 21; layers += 4) {
            remat_profile *profile = mixed_layers(f, layers, kind);
            optimal_model model;
            optimal_table table;
            expect_ok(f, optimal_model_build(f->context, profile, true, &model));
            expect_ok(f, optimal_table_solve(f->context, &model, &(table_options){.threads = 1}, &table));
            staircase curve = optimal_table_curve(&table);
            assert_true(curve.count > 0);
            for (size_t i = 0; i < curve.count; i += 1 + curve.count / 6)
                expect_stops(f, &table, curve.memory[i] + 40, curve.cost[i]);
            optimal_table_free(f->context, &table);
            optimal_model_free(f->context, &model);
            remat_profile_destroy(profile);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(walks_that_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
