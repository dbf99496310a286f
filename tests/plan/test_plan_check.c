/* A check finds every figure and every layer that is stated wrongly. */
#include "support/chains.h"
#include "support/plan_json.h"

/* A chain on which recomputing helps, so that no two figures are equal by chance. */
static remat_profile *useful_chain(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 3));
    for (size_t i = 0; i < 6; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.type = i % 2 ? REMAT_FFN : REMAT_ATTENTION;
        layer.activation_bytes = 100 + 10 * i;
        layer.output_bytes = 5 + i;
        layer.recompute_flops = 1000 + i;
        layer.forward_cost = 50 + i;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

typedef struct checked {
    fixture *f;
    remat_profile *profile;
    json_t *tree; /* of a good plan */
} checked;

static checked checked_begin(fixture *f, const char *strategy)
{
    checked all = {f, useful_chain(f), NULL};
    remat_plan *plan = plan_by(f, all.profile, strategy);
    remat_figures figures;
    all.tree = plan_tree(plan);
    expect_ok(f, check_plan_tree(f, all.tree, all.profile, &figures));
    remat_plan_destroy(plan);
    return all;
}

static void checked_end(checked *all)
{
    json_decref(all->tree);
    remat_profile_destroy(all->profile);
}

/* Checks a copy of the good plan in which `key` is `value`, which is taken over; NULL: the key is not there. */
static remat_status check_with(const checked *all, const char *key, json_t *value)
{
    json_t *copy = json_deep_copy(all->tree);
    remat_figures figures;
    if (value)
        json_object_set_new(copy, key, value);
    else
        json_object_del(copy, key);
    remat_status status = check_plan_tree(all->f, copy, all->profile, &figures);
    json_decref(copy);
    return status;
}

static void expect_caught(const checked *all, const char *key, json_t *value)
{
    expect_status(all->f, check_with(all, key, value), REMAT_CHECK_FAILED);
    assert_string_equal(remat_context_error(all->f->context)->field, key);
    expect_message(all->f, "is stated");
}

static void every_figure_is_compared(void **state)
{
    static const char *const keys[] = {"peak_bytes", "kept_bytes",      "estimated_bytes", "total_cost",
                                       "base_cost",  "base_peak_bytes", "recompute_flops", "steps"};
    static const char *const strategies[] = {"full:2", "none", "every-nth:2"};
    for (size_t s = 0; s < 3; s++) {
        checked all = checked_begin(*state, strategies[s]);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            json_int_t stated = (json_int_t)plan_number(all.tree, keys[i]);
            expect_caught(&all, keys[i], json_integer(stated + 1));
            if (stated > 0)
                expect_caught(&all, keys[i], json_integer(stated - 1));
            expect_caught(&all, keys[i], json_integer(INT64_MAX));
        }
        checked_end(&all);
    }
}

static void bounds_that_the_schedule_contradicts_are_caught(void **state)
{
    checked all = checked_begin(*state, "full:2");
    json_int_t peak = (json_int_t)plan_number(all.tree, "peak_bytes");
    json_int_t cost = (json_int_t)plan_number(all.tree, "total_cost");
    json_int_t kept = (json_int_t)plan_number(all.tree, "kept_bytes");
    expect_caught(&all, "budget_bytes", json_integer(peak - 1));
    expect_caught(&all, "min_budget_bytes", json_integer(peak + 1));
    expect_caught(&all, "lower_bound_cost", json_integer(cost + 1));
    expect_ok(all.f, check_with(&all, "budget_bytes", json_integer(peak)));
    expect_ok(all.f, check_with(&all, "kept_budget_bytes", json_integer(kept)));
    checked_end(&all);
    all = checked_begin(*state, "none");
    kept = (json_int_t)plan_number(all.tree, "kept_bytes");
    expect_caught(&all, "kept_budget_bytes", json_integer(kept - 1));
    checked_end(&all);
}

static void the_figures_handed_back_are_the_real_ones(void **state)
{
    checked all = checked_begin(*state, "full:2");
    json_t *copy = json_deep_copy(all.tree);
    uint64_t peak = plan_number(copy, "peak_bytes");
    remat_figures figures;
    json_object_set_new(copy, "peak_bytes", json_integer(1));
    expect_status(all.f, check_plan_tree(all.f, copy, all.profile, &figures), REMAT_CHECK_FAILED);
    assert_int_equal(figures.peak_bytes, peak);
    json_decref(copy);
    checked_end(&all);
}

static void feasible_false_with_a_schedule_is_caught(void **state)
{
    checked all = checked_begin(*state, "full:2");
    expect_status(all.f, check_with(&all, "feasible", json_false()), REMAT_CHECK_FAILED);
    expect_message(all.f, "feasible");
    checked_end(&all);
}

/* ---- layers ---- */

static remat_status check_with_layer(const checked *all, size_t layer, const char *key, json_t *value)
{
    json_t *layers = json_deep_copy(json_object_get(all->tree, "layers"));
    json_object_set_new(json_array_get(layers, layer), key, value);
    return check_with(all, "layers", layers);
}

static void expect_caught_layer(const checked *all, size_t layer, const char *key, json_t *value)
{
    expect_status(all->f, check_with_layer(all, layer, key, value), REMAT_CHECK_FAILED);
    assert_string_equal(remat_context_error(all->f->context)->field, key);
    assert_int_equal(remat_context_error(all->f->context)->layer, layer);
}

static void every_layer_is_compared(void **state)
{
    checked all = checked_begin(*state, "every-nth:2");
    for (size_t i = 0; i < 6; i++) {
        bool recomputed = i % 2 == 0;
        expect_caught_layer(&all, i, "decision", json_string(recomputed ? "keep" : "recompute"));
        expect_caught_layer(&all, i, "decision", json_string("half")); /* no such mode */
        expect_caught_layer(&all, i, "forwards", json_integer(recomputed ? 1 : 2));
        expect_caught_layer(&all, i, "forwards", json_integer((json_int_t)1 << 32 | (recomputed ? 2 : 1)));
        expect_caught_layer(&all, i, "index", json_integer((json_int_t)i + 1));
        expect_caught_layer(&all, i, "name", json_string("other"));
    }
    checked_end(&all);
}

static void no_forwards_at_all_is_a_statement_too(void **state)
{
    checked all = checked_begin(*state, "every-nth:2");
    for (size_t i = 0; i < 6; i++)
        expect_caught_layer(&all, i, "forwards", json_integer(0));
    checked_end(&all);
}

static void what_a_layer_does_not_state_is_not_compared(void **state)
{
    checked all = checked_begin(*state, "every-nth:2");
    json_t *layers = json_array();
    for (size_t i = 0; i < 6; i++)
        json_array_append_new(layers, json_object());
    expect_ok(all.f, check_with(&all, "layers", layers));
    expect_ok(all.f, check_with(&all, "layers", NULL));
    checked_end(&all);
}

/* Layers before the schedule or behind it, one too few and one too many: all the same. */
static void the_number_of_layers_is_compared(void **state)
{
    checked all = checked_begin(*state, "every-nth:2");
    const json_t *good = json_object_get(all.tree, "layers");
    for (int behind = 0; behind < 2; behind++)
        for (int change = -1; change <= 2; change++) {
            json_t *layers = json_deep_copy(good), *copy = json_deep_copy(all.tree);
            if (change < 0)
                json_array_remove(layers, 5);
            for (int i = 0; i < change; i++)
                json_array_append_new(layers, i ? json_object() : json_deep_copy(json_array_get(good, 0)));
            if (behind)
                json_object_del(copy, "layers");
            json_object_set_new(copy, "layers", layers);
            remat_figures figures;
            remat_status status = check_plan_tree(all.f, copy, all.profile, &figures);
            expect_status(all.f, status, change ? REMAT_CHECK_FAILED : REMAT_OK);
            if (change) {
                assert_string_equal(remat_context_error(all.f->context)->field, "layers");
                expect_message(all.f, "the profile 6");
            }
            json_decref(copy);
        }
    checked_end(&all);
}

static void an_extra_layer_that_is_empty_is_one_too_many(void **state)
{
    checked all = checked_begin(*state, "none");
    json_t *copy = json_deep_copy(all.tree), *layers = json_deep_copy(json_object_get(copy, "layers"));
    json_array_append_new(layers, json_object());
    json_object_del(copy, "layers");
    json_object_set_new(copy, "layers", layers); /* behind the schedule */
    remat_figures figures;
    expect_status(all.f, check_plan_tree(all.f, copy, all.profile, &figures), REMAT_CHECK_FAILED);
    json_decref(copy);
    checked_end(&all);
}

static void another_profile_is_noticed(void **state)
{
    checked all = checked_begin(*state, "full:2");
    remat_profile *other = six_layers(all.f), *shorter = equal_layers(all.f, 3, 10, 10);
    remat_profile *none = equal_layers(all.f, 0, 0, 0);
    remat_figures figures;
    expect_status(all.f, check_plan_tree(all.f, all.tree, other, &figures), REMAT_CHECK_FAILED);
    expect_status(all.f, check_plan_tree(all.f, all.tree, shorter, &figures), REMAT_CHECK_FAILED);
    expect_status(all.f, check_plan_tree(all.f, all.tree, none, &figures), REMAT_CHECK_FAILED);
    remat_profile_destroy(other);
    remat_profile_destroy(shorter);
    remat_profile_destroy(none);
    checked_end(&all);
}

static void three_keys_are_enough(void **state)
{
    checked all = checked_begin(*state, "full:2");
    remat_figures figures;
    json_t *bare = bare_plan(all.tree);
    expect_ok(all.f, check_plan_tree(all.f, bare, all.profile, &figures));
    assert_int_equal(figures.peak_bytes, plan_number(all.tree, "peak_bytes"));
    static const char *const keys[] = {"format", "version", "schedule"};
    for (size_t i = 0; i < 3; i++) {
        expect_status(all.f, check_with(&all, keys[i], NULL), REMAT_BAD_INPUT);
        assert_string_equal(remat_context_error(all.f->context)->field, keys[i]);
        expect_message(all.f, "missing");
    }
    json_decref(bare);
    checked_end(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_figure_is_compared),
        FIXTURE_TEST(bounds_that_the_schedule_contradicts_are_caught),
        FIXTURE_TEST(the_figures_handed_back_are_the_real_ones),
        FIXTURE_TEST(feasible_false_with_a_schedule_is_caught),
        FIXTURE_TEST(every_layer_is_compared),
        FIXTURE_TEST(no_forwards_at_all_is_a_statement_too),
        FIXTURE_TEST(what_a_layer_does_not_state_is_not_compared),
        FIXTURE_TEST(the_number_of_layers_is_compared),
        FIXTURE_TEST(an_extra_layer_that_is_empty_is_one_too_many),
        FIXTURE_TEST(another_profile_is_noticed),
        FIXTURE_TEST(three_keys_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
