/* Text: windows at random places, patterns of files, and the tail that is held out. */
#include "test_data_options.h"

#include <sys/stat.h>

enum { BYTES = 2001, T = 20 };

/* Bytes at even places say in which hundred they stand. */
static void write_text(void)
{
    unsigned char text[BYTES];
    for (int i = 0; i < BYTES; i++)
        text[i] = (unsigned char)(i % 2 ? i / 2 % 50 : i / 100);
    scratch_write("a.txt", text, 700);
    scratch_write("b.txt", text + 700, BYTES - 700);
}

static void windows_are_drawn_by_position(void **state)
{
    fixture *f = *state;
    write_text();
    dataset_settings settings = settings_of(DATASET_TEXT);
    settings.inputs = "?.txt";
    settings.validation_split = 0.2;
    settings.windows = WINDOWS_RANDOM;
    settings.shuffle = true;
    data_options options = options_of(&settings, ids(T, 256), ids(T, 256), 1);
    options.seed = 3;
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    assert_int_equal(data_source_samples(source, DATA_TRAINING), 80);
    static int32_t first[80][T], again[80][T];
    int32_t labels[T];
    unsigned unaligned = 0;
    for (uint64_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t i = 0; i < 80; i++) {
            int32_t *tokens = epoch ? again[i] : first[i];
            expect_ok(f, data_source_fill(source, DATA_TRAINING, epoch, i, 1, (void *[]){tokens}, labels));
            for (int k = 0; k + 1 < T; k++)
                assert_int_equal(labels[k], tokens[k + 1]);
            unaligned += tokens[1] != (tokens[0] * 100 + 1) / 2 % 50;
        }
    assert_memory_not_equal(first, again, sizeof first);
    assert_true(unaligned > 20);
    /* In the middle of an epoch, as a resumed training begins, and in a larger batch. */
    expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 17, 30, (void *[]){again}, NULL));
    assert_memory_equal(again, first[17], 30 * sizeof *again);
    /* Validation has the fixed windows of the tail. */
    expect_ok(f, data_source_fill(source, DATA_VALIDATION, 5, 0, 1, (void *[]){again}, NULL));
    assert_true(again[0][0] == 16 && again[0][1] == 0);
    data_source_close(source);
    expect_survives_no_memory(f, &options);
}

/* The last place for a window ends where the tail begins. */
static void training_never_reads_the_tail(void **state)
{
    fixture *f = *state;
    scratch_write_text("tail.txt", "aaaaaaaaaaaaaaaabbbb!");
    dataset_settings settings = settings_of(DATASET_TEXT);
    settings.inputs = "tail.txt";
    settings.validation_split = 0.2;
    settings.windows = WINDOWS_RANDOM;
    data_options options = options_of(&settings, ids(4, 256), ids(4, 256), 1);
    data_source *source;
    expect_ok(f, data_source_open(f->context, &options, &source));
    for (uint64_t epoch = 0; epoch < 100; epoch++)
        for (uint64_t i = 0; i < 4; i++) {
            int32_t tokens[4];
            expect_ok(f, data_source_fill(source, DATA_TRAINING, epoch, i, 1, (void *[]){tokens}, NULL));
            for (int k = 0; k < 4; k++)
                assert_int_equal(tokens[k], 'a');
        }
    data_source_close(source);
}

static void patterns_find_files(void **state)
{
    fixture *f = *state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/a[b]*", scratch_folder());
    mkdir(folder, 0777);
    char inner[320];
    snprintf(inner, sizeof inner, "%s/c.txt", folder);
    mkdir(inner, 0777); /* matches, and is no file */
    scratch_write_text("a[b]*/b.txt", "second");
    scratch_write_text("a[b]*/a.txt", "first");
    scratch_write_text("a[b]*/[x].txt", "third!");
    dataset_settings settings = settings_of(DATASET_TEXT);
    settings.folder = folder;
    data_options options = options_of(&settings, ids(5, 256), reals(0), 1);
    static const struct {
        const char *inputs, *text;
    } cases[] = {{"[ab].txt", "first"}, {"b.txt, a.*", "secon"}, {"[x].txt", "third"}, {"?.txt", "first"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        data_source *source;
        int32_t tokens[5];
        settings.inputs = cases[i].inputs;
        expect_ok(f, data_source_open(f->context, &options, &source));
        expect_ok(f, data_source_fill(source, DATA_TRAINING, 0, 0, 1, (void *[]){tokens}, NULL));
        for (int k = 0; k < 5; k++)
            assert_int_equal(tokens[k], cases[i].text[k]);
        data_source_close(source);
    }
    settings.inputs = "*.md";
    expect_refused(f, &options, REMAT_IO, "*.md: no file matches");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(windows_are_drawn_by_position),
        FIXTURE_TEST(training_never_reads_the_tail),
        FIXTURE_TEST(patterns_find_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
