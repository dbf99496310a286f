/* Folders of images, and random changes of images. The images were made with zlib and libjpeg. */
#include "test_data_options.h"

#include "data/image_file.h"
#include "data/library.h"

#include <sys/stat.h>

static char *own_file(const char *name, size_t *length)
{
    char path[200];
    snprintf(path, sizeof path, "tests/data/files/%s", name);
    return scratch_read(path, length);
}

static void put(const char *name, const char *as)
{
    size_t length;
    char *bytes = own_file(name, &length);
    scratch_write(as, bytes, length);
    free(bytes);
}

static bool has_libraries(void)
{
    return library_is_there(LIBRARY_PNG) && library_is_there(LIBRARY_JPEG);
}

static void make_folders(void)
{
    static const char *const folders[] = {"pictures", "pictures/warm", "pictures/cold"};
    for (size_t i = 0; i < 3; i++)
        mkdir(scratch_path(folders[i]), 0777);
    put("orange.jpg", "pictures/warm/b.JPG");
    put("halves.png", "pictures/warm/a.png");
    put("halves.png", "pictures/cold/z.png");
    scratch_write_text("pictures/cold/notes.txt", "no image");
}

static data_options image_options(const dataset_settings *settings, uint64_t channels, uint64_t height, uint64_t width)
{
    data_options options = options_of(settings, reals(channels * height * width), ids(1, 2), 1);
    options.needs.inputs[0].shape[0] = channels;
    options.needs.inputs[0].shape[1] = height;
    options.needs.inputs[0].shape[2] = width;
    return options;
}

static void kinds_of_images_are_read(void **state)
{
    fixture *f = *state;
    if (!has_libraries())
        return;
    static const struct {
        const char *name;
        unsigned width, height, channels, point, red, last;
    } cases[] = {{"halves.png", 4, 2, 3, 3, 0, 255}, {"grey.png", 2, 2, 1, 2, 100, 100},
                 {"grey.png", 2, 2, 3, 1, 255, 255}, {"palette.png", 8, 2, 3, 4, 255, 255},
                 {"deep.png", 2, 2, 3, 1, 0, 0},     {"deep.png", 2, 2, 3, 0, 255, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[200];
        image read;
        snprintf(path, sizeof path, "tests/data/files/%s", cases[i].name);
        expect_ok(f, image_read(f->context, path, cases[i].channels, &read));
        assert_true(read.width == cases[i].width && read.height == cases[i].height);
        const unsigned char *point = read.pixels + cases[i].point * cases[i].channels;
        assert_int_equal(point[0], cases[i].red);
        assert_int_equal(point[cases[i].channels - 1], cases[i].last);
        image_end(&read);
    }
    image read;
    expect_ok(f, image_read(f->context, "tests/data/files/orange.jpg", 3, &read));
    assert_true(read.width == 12 && read.height == 8);
    assert_true(abs(read.pixels[0] - 200) < 5 && abs(read.pixels[1] - 50) < 5 && abs(read.pixels[2] - 20) < 5);
    image_end(&read);
}

static void folders_are_classes(void **state)
{
    fixture *f = *state;
    if (!has_libraries())
        return;
    make_folders();
    dataset_settings settings = settings_of(DATASET_IMAGES);
    settings.inputs = "pictures";
    settings.scale_bytes = true;
    data_options options = image_options(&settings, 3, 2, 2);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_text(f->warning, "1 file is neither .png nor .jpg and is left out");
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 3);
    assert_string_equal(data_source_encoding(source)->classes.names[0], "cold");
    float x[3][12];
    int32_t labels[3];
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 3, (void *[]){x}, labels));
    assert_true(labels[0] == 0 && labels[1] == 1 && labels[2] == 1);
    expect_text(data_source_file(source, DATA_TRAINING, 1), "pictures/warm/a.png");
    /* The middle of 4 x 2 points: red, then blue; channels one after the other. */
    static const float wanted[] = {1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1};
    assert_memory_equal(x[0], wanted, sizeof wanted);
    data_source_close(source);
    expect_survives_no_memory(f, &options);
    settings.fit = FIT_ERROR;
    expect_refused(f, &options, REMAT_BAD_INPUT, "z.png: 4 x 2 points; the model takes 2 x 2");
    settings.fit = FIT_STRETCH;
    /* Grey: a point is the mean of the points that it covers, which have one colour. */
    options = image_options(&settings, 1, 2, 2);
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){x}, labels));
    assert_true(x[0][0] == x[0][2] && x[0][1] == x[0][3] && x[0][0] > x[0][1] && x[0][1] > 0);
    data_source_close(source);
    options.needs.labels.bound = 1;
    expect_refused(f, &options, REMAT_BAD_INPUT, "'warm' is folder 2, and the model has 1 classes");
    /* For predictions there are no classes, and no folders for them. */
    options = image_options(&settings, 3, 2, 2);
    options.needs.labels = reals(0);
    settings.inputs = "pictures/warm";
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 2);
    data_source_close(source);
    options.needs.inputs[0].shape[0] = 2;
    expect_refused(f, &options, REMAT_INVALID, "images feed a model with one input of 1 (grey) or 3 channels");
    options = image_options(&settings, 3, 2, 2);
    settings.inputs = "none";
    expect_refused(f, &options, REMAT_IO, "cannot be opened as a folder");
    settings.inputs = "pictures/warm";
    expect_refused(f, &options, REMAT_BAD_INPUT, "there must be a folder of PNG or JPEG files for each class");
}

/* Whatever byte of a file is changed, it is refused or read. */
static void damage_does_no_harm(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"halves.png", "orange.jpg"};
    for (size_t n = 0; n < 2 && has_libraries(); n++) {
        size_t length;
        char *bytes = own_file(names[n], &length);
        for (size_t i = 0; i < length; i++) {
            image read;
            bytes[i] = (char)(bytes[i] ^ 0xff);
            image_read(f->context, scratch_write("bad", bytes, length), 3, &read);
            image_end(&read);
            bytes[i] = (char)(bytes[i] ^ 0xff);
        }
        for (size_t cut = 0; cut < length; cut += 11) {
            image read;
            image_read(f->context, scratch_write("bad", bytes, cut), 3, &read);
            image_end(&read);
        }
        free(bytes);
    }
}

/* ---- random changes ---- */

enum { SIDE = 6, POINTS = SIDE * SIDE, SAMPLES = 40 };

/* SAMPLES images whose points are 1 .. 36, as .npy. */
static void write_points(void)
{
    unsigned char bytes[128 + SAMPLES * POINTS];
    int length = snprintf((char *)bytes + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1, 6, 6), }",
                          SAMPLES);
    memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
    memset(bytes + 10 + length, ' ', (size_t)(118 - length));
    for (int i = 0; i < SAMPLES * POINTS; i++)
        bytes[128 + i] = (unsigned char)(i % POINTS + 1);
    scratch_write("points.npy", bytes, sizeof bytes);
}

static void read_all(fixture *f, const data_options *options, uint64_t epoch, float x[SAMPLES][POINTS])
{
    data_source *source;
    expect_ok(f, data_source_open(f->context, options, &source));
    expect_ok(f, data_source_fill(source, DATA_TRAINING, epoch, 0, SAMPLES, (void *[]){x}, NULL));
    /* In the middle, as a resumed training begins, it is the same. */
    float again[POINTS];
    expect_ok(f, data_source_fill(source, DATA_TRAINING, epoch, 23, 1, (void *[]){again}, NULL));
    assert_memory_equal(again, x[23], sizeof again);
    data_source_close(source);
}

static unsigned count_points(const float *x, float value)
{
    unsigned count = 0;
    for (int i = 0; i < POINTS; i++)
        count += x[i] == value;
    return count;
}

static void changes_are_drawn_by_position(void **state)
{
    fixture *f = *state;
    static float x[SAMPLES][POINTS], y[SAMPLES][POINTS];
    write_points();
    dataset_settings settings = settings_of(DATASET_NPY);
    settings.inputs = "points.npy";
    settings.flip = FLIP_HORIZONTAL;
    data_options options = image_options(&settings, 1, SIDE, SIDE);
    options.needs.labels = reals(0);
    options.seed = 5;
    read_all(f, &options, 0, x);
    unsigned mirrored = 0;
    for (int i = 0; i < SAMPLES; i++) {
        bool turned = x[i][0] == SIDE;
        mirrored += turned;
        for (int p = 0; p < POINTS; p++)
            assert_true(x[i][p] == (float)(turned ? p / SIDE * SIDE + SIDE - p % SIDE : p + 1));
    }
    assert_in_range(mirrored, 10, 30);
    read_all(f, &options, 1, y);
    assert_memory_not_equal(x, y, sizeof x);
    settings.flip = FLIP_NONE;
    settings.shift = 2;
    read_all(f, &options, 0, x);
    bool seen[5] = {false};
    for (int i = 0; i < SAMPLES; i++) {
        unsigned outside = count_points(x[i], 0);
        assert_true(outside <= POINTS - 16);
        int across = 9;
        for (int p = 0; p < POINTS; p++)
            if (x[i][p] > 0)
                across = p % SIDE - ((int)x[i][p] - 1) % SIDE;
        assert_in_range(across + 2, 0, 4);
        seen[across + 2] = true;
    }
    assert_true(seen[0] && seen[2] && seen[4]);
    settings.shift = 0;
    settings.cutout = 2;
    read_all(f, &options, 0, x);
    for (int i = 0; i < SAMPLES; i++)
        assert_in_range(count_points(x[i], 0), 1, 4);
    settings.cutout = 0;
    settings.crop = 0.5;
    read_all(f, &options, 0, x);
    unsigned parts = 0;
    for (int i = 0; i < SAMPLES; i++) {
        assert_true(count_points(x[i], 0) == 0 && x[i][0] <= x[i][1] && x[i][0] <= x[i][SIDE]);
        assert_true(x[i][POINTS - 1] - x[i][0] >= 14); /* at least 3 of 6 in both directions */
        parts += x[i][POINTS - 1] - x[i][0] < 35;
    }
    assert_in_range(parts, 20, SAMPLES);
    settings.flip = FLIP_BOTH;
    expect_survives_no_memory(f, &options);
    options.needs.inputs[0].shape[1] = 1;
    expect_refused(f, &options, REMAT_INVALID, "flip, shift, crop and cutout need an input that is an image");
    /* Validation samples stay as they are. */
    options = image_options(&settings, 1, SIDE, SIDE);
    options.needs.labels = reals(0);
    settings.validation_split = 0.5;
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    expect_ok(f, data_source_fill(source, DATA_VALIDATION, 0, 0, 20, (void *[]){x}, NULL));
    for (int i = 0; i < 20 * POINTS; i++)
        assert_true((&x[0][0])[i] == (float)(i % POINTS + 1));
    data_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(kinds_of_images_are_read),
        FIXTURE_TEST(folders_are_classes),
        FIXTURE_TEST(damage_does_no_harm),
        FIXTURE_TEST(changes_are_drawn_by_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
