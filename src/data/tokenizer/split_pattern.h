/* Regular expressions that split a text before it is encoded: the part of Oniguruma's syntax that tokenizers use.
 *
 *   a \n \t \r \\ . [a-z] [^...] \s \S \d \w \p{L} \p{Lu} \P{N}     one character
 *   X? X* X+ X{2} X{2,} X{2,5}, each with ? (lazy); X?+ X*+ X++       repetitions
 *   X|Y (X) (?:X) (?i:X) (?=X) (?!X)
 *
 * A pattern must not match an empty text.
 *
 * Why not PCRE2: its versions have different versions of Unicode, and tokenizers would then not be read where it is not
 * installed. A pattern comes from a file that is not trusted, so that matching has a limit on its steps. */
#ifndef REMAT_DATA_TOKENIZER_SPLIT_PATTERN_H
#define REMAT_DATA_TOKENIZER_SPLIT_PATTERN_H

#include <stdbool.h>

#include "base/error.h"

typedef struct split_pattern split_pattern;

/* Compiles a pattern. `place` is for messages, and kept as long as the call takes. REMAT_BAD_INPUT says what is wrong with
 * it, or what is not supported. */
remat_status split_pattern_compile(remat_context *context, const char *text, const remat_place *place,
                                   split_pattern **pattern);
void split_pattern_destroy(split_pattern *pattern); /* NULL is fine */

/* A search in one text, which is well-formed UTF-8. */
typedef struct pattern_search {
    const unsigned char *text;
    size_t length;
    uint64_t steps; /* that are left; see split_pattern_begin */
    unsigned depth;
} pattern_search;

/* Begins a search, which takes a number of steps that is proportional to the length of the text at most. */
pattern_search split_pattern_begin(const unsigned char *text, size_t length);

/* Finds the first match that begins at `from` or behind it; *start is the length of the text where there is none.
 * REMAT_BAD_INPUT: that would take too many steps. */
remat_status split_pattern_find(const split_pattern *pattern, pattern_search *search, size_t from, size_t *start,
                                size_t *end);

#endif
