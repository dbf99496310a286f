#include "data/tokenizer/token_text.h"

#include "base/alloc.h"

#include <string.h>

static remat_status reserve(remat_context *context, text_buffer *to, size_t count)
{
    if (count > UINT32_MAX - to->length)
        return remat_fail(context, REMAT_INVALID, NULL, "a text of 4 GiB or more is too long to encode in one piece");
    REMAT_TRY(remat_grow(context, (void **)&to->bytes, &to->byte_capacity, to->length + count, 1));
    return remat_grow(context, (void **)&to->origins, &to->origin_capacity, to->length + count, sizeof *to->origins);
}

remat_status text_buffer_put(remat_context *context, text_buffer *to, const void *bytes, size_t count, uint32_t origin)
{
    if (count == 0)
        return REMAT_OK; /* there may be no buffer yet */
    REMAT_TRY(reserve(context, to, count));
    memcpy(to->bytes + to->length, bytes, count);
    for (size_t i = 0; i < count; i++)
        to->origins[to->length + i] = origin;
    to->length += count;
    return REMAT_OK;
}

remat_status text_buffer_copy(remat_context *context, text_buffer *to, const text_span *from, size_t begin, size_t end)
{
    REMAT_TRY(reserve(context, to, end - begin));
    if (end == begin)
        return REMAT_OK;
    memcpy(to->bytes + to->length, from->bytes + begin, end - begin);
    for (size_t i = begin; i < end; i++)
        to->origins[to->length + i - begin] = span_origin(from, i);
    to->length += end - begin;
    return REMAT_OK;
}

void text_buffer_end(remat_context *context, text_buffer *buffer)
{
    remat_release(context, buffer->bytes, buffer->byte_capacity, 1);
    remat_release(context, buffer->origins, buffer->origin_capacity, sizeof *buffer->origins);
    *buffer = (text_buffer){0};
}

text_span text_buffer_span(const text_buffer *buffer)
{
    return (text_span){.bytes = buffer->bytes, .length = buffer->length, .origins = buffer->origins};
}
