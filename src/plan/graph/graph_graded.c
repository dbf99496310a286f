#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"
#include "plan/graph/graph_curve.h"
#include "plan/graph/graph_pieces_object.h"

enum { MOST_POINTS = 64, MOST_REPAIRS = 6 };

/* A piece goes over to a mode that holds less and costs more. */
typedef struct move {
    uint32_t piece;
    uint16_t mode;
    double rate; /* cost a byte */
} move;

typedef struct grader {
    graph_curve *curve;
    const graph_pieces *pieces;
    size_t count;       /* of pieces */
    uint16_t *modes;    /* by piece */
    uint16_t *repaired; /* likewise */
    remat_step *steps;
    size_t most_steps;
    move *moves;
    uint32_t *order;
    size_t move_count, move_capacity;
} grader;

static const graph_mode *mode_of(const grader *g, size_t piece, uint16_t mode)
{
    return &g->pieces->kinds[g->pieces->kind_of[piece]].modes.modes[mode];
}

static uint64_t held(const grader *g, size_t piece, uint16_t mode)
{
    const piece_figures *figures = &mode_of(g, piece, mode)->figures;
    return figures->held_bytes + (figures->holds_output ? 0 : graph_pieces_input_bytes(g->pieces, piece + 1));
}

/* ---- the moves, cheapest bytes first ---- */

/* The mode from which on bytes cost least; the same one where none holds less. */
static uint16_t next_mode(const grader *g, size_t piece, uint16_t from, double *rate)
{
    size_t count = g->pieces->kinds[g->pieces->kind_of[piece]].modes.count;
    uint64_t bytes = held(g, piece, from), cost = mode_of(g, piece, from)->figures.remake_cost;
    uint16_t best = from;
    for (uint16_t m = 0; m < count; m++) {
        uint64_t now = held(g, piece, m), price = mode_of(g, piece, m)->figures.remake_cost;
        if (now >= bytes)
            continue;
        double at = ((double)price - (double)cost) / (double)(bytes - now);
        if (best == from || at < *rate || (at == *rate && now < held(g, piece, best))) {
            best = m;
            *rate = at;
        }
    }
    return best;
}

static uint16_t cheapest_mode(const grader *g, size_t piece)
{
    size_t count = g->pieces->kinds[g->pieces->kind_of[piece]].modes.count;
    uint16_t best = 0;
    for (uint16_t m = 1; m < count; m++) {
        uint64_t a = mode_of(g, piece, m)->figures.remake_cost, b = mode_of(g, piece, best)->figures.remake_cost;
        if (a < b || (a == b && held(g, piece, m) < held(g, piece, best)))
            best = m;
    }
    return best;
}

static remat_status find_moves(grader *g)
{
    remat_context *context = g->curve->graph->context;
    for (size_t piece = 0; piece < g->count; piece++) {
        uint16_t at = g->modes[piece] = cheapest_mode(g, piece);
        for (;;) {
            move next = {.piece = (uint32_t)piece};
            next.mode = next_mode(g, piece, at, &next.rate);
            if (next.mode == at)
                break;
            REMAT_TRY(remat_grow(context, (void **)&g->moves, &g->move_capacity, g->move_count + 1, sizeof *g->moves));
            g->moves[g->move_count++] = next;
            at = next.mode;
        }
    }
    return REMAT_OK;
}

/* Of the same rate the first pieces go first: what they do not hold is missing from every peak behind them. The moves
 * of one piece stay in order, because their rates rise. */
static bool move_before(const void *user, uint32_t a, uint32_t b)
{
    const grader *g = user;
    return g->moves[a].rate < g->moves[b].rate;
}

/* ---- schedules ---- */

/* Forward with saving, backward; every x that is not held inside a state is dropped when its backward is done. */
static size_t write_steps(const grader *g, const uint16_t *modes)
{
    size_t n = 0;
    for (uint32_t i = 0; i < g->count; i++)
        g->steps[n++] = (remat_step){i, modes[i], REMAT_FORWARD};
    g->steps[n++] = (remat_step){0, REMAT_NO_SAVE, REMAT_LOSS};
    for (uint32_t i = (uint32_t)g->count; i-- > 0;) {
        uint16_t mode = modes[i];
        if (mode != REMAT_KEEP && !mode_of(g, i, mode)->figures.holds_output)
            g->steps[n++] = (remat_step){i + 1, REMAT_NO_SAVE, REMAT_DROP_X};
        g->steps[n++] = (remat_step){i, REMAT_NO_SAVE, REMAT_BACKWARD};
    }
    return n;
}

/* The cheapest mode of the piece that takes less in the backward. */
static bool find_lower(const grader *g, size_t piece, uint16_t *mode)
{
    size_t count = g->pieces->kinds[g->pieces->kind_of[piece]].modes.count;
    uint64_t limit = mode_of(g, piece, *mode)->figures.backward_peak;
    bool found = false;
    for (uint16_t m = 0; m < count; m++) {
        const piece_figures *now = &mode_of(g, piece, m)->figures, *best = &mode_of(g, piece, *mode)->figures;
        if (now->backward_peak >= limit)
            continue;
        if (!found || now->remake_cost < best->remake_cost ||
            (now->remake_cost == best->remake_cost && now->held_bytes < best->held_bytes))
            *mode = m;
        found = true;
    }
    return found;
}

/* What a piece does not hold it makes again in its backward, perhaps when memory is fullest: there another mode may do
 * better. */
static remat_status try_modes(grader *g)
{
    uint64_t peak, before = UINT64_MAX;
    for (size_t i = 0; i < g->count; i++)
        g->repaired[i] = g->modes[i];
    for (int i = 0; i <= MOST_REPAIRS; i++) {
        uint32_t action;
        size_t count = write_steps(g, g->repaired);
        REMAT_TRY(graph_curve_try(g->curve, g->pieces, g->steps, count, &peak, &action));
        if (peak >= before || action < g->curve->graph->backward_begin || action == GRAPH_NONE)
            break;
        before = peak;
        size_t piece = graph_pieces_of_action(g->pieces, action);
        if (!find_lower(g, piece, &g->repaired[piece]))
            break;
    }
    return REMAT_OK;
}

static remat_status walk_moves(grader *g)
{
    for (size_t i = 0; i < g->count; i++)
        g->repaired[i] = REMAT_KEEP;
    uint64_t peak;
    REMAT_TRY(graph_curve_try(g->curve, g->pieces, g->steps, write_steps(g, g->repaired), &peak, NULL));
    REMAT_TRY(try_modes(g));
    size_t taken = g->move_count < MOST_POINTS ? g->move_count : MOST_POINTS, next = 0;
    for (size_t i = 0; i < taken; i++) {
        for (size_t end = (i + 1) * g->move_count / taken; next < end; next++)
            g->modes[g->moves[g->order[next]].piece] = g->moves[g->order[next]].mode;
        REMAT_TRY(try_modes(g));
    }
    return REMAT_OK;
}

static remat_status grade(grader *g)
{
    remat_context *context = g->curve->graph->context;
    if (!g->modes || !g->repaired || !g->steps)
        return REMAT_NO_MEMORY;
    REMAT_TRY(find_moves(g));
    REMAT_TRY(remat_order(context, g->move_count, move_before, g, &g->order));
    remat_status status = walk_moves(g);
    remat_release(context, g->order, g->move_count, sizeof *g->order);
    return status;
}

remat_status graph_curve_add_graded(graph_curve *curve, const graph_pieces *pieces)
{
    remat_context *context = curve->graph->context;
    grader g = {.curve = curve, .pieces = pieces, .count = graph_pieces_count(pieces)};
    g.most_steps = 3 * g.count + 1;
    g.modes = remat_alloc(context, g.count, sizeof *g.modes);
    g.repaired = remat_alloc(context, g.count, sizeof *g.repaired);
    g.steps = remat_alloc(context, g.most_steps, sizeof *g.steps);
    remat_status status = grade(&g);
    remat_release(context, g.modes, g.count, sizeof *g.modes);
    remat_release(context, g.repaired, g.count, sizeof *g.repaired);
    remat_release(context, g.steps, g.most_steps, sizeof *g.steps);
    remat_release(context, g.moves, g.move_capacity, sizeof *g.moves);
    return status;
}
