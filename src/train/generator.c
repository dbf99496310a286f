#include "train/generator_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "data/data_needs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SETTINGS = 1000 };

void remat_generator_options_init_sized(remat_generator_options *options, size_t size)
{
    const remat_generator_options defaults = {.chunk = 32};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* ---- making ---- */

static remat_status load_model(remat_generator *generator, const remat_generator_options *options, generator_lane *lane)
{
    char length[48], cache[48];
    const char **settings = remat_alloc_zeroed(generator->context, MOST_SETTINGS, sizeof *settings);
    if (!settings)
        return REMAT_NO_MEMORY;
    size_t count = 0;
    for (; options->settings && options->settings[count] && count < MOST_SETTINGS - 3; count++)
        settings[count] = options->settings[count];
    snprintf(length, sizeof length, "model.length=%" PRIu64, lane->length);
    snprintf(cache, sizeof cache, "model.cache=%" PRIu64, options->cache);
    settings[count] = length;
    settings[count + 1] = cache;
    remat_status status = remat_model_load_with(generator->context, generator->folder, settings, &lane->model);
    remat_release(generator->context, settings, MOST_SETTINGS, sizeof *settings);
    return status;
}

static remat_status plan_lane(remat_generator *generator, generator_lane *lane)
{
    const network_options wanted = {
        .batch = 1, .purpose = NETWORK_INFERENCE, .dtype = REMAT_FP32, .device = generator->device};
    graph_sequence sequence = {0};
    REMAT_TRY(network_get(lane->model, &wanted, &lane->network));
    REMAT_TRY(program_build(lane->network, PROGRAM_FORWARD_ONLY, &lane->program));
    REMAT_TRY(graph_sequence_plain(lane->program->graph, &sequence));
    return graph_place(lane->program->graph, &sequence, &lane->plan);
}

/* The cache is among the parameters. */
static void find_cache(remat_generator *generator)
{
    const remat_network *network = generator->lanes[LANE_TOKEN].network;
    for (size_t p = 0; p < network->parameter_count; p++)
        if (network->parameters[p].about.transient) {
            generator->cache = network->parameters[p].about.dims[0];
            generator->cache_bytes += network->parameters[p].bytes;
        }
    for (size_t n = 0; n < network->layer_count; n++)
        if (strcmp(network->layers[n].node.name, "lm_head") == 0)
            generator->vocabulary = network->layers[n].node.output.w;
}

static remat_status allocate(remat_generator *generator)
{
    backend *device = generator->device;
    uint64_t arena = 0;
    for (size_t i = 0; i < LANES; i++)
        arena = generator->lanes[i].plan.arena_bytes > arena ? generator->lanes[i].plan.arena_bytes : arena;
    if (generator->lanes[0].network->parameter_bytes != generator->lanes[1].network->parameter_bytes)
        return remat_fail(generator->context, REMAT_INTERNAL, NULL, "the layout of the weights depends on the length");
    REMAT_TRY(backend_queue_create(device, &generator->queue));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, arena, false, &generator->arena));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, sizeof(step_block), true, &generator->block));
    generator->likely = remat_alloc(generator->context, generator->vocabulary, sizeof *generator->likely);
    return generator->likely ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status start_lane(remat_generator *generator, generator_lane *lane)
{
    const executor_options run = {
        .program = lane->program,
        .sequence = &lane->plan.sequence,
        .liveness = &lane->plan.liveness,
        .memory = {.arena = generator->arena.at,
                   .arena_bytes = generator->arena.bytes,
                   .offsets = lane->plan.offsets,
                   .step = generator->block.at},
        .weights = {.find = held_weights_find, .user = &generator->weights},
        .device = generator->device,
        .loss_share = 1,
    };
    REMAT_TRY(executor_create(generator->context, &run, &lane->executor));
    REMAT_TRY(staging_create(lane->network, generator->device, (staging_options){.buffers = 1}, &lane->staged));
    staging_aim(&lane->staged, lane->executor);
    return REMAT_OK;
}

static remat_status create(remat_generator *generator, const char *folder, const remat_generator_options *options)
{
    const backend_options device = {.kernels = options->kernels, .threads = options->threads};
    if (options->chunk == 0)
        return remat_fail(generator->context, REMAT_INVALID, NULL, "chunk: a run has at least one token");
    generator->folder = remat_text_copy(generator->context, folder);
    if (!generator->folder)
        return REMAT_NO_MEMORY;
    REMAT_TRY(backend_open(generator->context, &device, &generator->device));
    generator->lanes[LANE_TOKEN].length = 1;
    generator->lanes[LANE_CHUNK].length = options->chunk;
    for (size_t i = LANES; i-- > 0;) {
        remat_context_set_quiet(generator->context, i + 1 < LANES); /* the same warnings again */
        const remat_status status = load_model(generator, options, &generator->lanes[i]);
        remat_context_set_quiet(generator->context, false);
        REMAT_TRY(status);
        REMAT_TRY(plan_lane(generator, &generator->lanes[i]));
        if (i == LANE_TOKEN)
            find_cache(generator);
        if (generator->cache == 0)
            return remat_fail(generator->context, REMAT_INVALID, NULL, "'%.200s' is not a folder with a language model",
                              folder);
        if (generator->lanes[LANE_CHUNK].length > generator->cache)
            generator->lanes[LANE_CHUNK].length = generator->cache;
    }
    if (options->writes_texts || options->writes_messages) /* first, because weights may take long to read */
        REMAT_TRY(generator_load_tokenizer(generator));
    if (options->writes_messages)
        REMAT_TRY(generator_load_template(generator));
    REMAT_TRY(allocate(generator));
    REMAT_TRY(held_weights_load(generator->queue, generator->lanes[0].model, generator->lanes[0].network, NULL,
                                options->weights ? options->weights : folder, true, &generator->weights));
    for (size_t i = 0; i < LANES; i++)
        REMAT_TRY(start_lane(generator, &generator->lanes[i]));
    return REMAT_OK;
}

remat_status remat_generator_create(remat_context *context, const char *folder, const remat_generator_options *options,
                                    remat_generator **generator)
{
    remat_generator_options wanted;
    *generator = NULL;
    remat_generator_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_generator_options_init"));
    remat_generator *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    remat_status status = create(made, folder, &wanted);
    if (status == REMAT_OK)
        *generator = made;
    else
        remat_generator_destroy(made);
    return status;
}

static void release_lane(remat_generator *generator, generator_lane *lane)
{
    executor_destroy(lane->executor);
    if (generator->device)
        staging_release(&lane->staged, generator->device);
    placed_graph_release(&lane->plan);
    program_destroy(lane->program);
    network_destroy(lane->network);
    remat_model_destroy(lane->model);
}

void remat_generator_destroy(remat_generator *generator)
{
    if (!generator)
        return;
    remat_context *context = generator->context;
    if (generator->result.host)
        host_view_close(&generator->result, false);
    if (generator->queue)
        backend_wait(generator->queue);
    held_weights_release(&generator->weights);
    for (size_t i = 0; i < LANES; i++)
        release_lane(generator, &generator->lanes[i]);
    backend_queue_destroy(generator->queue);
    if (generator->device) {
        backend_release(generator->device, &generator->arena);
        backend_release(generator->device, &generator->block);
    }
    backend_close(generator->device);
    remat_release(context, generator->likely, generator->vocabulary, sizeof *generator->likely);
    remat_tokenizer_destroy(generator->tokenizer);
    tokenizer_config_end(context, &generator->config);
    chat_template_destroy(generator->template);
    remat_text_release(context, generator->folder);
    remat_release(context, generator, 1, sizeof *generator);
}

void remat_generator_get_figures_sized(const remat_generator *generator, remat_generator_figures *figures, size_t size)
{
    const uint64_t parameters = generator->lanes[0].network->parameter_bytes;
    const remat_generator_figures found = {.weight_bytes = parameters - generator->cache_bytes,
                                           .cache_bytes = generator->cache_bytes,
                                           .arena_bytes = generator->arena.bytes,
                                           .total_bytes = parameters + generator->arena.bytes + generator->block.bytes +
                                                          generator->vocabulary * sizeof *generator->likely,
                                           .cache = generator->cache,
                                           .vocabulary = generator->vocabulary,
                                           .mapped_bytes = generator->weights.mapped_bytes};
    remat_struct_give(figures, size, &found, sizeof found);
}

/* ---- running ---- */

/* Runs `count` tokens; *logits are those of the last. Rows behind them get positions that come later: what they put into the cache is
 * replaced before anybody sees it. */
static remat_status run_lane(remat_generator *generator, generator_lane *lane, const int32_t *tokens, size_t count,
                             const float **logits)
{
    int32_t *ids = lane->staged.inputs[0], *positions = lane->staged.inputs[1];
    uint32_t layer = 0;
    const tensor_ref values = executor_result(lane->executor, 0, &layer);
    if (generator->result.host)
        REMAT_TRY(host_view_close(&generator->result, false));
    REMAT_TRY(backend_wait(generator->queue));
    REMAT_TRY(held_weights_check(&generator->weights));
    for (size_t i = 0; i < lane->length; i++) {
        ids[i] = i < count ? tokens[i] : 0;
        positions[i] = (int32_t)(generator->used + i);
    }
    REMAT_TRY(staging_send(&lane->staged, lane->executor, generator->queue));
    REMAT_TRY(executor_run(lane->executor, generator->queue));
    REMAT_TRY(host_view_open(generator->queue, values.at,
                             dtype_bytes(values.type, lane->length * generator->vocabulary), true, &generator->result));
    *logits = (const float *)generator->result.host + (count - 1) * generator->vocabulary;
    generator->used += count;
    return REMAT_OK;
}

remat_status remat_generator_feed(remat_generator *generator, const int32_t *tokens, size_t count, const float **logits)
{
    if (count == 0 || count > generator->cache - generator->used)
        return remat_fail(generator->context, REMAT_INVALID, NULL,
                          "%zu tokens do not fit: the cache has room for %llu, and %llu are taken", count,
                          (unsigned long long)generator->cache, (unsigned long long)generator->used);
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || (uint64_t)tokens[i] >= generator->vocabulary)
            return remat_fail(generator->context, REMAT_INVALID, NULL,
                              "token %d is none of the model's, which are 0 to %llu", (int)tokens[i],
                              (unsigned long long)generator->vocabulary - 1);
    for (size_t at = 0, some; at < count; at += some) {
        generator_lane *chunk = &generator->lanes[LANE_CHUNK];
        const size_t left = count - at;
        const bool fits = left > 1 && chunk->length <= generator->cache - generator->used;
        some = fits && chunk->length < left ? (size_t)chunk->length : fits ? left : 1;
        REMAT_TRY(run_lane(generator, fits ? chunk : &generator->lanes[LANE_TOKEN], tokens + at, some, logits));
    }
    return REMAT_OK;
}

void remat_generator_clear(remat_generator *generator)
{
    generator->used = 0;
}
