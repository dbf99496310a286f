#include "graph/revolve_stretch.h"

#include "base/alloc.h"
#include "base/error.h"

/* States are held with levels. A state is dispensable once a later one has a higher level. A new state takes a free
 * slot or that of a dispensable one, at level 0; where neither is to be had it takes the place of the state before it,
 * one level above that. The levels then grow like the repetitions of the closed form. */
typedef struct held_state {
    uint32_t position, level;
} held_state;

struct remat_online {
    remat_context *context;
    uint64_t slots;
    uint32_t steps; /* that have run: x_steps is live */
    bool reversed;
    held_state *held; /* in order of position; the input is not in the list */
    size_t held_count, held_capacity;
};

remat_status remat_online_create(remat_context *context, uint64_t slots, remat_online **online)
{
    *online = NULL;
    if (slots == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "the online schedule needs at least 1 slot: the chain's input takes one of them");
    remat_online *made = *online = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->slots = slots;
    return REMAT_OK;
}

void remat_online_destroy(remat_online *online)
{
    if (!online)
        return;
    remat_release(online->context, online->held, online->held_capacity, sizeof *online->held);
    remat_release(online->context, online, 1, sizeof *online);
}

static remat_status emit(remat_step_fn visit, void *user, remat_op op, uint32_t layer, uint16_t save)
{
    return visit(user, (remat_step){layer, save, (uint8_t)op});
}

/* The last dispensable state, or held_count where there is none. */
static size_t find_dispensable(const remat_online *online)
{
    uint32_t highest = 0;
    for (size_t i = online->held_count; i-- > 0;) {
        if (online->held[i].level < highest)
            return i;
        highest = online->held[i].level > highest ? online->held[i].level : highest;
    }
    return online->held_count;
}

/* Decides what happens to x_steps, which is live, before the next layer runs. *drop is the x that is not held any
 * more after that layer, or UINT32_MAX. */
static remat_status place_state(remat_online *online, uint32_t *drop)
{
    uint32_t position = online->steps;
    *drop = UINT32_MAX;
    if (position == 0)
        return REMAT_OK; /* the input has a slot of its own */
    held_state placed = {position, 0};
    if (online->held_count + 1 >= online->slots) {
        if (online->slots == 1) {
            *drop = position;
            return REMAT_OK;
        }
        size_t out = find_dispensable(online);
        if (out == online->held_count)
            placed.level = online->held[--out].level + 1;
        *drop = online->held[out].position;
        for (size_t i = out; i + 1 < online->held_count; i++)
            online->held[i] = online->held[i + 1];
        online->held_count--;
    }
    REMAT_TRY(remat_grow(online->context, (void **)&online->held, &online->held_capacity, online->held_count + 1,
                         sizeof *online->held));
    online->held[online->held_count++] = placed;
    return REMAT_OK;
}

remat_status remat_online_advance(remat_online *online, remat_step_fn visit, void *user)
{
    if (online->reversed)
        return remat_fail(online->context, REMAT_INVALID, NULL, "the online schedule was reversed already");
    if (online->steps == UINT32_MAX - 1)
        return remat_fail(online->context, REMAT_INVALID, NULL, "an online schedule may have at most 2^32 - 2 steps");
    uint32_t drop;
    REMAT_TRY(place_state(online, &drop));
    bool reads_dropped = drop == online->steps; /* with one slot the layer's own input goes, but only after it ran */
    if (drop != UINT32_MAX && !reads_dropped)
        REMAT_TRY(emit(visit, user, REMAT_DROP_X, drop, REMAT_NO_SAVE));
    REMAT_TRY(emit(visit, user, REMAT_FORWARD, online->steps, REMAT_NO_SAVE));
    if (reads_dropped)
        REMAT_TRY(emit(visit, user, REMAT_DROP_X, drop, REMAT_NO_SAVE));
    online->steps++;
    return REMAT_OK;
}

remat_status remat_online_reverse(remat_online *online, remat_step_fn visit, void *user)
{
    if (online->reversed)
        return remat_fail(online->context, REMAT_INVALID, NULL, "the online schedule was reversed already");
    online->reversed = true;
    if (online->steps == 0)
        return REMAT_OK;
    REMAT_TRY(emit(visit, user, REMAT_LOSS, 0, REMAT_NO_SAVE));
    REMAT_TRY(emit(visit, user, REMAT_DROP_X, online->steps, REMAT_NO_SAVE));
    uint32_t end = online->steps;
    for (size_t i = online->held_count; i-- > 0;) {
        uint32_t first = online->held[i].position;
        /* The input and i earlier states keep their slots; this stretch has the rest. */
        REMAT_TRY(revolve_stretch(online->context, first, end - first, online->slots - 1 - i, false, visit, user));
        REMAT_TRY(emit(visit, user, REMAT_DROP_X, first, REMAT_NO_SAVE));
        end = first;
    }
    return revolve_stretch(online->context, 0, end, online->slots, false, visit, user);
}
