#include "base/share.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EXPONENT = 1000 };

bool remat_share_parse(const char *text, uint64_t *billionths)
{
    size_t whole = strspn(text, "0123456789"), length = strspn(text, "0123456789."), digits = 0;
    char *end = (char *)(uintptr_t)(text + length);
    long power = (long)whole + 8; /* of the next digit, in billionths */
    bool too_much = false, cut_off = false;
    if (*end == 'e' || *end == 'E') {
        const char *digit = text + length + 1;
        digit += *digit == '+' || *digit == '-';
        if (*digit < '0' || *digit > '9') /* strtol skips blanks as well */
            return false;
        long exponent = strtol(text + length + 1, &end, 10);
        power += exponent < -MOST_EXPONENT ? -MOST_EXPONENT : exponent > MOST_EXPONENT ? MOST_EXPONENT : exponent;
    }
    *billionths = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (i == whole) /* the point; a second one is no digit */
            continue;
        if (digit > 9)
            return false;
        for (long zeros = 0; zeros < power && power <= 9; zeros++)
            digit *= 10;
        too_much = too_much || (digit > 0 && power > 9);
        cut_off = cut_off || (digit > 0 && power < 0);
        *billionths += power < 0 ? 0 : digit;
        power--;
        digits++;
    }
    return digits > 0 && *end == '\0' && !too_much &&
           (*billionths < REMAT_SHARE_ONE || (*billionths == REMAT_SHARE_ONE && !cut_off));
}
