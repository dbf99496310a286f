/* Which tensor of a file is which parameter of a model: names as they are, names by a map, names that are nearly right, shapes
 * that do not fit, parts of a file, and folders of shards. */
#include "support/damaged_text.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "data/safetensors.h"
#include "data/weight_names.h"

#include <remat/train.h>

#include <sys/stat.h>

static const char text[] = "[Model]\nbatch_size = 2\n[Dataset : random]\nsamples = 4\n"
                           "[in : input]\ninput_shape = 1:1:4\n[fc1 : fully_connected]\nunit = 5\n"
                           "[fc2 : fully_connected]\nunit = 3\n[loss : mse]\n";

static const float values[64];

typedef struct tensor {
    const char *name;
    uint64_t rows, columns; /* 0 columns: a vector; 0 rows as well: a single value */
} tensor;

static const char *write_weights(fixture *f, const char *name, const tensor *tensors)
{
    safetensors_entry entries[16];
    size_t count = 0;
    for (; tensors[count].name; count++)
        entries[count] = (safetensors_entry){.name = tensors[count].name,
                                             .rank = tensors[count].columns ? 2
                                                     : tensors[count].rows  ? 1
                                                                            : 0,
                                             .dims = {tensors[count].rows, tensors[count].columns},
                                             .data = values,
                                             .dtype = REMAT_FP32};
    const char *path = scratch_path(name);
    expect_ok(f, safetensors_save(f->context, path, entries, count, NULL, 0, NULL));
    return path;
}

typedef struct match_case {
    tensor tensors[12];
    const char *map;
    bool partial;
    remat_status status;
    const char *message; /* of the failure, or of the last warning; NULL: none */
} match_case;

#define FIRST             \
    {"fc1.weight", 5, 4}, \
    {                     \
        "fc1.bias", 5, 0  \
    }
#define SECOND            \
    {"fc2.weight", 3, 5}, \
    {                     \
        "fc2.bias", 3, 0  \
    }

static const match_case cases[] = {
    {{FIRST, SECOND}, NULL, false, REMAT_OK, NULL},
    {{FIRST, {"fc2.weight", 3, 5}},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "fc2.bias: the model has this tensor and the file does not; --map FILE says which name is which"},
    {{{"a", 1, 0}},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "fc1.weight: the model has this tensor and the file does not; --map FILE says which name is which"},
    {{FIRST, {"fc2.weight", 3, 5}, {"fc2.biass", 3, 0}},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "did you mean 'fc2.biass'? --map"},
    {{FIRST, {"fc2.weight", 3, 5}, {"model.fc2.bias", 3, 0}},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "did you mean 'model.fc2.bias'?"},
    {{{"fc1.weight", 4, 5}, {"fc1.bias", 5, 0}, SECOND},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "fc1.weight: it is 4 x 5 in the file and 5 x 4 in the model"},
    {{{"fc1.weight", 5, 4}, {"fc1.bias", 0, 0}, SECOND},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "fc1.bias: it is a single value in the file and 5 in the model"},
    {{{"fc1.weight", 5, 4}, {"fc1.bias", 6, 0}, SECOND},
     NULL,
     false,
     REMAT_BAD_INPUT,
     "fc1.bias: it is 6 in the file and 5 in the model"},
    /* parts of a file */
    {{FIRST, SECOND}, NULL, true, REMAT_OK, "4 of 4 tensors were taken; the file has 0 that the model does not use"},
    {{FIRST, {"a", 1, 0}, {"b", 1, 0}, {"c", 1, 0}, {"d", 1, 0}, {"e", 1, 0}, {"f", 1, 0}, {"optimizer/x", 1, 0}},
     NULL,
     true,
     REMAT_OK,
     "2 of 4 tensors were taken; the file has 6 that the model does not use: a, b, c, d, e, ..."},
    {{FIRST, {"fc2.weight", 5, 3}, {"fc2.bias", 3, 0}}, NULL, true, REMAT_OK, "3 of 4 tensors were taken"},
    {{{"a", 1, 0}}, NULL, true, REMAT_BAD_INPUT, "none of the model's tensors is in the file; --map FILE says which"},
    /* maps */
    {{{"net.0.weight", 5, 4}, {"net.0.bias", 5, 0}, {"head", 5, 3}, {"tail", 3, 0}},
     "# ours = theirs\nfc1 = net.0\n\nfc2.weight = head transposed\n fc2.bias =tail # and no more\n",
     false,
     REMAT_OK,
     NULL},
    {{{"model.fc1.weight", 5, 4}, {"model.fc1.bias", 5, 0}, {"model.fc2.weight", 3, 5}, {"model.fc2.bias", 3, 0}},
     "* = model.*\n",
     false,
     REMAT_OK,
     NULL},
    {{{"h.1.x.weight", 5, 4}, {"h.1.x.bias", 5, 0}, {"h.2.x.weight", 3, 5}, {"h.2.x.bias", 3, 0}},
     "fc{i} = h.{i}.x\n",
     false,
     REMAT_OK,
     NULL},
    {{{"h.1", 5, 4}, {"fc1.bias", 5, 0}, SECOND},
     "fc{i}.weight = h.{i}\n",
     false,
     REMAT_BAD_INPUT,
     "fc2.weight: the model has this tensor"},
    {{FIRST, SECOND}, "fc1\n", false, REMAT_BAD_INPUT, "map:1: 'fc1' is no rule; a rule is OUR_NAME = THEIR_NAME"},
    {{FIRST, SECOND},
     "\nfc1 = a b\n",
     false,
     REMAT_BAD_INPUT,
     "map:2: 'b' is behind the name; only 'transposed' may be"},
    {{FIRST, SECOND}, "fc1 =\n", false, REMAT_BAD_INPUT, "map:1: a name is missing, or has a blank in it"},
    {{FIRST, SECOND}, "= a\n", false, REMAT_BAD_INPUT, "a name is missing, or has a blank in it"},
    {{FIRST, SECOND}, "a b = c\n", false, REMAT_BAD_INPUT, "a name is missing, or has a blank in it"},
    {{FIRST, SECOND}, "a* = b*\n", false, REMAT_BAD_INPUT, "'*' stands alone, for every name: * = model.*"},
    {{FIRST, SECOND}, "* = b\n", false, REMAT_BAD_INPUT, "'*' stands alone, for every name: * = model.*"},
    {{FIRST, SECOND}, "a = b*\n", false, REMAT_BAD_INPUT, "'*' stands alone, for every name: * = model.*"},
};

static remat_status load(remat_context *context, const char *weights, const char *map, bool partial)
{
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    options.names_path = map;
    options.partial_weights = partial;
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(context, stream, "text", &model);
    fclose(stream);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    FLOW(status, remat_trainer_load(trainer, weights));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

static void names_and_shapes_are_matched(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const match_case *c = &cases[i];
        char weights[300], map[300];
        snprintf(weights, sizeof weights, "%s", write_weights(f, "w.safetensors", c->tensors));
        if (c->map)
            snprintf(map, sizeof map, "%s", scratch_write_text("map", c->map));
        f->warnings = 0;
        remat_status status = load(f->context, weights, c->map ? map : NULL, c->partial);
        if (status != c->status)
            fail_msg("case %zu: status %d, %s", i, status, remat_context_message(f->context));
        if (c->message && c->status == REMAT_OK)
            expect_text(f->warning, c->message);
        else if (c->message)
            expect_message(f, c->message);
        else
            assert_int_equal(f->warnings, 0);
    }
}

static void long_lines_of_maps_are_refused(void **state)
{
    fixture *f = *state;
    static char line[3 * WEIGHT_NAME_TEXT];
    memset(line, 'a', sizeof line - 1);
    weight_names *names;
    expect_status(f, weight_names_load(f->context, scratch_write_text("map", line), &names), REMAT_BAD_INPUT);
    expect_message(f, "map:1: the line is longer than");
    expect_status(f, weight_names_load(f->context, scratch_path("none"), &names), REMAT_IO);
    /* A name that does not fit is cut, and then not found. */
    snprintf(line, sizeof line, "fc{i} = %0*d{i}", WEIGHT_NAME_TEXT - 10, 7);
    expect_ok(f, weight_names_load(f->context, scratch_write_text("map", line), &names));
    char theirs[WEIGHT_NAME_TEXT];
    bool transposed;
    assert_true(weight_names_find(names, "fc12345678901234567890", theirs, &transposed));
    assert_int_equal(strlen(theirs), WEIGHT_NAME_TEXT - 1);
    assert_false(weight_names_find(names, "fcx", theirs, &transposed));
    assert_false(weight_names_find(names, "fc1x", theirs, &transposed));
    assert_false(weight_names_find_any(names, "fc1", theirs));
    assert_false(weight_names_find(NULL, "fc1", theirs, &transposed));
    assert_false(weight_names_find_any(NULL, "fc1", theirs));
    weight_names_destroy(names);
    weight_names_destroy(NULL);
}

/* ---- shards ---- */

static const char map_text[] =
    "{\"metadata\": {\"total_size\": 10}, \"weight_map\": {\"fc1.weight\": \"one.safetensors\", "
    "\"fc1.bias\": \"one.safetensors\", \"fc2.weight\": \"two.safetensors\"}}\n";

static remat_status open_folder(remat_context *context, const char *index, void *user)
{
    safetensors *file;
    char path[400];
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", (const char *)user);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(index, stream);
    fclose(stream);
    remat_status status = safetensors_open(context, user, &file);
    safetensors_close(file);
    return status;
}

static void make_shards(fixture *f, char folder[300])
{
    snprintf(folder, 300, "%s", scratch_path("shards"));
    mkdir(folder, 0700);
    write_weights(f, "shards/one.safetensors", (tensor[]){FIRST, {0}});
    write_weights(f, "shards/two.safetensors", (tensor[]){SECOND, {0}});
}

static void damaged_indexes_are_refused(void **state)
{
    fixture *f = *state;
    char folder[300];
    make_shards(f, folder);
    expect_ok(f, open_folder(f->context, map_text, folder));
    assert_true(expect_beginnings_judged(f, map_text, open_folder, folder, "index.json") > strlen(map_text) - 5);
    assert_true(expect_other_values_judged(f, map_text, open_folder, folder, "") > 50);
    static const char *const bad[][2] = {
        {"{}", "weight_map: it is missing; it says which tensor is in which file"},
        {"{\"weight_map\": {\"a\": \"x/one.safetensors\"}}", "a: a shard is a file of this folder, without a '/'"},
        {"{\"weight_map\": {\"a\": \"\"}}", "a: a shard is a file of this folder, without a '/'"},
        {"{\"weight_map\": {\"a\": \"three.safetensors\"}}",
         "a: the index says that it is in 'three.safetensors', and this file is not there"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\"}}",
         "a: the index says that it is in 'one.safetensors', and this file does not have it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_status(f, open_folder(f->context, bad[i][0], folder), REMAT_BAD_INPUT);
        expect_message(f, bad[i][1]);
    }
    safetensors *file;
    expect_status(f, safetensors_open(f->context, scratch_folder(), &file), REMAT_BAD_INPUT);
    expect_message(f, "the folder has no weights: neither model.safetensors nor model.safetensors.index.json");
}

static remat_status open_once(remat_context *context, void *user)
{
    safetensors *file;
    remat_status status = safetensors_open(context, user, &file);
    safetensors_close(file);
    return status;
}

static remat_status load_shards(remat_context *context, void *user)
{
    char map[300];
    snprintf(map, sizeof map, "%s", scratch_path("map"));
    return load(context, user, map, true);
}

static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    char folder[300];
    make_shards(f, folder);
    expect_ok(f, open_folder(f->context, map_text, folder));
    scratch_write_text("map", "fc1 = fc1\nfc2 = fc2 transposed\n* = *\n");
    expect_failures_without_reserve_survived("shards", open_once, folder, 20, LESS_WHEN_SANITIZED(3000, 500));
    expect_failures_without_reserve_survived("loading shards", load_shards, folder, 50, LESS_WHEN_SANITIZED(600, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(names_and_shapes_are_matched),
        FIXTURE_TEST(long_lines_of_maps_are_refused),
        FIXTURE_TEST(damaged_indexes_are_refused),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
