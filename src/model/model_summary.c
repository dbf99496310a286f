/* What a compiled model consists of: for programs, for people, as JSON. */
#include "model/model_object.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/output.h"

#include <remat/units.h>

#include <string.h>

size_t remat_model_layer_count(const remat_model *model)
{
    return model->network ? model->network->layer_count : 0;
}

uint64_t remat_model_batch(const remat_model *model)
{
    return model->settings.batch_size;
}

/* Sums for display: past 2^63 they stay there. */
static void add_up(uint64_t *total, uint64_t more)
{
    if (!remat_add(total, more))
        *total = REMAT_LIMIT - 1;
}

/* The values that are trained, or those of frozen layers. */
static uint64_t count_parameters(const remat_model *model, bool frozen)
{
    uint64_t count = 0;
    for (size_t i = 0; model->network && i < model->network->parameter_count; i++) {
        const layer_parameter *about = &model->network->parameters[i].about;
        if (!about->statistic && about->frozen == frozen)
            add_up(&count, model->network->parameters[i].values);
    }
    return count;
}

uint64_t remat_model_parameter_count(const remat_model *model)
{
    return count_parameters(model, false);
}

static uint64_t largest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t more = a > b ? a : b;
    return more > c ? more : c;
}

static void describe(const remat_network *network, size_t position, remat_model_layer *layer)
{
    const network_layer *from = &network->layers[position];
    const layer_node *node = &from->node;
    *layer = (remat_model_layer){
        .name = node->name,
        .type = node->type->name,
        .output_shape = {node->output.c, node->output.h, node->output.w},
        .workspace_bytes =
            largest(layer_workspace(node, LAYER_FORWARD, false), layer_workspace(node, LAYER_WEIGHT_GRADIENT, false),
                    layer_workspace(node, LAYER_INPUT_GRADIENT, true)),
        .block = from->block == NETWORK_NONE ? "" : network->block_names[from->block],
        .forward = REMAT_NOWHERE,
        .recompute = REMAT_NOWHERE,
        .weight_gradient = REMAT_NOWHERE,
        .input_gradient = REMAT_NOWHERE,
        .apply = REMAT_NOWHERE,
    };
    if (!node->view && !node->loss)
        layer->output_bytes = dtype_bytes(node->dtype, layer_values(node->output) * node->batch);
    for (uint32_t i = 0; i < node->saved_count; i++)
        add_up(&layer->saved_bytes, dtype_bytes(node->saved[i].dtype, node->saved[i].count));
    for (uint32_t i = 0; i < node->parameter_count; i++) {
        const network_parameter *parameter = &network->parameters[from->parameters[i]];
        if (parameter->layer == position && !parameter->about.statistic)
            add_up(&layer->parameters, parameter->values);
    }
}

/* The five numbers of all layers come from one walk through a training step. */
static remat_status find_orders(const remat_model *model)
{
    model_order_cache *order = model->order;
    if (order->layers)
        return REMAT_OK;
    size_t count = model->network->layer_count;
    layer_order *layers = remat_alloc(model->context, count, sizeof *layers);
    if (!layers)
        return REMAT_NO_MEMORY;
    remat_status status = model_find_order(model->network, layers);
    if (status == REMAT_OK)
        *order = (model_order_cache){layers, count};
    else
        remat_release(model->context, layers, count, sizeof *layers);
    return status;
}

remat_status remat_model_get_layer_sized(const remat_model *model, size_t position, remat_model_layer *layer,
                                         size_t layer_size)
{
    if (position >= remat_model_layer_count(model))
        return remat_fail(model->context, REMAT_INVALID, NULL, "there is no layer %zu; the compiled model has %zu",
                          position, remat_model_layer_count(model));
    REMAT_TRY(find_orders(model));
    remat_model_layer found;
    describe(model->network, position, &found);
    const uint64_t *at = model->order->layers[position].at;
    found.forward = at[ORDER_FORWARD];
    found.recompute = at[ORDER_RECOMPUTE];
    found.weight_gradient = at[ORDER_GRADIENT];
    found.input_gradient = at[ORDER_DERIVATIVE];
    found.apply = at[ORDER_APPLY];
    remat_struct_give(layer, layer_size, &found, sizeof found);
    return REMAT_OK;
}

/* ---- a table ---- */

enum { COLUMNS = 8, COLUMN_TEXT = 80, TEXT_COLUMNS = 2 };

typedef struct table_row {
    char cells[COLUMNS][COLUMN_TEXT];
} table_row;

static void write_shape(const uint64_t shape[3], char text[COLUMN_TEXT])
{
    snprintf(text, COLUMN_TEXT, "%llu:%llu:%llu", (unsigned long long)shape[0], (unsigned long long)shape[1],
             (unsigned long long)shape[2]);
}

/* 0 is a dash: what is missing is easier to see than what is nothing. */
static void write_bytes(uint64_t bytes, char text[COLUMN_TEXT])
{
    char size[REMAT_SIZE_TEXT];
    snprintf(text, COLUMN_TEXT, "%s", bytes ? remat_size_print(bytes, size) : "-");
}

static void write_count(uint64_t count, char text[COLUMN_TEXT])
{
    char number[REMAT_COUNT_TEXT];
    snprintf(text, COLUMN_TEXT, "%s", count ? remat_count_print(count, number) : "-");
}

static void make_row(const remat_model_layer *layer, table_row *row)
{
    remat_text_escape(layer->name, row->cells[0], COLUMN_TEXT);
    snprintf(row->cells[1], COLUMN_TEXT, "%s", layer->type);
    write_shape(layer->output_shape, row->cells[2]);
    write_count(layer->parameters, row->cells[3]);
    write_bytes(layer->output_bytes, row->cells[4]);
    write_bytes(layer->saved_bytes, row->cells[5]);
    write_bytes(layer->workspace_bytes, row->cells[6]);
    remat_text_escape(layer->block, row->cells[7], COLUMN_TEXT);
}

static const table_row header = {
    {"layer", "type", "output c:h:w", "parameters", "output", "saved", "workspace", "block"}};

/* Numbers stand on the right of their column, the last column is not filled up. */
static void put_row(output *out, const table_row *row, const size_t widths[COLUMNS])
{
    char cell[2 * COLUMN_TEXT];
    size_t last = row->cells[COLUMNS - 1][0] ? COLUMNS : COLUMNS - 1;
    for (size_t i = 0; i < last; i++) {
        int width = (int)widths[i];
        bool left = i < TEXT_COLUMNS || i == COLUMNS - 1;
        snprintf(cell, sizeof cell, "%s%*s", i ? "  " : "",
                 i == COLUMNS - 1 ? 0
                 : left           ? -width
                                  : width,
                 row->cells[i]);
        output_text(out, cell);
    }
    output_text(out, "\n");
}

static void widen(size_t widths[COLUMNS], const table_row *row)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        size_t width = strlen(row->cells[i]);
        widths[i] = width > widths[i] ? width : widths[i];
    }
}

typedef struct totals {
    uint64_t output_bytes, saved_bytes, workspace_bytes;
} totals;

static void write_table(const remat_model *model, output *out, totals *sums)
{
    const remat_network *network = model->network;
    size_t widths[COLUMNS] = {0};
    remat_model_layer layer;
    table_row row;
    widen(widths, &header);
    for (size_t i = 0; i < network->layer_count; i++) {
        describe(network, i, &layer);
        make_row(&layer, &row);
        widen(widths, &row);
        add_up(&sums->output_bytes, layer.output_bytes);
        add_up(&sums->saved_bytes, layer.saved_bytes);
        if (layer.workspace_bytes > sums->workspace_bytes)
            sums->workspace_bytes = layer.workspace_bytes;
    }
    put_row(out, &header, widths);
    for (size_t i = 0; i < network->layer_count; i++) {
        describe(network, i, &layer);
        make_row(&layer, &row);
        put_row(out, &row, widths);
    }
}

/* As they are stored; running statistics are no parameters. */
static uint64_t bytes_of_parameters(const remat_network *network)
{
    uint64_t bytes = 0;
    for (size_t p = 0; p < network->parameter_count; p++)
        if (!network->parameters[p].about.statistic)
            add_up(&bytes, network->parameters[p].bytes);
    return bytes;
}

static void write_totals(const remat_model *model, output *out, const totals *sums)
{
    char line[512], parameters[REMAT_COUNT_TEXT], weights[REMAT_SIZE_TEXT], outputs[REMAT_SIZE_TEXT];
    char saved[REMAT_SIZE_TEXT], workspace[REMAT_SIZE_TEXT];
    uint64_t frozen = count_parameters(model, true), count = remat_model_parameter_count(model), bytes;
    char of_these[64] = "", fixed[REMAT_COUNT_TEXT];
    add_up(&count, frozen);
    if (frozen)
        snprintf(of_these, sizeof of_these, ", %s of them frozen", remat_count_print(frozen, fixed));
    size_t layers = model->network->layer_count;
    uint32_t blocks = model->network->block_count;
    bytes = bytes_of_parameters(model->network);
    snprintf(line, sizeof line,
             "\n%zu layer%s, %u block%s, batch %llu\n%s parameters (%s)%s\n"
             "%s of outputs, %s saved besides, at most %s of workspace\n",
             layers, layers == 1 ? "" : "s", blocks, blocks == 1 ? "" : "s", (unsigned long long)model->network->batch,
             remat_count_print(count, parameters), remat_size_print(bytes, weights), of_these,
             remat_size_print(sums->output_bytes, outputs), remat_size_print(sums->saved_bytes, saved),
             remat_size_print(sums->workspace_bytes, workspace));
    output_text(out, line);
}

/* ---- JSON ---- */

static void write_json_layer(output *out, const remat_model_layer *layer)
{
    output_text_field(out, "{", "name", layer->name);
    output_text_field(out, ", ", "type", layer->type);
    output_text(out, ", \"output_shape\": [");
    for (size_t i = 0; i < 3; i++) {
        output_text(out, i ? ", " : "");
        output_number(out, layer->output_shape[i]);
    }
    output_field(out, "], ", "parameters", layer->parameters);
    output_field(out, ", ", "output_bytes", layer->output_bytes);
    output_field(out, ", ", "saved_bytes", layer->saved_bytes);
    output_field(out, ", ", "workspace_bytes", layer->workspace_bytes);
    if (layer->block[0])
        output_text_field(out, ", ", "block", layer->block);
    output_text(out, "}");
}

static void write_json(const remat_model *model, output *out)
{
    const remat_network *network = model->network;
    totals sums = {0};
    remat_model_layer layer;
    output_text(out, "{\"format\": \"remat-summary\", \"version\": 1");
    if (model->settings.name)
        output_text_field(out, ", ", "name", model->settings.name);
    output_field(out, ", ", "batch", network->batch);
    output_text(out, ",\n \"layers\": [");
    for (size_t i = 0; i < network->layer_count; i++) {
        describe(network, i, &layer);
        output_text(out, i ? ",\n  " : "\n  ");
        write_json_layer(out, &layer);
        add_up(&sums.output_bytes, layer.output_bytes);
        add_up(&sums.saved_bytes, layer.saved_bytes);
        if (layer.workspace_bytes > sums.workspace_bytes)
            sums.workspace_bytes = layer.workspace_bytes;
    }
    output_field(out, "],\n ", "parameters", remat_model_parameter_count(model));
    if (count_parameters(model, true))
        output_field(out, ", ", "frozen_parameters", count_parameters(model, true));
    output_field(out, ", ", "output_bytes", sums.output_bytes);
    output_field(out, ", ", "saved_bytes", sums.saved_bytes);
    output_field(out, ", ", "workspace_bytes", sums.workspace_bytes);
    output_text(out, "}\n");
}

remat_status remat_model_write_summary(const remat_model *model, FILE *stream, bool json)
{
    if (!model->network)
        return remat_fail(model->context, REMAT_INVALID, NULL, "the model is not compiled yet");
    output *out = remat_alloc(model->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, model->context, stream);
    if (json) {
        write_json(model, out);
    } else {
        totals sums = {0};
        if (model->settings.name) {
            output_shown(out, model->settings.name);
            output_text(out, "\n\n");
        }
        write_table(model, out, &sums);
        write_totals(model, out, &sums);
    }
    remat_status status = output_end(out);
    remat_release(model->context, out, 1, sizeof *out);
    return status;
}
