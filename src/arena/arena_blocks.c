/* Summaries of 64 items or 64 sections each, so that a node of the search costs what it changes and not what there is.
 * They give the same answers as a look at every item. */
#include "arena/arena_internal.h"

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void arena_hash_item(const arena_model *model, uint32_t item, uint64_t hash[2])
{
    uint64_t mixed = scramble(item * UINT64_C(0x9e3779b97f4a7c15) + model->hash_seed +
                              model->offset[item] * UINT64_C(0xd6e8feb86659fd93));
    hash[0] += mixed;
    hash[1] += (mixed ^ (mixed >> 32)) * UINT64_C(0xff51afd7ed558ccd);
}

bool arena_goes_before(const arena_model *model, uint32_t item, uint32_t best)
{
    if (best == UINT32_MAX || model->offset[item] < model->offset[best])
        return true;
    return model->offset[item] == model->offset[best] && model->preference[item] > model->preference[best];
}

bool arena_is_tighter(const arena_model *model, uint32_t section, uint32_t best)
{
    if (best == UINT32_MAX)
        return true;
    uint64_t slack = model->capacity - model->floor[section] - model->load[section];
    uint64_t best_slack = model->capacity - model->floor[best] - model->load[best];
    return slack < best_slack || (slack == best_slack && model->floor[section] < model->floor[best]);
}

const arena_item_block *arena_items_at(arena_model *model, uint32_t begin)
{
    arena_item_block *block = &model->item_blocks[begin / ARENA_BLOCK];
    if (block->current)
        return block;
    *block = (arena_item_block){.lowest = UINT32_MAX, .current = true};
    for (uint32_t i = begin; i < begin + ARENA_BLOCK; i++) {
        if (!model->waiting[i])
            continue;
        arena_hash_item(model, i, block->hash);
        if (arena_goes_before(model, i, block->lowest))
            block->lowest = i;
        if (model->last[i] > block->reach)
            block->reach = model->last[i];
        block->end = i + 1;
    }
    return block;
}

uint32_t arena_tightest_at(arena_model *model, uint32_t begin)
{
    arena_section_block *block = &model->section_blocks[begin / ARENA_BLOCK];
    if (block->current)
        return block->tightest;
    *block = (arena_section_block){.tightest = UINT32_MAX, .current = true};
    for (uint32_t s = begin; s < begin + ARENA_BLOCK; s++)
        if (model->waiting_count[s] != 0 && arena_is_tighter(model, s, block->tightest))
            block->tightest = s;
    return block->tightest;
}

void arena_blocks_forget(arena_model *model)
{
    for (uint32_t i = 0; i <= model->count / ARENA_BLOCK; i++)
        model->item_blocks[i].current = false;
    for (uint32_t i = 0; i <= model->section_count / ARENA_BLOCK; i++)
        model->section_blocks[i].current = false;
}
