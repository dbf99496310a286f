/* Which samples are validated on. */
#include "test_data_options.h"

enum { SAMPLES = 100 };

/* 70 samples of class 0, then 20 of class 1, then 10 of class 2: sorted, as files often are. */
static void write_sorted(void)
{
    char text[4000];
    int length = 0;
    for (int i = 0; i < SAMPLES; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%d,%d\n", i, i < 70 ? 0 : i < 90 ? 1 : 2);
    scratch_write_text("s.csv", text);
}

/* How many validation samples each class has; `parts` gets 1 for the samples in training and 2 for the others. */
static void count_parts(fixture *f, const data_options *options, unsigned counts[3], unsigned char parts[SAMPLES])
{
    data_source *source;
    expect_ok(f, data_source_open(f->context, options, &source));
    memset(counts, 0, 3 * sizeof *counts);
    memset(parts, 0, SAMPLES);
    for (int part = DATA_TRAINING; part <= DATA_VALIDATION; part++)
        for (uint64_t i = 0; i < data_source_samples(source, (data_part)part); i++) {
            float x;
            int32_t label;
            expect_ok(f, data_source_fill(source, (data_part)part, 0, i, 1, (void *[]){&x}, &label));
            parts[(int)x] |= (unsigned char)(part + 1);
            counts[label] += part == DATA_VALIDATION;
            assert_int_equal(data_source_row(source, (data_part)part, i), (uint64_t)x + 1);
        }
    data_source_close(source);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(parts[i] == 1 || parts[i] == 2);
}

static void classes_have_their_share(void **state)
{
    fixture *f = *state;
    write_sorted();
    dataset_settings settings = settings_of(DATASET_CSV);
    settings.inputs = "s.csv";
    settings.validation_split = 0.2;
    data_options options = options_of(&settings, reals(1), ids(1, 3), 1);
    unsigned counts[3];
    unsigned char first[SAMPLES], second[SAMPLES];
    count_parts(f, &options, counts, first);
    assert_true(counts[0] == 14 && counts[1] == 4 && counts[2] == 2);
    assert_int_equal(f->warnings, 0);
    count_parts(f, &options, counts, second);
    assert_memory_equal(first, second, SAMPLES);
    options.seed = 7;
    count_parts(f, &options, counts, second);
    assert_memory_not_equal(first, second, SAMPLES);
    assert_true(counts[0] == 14 && counts[1] == 4 && counts[2] == 2);
    /* Weights keep the seed of their split. */
    data_encoding encoding;
    data_encoding_begin(&encoding, f->context);
    expect_ok(f, data_encoding_read(&encoding, "{\"split_seed\": 0}", "weights"));
    options.encoding = &encoding;
    count_parts(f, &options, counts, second);
    assert_memory_equal(first, second, SAMPLES);
    data_encoding_end(&encoding);
    options.encoding = NULL;
    settings.split = SPLIT_SHUFFLED;
    count_parts(f, &options, counts, second);
    assert_int_equal(counts[0] + counts[1] + counts[2], 20);
    expect_survives_no_memory(f, &options);
    settings.split = SPLIT_STRATIFIED;
    expect_survives_no_memory(f, &options);
}

static void a_class_on_one_side_is_a_warning(void **state)
{
    fixture *f = *state;
    write_sorted();
    dataset_settings settings = settings_of(DATASET_CSV);
    settings.inputs = "s.csv";
    settings.validation_split = 0.1;
    settings.split = SPLIT_LAST;
    data_options options = options_of(&settings, reals(1), ids(1, 3), 1);
    unsigned counts[3];
    unsigned char parts[SAMPLES];
    count_parts(f, &options, counts, parts);
    assert_int_equal(counts[2], 10);
    assert_int_equal(f->warnings, 2);
    expect_text(f->warning, "1 class is in the validation data and not in the training data: '2', with 10 samples");
    settings.validation_split = 0;
    scratch_write_text("v.csv", "1,0\n1,1\n");
    settings.validation_inputs = "v.csv";
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    data_source_close(source);
    assert_int_equal(f->warnings, 3);
    expect_text(f->warning, "1 class is in the training data and not in the validation data: '2', with 10 samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(classes_have_their_share),
        FIXTURE_TEST(a_class_on_one_side_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
