#include "support/small_models.h"

#include "support/cases.h"
#include "support/fixture.h"
#include "support/scratch_files.h"

/* Lines of the file and what stands in their place. A line that is not there fails the test: the examples changed. */
typedef struct replacement {
    const char *from, *to;
} replacement;

static const struct example {
    const char *name;
    replacement lines[10];
} examples[] = {
    {"convnet.ini",
     {{"batch_size = 32", "batch_size = 3"},
      {"samples = 1024", "samples = 40"},
      {"input_shape = 1:28:28", "input_shape = 1:12:12"},
      {"filters = 16", "filters = 3"},
      {"filters = 32", "filters = 5"},
      {"unit = 64", "unit = 9"}}},
    {"gpt.ini",
     {{"batch_size = 6", "batch_size = 2"},
      {"input_shape = 1:1:210", "input_shape = 1:1:10"},
      {"out_dim = 64", "out_dim = 16"},
      {"positions = 210", "positions = 12"},
      {"count = 4", "count = 2"},
      {"unit = 64", "unit = 16"}}},
    {"gpt24.ini",
     {{"[Optimizer : adamw]", "[Dataset : random]\nsamples = 40\n[Optimizer : adamw]"},
      {"input_shape = 1024", "input_shape = 7"},
      {"in_dim = 50257", "in_dim = 53"},
      {"out_dim = 1024", "out_dim = 16"},
      {"positions = 1024", "positions = 9"},
      {"count = 24", "count = 3"},
      {"num_heads = 16", "num_heads = 2"},
      {"unit = 1024", "unit = 16"},
      {"unit = 50257", "unit = 53"}}},
    {"gpt_bench.ini",
     {{"batch_size = 4", "batch_size = 2"},
      {"input_shape = 1:1:256", "input_shape = 1:1:9"},
      {"in_dim = 8192", "in_dim = 61"},
      {"out_dim = 384", "out_dim = 12"},
      {"positions = 1024", "positions = 16"},
      {"count = 6", "count = 3"},
      {"unit = 384", "unit = 12"},
      {"unit = 8192", "unit = 61"}}},
    {"mlp.ini",
     {{"batch_size = 32", "batch_size = 5"},
      {"samples = 1024", "samples = 50"},
      {"input_shape = 1:1:784", "input_shape = 1:1:23"},
      {"unit = 512", "unit = 19"},
      {"unit = 256", "unit = 16"},
      {"unit = 128", "unit = 11"}}},
    {"mlp_bench.ini",
     {{"batch_size = 128", "batch_size = 6"},
      {"samples = 1024", "samples = 50"},
      {"input_shape = 1:1:784", "input_shape = 1:1:23"},
      {"unit = 1024", "unit = 17"}}},
    {"resnet.ini",
     {{"batch_size = 32", "batch_size = 3"},
      {"samples = 1024", "samples = 40"},
      {"input_shape = 1:28:28", "input_shape = 1:10:10"},
      {"filters = 16", "filters = 4"},
      {"count = 4", "count = 2"}}},
    {"transformer.ini",
     {{"batch_size = 4", "batch_size = 2"},
      {"input_shape = 1:512:512", "input_shape = 1:7:16"},
      {"count = 6", "count = 3"},
      {"unit = 2048", "unit = 40"},
      {"unit = 512", "unit = 16"}}},
};

const char *small_model_name(size_t position)
{
    return position < sizeof examples / sizeof examples[0] ? examples[position].name : NULL;
}

/* The replacement of a line; the line itself where there is none. */
static const char *replaced(const struct example *example, const char *line, bool *used)
{
    for (size_t i = 0; i < 10 && example->lines[i].from; i++)
        if (strcmp(line, example->lines[i].from) == 0) {
            used[i] = true;
            return example->lines[i].to;
        }
    return line;
}

/* `more` stands behind [Model]. */
static char *shrink(const struct example *example, char *text, const char *more)
{
    capture small;
    bool used[10] = {false};
    capture_begin(&small);
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = 0;
        fprintf(small.stream, "%s\n", replaced(example, line, used));
        if (strcmp(line, "[Model]") == 0)
            fprintf(small.stream, "%s\n", more);
    }
    capture_end(&small);
    for (size_t i = 0; i < 10 && example->lines[i].from; i++)
        if (!used[i])
            fail_msg("examples/models/%s has no line '%s'", example->name, example->lines[i].from);
    return small.text;
}

remat_status small_model_load(remat_context *context, const char *name, remat_model **model)
{
    return small_model_load_with(context, name, "", model);
}

remat_status small_model_load_with(remat_context *context, const char *name, const char *more, remat_model **model)
{
    const struct example *example = examples;
    while (strcmp(example->name, name) != 0)
        example++;
    char path[128];
    snprintf(path, sizeof path, "examples/models/%s", name);
    size_t length;
    char *text = scratch_read(path, &length), *small = shrink(example, text, more);
    FILE *stream = stream_of(small, strlen(small));
    remat_status status = remat_model_read(context, stream, path, model);
    fclose(stream);
    free(small);
    free(text);
    return status;
}
