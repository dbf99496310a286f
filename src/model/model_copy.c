#include "model/model_copy.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_TEXT = 24 };

/* What stands for the placeholder at `at`, and how long that is. */
static remat_status look_up(const model_copy *copy, remat_context *context, const char *at, const char *number,
                            const char **stand_in, size_t *length)
{
    if (strncmp(at, "{i}", 3) == 0) {
        *stand_in = number;
        *length = 3;
        return REMAT_OK;
    }
    if (strncmp(at, "{in}", 4) != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "'%.20s': in a group {i} is the number of the copy and {in} the layer before it", at);
    if (!copy->before)
        return remat_fail(context, REMAT_INVALID, NULL, "{in}: no layer stands before the group");
    *stand_in = copy->before;
    *length = 4;
    return REMAT_OK;
}

/* Writes the filled text to `to`, or only counts where it is NULL. */
static remat_status fill(const model_copy *copy, remat_context *context, const char *text, char *to, size_t *length)
{
    char number[NUMBER_TEXT];
    snprintf(number, sizeof number, "%llu", (unsigned long long)copy->number);
    *length = 0;
    while (*text) {
        const char *piece = text;
        size_t skip = strcspn(text, "{"), bytes = skip;
        if (!skip) {
            REMAT_TRY(look_up(copy, context, text, number, &piece, &skip));
            bytes = strlen(piece);
        }
        if (to)
            memcpy(to + *length, piece, bytes);
        *length += bytes;
        text += skip;
    }
    return REMAT_OK;
}

remat_status model_copy_fill(const model_copy *copy, text_pool *pool, const char *text, const char **filled)
{
    size_t length;
    *filled = text;
    if (!strchr(text, '{'))
        return REMAT_OK;
    REMAT_TRY(fill(copy, pool->context, text, NULL, &length));
    char *made = text_pool_take(pool, length + 1, 1); /* zeroed: terminated */
    if (!made)
        return REMAT_NO_MEMORY;
    *filled = made;
    return fill(copy, pool->context, text, made, &length);
}
