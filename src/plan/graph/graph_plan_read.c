#include <string.h>

#include "base/alloc.h"
#include "base/json_fields.h"
#include "plan/graph/graph_plan_file.h"

const char *const graph_plan_number_names[PLAN_NUMBERS] = {
    [PLAN_BUDGET] = "budget_bytes",         [PLAN_PEAK] = "peak_bytes",
    [PLAN_TOTAL_COST] = "total_cost",       [PLAN_BASE_COST] = "base_cost",
    [PLAN_BASE_PEAK] = "base_peak_bytes",   [PLAN_LOWER_BOUND] = "lower_bound_cost",
    [PLAN_MIN_BUDGET] = "min_budget_bytes", [PLAN_MIN_BOUND] = "min_budget_bound_bytes",
    [PLAN_ARENA] = "arena_bytes",
};

/* Bits of graph_plan_text.seen behind the numbers. */
enum { SEEN_FORMAT = PLAN_NUMBERS, SEEN_VERSION, SEEN_FEASIBLE, SEEN_SCHEDULE, SEEN_PLACES, SEEN_WORDS };

void graph_plan_text_release(graph_plan_text *text)
{
    if (!text->context)
        return;
    graph_sequence_release(text->context, &text->schedule);
    remat_release(text->context, text->places, text->place_capacity, sizeof *text->places);
    *text = (graph_plan_text){0};
}

static remat_status bad(const json_reader *reader, const char *field, const char *message)
{
    remat_place place = json_field_place(reader, REMAT_NOWHERE, field);
    return remat_fail(json_reader_context(reader), REMAT_BAD_INPUT, &place, "%s", message);
}

static remat_status read_schedule(graph_plan_text *text, json_reader *reader)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "schedule", JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (!token.in_range || token.integer >= GRAPH_NONE)
            return bad(reader, "schedule", "the number of an action is expected: its position in the graph, from 0");
        REMAT_TRY(graph_sequence_add(text->context, &text->schedule, (uint32_t)token.integer));
    }
}

/* ---- places ---- */

/* The next number of a place; -1, for the tensor of a workspace, is GRAPH_NONE. */
static remat_status read_place_number(json_reader *reader, bool is_tensor, uint64_t *number)
{
    json_token token;
    REMAT_TRY(json_next(reader, &token));
    *number = token.integer;
    if (is_tensor && token.kind == JSON_INTEGER && strcmp(token.text, "-1") == 0)
        *number = GRAPH_NONE;
    else if (!token.in_range || (is_tensor && token.integer >= GRAPH_NONE))
        return bad(reader, "places", "four whole numbers are expected: [tensor, born, ends, offset]");
    return REMAT_OK;
}

static remat_status read_place(json_reader *reader, instance_place *place)
{
    uint64_t tensor = 0;
    REMAT_TRY(read_place_number(reader, true, &tensor));
    REMAT_TRY(read_place_number(reader, false, &place->born));
    REMAT_TRY(read_place_number(reader, false, &place->ends));
    REMAT_TRY(read_place_number(reader, false, &place->offset));
    place->tensor = (uint32_t)tensor;
    json_token end;
    REMAT_TRY(json_next(reader, &end));
    return end.kind == JSON_ARRAY_END
               ? REMAT_OK
               : bad(reader, "places", "four whole numbers are expected: [tensor, born, ends, offset]");
}

static remat_status read_places(graph_plan_text *text, json_reader *reader)
{
    text->has_places = true;
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, "places", JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_ARRAY)
            return bad(reader, "places", "a place must be a list: [tensor, born, ends, offset]");
        REMAT_TRY(remat_grow(text->context, (void **)&text->places, &text->place_capacity, text->place_count + 1,
                             sizeof *text->places));
        REMAT_TRY(read_place(reader, &text->places[text->place_count++]));
    }
}

/* ---- the whole ---- */

static remat_status read_other(graph_plan_text *text, json_reader *reader, const char *key)
{
    static const char *const keys[] = {"format",   "version", "feasible", "schedule", "places",
                                       "strategy", "method",  "remark",   "name",     "cost_unit"};
    const char *words;
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i], key) != 0)
            continue;
        REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, keys[i], SEEN_FORMAT + i, &text->seen));
        switch (SEEN_FORMAT + i) {
        case SEEN_FORMAT: return json_read_format(reader, "remat-graph-plan");
        case SEEN_VERSION: return json_read_version(reader, 1);
        case SEEN_FEASIBLE: return json_read_bool(reader, REMAT_NOWHERE, "feasible", &text->feasible);
        case SEEN_SCHEDULE: return read_schedule(text, reader);
        case SEEN_PLACES: return read_places(text, reader);
        default: return json_read_text(reader, REMAT_NOWHERE, keys[i], &words);
        }
    }
    return json_field_unknown(reader, REMAT_NOWHERE, key);
}

static remat_status read_field(graph_plan_text *text, json_reader *reader, const char *key)
{
    for (unsigned i = 0; i < PLAN_NUMBERS; i++)
        if (strcmp(graph_plan_number_names[i], key) == 0) {
            REMAT_TRY(json_field_once(reader, REMAT_NOWHERE, graph_plan_number_names[i], i, &text->seen));
            return json_read_count(reader, REMAT_NOWHERE, graph_plan_number_names[i], &text->numbers[i]);
        }
    return read_other(text, reader, key);
}

static remat_status read_plan(graph_plan_text *text, json_reader *reader)
{
    REMAT_TRY(json_read_open(reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        REMAT_TRY(read_field(text, reader, key.text));
    }
    static const char needs[] = "missing; a plan of a graph needs format, version and schedule";
    if (!graph_plan_states(text, SEEN_FORMAT))
        return bad(reader, "format", needs);
    if (!graph_plan_states(text, SEEN_VERSION))
        return bad(reader, "version", needs);
    if (!graph_plan_states(text, SEEN_SCHEDULE))
        return bad(reader, "schedule",
                   text->feasible ? needs : "missing: the plan is infeasible, there is nothing to replay");
    json_token end;
    return json_next(reader, &end);
}

remat_status graph_plan_read_text(remat_context *context, FILE *stream, const char *name, graph_plan_text *text)
{
    json_reader *reader;
    *text = (graph_plan_text){.context = context, .feasible = true};
    REMAT_TRY(json_reader_create(context, stream, name, &reader));
    remat_status status = read_plan(text, reader);
    json_reader_destroy(reader);
    if (status != REMAT_OK)
        graph_plan_text_release(text);
    return status;
}
