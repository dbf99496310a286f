/* Many short descents instead of one long one. The time to a solution depends
 * strongly on the order in which items are tried, so several strategies alternate,
 * with growing limits. Failed states are remembered across descents. */
#include "arena/arena_internal.h"

/* Chosen on 70 mutated and 56 generated instances, see NOTES.md. */
#define FIRST_LIMIT     UINT64_C(500)
#define EFFORT_PER_ITEM 4u  /* even the first descents must reach the bottom */
#define LIMIT_GROWTH    8u  /* each round adds this fraction */
#define NOISE           96u /* of 256: how far chance moves a preference after round 0 */

typedef enum { LENGTH, SECTIONS, AREA, SIZE, LOAD } measure;

typedef struct {
    measure prefer;
    arena_rule rule;
} strategy;

static const strategy strategies[] = {
    {LOAD, ARENA_LOWEST},     {LENGTH, ARENA_LOWEST},     {LOAD, ARENA_TIGHTEST}, {LENGTH, ARENA_TIGHTEST},
    {SECTIONS, ARENA_LOWEST}, {SECTIONS, ARENA_TIGHTEST}, {AREA, ARENA_LOWEST},   {SIZE, ARENA_TIGHTEST},
};
#define STRATEGY_COUNT (sizeof strategies / sizeof *strategies)

static uint64_t chance(uint64_t seed)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return seed ^ (seed >> 31);
}

/* value / most on a scale of 2^30, without overflow. */
static uint64_t scaled(uint64_t value, uint64_t most)
{
    while (most >> 34 != 0) {
        most >>= 1;
        value >>= 1;
    }
    return most == 0 ? 0 : (value << 30) / most;
}

typedef struct {
    uint64_t length, size, load, blame;
} maxima;

static uint64_t largest_in_sections(const arena_model *model, uint32_t item, const uint64_t *values)
{
    uint64_t most = 0;
    for (uint32_t s = model->first[item]; s <= model->last[item]; s++)
        if (values[s] > most)
            most = values[s];
    return most;
}

static maxima find_maxima(const arena_model *model)
{
    maxima most = {0};
    for (uint32_t i = 0; i < model->count; i++) {
        const arena_item *item = &model->part->items[i];
        if (item->length > most.length)
            most.length = item->length;
        if (item->size > most.size)
            most.size = item->size;
    }
    for (uint32_t s = 0; s < model->section_count; s++) {
        if (model->full_load[s] > most.load)
            most.load = model->full_load[s];
        if (model->blame[s] > most.blame)
            most.blame = model->blame[s];
    }
    return most;
}

static uint64_t plain_measure(const arena_model *model, uint32_t i, measure kind, const maxima *most)
{
    const arena_item *item = &model->part->items[i];
    uint64_t length = scaled(item->length, most->length);
    switch (kind) {
    case LENGTH: return length;
    case SECTIONS: return scaled(model->last[i] - model->first[i] + 1, model->section_count);
    case AREA: return (length * scaled(item->size, most->size)) >> 30;
    case SIZE: return scaled(item->size, most->size);
    case LOAD: break;
    }
    /* the busiest section decides, length only between equals */
    uint64_t load = scaled(largest_in_sections(model, i, model->full_load), most->load);
    return (load & ~UINT64_C(0x3ff)) | (length >> 20);
}

/* measure * (1 +- noise) * (1 + blame share): whole numbers only, so that the
 * answer does not depend on how a machine rounds. */
static void set_preferences(arena_model *model, measure kind, uint64_t round, uint64_t turn)
{
    maxima most = find_maxima(model);
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t weight = 256, value = plain_measure(model, i, kind, &most);
        if (round > 0)
            weight += chance((round << 40) + (turn << 32) + i) % (2 * NOISE + 1) - NOISE;
        uint64_t blame = scaled(largest_in_sections(model, i, model->blame), most.blame) >> 22;
        model->preference[i] = value * weight * (256 + blame);
    }
}

static void let_blame_fade(arena_model *model)
{
    for (uint32_t s = 0; s < model->section_count; s++)
        model->blame[s] -= model->blame[s] * 3 / 10;
}

static arena_outcome descend_once(arena_model *model, uint64_t round, uint64_t turn, uint64_t limit)
{
    set_preferences(model, strategies[turn].prefer, round, turn);
    model->rule = strategies[turn].rule;
    arena_blocks_forget(model);
    arena_mark_all(model);
    if (!arena_propagate(model))
        return model->out_of_memory ? ARENA_FAILED_ALLOC : ARENA_IMPOSSIBLE;
    arena_outcome outcome = arena_descend(model, limit);
    let_blame_fade(model);
    return outcome;
}

static arena_outcome take_turns(arena_model *model, uint64_t effort)
{
    uint64_t start = arena_effort(model), limit = FIRST_LIMIT;
    for (uint64_t round = 0;; round++, limit += limit / LIMIT_GROWTH) {
        for (uint64_t turn = 0; turn < STRATEGY_COUNT; turn++) {
            uint64_t used = arena_effort(model) - start;
            if (used >= effort)
                return ARENA_UNDECIDED;
            uint64_t share = limit + EFFORT_PER_ITEM * (uint64_t)model->count;
            if (share > effort - used)
                share = effort - used;
            arena_outcome outcome = descend_once(model, round, turn, share);
            if (outcome != ARENA_UNDECIDED)
                return outcome;
            arena_undo(model, 0);
        }
    }
}

arena_outcome arena_search(arena_model *model, uint64_t capacity, uint64_t *effort, uint64_t *offsets_out)
{
    uint64_t start = arena_effort(model);
    model->capacity = capacity;
    model->hash_seed = chance(capacity);
    for (uint32_t s = 0; s < model->section_count; s++)
        model->blame[s] = 0;
    arena_outcome outcome = take_turns(model, *effort);
    if (outcome == ARENA_FOUND)
        for (uint32_t i = 0; i < model->count; i++)
            offsets_out[i] = model->offset[i];
    if (outcome != ARENA_FAILED_ALLOC)
        arena_undo(model, 0);
    uint64_t used = arena_effort(model) - start;
    *effort -= used < *effort ? used : *effort;
    return outcome;
}
