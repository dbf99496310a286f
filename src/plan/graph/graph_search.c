#include "plan/graph/graph_search.h"

#include "base/alloc.h"
#include "base/error.h"

/* Up to this many tensors the graph is also solved as one piece: without the slack of a chain, small ones exactly. */
enum { MOST_WHOLE = 200 };

/* A plan in pieces says more to its reader: above this many tensors, the whole must be so many thousandths cheaper. */
enum { WHOLE_FREELY = 16, WHOLE_MARGIN = 10 };

void graph_search_release(graph_search *search)
{
    graph_curve_release(&search->curve);
    graph_pieces_destroy(search->pieces[0]);
    graph_pieces_destroy(search->pieces[1]);
    graph_outline_release(&search->outline);
    *search = (graph_search){0};
}

void graph_search_forget(graph_search *search)
{
    graph_curve_release(&search->curve);
    graph_outline_forget(&search->outline);
}

static remat_status place_base(const remat_graph *graph, graph_search *search)
{
    graph_sequence sequence = {0};
    placed_graph placed;
    REMAT_TRY(graph_sequence_plain(graph, &sequence));
    REMAT_TRY(graph_place(graph, &sequence, &placed));
    search->base_arena_bytes = placed.arena_bytes;
    search->base_peak_bytes = placed.liveness.peak_bytes;
    search->base_cost = placed.liveness.cost;
    placed_graph_release(&placed);
    return REMAT_OK;
}

static remat_status add_blocks(graph_search *search, const uint32_t *blocks)
{
    REMAT_TRY(graph_blocks_sequence(&search->outline, blocks, &search->curve.sequence));
    return graph_curve_try(&search->curve, NULL, NULL, 0);
}

/* What the chain's schedules keep is a good place to begin. */
static remat_status add_whole(graph_search *search, const graph_plan_options *options)
{
    keep_sets seeds;
    REMAT_TRY(graph_curve_keep_sets(&search->curve, &seeds));
    const graph_pieces_options one = {.hints = options->hints, .whole = true, .seeds = &seeds};
    remat_status status = graph_pieces_create(&search->outline, &one, &search->pieces[1]);
    keep_sets_release(search->outline.graph->context, &seeds);
    REMAT_TRY(status);
    search->curve.margin = graph_outline_made(&search->outline) <= WHOLE_FREELY ? 0 : WHOLE_MARGIN;
    status = graph_curve_add(&search->curve, search->pieces[1], options->threads);
    search->curve.margin = 0;
    return status;
}

static remat_status fill(graph_search *search, const graph_plan_options *options)
{
    REMAT_TRY(graph_curve_begin(&search->outline, &search->curve));
    REMAT_TRY(graph_curve_add(&search->curve, search->pieces[0], options->threads));
    if (graph_outline_made(&search->outline) <= MOST_WHOLE)
        REMAT_TRY(add_whole(search, options));
    return options->blocks ? add_blocks(search, options->blocks) : REMAT_OK;
}

remat_status graph_search_begin(const remat_graph *graph, const graph_plan_options *options, bool with_curve,
                                graph_search *search)
{
    *search = (graph_search){0};
    const graph_pieces_options fine = {.hints = options->hints};
    remat_status status = place_base(graph, search);
    if (status == REMAT_OK)
        status = graph_outline_create(graph, &search->outline);
    if (status == REMAT_OK)
        status = graph_pieces_create(&search->outline, &fine, &search->pieces[0]);
    if (status == REMAT_OK && with_curve)
        status = fill(search, options);
    if (status != REMAT_OK)
        graph_search_release(search);
    return status;
}

remat_status graph_search_place(graph_search *search, size_t point, placed_graph *placed)
{
    graph_sequence sequence;
    *placed = (placed_graph){0};
    REMAT_TRY(graph_point_actions(&search->curve, &search->curve.points[point], &sequence));
    return graph_place(search->outline.graph, &sequence, placed);
}

remat_status graph_search_fit(graph_search *search, uint64_t budget, const graph_point **point, placed_graph *placed)
{
    for (size_t i = 0; i < search->curve.count; i++) {
        *point = &search->curve.points[i];
        if ((*point)->peak_bytes > budget)
            continue;
        REMAT_TRY(graph_search_place(search, i, placed));
        if (placed->arena_bytes <= budget)
            return REMAT_OK;
        placed_graph_release(placed);
    }
    return remat_fail(search->outline.graph->context, REMAT_INTERNAL, NULL, "no schedule fits its smallest arena");
}

uint32_t placed_graph_peak_action(const placed_graph *placed)
{
    return placed->sequence.count ? placed->sequence.actions[placed->liveness.peak_position] : GRAPH_NONE;
}

/* An arena takes at least the peak, and peaks rise from the last point to the first. */
remat_status graph_search_smallest(graph_search *search, uint64_t *arena_bytes, uint32_t *action)
{
    *arena_bytes = UINT64_MAX;
    *action = GRAPH_NONE;
    for (size_t i = search->curve.count; i-- > 0;) {
        placed_graph placed;
        if (search->curve.points[i].peak_bytes >= *arena_bytes)
            break;
        REMAT_TRY(graph_search_place(search, i, &placed));
        if (placed.arena_bytes < *arena_bytes) {
            *arena_bytes = placed.arena_bytes;
            *action = placed_graph_peak_action(&placed);
        }
        placed_graph_release(&placed);
    }
    return REMAT_OK;
}
