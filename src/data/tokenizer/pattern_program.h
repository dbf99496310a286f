/* Compiled patterns: what pattern_compile.c makes and pattern_match.c runs. */
#ifndef REMAT_DATA_TOKENIZER_PATTERN_PROGRAM_H
#define REMAT_DATA_TOKENIZER_PATTERN_PROGRAM_H

#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/unicode.h"

typedef enum pattern_code {
    PATTERN_ACCEPT,    /* matched */
    PATTERN_SET,       /* a character of a set, then `next` */
    PATTERN_REPEAT,    /* `least` to `most` characters of a set, then `next` */
    PATTERN_CHOICE,    /* `inner`, or `next` where that fails */
    PATTERN_AHEAD,     /* `inner` matches here, then `next` */
    PATTERN_NOT_AHEAD, /* `inner` does not match here */
} pattern_code;

typedef enum pattern_greed { GREEDY, LAZY, POSSESSIVE } pattern_greed;

typedef struct pattern_step {
    pattern_code code;
    pattern_greed greed;
    uint32_t set, least, most, inner, next;
} pattern_step;

#define PATTERN_NO_LIMIT UINT32_MAX

typedef struct pattern_range {
    uint32_t first, last;
} pattern_range;

/* A set of characters. */
typedef struct pattern_set {
    uint64_t ascii[2];   /* a bit for each of them, negation included */
    uint32_t categories; /* a bit each */
    bool space, not_space, word, negated;
    uint32_t range, range_count;
} pattern_set;

struct split_pattern {
    remat_context *context;
    pattern_step *steps;
    size_t step_count, step_capacity;
    pattern_set *sets;
    size_t set_count, set_capacity;
    pattern_range *ranges;
    size_t range_count, range_capacity;
    uint32_t start;
    uint8_t *categories; /* of the characters below 65536 */
};

enum { PATTERN_TABLE = 65536 };

/* Whether a set has the character, not counting the table for ASCII. */
bool pattern_set_has(const split_pattern *pattern, const pattern_set *set, uint32_t code);

#endif
