/* Which layer types there are, and what each takes: for error messages and for help. */
#include "model/model_object.h"

#include "base/error.h"
#include "base/nearest.h"
#include "base/number_text.h"
#include "base/output.h"
#include "base/properties.h"
#include "layers/layer_registry.h"

#include <string.h>

/* ---- finding ---- */

/* Made when a model is compiled, never written in one. */
static bool is_internal(const layer_type *type)
{
    return strcmp(type->name, "projection_cross_entropy") == 0;
}

/* The type at `*position`, moving it behind; NULL past the end. Registered types are behind the others. */
static const layer_type *next_type(const remat_context *context, size_t *position)
{
    const layer_type *type;
    while ((type = layer_type_list((*position)++)) && is_internal(type))
        ;
    size_t own = 0;
    while (layer_type_list(own))
        own++;
    return type ? type : layer_registry_list(context, *position - 1 - own);
}

static const char *nearest_type(const remat_context *context, const char *name)
{
    const char *nearest = NULL;
    size_t most = name_distance_limit(name);
    const layer_type *type;
    for (size_t i = 0; (type = next_type(context, &i));) {
        size_t distance = name_distance(type->name, name, most);
        if (distance > most)
            continue;
        nearest = type->name;
        if (distance == 0)
            break;
        most = distance - 1;
    }
    return nearest;
}

remat_status model_find_type(remat_context *context, const char *name, const layer_type **type)
{
    *type = layer_type_find(name);
    if (!*type)
        *type = layer_registry_find(context, name);
    if (*type && is_internal(*type))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s is made of a fully_connected in front of a cross_entropy; write those two",
                          (*type)->name);
    if (*type)
        return REMAT_OK;
    const char *nearest = nearest_type(context, name);
    if (nearest)
        return remat_fail(context, REMAT_INVALID, NULL, "there is no layer type '%.60s'; did you mean '%s'?", name,
                          nearest);
    char list[900] = "";
    size_t used = 0;
    const layer_type *one;
    for (size_t i = 0; (one = next_type(context, &i)) && used < sizeof list;)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", one->name);
    return remat_fail(context, REMAT_INVALID, NULL, "there is no layer type '%.60s'; there are %s", name, list);
}

/* ---- for people ---- */

/* At least two blanks follow the text. */
static void pad(output *out, const char *text, size_t width)
{
    output_text(out, text);
    size_t length = strlen(text);
    for (size_t i = length; i < width || i < length + 2; i++)
        output_text(out, " ");
}

static void write_list(output *out, const remat_context *context)
{
    const layer_type *type;
    for (size_t i = 0; (type = next_type(context, &i));) {
        pad(out, type->name, 22);
        output_text(out, type->summary);
        output_text(out, "\n");
    }
}

/* Layers that it reads; the labels of a loss come from the data. */
static uint32_t layers_read(const layer_type *type, uint32_t inputs)
{
    return type->labels == LAYER_NO_LABELS ? inputs : inputs - 1;
}

static void write_inputs(output *out, const layer_type *type)
{
    uint32_t least = layers_read(type, type->min_inputs), most = layers_read(type, type->max_inputs);
    output_text(out, "reads ");
    if (most == 0) {
        output_text(out, "the data");
    } else {
        output_number(out, least);
        if (most != least) {
            output_text(out, " to ");
            output_number(out, most);
        }
        output_text(out, most > 1 ? " layers" : " layer");
    }
    if (type->labels == LAYER_LABELS_CLASSES)
        output_text(out, ", and as labels a whole number for every row of it");
    else if (type->labels == LAYER_LABELS_LIKE_IT)
        output_text(out, ", and as labels numbers in its shape");
    output_text(out, "\n");
}

static void write_property(output *out, const property *about)
{
    char allowed[PROPERTY_ALLOWED_TEXT];
    output_text(out, "\n");
    output_text(out, about->key);
    if (!about->default_text) {
        output_text(out, " (required)");
    } else if (*about->default_text) {
        output_text(out, " = ");
        output_text(out, about->default_text);
    }
    output_text(out, "\n    ");
    output_text(out, about->help);
    if (about->kind != PROPERTY_TEXT) { /* of a text the help says it all */
        output_text(out, "\n    ");
        output_text(out, property_allowed(about, allowed));
    }
    output_text(out, "\n");
}

static void write_type(output *out, const layer_type *type)
{
    output_text(out, type->name);
    output_text(out, ": ");
    output_text(out, type->summary);
    output_text(out, "\n");
    write_inputs(out, type);
    for (const property *about = type->properties; about && about->key; about++)
        write_property(out, about);
    output_text(out, "\nEvery layer has name, input_layers, block, trainable and precision as well.\n");
}

/* ---- as JSON ---- */

static void write_limit(output *out, const char *key, double limit)
{
    char text[64];
    text_print(text, sizeof text, "%.15g", limit);
    output_text(out, ", \"");
    output_text(out, key);
    output_text(out, "\": ");
    output_text(out, text);
}

static void write_property_json(output *out, const property *about)
{
    static const char *const kinds[] = {"count", "number", "flag", "choice", "pair", "shape", "numbers", "text"};
    output_text_field(out, "{", "key", about->key);
    output_text_field(out, ", ", "kind", kinds[about->kind]);
    if (about->default_text)
        output_text_field(out, ", ", "default", about->default_text);
    if (about->kind == PROPERTY_COUNT || about->kind == PROPERTY_NUMBER || about->kind == PROPERTY_PAIR ||
        about->kind == PROPERTY_NUMBERS) {
        write_limit(out, "min", about->min);
        if (about->max != 0)
            write_limit(out, "max", about->max);
    }
    for (size_t i = 0; about->kind == PROPERTY_CHOICE && about->choices[i]; i++) {
        output_text(out, i ? ", " : ", \"choices\": [");
        output_quoted(out, about->choices[i]);
        if (!about->choices[i + 1])
            output_text(out, "]");
    }
    output_text_field(out, ", ", "help", about->help);
    output_text(out, "}");
}

static void write_type_json(output *out, const layer_type *type)
{
    static const char *const labels[] = {"none", "like_input", "classes"};
    output_text_field(out, "{", "type", type->name);
    output_text_field(out, ", ", "summary", type->summary);
    output_field(out, ",\n   ", "min_inputs", layers_read(type, type->min_inputs));
    output_field(out, ", ", "max_inputs", layers_read(type, type->max_inputs));
    output_text_field(out, ", ", "labels", labels[type->labels]);
    output_text(out, ",\n   \"properties\": [");
    for (const property *about = type->properties; about && about->key; about++) {
        output_text(out, about == type->properties ? "\n    " : ",\n    ");
        write_property_json(out, about);
    }
    output_text(out, "]}");
}

static void write_json(output *out, const remat_context *context, const layer_type *only)
{
    output_text(out, "{\"format\": \"remat-layers\", \"version\": 1, \"layers\": [");
    const layer_type *type;
    bool first = true;
    for (size_t i = 0; (type = next_type(context, &i));) {
        if (only && type != only)
            continue;
        output_text(out, first ? "\n  " : ",\n  ");
        write_type_json(out, type);
        first = false;
    }
    output_text(out, "]}\n");
}

remat_status remat_layer_types_write(remat_context *context, const char *type, FILE *stream, bool json)
{
    const layer_type *only = NULL;
    if (type)
        REMAT_TRY(model_find_type(context, type, &only));
    output out;
    output_begin(&out, context, stream);
    if (json)
        write_json(&out, context, only);
    else if (only)
        write_type(&out, only);
    else
        write_list(&out, context);
    return output_end(&out);
}
