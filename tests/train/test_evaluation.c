/* Metrics of trained weights against plain computations, with batches of any size, and tables of predictions. */
#include <math.h>

#include "support/fixture.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

enum { ROWS = 50, CLASSES = 7 };

/* A table of two numbers and a word for one of seven classes, or the sum of the numbers. */
static void write_table(const char *name, bool words)
{
    char text[4000];
    int length = snprintf(text, sizeof text, "x,y,%s\n", words ? "kind" : "sum");
    for (int i = 0; i < ROWS; i++) {
        int x = i * 7 % 10, y = i * 3 % 11;
        length += snprintf(text + length, sizeof text - (size_t)length, "%d,%d,", x, y);
        length += words ? snprintf(text + length, sizeof text - (size_t)length, "k%d\n", (x + 2 * y) % CLASSES)
                        : snprintf(text + length, sizeof text - (size_t)length, "%d\n", x + y);
    }
    scratch_write_text(name, text);
}

static const char class_model[] = "[Model]\nbatch_size = 5\nepochs = 3\n[Optimizer : adam]\nlearning_rate = 0.05\n"
                                  "[Dataset : csv]\ninputs = kinds.csv\nvalidation_split = 0.3\nnormalize = standard\n"
                                  "[in : input]\ninput_shape = 2\n[fc : fully_connected]\nunit = 9\nactivation = tanh\n"
                                  "[out : fully_connected]\nunit = 7\n[loss : cross_entropy]\n";
static const char number_model[] = "[Model]\nbatch_size = 4\nepochs = 20\n[Optimizer : adam]\nlearning_rate = 0.05\n"
                                   "[Dataset : csv]\ninputs = sums.csv\n[in : input]\ninput_shape = 2\n"
                                   "[out : fully_connected]\nunit = 1\n[loss : mse]\n";

static remat_model *train(fixture *f, const char *text, const char *weights, remat_validation_result *validated)
{
    remat_model *model;
    remat_trainer *trainer;
    expect_ok(f, remat_model_load(f->context, scratch_write_text("model.ini", text), &model));
    expect_ok(f, remat_trainer_create(model, NULL, &trainer));
    expect_ok(f, remat_trainer_run(trainer, NULL, NULL));
    if (validated)
        expect_ok(f, remat_trainer_validate(trainer, validated));
    expect_ok(f, remat_trainer_save(trainer, weights, false));
    remat_trainer_destroy(trainer);
    return model;
}

static remat_evaluation *evaluate(fixture *f, remat_model *model, const char *weights, const char *data, uint64_t batch)
{
    remat_train_options options;
    remat_evaluation *evaluation;
    remat_train_options_init(&options);
    options.batch_size = batch;
    options.data_path = data;
    expect_ok(f, remat_evaluate(model, weights, &options, &evaluation));
    return evaluation;
}

static void expect_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-5 * (1 + fabs(b))))
        fail_msg("%.9g and %.9g", a, b);
}

/* The validation of the training sees whole batches, here all samples; the evaluation must agree with it. */
static void classes_are_counted(void **state)
{
    fixture *f = *state;
    const char *weights = scratch_path("kinds.safetensors");
    remat_validation_result validated;
    write_table("kinds.csv", true);
    remat_model *model = train(f, class_model, weights, &validated);
    remat_evaluation *evaluation = evaluate(f, model, weights, NULL, 0);
    remat_evaluation_figures figures, other;
    remat_evaluation_get_figures(evaluation, &figures);
    assert_int_equal(figures.samples, 15);
    assert_int_equal(figures.classes, CLASSES);
    expect_near(figures.loss, validated.loss);
    expect_near(figures.accuracy, validated.accuracy);
    expect_near(figures.perplexity, exp(figures.loss));
    assert_true(figures.top5 >= figures.accuracy && figures.top5 <= 1 && isnan(figures.r2));
    for (uint64_t batch = 1; batch <= 16; batch += 3) {
        remat_evaluation *again = evaluate(f, model, weights, NULL, batch);
        remat_evaluation_get_figures(again, &other);
        expect_near(other.loss, figures.loss);
        assert_true(other.samples == 15 && other.accuracy == figures.accuracy && other.top5 == figures.top5);
        remat_evaluation_destroy(again);
    }
    uint64_t rows = 0, correct = 0;
    for (uint64_t c = 0; c < CLASSES; c++) {
        remat_class_figures one;
        char name[8];
        uint64_t sum = 0, predicted = 0;
        expect_ok(f, remat_evaluation_get_class(evaluation, c, &one));
        snprintf(name, sizeof name, "k%d", (int)c);
        assert_string_equal(one.name, name);
        for (uint64_t k = 0; k < CLASSES; k++) {
            sum += remat_evaluation_confusion(evaluation, c, k);
            predicted += remat_evaluation_confusion(evaluation, k, c);
        }
        assert_true(sum == one.rows && predicted == one.predicted);
        assert_int_equal(remat_evaluation_confusion(evaluation, c, c), one.correct);
        assert_true(one.rows ? one.recall == (double)one.correct / (double)one.rows : isnan(one.recall));
        rows += sum;
        correct += one.correct;
    }
    assert_int_equal(rows, 15);
    expect_near((double)correct / 15, figures.accuracy);
    assert_int_equal(remat_evaluation_confusion(evaluation, CLASSES, 0), 0);
    remat_class_figures none;
    expect_status(f, remat_evaluation_get_class(evaluation, CLASSES, &none), REMAT_INVALID);
    remat_evaluation_destroy(evaluation);
    remat_evaluation_destroy(NULL);
    remat_model_destroy(model);
}

static void numbers_are_compared(void **state)
{
    fixture *f = *state;
    const char *weights = scratch_path("sums.safetensors");
    write_table("sums.csv", false);
    remat_model *model = train(f, number_model, weights, NULL);
    remat_train_options options;
    remat_train_options_init(&options);
    remat_evaluation *evaluation = NULL;
    expect_status(f, remat_evaluate(model, weights, &options, &evaluation), REMAT_INVALID);
    expect_message(f, "there is no validation data");
    assert_null(evaluation);
    evaluation = evaluate(f, model, weights, scratch_path("sums.csv"), 8);
    remat_evaluation_figures figures;
    remat_evaluation_get_figures(evaluation, &figures);
    remat_predictor *predictor;
    expect_ok(f, remat_predictor_create(model, weights, &options, &predictor));
    assert_int_equal(remat_predictor_class_count(predictor), 0);
    assert_string_equal(remat_predictor_target_name(predictor, 0), "sum");
    double absolute = 0, squares = 0, mean = 0, variance = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < ROWS; i++) {
            remat_prediction prediction;
            expect_ok(f, remat_predictor_run_samples(predictor, i, &prediction));
            double label = (double)(i * 7 % 10 + i * 3 % 11), error = (double)prediction.values[0] - label;
            mean += pass ? 0 : label / ROWS;
            absolute += pass ? fabs(error) : 0;
            squares += pass ? error * error : 0;
            variance += pass ? (label - mean) * (label - mean) : 0;
        }
    assert_int_equal(figures.samples, ROWS);
    expect_near(figures.mean_absolute_error, absolute / ROWS);
    expect_near(figures.r2, 1 - squares / variance);
    expect_near(figures.loss, squares / ROWS);
    assert_true(isnan(figures.accuracy) && isnan(figures.perplexity) && figures.classes == 0);
    expect_ok(f, remat_predictor_save_table(predictor, 2, scratch_path("out.csv")));
    size_t length;
    char *text = scratch_read(scratch_path("out.csv"), &length);
    assert_memory_equal(text, "row,sum\n1,", 10);
    free(text);
    remat_predictor_destroy(predictor);
    remat_evaluation_destroy(evaluation);
    remat_model_destroy(model);
}

static const char answer_model[] = "[Model]\nbatch_size = 8\nepochs = 9\n[Optimizer : adam]\nlearning_rate = 0.05\n"
                                   "[Dataset : csv]\ninputs = answers.csv\ntarget = big, odd\n"
                                   "[in : input]\ninput_shape = 2\n"
                                   "[out : fully_connected]\nunit = 2\n[loss : binary_cross_entropy]\n";

/* Two questions about a row: each has its own figures, counted here from the logits. */
static void answers_are_counted(void **state)
{
    fixture *f = *state;
    const char *weights = scratch_path("answers.safetensors");
    char text[4000];
    int length = snprintf(text, sizeof text, "x,y,big,odd\n");
    for (int i = 0; i < ROWS; i++) {
        int x = i * 7 % 10, y = i * 3 % 11;
        length += snprintf(text + length, sizeof text - (size_t)length, "%d,%d,%d,%d\n", x, y, x + y > 9, x % 2);
    }
    const char *table = scratch_write_text("answers.csv", text);
    remat_model *model = train(f, answer_model, weights, NULL);
    remat_evaluation *evaluation = evaluate(f, model, weights, table, 7);
    remat_evaluation_figures figures;
    remat_evaluation_get_figures(evaluation, &figures);
    assert_true(figures.targets == 2 && figures.classes == 0 && isnan(figures.r2));
    remat_predictor *predictor;
    expect_ok(f, remat_predictor_create(model, weights, NULL, &predictor));
    uint64_t right = 0;
    for (uint64_t t = 0; t < 2; t++) {
        uint64_t positives = 0, predicted = 0, correct = 0;
        for (uint64_t i = 0; i < ROWS; i++) {
            remat_prediction prediction;
            expect_ok(f, remat_predictor_run_samples(predictor, i, &prediction));
            bool label = t ? i * 7 % 10 % 2 : i * 7 % 10 + i * 3 % 11 > 9, answer = prediction.values[t] > 0;
            positives += label;
            predicted += answer;
            correct += label && answer;
            right += label == answer;
        }
        remat_target_figures one;
        expect_ok(f, remat_evaluation_get_target(evaluation, t, &one));
        assert_string_equal(one.name, t ? "odd" : "big");
        assert_true(one.rows == ROWS && one.positives == positives && one.predicted == predicted);
        assert_int_equal(one.correct, correct);
        if (predicted)
            expect_near(one.precision, (double)correct / (double)predicted);
        expect_near(one.recall, (double)correct / (double)positives);
        expect_near(one.f1, 2 * (double)correct / (double)(predicted + positives));
    }
    expect_near(figures.accuracy, (double)right / (2 * ROWS));
    remat_target_figures none;
    expect_status(f, remat_evaluation_get_target(evaluation, 2, &none), REMAT_INVALID);
    capture written;
    capture_begin(&written);
    expect_ok(f, remat_predictor_write_table(predictor, 1, written.stream));
    capture_end(&written);
    double big, odd;
    assert_int_equal(sscanf(written.text, "row,big,odd\n1,%lf,%lf", &big, &odd), 2);
    assert_true(big >= 0 && big <= 1 && odd >= 0 && odd <= 1);
    free(written.text);
    remat_predictor_destroy(predictor);
    remat_evaluation_destroy(evaluation);
    remat_model_destroy(model);
}

static void tables_have_names_and_probabilities(void **state)
{
    fixture *f = *state;
    const char *weights = scratch_path("kinds.safetensors");
    write_table("kinds.csv", true);
    remat_model *model = train(f, class_model, weights, NULL);
    remat_train_options options;
    remat_train_options_init(&options);
    options.data_path = scratch_write_text("new.csv", "y,x\n1,2\n3,4\n");
    remat_predictor *predictor;
    expect_ok(f, remat_predictor_create(model, weights, &options, &predictor));
    assert_int_equal(remat_predictor_class_count(predictor), CLASSES);
    assert_null(remat_predictor_class_name(predictor, CLASSES));
    capture written;
    capture_begin(&written);
    expect_ok(f, remat_predictor_write_table(predictor, 0, written.stream));
    capture_end(&written);
    expect_text(written.text, "row,prediction,k0,k1,k2,k3,k4,k5,k6\n1,k");
    double sum = 0;
    char *at = strstr(written.text, "\n1,k") + 5;
    for (int c = 0; c < CLASSES; c++)
        sum += strtod(at + 1, &at);
    expect_near(sum, 1);
    assert_true(*at == '\n' && strncmp(at, "\n2,k", 4) == 0);
    free(written.text);
    assert_int_equal(remat_predictor_row(predictor, 1), 2);
    assert_int_equal(remat_predictor_row(predictor, 2), 0);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
}

static remat_status evaluate_flow(remat_context *context, void *user)
{
    remat_model *model = NULL;
    remat_evaluation *evaluation = NULL;
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.data_path = user;
    remat_status status = remat_model_load(context, scratch_path("model.ini"), &model);
    FLOW(status, remat_evaluate(model, scratch_path("kinds.safetensors"), &options, &evaluation));
    FLOW(status, remat_evaluation_save(evaluation, scratch_path("eval.json"), true));
    remat_predictor *predictor = NULL;
    FLOW(status, remat_predictor_create(model, scratch_path("kinds.safetensors"), &options, &predictor));
    FLOW(status, remat_predictor_save_table(predictor, 0, scratch_path("table.csv")));
    remat_predictor_destroy(predictor);
    remat_evaluation_destroy(evaluation);
    remat_model_destroy(model);
    return status;
}

static void failures_of_memory_are_survived(void **state)
{
    fixture *f = *state;
    char data[300];
    write_table("kinds.csv", true);
    remat_model_destroy(train(f, class_model, scratch_path("kinds.safetensors"), NULL));
    snprintf(data, sizeof data, "%s",
             scratch_write_text("few.csv", "x,y,kind\n1,2,k3\n2,3,k0\n4,4,k1\n1,1,k1\n2,1,k2\n"
                                           "1,2,k6\n"));
    expect_failures_survived("evaluate", evaluate_flow, data, 100, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(classes_are_counted),
        FIXTURE_TEST(numbers_are_compared),
        FIXTURE_TEST(answers_are_counted),
        FIXTURE_TEST(tables_have_names_and_probabilities),
        FIXTURE_TEST(failures_of_memory_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
