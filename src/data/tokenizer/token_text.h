/* Pieces of a text on their way to tokens. Normalizers change the text; every byte still knows where in the original text it
 * came from. */
#ifndef REMAT_DATA_TOKENIZER_TOKEN_TEXT_H
#define REMAT_DATA_TOKENIZER_TOKEN_TEXT_H

#include <stdbool.h>

#include "base/error.h"

/* A part of a text that belongs to someone else. */
typedef struct text_span {
    const unsigned char *bytes;
    size_t length;
    const uint32_t *origins; /* of each byte; NULL: they are base, base + 1, ... */
    uint32_t base;
} text_span;

static inline uint32_t span_origin(const text_span *span, size_t at)
{
    return span->origins ? span->origins[at] : span->base + (uint32_t)at;
}

static inline text_span span_part(const text_span *span, size_t begin, size_t end)
{
    return (text_span){.bytes = span->bytes + begin,
                       .length = end - begin,
                       .origins = span->origins ? span->origins + begin : NULL,
                       .base = span->base + (uint32_t)begin};
}

/* A text that is being written. A struct of zeros is an empty one. */
typedef struct text_buffer {
    unsigned char *bytes;
    uint32_t *origins;
    size_t length, byte_capacity, origin_capacity;
} text_buffer;

/* Appends bytes that all come from one place; and a part of a span as it is. */
remat_status text_buffer_put(remat_context *context, text_buffer *to, const void *bytes, size_t count, uint32_t origin);
remat_status text_buffer_copy(remat_context *context, text_buffer *to, const text_span *from, size_t begin, size_t end);
void text_buffer_end(remat_context *context, text_buffer *buffer);

/* All that was written. */
text_span text_buffer_span(const text_buffer *buffer);

/* Appends the span in Unicode's normalization form C. *changed false: it is in that form already, and nothing was
 * appended. */
remat_status text_nfc(remat_context *context, const text_span *from, text_buffer *to, bool *changed);

#endif
