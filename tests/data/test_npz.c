/* Archives of NumPy, half floats, and bytes that become 0 to 1. The files were made with Python's zipfile. */
#include "test_data_options.h"

#include "data/library.h"
#include "data/npy.h"

#include <math.h>

static const char *copy_file(const char *name)
{
    char path[200];
    size_t length;
    snprintf(path, sizeof path, "tests/data/files/%s", name);
    char *bytes = scratch_read(path, &length);
    const char *copy = scratch_write(name, bytes, length);
    free(bytes);
    return copy;
}

static void expect_images(fixture *f, const dataset_settings *settings, bool scaled)
{
    data_options options = options_of(settings, reals(4), ids(1, 3), 1);
    data_source *source;
    float x[12];
    int32_t labels[3];
    static const float wanted[12] = {0, 255, 51, 102, 1, 2, 3, 4, 255, 0, 255, 0};
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 3, (void *[]){x}, labels));
    for (int i = 0; i < 12; i++)
        assert_true(x[i] == (scaled ? wanted[i] / 255.0f : wanted[i]));
    assert_true(labels[0] == 2 && labels[1] == 0 && labels[2] == 1);
    data_source_close(source);
    expect_survives_no_memory(f, &options);
}

static void members_are_found(void **state)
{
    fixture *f = *state;
    copy_file("stored.npz");
    copy_file("deflated.npz");
    dataset_settings settings = settings_of(DATASET_NPY);
    settings.inputs = "stored.npz";
    expect_images(f, &settings, false);
    settings.scale_bytes = true;
    expect_images(f, &settings, true);
    settings.labels = "stored.npz:y";
    expect_images(f, &settings, true);
    settings.inputs = "stored.npz:x";
    settings.labels = NULL;
    expect_images(f, &settings, true);
    if (library_is_there(LIBRARY_ZLIB)) {
        settings.inputs = "deflated.npz:x_test";
        expect_images(f, &settings, true);
    }
    data_options options = options_of(&settings, reals(4), ids(1, 3), 1);
    settings.inputs = "deflated.npz";
    expect_refused(f, &options, REMAT_BAD_INPUT, "there is no array called x, x_train");
    expect_message(f, "there are x_test, y_test, half; FILE.npz:NAME names one");
    settings.inputs = "stored.npz:z";
    expect_refused(f, &options, REMAT_BAD_INPUT, "there is no array called z; there are x, y");
    copy_file("large.npz");
    settings.inputs = "large.npz";
    expect_refused(f, &options, REMAT_BAD_INPUT, "there is no array called y; there are x;");
    options.needs.labels = reals(0);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    data_source_close(source);
}

static void half_floats_are_exact(void **state)
{
    fixture *f = *state;
    static const uint16_t halves[] = {0x3e00, 0xb400, 0x7bff, 0x0001};
    float numbers[4];
    npy_to_float(NPY_FLOAT16, halves, 4, numbers);
    assert_true(numbers[0] == 1.5f && numbers[1] == -0.25f && numbers[2] == 65504 && numbers[3] == 0x1p-24f);
    if (!library_is_there(LIBRARY_ZLIB))
        return;
    copy_file("deflated.npz");
    dataset_settings settings = settings_of(DATASET_NPY);
    settings.inputs = "deflated.npz:half";
    data_options options = options_of(&settings, reals(2), reals(0), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 2, (void *[]){numbers}, NULL));
    assert_true(numbers[0] == 1.5f && numbers[2] == 65504);
    data_source_close(source);
}

/* Whatever byte is changed, the archive is refused or read; compressed values are never other ones. */
static void damage_is_noticed(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"stored.npz", "deflated.npz", "large.npz"};
    for (size_t n = 0; n < 3; n++) {
        char path[200];
        size_t length;
        snprintf(path, sizeof path, "tests/data/files/%s", names[n]);
        char *bytes = scratch_read(path, &length);
        dataset_settings settings = settings_of(DATASET_NPY);
        settings.inputs = n == 1 ? "bad.npz:x_test" : "bad.npz";
        data_options options = options_of(&settings, reals(4), reals(0), 1);
        for (size_t i = 0; i < length; i++) {
            data_source *source;
            float x[12] = {0};
            bytes[i] = (char)(bytes[i] ^ 0x55);
            scratch_write("bad.npz", bytes, length);
            bytes[i] = (char)(bytes[i] ^ 0x55);
            if (data_source_open(f->context, &options, &source) != REMAT_OK)
                continue;
            if (data_source_samples(source, DATA_TRAINING) == 3)
                expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 3, (void *[]){x}, NULL));
            if (n == 1)
                assert_true(x[1] == 255 && x[2] == 51 && x[10] == 255);
            data_source_close(source);
        }
        for (size_t cut = 0; cut < length; cut += 7) {
            scratch_write("bad.npz", bytes, cut);
            expect_refused(f, &options, REMAT_BAD_INPUT, "");
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(members_are_found),
        FIXTURE_TEST(half_floats_are_exact),
        FIXTURE_TEST(damage_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
