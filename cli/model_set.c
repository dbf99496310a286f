#include "model_set.h"
#include "shown.h"

enum { OPTION_SET = 0x5e7, MOST_SETTINGS = 256 };

/* A program runs one command, so there is one list. */
static const char *settings[MOST_SETTINGS + 1];
static size_t setting_count;

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0,
     "change the model file: SECTION.KEY=VALUE, such as model.seed=3 or fc1.unit=64; may be given several times", 5},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    if (key != OPTION_SET)
        return ARGP_ERR_UNKNOWN;
    if (setting_count == MOST_SETTINGS)
        argp_error(state, "--set can be given %d times", MOST_SETTINGS);
    settings[setting_count++] = argument;
    return 0;
}

static const struct argp argp = {.options = options, .parser = parse};
const struct argp_child model_set_children[] = {{&argp, 0, NULL, 0}, {0}};

remat_status model_set_refuse(const char *name)
{
    if (setting_count == 0)
        return REMAT_OK;
    fprintf(stderr, "remat: --set changes a model, and %s is none\n", shown(name));
    return REMAT_INVALID;
}

remat_status model_set_read(remat_context *context, FILE *stream, const char *name, remat_model **model)
{
    return remat_model_read_with(context, stream, name, settings, model);
}
