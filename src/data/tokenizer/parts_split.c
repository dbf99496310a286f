#include "data/tokenizer/token_part.h"

#include "base/alloc.h"

#include <string.h>

/* What all parts of the list see. */
typedef struct splitting {
    remat_context *context;
    part_list *list;
    word_fn take;
    void *user;
} splitting;

static remat_status split_on(const splitting *with, size_t which, const text_span *text);

static remat_status pass_on(const splitting *with, size_t which, const text_span *text, size_t begin, size_t end)
{
    text_span part = span_part(text, begin, end);
    return begin == end ? REMAT_OK : split_on(with, which + 1, &part);
}

/* ---- patterns ---- */

/* Pieces of a text, of which some match. One waits until it is known whether the next joins it. */
typedef struct pieces {
    const splitting *with;
    size_t which;
    const text_span *text;
    size_t begin, end; /* of the piece that waits */
    bool waits, matched;
} pieces;

static remat_status flush(pieces *of)
{
    bool waits = of->waits;
    of->waits = false;
    return waits ? pass_on(of->with, of->which, of->text, of->begin, of->end) : REMAT_OK;
}

/* Whether a piece joins the one before it. */
static bool joins(split_behavior behavior, bool before, bool now)
{
    switch (behavior) {
    case SPLIT_MERGED_WITH_PREVIOUS: return now && !before;
    case SPLIT_MERGED_WITH_NEXT: return before && !now;
    case SPLIT_CONTIGUOUS: return before == now;
    default: return false;
    }
}

static remat_status add_piece(pieces *of, split_behavior behavior, size_t begin, size_t end, bool matched)
{
    if (begin == end)
        return REMAT_OK;
    if (of->waits && joins(behavior, of->matched, matched)) {
        of->end = end;
        of->matched = matched;
        return REMAT_OK;
    }
    REMAT_TRY(flush(of));
    if (matched && behavior == SPLIT_REMOVED)
        return REMAT_OK;
    of->waits = true;
    of->begin = begin;
    of->end = end;
    of->matched = matched;
    return REMAT_OK;
}

static remat_status split_pattern_at(const splitting *with, size_t which, const text_span *text)
{
    const token_part *part = &with->list->parts[which];
    pattern_search search = split_pattern_begin(text->bytes, text->length);
    pieces of = {.with = with, .which = which, .text = text};
    for (size_t at = 0, start, end; at < text->length; at = end) {
        REMAT_TRY(split_pattern_find(part->pattern, &search, at, &start, &end));
        REMAT_TRY(add_piece(&of, part->behavior, at, start, part->invert));
        REMAT_TRY(add_piece(&of, part->behavior, start, end, !part->invert));
    }
    return flush(&of);
}

/* ---- marks of blanks ---- */

/* The bytes of a mark at `at`; 0: none. */
static size_t mark_at(const text_span *text, size_t at, const char *mark, size_t bytes)
{
    return text->length - at >= bytes && memcmp(text->bytes + at, mark, bytes) == 0 ? bytes : 0;
}

/* Copies the text with marks for blanks, and one in front where it is wanted. */
static remat_status put_marks(remat_context *context, token_part *part, const text_span *text)
{
    size_t mark = strlen(part->content);
    part->buffer.length = 0;
    bool is_first = part->scheme == PREPEND_ALWAYS || (part->scheme == PREPEND_FIRST && span_origin(text, 0) == 0);
    if (is_first && text->bytes[0] != ' ' && !mark_at(text, 0, part->content, mark))
        REMAT_TRY(text_buffer_put(context, &part->buffer, part->content, mark, span_origin(text, 0)));
    for (size_t at = 0; at < text->length;) {
        const unsigned char *blank = memchr(text->bytes + at, ' ', text->length - at);
        size_t end = blank ? (size_t)(blank - text->bytes) : text->length;
        REMAT_TRY(text_buffer_copy(context, &part->buffer, text, at, end));
        if (blank)
            REMAT_TRY(text_buffer_put(context, &part->buffer, part->content, mark, span_origin(text, end)));
        at = end + (blank != NULL);
    }
    return REMAT_OK;
}

static remat_status split_metaspace(const splitting *with, size_t which, const text_span *text)
{
    token_part *part = &with->list->parts[which];
    REMAT_TRY(put_marks(with->context, part, text));
    text_span marked = text_buffer_span(&part->buffer);
    if (!part->splits)
        return pass_on(with, which, &marked, 0, marked.length);
    size_t mark = strlen(part->content), begin = 0;
    pieces of = {.with = with, .which = which, .text = &marked};
    for (size_t at = 0, bytes; at < marked.length; at += bytes ? bytes : 1) {
        bytes = mark_at(&marked, at, part->content, mark);
        if (bytes == 0)
            continue;
        REMAT_TRY(add_piece(&of, SPLIT_MERGED_WITH_NEXT, begin, at, false));
        REMAT_TRY(add_piece(&of, SPLIT_MERGED_WITH_NEXT, at, at + bytes, true));
        begin = at + bytes;
    }
    REMAT_TRY(add_piece(&of, SPLIT_MERGED_WITH_NEXT, begin, marked.length, false));
    return flush(&of);
}

/* ---- bytes ---- */

static remat_status split_byte_level(const splitting *with, size_t which, const text_span *text)
{
    token_part *part = &with->list->parts[which];
    text_span changed = *text;
    if (part->add_prefix_space && text->bytes[0] != ' ') {
        part->buffer.length = 0;
        REMAT_TRY(text_buffer_put(with->context, &part->buffer, " ", 1, span_origin(text, 0)));
        REMAT_TRY(text_buffer_copy(with->context, &part->buffer, text, 0, text->length));
        changed = text_buffer_span(&part->buffer);
    }
    return part->pattern ? split_pattern_at(with, which, &changed) : pass_on(with, which, &changed, 0, changed.length);
}

/* A text, which is not empty, at part number `which`. */
static remat_status split_on(const splitting *with, size_t which, const text_span *text)
{
    if (which == with->list->count)
        return with->take(with->user, text);
    switch (with->list->parts[which].kind) {
    case PART_SPLIT: return split_pattern_at(with, which, text);
    case PART_METASPACE: return split_metaspace(with, which, text);
    case PART_BYTE_LEVEL: return split_byte_level(with, which, text);
    default: return remat_fail(with->context, REMAT_INTERNAL, NULL, "a tokenizer's pre-tokenizer is none");
    }
}

remat_status parts_split(remat_context *context, part_list *list, text_span from, word_fn take, void *user)
{
    const splitting with = {context, list, take, user};
    return from.length ? split_on(&with, 0, &from) : REMAT_OK;
}
