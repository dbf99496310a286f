#include "data/tokenizer/token_part.h"

#include "base/alloc.h"

#include <string.h>

void part_list_end(remat_context *context, part_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        split_pattern_destroy(list->parts[i].pattern);
        remat_text_release(context, list->parts[i].content);
        text_buffer_end(context, &list->parts[i].buffer);
    }
    remat_release(context, list->parts, list->capacity, sizeof *list->parts);
    *list = (part_list){0};
}

static remat_status replace(remat_context *context, token_part *part, const text_span *from)
{
    pattern_search search = split_pattern_begin(from->bytes, from->length);
    size_t content = strlen(part->content);
    for (size_t at = 0, start, end; at < from->length; at = end) {
        REMAT_TRY(split_pattern_find(part->pattern, &search, at, &start, &end));
        REMAT_TRY(text_buffer_copy(context, &part->buffer, from, at, start));
        if (start < from->length)
            REMAT_TRY(text_buffer_put(context, &part->buffer, part->content, content, span_origin(from, start)));
    }
    return REMAT_OK;
}

static remat_status normalize_part(remat_context *context, token_part *part, text_span *text)
{
    bool changed = true;
    part->buffer.length = 0;
    switch (part->kind) {
    case PART_NFC: REMAT_TRY(text_nfc(context, text, &part->buffer, &changed)); break;
    case PART_PREPEND:
        changed = text->length > 0;
        if (changed) {
            REMAT_TRY(
                text_buffer_put(context, &part->buffer, part->content, strlen(part->content), span_origin(text, 0)));
            REMAT_TRY(text_buffer_copy(context, &part->buffer, text, 0, text->length));
        }
        break;
    case PART_REPLACE: REMAT_TRY(replace(context, part, text)); break;
    default: return remat_fail(context, REMAT_INTERNAL, NULL, "a tokenizer's normalizer is none");
    }
    if (changed)
        *text = text_buffer_span(&part->buffer);
    return REMAT_OK;
}

remat_status parts_normalize(remat_context *context, part_list *list, text_span from, text_span *normalized)
{
    *normalized = from;
    for (size_t i = 0; i < list->count; i++)
        REMAT_TRY(normalize_part(context, &list->parts[i], normalized));
    return REMAT_OK;
}
