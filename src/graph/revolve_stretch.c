#include "graph/revolve_stretch.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

/* C(slots + t, t): the longest stretch that `slots` slots can reverse with no layer run more than t times before it is
 * saved. Past every possible chain the exact value does not matter. */
static uint64_t longest(uint64_t slots, uint64_t t)
{
    uint64_t few = slots < t ? slots : t, many = slots < t ? t : slots;
    unsigned __int128 value = 1;
    for (uint64_t k = 1; k <= few; k++) {
        value = value * ((unsigned __int128)many + k) / k; /* C(many + k, k): the division leaves no rest */
        if (value >= REMAT_LIMIT)
            return REMAT_LIMIT;
    }
    return (uint64_t)value;
}

/* The least t for which a stretch of `count` layers fits: doubled until it does, then halved back. */
static uint64_t repetitions(uint64_t count, uint64_t slots)
{
    uint64_t low = 0, high = 1; /* the answer is above low or 0, and at most high */
    if (count <= 1)
        return 0;
    while (longest(slots, high) < count) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (longest(slots, middle) < count)
            low = middle;
        else
            high = middle;
    }
    return high;
}

uint64_t remat_revolve_forwards(uint64_t layers, uint64_t slots)
{
    if (layers <= 1)
        return 0;
    uint64_t t = repetitions(layers, slots), all;
    if (!remat_multiply(t, layers, &all))
        return UINT64_MAX;
    return all - longest(slots + 1, t - 1); /* C(slots + t, t - 1) */
}

/* How many layers to run ahead before the next state is held. Every length in a range is optimal: the left part must be
 * what the slots can do with t - 1 repetitions, the right part what one slot less can do with t. */
static uint32_t split(uint32_t count, uint64_t slots)
{
    uint64_t t = repetitions(count, slots);
    uint64_t left_most = longest(slots, t - 1), right_least = longest(slots - 1, t - 1);
    uint64_t most = count - right_least;
    most = most < left_most ? most : left_most;
    return (uint32_t)(most < 1 ? 1 : most < count ? most : count - 1);
}

/* ---- walking ---- */

typedef struct stretch {
    uint32_t first, count;
    uint64_t slots;
} stretch;

typedef struct reversal {
    remat_context *context;
    remat_step_fn visit;
    void *user;
    bool with_loss;   /* until it has run */
    stretch *waiting; /* left parts whose right part is under way; x behind each is held */
    size_t waiting_count, waiting_capacity;
} reversal;

static remat_status emit(const reversal *to, remat_op op, uint32_t layer, uint16_t save)
{
    return to->visit(to->user, (remat_step){layer, save, (uint8_t)op});
}

/* Runs ahead without saving; of the states between only the last stays. */
static remat_status run_ahead(const reversal *to, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        REMAT_TRY(emit(to, REMAT_FORWARD, first + i, REMAT_NO_SAVE));
        if (i > 0)
            REMAT_TRY(emit(to, REMAT_DROP_X, first + i, REMAT_NO_SAVE));
    }
    return REMAT_OK;
}

static remat_status reverse_layer(reversal *to, uint32_t layer)
{
    REMAT_TRY(emit(to, REMAT_FORWARD, layer, REMAT_KEEP));
    if (to->with_loss)
        REMAT_TRY(emit(to, REMAT_LOSS, 0, REMAT_NO_SAVE));
    to->with_loss = false;
    return emit(to, REMAT_BACKWARD, layer, REMAT_NO_SAVE);
}

static remat_status reverse(reversal *to, stretch part)
{
    for (;;) {
        while (part.count > 1) {
            stretch left = {part.first, split(part.count, part.slots), part.slots};
            REMAT_TRY(run_ahead(to, left.first, left.count));
            REMAT_TRY(remat_grow(to->context, (void **)&to->waiting, &to->waiting_capacity, to->waiting_count + 1,
                                 sizeof *to->waiting));
            to->waiting[to->waiting_count++] = left;
            part = (stretch){part.first + left.count, part.count - left.count, part.slots - 1};
        }
        REMAT_TRY(reverse_layer(to, part.first));
        if (to->waiting_count == 0)
            return REMAT_OK;
        part = to->waiting[--to->waiting_count];
        REMAT_TRY(emit(to, REMAT_DROP_X, part.first + part.count, REMAT_NO_SAVE));
    }
}

remat_status revolve_stretch(remat_context *context, uint32_t first, uint32_t count, uint64_t slots, bool with_loss,
                             remat_step_fn visit, void *user)
{
    reversal to = {.context = context, .visit = visit, .user = user, .with_loss = with_loss};
    remat_status status = count ? reverse(&to, (stretch){first, count, slots}) : REMAT_OK;
    remat_release(context, to.waiting, to.waiting_capacity, sizeof *to.waiting);
    return status;
}

remat_status remat_revolve_walk(remat_context *context, uint32_t layers, uint64_t slots, remat_step_fn visit,
                                void *user)
{
    if (slots == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "revolve needs at least 1 slot: the chain's input takes one of them");
    return revolve_stretch(context, 0, layers, slots, true, visit, user);
}
