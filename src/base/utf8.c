#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#include <remat/units.h>

size_t utf8_take(const char *text, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    unsigned first = *at++;
    *code = first;
    if (first < 0x80)
        return 1;
    *code = UTF8_INVALID;
    if (first < 0xc2 || first > 0xf4)
        return 1;
    unsigned more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    uint32_t found = first & (0x3fu >> more);
    for (unsigned i = 0; i < more; i++, at++) {
        if ((*at & 0xc0) != 0x80)
            return 1;
        found = found << 6 | (*at & 0x3fu);
    }
    if (found < smallest[more] || found >= 0x110000 || (found >= 0xd800 && found < 0xe000))
        return 1;
    *code = found;
    return more + 1;
}

bool remat_utf8_valid(const char *text)
{
    for (uint32_t code; *text;) {
        text += utf8_take(text, &code);
        if (code == UTF8_INVALID)
            return false;
    }
    return true;
}

bool utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == UTF8_INVALID;
}

size_t utf8_show(const char *text, char shown[UTF8_SHOWN])
{
    static const char letters[] = "\n\t\r", names[] = "ntr";
    uint32_t code;
    size_t taken = utf8_take(text, &code);
    const char *letter = code < 0x80 ? strchr(letters, (int)code) : NULL;
    if (!utf8_is_control(code)) {
        memcpy(shown, text, taken);
        shown[taken] = '\0';
    } else if (letter)
        snprintf(shown, UTF8_SHOWN, "\\%c", names[letter - letters]);
    else if (code >= 0x80 && code != UTF8_INVALID)
        snprintf(shown, UTF8_SHOWN, "\\u%04x", code & 0xffffu);
    else
        snprintf(shown, UTF8_SHOWN, "\\x%02x", (unsigned)(unsigned char)*text);
    return taken;
}

size_t remat_text_escape(const char *text, char *to, size_t room)
{
    size_t length = 0, written = 0;
    bool full = room == 0;
    while (*text) {
        char shown[UTF8_SHOWN];
        text += utf8_show(text, shown);
        size_t bytes = strlen(shown);
        length += bytes;
        full = full || written + bytes >= room; /* no character and no escape is written in part */
        if (full)
            continue;
        memcpy(to + written, shown, bytes);
        written += bytes;
    }
    if (room)
        to[written] = '\0';
    return length;
}
