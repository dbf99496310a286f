#include "graph/block_schedule.h"

#include "graph/chain.h"

typedef struct walk {
    const uint8_t *marks;
    size_t n;
    remat_step_fn visit;
    void *user;
} walk;

static remat_status emit(const walk *to, remat_op op, size_t layer, uint16_t save)
{
    return to->visit(to->user, (remat_step){(uint32_t)layer, save, (uint8_t)op});
}

static bool starts_block(const walk *to, size_t i)
{
    return to->marks[i] == MARK_RECOMPUTE_NEW_BLOCK ||
           (to->marks[i] == MARK_RECOMPUTE && (i == 0 || to->marks[i - 1] == MARK_KEEP));
}

static bool ends_block(const walk *to, size_t i)
{
    return to->marks[i] != MARK_KEEP && (i + 1 == to->n || to->marks[i + 1] == MARK_KEEP || starts_block(to, i + 1));
}

static remat_status walk_forward(const walk *to)
{
    for (size_t i = 0; i < to->n; i++) {
        bool kept = to->marks[i] == MARK_KEEP;
        REMAT_TRY(emit(to, REMAT_FORWARD, i, kept ? REMAT_KEEP : REMAT_NO_SAVE));
        if (!kept && !starts_block(to, i)) /* x_i lies inside the block: this was its last reader */
            REMAT_TRY(emit(to, REMAT_DROP_X, i, REMAT_NO_SAVE));
    }
    REMAT_TRY(emit(to, REMAT_LOSS, 0, REMAT_NO_SAVE));
    if (to->marks[to->n - 1] != MARK_KEEP)
        REMAT_TRY(emit(to, REMAT_DROP_X, to->n, REMAT_NO_SAVE));
    return REMAT_OK;
}

/* Runs the block that ends with layer `last` again, saving. */
static remat_status walk_recomputed_block(const walk *to, size_t last)
{
    size_t first = last;
    while (!starts_block(to, first))
        first--;
    for (size_t i = first; i <= last; i++)
        REMAT_TRY(emit(to, REMAT_FORWARD, i, REMAT_KEEP));
    return REMAT_OK;
}

static remat_status walk_backward(const walk *to)
{
    for (size_t i = to->n; i-- > 0;) {
        if (ends_block(to, i))
            REMAT_TRY(walk_recomputed_block(to, i));
        REMAT_TRY(emit(to, REMAT_BACKWARD, i, REMAT_NO_SAVE));
        if (i > 0 && ends_block(to, i - 1)) /* x_i is the output of the block before: it runs again next */
            REMAT_TRY(emit(to, REMAT_DROP_X, i, REMAT_NO_SAVE));
    }
    return REMAT_OK;
}

remat_status remat_block_schedule_walk(const remat_profile *chain, const uint8_t *marks, remat_step_fn visit,
                                       void *user)
{
    walk to = {marks, chain->layer_count, visit, user};
    if (to.n == 0)
        return REMAT_OK;
    REMAT_TRY(walk_forward(&to));
    return walk_backward(&to);
}
