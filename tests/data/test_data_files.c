#include "test_data_options.h"

/* ---- csv ---- */

static void csv_rows_become_inputs_and_labels(void **state)
{
    fixture *f = *state;
    dataset_settings settings = settings_of(DATASET_CSV);
    settings.inputs = "a.csv";
    static const char *const texts[] = {
        "x,y,kind\n1,2,0\n-3.5,4e1,1\n\n.5,+6,2\n",
        "\xef\xbb\xbf\"x\",\"y\",\"kind\"\r\n1,2,0\r\n-3.5,40,1\r\n0.5 , 6,\"2\"\r\n",
        "1,2,0\n\"-3.5\", 40 ,1\n0.5,6,2.0",
    };
    for (size_t i = 0; i < 3; i++) {
        scratch_write_text("a.csv", texts[i]);
        data_options options = options_of(&settings, reals(1), ids(1, 3), 3);
        options.needs.input_count = 2;
        options.needs.inputs[1] = reals(1);
        data_source *source;
        expect_ok(f, data_source_open(f->context, &options, &source));
        float x[3], y[3];
        int32_t kinds[3];
        expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 3, (void *[]){x, y}, kinds));
        assert_true(x[0] == 1 && x[1] == (float)-3.5 && x[2] == (float)0.5);
        assert_true(y[0] == 2 && y[1] == 40 && y[2] == 6);
        assert_true(kinds[0] == 0 && kinds[1] == 1 && kinds[2] == 2);
        data_source_close(source);
        expect_survives_no_memory(f, &options);
    }
    /* Without labels wanted, they may be there or not. */
    data_options options = options_of(&settings, reals(2), reals(0), 3);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    data_source_close(source);
    options.needs.inputs[0].values = 3;
    expect_ok(f, data_source_open(f->context, &options, &source));
    float all[9];
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 3, (void *[]){all}, NULL));
    assert_true(all[8] == 2);
    data_source_close(source);
}

static void bad_csv_names_its_line(void **state)
{
    fixture *f = *state;
    dataset_settings settings = settings_of(DATASET_CSV);
    data_options options = options_of(&settings, reals(2), ids(1, 3), 1);
    expect_refused(f, &options, REMAT_INVALID, "name one CSV file");
    settings.inputs = "a.csv";
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"1,2,0\n1,x,0\n", "a.csv:2: column 2: 'x' is not a number"},
        {"a,b,c\n1,,0\n", "a.csv:2: column 2 (b): '' is a missing value; missing = mean, zero or drop"},
        {"1,2,0\n1,2\n", "a.csv:2: 2 cells; the first row has 3"},
        {"1,2,0\n1,2,0,4\n", "a.csv:2: 4 cells; the first row has 3"},
        {"1,2,3\n", "a.csv:1: column 3 holds the number 3; it must be from 0 to 2"},
        {"1,2,0.5\n", "column 3: '0.5' is not allowed; it must be a whole number"},
        {"a;b;y\n1;2;0\n1,5;2;0\n", "a.csv:3: column 1 (a): '1,5' is not a number; decimals are written with a point"},
        {"1,2,99999999999\n", "column 3: '99999999999' is out of range; whole numbers here are below 2^31"},
        {"1,2,1e10\n", "'1e10' is out of range"},
        {"1,nan,0\n", "'nan' is a missing value"},
        {"1,inf,0\n", "'inf' is not a number"},
        {"1,0x10,0\n", "'0x10' is not a number"},
        {"1,1e999,0\n", "a.csv:1: column 2: '1e999' is too large for a float"},
        {"1e999,2,0\n", "a.csv:1: column 1: '1e999' is too large for a float"},
        {"\"-1e999\",x,0\n1,2,0\n", "a.csv:1: column 1: '-1e999' is too large for a float"},
        {"x,2,0\n1,2,0\n", "a.csv:1: column 1: 'x' is not a number"},
        {"nan,2,0\n1,2,0\n", "a.csv:1: column 1: 'nan' is a missing value"},
        {"1,1e300,0\n", "too large for a float"},
        {"1,\"2,0\n", "a.csv:1: cell 2 begins with a quote that is not closed in this line"},
        {"1,2 3,0\n", "'2 3' is not a number"},
        {"x1,x2,2020\n1,2,0\n", "a.csv:1: column 1: 'x1' is not a number; header = true"},
        {"1,2,\n", "a.csv:1: column 3: '' is a missing label; missing = drop"},
        {"1,--2,0\n", "'--2' is not a number"},
        {"1,2\n", "2 columns; the model needs 3: 2 of inputs, then 1 of labels"},
        {"a,b,c\n", "no rows of numbers"},
        {"", "no rows of numbers"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        scratch_write_text("a.csv", bad[i].text);
        expect_refused(f, &options, REMAT_BAD_INPUT, bad[i].message);
    }
    settings.labels = "2";
    expect_refused(f, &options, REMAT_INVALID, "it must be labels = 1");
    settings.labels = "kind";
    expect_refused(f, &options, REMAT_INVALID, "number of label columns");
    settings.labels = NULL;
    settings.inputs = "none.csv";
    expect_refused(f, &options, REMAT_IO, "cannot be opened");
}

static void csv_may_be_wide(void **state)
{
    fixture *f = *state;
    char text[16000];
    int length = 0;
    for (int i = 0; i <= 784; i++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%d%s", i < 784 ? i % 256 : 7, i < 784 ? "," : "\n");
    scratch_write_text("wide.csv", text);
    dataset_settings settings = settings_of(DATASET_CSV);
    settings.inputs = "wide.csv";
    data_options options = options_of(&settings, reals(784), ids(1, 10), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    float x[784];
    int32_t y;
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){x}, &y));
    assert_true(x[783] == 783 % 256 && y == 7);
    data_source_close(source);
}

/* ---- text ---- */

static void text_is_cut_into_windows(void **state)
{
    fixture *f = *state;
    scratch_write_text("a.txt", "abcdefg");
    scratch_write_text("empty.txt", "");
    scratch_write_text("b.txt", "hijklmnop");
    dataset_settings settings = settings_of(DATASET_TEXT);
    settings.inputs = "a.txt, empty.txt,b.txt";
    data_options options = options_of(&settings, ids(5, 256), ids(5, 256), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 3); /* 16 bytes: the last is only a label */
    for (uint64_t sample = 0; sample < 3; sample++) {
        int32_t tokens[5], labels[5];
        expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, sample, 1, (void *[]){tokens}, labels));
        for (int i = 0; i < 5; i++) {
            assert_int_equal(tokens[i], 'a' + (int)sample * 5 + i);
            assert_int_equal(labels[i], 'a' + (int)sample * 5 + i + 1);
        }
    }
    data_source_close(source);
    expect_survives_no_memory(f, &options);
    options.needs.inputs[0] = options.needs.labels = ids(16, 256);
    expect_refused(f, &options, REMAT_BAD_INPUT, "16 bytes of text; a sample needs 16 and the one that follows");
    options.needs.inputs[0] = options.needs.labels = ids(5, 'm');
    expect_refused(f, &options, REMAT_BAD_INPUT, "b.txt: byte 5 holds the number 109; it must be from 0 to 108");
    options.needs.labels = ids(4, 256);
    expect_refused(f, &options, REMAT_INVALID, "the next token of each of the 5 tokens");
    options.needs.inputs[0] = reals(5);
    expect_refused(f, &options, REMAT_INVALID, "one input of tokens");
}

static void long_text_crosses_all_borders(void **state)
{
    fixture *f = *state;
    enum { A = (1 << 20) + 12345, B = 9001, T = 5000 }; /* the first is too large to be held */
    unsigned char *whole = malloc(A + B);
    test_random random = {test_seed()};
    for (int i = 0; i < A + B; i++)
        whole[i] = (unsigned char)test_random_next(&random);
    scratch_write("a.txt", whole, A);
    scratch_write("b.txt", whole + A, B);
    dataset_settings settings = settings_of(DATASET_TEXT);
    settings.inputs = "a.txt,b.txt";
    data_options options = options_of(&settings, ids(T, 256), ids(T, 256), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), (A + B - 1) / T);
    int32_t *tokens = malloc(T * 4), *labels = malloc(T * 4);
    for (uint64_t sample = 0; sample < (A + B - 1) / T; sample++) {
        expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, sample, 1, (void *[]){tokens}, labels));
        for (uint64_t i = 0; i < T; i++)
            assert_true(tokens[i] == whole[sample * T + i] && labels[i] == whole[sample * T + i + 1]);
    }
    free(tokens);
    free(labels);
    free(whole);
    data_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(csv_rows_become_inputs_and_labels),
        FIXTURE_TEST(bad_csv_names_its_line),
        FIXTURE_TEST(csv_may_be_wide),
        FIXTURE_TEST(text_is_cut_into_windows),
        FIXTURE_TEST(long_text_crosses_all_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
