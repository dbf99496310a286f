/* Runs compiled patterns by backtracking. */
#include "data/tokenizer/pattern_program.h"

enum {
    DEEPEST = 2000, /* calls within calls: repetitions of groups */
    STEPS_A_BYTE = 2000,
    STEPS_AT_LEAST = 1000000,
};
#define FAILED SIZE_MAX

bool pattern_set_has(const split_pattern *pattern, const pattern_set *set, uint32_t code)
{
    unsigned category = code < PATTERN_TABLE ? pattern->categories[code] : unicode_category_of(code);
    bool in = (set->categories >> category & 1) || (set->space && unicode_is_space(code)) ||
              (set->not_space && !unicode_is_space(code)) || (set->word && unicode_is_word(code));
    for (uint32_t i = 0; i < set->range_count && !in; i++) {
        const pattern_range *range = &pattern->ranges[set->range + i];
        in = code >= range->first && code <= range->last;
    }
    return in != set->negated;
}

/* The bytes of the character at `at` if the set has it; otherwise, and at the end of the text, 0. */
static inline size_t take(const split_pattern *pattern, const pattern_search *search, uint32_t which, size_t at)
{
    if (at >= search->length)
        return 0;
    const pattern_set *set = &pattern->sets[which];
    unsigned char byte = search->text[at];
    if (byte < 0x80)
        return set->ascii[byte >> 6] >> (byte & 63) & 1;
    uint32_t code;
    size_t bytes = unicode_take(search->text + at, &code);
    return pattern_set_has(pattern, set, code) ? bytes : 0;
}

static size_t match(const split_pattern *pattern, pattern_search *search, uint32_t which, size_t at);

static size_t step_back(const pattern_search *search, size_t at)
{
    do
        at--;
    while ((search->text[at] & 0xc0) == 0x80);
    return at;
}

static bool pay(pattern_search *search, uint64_t steps)
{
    if (search->steps < steps)
        search->steps = 0;
    else
        search->steps -= steps;
    return search->steps > 0;
}

/* As few characters as will do. */
static size_t match_lazy(const split_pattern *pattern, pattern_search *search, const pattern_step *step, size_t at)
{
    for (uint32_t count = 0; pay(search, 1); count++) {
        size_t end = count >= step->least ? match(pattern, search, step->next, at) : FAILED;
        if (end != FAILED || count == step->most)
            return end;
        size_t bytes = take(pattern, search, step->set, at);
        if (bytes == 0)
            return FAILED;
        at += bytes;
    }
    return FAILED;
}

static size_t match_greedy(const split_pattern *pattern, pattern_search *search, const pattern_step *step, size_t at)
{
    uint32_t count = 0;
    for (size_t bytes; count < step->most && (bytes = take(pattern, search, step->set, at)) > 0; count++)
        at += bytes;
    if (!pay(search, (uint64_t)count + 1) || count < step->least)
        return FAILED;
    if (step->greed == POSSESSIVE || pattern->steps[step->next].code == PATTERN_ACCEPT)
        return match(pattern, search, step->next, at);
    for (;; count--) {
        size_t end = match(pattern, search, step->next, at);
        if (end != FAILED || count == step->least || search->steps == 0)
            return end;
        at = step_back(search, at);
    }
}

/* Where the match ends that begins at `at`. */
static size_t match_here(const split_pattern *pattern, pattern_search *search, uint32_t which, size_t at)
{
    while (pay(search, 1)) {
        const pattern_step *step = &pattern->steps[which];
        size_t end;
        switch (step->code) {
        case PATTERN_ACCEPT: return at;
        case PATTERN_SET:
            end = take(pattern, search, step->set, at);
            if (end == 0)
                return FAILED;
            at += end;
            break;
        case PATTERN_REPEAT:
            return step->greed == LAZY ? match_lazy(pattern, search, step, at)
                                       : match_greedy(pattern, search, step, at);
        case PATTERN_CHOICE:
            end = match(pattern, search, step->inner, at);
            if (end != FAILED)
                return end;
            break;
        case PATTERN_AHEAD:
        case PATTERN_NOT_AHEAD:
            end = match(pattern, search, step->inner, at);
            if ((end != FAILED) != (step->code == PATTERN_AHEAD))
                return FAILED;
            break;
        }
        which = step->next;
    }
    return FAILED;
}

static size_t match(const split_pattern *pattern, pattern_search *search, uint32_t which, size_t at)
{
    if (search->depth == DEEPEST)
        search->steps = 0;
    if (search->steps == 0)
        return FAILED;
    search->depth++;
    size_t end = match_here(pattern, search, which, at);
    search->depth--;
    return end;
}

pattern_search split_pattern_begin(const unsigned char *text, size_t length)
{
    return (pattern_search){.text = text, .length = length, .steps = STEPS_AT_LEAST + (uint64_t)length * STEPS_A_BYTE};
}

remat_status split_pattern_find(const split_pattern *pattern, pattern_search *search, size_t from, size_t *start,
                                size_t *end)
{
    for (size_t at = from; at < search->length;) {
        size_t found = match(pattern, search, pattern->start, at);
        if (search->steps == 0)
            return remat_fail(pattern->context, REMAT_BAD_INPUT, NULL,
                              "the tokenizer's pattern takes too many steps to split this text");
        if (found != FAILED) {
            *start = at;
            *end = found;
            return REMAT_OK;
        }
        uint32_t code;
        at += unicode_take(search->text + at, &code);
    }
    *start = *end = search->length;
    return REMAT_OK;
}
