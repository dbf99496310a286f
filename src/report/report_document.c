#include "report/report_document.h"

#include "base/alloc.h"
#include "base/number_text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void document_clear(report_document *document)
{
    remat_release(document->context, document->bytes, document->capacity, 1);
    *document = (report_document){.context = document->context};
}

static void put(report_document *document, const char *bytes, size_t count)
{
    if (document->status != REMAT_OK)
        return;
    void *room = document->bytes;
    document->status = remat_grow(document->context, &room, &document->capacity, document->used + count, 1);
    document->bytes = room;
    if (document->status != REMAT_OK)
        return;
    memcpy(document->bytes + document->used, bytes, count);
    document->used += count;
}

static void put_text(report_document *document, const char *text)
{
    put(document, text, strlen(text));
}

/* The document stands inside a <script> element, which ends at the first "</script": no '<' is left as it is. */
static void put_quoted(report_document *document, const char *text)
{
    put(document, "\"", 1);
    while (*text) {
        uint32_t code;
        size_t taken = utf8_take(text, &code);
        if (utf8_is_control(code) || code == '"' || code == '\\' || code == '<') {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", code == UTF8_INVALID ? 0xfffdu : code & 0xffffu);
            put(document, escaped, 6);
        } else {
            put(document, text, taken);
        }
        text += taken;
    }
    put(document, "\"", 1);
}

static void put_key(report_document *document, const char *key)
{
    if (document->comma)
        put(document, ",", 1);
    document->comma = true;
    if (key) {
        put_quoted(document, key);
        put(document, ":", 1);
    }
}

void document_open(report_document *document, const char *key, char bracket)
{
    put_key(document, key);
    put(document, &bracket, 1);
    document->comma = false;
}

void document_close(report_document *document, char bracket)
{
    put(document, &bracket, 1);
    document->comma = true;
}

void document_number(report_document *document, const char *key, uint64_t number)
{
    char digits[24];
    put_key(document, key);
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    put_text(document, digits);
}

void document_real(report_document *document, const char *key, double number)
{
    char digits[40];
    put_key(document, key);
    text_print(digits, sizeof digits, "%.9g", number);
    put_text(document, isfinite(number) ? digits : "null");
}

void document_text(report_document *document, const char *key, const char *text)
{
    put_key(document, key);
    put_quoted(document, text);
}

void document_bool(report_document *document, const char *key, bool value)
{
    put_key(document, key);
    put_text(document, value ? "true" : "false");
}

void document_letters_begin(report_document *document, const char *key)
{
    put_key(document, key);
    put(document, "\"", 1);
}

void document_letter(report_document *document, char letter)
{
    put(document, &letter, 1);
}

void document_letters_end(report_document *document)
{
    put(document, "\"", 1);
}

void report_write_holds(report_document *to, const report_hold *rows, size_t count)
{
    document_open(to, "holds", '{');
    document_open(to, "rows", '[');
    for (size_t i = 0; i < count; i++) {
        document_open(to, NULL, '{');
        document_text(to, "what", rows[i].what);
        document_number(to, "bytes", rows[i].bytes);
        document_close(to, '}');
    }
    document_close(to, ']');
    document_close(to, '}');
}

static void write_phase(report_document *to, const char *name, size_t step)
{
    if (step == SIZE_MAX)
        return;
    document_open(to, NULL, '[');
    document_text(to, NULL, name);
    document_number(to, NULL, step);
    document_close(to, ']');
}

void report_write_phases(report_document *to, size_t loss, size_t backward)
{
    document_open(to, "phases", '[');
    write_phase(to, "forward", 0);
    write_phase(to, "loss", loss);
    write_phase(to, "backward", backward);
    document_close(to, ']');
}
