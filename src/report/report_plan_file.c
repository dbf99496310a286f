/* A plan file without its profile. The bytes of its layers are not known, so memory cannot be drawn, but the figures
 * and decisions in the file can be shown. They are not checked here; `remat check` does that. */
#include "report/report_document.h"

#include "base/alloc.h"
#include "base/json_fields.h"

#include <string.h>

/* The file states layers one by one, the document has them in columns. */
typedef struct stated_layer {
    const char *name, *decision; /* owned; NULL where not stated */
    uint64_t index, forwards;
} stated_layer;

typedef struct stated_plan {
    remat_context *context;
    json_reader *reader;
    report_document *to;
    uint64_t seen;
    const char *words[3]; /* owned; NULL where not stated */
    bool feasible;
    stated_layer *layers;
    size_t layer_count, layer_capacity;
} stated_plan;

static const char *const figure_names[] = {"budget_bytes",
                                           "kept_budget_bytes",
                                           "min_budget_bytes",
                                           "base_peak_bytes",
                                           "base_cost",
                                           "peak_bytes",
                                           "total_cost",
                                           "lower_bound_cost",
                                           "kept_bytes",
                                           "estimated_bytes",
                                           "recompute_flops",
                                           "steps",
                                           "method_bound_cost",
                                           "arena_bytes",
                                           "total_bytes",
                                           "total_budget_bytes",
                                           "min_total_budget_bytes",
                                           "keep_all_total_bytes",
                                           "model_layers",
                                           "recomputed_model_layers"};
enum { FIGURE_COUNT = sizeof figure_names / sizeof figure_names[0] };
static const char *const word_names[] = {"strategy", "method", "remark"};
enum {
    SEEN_WORDS = FIGURE_COUNT,
    SEEN_FORMAT = SEEN_WORDS + 3,
    SEEN_VERSION,
    SEEN_FEASIBLE,
    SEEN_LAYERS,
    SEEN_SCHEDULE
};

/* ---- layers ---- */

static remat_status read_text(stated_plan *plan, uint64_t layer, const char *field, const char **to)
{
    const char *text = "";
    REMAT_TRY(json_read_text(plan->reader, layer, field, &text));
    remat_text_release(plan->context, *to);
    *to = remat_text_copy(plan->context, text);
    return *to ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status read_layer(stated_plan *plan)
{
    void *room = plan->layers;
    remat_status status =
        remat_grow(plan->context, &room, &plan->layer_capacity, plan->layer_count + 1, sizeof *plan->layers);
    plan->layers = room;
    REMAT_TRY(status);
    uint64_t position = plan->layer_count++;
    stated_layer *layer = &plan->layers[position];
    *layer = (stated_layer){.index = position};
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(plan->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            return REMAT_OK;
        if (strcmp(key.text, "name") == 0)
            REMAT_TRY(read_text(plan, position, "name", &layer->name));
        else if (strcmp(key.text, "decision") == 0)
            REMAT_TRY(read_text(plan, position, "decision", &layer->decision));
        else if (strcmp(key.text, "index") == 0)
            REMAT_TRY(json_read_count(plan->reader, position, "index", &layer->index));
        else if (strcmp(key.text, "forwards") == 0)
            REMAT_TRY(json_read_count(plan->reader, position, "forwards", &layer->forwards));
        else
            REMAT_TRY(json_field_unknown(plan->reader, position, key.text));
    }
}

static remat_status read_layers(stated_plan *plan)
{
    REMAT_TRY(json_read_open(plan->reader, REMAT_NOWHERE, "layers", JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(plan->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_OBJECT) {
            remat_place place = json_field_place(plan->reader, REMAT_NOWHERE, "layers");
            return remat_fail(plan->context, REMAT_BAD_INPUT, &place, "%s is not allowed; a layer must be an object",
                              json_kind_name(token.kind));
        }
        REMAT_TRY(read_layer(plan));
    }
}

static void write_layers(const stated_plan *plan)
{
    report_document *to = plan->to;
    document_open(to, "layers", '{');
    DOCUMENT_COLUMN(to, "index", plan->layer_count, document_number, plan->layers[i].index);
    DOCUMENT_COLUMN(to, "name", plan->layer_count, document_text, plan->layers[i].name ? plan->layers[i].name : "");
    DOCUMENT_COLUMN(to, "decision", plan->layer_count, document_text,
                    plan->layers[i].decision ? plan->layers[i].decision : "");
    DOCUMENT_COLUMN(to, "forwards", plan->layer_count, document_number, plan->layers[i].forwards);
    document_close(to, '}');
}

/* ---- the whole ---- */

/* Figures go into the document as they come: each under its own key of the file. */
static remat_status read_field(stated_plan *plan, const char *key)
{
    for (unsigned i = 0; i < FIGURE_COUNT; i++)
        if (strcmp(figure_names[i], key) == 0) {
            uint64_t number = 0;
            REMAT_TRY(json_field_once(plan->reader, REMAT_NOWHERE, figure_names[i], i, &plan->seen));
            REMAT_TRY(json_read_count(plan->reader, REMAT_NOWHERE, figure_names[i], &number));
            document_number(plan->to, figure_names[i], number);
            return REMAT_OK;
        }
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(word_names[i], key) == 0) {
            REMAT_TRY(json_field_once(plan->reader, REMAT_NOWHERE, word_names[i], SEEN_WORDS + i, &plan->seen));
            return read_text(plan, REMAT_NOWHERE, word_names[i], &plan->words[i]);
        }
    static const char *const others[] = {"format", "version", "feasible", "layers", "schedule"};
    for (unsigned i = 0; i < 5; i++)
        if (strcmp(others[i], key) == 0) {
            REMAT_TRY(json_field_once(plan->reader, REMAT_NOWHERE, others[i], SEEN_FORMAT + i, &plan->seen));
            switch (SEEN_FORMAT + i) {
            case SEEN_FORMAT: return json_read_format(plan->reader, "remat-plan");
            case SEEN_VERSION: return json_read_version(plan->reader, 1);
            case SEEN_LAYERS: return read_layers(plan);
            case SEEN_SCHEDULE: return json_skip(plan->reader);
            default: return json_read_bool(plan->reader, REMAT_NOWHERE, "feasible", &plan->feasible);
            }
        }
    return json_field_unknown(plan->reader, REMAT_NOWHERE, key);
}

static remat_status read_plan(stated_plan *plan)
{
    REMAT_TRY(json_read_open(plan->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    document_open(plan->to, "figures", '{');
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(plan->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        REMAT_TRY(read_field(plan, key.text));
    }
    document_close(plan->to, '}');
    if (!(plan->seen >> SEEN_FORMAT & 1)) {
        remat_place place = json_field_place(plan->reader, REMAT_NOWHERE, "format");
        return remat_fail(plan->context, REMAT_BAD_INPUT, &place, "missing; a plan needs format and version");
    }
    json_token end;
    REMAT_TRY(json_next(plan->reader, &end));
    document_bool(plan->to, "feasible", plan->feasible);
    for (unsigned i = 0; i < 3; i++)
        if (plan->words[i])
            document_text(plan->to, word_names[i], plan->words[i]);
    if (plan->layer_count > 0)
        write_layers(plan);
    return REMAT_OK;
}

remat_status remat_report_add_plan_file(remat_report *report, const char *label, FILE *stream)
{
    remat_context *context = report_context(report);
    stated_plan plan = {.context = context, .feasible = true};
    REMAT_TRY(json_reader_create(context, stream, label, &plan.reader));
    plan.to = report_begin_file(report, "plan", label, "");
    remat_status status = read_plan(&plan);
    if (status != REMAT_OK && plan.to->status == REMAT_OK)
        plan.to->status = status;
    json_reader_destroy(plan.reader);
    for (unsigned i = 0; i < 3; i++)
        remat_text_release(context, plan.words[i]);
    for (size_t i = 0; i < plan.layer_count; i++) {
        remat_text_release(context, plan.layers[i].name);
        remat_text_release(context, plan.layers[i].decision);
    }
    remat_release(context, plan.layers, plan.layer_capacity, sizeof *plan.layers);
    return report_end_file(report);
}
