/* Runs chat templates. */
#include "data/tokenizer/jinja.h"

#include "base/alloc.h"

#include <string.h>

enum { DEEPEST = 200, MOST_ARGUMENTS = 16, MOST_RANGE = 100000, TURN_STEPS = 20 };
#define MOST_STEPS  1000000u
#define MOST_OUTPUT ((size_t)256 << 20)

/* Variables; those of the scopes around are seen, and hidden by new ones. */
typedef struct jinja_scope {
    jinja_value variables;
    struct jinja_scope *outer;
} jinja_scope;

typedef enum jinja_flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } jinja_flow;

static remat_status run_body(jinja_run *run, const jinja_node *first, jinja_scope *scope, jinja_flow *flow);
static remat_status evaluate(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value);

static remat_status write_text(jinja_run *run, const char *text, size_t length)
{
    chat_template *template = run->template;
    if (length > MOST_OUTPUT - template->length)
        return jinja_fail(run, "the text is too long", "");
    REMAT_TRY(remat_grow(run->context, (void **)&template->out, &template->capacity, template->length + length + 1, 1));
    memcpy(template->out + template->length, text, length);
    template->length += length;
    template->out[template->length] = '\0';
    return REMAT_OK;
}

/* ---- names ---- */

static void find_name(const jinja_scope *scope, const char *name, jinja_value *value)
{
    static const char *const functions[] = {"namespace", "range", "raise_exception", "dict"};
    for (; scope; scope = scope->outer)
        if (jinja_find_key(&scope->variables, name, value))
            return;
    *value = (jinja_value){.kind = VALUE_UNDEFINED};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(name, functions[i]) == 0)
            *value = (jinja_value){.kind = VALUE_FUNCTION, .text = functions[i]};
}

static remat_status get_attribute(jinja_run *run, const jinja_value *of, const char *name, jinja_value *value)
{
    if (of->kind == VALUE_DICTIONARY && jinja_find_key(of, name, value))
        return REMAT_OK;
    if (of->kind == VALUE_UNDEFINED)
        return jinja_fail(run, "what has the attribute %s is not defined", name);
    /* A method, if it is called; undefined otherwise. */
    jinja_value *self = text_pool_take(run->pool, 1, sizeof *self);
    if (!self)
        return REMAT_NO_MEMORY;
    *self = *of;
    *value = (jinja_value){.kind = VALUE_UNDEFINED, .text = name, .self = self};
    return REMAT_OK;
}

/* ---- lists ---- */

static remat_status get_index(jinja_run *run, const jinja_value *of, const jinja_value *index, jinja_value *value)
{
    *value = (jinja_value){.kind = VALUE_UNDEFINED};
    if (index->kind == VALUE_STRING && of->kind != VALUE_DICTIONARY)
        return get_attribute(run, of, index->text, value);
    if (index->kind == VALUE_STRING) {
        jinja_find_key(of, index->text, value);
        return REMAT_OK;
    }
    if (index->kind != VALUE_INTEGER || (of->kind != VALUE_LIST && of->kind != VALUE_STRING))
        return jinja_fail(run, "this cannot be indexed", "");
    int64_t count = of->kind == VALUE_LIST ? (int64_t)of->list->count : (int64_t)of->length;
    int64_t at = index->integer < 0 ? index->integer + count : index->integer;
    if (at < 0 || at >= count)
        return REMAT_OK;
    if (of->kind == VALUE_STRING)
        return jinja_copy(run, of->text + at, 1, value);
    *value = of->list->items[at];
    return REMAT_OK;
}

static int64_t clamp(int64_t at, int64_t count, int64_t low, int64_t high)
{
    at = at < 0 ? at + count : at;
    return at < low ? low : at > high ? high : at;
}

static remat_status slice(jinja_run *run, const jinja_node *node, jinja_scope *scope, const jinja_value *of,
                          jinja_value *value)
{
    jinja_value parts[3] = {0};
    const jinja_node *nodes[] = {node->b, node->c, node->d};
    for (int i = 0; i < 3; i++)
        if (nodes[i]) {
            REMAT_TRY(evaluate(run, nodes[i], scope, &parts[i]));
            if (parts[i].kind != VALUE_INTEGER && parts[i].kind != VALUE_NONE)
                return jinja_fail(run, "a slice takes whole numbers", "");
        }
    if (of->kind != VALUE_LIST && of->kind != VALUE_STRING)
        return jinja_fail(run, "only lists and texts have slices", "");
    int64_t count = of->kind == VALUE_LIST ? (int64_t)of->list->count : (int64_t)of->length;
    int64_t step = parts[2].kind == VALUE_INTEGER ? parts[2].integer : 1;
    if (step == 0 || step > INT32_MAX || step < -INT32_MAX || (of->kind == VALUE_STRING && step != 1))
        return jinja_fail(run, "this step of a slice is not supported", "");
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
    int64_t begin = parts[0].kind == VALUE_INTEGER ? clamp(parts[0].integer, count, low, high) : step > 0 ? 0 : high;
    int64_t end = parts[1].kind == VALUE_INTEGER ? clamp(parts[1].integer, count, low, high) : step > 0 ? count : -1;
    if (of->kind == VALUE_STRING)
        return jinja_copy(run, of->text + begin, (size_t)(end > begin ? end - begin : 0), value);
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, value));
    for (int64_t at = begin; step > 0 ? at < end : at > end; at += step)
        REMAT_TRY(jinja_list_add(run, value, of->list->items[at]));
    return REMAT_OK;
}

/* ---- operators ---- */

static remat_status add_texts(jinja_run *run, const jinja_value *a, const jinja_value *b, jinja_value *value)
{
    char *joined = text_pool_take(run->pool, a->length + b->length + 1, 1);
    if (!joined)
        return REMAT_NO_MEMORY;
    memcpy(joined, a->text, a->length);
    memcpy(joined + a->length, b->text, b->length);
    *value = jinja_string(joined, a->length + b->length);
    return REMAT_OK;
}

static remat_status calculate(jinja_run *run, const char *sign, int64_t a, int64_t b, jinja_value *value)
{
    int64_t result = 0;
    bool fits = true;
    if ((sign[0] == '/' || sign[0] == '%') && b == 0)
        return jinja_fail(run, "a division by zero", "");
    if (sign[0] == '/' && sign[1] != '/')
        return jinja_fail(run, "/ is not supported; // is", "");
    if (b == -1 && (sign[0] == '/' || sign[0] == '%')) /* the one quotient that does not fit */
        fits = sign[0] == '%' || !__builtin_sub_overflow((int64_t)0, a, &result);
    else if (sign[0] == '/')
        result = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    else if (sign[0] == '%')
        result = a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
    else if (sign[0] == '*')
        fits = !__builtin_mul_overflow(a, b, &result);
    else
        fits = sign[0] == '+' ? !__builtin_add_overflow(a, b, &result) : !__builtin_sub_overflow(a, b, &result);
    *value = jinja_integer(result);
    return fits ? REMAT_OK : jinja_fail(run, "a number is too large", "");
}

static remat_status compare(jinja_run *run, const char *sign, const jinja_value *a, const jinja_value *b,
                            jinja_value *value)
{
    bool texts = a->kind == VALUE_STRING && b->kind == VALUE_STRING;
    bool numbers = a->kind == VALUE_INTEGER && b->kind == VALUE_INTEGER;
    if (!texts && !numbers)
        return jinja_fail(run, "%s takes two numbers or two texts", sign);
    int64_t order = texts ? strcmp(a->text, b->text) : (a->integer > b->integer) - (a->integer < b->integer);
    bool is_so = sign[0] == '<' ? order < 0 : order > 0;
    *value = jinja_boolean(is_so || (sign[1] == '=' && order == 0));
    return REMAT_OK;
}

static remat_status evaluate_binary(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value)
{
    jinja_value a, b;
    const char *sign = node->text;
    REMAT_TRY(evaluate(run, node->a, scope, &a));
    REMAT_TRY(evaluate(run, node->b, scope, &b));
    if (strcmp(sign, "==") == 0 || strcmp(sign, "!=") == 0) {
        *value = jinja_boolean(jinja_equal(&a, &b) == (sign[0] == '='));
        return REMAT_OK;
    }
    if (strcmp(sign, "in") == 0 || strcmp(sign, "not in") == 0) {
        *value = jinja_boolean(jinja_contains(&b, &a) == (sign[0] == 'i'));
        return REMAT_OK;
    }
    if (sign[0] == '<' || sign[0] == '>')
        return compare(run, sign, &a, &b, value);
    if (sign[0] == '~') {
        REMAT_TRY(jinja_text(run, &a, &a));
        REMAT_TRY(jinja_text(run, &b, &b));
        return add_texts(run, &a, &b, value);
    }
    if (a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER)
        return calculate(run, sign, a.integer, b.integer, value);
    if (sign[0] == '+' && a.kind == VALUE_STRING && b.kind == VALUE_STRING)
        return add_texts(run, &a, &b, value);
    if (sign[0] == '+' && a.kind == VALUE_LIST && b.kind == VALUE_LIST) {
        REMAT_TRY(jinja_list_make(run, VALUE_LIST, value));
        for (size_t i = 0; i < a.list->count + b.list->count; i++)
            REMAT_TRY(
                jinja_list_add(run, value, i < a.list->count ? a.list->items[i] : b.list->items[i - a.list->count]));
        return REMAT_OK;
    }
    return jinja_fail(run, "%s takes two numbers, two texts or two lists", sign);
}

/* ---- calls ---- */

/* Arguments by place, and by name in a dictionary. */
typedef struct jinja_arguments {
    jinja_value values[MOST_ARGUMENTS], names;
    size_t count;
} jinja_arguments;

static remat_status take_arguments(jinja_run *run, const jinja_node *first, jinja_scope *scope, jinja_arguments *to)
{
    to->count = 0;
    REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &to->names));
    for (const jinja_node *at = first; at; at = at->next) {
        jinja_value value;
        REMAT_TRY(evaluate(run, at->a, scope, &value));
        if (at->text) {
            REMAT_TRY(jinja_set_key(run, &to->names, jinja_string(at->text, strlen(at->text)), value));
            continue;
        }
        if (to->count == MOST_ARGUMENTS)
            return jinja_fail(run, "a call has too many arguments", "");
        to->values[to->count++] = value;
    }
    return REMAT_OK;
}

/* A macro's text becomes a value: what was written meanwhile is taken back. */
static remat_status capture(jinja_run *run, const jinja_node *body, jinja_scope *scope, jinja_value *value)
{
    chat_template *template = run->template;
    size_t before = template->length;
    jinja_flow flow = FLOW_ON;
    REMAT_TRY(run_body(run, body, scope, &flow));
    remat_status status =
        jinja_copy(run, template->out ? template->out + before : "", template->length - before, value);
    template->length = before;
    if (template->out)
        template->out[before] = '\0';
    return status;
}

static remat_status call_macro(jinja_run *run, const jinja_node *macro, const jinja_arguments *given,
                               jinja_scope *scope, jinja_value *value)
{
    jinja_scope inner = {.outer = scope};
    while (inner.outer->outer)
        inner.outer = inner.outer->outer; /* a macro sees the variables of the template */
    REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &inner.variables));
    size_t place = 0;
    for (const jinja_node *at = macro->a; at; at = at->next, place++) {
        const char *name = at->text ? at->text : at->a->kind == JINJA_NAME ? at->a->text : "";
        jinja_value item = {.kind = VALUE_UNDEFINED};
        if (place < given->count)
            item = given->values[place];
        else if (!jinja_find_key(&given->names, name, &item) && at->text)
            REMAT_TRY(evaluate(run, at->a, &inner, &item));
        REMAT_TRY(jinja_set_key(run, &inner.variables, jinja_string(name, strlen(name)), item));
    }
    return capture(run, macro->b, &inner, value);
}

static remat_status make_range(jinja_run *run, const jinja_arguments *given, jinja_value *value)
{
    int64_t numbers[3] = {0, 0, 1};
    for (size_t i = 0; i < given->count && i < 3; i++) {
        if (given->values[i].kind != VALUE_INTEGER)
            return jinja_fail(run, "range takes whole numbers", "");
        numbers[given->count == 1 ? 1 : i] = given->values[i].integer;
    }
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, value));
    int64_t step = numbers[2];
    if (given->count == 0 || step == 0 || step > INT32_MAX || step < -INT32_MAX)
        return jinja_fail(run, "range takes whole numbers", "");
    int64_t at = numbers[0];
    while (step > 0 ? at < numbers[1] : at > numbers[1]) {
        if (value->list->count == MOST_RANGE)
            return jinja_fail(run, "a range is too long", "");
        REMAT_TRY(jinja_list_add(run, value, jinja_integer(at)));
        if (__builtin_add_overflow(at, step, &at))
            break; /* it would have passed any end */
    }
    return REMAT_OK;
}

static remat_status call(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value)
{
    jinja_value callee;
    jinja_arguments given;
    REMAT_TRY(evaluate(run, node->a, scope, &callee));
    REMAT_TRY(take_arguments(run, node->b, scope, &given));
    run->line = node->line;
    if (callee.kind == VALUE_UNDEFINED && callee.self)
        return jinja_method(run, callee.self, callee.text, given.values, given.count, value);
    if (callee.kind == VALUE_MACRO)
        return call_macro(run, callee.macro, &given, scope, value);
    if (callee.kind != VALUE_FUNCTION)
        return jinja_fail(run, "the function %s is not known", node->a->text ? node->a->text : "");
    if (strcmp(callee.text, "range") == 0)
        return make_range(run, &given, value);
    if (strcmp(callee.text, "raise_exception") == 0)
        return jinja_fail(run, "the template says %s",
                          given.count && given.values[0].kind == VALUE_STRING ? given.values[0].text : "");
    *value = given.names; /* namespace and dict */
    return REMAT_OK;
}

/* ---- expressions ---- */

static remat_status evaluate_list(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value)
{
    bool is_list = node->kind == JINJA_LIST;
    REMAT_TRY(jinja_list_make(run, is_list ? VALUE_LIST : VALUE_DICTIONARY, value));
    for (const jinja_node *at = node->a; at; at = at->next) {
        jinja_value item, key;
        REMAT_TRY(evaluate(run, at->a, scope, is_list ? &item : &key));
        if (!is_list)
            REMAT_TRY(evaluate(run, at->b, scope, &item));
        REMAT_TRY(is_list ? jinja_list_add(run, value, item) : jinja_set_key(run, value, key, item));
    }
    return REMAT_OK;
}

static remat_status evaluate_node(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value)
{
    jinja_value of = {.kind = VALUE_UNDEFINED}, other;
    jinja_arguments given;
    bool is_so;
    switch (node->kind) {
    case JINJA_STRING: *value = jinja_string(node->text, node->length); return REMAT_OK;
    case JINJA_INTEGER: *value = jinja_integer(node->integer); return REMAT_OK;
    case JINJA_CONSTANT:
        *value = node->integer ? jinja_boolean(node->integer == 2) : (jinja_value){.kind = VALUE_NONE};
        return REMAT_OK;
    case JINJA_NAME: find_name(scope, node->text, value); return REMAT_OK;
    case JINJA_LIST:
    case JINJA_DICTIONARY: return evaluate_list(run, node, scope, value);
    case JINJA_BINARY: return evaluate_binary(run, node, scope, value);
    case JINJA_CALL: return call(run, node, scope, value);
    default: break;
    }
    REMAT_TRY(evaluate(run, node->a, scope, &of));
    run->line = node->line;
    switch (node->kind) {
    case JINJA_ATTRIBUTE: return get_attribute(run, &of, node->text, value);
    case JINJA_INDEX: REMAT_TRY(evaluate(run, node->b, scope, &other)); return get_index(run, &of, &other, value);
    case JINJA_SLICE: return slice(run, node, scope, &of, value);
    case JINJA_FILTER:
        REMAT_TRY(take_arguments(run, node->b, scope, &given));
        if (given.names.list->count && given.count == 0) {
            given.values[0] = given.names.list->items[0];
            given.count = 1;
        }
        return jinja_filter(run, node->text, &of, given.values, given.count, value);
    case JINJA_TEST:
        REMAT_TRY(take_arguments(run, node->b, scope, &given));
        REMAT_TRY(jinja_test(run, node->text, &of, given.values, given.count, &is_so));
        *value = jinja_boolean(is_so);
        return REMAT_OK;
    case JINJA_NOT: *value = jinja_boolean(!jinja_is_true(&of)); return REMAT_OK;
    case JINJA_NEGATIVE:
        return of.kind == VALUE_INTEGER ? calculate(run, "-", 0, of.integer, value)
                                        : jinja_fail(run, "only a number has a minus", "");
    case JINJA_AND:
    case JINJA_OR:
        *value = of;
        return jinja_is_true(&of) == (node->kind == JINJA_AND) ? evaluate(run, node->b, scope, value) : REMAT_OK;
    case JINJA_CHOICE:
        *value = (jinja_value){.kind = VALUE_UNDEFINED};
        if (jinja_is_true(&of))
            return evaluate(run, node->b, scope, value);
        return node->c ? evaluate(run, node->c, scope, value) : REMAT_OK;
    default: return REMAT_INTERNAL;
    }
}

static remat_status evaluate(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *value)
{
    if (run->depth == DEEPEST || ++run->steps > MOST_STEPS)
        return jinja_fail(run, "the template takes too many steps", "");
    run->depth++;
    remat_status status = evaluate_node(run, node, scope, value);
    run->depth--;
    return status;
}

/* ---- statements ---- */

static remat_status set_variable(jinja_run *run, jinja_scope *scope, const char *name, jinja_value value)
{
    return jinja_set_key(run, &scope->variables, jinja_string(name, strlen(name)), value);
}

static remat_status run_set(jinja_run *run, const jinja_node *node, jinja_scope *scope)
{
    jinja_value value, of;
    REMAT_TRY(node->a ? evaluate(run, node->a, scope, &value) : capture(run, node->b, scope, &value));
    if (node->d->kind == JINJA_NAME)
        return set_variable(run, scope, node->d->text, value);
    REMAT_TRY(evaluate(run, node->d->a, scope, &of));
    if (of.kind != VALUE_DICTIONARY)
        return jinja_fail(run, "only a namespace has attributes that are set, such as %s", node->d->text);
    return jinja_set_key(run, &of, jinja_string(node->d->text, strlen(node->d->text)), value);
}

/* The variables of one turn of a loop. */
static remat_status begin_turn(jinja_run *run, const jinja_node *node, const jinja_value *list, size_t at,
                               jinja_scope *inner)
{
    jinja_value loop, item = list->list->items[at];
    size_t count = list->list->count;
    REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &inner->variables));
    REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &loop));
    const struct {
        const char *name;
        jinja_value value;
    } fields[] = {{"index", jinja_integer((int64_t)at + 1)},
                  {"index0", jinja_integer((int64_t)at)},
                  {"first", jinja_boolean(at == 0)},
                  {"last", jinja_boolean(at + 1 == count)},
                  {"length", jinja_integer((int64_t)count)},
                  {"revindex", jinja_integer((int64_t)(count - at))},
                  {"revindex0", jinja_integer((int64_t)(count - at - 1))},
                  {"previtem", at ? list->list->items[at - 1] : (jinja_value){.kind = VALUE_UNDEFINED}},
                  {"nextitem", at + 1 < count ? list->list->items[at + 1] : (jinja_value){.kind = VALUE_UNDEFINED}}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        REMAT_TRY(jinja_set_key(run, &loop, jinja_string(fields[i].name, strlen(fields[i].name)), fields[i].value));
    REMAT_TRY(set_variable(run, inner, "loop", loop));
    if (!node->second)
        return set_variable(run, inner, node->text, item);
    if (item.kind != VALUE_LIST || item.list->count != 2)
        return jinja_fail(run, "an item of the loop is not two values", "");
    REMAT_TRY(set_variable(run, inner, node->text, item.list->items[0]));
    return set_variable(run, inner, node->second, item.list->items[1]);
}

/* The items that a loop runs over: those of which its condition is true. */
static remat_status take_items(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_value *items)
{
    jinja_value of, all;
    REMAT_TRY(evaluate(run, node->a, scope, &of));
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, &all));
    if (of.kind == VALUE_LIST)
        all = of;
    else if (of.kind == VALUE_DICTIONARY)
        REMAT_TRY(jinja_filter(run, "list", &of, NULL, 0, &all));
    else if (of.kind != VALUE_UNDEFINED)
        return jinja_fail(run, "a loop runs over lists only", "");
    *items = all;
    if (!node->d)
        return REMAT_OK;
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, items));
    for (size_t i = 0; i < all.list->count; i++) {
        jinja_scope inner = {.outer = scope};
        jinja_value is_wanted;
        REMAT_TRY(begin_turn(run, node, &all, i, &inner));
        REMAT_TRY(evaluate(run, node->d, &inner, &is_wanted));
        if (jinja_is_true(&is_wanted))
            REMAT_TRY(jinja_list_add(run, items, all.list->items[i]));
    }
    return REMAT_OK;
}

static remat_status run_for(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_flow *flow)
{
    jinja_value items;
    REMAT_TRY(take_items(run, node, scope, &items));
    if (items.list->count == 0)
        return run_body(run, node->c, scope, flow);
    for (size_t i = 0; i < items.list->count; i++) {
        jinja_scope inner = {.outer = scope};
        jinja_flow inside = FLOW_ON;
        run->steps += TURN_STEPS;
        if (run->steps > MOST_STEPS)
            return jinja_fail(run, "the template takes too many steps", "");
        REMAT_TRY(begin_turn(run, node, &items, i, &inner));
        REMAT_TRY(run_body(run, node->b, &inner, &inside));
        if (inside == FLOW_BREAK)
            break;
    }
    return REMAT_OK;
}

static remat_status run_statement(jinja_run *run, const jinja_node *node, jinja_scope *scope, jinja_flow *flow)
{
    jinja_value value;
    run->line = node->line;
    switch (node->kind) {
    case JINJA_TEXT: return write_text(run, node->text, node->length);
    case JINJA_OUTPUT:
        REMAT_TRY(evaluate(run, node->a, scope, &value));
        REMAT_TRY(jinja_text(run, &value, &value));
        return write_text(run, value.text, value.length);
    case JINJA_IF:
        REMAT_TRY(evaluate(run, node->a, scope, &value));
        return run_body(run, jinja_is_true(&value) ? node->b : node->c, scope, flow);
    case JINJA_FOR: return run_for(run, node, scope, flow);
    case JINJA_SET: return run_set(run, node, scope);
    case JINJA_MACRO: return set_variable(run, scope, node->text, (jinja_value){.kind = VALUE_MACRO, .macro = node});
    case JINJA_BLOCK: return run_body(run, node->b, scope, flow);
    case JINJA_BREAK: *flow = FLOW_BREAK; return REMAT_OK;
    case JINJA_CONTINUE: *flow = FLOW_CONTINUE; return REMAT_OK;
    default: return REMAT_INTERNAL;
    }
}

static remat_status run_body(jinja_run *run, const jinja_node *first, jinja_scope *scope, jinja_flow *flow)
{
    if (run->depth == DEEPEST)
        return jinja_fail(run, "the template takes too many steps", "");
    run->depth++;
    remat_status status = REMAT_OK;
    for (const jinja_node *node = first; node && status == REMAT_OK && *flow == FLOW_ON; node = node->next)
        status = ++run->steps > MOST_STEPS ? jinja_fail(run, "the template takes too many steps", "")
                                           : run_statement(run, node, scope, flow);
    run->depth--;
    return status;
}

/* ---- the template ---- */

remat_status chat_template_compile(remat_context *context, const char *text, const char *name, chat_template **template)
{
    chat_template *made = *template = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    text_pool_begin(&made->tree, context);
    text_pool_begin(&made->values, context);
    made->name = text_pool_text(&made->tree, name);
    remat_status status = made->name ? jinja_parse(made, text) : REMAT_NO_MEMORY;
    if (status != REMAT_OK) {
        chat_template_destroy(made);
        *template = NULL;
    }
    return status;
}

void chat_template_destroy(chat_template *template)
{
    if (!template)
        return;
    text_pool_end(&template->tree);
    text_pool_end(&template->values);
    remat_release(template->context, template->out, template->capacity, 1);
    remat_release(template->context, template, 1, sizeof *template);
}

static remat_status set_messages(jinja_run *run, const chat_message *messages, size_t count, jinja_scope *scope)
{
    jinja_value list;
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, &list));
    for (size_t i = 0; i < count; i++) {
        jinja_value message;
        REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &message));
        REMAT_TRY(jinja_set_key(run, &message, jinja_string("role", 4),
                                jinja_string(messages[i].role, strlen(messages[i].role))));
        REMAT_TRY(jinja_set_key(run, &message, jinja_string("content", 7),
                                jinja_string(messages[i].content, strlen(messages[i].content))));
        REMAT_TRY(jinja_list_add(run, &list, message));
    }
    return set_variable(run, scope, "messages", list);
}

static remat_status run_template(jinja_run *run, const chat_message *messages, size_t count, const chat_values *values)
{
    jinja_scope scope = {0};
    jinja_flow flow = FLOW_ON;
    REMAT_TRY(jinja_list_make(run, VALUE_DICTIONARY, &scope.variables));
    REMAT_TRY(set_messages(run, messages, count, &scope));
    REMAT_TRY(set_variable(run, &scope, "add_generation_prompt", jinja_boolean(values->add_generation_prompt)));
    if (values->bos_token)
        REMAT_TRY(set_variable(run, &scope, "bos_token", jinja_string(values->bos_token, strlen(values->bos_token))));
    if (values->eos_token)
        REMAT_TRY(set_variable(run, &scope, "eos_token", jinja_string(values->eos_token, strlen(values->eos_token))));
    return run_body(run, run->template->body, &scope, &flow);
}

remat_status chat_template_render(chat_template *template, const chat_message *messages, size_t count,
                                  const chat_values *values, const char **text, size_t *length)
{
    text_pool_end(&template->values);
    text_pool_begin(&template->values, template->context);
    template->length = 0;
    jinja_run run = {.template = template, .context = template->context, .pool = &template->values};
    REMAT_TRY(run_template(&run, messages, count, values));
    *text = template->out ? template->out : "";
    *length = template->length;
    return REMAT_OK;
}
