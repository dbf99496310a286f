/* Predictions as a CSV table: the class and the probability of each class, or the numbers. */
#include "base/alloc.h"
#include "base/number_text.h"
#include "base/output.h"
#include "base/output_file.h"
#include "train/predictor_object.h"

#include <math.h>
#include <string.h>

typedef struct prediction_table {
    remat_predictor *predictor;
    uint64_t samples; /* to write */
    output *out;
    double *probabilities; /* of a row; NULL without classes */
    uint64_t width;        /* values of a row */
    bool yes_or_no;        /* they are logits of a binary cross entropy */
} prediction_table;

/* A cell, in quotes where it needs them. */
static void put_cell(output *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")] && text[0] != ' ' && text[0]) {
        output_text(out, text);
        return;
    }
    output_text(out, "\"");
    for (char letter[2] = {0}; (letter[0] = *text); text++) {
        output_text(out, letter);
        output_text(out, letter[0] == '"' ? "\"" : "");
    }
    output_text(out, "\"");
}

static void put_class(const prediction_table *table, uint64_t position)
{
    const char *name = remat_predictor_class_name(table->predictor, position);
    if (name)
        put_cell(table->out, name);
    else
        output_number(table->out, position);
}

static void put_number(output *out, double value)
{
    char text[48];
    text_print(text, sizeof text, ",%.7g", value);
    output_text(out, text);
}

/* Of several targets, each has its own answer: there are only the probabilities. */
static bool has_prediction(const prediction_table *table)
{
    return table->probabilities || (table->yes_or_no && table->width == 1);
}

/* Where a sample has several rows, its targets have names of their own in each: a column has none. */
static void write_header(const prediction_table *table, uint64_t rows)
{
    output *out = table->out;
    output_text(out, remat_predictor_file(table->predictor, 0) ? "file" : "row");
    output_text(out, rows > 1 ? ",position" : "");
    output_text(out, has_prediction(table) ? ",prediction" : "");
    for (uint64_t i = 0; i < table->width; i++) {
        const char *target = table->probabilities || rows > 1 ? NULL : remat_predictor_target_name(table->predictor, i);
        output_text(out, ",");
        if (table->probabilities) {
            put_class(table, i);
        } else if (target) {
            put_cell(out, target);
        } else {
            output_text(out, "value");
            output_number(out, i);
        }
    }
    output_text(out, "\n");
}

static void write_row(const prediction_table *table, const float *values)
{
    uint64_t best = 0;
    if (table->probabilities) {
        for (uint64_t i = 1; i < table->width; i++)
            if (values[i] > values[best])
                best = i;
        output_text(table->out, ",");
        put_class(table, best);
        remat_probabilities(values, table->width, table->probabilities);
    }
    if (table->yes_or_no && has_prediction(table))
        output_text(table->out, values[0] > 0 ? ",1" : ",0");
    for (uint64_t i = 0; i < table->width; i++) {
        const double value = (double)values[i];
        put_number(table->out, table->probabilities ? table->probabilities[i]
                               : table->yes_or_no   ? 1 / (1 + exp(-value))
                                                    : value);
    }
    output_text(table->out, "\n");
}

static void write_batch(const prediction_table *table, uint64_t first, uint64_t count,
                        const remat_prediction *prediction)
{
    uint64_t rows = prediction->shape[0] * prediction->shape[1];
    if (first == 0)
        write_header(table, rows);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t r = 0; r < rows; r++) {
            const char *file = remat_predictor_file(table->predictor, first + i);
            if (file)
                put_cell(table->out, file);
            else
                output_number(table->out, remat_predictor_row(table->predictor, first + i));
            output_text(table->out, rows > 1 ? "," : "");
            if (rows > 1)
                output_number(table->out, r + 1);
            write_row(table, prediction->values + (i * rows + r) * table->width);
        }
}

static remat_status write_table(const prediction_table *table)
{
    remat_prediction prediction;
    for (uint64_t first = 0; first < table->samples; first += prediction.batch) {
        REMAT_TRY(remat_predictor_run_samples(table->predictor, first, &prediction));
        uint64_t left = table->samples - first;
        write_batch(table, first, prediction.batch < left ? prediction.batch : left, &prediction);
    }
    return output_end(table->out);
}

static remat_status write_to(const void *user, FILE *stream)
{
    prediction_table table = *(const prediction_table *)user;
    remat_context *context = table.predictor->context;
    uint32_t layer = 0;
    executor_result(table.predictor->executor, 0, &layer);
    table.width = table.predictor->network->layers[layer].node.output.w;
    table.yes_or_no = network_has_yes_or_no(model_get_network(table.predictor->model));
    bool has_classes = remat_predictor_class_count(table.predictor) == table.width;
    table.out = remat_alloc(context, 1, sizeof *table.out);
    if (has_classes)
        table.probabilities = remat_alloc(context, table.width, sizeof *table.probabilities);
    remat_status status = REMAT_NO_MEMORY;
    if (table.out && (table.probabilities || !has_classes)) {
        output_begin(table.out, context, stream);
        status = write_table(&table);
    }
    remat_release(context, table.out, 1, sizeof *table.out);
    remat_release(context, table.probabilities, table.width, sizeof *table.probabilities);
    return status;
}

/* Opens the data; a failure is on the context. */
static remat_status begin(remat_predictor *predictor, uint64_t samples, prediction_table *table)
{
    REMAT_TRY(predictor_open_data(predictor, DATA_TRAINING));
    uint64_t all = remat_predictor_samples(predictor);
    *table = (prediction_table){.predictor = predictor, .samples = samples && samples < all ? samples : all};
    return REMAT_OK;
}

remat_status remat_predictor_write_table(remat_predictor *predictor, uint64_t samples, FILE *stream)
{
    prediction_table table;
    REMAT_TRY(begin(predictor, samples, &table));
    return write_to(&table, stream);
}

remat_status remat_predictor_save_table(remat_predictor *predictor, uint64_t samples, const char *path)
{
    prediction_table table;
    REMAT_TRY(begin(predictor, samples, &table));
    return output_save(predictor->context, path, write_to, &table);
}
