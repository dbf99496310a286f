/* Near the smallest peak one position decides: what it needs takes nearly all bytes, and next to nothing passes over it. All that is
 * needed behind it is made a second time there. Single changes hardly lead to such a schedule: so one begins with it. */
#include "base/error.h"
#include "plan/graph/hold_annealer.h"

/* Everything is held, but nothing passes over the position. */
static remat_status cut(hold_annealer *h, uint32_t position)
{
    for (uint32_t i = 0; i < h->g->gap_count; i++) {
        const hold_gap *gap = &h->g->gaps[i];
        const bool passes = gap->begin < position && position < gap->end;
        const uint32_t held = gap->begin + (gap->end == HOLD_TAIL);
        hold_state_note(&h->state, i, passes ? position + 1 : held);
    }
    return hold_state_settle(&h->state);
}

remat_status annealer_cut(hold_annealer *h, uint32_t position, uint64_t limit, uint64_t effort)
{
    bool fits;
    REMAT_TRY(cut(h, position));
    REMAT_TRY(annealer_descend(h, limit, effort / 8));
    h->way = FIRM;
    REMAT_TRY(annealer_anneal(h, limit, effort, 10000, &fits));
    h->way = SOFT;
    return REMAT_OK;
}
