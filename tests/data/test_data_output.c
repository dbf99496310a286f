/* remat_model_check_output: an output may not be a file that the model's data comes from. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A model file in the scratch folder, with these lines in [Dataset]. */
static remat_model *load(fixture *f, const char *dataset)
{
    char text[1024];
    remat_model *model;
    snprintf(text, sizeof text,
             "[Model]\nbatch_size = 1\n[Optimizer : sgd]\n%s\n[in : input]\ninput_shape = 2\n[out : fully_connected]\n"
             "unit = 2\n[loss : mse]\n",
             dataset);
    expect_ok(f, remat_model_load(f->context, scratch_write_text("model.ini", text), &model));
    return model;
}

static void expect_read(fixture *f, const remat_model *model, const char *name)
{
    expect_status(f, remat_model_check_output(model, scratch_path(name)), REMAT_IO);
    expect_message(f, name);
    expect_message(f, "cannot be written: the model's [Dataset] reads it");
}

static void expect_free(fixture *f, const remat_model *model, const char *name)
{
    expect_ok(f, remat_model_check_output(model, scratch_path(name)));
}

static void every_file_of_the_data_is_refused(void **state)
{
    fixture *f = *state;
    static const char *const files[] = {"x.npy", "y.npy", "vx.npy", "vy.npy", "tokens.json", "other.npy"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        scratch_write_text(files[i], "");
    remat_model *model =
        load(f, "[Dataset : npy]\ninputs = x.npy, more.npy\nlabels = y.npy\nvalidation_inputs = vx.npy\n"
                "validation_labels = vy.npy\n");
    for (size_t i = 0; i < 4; i++)
        expect_read(f, model, files[i]);
    expect_free(f, model, "other.npy");
    expect_free(f, model, "more.npy"); /* named, but not there */
    expect_free(f, model, "");         /* a folder, which other checks refuse */
    /* The same file under another name. */
    assert_int_equal(symlink("x.npy", scratch_path("link.npy")), 0);
    assert_int_equal(link(scratch_path("vy.npy"), scratch_path("hard.npy")), 0);
    expect_read(f, model, "link.npy");
    expect_read(f, model, "hard.npy");
    remat_model_destroy(model);
    model = load(f, "[Dataset : jsonl]\ninputs = other.npy\ntokenizer = tokens.json\n");
    expect_read(f, model, "tokens.json");
    expect_read(f, model, "other.npy");
    expect_free(f, model, "x.npy");
    remat_model_destroy(model);
}

/* The labels of a table are a number of columns; a pattern stands for all files that match. */
static void tables_and_patterns(void **state)
{
    fixture *f = *state;
    scratch_write_text("1", "");
    scratch_write_text("a1.csv", "");
    scratch_write_text("a2.txt", "");
    scratch_write_text("a3.txt", "");
    remat_model *model = load(f, "[Dataset : csv]\ninputs = a1.csv\nlabels = 1\n");
    expect_read(f, model, "a1.csv");
    expect_free(f, model, "1");
    remat_model_destroy(model);
    model = load(f, "[Dataset : text]\ninputs = a*.txt\n");
    expect_read(f, model, "a2.txt");
    expect_read(f, model, "a3.txt");
    expect_free(f, model, "a1.csv");
    remat_model_destroy(model);
    model = load(f, "[Dataset : text]\ninputs = none*.txt\n");
    expect_free(f, model, "a2.txt");
    remat_model_destroy(model);
    model = load(f, "[Dataset : random]\nsamples = 4\n");
    expect_free(f, model, "a2.txt");
    remat_model_destroy(model);
}

static void files_in_folders_of_images_are_refused(void **state)
{
    fixture *f = *state;
    mkdir(scratch_path("pictures"), 0777);
    mkdir(scratch_path("pictures/warm"), 0777);
    mkdir(scratch_path("pictures2"), 0777);
    scratch_write_text("pictures/warm/1.png", "");
    scratch_write_text("pictures2/weights.st", "");
    remat_model *model = load(f, "[Dataset : images]\ninputs = pictures\n");
    expect_read(f, model, "pictures/warm/1.png");
    expect_read(f, model, "pictures2/../pictures/warm/1.png");
    expect_free(f, model, "pictures/warm/2.png"); /* nothing would be lost */
    expect_free(f, model, "pictures2/weights.st");
    remat_model_destroy(model);
    /* Other data is in files: a folder of that name holds none of it. */
    model = load(f, "[Dataset : npy]\ninputs = pictures\n");
    expect_free(f, model, "pictures/warm/1.png");
    remat_model_destroy(model);
}

/* A model in Hugging Face's layout: its files, however they are named, and nothing else in its folder. */
static void files_of_a_folder_are_refused(void **state)
{
    fixture *f = *state;
    static const char *const files[] = {"hf/model.safetensors", "hf/model-00001-of-00002.safetensors", "hf/merges.txt",
                                        "hf/training.safetensors", "model-1.safetensors"};
    remat_model *model;
    size_t length;
    char *config = scratch_read("tests/reference/pretrained/gpt2/config.json", &length);
    mkdir(scratch_path("hf"), 0777);
    scratch_write("hf/config.json", config, length);
    free(config);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        scratch_write_text(files[i], "");
    expect_ok(f, remat_model_load(f->context, scratch_path("hf"), &model));
    static const char *const own[] = {"hf/config.json", "hf/../hf/merges.txt", "hf/model.safetensors",
                                      "hf/model-00001-of-00002.safetensors"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        expect_status(f, remat_model_check_output(model, scratch_path(own[i])), REMAT_IO);
        expect_message(f, "cannot be written: it is a file of the model");
    }
    expect_free(f, model, "hf/training.safetensors");
    expect_free(f, model, "model-1.safetensors"); /* the name of a part, in another folder */
    expect_free(f, model, "hf/vocab.json");       /* not there */
    remat_model_destroy(model);
}

static remat_status check_text(void *user)
{
    return remat_model_check_output(user, scratch_path("a3.txt"));
}

static void no_memory_is_told(void **state)
{
    fixture *f = *state;
    scratch_write_text("b2.txt", "");
    scratch_write_text("b3.txt", "");
    scratch_write_text("a3.txt", "");
    remat_model *model = load(f, "[Dataset : text]\ninputs = b*.txt\nvalidation_inputs = b2.txt\n");
    expect_call_failures_survived(f, "check_output", check_text, model, 3);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_file_of_the_data_is_refused),
        FIXTURE_TEST(tables_and_patterns),
        FIXTURE_TEST(files_in_folders_of_images_are_refused),
        FIXTURE_TEST(files_of_a_folder_are_refused),
        FIXTURE_TEST(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
