#include "graph/block_peaks.h"

#include "base/alloc.h"
#include "base/min_max.h"
#include "graph/block_schedule.h"

enum { LEAF_LAYERS = 16 }; /* a leaf summarises this many: less memory, and about the same work */

/* A run of recomputed layers that are one block, or part of one. Bytes on top of what is held before the block. */
typedef struct run {
    size_t length;
    uint64_t activation_sum;
    uint64_t recompute;       /* most while recomputing with saving, the gradient of the block's output apart */
    uint64_t backward;        /* most while running backward */
    uint64_t plain_first;     /* most on the way forward, if the run starts the block */
    uint64_t plain_continued; /* the same, if the block started before */
    uint64_t last_output;
} run;

/* Layers whose blocks are complete: what they hold until their backward, and the most on top of what is held
 * before them. */
typedef struct closed {
    uint64_t held, most;
} closed;

/* A stretch of layers: either one run (`all_run`), or an open run, a closed middle and another open run. */
typedef struct summary {
    bool all_run;
    run left, right;
    closed middle;
} summary;

struct block_peaks {
    remat_context *context;
    const remat_profile *chain;
    uint8_t *marks;
    size_t leaf_count; /* a power of two */
    summary *nodes;    /* 1 is the root, leaf_count + i the i-th leaf */
};

static run join_runs(const run *a, const run *b)
{
    if (a->length == 0)
        return *b;
    if (b->length == 0)
        return *a;
    return (run){
        .length = a->length + b->length,
        .activation_sum = a->activation_sum + b->activation_sum,
        .recompute = remat_max(a->recompute, a->activation_sum + b->recompute),
        .backward = remat_max(a->backward, a->activation_sum + b->backward),
        .plain_first = remat_max(a->plain_first, b->plain_continued),
        .plain_continued = remat_max(a->plain_continued, b->plain_continued),
        .last_output = b->last_output,
    };
}

static closed close_run(const run *block)
{
    if (block->length == 0)
        return (closed){0, 0};
    uint64_t recompute = block->last_output + block->recompute;
    return (closed){block->last_output, remat_max(block->plain_first, remat_max(recompute, block->backward))};
}

static closed join_closed(closed a, closed b)
{
    return (closed){a.held + b.held, remat_max(a.most, a.held + b.most)};
}

static summary join(const summary *a, const summary *b)
{
    summary joined = {.all_run = a->all_run && b->all_run};
    if (joined.all_run) {
        joined.left = join_runs(&a->left, &b->left);
    } else if (a->all_run) {
        joined = *b;
        joined.left = join_runs(&a->left, &b->left);
    } else if (b->all_run) {
        joined = *a;
        joined.right = join_runs(&a->right, &b->left);
    } else {
        run between = join_runs(&a->right, &b->left);
        joined.left = a->left;
        joined.middle = join_closed(join_closed(a->middle, close_run(&between)), b->middle);
        joined.right = b->right;
    }
    return joined;
}

static summary summarise_layer(const block_peaks *peaks, size_t i)
{
    const remat_profile *chain = peaks->chain;
    const remat_mode *keep = &chain->layers[i].modes[REMAT_KEEP];
    uint64_t output = chain->layers[i].output_bytes, activation = keep->activation_bytes;
    uint64_t saving = activation + keep->forward_workspace_bytes;
    uint64_t backward = activation + output + remat_chain_y_bytes(chain, i) + keep->backward_workspace_bytes;
    uint64_t plain = output + keep->forward_workspace_bytes;
    if (peaks->marks[i] == MARK_KEEP)
        return (summary){.middle = {activation, remat_max(saving, backward)}};
    return (summary){
        .all_run = true,
        .left = {1, activation, saving, backward, plain, remat_chain_x_bytes(chain, i) + plain, output},
    };
}

static void update_leaf(block_peaks *peaks, size_t leaf)
{
    size_t from = leaf * LEAF_LAYERS, to = remat_min(from + LEAF_LAYERS, peaks->chain->layer_count);
    summary all = {.all_run = true};
    for (size_t i = from; i < to; i++) {
        summary layer = summarise_layer(peaks, i);
        all = join(&all, &layer);
    }
    peaks->nodes[peaks->leaf_count + leaf] = all;
}

remat_status block_peaks_create(remat_context *context, const remat_profile *chain, block_peaks **peaks)
{
    block_peaks *made = *peaks = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->chain = chain;
    made->leaf_count = 1;
    while (made->leaf_count * LEAF_LAYERS < chain->layer_count)
        made->leaf_count *= 2;
    made->marks = remat_alloc_zeroed(context, chain->layer_count, sizeof *made->marks);
    made->nodes = made->marks ? remat_alloc_zeroed(context, 2 * made->leaf_count, sizeof *made->nodes) : NULL;
    if (!made->nodes) {
        block_peaks_destroy(made);
        *peaks = NULL;
        return REMAT_NO_MEMORY;
    }
    for (size_t leaf = 0; leaf < made->leaf_count; leaf++)
        update_leaf(made, leaf);
    for (size_t node = made->leaf_count; node-- > 1;)
        made->nodes[node] = join(&made->nodes[2 * node], &made->nodes[2 * node + 1]);
    return REMAT_OK;
}

void block_peaks_destroy(block_peaks *peaks)
{
    if (!peaks)
        return;
    remat_release(peaks->context, peaks->marks, peaks->chain->layer_count, sizeof *peaks->marks);
    remat_release(peaks->context, peaks->nodes, 2 * peaks->leaf_count, sizeof *peaks->nodes);
    remat_release(peaks->context, peaks, 1, sizeof *peaks);
}

void block_peaks_recompute(block_peaks *peaks, size_t layer)
{
    size_t leaf = layer / LEAF_LAYERS;
    peaks->marks[layer] = MARK_RECOMPUTE;
    update_leaf(peaks, leaf);
    for (size_t node = (peaks->leaf_count + leaf) / 2; node >= 1; node /= 2)
        peaks->nodes[node] = join(&peaks->nodes[2 * node], &peaks->nodes[2 * node + 1]);
}

uint64_t block_peaks_peak(const block_peaks *peaks)
{
    const remat_profile *chain = peaks->chain;
    size_t n = chain->layer_count;
    if (n == 0)
        return chain->input_bytes;
    const summary *all = &peaks->nodes[1];
    closed whole = join_closed(join_closed(close_run(&all->left), all->middle), close_run(&all->right));
    uint64_t loss = whole.held + remat_chain_y_bytes(chain, n) + chain->loss_workspace_bytes;
    return chain->input_bytes + remat_max(whole.most, loss);
}
