#include "test_data_options.h"

#include "base/half.h"
#include "data/npy.h"

#include <math.h>

/* As NumPy writes it: the values start at a multiple of 64. */
static void write_array(const char *name, npy_type type, uint32_t rank, const uint64_t *dims, const void *data)
{
    static const char *const codes[] = {[NPY_FLOAT32] = "<f4", [NPY_FLOAT64] = "<f8", [NPY_INT32] = "<i4",
                                        [NPY_INT64] = "<i8",   [NPY_UINT8] = "|u1",   [NPY_FLOAT16] = "<f2"};
    char shape[80] = "", header[118];
    uint64_t values = 1;
    for (uint32_t i = 0; i < rank; i++) {
        values *= dims[i];
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%llu, ", (unsigned long long)dims[i]);
    }
    int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", codes[type], shape);
    FILE *stream = fopen(scratch_path(name), "w");
    assert_int_equal(fwrite("\x93NUMPY\1\0\x76\0", 1, 10, stream), 10);
    assert_int_equal(fprintf(stream, "%s%*s\n", header, 117 - length, ""), 118);
    assert_int_equal(fwrite(data, npy_type_size(type), values, stream), values);
    assert_int_equal(fclose(stream), 0);
}

/* ---- npy ---- */

enum { ROWS = 50, WIDTH = 6 };

static void npy_types_become_what_the_network_reads(void **state)
{
    fixture *f = *state;
    static const npy_type types[] = {NPY_FLOAT32, NPY_FLOAT64, NPY_INT32, NPY_INT64, NPY_UINT8, NPY_FLOAT16};
    static const uint64_t dims[] = {ROWS, 2, 3}, label_dims[] = {ROWS};
    for (size_t t = 0; t < 6; t++) {
        char bytes[ROWS * WIDTH * 8];
        int64_t labels[ROWS];
        for (int i = 0; i < ROWS * WIDTH; i++) {
            int value = i % 200;
            switch (types[t]) {
            case NPY_FLOAT32: ((float *)(void *)bytes)[i] = (float)value; break;
            case NPY_FLOAT64: ((double *)(void *)bytes)[i] = value; break;
            case NPY_INT32: ((int32_t *)(void *)bytes)[i] = value; break;
            case NPY_INT64: ((int64_t *)(void *)bytes)[i] = value; break;
            case NPY_UINT8: bytes[i] = (char)value; break;
            case NPY_FLOAT16: {
                const float number = (float)value;
                half_kernels_list(0)->pack_fp16(&number, (uint16_t *)(void *)bytes + i, 1);
                break;
            }
            }
        }
        for (int i = 0; i < ROWS; i++)
            labels[i] = i % 10;
        write_array("x.npy", types[t], 3, dims, bytes);
        write_array("y.npy", NPY_INT64, 1, label_dims, labels);
        dataset_settings settings = settings_of(DATASET_NPY);
        settings.inputs = " x.npy ";
        settings.labels = "y.npy";
        for (int integer = 0; integer < (npy_type_is_integer(types[t]) ? 2 : 1); integer++) {
            data_options options = options_of(&settings, integer ? ids(WIDTH, 200) : reals(WIDTH), ids(1, 10), 8);
            data_source *source;
            expect_ok(f, data_source_open(f->context, &options, &source));
            assert_int_equal(data_source_samples(source, DATA_TRAINING), ROWS);
            assert_int_equal(data_source_samples(source, DATA_VALIDATION), 0);
            float got[8 * WIDTH];
            int32_t got_ids[8 * WIDTH], got_labels[8];
            void *to[] = {integer ? (void *)got_ids : (void *)got};
            uint64_t calls = f->memory.calls;
            expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 16, 8, to, got_labels));
            assert_int_equal(f->memory.calls, calls);
            for (int i = 0; i < 8 * WIDTH; i++)
                assert_true((integer ? (double)got_ids[i] : (double)got[i]) == (16 * WIDTH + i) % 200);
            for (int i = 0; i < 8; i++)
                assert_int_equal(got_labels[i], (16 + i) % 10);
            expect_ok(f, data_source_fill_list(source, DATA_TRAINING, (const uint64_t[]){49, 0}, 2, to, NULL));
            assert_true((integer ? (double)got_ids[0] : (double)got[0]) == 49 * WIDTH % 200);
            expect_status(f, data_source_fill(source, DATA_TRAINING, 0, 43, 8, to, NULL), REMAT_INVALID);
            expect_status(f, data_source_fill_list(source, DATA_TRAINING, (const uint64_t[]){50}, 1, to, NULL),
                          REMAT_INVALID);
            data_source_close(source);
            expect_survives_no_memory(f, &options);
        }
    }
}

static void npy_files_must_fit_the_network(void **state)
{
    fixture *f = *state;
    static const uint64_t two[] = {4, 2}, three[] = {3}, four[] = {4};
    static const float x[8] = {0};
    static const int32_t y[4] = {0, 1, -1, 5};
    write_array("x.npy", NPY_FLOAT32, 2, two, x);
    write_array("y.npy", NPY_INT32, 1, four, y);
    write_array("y3.npy", NPY_INT32, 1, three, y);
    write_array("single.npy", NPY_FLOAT32, 0, NULL, x);
    dataset_settings settings = settings_of(DATASET_NPY);
    data_options options = options_of(&settings, reals(2), ids(1, 6), 2);
    options.needs.labels.skips = true;
    expect_refused(f, &options, REMAT_INVALID, "inputs: 0 files for 1 inputs");
    settings.inputs = "x.npy";
    expect_refused(f, &options, REMAT_INVALID, "labels: the loss needs labels");
    settings.labels = "y3.npy";
    expect_refused(f, &options, REMAT_BAD_INPUT, "3 samples; ");
    settings.labels = "y.npy";
    options.needs.labels.bound = 5;
    expect_refused(f, &options, REMAT_BAD_INPUT,
                   "y.npy: value 0 of sample 3 holds the number 5; it must be from 0 to 4");
    options.needs.labels.bound = 6;
    options.needs.labels.skips = false;
    expect_refused(f, &options, REMAT_BAD_INPUT, "value 0 of sample 2 holds the number -1");
    options.needs.labels.skips = true;
    options.needs.inputs[0].values = 3;
    expect_refused(f, &options, REMAT_BAD_INPUT, "a sample has 2 values; input 0 of the model takes 3");
    options.needs.inputs[0] = ids(2, 10);
    expect_refused(f, &options, REMAT_BAD_INPUT, "values of type float32; input 0 of the model takes whole numbers");
    options.needs.inputs[0] = reals(2);
    settings.inputs = "x.npy,x.npy";
    expect_refused(f, &options, REMAT_INVALID, "2 files for 1 inputs");
    settings.inputs = "single.npy";
    expect_refused(f, &options, REMAT_BAD_INPUT, "a single number");
    settings.inputs = "missing.npy";
    expect_refused(f, &options, REMAT_IO, "missing.npy: cannot be opened");
    settings.inputs = "x.npy";
    options.batch = 5;
    expect_refused(f, &options, REMAT_INVALID, "4 samples to train on are fewer than the batch_size of 5");
    options.batch = 3;
    settings.validation_split = 0.25;
    expect_refused(f, &options, REMAT_INVALID, "1 samples for validation are fewer than the batch_size of 3");
    options.batch = 0; /* a prediction asks for any number */
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    data_source_close(source);
}

/* Numbers that are not finite are refused at once, in inputs and in labels, in files that are held in memory and not. */
static void npy_numbers_must_be_finite(void **state)
{
    fixture *f = *state;
    enum { SAMPLES = 70000, VALUES = 4, COUNT = SAMPLES * VALUES };
    static float narrow[COUNT];
    static double wide[COUNT];
    static const float label[SAMPLES];
    static const struct {
        uint64_t at;
        double value;
        const char *message;
    } bad[] = {
        {0, NAN, "value 0 of sample 0 is nan; it must be a finite number"},
        {7, -INFINITY, "value 3 of sample 1 is -inf; it must be a finite number"},
        {2047, -NAN, "value 3 of sample 511 is nan; it must be a finite number"},
        {COUNT - 1, INFINITY, "value 3 of sample 69999 is inf; it must be a finite number"},
        {COUNT - 2, 1e39, "value 2 of sample 69999 is 1e+39, which is too large for a float"},
    };
    dataset_settings settings = settings_of(DATASET_NPY);
    data_options options = options_of(&settings, reals(VALUES), reals(1), 4);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t samples = bad[i].at < 4000 ? 1000 : SAMPLES, dims[2] = {samples, VALUES};
        for (int is_wide = isfinite(bad[i].value); is_wide < 2; is_wide++) {
            char message[100];
            narrow[bad[i].at] = is_wide ? 0 : (float)bad[i].value;
            wide[bad[i].at] = bad[i].value;
            write_array("x.npy", is_wide ? NPY_FLOAT64 : NPY_FLOAT32, 2, dims,
                        is_wide ? (const void *)wide : (const void *)narrow);
            write_array("y.npy", NPY_FLOAT32, 1, dims, label);
            settings.inputs = "x.npy";
            settings.labels = "y.npy";
            options.needs.inputs[0] = reals(VALUES);
            options.needs.labels = reals(1);
            snprintf(message, sizeof message, "x.npy: %s", bad[i].message);
            expect_refused(f, &options, REMAT_BAD_INPUT, message);
            settings.inputs = "y.npy";
            settings.labels = "x.npy";
            options.needs.inputs[0] = reals(1);
            options.needs.labels = reals(VALUES);
            expect_refused(f, &options, REMAT_BAD_INPUT, message);
            narrow[bad[i].at] = 0;
            wide[bad[i].at] = 3.4e38; /* just fits */
        }
    }
    write_array("x.npy", NPY_FLOAT64, 2, (const uint64_t[]){SAMPLES, VALUES}, wide);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    data_source_close(source);
}

/* A file larger than what is held in memory, that changes while it is in use. */
static void large_files_are_read_where_they_lie(void **state)
{
    fixture *f = *state;
    enum { COUNT = 600000 };
    static int32_t numbers[COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i % 1000;
    write_array("big.npy", NPY_INT32, 2, (const uint64_t[]){COUNT / 3, 3}, numbers);
    dataset_settings settings = settings_of(DATASET_NPY);
    settings.inputs = scratch_path("big.npy"); /* absolute: the folder does not count */
    data_options options = options_of(&settings, ids(3, 1000), reals(0), 4);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_true(remat_context_bytes(f->context) < 200000);
    int32_t got[12];
    void *to[] = {got};
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 150000, 4, to, NULL));
    assert_memory_equal(got, numbers + 450000, sizeof got);
    FILE *file = fopen(scratch_path("big.npy"), "r+");
    numbers[0] = 1000;
    fseek(file, -12, SEEK_END);
    fwrite(numbers, 4, 1, file);
    fclose(file);
    expect_status(f, data_source_fill(source, DATA_TRAINING, 0, COUNT / 3 - 4, 4, to, NULL), REMAT_BAD_INPUT);
    expect_message(f, "value 0 of sample 199999 holds the number 1000");
    file = fopen(scratch_path("big.npy"), "w");
    fclose(file);
    expect_status(f, data_source_fill(source, DATA_TRAINING, 0, 0, 4, to, NULL), REMAT_IO);
    expect_message(f, "shorter");
    data_source_close(source);
}

/* ---- order and parts ---- */

static void epochs_are_shuffled_and_parts_stay_apart(void **state)
{
    fixture *f = *state;
    enum { COUNT = 103 };
    int32_t numbers[COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    write_array("n.npy", NPY_INT32, 1, (const uint64_t[]){COUNT}, numbers);
    dataset_settings settings = settings_of(DATASET_NPY);
    settings.inputs = "n.npy";
    settings.shuffle = true;
    settings.split = SPLIT_LAST;
    settings.validation_split = 0.1;
    data_options options = options_of(&settings, ids(1, COUNT), reals(0), 10);
    options.seed = 5;
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 93);
    assert_int_equal(data_source_samples(source, DATA_VALIDATION), 10);
    int32_t orders[3][COUNT];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        bool seen[COUNT] = {false};
        for (uint64_t at = 0; at < 93; at++) {
            expect_ok(f, data_source_fill(source, DATA_TRAINING, epoch, at, 1, (void *[]){&orders[epoch][at]}, NULL));
            assert_true(orders[epoch][at] < 93 && !seen[orders[epoch][at]]);
            seen[orders[epoch][at]] = true;
        }
    }
    assert_memory_not_equal(orders[0], orders[1], 93 * 4);
    assert_memory_not_equal(orders[1], orders[2], 93 * 4);
    /* Back to an earlier epoch, in the middle, as a resumed training does; batches are parts of the same order. */
    int32_t again[10];
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 1, 40, 10, (void *[]){again}, NULL));
    assert_memory_equal(again, orders[1] + 40, sizeof again);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        expect_ok(f, data_source_fill(source, DATA_VALIDATION, epoch, 0, 10, (void *[]){again}, NULL));
        assert_memory_equal(again, numbers + 93, sizeof again);
    }
    data_source_close(source);
    settings.shuffle = false;
    settings.validation_split = 0;
    settings.validation_inputs = "n.npy";
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), COUNT);
    assert_int_equal(data_source_samples(source, DATA_VALIDATION), COUNT);
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 7, 50, 10, (void *[]){again}, NULL));
    assert_memory_equal(again, numbers + 50, sizeof again);
    data_source_close(source);
    expect_survives_no_memory(f, &options);
    settings.validation_split = 0.5;
    expect_refused(f, &options, REMAT_INVALID, "validation_split: validation has its own files already");
    settings.validation_split = 1;
    expect_refused(f, &options, REMAT_INVALID, "from 0 to below 1");
    settings.validation_split = NAN;
    expect_refused(f, &options, REMAT_INVALID, "from 0 to below 1");
}

/* ---- random, generator, none ---- */

static void random_data_is_normal_uniform_and_the_same_again(void **state)
{
    fixture *f = *state;
    enum { COUNT = 400, VALUES = 25, LABELS = 3 };
    dataset_settings settings = settings_of(DATASET_RANDOM);
    settings.samples = COUNT;
    data_options options = options_of(&settings, reals(VALUES), ids(LABELS, 7), COUNT);
    options.seed = 11;
    data_source *source;
    float *x = malloc(COUNT * VALUES * sizeof *x), *again = malloc(VALUES * sizeof *again);
    int32_t *y = malloc(COUNT * LABELS * sizeof *y), y_again[LABELS];
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, COUNT, (void *[]){x}, y));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 3, 123, 1, (void *[]){again}, y_again));
    assert_memory_equal(x + 123 * VALUES, again, VALUES * sizeof *x);
    assert_memory_equal(y + 123 * LABELS, y_again, sizeof y_again);
    double sum = 0, squares = 0;
    int counts[7] = {0};
    for (int i = 0; i < COUNT * VALUES; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    for (int i = 0; i < COUNT * LABELS; i++)
        counts[y[i]]++;
    assert_true(fabs(sum / (COUNT * VALUES)) < 0.05);
    assert_true(fabs(squares / (COUNT * VALUES) - 1) < 0.08);
    for (int i = 0; i < 7; i++)
        assert_true(counts[i] > 110 && counts[i] < 240);
    data_source_close(source);
    options.seed = 12;
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 123, 1, (void *[]){again}, NULL));
    assert_memory_not_equal(x + 123 * VALUES, again, VALUES * sizeof *x);
    data_source_close(source);
    free(x);
    free(again);
    free(y);
    settings.validation_inputs = "x";
    expect_refused(f, &options, REMAT_INVALID, "only npy, images, csv, text and jsonl have files");
}

static remat_status generate(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    if (sample == *(uint64_t *)user)
        return REMAT_CHECK_FAILED;
    *(float *)inputs[0] = (float)sample;
    if (labels)
        *(int32_t *)labels = (int32_t)sample;
    return REMAT_OK;
}

static void generators_are_asked_and_checked(void **state)
{
    fixture *f = *state;
    uint64_t fails_at = UINT64_MAX;
    data_generator generator = {generate, &fails_at, 20};
    dataset_settings settings = settings_of(DATASET_NONE);
    settings.validation_split = 0.25;
    data_options options = options_of(&settings, reals(1), ids(1, 18), 5);
    options.generator = &generator;
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    generator.fill = NULL; /* it was copied */
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 15);
    assert_int_equal(data_source_samples(source, DATA_VALIDATION), 5);
    float x[5];
    int32_t y[5];
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 10, 5, (void *[]){x}, y));
    for (int i = 0; i < 5; i++)
        assert_true(x[i] == (float)(10 + i) && y[i] == 10 + i);
    expect_ok(f, data_source_fill(source, DATA_VALIDATION, 0, 0, 3, (void *[]){x}, y));
    assert_int_equal(y[2], 17);
    expect_status(f, data_source_fill(source, DATA_VALIDATION, 0, 0, 4, (void *[]){x}, y), REMAT_BAD_INPUT);
    expect_message(f, "sample 18: value 0 of the labels holds the number 18; it must be from 0 to 17");
    fails_at = 12;
    expect_status(f, data_source_fill(source, DATA_TRAINING, 0, 10, 5, (void *[]){x}, y), REMAT_CHECK_FAILED);
    data_source_close(source);
    data_source_close(NULL);
    options.generator = NULL;
    expect_refused(f, &options, REMAT_INVALID, "the model has no data");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(npy_types_become_what_the_network_reads),
        FIXTURE_TEST(npy_files_must_fit_the_network),
        FIXTURE_TEST(npy_numbers_must_be_finite),
        FIXTURE_TEST(large_files_are_read_where_they_lie),
        FIXTURE_TEST(epochs_are_shuffled_and_parts_stay_apart),
        FIXTURE_TEST(random_data_is_normal_uniform_and_the_same_again),
        FIXTURE_TEST(generators_are_asked_and_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
