#include "base/utf8.h"

#include <stdint.h>

bool remat_utf8_valid(const char *text)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned first = *at++;
        if (first < 0x80)
            continue;
        if (first < 0xc2 || first > 0xf4)
            return false;
        int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        uint32_t code = first & (0x3fu >> more);
        for (int i = 0; i < more; i++, at++) {
            if ((*at & 0xc0) != 0x80)
                return false;
            code = code << 6 | (*at & 0x3fu);
        }
        if (code < smallest[more] || code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}
