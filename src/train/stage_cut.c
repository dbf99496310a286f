/* Cutting a network into stages. A stage begins with a layer that computes something. All losses are in the last stage: there they
 * are added up. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"
#include "train/pipeline.h"

static bool computes(const layer_node *node)
{
    return node->input_count > 0 && !node->view;
}

static uint32_t first_loss(const remat_network *network)
{
    uint32_t n = 0;
    while (n < network->layer_count && !network->layers[n].node.loss)
        n++;
    return n;
}

static void list_layers(const remat_network *network, stage_cuts *cuts)
{
    const uint32_t last = first_loss(network);
    bool begun = false;
    for (uint32_t n = 0; n < network->layer_count && n <= last; n++) {
        if (!computes(&network->layers[n].node) || network->layers[n].joined != NETWORK_NONE)
            continue; /* its backward pass is that of the layer in front, too */
        cuts->layers[cuts->count++] = begun ? n : 0;
        begun = true;
    }
    if (cuts->count == 0)
        cuts->layers[cuts->count++] = 0;
}

/* Which of the places is the first behind a layer. */
static size_t place_behind(const stage_cuts *cuts, uint32_t layer)
{
    size_t i = 0;
    while (i < cuts->count && cuts->layers[i] <= layer)
        i++;
    return i;
}

static void count_costs(const remat_program *program, stage_cuts *cuts)
{
    for (size_t a = 0; a < program->graph->action_count; a++) {
        uint64_t *cost = &cuts->costs[place_behind(cuts, program->actions[a].layer) - 1];
        *cost = remat_add_saturated(*cost, program->graph->actions[a].cost);
    }
}

/* The output of a layer crosses every place up to its last reader. Data does not: each stage loads it. */
static void count_bytes(const remat_program *program, const uint32_t *last_readers, stage_cuts *cuts)
{
    const remat_network *network = program->network;
    for (uint32_t n = 0; n < network->layer_count; n++) {
        if (!computes(&network->layers[n].node) || program->outputs[n] == GRAPH_NONE)
            continue;
        const uint64_t bytes = program->graph->tensors[program->outputs[n]].bytes;
        for (size_t i = place_behind(cuts, n); i < cuts->count && cuts->layers[i] <= last_readers[n]; i++)
            cuts->bytes[i] = remat_add_saturated(cuts->bytes[i], bytes);
    }
}

/* Views are what they show: a reader of one reads that. */
static void find_readers(const remat_network *network, uint32_t *last_readers, uint32_t *bases)
{
    for (uint32_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        bases[n] = layer->node.view ? bases[layer->inputs[0]] : n;
        last_readers[n] = 0;
        for (uint32_t i = 0; i < layer->node.input_count && !layer->node.view; i++)
            if (layer->inputs[i] != NETWORK_LABELS)
                last_readers[bases[layer->inputs[i]]] = n;
    }
}

remat_status stage_cuts_find(const remat_program *program, stage_cuts *cuts)
{
    const remat_network *network = program->network;
    remat_context *context = program->context;
    const size_t layers = network->layer_count;
    *cuts = (stage_cuts){.context = context, .capacity = layers + 1, .speed = program->speed};
    cuts->layers = remat_alloc(context, cuts->capacity, sizeof *cuts->layers);
    cuts->costs = remat_alloc_zeroed(context, cuts->capacity, sizeof *cuts->costs);
    cuts->bytes = remat_alloc_zeroed(context, cuts->capacity, sizeof *cuts->bytes);
    uint32_t *last_readers = remat_alloc(context, layers, sizeof *last_readers);
    uint32_t *bases = remat_alloc(context, layers, sizeof *bases);
    remat_status status =
        cuts->layers && cuts->costs && cuts->bytes && last_readers && bases ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        list_layers(network, cuts);
        count_costs(program, cuts);
        find_readers(network, last_readers, bases);
        count_bytes(program, last_readers, cuts);
    }
    remat_release(context, last_readers, layers, sizeof *last_readers);
    remat_release(context, bases, layers, sizeof *bases);
    if (status != REMAT_OK)
        stage_cuts_release(cuts);
    return status;
}

void stage_cuts_release(stage_cuts *cuts)
{
    if (!cuts->context)
        return;
    remat_release(cuts->context, cuts->layers, cuts->capacity, sizeof *cuts->layers);
    remat_release(cuts->context, cuts->costs, cuts->capacity, sizeof *cuts->costs);
    remat_release(cuts->context, cuts->bytes, cuts->capacity, sizeof *cuts->bytes);
    *cuts = (stage_cuts){0};
}

/* ---- the fastest ---- */

/* What crosses is copied on both sides, and so is its gradient: read and written each time. */
static uint64_t crossing_cost(const stage_cuts *cuts, size_t place)
{
    if (place == 0 || place == cuts->count)
        return 0;
    return program_modelled_cost(&cuts->speed, 0, remat_min(cuts->bytes[place], REMAT_LIMIT / 8) * 4);
}

static uint64_t with_crossing(const stage_cuts *cuts, uint64_t cost, size_t first, size_t end)
{
    return remat_add_saturated(cost, remat_add_saturated(crossing_cost(cuts, first), crossing_cost(cuts, end)));
}

uint64_t stage_cuts_cost(const stage_cuts *cuts, size_t first, size_t end)
{
    uint64_t cost = 0;
    for (size_t i = first; i < end; i++)
        cost = remat_add_saturated(cost, cuts->costs[i]);
    return cost;
}

void stage_cuts_narrow(stage_cuts *cuts, size_t least)
{
    uint64_t narrowest = UINT64_MAX;
    size_t narrow = 1, kept = 1;
    for (size_t i = 1; i < cuts->count; i++)
        narrowest = remat_min(narrowest, cuts->bytes[i]);
    for (size_t i = 1; i < cuts->count; i++)
        narrow += cuts->bytes[i] / 2 <= narrowest;
    if (narrow < least)
        return;
    for (size_t i = 1; i < cuts->count; i++) {
        if (cuts->bytes[i] / 2 > narrowest) {
            cuts->costs[kept - 1] = remat_add_saturated(cuts->costs[kept - 1], cuts->costs[i]);
            continue;
        }
        cuts->layers[kept] = cuts->layers[i];
        cuts->costs[kept] = cuts->costs[i];
        cuts->bytes[kept++] = cuts->bytes[i];
    }
    cuts->count = kept;
}

/* The best way to cut what comes before a place into so many stages: the slowest of them, then all bytes that cross. */
typedef struct best_cut {
    uint64_t slowest, bytes;
    size_t before; /* where its last stage begins */
} best_cut;

static bool is_better(best_cut a, best_cut b)
{
    return a.slowest < b.slowest || (a.slowest == b.slowest && a.bytes < b.bytes);
}

static void add_stage(const stage_cuts *cuts, const best_cut *before, size_t stage, best_cut *best)
{
    for (size_t end = stage + 1; end <= cuts->count; end++) {
        uint64_t cost = 0;
        best[end] = (best_cut){UINT64_MAX, UINT64_MAX, 0};
        for (size_t first = end; first-- > stage;) {
            cost = remat_add_saturated(cost, cuts->costs[first]);
            const uint64_t time = with_crossing(cuts, cost, first, end);
            const best_cut tried = {remat_max(before[first].slowest, time),
                                    remat_add_saturated(before[first].bytes, cuts->bytes[first]), first};
            if (is_better(tried, best[end]))
                best[end] = tried;
        }
    }
}

remat_status stage_cuts_choose(const stage_cuts *cuts, size_t stages, size_t *chosen)
{
    const size_t row = cuts->count + 1;
    best_cut *best = remat_alloc_zeroed(cuts->context, (stages + 1) * row, sizeof *best);
    if (!best)
        return REMAT_NO_MEMORY;
    for (size_t i = 1; i < row; i++)
        best[i] = (best_cut){UINT64_MAX, UINT64_MAX, 0};
    for (size_t s = 0; s < stages; s++)
        add_stage(cuts, best + s * row, s, best + (s + 1) * row);
    chosen[stages] = cuts->count;
    for (size_t s = stages; s-- > 0;)
        chosen[s] = best[(s + 1) * row + chosen[s + 1]].before;
    remat_release(cuts->context, best, (stages + 1) * row, sizeof *best);
    return REMAT_OK;
}
