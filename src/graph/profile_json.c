#include "graph/profile_read.h"

#include "base/alloc.h"
#include "base/json_fields.h"

#include <string.h>

enum { MOST_NAME_BYTES = REMAT_LONGEST_NAME + 1, MODE_FIELD_COUNT = 8 };

/* One layer while it is read. Its strings are copies, since the reader's text changes with every token. */
typedef struct layer_text {
    json_reader *reader;
    uint64_t position;
    remat_layer_options options;
    uint64_t seen;
    char name[MOST_NAME_BYTES];
    remat_mode_options modes[REMAT_MOST_MODES];
    char mode_names[REMAT_MOST_MODES][MOST_NAME_BYTES];
} layer_text;

static remat_status read_name(json_reader *reader, uint64_t layer, const char *field, char name[MOST_NAME_BYTES])
{
    const char *text;
    REMAT_TRY(json_read_text(reader, layer, field, &text));
    if (strlen(text) >= MOST_NAME_BYTES) {
        remat_place place = json_field_place(reader, layer, field);
        return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place,
                          "%zu bytes long; a name may have at most %d", strlen(text), MOST_NAME_BYTES - 1);
    }
    memcpy(name, text, strlen(text) + 1);
    return REMAT_OK;
}

/* ---- modes ---- */

static const struct mode_field {
    const char *name, *field;
    size_t offset;
    char kind; /* 'n' a number, 'b' true or false, 't' the name */
} mode_fields[MODE_FIELD_COUNT] = {
    {"name", "modes.name", 0, 't'},
    {"activation_bytes", "modes.activation_bytes", offsetof(remat_mode_options, activation_bytes), 'n'},
    {"forward_cost", "modes.forward_cost", offsetof(remat_mode_options, forward_cost), 'n'},
    {"backward_cost", "modes.backward_cost", offsetof(remat_mode_options, backward_cost), 'n'},
    {"forward_workspace_bytes", "modes.forward_workspace_bytes", offsetof(remat_mode_options, forward_workspace_bytes),
     'n'},
    {"backward_workspace_bytes", "modes.backward_workspace_bytes",
     offsetof(remat_mode_options, backward_workspace_bytes), 'n'},
    {"holds_output", "modes.holds_output", offsetof(remat_mode_options, holds_output), 'b'},
    {"lossless", "modes.lossless", offsetof(remat_mode_options, lossless), 'b'},
};

static remat_status read_mode_field(layer_text *layer, const struct mode_field *field, size_t mode)
{
    char *target = (char *)&layer->modes[mode] + field->offset;
    switch (field->kind) {
    case 'n': return json_read_count(layer->reader, layer->position, field->field, (uint64_t *)(void *)target);
    case 'b': return json_read_bool(layer->reader, layer->position, field->field, (bool *)(void *)target);
    default:
        layer->modes[mode].name = layer->mode_names[mode];
        return read_name(layer->reader, layer->position, field->field, layer->mode_names[mode]);
    }
}

static remat_status read_mode(layer_text *layer, size_t mode)
{
    uint64_t seen = 0;
    remat_mode_options_init(&layer->modes[mode]);
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(layer->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        unsigned which = 0;
        while (which < MODE_FIELD_COUNT && strcmp(mode_fields[which].name, key.text) != 0)
            which++;
        if (which == MODE_FIELD_COUNT) {
            REMAT_TRY(json_field_unknown(layer->reader, layer->position, key.text));
            continue;
        }
        REMAT_TRY(json_field_once(layer->reader, layer->position, mode_fields[which].field, which, &seen));
        REMAT_TRY(read_mode_field(layer, &mode_fields[which], mode));
    }
    if (seen & 1 << 1)
        return REMAT_OK;
    remat_place place = json_field_place(layer->reader, layer->position, "modes.activation_bytes");
    return remat_fail(json_reader_context(layer->reader), REMAT_BAD_INPUT, &place, "missing; every mode needs it");
}

static remat_status read_modes(layer_text *layer)
{
    REMAT_TRY(json_read_open(layer->reader, layer->position, "modes", JSON_ARRAY));
    size_t count = 0;
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(layer->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            break;
        remat_place place = json_field_place(layer->reader, layer->position, "modes");
        if (token.kind != JSON_OBJECT)
            return remat_fail(json_reader_context(layer->reader), REMAT_BAD_INPUT, &place,
                              "%s is not allowed; each mode must be an object", json_kind_name(token.kind));
        if (count == REMAT_MOST_MODES)
            return remat_fail(json_reader_context(layer->reader), REMAT_BAD_INPUT, &place,
                              "more than 255 modes; a layer may have 255 besides keep");
        REMAT_TRY(read_mode(layer, count++));
    }
    layer->options.modes = layer->modes;
    layer->options.mode_count = count;
    return REMAT_OK;
}

/* ---- layers ---- */

enum { SEEN_NAME = PROFILE_FIELD_COUNT, SEEN_TYPE, SEEN_MODES };

static remat_status read_layer_field(layer_text *layer, const char *key)
{
    json_reader *reader = layer->reader;
    uint64_t position = layer->position;
    int which = remat_profile_field_find(key);
    if (which >= 0) {
        const profile_field *field = &remat_profile_fields[which];
        char *target = (char *)&layer->options + field->offset;
        REMAT_TRY(json_field_once(reader, position, field->name, (unsigned)which, &layer->seen));
        return json_read_count(reader, position, field->name, (uint64_t *)(void *)target);
    }
    if (strcmp(key, "name") == 0) {
        REMAT_TRY(json_field_once(reader, position, "name", SEEN_NAME, &layer->seen));
        layer->options.name = layer->name;
        return read_name(reader, position, "name", layer->name);
    }
    if (strcmp(key, "type") == 0) {
        const char *text;
        REMAT_TRY(json_field_once(reader, position, "type", SEEN_TYPE, &layer->seen));
        REMAT_TRY(json_read_text(reader, position, "type", &text));
        remat_place place = json_field_place(reader, position, "type");
        return remat_layer_type_parse(json_reader_context(reader), text, &place, &layer->options.type);
    }
    if (strcmp(key, "modes") == 0) {
        REMAT_TRY(json_field_once(reader, position, "modes", SEEN_MODES, &layer->seen));
        return read_modes(layer);
    }
    return json_field_unknown(reader, position, key);
}

static remat_status require_fields(const layer_text *layer)
{
    const char *missing = layer->seen >> SEEN_TYPE & 1 ? NULL : "type";
    for (unsigned i = PROFILE_FIELD_COUNT; i-- > 0;)
        if (remat_profile_fields[i].required && !(layer->seen >> i & 1))
            missing = remat_profile_fields[i].name;
    if (!missing)
        return REMAT_OK;
    remat_place place = json_field_place(layer->reader, layer->position, missing);
    return remat_fail(json_reader_context(layer->reader), REMAT_BAD_INPUT, &place,
                      "missing; every layer needs index, type, activation_bytes and recompute_flops");
}

static remat_status read_layer(remat_profile *chain, layer_text *layer)
{
    remat_layer_options_init(&layer->options);
    layer->position = chain->layer_count;
    layer->seen = 0;
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(layer->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        REMAT_TRY(read_layer_field(layer, key.text));
    }
    REMAT_TRY(require_fields(layer));
    remat_place place = json_place(layer->reader);
    return remat_chain_add(chain, &layer->options, &place);
}

static remat_status read_layers(remat_profile *chain, json_reader *reader, layer_text *layer)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "layers", JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_OBJECT) {
            remat_place place = json_field_place(reader, chain->layer_count, NULL);
            return remat_fail(chain->context, REMAT_BAD_INPUT, &place, "%s is not allowed; a layer must be an object",
                              json_kind_name(token.kind));
        }
        REMAT_TRY(read_layer(chain, layer));
    }
}

/* ---- the whole ---- */

static const char *const chain_keys[] = {"format",
                                         "version",
                                         "name",
                                         "cost_unit",
                                         "layers",
                                         "algorithms",
                                         "input_bytes",
                                         "input_gradient_bytes",
                                         "loss_workspace_bytes"};
enum { CHAIN_KEY_COUNT = sizeof chain_keys / sizeof chain_keys[0] };

static remat_status read_algorithms(remat_profile *chain, json_reader *reader)
{
    const char *text;
    REMAT_TRY(json_read_text(reader, REMAT_NOWHERE, "algorithms", &text));
    if (strlen(text) > REMAT_LONGEST_ALGORITHMS) {
        remat_place place = json_field_place(reader, REMAT_NOWHERE, "algorithms");
        return remat_fail(chain->context, REMAT_BAD_INPUT, &place, "%zu bytes long; it may have at most %d",
                          strlen(text), REMAT_LONGEST_ALGORITHMS);
    }
    return remat_chain_set_algorithms(chain, text);
}

static remat_status read_chain_field(remat_profile *chain, json_reader *reader, layer_text *layer, unsigned which)
{
    switch (which) {
    case 0: return json_read_format(reader, "remat-profile");
    case 1: return json_read_version(reader, 1);
    case 2:
        REMAT_TRY(read_name(reader, REMAT_NOWHERE, "name", layer->name));
        return remat_profile_set_name(chain, layer->name);
    case 3:
        REMAT_TRY(read_name(reader, REMAT_NOWHERE, "cost_unit", layer->name));
        return remat_profile_set_cost_unit(chain, layer->name);
    case 4: return read_layers(chain, reader, layer);
    case 5: return read_algorithms(chain, reader);
    default: {
        uint64_t value;
        REMAT_TRY(json_read_count(reader, REMAT_NOWHERE, chain_keys[which], &value));
        remat_place place = json_place(reader);
        return remat_chain_set(chain, chain_keys[which], value, &place);
    }
    }
}

static remat_status read_chain(remat_profile *chain, json_reader *reader, layer_text *layer)
{
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        unsigned which = 0;
        while (which < CHAIN_KEY_COUNT && strcmp(chain_keys[which], key.text) != 0)
            which++;
        if (which == CHAIN_KEY_COUNT) {
            REMAT_TRY(json_field_unknown(reader, REMAT_NOWHERE, key.text));
            continue;
        }
        REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, chain_keys[which], which, &seen));
        REMAT_TRY(read_chain_field(chain, reader, layer, which));
    }
    static const unsigned required[] = {0, 1, 4};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!(seen >> required[i] & 1)) {
            remat_place place = json_field_place(reader, REMAT_NOWHERE, chain_keys[required[i]]);
            return remat_fail(chain->context, REMAT_BAD_INPUT, &place,
                              "missing; a profile needs format, version and layers");
        }
    json_token end;
    return json_next(reader, &end);
}

remat_status remat_profile_read_json(remat_profile *chain, FILE *stream, const char *name, uint64_t line)
{
    json_reader *reader;
    REMAT_TRY(json_reader_create(chain->context, stream, name, &reader));
    json_reader_set_line(reader, line);
    layer_text *layer = remat_alloc(chain->context, 1, sizeof *layer);
    remat_status status = REMAT_NO_MEMORY;
    if (layer) {
        layer->reader = reader;
        status = read_chain(chain, reader, layer);
    }
    remat_release(chain->context, layer, 1, sizeof *layer);
    json_reader_destroy(reader);
    return status;
}
