#include "data/tokenizer/unicode.h"

#include "base/search.h"

#include <string.h>

enum {
    HANGUL_FIRST = 0xac00,
    HANGUL_COUNT = 11172,
    LEADING = 0x1100,
    LEADING_COUNT = 19,
    VOWEL = 0x1161,
    VOWEL_COUNT = 21,
    TRAILING = 0x11a7,
    TRAILING_COUNT = 28, /* the first stands for none */
};

static unsigned run_value(const uint32_t *runs, size_t count, uint32_t code)
{
    return runs[REMAT_FIRST(i, 1, count, runs[i] >> 8 > code) - 1] & 0xff;
}

unicode_category unicode_category_of(uint32_t code)
{
    return (unicode_category)run_value(unicode_category_runs, unicode_category_run_count, code);
}

uint32_t unicode_category_bits(const char *name, size_t length)
{
    static const char *const names[] = {
#define X(name) #name,
        UNICODE_CATEGORIES(X)
#undef X
    };
    uint32_t bits = 0;
    for (unsigned i = 0; i < UNICODE_CATEGORY_COUNT; i++)
        if ((length == 1 || length == 2) && strncmp(names[i], name, length) == 0)
            bits |= (uint32_t)1 << i;
    return bits;
}

bool unicode_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

bool unicode_is_word(uint32_t code)
{
    static const uint32_t wanted = 1u << UNICODE_Lu | 1u << UNICODE_Ll | 1u << UNICODE_Lt | 1u << UNICODE_Lm |
                                   1u << UNICODE_Lo | 1u << UNICODE_Mn | 1u << UNICODE_Mc | 1u << UNICODE_Me |
                                   1u << UNICODE_Nd | 1u << UNICODE_Nl | 1u << UNICODE_Pc;
    if (code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9))
        return true;
    /* Letters in circles and squares: symbols that are alphabetic. */
    if ((code >= 0x1f130 && code <= 0x1f149) || (code >= 0x1f150 && code <= 0x1f169) ||
        (code >= 0x1f170 && code <= 0x1f189))
        return true;
    return wanted >> unicode_category_of(code) & 1;
}

bool unicode_is_unsafe(uint32_t code)
{
    return code >= 0x300 && run_value(unicode_unsafe_runs, unicode_unsafe_run_count, code);
}

unsigned unicode_combining_class(uint32_t code)
{
    return code < 0x300 ? 0 : run_value(unicode_combining_runs, unicode_combining_run_count, code);
}

bool unicode_decompose(uint32_t code, uint32_t *first, uint32_t *second)
{
    if (code >= HANGUL_FIRST && code < HANGUL_FIRST + HANGUL_COUNT) {
        uint32_t index = code - HANGUL_FIRST, trailing = index % TRAILING_COUNT;
        *first = trailing ? code - trailing : LEADING + index / (VOWEL_COUNT * TRAILING_COUNT);
        *second = trailing ? TRAILING + trailing : VOWEL + index / TRAILING_COUNT % VOWEL_COUNT;
        return true;
    }
    size_t at = REMAT_FIRST(i, 0, unicode_decomposition_count, unicode_decompositions[i].code >= code);
    if (at == unicode_decomposition_count || unicode_decompositions[at].code != code)
        return false;
    *first = unicode_decompositions[at].first;
    *second = unicode_decompositions[at].second;
    return true;
}

static uint32_t compose_hangul(uint32_t first, uint32_t second)
{
    if (first >= LEADING && first < LEADING + LEADING_COUNT && second >= VOWEL && second < VOWEL + VOWEL_COUNT)
        return HANGUL_FIRST + ((first - LEADING) * VOWEL_COUNT + (second - VOWEL)) * TRAILING_COUNT;
    bool open =
        first >= HANGUL_FIRST && first < HANGUL_FIRST + HANGUL_COUNT && (first - HANGUL_FIRST) % TRAILING_COUNT == 0;
    if (open && second > TRAILING && second < TRAILING + TRAILING_COUNT)
        return first + (second - TRAILING);
    return 0;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
    uint32_t hangul = compose_hangul(first, second);
    if (hangul)
        return hangul;
    const unicode_decomposition *all = unicode_decompositions;
    const uint16_t *order = unicode_compositions;
    size_t at =
        REMAT_FIRST(i, 0, unicode_composition_count,
                    all[order[i]].first > first || (all[order[i]].first == first && all[order[i]].second >= second));
    if (at == unicode_composition_count || all[order[at]].first != first || all[order[at]].second != second)
        return 0;
    return all[order[at]].code;
}

size_t unicode_put(uint32_t code, unsigned char to[4])
{
    if (code < 0x80) {
        to[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (unsigned char)(0xc0 | code >> 6);
        to[1] = (unsigned char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (unsigned char)(0xe0 | code >> 12);
        to[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (unsigned char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (unsigned char)(0xf0 | code >> 18);
    to[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (unsigned char)(0x80 | (code & 0x3f));
    return 4;
}
