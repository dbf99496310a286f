/* Trainers on data in files, with each allocation failing in turn while they open and read them. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/train.h>

static const char rows[] = "\"first\",second,label\n0.5,1,0\n-1.5,2,1\n0.25,3,2\n1,4,0\n2,5,1\n3,6,2\n";
static const char text[] = "to be or not to be, that is the question: whether";

static const char csv_model[] = "[Model]\n"
                                "batch_size = 2\n"
                                "[Dataset : csv]\n"
                                "inputs = rows.csv\n"
                                "labels = 1\n"
                                "validation_split = 0.34\n"
                                "[in]\n"
                                "type = input\n"
                                "input_shape = 1:1:2\n"
                                "[fc]\n"
                                "type = fully_connected\n"
                                "unit = 3\n"
                                "[loss]\n"
                                "type = cross_entropy\n";

static const char npy_model[] = "[Model]\n"
                                "batch_size = 2\n"
                                "[Dataset : npy]\n"
                                "inputs = x.npy\n"
                                "labels = y.npy\n"
                                "validation_inputs = x.npy\n"
                                "validation_labels = y.npy\n"
                                "[in]\n"
                                "type = input\n"
                                "input_shape = 1:1:3\n"
                                "[fc]\n"
                                "type = fully_connected\n"
                                "unit = 2\n"
                                "[loss]\n"
                                "type = cross_entropy\n";

static const char text_model[] = "[Model]\n"
                                 "batch_size = 2\n"
                                 "[Dataset : text]\n"
                                 "inputs = a.txt, b.txt\n"
                                 "validation_inputs = a.txt\n"
                                 "[in]\n"
                                 "type = input\n"
                                 "input_shape = 1:1:5\n"
                                 "[embed]\n"
                                 "type = embedding\n"
                                 "in_dim = 256\n"
                                 "out_dim = 4\n"
                                 "[out]\n"
                                 "type = fully_connected\n"
                                 "unit = 256\n"
                                 "[loss]\n"
                                 "type = cross_entropy\n";

static void write_npy(const char *name, const char *type, const char *shape, const void *values, size_t bytes)
{
    char file[512] = "\x93NUMPY\x01";
    const size_t start = 10, header = 118; /* 128 in all */
    memset(file + start, ' ', header);
    file[8] = (char)header;
    int length = snprintf(file + start, header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    file[start + (size_t)length] = ' ';
    file[start + header - 1] = '\n';
    memcpy(file + start + header, values, bytes);
    scratch_write(name, file, start + header + bytes);
}

static int make_files(void **state)
{
    (void)state;
    float x[12];
    int32_t y[4] = {0, 1, 1, 0};
    for (int i = 0; i < 12; i++)
        x[i] = (float)i / 4 - 1;
    write_npy("x.npy", "<f4", "(4, 3)", x, sizeof x);
    write_npy("y.npy", "<i4", "(4,)", y, sizeof y);
    scratch_write_text("rows.csv", rows);
    scratch_write_text("a.txt", text);
    scratch_write_text("b.txt", text);
    scratch_write_text("csv.ini", csv_model);
    scratch_write_text("npy.ini", npy_model);
    scratch_write_text("text.ini", text_model);
    return 0;
}

/* The losses of two steps and of the validation, the same each time. */
static remat_status train(remat_context *context, void *user)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.ini", scratch_folder(), (const char *)user);
    static double wanted[3];
    static char known[16];
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_step_result steps[2];
    remat_validation_result validation;
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    remat_status status = remat_model_load(context, path, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    FLOW(status, remat_trainer_step(trainer, &steps[0]));
    FLOW(status, remat_trainer_step(trainer, &steps[1]));
    FLOW(status, remat_trainer_validate(trainer, &validation));
    if (status == REMAT_OK && strcmp(known, user) != 0) {
        snprintf(known, sizeof known, "%s", (const char *)user);
        wanted[0] = steps[0].loss, wanted[1] = steps[1].loss, wanted[2] = validation.loss;
        assert_true(wanted[0] > 0 && wanted[0] < 20);
    } else if (status == REMAT_OK) {
        assert_true(steps[0].loss == wanted[0] && steps[1].loss == wanted[1] && validation.loss == wanted[2]);
    }
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

static void data_in_files_survives_every_failure(void **state)
{
    (void)state;
    static const char *const kinds[] = {"csv", "npy", "text"};
    for (size_t i = 0; i < 3; i++)
        expect_failures_survived(kinds[i], train, (void *)(uintptr_t)kinds[i], 50, LESS_WHEN_SANITIZED(1000, 300));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(data_in_files_survives_every_failure)};
    return cmocka_run_group_tests(tests, make_files, NULL);
}
