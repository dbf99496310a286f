#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "graph/chain.h"
#include "plan/graph/graph_pieces.h"

enum { MODE_NAME = 80, PIECE_NAME = 160 };

typedef char mode_name[MODE_NAME];

static uint64_t above(uint64_t bytes, uint64_t counted)
{
    return bytes > counted ? bytes - counted : 0;
}

/* The name of an inner tensor in a piece of its kind. */
static const char *inner_name(const graph_pieces *pieces, size_t piece, const piece_tensor *tensor)
{
    const remat_graph *graph = pieces->outline->graph;
    const graph_action *maker = &graph->actions[pieces->cut.begins[piece].forward + tensor->maker];
    const char *name = graph->tensors[graph_writes(graph, maker)[tensor->write]].name;
    return name && *name ? name : "tensor";
}

/* The first tensors that are kept, by name, and how many more; with the number of the mode where that is not unique. */
static void name_mode(const graph_pieces *pieces, size_t piece, const graph_mode *mode, mode_name name)
{
    const piece_kind *kind = &pieces->kinds[pieces->kind_of[piece]];
    size_t length = 0, left_out = 0;
    name[0] = '\0';
    for (size_t t = 0; t < kind->piece.inner_count; t++) {
        if (!mode->keep[t])
            continue;
        const char *text = inner_name(pieces, piece, &kind->piece.tensors[t]);
        if (length + strlen(text) + 24 < MODE_NAME) /* room for the rest of the name */
            length += (size_t)snprintf(name + length, MODE_NAME - length, "%s%s", length ? "+" : "", text);
        else
            left_out++;
    }
    if (left_out)
        snprintf(name + length, MODE_NAME - length, "+%zu more", left_out);
    else if (length == 0)
        snprintf(name, MODE_NAME, "input only");
}

/* Two modes of a layer may not have the same name, and two names are reserved. */
static void make_unique(mode_name *names, size_t at)
{
    char *name = names[at];
    bool taken = strcmp(name, "keep") == 0 || strcmp(name, "recompute") == 0;
    for (size_t i = 0; i < at; i++)
        taken |= strcmp(names[i], name) == 0;
    if (taken)
        snprintf(name + strlen(name), MODE_NAME - strlen(name), " #%zu", at + 1);
}

/* The type of the costliest action, or attention where there is any, and the flops of all. */
static void take_hints(const graph_pieces *pieces, size_t piece, remat_layer_options *layer)
{
    uint64_t highest = 0;
    bool attends = false;
    for (uint32_t i = pieces->cut.begins[piece].forward; i < pieces->cut.begins[piece + 1].forward; i++) {
        const graph_action *action = &pieces->outline->graph->actions[i];
        if (action->once)
            continue;
        layer->recompute_flops += pieces->hints[i].flops;
        attends |= pieces->hints[i].type == REMAT_ATTENTION;
        if (action->cost >= highest) {
            highest = action->cost;
            layer->type = pieces->hints[i].type;
        }
    }
    layer->type = attends ? REMAT_ATTENTION : layer->type;
}

/* The names of its first and last action. */
static void describe(const graph_pieces *pieces, size_t piece, char name[PIECE_NAME], remat_layer_options *layer)
{
    const graph_action *actions = pieces->outline->graph->actions, *first = NULL, *last = NULL;
    for (uint32_t i = pieces->cut.begins[piece].forward; i < pieces->cut.begins[piece + 1].forward; i++)
        if (!actions[i].once) {
            first = first ? first : &actions[i];
            last = &actions[i];
        }
    if (pieces->hints)
        take_hints(pieces, piece, layer);
    const char *from = first && first->name ? first->name : "piece", *to = last && last->name ? last->name : "piece";
    if (strlen(from) + strlen(to) + 4 > PIECE_NAME) /* half a letter would not be UTF-8 */
        snprintf(name, PIECE_NAME, "piece %zu", piece);
    else if (strcmp(from, to) == 0)
        snprintf(name, PIECE_NAME, "%s", from);
    else
        snprintf(name, PIECE_NAME, "%s..%s", from, to);
    layer->name = name;
}

/* The chain holds x_i, y_{i+1} and y_i while a piece runs; its workspace is what the piece takes beyond that and what
 * it holds itself. */
static void fill_modes(const graph_pieces *pieces, size_t piece, mode_name *names, remat_mode_options *options,
                       remat_layer_options *layer)
{
    const piece_kind *kind = &pieces->kinds[pieces->kind_of[piece]];
    uint64_t output = graph_cut_input_bytes(&pieces->cut, pieces->outline->graph, piece + 1);
    uint64_t gradients = output + graph_cut_input_bytes(&pieces->cut, pieces->outline->graph, piece);
    const piece_figures *keep = &kind->modes.modes[0].figures;
    layer->output_bytes = output;
    layer->activation_bytes = keep->held_bytes + (keep->holds_output ? 0 : output);
    layer->forward_cost = kind->piece.forward_cost;
    layer->backward_cost = kind->piece.backward_cost;
    layer->forward_workspace_bytes =
        remat_max(above(keep->forward_peak, layer->activation_bytes), above(kind->modes.plain_peak, output));
    layer->backward_workspace_bytes = above(keep->backward_peak, layer->activation_bytes + gradients);
    layer->modes = options;
    for (size_t i = 1; i < kind->modes.count; i++) {
        const graph_mode *mode = &kind->modes.modes[i];
        const piece_figures *figures = &mode->figures;
        remat_mode_options *to = &options[layer->mode_count++];
        remat_mode_options_init(to);
        name_mode(pieces, piece, mode, names[i - 1]);
        make_unique(names, i - 1);
        to->name = names[i - 1];
        to->activation_bytes = figures->held_bytes;
        to->holds_output = figures->holds_output;
        to->backward_cost = kind->piece.backward_cost + figures->recompute_cost;
        to->forward_workspace_bytes =
            above(figures->forward_peak, figures->held_bytes + (figures->holds_output ? 0 : output));
        to->backward_workspace_bytes = above(figures->backward_peak, figures->held_bytes + gradients);
    }
}

remat_status graph_pieces_make_profile(graph_pieces *pieces)
{
    const graph_outline *outline = pieces->outline;
    remat_context *context = outline->graph->context;
    uint64_t data = 0;
    for (size_t t = 0; pieces->cut.piece_count > 1 && t < outline->graph->tensor_count; t++)
        data += outline->uses[t].made_once ? graph_placed_bytes(outline->graph->tensors[t].bytes) : 0;
    REMAT_TRY(remat_profile_create(context, &pieces->profile));
    REMAT_TRY(remat_profile_set_input_bytes(pieces->profile, data));
    REMAT_TRY(remat_profile_set_input_gradient_bytes(pieces->profile, 0));
    mode_name *names = remat_alloc(context, REMAT_MOST_MODES, sizeof *names);
    remat_mode_options *options = remat_alloc(context, REMAT_MOST_MODES, sizeof *options);
    remat_status status = names && options ? REMAT_OK : REMAT_NO_MEMORY;
    for (size_t i = 0; status == REMAT_OK && i < pieces->cut.piece_count; i++) {
        char name[PIECE_NAME];
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        describe(pieces, i, name, &layer);
        fill_modes(pieces, i, names, options, &layer);
        status = remat_profile_add_layer(pieces->profile, &layer);
    }
    remat_release(context, names, REMAT_MOST_MODES, sizeof *names);
    remat_release(context, options, REMAT_MOST_MODES, sizeof *options);
    return status;
}
