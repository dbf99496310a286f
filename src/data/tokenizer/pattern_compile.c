/* Compiles patterns: a parser by recursive descent builds a tree, and the tree becomes steps from its end to its beginning,
 * so that every step knows the one behind it. */
#include "data/tokenizer/pattern_program.h"

#include "base/alloc.h"
#include "base/min_max.h"
#include "base/utf8.h"

#include <string.h>

enum { DEEPEST = 50, MOST_STEPS = 20000, MOST_REPEATS = 1000 };

typedef enum tree_kind {
    TREE_EMPTY,
    TREE_SET,
    TREE_PAIR,
    TREE_EITHER,
    TREE_REPEAT,
    TREE_AHEAD,
    TREE_NOT_AHEAD
} tree_kind;

/* A node; `left` and `right` are other nodes. */
typedef struct tree_node {
    tree_kind kind;
    pattern_greed greed;
    uint32_t left, right, set, least, most;
} tree_node;

typedef struct compiler {
    split_pattern *pattern;
    const remat_place *place;
    const char *text, *at;
    bool fold; /* (?i: */
    unsigned depth;
    tree_node *nodes;
    size_t node_count, node_capacity;
} compiler;

static remat_status refuse(const compiler *from, const char *why)
{
    return remat_fail(from->pattern->context, REMAT_BAD_INPUT, from->place, "%s, at byte %zu of the pattern '%.200s'",
                      why, (size_t)(from->at - from->text) + 1, from->text);
}

/* ---- sets of characters ---- */

static remat_status add_range(compiler *to, pattern_set *set, uint32_t first, uint32_t last)
{
    split_pattern *pattern = to->pattern;
    REMAT_TRY(remat_grow(pattern->context, (void **)&pattern->ranges, &pattern->range_capacity,
                         pattern->range_count + 1, sizeof *pattern->ranges));
    pattern->ranges[pattern->range_count++] = (pattern_range){first, last};
    set->range_count++;
    return REMAT_OK;
}

/* A character, and the other cases of it where they are the same. */
static remat_status add_character(compiler *to, pattern_set *set, uint32_t code)
{
    REMAT_TRY(add_range(to, set, code, code));
    if (!to->fold)
        return REMAT_OK;
    if (code >= 0x80)
        return refuse(to, "(?i: is supported for ASCII letters only");
    uint32_t small = code | 0x20;
    if (small < 'a' || small > 'z')
        return REMAT_OK;
    REMAT_TRY(add_range(to, set, code ^ 0x20, code ^ 0x20));
    if (small == 's') /* the long s and the sign of Kelvin */
        return add_range(to, set, 0x17f, 0x17f);
    return small == 'k' ? add_range(to, set, 0x212a, 0x212a) : REMAT_OK;
}

static remat_status end_set(compiler *to, pattern_set *set, uint32_t *which)
{
    split_pattern *pattern = to->pattern;
    for (uint32_t code = 0; code < 128; code++)
        if (pattern_set_has(pattern, set, code))
            set->ascii[code >> 6] |= (uint64_t)1 << (code & 63);
    REMAT_TRY(remat_grow(pattern->context, (void **)&pattern->sets, &pattern->set_capacity, pattern->set_count + 1,
                         sizeof *pattern->sets));
    *which = (uint32_t)pattern->set_count;
    pattern->sets[pattern->set_count++] = *set;
    return REMAT_OK;
}

/* {Lu} behind \p or \P. */
static remat_status take_category(compiler *from, pattern_set *set, bool negated)
{
    const char *end = *from->at == '{' ? strchr(from->at, '}') : NULL;
    if (!end)
        return refuse(from, "\\p needs a category in braces");
    const char *name = from->at + 1;
    if (*name == '^') {
        negated = !negated;
        name++;
    }
    uint32_t bits = unicode_category_bits(name, (size_t)(end - name));
    if (bits == 0)
        return refuse(from, "this category is unknown; those of one or two letters are supported, such as L or Lu");
    set->categories |= negated ? ~bits & (((uint32_t)1 << UNICODE_CATEGORY_COUNT) - 1) : bits;
    from->at = end + 1;
    return REMAT_OK;
}

/* The hexadecimal number of \x41, \x{3040} and \u3040. */
static remat_status take_code(compiler *from, bool is_long, uint32_t *code)
{
    bool braces = *from->at == '{';
    size_t most = braces ? 6 : is_long ? 4 : 2, digits = 0;
    from->at += braces;
    *code = 0;
    for (; digits < most; digits++, from->at++) {
        char letter = *from->at;
        if (letter >= '0' && letter <= '9')
            *code = *code * 16 + (uint32_t)(letter - '0');
        else if ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'f')
            *code = *code * 16 + (uint32_t)((letter | 0x20) - 'a' + 10);
        else
            break;
    }
    if (digits == 0 || (braces ? *from->at != '}' : digits != most) || *code > 0x10ffff)
        return refuse(from, "a hexadecimal number of a character is wrong");
    from->at += braces;
    return REMAT_OK;
}

/* What follows a backslash. *is_character: it is one character, *code, which is not added to the set. */
static remat_status take_escape(compiler *from, pattern_set *set, bool *is_character, uint32_t *code)
{
    static const char letters[] = "nrtfv0", codes[] = "\n\r\t\f\v";
    char letter = *from->at;
    if (letter == '\0')
        return refuse(from, "a backslash stands at the end");
    from->at++;
    *is_character = false;
    switch (letter) {
    case 's': set->space = true; return REMAT_OK;
    case 'S': set->not_space = true; return REMAT_OK;
    case 'w': set->word = true; return REMAT_OK;
    case 'd': set->categories |= (uint32_t)1 << UNICODE_Nd; return REMAT_OK;
    case 'p': return take_category(from, set, false);
    case 'P': return take_category(from, set, true);
    default: break;
    }
    *is_character = true;
    if (letter == 'x' || letter == 'u')
        return take_code(from, letter == 'u', code);
    const char *known = strchr(letters, letter);
    if (known) {
        *code = (unsigned char)codes[known - letters];
        return REMAT_OK;
    }
    if ((letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z') ||
        (unsigned char)letter >= 0x80)
        return refuse(from, "this escape is not supported");
    *code = (unsigned char)letter;
    return REMAT_OK;
}

/* A character of a class as it stands, or an escape. */
static remat_status take_class_item(compiler *from, pattern_set *set, bool *is_character, uint32_t *code)
{
    if (*from->at == '\0')
        return refuse(from, "a class is not closed");
    if (*from->at == '[' || (from->at[0] == '&' && from->at[1] == '&'))
        return refuse(from, "classes inside classes are not supported");
    if (*from->at == '\\') {
        from->at++;
        return take_escape(from, set, is_character, code);
    }
    *is_character = true;
    from->at += utf8_take(from->at, code);
    return REMAT_OK;
}

/* Behind the opening bracket. */
static remat_status take_class(compiler *from, pattern_set *set)
{
    set->negated = *from->at == '^';
    from->at += set->negated;
    do {
        bool is_character, is_last;
        uint32_t first = 0, last = 0;
        REMAT_TRY(take_class_item(from, set, &is_character, &first));
        if (!is_character)
            continue;
        if (from->at[0] != '-' || from->at[1] == ']') {
            REMAT_TRY(add_character(from, set, first));
            continue;
        }
        from->at++;
        REMAT_TRY(take_class_item(from, set, &is_last, &last));
        if (!is_last || last < first)
            return refuse(from, "a range of characters is wrong");
        if (from->fold)
            return refuse(from, "ranges in (?i: are not supported");
        REMAT_TRY(add_range(from, set, first, last));
    } while (*from->at != ']');
    from->at++;
    return REMAT_OK;
}

/* ---- the tree ---- */

static remat_status add_node(compiler *to, tree_node node, uint32_t *which)
{
    REMAT_TRY(remat_grow(to->pattern->context, (void **)&to->nodes, &to->node_capacity, to->node_count + 1,
                         sizeof *to->nodes));
    *which = (uint32_t)to->node_count;
    to->nodes[to->node_count++] = node;
    return REMAT_OK;
}

static remat_status take_choices(compiler *from, uint32_t *which);

/* Behind the opening parenthesis. */
static remat_status take_group(compiler *from, uint32_t *which)
{
    tree_kind kind = TREE_EMPTY;
    bool fold = from->fold;
    if (strncmp(from->at, "?:", 2) == 0) {
        from->at += 2;
    } else if (strncmp(from->at, "?i:", 3) == 0) {
        from->at += 3;
        from->fold = true;
    } else if (strncmp(from->at, "?=", 2) == 0 || strncmp(from->at, "?!", 2) == 0) {
        kind = from->at[1] == '=' ? TREE_AHEAD : TREE_NOT_AHEAD;
        from->at += 2;
    } else if (*from->at == '?' || *from->at == '*') {
        return refuse(from, "this kind of group is not supported");
    }
    REMAT_TRY(take_choices(from, which));
    from->fold = fold;
    if (*from->at != ')')
        return refuse(from, "a group is not closed");
    from->at++;
    return kind == TREE_EMPTY ? REMAT_OK : add_node(from, (tree_node){.kind = kind, .left = *which}, which);
}

/* A character, a class or a group. */
static remat_status take_atom(compiler *from, uint32_t *which)
{
    split_pattern *pattern = from->pattern;
    char letter = *from->at;
    if (letter == '(') {
        from->at++;
        return take_group(from, which);
    }
    if (letter == '^' || letter == '$')
        return refuse(from, "anchors are not supported");
    if (strchr("*+?{", letter))
        return refuse(from, "there is nothing to repeat");
    pattern_set set = {.range = (uint32_t)pattern->range_count};
    bool is_character = false;
    uint32_t code = 0;
    if (letter == '[') {
        from->at++;
        REMAT_TRY(take_class(from, &set));
    } else if (letter == '.') {
        from->at++;
        set.negated = true;
        REMAT_TRY(add_range(from, &set, '\n', '\n'));
    } else if (letter == '\\') {
        from->at++;
        REMAT_TRY(take_escape(from, &set, &is_character, &code));
    } else {
        from->at += utf8_take(from->at, &code);
        is_character = true;
    }
    if (is_character)
        REMAT_TRY(add_character(from, &set, code));
    tree_node node = {.kind = TREE_SET};
    REMAT_TRY(end_set(from, &set, &node.set));
    return add_node(from, node, which);
}

static remat_status take_count(compiler *from, uint32_t *count)
{
    *count = 0;
    for (; *from->at >= '0' && *from->at <= '9'; from->at++) {
        *count = *count * 10 + (uint32_t)(*from->at - '0');
        if (*count > MOST_REPEATS)
            return refuse(from, "a number of repetitions is too large");
    }
    return REMAT_OK;
}

/* {2} {2,} {,5} {2,5} */
static remat_status take_braces(compiler *from, tree_node *repeat)
{
    from->at++;
    REMAT_TRY(take_count(from, &repeat->least));
    repeat->most = repeat->least;
    if (*from->at == ',') {
        from->at++;
        repeat->most = PATTERN_NO_LIMIT;
        if (*from->at != '}')
            REMAT_TRY(take_count(from, &repeat->most));
    }
    if (*from->at != '}' || repeat->most < repeat->least || repeat->most == 0)
        return refuse(from, "the number of repetitions is wrong");
    from->at++;
    if (*from->at == '+')
        return refuse(from, "{...}+ is not supported");
    return REMAT_OK;
}

static remat_status take_repeat(compiler *from, uint32_t *which)
{
    REMAT_TRY(take_atom(from, which));
    tree_node repeat = {.kind = TREE_REPEAT, .left = *which, .least = 0, .most = PATTERN_NO_LIMIT};
    switch (*from->at) {
    case '*': from->at++; break;
    case '+':
        from->at++;
        repeat.least = 1;
        break;
    case '?':
        from->at++;
        repeat.most = 1;
        break;
    case '{': REMAT_TRY(take_braces(from, &repeat)); break;
    default: return REMAT_OK;
    }
    if (*from->at == '?' || *from->at == '+')
        repeat.greed = *from->at++ == '?' ? LAZY : POSSESSIVE;
    if (*from->at && strchr("*+?{", *from->at))
        return refuse(from, "a repetition of a repetition is not supported");
    if (from->nodes[*which].kind == TREE_AHEAD || from->nodes[*which].kind == TREE_NOT_AHEAD)
        return refuse(from, "a look ahead is not repeated");
    if (repeat.greed == POSSESSIVE && from->nodes[*which].kind != TREE_SET)
        return refuse(from, "a possessive repetition of a group is not supported");
    return add_node(from, repeat, which);
}

static remat_status take_sequence(compiler *from, uint32_t *which)
{
    uint32_t item;
    REMAT_TRY(add_node(from, (tree_node){.kind = TREE_EMPTY}, which));
    while (*from->at && *from->at != '|' && *from->at != ')') {
        REMAT_TRY(take_repeat(from, &item));
        REMAT_TRY(add_node(from, (tree_node){.kind = TREE_PAIR, .left = *which, .right = item}, which));
    }
    return REMAT_OK;
}

static remat_status take_choices(compiler *from, uint32_t *which)
{
    if (from->depth == DEEPEST)
        return refuse(from, "groups are nested too deeply");
    from->depth++;
    REMAT_TRY(take_sequence(from, which));
    while (*from->at == '|') {
        uint32_t other;
        from->at++;
        REMAT_TRY(take_sequence(from, &other));
        REMAT_TRY(add_node(from, (tree_node){.kind = TREE_EITHER, .left = *which, .right = other}, which));
    }
    from->depth--;
    return REMAT_OK;
}

/* ---- steps ---- */

static bool can_be_empty(const compiler *of, uint32_t which)
{
    for (;;) { /* sequences and choices are long to the left */
        const tree_node *node = &of->nodes[which];
        switch (node->kind) {
        case TREE_SET: return false;
        case TREE_REPEAT:
            if (node->least == 0)
                return true;
            break;
        case TREE_PAIR:
            if (!can_be_empty(of, node->right))
                return false;
            break;
        case TREE_EITHER:
            if (can_be_empty(of, node->right))
                return true;
            break;
        default: return true;
        }
        which = node->left;
    }
}

static remat_status add_step(compiler *to, pattern_step step, uint32_t *which)
{
    split_pattern *pattern = to->pattern;
    if (pattern->step_count == MOST_STEPS)
        return refuse(to, "the pattern is too long");
    REMAT_TRY(remat_grow(pattern->context, (void **)&pattern->steps, &pattern->step_capacity, pattern->step_count + 1,
                         sizeof *pattern->steps));
    *which = (uint32_t)pattern->step_count;
    pattern->steps[pattern->step_count++] = step;
    return REMAT_OK;
}

static remat_status emit(compiler *to, uint32_t which, uint32_t next, uint32_t *first);

/* A choice between a group and what is behind it; the greedy one tries the group first. */
static remat_status emit_optional(compiler *to, bool lazy, uint32_t group, uint32_t next, uint32_t *first)
{
    return add_step(
        to, (pattern_step){.code = PATTERN_CHOICE, .inner = lazy ? next : group, .next = lazy ? group : next}, first);
}

/* A group that is repeated: a loop for what has no limit, then copies. */
static remat_status emit_group_repeat(compiler *to, const tree_node *repeat, uint32_t next, uint32_t *first)
{
    bool lazy = repeat->greed == LAZY;
    uint32_t behind = next, group;
    if (can_be_empty(to, repeat->left))
        return refuse(to, "a repetition of what may be empty is not supported");
    if (repeat->most == PATTERN_NO_LIMIT) {
        REMAT_TRY(emit_optional(to, lazy, 0, next, &behind));
        uint32_t loop = behind;
        REMAT_TRY(emit(to, repeat->left, loop, &group));
        *(lazy ? &to->pattern->steps[loop].next : &to->pattern->steps[loop].inner) = group;
    } else {
        for (uint32_t i = repeat->least; i < repeat->most; i++) {
            REMAT_TRY(emit(to, repeat->left, behind, &group));
            REMAT_TRY(emit_optional(to, lazy, group, next, &behind));
        }
    }
    for (uint32_t i = 0; i < repeat->least; i++)
        REMAT_TRY(emit(to, repeat->left, behind, &behind));
    *first = behind;
    return REMAT_OK;
}

/* The steps of a node, before step `next`. */
static remat_status emit(compiler *to, uint32_t which, uint32_t next, uint32_t *first)
{
    tree_node node = to->nodes[which];
    uint32_t inner, other;
    switch (node.kind) {
    case TREE_EMPTY: *first = next; return REMAT_OK;
    case TREE_SET: return add_step(to, (pattern_step){.code = PATTERN_SET, .set = node.set, .next = next}, first);
    case TREE_PAIR:
        /* A sequence is long to the left: a loop, so that its length is no depth of calls. */
        while (node.kind == TREE_PAIR) {
            REMAT_TRY(emit(to, node.right, next, &next));
            which = node.left;
            node = to->nodes[which];
        }
        return emit(to, which, next, first);
    case TREE_EITHER: {
        uint32_t behind = 0;
        bool is_last = true;
        while (node.kind == TREE_EITHER) {
            REMAT_TRY(emit(to, node.right, next, &other));
            if (!is_last)
                REMAT_TRY(emit_optional(to, false, other, behind, &other));
            behind = other;
            is_last = false;
            which = node.left;
            node = to->nodes[which];
        }
        REMAT_TRY(emit(to, which, next, &other));
        return emit_optional(to, false, other, behind, first);
    }
    case TREE_REPEAT:
        if (to->nodes[node.left].kind != TREE_SET)
            return emit_group_repeat(to, &node, next, first);
        return add_step(to,
                        (pattern_step){.code = PATTERN_REPEAT,
                                       .greed = node.greed,
                                       .set = to->nodes[node.left].set,
                                       .least = node.least,
                                       .most = node.most,
                                       .next = next},
                        first);
    case TREE_AHEAD:
    case TREE_NOT_AHEAD:
        REMAT_TRY(add_step(to, (pattern_step){.code = PATTERN_ACCEPT}, &inner));
        REMAT_TRY(emit(to, node.left, inner, &inner));
        return add_step(to,
                        (pattern_step){.code = node.kind == TREE_AHEAD ? PATTERN_AHEAD : PATTERN_NOT_AHEAD,
                                       .inner = inner,
                                       .next = next},
                        first);
    }
    return REMAT_INTERNAL;
}

/* ---- all of it ---- */

static remat_status compile(compiler *from)
{
    uint32_t tree, accept;
    REMAT_TRY(take_choices(from, &tree));
    if (*from->at)
        return refuse(from, "a ')' has no '('");
    if (can_be_empty(from, tree))
        return refuse(from, "the pattern matches an empty text");
    REMAT_TRY(add_step(from, (pattern_step){.code = PATTERN_ACCEPT}, &accept));
    return emit(from, tree, accept, &from->pattern->start);
}

static void fill_categories(uint8_t *categories)
{
    /* The table is the first plane of Unicode; the runs go on behind it. */
    for (size_t i = 0; unicode_category_runs[i] >> 8 < PATTERN_TABLE; i++) {
        size_t first = unicode_category_runs[i] >> 8, next = unicode_category_runs[i + 1] >> 8;
        memset(categories + first, (int)(unicode_category_runs[i] & 0xff), remat_min(next, PATTERN_TABLE) - first);
    }
}

remat_status split_pattern_compile(remat_context *context, const char *text, const remat_place *place,
                                   split_pattern **pattern)
{
    split_pattern *made = *pattern = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->categories = remat_alloc(context, PATTERN_TABLE, 1);
    compiler from = {.pattern = made, .place = place, .text = text, .at = text};
    remat_status status = REMAT_NO_MEMORY;
    if (made->categories) {
        fill_categories(made->categories);
        status = compile(&from);
    }
    remat_release(context, from.nodes, from.node_capacity, sizeof *from.nodes);
    if (status != REMAT_OK) {
        split_pattern_destroy(made);
        *pattern = NULL;
    }
    return status;
}

void split_pattern_destroy(split_pattern *pattern)
{
    if (!pattern)
        return;
    remat_context *context = pattern->context;
    remat_release(context, pattern->steps, pattern->step_capacity, sizeof *pattern->steps);
    remat_release(context, pattern->sets, pattern->set_capacity, sizeof *pattern->sets);
    remat_release(context, pattern->ranges, pattern->range_capacity, sizeof *pattern->ranges);
    remat_release(context, pattern->categories, PATTERN_TABLE, 1);
    remat_release(context, pattern, 1, sizeof *pattern);
}
