/* Normalization form C. Most of any text is in this form already. Only what is around a character that may change is
 * decomposed, put in order and composed: from the character before it to the next one that nothing combines with. */
#include "data/tokenizer/token_text.h"

#include "base/alloc.h"
#include "data/tokenizer/unicode.h"

/* A character with its combining class. */
typedef struct nfc_mark {
    uint32_t code, origin;
    unsigned class;
} nfc_mark;

typedef struct nfc_run {
    remat_context *context;
    nfc_mark *marks;
    size_t count, capacity;
} nfc_run;

static remat_status add_mark(nfc_run *run, uint32_t code, uint32_t origin)
{
    REMAT_TRY(remat_grow(run->context, (void **)&run->marks, &run->capacity, run->count + 1, sizeof *run->marks));
    run->marks[run->count++] = (nfc_mark){code, origin, unicode_combining_class(code)};
    return REMAT_OK;
}

/* A decomposition is at most a few characters long, each first character decomposes further. */
static remat_status add_decomposed(nfc_run *run, uint32_t code, uint32_t origin)
{
    uint32_t behind[8], first, second;
    size_t count = 0;
    while (count < sizeof behind / sizeof behind[0] && unicode_decompose(code, &first, &second)) {
        if (second)
            behind[count++] = second;
        code = first;
    }
    REMAT_TRY(add_mark(run, code, origin));
    while (count)
        REMAT_TRY(add_mark(run, behind[--count], origin));
    return REMAT_OK;
}

/* Sorts marks between starters by class, keeping the order of equal ones. */
static remat_status put_in_order(nfc_run *run)
{
    for (size_t begin = 0; begin < run->count;) {
        size_t end = begin + 1;
        while (end < run->count && run->marks[end].class)
            end++;
        size_t first = run->marks[begin].class ? begin : begin + 1;
        /* By counting: a hostile text has a million marks behind one letter. */
        size_t places[257] = {0};
        for (size_t i = first; i < end; i++)
            places[run->marks[i].class + 1]++;
        bool sorted = true;
        for (size_t i = first + 1; i < end; i++)
            sorted = sorted && run->marks[i - 1].class <= run->marks[i].class;
        if (!sorted) {
            for (size_t class = 0; class < 256; class ++)
                places[class + 1] += places[class];
            nfc_mark *copy = remat_alloc(run->context, end - first, sizeof *copy);
            if (!copy)
                return REMAT_NO_MEMORY;
            for (size_t i = first; i < end; i++)
                copy[places[run->marks[i].class]++] = run->marks[i];
            for (size_t i = first; i < end; i++)
                run->marks[i] = copy[i - first];
            remat_release(run->context, copy, end - first, sizeof *copy);
        }
        begin = end;
    }
    return REMAT_OK;
}

static void compose(nfc_run *run)
{
    size_t starter = SIZE_MAX, kept = 0;
    unsigned last = 0; /* the class of what is kept behind the starter; 0: nothing is */
    for (size_t i = 0; i < run->count; i++) {
        nfc_mark mark = run->marks[i];
        bool is_next = starter != SIZE_MAX && kept == starter + 1;
        bool is_blocked = starter == SIZE_MAX || (!is_next && last >= mark.class);
        uint32_t composed = is_blocked ? 0 : unicode_compose(run->marks[starter].code, mark.code);
        if (composed) {
            run->marks[starter].code = composed;
            continue;
        }
        if (mark.class == 0)
            starter = kept;
        last = mark.class;
        run->marks[kept++] = mark;
    }
    run->count = kept;
}

static remat_status normalize_run(nfc_run *run, const text_span *from, size_t begin, size_t end, text_buffer *to)
{
    run->count = 0;
    for (size_t at = begin; at < end;) {
        uint32_t code, origin = span_origin(from, at);
        at += unicode_take(from->bytes + at, &code);
        REMAT_TRY(add_decomposed(run, code, origin));
    }
    REMAT_TRY(put_in_order(run));
    compose(run);
    uint32_t origin = 0; /* marks that changed their order are taken to begin at the last of them: origins never fall */
    for (size_t i = 0; i < run->count; i++) {
        unsigned char bytes[4];
        size_t count = unicode_put(run->marks[i].code, bytes);
        origin = run->marks[i].origin > origin ? run->marks[i].origin : origin;
        REMAT_TRY(text_buffer_put(run->context, to, bytes, count, origin));
    }
    return REMAT_OK;
}

/* The next character that may change; *starter is the one before it, where a run begins. */
static size_t find_unsafe(const text_span *from, size_t at, size_t *starter)
{
    *starter = at;
    while (at < from->length) {
        uint32_t code;
        size_t bytes = unicode_take(from->bytes + at, &code);
        if (code >= 0x300 && unicode_is_unsafe(code))
            return at;
        *starter = at;
        at += bytes;
    }
    return at;
}

static size_t find_safe(const text_span *from, size_t at)
{
    while (at < from->length) {
        uint32_t code;
        size_t bytes = unicode_take(from->bytes + at, &code);
        if (!unicode_is_unsafe(code))
            break;
        at += bytes;
    }
    return at;
}

static remat_status normalize(nfc_run *run, const text_span *from, size_t unsafe, size_t starter, text_buffer *to)
{
    size_t at = 0;
    while (unsafe < from->length) {
        size_t end = find_safe(from, unsafe);
        REMAT_TRY(text_buffer_copy(run->context, to, from, at, starter));
        REMAT_TRY(normalize_run(run, from, starter, end, to));
        at = end;
        unsafe = find_unsafe(from, at, &starter);
    }
    return text_buffer_copy(run->context, to, from, at, from->length);
}

remat_status text_nfc(remat_context *context, const text_span *from, text_buffer *to, bool *changed)
{
    size_t starter, unsafe = find_unsafe(from, 0, &starter);
    *changed = unsafe < from->length;
    if (!*changed)
        return REMAT_OK;
    nfc_run run = {.context = context};
    remat_status status = normalize(&run, from, unsafe, starter, to);
    remat_release(context, run.marks, run.capacity, sizeof *run.marks);
    return status;
}
