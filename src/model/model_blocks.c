/* Blocks: runs of layers that are recomputed together. A layer is in one block at most, so blocks neither overlap nor
 * nest. */
#include "model/model_object.h"

#include "base/alloc.h"
#include "base/error.h"

#define block_fail(model, line, ...) \
    model_blame(model, NULL, line, remat_fail((model)->context, REMAT_INVALID, NULL, __VA_ARGS__))

static remat_status find_layer(const remat_model *model, const char *block, const char *name, uint64_t line,
                               uint32_t *position)
{
    *position = model_names_find(&model->layer_names, name);
    if (*position != MODEL_NAME_NONE)
        return REMAT_OK;
    const char *nearest = model_names_nearest(&model->layer_names, name);
    if (nearest)
        return block_fail(model, line, "block '%s': there is no layer '%.80s'; did you mean '%s'?", block, name,
                          nearest);
    return block_fail(model, line, "block '%s': there is no layer '%.80s'", block, name);
}

/* Data cannot be recomputed, and behind the loss there is nothing to keep it for. */
static remat_status check_member(const remat_model *model, const char *block, const char *name, const layer_type *type,
                                 uint32_t in_block, uint64_t line)
{
    if (in_block != NETWORK_NONE)
        return block_fail(model, line, "the layer '%s' cannot be in the block '%s': it is in the block '%s' already",
                          name, block, model->blocks[in_block].name);
    if (type->max_inputs == 0)
        return block_fail(model, line, "the layer '%s' cannot be in a block: it holds data, which cannot be recomputed",
                          name);
    if (type->labels != LAYER_NO_LABELS)
        return block_fail(model, line, "the layer '%s' cannot be in a block: a loss is never recomputed", name);
    return REMAT_OK;
}

/* Makes room for a block; `name` NULL: "block0" or the next that is free. */
static remat_status append_block(remat_model *model, const char *name, uint32_t first, uint32_t last, uint64_t line)
{
    char made_up[32];
    for (size_t i = model->block_count; !name; i++) {
        snprintf(made_up, sizeof made_up, "block%zu", i);
        if (model_names_find(&model->block_names, made_up) == MODEL_NAME_NONE)
            name = made_up;
    }
    described_block block = {text_pool_text(&model->pool, name), first, last, line};
    void *blocks = model->blocks;
    if (!block.name)
        return REMAT_NO_MEMORY;
    REMAT_TRY(remat_grow(model->context, &blocks, &model->block_capacity, model->block_count + 1, sizeof block));
    model->blocks = blocks;
    REMAT_TRY(model_names_reserve(&model->block_names));
    model_names_add(&model->block_names, block.name, (uint32_t)model->block_count);
    model->blocks[model->block_count++] = block;
    return REMAT_OK;
}

static remat_status check_new(const remat_model *model, const char *name, uint64_t line)
{
    if (model->network)
        return remat_fail(model->context, REMAT_INVALID, NULL, "a block cannot be added to a compiled model");
    if (!name)
        return REMAT_OK;
    REMAT_TRY(model_blame(model, NULL, line, model_name_check(model->context, "block", name)));
    uint32_t other = model_names_find(&model->block_names, name);
    if (other == MODEL_NAME_NONE)
        return REMAT_OK;
    uint64_t before = model->blocks[other].line;
    if (before == REMAT_NOWHERE || ini_is_setting(before))
        return block_fail(model, line, "there is a block '%s' already", name);
    return block_fail(model, line, "there is a block '%s' already, in line %llu", name, (unsigned long long)before);
}

/* All layers from first to last become a block. */
static remat_status add_run(remat_model *model, const char *name, uint32_t first, uint32_t last, uint64_t line)
{
    for (uint32_t i = first; i <= last; i++)
        REMAT_TRY(check_member(model, name ? name : "", model->layers[i].name, model->layers[i].type,
                               model->layers[i].block, line));
    REMAT_TRY(append_block(model, name, first, last, line));
    for (uint32_t i = first; i <= last; i++)
        model->layers[i].block = (uint32_t)model->block_count - 1;
    return REMAT_OK;
}

remat_status model_add_block(remat_model *model, const char *name, const char *const *layers, size_t count,
                             uint64_t line)
{
    REMAT_TRY(check_new(model, name, line));
    const char *called = name ? name : "";
    if (count == 0)
        return block_fail(model, line, "a block needs at least one layer");
    uint32_t first, position;
    REMAT_TRY(find_layer(model, called, layers[0], line, &first));
    for (size_t i = 1; i < count; i++) {
        REMAT_TRY(find_layer(model, called, layers[i], line, &position));
        if (position == first + i)
            continue;
        bool is_repeated = position >= first && position < first + i;
        return block_fail(model, line,
                          "the layers of a block must be consecutive in the order of execution: '%s' %s '%s'",
                          layers[i], is_repeated ? "stands again behind" : "does not directly follow", layers[i - 1]);
    }
    return add_run(model, name, first, (uint32_t)(first + count - 1), line);
}

remat_status model_add_range(remat_model *model, const char *name, const char *first, const char *last, uint64_t line)
{
    REMAT_TRY(check_new(model, name, line));
    uint32_t from, to;
    REMAT_TRY(find_layer(model, name, first, line, &from));
    REMAT_TRY(find_layer(model, name, last, line, &to));
    if (to < from)
        return block_fail(model, line, "block '%s': '%s' stands behind '%s'; write %s .. %s", name, first, last, last,
                          first);
    return add_run(model, name, from, to, line);
}

remat_status model_join_block(remat_model *model, described_layer *layer, const char *name, uint64_t line)
{
    uint32_t position = (uint32_t)model->layer_count, known = model_names_find(&model->block_names, name);
    REMAT_TRY(check_member(model, name, layer->name, layer->type, NETWORK_NONE, line));
    if (known == MODEL_NAME_NONE) {
        REMAT_TRY(check_new(model, name, line));
        REMAT_TRY(append_block(model, name, position, position, line));
        layer->block = (uint32_t)model->block_count - 1;
        return REMAT_OK;
    }
    if (model->blocks[known].last + 1 != position)
        return block_fail(model, line,
                          "the layers of a block must be consecutive in the order of execution: the block '%s' ended "
                          "with the layer '%s'",
                          name, model->layers[model->blocks[known].last].name);
    model->blocks[known].last = position;
    layer->block = known;
    return REMAT_OK;
}
