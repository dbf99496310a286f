/* An evaluation for people and as JSON. */
#include "train/evaluation_object.h"

#include "base/alloc.h"
#include "base/number_text.h"
#include "base/output.h"
#include "base/output_file.h"

#include <remat/units.h>

#include <math.h>
#include <string.h>

/* More classes are no table that anybody reads. */
enum { MOST_LISTED = 100, MOST_CROSSED = 20, NAME_WIDTH = 24 };

static void put(output *out, const char *format, double value)
{
    char text[64];
    text_print(text, sizeof text, format, value);
    output_text(out, text);
}

/* The name of a class or a target, or its number. */
static const char *name_or_number(const char *name, uint64_t position, char number[24])
{
    snprintf(number, 24, "%llu", (unsigned long long)position);
    return name ? name : number;
}

/* Tokens are classes too, but nobody asks for the precision of a byte. */
static bool lists_classes(const remat_evaluation *evaluation, uint64_t most)
{
    return evaluation->classes && evaluation->classes <= most && evaluation->rows <= evaluation->samples;
}

/* ---- for people ---- */

static void put_right(output *out, const char *text, size_t width)
{
    for (size_t i = strlen(text); i < width; i++)
        output_text(out, " ");
    output_text(out, text);
}

static void put_count(output *out, uint64_t count, size_t width)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    put_right(out, text, width);
}

static void put_share(output *out, double share, size_t width)
{
    char text[32];
    if (isnan(share))
        snprintf(text, sizeof text, "-");
    else
        text_print(text, sizeof text, "%.2f %%", 100 * share);
    put_right(out, text, width);
}

/* A name at the left of a table, cut where it is too long. */
static void put_name(output *out, const char *name, size_t width)
{
    char shown[4 * NAME_WIDTH + 1];
    remat_text_escape(name, shown, sizeof shown);
    size_t length = strlen(shown) < width ? strlen(shown) : width;
    shown[length] = '\0';
    output_text(out, shown);
    for (size_t i = length; i < width; i++)
        output_text(out, " ");
}

static size_t name_width(const remat_evaluation *evaluation)
{
    size_t width = 5;
    for (uint64_t c = 0; c < evaluation->classes; c++) {
        remat_class_figures figures;
        char number[24];
        remat_evaluation_get_class(evaluation, c, &figures);
        size_t length = strlen(name_or_number(figures.name, c, number));
        width = length > width ? length : width;
    }
    return width < NAME_WIDTH ? width : NAME_WIDTH;
}

static void write_classes(output *out, const remat_evaluation *evaluation)
{
    size_t width = name_width(evaluation);
    output_text(out, "\n");
    put_name(out, "class", width);
    output_text(out, "   samples  precision     recall\n");
    for (uint64_t c = 0; c < evaluation->classes; c++) {
        remat_class_figures figures;
        char number[24];
        remat_evaluation_get_class(evaluation, c, &figures);
        put_name(out, name_or_number(figures.name, c, number), width);
        put_count(out, figures.rows, 10);
        put_share(out, figures.precision, 11);
        put_share(out, figures.recall, 11);
        output_text(out, "\n");
    }
}

static void write_targets(output *out, const remat_evaluation *evaluation)
{
    output_text(out, "\n");
    put_name(out, "target", NAME_WIDTH);
    output_text(out, "       yes   accuracy  precision     recall         F1\n");
    for (uint64_t t = 0; t < evaluation->target_count; t++) {
        remat_target_figures figures;
        char number[24];
        remat_evaluation_get_target(evaluation, t, &figures);
        put_name(out, name_or_number(figures.name, t, number), NAME_WIDTH);
        put_count(out, figures.positives, 10);
        put_share(out, figures.accuracy, 11);
        put_share(out, figures.precision, 11);
        put_share(out, figures.recall, 11);
        put_share(out, figures.f1, 11);
        output_text(out, "\n");
    }
}

static void write_confusion(output *out, const remat_evaluation *evaluation)
{
    size_t width = name_width(evaluation), cell = 8;
    output_text(out, "\nlabels (rows) and predictions (columns, in the same order)\n");
    for (uint64_t label = 0; label < evaluation->classes; label++) {
        remat_class_figures figures;
        char number[24];
        remat_evaluation_get_class(evaluation, label, &figures);
        put_name(out, name_or_number(figures.name, label, number), width);
        for (uint64_t c = 0; c < evaluation->classes; c++)
            put_count(out, remat_evaluation_confusion(evaluation, label, c), cell);
        output_text(out, "\n");
    }
}

static void write_text(output *out, const remat_evaluation *evaluation)
{
    remat_evaluation_figures figures;
    remat_evaluation_get_figures(evaluation, &figures);
    put(out, "loss %.6f", figures.loss);
    if (!isnan(figures.accuracy))
        put(out, "  accuracy %.2f %%", 100 * figures.accuracy);
    if (!isnan(figures.top5))
        put(out, "  top-5 %.2f %%", 100 * figures.top5);
    if (figures.rows > figures.samples) /* tokens */
        put(out, "  perplexity %.4g", figures.perplexity);
    if (!isnan(figures.mean_absolute_error))
        put(out, "  mean absolute error %.6g", figures.mean_absolute_error);
    if (!isnan(figures.r2))
        put(out, "  R2 %.4f", figures.r2);
    output_text(out, "  over ");
    output_number(out, figures.samples);
    output_text(out, " samples\n");
    if (lists_classes(evaluation, MOST_LISTED))
        write_classes(out, evaluation);
    if (evaluation->target_count && evaluation->target_count <= MOST_LISTED)
        write_targets(out, evaluation);
    if (lists_classes(evaluation, MOST_CROSSED))
        write_confusion(out, evaluation);
}

/* ---- as JSON ---- */

static void put_field(output *out, const char *key, double value)
{
    char text[NUMBER_TEXT];
    number_print(value, text);
    output_text(out, key);
    output_text(out, text);
}

static void write_json_class(output *out, const remat_evaluation *evaluation, uint64_t position)
{
    remat_class_figures figures;
    char number[24];
    remat_evaluation_get_class(evaluation, position, &figures);
    output_text_field(out, position ? ", {" : "{", "name", name_or_number(figures.name, position, number));
    output_field(out, ", ", "rows", figures.rows);
    output_field(out, ", ", "predicted", figures.predicted);
    output_field(out, ", ", "correct", figures.correct);
    put_field(out, ", \"precision\": ", figures.precision);
    put_field(out, ", \"recall\": ", figures.recall);
    output_text(out, "}");
}

static void write_json_classes(output *out, const remat_evaluation *evaluation)
{
    output_text(out, ", \"classes\": [");
    for (uint64_t c = 0; c < evaluation->classes; c++)
        write_json_class(out, evaluation, c);
    output_text(out, "], \"confusion\": [");
    for (uint64_t label = 0; label < evaluation->classes; label++) {
        output_text(out, label ? ", [" : "[");
        for (uint64_t c = 0; c < evaluation->classes; c++) {
            output_text(out, c ? ", " : "");
            output_number(out, remat_evaluation_confusion(evaluation, label, c));
        }
        output_text(out, "]");
    }
    output_text(out, "]");
}

static void write_json_targets(output *out, const remat_evaluation *evaluation)
{
    output_text(out, ", \"targets\": [");
    for (uint64_t t = 0; t < evaluation->target_count; t++) {
        remat_target_figures figures;
        char number[24];
        remat_evaluation_get_target(evaluation, t, &figures);
        output_text_field(out, t ? ", {" : "{", "name", name_or_number(figures.name, t, number));
        output_field(out, ", ", "positives", figures.positives);
        output_field(out, ", ", "predicted", figures.predicted);
        output_field(out, ", ", "correct", figures.correct);
        put_field(out, ", \"accuracy\": ", figures.accuracy);
        put_field(out, ", \"precision\": ", figures.precision);
        put_field(out, ", \"recall\": ", figures.recall);
        put_field(out, ", \"f1\": ", figures.f1);
        output_text(out, "}");
    }
    output_text(out, "]");
}

static void write_json(output *out, const remat_evaluation *evaluation)
{
    remat_evaluation_figures figures;
    remat_evaluation_get_figures(evaluation, &figures);
    put_field(out, "{\"loss\": ", figures.loss);
    if (figures.classes) {
        put_field(out, ", \"accuracy\": ", figures.accuracy);
        if (figures.classes > 5)
            put_field(out, ", \"top5\": ", figures.top5);
        put_field(out, ", \"perplexity\": ", figures.perplexity);
        output_field(out, ", ", "rows", figures.rows);
    } else if (figures.targets) {
        put_field(out, ", \"accuracy\": ", figures.accuracy);
    } else if (!isnan(figures.mean_absolute_error)) {
        put_field(out, ", \"mean_absolute_error\": ", figures.mean_absolute_error);
        put_field(out, ", \"r2\": ", figures.r2);
    }
    output_field(out, ", ", "samples", figures.samples);
    if (lists_classes(evaluation, EVALUATION_MOST_CONFUSED))
        write_json_classes(out, evaluation);
    if (figures.targets && figures.targets <= EVALUATION_MOST_CONFUSED)
        write_json_targets(out, evaluation);
    output_text(out, "}\n");
}

remat_status remat_evaluation_write(const remat_evaluation *evaluation, FILE *stream, bool json)
{
    output *out = remat_alloc(evaluation->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, evaluation->context, stream);
    if (json)
        write_json(out, evaluation);
    else
        write_text(out, evaluation);
    remat_status status = output_end(out);
    remat_release(evaluation->context, out, 1, sizeof *out);
    return status;
}

typedef struct saved_text {
    const remat_evaluation *evaluation;
    bool json;
} saved_text;

static remat_status write_to(const void *user, FILE *stream)
{
    const saved_text *saved = user;
    return remat_evaluation_write(saved->evaluation, stream, saved->json);
}

remat_status remat_evaluation_save(const remat_evaluation *evaluation, const char *path, bool json)
{
    const saved_text saved = {evaluation, json};
    return output_save(evaluation->context, path, write_to, &saved);
}
