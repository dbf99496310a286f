#include "support/curves.h"

#include "support/random_profile.h"

enum { MOST_MODES = 8 };

static void append_layer(fixture *f, remat_profile *to, const remat_layer *layer)
{
    remat_layer_options options;
    remat_mode_options modes[MOST_MODES];
    remat_layer_options_init(&options);
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    options.type = layer->type;
    options.activation_bytes = keep->activation_bytes;
    options.recompute_flops = layer->recompute_flops;
    options.output_bytes = layer->output_bytes;
    options.forward_cost = keep->forward_cost;
    options.backward_cost = keep->backward_cost;
    options.forward_workspace_bytes = keep->forward_workspace_bytes;
    options.backward_workspace_bytes = keep->backward_workspace_bytes;
    options.modes = modes;
    options.mode_count = layer->mode_count - 1;
    assert_true(options.mode_count <= MOST_MODES);
    for (size_t k = 0; k < options.mode_count; k++) {
        const remat_mode *mode = &layer->modes[k + 1];
        remat_mode_options_init(&modes[k]);
        modes[k].name = mode->name;
        modes[k].activation_bytes = mode->activation_bytes;
        modes[k].forward_cost = mode->forward_cost;
        modes[k].backward_cost = mode->backward_cost;
        modes[k].forward_workspace_bytes = mode->forward_workspace_bytes;
        modes[k].backward_workspace_bytes = mode->backward_workspace_bytes;
        modes[k].holds_output = mode->holds_output;
        modes[k].lossless = mode->lossless;
    }
    expect_ok(f, remat_profile_add_layer(to, &options));
}

void append_layers(fixture *f, remat_profile *to, const remat_profile *from, size_t first, size_t count, size_t times)
{
    for (size_t time = 0; time < times; time++)
        for (size_t i = first; i < first + count; i++)
            append_layer(f, to, remat_profile_layer(from, i));
}

remat_profile *repeating_chain(fixture *f, test_random *random, size_t layers, bool modes)
{
    random_traits traits = {layers, layers, modes, false};
    remat_profile *source = random_profile(f->context, random, &traits), *profile;
    size_t period = 1 + test_random_below(random, layers < 4 ? layers : 4);
    size_t before = test_random_below(random, (layers - period) / 2 + 1), times = (layers - before) / period;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, remat_profile_input_bytes(source)));
    append_layers(f, profile, source, period, before, 1);
    append_layers(f, profile, source, 0, period, times);
    append_layers(f, profile, source, 0, layers - before - period * times, 1);
    remat_profile_destroy(source);
    return profile;
}

static remat_status play(void *user, remat_step step)
{
    return remat_simulator_step(user, step);
}

void expect_real_point(fixture *f, const remat_profile *profile, const optimal_solution *solution, size_t point)
{
    remat_simulator *simulator;
    remat_figures figures;
    uint64_t peak, cost;
    optimal_curve_point(solution, point, &peak, &cost);
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    expect_ok(f, optimal_walk(solution, point, play, simulator));
    expect_ok(f, remat_simulator_finish(simulator, &figures));
    remat_simulator_destroy(simulator);
    assert_true(figures.peak_bytes <= peak);
    assert_int_equal(figures.total_cost, cost);
}

void expect_real_curve(fixture *f, const remat_profile *profile, const optimal_solution *solution, size_t stride)
{
    size_t count = optimal_curve_count(solution);
    uint64_t last_peak = 0, last_cost = UINT64_MAX, keep_all = 0;
    assert_true(count > 0);
    for (size_t k = 0; k < count; k++) {
        uint64_t peak, cost;
        optimal_curve_point(solution, k, &peak, &cost);
        assert_true(k == 0 || peak > last_peak);
        assert_true(cost < last_cost);
        last_peak = peak;
        last_cost = cost;
        if (k % stride == 0 || k + 1 == count)
            expect_real_point(f, profile, solution, k);
    }
    for (size_t i = 0; i < remat_profile_layer_count(profile); i++) {
        const remat_mode *keep = &remat_profile_layer(profile, i)->modes[REMAT_KEEP];
        keep_all += keep->forward_cost + keep->backward_cost;
    }
    assert_true(last_cost <= keep_all);
}

void expect_same_curve(const optimal_solution *a, const optimal_solution *b)
{
    assert_int_equal(optimal_curve_count(a), optimal_curve_count(b));
    for (size_t k = 0; k < optimal_curve_count(a); k++) {
        uint64_t peak_a, cost_a, peak_b, cost_b;
        optimal_curve_point(a, k, &peak_a, &cost_a);
        optimal_curve_point(b, k, &peak_b, &cost_b);
        assert_int_equal(peak_a, peak_b);
        assert_int_equal(cost_a, cost_b);
    }
}
