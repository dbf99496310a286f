#include "data/tokenizer/jinja.h"

#include <string.h>

enum { DEEPEST = 100 };

typedef struct jinja_parser {
    chat_template *template;
    const char *text, *at;
    uint64_t line;
    const char *counted; /* lines are counted up to here */
    unsigned depth;
    bool strip;         /* the last tag takes all blanks behind it */
    bool trim;          /* it takes a line end */
    bool at_line_start; /* nothing but blanks is before on this line */
} jinja_parser;

static uint64_t line_of(jinja_parser *of)
{
    for (; of->counted < of->at; of->counted++)
        of->line += *of->counted == '\n';
    return of->line;
}

static remat_status fail(jinja_parser *of, const char *why)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = of->template->name;
    return remat_fail(of->template->context, REMAT_BAD_INPUT, &place, "line %llu of the chat template: %s, at '%.20s'",
                      (unsigned long long)line_of(of), why, of->at);
}

static remat_status make(jinja_parser *of, jinja_kind kind, jinja_node **node)
{
    *node = text_pool_take(&of->template->tree, 1, sizeof **node);
    if (!*node)
        return REMAT_NO_MEMORY;
    (*node)->kind = kind;
    (*node)->line = line_of(of);
    return REMAT_OK;
}

static remat_status keep(jinja_parser *of, const char *text, size_t length, const char **to)
{
    *to = text_pool_part(&of->template->tree, text, length);
    return *to ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- small things ---- */

static void skip_blanks(jinja_parser *of)
{
    of->at += strspn(of->at, " \t\r\n");
}

static bool is_letter(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

/* The length of the word at the place; 0: none. */
static size_t word_length(const jinja_parser *of)
{
    size_t length = 0;
    while (is_letter(of->at[length]) || (length && is_digit(of->at[length])))
        length++;
    return length;
}

static bool peek_word(jinja_parser *of, const char *word)
{
    skip_blanks(of);
    size_t length = word_length(of);
    return length == strlen(word) && strncmp(of->at, word, length) == 0;
}

static bool take_word(jinja_parser *of, const char *word)
{
    if (!peek_word(of, word))
        return false;
    of->at += strlen(word);
    return true;
}

static bool take_sign(jinja_parser *of, const char *sign)
{
    skip_blanks(of);
    size_t length = strlen(sign);
    if (strncmp(of->at, sign, length) != 0)
        return false;
    /* A minus before the end of a tag belongs to it. */
    if (sign[0] == '-' && (strncmp(of->at + 1, "%}", 2) == 0 || strncmp(of->at + 1, "}}", 2) == 0))
        return false;
    if (sign[0] == '%' && of->at[1] == '}')
        return false;
    of->at += length;
    return true;
}

static remat_status need_sign(jinja_parser *of, const char *sign)
{
    return take_sign(of, sign) ? REMAT_OK : fail(of, "something is missing or not supported");
}

static remat_status take_name(jinja_parser *of, const char **name)
{
    skip_blanks(of);
    size_t length = word_length(of);
    if (length == 0)
        return fail(of, "a name should stand here");
    REMAT_TRY(keep(of, of->at, length, name));
    of->at += length;
    return REMAT_OK;
}

/* ---- expressions ---- */

static remat_status parse_expression(jinja_parser *of, jinja_node **node);
static remat_status parse_unary(jinja_parser *of, jinja_node **node);

static remat_status parse_string(jinja_parser *of, jinja_node **node)
{
    char quote = *of->at++;
    const char *end = of->at;
    while (*end && *end != quote)
        end += end[0] == '\\' && end[1] ? 2 : 1;
    if (!*end)
        return fail(of, "a string is not closed");
    REMAT_TRY(make(of, JINJA_STRING, node));
    char *text = text_pool_part(&of->template->tree, of->at, (size_t)(end - of->at));
    if (!text)
        return REMAT_NO_MEMORY;
    size_t length = 0;
    for (; of->at < end; of->at++) {
        static const char letters[] = "ntr\\'\"", codes[] = "\n\t\r\\'\"";
        const char *known = *of->at == '\\' ? strchr(letters, of->at[1]) : NULL;
        if (known)
            of->at++;
        text[length++] = known ? codes[known - letters] : *of->at;
    }
    text[length] = '\0';
    of->at++;
    (*node)->text = text;
    (*node)->length = length;
    return REMAT_OK;
}

static remat_status parse_number(jinja_parser *of, jinja_node **node)
{
    REMAT_TRY(make(of, JINJA_INTEGER, node));
    for (; is_digit(*of->at); of->at++) {
        if ((*node)->integer > INT32_MAX)
            return fail(of, "a number is too large");
        (*node)->integer = (*node)->integer * 10 + (*of->at - '0');
    }
    return *of->at == '.' && is_digit(of->at[1]) ? fail(of, "numbers with a fraction are not supported") : REMAT_OK;
}

/* Expressions with commas between, up to `close`. With `named`, an argument may have a name. */
static remat_status parse_items(jinja_parser *of, const char *close, bool named, jinja_node **first)
{
    jinja_node **last = first;
    *first = NULL;
    while (!take_sign(of, close)) {
        const char *name = NULL, *before = of->at;
        skip_blanks(of);
        size_t length = named ? word_length(of) : 0;
        of->at += length;
        skip_blanks(of);
        if (length && of->at[0] == '=' && of->at[1] != '=') {
            of->at = before;
            REMAT_TRY(take_name(of, &name));
            REMAT_TRY(need_sign(of, "="));
        } else {
            of->at = before;
        }
        jinja_node *item, *argument;
        REMAT_TRY(parse_expression(of, &item));
        /* A node of its own: the item may be in a list already. */
        REMAT_TRY(make(of, JINJA_BLOCK, &argument));
        argument->a = item;
        argument->text = name;
        *last = argument;
        last = &argument->next;
        if (!take_sign(of, ",")) {
            REMAT_TRY(need_sign(of, close));
            break;
        }
    }
    return REMAT_OK;
}

static remat_status parse_dictionary(jinja_parser *of, jinja_node **node)
{
    REMAT_TRY(make(of, JINJA_DICTIONARY, node));
    jinja_node **last = &(*node)->a;
    while (!take_sign(of, "}")) {
        jinja_node *entry;
        REMAT_TRY(make(of, JINJA_BLOCK, &entry));
        REMAT_TRY(parse_expression(of, &entry->a));
        REMAT_TRY(need_sign(of, ":"));
        REMAT_TRY(parse_expression(of, &entry->b));
        *last = entry;
        last = &entry->next;
        if (!take_sign(of, ",")) {
            REMAT_TRY(need_sign(of, "}"));
            break;
        }
    }
    return REMAT_OK;
}

static remat_status parse_word(jinja_parser *of, jinja_node **node)
{
    static const char *const constants[] = {"none", "None", "false", "False", "true", "True"};
    for (int i = 0; i < 6; i++)
        if (take_word(of, constants[i])) {
            REMAT_TRY(make(of, JINJA_CONSTANT, node));
            (*node)->integer = i / 2;
            return REMAT_OK;
        }
    REMAT_TRY(make(of, JINJA_NAME, node));
    return take_name(of, &(*node)->text);
}

static remat_status parse_primary(jinja_parser *of, jinja_node **node)
{
    skip_blanks(of);
    if (*of->at == '\'' || *of->at == '"')
        return parse_string(of, node);
    if (is_digit(*of->at))
        return parse_number(of, node);
    if (take_sign(of, "(")) {
        REMAT_TRY(parse_expression(of, node));
        if (!take_sign(of, ","))
            return need_sign(of, ")");
        /* A tuple is a list here. */
        jinja_node *list, *first;
        REMAT_TRY(make(of, JINJA_LIST, &list));
        REMAT_TRY(make(of, JINJA_BLOCK, &first));
        first->a = *node;
        list->a = first;
        *node = list;
        return parse_items(of, ")", false, &first->next);
    }
    if (take_sign(of, "[")) {
        REMAT_TRY(make(of, JINJA_LIST, node));
        return parse_items(of, "]", false, &(*node)->a);
    }
    if (take_sign(of, "{"))
        return parse_dictionary(of, node);
    if (is_letter(*of->at))
        return parse_word(of, node);
    return fail(of, "a value should stand here");
}

/* Behind the bracket of a[...]. */
static remat_status parse_index(jinja_parser *of, jinja_node *node)
{
    node->kind = JINJA_INDEX;
    jinja_node **parts[] = {&node->b, &node->c, &node->d};
    for (int i = 0; i < 3; i++) {
        skip_blanks(of);
        if (*of->at != ':' && *of->at != ']')
            REMAT_TRY(parse_expression(of, parts[i]));
        if (!take_sign(of, ":"))
            break;
        node->kind = JINJA_SLICE;
    }
    if (node->kind == JINJA_INDEX && !node->b)
        return fail(of, "an index is missing");
    return need_sign(of, "]");
}

static remat_status parse_test(jinja_parser *of, jinja_node **node)
{
    jinja_node *test, *negated;
    bool is_negated = take_word(of, "not");
    REMAT_TRY(make(of, JINJA_TEST, &test));
    test->a = *node;
    REMAT_TRY(take_name(of, &test->text));
    skip_blanks(of);
    bool has_value = *of->at == '\'' || *of->at == '"' || is_digit(*of->at) || *of->at == '[' ||
                     (is_letter(*of->at) && !peek_word(of, "and") && !peek_word(of, "or") && !peek_word(of, "else") &&
                      !peek_word(of, "if") && !peek_word(of, "is") && !peek_word(of, "not") && !peek_word(of, "in"));
    if (take_sign(of, "(")) {
        REMAT_TRY(parse_items(of, ")", true, &test->b));
    } else if (has_value) {
        REMAT_TRY(make(of, JINJA_BLOCK, &test->b));
        REMAT_TRY(parse_primary(of, &test->b->a));
    }
    *node = test;
    if (!is_negated)
        return REMAT_OK;
    REMAT_TRY(make(of, JINJA_NOT, &negated));
    negated->a = test;
    *node = negated;
    return REMAT_OK;
}

static remat_status parse_postfix(jinja_parser *of, jinja_node **node)
{
    REMAT_TRY(parse_primary(of, node));
    for (;;) {
        jinja_node *outer;
        if (take_word(of, "is")) {
            REMAT_TRY(parse_test(of, node));
            continue;
        }
        skip_blanks(of);
        char sign = *of->at;
        if (sign != '.' && sign != '[' && sign != '(' && sign != '|')
            return REMAT_OK;
        of->at++;
        REMAT_TRY(make(of, sign == '.' ? JINJA_ATTRIBUTE : sign == '(' ? JINJA_CALL : JINJA_FILTER, &outer));
        outer->a = *node;
        *node = outer;
        if (sign == '[')
            REMAT_TRY(parse_index(of, outer));
        else if (sign == '(')
            REMAT_TRY(parse_items(of, ")", true, &outer->b));
        else
            REMAT_TRY(take_name(of, &outer->text));
        if (sign == '|' && take_sign(of, "("))
            REMAT_TRY(parse_items(of, ")", true, &outer->b));
    }
}

static remat_status parse_unary(jinja_parser *of, jinja_node **node)
{
    if (!take_sign(of, "-"))
        return parse_postfix(of, node);
    REMAT_TRY(make(of, JINJA_NEGATIVE, node));
    return parse_postfix(of, &(*node)->a);
}

/* Operators that bind equally, from left to right. Level 0: * // / %, 1: ~, 2: + -, 3: comparisons. */
static bool take_operator(jinja_parser *of, int level, const char **sign)
{
    static const char *const signs[4][7] = {
        {"*", "//", "/", "%"}, {"~"}, {"+", "-"}, {"==", "!=", "<=", ">=", "<", ">"}};
    for (int i = 0; i < 7 && signs[level][i]; i++)
        if (take_sign(of, signs[level][i])) {
            *sign = signs[level][i];
            return true;
        }
    if (level != 3)
        return false;
    *sign = "in";
    if (take_word(of, "in"))
        return true;
    const char *before = of->at;
    *sign = "not in";
    if (take_word(of, "not") && take_word(of, "in"))
        return true;
    of->at = before;
    return false;
}

static remat_status parse_binary(jinja_parser *of, int level, jinja_node **node)
{
    const char *sign;
    REMAT_TRY(level == 0 ? parse_unary(of, node) : parse_binary(of, level - 1, node));
    while (take_operator(of, level, &sign)) {
        jinja_node *both;
        REMAT_TRY(make(of, JINJA_BINARY, &both));
        both->text = sign;
        both->a = *node;
        REMAT_TRY(level == 0 ? parse_unary(of, &both->b) : parse_binary(of, level - 1, &both->b));
        *node = both;
    }
    return REMAT_OK;
}

static remat_status parse_not(jinja_parser *of, jinja_node **node)
{
    size_t negations = 0;
    while (take_word(of, "not"))
        negations++;
    REMAT_TRY(parse_binary(of, 3, node));
    for (; negations; negations--) {
        jinja_node *negated;
        REMAT_TRY(make(of, JINJA_NOT, &negated));
        negated->a = *node;
        *node = negated;
    }
    return REMAT_OK;
}

/* and (level 0), or (level 1) */
static remat_status parse_logic(jinja_parser *of, int level, jinja_node **node)
{
    REMAT_TRY(level ? parse_logic(of, 0, node) : parse_not(of, node));
    while (take_word(of, level ? "or" : "and")) {
        jinja_node *both;
        REMAT_TRY(make(of, level ? JINJA_OR : JINJA_AND, &both));
        both->a = *node;
        REMAT_TRY(level ? parse_logic(of, 0, &both->b) : parse_not(of, &both->b));
        *node = both;
    }
    return REMAT_OK;
}

static remat_status parse_expression(jinja_parser *of, jinja_node **node)
{
    if (of->depth == DEEPEST)
        return fail(of, "the template is nested too deeply");
    of->depth++;
    REMAT_TRY(parse_logic(of, 1, node));
    while (take_word(of, "if")) {
        jinja_node *choice;
        REMAT_TRY(make(of, JINJA_CHOICE, &choice));
        choice->b = *node;
        REMAT_TRY(parse_logic(of, 1, &choice->a));
        if (take_word(of, "else"))
            REMAT_TRY(parse_expression(of, &choice->c));
        *node = choice;
    }
    of->depth--;
    return REMAT_OK;
}

/* ---- text between tags ---- */

/* The end of a tag: the sign before it says what becomes of the blanks behind it. */
static remat_status end_tag(jinja_parser *of, const char *close)
{
    skip_blanks(of);
    of->strip = *of->at == '-';
    of->trim = close[0] != '}' && *of->at != '+';
    of->at += *of->at == '-' || *of->at == '+';
    if (strncmp(of->at, close, 2) != 0)
        return fail(of, "the end of a tag should stand here");
    of->at += 2;
    return REMAT_OK;
}

/* The text up to the next tag, without what the tags around it take. */
static remat_status parse_text(jinja_parser *of, jinja_node ***last)
{
    const char *begin = of->at, *end = begin;
    if (of->strip)
        begin += strspn(begin, " \t\r\n");
    else if (of->trim && *begin == '\n')
        begin++;
    /* A line begins where what the tag took ends with a line end. */
    bool line_start = of->at_line_start || (begin > of->at && begin[-1] == '\n');
    of->at_line_start = of->strip = of->trim = false;
    for (end = begin; *end; end++)
        if (*end == '{' && (end[1] == '{' || end[1] == '%' || end[1] == '#'))
            break;
    of->at = end;
    if (*end && end[2] == '-') {
        while (end > begin && strchr(" \t\r\n", end[-1]))
            end--;
    } else if (*end && end[1] != '{' && end[2] != '+') {
        const char *blank = end;
        while (blank > begin && (blank[-1] == ' ' || blank[-1] == '\t'))
            blank--;
        if (blank > begin ? blank[-1] == '\n' : line_start)
            end = blank;
    } else if (!*end && end > begin && end[-1] == '\n') {
        end--; /* the last line end of a template is not written */
    }
    if (end == begin)
        return REMAT_OK;
    jinja_node *node;
    REMAT_TRY(make(of, JINJA_TEXT, &node));
    REMAT_TRY(keep(of, begin, (size_t)(end - begin), &node->text));
    node->length = (size_t)(end - begin);
    **last = node;
    *last = &node->next;
    return REMAT_OK;
}

/* ---- statements ---- */

static remat_status parse_body(jinja_parser *of, const char *const *ends, jinja_node **first, const char **end);

static remat_status parse_if(jinja_parser *of, jinja_node *node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    const char *end;
    REMAT_TRY(parse_expression(of, &node->a));
    REMAT_TRY(end_tag(of, "%}"));
    REMAT_TRY(parse_body(of, ends, &node->b, &end));
    if (end == ends[0]) {
        if (of->depth == DEEPEST)
            return fail(of, "the template is nested too deeply");
        of->depth++;
        REMAT_TRY(make(of, JINJA_IF, &node->c));
        remat_status status = parse_if(of, node->c);
        of->depth--;
        return status;
    }
    REMAT_TRY(end_tag(of, "%}"));
    if (end == ends[2])
        return REMAT_OK;
    REMAT_TRY(parse_body(of, ends + 2, &node->c, &end));
    return end_tag(of, "%}");
}

static remat_status parse_for(jinja_parser *of, jinja_node *node)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    const char *end;
    node->kind = JINJA_FOR;
    REMAT_TRY(take_name(of, &node->text));
    if (take_sign(of, ","))
        REMAT_TRY(take_name(of, &node->second));
    if (!take_word(of, "in"))
        return fail(of, "'in' should stand here");
    REMAT_TRY(parse_logic(of, 1, &node->a));
    if (take_word(of, "if"))
        REMAT_TRY(parse_expression(of, &node->d));
    REMAT_TRY(end_tag(of, "%}"));
    REMAT_TRY(parse_body(of, ends, &node->b, &end));
    REMAT_TRY(end_tag(of, "%}"));
    if (end == ends[1])
        return REMAT_OK;
    REMAT_TRY(parse_body(of, ends + 1, &node->c, &end));
    return end_tag(of, "%}");
}

static remat_status parse_set(jinja_parser *of, jinja_node *node)
{
    static const char *const ends[] = {"endset", NULL};
    const char *end;
    node->kind = JINJA_SET;
    REMAT_TRY(parse_postfix(of, &node->d));
    if (node->d->kind != JINJA_NAME && node->d->kind != JINJA_ATTRIBUTE)
        return fail(of, "only a name or an attribute is set");
    if (take_sign(of, "=")) {
        REMAT_TRY(parse_expression(of, &node->a));
        return end_tag(of, "%}");
    }
    REMAT_TRY(end_tag(of, "%}"));
    REMAT_TRY(parse_body(of, ends, &node->b, &end));
    return end_tag(of, "%}");
}

static remat_status parse_macro(jinja_parser *of, jinja_node *node)
{
    static const char *const ends[] = {"endmacro", NULL};
    const char *end;
    node->kind = JINJA_MACRO;
    REMAT_TRY(take_name(of, &node->text));
    REMAT_TRY(need_sign(of, "("));
    REMAT_TRY(parse_items(of, ")", true, &node->a));
    REMAT_TRY(end_tag(of, "%}"));
    REMAT_TRY(parse_body(of, ends, &node->b, &end));
    return end_tag(of, "%}");
}

static remat_status parse_generation(jinja_parser *of, jinja_node *node)
{
    static const char *const ends[] = {"endgeneration", NULL};
    const char *end;
    node->kind = JINJA_BLOCK;
    REMAT_TRY(end_tag(of, "%}"));
    REMAT_TRY(parse_body(of, ends, &node->b, &end));
    return end_tag(of, "%}");
}

static remat_status parse_statement(jinja_parser *of, jinja_node *node)
{
    node->kind = JINJA_IF;
    if (take_word(of, "if"))
        return parse_if(of, node);
    if (take_word(of, "for"))
        return parse_for(of, node);
    if (take_word(of, "set"))
        return parse_set(of, node);
    if (take_word(of, "macro"))
        return parse_macro(of, node);
    if (take_word(of, "generation"))
        return parse_generation(of, node);
    node->kind = peek_word(of, "break") ? JINJA_BREAK : JINJA_CONTINUE;
    if (take_word(of, "break") || take_word(of, "continue"))
        return end_tag(of, "%}");
    return fail(of, "this statement is not supported");
}

static remat_status parse_comment(jinja_parser *of)
{
    const char *end = strstr(of->at, "#}");
    if (!end)
        return fail(of, "a comment is not closed");
    of->at = end > of->at && end[-1] == '-' ? end - 1 : end;
    return end_tag(of, "#}");
}

/* Text and tags up to one of the words of the list, which is taken; an empty list: up to the end. */
static remat_status parse_body(jinja_parser *of, const char *const *ends, jinja_node **first, const char **end)
{
    jinja_node **last = first;
    if (of->depth == DEEPEST)
        return fail(of, "the template is nested too deeply");
    of->depth++;
    for (;;) {
        REMAT_TRY(parse_text(of, &last));
        if (!*of->at) {
            of->depth--;
            return *ends ? fail(of, "the template ends inside a block") : REMAT_OK;
        }
        char kind = of->at[1];
        of->at += 2;
        of->at += *of->at == '-' || *of->at == '+';
        if (kind == '#') {
            REMAT_TRY(parse_comment(of));
            continue;
        }
        for (size_t i = 0; kind == '%' && ends[i]; i++)
            if (take_word(of, ends[i])) {
                *end = ends[i];
                of->depth--;
                return REMAT_OK;
            }
        jinja_node *node;
        REMAT_TRY(make(of, JINJA_OUTPUT, &node));
        if (kind == '%') {
            REMAT_TRY(parse_statement(of, node));
        } else {
            REMAT_TRY(parse_expression(of, &node->a));
            REMAT_TRY(end_tag(of, "}}"));
        }
        *last = node;
        last = &node->next;
    }
}

remat_status jinja_parse(chat_template *template, const char *text)
{
    static const char *const no_ends[] = {NULL};
    const char *end;
    jinja_parser of = {
        .template = template, .text = text, .at = text, .counted = text, .line = 1, .at_line_start = true};
    return parse_body(&of, no_ends, &template->body, &end);
}
