#include "model_set.h"

#include <stdlib.h>
#include <string.h>

#include "shown.h"

enum {
    OPTION_SET = 0x5e7,
    OPTION_LENGTH,
    OPTION_LORA,
    OPTION_TRAIN,
    OPTION_ADAPTER,
    OPTION_FROZEN,
    OPTION_PACK,
    OPTION_LENGTH_CLASSES,
    MOST_SETTINGS = 256
};

/* A program runs one command, so there is one list. */
static const char *settings[MOST_SETTINGS + 1];
static size_t setting_count;
static char *texts[MOST_SETTINGS]; /* of options that stand for a setting; they live as long as the program */
static size_t text_count;
static bool adapts;

static const struct argp_option options[] = {
    {"set", OPTION_SET, "KEY=VALUE", 0,
     "change the model file: SECTION.KEY=VALUE, such as model.seed=3 or fc1.unit=64; may be given several times", 5},
    {"length", OPTION_LENGTH, "N", 0,
     "for a folder in Hugging Face's layout instead of MODEL.ini: tokens in a sample (default: 1024, or the model's "
     "length if that is less)",
     5},
    {"lora", OPTION_LORA, "KEY=VALUE,...", 0,
     "train adapters and freeze the rest: rank=8,alpha=16,dropout=0,targets=q_proj+v_proj (default: "
     "targets=all-linear)",
     5},
    {"train", OPTION_TRAIN, "PATTERN", 0,
     "train only the layers whose names match: 'layers.2?.*'; several patterns are joined by +; with --lora these "
     "layers and the adapters",
     5},
    {"adapter", OPTION_ADAPTER, "DIR", 0, "use the adapters in DIR, which has PEFT's layout", 5},
    {"frozen", OPTION_FROZEN, "TYPE", 0,
     "the type in which large frozen matrices are held: fp32, fp16, bf16, int8 or int4; for a folder also keep: the "
     "types of "
     "its files, mapped instead of copied",
     5},
    {"pack", OPTION_PACK, NULL, 0,
     "for a folder: several samples share a row of --length tokens; none of them sees another", 5},
    {"length-classes", OPTION_LENGTH_CLASSES, "N", 0,
     "for a folder: plan for N lengths up to --length, so that a batch of short samples takes less time", 5},
    {0}};

static bool is_frozen_type(const char *text)
{
    static const char *const types[] = {"fp32", "fp16", "bf16", "int8", "int4", "keep"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(text, types[i]) == 0)
            return true;
    return false;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    static const char *const made_of[] = {[OPTION_LENGTH - OPTION_SET] = "model.length=",
                                          [OPTION_LORA - OPTION_SET] = "model.lora=",
                                          [OPTION_TRAIN - OPTION_SET] = "model.train=",
                                          [OPTION_ADAPTER - OPTION_SET] = "model.adapter=",
                                          [OPTION_FROZEN - OPTION_SET] = "model.frozen=",
                                          [OPTION_PACK - OPTION_SET] = "model.pack=",
                                          [OPTION_LENGTH_CLASSES - OPTION_SET] = "model.length_classes="};
    if (key < OPTION_SET || key > OPTION_LENGTH_CLASSES)
        return ARGP_ERR_UNKNOWN;
    if (setting_count == MOST_SETTINGS)
        argp_error(state, "--set can be given %d times", MOST_SETTINGS);
    if (key == OPTION_FROZEN && !is_frozen_type(argument))
        argp_error(state, "--frozen takes fp32, fp16, bf16, int8, int4 or, for a folder, keep, not '%s'",
                   shown(argument));
    const char *before = made_of[key - OPTION_SET];
    adapts |= key == OPTION_LORA || key == OPTION_ADAPTER;
    settings[setting_count] = argument;
    if (before && asprintf(&texts[text_count], "%s%s", before, argument ? argument : "true") < 0)
        argp_failure(state, REMAT_NO_MEMORY, 0, "no memory");
    if (before)
        settings[setting_count] = texts[text_count++];
    setting_count++;
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

const char *const *model_set_settings(void)
{
    return settings;
}

bool model_set_adapts(void)
{
    return adapts;
}

remat_status model_set_load(remat_context *context, const char *path, remat_model **model)
{
    return remat_model_load_with(context, path, settings, model);
}

remat_status model_set_read(remat_context *context, FILE *stream, const char *name, remat_model **model)
{
    return remat_model_read_with(context, stream, name, settings, model);
}
