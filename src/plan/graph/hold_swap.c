/* What is left to gain by exchanges: one gap that is held for one or two that are not, and the other way round. */
#include "base/error.h"
#include "plan/graph/hold_annealer.h"

enum { MOST_LISTED = 64, MOST_TRIED = 8 };

/* Gaps, the cheapest to make again first. Costs are estimates: what the maker of the tensor costs. */
typedef struct gap_list {
    uint32_t gaps[MOST_LISTED];
    uint32_t count;
} gap_list;

static uint64_t cost_of(const hold_annealer *h, uint32_t gap)
{
    return h->g->actions[h->g->tensors[h->g->gaps[gap].tensor].maker].cost;
}

static uint64_t bytes_of(const hold_annealer *h, uint32_t gap)
{
    return h->g->tensors[h->g->gaps[gap].tensor].bytes;
}

static bool is_over(const hold_annealer *h, uint32_t gap, uint32_t position)
{
    const hold_gap *range = &h->g->gaps[gap];
    const uint32_t end = range->end == HOLD_TAIL ? h->state.tail_to[range->tensor] : range->end;
    return range->begin < position && position < end;
}

/* `held`: those that are held over a position and cost less than `than`; else those that are not held there and cost less. */
static void list_gaps(hold_annealer *h, bool held, uint32_t position, uint32_t but, unsigned __int128 than,
                      gap_list *list)
{
    list->count = 0;
    h->state.work += h->active_count / 4;
    for (uint32_t i = 0; i < h->active_count; i++) {
        const uint32_t gap = h->active[i];
        const bool is_held = h->state.from[gap] == h->g->gaps[gap].begin;
        if (gap == but || is_held != held || !is_over(h, gap, position) || cost_of(h, gap) >= than)
            continue;
        uint32_t at = list->count < MOST_LISTED ? list->count++ : MOST_LISTED;
        for (; at > 0 && cost_of(h, list->gaps[at - 1]) > cost_of(h, gap); at--)
            if (at < MOST_LISTED)
                list->gaps[at] = list->gaps[at - 1];
        if (at < MOST_LISTED)
            list->gaps[at] = gap;
    }
}

/* A gap and what it changes to. */
typedef struct decision {
    uint32_t gap, from;
} decision;

/* Decides, behind a mark. */
static remat_status decide(hold_annealer *h, const decision *some, uint32_t count, hold_mark *mark)
{
    hold_state_mark(&h->state, mark);
    for (uint32_t i = 0; i < count; i++)
        hold_state_note(&h->state, some[i].gap, some[i].from);
    return hold_state_settle(&h->state);
}

static void end_change(hold_annealer *h, const hold_mark *mark, bool stays)
{
    if (stays)
        hold_state_accept(&h->state);
    else
        hold_state_revert(&h->state, mark);
}

/* What an exchange must reach. */
typedef struct swap_goal {
    uint64_t limit;
    unsigned __int128 cost; /* less than this */
    bool reached;
} swap_goal;

/* Decides, and takes it back where that is not cheaper or does not fit. */
static remat_status attempt(hold_annealer *h, const decision *some, uint32_t count, swap_goal *goal)
{
    hold_measure now = {.limit = goal->limit};
    hold_mark mark;
    REMAT_TRY(decide(h, some, count, &mark));
    if (h->state.cost < goal->cost && h->state.run_count <= h->most_runs) {
        annealer_measure(h, &now);
        REMAT_TRY(annealer_keep(h, now.peak));
        goal->reached = now.peak <= goal->limit;
    }
    end_change(h, &mark, goal->reached);
    return REMAT_OK;
}

static decision drop(const hold_annealer *h, uint32_t gap)
{
    return (decision){gap, h->g->gaps[gap].begin + 1};
}

static decision hold(const hold_annealer *h, uint32_t gap)
{
    return (decision){gap, h->g->gaps[gap].begin};
}

/* One gap is held more, which is `over` too much at a position: drops one or two others there that cost less than it saves. */
static remat_status drop_for(hold_annealer *h, uint32_t held, uint32_t position, uint64_t over, swap_goal *goal)
{
    const unsigned __int128 saved = goal->cost - h->state.cost;
    gap_list list;
    uint32_t tried = 0;
    list_gaps(h, true, position, held, saved, &list);
    for (uint32_t i = 0; i < list.count && tried < MOST_TRIED && !goal->reached; i++) {
        decision one = drop(h, list.gaps[i]);
        if (bytes_of(h, one.gap) < over)
            continue;
        tried++;
        REMAT_TRY(attempt(h, &one, 1, goal));
    }
    for (uint32_t i = tried = 0; i < list.count && tried < MOST_TRIED; i++)
        for (uint32_t k = 0; k < i && tried < MOST_TRIED && !goal->reached; k++) {
            decision two[] = {drop(h, list.gaps[i]), drop(h, list.gaps[k])};
            const uint64_t bytes = bytes_of(h, two[0].gap), more = bytes_of(h, two[1].gap);
            if ((unsigned __int128)cost_of(h, two[0].gap) + cost_of(h, two[1].gap) >= saved)
                break;
            if (bytes >= over || more >= over || bytes + more < over)
                continue;
            tried++;
            REMAT_TRY(attempt(h, two, 2, goal));
        }
    return REMAT_OK;
}

/* One gap is dropped: holds two others over a position that save more than it costs and fit into `room`. */
static remat_status hold_for(hold_annealer *h, uint32_t dropped, uint32_t position, uint64_t room, swap_goal *goal)
{
    const unsigned __int128 costs = h->state.cost - goal->cost;
    gap_list list;
    uint32_t tried = 0;
    list_gaps(h, false, position, dropped, costs, &list);
    for (uint32_t i = list.count; i-- > 0 && tried < MOST_TRIED;)
        for (uint32_t k = i; k-- > 0 && tried < MOST_TRIED && !goal->reached;) {
            decision two[] = {hold(h, list.gaps[i]), hold(h, list.gaps[k])};
            if ((unsigned __int128)cost_of(h, two[0].gap) + cost_of(h, two[1].gap) <= costs)
                break;
            if (bytes_of(h, two[0].gap) + bytes_of(h, two[1].gap) > room)
                continue;
            tried++;
            REMAT_TRY(attempt(h, two, 2, goal));
        }
    return REMAT_OK;
}

/* Changes one gap to the other side, and others for it. */
static remat_status swap(hold_annealer *h, uint32_t gap, const hold_measure *before, swap_goal *goal)
{
    const bool is_held = h->state.from[gap] == h->g->gaps[gap].begin;
    const decision one = is_held ? drop(h, gap) : hold(h, gap);
    hold_measure now = {.limit = goal->limit};
    hold_mark mark;
    if (is_held && !is_over(h, gap, before->position))
        return REMAT_OK;
    REMAT_TRY(decide(h, &one, 1, &mark));
    if (h->state.cost < goal->cost) {
        annealer_measure(h, &now);
        REMAT_TRY(annealer_keep(h, now.peak));
        goal->reached = now.peak <= goal->limit;
        if (!goal->reached)
            REMAT_TRY(drop_for(h, gap, now.position, now.peak - goal->limit, goal));
    } else if (is_held && h->state.cost > goal->cost)
        REMAT_TRY(hold_for(h, gap, before->position, bytes_of(h, gap) + goal->limit - before->peak, goal));
    end_change(h, &mark, goal->reached);
    return REMAT_OK;
}

remat_status annealer_swap(hold_annealer *h, uint64_t limit, uint64_t effort)
{
    const uint64_t end = h->state.work + effort;
    for (bool changed = true; changed && h->state.work < end;) {
        changed = false;
        for (uint32_t i = 0; i < h->active_count && h->state.work < end; i++) {
            hold_measure now = {.limit = limit};
            swap_goal goal = {.limit = limit, .cost = h->state.cost};
            annealer_measure(h, &now);
            if (now.peak > limit)
                return REMAT_OK;
            REMAT_TRY(swap(h, h->active[i], &now, &goal));
            changed |= goal.reached;
        }
    }
    return REMAT_OK;
}
