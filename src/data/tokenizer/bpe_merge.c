/* The pair with the lowest rank is merged first, and the leftmost of equal ones. Short words look for it in all their pairs.
 * Long ones have a heap: a text without a blank may be one word of a megabyte. */
#include "data/tokenizer/bpe_merge.h"

#include "base/alloc.h"

#include <string.h>

enum { SHORT = 40 };
#define NO_LINK UINT32_MAX

/* The neighbours of a token that is left. A token that was merged into another has the length 0. */
typedef struct bpe_links {
    uint32_t before, behind;
} bpe_links;

/* ---- short words ---- */

static void merge_short(const bpe *model, bpe_tokens *word)
{
    const bpe_merge *merges[SHORT];
    for (size_t i = 0; i + 1 < word->count; i++)
        merges[i] = bpe_find_merge(model, word->ids[i], word->ids[i + 1]);
    while (word->count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < word->count; i++)
            if (merges[i] && (!merges[best] || merges[i]->rank < merges[best]->rank))
                best = i;
        if (!merges[best])
            return;
        word->ids[best] = merges[best]->id;
        word->lengths[best] += word->lengths[best + 1];
        size_t moved = word->count - best - 2;
        memmove(word->ids + best + 1, word->ids + best + 2, moved * sizeof *word->ids);
        memmove(word->lengths + best + 1, word->lengths + best + 2, moved * sizeof *word->lengths);
        if (moved)
            memmove(merges + best + 1, merges + best + 2, (moved - 1) * sizeof *merges);
        word->count--;
        if (best + 1 < word->count)
            merges[best] = bpe_find_merge(model, word->ids[best], word->ids[best + 1]);
        if (best > 0)
            merges[best - 1] = bpe_find_merge(model, word->ids[best - 1], word->ids[best]);
    }
}

/* ---- long words ---- */

/* The pair at `at` waits to become the token `merge`. */
static remat_status push(bpe *model, uint32_t at, const bpe_merge *merge)
{
    return merge ? heap_push(model->context, &model->waiting, (heap_item){merge->rank, at, merge->id}) : REMAT_OK;
}

/* Merges the token at `at` with the next one, if they are still the pair that waited. */
static remat_status merge_at(bpe *model, const heap_item *top)
{
    bpe_tokens *word = &model->scratch;
    bpe_links *links = model->links;
    uint32_t at = (uint32_t)top->second_key, next = links[at].behind;
    if (word->lengths[at] == 0 || next == NO_LINK)
        return REMAT_OK;
    const bpe_merge *merge = bpe_find_merge(model, word->ids[at], word->ids[next]);
    if (!merge || merge->id != top->value)
        return REMAT_OK;
    word->ids[at] = merge->id;
    word->lengths[at] += word->lengths[next];
    word->lengths[next] = 0;
    uint32_t behind = links[at].behind = links[next].behind, before = links[at].before;
    if (behind != NO_LINK) {
        links[behind].before = at;
        REMAT_TRY(push(model, at, bpe_find_merge(model, word->ids[at], word->ids[behind])));
    }
    if (before != NO_LINK)
        REMAT_TRY(push(model, before, bpe_find_merge(model, word->ids[before], word->ids[at])));
    return REMAT_OK;
}

static remat_status merge_long(bpe *model)
{
    bpe_tokens *word = &model->scratch;
    size_t left = 0;
    REMAT_TRY(
        remat_grow(model->context, (void **)&model->links, &model->link_capacity, word->count, sizeof *model->links));
    model->waiting.count = 0;
    for (uint32_t i = 0; i < word->count; i++) {
        bool is_last = i + 1 == word->count;
        model->links[i] = (bpe_links){i ? i - 1 : NO_LINK, is_last ? NO_LINK : i + 1};
        if (!is_last)
            REMAT_TRY(push(model, i, bpe_find_merge(model, word->ids[i], word->ids[i + 1])));
    }
    while (model->waiting.count) {
        heap_item top = heap_pop(&model->waiting);
        REMAT_TRY(merge_at(model, &top));
    }
    for (size_t i = 0; i < word->count; i++) {
        if (word->lengths[i] == 0)
            continue;
        word->ids[left] = word->ids[i];
        word->lengths[left++] = word->lengths[i];
    }
    word->count = left;
    return REMAT_OK;
}

remat_status bpe_merge_all(bpe *model)
{
    if (model->scratch.count > SHORT)
        return merge_long(model);
    merge_short(model, &model->scratch);
    return REMAT_OK;
}

void bpe_merge_end(bpe *model)
{
    remat_release(model->context, model->links, model->link_capacity, sizeof *model->links);
    heap_end(model->context, &model->waiting);
}
