#include "model/model_names.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "base/names.h"
#include "base/nearest.h"

#include <string.h>

typedef struct model_name_slot {
    const char *name; /* NULL: free */
    uint32_t number;
} model_name_slot;

/* ---- what a name may be ---- */

static bool legal(char letter)
{
    unsigned char byte = (unsigned char)letter;
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           strchr("_-./", letter) || byte >= 0x80;
}

remat_status model_name_check(remat_context *context, const char *what, const char *name)
{
    static const char *const reserved[] = {"model", "optimizer", "dataset", "end", NULL};
    size_t length = strlen(name);
    if (length == 0 || length > MODEL_NAME_LONGEST)
        return remat_fail(context, REMAT_INVALID, NULL, "the name of a %s has 1 to %d bytes, not %zu", what,
                          MODEL_NAME_LONGEST, length);
    for (const char *at = name; *at; at++)
        if (!legal(*at))
            return remat_fail(context, REMAT_INVALID, NULL,
                              "the %s name '%.80s' has a '%c'; letters, digits, '_', '-', '.' and '/' are allowed",
                              what, name, *at);
    if (!remat_utf8_valid(name))
        return remat_fail(context, REMAT_INVALID, NULL, "a %s name is not valid UTF-8", what);
    if (strncmp(name, "optimizer/", strlen("optimizer/")) == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "the %s name '%.80s' begins with 'optimizer/', which marks moments in weights files", what,
                          name);
    if (strstr(name, ".."))
        return remat_fail(context, REMAT_INVALID, NULL, "the %s name '%.80s' has '..', which stands for a range", what,
                          name);
    for (size_t i = 0; reserved[i]; i++)
        if (names_equal(name, reserved[i]))
            return remat_fail(context, REMAT_INVALID, NULL, "'%s' is the name of a section; a %s needs another", name,
                              what);
    return REMAT_OK;
}

/* ---- the table ---- */

void model_names_begin(model_names *names, remat_context *context)
{
    *names = (model_names){.context = context};
}

void model_names_end(model_names *names)
{
    remat_release(names->context, names->slots, names->slot_count, sizeof *names->slots);
    *names = (model_names){.context = names->context};
}

/* FNV-1a over the folded letters, mixed at the end so that its low bits are good. */
static uint64_t hash(const char *name)
{
    uint64_t sum = 0xCBF29CE484222325u;
    for (; *name; name++)
        sum = (sum ^ (unsigned char)name_letter(*name)) * 0x100000001B3u;
    sum = (sum ^ sum >> 30) * 0xBF58476D1CE4E5B9u;
    return sum ^ sum >> 31;
}

/* The slot of `name`, or the free one where it would go. At most half of the slots are used. */
static size_t slot_of(const model_name_slot *slots, size_t slot_count, const char *name)
{
    size_t at = (size_t)hash(name) & (slot_count - 1);
    while (slots[at].name && !names_equal(slots[at].name, name))
        at = (at + 1) & (slot_count - 1);
    return at;
}

uint32_t model_names_find(const model_names *names, const char *name)
{
    if (!names->slots)
        return MODEL_NAME_NONE;
    const model_name_slot *slot = &names->slots[slot_of(names->slots, names->slot_count, name)];
    return slot->name ? slot->number : MODEL_NAME_NONE;
}

remat_status model_names_reserve(model_names *names)
{
    if ((names->used + 1) * 2 <= names->slot_count)
        return REMAT_OK;
    size_t count = names->slot_count ? names->slot_count * 2 : 32;
    model_name_slot *slots = remat_alloc_zeroed(names->context, count, sizeof *slots);
    if (!slots)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < names->slot_count; i++)
        if (names->slots[i].name)
            slots[slot_of(slots, count, names->slots[i].name)] = names->slots[i];
    remat_release(names->context, names->slots, names->slot_count, sizeof *slots);
    names->slots = slots;
    names->slot_count = count;
    return REMAT_OK;
}

void model_names_add(model_names *names, const char *name, uint32_t number)
{
    names->slots[slot_of(names->slots, names->slot_count, name)] = (model_name_slot){name, number};
    names->used++;
}

/* ---- did you mean ---- */

const char *model_names_nearest(const model_names *names, const char *name)
{
    size_t most = name_distance_limit(name);
    const char *nearest = NULL;
    uint32_t number = MODEL_NAME_NONE; /* of the nearest; the first of equals, whatever the order of the slots */
    for (size_t i = 0; i < names->slot_count; i++) {
        const model_name_slot *slot = &names->slots[i];
        size_t distance = slot->name ? name_distance(slot->name, name, most) : most + 1;
        if (distance < most || (distance == most && (!nearest || slot->number < number))) {
            nearest = slot->name;
            number = slot->number;
            most = distance;
        }
    }
    return nearest;
}
