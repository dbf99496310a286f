#include "plan/graph/graph_search.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "plan/graph/exact_search.h"
#include "plan/graph/flight_search.h"

/* A plan in pieces says more to its reader: a schedule of the whole must be so many thousandths cheaper, and more so where the
 * chain of pieces is a fine one. */
enum { WHOLE_MARGIN = 1, FINE_CHAIN_MARGIN = 10 };

/* A chain of at least so many pieces, none of them above so many tensors, is solved well as a chain. */
enum { FINE_CHAIN = 6, FINE_PIECE = 24 };

/* A fine chain whose pieces are alike, so many of a kind, gets a small part of the effort. */
enum { ALIKE = 4, ALIKE_PART = 10 };

/* A fine chain of more actions is left to the chain's planner: the search would take more memory than the training does. */
enum { LONG_CHAIN = 2000 };

/* Seeds of the search over the whole, and schedules that it may give: modes of a piece. */
enum { MOST_SEEDS = 24, MOST_WHOLE = 254 };

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

/* The peak of all runs under way. */
static uint64_t peak_of(const graph_search *search, const placed_graph *placed)
{
    return placed->liveness.peak_bytes + graph_flight_others(search->flight, placed->kept_bytes);
}

static remat_status place_base(const remat_graph *graph, graph_search *search)
{
    graph_sequence sequence = {0};
    placed_graph placed;
    REMAT_TRY(graph_sequence_plain(graph, &sequence));
    REMAT_TRY(graph_place_flight(graph, &sequence, search->flight, &placed));
    search->base_arena_bytes = placed.arena_bytes;
    search->base_run_peak_bytes = placed.liveness.peak_bytes;
    search->base_peak_bytes = peak_of(search, &placed);
    search->base_cost = placed.liveness.cost;
    placed_graph_release(&placed);
    return REMAT_OK;
}

static remat_status add_blocks(graph_search *search, const uint32_t *blocks)
{
    REMAT_TRY(graph_blocks_sequence(&search->outline, blocks, &search->curve.sequence));
    return graph_curve_try(&search->curve, NULL, NULL, 0);
}

/* ---- the whole graph ---- */

static remat_status add_found(void *user, const graph_sequence *sequence)
{
    return graph_curve_offer(user, sequence);
}

static void release_schedules(remat_context *context, graph_sequence *schedules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        graph_sequence_release(context, &schedules[i]);
}

static bool is_fine_chain(const graph_pieces *pieces)
{
    if (!pieces || pieces->cut.piece_count < FINE_CHAIN)
        return false;
    for (size_t i = 0; i < pieces->kind_count; i++)
        if (pieces->kinds[i].piece.inner_count > FINE_PIECE)
            return false;
    return true;
}

/* Most pieces are alike, as the blocks of a transformer. */
static bool is_alike_chain(const graph_pieces *pieces)
{
    return is_fine_chain(pieces) && pieces->cut.piece_count >= ALIKE * pieces->kind_count;
}

/* The chain's planner solves a fine chain well, and a plan of a training has a margin to pass, too. */
static uint64_t find_effort(const graph_search *search, const hold_graph *g, const graph_plan_options *options)
{
    const graph_pieces *pieces = search->pieces[0];
    const bool is_well = is_alike_chain(pieces) || (options->binds == GRAPH_PLACED && is_fine_chain(pieces));
    const uint64_t effort = hold_search_effort(g) / (is_well ? ALIKE_PART : 1);
    return options->effort ? effort / 1000 * options->effort + 1 : effort;
}

/* Some of the chain's schedules are where the search begins. */
static remat_status search_holds(graph_search *search, const hold_graph *g, const graph_plan_options *options)
{
    graph_curve *curve = &search->curve;
    remat_context *context = search->outline.graph->context;
    graph_sequence seeds[MOST_SEEDS] = {0};
    hold_search_options how = {.seeds = seeds,
                               .has_good_seeds = is_alike_chain(search->pieces[0]),
                               .most_runs = curve->most_actions,
                               .threads = options->threads,
                               .effort = find_effort(search, g, options)};
    size_t most = remat_min(curve->count, MOST_SEEDS);
    remat_status status = REMAT_OK;
    for (; status == REMAT_OK && how.seed_count < most; how.seed_count++) {
        size_t point = most > 1 ? how.seed_count * (curve->count - 1) / (most - 1) : 0;
        status = graph_point_actions(curve, &curve->points[point], &seeds[how.seed_count]);
    }
    if (status == REMAT_OK) {
        const bool is_fine = is_fine_chain(search->pieces[0]);
        curve->margin = options->binds == GRAPH_EXACT ? 0 : is_fine ? FINE_CHAIN_MARGIN : WHOLE_MARGIN;
        status = hold_search_run(g, &how, add_found, curve);
        curve->margin = 0;
    }
    release_schedules(context, seeds, how.seed_count);
    return status;
}

/* The chain of a plan that is no plan of pieces: one piece, whose modes are all schedules found. */
static remat_status give_pieces(graph_search *search, const graph_plan_options *options)
{
    graph_curve *curve = &search->curve;
    remat_context *context = search->outline.graph->context;
    graph_sequence *schedules = remat_alloc_zeroed(context, curve->count, sizeof *schedules);
    const size_t capacity = curve->count;
    graph_pieces_options one = {.hints = options->hints, .schedules = schedules};
    remat_status status = schedules ? REMAT_OK : REMAT_NO_MEMORY;
    for (size_t i = 0; status == REMAT_OK && i < curve->count; i++)
        if (!curve->points[i].pieces)
            status = graph_point_actions(curve, &curve->points[i], &schedules[one.schedule_count++]);
    if (status == REMAT_OK && one.schedule_count) {
        status = graph_pieces_create(&search->outline, &one, &search->pieces[1]);
        if (status == REMAT_OK)
            status = graph_curve_give_pieces(curve, search->pieces[1]);
    }
    if (schedules)
        release_schedules(context, schedules, one.schedule_count);
    remat_release(context, schedules, capacity, sizeof *schedules);
    return status;
}

/* Whether the chain's planner is enough. */
static bool leaves_out_search(const graph_search *search, const graph_plan_options *options)
{
    return search->pieces[0] &&
           (options->chain_only || (options->binds == GRAPH_PLACED && is_fine_chain(search->pieces[0]) &&
                                    search->outline.graph->action_count > LONG_CHAIN));
}

static remat_status search_whole(graph_search *search, const hold_graph *g, const graph_plan_options *options)
{
    if (leaves_out_search(search, options))
        return REMAT_OK;
    REMAT_TRY(exact_search_fits(g, &search->is_exact));
    return search->is_exact ? exact_search_run(g, add_found, &search->curve) : search_holds(search, g, options);
}

static remat_status add_whole(graph_search *search, const hold_graph *g, const graph_plan_options *options)
{
    REMAT_TRY(search_whole(search, g, options));
    if (search->flight.count > 1)
        REMAT_TRY(flight_search_run(search, options));
    /* Of what several runs keep, and of schedules that it does not look at, it proves nothing. */
    search->is_exact &= search->flight.count <= 1 && !g->has_pinned;
    if (options->binds == GRAPH_EXACT)
        return REMAT_OK;
    graph_curve_thin(&search->curve, MOST_WHOLE);
    return give_pieces(search, options);
}

/* ---- all together ---- */

/* The chain's planner takes sums below 2^61. With larger ones the graph is planned as a whole. */
static remat_status add_chain(graph_search *search, const graph_plan_options *options)
{
    if (!search->pieces[0])
        return REMAT_OK;
    const remat_status status = graph_curve_add(&search->curve, search->pieces[0], options->threads);
    if (status != REMAT_INVALID || options->binds != GRAPH_EXACT || search->curve.count)
        return status;
    graph_pieces_destroy(search->pieces[0]);
    search->pieces[0] = NULL;
    return REMAT_OK;
}

static remat_status fill(graph_search *search, const hold_graph *g, const graph_plan_options *options)
{
    REMAT_TRY(graph_curve_begin(&search->outline, options->binds, &search->curve));
    search->curve.flight = search->flight;
    REMAT_TRY(add_chain(search, options));
    REMAT_TRY(add_whole(search, g, options));
    return options->blocks ? add_blocks(search, options->blocks) : REMAT_OK;
}

/* A graph that is no forward and backward pass has no pieces. It is planned as a whole. */
static remat_status cut(const remat_graph *graph, const graph_plan_options *options, graph_search *search)
{
    const graph_pieces_options fine = {.hints = options->hints};
    const bool chooses = !options->strategy || strcmp(options->strategy, "optimal") == 0;
    remat_status status = graph_outline_create(graph, &search->outline);
    if ((status == REMAT_BAD_INPUT || status == REMAT_INVALID) && options->binds == GRAPH_EXACT && chooses) {
        search->outline = (graph_outline){.graph = graph};
        return REMAT_OK;
    }
    REMAT_TRY(status);
    return graph_pieces_create(&search->outline, &fine, &search->pieces[0]);
}

remat_status graph_search_begin(const hold_graph *g, const graph_plan_options *options, bool with_curve,
                                graph_search *search)
{
    *search = (graph_search){.binds = options->binds, .flight = options->flight};
    remat_status status = place_base(g->graph, search);
    if (status == REMAT_OK)
        status = cut(g->graph, options, search);
    if (status == REMAT_OK && with_curve)
        status = fill(search, g, options);
    if (status != REMAT_OK)
        graph_search_release(search);
    return status;
}

remat_status graph_search_place(graph_search *search, size_t point, placed_graph *placed)
{
    graph_sequence sequence;
    *placed = (placed_graph){0};
    REMAT_TRY(graph_point_actions(&search->curve, &search->curve.points[point], &sequence));
    return graph_place_flight(search->outline.graph, &sequence, search->flight, placed);
}

remat_status graph_search_fit(graph_search *search, uint64_t budget, const graph_point **point, placed_graph *placed)
{
    for (size_t i = 0; i < search->curve.count; i++) {
        *point = &search->curve.points[i];
        if ((*point)->peak_bytes > budget)
            continue;
        REMAT_TRY(graph_search_place(search, i, placed));
        if (search->binds == GRAPH_EXACT || placed->arena_bytes <= budget)
            return REMAT_OK;
        placed_graph_release(placed);
    }
    return remat_fail(search->outline.graph->context, REMAT_INTERNAL, NULL, "no schedule fits its smallest arena");
}

/* An arena takes at least the peak, and peaks rise from the last point to the first. */
remat_status graph_search_smallest(graph_search *search, uint64_t *bytes, uint32_t *action)
{
    *bytes = UINT64_MAX;
    *action = GRAPH_NONE;
    for (size_t i = search->curve.count; i-- > 0;) {
        placed_graph placed;
        if (search->curve.points[i].peak_bytes >= *bytes)
            break;
        REMAT_TRY(graph_search_place(search, i, &placed));
        const uint64_t now = search->binds == GRAPH_EXACT ? search->curve.points[i].peak_bytes : placed.arena_bytes;
        if (now < *bytes) {
            *bytes = now;
            *action = placed_graph_peak_action(&placed);
        }
        placed_graph_release(&placed);
    }
    return REMAT_OK;
}
