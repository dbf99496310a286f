#include "data/pickle.h"

#include "base/alloc.h"

#include <string.h>

/* A place of the stack where a tuple, list or dictionary begins. */
#define MARK PICKLE_NONE

typedef struct reading {
    pickle *made;
    const unsigned char *bytes;
    size_t at, count;
    const remat_place *place;
} reading;

static remat_status damaged(const reading *r, const char *what)
{
    return remat_fail(r->made->context, REMAT_BAD_INPUT, r->place, "the pickle is damaged at byte %zu: %s", r->at,
                      what);
}

/* ---- values, items and the stack ---- */

static remat_status add_value(reading *r, pickle_value value, uint32_t *number)
{
    pickle *made = r->made;
    if (made->value_count >= PICKLE_NONE - 1)
        return damaged(r, "it has too many values");
    REMAT_TRY(remat_grow(made->context, (void **)&made->values, &made->value_capacity, made->value_count + 1,
                         sizeof *made->values));
    made->values[made->value_count] = value;
    *number = (uint32_t)made->value_count++;
    return REMAT_OK;
}

static remat_status add_item(reading *r, uint32_t owner, uint32_t key, uint32_t value)
{
    pickle *made = r->made;
    if (made->item_count >= PICKLE_NONE - 1)
        return damaged(r, "it has too many values");
    REMAT_TRY(remat_grow(made->context, (void **)&made->items, &made->item_capacity, made->item_count + 1,
                         sizeof *made->items));
    const uint32_t number = (uint32_t)made->item_count++;
    made->items[number] = (pickle_item){key, value, PICKLE_NONE};
    pickle_value *whole = &made->values[owner];
    if (whole->first == PICKLE_NONE)
        whole->first = number;
    else
        made->items[whole->last].next = number;
    whole->last = number;
    return REMAT_OK;
}

static remat_status push(reading *r, uint32_t value)
{
    pickle *made = r->made;
    REMAT_TRY(remat_grow(made->context, (void **)&made->stack, &made->stack_capacity, made->stack_count + 1,
                         sizeof *made->stack));
    made->stack[made->stack_count++] = value;
    return REMAT_OK;
}

static remat_status push_new(reading *r, pickle_value value)
{
    uint32_t number = 0;
    value.first = value.last = PICKLE_NONE;
    REMAT_TRY(add_value(r, value, &number));
    return push(r, number);
}

static remat_status pop(reading *r, uint32_t *value)
{
    pickle *made = r->made;
    if (made->stack_count == 0 || made->stack[made->stack_count - 1] == MARK)
        return damaged(r, "a value is missing");
    *value = made->stack[--made->stack_count];
    return REMAT_OK;
}

/* Where the values behind the last mark begin. */
static remat_status find_mark(const reading *r, size_t *first)
{
    for (size_t i = r->made->stack_count; i-- > 0;)
        if (r->made->stack[i] == MARK) {
            *first = i + 1;
            return REMAT_OK;
        }
    return damaged(r, "a mark is missing");
}

/* ---- bytes ---- */

static remat_status take(reading *r, uint64_t bytes, const unsigned char **at)
{
    if (bytes > r->count - r->at)
        return damaged(r, "it ends too early");
    *at = r->bytes + r->at;
    r->at += (size_t)bytes;
    return REMAT_OK;
}

/* A little-endian number of up to 8 bytes. */
static remat_status take_number(reading *r, unsigned bytes, uint64_t *number)
{
    const unsigned char *at = NULL;
    REMAT_TRY(take(r, bytes, &at));
    *number = 0;
    for (unsigned i = bytes; i-- > 0;)
        *number = *number << 8 | at[i];
    return REMAT_OK;
}

/* A text whose length stands before it, in so many bytes. */
static remat_status push_text(reading *r, unsigned length_bytes, pickle_kind kind)
{
    uint64_t length = 0;
    const unsigned char *at = NULL;
    REMAT_TRY(take_number(r, length_bytes, &length));
    REMAT_TRY(take(r, length, &at));
    if (length > UINT32_MAX)
        return damaged(r, "a text is too long");
    return push_new(r, (pickle_value){.kind = kind, .text = (const char *)at, .length = (uint32_t)length});
}

/* "module\nname\n", kept as it stands without the last newline. */
static remat_status push_global(reading *r)
{
    const unsigned char *start = r->bytes + r->at;
    size_t ends = 0, length = 0;
    while (ends < 2) {
        const unsigned char *letter = NULL;
        REMAT_TRY(take(r, 1, &letter));
        ends += *letter == '\n';
        length++;
    }
    if (length > UINT32_MAX)
        return damaged(r, "a text is too long");
    return push_new(r,
                    (pickle_value){.kind = PICKLE_GLOBAL, .text = (const char *)start, .length = (uint32_t)length - 1});
}

/* An integer of any length; only those that fit are numbers for us. */
static remat_status push_long(reading *r, unsigned length_bytes)
{
    uint64_t length = 0, number = 0;
    REMAT_TRY(take_number(r, length_bytes, &length));
    if (length > 8) {
        const unsigned char *skipped = NULL;
        REMAT_TRY(take(r, length, &skipped));
        return push_new(r, (pickle_value){.kind = PICKLE_OTHER});
    }
    REMAT_TRY(take_number(r, (unsigned)length, &number));
    const unsigned shift = 64 - 8 * (unsigned)length;
    const int64_t value = length ? (int64_t)(number << shift) >> shift : 0;
    return push_new(r, (pickle_value){.kind = PICKLE_INTEGER, .integer = value});
}

static remat_status push_integer(reading *r, unsigned bytes)
{
    uint64_t number = 0;
    REMAT_TRY(take_number(r, bytes, &number));
    const int64_t value = bytes == 4 ? (int32_t)(uint32_t)number : (int64_t)number;
    return push_new(r, (pickle_value){.kind = PICKLE_INTEGER, .integer = value});
}

static remat_status skip(reading *r, unsigned bytes, bool pushes)
{
    const unsigned char *at = NULL;
    REMAT_TRY(take(r, bytes, &at));
    return pushes ? push_new(r, (pickle_value){.kind = PICKLE_OTHER}) : REMAT_OK;
}

/* ---- what is made of other values ---- */

/* A tuple of the last `count` values. */
static remat_status push_tuple(reading *r, size_t first)
{
    pickle *made = r->made;
    uint32_t tuple = 0;
    const size_t end = made->stack_count;
    for (size_t i = first; i < end; i++)
        if (made->stack[i] == MARK)
            return damaged(r, "a value is missing");
    REMAT_TRY(add_value(r, (pickle_value){.kind = PICKLE_SEQUENCE, .first = PICKLE_NONE, .last = PICKLE_NONE}, &tuple));
    for (size_t i = first; i < end; i++)
        REMAT_TRY(add_item(r, tuple, PICKLE_NONE, made->stack[i]));
    made->stack_count = first;
    return push(r, tuple);
}

static remat_status push_last(reading *r, size_t count)
{
    return count > r->made->stack_count ? damaged(r, "a value is missing")
                                        : push_tuple(r, r->made->stack_count - count);
}

static remat_status push_marked(reading *r)
{
    size_t first = 0;
    REMAT_TRY(find_mark(r, &first));
    REMAT_TRY(push_tuple(r, first));
    /* The mark under the tuple goes. */
    r->made->stack[first - 1] = r->made->stack[first];
    r->made->stack_count = first;
    return REMAT_OK;
}

/* Adds the values from `first` on to the list or dictionary below. */
static remat_status add_to(reading *r, size_t first, size_t below, bool pairs)
{
    pickle *made = r->made;
    if (below == 0 || made->stack[below - 1] == MARK || (pairs && (made->stack_count - first) % 2))
        return damaged(r, "a value is missing");
    const uint32_t owner = made->stack[below - 1];
    const pickle_kind kind = made->values[owner].kind;
    const bool fits = kind == (pairs ? PICKLE_DICT : PICKLE_SEQUENCE);
    for (size_t i = first; fits && i < made->stack_count; i += pairs ? 2 : 1) {
        const uint32_t last = made->stack[pairs ? i + 1 : i];
        if (made->stack[i] == MARK || last == MARK)
            return damaged(r, "a value is missing");
        REMAT_TRY(add_item(r, owner, pairs ? made->stack[i] : PICKLE_NONE, last));
    }
    made->stack_count = below;
    return REMAT_OK;
}

static remat_status add_marked(reading *r, bool pairs)
{
    size_t first = 0;
    REMAT_TRY(find_mark(r, &first));
    return add_to(r, first, first - 1, pairs);
}

static remat_status add_last(reading *r, bool pairs)
{
    const size_t count = pairs ? 2 : 1, all = r->made->stack_count;
    return all < count ? damaged(r, "a value is missing") : add_to(r, all - count, all - count, pairs);
}

/* A function and its arguments. Of those that torch.save uses, what they would make. */
static remat_status call(reading *r)
{
    uint32_t arguments = 0, function = 0;
    REMAT_TRY(pop(r, &arguments));
    REMAT_TRY(pop(r, &function));
    const pickle_value *named = &r->made->values[function], *given = &r->made->values[arguments];
    if (named->kind != PICKLE_GLOBAL || given->kind != PICKLE_SEQUENCE)
        return push_new(r, (pickle_value){.kind = PICKLE_OTHER});
    if (pickle_is(named, "collections\nOrderedDict"))
        return push_new(r, (pickle_value){.kind = PICKLE_DICT});
    if (pickle_is(named, "torch._utils\n_rebuild_parameter") && given->first != PICKLE_NONE)
        return push(r, r->made->items[given->first].value);
    uint32_t made = 0;
    const pickle_value value = {
        .kind = PICKLE_CALL, .text = named->text, .length = named->length, .first = given->first, .last = given->last};
    REMAT_TRY(add_value(r, value, &made));
    return push(r, made);
}

static remat_status push_storage(reading *r)
{
    uint32_t id = 0, made = 0;
    REMAT_TRY(pop(r, &id));
    pickle_value value = r->made->values[id];
    value.kind = value.kind == PICKLE_SEQUENCE ? PICKLE_STORAGE : PICKLE_OTHER;
    REMAT_TRY(add_value(r, value, &made));
    return push(r, made);
}

/* Two values, of which only the first stays. */
static remat_status drop_state(reading *r)
{
    uint32_t state = 0;
    return pop(r, &state);
}

static remat_status push_object(reading *r)
{
    uint32_t arguments = 0, class = 0;
    REMAT_TRY(pop(r, &arguments));
    REMAT_TRY(pop(r, &class));
    return push_new(r, (pickle_value){.kind = PICKLE_OTHER});
}

/* ---- the memo ---- */

static remat_status remember(reading *r, uint64_t number)
{
    pickle *made = r->made;
    if (made->stack_count == 0 || made->stack[made->stack_count - 1] == MARK)
        return damaged(r, "a value is missing");
    if (number > made->memo_count) /* they are numbered one after the other */
        return damaged(r, "a value has the wrong number");
    if (number == made->memo_count) {
        REMAT_TRY(remat_grow(made->context, (void **)&made->memo, &made->memo_capacity, made->memo_count + 1,
                             sizeof *made->memo));
        made->memo_count++;
    }
    made->memo[number] = made->stack[made->stack_count - 1];
    return REMAT_OK;
}

static remat_status remember_as(reading *r, unsigned bytes)
{
    uint64_t number = 0;
    REMAT_TRY(take_number(r, bytes, &number));
    return remember(r, number);
}

static remat_status recall(reading *r, unsigned bytes)
{
    uint64_t number = 0;
    REMAT_TRY(take_number(r, bytes, &number));
    if (number >= r->made->memo_count)
        return damaged(r, "a value is recalled that is not there");
    return push(r, r->made->memo[number]);
}

/* ---- the whole ---- */

static remat_status push_flag(reading *r, bool flag)
{
    return push_new(r, (pickle_value){.kind = PICKLE_INTEGER, .integer = flag});
}

static remat_status do_code(reading *r, unsigned char code)
{
    switch (code) {
    case 0x80: return skip(r, 1, false); /* the protocol */
    case 0x95: return skip(r, 8, false); /* a frame */
    case '(': return push(r, MARK);
    case 'N': return skip(r, 0, true);
    case 'G': return skip(r, 8, true); /* a double */
    case 0x88: return push_flag(r, true);
    case 0x89: return push_flag(r, false);
    case 'J': return push_integer(r, 4);
    case 'K': return push_integer(r, 1);
    case 'M': return push_integer(r, 2);
    case 0x8a: return push_long(r, 1);
    case 0x8b: return push_long(r, 4);
    case 'X': return push_text(r, 4, PICKLE_TEXT);
    case 0x8c: return push_text(r, 1, PICKLE_TEXT);
    case 0x8d: return push_text(r, 8, PICKLE_TEXT);
    case 'U': return push_text(r, 1, PICKLE_TEXT);
    case 'T': return push_text(r, 4, PICKLE_TEXT);
    case 'B': return push_text(r, 4, PICKLE_OTHER);
    case 'C': return push_text(r, 1, PICKLE_OTHER);
    case 'c': return push_global(r);
    case ')': return push_last(r, 0);
    case 0x85: return push_last(r, 1);
    case 0x86: return push_last(r, 2);
    case 0x87: return push_last(r, 3);
    case 't': return push_marked(r);
    case 'l': return push_marked(r);
    case ']': return push_new(r, (pickle_value){.kind = PICKLE_SEQUENCE});
    case '}': return push_new(r, (pickle_value){.kind = PICKLE_DICT});
    case 'a': return add_last(r, false);
    case 'e': return add_marked(r, false);
    case 's': return add_last(r, true);
    case 'u': return add_marked(r, true);
    case 'R': return call(r);
    case 'Q': return push_storage(r);
    case 0x81: return push_object(r);
    case 'b': return drop_state(r);
    case '0': return drop_state(r);
    case 'q': return remember_as(r, 1);
    case 'r': return remember_as(r, 4);
    case 0x94: return remember(r, r->made->memo_count);
    case 'h': return recall(r, 1);
    case 'j': return recall(r, 4);
    default: break;
    }
    char what[64];
    r->at--;
    snprintf(what, sizeof what, "the code 0x%02x is not one that torch.save writes", code);
    return damaged(r, what);
}

remat_status pickle_read(remat_context *context, const unsigned char *bytes, size_t count, const remat_place *place,
                         pickle *made)
{
    *made = (pickle){.context = context};
    reading r = {made, bytes, 0, count, place};
    for (;;) {
        const unsigned char *code = NULL;
        REMAT_TRY(take(&r, 1, &code));
        if (*code == '.')
            return pop(&r, &made->result);
        REMAT_TRY(do_code(&r, *code));
    }
}

void pickle_release(pickle *made)
{
    remat_release(made->context, made->values, made->value_capacity, sizeof *made->values);
    remat_release(made->context, made->items, made->item_capacity, sizeof *made->items);
    remat_release(made->context, made->stack, made->stack_capacity, sizeof *made->stack);
    remat_release(made->context, made->memo, made->memo_capacity, sizeof *made->memo);
}

bool pickle_is(const pickle_value *value, const char *text)
{
    return value->length == strlen(text) && memcmp(value->text, text, value->length) == 0;
}
