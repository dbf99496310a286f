#include "plan/graph/hold_bins.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"

/* The first part that a peak is within. */
static uint64_t part_of(const hold_bins *bins, uint64_t peak)
{
    const uint64_t top = remat_max(bins->top, 1);
    const unsigned __int128 part = ((unsigned __int128)peak * bins->parts + top - 1) / top;
    return part < bins->parts ? (uint64_t)part : bins->parts;
}

void hold_bins_init(hold_bins *bins, size_t gaps, uint64_t bottom, uint64_t top)
{
    static const uint64_t parts[] = {2000, 1000, 500, 200, 100, 50, 20};
    const size_t most = remat_max(MOST_DECISIONS / (gaps + 1), LEAST_BINS);
    *bins = (hold_bins){.bottom = bottom, .top = top};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && (i == 0 || bins->count > most); i++) {
        bins->parts = parts[i];
        bins->first = part_of(bins, bottom);
        bins->count = parts[i] - bins->first + 1;
    }
}

void hold_bin_release(hold_bin *bin, remat_context *context)
{
    remat_release(context, bin->from, bin->capacity, sizeof *bin->from);
}

void hold_bins_release(hold_bins *bins, remat_context *context)
{
    for (size_t i = 0; i <= bins->count; i++)
        hold_bin_release(&bins->bins[i], context);
    *bins = (hold_bins){0};
}

static hold_bin *bin_of(hold_bins *bins, uint64_t peak)
{
    const uint64_t part = part_of(bins, peak);
    return &bins->bins[part > bins->first ? part - bins->first : 0];
}

static bool is_cheaper(const hold_bin *a, const hold_bin *b)
{
    return !b->from || a->cost < b->cost || (a->cost == b->cost && a->peak < b->peak);
}

static bool is_lower(const hold_bin *a, const hold_bin *b)
{
    return !b->from || a->peak < b->peak || (a->peak == b->peak && a->cost < b->cost);
}

static remat_status fill(hold_bin *bin, hold_state *state, const hold_bin *with)
{
    const size_t count = state->g->gap_count;
    void *made = NULL;
    if (!bin->from) {
        REMAT_TRY(hold_state_grow(state, &made, &bin->capacity, count + 1, sizeof *bin->from));
        bin->from = made;
    }
    memcpy(bin->from, with->from, count * sizeof *bin->from);
    bin->peak = with->peak;
    bin->cost = with->cost;
    return REMAT_OK;
}

remat_status hold_bin_fill(hold_bin *bin, hold_state *state, uint64_t peak)
{
    return fill(bin, state, &(hold_bin){peak, state->cost, state->from, 0});
}

remat_status hold_bins_keep(hold_bins *bins, hold_state *state, uint64_t peak)
{
    hold_bin *bin = bin_of(bins, peak), *lowest = &bins->bins[bins->count];
    const hold_bin now = {peak, state->cost, state->from, 0};
    if (is_lower(&now, lowest))
        REMAT_TRY(fill(lowest, state, &now));
    return is_cheaper(&now, bin) ? fill(bin, state, &now) : REMAT_OK;
}

remat_status hold_bins_merge(hold_bins *bins, const hold_bins *others, hold_state *state)
{
    for (size_t i = 0; i <= bins->count; i++) {
        const hold_bin *other = &others->bins[i];
        hold_bin *bin = &bins->bins[i];
        if (other->from && (i < bins->count ? is_cheaper(other, bin) : is_lower(other, bin)))
            REMAT_TRY(fill(bin, state, other));
    }
    return REMAT_OK;
}

const hold_bin *hold_bins_cheapest(const hold_bins *bins, uint64_t limit)
{
    const hold_bin *best = NULL;
    for (size_t i = 0; i <= bins->count; i++)
        if (bins->bins[i].from && bins->bins[i].peak <= limit && (!best || bins->bins[i].cost < best->cost))
            best = &bins->bins[i];
    return best;
}
