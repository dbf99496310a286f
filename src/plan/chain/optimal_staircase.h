/* Staircases: the least cost as a function of memory, as corners (memory rising, cost falling). */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_STAIRCASE_H
#define REMAT_PLAN_CHAIN_OPTIMAL_STAIRCASE_H

#include <stdbool.h>

#include <remat/context.h>

#define MEMORY_END ((uint64_t)1 << 62) /* stands behind the last corner, so that walks need no bound check */
#define COST_LIMIT ((uint64_t)1 << 62) /* dearer plans are not represented */

typedef struct staircase {
    const uint64_t *memory; /* count + 1 entries, the last one MEMORY_END */
    const uint64_t *cost;
    uint32_t count;
} staircase;

/* Two staircases run one after the other: cost + right(m - right_shift) + left(m) where m >= floor. */
typedef struct staircase_offer {
    staircase right, left;
    uint64_t right_shift, floor, cost;
} staircase_offer;

/* The lower envelope of everything offered so far. */
typedef struct staircase_envelope {
    uint64_t *memory, *cost;               /* count + 1 entries */
    uint64_t *other_memory, *other_cost;   /* where the next envelope is written */
    uint64_t *better_memory, *better_cost; /* what an offer improves */
    size_t count, capacity;
    size_t limit; /* corners it may keep */
    uint64_t memory_cap;
    bool thinned;
    bool round_down; /* thin to a staircase below the true one, for bounds, instead of a part of it */
} staircase_envelope;

remat_status envelope_allocate(remat_context *context, size_t most_corners, staircase_envelope *envelope);
void envelope_free(remat_context *context, staircase_envelope *envelope);
void envelope_reset(staircase_envelope *envelope, size_t limit, uint64_t memory_cap); /* leaves round_down as it is */
void envelope_offer(staircase_envelope *envelope, const staircase_offer *offer);
void envelope_finish(staircase_envelope *envelope);
/* The envelope as a staircase in 2 * count + 1 words of the caller's. */
staircase envelope_copy(const staircase_envelope *envelope, uint64_t *words);
/* Drops the corners that are not below the offer. */
void envelope_keep_below(staircase_envelope *envelope, const staircase_offer *offer);

staircase stairs_nothing(void); /* costs nothing and needs nothing */
/* Index of the last corner with memory <= limit; the caller knows that there is one. */
size_t stairs_at(staircase stairs, uint64_t limit);
/* The offer's cost at exactly this memory; COST_LIMIT where it is infeasible. */
uint64_t offer_cost_at(const staircase_offer *offer, uint64_t memory);
/* The least memory at which both parts fit; only where neither staircase is empty. */
uint64_t offer_start(const staircase_offer *offer);

#endif
