/* [Model], [Optimizer] and [Dataset]: the tables of their keys, and filling them. */
#include "model/model_object.h"

#include "base/error.h"

#include <remat/plan.h>
#include <remat/units.h>

#include <string.h>

static const char *const optimizer_types[] = {"sgd", "adam", "adamw", "lion", "adafactor", NULL};
static const char *const state_types[] = {"fp32", "bf16", "int8", NULL};
static const char *const precisions[] = {"fp32", "bf16", NULL};
static const char *const frozen_types[] = {"fp32", "fp16", "bf16", "int8", "int4", NULL};
static const char *const rate_schedules[] = {"constant", "step", "cosine", "linear", "one_cycle", "plateau", NULL};
static const char *const dataset_types[] = {"none", "npy", "csv", "text", "random", "images", "jsonl", NULL};
static const char *const splits[] = {"auto", "last", "shuffled", "stratified", NULL};
static const char *const delimiters[] = {"auto", "comma", "semicolon", "tab", "pipe", "space", NULL};
static const char *const headers[] = {"auto", "true", "false", NULL};
static const char *const missing_policies[] = {"error", "mean", "zero", "drop", NULL};
static const char *const word_policies[] = {"error", "onehot", NULL};
static const char *const window_places[] = {"fixed", "random", NULL};
static const char *const fits[] = {"crop", "stretch", "error", NULL};
static const char *const flips[] = {"none", "horizontal", "vertical", "both", NULL};
static const char *const normalizations[] = {"none", "standard", "minmax", NULL};

#define AT(field) offsetof(model_settings, field)
static const property model_properties[] = {
    {"name", PROPERTY_TEXT, AT(name), "", 0, 0, NULL, "for messages and tables"},
    {"batch_size", PROPERTY_COUNT, AT(batch_size), "1", 1, 1e9, NULL, "samples that go through at once"},
    {"epochs", PROPERTY_COUNT, AT(epochs), "1", 1, 1e9, NULL, "how often the data is gone through"},
    {"seed", PROPERTY_COUNT, AT(seed), "0", 0, 0, NULL, "of weights, shuffling and dropout"},
    {"accumulate", PROPERTY_COUNT, AT(accumulate), "1", 1, 1e9, NULL, "batches whose gradients make one step"},
    {"clip_norm", PROPERTY_NUMBER, AT(clip_norm), "0", 0, 0, NULL, "longest gradient of all weights together; 0: any"},
    {"budget", PROPERTY_TEXT, AT(budget), "", 0, 0, NULL, "bytes that training may take, such as 300MiB"},
    {"strategy", PROPERTY_TEXT, AT(strategy), "", 0, 0, NULL, "what to keep and what to recompute"},
    {"precision", PROPERTY_CHOICE, AT(precision), "fp32", 0, 0, precisions,
     "the type in which activations and their gradients are stored in training"},
    {"master", PROPERTY_FLAG, AT(master), "true", 0, 0, NULL,
     "of bf16: weights are kept in fp32; false: matrices of weights are kept in bf16 alone"},
    {"early_stopping", PROPERTY_COUNT, AT(early_stopping), "0", 0, 1e9, NULL,
     "validations without improvement before training stops; 0: never"},
    {"lora", PROPERTY_TEXT, AT(lora), "", 0, 0, NULL,
     "train adapters of low rank and nothing else: rank=8,alpha=16,dropout=0,targets=q_proj+v_proj"},
    {"train", PROPERTY_TEXT, AT(train), "", 0, 0, NULL,
     "train only the layers whose names match: layers.2?.*+lm_head; with lora, these and the adapters"},
    {"frozen", PROPERTY_CHOICE, AT(frozen), "fp32", 0, 0, frozen_types,
     "the type in which large frozen matrices are held; their products are in fp32 with any type"},
    {"adapter", PROPERTY_TEXT, AT(adapter), "", 0, 0, NULL,
     "a folder with adapters in PEFT's layout, instead of lora; their weights are loaded after the model's"},
    {"length_classes", PROPERTY_COUNT, AT(length_classes), "1", 1, 64, NULL,
     "for a folder: how many lengths have a plan of their own, so that a batch of short samples runs with one that is "
     "just long enough"},
    {0},
};
#undef AT

#define AT(field) offsetof(optimizer_settings, field)
static const property optimizer_properties[] = {
    {"learning_rate", PROPERTY_NUMBER, AT(learning_rate), "0.001", 0, 0, NULL,
     "the rate, or the highest of a schedule"},
    {"momentum", PROPERTY_NUMBER, AT(momentum), "0", 0, 1, NULL, "of sgd"},
    {"nesterov", PROPERTY_FLAG, AT(nesterov), "false", 0, 0, NULL, "of sgd: Nesterov's momentum"},
    {"beta1", PROPERTY_NUMBER, AT(beta1), "0.9", 0, 0.9999999, NULL, "of adam, adamw and lion"},
    {"beta2", PROPERTY_NUMBER, AT(beta2), "0.999", 0, 0.9999999, NULL, "of adam, adamw and lion; 0.99 for lion"},
    {"epsilon", PROPERTY_NUMBER, AT(epsilon), "1e-8", 0, 1, NULL, "of adam and adamw"},
    {"state", PROPERTY_CHOICE, AT(state), "fp32", 0, 0, state_types, "how the moments are stored"},
    {"beta2_decay", PROPERTY_NUMBER, AT(beta2_decay), "0.8", 0, 1, NULL,
     "of adafactor: update n takes n^-beta2_decay of the new squares"},
    {"least_scale", PROPERTY_NUMBER, AT(least_scale), "0.001", 0, 0, NULL,
     "of adafactor: the rate is relative to the size of the weights, or to this where they are smaller"},
    {"update_threshold", PROPERTY_NUMBER, AT(update_threshold), "1", 1e-6, 0, NULL,
     "of adafactor: updates whose root mean square is larger are scaled to it"},
    {"weight_decay", PROPERTY_NUMBER, AT(weight_decay), "0", 0, 0, NULL, "of matrices; biases and gains do not decay"},
    {"schedule", PROPERTY_CHOICE, AT(schedule), "constant", 0, 0, rate_schedules, "how the rate changes"},
    {"warmup_steps", PROPERTY_COUNT, AT(warmup_steps), "0", 0, 0, NULL, "steps over which the rate rises from 0"},
    {"decay_steps", PROPERTY_COUNT, AT(decay_steps), "0", 0, 0, NULL,
     "of cosine, linear and one_cycle: the step that reaches the lowest rate; 0: the last"},
    {"min_rate", PROPERTY_NUMBER, AT(min_rate), "0", 0, 0, NULL,
     "of cosine and linear: the rate at the end; of plateau: the lowest"},
    {"step_size", PROPERTY_COUNT, AT(step_size), "0", 0, 0, NULL,
     "of step: steps between two changes of the rate, counted from the end of the warm-up"},
    {"gamma", PROPERTY_NUMBER, AT(gamma), "0.1", 0, 1, NULL, "of step and plateau: what the rate is multiplied by"},
    {"rise", PROPERTY_NUMBER, AT(rise), "0.3", 0, 1, NULL,
     "of one_cycle: the share of the steps over which the rate rises"},
    {"div_factor", PROPERTY_NUMBER, AT(start_divisor), "25", 1, 0, NULL,
     "of one_cycle: the rate starts at learning_rate / div_factor"},
    {"final_div_factor", PROPERTY_NUMBER, AT(end_divisor), "1e4", 1, 0, NULL,
     "of one_cycle: the rate ends at what it started with / final_div_factor"},
    {"patience", PROPERTY_COUNT, AT(patience), "10", 0, 0, NULL,
     "of plateau: validations without improvement before the rate falls"},
    {"threshold", PROPERTY_NUMBER, AT(threshold), "1e-4", 0, 1, NULL,
     "of plateau: the share by which a loss must be below the best one to count as better"},
    {0},
};
#undef AT

#define AT(field) offsetof(dataset_settings, field)
static const property dataset_properties[] = {
    {"inputs", PROPERTY_TEXT, AT(inputs), "", 0, 0, NULL, "files, relative to the model file"},
    {"labels", PROPERTY_TEXT, AT(labels), "", 0, 0, NULL, "npy: a file; csv: the number of label columns"},
    {"validation_inputs", PROPERTY_TEXT, AT(validation_inputs), "", 0, 0, NULL, "as inputs, for validation"},
    {"validation_labels", PROPERTY_TEXT, AT(validation_labels), "", 0, 0, NULL, "as labels, for validation"},
    {"validation_split", PROPERTY_NUMBER, AT(validation_split), "0", 0, 0.999999, NULL,
     "share of the samples that is validated on"},
    {"split", PROPERTY_CHOICE, AT(split), "auto", 0, 0, splits, "which samples those are"},
    {"validation_every", PROPERTY_COUNT, AT(validation_every), "0", 0, 0, NULL,
     "steps between validations; 0: at the end of every epoch"},
    {"shuffle", PROPERTY_FLAG, AT(shuffle), "true", 0, 0, NULL, "another order in every epoch"},
    {"samples", PROPERTY_COUNT, AT(samples), "1024", 1, 0, NULL, "of random: how many are made"},
    {"scale_bytes", PROPERTY_FLAG, AT(scale_bytes), "true", 0, 0, NULL,
     "of npy and images: inputs that are bytes become 0 to 1 instead of 0 to 255"},
    {"fit", PROPERTY_CHOICE, AT(fit), "crop", 0, 0, fits, "of images: what becomes of one that has another size"},
    {"flip", PROPERTY_CHOICE, AT(flip), "none", 0, 0, flips, "of images: mirrors half of the training samples"},
    {"shift", PROPERTY_COUNT, AT(shift), "0", 0, 1e6, NULL,
     "of images: moves training samples by up to so many points in each direction"},
    {"crop", PROPERTY_NUMBER, AT(crop), "1", 0.01, 1, NULL,
     "of images: takes a part of a training sample that has at least this share of its width and height"},
    {"cutout", PROPERTY_COUNT, AT(cutout), "0", 0, 1e6, NULL,
     "of images: sets a square of so many points in each training sample to 0"},
    {"windows", PROPERTY_CHOICE, AT(windows), "fixed", 0, 0, window_places,
     "of text: where training samples begin; random draws other places in every epoch"},
    {"tokenizer", PROPERTY_TEXT, AT(tokenizer), "", 0, 0, NULL,
     "of jsonl: a tokenizer.json, or the folder that has it (default: the folder of the model)"},
    {"columns", PROPERTY_TEXT, AT(columns), "", 0, 0, NULL, "of csv: the columns of inputs, by name or number"},
    {"target", PROPERTY_TEXT, AT(target), "", 0, 0, NULL, "of csv: the columns of labels, by name or number"},
    {"ignore", PROPERTY_TEXT, AT(ignore), "", 0, 0, NULL, "of csv: columns to leave out, by name or number"},
    {"classes", PROPERTY_TEXT, AT(classes), "", 0, 0, NULL, "of csv: the names of the classes, in their order"},
    {"delimiter", PROPERTY_CHOICE, AT(delimiter), "auto", 0, 0, delimiters, "of csv: what separates columns"},
    {"header", PROPERTY_CHOICE, AT(header), "auto", 0, 0, headers, "of csv: whether the first line names the columns"},
    {"missing", PROPERTY_CHOICE, AT(missing), "error", 0, 0, missing_policies,
     "of csv: what to do about missing values"},
    {"words", PROPERTY_CHOICE, AT(words), "error", 0, 0, word_policies,
     "of csv: what to do about columns of inputs that are words; onehot makes an input of each word"},
    {"normalize", PROPERTY_CHOICE, AT(normalize), "none", 0, 0, normalizations,
     "of csv: standard gives every column of inputs mean 0 and deviation 1, minmax the range 0 to 1"},
    {0},
};
#undef AT

remat_status model_settings_begin(remat_model *model)
{
    remat_context *context = model->context;
    model->optimizer.type = OPTIMIZER_SGD;
    REMAT_TRY(properties_init(context, model_properties, &model->settings));
    REMAT_TRY(properties_init(context, optimizer_properties, &model->optimizer));
    return properties_init(context, dataset_properties, &model->dataset);
}

const model_settings *model_get_settings(const remat_model *model)
{
    return &model->settings;
}

const optimizer_settings *model_get_optimizer(const remat_model *model)
{
    return &model->optimizer;
}

const property *model_optimizer_properties(void)
{
    return optimizer_properties;
}

remat_dtype model_training_dtype(const remat_model *model)
{
    return model->settings.precision == PRECISION_BF16 ? REMAT_BF16 : REMAT_FP32;
}

remat_dtype model_frozen_dtype(const remat_model *model)
{
    static const remat_dtype dtypes[] = {[FROZEN_FP32] = REMAT_FP32,
                                         [FROZEN_FP16] = REMAT_FP16,
                                         [FROZEN_BF16] = REMAT_BF16,
                                         [FROZEN_INT8] = REMAT_INT8_BLOCKS,
                                         [FROZEN_INT4] = REMAT_INT4_BLOCKS};
    return dtypes[model->settings.frozen];
}

const remat_network *model_get_network(const remat_model *model)
{
    return model->network;
}

const dataset_settings *model_get_dataset(const remat_model *model)
{
    return &model->dataset;
}

uint64_t remat_model_budget(const remat_model *model)
{
    uint64_t bytes = REMAT_NO_BUDGET; /* the text was checked when it was set, and stays */
    if (model->settings.budget)
        remat_size_parse(model->context, model->settings.budget, &bytes);
    return bytes;
}

/* ---- filling ---- */

/* What a key is good for; a setting that would do nothing is an error, not a silence. */
typedef struct key_rule {
    const char *key;
    uint32_t types; /* bit t: it belongs to type t */
    const char *whose;
} key_rule;

typedef struct settings_section {
    const char *name;
    const property *properties;
} settings_section;
static const settings_section model_section = {"[Model]", model_properties},
                              optimizer_section = {"[Optimizer]", optimizer_properties},
                              dataset_section = {"[Dataset]", dataset_properties};

static remat_status fill(remat_model *model, const settings_section *section, void *fields, const ini_entry *entries,
                         size_t count, const key_rule *rules, uint32_t type)
{
    for (size_t i = 0; i < count; i++) {
        const ini_entry *entry = &entries[i];
        remat_status status =
            property_set(model->context, section->name, section->properties, fields, entry->key, entry->value);
        for (size_t j = 0; j < i && status == REMAT_OK; j++)
            if (strcmp(entry->key, entries[j].key) == 0)
                status = remat_fail(model->context, REMAT_INVALID, NULL, "%s: said twice", entry->key);
        for (const key_rule *rule = rules; rule && rule->key && status == REMAT_OK; rule++)
            if (strcmp(rule->key, entry->key) == 0 && !(rule->types >> type & 1))
                status = remat_fail(model->context, REMAT_INVALID, NULL,
                                    "%s: it would do nothing here; it belongs to %s", entry->key, rule->whose);
        REMAT_TRY(model_blame(model, NULL, entry->line, status));
    }
    return REMAT_OK;
}

static uint64_t line_of(const ini_entry *entries, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].key, key) == 0)
            return entries[i].line;
    return REMAT_NOWHERE;
}

static remat_status find_choice(const remat_model *model, const char *what, const char *name,
                                const char *const *choices, uint32_t *choice)
{
    const property table[] = {{"type", PROPERTY_CHOICE, 0, NULL, 0, 0, choices, NULL}, {0}};
    return property_set(model->context, what, table, choice, "type", name);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What is trained. It changes the layers, so a compiled model keeps what it has. */
static remat_status model_read_tuning(remat_model *model, const model_settings *settings)
{
    const model_settings *before = &model->settings;
    model_tuning tuning = {0};
    if (model->network && settings->frozen != before->frozen)
        return remat_fail(model->context, REMAT_INVALID, NULL, "frozen is set before the model is compiled");
    if (same_text(settings->lora, before->lora) && same_text(settings->train, before->train) &&
        same_text(settings->adapter, before->adapter))
        return REMAT_OK;
    if (model->network)
        return remat_fail(model->context, REMAT_INVALID, NULL,
                          "lora, train and adapter are set before the model is compiled");
    if (settings->lora && settings->adapter)
        return remat_fail(model->context, REMAT_INVALID, NULL,
                          "adapter: its folder says rank, alpha and targets; leave out lora");
    if (settings->lora)
        REMAT_TRY(tuning_read_lora(&model->pool, settings->lora, &tuning));
    if (settings->adapter)
        REMAT_TRY(tuning_read_adapter(&model->pool, settings->adapter, &tuning));
    if (settings->train)
        REMAT_TRY(tuning_read_trained(&model->pool, settings->train, &tuning));
    model->tuning = tuning;
    return REMAT_OK;
}

remat_status model_set(remat_model *model, const ini_entry *entries, size_t count)
{
    model_settings settings = model->settings;
    uint64_t bytes;
    REMAT_TRY(fill(model, &model_section, &settings, entries, count, NULL, 0));
    uint64_t line = line_of(entries, count, "budget");
    if (settings.budget && remat_size_parse(model->context, settings.budget, &bytes) != REMAT_OK)
        return model_blame(
            model, NULL, line,
            remat_fail(model->context, REMAT_INVALID, NULL, "budget: %s", remat_context_message(model->context)));
    REMAT_TRY(model_read_tuning(model, &settings));
    model->settings = settings;
    return REMAT_OK;
}

/* ---- [Optimizer] ---- */

#define ADAMS     (1u << OPTIMIZER_ADAM | 1u << OPTIMIZER_ADAMW)
#define BETAS     (ADAMS | 1u << OPTIMIZER_LION)
#define ADAFACTOR (1u << OPTIMIZER_ADAFACTOR)
static const key_rule optimizer_rules[] = {
    {"momentum", 1u << OPTIMIZER_SGD, "sgd"},
    {"nesterov", 1u << OPTIMIZER_SGD, "sgd"},
    {"beta1", BETAS, "adam, adamw and lion"},
    {"beta2", BETAS, "adam, adamw and lion"},
    {"epsilon", ADAMS, "adam and adamw"},
    {"state", ~ADAFACTOR, "all optimizers but adafactor, whose state is small"},
    {"beta2_decay", ADAFACTOR, "adafactor"},
    {"least_scale", ADAFACTOR, "adafactor"},
    {"update_threshold", ADAFACTOR, "adafactor"},
    {0},
};
static const key_rule schedule_rules[] = {
    {"decay_steps", 1u << RATE_COSINE | 1u << RATE_LINEAR | 1u << RATE_ONE_CYCLE,
     "the schedules cosine, linear and one_cycle"},
    {"min_rate", 1u << RATE_COSINE | 1u << RATE_LINEAR | 1u << RATE_PLATEAU,
     "the schedules cosine, linear and plateau"},
    {"warmup_steps", ~(1u << RATE_ONE_CYCLE), "all schedules but one_cycle, where the rate rises over `rise`"},
    {"step_size", 1u << RATE_STEP, "the schedule step"},
    {"gamma", 1u << RATE_STEP | 1u << RATE_PLATEAU, "the schedules step and plateau"},
    {"rise", 1u << RATE_ONE_CYCLE, "the schedule one_cycle"},
    {"div_factor", 1u << RATE_ONE_CYCLE, "the schedule one_cycle"},
    {"final_div_factor", 1u << RATE_ONE_CYCLE, "the schedule one_cycle"},
    {"patience", 1u << RATE_PLATEAU, "the schedule plateau"},
    {"threshold", 1u << RATE_PLATEAU, "the schedule plateau"},
    {0},
};

remat_status model_set_optimizer(remat_model *model, const char *type, const ini_entry *entries, size_t count,
                                 uint64_t line)
{
    remat_context *context = model->context;
    optimizer_settings settings = {0};
    REMAT_TRY(model_blame(model, NULL, line, find_choice(model, "[Optimizer]", type, optimizer_types, &settings.type)));
    REMAT_TRY(properties_init(context, optimizer_properties, &settings));
    if (settings.type == OPTIMIZER_LION)
        settings.beta2 = 0.99;
    REMAT_TRY(fill(model, &optimizer_section, &settings, entries, count, optimizer_rules, settings.type));
    optimizer_settings scheduled = settings; /* now the schedule is known, which may stand behind its own keys */
    REMAT_TRY(fill(model, &optimizer_section, &scheduled, entries, count, schedule_rules, settings.schedule));
    if (settings.nesterov && settings.momentum == 0)
        return model_blame(model, NULL, line_of(entries, count, "nesterov"),
                           remat_fail(context, REMAT_INVALID, NULL, "nesterov: it needs a momentum above 0"));
    if (settings.state != STATE_FP32 && settings.type == OPTIMIZER_SGD && settings.momentum == 0)
        return model_blame(model, NULL, line_of(entries, count, "state"),
                           remat_fail(context, REMAT_INVALID, NULL,
                                      "state: sgd without momentum has no state; it needs a momentum above 0"));
    if (settings.schedule == RATE_STEP && settings.step_size == 0)
        return model_blame(
            model, NULL, line_of(entries, count, "schedule"),
            remat_fail(context, REMAT_INVALID, NULL, "the schedule step needs a step_size of at least 1"));
    if (settings.min_rate > settings.learning_rate)
        return model_blame(model, NULL, line_of(entries, count, "min_rate"),
                           remat_fail(context, REMAT_INVALID, NULL, "min_rate: it is above the learning rate, %g",
                                      settings.learning_rate));
    model->optimizer = settings;
    return REMAT_OK;
}

/* ---- [Dataset] ---- */

#define FILES  (1u << DATASET_NPY | 1u << DATASET_CSV | 1u << DATASET_TEXT | 1u << DATASET_IMAGES | 1u << DATASET_JSONL)
#define IMAGES (1u << DATASET_NPY | 1u << DATASET_IMAGES)
static const key_rule dataset_rules[] = {
    {"inputs", FILES, "npy, images, csv, text and jsonl"},
    {"labels", 1u << DATASET_NPY | 1u << DATASET_CSV, "npy and csv"},
    {"validation_inputs", FILES, "npy, images, csv, text and jsonl"},
    {"validation_labels", 1u << DATASET_NPY | 1u << DATASET_CSV, "npy and csv"},
    {"samples", 1u << DATASET_RANDOM, "random"},
    {"scale_bytes", IMAGES, "npy and images"},
    {"fit", 1u << DATASET_IMAGES, "images"},
    {"flip", IMAGES, "npy and images"},
    {"shift", IMAGES, "npy and images"},
    {"crop", IMAGES, "npy and images"},
    {"cutout", IMAGES, "npy and images"},
    {"split", IMAGES | 1u << DATASET_CSV, "npy, images and csv"},
    {"windows", 1u << DATASET_TEXT, "text"},
    {"tokenizer", 1u << DATASET_JSONL, "jsonl"},
    {"columns", 1u << DATASET_CSV, "csv"},
    {"target", 1u << DATASET_CSV, "csv"},
    {"ignore", 1u << DATASET_CSV, "csv"},
    {"classes", 1u << DATASET_CSV, "csv"},
    {"delimiter", 1u << DATASET_CSV, "csv"},
    {"header", 1u << DATASET_CSV, "csv"},
    {"missing", 1u << DATASET_CSV, "csv"},
    {"normalize", 1u << DATASET_CSV, "csv"},
    {"words", 1u << DATASET_CSV, "csv"},
    {0},
};

remat_status model_set_dataset(remat_model *model, const char *type, const ini_entry *entries, size_t count,
                               uint64_t line)
{
    remat_context *context = model->context;
    dataset_settings settings = {.folder = model->dataset.folder};
    REMAT_TRY(model_blame(model, NULL, line, find_choice(model, "[Dataset]", type, dataset_types, &settings.type)));
    REMAT_TRY(properties_init(context, dataset_properties, &settings));
    REMAT_TRY(fill(model, &dataset_section, &settings, entries, count, dataset_rules, settings.type));
    if ((FILES >> settings.type & 1) && !settings.inputs && settings.type != DATASET_JSONL) /* --data gives it */
        return model_blame(model, NULL, line,
                           remat_fail(context, REMAT_INVALID, NULL, "[Dataset] of type %s needs 'inputs'",
                                      dataset_types[settings.type]));
    if (settings.validation_inputs && settings.validation_split > 0)
        return model_blame(model, NULL, line_of(entries, count, "validation_split"),
                           remat_fail(context, REMAT_INVALID, NULL,
                                      "validation_split: the validation has its own files; say one of the two"));
    model->dataset = settings;
    return REMAT_OK;
}
