/* Verifies a placement without using anything the solver uses.
 *
 * Visiting tensors by rising offset, `top` holds for each moment the highest
 * end address so far. A tensor overlaps an earlier one exactly when `top` is
 * above its offset at some moment of its live range. */
#include "arena/placement.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"

typedef struct {
    uint64_t key;
    size_t row;
} entry;

typedef struct {
    uint64_t *whole; /* highest top anywhere below this node */
    uint64_t *cover; /* highest top that covers this node entirely */
    size_t leaves;
} top_tree;

static void sift_down(entry *heap, size_t at, size_t count)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && heap[child + 1].key > heap[child].key)
            child++;
        if (heap[at].key >= heap[child].key)
            return;
        entry held = heap[at];
        heap[at] = heap[child];
        heap[child] = held;
        at = child;
    }
}

static void heap_sort(entry *entries, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(entries, i, count);
    for (size_t last = count; last-- > 1;) {
        entry held = entries[0];
        entries[0] = entries[last];
        entries[last] = held;
        sift_down(entries, 0, last);
    }
}

/* Bottom-up tree over moments [from, to): node i has children 2i and 2i + 1.
 * Whatever covers a node of the decomposition from above also covers the first
 * or the last moment of the range, so those two paths are enough. */
static uint64_t tree_highest(const top_tree *tree, size_t from, size_t to)
{
    uint64_t highest = 0;
    size_t left = from + tree->leaves, right = to - 1 + tree->leaves;
    for (size_t node = left / 2; node > 0; node /= 2)
        highest = remat_max(highest, tree->cover[node]);
    for (size_t node = right / 2; node > 0; node /= 2)
        highest = remat_max(highest, tree->cover[node]);
    for (size_t lo = left, hi = right + 1; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2)
            highest = remat_max(highest, tree->whole[lo++]);
        if (hi % 2)
            highest = remat_max(highest, tree->whole[--hi]);
    }
    return highest;
}

static void tree_raise(top_tree *tree, size_t from, size_t to, uint64_t top)
{
    size_t left = from + tree->leaves, right = to + tree->leaves;
    for (size_t lo = left, hi = right; lo < hi; lo /= 2, hi /= 2) {
        if (lo % 2) {
            tree->cover[lo] = remat_max(tree->cover[lo], top);
            tree->whole[lo] = remat_max(tree->whole[lo], top);
            lo++;
        }
        if (hi % 2) {
            hi--;
            tree->cover[hi] = remat_max(tree->cover[hi], top);
            tree->whole[hi] = remat_max(tree->whole[hi], top);
        }
    }
    for (size_t up = left / 2; up > 0; up /= 2)
        tree->whole[up] = remat_max(tree->whole[up], top);
    for (size_t up = (right - 1) / 2; up > 0; up /= 2)
        tree->whole[up] = remat_max(tree->whole[up], top);
}

static size_t find_moment(const entry *moments, size_t count, uint64_t time)
{
    return REMAT_FIRST(i, 0, count, moments[i].key >= time);
}

static bool share_bytes(const remat_lifetime *a, const remat_lifetime *b)
{
    return a->lower < b->upper && b->lower < a->upper && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

static size_t find_partner(const remat_lifetime *lifetimes, size_t count, size_t row)
{
    size_t partner = row;
    for (size_t i = 0; i < count; i++)
        if (i != row && lifetimes[i].size > 0 && share_bytes(&lifetimes[i], &lifetimes[row]))
            partner = i;
    return partner;
}

static remat_status check_rows(remat_context *context, const remat_lifetime *lifetimes, size_t count,
                               uint64_t alignment, uint64_t height)
{
    for (size_t i = 0; i < count; i++) {
        const remat_lifetime *tensor = &lifetimes[i];
        const char *wrong = tensor->lower >= tensor->upper    ? "does not begin before it ends"
                            : tensor->offset % alignment != 0 ? "is not aligned"
                            : tensor->size > height || tensor->offset > height - tensor->size
                                ? "lies past the end of the arena"
                                : NULL;
        if (wrong)
            return remat_fail(context, REMAT_CHECK_FAILED, NULL, "tensor %zu %s", i, wrong);
    }
    return REMAT_OK;
}

static remat_status check_pairs(remat_context *context, const remat_lifetime *lifetimes, size_t count, entry *moments,
                                entry *by_offset, top_tree *tree)
{
    size_t moment_count = 2 * count;
    for (size_t i = 0; i < count; i++) {
        moments[2 * i].key = lifetimes[i].lower;
        moments[2 * i + 1].key = lifetimes[i].upper;
        by_offset[i].key = lifetimes[i].offset;
        by_offset[i].row = i;
    }
    heap_sort(moments, moment_count);
    heap_sort(by_offset, count);
    for (size_t i = 0; i < 2 * tree->leaves; i++)
        tree->whole[i] = tree->cover[i] = 0;
    for (size_t i = 0; i < count; i++) {
        const remat_lifetime *tensor = &lifetimes[by_offset[i].row];
        if (tensor->size == 0)
            continue;
        size_t from = find_moment(moments, moment_count, tensor->lower);
        size_t to = find_moment(moments, moment_count, tensor->upper);
        if (tree_highest(tree, from, to) > tensor->offset)
            return remat_fail(context, REMAT_CHECK_FAILED, NULL, "tensors %zu and %zu share bytes while both are alive",
                              find_partner(lifetimes, count, by_offset[i].row), by_offset[i].row);
        tree_raise(tree, from, to, tensor->offset + tensor->size);
    }
    return REMAT_OK;
}

remat_status arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count, uint64_t alignment,
                         uint64_t height)
{
    if (alignment == 0)
        return remat_fail(context, REMAT_INVALID, NULL, "an alignment of 0 means nothing");
    if (count == 0)
        return REMAT_OK;
    REMAT_TRY(check_rows(context, lifetimes, count, alignment, height));
    top_tree tree = {.leaves = 1};
    while (tree.leaves < 2 * count)
        tree.leaves *= 2;
    entry *moments = remat_alloc(context, 2 * count, sizeof *moments);
    entry *by_offset = remat_alloc(context, count, sizeof *by_offset);
    tree.whole = remat_alloc(context, 2 * tree.leaves, sizeof *tree.whole);
    tree.cover = remat_alloc(context, 2 * tree.leaves, sizeof *tree.cover);
    remat_status status = REMAT_NO_MEMORY;
    if (moments && by_offset && tree.whole && tree.cover)
        status = check_pairs(context, lifetimes, count, moments, by_offset, &tree);
    remat_release(context, moments, 2 * count, sizeof *moments);
    remat_release(context, by_offset, count, sizeof *by_offset);
    remat_release(context, tree.whole, 2 * tree.leaves, sizeof *tree.whole);
    remat_release(context, tree.cover, 2 * tree.leaves, sizeof *tree.cover);
    return status;
}
