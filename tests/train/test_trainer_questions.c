/* Questions before training and what becomes of the answers: figures, plan files, the curve, the largest batch. */
#include <stdlib.h>
#include <unistd.h>

#include "support/small_models.h"
#include "train/trainer_toy.h"

static remat_trainer_figures figures_of(const remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    return figures;
}

static remat_train_options plain_options(void)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.steps = 1;
    return options;
}

/* What lives at the peak is all of it; and all of it runs as often as was said. */
static void check_figures(fixture *f, remat_model *model, const remat_train_options *options)
{
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, options, &trainer));
    remat_trainer_figures figures = figures_of(trainer);
    assert_int_equal(figures.peak_bytes, figures.peak_activation_bytes + figures.peak_gradient_bytes +
                                             figures.peak_weight_gradient_bytes + figures.peak_workspace_bytes +
                                             figures.peak_data_bytes);
    assert_non_null(figures.peak_layer);
    assert_true(figures.total_bytes <= figures.budget_bytes);
    remat_run_result result;
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_int_equal(result.forwards, figures.forwards);
    remat_trainer_destroy(trainer);
}

/* Each point of the curve is what a budget of its bytes gives. */
static void test_curve(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        remat_train_options options = plain_options();
        options.strategy = "optimal";
        options.plan_only = true;
        remat_trainer *trainer, *planned;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        remat_train_point *points;
        size_t count;
        expect_ok(f, remat_trainer_find_curve(trainer, &count));
        assert_true(count > 0 && remat_trainer_knee(trainer) < count);
        points = malloc(count * sizeof *points);
        for (size_t p = 0; p < count; p++)
            expect_ok(f, remat_trainer_get_point(trainer, p, &points[p]));
        expect_status(f, remat_trainer_get_point(trainer, count, &points[0]), REMAT_INVALID);
        assert_int_equal(points[0].total_bytes, figures_of(trainer).min_budget_bytes);
        for (size_t p = 1; p < count; p++) {
            assert_true(points[p].total_bytes > points[p - 1].total_bytes);
            assert_true(points[p].cost < points[p - 1].cost);
        }
        for (size_t p = 0; p < count; p += 1 + count / LESS_WHEN_SANITIZED(8, 2)) {
            options.budget_bytes = points[p].total_bytes;
            expect_ok(f, remat_trainer_create(model, &options, &planned));
            assert_int_equal(figures_of(planned).total_bytes, points[p].total_bytes);
            assert_int_equal(figures_of(planned).cost, points[p].cost);
            if (p == 0) { /* every plan tells what the smallest costs, and which layer makes its peak */
                assert_int_equal(figures_of(trainer).min_budget_cost, figures_of(planned).cost);
                assert_string_equal(figures_of(trainer).min_budget_layer, figures_of(planned).peak_layer);
            }
            remat_trainer_destroy(planned);
        }
        options.budget_bytes = points[0].total_bytes - 1;
        assert_int_equal(remat_trainer_create(model, &options, &planned), REMAT_INFEASIBLE);
        expect_budget_error(f, points[0].total_bytes - 1, points[0].total_bytes);
        options.plan_only = false;
        for (size_t p = 0; p < count; p += 1 + count / LESS_WHEN_SANITIZED(4, 2)) {
            options.budget_bytes = points[p].total_bytes;
            check_figures(f, model, &options);
        }
        free(points);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
}

static double loss_after_a_step(fixture *f, remat_model *model, const remat_train_options *options, uint64_t most)
{
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, options, &trainer));
    assert_true(figures_of(trainer).total_bytes <= most);
    one_step(f, trainer);
    double loss = one_step(f, trainer).loss; /* of the weights that the first made */
    remat_trainer_destroy(trainer);
    return loss;
}

/* A plan that was written is a legal plan of the chain, and trains to the same bits. */
static void test_plan_files(void **state)
{
    fixture *f = *state;
    char path[] = "/tmp/remat-plan-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; small_model_name(i); i++)
        for (int way = 0; way < 3; way++) {
            remat_model *model;
            expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
            remat_train_options options = plain_options();
            options.strategy = way == 0 ? "none" : way == 1 ? "full:2" : "optimal";
            options.plan_only = true;
            remat_trainer *trainer;
            expect_ok(f, remat_trainer_create(model, &options, &trainer));
            if (way == 2) {
                options.budget_bytes = figures_of(trainer).min_budget_bytes;
                remat_trainer_destroy(trainer);
                expect_ok(f, remat_trainer_create(model, &options, &trainer));
            }
            expect_ok(f, remat_trainer_save_plan(trainer, path));
            FILE *stream = fopen(path, "r");
            remat_figures replayed;
            expect_ok(f, remat_plan_check(f->context, stream, path, remat_trainer_chain(trainer), &replayed));
            fclose(stream);
            uint64_t most = figures_of(trainer).total_bytes;
            remat_trainer_destroy(trainer);
            options.plan_only = false;
            options.steps = 2;
            double wanted = loss_after_a_step(f, model, &options, most);
            options.strategy = NULL;
            options.budget_bytes = REMAT_NO_BUDGET;
            options.plan_path = path;
            assert_true(loss_after_a_step(f, model, &options, most) == wanted);
            remat_model_destroy(model);
        }
    unlink(path);
}

/* The plan of the graph trains to the same bits, in the same arena. */
static void test_graph_plan_files(void **state)
{
    fixture *f = *state;
    char path[] = "/tmp/remat-plan-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        remat_trainer *trainer;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        remat_train_options options = plain_options();
        options.strategy = i % 2 ? "sqrt" : "full:2";
        options.plan_only = true;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        expect_ok(f, remat_trainer_save_graph_plan(trainer, path));
        remat_trainer_figures wanted = figures_of(trainer);
        remat_trainer_destroy(trainer);
        options.graph_plan_path = path;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID); /* and a strategy */
        options.strategy = NULL;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        assert_int_equal(figures_of(trainer).arena_bytes, wanted.arena_bytes);
        assert_int_equal(figures_of(trainer).cost, wanted.cost);
        assert_string_equal(figures_of(trainer).strategy, "graph plan file");
        assert_null(remat_trainer_plan(trainer));
        assert_int_equal(remat_trainer_write_plan(trainer, stdout, true), REMAT_INVALID);
        remat_trainer_destroy(trainer);
        options.plan_only = false;
        options.steps = 2;
        double loss = loss_after_a_step(f, model, &options, wanted.total_bytes);
        options.graph_plan_path = NULL;
        options.strategy = i % 2 ? "sqrt" : "full:2";
        assert_true(loss_after_a_step(f, model, &options, wanted.total_bytes) == loss);
        remat_model_destroy(model);
    }
    unlink(path);
}

/* Blocks are no plan of a chain. */
static void test_blocks_have_no_plan_file(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=8")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=8")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=b", "activation=gelu")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=c", "unit=1")));
    expect_ok(f, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_add_block(model, REMAT_PROPERTIES("a", "b")));
    expect_ok(f, remat_model_compile(model));
    remat_train_options options = plain_options();
    options.plan_only = true;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    assert_null(remat_trainer_plan(trainer));
    assert_int_equal(remat_trainer_write_plan(trainer, stdout, true), REMAT_INVALID);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_largest_batch(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"), REMAT_PROPERTIES("batch_size=4"));
    remat_train_options options = toy_options(&data);
    uint64_t batch = 0;
    assert_int_equal(remat_train_largest_batch(model, &options, &batch), REMAT_INVALID); /* for which budget? */
    options.budget_bytes = 64 << 20;
    expect_ok(f, remat_train_largest_batch(model, &options, &batch));
    assert_int_equal(batch, 32); /* of 96 samples to train with and 32 to validate with */
    options.validation_samples = 0;
    expect_ok(f, remat_train_largest_batch(model, &options, &batch));
    assert_int_equal(batch, 96);
    options.plan_only = true; /* as if there were any number of them */
    for (uint64_t budget = 4 << 20; budget <= 64 << 20; budget *= 2) {
        options.budget_bytes = budget;
        expect_ok(f, remat_train_largest_batch(model, &options, &batch));
        remat_trainer *trainer;
        options.batch_size = batch;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        remat_trainer_destroy(trainer);
        options.batch_size = batch + 1;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INFEASIBLE);
        options.batch_size = 0;
    }
    options.budget_bytes = 100;
    assert_int_equal(remat_train_largest_batch(model, &options, &batch), REMAT_INFEASIBLE);
    remat_model_destroy(model);
}

static double sample_cost(fixture *f, remat_model *model, remat_train_options options, uint64_t batch)
{
    options.batch_size = batch;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_get_figures(trainer, &figures);
    remat_trainer_destroy(trainer);
    return (double)figures.cost / (double)batch;
}

/* No batch that fits is faster for a sample, as predicted, than the one that is chosen. */
static void test_fastest_batch(void **state)
{
    fixture *f = *state;
    static char text[] = "[Dataset : random]\n[in : input]\ninput_shape = 64\n[Repeat hidden]\ncount = 4\n"
                         "[fc{i} : fully_connected]\nunit = 64\n[act{i} : activation]\nactivation = gelu_erf\n[End]\n"
                         "[out : fully_connected]\nunit = 1\n[loss : mse]\n";
    FILE *stream = fmemopen(text, sizeof text - 1, "r");
    remat_model *model;
    expect_ok(f, remat_model_read(f->context, stream, "deep.ini", &model));
    fclose(stream);
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.plan_only = true;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_get_figures(trainer, &figures);
    remat_trainer_destroy(trainer);
    options.budget_bytes = figures.min_budget_bytes + 64000;
    remat_batch_choice choice;
    uint64_t largest;
    expect_ok(f, remat_train_choose_batch(model, &options, &choice));
    expect_ok(f, remat_train_largest_batch(model, &options, &largest));
    assert_int_equal(choice.largest, largest);
    assert_true(choice.fastest < largest); /* which recomputes too much */
    assert_true(choice.fastest_sample_cost == sample_cost(f, model, options, choice.fastest));
    assert_true(choice.largest_sample_cost == sample_cost(f, model, options, largest));
    for (uint64_t batch = 1; batch <= largest; batch += 9) /* it tries only some: near the best counts */
        assert_true(choice.fastest_sample_cost <= 1.01 * sample_cost(f, model, options, batch));
    options.budget_bytes = 100;
    assert_int_equal(remat_train_choose_batch(model, &options, &choice), REMAT_INFEASIBLE);
    assert_int_equal(choice.fastest, 0);
    remat_model_destroy(model);
}

/* A quick plan of a deep model has the same ends, up to a little of the smaller one. */
static void test_quick_plan(void **state)
{
    fixture *f = *state;
    static char text[] =
        "[Model]\nbatch_size = 8\n[Dataset : random]\n[in : input]\ninput_shape = 64\n[Repeat hidden]\ncount = 70\n"
        "[fc{i} : fully_connected]\nunit = 64\n[act{i} : activation]\nactivation = gelu_erf\n[End]\n"
        "[out : fully_connected]\nunit = 1\n[loss : mse]\n";
    FILE *stream = fmemopen(text, sizeof text - 1, "r");
    remat_model *model;
    expect_ok(f, remat_model_read(f->context, stream, "deep.ini", &model));
    fclose(stream);
    remat_train_options options = plain_options();
    options.plan_only = true;
    options.budget_bytes = REMAT_UNLIMITED;
    remat_trainer *whole, *quick;
    expect_ok(f, remat_trainer_create(model, &options, &whole));
    options.plan_quickly = true;
    expect_ok(f, remat_trainer_create(model, &options, &quick));
    const remat_trainer_figures a = figures_of(whole), b = figures_of(quick);
    assert_int_equal(b.keep_all_arena_bytes, a.keep_all_arena_bytes);
    assert_int_equal(b.min_budget_bound_bytes, a.min_budget_bound_bytes);
    assert_in_range(b.min_budget_bytes, b.min_budget_bound_bytes, a.min_budget_bytes + a.min_budget_bytes / 50);
    remat_trainer_destroy(quick);
    remat_trainer_destroy(whole);
    remat_model_destroy(model);
}

/* A step of several micro-batches costs as much as they do together, and the optimizer once. */
static void test_accumulated_cost(void **state)
{
    fixture *f = *state;
    uint64_t costs[3];
    static const char *const counts[] = {"accumulate=2", "accumulate=3", "accumulate=6"};
    for (int i = 0; i < 3; i++) {
        remat_model *model =
            toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"), REMAT_PROPERTIES(counts[i], "clip_norm=2"));
        remat_train_options options = plain_options();
        options.plan_only = true;
        remat_trainer *trainer;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        costs[i] = figures_of(trainer).cost;
        assert_true(figures_of(trainer).clip_norm == 2);
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
    assert_int_equal(costs[2] - costs[1], 3 * (costs[1] - costs[0]));
    assert_true(costs[0] > 2 * (costs[1] - costs[0]));
}

static void test_early_stopping_needs_validation(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"),
                                   REMAT_PROPERTIES("batch_size=4", "early_stopping=3"));
    remat_train_options options = toy_options(&data);
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_destroy(trainer);
    options.validation_samples = 0;
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    assert_non_null(strstr(remat_context_message(f->context), "early_stopping"));
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_curve),
        FIXTURE_TEST(test_plan_files),
        FIXTURE_TEST(test_graph_plan_files),
        FIXTURE_TEST(test_blocks_have_no_plan_file),
        FIXTURE_TEST(test_largest_batch),
        FIXTURE_TEST(test_fastest_batch),
        FIXTURE_TEST(test_quick_plan),
        FIXTURE_TEST(test_accumulated_cost),
        FIXTURE_TEST(test_early_stopping_needs_validation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
