#include "data/tokenizer/added_tokens.h"

#include "base/alloc.h"
#include "base/search.h"
#include "data/tokenizer/unicode.h"

#include <string.h>

#define NO_NODE 0u /* the root is the child of none */

/* A byte of a token; those that may stand in its place are a list. */
typedef struct finder_node {
    uint32_t child, sibling;
    uint32_t token; /* that ends here: its index + 1; 0: none */
    unsigned char byte;
} finder_node;

void added_tokens_begin(added_tokens *added, remat_context *context)
{
    *added = (added_tokens){.context = context};
}

static void release_token(remat_context *context, added_token *token)
{
    remat_text_release(context, token->content);
    remat_text_release(context, token->normalized_content);
}

void added_tokens_end(added_tokens *added)
{
    if (!added->context)
        return;
    for (size_t i = 0; i < added->count; i++)
        release_token(added->context, &added->tokens[i]);
    remat_release(added->context, added->tokens, added->capacity, sizeof *added->tokens);
    remat_release(added->context, added->raw.nodes, added->raw.node_capacity, sizeof *added->raw.nodes);
    remat_release(added->context, added->normalized.nodes, added->normalized.node_capacity,
                  sizeof *added->normalized.nodes);
}

static size_t place_of(const added_tokens *added, uint32_t id)
{
    return REMAT_FIRST(i, 0, added->count, added->tokens[i].id >= id);
}

const added_token *added_tokens_at(const added_tokens *added, uint32_t id)
{
    size_t at = place_of(added, id);
    return at < added->count && added->tokens[at].id == id ? &added->tokens[at] : NULL;
}

const added_token *added_tokens_find(const added_tokens *added, const char *content)
{
    for (size_t i = 0; i < added->count; i++)
        if (strcmp(added->tokens[i].content, content) == 0)
            return &added->tokens[i];
    return NULL;
}

static remat_status copy_token(remat_context *context, const added_token *from, added_token *to)
{
    *to = *from;
    to->normalized_content = NULL;
    to->content = remat_text_copy(context, from->content);
    if (!to->content)
        return REMAT_NO_MEMORY;
    if (from->normalized_content && !(to->normalized_content = remat_text_copy(context, from->normalized_content))) {
        release_token(context, to);
        return REMAT_NO_MEMORY;
    }
    return REMAT_OK;
}

remat_status added_tokens_add(added_tokens *added, const added_token *token)
{
    remat_context *context = added->context;
    REMAT_TRY(remat_grow(context, (void **)&added->tokens, &added->capacity, added->count + 1, sizeof *added->tokens));
    added_token copy;
    REMAT_TRY(copy_token(context, token, &copy));
    size_t at = place_of(added, token->id);
    if (at < added->count && added->tokens[at].id == token->id) {
        release_token(context, &added->tokens[at]);
    } else {
        memmove(added->tokens + at + 1, added->tokens + at, (added->count - at) * sizeof *added->tokens);
        added->count++;
    }
    added->tokens[at] = copy;
    return REMAT_OK;
}

/* ---- the tree ---- */

static uint32_t child_of(const token_finder *finder, uint32_t node, unsigned char byte)
{
    uint32_t child = finder->nodes[node].child;
    while (child != NO_NODE && finder->nodes[child].byte != byte)
        child = finder->nodes[child].sibling;
    return child;
}

static remat_status add_node(remat_context *context, token_finder *finder, finder_node node)
{
    REMAT_TRY(remat_grow(context, (void **)&finder->nodes, &finder->node_capacity, finder->node_count + 1,
                         sizeof *finder->nodes));
    finder->nodes[finder->node_count++] = node;
    return REMAT_OK;
}

static remat_status add_to_finder(remat_context *context, token_finder *finder, const char *text, uint32_t token)
{
    uint32_t node = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        uint32_t child = child_of(finder, node, *at);
        if (child == NO_NODE) {
            child = (uint32_t)finder->node_count;
            REMAT_TRY(add_node(context, finder, (finder_node){.sibling = finder->nodes[node].child, .byte = *at}));
            finder->nodes[node].child = child;
        }
        node = child;
    }
    if (finder->nodes[node].token == 0)
        finder->nodes[node].token = token + 1;
    finder->begins[(unsigned char)text[0]] = true;
    return REMAT_OK;
}

remat_status added_tokens_ready(added_tokens *added)
{
    REMAT_TRY(add_node(added->context, &added->raw, (finder_node){0}));
    REMAT_TRY(add_node(added->context, &added->normalized, (finder_node){0}));
    for (size_t i = 0; i < added->count; i++) {
        const added_token *token = &added->tokens[i];
        if (*added_token_text(token))
            REMAT_TRY(add_to_finder(added->context, token->normalized ? &added->normalized : &added->raw,
                                    added_token_text(token), (uint32_t)i));
    }
    return REMAT_OK;
}

/* ---- the search ---- */

/* The longest token that begins at `at`; its index + 1, or 0. */
static uint32_t longest_at(const token_finder *finder, const unsigned char *text, size_t length, size_t at, size_t *end)
{
    uint32_t found = 0, node = 0;
    while (at < length && (node = child_of(finder, node, text[at])) != NO_NODE) {
        at++;
        if (finder->nodes[node].token) {
            found = finder->nodes[node].token;
            *end = at;
        }
    }
    return found;
}

static size_t character_before(const unsigned char *text, size_t at, uint32_t *code)
{
    do
        at--;
    while ((text[at] & 0xc0) == 0x80);
    unicode_take(text + at, code);
    return at;
}

static bool is_alone(const unsigned char *text, size_t length, size_t start, size_t end)
{
    uint32_t code;
    if (start > 0) {
        character_before(text, start, &code);
        if (unicode_is_word(code))
            return false;
    }
    if (end == length)
        return true;
    unicode_take(text + end, &code);
    return !unicode_is_word(code);
}

static void take_blanks(const unsigned char *text, size_t length, size_t taken, token_match *match)
{
    uint32_t code;
    if (match->token->lstrip) {
        size_t start = match->start;
        while (start > 0) {
            size_t before = character_before(text, start, &code);
            if (!unicode_is_space(code))
                break;
            start = before;
        }
        match->start = start > taken ? start : taken;
    }
    while (match->token->rstrip && match->end < length) {
        size_t bytes = unicode_take(text + match->end, &code);
        if (!unicode_is_space(code))
            break;
        match->end += bytes;
    }
}

token_match added_tokens_search(const added_tokens *added, bool normalized, const unsigned char *text, size_t length,
                                size_t from, size_t taken)
{
    const token_finder *finder = normalized ? &added->normalized : &added->raw;
    for (size_t at = from; at < length && finder->node_count > 1; at++) {
        size_t end = at;
        uint32_t found = finder->begins[text[at]] ? longest_at(finder, text, length, at, &end) : 0;
        if (!found)
            continue;
        const added_token *token = &added->tokens[found - 1];
        if (token->single_word && !is_alone(text, length, at, end)) {
            at = end - 1; /* what a match took is not searched again */
            continue;
        }
        token_match match = {.token = token, .start = at, .end = end, .next = end};
        take_blanks(text, length, taken, &match);
        return match;
    }
    return (token_match){.start = length, .end = length, .next = length};
}
