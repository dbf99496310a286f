#include "base/output.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>

void output_begin(output *out, remat_context *context, FILE *stream)
{
    out->context = context;
    out->stream = stream;
    out->status = REMAT_OK;
    out->used = 0;
}

static void flush(output *out)
{
    if (out->status == REMAT_OK && out->used && fwrite(out->buffer, 1, out->used, out->stream) != out->used)
        out->status = remat_fail(out->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    out->used = 0;
}

static void put(output *out, const char *bytes, size_t count)
{
    while (count) {
        if (out->used == sizeof out->buffer)
            flush(out);
        size_t room = sizeof out->buffer - out->used, part = count < room ? count : room;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        count -= part;
    }
}

void output_text(output *out, const char *text)
{
    put(out, text, strlen(text));
}

void output_number(output *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(out, digits + at, sizeof digits - at);
}

/* Escapes what JSON wants and whatever a terminal would act on. A byte that is not UTF-8 becomes U+FFFD. */
void output_quoted(output *out, const char *text)
{
    put(out, "\"", 1);
    while (*text) {
        uint32_t code;
        size_t taken = utf8_take(text, &code);
        if (code == '"' || code == '\\') {
            put(out, "\\", 1);
            put(out, text, 1);
        } else if (utf8_is_control(code)) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", code == UTF8_INVALID ? 0xfffdu : code & 0xffffu);
            put(out, escaped, 6);
        } else {
            put(out, text, taken);
        }
        text += taken;
    }
    put(out, "\"", 1);
}

void output_shown(output *out, const char *text)
{
    while (*text) {
        char shown[UTF8_SHOWN];
        text += utf8_show(text, shown);
        output_text(out, shown);
    }
}

void output_field(output *out, const char *before, const char *key, uint64_t number)
{
    output_text(out, before);
    output_quoted(out, key);
    output_text(out, ": ");
    output_number(out, number);
}

void output_text_field(output *out, const char *before, const char *key, const char *text)
{
    output_text(out, before);
    output_quoted(out, key);
    output_text(out, ": ");
    output_quoted(out, text);
}

remat_status output_end(output *out)
{
    flush(out);
    if (out->status == REMAT_OK && fflush(out->stream) != 0)
        out->status = remat_fail(out->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    return out->status;
}
