/* When ranks that share weights begin to gather those of a layer (docs/ranks.md).
 *
 * Gathered weights are in the workspace of the action that reads them (program_fetch.c). A plan counts them at this action only, so
 * computing would wait for each gather. Where there is room, the workspace begins earlier, and the gather runs beside the actions
 * between:
 *
 *     forward of a    |weights of a|
 *     forward of b    |weights of b| from here    |weights of b|
 *
 * This is decided after the plan is made. So the plan is the one that it would be without, gathers begin early only in bytes that are
 * free, and the smallest budget does not change. Gathers begin in the order of their actions, so ranks with other budgets, which may
 * begin some of them later, make the same calls in the same order. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "train/trainer_object.h"

enum {
    TINY = 16,   /* an action with less than a sixteenth of the weights does not compute for long enough */
    TRIALS = 12, /* with ever fewer gathers that begin early */
};

static uint64_t gathered(const remat_program *program, const placed_graph *placed, size_t position)
{
    return program_fetched_bytes(program, placed->sequence.actions[position]);
}

static uint64_t workspace_at(const remat_program *program, const placed_graph *placed, size_t position)
{
    return graph_placed_bytes(program->graph->actions[placed->sequence.actions[position]].workspace_bytes);
}

/* The last action before with weights that are not tiny beside these; `position` where there is none near. */
static size_t earliest(const remat_program *program, const placed_graph *placed, size_t position)
{
    const uint64_t bytes = gathered(program, placed, position);
    for (size_t p = position; bytes && p-- > 0 && position - p < GATHER_MOST_AHEAD;) {
        const uint64_t before = gathered(program, placed, p);
        if (before > 0 && before >= bytes / TINY)
            return p;
    }
    return position;
}

/* Gathers begin in the order of their actions: none before the one of an earlier action. */
static void find_earliest(const remat_program *program, const placed_graph *placed, uint32_t *begins)
{
    size_t next = placed->sequence.count;
    for (size_t p = placed->sequence.count; p-- > 0;) {
        begins[p] = (uint32_t)remat_min(next, earliest(program, placed, p));
        next = gathered(program, placed, p) ? begins[p] : next;
        if (!gathered(program, placed, p))
            begins[p] = (uint32_t)p;
    }
}

/* Gathers begin early where no position between has more than so many live bytes then. `live`: room for the bytes of all positions. */
static bool choose(const remat_program *program, const placed_graph *placed, uint64_t most, uint64_t *live,
                   uint32_t *begins)
{
    const size_t count = placed->sequence.count;
    size_t last = 0; /* where the gather before begins */
    bool any = false;
    for (size_t p = 0; p < count; p++)
        live[p] = placed->liveness.live_bytes[p];
    find_earliest(program, placed, begins);
    for (size_t p = 0; p < count; p++) {
        const uint64_t bytes = workspace_at(program, placed, p);
        const size_t wanted = remat_max(begins[p], gathered(program, placed, p) ? last : 0);
        size_t from = p;
        while (from > wanted && live[from - 1] + bytes <= most)
            live[--from] += bytes;
        begins[p] = (uint32_t)from;
        last = gathered(program, placed, p) ? from : last;
        any |= from < p;
    }
    return any;
}

/* An arena may need more than its peak, so what is chosen is placed, and fewer are chosen until it fits. */
static remat_status overlap(const remat_program *program, placed_graph *placed, uint64_t limit, uint64_t *live,
                            uint32_t *begins)
{
    uint64_t most = limit;
    for (int trial = 0; trial < TRIALS && choose(program, placed, most, live, begins); trial++) {
        placed_graph found;
        REMAT_TRY(graph_place_early(placed, begins, &found));
        if (found.arena_bytes <= limit) {
            found.arena_bytes = remat_max(found.arena_bytes, placed->arena_bytes); /* as planned: figures stay */
            placed_graph_release(placed);
            *placed = found;
            return placed_graph_fit(placed);
        }
        const uint64_t less = remat_max(found.arena_bytes - limit, limit / 64);
        placed_graph_release(&found);
        most -= remat_min(most, less);
    }
    return REMAT_OK;
}

remat_status trainer_overlap_gathers(const remat_trainer *trainer, const remat_program *program, placed_graph *placed,
                                     uint64_t limit)
{
    const size_t count = placed->sequence.count;
    if (!program->fetches)
        return REMAT_OK;
    uint64_t *live = remat_alloc(trainer->context, count, sizeof *live);
    uint32_t *begins = remat_alloc(trainer->context, count, sizeof *begins);
    remat_status status = live && begins ? overlap(program, placed, limit, live, begins) : REMAT_NO_MEMORY;
    remat_release(trainer->context, live, count, sizeof *live);
    remat_release(trainer->context, begins, count, sizeof *begins);
    return status;
}
