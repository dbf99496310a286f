/* Reads the file of a graph as a stream: nothing is held besides the graph itself, and one line number an action. */
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/input.h"
#include "base/json_fields.h"
#include "graph/graph_object.h"

/* A growing list of tensor numbers. */
typedef struct number_list {
    uint32_t *numbers;
    size_t count, capacity;
} number_list;

typedef struct graph_text {
    remat_graph *graph;
    remat_context *context;
    json_reader *reader;
    uint64_t *lines; /* by action: the keys of the file may come in any order, so actions are checked at the end */
    size_t line_capacity;
    number_list reads, updates, writes;
    uint64_t result_line;
} graph_text;

static remat_status bad(const graph_text *text, const char *field, const char *message)
{
    remat_place place = json_field_place(text->reader, REMAT_NOWHERE, field);
    return remat_fail(text->context, REMAT_BAD_INPUT, &place, "%s", message);
}

/* The next key of an object: its position among `keys`, noted as seen; `count` for another key. *more is false at the end. */
static remat_status next_key(const graph_text *text, const char *const *keys, unsigned count, uint64_t *seen,
                             json_token *key, unsigned *which, bool *more)
{
    *which = 0;
    REMAT_TRY(json_next(text->reader, key));
    *more = key->kind != JSON_OBJECT_END;
    if (!*more)
        return REMAT_OK;
    while (*which < count && strcmp(keys[*which], key->text) != 0)
        ++*which;
    return *which < count ? json_field_once(text->reader, REMAT_NOWHERE, keys[*which], *which, seen) : REMAT_OK;
}

static remat_status read_text(const graph_text *text, const char *field, const char **copy)
{
    const char *read = "";
    REMAT_TRY(json_read_text(text->reader, REMAT_NOWHERE, field, &read));
    return graph_copy_text(text->graph, read, copy);
}

static remat_status read_number(const graph_text *text, const char *field, const json_token *token, uint32_t *number)
{
    if (!token->in_range || token->integer >= GRAPH_NONE - 1)
        return bad(text, field, "the number of a tensor is expected: its position in the list of tensors, from 0");
    *number = (uint32_t)token->integer;
    return REMAT_OK;
}

static remat_status read_numbers(const graph_text *text, const char *field, number_list *list)
{
    list->count = 0;
    REMAT_TRY(json_read_open(text->reader, REMAT_NOWHERE, field, JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(text->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        REMAT_TRY(remat_grow(text->context, (void **)&list->numbers, &list->capacity, list->count + 1,
                             sizeof *list->numbers));
        REMAT_TRY(read_number(text, field, &token, &list->numbers[list->count++]));
    }
}

/* ---- tensors ---- */

static remat_status read_tensor(graph_text *text)
{
    static const char *const keys[] = {"bytes", "name", "given"};
    graph_tensor tensor = {0};
    uint64_t seen = 0;
    for (bool more = true; more;) {
        json_token key;
        unsigned which;
        REMAT_TRY(next_key(text, keys, 3, &seen, &key, &which, &more));
        if (!more)
            break;
        switch (which) {
        case 0: REMAT_TRY(json_read_count(text->reader, REMAT_NOWHERE, "bytes", &tensor.bytes)); break;
        case 1: REMAT_TRY(read_text(text, "name", &tensor.name)); break;
        case 2: REMAT_TRY(json_read_bool(text->reader, REMAT_NOWHERE, "given", &tensor.given)); break;
        default: REMAT_TRY(json_field_unknown(text->reader, REMAT_NOWHERE, key.text));
        }
    }
    return seen & 1 ? graph_add_tensor(text->graph, &tensor) : bad(text, "bytes", "missing; every tensor needs it");
}

/* ---- actions ---- */

static remat_status read_in_place(graph_text *text, graph_action *action)
{
    json_token from, to, end;
    REMAT_TRY(json_read_open(text->reader, REMAT_NOWHERE, "in_place", JSON_ARRAY));
    REMAT_TRY(json_next(text->reader, &from));
    REMAT_TRY(read_number(text, "in_place", &from, &action->in_place_from));
    REMAT_TRY(json_next(text->reader, &to));
    REMAT_TRY(read_number(text, "in_place", &to, &action->in_place_to));
    REMAT_TRY(json_next(text->reader, &end));
    return end.kind == JSON_ARRAY_END ? REMAT_OK : bad(text, "in_place", "two numbers are expected: [read, write]");
}

enum { COST, NAME, ONCE, READS, UPDATES, WRITES, WORKSPACE, IN_PLACE, ACTION_KEYS };

static remat_status read_action_field(graph_text *text, unsigned which, const char *key, graph_action *action)
{
    json_reader *reader = text->reader;
    switch (which) {
    case COST: return json_read_count(reader, REMAT_NOWHERE, "cost", &action->cost);
    case NAME: return read_text(text, "name", &action->name);
    case ONCE: return json_read_bool(reader, REMAT_NOWHERE, "once", &action->once);
    case READS: return read_numbers(text, "reads", &text->reads);
    case UPDATES: return read_numbers(text, "updates", &text->updates);
    case WRITES: return read_numbers(text, "writes", &text->writes);
    case WORKSPACE: return json_read_count(reader, REMAT_NOWHERE, "workspace_bytes", &action->workspace_bytes);
    case IN_PLACE: return read_in_place(text, action);
    default: return json_field_unknown(reader, REMAT_NOWHERE, key);
    }
}

static remat_status read_action(graph_text *text)
{
    static const char *const keys[ACTION_KEYS] = {
        "cost", "name", "once", "reads", "updates", "writes", "workspace_bytes", "in_place"};
    graph_action action = {.in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
    uint64_t seen = 0;
    const size_t number = text->graph->action_count;
    REMAT_TRY(remat_grow(text->context, (void **)&text->lines, &text->line_capacity, number + 1, sizeof *text->lines));
    text->lines[number] = json_place(text->reader).line;
    text->reads.count = text->updates.count = text->writes.count = 0;
    for (bool more = true; more;) {
        json_token key;
        unsigned which;
        REMAT_TRY(next_key(text, keys, ACTION_KEYS, &seen, &key, &which, &more));
        if (more)
            REMAT_TRY(read_action_field(text, which, key.text, &action));
    }
    if (!(seen >> COST & 1))
        return bad(text, "cost", "missing; every action needs it");
    return graph_append_action(text->graph, &action,
                               &(graph_links){.reads = text->reads.numbers,
                                              .updates = text->updates.numbers,
                                              .writes = text->writes.numbers,
                                              .read_count = text->reads.count,
                                              .update_count = text->updates.count,
                                              .write_count = text->writes.count});
}

/* ---- the whole ---- */

static remat_status read_list(graph_text *text, const char *field, const char *wrong,
                              remat_status (*read_one)(graph_text *))
{
    size_t count = 0;
    REMAT_TRY(json_read_open(text->reader, REMAT_NOWHERE, field, JSON_ARRAY));
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(text->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        const remat_status status = token.kind == JSON_OBJECT ? read_one(text) : bad(text, field, wrong);
        if (status == REMAT_BAD_INPUT) /* most programs write everything into one line */
            return remat_fail_add(text->context, " (number %zu in %s)", count, field);
        REMAT_TRY(status);
        count++;
    }
}

static remat_status read_results(graph_text *text)
{
    remat_graph *graph = text->graph;
    number_list list = {0};
    remat_status status = read_numbers(text, "results", &list);
    text->result_line = json_place(text->reader).line;
    graph->results = list.numbers;
    graph->result_count = list.count;
    graph->result_capacity = list.capacity;
    return status;
}

enum { FORMAT, VERSION, GRAPH_NAME, COST_UNIT, TENSORS, ACTIONS, RESULTS, GRAPH_KEYS };
static const char *const graph_keys[GRAPH_KEYS] = {"format",  "version", "name",   "cost_unit",
                                                   "tensors", "actions", "results"};

static remat_status read_field(graph_text *text, unsigned which, const char *key)
{
    switch (which) {
    case FORMAT: return json_read_format(text->reader, "remat-graph");
    case VERSION: return json_read_version(text->reader, 1);
    case GRAPH_NAME: return read_text(text, "name", &text->graph->name);
    case COST_UNIT: return read_text(text, "cost_unit", &text->graph->cost_unit);
    case TENSORS: return read_list(text, "tensors", "a tensor must be an object", read_tensor);
    case ACTIONS: return read_list(text, "actions", "an action must be an object", read_action);
    case RESULTS: return read_results(text);
    default: return json_field_unknown(text->reader, REMAT_NOWHERE, key);
    }
}

/* What only the whole file shows. */
static remat_status check_graph(const graph_text *text)
{
    remat_graph *graph = text->graph;
    remat_place place = json_place(text->reader);
    for (uint32_t i = 0; i < graph->action_count; i++) {
        char name[GRAPH_NAME_TEXT], wrong_text[GRAPH_WRONG_TEXT];
        const char *wrong = graph_check_action(graph, i, wrong_text);
        place.line = text->lines[i];
        if (wrong)
            return remat_fail(text->context, REMAT_BAD_INPUT, &place, "action %.80s: %s",
                              graph_action_name(graph, i, name), wrong);
    }
    place.line = text->result_line;
    for (size_t i = 0; i < graph->result_count; i++)
        if (graph->results[i] >= graph->tensor_count)
            return remat_fail(text->context, REMAT_BAD_INPUT, &place, "results: there is no tensor %u; there are %zu",
                              graph->results[i], graph->tensor_count);
    return REMAT_OK;
}

/* The order of the file is the schedule that keeps everything: each tensor is there before it is needed. */
static remat_status check_order(const graph_text *text, bool *is_there)
{
    const remat_graph *graph = text->graph;
    remat_place place = json_place(text->reader);
    char name[GRAPH_NAME_TEXT], tensor[GRAPH_NAME_TEXT];
    for (size_t t = 0; t < graph->tensor_count; t++)
        is_there[t] = graph->tensors[t].given;
    for (uint32_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
        place.line = text->lines[i];
        for (size_t n = 0; n < graph_need_count(action); n++)
            if (!is_there[needs[n]])
                return remat_fail(text->context, REMAT_BAD_INPUT, &place,
                                  "action %.80s needs tensor %.80s, which no action before it writes",
                                  graph_action_name(graph, i, name), graph_tensor_name(graph, needs[n], tensor));
        for (uint32_t w = 0; w < action->write_count; w++)
            is_there[writes[w]] = true;
    }
    place.line = text->result_line;
    for (size_t i = 0; i < graph->result_count; i++) {
        const uint32_t result = graph->results[i];
        if (!is_there[result] || graph->tensors[result].given)
            return remat_fail(text->context, REMAT_BAD_INPUT, &place, "results: tensor %.80s %s",
                              graph_tensor_name(graph, result, tensor),
                              is_there[result] ? "is given; a result is written by an action"
                                               : "is written by no action");
    }
    return REMAT_OK;
}

/* What no walk could add up. At a position a tensor has at most two instances. */
static remat_status check_sums(const graph_text *text)
{
    const remat_graph *graph = text->graph;
    remat_place place = json_place(text->reader);
    uint64_t bytes = GRAPH_ALIGNMENT, cost = 0;
    char name[GRAPH_NAME_TEXT];
    for (size_t t = 0; t < graph->tensor_count; t++) {
        const uint64_t placed = graph_placed_bytes(graph->tensors[t].bytes);
        if (!remat_add(&bytes, placed) || !remat_add(&bytes, placed))
            return remat_fail(text->context, REMAT_BAD_INPUT, &place,
                              "the bytes of all tensors together are too many: twice their sum must be below 2^63");
    }
    for (uint32_t i = 0; i < graph->action_count; i++) {
        uint64_t with_workspace = bytes;
        place.line = text->lines[i];
        if (!remat_add(&with_workspace, graph->actions[i].workspace_bytes))
            return remat_fail(text->context, REMAT_BAD_INPUT, &place,
                              "action %.80s: workspace_bytes are too many: with twice the bytes of all tensors they "
                              "must be below 2^63",
                              graph_action_name(graph, i, name));
        if (!remat_add(&cost, graph->actions[i].cost))
            return remat_fail(text->context, REMAT_BAD_INPUT, &place,
                              "action %.80s: cost: the sum over all actions up to this one must be below 2^63",
                              graph_action_name(graph, i, name));
    }
    return REMAT_OK;
}

static remat_status check_whole(const graph_text *text)
{
    const size_t count = text->graph->tensor_count;
    REMAT_TRY(check_graph(text));
    REMAT_TRY(check_sums(text));
    bool *is_there = remat_alloc(text->context, count, sizeof *is_there);
    if (!is_there)
        return REMAT_NO_MEMORY;
    const remat_status status = check_order(text, is_there);
    remat_release(text->context, is_there, count, sizeof *is_there);
    return status;
}

static remat_status read_graph(graph_text *text)
{
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(text->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (bool more = true; more;) {
        json_token key;
        unsigned which;
        REMAT_TRY(next_key(text, graph_keys, GRAPH_KEYS, &seen, &key, &which, &more));
        if (more)
            REMAT_TRY(read_field(text, which, key.text));
    }
    static const unsigned required[] = {FORMAT, VERSION, TENSORS, ACTIONS};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!(seen >> required[i] & 1))
            return bad(text, graph_keys[required[i]], "missing; a graph needs format, version, tensors and actions");
    REMAT_TRY(check_whole(text));
    json_token end;
    return json_next(text->reader, &end);
}

static void release(graph_text *text)
{
    number_list *const lists[] = {&text->reads, &text->updates, &text->writes};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        remat_release(text->context, lists[i]->numbers, lists[i]->capacity, sizeof *lists[i]->numbers);
    remat_release(text->context, text->lines, text->line_capacity, sizeof *text->lines);
    json_reader_destroy(text->reader);
}

remat_status remat_graph_read(remat_context *context, FILE *stream, const char *name, remat_graph **graph)
{
    REMAT_TRY(graph_create(context, graph));
    graph_text text = {.graph = *graph, .context = context};
    remat_status status = json_reader_create(context, stream, name, &text.reader);
    if (status == REMAT_OK) {
        status = read_graph(&text);
        release(&text);
    }
    if (status != REMAT_OK) {
        graph_destroy(*graph);
        *graph = NULL;
    }
    return status;
}

remat_status remat_graph_load(remat_context *context, const char *path, remat_graph **graph)
{
    *graph = NULL;
    FILE *stream;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = remat_graph_read(context, stream, path, graph);
    fclose(stream);
    return status;
}
