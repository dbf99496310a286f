/* CSV as people have it: words, gaps, chosen columns, delimiters, statistics. */
#include "test_data_options.h"

#include "base/alloc.h"

#include <math.h>

static dataset_settings table_settings(void)
{
    dataset_settings settings = settings_of(DATASET_CSV);
    settings.inputs = "a.csv";
    return settings;
}

/* Opens a.csv with this text, and reads all samples in their order: `inputs` numbers and one class each. */
static data_source *open_text(fixture *f, const dataset_settings *settings, const char *text, uint64_t inputs,
                              uint64_t classes, float *x, int32_t *labels)
{
    scratch_write_text("a.csv", text);
    data_options options = options_of(settings, reals(inputs), ids(classes ? 1 : 0, classes), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    uint64_t samples = data_source_samples(source, DATA_TRAINING);
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, samples, (void *[]){x}, labels));
    return source;
}

static void words_become_classes(void **state)
{
    fixture *f = *state;
    dataset_settings settings = table_settings();
    float x[8];
    int32_t labels[8];
    data_source *source =
        open_text(f, &settings, "size,kind\n1,pear\n2,fig\n3,\"quince, raw\"\n4,fig\n", 1, 3, x, labels);
    const data_encoding *encoding = data_source_encoding(source);
    assert_int_equal(encoding->classes.count, 3);
    assert_string_equal(encoding->classes.names[0], "fig");
    assert_string_equal(encoding->classes.names[2], "quince, raw");
    assert_string_equal(encoding->targets.names[0], "kind");
    assert_true(labels[0] == 1 && labels[1] == 0 && labels[2] == 2 && labels[3] == 0);
    data_source_close(source);
    settings.classes = "5, 3, 7";
    source = open_text(f, &settings, "1,3\n2,5\n", 1, 3, x, labels);
    assert_true(labels[0] == 1 && labels[1] == 0);
    data_source_close(source);
    data_options options = options_of(&settings, reals(1), ids(1, 3), 1);
    scratch_write_text("a.csv", "1,3\n2,8\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:2: column 2: '8' is not a class; did you mean '5'?");
    settings.classes = NULL;
    scratch_write_text("a.csv", "1,no\n2,yes\n3,maybe\n4,never\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:4: more than 3 different labels: 'maybe', 'no'");
    scratch_write_text("a.csv", "1,0\n2,1\n3,l\n");
    expect_refused(f, &options, REMAT_BAD_INPUT,
                   "a.csv:3: column 2: the label is a word, and that of line 1 is a number");
    scratch_write_text("a.csv", "1,0\n2,caf\xe9\n");
    settings.header = HEADER_FALSE;
    scratch_write_text("a.csv", "1,caf\xe9\n2,x\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "is not UTF-8");
    scratch_write_text("a.csv", "1,no\n2,yes\n");
    expect_survives_no_memory(f, &options);
    assert_string_equal(f->warning + strlen(f->warning) - strlen("2 classes, and the model has 3"),
                        "2 classes, and the model has 3");
}

static void missing_values_follow_a_policy(void **state)
{
    fixture *f = *state;
    dataset_settings settings = table_settings();
    static const char text[] = "a,b,kind\n1,10,x\n,20,y\n3,NA,x\n5,40,?\n";
    float x[8];
    int32_t labels[4];
    data_options options = options_of(&settings, reals(2), ids(1, 2), 1);
    scratch_write_text("a.csv", text);
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:3: column 1 (a): '' is a missing value; missing = mean");
    settings.missing = MISSING_MEAN;
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:5: column 3 (kind): '?' is a missing label; missing = drop");
    settings.missing = MISSING_DROP;
    data_source *source = open_text(f, &settings, text, 2, 2, x, labels);
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 1);
    expect_text(f->warning, "3 of 4 rows have missing values and are left out");
    data_source_close(source);
    source = open_text(f, &settings, "a,b,kind\n,1,x\n2,3,x\n4,,x\n5,6,y\n", 2, 2, x, labels);
    assert_int_equal(data_source_row(source, DATA_TRAINING, 0), 2);
    assert_int_equal(data_source_row(source, DATA_TRAINING, 1), 4);
    data_source_close(source);
    static const char gaps[] = "1,10\nnull,20\n3,N/A\n5,None\n";
    settings.missing = MISSING_ZERO;
    source = open_text(f, &settings, gaps, 2, 0, x, NULL);
    assert_true(x[2] == 0 && x[5] == 0 && x[7] == 0);
    expect_text(f->warning, "3 missing values are replaced by 0");
    data_source_close(source);
    settings.missing = MISSING_MEAN;
    source = open_text(f, &settings, gaps, 2, 0, x, NULL);
    assert_true(x[2] == 3 && x[5] == 15 && x[7] == 15);
    data_source_close(source);
    options = options_of(&settings, reals(2), reals(0), 1);
    expect_survives_no_memory(f, &options);
    scratch_write_text("a.csv", "1,?\n2,?\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "column 2 has no value in the training samples");
    settings.missing = MISSING_DROP;
    expect_refused(f, &options, REMAT_BAD_INPUT, "every row has a missing value");
}

static void columns_are_chosen(void **state)
{
    fixture *f = *state;
    dataset_settings settings = table_settings();
    static const char text[] = "id\tkind\twide\tlong\theavy\nA\t1\t2\t3\t4\nB\t0\t5\t6\t7\n";
    float x[8];
    int32_t labels[4];
    settings.target = "kind";
    settings.ignore = "id";
    data_source *source = open_text(f, &settings, text, 3, 2, x, labels);
    assert_true(x[0] == 2 && x[2] == 4 && x[3] == 5 && labels[0] == 1);
    data_source_close(source);
    settings.ignore = NULL;
    settings.columns = "heavy, 3 .. long";
    source = open_text(f, &settings, text, 3, 2, x, labels);
    assert_true(x[0] == 4 && x[1] == 2 && x[2] == 3 && labels[1] == 0);
    /* What was found is used again: the order of columns in another file does not matter, nor do others. */
    data_encoding encoding;
    data_encoding_begin(&encoding, f->context);
    expect_ok(f, data_encoding_copy(data_source_encoding(source), &encoding));
    data_source_close(source);
    scratch_write_text("a.csv", "long;new;heavy;wide\n6;?;7;5\n");
    data_options options = options_of(&settings, reals(3), reals(0), 1);
    options.encoding = &encoding;
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){x}, NULL));
    assert_true(x[0] == 7 && x[1] == 5 && x[2] == 6);
    data_source_close(source);
    scratch_write_text("a.csv", "long,heavy,wdie\n6,7,5\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "there is no column 'wide'; did you mean 'wdie'?");
    data_encoding_end(&encoding);
    scratch_write_text("a.csv", text);
    options = options_of(&settings, reals(3), ids(1, 2), 1);
    settings.columns = "wide .. heavy, kind";
    expect_refused(f, &options, REMAT_BAD_INPUT, "column 2 is an input and a label");
    settings.columns = "wide, 7";
    expect_refused(f, &options, REMAT_BAD_INPUT, "there is no column '7'; there are id, kind, wide");
    settings.columns = "wide, long";
    expect_refused(f, &options, REMAT_BAD_INPUT, "2 inputs in 2 columns (wide, long); the model takes 3");
}

static void words_become_inputs(void **state)
{
    fixture *f = *state;
    dataset_settings settings = table_settings();
    static const char text[] = "colour,size,kind\nred,1,x\nblue,2,y\n,3,x\ngreen,4,y\n";
    float x[20];
    int32_t labels[4];
    data_options options = options_of(&settings, reals(4), ids(1, 2), 1);
    scratch_write_text("a.csv", text);
    settings.words = WORDS_ONEHOT;
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:4: column 1 (colour): '' is a missing value");
    settings.missing = MISSING_MEAN;
    settings.normalize = NORMALIZE_MINMAX;
    data_source *source = open_text(f, &settings, text, 4, 2, x, labels);
    expect_text(f->warning, "a.csv: 1 missing word becomes only zeros");
    static const float wanted[] = {0, 0, 1, 0, 1, 0, 0, 1.0f / 3, 0, 0, 0, 2.0f / 3, 0, 1, 0, 1};
    assert_memory_equal(x, wanted, sizeof wanted);
    data_encoding encoding;
    char *written;
    data_encoding_begin(&encoding, f->context);
    expect_ok(f, data_encoding_write(data_source_encoding(source), &written));
    expect_ok(f, data_encoding_read(&encoding, written, "weights"));
    remat_text_release(f->context, written);
    data_source_close(source);
    expect_survives_no_memory(f, &options);
    options.needs.labels = reals(0);
    options.encoding = &encoding;
    scratch_write_text("a.csv", "size,colour\n4,blue\n");
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){x}, NULL));
    assert_true(x[0] == 1 && x[1] == 0 && x[2] == 0 && x[3] == 1);
    data_source_close(source);
    scratch_write_text("a.csv", "size,colour\n4,blu\n");
    expect_refused(f, &options, REMAT_BAD_INPUT, "'blu' is not a word of the training data; did you mean 'blue'?");
    options.needs.inputs[0] = ids(4, 9);
    expect_refused(f, &options, REMAT_BAD_INPUT, "column 2 has words, and the model reads whole numbers there");
    data_encoding_end(&encoding);
    options = options_of(&settings, reals(3), ids(1, 2), 1);
    scratch_write_text("a.csv", text);
    expect_refused(f, &options, REMAT_BAD_INPUT,
                   "4 inputs in 2 columns (colour: 3, size); the model takes 3: set input_shape = 4");
    settings.words = WORDS_ERROR;
    options = options_of(&settings, reals(2), ids(1, 2), 1);
    expect_refused(f, &options, REMAT_BAD_INPUT, "a.csv:2: column 1 (colour): 'red' is not a number");
    expect_message(f, "words = onehot takes columns of words");
}

static void delimiters_are_found_or_stated(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"1,2,1\n3,4,0\n", "1;2;1\n3;4;0\n", "1\t2\t1\n3\t4\t0\n", "1|2|1\n3 | 4|0\n",
                                        "  1   2 1\n3 4   0  \n"};
    for (uint32_t i = 0; i < 10; i++) {
        dataset_settings settings = table_settings();
        settings.delimiter = i < 5 ? DELIMITER_AUTO : DELIMITER_COMMA + i - 5;
        float x[4];
        int32_t labels[2];
        data_source *source = open_text(f, &settings, texts[i % 5], 2, 2, x, labels);
        assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4 && labels[0] == 1 && labels[1] == 0);
        data_source_close(source);
    }
    dataset_settings settings = table_settings();
    settings.header = HEADER_TRUE;
    float x[4];
    int32_t labels[2];
    data_source *source = open_text(f, &settings, "2019,2020,kind\n1,2,1\n", 2, 2, x, labels);
    assert_true(x[0] == 1 && data_source_samples(source, DATA_TRAINING) == 1);
    data_source_close(source);
}

static void statistics_are_those_of_the_training_samples(void **state)
{
    fixture *f = *state;
    dataset_settings settings = table_settings();
    settings.split = SPLIT_LAST;
    settings.validation_split = 0.5;
    settings.normalize = NORMALIZE_STANDARD;
    static const char text[] = "1,7\n3,7\n1000,9\n-1000,5\n";
    float x[6], y[4];
    data_source *source = open_text(f, &settings, text, 2, 0, x, NULL);
    assert_true(x[0] == -1 && x[1] == 0 && x[2] == 1 && x[3] == 0);
    expect_ok(f, data_source_fill(source, DATA_VALIDATION, 0, 0, 2, (void *[]){y}, NULL));
    assert_true(y[0] == 998 && y[1] == 2 && y[2] == -1002);
    /* As text and back, the encoding is the same, and reads the same. */
    char *first, *second;
    data_encoding encoding;
    data_encoding_begin(&encoding, f->context);
    expect_ok(f, data_encoding_write(data_source_encoding(source), &first));
    expect_ok(f, data_encoding_read(&encoding, first, "weights"));
    expect_ok(f, data_encoding_write(&encoding, &second));
    assert_string_equal(first, second);
    data_source_close(source);
    data_options options = options_of(&settings, reals(2), reals(0), 1);
    options.encoding = &encoding;
    settings.validation_split = 0;
    scratch_write_text("a.csv", "5,8\n");
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){x}, NULL));
    assert_true(x[0] == 3 && x[1] == 1);
    data_source_close(source);
    remat_text_release(f->context, first);
    remat_text_release(f->context, second);
    data_encoding_end(&encoding);
    settings.normalize = NORMALIZE_MINMAX;
    source = open_text(f, &settings, "1,7\n3,7\n2,9\n", 2, 0, x, NULL);
    assert_true(x[0] == 0 && x[2] == 1 && x[1] == 0);
    data_source_close(source);
}

static void wrong_encodings_are_refused(void **state)
{
    fixture *f = *state;
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"classes\": [1]}",
                                      "{\"classes\": [\"a\"], \"classes\": []}",
                                      "{\"split_seed\": -1}",
                                      "{\"columns\": [{\"scale\": 0}]}",
                                      "{\"columns\": [{\"shift\": null}]}",
                                      "{\"columns\": [3]}",
                                      "{} x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        data_encoding encoding;
        data_encoding_begin(&encoding, f->context);
        expect_status(f, data_encoding_read(&encoding, bad[i], "weights"), REMAT_BAD_INPUT);
        data_encoding_end(&encoding);
    }
    data_encoding encoding;
    data_encoding_begin(&encoding, f->context);
    expect_ok(f,
              data_encoding_read(&encoding, "{\"later\": {\"x\": [1]}, \"columns\": [{}, {\"more\": 1}]}", "weights"));
    dataset_settings settings = table_settings();
    scratch_write_text("a.csv", "1,2,3\n");
    data_options options = options_of(&settings, reals(3), reals(0), 1);
    options.encoding = &encoding;
    expect_refused(f, &options, REMAT_BAD_INPUT,
                   "the columns make 2 inputs, as the weights were trained, and the model takes 3");
    data_encoding_end(&encoding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(words_become_classes),
        FIXTURE_TEST(missing_values_follow_a_policy),
        FIXTURE_TEST(columns_are_chosen),
        FIXTURE_TEST(words_become_inputs),
        FIXTURE_TEST(delimiters_are_found_or_stated),
        FIXTURE_TEST(statistics_are_those_of_the_training_samples),
        FIXTURE_TEST(wrong_encodings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
