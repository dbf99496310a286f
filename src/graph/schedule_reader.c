#include "graph/schedule_reader.h"

#include <remat/units.h>

#include "base/alloc.h"
#include "base/json_fields.h"

#include <string.h>

const char *const schedule_stated_names[STATED_COUNT] = {
    [STATED_BUDGET] = "budget_bytes",
    [STATED_PEAK] = "peak_bytes",
    [STATED_KEPT] = "kept_bytes",
    [STATED_ESTIMATED] = "estimated_bytes",
    [STATED_TOTAL_COST] = "total_cost",
    [STATED_BASE_COST] = "base_cost",
    [STATED_BASE_PEAK] = "base_peak_bytes",
    [STATED_LOWER_BOUND] = "lower_bound_cost",
    [STATED_FLOPS] = "recompute_flops",
    [STATED_MIN_BUDGET] = "min_budget_bytes",
    [STATED_STEPS] = "steps",
    [STATED_KEPT_BUDGET] = "kept_budget_bytes",
    [STATED_METHOD_BOUND] = "method_bound_cost",
    [STATED_ARENA] = "arena_bytes",
    [STATED_TOTAL] = "total_bytes",
    [STATED_TOTAL_BUDGET] = "total_budget_bytes",
    [STATED_MIN_TOTAL_BUDGET] = "min_total_budget_bytes",
    [STATED_KEEP_ALL_TOTAL] = "keep_all_total_bytes",
    [STATED_MODEL_LAYERS] = "model_layers",
    [STATED_RECOMPUTED_MODEL_LAYERS] = "recomputed_model_layers",
};

/* Bits of schedule_stated.seen behind the numbers. */
enum {
    SEEN_FORMAT = STATED_COUNT,
    SEEN_VERSION,
    SEEN_STRATEGY,
    SEEN_FEASIBLE,
    SEEN_LAYERS,
    SEEN_SCHEDULE,
    SEEN_REMARK,
    SEEN_METHOD
};

typedef struct plan_text {
    remat_context *context;
    json_reader *reader;
    const char *name;
    const remat_profile *chain;
    schedule_stated *stated;
    remat_step_fn visit;
    void *user;
    uint64_t step; /* being read */
} plan_text;

static remat_status bad(const plan_text *plan, const char *field, const char *format, const char *text)
{
    remat_place place = json_field_place(plan->reader, REMAT_NOWHERE, field);
    return remat_fail(plan->context, REMAT_BAD_INPUT, &place, format, text);
}

/* The number of the mode `name` of a layer; false where it has none. */
static bool find_mode(const remat_layer *layer, const char *name, uint16_t *mode)
{
    for (uint32_t i = 0; i < layer->mode_count; i++)
        if (strcmp(layer->modes[i].name, name) == 0) {
            *mode = (uint16_t)i;
            return true;
        }
    return false;
}

/* ---- the schedule ---- */

typedef struct step_text {
    uint64_t seen, layer;
    char op[16], what[4], save[1024];
} step_text;

enum { STEP_OP, STEP_LAYER, STEP_WHAT, STEP_SAVE };

static remat_status step_fail(const plan_text *plan, remat_status status, const char *field, const char *format,
                              const char *text)
{
    remat_place place = json_field_place(plan->reader, REMAT_NOWHERE, field);
    place.step = plan->step;
    return remat_fail(plan->context, status, &place, format, text);
}

static remat_status read_step_text(const plan_text *plan, const char *field, char *to, size_t room)
{
    const char *text = "";
    REMAT_TRY(json_read_text(plan->reader, REMAT_NOWHERE, field, &text));
    if (strlen(text) >= room)
        return step_fail(plan, REMAT_BAD_INPUT, field, "'%.40s...' is too long to be right", text);
    memcpy(to, text, strlen(text) + 1);
    return REMAT_OK;
}

static remat_status read_step_field(const plan_text *plan, const char *key, step_text *step)
{
    static const char *const keys[] = {"op", "layer", "what", "save"};
    unsigned which = 0;
    while (which < 4 && strcmp(keys[which], key) != 0)
        which++;
    if (which == 4)
        return json_field_unknown(plan->reader, REMAT_NOWHERE, key);
    REMAT_TRY(json_field_once(plan->reader, REMAT_NOWHERE, keys[which], which, &step->seen));
    switch (which) {
    case STEP_OP: return read_step_text(plan, "op", step->op, sizeof step->op);
    case STEP_LAYER: return json_read_count(plan->reader, REMAT_NOWHERE, "layer", &step->layer);
    case STEP_WHAT: return read_step_text(plan, "what", step->what, sizeof step->what);
    default: return read_step_text(plan, "save", step->save, sizeof step->save);
    }
}

static remat_status understand_op(const plan_text *plan, const step_text *text, remat_step *step)
{
    static const struct {
        const char *op, *what;
        remat_op meaning;
    } ops[] = {{"forward", NULL, REMAT_FORWARD},
               {"loss", NULL, REMAT_LOSS},
               {"backward", NULL, REMAT_BACKWARD},
               {"drop", "x", REMAT_DROP_X},
               {"drop", "s", REMAT_DROP_STATE}};
    if (!(text->seen >> STEP_OP & 1))
        return step_fail(plan, REMAT_BAD_INPUT, "op", "missing; every step needs it%s", "");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].op, text->op) == 0 && (!ops[i].what || strcmp(ops[i].what, text->what) == 0)) {
            step->op = (uint8_t)ops[i].meaning;
            return REMAT_OK;
        }
    if (strcmp(text->op, "drop") == 0)
        return step_fail(plan, REMAT_BAD_INPUT, "what", "'%s' is not allowed; a drop needs 'x' or 's'", text->what);
    return step_fail(plan, REMAT_BAD_INPUT, "op", "'%s' is not a step; use forward, loss, backward or drop", text->op);
}

static remat_status understand_step(const plan_text *plan, const step_text *text, remat_step *step)
{
    *step = (remat_step){.save = REMAT_NO_SAVE};
    REMAT_TRY(understand_op(plan, text, step));
    if (step->op == REMAT_LOSS)
        return REMAT_OK;
    if (!(text->seen >> STEP_LAYER & 1))
        return step_fail(plan, REMAT_BAD_INPUT, "layer", "missing; the step '%s' needs it", text->op);
    if (text->layer > plan->chain->layer_count)
        return step_fail(plan, REMAT_CHECK_FAILED, "layer", "the step '%s' is past the end of the chain", text->op);
    step->layer = (uint32_t)text->layer;
    if (step->op == REMAT_FORWARD && text->seen >> STEP_SAVE & 1 &&
        (text->layer == plan->chain->layer_count ||
         !find_mode(&plan->chain->layers[text->layer], text->save, &step->save)))
        return step_fail(plan, REMAT_CHECK_FAILED, "save", "the layer has no mode '%.60s' in this profile", text->save);
    return REMAT_OK;
}

static remat_status read_step(plan_text *plan)
{
    step_text text;
    text.seen = 0;
    text.what[0] = '\0';
    remat_place place = json_place(plan->reader);
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(plan->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        REMAT_TRY(read_step_field(plan, key.text, &text));
    }
    remat_step step;
    REMAT_TRY(understand_step(plan, &text, &step));
    if (plan->visit(plan->user, step) != REMAT_OK)
        return remat_fail_in_file(plan->context, plan->name, place.line);
    plan->step++;
    return REMAT_OK;
}

static remat_status read_schedule(plan_text *plan)
{
    REMAT_TRY(json_read_open(plan->reader, REMAT_NOWHERE, "schedule", JSON_ARRAY));
    plan->stated->has_schedule = true;
    for (;;) {
        json_token token;
        REMAT_TRY(json_next(plan->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            return REMAT_OK;
        if (token.kind != JSON_OBJECT)
            return bad(plan, "schedule", "%s is not allowed; a step must be an object", json_kind_name(token.kind));
        REMAT_TRY(read_step(plan));
    }
}

/* ---- the layers ---- */

enum { LAYER_INDEX, LAYER_NAME, LAYER_DECISION, LAYER_FORWARDS };

static remat_status layer_differs(const plan_text *plan, size_t position, const char *field, const char *stated)
{
    const remat_layer *layer = &plan->chain->layers[position];
    remat_place place = json_field_place(plan->reader, position, field);
    return remat_fail(
        plan->context, REMAT_CHECK_FAILED, &place,
        "'%.60s' is stated, but the layer of the profile is '%.60s', index %llu; is it the profile of this plan?",
        stated, layer->name, (unsigned long long)layer->index);
}

static remat_status read_layer_field(plan_text *plan, size_t position, unsigned which)
{
    const remat_layer *layer = &plan->chain->layers[position];
    layer_outcome *outcome = &plan->stated->layers[position];
    const char *text = "";
    uint64_t number = 0;
    char digits[REMAT_COUNT_TEXT];
    switch (which) {
    case LAYER_INDEX:
        REMAT_TRY(json_read_count(plan->reader, position, "index", &number));
        return number == layer->index ? REMAT_OK
                                      : layer_differs(plan, position, "index", remat_count_print(number, digits));
    case LAYER_NAME:
        REMAT_TRY(json_read_text(plan->reader, position, "name", &text));
        return strcmp(text, layer->name) == 0 ? REMAT_OK : layer_differs(plan, position, "name", text);
    case LAYER_DECISION:
        REMAT_TRY(json_read_text(plan->reader, position, "decision", &text));
        if (strcmp(text, "recompute") == 0)
            outcome->decision = REMAT_NO_SAVE;
        else if (!find_mode(layer, text, &outcome->decision))
            return layer_differs(plan, position, "decision", text);
        return REMAT_OK;
    default:
        REMAT_TRY(json_read_count(plan->reader, position, "forwards", &number));
        outcome->forwards = number < FORWARDS_NOT_STATED ? (uint32_t)number : FORWARDS_NOT_STATED - 1;
        return REMAT_OK;
    }
}

static remat_status read_layer(plan_text *plan, size_t position)
{
    static const char *const keys[] = {"index", "name", "decision", "forwards"};
    uint64_t seen = 0;
    plan->stated->layers[position] = (layer_outcome){FORWARDS_NOT_STATED, DECISION_NOT_STATED};
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(plan->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            return REMAT_OK;
        unsigned which = 0;
        while (which < 4 && strcmp(keys[which], key.text) != 0)
            which++;
        if (which == 4) {
            REMAT_TRY(json_field_unknown(plan->reader, position, key.text));
            continue;
        }
        REMAT_TRY(json_field_once(plan->reader, position, keys[which], which, &seen));
        REMAT_TRY(read_layer_field(plan, position, which));
    }
}

static remat_status read_layers(plan_text *plan)
{
    size_t n = plan->chain->layer_count, count = 0;
    plan->stated->layers = remat_alloc(plan->context, n, sizeof *plan->stated->layers);
    if (!plan->stated->layers)
        return REMAT_NO_MEMORY;
    REMAT_TRY(json_read_open(plan->reader, REMAT_NOWHERE, "layers", JSON_ARRAY));
    for (;; count++) {
        json_token token;
        REMAT_TRY(json_next(plan->reader, &token));
        if (token.kind == JSON_ARRAY_END)
            break;
        if (token.kind != JSON_OBJECT)
            return bad(plan, "layers", "%s is not allowed; a layer must be an object", json_kind_name(token.kind));
        REMAT_TRY(count < n ? read_layer(plan, count) : json_skip_rest(plan->reader, &token));
    }
    plan->stated->has_layers = true;
    if (count == n)
        return REMAT_OK;
    remat_place place = json_field_place(plan->reader, REMAT_NOWHERE, "layers");
    return remat_fail(plan->context, REMAT_CHECK_FAILED, &place, "the plan has %zu layers, the profile %zu", count, n);
}

/* ---- the whole ---- */

/* A text that the plan holds in `room` bytes. Ours always fit; others are cut, but never inside a letter. */
static remat_status read_words(plan_text *plan, const char *field, char *to, size_t room)
{
    const char *text = "";
    REMAT_TRY(json_read_text(plan->reader, REMAT_NOWHERE, field, &text));
    size_t length = strlen(text);
    if (length >= room)
        for (length = room - 1; length > 0 && (text[length] & 0xc0) == 0x80;)
            length--;
    memcpy(to, text, length);
    to[length] = '\0';
    return REMAT_OK;
}

static remat_status read_other(plan_text *plan, unsigned which)
{
    schedule_stated *stated = plan->stated;
    switch (which) {
    case SEEN_FORMAT: return json_read_format(plan->reader, "remat-plan");
    case SEEN_VERSION: return json_read_version(plan->reader, 1);
    case SEEN_FEASIBLE: return json_read_bool(plan->reader, REMAT_NOWHERE, "feasible", &stated->feasible);
    case SEEN_LAYERS: return read_layers(plan);
    case SEEN_SCHEDULE: return read_schedule(plan);
    case SEEN_STRATEGY: return read_words(plan, "strategy", stated->strategy, sizeof stated->strategy);
    case SEEN_METHOD: return read_words(plan, "method", stated->method, sizeof stated->method);
    default: return read_words(plan, "remark", stated->remark, sizeof stated->remark);
    }
}

static remat_status read_plan_field(plan_text *plan, const char *key)
{
    static const struct {
        const char *key;
        unsigned which;
    } others[] = {{"format", SEEN_FORMAT},     {"version", SEEN_VERSION}, {"strategy", SEEN_STRATEGY},
                  {"feasible", SEEN_FEASIBLE}, {"layers", SEEN_LAYERS},   {"schedule", SEEN_SCHEDULE},
                  {"remark", SEEN_REMARK},     {"method", SEEN_METHOD}};
    for (unsigned i = 0; i < STATED_COUNT; i++)
        if (strcmp(schedule_stated_names[i], key) == 0) {
            const char *name = schedule_stated_names[i];
            REMAT_TRY(json_field_once(plan->reader, REMAT_NOWHERE, name, i, &plan->stated->seen));
            return json_read_count(plan->reader, REMAT_NOWHERE, name, &plan->stated->numbers[i]);
        }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].key, key) == 0) {
            REMAT_TRY(
                json_field_once(plan->reader, REMAT_NOWHERE, others[i].key, others[i].which, &plan->stated->seen));
            return read_other(plan, others[i].which);
        }
    return json_field_unknown(plan->reader, REMAT_NOWHERE, key);
}

static remat_status read_plan(plan_text *plan)
{
    REMAT_TRY(json_read_open(plan->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    for (;;) {
        json_token key;
        REMAT_TRY(json_next(plan->reader, &key));
        if (key.kind == JSON_OBJECT_END)
            break;
        REMAT_TRY(read_plan_field(plan, key.text));
    }
    if (!schedule_states(plan->stated, SEEN_FORMAT))
        return bad(plan, "format", "missing; a plan needs format, version and schedule%s", "");
    if (!schedule_states(plan->stated, SEEN_VERSION))
        return bad(plan, "version", "missing; a plan needs format, version and schedule%s", "");
    if (!plan->stated->has_schedule)
        return bad(plan, "schedule", "%s",
                   plan->stated->feasible ? "missing; there is nothing to replay"
                                          : "missing: the plan is infeasible, there is nothing to replay");
    json_token end;
    return json_next(plan->reader, &end);
}

remat_status schedule_read_stream(remat_context *context, FILE *stream, const char *name, const remat_profile *chain,
                                  schedule_stated *stated, remat_step_fn visit, void *user)
{
    plan_text plan = {context, NULL, name, chain, stated, visit, user, 0};
    *stated = (schedule_stated){.feasible = true};
    REMAT_TRY(json_reader_create(context, stream, name, &plan.reader));
    remat_status status = read_plan(&plan);
    json_reader_destroy(plan.reader);
    return status;
}

void schedule_stated_clear(remat_context *context, const remat_profile *chain, schedule_stated *stated)
{
    remat_release(context, stated->layers, chain->layer_count, sizeof *stated->layers);
    stated->layers = NULL;
}
