#include "plan/graph/hold_bins.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void hold_bins_init(hold_bins *bins, size_t gaps, uint64_t bottom, uint64_t top)
{
    const size_t count = MOST_DECISIONS / (gaps + 1);
    *bins = (hold_bins){.bottom = bottom, .top = top};
    bins->count = count > MOST_BINS ? MOST_BINS : count < LEAST_BINS ? LEAST_BINS : count;
    bins->width = (top - bottom) / bins->count + 1;
}

void hold_bins_release(hold_bins *bins, remat_context *context)
{
    for (size_t i = 0; i <= bins->count; i++)
        remat_release(context, bins->bins[i].from, bins->bins[i].capacity, sizeof *bins->bins[i].from);
    *bins = (hold_bins){0};
}

static hold_bin *bin_of(hold_bins *bins, uint64_t peak)
{
    uint64_t bin = peak > bins->bottom ? (peak - bins->bottom + bins->width - 1) / bins->width : 0;
    return &bins->bins[bin < bins->count ? bin : bins->count - 1];
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
