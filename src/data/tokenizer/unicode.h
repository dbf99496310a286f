/* What tokenizers need to know of Unicode: categories of characters, and normalization form C. The tables are made by
 * scripts/make_unicode.py. A library such as ICU or utf8proc would bring its own version of Unicode: a character that is a
 * letter in one version only would then split a text elsewhere than the library `tokenizers` does. */
#ifndef REMAT_DATA_TOKENIZER_UNICODE_H
#define REMAT_DATA_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General categories, in the order of the tables. */
#define UNICODE_CATEGORIES(X) \
    X(Cn)                     \
    X(Lu)                     \
    X(Ll)                     \
    X(Lt)                     \
    X(Lm)                     \
    X(Lo)                     \
    X(Mn)                     \
    X(Mc)                     \
    X(Me)                     \
    X(Nd)                     \
    X(Nl)                     \
    X(No)                     \
    X(Pc)                     \
    X(Pd)                     \
    X(Ps)                     \
    X(Pe)                     \
    X(Pi)                     \
    X(Pf)                     \
    X(Po)                     \
    X(Sm)                     \
    X(Sc)                     \
    X(Sk)                     \
    X(So)                     \
    X(Zs)                     \
    X(Zl)                     \
    X(Zp)                     \
    X(Cc)                     \
    X(Cf)                     \
    X(Cs)                     \
    X(Co)
typedef enum unicode_category {
#define X(name) UNICODE_##name,
    UNICODE_CATEGORIES(X)
#undef X
        UNICODE_CATEGORY_COUNT
} unicode_category;

unicode_category unicode_category_of(uint32_t code);

/* The categories that a name such as L or Lu stands for, a bit each; 0: there is no such name. */
uint32_t unicode_category_bits(const char *name, size_t length);

bool unicode_is_space(uint32_t code);
/* A letter, a mark, a digit or a connector: \w. */
bool unicode_is_word(uint32_t code);

/* Whether a text that has this character may not be in normalization form C. */
bool unicode_is_unsafe(uint32_t code);
/* The canonical combining class; 0: the character is a starter. */
unsigned unicode_combining_class(uint32_t code);
/* The canonical decomposition of one step. Returns false where there is none; *second is 0 where it has one character. */
bool unicode_decompose(uint32_t code, uint32_t *first, uint32_t *second);
/* What two characters compose to; 0: nothing. */
uint32_t unicode_compose(uint32_t first, uint32_t second);

/* Takes one character of well-formed UTF-8 and returns its bytes. */
static inline size_t unicode_take(const unsigned char *text, uint32_t *code)
{
    if (text[0] < 0x80) {
        *code = text[0];
        return 1;
    }
    if (text[0] < 0xe0) {
        *code = (uint32_t)(text[0] & 0x1f) << 6 | (text[1] & 0x3f);
        return 2;
    }
    if (text[0] < 0xf0) {
        *code = (uint32_t)(text[0] & 0x0f) << 12 | (uint32_t)(text[1] & 0x3f) << 6 | (text[2] & 0x3f);
        return 3;
    }
    *code = (uint32_t)(text[0] & 0x07) << 18 | (uint32_t)(text[1] & 0x3f) << 12 | (uint32_t)(text[2] & 0x3f) << 6 |
            (text[3] & 0x3f);
    return 4;
}

/* Writes a character as UTF-8 and returns its bytes. */
size_t unicode_put(uint32_t code, unsigned char to[4]);

/* ---- the tables ---- */

/* Starts of runs of code points with the same value: the code point times 256, plus the value. */
extern const uint32_t unicode_category_runs[], unicode_combining_runs[], unicode_unsafe_runs[];
extern const size_t unicode_category_run_count, unicode_combining_run_count, unicode_unsafe_run_count;

typedef struct unicode_decomposition {
    uint32_t code, first, second;
} unicode_decomposition;
extern const unicode_decomposition unicode_decompositions[]; /* by code */
extern const size_t unicode_decomposition_count;
extern const uint16_t unicode_compositions[]; /* decompositions that are composed again, by first and second */
extern const size_t unicode_composition_count;

#endif
