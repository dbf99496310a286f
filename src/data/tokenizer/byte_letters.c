#include "data/tokenizer/byte_letters.h"

#include "data/tokenizer/unicode.h"

static bool is_visible(uint32_t byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

/* How the others are counted: 0 ... 32, then 127 ... 160, then 173. */
enum { FIRST = 33, SECOND = 34 };

uint32_t byte_letter(unsigned char byte)
{
    if (is_visible(byte))
        return byte;
    return 0x100u + (byte < FIRST ? byte : byte < 0xad ? FIRST + (uint32_t)byte - 127 : FIRST + SECOND);
}

int byte_of_letter(uint32_t code)
{
    if (code < 0x100)
        return is_visible(code) ? (int)code : -1;
    uint32_t at = code - 0x100;
    return at < FIRST ? (int)at : at < FIRST + SECOND ? (int)(at - FIRST + 127) : at == FIRST + SECOND ? 0xad : -1;
}

bool byte_letters_to_bytes(const char *text, size_t length, unsigned char *bytes, size_t *count)
{
    *count = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code;
        at += unicode_take((const unsigned char *)text + at, &code);
        int byte = byte_of_letter(code);
        if (byte < 0)
            return false;
        bytes[(*count)++] = (unsigned char)byte;
    }
    return true;
}
